"""Where values end that are plain text between tags, in a stream.

A value may hold any text, tags too. Its closer counts only where a legal continuation of the grammar follows it (the
next key, the call's end, the end of the turn or of the stream), else it is literal. Another tag, which could end the
value because the closer is missing, is a candidate: the reader goes on in silence, and where the value closes after all
(those that begin behind the candidate close first), the tag was literal. Where the stream ends without that, it was
real, and the cursor goes back to it.
"""

from abc import abstractmethod
from functools import cached_property
from typing import ClassVar

import regex

from dialects.engine.candidates import Rereading
from dialects.engine.coercion import coerce
from dialects.engine.markers import MarkerSet
from dialects.engine.plain_tags import ThinkEnd
from dialects.engine.reader import BROKEN, DONE, GOING
from dialects.engine.scanner import RunReader, Scanner, State
from dialects.engine.tape import Tape
from dialects.engine.text_arguments import ReadValue, TextArguments
from dialects.events import Event

__all__ = ["TextValueScanner", "ThinkEndOutsideValues", "ValueEnds", "ValueReader"]


class ValueEnds:
    """Where a value may end.

    `markers` finds the tags that matter in a value. `closer` is a pattern of its closer; what its group `name` matches,
    if it has one, should be the argument's name. `exact_closer` is one of how the closer should be written,
    `continuation` of what may follow it. `others` are patterns of tags that may end the value where the closer is
    missing, `opening` is one of them: that of the next value, up to where that begins. It may have a group `key`; then
    it counts only where an argument of that name may follow, or with `has_elements` opens an element in the value. All
    are bounded in length. With `has_layout` one newline on each inner side of the tags belongs to them.
    """

    def __init__(
        self,
        markers: MarkerSet,
        *,
        closer: str,
        continuation: str,
        opening: str,
        others: str,
        exact_closer: str | None = None,
        has_layout: bool = False,
        has_elements: bool = False,
    ) -> None:
        self.markers = markers
        self.has_layout = has_layout
        self.has_elements = has_elements
        self._has_keys = "(?P<key>" in opening
        self.closer = regex.compile(closer)
        self.exact_closer = regex.compile(exact_closer or closer)
        self._source = rf"(?P<closer>{closer}(?:{continuation}))|(?P<opening>{opening})|(?P<other>{others})"

    @cached_property
    def pattern(self) -> "regex.Pattern[str]":
        """Matches what may end a value. Compiling it takes so long that it waits for the first value."""
        return regex.compile(self._source)

    def at(self, text: str, start: int, *, final: bool) -> str | None:
        """What the tag at `start` may be: `closer`, `opening`, `other`; empty: literal; None: more input."""
        found = self.pattern.match(text, start, partial=not final)
        if found is not None:
            return None if found.partial else found.lastgroup or ""
        if final and self.closer.match(text, start) and self.pattern.match(text, start, partial=True):
            return "closer"
        return ""

    def end_of_closer(self, text: str, start: int) -> int | None:
        """Where the closer ends that stands at `start`; None: none does."""
        found = self.closer.match(text, start)
        return None if found is None else found.end()

    def is_exact(self, text: str, start: int, key: str) -> bool:
        """Whether the closer at `start` is written as that of the argument `key` should be."""
        found = self.exact_closer.match(text, start)
        return found is not None and found.groupdict().get("name", key) == key

    def end_of_opening(self, text: str, start: int) -> int:
        """Where the value begins whose opening stands at `start`."""
        found = self.pattern.match(text, start)
        assert found is not None
        return found.end()

    def key_at(self, text: str, start: int) -> str | None:
        """The name in the opening at `start`, if the pattern says which it is."""
        found = self.pattern.match(text, start)
        return found["key"] if found and self._has_keys else None


