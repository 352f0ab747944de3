"""Healing inside the client: the transports for httpx and httpx2, over transports that answer from a script."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import httpx2
import pytest

from dialects.healing.transport import AsyncHealingTransport, HealingTransport
from tests.test_sse import LEAK, Answer, chunk, event

URL = "http://upstream.test/v1/chat/completions"
TOOLS = [{"type": "function", "function": {"name": "get_tide", "parameters": {"type": "object"}}}]
REQUEST = {"model": "moonshotai/Kimi-K2-Instruct", "messages": [], "tools": TOOLS, "stream": True}
SSE = {"content-type": "text/event-stream; charset=utf-8"}
STREAM = [event(chunk(LEAK[at : at + 9])) for at in range(0, len(LEAK), 9)] + [event(chunk("", "stop"))]
WHOLE = {
    "id": "c",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": LEAK}, "finish_reason": "stop"}],
    "usage": {"total_tokens": 7},
}

ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "identity": bytes,
    "gzip": lambda data: gzip.compress(data),
    "deflate": lambda data: zlib.compress(data),
}

Handler = Callable[[Any], Any]

every_library = pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])


class Body:
    """A body that comes in pieces, and says whether it was closed. An exception among the pieces is raised."""

    def __init__(self, library: Any, pieces: list[Any]) -> None:
        body = self
        self.closed = False
        self.read = 0

        class Stream(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc]
            def __iter__(self) -> Iterator[bytes]:
                for piece in pieces:
                    if isinstance(piece, Exception):
                        raise piece
                    body.read += 1
                    yield piece

            async def __aiter__(self) -> AsyncIterator[bytes]:
                for piece in self:
                    await asyncio.sleep(0)
                    yield piece

            def close(self) -> None:
                body.closed = True

            async def aclose(self) -> None:
                body.closed = True

        self.stream = Stream()


def post(library: Any, handler: Handler, request: Any = REQUEST, url: str = URL, **options: Any) -> Any:
    """The answer to a request, read to its end."""
    with library.Client(transport=HealingTransport(library.MockTransport(handler), **options)) as client:
        return client.post(url, json=request)


def apost(library: Any, handler: Handler, request: Any = REQUEST, url: str = URL, **options: Any) -> Any:
    async def run() -> Any:
        transport = AsyncHealingTransport(library.MockTransport(handler), **options)
        async with library.AsyncClient(transport=transport) as client:
            return await client.post(url, json=request)

    return asyncio.run(run())


every_client = pytest.mark.parametrize("post", [post, apost], ids=["sync", "async"])


@every_library
@every_client
def test_a_stream_is_healed(library: Any, post: Any) -> None:
    body = Body(library, STREAM)
    response = post(library, lambda _: library.Response(200, headers=SSE, stream=body.stream))
    answer = Answer(response.content)
    assert (answer.content, answer.names, answer.finish) == ("Moin.", ["get_tide"], ["tool_calls"])
    assert json.loads(answer.arguments) == {"port": "Büsum"}
    assert body.closed


@every_library
@every_client
@pytest.mark.parametrize("encoding", ENCODERS)
def test_a_whole_answer_is_healed_under_any_encoding(library: Any, post: Any, encoding: str) -> None:
    def handler(_: Any) -> Any:
        headers = {"content-type": "application/json", "content-encoding": encoding, "x-request-id": "7", "etag": "x"}
        return library.Response(200, headers=headers, content=ENCODERS[encoding](json.dumps(WHOLE).encode()))

    response = post(library, handler)
    (choice,) = response.json()["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Moin.", "tool_calls")
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "get_tide", "arguments": '{"port":"Büsum"}'}
    assert response.json()["usage"] == {"total_tokens": 7}
    assert response.headers["content-length"] == str(len(response.content))
    assert response.headers["x-request-id"] == "7"
    assert not {"content-encoding", "etag"} & {*response.headers}


@every_client
def test_a_compressed_stream_is_healed(post: Any) -> None:
    data = gzip.compress(b"".join(STREAM))
    pieces = [data[at : at + 50] for at in range(0, len(data), 50)]
    headers = {**SSE, "content-encoding": "gzip"}
    response = post(httpx, lambda _: httpx.Response(200, headers=headers, stream=Body(httpx, pieces).stream))
    assert Answer(response.content).names == ["get_tide"]
    assert "content-encoding" not in response.headers


@every_client
@pytest.mark.parametrize(
    ("status", "content_type", "url", "request_body"),
    [
        (200, "text/event-stream", "http://upstream.test/v1/completions", REQUEST),
        (200, "text/event-stream", "http://upstream.test/v1/chat/completions/7", REQUEST),
        (200, "text/plain", URL, REQUEST),
        (429, "text/event-stream", URL, REQUEST),
        (500, "application/json", URL, REQUEST),
        (200, "application/json", URL, []),
        (200, "text/event-stream", URL, 7),
    ],
)
def test_everything_else_passes_byte_for_byte(
    post: Any, status: int, content_type: str, url: str, request_body: Any
) -> None:
    data = b"".join(STREAM) + b"\x00\xff"
    headers = {"content-type": content_type, "retry-after": "3"}
    response = post(
        httpx, lambda _: httpx.Response(status, headers=headers, content=data), request=request_body, url=url
    )
    assert (response.status_code, response.content) == (status, data)
    assert (response.headers["retry-after"], response.headers["content-length"]) == ("3", str(len(data)))


@pytest.mark.parametrize("body", [b"not json", b'{"choices": null, "a": 1.50}', b"[1, 2]"])
def test_json_that_is_no_completion_passes_byte_for_byte(body: bytes) -> None:
    headers = {"content-type": "application/json"}
    assert post(httpx, lambda _: httpx.Response(200, headers=headers, content=body)).content == body


def test_an_encoding_that_cannot_be_taken_off_is_not_asked_for_and_passes() -> None:
    asked = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers["accept-encoding"])
        return httpx.Response(200, headers={**SSE, "content-encoding": "snappy"}, content=b"\x00data: {\n\n")

    transport = HealingTransport(httpx.MockTransport(handler))
    with httpx.Client(transport=transport, headers={"accept-encoding": "br, gzip;q=0.5, zstd"}) as client:
        assert client.post(URL, json=REQUEST).content == b"\x00data: {\n\n"
        client.get(URL)
    assert asked == ["gzip;q=0.5", "br, gzip;q=0.5, zstd"]


@every_client
def test_only_tools_that_the_request_offers_are_recovered(post: Any) -> None:
    for request, names, visible in [
        (REQUEST, ["get_tide"], "Moin."),
        ({**REQUEST, "tools": [{"type": "web_search"}, *TOOLS]}, ["get_tide"], "Moin."),
        ({"messages": [], "functions": [TOOLS[0]["function"]]}, ["get_tide"], "Moin."),
        ({**REQUEST, "tool_choice": "none"}, [], "Moin."),
        (
            {"messages": []},
            [],
            LEAK.replace("<|tool_calls_section_begin|>", "").replace("<|tool_calls_section_end|>", ""),
        ),
    ]:
        answer = Answer(
            post(httpx, lambda _: httpx.Response(200, headers=SSE, content=b"".join(STREAM)), request=request).content
        )
        assert (answer.names, answer.content) == (names, visible), request


def test_the_pattern_may_follow_the_model() -> None:
    def names(pattern: str, model: str) -> list[str]:
        answer = httpx.Response(200, headers=SSE, content=b"".join(STREAM))
        return Answer(post(httpx, lambda _: answer, {**REQUEST, "model": model}, pattern=pattern).content).names

    assert names("model", "moonshotai/Kimi-K2-Instruct") == ["get_tide"]
    assert names("model", "example/nothing-known") == []
    assert names("auto", "example/nothing-known") == ["get_tide"]


def test_wrong_options_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="atomic"):
        HealingTransport(mode="eager")
    with pytest.raises(ValueError, match="kimmi"):
        AsyncHealingTransport(pattern="kimmi")
    with pytest.raises(TypeError, match="patern"):
        HealingTransport(patern="auto")


@every_client
def test_a_connection_that_breaks_gives_the_held_text_and_then_the_exception(post: Any) -> None:
    body = Body(httpx, [event(chunk("Moin <tool")), httpx.ReadError("gone")])
    seen: list[bytes] = []

    def read() -> None:
        with (
            httpx.Client(
                transport=HealingTransport(
                    httpx.MockTransport(lambda _: httpx.Response(200, headers=SSE, stream=body.stream))
                )
            ) as client,
            client.stream("POST", URL, json=REQUEST) as response,
        ):
            seen.extend(response.iter_raw())

    with pytest.raises(httpx.ReadError, match="gone"):
        read()
    assert body.closed
    assert b"[DONE]" not in b"".join(seen)
    contents = [
        json.loads(line[6:])["choices"][0]["delta"].get("content") for line in b"".join(seen).split(b"\n\n")[:-1]
    ]
    assert "".join(filter(None, contents)) == "Moin <tool"


def test_a_client_that_leaves_closes_the_upstream() -> None:
    for leave_after in (0, 1, 3):
        body = Body(httpx, STREAM[:1] * 100)
        answer = httpx.Response(200, headers=SSE, stream=body.stream)
        transport = HealingTransport(httpx.MockTransport(lambda _, answer=answer: answer))
        with httpx.Client(transport=transport) as client, client.stream("POST", URL, json=REQUEST) as response:
            pieces = response.iter_bytes()
            for _ in range(leave_after):
                next(pieces)
        assert body.closed
        assert body.read < 100


def test_an_asynchronous_client_that_is_cancelled_closes_the_upstream() -> None:
    body = Body(httpx, STREAM[:3] * 1000)

    async def run() -> None:
        transport = AsyncHealingTransport(
            httpx.MockTransport(lambda _: httpx.Response(200, headers=SSE, stream=body.stream))
        )
        async with httpx.AsyncClient(transport=transport) as client:
            started = asyncio.Event()

            async def read() -> None:
                async with client.stream("POST", URL, json=REQUEST) as response:
                    async for _ in response.aiter_bytes():
                        started.set()

            task = asyncio.create_task(read())
            await started.wait()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()

    asyncio.run(run())
    assert body.closed


def test_the_wrapped_transport_is_closed_with_the_client() -> None:
    class Wrapped(httpx.MockTransport):
        closed = 0

        def close(self) -> None:
            self.closed += 1

    wrapped = Wrapped(lambda _: httpx.Response(204))
    with httpx.Client(transport=HealingTransport(wrapped)) as client:
        assert client.get(URL).status_code == 204
    assert wrapped.closed == 1
    httpx.Client(transport=HealingTransport()).close()
