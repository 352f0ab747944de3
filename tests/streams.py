"""What the tests share: hypothesis strategies that build streams for any dialect, and the functions that read them.

Everything here works from a dialect's own renderer and its `control_tokens`, so a new dialect is under every test the
moment it stands in the factory's table. Two kinds of streams are built:

- `turns(name)`: an assistant's turn out of the grammar, for `Turn.body` to render; its parts are known.
- `streams(name)`: any text with scanner options. Rendered turns, damaged ones, calls around broken JSON, and heaps of
  marker pieces, JSON, prose and noise.

`scan_pieces` feeds a cut text to a scanner whose ids are counted; `joined` forgets how events were cut.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import count, groupby, pairwise
from typing import Any, NamedTuple

from hypothesis import strategies as st

from dialects import create_inband_scanner, get_dialect
from dialects.engine.rendering import compact_json
from dialects.events import Event, Text, ThinkingDelta, ToolArgDelta
from dialects.messages import Message, Tool, ToolCall

__all__ = [
    "Frame",
    "Stream",
    "Turn",
    "any_json",
    "counter",
    "cut",
    "cuts",
    "frame",
    "joined",
    "jsonish",
    "marker_boundaries",
    "markup",
    "plain_texts",
    "raw_closers",
    "recovery",
    "scan_pieces",
    "streams",
    "texts",
    "tools_for",
    "turns",
    "whole",
]


# Reading.


def counter(prefix: str = "id-") -> Callable[[], str]:
    """An `id_factory` that counts."""
    numbers = count(1)
    return lambda: f"{prefix}{next(numbers)}"


def scan_pieces(name: str, pieces: Iterable[str], *, truncated: bool = False, **options: Any) -> list[Event]:
    """All events of a stream that arrives in these pieces, ids counted."""
    scanner = create_inband_scanner(name, **{"id_factory": counter(), **options})
    events: list[Event] = []
    for piece in pieces:
        events += scanner.feed(piece)
    return events + scanner.flush(truncated=truncated)


def joined(events: Iterable[Event]) -> list[Event]:
    """The events with neighbours of one kind joined, as the first law says."""
    out: list[Event] = []
    for _, run in groupby(events, key=_kind()):
        neighbours = list(run)
        match neighbours[0]:
            case Text():
                out.append(Text("".join(event.text for event in neighbours if isinstance(event, Text))))
            case ThinkingDelta():
                out.append(
                    ThinkingDelta("".join(event.delta for event in neighbours if isinstance(event, ThinkingDelta)))
                )
            case ToolArgDelta(id, name, key):
                pieces = [event for event in neighbours if isinstance(event, ToolArgDelta)]
                delta, text = "".join(piece.delta for piece in pieces), "".join(piece.json for piece in pieces)
                out.append(ToolArgDelta(id, name, key, delta, text))
            case _:
                out += neighbours
    return out


def _kind() -> Callable[[Event], object]:
    """Tells neighbours of one kind by one key; events that are never joined have one each."""
    alone = count()

    def kind(event: Event) -> object:
        match event:
            case Text() | ThinkingDelta():
                return type(event)
            case ToolArgDelta(id, _, key):
                return id, key
            case _:
                return next(alone)

    return kind


def whole(name: str, text: str, **options: Any) -> list[Event]:
    """The joined events of a text that arrives in one piece."""
    return joined(scan_pieces(name, [text], **options))


def cut(text: str, positions: Iterable[int]) -> list[str]:
    """The pieces of a text that is cut at these positions."""
    marks = [0, *sorted(positions), len(text)]
    return [text[start:end] for start, end in pairwise(marks)]


def cuts(text: str) -> st.SearchStrategy[list[int]]:
    """Positions at which to cut a text."""
    return st.lists(st.integers(0, len(text)), max_size=12)


def marker_boundaries(name: str, text: str) -> list[int]:
    """Where markers begin and end in a text, and one character beside."""
    pattern = re.compile("|".join(map(re.escape, sorted(markup(name), key=len, reverse=True))))
    edges = {edge for found in pattern.finditer(text) for edge in found.span()}
    return sorted({at for edge in edges for at in (edge - 1, edge, edge + 1) if 0 <= at <= len(text)})


# What a dialect's markup is made of.


class Frame(NamedTuple):
    """A batch of one call around its arguments, in a dialect whose arguments are a JSON object in one place."""

    before: str
    after: str

    def around(self, arguments: str) -> str:
        """The call with this text as its arguments."""
        return self.before + arguments + self.after


@cache
def frame(name: str, tool: str = "place") -> Frame | None:
    """The dialect's `Frame` for a call of `tool`, None where its arguments are no JSON object in one place."""
    dialect = get_dialect(name)
    text = dialect.render_assistant_tool_calls([ToolCall(None, tool, {"holder": "HOLDER"})])
    found = list(re.finditer(r'\{\s*"holder"\s*:\s*"HOLDER"\s*\}', text))
    return Frame(text[: found[0].start()], text[found[0].end() :]) if len(found) == 1 else None


