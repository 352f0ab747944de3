"""Events as a person reads them in a terminal: a row a thing, written as it arrives, and a summary at the end.

Neighbouring pieces of one kind share a row, which grows while the model writes; a gutter on the left says what it is.
What the model wrote cannot steer the terminal: control characters are shown as their escapes.
"""

import json
import os
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TextIO

from dialects.events import (
    Event,
    Stopped,
    Text,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolArgDelta,
    ToolDropped,
    ToolEnd,
    ToolStart,
)
from dialects.healing.counts import Counts
from dialects.healing.explain import Explanation

__all__ = ["EventPrinter", "Tally", "excerpt", "explained", "painted", "wants_colour"]

BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"
PLAIN = ""

_LABEL_WIDTH = 8
_EXCERPT_CHARS = 100
_EXPLAINED_CHARS = 34
_CONTROLS = {code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


def wants_colour(stream: TextIO) -> bool:
    """True for a terminal, unless NO_COLOR is set to anything or the terminal is a dumb one."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, style: str) -> str:
    """The text in an ANSI style (`BOLD`, `RED` …), plain where the style is `PLAIN`."""
    return f"\x1b[{style}m{text}\x1b[0m" if style and text else text


def excerpt(text: str, limit: int = _EXCERPT_CHARS) -> str:
    """The text on one line, its middle left out where it is longer than `limit` characters."""
    return _shortened(text, limit).replace("\n", "\\n")


def _shortened(text: str, limit: int) -> str:
    kept = limit // 2
    return f"{text[:kept]} … {text[-kept:]}" if len(text) > limit else text


class EventPrinter:
    """Writes events to a text stream as they come."""

    def __init__(self, out: TextIO, *, colour: bool) -> None:
        self._out = out
        self._colour = colour
        self._bar = _encodable("│", "|", out)
        self._row: Hashable = None
        self._at_line_start = False

    def show(self, event: Event) -> None:
        """Write one event; a piece of a text, of a thought or of an argument continues its row."""
        match event:
            case Text(text):
                self._write("text", "text", text)
            case ThinkingStart():
                self.close_row()
            case ThinkingDelta(delta):
                self._write("thinking", "thinking", delta, DIM)
            case ThinkingEnd():
                self.close_row()
            case ToolStart(id, name):
                self._whole_row("call", name, BOLD)
                self._whole_row("  id", id, DIM)
            case ToolArgDelta(id, _, key, delta):
                if key is not None:
                    self._write((id, key), f"  {key}", delta, CYAN)
            case ToolEnd(arguments_json=arguments_json, repairs=repairs):
                self._whole_row("end", excerpt(arguments_json), GREEN)
                if repairs:
                    self._whole_row("  mended", ", ".join(repairs), YELLOW)
            case ToolDropped(name=name, reason=reason, raw_block=raw_block):
                self._whole_row("dropped", f"{reason}: {name or 'no name'}", RED)
                self._whole_row("  was", excerpt(raw_block), DIM)
            case Stopped(reason):
                self._whole_row("stopped", reason, RED)

    def note(self, label: str, text: str, style: str = PLAIN) -> None:
        """Write a row of its own that is no event's."""
        self._whole_row(label, text, style)

    def close_row(self) -> None:
        """End the row that is being written, if there is one."""
        if self._row is not None and not self._at_line_start:
            self._out.write("\n")
        self._row = None

    def _whole_row(self, label: str, text: str, style: str) -> None:
        self.close_row()
        self._write(label, label, text, style)
        self.close_row()

    def _write(self, row: Hashable, label: str, text: str, style: str = PLAIN) -> None:
        if row != self._row:
            self.close_row()
            self._row = row
            self._begin_line(label)
        for number, line in enumerate(text.translate(_CONTROLS).split("\n")):
            if number:
                self._end_line()
            if line:
                self._continue_line()
                self._out.write(painted(line, style) if self._colour else line)

    def _begin_line(self, label: str) -> None:
        self._out.write(self._gutter(label))
        self._at_line_start = False

    def _continue_line(self) -> None:
        if self._at_line_start:
            self._begin_line("")

    def _end_line(self) -> None:
        """A row's next line begins only when there is something to write in it."""
        self._continue_line()
        self._out.write("\n")
        self._at_line_start = True

    def _gutter(self, label: str) -> str:
        gutter = f"{label.translate(_CONTROLS):<{_LABEL_WIDTH}} {self._bar} ".replace("\n", " ")
        return painted(gutter, DIM) if self._colour else gutter


class Tally:
    """What a stream came to: its calls, repairs and drops, and how much was held back at a time."""

    def __init__(self) -> None:
        self.calls = 0
        self.repairs: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.stopped: str | None = None
        self.most_held = 0

    @classmethod
    def of(cls, counts: Counts, most_held: int) -> "Tally":
        """That of a stream that was healed."""
        tally = cls()
        tally.calls, tally.repairs, tally.dropped = counts.calls, counts.repairs, counts.dropped
        tally.most_held = most_held
        return tally

    def count(self, event: Event) -> None:
        """Take one event into account."""
        match event:
            case ToolEnd(repairs=repairs):
                self.calls += 1
                self.repairs.update(repairs)
            case ToolDropped(reason=reason):
                self.dropped[reason] += 1
            case Stopped(reason):
                self.stopped = reason
            case _:
                pass

    def held(self, chars: int) -> None:
        """Note how many characters the scanner holds back after a chunk."""
        self.most_held = max(self.most_held, chars)

    def lines(self) -> Iterator[str]:
        """The summary, line by line."""
        yield f"calls    {self.calls}"
        yield f"repairs  {_counted(self.repairs)}"
        yield f"dropped  {_counted(self.dropped)}"
        yield f"held     at most {self.most_held} characters after a chunk"
        if self.stopped:
            yield f"stopped  {self.stopped}"


def explained(lines: Sequence[Explanation]) -> Iterator[str]:
    """What became of each chunk's text, a line a piece: the number of its chunk, its fate, the text, and why."""
    choices = {line.choice for line in lines}
    yield "chunk  fate       text"
    before = 0
    for line in lines:
        where = [f"choice {line.choice}"] if len(choices) > 1 else []
        where += [line.channel] if line.channel != "content" else []
        until = {None: "", 0: "held until the end"}.get(line.until, f"held until chunk {line.until}")
        notes = "; ".join(part for part in (*where, line.why, until) if part)
        number = "" if line.chunk == before else line.chunk
        text = json.dumps(_shortened(line.text, _EXPLAINED_CHARS), ensure_ascii=False).translate(_CONTROLS)
        yield f"{number:>5}  {line.fate:<9}  {text:<39}  {notes}".rstrip()
        before = line.chunk


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"


def _encodable(preferred: str, plain: str, out: TextIO) -> str:
    try:
        preferred.encode(out.encoding or "utf-8")
    except UnicodeEncodeError:
        return plain
    return preferred
