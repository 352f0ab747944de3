"""Tools that somebody else runs: the host, a user interface, a program on another machine.

A call of an external tool becomes a `ToolRequest` with an id of its own, and waits. `resolve(id, result)` answers it.
Its time-out and its cancellation are results like those of any other call; an answer that comes later, or a second
time, finds no one waiting, and `resolve` says so.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, ClassVar, TypeAlias

import msgspec

from dialects.messages import ToolCall
from dialects.toolset.dispatch import current_tool_call
from dialects.toolset.tools import CallableTool

__all__ = ["ExternalTool", "OnRequest", "Requests", "ToolRequest", "current_request_handler"]

_log = logging.getLogger("dialects.toolset")


class ToolRequest(msgspec.Struct, frozen=True):
    """A call that waits for an answer from outside. `id` is the request's, not the call's: models repeat theirs."""

    id: str
    call: ToolCall


OnRequest: TypeAlias = Callable[[ToolRequest], object]

current_request_handler: ContextVar[OnRequest] = ContextVar("current_request_handler")
"""Whoever wants to know of requests made while a call is answered."""


class Requests:
    """The requests of a toolset that have no answer yet."""

    def __init__(self, on_request: OnRequest | None) -> None:
        self._on_request = on_request
        self._waiting: dict[str, tuple[ToolRequest, asyncio.Future[object]]] = {}

    @property
    def waiting(self) -> tuple[ToolRequest, ...]:
        """The requests, oldest first."""
        return tuple(request for request, _ in self._waiting.values())

    def resolve(self, request_id: str, result: object) -> bool:
        """Answer a request; False if none waits under this id (any longer)."""
        _, future = self._waiting.pop(self._by_call(request_id) or request_id, (None, None))
        if future is None or future.done():
            _log.info("no request waits under the id %.100r", request_id)
            return False
        try:  # whichever thread this is
            future.get_loop().call_soon_threadsafe(_answer, future, result)
        except RuntimeError:
            return False  # the event loop is closed
        return True

    def _by_call(self, call_id: str) -> str | None:
        """The only request for a call of this id."""
        found = [request.id for request in self.waiting if request.call.id == call_id]
        return found[0] if len(found) == 1 else None

    async def ask(self, call: ToolCall) -> object:
        """Hand out a call and wait for its answer."""
        request = ToolRequest(f"request_{secrets.token_hex(12)}", call)
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting[request.id] = (request, answer)
        try:
            for tell in (current_request_handler.get(None), self._on_request):
                if tell is not None:
                    tell(request)
            return await answer
        finally:
            self._waiting.pop(request.id, None)


def _answer(future: "asyncio.Future[object]", result: object) -> None:
    if not future.done():  # it may have been cancelled on the way here
        future.set_result(result)


class ExternalTool(CallableTool):
    """A tool that the host answers for."""

    runs_here: ClassVar[bool] = False

    def __init__(
        self, name: str, description: str, parameters: dict[str, Any], requests: Requests, timeout: float | None
    ) -> None:
        super().__init__(name=name, description=description, parameters=parameters)
        self.timeout = timeout
        self._requests = requests

    async def __call__(self, /, **arguments: Any) -> object:
        return await self._requests.ask(current_tool_call.get())
