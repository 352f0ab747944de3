"""A call's body that is no JSON but the text of one string argument, read as a JSON reader would read it.

It ends at a marker: as in a string of JSON, one counts only where a legal continuation follows it. Everything else
streams as it arrives.
"""

from dialects.engine.arguments import ArgumentReader, Arguments
from dialects.engine.coercion import plain_text
from dialects.engine.json_text import dump
from dialects.engine.markers import MarkerSet
from dialects.engine.reader import DONE, State
from dialects.engine.tape import Pieces
from dialects.events import Event

__all__ = ["RawArgument"]


class RawArgument(ArgumentReader):
    """Reads the argument `key` from the cursor on, in the place of a reader that has not read anything yet."""

    def __init__(self, reader: ArgumentReader, markers: MarkerSet, key: str) -> None:
        assert reader._ends is not None
        super().__init__(reader.tape, reader._ends, call_id=reader.call_id, name=reader.name)
        self._string_ends = reader._ends
        self._markers = markers
        self._raw_key = key

    def is_complete(self, end: int) -> bool:
        """Any text is."""
        return True

    def finish(self, end: int, events: list[Event] | None) -> Arguments:
        self._events = events
        self._emit('"', "")
        self._key = None
        self._emit("}", "")
        return self._finished()

    def _begin(self) -> State | None:
        self._pieces = Pieces()
        self._emit(f"{{{dump(self._raw_key)}:", "")
        self._key = self._raw_key
        self._emit('"', "")
        return self._text

    def _text(self) -> State | None:
        tape = self.tape
        text, start = tape.text, tape.i
        end, marker = self._markers.find(text, start, final=self._final)
        is_real = None if marker is None else self._string_ends.real(text, end, final=self._final)
        if marker is not None and is_real is False:
            end += len(marker)
        value, json_text, repairs = plain_text(text[start:end])
        self._emit(json_text[1:-1], str(value))
        self.note(*repairs)
        tape.i = end
        self.out = tape.pos
        if is_real is False:
            return self._text
        if is_real:
            self.end = tape.pos
            self.status = DONE
        return None
