"""Whole texts and iterables of pieces, read by a scanner. There is one code path: all of these feed one."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any

import msgspec

from dialects.engine.scanner import InbandScanner
from dialects.events import Event, Stopped, Text, ThinkingEnd, ToolDropped, ToolEnd
from dialects.factory import create_inband_scanner

__all__ = ["ScanResult", "aiter_events", "iter_events", "scan"]


class ScanResult(msgspec.Struct, frozen=True):
    """What a whole text says: its text and thinking, each joined, its calls in order, and what was no call.

    `stopped` is the reason why reading stopped before the end, if it did.
    """

    text: str
    thinking: str
    tool_calls: list[ToolEnd]
    dropped: list[ToolDropped]
    stopped: str | None


def scan(text: str, dialect: str, *, truncated: bool = False, **scanner_options: Any) -> ScanResult:
    """Read a whole text. `truncated` says that generation was cut off; the options are those of
    `create_inband_scanner`, which also says what is raised."""
    if not isinstance(text, str):
        raise TypeError(f"scan takes a str, not {type(text).__name__}")
    scanner = create_inband_scanner(dialect, **scanner_options)
    events = scanner.feed(text) + scanner.flush(truncated=truncated)
    return ScanResult(
        text="".join(event.text for event in events if isinstance(event, Text)),
        thinking="".join(event.thinking for event in events if isinstance(event, ThinkingEnd)),
        tool_calls=[event for event in events if isinstance(event, ToolEnd)],
        dropped=[event for event in events if isinstance(event, ToolDropped)],
        stopped=next((event.reason for event in events if isinstance(event, Stopped)), None),
    )


def iter_events(chunks: Iterable[str], dialect: str, **scanner_options: Any) -> Iterator[Event]:
    """The events of a stream, each as soon as its chunk has come. Options and errors as for `create_inband_scanner`."""
    scanner = create_inband_scanner(dialect, **scanner_options)
    return _events(iter(chunks), scanner)


def aiter_events(chunks: AsyncIterable[str], dialect: str, **scanner_options: Any) -> AsyncIterator[Event]:
    """The same for an asynchronous stream."""
    scanner = create_inband_scanner(dialect, **scanner_options)
    return _aevents(aiter(chunks), scanner)


def _events(chunks: Iterable[str], scanner: InbandScanner) -> Iterator[Event]:
    for chunk in chunks:
        yield from scanner.feed(chunk)
    yield from scanner.flush()


async def _aevents(chunks: AsyncIterable[str], scanner: InbandScanner) -> AsyncIterator[Event]:
    async for chunk in chunks:
        for event in scanner.feed(chunk):
            yield event
    for event in scanner.flush():
        yield event
