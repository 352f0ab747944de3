"""What became of each chunk's text, and why: a healer that keeps account of every character.

`ExplainingHealer` heals as `ChatCompletionHealer` does, with scanners that note where they found what they say
(`engine/tracing.py`). A channel goes through up to three of them: a decider, the dialect's, the thinking healer's; each
reads what the one before it left as text. So a place in the stream of the last is followed back, piece by piece, to the
text that the upstream sent. What no event stands for was markup. `explanation` tells the outcome when all is over.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from dialects.auto import Decider
from dialects.engine.scanner import Scanner
from dialects.engine.tracing import Place, Tracing, traced
from dialects.events import Event, Text, ToolDropped, ToolEnd
from dialects.healing.chat import ChatCompletionHealer, Chunk, ChunkLike
from dialects.healing.counts import Counts
from dialects.healing.streams import AUTO, StreamHealer
from dialects.thinking import ThinkingScanner

__all__ = ["ExplainingHealer", "Explanation", "Fate"]

DRAFT = "draft"

T = TypeVar("T", bound=Tracing)

Fate: TypeAlias = Literal["text", "reasoning", "call", "dropped", "markup", "newlines"]


class Explanation(msgspec.Struct, frozen=True):
    """What became of a piece of a chunk's text.

    chunk: the number of the chunk, from 1. choice: the index of the choice. channel: `content` or `reasoning`.
    until: the chunk with which it was decided, if the text was held so long; None: the chunk itself; 0: the end.
    why: the call's name, what was mended in it, why it is none.
    """

    chunk: int
    choice: int
    channel: str
    text: str
    fate: Fate
    until: int | None = None
    why: str = ""


class Found(msgspec.Struct, frozen=True):
    """A stretch of a channel's text, with its fate."""

    start: int
    end: int
    event: Event
    chunk: int


class Trail(msgspec.Struct, frozen=True):
    """A stretch of the text that the thinking healer reads, and where it stands in the channel."""

    start: int
    end: int
    origin: int


class Verdicts(Counts):
    """What became of calls behind the scanners, by the text that they were."""

    def __init__(self) -> None:
        super().__init__()
        self.of: dict[int, str] = {}

    def found(self, event: ToolEnd | ToolDropped, *, recovers: bool) -> None:
        """A call that was found in text is over."""
        super().found(event, recovers=recovers)
        if isinstance(event, ToolEnd):
            self.of[id(event.raw_block)] = "call" if recovers else "the request wanted no call"

    def copied(self, raw_block: str) -> None:
        """It came natively, too."""
        super().copied(raw_block)
        self.of[id(raw_block)] = "the same call came natively"

    def drafted(self, raw_block: str) -> None:
        """It was a draft in reasoning."""
        super().drafted(raw_block)
        self.of[id(raw_block)] = DRAFT


class Journal:
    """What all channels of a stream write into."""

    def __init__(self) -> None:
        self.chunks = 0
        self.chunk = 0
        """The number of the chunk that is being healed; 0 at the end."""
        self.channels: list[ExplainingStream] = []
        self.verdicts = Verdicts()


class ReadingThinking(Tracing, ThinkingScanner):
    """A thinking healer that notes where. A draft that it is told of is not in the text that it reads."""

    def think(self, text: str) -> list[Event]:
        """Text that is thinking, whatever it holds."""
        places, fed = self._places, self._fed
        self._places = []
        events = super().think(text)
        self._places, added = places, self._fed - fed
        self._fed -= added
        self._origin -= added
        return events


class ReadingDecider(Tracing, Decider):
    """A decider that notes where."""


