"""One choice of a chat completion, healed: the deltas that the upstream sent in, those that the client gets out.

Visible text and reasoning each go through a `StreamHealer`. Reasoning has a policy of its own for calls in it: where
the dialect's tags are plain text, a call in reasoning is a draft, and stays there, if anything follows the reasoning;
if the turn ends with it, the call is real. Until that is known it is held, with what follows it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from dialects.engine.scanner import MAX_HELD_CHARS
from dialects.events import Event, Stopped, Text, ThinkingDelta, ToolArgDelta, ToolDropped, ToolEnd, ToolStart
from dialects.factory import dialect_names
from dialects.healing.calls import CallLine, Mode
from dialects.healing.counts import Counts
from dialects.healing.logprobs import Logprobs
from dialects.healing.names import healed_name
from dialects.healing.streams import AUTO, THINKING, StreamHealer
from dialects.messages import Tool

__all__ = ["ChoiceHealer", "Part", "ReasoningField", "Settings"]

ReasoningField: TypeAlias = Literal["reasoning_content", "reasoning", "both"]
REASONING_FIELDS = ("reasoning_content", "reasoning")
_HEALED = ("role", "content", "tool_calls", *REASONING_FIELDS)
_CUT = ("length", "content_filter")


class Settings(msgspec.Struct, frozen=True):
    """What all choices of a stream have in common."""

    pattern: str
    tools: tuple[Tool, ...] | None
    recovers: bool
    """Whether calls found in text are given to the client; else they are removed."""
    mode: Mode
    reasoning_fields: tuple[str, ...]
    generation_prompt: str
    scanner_options: dict[str, Any]
    counts: Counts

    @property
    def max_held_chars(self) -> int:
        """How much may be held until it is known what it is."""
        return int(self.scanner_options.get("max_held_chars", MAX_HELD_CHARS))

    create: Callable[..., StreamHealer]
    """Makes the healer of one channel (`content` or `reasoning`) of one choice."""

    def healer(self, choice: int, channel: str, generation_prompt: str) -> StreamHealer:
        """A healer for one channel of one choice."""
        options: dict[str, Any] = dict(self.scanner_options)
        if not self.recovers:
            options["unknown_tools"] = "keep"
        options |= {"tools": self.tools, "generation_prompt": generation_prompt}
        return self.create(choice, channel, self.pattern, **options)


class Part(msgspec.Struct):
    """One thing to send: a delta, or the finish reason, with the choice's other fields."""

    delta: dict[str, Any]
    finish_reason: str | None = None
    fields: dict[str, Any] = {}


