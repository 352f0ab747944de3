"""Laws as functions, which the tests and the fuzzer share: each takes what a scanner was given and what it said."""

import json
import re
from collections.abc import Iterable
from functools import cache
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

__all__ = [
    "SPECIAL_TOKENS",
    "check_arguments",
    "check_no_leak",
    "check_nothing_lost",
    "check_order",
    "check_splits",
    "exactly",
    "said_by",
]


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


_GOES_ON = r"(?=to=|<\|(?:channel|constrain|message)\|>)"
_WORD = rf"[\w.+/-]{{1,64}}{_GOES_ON}"

_SPACE = r"(?:[A-Za-z][\w.-]{0,31}:)?"
_SECTION_TAGS = (
    rf"</?{_SPACE}(?:function_calls|tool_calls?)(?:[^<>\w][^<>]*)?>",
    rf"<{_SPACE}(?:function_calls|tool_calls?)(?=.*<)",
    rf"</{_SPACE}(?:invoke|parameter)>?",
    rf'<{_SPACE}invoke(?:name="[^"<>]*")>(?=.*<{_SPACE}invoke)',
)
"""Tags of sections, closers, and a call's opening tag that stands twice; a namespace may stand in each."""

_HEADERS: dict[str, tuple[str, ...]] = {
    "xml": _SECTION_TAGS,
    "anthropic": _SECTION_TAGS,
    "minimax": (*_SECTION_TAGS, r"\]<\]minimax\[>\[<(?!invoke)[^<>]*>"),
    "kimi": (r"<\|im_(?:system|user|assistant)\|>[^<\n]{0,64}<\|im_middle\|>",),
    "hermes": (r"<\|im_start\|>assistant", r"<\|im_start\|>(?:system|user|tool)\Z"),
    "qwen3-coder": (
        r"</?tool_calls?(?:[^<>\w][^<>]*)?>",
        r"<tool_calls?(?=.*<)",
        r"</(?:function|parameter)>?",
        r"<\|im_start\|>assistant",
        r"<\|im_start\|>(?:system|user|tool)\Z",
    ),
    "qwen3": (r"<\|im_start\|>assistant", r"<\|im_start\|>(?:system|user|tool)\Z"),
    "gemini": (
        r"<start_of_turn>(?:model|(?:system|user)\Z)",
        r"`{3,6}(?:tool_code|thinking)",
        r"`{3,6}tool_code[\[\]();,]*(?=`|\Z)",
        r"`{1,2}\Z",
        *("`" * length for length in range(3, 7)),
    ),
    "deepseek": (
        r"</?[｜|]{1,2}DSML[｜|]{1,2}(?:\w{0,24}/?|parameter[^<>]{0,512})>",
        r"</?[｜|]{1,2}DSML[｜|]{1,2}[^<>]*\Z",
        r"<[｜|][^<>｜]{1,64}[｜|]>",
        r"</?(?:function_results|tool_result)>",
    ),
    "harmony": (
        r"<\|start\|>assistant",
        rf"<\|start\|>[^<{{=]{{1,256}}?{_GOES_ON}",
        r"<\|start\|>\w+\Z",
        r"to=(?:assistant|user|all)",
        r"<\|channel\|>(?:analysis|commentary|final)",
        rf"<\|channel\|>{_WORD}",
        r"<\|channel\|>[\w.]+\Z",
        r"<\|constrain\|>json",
        rf"<\|constrain\|>{_WORD}",
        _WORD,
        r"json(?=\{)",
        r"to=\S*\Z",
        r"to=[\w.]*(?=to=|<)",
        r"<\|(?:start|channel|constrain)\|>[^{=]*\Z",
        r"analysis(?=.*assistantfinal)|assistantfinal",
    ),
    "gemma": (
        r"<\|turn>(?:model|assistant)",
        r"<\|turn>\w+\Z",
        r"<\|channel>thought",
        r"<\|channel>\w+\Z",
        r"<\|tool_response>\w+\Z",
    ),
}
"""What is markup beside the control tokens, white space left out: the headers of turns and messages."""


@cache
def _passed(name: str) -> list[re.Pattern[str]]:
    """What may be missing from the events: control tokens, headers, and a token that the end of the stream cut off."""
    tokens = sorted(map(_without_space, get_dialect(name).control_tokens), key=len, reverse=True)
    cut = sorted({token[:end] for token in tokens for end in range(1, len(token))}, key=len, reverse=True)
    return [
        re.compile("|".join(map(re.escape, tokens))),
        re.compile(rf"(?:{'|'.join(map(re.escape, cut))})\Z"),
        *map(re.compile, _HEADERS.get(name, ())),
    ]


def check_nothing_lost(stream: Stream, events: Iterable[Event]) -> None:
    """What the events show, in their order, is the text but for white space and markup.

    What is markup here may be text there, so every way of laying the events over the text is followed at once.
    `events` are those of the text in one piece, not joined: joined, text would hide that markup stood in it.
    """
    text = _without_space(stream.text)
    ways = {0}
    for event in events:
        match event:
            case Stopped() | ToolDropped(reason="too-large"):
                return
            case Text(shown) | ThinkingDelta(shown) | ToolEnd(raw_block=shown) | ToolDropped(raw_block=shown):
                shown = _without_space(shown)
            case _:
                continue
        if not shown:
            continue
        reached = _past_markup(stream.dialect, text, ways)
        ways = {start + len(shown) for start in reached if text.startswith(shown, start)}
        assert ways, f"lost before {shown[:80]!r}: {text[min(reached) :][:80]!r}"
    reached = _past_markup(stream.dialect, text, ways)
    assert len(text) in reached, f"lost at the end: {text[max(reached) :][:80]!r}"


def _past_markup(name: str, text: str, ways: set[int]) -> set[int]:
    """The positions that can be reached from these by leaving out markup."""
    reached, todo = set(ways), list(ways)
    while todo:
        start = todo.pop()
        ends = {found.end() for pattern in _passed(name) if (found := pattern.match(text, start))}
        todo += ends - reached
        reached |= ends
    return reached


SPECIAL_TOKENS = ("kimi", "harmony", "deepseek", "gemma")
"""The dialects whose markers nobody writes by chance: in text, a marker always counts."""


def said_by(event: Event) -> str:
    """What one event shows of text or thinking."""
    match event:
        case Text(shown) | ThinkingDelta(shown):
            return shown
        case _:
            return ""


def check_no_leak(stream: Stream, events: Iterable[Event]) -> None:
    """No special token is visible, but in Markdown code where the other markers are plain text.

    `events` are not joined: a token that is left out may join two halves of another. With `parse_thinking=False` or
    `unknown_tools="text"` markup is text.
    """
    if stream.options.get("unknown_tools") == "text" or not stream.options.get("parse_thinking", True):
        return
    tokens = get_dialect(stream.dialect).control_tokens
    if stream.dialect not in SPECIAL_TOKENS:
        tokens = tuple(token for token in tokens if token.startswith("<|"))
        if any(mark in stream.text for mark in ("`", "~~~")):
            return
    for event in events:
        leaks = [token for token in tokens if token in said_by(event)]
        assert not leaks, f"visible: {leaks} in {said_by(event)[:80]!r}"


def _without_space(text: str) -> str:
    return "".join(text.split())
