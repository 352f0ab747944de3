"""The scanner `auto`: it finds out which dialect a stream is in, says why, and is sure only where it can be."""

from typing import Any

import pytest

from dialects import create_inband_scanner, dialect_names, get_dialect, scan
from dialects.events import Event, Text, ToolEnd
from dialects.scanner_row import AutoScanner

CALL = {"name": "get_tide", "arguments": {"port": "Oban"}}
TOOLS = [{"name": "get_tide", "parameters": {"type": "object", "properties": {"port": {"type": "string"}}}}]


def auto(**options: Any) -> AutoScanner:
    scanner = create_inband_scanner("auto", **options)
    assert isinstance(scanner, AutoScanner)
    return scanner


def leak(name: str) -> str:
    return get_dialect(name).render_assistant_tool_calls([CALL], tools=TOOLS)


@pytest.mark.parametrize("name", dialect_names())
def test_a_complete_call_tells_its_dialect_or_which_it_could_be(name: str) -> None:
    scanner = auto(tools=TOOLS)
    events = scanner.feed(leak(name))
    match = scanner.match
    assert name in match.candidates
    assert match.name in (name, None)
    assert (match.name is None) == (len(match.candidates) > 1)
    assert all(candidate in match.reason for candidate in match.candidates)
    events += scanner.flush()
    assert [(call.name, call.arguments) for call in events if isinstance(call, ToolEnd)] == [
        ("get_tide", {"port": "Oban"})
    ]
    assert scanner.match.name is None


def test_two_dialects_that_write_calls_alike_are_one_candidate_set() -> None:
    scanner = auto()
    scanner.feed('<tool_call>\n{"name"')
    assert scanner.match.name is None
    assert set(scanner.match.candidates) == {"hermes", "qwen3"}
    assert scanner.pattern == scanner.match.candidates[0]


def test_before_anything_decides_every_dialect_is_a_candidate() -> None:
    scanner = auto()
    assert "".join(event.text for event in scanner.feed("The <tool_call>, a tag.") if isinstance(event, Text)) == (
        "The <tool_call>, a tag."
    )
    assert scanner.match.candidates == dialect_names()
    assert scanner.match.name is None
    assert "no marker" in scanner.match.reason


def test_the_prompt_may_tell_it() -> None:
    scanner = auto(generation_prompt="<|im_assistant|>assistant<|im_middle|>")
    assert scanner.match.name == "kimi"
    scanner.flush()
    assert scanner.match.name == "kimi"


def test_the_options_are_those_of_every_scanner() -> None:
    for name in dialect_names():
        for options in ({"unknown_tools": "drop", "tools": []}, {"strict": True}, {"max_call_chars": 20}):
            assert events_of("auto", leak(name), **options) == events_of(name, leak(name), **options)
    with pytest.raises(ValueError, match="unknown_tools"):
        create_inband_scanner("auto", unknown_tools="no")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="feed takes a str"):
        create_inband_scanner("auto").feed(b"x")  # type: ignore[arg-type]


def events_of(name: str, text: str, **options: Any) -> list[Event]:
    numbers = iter(range(10**6))
    scanner = create_inband_scanner(name, id_factory=lambda: f"call_{next(numbers)}", **options)
    return scanner.feed(text) + scanner.flush()


def test_a_whole_text_can_be_scanned_so() -> None:
    result = scan(f"<scratchpad>Hm.</scratchpad>I look.{leak('kimi')}", "auto")
    assert (result.text, result.thinking, result.tool_calls[0].name) == ("I look.", "Hm.", "get_tide")


def test_thinking_may_stay_in_the_text() -> None:
    result = scan(f"<think>Hm.</think>{leak('kimi')}<scratchpad>", "auto", parse_thinking=False)
    assert result.text == "<think>Hm.</think><scratchpad>"
    assert len(result.tool_calls) == 1


@pytest.mark.parametrize("prompt", ["<think>", "<|assistant|><think>", "<think>\n"])
def test_a_call_in_thinking_that_the_prompt_opened_and_nothing_closes_is_not_lost(prompt: str) -> None:
    stream = "The board is stale.<tool_call>refresh_board</tool_call>"
    result = scan(stream, "auto", generation_prompt=prompt)
    assert [call.name for call in result.tool_calls] == ["refresh_board"]
    assert result.thinking == "The board is stale."


def test_a_python_call_between_the_tags_of_others_is_no_dialects() -> None:
    scanner = auto()
    scanner.feed('<tool_call>get_tide(port="Oban")</tool_call>')
    assert scanner.match.candidates == dialect_names()
    assert scan('<tool_call>get_tide(port="Oban")</tool_call>', "auto").tool_calls == []
