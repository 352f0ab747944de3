"""One request and its answer, between a client and the upstream.

A request for a chat completion is read whole, because what it offers decides what its answer may hold; its answer is
healed if it succeeded, and is JSON or an event stream. Everything else passes in both directions as it comes, byte for
byte. Where the upstream fails, the client gets an error in OpenAI's form: as the answer, if nothing was sent yet, as an
event in a stream, and otherwise its connection is closed, for an answer that is cut must not look whole.
"""

import logging
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Literal, TypeAlias

import anyio
import httpx
import msgspec
from anyio.abc import TaskGroup

from dialects.healing.event_stream import EventStreamHealer, error_object, write_json
from dialects.healing.http import Exchange, answer_kind, is_healed_request
from dialects.healing.sse import write_comment
from dialects.proxy.client import Client, ClientGoneError
from dialects.proxy.headers import answer_headers, healed_headers, request_headers, target
from dialects.proxy.metrics import Metrics
from dialects.proxy.settings import ProxySettings

__all__ = ["Forwarder"]

Kind: TypeAlias = Literal["stream", "whole", "pass", "refused"]
Outcome: TypeAlias = Literal[
    "ok", "refused", "upstream_error", "upstream_timeout", "client_gone", "client_stuck", "bug"
]

PING = write_comment("ping")
DRAIN_SECONDS = 1.0
"""How long to wait for the end of a stream that has said `[DONE]`, so that its connection can be used again."""
CLOSE_SECONDS = 5.0
_LOGGED_PATH = 200

_log = logging.getLogger("dialects.proxy")


class Report(msgspec.Struct):
    """What became of an exchange."""

    kind: Kind = "pass"
    outcome: Outcome = "ok"
    status: int | None = None
    pattern: str | None = None
    chunks: int = 0
    junk: int = 0
    calls: int = 0
    repairs: Counter[str] = msgspec.field(default_factory=Counter)
    dropped: Counter[str] = msgspec.field(default_factory=Counter)