class ExplainingStream(StreamHealer):
    """Heals one channel, and notes what became of each of its characters."""

    def __init__(self, journal: Journal, choice: int, channel: str, pattern: str, **options: Any) -> None:
        self.choice = choice
        self.channel = channel
        self.pieces: list[tuple[int, str]] = []
        """What was fed, with the chunks that it came in."""
        self.found: list[Found] = []
        self.quotes: list[tuple[int, int, str]] = []
        """From where to where calls stand whose tools, of that name, were not offered."""
        self._journal = journal
        self._readers: list[Tracing] = []
        """All scanners there were: a decider, the dialect's, thinking healers."""
        self._origin = 0
        """Where in the channel the dialect's scanner began to read."""
        self._trails: list[Trail] = []
        """What the thinking healer reads, piece by piece."""
        self._trail_end = self._trail_cut = 0
        self._far = 0
        """Up to where the dialect's scanner read what does not stand there in the channel."""
        super().__init__(pattern, **options)
        journal.channels.append(self)

    def feed(self, text: str) -> list[Event]:
        """The events that the next piece of the text gives."""
        self.pieces.append((self._journal.chunk, text))
        events = super().feed(text)
        self._note()
        return events

    def flush(self, *, truncated: bool = False) -> list[Event]:
        """The text is over."""
        events = super().flush(truncated=truncated)
        self._note()
        return events

    # The scanners.

    def _create(self, name: str, generation_prompt: str) -> Scanner:
        scanner = self._dialects[name].scanner
        assert scanner is not None
        return self._read_by(traced(scanner)(**self._options, generation_prompt=generation_prompt))

    def _thinking_scanner(self, generation_prompt: str) -> ThinkingScanner:
        return self._read_by(ReadingThinking(generation_prompt=generation_prompt, max_held_chars=self._max_held_chars))

    def _new_decider(self) -> Decider:
        return self._read_by(ReadingDecider(tuple(self._dialects.values()), self._new, **self._decider_options))

    def _read_by(self, reader: T) -> T:
        self._readers.append(reader)
        return reader

    def _handed_over(self) -> list[Event]:
        decider = self._decider
        if isinstance(decider, ReadingDecider) and decider.handover is not None:
            decided = decider.handover
            self._trail_cut = len(decided.shown)
            self._origin = decider.fed - len(decided.rest) - len(decided.shown)
            self._far = len(decided.shown) + decided.far if decided.far else 0
        return super()._handed_over()

    def _end_draft(self, *, is_draft: bool) -> list[Event]:
        draft = self._draft
        assert draft is not None
        if is_draft and isinstance(draft.healer, ReadingThinking):
            self._readers.append(draft.healer)
            for event in draft.events:
                if isinstance(event, ToolEnd | ToolDropped):
                    self._journal.verdicts.drafted(event.raw_block)
        return super()._end_draft(is_draft=is_draft)

    # The account.

    def _note(self) -> None:
        """Write down what has been found since the last time: the dialect's findings first, on which the thinking
        healer's stand."""
        for reader in self._readers:
            if not isinstance(reader, ReadingThinking):
                self.quotes += [
                    (self._origin + start, self._origin + end, name) for start, end, name in reader.take_quotes()
                ]
                for place in reader.take_places():
                    self._note_place(place, reader)
        for reader in self._readers:
            if isinstance(reader, ReadingThinking):
                for place in reader.take_places():
                    for start, end in self._followed_back(place):
                        self._find(start, end, place.event)

    def _note_place(self, place: Place, reader: Tracing) -> None:
        is_decider = isinstance(reader, ReadingDecider)
        origin = 0 if is_decider else self._origin
        first = place.start if is_decider else max(place.start, min(self._far, place.end))
        if is_decider or not self._parse_thinking or not isinstance(place.event, Text):
            self._find(origin + first, origin + place.end, place.event)
            return
        text = place.event.text
        cut = min(self._trail_cut, len(text))
        self._trail_cut -= cut
        unknown = max(len(text) - (place.end - first), cut)
        start = self._trail_end + unknown - cut
        self._trail_end += len(text) - cut
        self._trails.append(Trail(start, self._trail_end, origin + place.end - (self._trail_end - start)))

    def _followed_back(self, place: Place) -> Iterator[tuple[int, int]]:
        if not any(not isinstance(reader, ReadingThinking) for reader in self._readers):
            yield place.start, place.end
            return
        at = bisect_right(self._trails, place.start, key=lambda trail: trail.end)
        for trail in self._trails[at:]:
            if trail.start >= place.end:
                return
            start, end = max(place.start, trail.start), min(place.end, trail.end)
            if start < end:
                yield start - trail.start + trail.origin, end - trail.start + trail.origin

    def _find(self, start: int, end: int, event: Event) -> None:
        if end > max(start, 0):
            self.found.append(Found(max(start, 0), end, event, self._journal.chunk))