@cache
def markup(name: str) -> tuple[str, ...]:
    """The dialect's control tokens, and all tags of a rendered turn."""
    body = Turn(name, "think", "say", (ToolCall(None, "tool", {"key": "value", "list": [1]}),)).body
    tags = re.findall(r"<[^<>\s]{1,60}>", body)
    return tuple(dict.fromkeys((*get_dialect(name).control_tokens, *tags)))


@cache
def raw_closers(name: str) -> tuple[str, ...]:
    """The closers that a dialect writes behind values that are plain text: such a value must not hold them."""
    if frame(name):
        return ()
    call = get_dialect(name).render_assistant_tool_calls([ToolCall(None, "tool", {"key": "value"})])
    return tuple(dict.fromkeys(re.findall(r"</[^<>\s]{1,60}>", call)))


@cache
def recovery(name: str) -> str:
    """What ends a batch of calls, and a turn, whatever came before."""
    dialect = get_dialect(name)
    call = (ToolCall(None, "tool", {}),)
    batch, alone = dialect.render_assistant_tool_calls(call), dialect.render_tool_call(call[0])
    turn = dialect.turn_text("assistant", None, "BODY")
    return batch[batch.rindex(alone) + len(alone) :] + turn[turn.rindex("BODY") + len("BODY") :]


# Turns out of the grammar.


class Turn(NamedTuple):
    """What an assistant says in one turn."""

    dialect: str
    thinking: str = ""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    tools: tuple[Tool, ...] = ()

    @property
    def body(self) -> str:
        """The turn as the dialect's renderer writes it."""
        message = Message("assistant", self.text, self.thinking, self.calls)
        dialect = get_dialect(self.dialect)
        (answered,) = dialect.answered([message])
        return dialect.assistant_text(answered, self.tools)


_PLANES = st.characters(exclude_categories=["Cs"])
_ODD_TEXT = (
    '"', "\\", "\\\\", '\\"', "'", "`", "```", "\n", "\r\n", "\t", "{", "}", "[", "]", ",", ":", "<", "<|", "|>", "</",
    ">", '", "', '": "', '"}', "\x00", "\x1f", "\x7f", "\x85", "\u2028", "\ufeff", "\ufffd", "\\u", "\\ud83d", "&amp;",
    "😀", "\U0010ffff", "é", "ﷺ", "C:\\new\\table", "don't", "\\d+", "null", "x" * 300,
)  # fmt: skip
_NAMES = st.sampled_from(
    ["read", "get_weather", "a.b-c", "x", "functions", "mcp__srv__do-it", "Büro", "v2", "read_file", "f1"]
)
_KEYS = st.sampled_from(["path", "text", "a", "b", "n", "name", "arguments", "x y", "é", "", '"', "\\", "a.b", "0"])
_INTEGERS = st.integers() | st.sampled_from([0, -1, 2**53 + 1, 10**30, -(10**400)])
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def texts(name: str) -> st.SearchStrategy[str]:
    """Text with every kind of character, quotes, escapes and whole markers in it."""
    odd = st.sampled_from((*_ODD_TEXT, " ", *markup(name))) | st.text(_PLANES, max_size=5)
    return st.lists(odd, max_size=8).map("".join) | st.text(_PLANES, max_size=30)


def plain_texts(name: str) -> st.SearchStrategy[str]:
    """The same without markup."""
    odd = st.sampled_from((*_ODD_TEXT, " ", " ")) | st.text(_PLANES, max_size=5)
    either = st.lists(odd, max_size=8).map("".join) | st.text(_PLANES, max_size=30)
    return either.filter(lambda text: not any(token in text for token in markup(name)))


