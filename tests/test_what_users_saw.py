"""Faults that somebody saw in use, each under the name of what was seen, and read in one piece and by character."""

from typing import Any

import pytest

from dialects import Text, ToolDropped, ToolEnd, create_inband_scanner
from tests.streams import joined, scan_pieces

TOOLS = [
    {"name": "get_tide", "parameters": {"type": "object", "properties": {"port": {"type": "string"}}}},
    {"name": "run", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}},
]
CALL, ARGUMENTS, END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"


def seen(dialect: str, text: str, **options: Any) -> tuple[str, list[tuple[str, Any]], list[str]]:
    """The text, the calls and the reasons of what was dropped."""
    events = joined(scan_pieces(dialect, [text], **options))
    assert joined(scan_pieces(dialect, list(text), **options)) == events
    shown = "".join(event.text for event in events if isinstance(event, Text))
    calls = [(event.name, event.arguments) for event in events if isinstance(event, ToolEnd)]
    return shown, calls, [event.reason for event in events if isinstance(event, ToolDropped)]


def test_the_rest_of_a_call_without_a_closer_is_no_text() -> None:
    stream = '<tool_call>{"arguments":{"command":"ls"},"name":"run"}\nDone'
    assert seen("hermes", stream) == ("Done", [("run", {"command": "ls"})], [])


@pytest.mark.parametrize("dialect", ["hermes", "qwen3"])
def test_a_broken_call_does_not_silence_what_follows(dialect: str) -> None:
    scanner = create_inband_scanner(dialect)
    scanner.feed('<tool_call>\n{"name":"run","arguments":{"command":"a" "b"}}\n</tool_call>\n')
    assert [type(event).__name__ for event in scanner.feed("A long answer.")] == ["Text"]


def test_a_closer_in_later_prose_does_not_swallow_the_words_before_it() -> None:
    stream = '<tool_call>{"name":"run","arguments":{"command":"a" "b"}}</tool_call>\n\nWrite </tool_call> to end it.'
    assert seen("hermes", stream)[0] == "Write </tool_call> to end it."


def test_text_behind_a_call_that_was_too_large_is_shown() -> None:
    stream = '<tool_call>{"name":"run","arguments":{"command":"' + "x" * 60 + '"}}</tool_call>\n\nDone.'
    assert seen("hermes", stream, max_call_chars=70) == ("Done.", [], ["too-large"])


@pytest.mark.parametrize(
    ("call_id", "name"),
    [
        ("functions.run: 0", "run"),
        ("functions.delete: 1", "delete"),
        ("functionsget_tide:0", "get_tide"),
        ("functions.get_tide:x", "get_tide"),
        ("functions/run:0", "run"),
        ("functions:run:0", "run"),
        ("mcp:run:3", "mcp:run"),
    ],
)
def test_a_name_that_can_be_read_in_the_id_is_never_another_tool(call_id: str, name: str) -> None:
    stream = f'{CALL}{call_id}{ARGUMENTS}{{"port":"Leith"}}{END}'
    assert seen("kimi", stream, tools=TOOLS)[1] == [(name, {"port": "Leith"})]


@pytest.mark.parametrize(
    "prose",
    [
        "In GLM each call starts with <tool_call> and",
        "Use <tool_call>run.",
        "see <tool_call>name</tool_call> here",
    ],
)
def test_the_last_words_of_a_sentence_about_the_tag_are_not_lost(prose: str) -> None:
    assert seen("glm", prose, tools=TOOLS) == (prose, [], [])


def test_a_word_that_is_no_tool_between_the_tags_is_no_call() -> None:
    assert seen("glm", "<tool_call>sorry</tool_call>", tools=TOOLS) == ("", [], ["malformed"])


@pytest.mark.parametrize(
    "body", ['{"name": "...", "arguments": {...}}', '{"name": <function-name>, "arguments": <args>}']
)
def test_a_placeholder_in_a_sentence_is_no_call(body: str) -> None:
    prose = f"use <tool_call>{body}</tool_call> to call"
    assert seen("qwen3", prose) == (prose, [], [])


@pytest.mark.parametrize("dialect", ["hermes", "qwen3", "glm"])
def test_the_closer_of_a_result_alone_on_its_line_is_no_text(dialect: str) -> None:
    assert seen(dialect, "a\n</tool_response>\nb")[0] == "a\nb"


def test_two_sets_of_arguments_are_not_clean() -> None:
    stream = '<tool_call>{"name":"run","arguments":{"a":1},"arguments":{"b":1}}</tool_call>'
    assert seen("hermes", stream) == ("", [("run", {"a": 1})], [])
    assert seen("hermes", stream, strict=True) == ("", [], ["malformed"])


@pytest.mark.parametrize(
    ("dialect", "prompt", "stream"),
    [("qwen3", "<|im_start|>", "assistant\nhi"), ("kimi", "<|im_assistant|>", "assistant<|im_middle|>hi")],
)
def test_a_header_that_the_prompt_began_is_no_text(dialect: str, prompt: str, stream: str) -> None:
    assert seen(dialect, stream, generation_prompt=prompt)[0] == "hi"


@pytest.mark.parametrize(
    ("dialect", "stream"),
    [("qwen3", "a<|im_start|>assi"), ("kimi", "a<|im_assistant|>assi"), ("kimi", "a<|im_assistant|>assistant<|im_mid")],
)
def test_a_header_that_was_cut_off_is_no_text(dialect: str, stream: str) -> None:
    assert seen(dialect, stream)[0] == "a"


def test_a_result_that_the_model_wrote_under_a_tools_name_is_not_the_answer() -> None:
    assert seen("harmony", "<|start|>tool<|channel|>commentary<|message|>22 C<|end|>")[0] == ""


def test_a_call_that_stays_text_keeps_the_line_break_before_it() -> None:
    stream = 'Try\n<tool_call>\n{"name":"x","arguments":{}}\n</tool_call>'
    assert seen("hermes", stream, tools=TOOLS, unknown_tools="text") == (stream, [], [])
