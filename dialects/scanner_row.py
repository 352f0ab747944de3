"""The scanners that one stream of text goes through, in a row: a decider where the dialect is not known, then the
dialect's scanner, and behind that the thinking healer, which reads what the scanner leaves as text.

`AutoScanner` is such a row that begins with a decider, `dialects.healing.StreamHealer` one that leaves calls out.
"""

from copy import deepcopy
from typing import Any

from msgspec.structs import replace

from dialects.auto import Decider, Handover, Match
from dialects.engine.dialect import Dialect
from dialects.engine.plain_tags import PlainTagScanner
from dialects.engine.scanner import Scanner, last_turn
from dialects.events import Event, Text, ThinkingDelta, ToolArgDelta, ToolDropped, ToolEnd, ToolStart
from dialects.thinking import ThinkingScanner

__all__ = ["AUTO", "THINKING", "AutoScanner", "ScannerRow"]

AUTO, THINKING = "auto", "thinking"


class Draft:
    """What follows the beginning of a call that may be a draft."""

    def __init__(self, healer: ThinkingScanner) -> None:
        self.healer = healer
        """The thinking healer as it will be if this is a draft."""
        self.said: list[Event] = []
        """What it says then."""
        self.events: list[Event] = []
        """What came from the dialect, which counts if it is none."""
        self.size = 0


class ScannerRow:
    """Reads one stream at a time.

    dialects: those that `auto` decides between, and one of which `pattern` may name.
    pattern: a dialect's name, `thinking` (no calls are read), or `auto`.
    options: those of `create_inband_scanner`.

    Raises what a scanner raises for options that are none.
    """

    def __init__(self, dialects: tuple[Dialect, ...], pattern: str, **options: Any) -> None:
        self._dialects = {dialect.name: dialect for dialect in dialects if dialect.scanner is not None}
        prompt: str = options.pop("generation_prompt", "")
        self._options = options
        openers = {opener for one in dialects if one.scanner for opener in one.scanner.assistant_openers}
        self._prompt = last_turn(prompt, openers) if isinstance(prompt, str) else prompt
        """The prompt's last turn: those before it name the tags of calls and of thinking without opening them."""
        checked = self._new(next(iter(self._dialects)), self._prompt)
        self._parse_thinking, self._max_held_chars = checked.parse_thinking, checked.max_held_chars
        self._unknown_match = Match(
            None, tuple(self._dialects), "no marker has come that tells calls of one dialect from those of others"
        )
        self._of_prompt = self._decided_by_prompt() if pattern == AUTO and self._prompt else None
        self._start = pattern if self._of_prompt is None else self._of_prompt.name
        self._own = (
            None
            if self._start in (AUTO, THINKING)
            else self._create(self._start, prompt if self._start == pattern else self._prompt)
        )
        """The scanner of the pattern, if that names a dialect."""
        self._match = self._unknown_match if self._of_prompt is None else _match(self._of_prompt)
        self._reset()

    @property
    def pattern(self) -> str:
        """The pattern in use: `auto` only until it has decided."""
        return self._pattern

    @property
    def match(self) -> Match:
        """What `auto` has found out: the dialect's `name` where that is sure, else the `candidates`; and why. Behind
        `flush` it is still that of the stream that is over, until the next one begins."""
        return self._match

    @property
    def has_plain_tags(self) -> bool:
        """Whether the tags of the dialect in use are plain text, which a model may write as a draft."""
        return isinstance(self._dialect, PlainTagScanner)

    @property
    def held_chars(self) -> int:
        """How many characters of the stream are held back at the moment."""
        parts = (self._decider, self._dialect, self._thinking)
        drafted = self._draft.size if self._draft is not None else 0
        return drafted + sum(part.held_chars for part in parts if part is not None)

    def feed(self, text: str) -> list[Event]:
        """The events that the next piece of the stream gives. Raises TypeError for anything but a str."""
        if self._decider is not None:
            self._match = self._unknown_match
            events = self._decider.feed(text)
            return events + self._handed_over()
        if self._dialect is not None:
            return self._behind(self._dialect.feed(text))
        if self._thinking is not None:
            return self._thinking.feed(text)
        if not isinstance(text, str):
            raise TypeError(f"feed takes a str, not {type(text).__name__}")
        return [Text(text)] if text else []

    def flush(self, *, truncated: bool = False) -> list[Event]:
        """The stream is over: the events that were held back. `truncated` says that generation was cut off. Everything
        is as new afterwards."""
        events: list[Event] = []
        if self._decider is not None:
            self._match = self._unknown_match
            events += self._decider.flush(truncated=truncated)
            events += self._handed_over()
        if self._dialect is not None:
            events += self._behind(self._dialect.flush(truncated=truncated))
        if self._draft is not None:
            events += self._end_draft(is_draft=False)
        if self._decider is None and self._thinking is not None:
            events += self._thinking.flush()
        self._reset()
        return events

    # The row.

    def _reset(self) -> None:
        self._pattern = self._start
        self._dialect: Scanner | None = self._own
        self._decider: Decider | None = None
        self._thinking: ThinkingScanner | None = None
        self._draft: Draft | None = None
        self._interrupter = ""
        """The id of the call of special tokens that ended the thinking which the healer had open."""
        self._cut = 0
        """How many characters of the dialect's text stand for some that are out already."""
        if self._start == AUTO:
            self._decider = self._new_decider()
        elif self._parse_thinking:
            opened = self._dialect is not None and self._dialect.thinking_open
            self._thinking = self._thinking_scanner("" if opened else self._prompt)

    def _thinking_scanner(self, generation_prompt: str) -> ThinkingScanner:
        return ThinkingScanner(generation_prompt=generation_prompt, max_held_chars=self._max_held_chars)

    def _new_decider(self) -> Decider:
        return Decider(tuple(self._dialects.values()), self._new, **self._decider_options)

    @property
    def _decider_options(self) -> dict[str, Any]:
        return {
            "parse_thinking": self._parse_thinking,
            "generation_prompt": self._prompt,
            "max_held_chars": self._max_held_chars,
        }

    def _create(self, name: str, generation_prompt: str) -> Scanner:
        """The scanner that reads the stream."""
        return self._new(name, generation_prompt)

    def _new(self, name: str, generation_prompt: str) -> Scanner:
        scanner = self._dialects[name].scanner
        assert scanner is not None
        return scanner(**self._options, generation_prompt=generation_prompt)

    def _decided_by_prompt(self) -> Handover | None:
        """The prompt itself may say which dialect it is."""
        reader = Decider(tuple(self._dialects.values()), self._new, max_held_chars=self._max_held_chars)
        reader.feed(self._prompt)
        return reader.handover

    def _handed_over(self) -> list[Event]:
        """Go on with the scanner that was decided on, if one was."""
        decided = self._decider.handover if self._decider is not None else None
        if decided is None:
            return []
        self._decider = None
        self._pattern, self._match = decided.name, _match(decided)
        self._dialect = self._create(decided.name, decided.generation_prompt)
        if self._parse_thinking:
            self._thinking = self._thinking_scanner(decided.thinking)
        self._cut = len(decided.shown)
        return self._behind(self._dialect.feed(decided.shown + decided.rest))

    def _behind(self, events: list[Event]) -> list[Event]:
        """What the thinking healer makes of a dialect's text."""
        out: list[Event] = []
        quotes = {id(event) for event in self._dialect.quotes} if self._dialect is not None else ()
        for event in events:
            healer = self._thinking
            if healer is not None and (
                self._draft is not None
                or (isinstance(event, ToolStart) and healer.thinking_open and self.has_plain_tags)
            ):
                out += self._drafted(event, healer)
                continue
            if isinstance(event, Text):
                text = event.text[self._cut :]
                self._cut -= len(event.text) - len(text)
                if healer is None:
                    out += [Text(text)] if text else []
                else:
                    out += healer.quote(text) if id(event) in quotes else healer.feed(text)
                continue
            if healer is not None and not isinstance(event, ToolArgDelta | ThinkingDelta):
                if isinstance(event, ToolStart) and healer.thinking_open:
                    self._interrupter = event.id
                out += healer.settle()
            if isinstance(event, ToolEnd) and event.id == self._interrupter:
                event = _out_of_thinking(event)
            out.append(event)
        return out

    def _drafted(self, event: Event, healer: ThinkingScanner) -> list[Event]:
        """A call in plain-text tags stands in thinking that the dialect does not know. It is a draft if that thinking
        ends behind it, and real if it never does; a copy of the healer finds out."""
        draft = self._draft = self._draft or Draft(deepcopy(healer))
        draft.events.append(event)
        match event:
            case Text(text):
                said = draft.healer.feed(text)
            case ToolEnd(raw_block=text) | ToolDropped(raw_block=text):
                said = draft.healer.think(f"\n{text}")
            case ThinkingDelta(text):
                said = draft.healer.think(text)
            case _:
                return []
        draft.said += said
        draft.size += len(text)
        if draft.healer.thinking_open and draft.size <= self._max_held_chars:
            return []
        return self._end_draft(is_draft=True)

    def _end_draft(self, *, is_draft: bool) -> list[Event]:
        draft, self._draft = self._draft, None
        assert draft is not None
        assert self._thinking is not None
        if is_draft:
            self._thinking = draft.healer
            return draft.said
        return self._thinking.settle() + self._behind(
            [_out_of_thinking(event) if isinstance(event, ToolEnd) else event for event in draft.events]
        )


