"""What only the text ahead decides: read on in silence, and come back knowing the answer.

In a string stands what may end the call, because nobody closed the string, or may be one of its characters. There a
reader stops: it is at a `CANDIDATE`. A second one (`ahead`) goes on from there and takes all such places for literal.
If that closes well-formed, the candidate was literal; at the first character that the grammar refuses, or at the end of
the stream, it was real. `Candidates` does this for the readers of one stream.

`Rereading` is the bound that makes it linear. Whoever goes back in a stream counts there, however he looked ahead.

What makes a candidate is the reader's affair. Tags in plain text that may be mentioned rather than used are not read
ahead here, but in `plain_tags.py`.
"""

from typing import Final, Protocol

from dialects.engine.reader import CANDIDATE, DONE, GOING
from dialects.engine.tape import Tape
from dialects.events import Event

__all__ = ["Candidates", "Rereading"]

_FREE: Final = 100_000
"""How many characters may be read twice in any case; beyond that, four times as many as the stream has so far."""


class Rereading:
    """How many characters of one stream have been read twice."""

    def __init__(self) -> None:
        self._chars = 0

    def is_used_up(self, position: int) -> bool:
        """Whether nothing may be read twice any more, where the stream has come to `position`."""
        return self._chars > 4 * position + _FREE

    def go_back(self, tape: Tape, position: int) -> None:
        """Move the cursor back to `position`."""
        self._chars += tape.pos - position
        tape.seek(position)


class _Reader(Protocol):
    """What reads arguments and stops at candidates."""

    tape: Tape
    literal_until: int

    def read(self, events: list[Event] | None, *, final: bool) -> str: ...
    def ahead(self) -> "_Reader": ...
    def release(self) -> None: ...


class Candidates:
    """Tells the candidates of one stream apart. Further ahead than `max_held_chars` it does not look; then a candidate
    is literal."""

    def __init__(self, *, max_held_chars: int) -> None:
        self.rereading = Rereading()
        self._max_held_chars = max_held_chars
        self.ahead: _Reader | None = None
        """Reads on where the reader waits at a candidate."""
        self._candidate = 0

    def forget(self) -> None:
        """The call is over, whatever the open candidate is."""
        if self.ahead is not None:
            self.ahead.release()
            self.ahead = None

    def read(self, reader: _Reader, events: list[Event] | None, *, final: bool) -> str:
        """Let `reader` read on, past candidates that are literal, and return its status. CANDIDATE: the one at the
        cursor is real. GOING: more input."""
        while True:
            if self.ahead is None:
                status = reader.read(events, final=final)
                if status is not CANDIDATE:
                    return status
                self._candidate = reader.tape.pos
                if self.rereading.is_used_up(self._candidate):
                    return CANDIDATE
                self.ahead = reader.ahead()
            real = self._is_real(reader, self.ahead, final=final)
            if real is None:
                return GOING
            if real:
                return CANDIDATE

    def _is_real(self, reader: _Reader, ahead: _Reader, *, final: bool) -> bool | None:
        """Whether the candidate is real; None while that is open. Once it is known the cursor is back at it."""
        tape = reader.tape
        status = ahead.read(None, final=final)
        far = self._candidate + self._max_held_chars
        too_far = tape.pos > far
        if status is GOING and not final and not too_far:
            return None
        reader.literal_until = far if too_far else tape.pos
        self.forget()
        self.rereading.go_back(tape, self._candidate)
        return not too_far and status is not DONE