class Forwarder:
    """Sends requests to the upstream, and its answers back."""

    def __init__(self, settings: ProxySettings, transport: httpx.AsyncBaseTransport, metrics: Metrics) -> None:
        self._settings = settings
        self._transport = transport
        self._metrics = metrics
        self._timeouts = {
            "connect": settings.connect_timeout,
            "read": settings.read_timeout,
            "write": settings.read_timeout,
            "pool": settings.connect_timeout,
        }

    async def handle(self, client: Client) -> None:
        """Answer one request. What goes wrong is told to the client and the log; only cancellation is raised."""
        began = time.monotonic()
        report = Report()
        try:
            async with anyio.create_task_group() as beside:
                beside.start_soon(client.watch, beside.cancel_scope)
                try:
                    await self._answer(client, report, beside)
                except ClientGoneError:
                    report.outcome = "client_gone"
                except Exception:
                    report.outcome = "bug"
                    _log.exception("an exchange failed")
                    await _refuse(client, 500, "The proxy failed.", "proxy_error")
                beside.cancel_scope.cancel()
        finally:
            report.status = client.status
            if client.gone or client.stuck:
                report.outcome = "client_gone" if client.gone else "client_stuck"
            self._conclude(client, report, time.monotonic() - began)

    def _conclude(self, client: Client, report: Report, seconds: float) -> None:
        metrics = self._metrics
        metrics.requests.labels(report.kind, report.outcome).inc()
        if report.kind == "stream":
            metrics.streams.labels(report.outcome).inc()
        fields = {
            "method": client.method,
            "path": client.path[:_LOGGED_PATH],
            **{name: value for name, value in msgspec.to_builtins(report).items() if value not in (None, {})},
            "seconds": round(seconds, 3),
        }
        _log.log(logging.INFO if report.outcome == "ok" else logging.WARNING, "exchange", extra={"fields": fields})

    async def _answer(self, client: Client, report: Report, beside: TaskGroup) -> None:
        settings = self._settings
        asked = target(settings.upstream, client.raw_path, client.query)
        if asked is None:
            report.kind = report.outcome = "refused"
            return await _refuse(client, 400, "The path must not have dot segments.", "invalid_path")
        headers = request_headers(client.headers)
        exchange: Exchange | None = None
        content: bytes | AsyncIterator[bytes] | None
        if is_healed_request(client.method, client.path):
            content = await client.read(settings.max_request_bytes)
            if content is None:
                report.kind = report.outcome = "refused"
                limit = f"The request is longer than {settings.max_request_bytes} bytes."
                return await _refuse(client, 413, limit, "request_too_large")
            exchange = Exchange.of_body(content, settings.options)
        elif client.has_body:
            content = client.body()
        else:
            content = await client.read(0)
        if exchange is not None:
            headers = [(name, value) for name, value in headers if name != b"accept-encoding"]
            headers.append((b"accept-encoding", b"identity"))
        request = httpx.Request(
            client.method,
            settings.upstream,
            headers=headers,
            content=content or None,
            extensions={"timeout": self._timeouts, "target": asked},
        )
        try:
            response = await self._transport.handle_async_request(request)
        except httpx.TransportError as error:
            return await self._failed(client, report, error)
        async with _closing(response):
            await self._relay(client, report, beside, response, exchange)
        return None

    async def _relay(
        self,
        client: Client,
        report: Report,
        beside: TaskGroup,
        response: httpx.Response,
        exchange: Exchange | None,
    ) -> None:
        headers = response.headers
        kind = answer_kind(response.status_code, headers.get("content-type", ""), headers.get("content-encoding", ""))
        if exchange is None or kind is None:
            self._attend(client, beside)
            return await self._pass(client, report, response)
        report.kind, report.pattern = kind, exchange.pattern
        try:
            if kind == "whole":
                self._attend(client, beside)
                return await self._whole(client, report, response, exchange)
            return await self._stream(client, report, beside, response, exchange.stream())
        finally:
            counts = exchange.healer.counts
            report.calls, report.repairs, report.dropped = counts.calls, counts.repairs, counts.dropped
            self._metrics.count(counts)

    def _attend(
        self,
        client: Client,
        beside: TaskGroup,
        interval: float = math.inf,
        word: Callable[[], bytes] = bytes,
    ) -> None:
        async def attend() -> None:
            patience = self._settings.client_timeout
            await client.attend(beside.cancel_scope, patience=patience, interval=interval, word=word)

        beside.start_soon(attend)

    # The three ways of an answer.

    async def _pass(self, client: Client, report: Report, response: httpx.Response) -> None:
        await client.start(response.status_code, answer_headers(response.headers.raw))
        try:
            async with _pieces(response.aiter_raw()) as pieces:
                async for data in pieces:
                    await client.send(data)
        except httpx.TransportError as error:
            report.outcome = _outcome(error)
            return
        await client.end()

    async def _whole(self, client: Client, report: Report, response: httpx.Response, exchange: Exchange) -> None:
        limit = self._settings.options.max_body_bytes
        read, size = [], 0
        async with _pieces(response.aiter_bytes()) as pieces:
            try:
                async for data in pieces:
                    read.append(data)
                    size += len(data)
                    if size > limit:
                        break
            except httpx.HTTPError as error:
                return await self._failed(client, report, error)
            body = b"".join(read)
            if size <= limit:
                body = exchange.whole(body)
                length = {"content_length": str(len(body))}
                await client.start(response.status_code, healed_headers(response.headers.raw, **length))
                return await client.end(body)
            report.kind = "pass"
            await client.start(response.status_code, healed_headers(response.headers.raw))
            await client.send(body)
            try:
                async for data in pieces:
                    await client.send(data)
            except httpx.HTTPError as error:
                report.outcome = _outcome(error)
                return None
            return await client.end()

    async def _stream(
        self, client: Client, report: Report, beside: TaskGroup, response: httpx.Response, healer: EventStreamHealer
    ) -> None:
        settings = self._settings
        added = {"cache_control": "no-cache", "x_accel_buffering": "no"}
        await client.start(response.status_code, healed_headers(response.headers.raw, **added))
        self._attend(client, beside, settings.keep_alive, healer.no_op if settings.keep_alive_chunks else lambda: PING)
        metrics = self._metrics
        with _Gauges(metrics, healer) as gauges:
            try:
                async with _pieces(response.aiter_bytes()) as pieces:
                    out = await self._heal(client, report, pieces, healer, gauges)
                    await client.end(out)
                    if report.outcome == "ok" and not healer.stopped:
                        with anyio.move_on_after(DRAIN_SECONDS), suppress(httpx.HTTPError):
                            async for _ in pieces:
                                pass
            finally:
                report.chunks, report.junk = healer.events, healer.junk
                metrics.events.inc(healer.events)
                metrics.junk.inc(healer.junk)

    async def _heal(
        self,
        client: Client,
        report: Report,
        pieces: AsyncIterator[bytes],
        healer: EventStreamHealer,
        gauges: "_Gauges",
    ) -> bytes:
        """Send what the healer makes of the upstream's bytes; the last of it is returned."""
        try:
            async for data in pieces:
                out = healer.feed(data)
                gauges.note()
                if healer.done:
                    break
                if out:
                    await client.send(out)
            else:
                out = healer.finish()
        except httpx.HTTPError as error:
            report.outcome = _outcome(error)
            return healer.fail(self._problem(error), code=report.outcome)
        if healer.error is not None:
            report.outcome = "upstream_error"
        return out

    # What goes wrong.

    async def _failed(self, client: Client, report: Report, error: httpx.HTTPError) -> None:
        report.outcome = _outcome(error)
        status = 504 if isinstance(error, httpx.TimeoutException) else 502
        await _refuse(client, status, self._problem(error), report.outcome)

    def _problem(self, error: httpx.HTTPError) -> str:
        """What the client is told."""
        match error:
            case httpx.ConnectTimeout() | httpx.PoolTimeout():
                return f"The upstream did not take the connection within {self._settings.connect_timeout:g} seconds."
            case httpx.TimeoutException():
                return f"The upstream said nothing for {self._settings.read_timeout:g} seconds."
            case httpx.ConnectError():
                return "The upstream cannot be reached."
            case httpx.DecodingError():
                return "The upstream's answer cannot be decompressed."
            case _:
                return "The connection to the upstream broke off."


