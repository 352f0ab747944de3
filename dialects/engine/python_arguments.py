"""The arguments of a call that is Python, written as one JSON object while they are read.

What leaves is never taken back. So text waits (`hold`) whose kind only the next token tells, a list or an object or the
parentheses around a value, until it is known (`release`). Of two values of one key the first wins; it is out already.

Nothing in here knows the notation: `python_calls.py` reads that, and says piece by piece what it means.
"""

import copy
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from dialects.engine.json_text import dump, load
from dialects.engine.tape import Pieces
from dialects.events import Event, ToolArgDelta

__all__ = ["PythonArguments"]


class _Piece(NamedTuple):
    """A piece of a value: its JSON text, and what a person would read."""

    json_text: str
    shown: str


class PythonArguments:
    """Those of one call. `events` receives the pieces, if it is a list; `note` the names of what was tolerated."""

    def __init__(self, note: Callable[[str], None], *, call_id: str, name: str) -> None:
        self.events: list[Event] | None = None
        self.value: dict[str, Any] = {}
        self.key: str | None = None
        """The argument whose value is being written."""
        self.is_text = False
        """Whether that value is a string, and its pieces are shown as text."""
        self.is_silent = False
        self._note = note
        self._call_id = call_id
        self._name = name
        self._is_skipping = False
        """Whether the value belongs to a key that was there before."""
        self._held: list[list[_Piece]] = []
        """What waits, for each container of which the kind is not known."""
        self._shown = Pieces()
        """What a person would read of the value being written."""
        self._written: list[str] = []

    def ahead(self, note: Callable[[str], None]) -> "PythonArguments":
        """For a reader that goes ahead, and writes nothing."""
        ahead = copy.copy(self)
        ahead._note = note
        ahead.silence()
        return ahead

    def silence(self) -> None:
        """Write nothing any more, and let go of what was written."""
        self.is_silent = True
        self.events = None
        self.value = {}
        self._held = [[] for _ in self._held]
        self._shown = Pieces()
        self._written = []

    # Arguments.

    def begin(self, key: str) -> None:
        """The value of an argument begins."""
        if key in self.value:
            self._note("duplicate-key")
            self._is_skipping = True
        else:
            self._write_between(f"{',' if self.value else '{'}{dump(key)}:")
        self.key = key

    def end(self) -> None:
        """The value is complete."""
        if not (self._is_skipping or self.is_silent or self.key is None):
            shown = self._shown.text()
            self._shown = Pieces()
            if self.is_text:
                self.value[self.key] = shown
                self._written.append(dump(shown))
            else:
                value, has_duplicates = load(f'{{"":{shown}}}')
                self.value[self.key] = value[""]
                self._written.append(shown)
                if has_duplicates:
                    self._note("duplicate-key")
        self._is_skipping = self.is_text = False
        self.key = None

    def close(self) -> None:
        """There are no more."""
        self.key = None
        self._write_between("}" if self.value else "{}")

    def finish(self) -> tuple[dict[str, Any], str]:
        """All of them: the value and its JSON text."""
        return self.value, "".join(self._written)

    # The pieces of a value.

    def write(self, json_text: str, shown: str | None = None) -> None:
        """The next piece: its JSON text, and what a person would read, if that is something else."""
        if self.is_silent or self._is_skipping:
            return
        if shown is None:
            shown = json_text
        if self._held:
            self._held[-1].append(_Piece(json_text, shown))
            return
        self._shown.append(shown)
        if self.events is not None:
            self.events.append(ToolArgDelta(self._call_id, self._name, self.key, shown, json_text))

    def text_run(self, text: str) -> list[Event]:
        """The next piece of a value that is text, where it leaves at once, and its event."""
        self._shown.append(text)
        return [ToolArgDelta(self._call_id, self._name, self.key, text, encode_basestring(text)[1:-1])]

    @property
    def leaves_at_once(self) -> bool:
        """Whether the next piece leaves as soon as it is written."""
        return self.events is not None and not (self._held or self._is_skipping or self.is_silent)

    @property
    def is_holding(self) -> bool:
        """Whether the next piece waits."""
        return bool(self._held)

    def hold(self) -> None:
        """What follows waits until it is known what it is."""
        self._held.append([])

    def take_key(self) -> str:
        """What waits is the key of an object, and leaves in another form: its JSON text."""
        return "".join(piece.json_text for piece in self._held.pop())

    def release(self, *, as_list: bool) -> None:
        """What waits is the first element of a list, or a value in parentheses."""
        pieces = self._held.pop()
        if as_list:
            self.is_text = False
            self.write("[")
        for json_text, shown in pieces:
            self.write(json_text, None if as_list else shown)

    def _write_between(self, json_text: str) -> None:
        """JSON text between two values."""
        if self.is_silent:
            return
        self._written.append(json_text)
        if self.events is not None:
            self.events.append(ToolArgDelta(self._call_id, self._name, None, "", json_text))
