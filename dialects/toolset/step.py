"""One reply of a model: read while it comes, its calls run while it is still coming.

A task of its own reads the stream, so that results and requests come out the moment they are there, not when the model
says its next word. It reads on only when everything it brought has been taken: a slow reader slows the stream down, and
whoever stops reading has seen all that happened.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextvars import copy_context
from typing import Any, TypeAlias

import msgspec

from dialects.engine.scanner import InbandScanner
from dialects.events import Event, Stopped, Text, ThinkingDelta, ToolDropped, ToolEnd
from dialects.factory import create_inband_scanner
from dialects.messages import Message, ToolCall
from dialects.toolset.dispatch import read_request
from dialects.toolset.external import ToolRequest, current_request_handler
from dialects.toolset.repetition import CallKey, Repetition, key_of
from dialects.toolset.results import ToolOutcome
from dialects.toolset.run import Run
from dialects.toolset.stages import CallTask
from dialects.toolset.tasks import cancel_and_wait
from dialects.toolset.toolset import Toolset

__all__ = ["Step", "StepItem", "StepResult", "Truncated", "run_step"]


class Truncated(Exception):  # noqa: N818 (what a stream says of itself, no error)
    """Raised by a stream of chunks at its end: the model was cut off (`finish_reason: length`), so an open call is not
    complete even if it looks so."""


class StepResult(msgspec.Struct, frozen=True):
    """What came of one reply.

    `message` is the assistant's, `calls` are its calls and `results` their outcomes, both in the order of the calls;
    these three are also what a step unpacks into: `message, calls, results = await run_step(…)`.
    `dropped` are the calls that could not be read, `stopped` is why reading stopped before the stream did (the model
    made up a tool's result, say), `truncated` says that the model was cut off, and `is_complete` that the step was not
    left before its end.
    """

    message: Message
    calls: tuple[ToolEnd, ...] = ()
    results: tuple[ToolOutcome, ...] = ()
    dropped: tuple[ToolDropped, ...] = ()
    stopped: str | None = None
    truncated: bool = False
    is_complete: bool = False

    def __iter__(self) -> Iterator[Any]:
        yield from (self.message, self.calls, self.results)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The assistant's message and those of the tools, as they go on in the conversation; none if it said nothing
        before it was left."""
        said = self.message.content or self.message.reasoning or self.message.tool_calls or self.is_complete
        return (self.message, *map(_tool_message, self.results)) if said else ()


StepItem: TypeAlias = Event | ToolRequest | ToolOutcome | StepResult


def run_step(
    chunks: AsyncIterable[str] | Iterable[str],
    toolset: Toolset,
    *,
    dialect: str,
    truncated: bool = False,
    repetition: Repetition | None = None,
    **scanner_options: Any,
) -> "Step":
    """Read a reply and run its calls, each from the moment its `ToolEnd` arrives.

    Iterating the step gives every event of the scanner, a `ToolRequest` for every call of an external tool, a
    `ToolOutcome` for every call as soon as it has one (whatever the order), and at the end the `StepResult`. Awaiting
    it gives the `StepResult`. The same call made twice runs once and is answered twice.

    chunks: the text as it comes; or pieces that are there already. It may raise `Truncated`; anything else that it
        raises ends the step and is raised.
    truncated: the chunks end where the model was cut off, which is known already.
    repetition: what counts calls over several steps.
    scanner_options: those of `create_inband_scanner`, which also says what is raised; `tools` are those of the toolset.
    """
    if isinstance(chunks, Iterable) and not isinstance(chunks, bytes | bytearray | memoryview):
        chunks = _one_by_one([chunks] if isinstance(chunks, str) else chunks)
    if not isinstance(chunks, AsyncIterable):
        raise TypeError(f"a reply is an asynchronous iterable of str, not {type(chunks).__name__}")
    options: dict[str, Any] = {"tools": toolset.known, **scanner_options}
    return Step(chunks, toolset, create_inband_scanner(dialect, **options), repetition or Repetition(), truncated)


class _Call(msgspec.Struct, frozen=True):
    """A call of the reply, as the scanner gave it and as it goes on in the conversation. Equal calls have one task."""

    end: ToolEnd
    spoken: ToolCall
    task: CallTask
    reminder: str | None

    @property
    def outcome(self) -> ToolOutcome:
        outcome = msgspec.structs.replace(self.task.result(), call_id=self.end.id)
        if self.reminder is None:
            return outcome
        return msgspec.structs.replace(outcome, content=f"{outcome.content}\n\n{self.reminder}")


class Step(Run[StepItem, StepResult]):
    """A reply that is being read; see `run_step`."""

    def __init__(
        self,
        chunks: AsyncIterable[str],
        toolset: Toolset,
        scanner: InbandScanner,
        repetition: Repetition,
        truncated: bool,
    ) -> None:
        self._chunks = chunks
        self._toolset = toolset
        self._scanner = scanner
        self._repetition = repetition
        self._queue: asyncio.Queue[StepItem | None] = asyncio.Queue()
        self._reading: asyncio.Task[None] | None = None
        self._calls: list[_Call] = []
        self._unanswered = 0
        self._first: dict[CallKey, _Call] = {}
        """The first call of each kind, which answers for its repetitions, too."""
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._dropped: list[ToolDropped] = []
        self._stopped: str | None = None
        self._truncated = truncated
        self._is_complete = False
        super().__init__()

    @property
    def result(self) -> StepResult:
        spoken = tuple(call.spoken for call in self._calls)
        answered = (call for call in self._calls if call.task.done() and not _has_failed(call.task))
        return StepResult(
            message=Message("assistant", "".join(self._texts), "".join(self._thoughts), spoken),
            calls=tuple(call.end for call in self._calls),
            results=tuple(call.outcome for call in answered),
            dropped=tuple(self._dropped),
            stopped=self._stopped,
            truncated=self._truncated,
            is_complete=self._is_complete,
        )

    async def _items(self) -> AsyncGenerator[StepItem, None]:
        reading = self._reading = asyncio.get_running_loop().create_task(self._read(), name="reading")
        reading.add_done_callback(self._end_if_over)
        try:
            while (item := await self._queue.get()) is not None:
                yield item
                self._queue.task_done()
            for task in filter(_has_failed, self._all_tasks()):
                task.result()
            self._is_complete = True
        finally:
            await cancel_and_wait(self._all_tasks())
        yield self.result

    async def _read(self) -> None:
        stream = aiter(self._chunks)
        try:
            async for chunk in stream:
                self._take(self._scanner.feed(chunk))
                if self._stopped:
                    break
                await self._queue.join()
        except Truncated:
            self._truncated = True
        finally:
            await _close(stream)
        self._take(self._scanner.flush(truncated=self._truncated))

    def _take(self, events: Iterable[Event]) -> None:
        for event in events:
            self._queue.put_nowait(event)
            match event:
                case Text(text):
                    self._texts.append(text)
                case ThinkingDelta(delta):
                    self._thoughts.append(delta)
                case ToolEnd():
                    self._start(event)
                case ToolDropped():
                    self._dropped.append(event)
                case Stopped(reason):
                    self._stopped = reason
                case _:
                    pass

    def _start(self, end: ToolEnd) -> None:
        key = key_of(end)
        spoken = read_request(end).call  # without arguments that no transcript could hold, such as 1e999
        if key in self._first:
            call = msgspec.structs.replace(self._first[key], end=end, spoken=spoken)
        else:
            call = self._first[key] = _Call(end, spoken, self._task(end), self._repetition.count(key))
        self._calls.append(call)
        self._unanswered += 1
        call.task.add_done_callback(lambda _: self._answered(call))

    def _task(self, end: ToolEnd) -> CallTask:
        context = copy_context()
        context.run(current_request_handler.set, self._queue.put_nowait)
        return context.run(self._toolset.handle, end)

    def _answered(self, call: _Call) -> None:
        self._unanswered -= 1
        if not _has_failed(call.task):
            self._queue.put_nowait(call.outcome)
        self._end_if_over()

    def _end_if_over(self, _: object = None) -> None:
        """Nothing more will come where reading is over and all calls are answered, or something failed for good."""
        assert self._reading is not None
        if not self._reading.done():
            return
        if not self._unanswered or any(map(_has_failed, self._all_tasks())):
            self._queue.put_nowait(None)

    def _all_tasks(self) -> "list[asyncio.Task[Any]]":
        return [*([self._reading] if self._reading else []), *(call.task for call in self._calls)]


def _has_failed(task: "asyncio.Task[Any]") -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


async def _one_by_one(chunks: Iterable[str]) -> AsyncIterator[str]:
    for chunk in chunks:
        yield chunk


async def _close(stream: AsyncIterator[str]) -> None:
    """Close a stream that was not read to its end, so that the model stops writing; if it can be closed."""
    close: Callable[[], Awaitable[object]] | None = getattr(stream, "aclose", None)
    if close is not None:
        await close()


def _tool_message(outcome: ToolOutcome) -> Message:
    return Message("tool", outcome.content, tool_call_id=outcome.call_id, name=outcome.name, is_error=outcome.is_error)