def any_json(name: str) -> st.SearchStrategy[Any]:
    """A JSON value."""
    scalars = st.none() | st.booleans() | _INTEGERS | _FLOATS | texts(name)
    keys = _KEYS | texts(name)
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=8,
    )


_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def _schema(arguments: dict[str, Any]) -> dict[str, Any]:
    properties = {key: {"type": _TYPES.get(type(value), "null")} for key, value in arguments.items()}
    return {"type": "object", "properties": properties}


def tools_for(calls: Iterable[ToolCall]) -> tuple[Tool, ...]:
    """Tools whose schemas the calls' arguments are valid under."""
    return tuple(Tool(call.name, parameters=_schema(call.arguments)) for call in calls)


@st.composite
def turns(draw: st.DrawFn, name: str, *, min_calls: int = 0, marked: bool = True) -> Turn:
    """A turn whose arguments are valid under its tools' schemas and whose texts are free of markup.

    Arguments may hold markup, but for the closers of a dialect that writes values as plain text. With `marked=False`
    they hold none.
    """
    plain = plain_texts(name)
    strings = texts(name) if marked else plain
    values = strings | (any_json(name) if marked else _INTEGERS | st.lists(_INTEGERS, max_size=3) | st.booleans())
    closers = raw_closers(name)
    calls: list[ToolCall] = []
    tools: dict[str, Tool] = {}
    for _ in range(draw(st.integers(min_calls, 4))):
        tool = draw(_NAMES)
        if tool in tools:
            continue
        arguments = draw(st.dictionaries(_KEYS, values, max_size=4))
        if closers:
            arguments = {key: _without(value, closers) for key, value in arguments.items()}
        calls.append(ToolCall(None, tool, arguments))
        tools[tool] = Tool(tool, parameters=_schema(arguments))
    return Turn(name, draw(plain), draw(plain), tuple(calls), tuple(tools.values()))


def _without(value: Any, words: Sequence[str]) -> Any:
    """A value in which no string holds one of the words."""
    match value:
        case str():
            for word in words:
                value = value.replace(word, "")
            return value if not any(word in value for word in words) else _without(value, words)
        case list():
            return [_without(item, words) for item in value]
        case dict():
            return {_without(key, words): _without(item, words) for key, item in value.items()}
        case _:
            return value


# Any stream.


class Stream(NamedTuple):
    """A text, how it ends, and the options of the scanner that reads it."""

    dialect: str
    text: str
    options: dict[str, Any]
    truncated: bool = False

    def read(self, pieces: Iterable[str]) -> list[Event]:
        """The joined events of the stream in these pieces."""
        return joined(scan_pieces(self.dialect, pieces, truncated=self.truncated, **self.options))


_SCRAPS = (
    "{", "}", "[", "]", ",", ":", '"', "'", "\\", "\\u", "\\ud83d", "\\ude00", "\\u00e9", "\ud83d", "\ude00", "😀",
    "{}", '{"', '"}', '":', '": ', '", "', '"a":1', '{"a": "b"}', '{"a": [1, {"b": null}]}', "{'a': 'b'}", "{a: 1}",
    "True", "None", "NaN", "-Infinity", "true", "null", "undefined", "1", "-", "1e5", "01", "1.", "1" * 5000, ",}",
    ",]", "}}", "x" * 5000, '"' * 30, "{" * 30, "[" * 30, "[" * 400, '{"a":' * 250, "\\" * 31, "<" * 40, "`" * 7,
    " " * 60, "\n" * 9, "```", "```json\n", "\n```", "`", "``", " ", "\n", "\r\n", "\t", "\x00", "\x0b", "\u2028",
    "prose", "I will call it.", "don't", ".", "## Return of ", "a", "0", ":0", "//", "# x\n", "/* */",
)  # fmt: skip


@cache
def _openings(name: str) -> tuple[str, ...]:
    """Beginnings and ends of rendered calls, at every token."""
    dialect = get_dialect(name)
    text = dialect.render_assistant_tool_calls([ToolCall(None, "read", {"path": "a", "n": 1})])
    ends = [found.end() for found in re.finditer(r"<[^<>]*>|[\w.:-]+|.", text, re.DOTALL)]
    results = dialect.render_tool_results([Message("tool", "ok", tool_call_id="x", name="read").as_result()])
    headers = [dialect.turn_text(role, None, "hi") for role in ("system", "user", "assistant")]
    return (*(text[:end] for end in ends), *(text[end:] for end in ends if end < len(text)), results, *headers)


