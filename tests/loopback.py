"""A scripted upstream and the proxy in front of it, on loopback, in the test's own event loop.

`Upstream` is a bare socket server, so that it can do what no proper server would. `serve` runs the proxy under uvicorn,
and when the test is over it makes sure that nothing is left: no task, no connection on either side, no healer.
"""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, TypeAlias

import httpx
import uvicorn

from dialects.healing.event_stream import EventStreamHealer
from dialects.healing.http import HealingOptions
from dialects.proxy.app import create_app
from dialects.proxy.client import Client
from dialects.proxy.settings import ProxySettings

PATIENCE = 30.0
"""How many seconds anything may take before a test fails; nothing takes longer because of it."""

SSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
CHUNKED_HEAD = SSE_HEAD.replace(b"connection: close", b"transfer-encoding: chunked")

Step: TypeAlias = "bytes | Callable[[Conversation], Awaitable[None]]"


class Conversation:
    """A request that the upstream got, and the means to answer it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.head = b""
        self.body = b""

    async def read(self) -> None:
        self.head = await self.reader.readuntil(b"\r\n\r\n")
        if (length := self.header("content-length")) is not None:
            self.body = await self.reader.readexactly(int(length))
        elif self.header("transfer-encoding") is not None:
            while size := int(await self.reader.readline(), 16):
                self.body += await self.reader.readexactly(size)
                await self.reader.readline()
            await self.reader.readline()

    def header(self, name: str) -> str | None:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return next((line.partition(":")[2].strip() for line in lines if line.lower().startswith(f"{name}:")), None)

    @property
    def line(self) -> str:
        return self.head.decode("latin-1").partition("\r\n")[0]


async def hang(conversation: Conversation) -> None:
    """Say nothing until the other side gives up."""
    await conversation.reader.read()


async def abort(conversation: Conversation) -> None:
    """Break the connection."""
    conversation.writer.transport.abort()


class Upstream:
    """Answers every request with the same steps: bytes to send, or what else to do. Then it closes the connection."""

    def __init__(self, *steps: Step) -> None:
        self.steps: Iterable[Step] = steps
        self.got: list[Conversation] = []
        self.open = 0
        self.sent = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> "Upstream":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        conversation = Conversation(reader, writer)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await conversation.read()
                self.got.append(conversation)
                for step in self.steps:
                    if isinstance(step, bytes):
                        writer.write(step)
                        await writer.drain()
                        self.sent += len(step)
                    else:
                        await step(conversation)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            self._tasks.discard(task)
            self.open -= 1


class Proxy:
    """The proxy as it runs."""

    def __init__(self, server: uvicorn.Server, transport: httpx.AsyncHTTPTransport) -> None:
        self._server = server
        self._pool = transport._pool
        self.port = server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.AsyncClient(base_url=self.url, timeout=PATIENCE, trust_env=False, verify=False)

    async def complete(self, **request: Any) -> httpx.Response:
        """The answer to a request for a chat completion, read to its end."""
        return await self.client.post("/v1/chat/completions", json={"model": "m", "messages": [], **request})

    def stream(self, **request: Any) -> AbstractAsyncContextManager[httpx.Response]:
        """The same, to be read by the test."""
        return self.client.stream("POST", "/v1/chat/completions", json={"model": "m", "messages": [], **request})

    def request(self, **fields: Any) -> bytes:
        """Such a request as bytes, for clients that misbehave."""
        body = json.dumps({"model": "m", "messages": [], **fields}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: proxy\r\ncontent-length: {len(body)}\r\n\r\n"
        return head.encode() + body

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, limit=2**12)

    def left_over(self, tasks: set["asyncio.Task[Any]"]) -> list[object]:
        """What should be gone when no exchange is open."""
        state = self._server.server_state
        gc.collect()
        kept = [each for each in gc.get_objects() if isinstance(each, EventStreamHealer | Client)]
        return [*(asyncio.all_tasks() - tasks), *state.connections, *state.tasks, *self._pool.connections, *kept]


@asynccontextmanager
async def serve(
    upstream: Upstream, options: HealingOptions | None = None, path: str = "", **settings: Any
) -> AsyncIterator[Proxy]:
    """The proxy in front of an upstream, or of a path of it. In the end nothing may be left of what went through it."""
    transport = httpx.AsyncHTTPTransport(
        verify=False, limits=httpx.Limits(max_connections=None, max_keepalive_connections=0)
    )
    wanted = ProxySettings(upstream=upstream.url + path, options=options or HealingOptions(), **settings)
    app = create_app(wanted, transport=transport)
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, access_log=False, ws="none")
    config.timeout_graceful_shutdown = 1
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    await until(lambda: server.started or running.done())
    tasks = asyncio.all_tasks()
    proxy = Proxy(server, transport)
    try:
        yield proxy
        await proxy.client.aclose()
        await until(lambda: upstream.open == 0)
        await until(lambda: not proxy.left_over(tasks), lambda: proxy.left_over(tasks))
    finally:
        await proxy.client.aclose()
        server.should_exit = True
        await running


async def until(
    holds: Callable[[], bool], why: Callable[[], object] = lambda: "it never came true", patience: float = PATIENCE
) -> None:
    """Wait for something to become true."""
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while not holds():
                await asyncio.sleep(0.01)
    assert holds(), why()


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test's coroutine in an event loop of its own."""
    asyncio.run(test())