class AutoScanner(ScannerRow):
    """Reads a stream whose dialect the stream itself tells, by the first marker that its calls are written with; until
    then text, and every family's reasoning. The dialect of a stream never changes once it is known. See `ScannerRow`.
    """

    def __init__(self, dialects: tuple[Dialect, ...], **options: Any) -> None:
        super().__init__(dialects, AUTO, **options)

    def _reset(self) -> None:
        self._has_called = False
        super()._reset()

    def _behind(self, events: list[Event]) -> list[Event]:
        """As ever; but a first call that the dialect cannot read makes it doubtful that it is the dialect."""
        out = super()._behind(events)
        for event in out:
            if isinstance(event, ToolDropped) and not self._has_called and event.reason in ("malformed", "nameless"):
                reason = f"{self._match.reason}; but its first call cannot be read"
                self._match = replace(self._match, name=None, reason=reason)
            self._has_called = self._has_called or isinstance(event, ToolEnd | ToolDropped)
        return out


def _out_of_thinking(call: ToolEnd) -> ToolEnd:
    """A call that stands in thinking which nothing closes."""
    return replace(call, repairs=("unclosed-thinking", *call.repairs))


def _match(decided: Handover) -> Match:
    is_sure = len(decided.candidates) == 1
    reason = f"{decided.sign!r} begins only in {' and '.join(decided.candidates)}"
    return Match(decided.name if is_sure else None, decided.candidates, reason)
