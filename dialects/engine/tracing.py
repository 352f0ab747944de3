"""Where in its stream a scanner found what it says: to explain a stream, not to read one fast.

`traced` makes a subclass of a scanner's class that notes for each `Text`, `ThinkingDelta`, `ToolEnd` and `ToolDropped`
from where to where it stood, in characters since the first `feed`. That is known, not guessed: a scanner speaks with
its cursor behind what it says, and remembers where a call began. The short ways, which skip the machine, are closed.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from dialects.engine.scanner import Scanner
from dialects.events import Event, Text, ThinkingDelta, ToolDropped, ToolEnd

__all__ = ["Place", "Tracing", "traced"]


class Place(msgspec.Struct, frozen=True):
    """An event, and where its characters stand. Newlines at its beginning that come from farther back are not in it."""

    event: Event
    start: int
    end: int


class Tracing(Scanner):
    """What `traced` adds to a scanner."""

    _origin: int
    """What is to be added to a position on the tape."""
    _said_until: int
    _tail: int
    """How many newlines the last text that was said ends with, and where it ends."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._places: list[Place] = []
        self._quotes: list[tuple[int, int, str]] = []
        self._fed = 0
        super().__init__(*args, **options)

    @property
    def fed(self) -> int:
        """How many characters were fed so far, over all streams."""
        return self._fed

    def take_quotes(self) -> list[tuple[int, int, str]]:
        """From where to where calls stand that are text, since the last time, and the names of their tools."""
        quotes, self._quotes = self._quotes, []
        return quotes

    def take_places(self) -> list[Place]:
        """The places of the events since the last time."""
        places, self._places = self._places, []
        return places

    def feed(self, text: str) -> list[Event]:
        """The events that the next piece of the stream gives."""
        events = super().feed(text)
        self._fed += len(text)
        return events

    def say(self, text: str) -> None:
        """Text or thinking, which ends at the cursor."""
        start = self._origin + self.tape.pos - len(text)
        before = len(self.events)
        super().say(text)
        lead = len(text) - len(text.lstrip("\n"))
        run = self._tail if start == self._said_until else 0
        for event, said in _said(self.events[before:]):
            words = said.lstrip("\n")
            newlines = min(run + lead, len(said) - len(words))
            end = start + lead + len(words)
            is_placed = text.startswith(words, lead)
            self._places.append(Place(event, start + lead - newlines if is_placed else end, end))
        self._said_until = start + len(text)
        self._tail = len(text) - len(text.rstrip("\n")) + (run if lead == len(text) else 0)

    def say_call(self, name: str, raw: str) -> None:
        """A call is text."""
        before = len(self._places)
        super().say_call(name, raw)
        self._quotes += [(place.start, place.end, name) for place in self._places[before:]]

    def end_text(self) -> None:
        """The stream is over: newlines that were held leave."""
        before = len(self.events)
        super().end_text()
        for event, said in _said(self.events[before:]):
            self._places.append(Place(event, self._said_until - min(self._tail, len(said)), self._said_until))

    def _close_call(self) -> str:
        start = self._origin + self.open_call.start
        raw = super()._close_call()
        self._closed.append((start, start + len(raw)))
        return raw

    def _taken_events(self) -> list[Event]:
        events = super()._taken_events()
        calls = (event for event in events if isinstance(event, ToolEnd | ToolDropped))
        self._places += [Place(event, *where) for event, where in zip(calls, self._closed, strict=False)]
        self._closed.clear()
        return events

    def _find_short_ways(self) -> None:
        super()._find_short_ways()
        self._quick = None
        self._in_plain_text = False

    def _reset(self) -> None:
        places, self._places = self._places, []
        self._closed: list[tuple[int, int]] = []
        self._origin = self._said_until = self._tail = 0
        super()._reset()
        self._places = places
        self._closed.clear()
        self._origin = self._said_until = self._fed - self.tape.end
        self._tail = 0


@cache
def traced(scanner: type[Scanner]) -> type[Tracing]:
    """The class that reads as this one does, and notes where."""
    return type(f"Traced{scanner.__name__}", (Tracing, scanner), {})


def _said(events: list[Event]) -> Iterator[tuple[Event, str]]:
    for event in events:
        match event:
            case Text(said) | ThinkingDelta(said):
                yield event, said