class ValueReader:
    """Finds the ends of values, one after the other, in one stream; see the module's description."""

    def __init__(self, ends: ValueEnds, *, max_held_chars: int) -> None:
        self._ends = ends
        (self._lead,) = ends.markers.leads
        self._max_held_chars = max_held_chars
        self._rereading = Rereading()
        self._candidate: int | None = None
        self._candidate_key: str | None = None
        """The name in it, if it opens another value."""
        self._opens_again = False
        """Whether the value of that name opens once more, before this call ends."""
        self._open_values = 0
        self._in_other_call = False
        """Whether another call opens behind the candidate."""
        self._is_behind = False
        """Whether reading ahead has left the call."""
        self._literal_until = 0
        self._start = 0
        self._out = 0
        self._before_first = False
        """Whether a newline that is layout may still come before the value."""
        self._newline = "\n"
        """The newline that belongs to the tags: the one before the value says how lines end here."""
        self.run_limit = 0
        """Up to which position `read_run` may go."""
        self._tape = Tape()
        self._key = ""
        self.arguments = TextArguments({}, call_id="", name="")

    def begin(
        self, tape: Tape, arguments: TextArguments, key: str, events: list[Event] | None, *, is_text: bool | None = None
    ) -> None:
        """A value begins at the cursor. `is_text` is what its tag says, whatever the schema does."""
        self._tape = tape
        self._key = key
        self.arguments = arguments
        self._start = self._out = tape.pos
        self._candidate = None
        self._before_first = self._ends.has_layout
        self._newline = "\n"
        arguments.begin(key, events, is_text=is_text)

    @property
    def released(self) -> int:
        """Up to which position the value is out."""
        return self._out if self.arguments.streams else self._start

    def read(self, events: list[Event] | None, *, final: bool) -> str:
        """Read on. DONE: the value has ended, the cursor stands behind its closer. BROKEN: it ends at the cursor, its
        closer is missing. GOING: more input."""
        tape, ends = self._tape, self._ends
        if self._before_first and tape.i < len(tape.text):
            beginning = tape.text[tape.i : tape.i + 2]
            if beginning == "\r" and not final:
                return GOING
            self._before_first = False
            if beginning == "\r\n":
                self._newline = beginning
            tape.i += len(self._newline) if beginning.startswith(self._newline) else 0
            self._start = self._out = tape.pos
        while True:
            if self._candidate is not None:
                real = self._read_ahead(self._candidate, final=final)
                if real is None:
                    return GOING
                if real and (self._candidate_key is None or self.arguments.expects(self._candidate_key)):
                    return self._end(events)
                if real:
                    self._literal_until = tape.pos + 1
            tape.i, marker = ends.markers.find(tape.text, tape.i, final=final)
            kind = ends.at(tape.text, tape.i, final=final) if marker and tape.pos >= self._literal_until else ""
            if marker is None or kind is None:
                self._give(self._before_newline(), events)
                return GOING
            if not kind or (kind == "opening" and not self._may_open()):
                tape.i += 1
            elif kind == "closer" or self._rereading.is_used_up(tape.pos):
                return self._end(events)
            else:
                self._give(self._before_newline(), events)
                self._candidate = tape.pos
                self._candidate_key = ends.key_at(tape.text, tape.i) if kind == "opening" else None
                self._open_values = 0
                self._opens_again = self._in_other_call = self._is_behind = False

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
        is_going = self.arguments.streams and self._candidate is None and not self._before_first
        return is_going and self._newline == "\n"

    def _read_ahead(self, candidate: int, *, final: bool) -> bool | None:
        """Whether the candidate is real; None while that is open. Once it is known the cursor is back at it."""
        tape, ends = self._tape, self._ends
        while True:
            tape.i, marker = ends.markers.find(tape.text, tape.i, final=final)
            if tape.pos - candidate > self._max_held_chars:
                return self._back(candidate, literal_until=candidate + self._max_held_chars)
            if marker is None:
                if not final:
                    return None
                return self._back(candidate, literal_until=candidate + 1 if self._opens_again else 0)
            if self._open_values and ends.end_of_closer(tape.text, tape.i):
                self._open_values -= 1
                tape.i += len(marker)
                continue
            kind = ends.at(tape.text, tape.i, final=final)
            if kind is None:
                return None
            if kind == "closer":
                return self._back(candidate, literal_until=tape.pos)
            if kind == "opening" and (self._in_other_call or self._may_open()):
                self._opens_again |= tape.pos > candidate and self._is_candidates_twin()
                self._open_values += 1
                tape.i = ends.end_of_opening(tape.text, tape.i)
            else:
                self._is_behind |= kind == "other"
                self._in_other_call |= kind == "other" and not marker.startswith("</")
                tape.i += len(marker) if kind else 1

    def _is_candidates_twin(self) -> bool:
        """Whether the value of the candidate's name opens here, in this call, so that the candidate was literal."""
        if self._open_values or self._is_behind or self._ends.has_elements or self._candidate_key is None:
            return False
        return self._candidate_key == self._ends.key_at(self._tape.text, self._tape.i)

    def _may_open(self) -> bool:
        """Whether what looks like the opening of a value is one of an argument that may follow."""
        key = self._ends.key_at(self._tape.text, self._tape.i)
        return key is None or self._ends.has_elements or self.arguments.expects(key)

    def _back(self, candidate: int, *, literal_until: int) -> bool:
        self._rereading.go_back(self._tape, candidate)
        self._literal_until = literal_until
        self._candidate = None
        return not literal_until

    def _end(self, events: list[Event] | None) -> str:
        """The value ends at the tag at the cursor. If that is not its closer, a newline before it is layout."""
        tape = self._tape
        behind = self._ends.end_of_closer(tape.text, tape.i)
        end = self._before_newline(is_over=True) if behind is None or self._ends.has_layout else tape.pos
        self._give(end, events)
        self.arguments.end(tape.slice(self._start, end), events)
        if behind is None:
            self.arguments.note("missing-value-end")
            return BROKEN
        if not self._ends.is_exact(tape.text, tape.i, self._key):
            self.arguments.note("wrong-value-end")
        tape.i = behind
        return DONE

    def _before_newline(self, *, is_over: bool = False) -> int:
        """The cursor's position, or that of a newline before it which belongs to the value; while the value is not over
        also of the beginning of one."""
        pos, newline = self._tape.pos, self._newline
        tail = self._tape.slice(max(self._out, pos - len(newline)), pos)
        if tail.endswith(newline):
            return pos - len(newline)
        return pos - (not is_over and len(newline) > 1 and tail.endswith(newline[0]))

    def _give(self, end: int, events: list[Event] | None) -> None:
        if end > self._out:
            text = self._tape.slice(self._out, end)
            self._out = end
            self.arguments.add(text, events)


