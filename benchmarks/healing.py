"""Measures what healing costs: `python benchmarks/healing.py [--quick] [--dialect NAME]`.

First the healer beside the bare scanner, in layers, on the same pieces of text. Then the proxy beside one that only
passes bytes on, written with the same libraries: each in a process of its own, in front of the same upstream, which
runs in this process with the client. The chunks of a stream go *one by one* (the next is sent when the client has the
last: what a chunk is delayed) and *at once* (as fast as they are read: what a chunk costs when the proxy is busy).
Every figure is the median of several runs that take turns. README.md beside this file says how to read the tables.
"""

import argparse
import asyncio
import json
import multiprocessing
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from benchmarks.streams import TOOLS, large_call, plain_prose
from dialects import create_inband_scanner, dialect_names
from dialects.healing import ChatCompletionHealer, EventStreamHealer, StreamHealer
from dialects.proxy.app import create_app
from dialects.proxy.settings import ProxySettings

CHUNK_CHARS = 4
MARK = b'"content":"'


class Layer(NamedTuple):
    """What is measured: how it is made, and what it is fed."""

    name: str
    make: Callable[[], Any]
    pieces: Sequence[Any]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure what healing costs.")
    parser.add_argument("--dialect", default="kimi", choices=dialect_names(), help="which one (default: kimi)")
    parser.add_argument("--quick", action="store_true", help="short streams, fewer runs")
    options = parser.parse_args(argv)
    runs = 3 if options.quick else 5
    healers(options.dialect, size=10_000 if options.quick else 60_000, runs=runs)
    asyncio.run(proxies(chunks=300 if options.quick else 2000, runs=runs))
    return 0


# -- the healer, in layers


def healers(dialect: str, *, size: int, runs: int) -> None:
    """Print a table for prose and for one large call."""
    for stream in (plain_prose(size), large_call(dialect, size)):
        text = stream.text
        pieces = [text[at : at + CHUNK_CHARS] for at in range(0, len(text), CHUNK_CHARS)]
        chunks = [chunk_of(piece) for piece in pieces]
        events = [event_of(each) for each in chunks]
        layers = [
            Layer("bare scanner", partial(create_inband_scanner, dialect, tools=TOOLS), pieces),
            Layer("StreamHealer", partial(StreamHealer, dialect, tools=TOOLS), pieces),
            Layer("StreamHealer, auto", partial(StreamHealer, "auto", tools=TOOLS), pieces),
            Layer("ChatCompletionHealer", partial(ChatCompletionHealer, dialect, tools=TOOLS), chunks),
            Layer("EventStreamHealer", partial(healer_of_events, dialect), events),
        ]
        print(f"\n{stream.name}, {len(pieces)} chunks of {CHUNK_CHARS} characters\n")
        table(["layer", "ns/chunk", "x scanner"], measured(layers, runs))


def healer_of_events(dialect: str) -> EventStreamHealer:
    return EventStreamHealer(ChatCompletionHealer(dialect, tools=TOOLS))


def timed(healer: Any, pieces: Sequence[Any]) -> float:
    """Seconds that feeding takes."""
    feed = healer.feed
    start = perf_counter()
    for piece in pieces:
        feed(piece)
    return perf_counter() - start


def chunk_of(text: str) -> dict[str, Any]:
    """A chunk as servers send it."""
    choice = {"index": 0, "delta": {"content": text}, "logprobs": None, "finish_reason": None}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "example/Model"}
    return {**head, "choices": [choice]}


def event_of(chunk: dict[str, Any]) -> bytes:
    """The same as an event."""
    return f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n".encode()


# -- the proxy, beside one that does nothing


async def proxies(*, chunks: int, runs: int) -> None:
    """Print a table of both ways to send."""
    text = plain_prose(chunks * CHUNK_CHARS).text
    events = [event_of(chunk_of(text[at : at + CHUNK_CHARS])) for at in range(0, len(text), CHUNK_CHARS)]
    async with Upstream(events) as upstream:
        url = f"http://127.0.0.1:{upstream.port}"
        async with serving(pass_through, url) as plain, serving(healing, url) as healed:
            for name, one_by_one in (("one by one", True), ("at once", False)):
                seconds: dict[str, list[float]] = {"direct": [], "pass-through": [], "dialects proxy": []}
                for number in range(runs + 1):
                    for which, port in zip(seconds, (upstream.port, plain, healed), strict=True):
                        took = await upstream.run(port, one_by_one=one_by_one)
                        if number:  # the first one warms up
                            seconds[which].append(took)
                rows = [(which, median(times) / len(events) * 1e6) for which, times in seconds.items()]
                base = rows[1][1]
                print(f"\n{len(events)} chunks of {CHUNK_CHARS} characters through a proxy, {name}\n")
                table(
                    ["", "us/chunk", "x pass-through"],
                    [[which, f"{took:.1f}", f"{took / base:.2f}"] for which, took in rows],
                )


