"""The scanner `auto`: it finds out which dialect a stream is in, says why, and is sure only where it can be."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects import create_inband_scanner, dialect_names, get_dialect, render_transcript, scan, templates
from dialects.auto import has_plain_tags, openers
from dialects.events import Event, Stopped, Text, ThinkingEnd, ToolEnd
from dialects.factory import all_dialects
from dialects.gemma import Gemma
from dialects.scanner_row import AutoScanner, ScannerRow
from tests.laws import check_order
from tests.streams import cut, cuts, joined, scan_pieces, whole

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
    assert scanner.match is match
    scanner.feed("I look.")
    assert scanner.match.name is None


def test_what_the_end_of_the_stream_decides_is_told() -> None:
    scanner = auto(generation_prompt="<think>")
    scanner.feed("<tool_call>refresh_board</tool_call>")
    assert scanner.match.name is None
    scanner.flush()
    assert scanner.match.name == "glm"
    scanner.flush()
    assert scanner.match.candidates == dialect_names()


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
    assert "no marker has come" in scanner.match.reason


def test_the_prompt_may_tell_it() -> None:
    scanner = auto(generation_prompt="<|start|>assistant")
    assert scanner.match.name == "harmony"
    assert scanner.feed("<|channel|>final<|message|>Hello") == [Text("Hello")]
    scanner.flush()
    assert scanner.match.name == "harmony"


def tokens_of_turns() -> list[str]:
    tokens = dict.fromkeys(token for name in dialect_names() for token in get_dialect(name).control_tokens)
    return [token for token in tokens if token in openers(all_dialects()).readers]


@pytest.mark.parametrize("token", tokens_of_turns())
def test_a_token_that_no_call_is_written_with_tells_nothing(token: str) -> None:
    scanner = auto()
    events = scanner.feed(f"Hello.{token}")
    assert (scanner.match.name, scanner.match.candidates) == (None, dialect_names())
    events += scanner.flush()
    assert "".join(event.text for event in events if isinstance(event, Text)) == "Hello."


@pytest.mark.parametrize("name", dialect_names())
@pytest.mark.parametrize("token", tokens_of_turns())
def test_behind_a_token_of_one_family_a_call_of_another_is_not_lost(token: str, name: str) -> None:
    scanner = auto(tools=TOOLS)
    events = scanner.feed(token + leak(name))
    if any(isinstance(event, Stopped) for event in events):
        assert token in ("<|user|>", "<|system|>") or "\uff5c" in token
        return
    assert name in scanner.match.candidates
    events += scanner.flush()
    assert [call.name for call in events if isinstance(call, ToolEnd)] == ["get_tide"]


HEADERS = (
    "<|im_start|>assistant\n",
    "<|im_assistant|>assistant<|im_middle|>",
    "<start_of_turn>model\n",
    "<|turn>model\n",
    "]~b]ai\n",
    "<|assistant|>",
    "<\uff5cAssistant\uff5c>",
)


@pytest.mark.parametrize("header", HEADERS)
def test_the_header_of_an_assistants_turn_is_not_visible(header: str) -> None:
    for pieces in ([f"Hi.{header}Hello."], list(f"Hi.{header}Hello."), ["Hi.", header, "Hello."]):
        scanner = auto()
        events = [event for piece in pieces for event in scanner.feed(piece)] + scanner.flush()
        assert "".join(event.text for event in events if isinstance(event, Text)) == "Hi.Hello."
    assert scan(f"<think>Hm.{header}Hello.", "auto").thinking == "Hm."


@pytest.mark.parametrize("header", HEADERS[:5])
def test_a_header_that_was_cut_off_is_not_visible(header: str) -> None:
    token = next(token for token in openers(all_dialects()).readers if header.startswith(token))
    for length in range(len(token), len(header)):
        assert scan(f"Hi.{header[:length]}", "auto").text == "Hi."


SPECIAL = sorted(openers(all_dialects()).special)
WORDS = (
    "Hello",
    " ",
    "\n",
    "<",
    "`",
    "```\n",
    "<think>",
    "</think>",
    "```thinking\n",
    "<channel|>",
    "\n\nHuman: ",
    "json",
)


@given(
    st.lists(st.sampled_from([*SPECIAL, *HEADERS, *WORDS, *map(leak, dialect_names())]), max_size=6).map("".join),
    st.booleans(),
    st.data(),
)
def test_tokens_of_all_families_in_any_order_read_alike_however_they_are_cut(
    text: str, truncated: bool, data: st.DataObject
) -> None:
    expected = whole("auto", text, truncated=truncated)
    check_order(expected)
    for pieces in (list(text), cut(text, data.draw(cuts(text)))):
        assert joined(scan_pieces("auto", pieces, truncated=truncated)) == expected


def test_the_turn_of_a_user_ends_the_reading() -> None:
    for header in ("<|im_start|>user\n", "<|im_user|>user<|im_middle|>", "<start_of_turn>user\n", "<|user|>\n"):
        result = scan(f"Hi.{header}And now?", "auto")
        assert (result.text, result.stopped) == ("Hi.", "fabricated-turn")


def test_a_dialogue_in_prose_is_no_turn_before_anything_decides() -> None:
    text = "Two voices:\n\nHuman: Where?\n\nAssistant: Here."
    assert scan(text, "auto").text == text


def test_thinking_that_a_channel_opened_without_its_name_is_thinking() -> None:
    result = scan("<|channel>Hm.<channel|>Hello.", "auto")
    assert (result.thinking, result.text) == ("Hm.", "Hello.")
    result = scan("<|channel>Hm.<channel|>Hello.", "auto", parse_thinking=False)
    assert (result.thinking, result.text) == ("", "<|channel>Hm.<channel|>Hello.")


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


VENDORS = [(name, template) for name in dialect_names() for template in templates(name)]


@pytest.mark.parametrize(("name", "template"), VENDORS)
def test_what_a_whole_prompt_shows_of_calls_and_thinking_does_not_come_out(name: str, template: str) -> None:
    messages = [{"role": "user", "content": "What do <think> and <tool_call>{ open?"}]
    prompt = render_transcript(messages, name, template=template, tools=TOOLS, add_generation_prompt=True)
    for output in ("Hello.", leak(name)):
        own = scan(output, name, generation_prompt=prompt, tools=TOOLS)
        result = scan(output, "auto", generation_prompt=prompt, tools=TOOLS)
        assert (result.text, result.thinking, result.dropped) == (own.text, own.thinking, own.dropped)
        assert [call.raw_block for call in result.tool_calls] == [call.raw_block for call in own.tool_calls]


@pytest.mark.parametrize("tag", ["think", "thinking", "scratchpad", "mm:think"])
def test_thinking_that_the_prompt_opened_and_the_model_opens_again_has_no_tag_in_it(tag: str) -> None:
    stream = f"\n<{tag}>\nThe <{tag}> is mine.\n</{tag}>Hello."
    for name in ("auto", "thinking"):
        row = ScannerRow(all_dialects(), name, generation_prompt=f"<{tag}>\n")
        events = row.feed(stream) + row.flush()
        assert [event.thinking for event in events if isinstance(event, ThinkingEnd)] == [f"The <{tag}> is mine."]
        assert [event.text for event in events if isinstance(event, Text)] == ["Hello."]


@pytest.mark.parametrize("name", dialect_names())
def test_text_on_both_sides_of_thinking_and_a_call_stays_on_lines_of_its_own(name: str) -> None:
    thinking = get_dialect(name).render_thinking("Hm.")
    result = scan(f"I look.\n{thinking}\n{leak(name)}There.", "auto")
    assert (result.text, result.thinking) == ("I look.\nThere.", "Hm.")
    assert len(result.tool_calls) == 1


@pytest.mark.parametrize("tag", ["think", "thinking", "scratchpad", "mm:think"])
@pytest.mark.parametrize("name", [it.name for it in all_dialects() if has_plain_tags(it)])
def test_a_draft_of_a_call_in_any_familys_thinking_is_not_run(name: str, tag: str) -> None:
    draft = get_dialect(name).render_assistant_tool_calls([{"name": "delete_all", "arguments": {"port": "Oban"}}])
    stream = f"<{tag}>\nPerhaps\n{draft}\nNo.\n</{tag}>\n{leak(name)}"
    for pieces in ([stream], list(stream)):
        scanner = auto(tools=TOOLS)
        events = [event for piece in pieces for event in scanner.feed(piece)] + scanner.flush()
        assert [call.name for call in events if isinstance(call, ToolEnd)] == ["get_tide"]
        assert [event.thinking for event in events if isinstance(event, ThinkingEnd)] == [f"Perhaps\n{draft}\nNo."]


def test_a_call_that_ends_the_open_thinking_of_its_own_dialect_says_so() -> None:
    (call,) = scan("<|channel>thought\nHm.<|tool_call>call:refresh_board{}<tool_call|>", "auto").tool_calls
    assert call.repairs == ("unclosed-thinking",)


@pytest.mark.parametrize("behind", ["", "\n", "\n\nNo.\n```\nHello."])
def test_a_call_in_a_thinking_fence_is_real_if_nothing_closes_that(behind: str) -> None:
    stream = f"```thinking\nHm.\n{leak('gemini')}{behind}"
    own = scan(stream, "gemini")
    for pieces in ([stream], list(stream)):
        scanner = auto(tools=TOOLS)
        events = [event for piece in pieces for event in scanner.feed(piece)] + scanner.flush()
        calls = [call for call in events if isinstance(call, ToolEnd)]
        assert [(it.raw_block, it.repairs) for it in calls] == [(it.raw_block, it.repairs) for it in own.tool_calls]
        assert "".join(event.text for event in events if isinstance(event, Text)) == own.text


def test_a_python_call_between_the_tags_of_others_is_no_dialects() -> None:
    scanner = auto()
    scanner.feed('<tool_call>get_tide(port="Oban")</tool_call>')
    assert scanner.match.candidates == dialect_names()
    assert scan('<tool_call>get_tide(port="Oban")</tool_call>', "auto").tool_calls == []


def test_an_opener_that_was_a_slip_is_not_visible() -> None:
    call = '<tool_call>\n{"name": "get_tide", "arguments": {"port": "Oban"}}\n</tool_call>'
    for text in (f"<tool_call>\n{call}", f"<tool_call>\nI look.\n{call}"):
        for pieces in ([text], list(text)):
            assert joined(scan_pieces("auto", pieces)) == whole("hermes", text)
    prose = f"<tool_call> opens a call.{' So it is.' * 50}\n{call}"
    assert scan(prose, "auto").text.startswith("<tool_call> opens a call.")
    assert len(scan(prose, "auto").tool_calls) == 1


def test_thinking_that_only_a_plug_in_knows_raises_nothing_before_its_dialect_is_known() -> None:
    class Musing(Gemma):
        name = "musing"

        def thinking_text(self, text: str) -> str:
            return f"<|channel>musing\n{text}<channel|>"

    scanner = AutoScanner((Musing(),))
    events = scanner.feed("<|channel>Hm.<channel|>Hello.") + scanner.flush()
    assert "".join(event.text for event in events if isinstance(event, Text)) == "Hm.Hello."


def test_a_family_that_borrows_tokens_is_not_taken_for_their_owner() -> None:
    scanner = auto(tools=TOOLS)
    scanner.feed(
        "<\uff5ctool_calls_begin\uff5c>\n<\uff5ctool_call_begin\uff5c>function<\uff5ctool_sep\uff5c>"
        '<steptml:invoke name="get_tide"></steptml:invoke><\uff5ctool_call_end\uff5c>\n<\uff5ctool_calls_end\uff5c>'
    )
    assert (scanner.match.name, scanner.match.candidates) == (None, ("deepseek",))
    assert "cannot be read" in scanner.match.reason
    scanner.flush()
    scanner.feed(leak("deepseek"))
    assert scanner.match.name == "deepseek"
