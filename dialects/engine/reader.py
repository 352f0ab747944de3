"""What reads the arguments of a call, in whatever notation: the machine, and what it says.

A reader follows the arguments on a tape as they arrive and writes them as JSON. Its states are methods: each consumes
from the tape and returns the next one, or None where it cannot go on. `read` runs them and returns the status:

    GOING       more input is needed
    DONE        the arguments are complete
    BROKEN      they are not in the notation, from the cursor on
    TOO_DEEP    they nest too deep
    CANDIDATE   the cursor is in a string, before what may end the call all the same; `candidates.py` decides

The grammars stand elsewhere: JSON in `arguments.py`, literals with tokens for quotes in `literals.py`, Python in
`python_calls.py`.
"""

import copy
from collections.abc import Callable
from typing import Final, Self, TypeAlias

from dialects.events import Event

__all__ = ["BROKEN", "CANDIDATE", "DONE", "GOING", "TOO_DEEP", "Reader", "State"]

GOING: Final = "going"
DONE: Final = "done"
BROKEN: Final = "broken"
TOO_DEEP: Final = "too deep"
CANDIDATE: Final = "candidate"

State: TypeAlias = Callable[[], "State | None"]


def _over() -> State | None:
    return None


class Reader:
    """Runs the states of a subclass, which says by `_enter` which is the first."""

    status: str
    repairs: list[str]
    """The names of what was tolerated."""
    out: int
    """Up to which position text has left."""
    run_limit = 0
    """Up to which position the short way through a string (`read_run`) may go."""
    literal_until = -1
    """Up to which position nothing in a string ends it or the call."""

    _events: list[Event] | None
    """What receives the pieces; None: they are written in silence."""
    _final: bool
    _state: State

    def _enter(self, state: State) -> None:
        self.status = GOING
        self.repairs = []
        self._events = None
        self._final = False
        self._state = state

    def read(self, events: list[Event] | None, *, final: bool = False) -> str:
        """Read on as far as the tape goes, and return the status. `events` receives the pieces, if it is a list."""
        self._events = events
        self._final = final
        if self.status is CANDIDATE:
            self.status = GOING
        state = self._state
        while self.status is GOING:
            following = state()
            if following is None:
                break
            state = self._state = following
        return self.status

    def note(self, *names: str) -> None:
        """Name tolerances, each once."""
        for name in names:
            if name not in self.repairs:
                self.repairs.append(name)

    def release(self) -> None:
        """Let go of everything that takes memory; the reader is not used any more."""
        self._state = _over
        self._events = None

    def _twin(self) -> Self:
        """A reader that stands where this one does, and has tolerated nothing yet."""
        twin = copy.copy(self)
        twin._enter(getattr(twin, self._state.__name__))
        return twin

    def _break(self) -> State | None:
        self.status = BROKEN
        return None
