"""Leaked markup in one stream of visible text: `StreamHealer` takes the text and answers with events.

The text goes through a row of scanners (`dialects/scanner_row.py`): a dialect's, if the pattern names one or `auto` has
decided on one, and the thinking healer (`dialects/thinking.py`). What is left out then are the calls that do not count.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dialects.auto import Match
from dialects.detection import dialect_for_model
from dialects.engine.scanner import UnknownTools
from dialects.events import Event, Text, ToolArgDelta, ToolDropped, ToolEnd, ToolStart
from dialects.factory import UnknownDialectError, all_dialects, create_inband_scanner, dialect_names, get_dialect
from dialects.messages import Tool, read_tools
from dialects.scanner_row import AUTO, THINKING, ScannerRow

__all__ = ["AUTO", "THINKING", "StreamHealer", "pattern_for"]


def pattern_for(model_id: str) -> Match:
    """The pattern that heals the streams of a model: its dialect, `auto` between several, `thinking` where none is
    known. The reason says why. Raises TypeError if the id is no str."""
    match = dialect_for_model(model_id)
    if match.name is not None and match.name in dialect_names():
        return match
    if match.name is None and match.candidates:
        return Match(AUTO, match.candidates, f"{match.reason}; what the model writes decides")
    return Match(THINKING, (), f"{match.reason}; so only thinking is healed")


def _check(pattern: str, options: dict[str, Any]) -> None:
    """Raises what `create_inband_scanner` raises for what is no pattern and no option."""
    try:
        create_inband_scanner(pattern, **options)
    except UnknownDialectError as error:
        raise UnknownDialectError(f"{error}; a pattern may also be {AUTO!r} or {THINKING!r}") from None


class StreamHealer(ScannerRow):
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
        options: dict[str, Any] = {"tools": declared, "unknown_tools": unknown_tools, **scanner_options}
        options["generation_prompt"] = generation_prompt
        if pattern != THINKING:
            _check(pattern, options)
        self._echoes: set[str] = set()
        dialects = all_dialects() if pattern in (AUTO, THINKING) else (get_dialect(pattern),)
        super().__init__(dialects, pattern, **options)

    def feed(self, text: str) -> list[Event]:
        """The events that the next piece of the text gives. Raises TypeError for anything but a str."""
        return self._offered(super().feed(text))

    def feed_without_calls(self, text: str) -> list[Event]:
        """The same for a piece that came together with calls in the upstream's own field: the calls whose names become
        known in it are the same ones once more, and are left out, with all that follows of them."""
        events = super().feed(text)
        self._echoes.update(event.id for event in events if isinstance(event, ToolStart))
        return self._offered(events)

    def flush(self, *, truncated: bool = False) -> list[Event]:
        """The text is over; `truncated` says that generation was cut off. The healer is as new afterwards."""
        events = self._offered(super().flush(truncated=truncated))
        self._echoes.clear()
        return events

    def not_offered(self, name: str | None) -> bool:
        """Whether a call of that tool is text."""
        return self._names is not None and name is not None and name not in self._names

    # Calls that do not count.

    def _offered(self, events: list[Event]) -> list[Event]:
        """The events without those of echoes. A call that is none, of a tool that was not offered, is text, too."""
        if self._names is None and not self._echoes:
            return events
        out: list[Event] = []
        for event in events:
            match event:
                case (
                    ToolStart(id=call_id) | ToolArgDelta(id=call_id) | ToolEnd(id=call_id) | ToolDropped(id=call_id)
                ) if call_id in self._echoes:
                    continue
                case ToolDropped(name=name, raw_block=raw) if self.not_offered(name):
                    out.append(Text(raw))
                case _:
                    out.append(event)
        return out