class ThinkEndOutsideValues(ThinkEnd):
    """Reads ahead to the tag that ends the thinking, behind a call that may be a draft in it. What the values of such a
    call hold does not count, if they are closed. `openers` finds what opens a value, and `think_ends`."""

    def __init__(self, ends: ValueEnds, openers: MarkerSet, think_ends: tuple[str, ...]) -> None:
        self._ends = ends
        self._openers = openers
        self._think_ends = think_ends
        self._value: int | None = None

    def read(self, tape: Tape, *, final: bool) -> bool | None:
        while True:
            markers = self._openers if self._value is None else self._ends.markers
            tape.i, marker = markers.find(tape.text, tape.i, final=final)
            if marker is None:
                return self._at_the_end(tape) if final else None
            if marker in self._think_ends:
                return True
            kind = "" if self._value is None else self._ends.at(tape.text, tape.i, final=final)
            if kind is None:
                return None
            tape.i += len(marker)
            if self._value is None:
                self._value = tape.pos
            elif kind == "closer":
                self._value = None

    def _at_the_end(self, tape: Tape) -> bool:
        """The stream ends, perhaps in a value that nobody closed."""
        if self._value is None:
            return False
        rest = tape.slice(self._value, tape.end)
        ends = [at for at in map(rest.find, self._think_ends) if at >= 0]
        if not ends:
            return False
        tape.seek(self._value + min(ends))
        return True


class TextValueScanner(Scanner):
    """What scanners of calls whose values are plain text have in common: the state `value`, and how a call ends. A
    dialect writes `pairs`, the state before and between its arguments, and reads their names."""

    value_ends: ClassVar[ValueEnds]
    block_ends: ClassVar[MarkerSet]
    """The closers of a call."""

    @property
    def reads(self) -> ReadValue:
        """What a value means in the open call."""
        return coerce

    @property
    def element_mark(self) -> str:
        """What stands before the first element in a value that consists of elements; empty where none do."""
        return ""

    def _reset(self) -> None:
        self.values = ValueReader(self.value_ends, max_held_chars=self.max_held_chars)
        self.key_start = 0
        """Where what holds the next argument's name begins."""
        self.arguments = TextArguments({}, call_id="", name="")
        super()._reset()

    def begin_pairs(self, name: str) -> State:
        """The open call's name is known, or empty if there is none; its arguments follow."""
        if name:
            self.name_call(name)
        self.arguments = TextArguments(
            self.parameters_of(name),
            call_id=self.open_call.id,
            name=name,
            reads=self.reads,
            element_mark=self.element_mark,
        )
        return self.pairs

    @abstractmethod
    def pairs(self) -> State | None:
        """The state before and between the arguments."""

    def begin_value(self, key: str, *, is_text: bool | None = None) -> State:
        """The value of the argument `key` begins at the cursor."""
        self.values.begin(self.tape, self.arguments, key, self.sink(), is_text=is_text)
        return self.value

    def value(self) -> State | None:
        """The value of an argument."""
        status = self.values.read(self.sink(), final=self.final)
        if self.final and (status is GOING or (status is BROKEN and self.truncated)):
            return self.cut_off()
        return None if status is GOING else self.pairs

    def finish_call(self) -> State:
        """The open call is over, the cursor behind it."""
        if self.open_call.shown:
            self.cut_out_call()
        if "surrounding-text" in self.arguments.repairs and not self.arguments.value:
            self.drop_call("malformed")
        else:
            self.end_call(self.arguments.finish(self.sink()))
        return self.after_call()

    def after_too_large(self) -> State:
        return self.skip

    def skip(self) -> State | None:
        """The rest of a call that was too large."""
        tape = self.tape
        tape.i, marker = self.block_ends.find(tape.text, tape.i, final=self.final)
        if marker is None:
            return None
        self.pass_markup(marker)
        return self.after_call()

    @property
    def released(self) -> int:
        if self.call is None or not self.call.shown:
            return super().released
        if self.state == self.value:
            return self.values.released
        return self.tape.pos if self.state == self.pairs else self.key_start

    def run_reader(self) -> RunReader | None:
        if self.open_call.shown and self.state == self.value and self.values.in_run:
            return self.values
        return super().run_reader()
