"""What every dialect's renderer writes in its own form, byte for byte, and what all of them have in common.

The case files hold conversations: `transcript` is a whole one, `turns` its pieces rendered alone, in no order.
"""

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from dialects import dialect_names, get_dialect
from dialects.engine.dialect import Dialect
from dialects.messages import MessageError, ToolCall, ToolResult, read_messages, read_tools

FOLDER = Path(__file__).parent / "cases/inband-render"
CASES = [
    (name, case)
    for name in dialect_names()
    for case in map(json.loads, (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
]
every_case = pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{name}-{case['id']}" for name, case in CASES])
every_dialect = pytest.mark.parametrize("name", dialect_names())


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
def test_a_conversation_is_written_byte_for_byte(name: str, case: dict[str, Any]) -> None:
    written = get_dialect(name).transcript_text(read_messages(case["messages"]), read_tools(case["tools"]))
    assert written == case["transcript"]


@every_case
def test_each_piece_alone_is_written_byte_for_byte(name: str, case: dict[str, Any]) -> None:
    assert sorted(map(str, pieces(get_dialect(name), case))) == sorted(map(str, case["turns"]))


@every_dialect
def test_nothing_is_written_for_nothing(name: str) -> None:
    dialect = get_dialect(name)
    assert dialect.render_thinking("") == ""
    assert dialect.render_assistant_tool_calls([]) == ""
    assert dialect.render_tool_results([]) == ""


@every_dialect
def test_no_lone_surrogate_and_no_entity_gets_out(name: str) -> None:
    dialect = get_dialect(name)
    assert "<b>&\ufffd</b>" in dialect.render_tool_call(ToolCall(None, "f", {"k": "<b>&\ud800</b>"}))
    assert "b\ufffd" in dialect.render_tool_results([ToolResult(None, None, "b\udfff")])
    assert "c\ufffdd" in dialect.render_thinking("c\ud800d")
    assert "😀" in dialect.render_thinking("\ud83d\ude00")


@every_dialect
def test_wrong_use_is_told(name: str) -> None:
    dialect = get_dialect(name)
    with pytest.raises(MessageError, match=r"^call\.function\.name: "):
        dialect.render_tool_call({"function": {}})
    with pytest.raises(MessageError, match=r"^calls: expected a list"):
        dialect.render_assistant_tool_calls(ToolCall(None, "f", {}))  # type: ignore[arg-type]
    with pytest.raises(MessageError, match=r"^results\[0\]\.content: "):
        dialect.render_tool_results([{"role": "tool"}])
    with pytest.raises(TypeError, match="thinking is text"):
        dialect.render_thinking(None)  # type: ignore[arg-type]
