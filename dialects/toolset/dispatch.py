"""One call from the model's words to a result.

    unknown? -> arguments no object? -> invalid? -> `before` hook -> approval -> a free slot -> the tool, in its time

Each stage can end the call, and every end is a `ToolOutcome`, which is reported (to the log, to `on_call`, to the
`after` hook). What a tool raises is an answer, too. Only `KeyboardInterrupt` and `SystemExit` leave the event loop, as
they do from any task.
"""

import asyncio
import copy
import inspect
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from dialects.messages import CallLike, MessageError, ToolCall, read_call
from dialects.toolset.arguments import InvalidArgumentsError
from dialects.toolset.results import (
    ErrorKind,
    ToolError,
    ToolOk,
    ToolOutcome,
    ToolRejected,
    cut_in_the_middle,
    normalised,
    text_for_the_model,
)
from dialects.toolset.stages import CallTask, OutOfTimeError, Stages
from dialects.toolset.tasks import wait_for_all
from dialects.toolset.tools import BoundCall, CallableTool

__all__ = [
    "After",
    "Approve",
    "Before",
    "Dispatcher",
    "Limits",
    "OnCall",
    "Request",
    "current_tool_call",
    "read_request",
]

T = TypeVar("T")

Before: TypeAlias = Callable[[ToolCall], Awaitable[str | ToolError | None] | str | ToolError | None]
After: TypeAlias = Callable[[ToolCall, ToolOutcome], Awaitable[None] | None]
Approve: TypeAlias = Callable[[ToolCall], Awaitable[bool] | bool]
OnCall: TypeAlias = Callable[[str, Literal["ok", "error"], float, ErrorKind | None], None]

current_tool_call: ContextVar[ToolCall] = ContextVar("current_tool_call")
"""The call that is being answered: set in a tool, its thread, and the hooks."""

_log = logging.getLogger("dialects.toolset")


class Limits(msgspec.Struct, frozen=True):
    """How much a toolset does at once, how long it waits, and how much it gives back."""

    concurrency: int = 8
    """How many tools run at the same time."""
    seconds: float | None = 120.0
    """How long a call may take, unless its tool says otherwise; None: for ever."""
    result_chars: int = 50_000
    """The longest result, in characters; a longer one loses its middle."""
    grace: float = 5.0
    """How many seconds a cancelled tool has to clean up. Then it is left to itself, with a warning in the log."""

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ValueError(f"concurrency is at least 1, not {self.concurrency!r}")
        if self.result_chars < 200:
            raise ValueError(f"result_chars is at least 200, not {self.result_chars!r}")


class Request(msgspec.Struct, frozen=True):
    """A call as it came, and what is wrong with its arguments, if they are no object."""

    call: ToolCall
    fault: str = ""


def read_request(call: CallLike) -> Request:
    """Read a call. Arguments that are no object are the model's fault, and part of the request; anything else that is
    wrong is the caller's, and raises `MessageError`."""
    try:
        read = read_call(call)
    except MessageError as error:
        if ".arguments" not in error.path:
            raise
        return Request(read_call(_without_arguments(call)), error.problem)
    is_unreadable = "unreadable-arguments" in getattr(call, "repairs", ())
    return Request(read, "expected a JSON object, found text that cannot be read as one" if is_unreadable else "")


def _without_arguments(call: Any) -> dict[str, Any]:
    if isinstance(call, msgspec.Struct):
        return {"id": getattr(call, "id", None), "name": getattr(call, "name", None)}
    return {"id": call.get("id"), "name": call.get("function", call)["name"]}


class Dispatcher:
    """Answers calls, under limits, hooks and approval that are the same for all of them."""

    def __init__(
        self,
        limits: Limits,
        before: Before | None,
        after: After | None,
        approve: Approve | None,
        on_call: OnCall | None,
    ) -> None:
        self.limits = limits
        self.before = before
        self.approve = approve
        self._after = after
        self._on_call = on_call
        self._slots: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None
        self._afterwards: set[asyncio.Task[None]] = set()

    def start(self, request: Request, tool: CallableTool | ToolError) -> CallTask:
        """The task of a call. An error in the place of a tool is the answer."""
        return CallTask(lambda stages: self._answer(request, tool, stages), request.call.name, self.limits.grace)

    async def settle(self) -> None:
        """Wait for the `after` hooks that are still running."""
        await wait_for_all(tuple(self._afterwards))

    @asynccontextmanager
    async def slot(self, stages: Stages) -> AsyncGenerator[None, None]:
        """One of the places for tools that run at the same time."""
        loop = asyncio.get_running_loop()
        if self._slots is None or self._slots[0] is not loop:  # a semaphore belongs to the loop that first waits for it
            self._slots = (loop, asyncio.Semaphore(self.limits.concurrency))
        slots = self._slots[1]
        await stages.run(slots.acquire())
        try:
            yield
        finally:
            slots.release()

    async def _answer(self, request: Request, tool: CallableTool | ToolError, stages: Stages) -> ToolOutcome:
        call = request.call
        current_tool_call.set(call)
        _log.debug("%.100r is called with %.1000s", call.name, call.arguments)
        answering = _Answering(self, request, tool, stages)
        answer = await answering.answer()
        failure = answer if isinstance(answer, ToolError) else None
        outcome = ToolOutcome(
            call_id=call.id,
            name=call.name,
            content=cut_in_the_middle(text_for_the_model(answer), self.limits.result_chars),
            is_error=failure is not None,
            kind=failure.kind if failure else None,
            brief=failure.brief if failure else "",
            seconds=answering.seconds,
        )
        self._report(call, outcome)
        return outcome

    def _report(self, call: ToolCall, outcome: ToolOutcome) -> None:
        _log.info("%.100r: %s in %.3f s", call.name, outcome.kind or "ok", outcome.seconds)
        if self._on_call is not None:
            try:
                self._on_call(call.name, "error" if outcome.is_error else "ok", outcome.seconds, outcome.kind)
            except Exception:
                _log.exception("on_call failed after %.100r", call.name)
        if self._after is not None:
            task = asyncio.get_running_loop().create_task(self._call_after(self._after, call, outcome))
            self._afterwards.add(task)
            task.add_done_callback(self._afterwards.discard)

    async def _call_after(self, after: After, call: ToolCall, outcome: ToolOutcome) -> None:
        try:
            await _awaited(after(_copy_of(call), outcome))
        except Exception:
            _log.exception("the hook after %.100r failed", call.name)


