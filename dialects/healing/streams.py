"""Leaked markup in one stream of visible text: `StreamHealer` takes the text and answers with events.

The text goes through a dialect's scanner, if the pattern names one, and what that leaves as text through the thinking
healer. With the pattern `auto` the scanner is chosen on the way (`healing/auto.py`).
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from msgspec.structs import replace

from dialects.detection import Match, dialect_for_model
from dialects.engine.plain_tags import PlainTagScanner
from dialects.engine.scanner import MAX_HELD_CHARS, Scanner, UnknownTools
from dialects.events import Event, Text, ThinkingDelta, ToolArgDelta, ToolDropped, ToolEnd, ToolStart
from dialects.factory import create_inband_scanner, dialect_names
from dialects.healing.auto import AutoScanner, Handover
from dialects.healing.thinking import ThinkingScanner
from dialects.messages import Tool, read_tools

__all__ = ["AUTO", "THINKING", "StreamHealer", "pattern_for"]

AUTO, THINKING = "auto", "thinking"


def pattern_for(model_id: str) -> Match:
    """The pattern that heals the streams of a model: its dialect, `auto` between several, `thinking` where none is
    known. The reason says why. Raises TypeError if the id is no str."""
    match = dialect_for_model(model_id)
    if match.name is not None and match.name in dialect_names():
        return match
    if match.name is None and match.candidates:
        return Match(AUTO, match.candidates, f"{match.reason}; what the model writes decides")
    return Match(THINKING, (), f"{match.reason}; so only thinking is healed")


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


class StreamHealer:
    """Heals one stream at a time of visible text.

    pattern: a dialect's name, `thinking` (reasoning alone is lifted out), or `auto`.
    tools: those that the request offered. A call of another is text, as it stands there; with None every call counts.
    generation_prompt: what the prompt ended with; where it leaves thinking open, the text begins there.
    unknown_tools: `text`, or what becomes otherwise of a call of another tool: `keep` or `drop` it.
    scanner_options: those of `create_inband_scanner`. With `parse_thinking=False` thinking stays in the text.

    Raises what `create_inband_scanner` raises.
    """

    def __init__(
        self,
        pattern: str = AUTO,
        *,
        tools: Sequence[Tool | Mapping[str, Any]] | None = None,
        generation_prompt: str = "",
        unknown_tools: UnknownTools = "text",
        **scanner_options: Any,
    ) -> None:
        declared = read_tools(tools)
        self._names = None if declared is None or unknown_tools != "text" else {tool.name for tool in declared}
        kept: UnknownTools = "keep" if unknown_tools == "text" else unknown_tools
        self._options = {"tools": declared, "unknown_tools": kept, **scanner_options}
        self._parse_thinking = bool(scanner_options.get("parse_thinking", True))
        self._max_held_chars = scanner_options.get("max_held_chars", MAX_HELD_CHARS)
        self._prompt = generation_prompt
        self._scanners: dict[str, Scanner] = {}
        create_inband_scanner(dialect_names()[0], **self._options, generation_prompt=generation_prompt)  # checks them
        self._start = pattern
        if pattern == AUTO and generation_prompt:
            self._start = self._pattern_of_prompt()
        self._own = None if self._start in (AUTO, THINKING) else self._create(self._start, generation_prompt)
        """The scanner of the pattern, if that names a dialect."""
        self._reset()

    @property
    def pattern(self) -> str:
        """The pattern in use: `auto` only until it has decided."""
        return self._pattern

    @property
    def has_plain_tags(self) -> bool:
        """Whether the tags of the dialect in use are plain text, which a model may write as a draft."""
        return isinstance(self._dialect, PlainTagScanner)

    @property
    def held_chars(self) -> int:
        """How many characters are held back at the moment."""
        parts = (self._auto, self._dialect, self._thinking)
        drafted = self._draft.size if self._draft is not None else 0
        return drafted + self._unknown_chars + sum(part.held_chars for part in parts if part is not None)

    def feed(self, text: str) -> list[Event]:
        """The events that the next piece of the text gives. Raises TypeError for anything but a str."""
        return self._offered(self._feed(text))

    def feed_without_calls(self, text: str) -> list[Event]:
        """The same for a piece that came together with calls in the upstream's own field: the calls whose names become
        known in it are the same ones once more, and are left out, with all that follows of them."""
        events = self._feed(text)
        self._echoes.update(event.id for event in events if isinstance(event, ToolStart))
        return self._offered(events)

    def flush(self, *, truncated: bool = False) -> list[Event]:
        """The text is over; `truncated` says that generation was cut off. The healer is as new afterwards."""
        events: list[Event] = []
        if self._auto is not None:
            events += self._auto.flush(truncated=truncated)
            events += self._handed_over()
        if self._dialect is not None:
            events += self._behind(self._dialect.flush(truncated=truncated))
        if self._draft is not None:
            events += self._end_draft(is_draft=False)
        if self._auto is None and self._thinking is not None:
            events += self._thinking.flush()
        events = self._offered(events)
        self._reset()
        return events

    # The row of scanners.

    def _reset(self) -> None:
        self._pattern = self._start
        self._dialect: Scanner | None = self._own
        self._auto: AutoScanner | None = None
        self._thinking: ThinkingScanner | None = None
        self._draft: Draft | None = None
        self._cut = 0
        """How many characters of the dialect's text stand for some that are out already."""
        self._echoes: set[str] = set()
        self._unknown: str | None = None
        """The id of the open call whose tool was not offered."""
        self._unknown_chars = 0
        if self._start == AUTO:
            self._auto = self._auto_scanner()
        elif self._parse_thinking:
            opened = self._dialect is not None and self._dialect.thinking_open
            self._thinking = self._thinking_scanner("" if opened else self._prompt)

    def _thinking_scanner(self, generation_prompt: str) -> ThinkingScanner:
        return ThinkingScanner(generation_prompt=generation_prompt, max_held_chars=self._max_held_chars)

    def _auto_scanner(self) -> AutoScanner:
        return AutoScanner(
            self._scanner_of,
            parse_thinking=self._parse_thinking,
            generation_prompt=self._prompt,
            max_held_chars=self._max_held_chars,
        )

    def _create(self, name: str, generation_prompt: str) -> Scanner:
        return create_inband_scanner(name, **self._options, generation_prompt=generation_prompt)

    def _scanner_of(self, name: str) -> Scanner:
        if name not in self._scanners:
            self._scanners[name] = self._create(name, "")
        return self._scanners[name]

    def _pattern_of_prompt(self) -> str:
        """The prompt itself may say which dialect it is."""
        probe = AutoScanner(self._scanner_of, max_held_chars=self._max_held_chars)
        probe.feed(self._prompt)
        return probe.handover.name if probe.handover is not None else AUTO

    def _feed(self, text: str) -> list[Event]:
        if self._auto is not None:
            events = self._auto.feed(text)
            return events + self._handed_over()
        if self._dialect is not None:
            return self._behind(self._dialect.feed(text))
        if self._thinking is not None:
            return self._thinking.feed(text)
        if not isinstance(text, str):
            raise TypeError(f"feed takes a str, not {type(text).__name__}")
        return [Text(text)] if text else []

    def _handed_over(self) -> list[Event]:
        """Go on with the scanner that was decided on, if one was."""
        decided: Handover | None = self._auto.handover if self._auto is not None else None
        if decided is None:
            return []
        self._auto = None
        self._pattern = decided.name
        self._dialect = self._create(decided.name, decided.generation_prompt)
        if self._parse_thinking:
            self._thinking = self._thinking_scanner(decided.thinking)
        self._cut = len(decided.shown)
        return self._behind(self._dialect.feed(decided.shown + decided.rest))

    def _behind(self, events: list[Event]) -> list[Event]:
        """What the thinking healer makes of a dialect's text."""
        out: list[Event] = []
        for event in events:
            healer = self._thinking
            if healer is not None and (
                self._draft is not None
                or (isinstance(event, ToolStart) and healer.thinking_open and self.has_plain_tags)
            ):
                out += self._drafted(event, healer)
                continue
            if isinstance(event, Text):
                if self._cut:
                    text = event.text[self._cut :]
                    self._cut -= len(event.text) - len(text)
                    event = Text(text)
                if healer is None:
                    out += [event] if event.text else []
                else:
                    out += healer.feed(event.text)
                continue
            if healer is not None and not isinstance(event, ToolArgDelta | ThinkingDelta):
                out += healer.settle()
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
            [
                replace(event, repairs=("unclosed-thinking", *event.repairs)) if isinstance(event, ToolEnd) else event
                for event in draft.events
            ]
        )

    # Calls that do not count.

    def _offered(self, events: list[Event]) -> list[Event]:
        """The events without those of echoes, and with the calls of tools that were not offered as text."""
        if self._names is None and not self._echoes:
            return events
        out: list[Event] = []
        for event in events:
            match event:
                case (
                    ToolStart(id=call_id) | ToolArgDelta(id=call_id) | ToolEnd(id=call_id) | ToolDropped(id=call_id)
                ) if call_id in self._echoes:
                    continue
                case ToolStart(name=name, id=call_id) if self._names is not None and name not in self._names:
                    self._unknown = call_id
                case ToolArgDelta(id=call_id, json=piece) if call_id == self._unknown:
                    self._unknown_chars += len(piece)
                case ToolEnd(id=call_id, raw_block=raw) | ToolDropped(id=call_id, raw_block=raw) if (
                    call_id == self._unknown
                ):
                    self._unknown, self._unknown_chars = None, 0
                    out.append(Text(raw))
                case _:
                    out.append(event)
        return out
