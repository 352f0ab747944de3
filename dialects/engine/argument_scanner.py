"""Scanners of calls whose arguments are a JSON object that ends at a marker: where is the end real?"""

import re
from abc import abstractmethod
from typing import ClassVar

from dialects.engine.arguments import ArgumentReader, Arguments, StringEnds
from dialects.engine.candidates import Candidates
from dialects.engine.markers import MarkerSet
from dialects.engine.reader import CANDIDATE, DONE, GOING
from dialects.engine.scanner import RunReader, Scanner, State
from dialects.engine.tape import Tape

__all__ = ["ArgumentScanner"]

_LAYOUT = 16
"""How much white space may stand between the arguments and the marker behind them."""
_NEAR = 400
"""How far behind what may be the end of broken arguments another may show that it was not."""
_WORD = re.compile(r"\w")


class ArgumentScanner(Scanner):
    """A scanner of calls whose arguments are a JSON object that ends at a marker.

    A marker inside a string of that object is literal, but for one that `string_ends` takes for possibly real: that one
    is a candidate (see `candidates.py`). Once the JSON is broken, only the `broken_ends` may end it.
    """

    call_ends: ClassVar[tuple[str, ...]]
    """The markers that end one call."""

    call_end_stops: ClassVar[bool] = False
    """Whether that marker is a stop token, so that the end of the stream is as good."""

    closed_by: ClassVar[str] = "}"
    """The characters one of which stands before a call's end."""

    argument_ends: ClassVar[MarkerSet]
    """All markers that may stand behind complete arguments."""

    broken_ends: ClassVar[MarkerSet]
    """The markers that may end broken arguments: those of calls and of their section."""

    string_ends: ClassVar[StringEnds]

    reader: ArgumentReader
    """That of the call's arguments; before the first call one that reads nothing."""

    def _reset(self) -> None:
        self.reader = ArgumentReader(Tape())
        self._candidates = Candidates(max_held_chars=self.max_held_chars)
        self._skipped_last = ""
        """The last character of what was skipped of a call that is too large."""
        self._maybe_end: tuple[int, str] | None = None
        """A call's end marker within broken arguments, and its position: real if no other follows before a call."""
        super()._reset()

    @abstractmethod
    def after_call(self) -> State:
        """The state that follows a call."""

    def _forget_call(self) -> None:
        super()._forget_call()
        self._candidates.forget()
        self.reader.release()

    def begin_arguments(self) -> None:
        """The arguments of the open call begin at the cursor."""
        call = self.open_call
        self.reader = ArgumentReader(self.tape, self.string_ends, call_id=call.id, name=call.name or "")
        self._maybe_end = None

    def args(self) -> State | None:
        """The arguments, up to the marker that ends them, and that marker if it is the call's own."""
        marker = self._read_arguments()
        if marker is None:
            return None
        if not marker:
            return self._stream_ended()
        return self.end_at(marker)

    def end_at(self, marker: str) -> State:
        """The arguments end at the marker at the cursor."""
        end = self.tape.pos
        if marker in self.call_ends:
            self.tape.i += len(marker)
        else:
            self.open_call.repairs.append("missing-call-end")
        self.end_call(self.finish_arguments(end))
        return self.after_call()

    def finish_arguments(self, end: int) -> Arguments:
        """The open call's arguments, which end at position `end`."""
        arguments = self.reader.finish(end, self.sink())
        call, tape, start = self.open_call, self.tape, self.reader.start
        if self.reader.is_verbatim and call.shown and call.start < tape.base:
            before, behind = tape.slice(call.start, start), tape.slice(start + len(arguments.text), tape.pos)
            tape.clear_mark()  # what it kept of a large call is in the arguments' text
            call.raw = "".join((before, arguments.text, behind))
        return arguments

    def run_reader(self) -> RunReader | None:
        is_reading = self.state == self.args and self._candidates.ahead is None
        return self.reader if is_reading and self.reader.in_run else None

    @property
    def released(self) -> int:
        """Up to which position everything is out."""
        if self.call is not None and self.state == self.args and self.call.shown:
            return self.reader.out
        return super().released

    def _read_arguments(self) -> str | None:
        """The marker before which the arguments end; empty: the end of the stream; None: more input."""
        status = self._candidates.read(self.reader, self.sink(), final=self.final)
        if status is GOING:
            return "" if self.final else None
        if status is DONE:
            return self._end_of_complete()
        if status is CANDIDATE:
            return "" if self.truncated else self._marker_at_cursor()
        return self._end_of_broken()

    def _marker_at_cursor(self) -> str:
        _, marker = self.argument_ends.find(self.tape.text, self.tape.i, final=True)
        assert marker is not None
        return marker

    def _end_of_complete(self) -> str | None:
        tape = self.tape
        index, marker = self.argument_ends.find(tape.text, tape.i, final=False)
        tape.i = index
        if marker is None and self.final:
            return ""
        return marker

    def _end_of_broken(self) -> str | None:
        """A call end behind what closes arguments is real. Of two others near each other, without a call between them,
        only the last can be."""
        tape = self.tape
        while True:
            index, marker = self.broken_ends.find(tape.text, tape.i, final=self.final)
            tape.i = index
            if self._maybe_end is not None and tape.pos - self._maybe_end[0] > _NEAR:
                position, marker = self._maybe_end
                tape.seek(position)
                return marker
            if marker in self.call_ends:
                before = tape.slice(max(self.open_call.start, tape.pos - _LAYOUT), tape.pos).rstrip()
                if before.endswith(tuple(self.closed_by)):
                    return marker
                real = self.string_ends.real(tape.text, index, final=self.final)
                if real is None or real:
                    return marker if real else None
                self._maybe_end = (tape.pos, marker)
                tape.i += len(marker)
            elif marker is None and not self.final:
                return None
            elif self._maybe_end is not None:
                position, marker = self._maybe_end
                tape.seek(position)
                return marker
            else:
                return marker or ""

    def _stream_ended(self) -> State:
        """The stream ends inside the call: it counts if only its closing markers are missing."""
        tape = self.tape
        end = tape.pos
        if self.truncated or not self.reader.is_complete(end):
            tape.i = len(tape.text)
            self.drop_call("unfinished")
            return self.after_call()
        if self.reader.status is DONE and _WORD.search(tape.slice(self.reader.object_end, end)):
            end = self.reader.object_end
            tape.seek(end)
        else:
            tape.i = len(tape.text)
        if not self.call_end_stops:
            self.open_call.repairs.append("missing-call-end")
        self.end_call(self.finish_arguments(end))
        return self.after_call()

    def after_too_large(self) -> State:
        """Skip to the end of the call."""
        self._skipped_last = ""
        return self.skip

    def skip(self) -> State | None:
        tape = self.tape
        start = tape.i
        index, marker = self.broken_ends.find(tape.text, start, final=self.final)
        tape.i = index
        self._skipped_last = tape.text[start:index].rstrip()[-1:] or self._skipped_last
        if marker is None:
            return None
        if marker in self.call_ends:
            real = self._skipped_last in tuple(self.closed_by) or self.string_ends.real(
                tape.text, index, final=self.final
            )
            if real is None:
                return None
            tape.i += len(marker)
            if not real:
                self._skipped_last = ""
                return self.skip
        return self.after_call()
