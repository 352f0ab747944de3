"""What is particular to the renderers of Hermes, Qwen3 and GLM."""

from typing import Any

import pytest

from dialects.engine.dialect import Dialect
from dialects.glm import GLM
from dialects.hermes import HERMES
from dialects.messages import Message, ToolCall, read_messages
from dialects.qwen3 import QWEN3
from dialects.reading import scan
from dialects.transcript import encode_history, render_transcript

DIALECTS: tuple[Dialect, ...] = (HERMES, QWEN3, GLM)
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


def test_a_backtick_in_the_text_does_not_quote_the_call_behind_it() -> None:
    call = {"name": "read", "arguments": {"path": "`"}}
    for content in ("`", "Run `ls", "a\n`b"):
        transcript = render_transcript([{"role": "assistant", "content": content, "tool_calls": [call]}], "xml")
        result = scan(transcript, "xml")
        assert (result.text, [found.arguments for found in result.tool_calls]) == (content, [{"path": "`"}])
