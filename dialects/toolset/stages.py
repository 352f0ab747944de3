"""The task of one call, and how its stages are left when the call is cancelled.

A stage (a hook, an approval, the wait for a slot, the tool) runs in a task of its own. The call's task waits for it,
and nothing can throw it out of that wait: `CallTask.cancel` only says that the call is over, and then the stage is
cancelled and given a moment to clean up. So a call always ends with an outcome.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeAlias, TypeVar

from dialects.toolset.results import ToolOutcome
from dialects.toolset.tasks import wait_for_all

__all__ = ["CallTask", "OutOfTimeError", "Stages"]

T = TypeVar("T")
_log = logging.getLogger("dialects.toolset")


class OutOfTimeError(Exception):
    """The stage took longer than it may. (A tool's own `TimeoutError` is another matter.)"""


class Stages:
    """Runs the stages of one call, one after the other."""

    def __init__(self, name: str, grace: float) -> None:
        self._name = name
        self._grace = grace
        self._stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def stop(self) -> None:
        """The call is cancelled: the stage that runs, or the next one, ends with `CancelledError`."""
        if not self._stopped.done():
            self._stopped.set_result(None)

    async def run(self, stage: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
        """What the stage returns or raises. Raises `CancelledError` where the call is cancelled or the stage cancelled
        itself, and `OutOfTimeError` after so many seconds."""
        if self._stopped.done():
            stage.close()
            raise asyncio.CancelledError
        task = asyncio.get_running_loop().create_task(stage, name=f"stage of {self._name}")
        both: set[asyncio.Future[Any]] = {task, self._stopped}
        await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return _result(task)
        await self._leave(task)
        raise asyncio.CancelledError if self._stopped.done() else OutOfTimeError

    async def _leave(self, task: "asyncio.Task[Any]") -> None:
        if not task.cancelling():  # the end of the program cancels all tasks, and twice would cut its clean-up short
            task.cancel()
        await asyncio.wait({task}, timeout=self._grace)
        if not task.done():
            _log.warning("%.100r goes on although it was cancelled; nobody waits for it any longer", self._name)
        elif not task.cancelled() and (error := task.exception()):
            _log.warning("%.100r raised %s while it was cancelled", self._name, type(error).__name__, exc_info=error)


Work: TypeAlias = Callable[[Stages], Coroutine[Any, Any, ToolOutcome]]


class CallTask(asyncio.Task[ToolOutcome]):
    """The task of one call. It always ends with an outcome: `cancel` makes that one of the kind `cancelled`.

    Whoever awaits it and is cancelled meanwhile cancels the call, waits for its end, and then is cancelled as usual.
    """

    def __init__(self, work: Work, name: str, grace: float) -> None:
        self._stages = Stages(name, grace)
        super().__init__(work(self._stages), loop=asyncio.get_running_loop(), name=f"tool {name}")

    def cancel(self, msg: Any | None = None) -> bool:
        """End the call; False if it has ended already."""
        if self.done():
            return False
        self._stages.stop()
        return True

    def __await__(self) -> Generator[Any, None, ToolOutcome]:
        return self._joined().__await__()

    async def _joined(self) -> ToolOutcome:
        try:
            await asyncio.wait({self})
        except asyncio.CancelledError:
            self.cancel()
            await wait_for_all([self])
            raise
        return self.result()


def _result(task: "asyncio.Task[T]") -> T:
    if not task.cancelled() and isinstance(error := task.exception(), GeneratorExit):
        raise RuntimeError("GeneratorExit") from error  # raised here it would mean that this coroutine is closed
    return task.result()