class ChoiceHealer:
    """Heals one choice. `feed` takes the choice objects of its chunks in their order, `finish` says that it is over."""

    def __init__(self, settings: Settings, index: int = 0) -> None:
        self._settings = settings
        self._index = index
        self._content: StreamHealer | None = None
        self._reasoning: StreamHealer | None = None
        self._has_reasoning = False
        self._has_thought = False
        """Whether reasoning that has left does not end with a newline."""
        self._draft: list[Event] | None = None
        """What the reasoning said from a call on that may be a draft."""
        self._draft_chars = 0
        self._line = CallLine(settings.mode, self._name, settings.counts)
        self._logprobs = Logprobs()
        self._role_sent = False
        self._parts: list[Part] = []
        self._pending: dict[str, Any] = {}
        """Fields of the choice that wait for something to go out with."""
        self._finish_fields: dict[str, Any] = {}
        self._cut_call = False
        self.finish_reason: str | None = None
        """What the upstream said, as far as it has."""
        self.done = False
        """Whether `finish` was called."""
        self.stopped: str | None = None
        """Why reading stopped, if the model began to write another's turn."""

    def feed(self, choice: Mapping[str, Any]) -> list[Part]:
        """The choice object of the next chunk. What comes after `finish` is dropped."""
        if self.done:
            return []
        given = choice.get("delta")
        delta: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        content = delta.get("content")
        is_text = isinstance(content, str)
        fields = {key: value for key, value in choice.items() if key not in ("index", "delta", "finish_reason")}
        logprobs = self._take_logprobs(fields, content if isinstance(content, str) else "")
        reason = choice.get("finish_reason")
        if reason:
            self.finish_reason = self.finish_reason if self.finish_reason in _CUT else reason
            self._finish_fields.update(fields)
        else:
            self._pending.update(fields)
        kept = _HEALED if is_text or content is None else tuple(key for key in _HEALED if key != "content")
        extra = {key: value for key, value in delta.items() if key not in kept}
        self._send_role(delta.get("role"), extra)
        self._feed_reasoning(delta)
        if isinstance(content, str) and content:
            self._end_reasoning(is_draft=True, truncated=False)
            self._say(self._content_healer().feed(content), logprobs)
        self._feed_calls(delta.get("tool_calls"))
        return self._taken()

    def finish(self, *, truncated: bool = False) -> list[Part]:
        """The choice is over: what was held, and then the finish reason, once, in a part of its own."""
        if self.done:
            return []
        is_cut = truncated or self.finish_reason in _CUT
        self._send_role(None, {})
        self._end_reasoning(is_draft=False, truncated=is_cut)
        if self._content is not None:
            self._say(self._content.flush(truncated=is_cut), None)
        lost_end = self.finish_reason is None
        self._line.finish(truncated=is_cut or lost_end)
        self._take_calls()
        parts = self._taken()
        self.done = True
        reason = self.finish_reason
        if reason is None:
            reason = "length" if truncated or self._cut_call or self._line.is_cut else "stop"
        if reason == "stop" and self._line.completed:
            reason = "tool_calls"
        elif reason == "tool_calls" and not self._line.any_sent:
            reason = "stop"
        fields = {**self._pending, **self._finish_fields}
        return [*parts, Part({}, reason, fields)]

    def interrupt(self) -> list[Part]:
        """The upstream failed: text and reasoning that were held. No call is begun or completed, and there is no finish
        reason. What comes after it is dropped."""
        if self.done:
            return []
        self.done = True
        for events, in_reasoning in self._cut_channels():
            for event in events:
                if isinstance(event, Text | ThinkingDelta):
                    self._hear(event, in_reasoning=in_reasoning)
        return self._taken()

    def _cut_channels(self) -> Iterator[tuple[list[Event], bool]]:
        if self._reasoning is not None:
            yield [*(self._draft or ()), *self._reasoning.flush(truncated=True)], True
        if self._content is not None:
            yield self._content.flush(truncated=True), False

    @property
    def held_chars(self) -> int:
        """How many characters are held back at the moment."""
        channels = (self._reasoning, self._content)
        scanned = sum(channel.held_chars for channel in channels if channel is not None)
        return scanned + self._draft_chars + self._line.held_chars

    # What comes in.

    def _send_role(self, role: object, extra: dict[str, Any]) -> None:
        if not self._role_sent:
            self._role_sent = True
            self._send({"role": role if isinstance(role, str) and role else "assistant", "content": None, **extra})
        elif any(value is not None for value in extra.values()):
            self._send(extra)

    def _take_logprobs(self, fields: dict[str, Any], content: str) -> dict[str, Any] | None:
        """Note the log probabilities of the text; the object they came in. Those of no text stay where they are."""
        given = fields.get("logprobs")
        entries = given.get("content") if isinstance(given, Mapping) else None
        self._logprobs.feed(content, entries if isinstance(entries, list) else None)
        if not content or not isinstance(given, Mapping):
            return None
        del fields["logprobs"]
        return dict(given)

    def _feed_reasoning(self, delta: Mapping[str, Any]) -> None:
        given = (delta.get(field) for field in REASONING_FIELDS)
        text = next((value for value in given if isinstance(value, str) and value), "")
        if not text:
            return
        self._has_reasoning = True
        if self._reasoning is None:
            self._reasoning = self._settings.healer(self._index, "reasoning", "")
        for event in self._reasoning.feed(text):
            self._reason(event)

    def _reason(self, event: Event) -> None:
        """An event of the reasoning channel."""
        assert self._reasoning is not None
        if self._draft is None and self._reasoning.has_plain_tags and isinstance(event, ToolStart):
            self._draft = []
        if self._draft is None:
            self._hear(event, in_reasoning=True)
            return
        self._draft.append(event)
        self._draft_chars += _chars(event)
        if self._draft_chars > self._settings.max_held_chars and not isinstance(event, ToolStart | ToolArgDelta):
            self._end_draft(is_draft=True)

    def _end_reasoning(self, *, is_draft: bool, truncated: bool) -> None:
        """The reasoning is over; a call that is held was a draft, or was none."""
        if self._reasoning is None:
            return
        for event in self._reasoning.flush(truncated=truncated):
            self._reason(event)
        self._reasoning = None
        self._end_draft(is_draft=is_draft)

    def _end_draft(self, *, is_draft: bool) -> None:
        held, self._draft, self._draft_chars = self._draft or (), None, 0
        for event in held:
            if is_draft and isinstance(event, ToolEnd | ToolDropped):
                self._settings.counts.drafted(event.raw_block)
                self._think("\n" * self._has_thought + event.raw_block)
            elif not is_draft or not isinstance(event, ToolStart | ToolArgDelta):
                self._hear(event, in_reasoning=True)

    def _content_healer(self) -> StreamHealer:
        if self._content is None:
            prompt = "" if self._has_reasoning else self._settings.generation_prompt
            self._content = self._settings.healer(self._index, "content", prompt)
        return self._content

    def _feed_calls(self, entries: object) -> None:
        if not isinstance(entries, list | tuple) or not entries:
            return
        self._end_reasoning(is_draft=True, truncated=False)
        for entry in entries:
            if isinstance(entry, Mapping):
                self._line.native(entry)
        self._take_calls()

    def _name(self, name: str) -> tuple[str, str | None]:
        """A native call's name without markup."""
        pattern = self._settings.pattern
        tools = self._settings.tools
        known = None if tools is None else {tool.name: tool for tool in tools}
        return healed_name(name, dialect_names() if pattern in (AUTO, THINKING) else (pattern,), known)

    # What goes out.

    def _say(self, events: list[Event], logprobs: dict[str, Any] | None) -> None:
        """Events of the visible text."""
        for event in events:
            self._hear(event, in_reasoning=False, logprobs=logprobs)

    def _hear(self, event: Event, *, in_reasoning: bool, logprobs: dict[str, Any] | None = None) -> None:
        match event:
            case Text(text) | ThinkingDelta(text) if in_reasoning or isinstance(event, ThinkingDelta):
                if not in_reasoning:
                    self._logprobs.take(text)
                self._think(text)
            case Text(text):
                entries = self._logprobs.take(text)
                fields = {"logprobs": {**(logprobs or {}), "content": entries}} if entries else {}
                self._send({"content": text}, fields)
            case ToolStart() | ToolArgDelta() | ToolEnd() | ToolDropped():
                if isinstance(event, ToolEnd | ToolDropped) and not in_reasoning:
                    self._logprobs.take(event.raw_block)
                self._cut_call = self._cut_call or (isinstance(event, ToolDropped) and event.reason == "unfinished")
                if isinstance(event, ToolEnd | ToolDropped):
                    self._settings.counts.found(event, recovers=self._settings.recovers)
                if self._settings.recovers:
                    self._line.healed(event)
                    self._take_calls()
            case Stopped(reason):
                self.stopped = reason

    def _think(self, text: str) -> None:
        self._has_thought = not text.endswith("\n")
        self._send(dict.fromkeys(self._settings.reasoning_fields, text))

    def _take_calls(self) -> None:
        for delta in self._line.take():
            self._send(delta)

    def _send(self, delta: dict[str, Any], fields: dict[str, Any] | None = None) -> None:
        """Put a delta on its way; it is joined with the one before if both are text of one kind."""
        last = self._parts[-1] if self._parts else None
        if last is not None and not fields and not last.fields and _joins(last.delta, delta):
            last.delta = {key: value + delta[key] for key, value in last.delta.items()}
            return
        self._parts.append(Part(delta, None, fields or {}))

    def _taken(self) -> list[Part]:
        parts, self._parts = self._parts, []
        if parts and self._pending:
            parts[0].fields = {**self._pending, **parts[0].fields}
            self._pending = {}
        return parts


def _joins(before: dict[str, Any], after: dict[str, Any]) -> bool:
    texts = {"content", *REASONING_FIELDS}
    return before.keys() == after.keys() and before.keys() <= texts and None not in before.values()


def _chars(event: Event) -> int:
    """How many characters of the stream an event holds."""
    match event:
        case Text(text) | ThinkingDelta(text) | ToolEnd(raw_block=text) | ToolDropped(raw_block=text):
            return len(text)
        case _:
            return 0
