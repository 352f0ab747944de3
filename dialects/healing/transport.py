"""Transports for `httpx` that heal chat completions on their way to the client, without a server in between.

    client = openai.OpenAI(http_client=httpx.Client(transport=HealingTransport()))

They wrap another transport, and change nothing but the bodies of successful answers to `POST …/chat/completions` (and
on such requests `accept-encoding`, so that those bodies can be read). All others pass, byte for byte. If the upstream
fails in the middle of a stream, the text that was held comes out, and then the exception that the wrapped one raised.

They serve `httpx` and its successor `httpx2`: the one whose client sends the request. This package requires neither.
"""

import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dialects.healing.event_stream import EventStreamHealer
from dialects.healing.http import (
    BODY_HEADERS,
    Exchange,
    HealingOptions,
    accepted_encodings,
    answer_kind,
    is_healed_request,
)

if TYPE_CHECKING:
    import httpx

    _Transport = httpx.BaseTransport
    _AsyncTransport = httpx.AsyncBaseTransport
else:
    _Transport = _AsyncTransport = object

__all__ = ["AsyncHealingTransport", "HealingTransport"]

_LIBRARIES = ("httpx", "httpx2")


class HealingTransport(_Transport):
    """Heals what another transport brings.

    transport: the one that is wrapped; by default a new `HTTPTransport` with its own defaults.
    options: those of `HealingOptions`: `pattern`, `mode`, `reasoning_field`, …

    Raises what `ChatCompletionHealer` raises, and TypeError for an option that there is not.
    """

    def __init__(self, transport: "httpx.BaseTransport | None" = None, **options: Any) -> None:
        self._options = _checked(options)
        self._wrapped = _Once(transport)

    def handle_request(self, request: "httpx.Request") -> "httpx.Response":
        """Send a request; the answer, healed if it is one to be healed."""
        library = _library(request)
        transport = self._wrapped.get(library.HTTPTransport)
        exchange = None
        if is_healed_request(request.method, request.url.path):
            exchange = _exchange(request, request.read(), self._options)
        response: httpx.Response = transport.handle_request(request)
        kind = _kind(response) if exchange is not None else None
        if exchange is None or kind is None:
            return response
        if kind == "stream":
            return _answer(response, stream=_stream_type(library)(response, exchange.stream()))
        try:
            body = response.read()
        finally:
            response.close()
        return _answer(response, content=exchange.whole(body))

    def close(self) -> None:
        """Close the wrapped transport."""
        if self._wrapped.value is not None:
            self._wrapped.value.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.close()


class AsyncHealingTransport(_AsyncTransport):
    """The same for asynchronous clients."""

    def __init__(self, transport: "httpx.AsyncBaseTransport | None" = None, **options: Any) -> None:
        self._options = _checked(options)
        self._wrapped = _Once(transport)

    async def handle_async_request(self, request: "httpx.Request") -> "httpx.Response":
        """Send a request; the answer, healed if it is one to be healed."""
        library = _library(request)
        transport = self._wrapped.get(library.AsyncHTTPTransport)
        exchange = None
        if is_healed_request(request.method, request.url.path):
            exchange = _exchange(request, await request.aread(), self._options)
        response: httpx.Response = await transport.handle_async_request(request)
        kind = _kind(response) if exchange is not None else None
        if exchange is None or kind is None:
            return response
        if kind == "stream":
            return _answer(response, stream=_async_stream_type(library)(response, exchange.stream()))
        try:
            body = await response.aread()
        finally:
            await response.aclose()
        return _answer(response, content=exchange.whole(body))

    async def aclose(self) -> None:
        """Close the wrapped transport."""
        if self._wrapped.value is not None:
            await self._wrapped.value.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self.aclose()


class _Once:
    """The wrapped transport. Which library's it must be, the first request tells, if nobody chose one."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self._lock = threading.Lock()

    def get(self, create: Callable[[], Any]) -> Any:
        with self._lock:
            if self.value is None:
                self.value = create()
            return self.value


def _checked(options: dict[str, Any]) -> HealingOptions:
    checked = HealingOptions(**options)
    checked.check()
    return checked


def _library(request: object) -> Any:
    """The package whose request this is."""
    modules = (base.__module__.partition(".")[0] for base in type(request).__mro__)
    name = next((name for name in modules if name in _LIBRARIES), None)
    if name is None:
        raise TypeError(f"a request is one of {' or '.join(_LIBRARIES)}, not {type(request)!r}")
    return sys.modules[name]


def _exchange(request: "httpx.Request", body: bytes, options: HealingOptions) -> Exchange | None:
    exchange = Exchange.of_body(body, options)
    if exchange is not None:
        request.headers["accept-encoding"] = accepted_encodings(request.headers.get("accept-encoding", ""))
    return exchange


def _kind(response: "httpx.Response") -> str | None:
    headers = response.headers
    return answer_kind(response.status_code, headers.get("content-type", ""), headers.get("content-encoding", ""))


def _answer(response: "httpx.Response", **body: Any) -> "httpx.Response":
    """The response with another body."""
    dropped = {*BODY_HEADERS, "transfer-encoding"}
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in dropped]
    return type(response)(response.status_code, headers=headers, extensions=response.extensions, **body)


@cache
def _stream_type(library: Any) -> Any:
    """The body of a healed stream. The library wants it to be of its own class."""

    class HealedStream(library.SyncByteStream):  # type: ignore[misc]
        def __init__(self, response: "httpx.Response", healer: EventStreamHealer) -> None:
            self._response = response
            self._healer = healer

        def __iter__(self) -> Iterator[bytes]:
            healer = self._healer
            try:
                for data in self._response.iter_bytes():
                    if out := healer.feed(data):
                        yield out
                    if healer.done:
                        return
            except Exception:
                if out := healer.interrupt():
                    yield out
                raise
            yield healer.finish()

        def close(self) -> None:
            self._response.close()

    return HealedStream


@cache
def _async_stream_type(library: Any) -> Any:
    class AsyncHealedStream(library.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, response: "httpx.Response", healer: EventStreamHealer) -> None:
            self._response = response
            self._healer = healer

        async def __aiter__(self) -> AsyncIterator[bytes]:
            healer = self._healer
            try:
                pieces: Any = self._response.aiter_bytes()
                async with aclosing(pieces):
                    async for data in pieces:
                        if out := healer.feed(data):
                            yield out
                        if healer.done:
                            return
            except Exception:
                if out := healer.interrupt():
                    yield out
                raise
            yield healer.finish()

        async def aclose(self) -> None:
            await self._response.aclose()

    return AsyncHealedStream