class _Answering:
    """The way of one call through its stages."""

    def __init__(
        self, dispatcher: Dispatcher, request: Request, tool: CallableTool | ToolError, stages: Stages
    ) -> None:
        self._dispatcher = dispatcher
        self._fault = request.fault
        self._call = request.call
        self._tool = tool
        self._stages = stages
        self.seconds = 0.0
        """How long the tool ran."""

    async def answer(self) -> ToolOk | ToolError:
        """What the tool returned, as text, or a `ToolError` that says why it did not. A traceback goes to the log."""
        name = self._call.name
        try:
            return normalised(await self._staged())
        except asyncio.CancelledError:
            return ToolError("The call was cancelled before it was done.", "Cancelled", kind="cancelled")
        except GeneratorExit:
            raise  # the event loop is gone, and with it this coroutine
        except (KeyboardInterrupt, SystemExit) as error:
            # It has left the event loop out of the tool's task already; here would be the second time.
            return ToolError(f"The program was ended: {type(error).__name__}.", "Cancelled", kind="cancelled")
        except BaseException as error:
            _log.error("%.100r raised %s", name, type(error).__name__, exc_info=error)
            return ToolError(f"{name} failed. {_said_by(error)}", type(error).__name__, kind="raised")

    async def _staged(self) -> object:
        tool, call = self._tool, self._call
        if isinstance(tool, ToolError):
            return tool
        if self._fault:
            message = f"The arguments are not one JSON object: {self._fault}"
            return ToolError(message, "Malformed arguments", kind="malformed-arguments")
        try:
            run = tool.bind(call.arguments)
        except InvalidArgumentsError as error:
            return error.as_answer()
        if refusal := await self._blocked() or await self._rejected(tool):
            return refusal
        if not tool.runs_here:
            return await self._in_time(tool, run)
        async with self._dispatcher.slot(self._stages):
            return await self._in_time(tool, run)

    async def _blocked(self) -> ToolError | None:
        """Why the hook forbids the call; one that fails forbids it, too."""
        before = self._dispatcher.before
        if before is None:
            return None
        try:
            reason = await self._stages.run(_called(before, _copy_of(self._call)))
        except Exception:
            _log.exception("the hook before %.100r failed", self._call.name)
            reason = "the check whether it is permitted failed"
        if reason is None:
            return None
        said = reason.message if isinstance(reason, ToolError) else reason
        return ToolError(f"The call was not made: {said or 'it is not permitted'}", "Blocked", kind="blocked")

    async def _rejected(self, tool: CallableTool) -> ToolRejected | None:
        """Why nobody approves of the call; an approval that fails is none."""
        if not tool.needs_approval:
            return None
        approve = self._dispatcher.approve
        if approve is None:
            return ToolRejected("This call needs an approval, and there is nobody who could give it.")
        try:
            is_approved = await self._stages.run(_called(approve, _copy_of(self._call)))
        except Exception:
            _log.exception("the approval of %.100r failed", self._call.name)
            return ToolRejected("This call needs an approval, and asking for it failed.")
        return None if is_approved is True else ToolRejected()

    async def _in_time(self, tool: CallableTool, run: BoundCall) -> object:
        limit = self._dispatcher.limits.seconds if tool.timeout is None else tool.timeout
        begin = time.monotonic()
        try:
            return await self._stages.run(_called(run), limit)
        except OutOfTimeError:
            return ToolError(
                f"The call took longer than {limit:g} seconds and was ended.", "Timed out", kind="timed-out"
            )
        finally:
            self.seconds = time.monotonic() - begin


async def _called(function: Callable[..., Awaitable[T] | T], *args: object) -> T:
    return await _awaited(function(*args))


async def _awaited(value: Awaitable[T] | T) -> T:
    return await value if inspect.isawaitable(value) else value


def _said_by(error: BaseException) -> str:
    """An exception's type and text, if it can be asked for its text."""
    try:
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    except Exception:
        return type(error).__name__


def _copy_of(call: ToolCall) -> ToolCall:
    """A call for a hook, which may look at the arguments but not change them."""
    return msgspec.structs.replace(call, arguments=copy.deepcopy(call.arguments))
