"""Arguments whose values are plain text between tags, while they stream.

`ValueReader` finds where a value ends; `TextArguments` writes the values of a call as the members of one JSON object.

A value may hold any text, tags too. Its closer counts only where a legal continuation of the grammar follows it (the
next key, the call's end, the end of the turn or of the stream), else it is literal. Another tag, which could end the
value because the closer is missing, is a candidate: the reader goes on in silence, and where the value closes after all
(those that begin behind the candidate close first), the tag was literal. Where the stream ends without that, it was
real, and the cursor goes back to it.

A value that can only be text leaves as it arrives: at once if the schema allows nothing else, or as soon as its
beginning rules out every other type that the schema allows. Any other is held until it is complete.
"""

import json
import re
from typing import Any, Final

import regex

from dialects.engine.arguments import BROKEN, DONE, GOING, Arguments
from dialects.engine.coercion import Coerced, Opening, coerce, plain_text
from dialects.engine.markers import MarkerSet
from dialects.engine.repair import dump
from dialects.engine.schema import kinds_of, property_schema
from dialects.engine.tape import Tape
from dialects.events import Event, ToolArgDelta

__all__ = ["BROKEN", "DONE", "GOING", "TextArguments", "ValueEnds", "ValueReader"]

_FREE_REREADING: Final = 100_000
"""How many characters may be read twice in any case; beyond that, four times as many as the stream has so far."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_encode = json.JSONEncoder(ensure_ascii=False).encode


class TextArguments:
    """The arguments of one call. `events` is the list that receives their pieces, None for a call that is not shown."""

    def __init__(self, parameters: dict[str, Any], *, call_id: str, name: str) -> None:
        self.repairs: list[str] = []
        self.value: dict[str, Any] = {}
        self._parameters = parameters
        self._call_id = call_id
        self._name = name
        self._members: list[str] = []
        self._key = ""
        self._schema: object = True
        self._opening: Opening | None = None
        self._held: list[str] = []
        self._skipping = False
        self.streams = False
        """Whether the value being written is text, so that it leaves as it arrives."""

    def note(self, name: str) -> None:
        """Name a tolerance, once."""
        if name not in self.repairs:
            self.repairs.append(name)

    def begin(self, key: str, events: list[Event] | None) -> None:
        """The value of `key` begins. Of two values of one key the first wins; it is out already."""
        written = plain_text(key)
        self._key = str(written.value)
        self._note_all(written)
        self._held.clear()
        self._skipping = self._key in self.value
        self.streams = False
        if self._skipping:
            self.note("duplicate-key")
            return
        self._schema = property_schema(self._parameters, key)
        self._emit(None, "", f"{',' if self._members else '{'}{written.json_text}:", events)
        self._opening = Opening(kinds_of(self._schema, self._parameters))
        self.add("", events)

    def add(self, text: str, events: list[Event] | None) -> None:
        """The next piece of the value."""
        if self.streams:
            self._stream(text, events)
        elif self._opening is not None and not self._skipping:
            self._held.append(text)
            verdict = self._opening.read(text)
            if verdict is None:
                return
            self._opening = None
            if verdict:
                self.streams = True
                self._emit(self._key, "", '"', events)
                self._stream("".join(self._held), events)
            self._held.clear()

    def end(self, text: str, events: list[Event] | None) -> None:
        """The value is complete; `text` is all of it."""
        if self._skipping:
            return
        if self.streams:
            found = plain_text(text)
            self._emit(self._key, "", '"', events)
        else:
            found = coerce(text, self._schema, self._parameters)
            shown = found.value if isinstance(found.value, str) else found.json_text
            self._emit(self._key, shown, found.json_text, events)
        self._note_all(found)
        self.value[self._key] = found.value
        self._members.append(f"{dump(self._key)}:{found.json_text}")

    def finish(self, events: list[Event] | None) -> Arguments:
        """The arguments are complete."""
        self._emit(None, "", "}" if self._members else "{}", events)
        return Arguments(self.value, f"{{{','.join(self._members)}}}", tuple(self.repairs))

    def _note_all(self, found: Coerced) -> None:
        for name in found.repairs:
            self.note(name)

    def _stream(self, text: str, events: list[Event] | None) -> None:
        if text and events is not None:
            shown = text if text.isascii() else _SURROGATE.sub("\ufffd", text)
            events.append(ToolArgDelta(self._call_id, self._name, self._key, shown, _encode(shown)[1:-1]))

    def _emit(self, key: str | None, delta: str, json_text: str, events: list[Event] | None) -> None:
        if events is not None:
            events.append(ToolArgDelta(self._call_id, self._name, key, delta, json_text))


class ValueEnds:
    """Where a value may end.

    `closer` is its own closing tag and `continuation` a pattern of what may follow it. `others` are patterns of tags
    that may end it where the closer is missing, `opening` is one of them: that of the next value, up to where that
    begins. All are bounded in length. `tags` are their literal beginnings.
    """

    def __init__(self, tags: tuple[str, ...], closer: str, continuation: str, opening: str, others: str) -> None:
        self.markers = MarkerSet(tags)
        self.closer = closer
        self.pattern = regex.compile(
            rf"(?P<closer>{regex.escape(closer)}(?:{continuation}))|(?P<opening>{opening})|(?P<other>{others})"
        )

    def at(self, text: str, start: int, *, final: bool) -> str | None:
        """What the tag at `start` may be: `closer`, `opening`, `other`; empty: literal; None: more input."""
        found = self.pattern.match(text, start, partial=not final)
        if found is not None:
            return None if found.partial else found.lastgroup or ""
        if final and text.startswith(self.closer, start) and self.pattern.match(text, start, partial=True):
            return "closer"
        return ""

    def end_of_opening(self, text: str, start: int) -> int:
        """Where the value begins whose opening stands at `start`."""
        found = self.pattern.match(text, start)
        assert found is not None
        return found.end()


class ValueReader:
    """Finds the ends of values, one after the other, in one stream; see the module's description."""

    def __init__(self, ends: ValueEnds, *, max_held_chars: int) -> None:
        self._ends = ends
        self._max_held_chars = max_held_chars
        self._taken_back = 0
        self._candidate: int | None = None
        self._open_values = 0
        self._literal_until = 0
        self._start = 0
        self._out = 0
        self._tape = Tape()
        self.arguments = TextArguments({}, call_id="", name="")

    def begin(self, tape: Tape, arguments: TextArguments, key: str, events: list[Event] | None) -> None:
        """A value begins at the cursor."""
        self._tape = tape
        self.arguments = arguments
        self._start = self._out = tape.pos
        self._candidate = None
        arguments.begin(key, events)

    @property
    def released(self) -> int:
        """Up to which position the value is out."""
        return self._out if self.arguments.streams else self._start

    def read(self, events: list[Event] | None, *, final: bool) -> str:
        """Read on. DONE: the value has ended, the cursor stands behind its closer. BROKEN: it ends at the cursor, its
        closer is missing. GOING: more input."""
        tape, ends = self._tape, self._ends
        while True:
            if self._candidate is not None:
                real = self._read_ahead(self._candidate, final=final)
                if real is None:
                    return GOING
                if real:
                    return self._end_without_closer(events)
            tape.i, marker = ends.markers.find(tape.text, tape.i, final=final)
            kind = ends.at(tape.text, tape.i, final=final) if marker and tape.pos >= self._literal_until else ""
            if marker is None or kind is None:
                self._give(self._before_newline(), events)
                return GOING
            if not kind:
                tape.i += 1
            elif kind == "closer":
                end = tape.pos
                self._give(end, events)
                self.arguments.end(tape.slice(self._start, end), events)
                tape.i += len(ends.closer)
                return DONE
            else:
                self._give(self._before_newline(), events)
                if self._taken_back > 4 * tape.pos + _FREE_REREADING:
                    return self._end_without_closer(events)
                self._candidate = tape.pos
                self._open_values = 0

    def read_run(self, chunk: str) -> list[Event] | None:
        """The short way for a chunk that only continues the text; None, with nothing done, if it does not. It may be
        asked where `in_run` says so."""
        for lead in self._ends.markers.leads:
            if lead in chunk:
                return None
        tape = self._tape
        text = "\n" + chunk if self._out < tape.pos else chunk
        end = len(text) - text.endswith("\n")
        tape.pass_by(chunk)
        self._out += end
        events: list[Event] = []
        self.arguments.add(text[:end], events)
        return events

    @property
    def in_run(self) -> bool:
        """Whether `read_run` may be asked: nothing is held but perhaps a newline behind the cursor."""
        return self.arguments.streams and self._candidate is None and self._tape.i == len(self._tape.text)

    def _read_ahead(self, candidate: int, *, final: bool) -> bool | None:
        """Whether the candidate is real; None while that is open. Once it is known the cursor is back at it."""
        tape, ends = self._tape, self._ends
        while True:
            tape.i, marker = ends.markers.find(tape.text, tape.i, final=final)
            if tape.pos - candidate > self._max_held_chars:
                return self._back(candidate, literal_until=candidate + self._max_held_chars)
            if marker is None:
                return self._back(candidate, literal_until=0) if final else None
            if marker == ends.closer and self._open_values:
                self._open_values -= 1
                tape.i += len(marker)
                continue
            kind = ends.at(tape.text, tape.i, final=final)
            if kind is None:
                return None
            if kind == "closer":
                return self._back(candidate, literal_until=tape.pos)
            if kind == "opening":
                self._open_values += 1
                tape.i = ends.end_of_opening(tape.text, tape.i)
            else:
                tape.i += len(marker) if kind else 1

    def _back(self, candidate: int, *, literal_until: int) -> bool:
        self._taken_back += self._tape.pos - candidate
        self._literal_until = literal_until
        self._candidate = None
        self._tape.seek(candidate)
        return not literal_until

    def _end_without_closer(self, events: list[Event] | None) -> str:
        """The value ends at the cursor; a newline before it is layout."""
        self.arguments.note("missing-value-end")
        self.arguments.end(self._tape.slice(self._start, self._before_newline()), events)
        return BROKEN

    def _before_newline(self) -> int:
        """The cursor's position, or that of a newline before it which belongs to the value."""
        pos = self._tape.pos
        return pos - (pos > self._out and self._tape.slice(pos - 1, pos) == "\n")

    def _give(self, end: int, events: list[Event] | None) -> None:
        if end > self._out:
            text = self._tape.slice(self._out, end)
            self._out = end
            self.arguments.add(text, events)
