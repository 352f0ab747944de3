"""Server-sent events over bytes: `EventReader` reads them as they arrive, `write_event` writes them.

What is read is what the WHATWG's event-stream format describes: lines end with CR, LF or CRLF, a BOM may come first, an
event is over at an empty line, the `data:` lines of one event are joined by newlines. Everything is split as bytes and
decoded a whole line at a time, so a character or a CRLF may be cut anywhere. Two things go beyond that format: comments
are kept, because a proxy passes them on (a comment inside an event comes out before it), and sizes are bounded.

Own code, because the decoders of the packages that were looked at are none for a proxy. `httpx-sse` (and its copy in
`httpx2`) takes text that somebody else has decoded, drops comments, keeps a line that ends with CR until more arrives,
and its decoder is not public. `sseclient-py` splits each network chunk by itself, so a CRLF or a line cut in two
becomes two, and drops comments too. `eventsource` is a client of Tornado, unmaintained since 2013.
"""

from typing import Final, TypeAlias

import msgspec

__all__ = [
    "MAX_EVENT_BYTES",
    "Comment",
    "EventReader",
    "Item",
    "ServerEvent",
    "TooLarge",
    "write_comment",
    "write_event",
]

MAX_EVENT_BYTES: Final = 16_000_000

_BOM = b"\xef\xbb\xbf"


class ServerEvent(msgspec.Struct, frozen=True):
    """An event: its data, and its type where it has one (`event: error`). `id` and `retry` are of no use to a reader
    that never reconnects, and are not kept."""

    data: str
    event: str = ""
    whole: bool = True
    """False if the stream ended before the empty line that ends the event."""


class Comment(msgspec.Struct, frozen=True):
    """A line that begins with a colon; `text` is what follows it."""

    text: str


class TooLarge(msgspec.Struct, frozen=True):
    """An event is longer than its reader's limit of so many bytes. Nothing is read after it."""

    limit: int


Item: TypeAlias = ServerEvent | Comment | TooLarge


class EventReader:
    """Takes the bytes of an event stream, cut anywhere, and answers with events and comments.

    max_event_bytes: how long an event may be, its field names included, and so also a line.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_event_bytes
        self._reset()

    def _reset(self) -> None:
        self._closed = False
        """Whether an event was too large."""
        self._first = True
        """Whether no line is over yet, so that a BOM may come."""
        self._after_cr = False
        self._line: list[bytes] = []
        """The pieces of the line that is not over."""
        self._data: list[str] = []
        self._event = ""
        self._size = 0
        """How many bytes are kept: of the open line, and of the data lines before it."""

    def feed(self, data: bytes) -> list[Item]:
        """The events and comments that are complete now. Raises TypeError for anything but bytes."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"feed takes bytes, not {type(data).__name__}")
        if not data or self._closed:
            return []
        data = bytes(data)
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        self._after_cr = data.endswith(b"\r")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        items: list[Item] = []
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._keep(line)
            if self._size > self._max:
                break
            self._end_line(items)
        else:
            self._keep(rest)
        if self._size > self._max:
            items.append(TooLarge(self._max))
            self._reset()
            self._closed = True
        return items

    def end(self) -> list[Item]:
        """The stream is over: the comment or the event that it broke off in. The reader is as new afterwards."""
        items: list[Item] = []
        if self._line:
            self._end_line(items)
        if self._data or self._event:
            items.append(ServerEvent("\n".join(self._data), self._event, whole=False))
        self._reset()
        return items

    def _keep(self, piece: bytes) -> None:
        if piece:
            self._line.append(piece)
            self._size += len(piece)

    def _end_line(self, items: list[Item]) -> None:
        line = b"".join(self._line)
        self._line.clear()
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if not line:
            if self._data or self._event:
                items.append(ServerEvent("\n".join(self._data), self._event))
            self._data, self._event, self._size = [], "", 0
            return
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            return
        self._size -= len(line)
        if name == "event":
            self._event = value
        elif not name:
            items.append(Comment(value))


def write_event(data: str, event: str = "") -> bytes:
    """An event as bytes; `data` may have several lines. A lone surrogate becomes `?`."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {data.replace(chr(10), chr(10) + 'data: ')}\n\n".encode("utf-8", "replace")


def write_comment(text: str) -> bytes:
    """A comment as bytes: one line."""
    return f": {text}\n".encode("utf-8", "replace")