class Upstream:
    """Sends a stream of events to whoever asks, and measures how long it takes to reach the client through a proxy."""

    def __init__(self, events: list[bytes]) -> None:
        self._events = events
        self._marks = sum(event.count(MARK) for event in events)
        self._one_by_one = False
        self._arrived = asyncio.Event()
        self.port = 0

    async def __aenter__(self) -> "Upstream":
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def run(self, port: int, *, one_by_one: bool) -> float:
        """Seconds for one stream through what listens on that port."""
        self._one_by_one = one_by_one
        self._arrived.clear()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = b'{"model":"example/Model","messages":[],"stream":true}'
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        start = perf_counter()
        writer.write(head.encode() + body)
        seen, rest = 0, b""
        while data := await reader.read(1 << 16):
            rest += data
            count = rest.count(MARK)
            if count:
                seen += count
                rest = rest[rest.rindex(MARK) + len(MARK) :]
                self._arrived.set()
        seconds = perf_counter() - start
        writer.close()
        assert seen >= self._marks - 1, f"{seen} of {self._marks} chunks arrived"
        return seconds

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for event in self._events:
            writer.write(event)
            await writer.drain()
            if self._one_by_one:
                await self._arrived.wait()
                self._arrived.clear()
        writer.write(b"data: [DONE]\n\n")
        writer.close()
        await writer.wait_closed()


def healing(upstream: str, port: int) -> None:
    """A process: the proxy."""
    serve(create_app(ProxySettings(upstream=upstream)), port)


def pass_through(upstream: str, port: int) -> None:
    """A process: the least that a proxy of the same libraries can do."""
    transport = httpx.AsyncHTTPTransport()

    async def forward(request: Request) -> Response:
        headers = [(name, value) for name, value in request.headers.raw if name != b"host"]
        asked = httpx.Request("POST", f"{upstream}{request.url.path}", headers=headers, content=await request.body())
        answer = await transport.handle_async_request(asked)
        media_type = answer.headers["content-type"]
        return StreamingResponse(answer.aiter_raw(), media_type=media_type, background=BackgroundTask(answer.aclose))

    serve(Starlette(routes=[Route("/{path:path}", forward, methods=["POST"])]), port)


def serve(app: Any, port: int) -> None:
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


@asynccontextmanager
async def serving(target: Callable[[str, int], None], upstream: str) -> AsyncIterator[int]:
    """Such a process, and the port that it listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    process = multiprocessing.get_context("spawn").Process(target=target, args=(upstream, port))
    process.start()
    try:
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionError:
                assert process.is_alive(), "a proxy did not start"
                await asyncio.sleep(0.05)
            else:
                writer.close()
                break
        yield port
    finally:
        process.terminate()
        process.join()


# -- tables


def measured(layers: list[Layer], runs: int) -> list[list[str]]:
    """A row a layer; the runs take turns, so that what else the machine does hits all alike."""
    seconds: dict[str, list[float]] = {layer.name: [] for layer in layers}
    for _ in range(runs):
        for layer in layers:
            seconds[layer.name].append(timed(layer.make(), layer.pieces))
    medians = {name: median(times) for name, times in seconds.items()}
    floor, count = medians[layers[0].name], len(layers[0].pieces)
    return [[name, f"{took / count * 1e9:.0f}", f"{took / floor:.2f}"] for name, took in medians.items()]


def table(head: list[str], rows: list[list[str]]) -> None:
    """Columns, the first to the left, the others to the right."""
    first, *others = (max(map(len, column)) for column in zip(head, *rows, strict=True))
    for name, *figures in (head, *rows):
        print("  ".join([name.ljust(first), *map(str.rjust, figures, others)]))


if __name__ == "__main__":
    sys.exit(main())