class ExplainingHealer(ChatCompletionHealer):
    """`ChatCompletionHealer`, with an `explanation` of one stream."""

    def __init__(self, pattern: str = AUTO, **options: Any) -> None:
        self._journal = Journal()
        super().__init__(pattern, **options)

    def _new_counts(self) -> Counts:
        return self._journal.verdicts

    def _new_stream(self, choice: int, channel: str, pattern: str, **options: Any) -> StreamHealer:
        return ExplainingStream(self._journal, choice, channel, pattern, **options)

    def feed(self, chunk: ChunkLike) -> list[Chunk]:
        """The chunks that may leave, now that the upstream has sent this one."""
        self._journal.chunks += 1
        self._journal.chunk = self._journal.chunks
        return super().feed(chunk)

    def finish(self, *, truncated: bool = False) -> list[Chunk]:
        """The upstream is over."""
        self._journal.chunk = 0
        return super().finish(truncated=truncated)

    def interrupt(self) -> list[Chunk]:
        """The upstream failed."""
        self._journal.chunk = 0
        return super().interrupt()

    def explanation(self) -> list[Explanation]:
        """What became of each chunk's text, in the order of the chunks. Call it when the stream is over."""
        lines = [line for channel in self._journal.channels for line in _explained(channel, self._journal.verdicts)]
        return sorted(lines, key=lambda line: line.chunk)


def _explained(channel: ExplainingStream, verdicts: Verdicts) -> Iterator[Explanation]:
    found = sorted(channel.found, key=lambda each: each.start)
    start = next_one = 0
    for chunk, text in channel.pieces:
        at, end = start, start + len(text)
        while next_one < len(found) and found[next_one].start < end:
            each = found[next_one]
            if each.end > at:
                begin = max(each.start, at)
                yield from _rest(channel, chunk, text[at - start : begin - start])
                at = min(each.end, end)
                fate, why = _fate(each, channel, verdicts)
                until = None if each.chunk == chunk else each.chunk
                said = text[begin - start : at - start]
                yield Explanation(chunk, channel.choice, channel.channel, said, fate, until, why)
            if each.end > end:
                break
            next_one += 1
        yield from _rest(channel, chunk, text[at - start :])
        start = end


def _rest(channel: ExplainingStream, chunk: int, text: str) -> Iterator[Explanation]:
    """Text that no event stands for."""
    if text:
        fate: Fate = "markup" if text.strip("\n") else "newlines"
        yield Explanation(chunk, channel.choice, channel.channel, text, fate, why="swallowed")


def _fate(found: Found, channel: ExplainingStream, verdicts: Verdicts) -> tuple[Fate, str]:
    shown: Fate = "reasoning" if channel.channel == "reasoning" else "text"
    match found.event:
        case Text():
            quoted = (name for start, end, name in channel.quotes if start < found.end and found.start < end)
            return shown, next((f"{name} was not offered" for name in quoted), "")
        case ToolDropped(name=name) if channel.not_offered(name):
            return shown, f"{name} was not offered"
        case ToolDropped(name=name, reason=reason, raw_block=raw):
            return ("reasoning", "a draft") if verdicts.of.get(id(raw)) == DRAFT else ("dropped", _joined(name, reason))
        case ToolEnd(name=name, repairs=repairs, raw_block=raw):
            match verdicts.of.get(id(raw), "the upstream failed before it could be sent"):
                case "call":
                    return "call", _joined(name, f"mended: {', '.join(repairs)}" if repairs else "")
                case "draft":
                    return "reasoning", "a draft"
                case why:
                    return "dropped", _joined(name, why)
        case _:
            return "reasoning", ""


def _joined(name: str | None, why: str) -> str:
    return ", ".join(part for part in (name, why) if part)