class _Gauges:
    """The part of one open stream in the numbers of what is open and held."""

    def __init__(self, metrics: Metrics, healer: EventStreamHealer) -> None:
        self._metrics = metrics
        self._healer = healer
        self._held = 0

    def note(self) -> None:
        """What is held may have changed."""
        held = self._healer.held_chars
        if held != self._held:
            self._metrics.held.inc(held - self._held)
            self._held = held

    def __enter__(self) -> "_Gauges":
        self._metrics.active.inc()
        return self

    def __exit__(self, *_: object) -> None:
        self._metrics.active.dec()
        self._metrics.held.dec(self._held)


def _outcome(error: httpx.HTTPError) -> Outcome:
    return "upstream_timeout" if isinstance(error, httpx.TimeoutException) else "upstream_error"


async def _refuse(client: Client, status: int, message: str, code: str) -> None:
    """Answer with an error in OpenAI's form, if nothing was answered yet."""
    if client.status is not None or client.gone:
        return
    kind = "invalid_request_error" if status < 500 else "upstream_error"
    body = write_json({"error": error_object({"message": message, "type": kind, "code": code})}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await client.start(status, headers)
    await client.end(body)


@asynccontextmanager
async def _pieces(pieces: AsyncIterator[bytes]) -> AsyncIterator[AsyncIterator[bytes]]:
    """The pieces of a body; their generator is closed at once if they are not read to the end."""
    generator: Any = pieces
    async with aclosing(generator):
        yield pieces


@asynccontextmanager
async def _closing(response: httpx.Response) -> AsyncIterator[None]:
    """Close a response in the end, also when the exchange is being cancelled."""
    try:
        yield
    finally:
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await response.aclose()
