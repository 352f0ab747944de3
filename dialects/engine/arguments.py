"""JSON arguments while they stream.

An `ArgumentReader` follows one JSON object on a tape and knows three things: whether it is well-formed so far, whether
it is complete, and which top-level key is being written. Well-formed text passes through as `ToolArgDelta` events, the
text of top-level strings decoded. Its states are methods, in the order of the grammar:

    begin -> member -> string (a key) -> colon -> value -> string | scalar | nested member/element -> after_value -> ...

`out` is the position up to which text has left. What a repair may still change stays behind it: a scalar until it is
complete, a key and the comma before it until the colon, a closing quote until the token after it is confirmed, the last
closing brace until the call ends. So the text that is out is never taken back. Faults whose repair is local and certain
(raw control characters and invalid escapes in strings, Python's literals, a trailing comma, ...) are mended on the way;
at any other the reader is `BROKEN`, and `finish` repairs the whole text and continues from what is out.
"""

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, cast

import regex

from dialects.engine.continuation import continuation
from dialects.engine.json_text import (
    HEX,
    HIGH_SURROGATE,
    LOW_SURROGATE,
    MAX_DEPTH,
    NUMBER,
    REGULAR_ESCAPE,
    decode_string,
    dump,
    load,
    scanstring,
    too_many_digits,
)
from dialects.engine.markers import begun
from dialects.engine.reader import BROKEN, CANDIDATE, DONE, GOING, TOO_DEEP, Reader, State
from dialects.engine.repair import repair
from dialects.engine.tape import Pieces, Tape
from dialects.events import Event, ToolArgDelta

__all__ = [
    "ArgumentReader",
    "Arguments",
    "StringEnds",
    "argument_events",
]

_PLAIN_LITERALS = {"true", "false", "null"}
_MENDED_LITERALS = {
    "True": ("true", "python-literal"),
    "False": ("false", "python-literal"),
    "None": ("null", "python-literal"),
    "NaN": ("null", "not-a-number"),
    "Infinity": ("null", "not-a-number"),
    "-Infinity": ("null", "not-a-number"),
}

Skip: TypeAlias = Callable[[str, int], re.Match[str]]


def skipping(pattern: str) -> Skip:
    """The `match` method of a pattern that matches anywhere, if only the empty string."""
    return cast("Skip", re.compile(pattern).match)


_skip_space = skipping(r"[ \t\n\r]*+")
_skip_scalar = skipping(r"[^ \t\n\r,:\[\]{}\"<]*+")


class Arguments(NamedTuple):
    """A call's finished arguments: the value, its JSON text, and the tolerances it needed."""

    value: dict[str, Any]
    text: str
    repairs: tuple[str, ...]
    too_deep: bool = False


class StringEnds:
    """Which markers inside a JSON string may be real: those that a legal continuation of the grammar follows.

    `pattern` matches one of `markers` with its continuation; it must be bounded in length, for it is matched again
    while the text after the marker arrives. For `closers` the end of the stream is a legal continuation, too.
    """

    def __init__(self, pattern: str, *, markers: Iterable[str], closers: tuple[str, ...]) -> None:
        self._pattern = regex.compile(pattern)
        self._closers = closers
        self._by_lead: dict[str, list[str]] = {}
        for marker in markers:
            self._by_lead.setdefault(marker[0], []).append(marker[1:])
        self.openers = "\\" + "".join(self._by_lead)

    @cached_property
    def runs(self) -> tuple[Skip, Skip]:
        """What `_string_runs` gives for the markers."""
        harmless = [f"{re.escape(lead)}(?!{begun(rests)})" for lead, rests in self._by_lead.items()]
        return _string_runs("".join(map(re.escape, self._by_lead)), "|".join(harmless))

    def real(self, text: str, start: int, *, final: bool) -> bool | None:
        """Whether the marker at `start` may be real; None while the text does not say yet."""
        found = self._pattern.match(text, start, partial=not final)
        if found is None:
            return final and text.startswith(self._closers, start) and self._only_a_cut_follows(text, start)
        return None if found.partial else True

    def _only_a_cut_follows(self, text: str, start: int) -> bool:
        return self._pattern.match(text, start, partial=True) is not None


