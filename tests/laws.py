"""Laws as functions, which the tests and the fuzzer share: each takes what a scanner was given and what it said."""

import json
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from dialects import get_dialect
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
    event_to_json,
)
from tests.streams import Stream, marker_boundaries

__all__ = ["check_arguments", "check_nothing_lost", "check_order", "check_splits"]


def check_splits(stream: Stream, splits: Iterable[list[str]]) -> list[Event]:
    """However the text is cut, the events are the same; they are returned."""
    expected = stream.read([stream.text])
    boundaries = marker_boundaries(stream.dialect, stream.text)
    at_markers = [stream.text[a:b] for a, b in zip([0, *boundaries], [*boundaries, len(stream.text)], strict=True)]
    for pieces in (list(stream.text), at_markers, *splits):
        found = stream.read(pieces)
        assert found == expected, f"in {len(pieces)} pieces: {_first_difference(found, expected)}"
    return expected


def _first_difference(found: list[Event], expected: list[Event]) -> str:
    for one, other in zip(found, expected, strict=False):
        if one != other:
            return f"{one!r:.600}\nin one piece: {other!r:.600}"
    return f"{len(found)} events, in one piece {len(expected)}: {[*found, *expected][min(len(found), len(expected))]!r}"


def check_order(events: Iterable[Event]) -> None:
    """A call's start, its pieces and its one end follow each other; thinking likewise; ids are unique; all of it can be
    put on the wire."""
    seen: set[str] = set()
    call: ToolStart | None = None
    thinking: list[str] | None = None
    stopped = False
    for event in events:
        assert not stopped, "nothing follows Stopped"
        event_to_json(event)
        match event:
            case Text(text):
                assert text, "an empty text is no event"
                assert call is None, "text inside a call"
                assert thinking is None, "text inside thinking"
            case ThinkingStart():
                assert call is None
                assert thinking is None
                thinking = []
            case ThinkingDelta(delta):
                assert delta
                assert thinking is not None
                thinking.append(delta)
            case ThinkingEnd(all_of_it):
                assert thinking
                assert "".join(thinking) == all_of_it
                thinking = None
            case ToolStart(id, name):
                assert call is None
                assert thinking is None
                assert id not in seen, "an id twice"
                assert name
                seen.add(id)
                call = event
            case ToolArgDelta(id, name, key, delta, text):
                assert call is not None
                assert (call.id, call.name) == (id, name)
                assert delta or text, "an empty piece"
                assert key is not None or not delta
            case ToolEnd(id, name):
                assert call is not None
                assert (call.id, call.name) == (id, name)
                call = None
            case ToolDropped(id, name):
                if call is None:
                    assert id not in seen, "an id twice"
                    seen.add(id)
                else:
                    assert (call.id, call.name) == (id, name)
                call = None
            case Stopped():
                stopped = True
    assert call is None, "a call without an end"
    assert thinking is None, "thinking without an end"


def check_arguments(events: Iterable[Event]) -> None:
    """A call's pieces are its arguments' JSON text, and its value is the arguments."""
    pieces: list[ToolArgDelta] = []
    for event in events:
        match event:
            case ToolStart():
                pieces = []
            case ToolArgDelta():
                pieces.append(event)
            case ToolEnd(arguments=arguments, arguments_json=text):
                assert "".join(piece.json for piece in pieces) == text
                text.encode()
                assert exactly(_strict_json(text)) == exactly(arguments)
                for key in {piece.key for piece in pieces if piece.key is not None} | arguments.keys():
                    delta = "".join(piece.delta for piece in pieces if piece.key == key)
                    assert key in arguments, f"a piece of {key!r}, which is no argument"
                    value = arguments[key]
                    if isinstance(value, str):
                        assert delta == value
                    else:
                        assert exactly(_strict_json(delta)) == exactly(value)


def exactly(value: object) -> str:
    """A form in which 1, 1.0 and True differ, and the order of keys counts."""
    return repr(value)


def _strict_json(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


_HEADERS = {"kimi": r"<\|im_(?:system|user|assistant)\|>[^<\n]{0,64}<\|im_middle\|>"}
"""What is markup beside the control tokens: the headers of turns, with the name in them."""


def check_nothing_lost(stream: Stream, events: Iterable[Event]) -> None:
    """What the events show, in their order, is the text but for white space and markup.

    `events` are those of the text in one piece, not joined: joined, text would hide that markup stood in it.
    """
    rest = _without_space(stream.text)
    tokens = sorted(map(_without_space, get_dialect(stream.dialect).control_tokens), key=len, reverse=True)
    passed = re.compile("|".join(filter(None, [_HEADERS.get(stream.dialect), *map(re.escape, tokens)])))
    for event in events:
        match event:
            case Stopped() | ToolDropped(reason="too-large"):
                return
            case Text(shown) | ThinkingDelta(shown) | ToolEnd(raw_block=shown) | ToolDropped(raw_block=shown):
                shown = _without_space(shown)
            case _:
                continue
        while shown and (found := passed.match(rest)) and not shown.startswith(found.group()):
            rest = rest[found.end() :]
        while not rest.startswith(shown):
            found = passed.match(rest)
            assert found, f"lost before {shown[:80]!r}: {rest[:80]!r}"
            rest = rest[found.end() :]
        rest = rest[len(shown) :]
    rest = passed.sub("", rest)
    assert not rest or any(token.startswith(rest) for token in tokens), f"lost at the end: {rest[:80]!r}"


def _without_space(text: str) -> str:
    return "".join(text.split())
