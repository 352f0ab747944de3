"""Calls a function that may be synchronous or not, without ever blocking the event loop.

A synchronous function runs in a thread of its own, which is a daemon: a pool's threads would be joined when the program
ends, and one tool that never returns would keep it from ending.
"""

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["call", "in_thread", "is_asynchronous"]

T = TypeVar("T")


def is_asynchronous(function: Callable[..., object]) -> bool:
    """Whether a call of it gives a coroutine at once, so that it needs no thread."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


async def call(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """What the function returns; whatever it raises is raised."""
    bound = functools.partial(function, *args, **kwargs)
    result = bound() if is_asynchronous(function) else await in_thread(bound)
    return await result if inspect.isawaitable(result) else result


async def in_thread(function: Callable[[], T]) -> T:
    """What the function returns when it runs in a new thread, in the context of the caller.

    A thread cannot be ended from outside: where the waiting is cancelled, it goes on alone and its result is dropped.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Callable[[], T]] = loop.create_future()
    context = contextvars.copy_context()

    def finish(result: Callable[[], T]) -> None:
        if not done.done():
            done.set_result(result)

    def work() -> None:
        result = _outcome(functools.partial(context.run, function))
        try:
            loop.call_soon_threadsafe(finish, result)
        except RuntimeError:
            return  # the loop is closed, and nobody waits

    threading.Thread(target=work, name="dialects-tool", daemon=True).start()
    return (await done)()


def _outcome(function: Callable[[], T]) -> Callable[[], T]:
    """What gives again what the function gave: its value or its exception."""
    try:
        value = function()
    except BaseException as error:
        return functools.partial(_raise, error)
    return lambda: value


def _raise(error: BaseException) -> Any:
    if isinstance(error, StopIteration):  # it cannot leave a coroutine as what it is
        raise RuntimeError("StopIteration: the iterator had no more items") from error
    raise error
