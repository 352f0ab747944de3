"""Ending tasks: cancel them and wait until they are over, whatever happens to the one who waits."""

import asyncio
from collections.abc import Iterable
from typing import Any

__all__ = ["cancel_and_wait", "wait_for_all"]


async def cancel_and_wait(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Cancel tasks and wait for their ends. Their results and exceptions stay in them, and are not reported as lost."""
    running = list(tasks)
    for task in running:
        task.cancel()
    await wait_for_all(running)
    for task in running:
        if not task.cancelled():
            task.exception()


async def wait_for_all(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Wait until all tasks are over. Being cancelled meanwhile only takes effect afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while running := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(running)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
