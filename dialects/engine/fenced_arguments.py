"""JSON arguments in a Markdown code fence of their own, which is part of the grammar and no fault.

A reader begins behind the opening fence. The closing one belongs to the arguments, so they are complete only once it
was read; where something else stands in its place, it is missing.
"""

import re

from dialects.engine.arguments import ArgumentReader, Arguments
from dialects.engine.reader import State
from dialects.events import Event

__all__ = ["FENCE", "FencedArguments"]

FENCE = "```"
_CLOSING = re.compile(rf"\s*{FENCE}\s*\Z")
_LAYOUT = 16
"""How much may stand between broken arguments and what ends the call, the fence included."""


class FencedArguments(ArgumentReader):
    """Reads from the cursor on, in the place of a reader that has not read anything yet."""

    def __init__(self, reader: ArgumentReader) -> None:
        super().__init__(reader.tape, reader._ends, call_id=reader.call_id, name=reader.name)
        self._closed_at: int | None = None

    @property
    def object_end(self) -> int:
        """Where the arguments end, or the fence behind them."""
        return self.end if self._closed_at is None else self._closed_at

    def finish(self, end: int, events: list[Event] | None) -> Arguments:
        if self._closed_at is not None:
            if not self.tape.slice(self._closed_at, end).strip():
                end = self.end
        elif closing := _CLOSING.search(self.tape.slice(max(self.start, end - _LAYOUT), end)):
            end -= len(closing.group())
        else:
            self.note("missing-code-fence")
        return super().finish(end, events)

    def _object_done(self) -> State | None:
        return self._fence_end

    def _fence_end(self) -> State | None:
        self._next_char()
        tape = self.tape
        found = tape.text[tape.i : tape.i + len(FENCE)]
        if not self._final and found != FENCE and FENCE.startswith(found):
            return None
        if found == FENCE:
            tape.i += len(FENCE)
            self._closed_at = tape.pos
        return super()._object_done()
