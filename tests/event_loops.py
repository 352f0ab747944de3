"""Coroutines in an event loop that is looked at afterwards: no task is left, and nobody complained."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["others", "run", "ticks"]

T = TypeVar("T")


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What the coroutine returns. Fails if it leaves tasks behind, or an exception that nobody has looked at."""
    complaints: list[dict[str, Any]] = []

    async def watched() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        result = await main()
        await ticks(3)
        left = others()
        for task in left:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*left, return_exceptions=True)
        assert left == set()
        return result

    result = asyncio.run(watched())
    assert not complaints, complaints
    return result


async def ticks(number: int) -> None:
    """Let everything else go on so many times."""
    for _ in range(number):
        await asyncio.sleep(0)


def others() -> "set[asyncio.Task[Any]]":
    """The tasks of this loop beside the current one."""
    current = asyncio.current_task()
    return {task for task in asyncio.all_tasks() if task is not current}
