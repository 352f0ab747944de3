"""The text of a byte stream as it arrives: what the command reads, before a scanner sees it.

Each read gives what is there at once, so that a live stream is shown live. Bytes that are not UTF-8 become U+FFFD, and
the report at the end says how many and where.
"""

import codecs
import io
from collections.abc import Iterable, Iterator
from typing import BinaryIO

__all__ = ["Utf8Text", "read_some", "recut"]

READ_BYTES = 65536
_ERRORS = "dialects.replace-and-count"


class Utf8Text:
    """The text of a byte stream, a piece for every read."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._invalid = 0
        self._first_invalid = 0

    def __iter__(self) -> Iterator[str]:
        fed = 0
        start = 0  # where in the stream the bytes begin that the decoder has before it

        def replace(error: UnicodeError) -> tuple[str, int]:
            assert isinstance(error, UnicodeDecodeError)
            if not self._invalid:
                self._first_invalid = start + error.start
            self._invalid += 1
            return "\ufffd", error.end

        codecs.register_error(_ERRORS, replace)
        decoder = codecs.getincrementaldecoder("utf-8")(_ERRORS)
        while data := read_some(self._source):
            text = decoder.decode(data)
            fed += len(data)
            start = fed - len(decoder.getstate()[0])
            if text:
                yield text
        if text := decoder.decode(b"", final=True):
            yield text

    def report(self) -> Iterator[str]:
        """A line about the bytes that were replaced, if there were any."""
        if self._invalid:
            count = "one fault" if self._invalid == 1 else f"{self._invalid} faults"
            yield f"input    not all UTF-8: {count} replaced by U+FFFD, the first at byte {self._first_invalid}"


def recut(pieces: Iterable[str], size: int) -> Iterator[str]:
    """The same text in pieces of `size` characters; the last may be shorter."""
    rest = ""
    for piece in pieces:
        rest += piece
        whole = len(rest) - len(rest) % size
        for start in range(0, whole, size):
            yield rest[start : start + size]
        rest = rest[whole:]
    if rest:
        yield rest


def read_some(source: BinaryIO) -> bytes:
    """What is there at once; empty at the end."""
    return source.read1(READ_BYTES) if isinstance(source, io.BufferedReader) else source.read(READ_BYTES)