def _string_runs(excluded: str, harmless: str) -> tuple[Skip, Skip]:
    """What eats a whole stretch of a string: all that JSON allows and that cannot begin a marker; and the same with
    what can be mended on the spot. Both stop before what the end of the text may have cut."""
    plain = rf'[^"\\\x00-\x1f\ud800-\udfff{excluded}]*+'
    regular = f"{REGULAR_ESCAPE}|{harmless}" if harmless else REGULAR_ESCAPE
    return skipping(f"{plain}(?:(?:{regular}){plain})*+"), skipping(f"{plain}(?:(?:{regular}|{_MENDABLE}){plain})*+")


_LOW_BEGUN = rf"(?:\\(?:u(?:[dD](?:[c-fC-F]{HEX}{{0,2}})?)?)?)?\Z"
_MENDABLE = (
    r"[\x00-\x1f\ud800-\udfff]"
    rf"|{LOW_SURROGATE}|{HIGH_SURROGATE}(?!{LOW_SURROGATE}|{_LOW_BEGUN})"
    rf"""|\\(?:'|(?=[^u"\\/bfnrt'])|(?=u)(?!u{HEX}{{0,3}}\Z|u{HEX}{{4}}))"""
)
_NO_ENDS_RUNS = _string_runs("", "")


class ArgumentReader(Reader):
    """Reads one JSON object from `tape`, from the cursor on; see the module's description.

    Without `ends` no marker inside a string is looked at. `events` in `read` and `finish` is the list that receives the
    pieces; None reads in silence.
    """

    def __init__(self, tape: Tape, ends: StringEnds | None = None, *, call_id: str = "", name: str = "") -> None:
        self._enter(self._begin)
        self.tape = tape
        self.start = self.out = tape.pos
        self.end = tape.pos
        self.broken_at = tape.pos
        """Where the text ceased to be JSON, once it is `BROKEN`."""
        self.call_id = call_id
        self.name = name
        self._ends = ends
        self._run, self._mendable_run = ends.runs if ends else _NO_ENDS_RUNS
        self._openers = ends.openers if ends else "\\"
        self._pieces: Pieces | None = None
        self._silent = False
        self._stack: list[str] = []
        """The openers of the containers that are open."""
        self._top = 1
        """How many are open where the arguments themselves are the innermost."""
        self._inside = True
        """Whether the cursor is in the arguments; outside of them nothing leaves."""
        self._keys: set[str] = set()
        """The top-level keys so far."""
        self._runs: dict[str, str] = {}
        """The last run of each top-level string: where it is all of it, the value need not be kept twice."""
        self._key: str | None = None
        self._in_key = False
        self._key_start = 0
        self._key_mended = False
        self._skipping = False
        """Whether the value belongs to a top-level key that was there before."""
        self._quote_end: int | None = None
        """Where a string ends, if the token after it is as expected."""
        self.is_verbatim = False
        """Whether the finished arguments' text is what stands on the tape from `start` on."""
        self._scalar_start = 0

    # What a scanner calls.

    def read_run(self, chunk: str) -> list[Event] | None:
        """The short way for the chunk that only continues a top-level string; None, with nothing done, if it does not.

        It may be asked where `in_run` says so, and holds a last character that begins an escape or a marker in `text`,
        as `read` would.
        """
        tape = self.tape
        text = tape.text + chunk
        end = self._run(text, 0).end()
        if self.out + end >= self.run_limit:
            return None
        if end < len(text):
            if end + 1 < len(text) or text[end] not in self._openers:
                return None
            tape.text = text[end]
            text = text[:end]
        elif tape.text:
            tape.text = ""
        self.out += end
        tape.pass_by(text)
        if not text:
            return []
        delta = scanstring(text + '"', 0)[0] if "\\" in text else text
        return [ToolArgDelta(self.call_id, self.name, self._key, delta, text)]

    @property
    def in_run(self) -> bool:
        """Whether `read_run` may be asked: inside a top-level string, with at most its last character held."""
        return (
            self._state == self._string
            and self.status is GOING
            and self._events is not None
            and self._pieces is None
            and not self._in_key
            and not self._skipping
            and self._at_top
            and self.tape.i >= len(self.tape.text) - 1
            and self.tape.base + self.tape.i >= self.literal_until
        )

    def ahead(self) -> "ArgumentReader":
        """A reader that goes on from here in silence and takes every marker inside a string for literal."""
        reader = self._twin()
        reader._stack = self._stack.copy()
        reader._keys = self._keys.copy()
        reader._runs = {}
        reader._pieces = None
        reader._silent = True
        reader._ends = None
        return reader

    def finish(self, end: int, events: list[Event] | None) -> Arguments:
        """The arguments end at position `end`: write what is still missing, and return them."""
        self._events = events
        if self.status is TOO_DEEP:
            return Arguments({}, "{}", tuple(self.repairs), too_deep=True)
        if self.status is DONE and not self.tape.slice(self.end, end).strip():
            self._confirm_end()
        elif self.status is not BROKEN and self._state == self._string and not (self._in_key or self._skipping):
            self.note("missing-closer")
            self._write_rest({})
        else:
            fixed = repair(self.tape.slice(self.start, end))
            if fixed.value is None:
                return Arguments({}, "{}", tuple(self.repairs), too_deep=True)
            self.note(*fixed.repairs)
            self._write_rest(fixed.value)
        return self._finished()

    def _finished(self) -> Arguments:
        text = self._written()
        self.is_verbatim = self._pieces is None
        value, has_duplicates = load(text)
        for key, whole in self._runs.items():
            if value.get(key) == whole:
                value[key] = whole
        if has_duplicates:
            self.note("duplicate-key")
        return Arguments(value, text, tuple(self.repairs))

    @property
    def object_end(self) -> int:
        """Where the complete text ends that this reads: the arguments', or that of an object around them."""
        return self.end

    def release(self) -> None:
        super().release()
        self._pieces = None
        self._runs.clear()

    def is_complete(self, end: int) -> bool:
        """Whether the text up to `end` is a complete object, even if it needs repair."""
        if self.status is DONE:
            return True
        return self.status is BROKEN and repair(self.tape.slice(self.start, end)).complete

    # The grammar.

    def _begin(self) -> State | None:
        char = self._next_char()
        if not char:
            return None
        self.start = self.out = self.end = self.tape.pos
        if char != "{":
            return self._break()
        return self._open(char)

    def _open(self, char: str) -> State | None:
        if len(self._stack) >= MAX_DEPTH:
            self.status = TOO_DEEP
            return None
        self._stack.append(char)
        self.tape.i += 1
        self._flush(self.tape.pos)
        return self._first_member if char == "{" else self._first_element

    def _first_member(self) -> State | None:
        return self._member(after_comma=False)

    def _next_member(self) -> State | None:
        return self._member(after_comma=True)

    def _member(self, *, after_comma: bool) -> State | None:
        char = self._next_char()
        if not char:
            return None
        if char == '"':
            self._in_key = True
            self._key_mended = False
            self._key_start = self.tape.pos
            self.tape.i += 1
            return self._string
        if char == "}":
            return self._close(char, after_comma=after_comma)
        return self._break()

    def _first_element(self) -> State | None:
        return self._element(after_comma=False)

    def _next_element(self) -> State | None:
        return self._element(after_comma=True)

    def _element(self, *, after_comma: bool) -> State | None:
        char = self._next_char()
        if not char:
            return None
        if char == "]":
            return self._close(char, after_comma=after_comma)
        return self._value()

    def _colon(self) -> State | None:
        char = self._next_char()
        if not char:
            return None
        if char != ":":
            return self._break()
        tape = self.tape
        raw = tape.slice(self._key_start, tape.pos).rstrip(" \t\n\r")
        tape.i += 1
        self._confirm_quote()
        if not self._at_top:
            self._write_key(raw)
            return self._value
        key = decode_string(raw[1:-1]).value if self._key_mended else scanstring(raw, 1)[0]
        self._key = None
        if key in self._keys:
            self.note("duplicate-key")
            self._skipping = True
            return self._value
        self._keys.add(key)
        self._write_key(raw)
        self._key = key
        return self._value

    def _write_key(self, raw: str) -> None:
        if self._key_mended:
            self._flush(self._key_start)
            self._replace(dump(decode_string(raw[1:-1]).value), self._key_start + len(raw))
        self._flush(self.tape.pos)

    def _value(self) -> State | None:
        char = self._next_char()
        tape = self.tape
        if self._at_top:
            key, self._key = self._key, None
            self._flush(tape.pos)
            self._key = key
        if not char:
            return None
        self._confirm_quote()
        if char == '"':
            self._in_key = False
            tape.i += 1
            self._flush(tape.pos, quote=True)
            return self._string
        if char in ",:]}<":
            return self._break()
        self._flush(tape.pos)
        if char in "{[":
            return self._open(char)
        self._scalar_start = tape.pos
        return self._scalar

    def _string(self) -> State | None:
        tape = self.tape
        text, i = tape.text, tape.i
        end = self._run(text, i).end()
        if end > i:
            self._take_run(text, i, end)
        if end == len(text):
            return None
        char = text[end]
        if char == '"':
            tape.i += 1
            if self._in_key:
                return self._colon
            self._quote_end = None if self._skipping else tape.pos
            return self._string_done()
        mendable = self._mendable_run(text, end).end()
        if mendable > end:
            return self._mend(text[end:mendable])
        return None if char == "\\" else self._marker(text, end)

    def _marker(self, text: str, start: int) -> State | None:
        if self._ends is not None and self.tape.base + start >= self.literal_until:
            real = self._ends.real(text, start, final=self._final)
            if real is None:
                return None
            if real:
                self.status = CANDIDATE
                return None
        self._take_run(text, start, start + 1)
        return self._string

    def _scalar(self) -> State | None:
        tape = self.tape
        tape.i = _skip_scalar(tape.text, tape.i).end()
        if tape.i == len(tape.text):
            return None
        raw = tape.slice(self._scalar_start, tape.pos)
        if raw in _MENDED_LITERALS:
            replacement, name = _MENDED_LITERALS[raw]
            self.note(name)
            self._replace(replacement, tape.pos)
        elif raw not in _PLAIN_LITERALS:
            number = NUMBER.fullmatch(raw)
            if not number:
                return self._break()
            if number.lastindex is None and too_many_digits(raw):
                self.note("number-too-long")
                self._replace(f'"{raw}"', tape.pos, delta=raw)
        self._flush(tape.pos)
        return self._after_value

    def _after_value(self) -> State | None:
        char = self._next_char()
        if not char:
            return None
        if char not in ",}]":
            return self._break()
        if self._skipping and self._at_top:
            self._skipping = False
            self._replace("", self.tape.pos)
        if char != ",":
            return self._close(char)
        self.tape.i += 1
        return self._next_member if self._stack[-1] == "{" else self._next_element

    def _close(self, char: str, *, after_comma: bool = False) -> State | None:
        if self._stack[-1] != ("{" if char == "}" else "["):
            return self._break()
        tape = self.tape
        if after_comma:
            self._confirm_quote()
            self.note("trailing-comma")
            self._replace("", tape.pos)
        tape.i += 1
        if self._at_top:
            self._stack.pop()
            self.end = tape.pos
            return self._object_done()
        self._confirm_quote()
        self._stack.pop()
        self._flush(tape.pos)
        return self._after_value

    def _object_done(self) -> State | None:
        """The arguments are complete; what is held of them leaves when that is confirmed."""
        self.status = DONE
        return None

    def _string_done(self) -> State:
        """A string that is no key has been closed."""
        return self._after_value

    @property
    def _at_top(self) -> bool:
        """Whether the arguments themselves are the innermost open container."""
        return self._inside and len(self._stack) == self._top

    def _break(self) -> State | None:
        self.broken_at = self.tape.pos
        return super()._break()

    def _next_char(self) -> str:
        tape = self.tape
        tape.i = _skip_space(tape.text, tape.i).end()
        return tape.text[tape.i : tape.i + 1]

    # What leaves.

    def _take_run(self, text: str, start: int, end: int) -> None:
        """Pass on characters of a string that need no mending."""
        self.tape.i = end
        if self._in_key or self._skipping or not self._inside:
            return
        self.out = self.tape.pos
        run = text[start:end]
        if not self._at_top or "\\" not in run:
            delta = run
        elif text[end : end + 1] == '"':
            delta = scanstring(text, start)[0]
        else:
            delta = scanstring(run + '"', 0)[0]
        if self._key is not None and self._at_top:
            self._runs[self._key] = delta
        self._emit(run, delta)

    def _mend(self, raw: str) -> State:
        """Pass on characters of a string some of which JSON does not allow there."""
        decoded = decode_string(raw)
        self.note(*decoded.repairs)
        self.tape.i += len(raw)
        if self._in_key:
            self._key_mended = True
        else:
            self._replace(decoded.text, self.tape.pos, delta=decoded.value)
        return self._string

    def _replace(self, json_text: str, end: int, *, delta: str | None = None) -> None:
        """Write `json_text` instead of what the model wrote up to `end`."""
        if self._skipping or not self._inside:
            return
        if self._pieces is None and not self._silent:
            self._pieces = Pieces(self.tape.slice(self.start, self.out))
        self.out = end
        self._emit(json_text, delta if delta is not None and self._at_top else json_text)

    def _flush(self, end: int, *, quote: bool = False) -> None:
        """Let what the model wrote leave, up to `end`. The quotes of a top-level string are no part of its delta."""
        if self._skipping or not self._inside or end <= self.out:
            return
        written = self.tape.slice(self.out, end)
        self.out = end
        self._emit(written, "" if quote and len(self._stack) <= self._top else written)

    def _confirm_quote(self) -> None:
        if self._quote_end is not None:
            end, self._quote_end = self._quote_end, None
            self._flush(end, quote=True)

    def _confirm_end(self) -> None:
        self._confirm_quote()
        self._key = None
        self._flush(self.end)

    def _emit(self, json_text: str, delta: str) -> None:
        if not json_text:
            return
        if self._pieces is not None:
            self._pieces.append(json_text)
        if self._events is not None:
            key = self._key
            shown = "" if key is None else delta
            self._events.append(ToolArgDelta(self.call_id, self.name, key, shown, json_text))

    def _written(self) -> str:
        return self._pieces.text() if self._pieces is not None else self.tape.slice(self.start, self.out)

    def _write_rest(self, value: dict[str, Any]) -> None:
        """Bring `value` into line with what is out, and write the rest of it."""
        written = self._written()
        if self._pieces is None:
            self._pieces = Pieces(written)
        for event in argument_events(written, continuation(written, value), self.call_id, self.name):
            self._key = event.key
            self._emit(event.json, event.delta)


def argument_events(written: str, rest: str, call_id: str, name: str) -> list[ToolArgDelta]:
    """The events for `rest`, which completes the JSON object that `written` begins."""
    tape = Tape()
    tape.set_mark(0)
    reader = ArgumentReader(tape, call_id=call_id, name=name)
    tape.feed(written)
    reader.read(None)
    reader.out = len(written)
    events: list[Event] = []
    tape.feed(rest)
    reader.read(events)
    reader.finish(tape.pos, events)
    return [event for event in events if isinstance(event, ToolArgDelta)]
