"""What one dialect is: its facts, its scanner and its renderer, under one name.

A dialect's file defines one subclass of `Dialect` and one instance of it, which the factory's table names. What a
caller uses are the `render_` methods: they take OpenAI-style dicts or the package's own types, check them, and never
let a lone surrogate out. A dialect writes the hooks below them, most of which end in `_text`; those get checked values.

A whole conversation goes through `answered` first. It gives every call the id that the dialect writes for it, and every
result the id and the name of the call that it answers, so that no hook has to look at more than one message. Then each
message, and each run of results, becomes a turn.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from dialects.engine.rendering import without_surrogates
from dialects.engine.turns import Turns
from dialects.messages import (
    CallLike,
    Message,
    ResultLike,
    Tool,
    ToolCall,
    ToolLike,
    ToolResult,
    read_call,
    read_calls,
    read_results,
    read_tools,
)

if TYPE_CHECKING:
    from dialects.engine.scanner import Scanner

__all__ = ["Dialect", "Tools"]

Tools = tuple[Tool, ...] | None

_PACKAGE = Path(__file__).resolve().parents[1]
_IS_CHECKOUT = (_PACKAGE.parent / "pyproject.toml").is_file()
_PROMPT_FOLDERS = (_PACKAGE / "prompts", *([_PACKAGE.parent / "prompts"] if _IS_CHECKOUT else []))
"""Where a wheel carries the guides, and where they are beside the package in a checkout."""


class Dialect(ABC):
    """One dialect. Subclasses set the facts and write the hooks; instances hold no state."""

    name: ClassVar[str]
    """The name callers use."""
    title: ClassVar[str]
    """The name for people, with the models that speak it."""
    models: ClassVar[str]
    """A regular expression found (whatever the case) in the ids of the models that speak it."""
    rank: ClassVar[int] = 0
    """Where several dialects fit a model's id, those of the lowest rank win. Below zero: models of other families were
    trained to speak this one, and keep their family's name in their ids."""
    control_tokens: ClassVar[tuple[str, ...]]
    """The family's control tokens: what must never be visible, nor smuggled in through a user's text."""
    scanner: ClassVar["type[Scanner] | None"] = None
    """The class that reads the dialect; None if it can only be written."""
    generation_prompt: ClassVar[str]
    """What stands before an assistant's body."""
    call_separator: ClassVar[str] = "\n"
    """What stands between the calls of a batch, where it has no other envelope."""
    call_marks: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """What tells the family's calls, beside the control tokens of those that the renderer writes: for each other form,
    what calls in it hold, and so does a chat template that writes it."""
    turns: ClassVar[Turns | None] = None
    """How a transcript is read back; None: only what an assistant wrote can be."""

    @property
    def prompt(self) -> str:
        """The guide that teaches a model to write the dialect, as Markdown. `FileNotFoundError` if it is missing."""
        for folder in _PROMPT_FOLDERS:
            guide = folder / f"{self.name}.md"
            if guide.is_file():
                return guide.read_text(encoding="utf-8")
        looked = " and ".join(map(str, _PROMPT_FOLDERS))
        raise FileNotFoundError(f"the dialect {self.name!r} has no prompt guide: no {self.name}.md in {looked}")

    # What callers use

    def render_tool_call(self, call: CallLike, *, tools: Sequence[ToolLike] | None = None) -> str:
        """One call, without the envelope of a batch. `tools` types the values where the dialect writes plain text.

        Raises `MessageError` for a call or tool that is not well-formed, as the other three do for what they take.
        """
        checked = self.with_written_ids((read_call(call),))
        return without_surrogates(self.call_text(checked[0], read_tools(tools)))

    def render_assistant_tool_calls(self, calls: Sequence[CallLike], *, tools: Sequence[ToolLike] | None = None) -> str:
        """The calls of one assistant message, with their envelope; no calls are no text."""
        checked = self.with_written_ids(read_calls(calls))
        declared = read_tools(tools)
        return without_surrogates(self.calls_text(checked, declared)) if checked else ""

    def render_tool_results(self, results: Sequence[ResultLike]) -> str:
        """The results of one batch of calls, in their order; no results are no text."""
        checked = read_results(results)
        return without_surrogates(self.results_text(checked)) if checked else ""

    def render_thinking(self, text: str) -> str:
        """A thinking block; no thinking is no text."""
        if not isinstance(text, str):
            raise TypeError(f"thinking is text, not {type(text).__name__}")
        return without_surrogates(self.thinking_text(text)) if text else ""

    # What a dialect writes

    @abstractmethod
    def call_text(self, call: ToolCall, tools: Tools) -> str:
        """One call."""

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        """A batch of at least one call, with its envelope."""
        return self.call_separator.join(self.call_text(call, tools) for call in calls)

    @abstractmethod
    def results_text(self, results: Sequence[ToolResult]) -> str:
        """A batch of at least one result, as text that stands alone."""

    @abstractmethod
    def turn_text(self, role: str, name: str | None, body: str) -> str:
        """A turn of the system, the user or the assistant; `name` is that of the message, where it has one."""

    def bare_results_text(self, results: Sequence[ToolResult]) -> str:
        """The same results without role headers, for an endpoint that writes its own."""
        return self.results_text(results)

    def results_turn_text(self, results: Sequence[ToolResult]) -> str:
        """The same results as they stand in a transcript."""
        return self.results_text(results)

    def thinking_text(self, text: str) -> str:
        """A thinking block that is not empty."""
        return f"<think>\n{text}\n</think>"

    def written_ids(self, calls: Sequence[ToolCall]) -> Sequence[str | None]:
        """The ids that the dialect writes for the calls of one message."""
        return [call.id for call in calls]

    def is_written_id(self, call_id: str) -> bool:
        """Whether an id is one that the dialect itself writes."""
        return False

    # Whole conversations

    def transcript_text(self, messages: Sequence[Message], tools: Tools) -> str:
        """A conversation as the model reads it."""
        return "".join(self._turns(self.answered(messages), tools))

    def assistant_text(self, message: Message, tools: Tools) -> str:
        """The body of an assistant's turn: thinking, text, calls."""
        thinking = self.thinking_text(message.reasoning) if message.reasoning else ""
        calls = self.calls_text(message.tool_calls, tools) if message.tool_calls else ""
        return thinking + message.content + calls

    def with_written_ids(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """The calls of one message under the ids that the dialect writes."""
        return tuple(replace(call, id=new) for call, new in zip(calls, self.written_ids(calls), strict=True))

    def answered(self, messages: Sequence[Message]) -> list[Message]:
        """The messages with written ids, and every result under the id and name of the call that it answers.

        A result that names no call of the conversation answers the call at its position, unless its name or its id
        speaks against that; then it is left as it is.
        """
        waiting: dict[str, list[ToolCall]] = {}
        batch: tuple[ToolCall, ...] = ()
        position = 0
        out: list[Message] = []
        for message in messages:
            if message.role == "tool":
                call = _named(message, waiting) or self._at(message, batch, position)
                position += 1
                out.append(message if call is None else _answer(message, call))
                continue
            batch, position = self.with_written_ids(message.tool_calls), 0
            waiting.update(_by_id(message.tool_calls, batch))
            out.append(replace(message, tool_calls=batch))
        return out

    def _at(self, message: Message, batch: Sequence[ToolCall], position: int) -> ToolCall | None:
        if position >= len(batch) or (message.tool_call_id and self.is_written_id(message.tool_call_id)):
            return None
        call = batch[position]
        return call if message.name in (None, call.name) else None

    def _turns(self, messages: Sequence[Message], tools: Tools) -> Iterator[str]:
        for is_result, run in groupby(messages, key=lambda message: message.role == "tool"):
            if is_result:
                yield self.results_turn_text([message.as_result() for message in run])
                continue
            for message in run:
                role = "system" if message.role == "developer" else message.role
                body = self.assistant_text(message, tools) if role == "assistant" else message.content
                yield self.turn_text(role, message.name, body)


def _by_id(calls: Sequence[ToolCall], written: Sequence[ToolCall]) -> dict[str, list[ToolCall]]:
    found: dict[str, list[ToolCall]] = {}
    for call, new in zip(calls, written, strict=True):
        if call.id:
            found.setdefault(call.id, []).append(new)
    return found


def _named(message: Message, waiting: dict[str, list[ToolCall]]) -> ToolCall | None:
    """The call whose id a result names. Where several have that id, each result takes the next one."""
    calls = waiting.get(message.tool_call_id or "")
    if not calls:
        return None
    return calls.pop(0) if len(calls) > 1 else calls[0]


def _answer(message: Message, call: ToolCall) -> Message:
    return replace(message, tool_call_id=call.id, name=message.name or call.name)
