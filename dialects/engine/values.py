"""Where values end that are plain text between tags, in a stream.

A value may hold any text, tags too. Its closer counts only where a legal continuation of the grammar follows it (the
next key, the call's end, the end of the turn or of the stream), else it is literal. Another tag, which could end the
value because the closer is missing, is a candidate: the reader goes on in silence, and where the value closes after all
(those that begin behind the candidate close first), the tag was literal. Where the stream ends without that, it was
real, and the cursor goes back to it.
"""

from typing import Final

import regex

from dialects.engine.arguments import BROKEN, DONE, GOING
from dialects.engine.markers import MarkerSet
from dialects.engine.plain_tags import THINK_END, ThinkEnd
from dialects.engine.tape import Tape
from dialects.engine.text_arguments import TextArguments
from dialects.events import Event

__all__ = ["ThinkEndOutsideValues", "ValueEnds", "ValueReader"]

_FREE_REREADING: Final = 100_000
"""How many characters may be read twice in any case; beyond that, four times as many as the stream has so far."""


class ValueEnds:
    """Where a value may end.

    `opener` and `closer` are its own tags, `continuation` is a pattern of what may follow the closer. `others` are
    patterns of tags that may end it where the closer is missing, `opening` is one of them: that of the next value, up
    to where that begins. All are bounded in length. `tags` are their literal beginnings.
    """

    def __init__(
        self, tags: tuple[str, ...], *, opener: str, closer: str, continuation: str, opening: str, others: str
    ) -> None:
        self.markers = MarkerSet(tags)
        self.outside = MarkerSet([opener, THINK_END])
        self.inside = MarkerSet([closer])
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
        (self._lead,) = ends.markers.leads
        self._max_held_chars = max_held_chars
        self._taken_back = 0
        self._candidate: int | None = None
        self._open_values = 0
        self._literal_until = 0
        self._start = 0
        self._out = 0
        self.run_limit = 0
        """Up to which position `read_run` may go."""
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
                    return self._end(events)
            tape.i, marker = ends.markers.find(tape.text, tape.i, final=final)
            kind = ends.at(tape.text, tape.i, final=final) if marker and tape.pos >= self._literal_until else ""
            if marker is None or kind is None:
                self._give(self._before_newline(), events)
                return GOING
            if not kind:
                tape.i += 1
            elif kind == "closer" or self._taken_back > 4 * tape.pos + _FREE_REREADING:
                return self._end(events)
            else:
                self._give(self._before_newline(), events)
                self._candidate = tape.pos
                self._open_values = 0

    def read_run(self, chunk: str) -> list[Event] | None:
        """The short way for a chunk that only continues the text; None, with nothing done, if it does not. It may be
        asked where `in_run` says so."""
        tape = self._tape
        text = tape.text + chunk
        if not chunk or tape.base + len(text) >= self.run_limit:
            return None
        if self._lead in text:
            index, marker = self._ends.markers.find(text, 0)
            if marker is not None:
                return None
            tape.text = text[index:]
            chunk = text[:index]
            if not chunk:
                return []
        text = "\n" + chunk if self._out < tape.base else chunk
        if text[-1] == "\n":
            text = text[:-1]
        tape.pass_by(chunk)
        self._out += len(text)
        return [self.arguments.piece(text)] if text else []

    @property
    def in_run(self) -> bool:
        """Whether `read_run` may be asked: nothing is held but perhaps a newline before the cursor, and behind it what
        may begin a tag."""
        return self.arguments.streams and self._candidate is None

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

    def _end(self, events: list[Event] | None) -> str:
        """The value ends at the tag at the cursor. If that is not its closer, a newline before it is layout."""
        tape, closer = self._tape, self._ends.closer
        is_closed = tape.text.startswith(closer, tape.i)
        end = tape.pos if is_closed else self._before_newline()
        self._give(end, events)
        self.arguments.end(tape.slice(self._start, end), events)
        if not is_closed:
            self.arguments.note("missing-value-end")
            return BROKEN
        tape.i += len(closer)
        return DONE

    def _before_newline(self) -> int:
        """The cursor's position, or that of a newline before it which belongs to the value."""
        pos = self._tape.pos
        return pos - (pos > self._out and self._tape.slice(pos - 1, pos) == "\n")

    def _give(self, end: int, events: list[Event] | None) -> None:
        if end > self._out:
            text = self._tape.slice(self._out, end)
            self._out = end
            self.arguments.add(text, events)


class ThinkEndOutsideValues(ThinkEnd):
    """Reads ahead to the tag that ends the thinking, behind a call that may be a draft in it. What the values of such a
    call hold does not count, if they are closed."""

    def __init__(self, ends: ValueEnds) -> None:
        self._ends = ends
        self._value: int | None = None

    def read(self, tape: Tape, *, final: bool) -> bool | None:
        while True:
            markers = self._ends.outside if self._value is None else self._ends.inside
            tape.i, marker = markers.find(tape.text, tape.i, final=final)
            if marker is None:
                return self._at_the_end(tape) if final else None
            if marker == THINK_END:
                return True
            kind = "" if self._value is None else self._ends.at(tape.text, tape.i, final=final)
            if kind is None:
                return None
            tape.i += len(marker)
            if self._value is None:
                self._value = tape.pos
            elif kind:
                self._value = None

    def _at_the_end(self, tape: Tape) -> bool:
        """The stream ends, perhaps in a value that nobody closed."""
        end = -1 if self._value is None else tape.slice(self._value, tape.end).find(THINK_END)
        if end < 0:
            return False
        tape.seek((self._value or 0) + end)
        return True
