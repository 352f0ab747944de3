"""A realistic Kimi stream, and the show of `dialects demo`: each chunk as it arrives, beside the events it brings.

The sample holds what trips parsers up: markers cut across chunks, a call's end marker inside a JSON string (text like
any other), and arguments whose inner quotes the model forgot to escape (mended where the meaning is plain).
"""

import json
from collections.abc import Iterator
from itertools import cycle
from typing import TextIO

from dialects.events import (
    Event,
    Stopped,
    Text,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolArgDelta,
    ToolDropped,
    ToolEnd,
    ToolStart,
)
from dialects.factory import create_inband_scanner
from dialects.terminal import CYAN, DIM, GREEN, RED, YELLOW, excerpt, painted

__all__ = ["SAMPLE", "chunks", "run"]

SAMPLE = (
    "<think>The timeout is set somewhere under src. I search for it and write down how a call ends.</think>"
    "I'll look for the timeout, and note the format.\n"
    "<|tool_calls_section_begin|>"
    "<|tool_call_begin|>functions.run:0<|tool_call_argument_begin|>"
    '{"command":"grep -rn "timeout = 30" src","limit":20}'
    "<|tool_call_end|>"
    "<|tool_call_begin|>functions.write_file:1<|tool_call_argument_begin|>"
    '{"path":"notes/kimi.md","content":"A call ends with `<|tool_call_end|>`.\\nThis one goes on → end\\n"}'
    "<|tool_call_end|>"
    "<|tool_calls_section_end|>"
)

_CUTS = (11, 7, 16, 5, 13, 9)
_CHUNK_WIDTH = max(_CUTS) + 6


def chunks() -> Iterator[str]:
    """The sample in small pieces, cut where no marker ends."""
    start = 0
    for size in cycle(_CUTS):
        if start >= len(SAMPLE):
            return
        yield SAMPLE[start : start + size]
        start += size


def run(out: TextIO, *, colour: bool) -> None:
    """Scan the sample and write the show; it is the same every time."""

    def row(left: str, right: str, style: str) -> None:
        out.write(f"{left:<{_CHUNK_WIDTH}}  {painted(right, style) if colour else right}".rstrip() + "\n")

    scanner = create_inband_scanner("kimi")
    calls: list[ToolEnd] = []

    def rows(left: str, events: list[Event]) -> None:
        for event in events:
            row(left, *_described(event))
            left = ""
            if isinstance(event, ToolEnd):
                calls.append(event)
        if left:
            row(left, f"… {scanner.held_chars} held" if scanner.held_chars else "", DIM)

    row("A CHUNK ARRIVES", "EVENTS COME OUT", DIM)
    for chunk in chunks():
        rows(repr(chunk), scanner.feed(chunk))
    rows("(end)", scanner.flush())

    out.write(f"\n{len(calls)} calls:\n")
    for call in calls:
        out.write(f"  {call.name}  {json.dumps(call.arguments, ensure_ascii=False)}\n")
        if call.repairs:
            out.write(f"    mended: {', '.join(call.repairs)}\n")


def _described(event: Event) -> tuple[str, str]:
    """What a row says of an event, and in which style."""
    match event:
        case Text(text):
            return f"Text           {_quoted(text)}", ""
        case ThinkingStart():
            return "ThinkingStart", DIM
        case ThinkingDelta(delta):
            return f"ThinkingDelta  {_quoted(delta)}", DIM
        case ThinkingEnd():
            return "ThinkingEnd", DIM
        case ToolStart(id, name):
            return f"ToolStart      {name}, id {id}", CYAN
        case ToolArgDelta(delta="", json=piece):
            return f"ToolArgDelta   json {_quoted(piece)}", DIM
        case ToolArgDelta(key=key, delta=delta):
            return f"ToolArgDelta   {key}: {_quoted(delta)}", CYAN
        case ToolEnd(name=name, repairs=()):
            return f"ToolEnd        {name}, clean", GREEN
        case ToolEnd(name=name, repairs=repairs):
            return f"ToolEnd        {name}, mended: {', '.join(repairs)}", YELLOW
        case ToolDropped(name=name, reason=reason):
            return f"ToolDropped    {name}, {reason}", RED
        case Stopped(reason):
            return f"Stopped        {reason}", RED


def _quoted(text: str) -> str:
    return excerpt(repr(text))
