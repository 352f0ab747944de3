"""The arguments of a call whose values are plain text, written as one JSON object while they stream.

A value that can only be text leaves as it arrives: at once if the schema allows nothing else, or as soon as its
beginning rules out every other type that the schema allows. Any other is held until it is complete.
"""

from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, TypeAlias

from dialects.engine.arguments import Arguments
from dialects.engine.coercion import NO_TEXT, Coerced, Opening, coerce, declared_json, plain_text
from dialects.engine.json_text import SURROGATE
from dialects.engine.schema import kinds_of, property_schema
from dialects.events import Event, ToolArgDelta

__all__ = ["ReadValue", "TextArguments"]

ReadValue: TypeAlias = Callable[[str, object, object], Coerced]
"""The value that a text means under a schema, and the schema that its references point into."""
_TEXT = {"type": "string"}


class TextArguments:
    """The arguments of one call. In its methods `events` is the list that receives their pieces, None for a call that
    is not shown. `reads` says what a value means that is not known to be text; `element_mark` is what stands before the
    first element in one that consists of elements."""

    def __init__(
        self, parameters: dict[str, Any], *, call_id: str, name: str, reads: ReadValue = coerce, element_mark: str = ""
    ) -> None:
        self.repairs: list[str] = []
        self.value: dict[str, Any] = {}
        self._parameters = parameters
        self._call_id = call_id
        self._name = name
        self._reads = reads
        self._element_mark = element_mark
        self._written: list[str] = []
        self._key = ""
        self._schema: object = True
        self._is_json = False
        self._opening: Opening | None = None
        self._held: list[str] = []
        self._skipping = False
        self.streams = False
        """Whether the value being written is text, so that it leaves as it arrives."""

    def note(self, name: str) -> None:
        """Name a tolerance, once."""
        if name not in self.repairs:
            self.repairs.append(name)

    def expects(self, key: str) -> bool:
        """Whether an argument of that name may follow: the schema, if it names any, has it, and it did not come yet."""
        properties = self._parameters.get("properties")
        if not isinstance(properties, dict) or not properties:
            return True
        return key in properties and key not in self.value and key != self._key

    def begin(self, key: str, events: list[Event] | None, *, is_text: bool | None = None) -> None:
        """The value of `key` begins. Of two values of one key the first wins; it is out already. `is_text` overrides
        the schema: True for text, False for JSON."""
        written = plain_text(key)
        self._key = str(written.value)
        self._note_all(written)
        self._held.clear()
        self._skipping = self._key in self.value
        self.streams = False
        if self._skipping:
            self.note("duplicate-key")
            return
        self._schema = _TEXT if is_text else property_schema(self._parameters, key)
        self._is_json = is_text is False
        self._write(f"{',' if self._written else '{'}{written.json_text}:", events)
        kinds = NO_TEXT if self._is_json else kinds_of(self._schema, self._parameters)
        self._opening = Opening(kinds, self._element_mark)
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

    def piece(self, text: str) -> ToolArgDelta:
        """The event for the next piece of a value that `streams`."""
        shown = text if text.isascii() else SURROGATE.sub("\ufffd", text)
        return ToolArgDelta(self._call_id, self._name, self._key, shown, encode_basestring(shown)[1:-1])

    def end(self, text: str, events: list[Event] | None) -> None:
        """The value is complete; `text` is all of it."""
        if self._skipping:
            return
        if self.streams:
            found = plain_text(text)
            self._emit(self._key, "", '"', events)
        else:
            found = self._typed(text)
            shown = found.value if isinstance(found.value, str) else found.json_text
            self._emit(self._key, shown, found.json_text, events)
        self._note_all(found)
        self.value[self._key] = found.value
        self._written.append(found.json_text)

    def _typed(self, text: str) -> Coerced:
        return declared_json(text) if self._is_json else self._reads(text, self._schema, self._parameters)

    def finish(self, events: list[Event] | None) -> Arguments:
        """The arguments are complete."""
        self._write("}" if self._written else "{}", events)
        return Arguments(self.value, "".join(self._written), tuple(self.repairs))

    def _write(self, json_text: str, events: list[Event] | None) -> None:
        """JSON text between two values."""
        self._written.append(json_text)
        self._emit(None, "", json_text, events)

    def _note_all(self, found: Coerced) -> None:
        for name in found.repairs:
            self.note(name)

    def _stream(self, text: str, events: list[Event] | None) -> None:
        if text and events is not None:
            events.append(self.piece(text))

    def _emit(self, key: str | None, delta: str, json_text: str, events: list[Event] | None) -> None:
        if events is not None:
            events.append(ToolArgDelta(self._call_id, self._name, key, delta, json_text))
