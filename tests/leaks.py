"""The reported leaks: chat completions in which a model's markup reached the user, and what they ought to say."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["CASES", "DECIDED", "Chunk", "chunk", "native", "response_of", "stream_of", "text"]

Chunk = dict[str, Any]
Case = Mapping[str, Any]

FILE = Path(__file__).parent / "cases" / "heal.jsonl"
CASES: list[Chunk] = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
DECIDED: dict[str, tuple[Chunk, str]] = {
    "heal-qwen-xml-elements": (
        {
            "content": 'Reading.\n<tool_calls>\n<get_tide port="Leith" />\n</tool_calls>',
            "reasoning": None,
            "tool_calls": [],
            "finish_reason": "stop",
        },
        "elements named after tools are no dialect's form, and any text about XML may hold them",
    ),
}
"""By case id: what is expected instead, and why. The other debatable cases come out as they expect."""


def chunk(delta: Chunk | None = None, finish: str | None = None, *, index: int = 0, **fields: Any) -> Chunk:
    """A chunk of a stream with one choice."""
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish}
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [choice], **fields}


def text(content: str) -> Chunk:
    """A chunk with a piece of the visible text."""
    return chunk({"content": content})


def native(name: str | None, arguments: str, *, index: int | None = 0, call_id: str | None = "n1") -> Chunk:
    """A chunk with a call in the server's own field, or without a name a piece of one."""
    function: Chunk = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    entry: Chunk = {"type": "function", "function": function}
    entry |= {} if index is None else {"index": index}
    entry |= {} if call_id is None else {"id": call_id}
    return chunk({"tool_calls": [entry]})


def stream_of(case: Case, pieces: Sequence[str], *, native_first: bool = True) -> list[Chunk]:
    """The chunks that the server of a case sends, its text cut into these pieces."""
    calls = [
        native(call["name"], json.dumps(call["arguments"]), index=at, call_id=f"n{at}")
        for at, call in enumerate(case["upstream"]["tool_calls"])
    ]
    texts = [text(piece) for piece in pieces]
    body = [*calls, *texts] if native_first else [*texts, *calls]
    return [chunk({"role": "assistant", "content": ""}), *body, chunk({}, case["upstream"]["finish_reason"])]


def response_of(case: Case) -> Chunk:
    """The whole response of that server where no stream is asked for."""
    calls = [
        {"id": f"n{at}", "type": "function", "function": {**call, "arguments": json.dumps(call["arguments"])}}
        for at, call in enumerate(case["upstream"]["tool_calls"])
    ]
    message = {"role": "assistant", "content": case["raw"], **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": case["upstream"]["finish_reason"]}
    head = {"id": "r", "object": "chat.completion", "created": 1, "model": "m"}
    return {**head, "choices": [choice], "usage": {"total_tokens": 3}}
