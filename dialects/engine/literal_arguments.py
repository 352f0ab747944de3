"""The arguments of a call of literals, written as one JSON object while they are read.

It knows which containers are open, and so what stands between two values: a comma, a key with its colon. Of two values
of one top-level key the first wins; it is out already.

Nothing in here knows the notation: `literals.py` reads that, and says piece by piece what it means.
"""

from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, Final

from dialects.engine.json_text import SURROGATE, dump, load
from dialects.engine.tape import Pieces
from dialects.events import Event, ToolArgDelta

__all__ = ["OPENERS", "LiteralArguments"]

OPENERS: Final = {"{": "}", "[": "]"}
"""The openers of containers, and what closes them."""


class LiteralArguments:
    """Those of one call. `events` receives the pieces, if it is a list; `note` the names of what was tolerated."""

    def __init__(self, note: Callable[[str], None], *, call_id: str, name: str) -> None:
        self.events: list[Event] | None = None
        self.stack: list[str] = []
        """The openers of the containers that are open."""
        self.keys: set[str] = set()
        """The top-level keys so far."""
        self.member_key: str | None = None
        """The key whose value is awaited; it leaves with that."""
        self.key: str | None = None
        """The top-level key whose value is being written."""
        self.is_skipping = False
        """Whether that is a key which was there before."""
        self._note = note
        self._call_id, self._name = call_id, name
        self._is_filled: list[bool] = []
        """Whether each open container has a member already."""
        self._written = Pieces()

    @property
    def at_top(self) -> bool:
        """Whether the arguments themselves are the innermost container that is open."""
        return len(self.stack) == 1

    def begin_value(self) -> None:
        """Write what stands between values."""
        separator = "," if self._is_filled[-1] else ""
        key = self._clean(self.member_key or "") if self.stack[-1] == "{" else None
        if self.at_top and key in self.keys:
            self._note("duplicate-key")
            self.is_skipping = True
            return
        self._is_filled[-1] = True
        if key is not None:
            separator += dump(key) + ":"
        self.write(separator)
        if self.at_top and key is not None:
            self.keys.add(key)
            self.key = key

    def end_value(self) -> None:
        """A value is complete."""
        if self.at_top:
            self.key = None
            self.is_skipping = False

    def open(self, opener: str) -> None:
        """A container begins; `begin_value` was called for it, but for that of the arguments themselves."""
        self.write(opener)
        self.stack.append(opener)
        self._is_filled.append(False)

    def close(self) -> None:
        """The innermost container ends."""
        opener = self.stack.pop()
        self._is_filled.pop()
        self.write(OPENERS[opener])
        self.end_value()

    def write(self, json_text: str, shown: str | None = None) -> None:
        """Write JSON text; at the top level `shown` is what a person would read."""
        if self.is_skipping or not json_text:
            return
        self._written.append(json_text)
        if self.events is not None:
            if self.key is None:
                shown = ""
            elif shown is None or not self.at_top:
                shown = json_text
            self.events.append(ToolArgDelta(self._call_id, self._name, self.key, shown, json_text))

    def write_string(self, value: str) -> None:
        """Write a whole string."""
        value = self._clean(value)
        self.write(dump(value), value)

    def write_text(self, text: str) -> None:
        """Write the next piece of a string's text."""
        piece = self.piece(text)
        if self.events is not None:
            self.events.append(piece)

    def piece(self, text: str) -> ToolArgDelta:
        """The event for such a piece, which is thereby written."""
        text = self._clean(text)
        json_text = encode_basestring(text)[1:-1]
        self._written.append(json_text)
        return ToolArgDelta(self._call_id, self._name, self.key, text if len(self.stack) == 1 else json_text, json_text)

    def finish(self) -> tuple[dict[str, Any], str]:
        """All of them, when all containers are closed: the value and its JSON text."""
        text = self._written.text()
        value, has_duplicates = load(text)
        if has_duplicates:
            self._note("duplicate-key")
        return value, text

    def _clean(self, text: str) -> str:
        if text.isascii() or not SURROGATE.search(text):
            return text
        self._note("lone-surrogate")
        return SURROGATE.sub("\ufffd", text)
