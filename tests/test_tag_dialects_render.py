"""What the renderers of the dialects with plain-text tags write, byte for byte: Hermes, Qwen3 and GLM."""

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from dialects.engine.dialect import Dialect
from dialects.glm import GLM
from dialects.hermes import HERMES
from dialects.messages import Message, ToolCall, ToolResult, read_messages, read_tools
from dialects.qwen3 import QWEN3
from dialects.transcript import encode_history, render_transcript

DIALECTS: tuple[Dialect, ...] = (HERMES, QWEN3, GLM)
FOLDER = Path(__file__).parent / "cases/inband-render"
CASES = [
    (dialect, case)
    for dialect in DIALECTS
    for case in map(json.loads, (FOLDER / f"{dialect.name}.jsonl").read_text(encoding="utf-8").splitlines())
]
every_case = pytest.mark.parametrize(
    ("dialect", "case"), CASES, ids=[f"{dialect.name}-{case['id']}" for dialect, case in CASES]
)
every_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=[dialect.name for dialect in DIALECTS])

WEATHER = {
    "name": "get_weather",
    "parameters": {"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
}
READ = {"name": "read_file", "parameters": {"properties": {"path": {"type": "string"}}}}
CONVERSATION: list[dict[str, Any]] = [
    {"role": "user", "content": "Ping."},
    {
        "role": "assistant",
        "content": "Pinging.",
        "reasoning_content": "Easy.",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "ping", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "pong"},
]


def pieces(dialect: Dialect, case: dict[str, Any]) -> list[dict[str, str]]:
    """Everything in a case that the dialect can render alone, rendered."""
    found: list[dict[str, str]] = []
    for role, run in groupby(case["messages"], key=lambda message: str(message["role"])):
        messages = list(run)
        if role == "tool":
            found.append({"tool_results": dialect.render_tool_results(messages)})
        for message in messages:
            if calls := message.get("tool_calls"):
                batch = dialect.render_assistant_tool_calls(calls, tools=case["tools"])
                found.append({"tool_calls": batch, "one_call": dialect.render_tool_call(calls[0], tools=case["tools"])})
            if reasoning := message.get("reasoning_content"):
                found.append({"thinking": dialect.render_thinking(reasoning)})
    return found


@every_case
def test_a_conversation_is_written_byte_for_byte(dialect: Dialect, case: dict[str, Any]) -> None:
    written = dialect.transcript_text(read_messages(case["messages"]), read_tools(case["tools"]))
    assert written == case["transcript"]


@every_case
def test_each_piece_alone_is_written_byte_for_byte(dialect: Dialect, case: dict[str, Any]) -> None:
    assert sorted(map(str, pieces(dialect, case))) == sorted(map(str, case["turns"]))


@every_dialect
def test_a_generation_prompt_stands_before_the_next_body(dialect: Dialect) -> None:
    asked = render_transcript(CONVERSATION[:1], dialect, add_generation_prompt=True)
    answered = render_transcript([*CONVERSATION[:1], {"role": "assistant", "content": "Hi."}], dialect)
    assert answered.startswith(asked + "Hi.")


@every_dialect
def test_a_history_for_another_endpoint_holds_no_role_headers(dialect: Dialect) -> None:
    _, assistant, user = encode_history(CONVERSATION, dialect, role_tokens=False)
    calls = dialect.render_assistant_tool_calls(CONVERSATION[1]["tool_calls"])
    assert assistant["content"] == f"<think>\nEasy.\n</think>Pinging.{calls}"
    assert user == {"role": "user", "content": "<tool_response>\npong\n</tool_response>"}


@every_dialect
def test_a_history_with_role_headers_has_the_results_as_they_stand_alone(dialect: Dialect) -> None:
    *_, user = encode_history(CONVERSATION, dialect)
    assert user["content"] == dialect.render_tool_results(CONVERSATION[2:])


@every_dialect
def test_nothing_is_written_for_nothing(dialect: Dialect) -> None:
    assert dialect.render_thinking("") == ""
    assert dialect.render_assistant_tool_calls([]) == ""
    assert dialect.render_tool_results([]) == ""


@every_dialect
def test_no_lone_surrogate_and_no_entity_gets_out(dialect: Dialect) -> None:
    written = dialect.render_tool_call(ToolCall(None, "f", {"k": "<b>&\ud800</b>"}))
    assert "<b>&\ufffd</b>" in written
    assert "\ufffd" in dialect.render_tool_results([ToolResult(None, None, "\udfff")])


@pytest.mark.parametrize("dialect", [HERMES, QWEN3], ids=["hermes", "qwen3"])
def test_the_guide_of_a_json_dialect_shows_exactly_what_the_renderer_writes(dialect: Dialect) -> None:
    calls = [
        ToolCall(None, "get_weather", {"city": "Zürich", "unit": "c"}),
        ToolCall(None, "read_file", {"path": 'notes/"to do".txt'}),
    ]
    assert dialect.prompt.count(dialect.render_assistant_tool_calls(calls)) == 1


class TestGlm:
    def test_the_guide_shows_exactly_what_the_renderer_writes(self) -> None:
        calls = [
            ToolCall(None, "get_weather", {"city": "Zürich", "days": 3}),
            ToolCall(None, "read_file", {"path": 'notes/"to do".txt'}),
        ]
        assert GLM.prompt.count(GLM.render_assistant_tool_calls(calls, tools=[WEATHER, READ])) == 1

    def test_a_string_is_quoted_where_no_schema_says_that_it_is_one(self) -> None:
        call = ToolCall(None, "get_weather", {"city": "7", "days": 7})
        assert "<arg_value>7</arg_value>\n<arg_key>days" in GLM.render_tool_call(call, tools=[WEATHER])
        assert '<arg_value>"7"</arg_value>\n<arg_key>days' in GLM.render_tool_call(call, tools=[READ])
        assert '<arg_value>"7"</arg_value>\n<arg_key>days' in GLM.render_tool_call(call)

    def test_a_blank_line_stands_only_before_thinking(self) -> None:
        messages = read_messages([Message("user", "<think>?"), Message("assistant", "a", reasoning="b")])
        assert GLM.transcript_text(messages, None) == (
            "[gMASK]<sop><|user|>\n<think>?<|assistant|>\n\n<think>\nb\n</think>a"
        )
