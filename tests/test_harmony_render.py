"""What Harmony's renderer writes where a conversation leaves it a choice."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dialects.harmony import HARMONY
from dialects.messages import Message, ToolCall, ToolResult, read_messages
from dialects.transcript import encode_history, render_transcript

CALL = "<|start|>assistant<|channel|>commentary to=functions.ping<|message|>{}<|call|>"
RESULT = "<|start|>functions.ping to=assistant<|channel|>commentary<|message|>pong<|end|>"


def transcript(*messages: Message) -> str:
    return HARMONY.transcript_text(read_messages(messages), None)


def test_the_guide_shows_exactly_what_the_renderer_writes() -> None:
    calls = [
        ToolCall(None, "get_weather", {"city": "Zürich", "unit": "c"}),
        ToolCall(None, "read_file", {"path": 'notes/"to do".txt'}),
    ]
    assert HARMONY.prompt.count(HARMONY.render_assistant_tool_calls(calls)) == 1


def test_an_assistants_turn_is_its_thinking_its_text_and_its_calls() -> None:
    turn = Message("assistant", "Pinging.", "Easy.", (ToolCall("c", "ping", {}),))
    assert transcript(turn) == (
        "<|start|>assistant<|channel|>analysis<|message|>Easy.<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>Pinging.<|end|>{CALL}"
    )


def test_an_assistant_who_says_nothing_still_has_a_turn() -> None:
    assert transcript(Message("assistant")) == "<|start|>assistant<|channel|>final<|message|><|end|>"


def test_a_named_speaker_keeps_the_name() -> None:
    assert transcript(Message("user", "hi", name="ann")) == "<|start|>user:ann<|message|>hi<|end|>"
    assert transcript(Message("system", "be brief", name="x")) == "<|start|>developer:x<|message|>be brief<|end|>"


def test_the_next_body_follows_the_generation_prompt() -> None:
    asked = render_transcript([Message("user", "Ping.")], HARMONY, add_generation_prompt=True)
    assert transcript(Message("user", "Ping."), Message("assistant", "Hi.")).startswith(asked)


def test_a_result_comes_from_the_function_that_was_called() -> None:
    called = Message("assistant", tool_calls=(ToolCall("a", "ping", {}), ToolCall("b", "pong", {})))
    late = transcript(called, Message("tool", "2", tool_call_id="b"), Message("tool", "1", tool_call_id="a"))
    assert late.split("<|call|>")[-1] == (
        "<|start|>functions.pong to=assistant<|channel|>commentary<|message|>2<|end|>"
        "<|start|>functions.ping to=assistant<|channel|>commentary<|message|>1<|end|>"
    )


def test_a_result_alone_has_its_function_from_its_name_or_its_id() -> None:
    assert HARMONY.render_tool_results([ToolResult("x", "ping", "pong")]) == RESULT
    assert HARMONY.render_tool_results([ToolResult("functions.ping:3", None, "pong")]) == RESULT
    unknown = "<|start|>functions.tool to=assistant<|channel|>commentary<|message|>pong<|end|>"
    assert HARMONY.render_tool_results([ToolResult("call_1", None, "pong")]) == unknown


def test_results_for_another_endpoint_hold_no_tokens() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "ping", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "pong"},
    ]
    assert encode_history(messages, HARMONY, role_tokens=False)[1] == {
        "role": "user",
        "content": "functions.ping to=assistant\npong",
    }
    assert encode_history(messages, HARMONY)[1] == {"role": "user", "content": RESULT}


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text()) | st.none()))
def test_arguments_survive_the_writing(arguments: dict[str, Any]) -> None:
    text = HARMONY.render_tool_call(ToolCall(None, "ping", arguments))
    assert json.loads(text.split("<|message|>", 1)[1].removesuffix("<|call|>")) == arguments