@st.composite
def _half_markers(draw: st.DrawFn, name: str) -> str:
    marker = draw(st.sampled_from(markup(name)))
    at = draw(st.integers(1, len(marker)))
    return marker[:at] if draw(st.booleans()) else marker[at:]


def scraps(name: str) -> st.SearchStrategy[str]:
    """One short piece of anything."""
    return st.one_of(
        st.sampled_from(markup(name)),
        st.sampled_from(markup(name)),
        _half_markers(name),
        st.sampled_from(_SCRAPS),
        st.sampled_from(_SCRAPS),
        st.sampled_from(_openings(name)),
        st.text(max_size=4),
    )


@st.composite
def jsonish(draw: st.DrawFn, name: str) -> str:
    """JSON that is valid, cut, broken, doubled or sprinkled with scraps."""
    value = draw(st.dictionaries(_KEYS, any_json(name), max_size=4))
    text = draw(st.sampled_from([json.dumps(value), compact_json(value), repr(value), json.dumps(value, indent=1)]))
    return draw(_damaged(name, text))


@st.composite
def _damaged(draw: st.DrawFn, name: str, text: str) -> str:
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        match draw(st.sampled_from(["insert", "insert", "delete", "double", "move", "cut"])):
            case "insert":
                text = text[:start] + draw(scraps(name)) + text[start:]
            case "delete":
                text = text[:start] + text[end:]
            case "double":
                text = text[:end] + text[start:]
            case "move":
                text = text[end:] + text[start:end] + text[:start]
            case _:
                text = text[:start]
    return text


@st.composite
def _sloppy_calls(draw: st.DrawFn, name: str) -> str:
    """Calls in a right or nearly right frame around JSON of any kind."""
    pieces = []
    for _ in range(draw(st.integers(1, 3))):
        around = frame(name, draw(_NAMES))
        if around is None:
            pieces.append(draw(_damaged(name, draw(turns(name, min_calls=1)).body)))
            continue
        before, after = around
        if draw(st.integers(0, 3)) == 0:
            before = draw(_damaged(name, before))
        if draw(st.integers(0, 2)) == 0:
            after = draw(_damaged(name, after))
        pieces += [before, draw(jsonish(name) | st.lists(scraps(name), max_size=6).map("".join)), after]
    return "".join(pieces)


@st.composite
def stream_texts(draw: st.DrawFn, name: str) -> str:
    """Any text that a model may write, and some that it will not."""
    match draw(st.sampled_from(["turn", "damaged", "sloppy", "sloppy", "scraps", "mixture"])):
        case "turn":
            return draw(turns(name)).body
        case "damaged":
            return draw(_damaged(name, draw(turns(name, min_calls=1)).body))
        case "sloppy":
            return draw(_sloppy_calls(name))
        case "scraps":
            return "".join(draw(st.lists(scraps(name), max_size=14)))
        case _:
            parts = st.one_of(scraps(name), scraps(name), _sloppy_calls(name), turns(name).map(lambda turn: turn.body))
            return "".join(draw(st.lists(parts, max_size=4)))


def generation_prompts(name: str) -> st.SearchStrategy[str]:
    """None, the dialect's own, and one that leaves thinking open."""
    dialect = get_dialect(name)
    opened = dialect.render_thinking("HOLDER").split("HOLDER")[0]
    return st.sampled_from(["", dialect.generation_prompt, dialect.generation_prompt + opened, opened])


_TOOLS: Sequence[Tool] = (
    Tool("read", parameters=_schema({"path": "", "n": 0})),
    Tool("get_weather", parameters={"type": "object", "properties": {"text": {}}, "required": ["text"]}),
    Tool("x"),
)


def scanner_options(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Options for a scanner; most often none."""
    return st.just({}) | st.fixed_dictionaries(
        {},
        optional={
            "tools": st.sampled_from([None, (), _TOOLS]),
            "parse_thinking": st.booleans(),
            "generation_prompt": generation_prompts(name),
            "strict": st.booleans(),
            "unknown_tools": st.sampled_from(["keep", "text", "drop"]),
            "max_call_chars": st.integers(1, 300),
            "max_held_chars": st.integers(1, 120),
        },
    )


def streams(name: str) -> st.SearchStrategy[Stream]:
    """Any stream."""
    return st.builds(Stream, st.just(name), stream_texts(name), scanner_options(name), st.booleans())
