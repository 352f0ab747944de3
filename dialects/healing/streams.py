"""Leaked markup in one stream of visible text: `StreamHealer` takes the text and answers with events.

The text goes through a dialect's scanner, if the pattern names one, and what that leaves as text through the thinking
healer (`dialects/thinking.py`). With the pattern `auto` the scanner is chosen on the way (`dialects/auto.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dialects.auto import AutoScanner, Match
from dialects.detection import dialect_for_model
from dialects.engine.plain_tags import PlainTagScanner
from dialects.engine.scanner import InbandScanner, Scanner, UnknownTools
from dialects.events import Event, Text, ToolArgDelta, ToolDropped, ToolEnd, ToolStart
from dialects.factory import AUTO, create_inband_scanner, dialect_names
from dialects.messages import Tool, read_tools
from dialects.thinking import ThinkingHealer, ThinkingScanner

__all__ = ["AUTO", "THINKING", "StreamHealer", "pattern_for"]

THINKING = "thinking"


def pattern_for(model_id: str) -> Match:
    """The pattern that heals the streams of a model: its dialect, `auto` between several, `thinking` where none is
    known. The reason says why. Raises TypeError if the id is no str."""
    match = dialect_for_model(model_id)
    if match.name is not None and match.name in dialect_names():
        return match
    if match.name is None and match.candidates:
        return Match(AUTO, match.candidates, f"{match.reason}; what the model writes decides")
    return Match(THINKING, (), f"{match.reason}; so only thinking is healed")


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
        options: dict[str, Any] = {
            "tools": declared,
            "unknown_tools": "keep" if unknown_tools == "text" else unknown_tools,
            "generation_prompt": generation_prompt,
            **scanner_options,
        }
        self._pattern = pattern
        self._reader = _reader(pattern, options)
        self._reset()

    @property
    def pattern(self) -> str:
        """The pattern in use: `auto` only until it has decided."""
        reader = self._reader
        return (reader.name or AUTO) if isinstance(reader, AutoScanner) else self._pattern

    @property
    def has_plain_tags(self) -> bool:
        """Whether the tags of the dialect in use are plain text, which a model may write as a draft."""
        reader = self._reader
        return isinstance(reader, AutoScanner | ThinkingHealer) and isinstance(reader.scanner, PlainTagScanner)

    @property
    def held_chars(self) -> int:
        """How many characters are held back at the moment."""
        return self._reader.held_chars

    def feed(self, text: str) -> list[Event]:
        """The events that the next piece of the text gives. Raises TypeError for anything but a str."""
        return self._offered(self._reader.feed(text))

    def feed_without_calls(self, text: str) -> list[Event]:
        """The same for a piece that came together with calls in the upstream's own field: the calls whose names become
        known in it are the same ones once more, and are left out, with all that follows of them."""
        events = self._reader.feed(text)
        self._echoes.update(event.id for event in events if isinstance(event, ToolStart))
        return self._offered(events)

    def flush(self, *, truncated: bool = False) -> list[Event]:
        """The text is over; `truncated` says that generation was cut off. The healer is as new afterwards."""
        events = self._offered(self._reader.flush(truncated=truncated))
        self._reset()
        return events

    def _reset(self) -> None:
        self._echoes: set[str] = set()
        self._unknown: str | None = None
        """The id of the open call whose tool was not offered."""

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
                case ToolArgDelta(id=call_id) if call_id == self._unknown:
                    continue
                case ToolEnd(id=call_id, raw_block=raw) | ToolDropped(id=call_id, raw_block=raw) if (
                    call_id == self._unknown
                ):
                    self._unknown = None
                    out.append(Text(raw))
                case _:
                    out.append(event)
        return out


def _reader(pattern: str, options: dict[str, Any]) -> InbandScanner:
    """What reads the text."""
    if pattern != THINKING:
        scanner = create_inband_scanner(pattern, **options)
        return ThinkingHealer(scanner) if isinstance(scanner, Scanner) else scanner
    checked = create_inband_scanner(dialect_names()[0], **options)
    assert isinstance(checked, Scanner)
    if not checked.parse_thinking:
        return _Unread()
    return ThinkingScanner(generation_prompt=checked.generation_prompt, max_held_chars=checked.max_held_chars)


class _Unread:
    """The reader of text in which nothing is to be found."""

    held_chars = 0

    def feed(self, text: str) -> list[Event]:
        if not isinstance(text, str):
            raise TypeError(f"feed takes a str, not {type(text).__name__}")
        return [Text(text)] if text else []

    def flush(self, *, truncated: bool = False) -> list[Event]:
        return []
