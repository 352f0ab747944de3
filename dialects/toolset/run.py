"""What `run_step` and `run_turn` return: something that runs while it is read."""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, Coroutine, Generator
from functools import cached_property
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from dialects.toolset.tasks import wait_for_all

__all__ = ["Run"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class Run(Coroutine[Any, Any, Result], Generic[Item, Result]):
    """Iterate it for everything as it happens; the last item is the result. Or await it for the result alone: it is a
    coroutine, which `asyncio.run` and `create_task` take.

    Nothing runs before the first item is asked for, and nothing goes on when the loop over the items is left: what is
    running is cancelled and awaited. The event loop does that a moment later; whoever must know when it is done writes
    `async with run:` around the loop, or awaits `aclose`. `result` says at any time what has happened so far.
    """

    def __init__(self) -> None:
        self._running = self._items()
        self._closing: asyncio.Task[None] | None = None

    @property
    @abstractmethod
    def result(self) -> Result:
        """What has happened so far."""

    @abstractmethod
    def _items(self) -> AsyncGenerator[Item, None]:
        """Do the work, and yield what happens."""

    async def __aiter__(self) -> AsyncGenerator[Item, None]:
        # A generator that only the loop over it holds: Python closes it when the loop is left, however that happens.
        try:
            async for item in self._running:
                yield item
        finally:
            await self.aclose()

    async def __anext__(self) -> Item:
        return await anext(self._running)

    def __await__(self) -> Generator[Any, None, Result]:
        return self._finished().__await__()

    @cached_property
    def _whole(self) -> Coroutine[Any, Any, Result]:
        return self._finished()

    def send(self, value: Any, /) -> Any:
        """What the event loop calls."""
        return self._whole.send(value)

    def throw(self, kind: Any, value: Any = None, traceback: TracebackType | None = None, /) -> Any:
        """What the event loop calls."""
        return self._whole.throw(kind) if value is None else self._whole.throw(kind, value, traceback)

    def close(self) -> None:
        """What the event loop calls; to stop a run, await `aclose`."""
        self._whole.close()

    async def aclose(self) -> None:
        """Stop here. Calls that are running are cancelled and awaited; no more items come."""
        # In a task, since several may want it at a time: a `with` block, and Python for a loop that was left.
        if self._closing is None or self._closing.done():
            self._closing = asyncio.get_running_loop().create_task(self._close(), name="closing")
        await wait_for_all([self._closing])
        self._closing.result()

    async def _close(self) -> None:
        await self._running.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _finished(self) -> Result:
        async for _ in self._running:
            pass
        return self.result
