"""The proxy as a whole: uvicorn and real sockets, in front of an upstream that does as it is told."""

import asyncio
import gc
import gzip
import json
import logging
import sys
import tracemalloc
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from dialects.healing.http import HealingOptions
from dialects.proxy.logs import JsonFormatter
from dialects.proxy.settings import ProxySettings
from tests.loopback import (
    CHUNKED_HEAD,
    SSE_HEAD,
    Conversation,
    Proxy,
    Step,
    Upstream,
    abort,
    hang,
    run,
    serve,
    until,
)
from tests.test_sse import LEAK, Answer, chunk, event

TOOLS = [{"type": "function", "function": {"name": "get_tide", "parameters": {"type": "object"}}}]
DONE = b"data: [DONE]\n\n"
STREAM = [event(chunk(LEAK[at : at + 9])) for at in range(0, len(LEAK), 9)]
END = event(chunk("", "stop")) + DONE
MID_CALL = event(chunk(LEAK[: LEAK.index("Büsum") + 2]))


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


def answer(status: str, headers: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nconnection: close\r\n{headers}content-length: {len(body)}\r\n\r\n".encode() + body


def ask(*steps: Step, request: dict[str, Any] | None = None, **settings: Any) -> httpx.Response:
    """What a client gets for a request for a completion, if the upstream does this."""

    async def talk() -> httpx.Response:
        async with Upstream(*steps) as upstream, serve(upstream, **settings) as proxy:
            return await proxy.complete(stream=True, tools=TOOLS, **(request or {}))

    return asyncio.run(talk())


def metrics(text: str) -> dict[str, float]:
    """The numbers of `/metrics`, by name and labels."""
    return {
        sample.name + "".join(f" {value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


# Healing.


def test_a_leaked_call_arrives_as_a_call() -> None:
    response = ask(SSE_HEAD, *STREAM, END)
    healed = Answer(response.content)
    assert (healed.content, healed.names, healed.finish) == ("Moin.", ["get_tide"], ["tool_calls"])
    assert json.loads(healed.arguments) == {"port": "Büsum"}
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-accel-buffering"] == "no"


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_whole_answer_is_healed_and_its_length_is_right(encoding: str) -> None:
    message = {"role": "assistant", "content": LEAK}
    body = json.dumps({"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
    body = gzip.compress(body) if encoding == "gzip" else body
    head = f"content-type: application/json\r\ncontent-encoding: {encoding}\r\nx-request-id: 7\r\n"
    response = ask(answer("200 OK", head, body))
    (choice,) = response.json()["choices"]
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "get_tide"
    assert response.headers["content-length"] == str(len(response.content))
    assert response.headers["x-request-id"] == "7"
    assert "content-encoding" not in response.headers


def test_a_whole_answer_that_is_too_long_to_be_healed_passes() -> None:
    body = json.dumps({"choices": [{"message": {"content": LEAK}}], "more": "x" * 100_000}).encode()
    options = HealingOptions(max_body_bytes=1000)
    assert ask(answer("200 OK", "content-type: application/json\r\n", body), options=options).content == body


def test_a_stream_that_ends_with_its_connection_is_not_read_beyond_done() -> None:
    response = ask(SSE_HEAD, *STREAM, END, event(chunk("more")), hang)
    assert Answer(response.content).finish == ["tool_calls"]


def test_text_arrives_before_the_stream_is_over() -> None:
    async def test() -> None:
        seen = asyncio.Event()

        async def wait(_: Conversation) -> None:
            await seen.wait()

        async with (
            Upstream(SSE_HEAD, event(chunk("first")), wait, END) as upstream,
            serve(upstream) as proxy,
            proxy.stream() as response,
        ):
            async for line in response.aiter_lines():
                if "first" in line:
                    seen.set()
            assert seen.is_set()

    run(test)


# What passes.


def test_every_other_path_passes_byte_for_byte_in_both_directions() -> None:
    body = gzip.compress(bytes(range(256)) * 1000)
    upload = bytes(range(256)) * 5000

    async def test() -> None:
        head = "content-type: text/event-stream\r\ncontent-encoding: gzip\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n"
        async with Upstream(answer("201 Created", head, body)) as upstream, serve(upstream) as proxy:
            path = "/v1/files%2Fa/%C3%BC?q=a%20b&c"
            request = proxy.client.build_request("PUT", path, content=upload, headers={"accept-encoding": "zstd"})
            response = await proxy.client.send(request, stream=True)
            assert b"".join([piece async for piece in response.aiter_raw()]) == body
            assert response.status_code == 201
            assert response.headers.get_list("set-cookie") == ["a=1", "b=2"]
            assert (response.headers["content-encoding"], response.headers["content-length"]) == (
                "gzip",
                str(len(body)),
            )
            (got,) = upstream.got
            assert (got.line, got.body) == (f"PUT {path} HTTP/1.1", upload)
            assert got.header("accept-encoding") == "zstd"

    run(test)


def test_an_upload_without_a_length_passes() -> None:
    async def test() -> None:
        async def pieces() -> Any:
            for number in range(5):
                yield b"%d" % number * 1000

        async with Upstream(answer("200 OK", "", b"ok")) as upstream, serve(upstream) as proxy:
            response = await proxy.client.post("/v1/files", content=pieces())
            assert response.text == "ok"
            assert len(upstream.got[0].body) == 5000

    run(test)


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        ("429 Too Many Requests", "retry-after: 7\r\ncontent-type: application/json\r\n", b'{"error": {"code": 1.50}}'),
        ("500 Internal Server Error", "content-type: text/event-stream\r\n", STREAM[0]),
        ("401 Unauthorized", "www-authenticate: Bearer\r\ncontent-type: text/plain\r\n", b"no"),
        ("307 Temporary Redirect", "location: http://elsewhere.test/v1\r\n", b""),
        ("200 OK", "content-type: text/plain\r\n", STREAM[0]),
    ],
)
def test_answers_that_are_not_healed_pass_with_their_headers(status: str, headers: str, body: bytes) -> None:
    response = ask(answer(status, headers, body))
    assert (response.status_code, response.content) == (int(status[:3]), body)
    for line in headers.split("\r\n")[:-1]:
        name, _, value = line.partition(": ")
        assert response.headers[name] == value


@pytest.mark.parametrize(
    ("method", "status"), [("HEAD", "200 OK"), ("GET", "204 No Content"), ("GET", "304 Not Modified")]
)
def test_answers_without_a_body_pass(method: str, status: str) -> None:
    async def test() -> None:
        head = f"HTTP/1.1 {status}\r\nconnection: close\r\netag: x\r\n".encode()
        head += b"content-length: 70\r\n\r\n" if method == "HEAD" else b"\r\n"
        async with Upstream(head) as upstream, serve(upstream) as proxy:
            response = await proxy.client.request(method, "/v1/models")
            assert (response.status_code, response.content, response.headers["etag"]) == (int(status[:3]), b"", "x")
            assert response.headers.get("content-length") == ("70" if method == "HEAD" else None)

    run(test)


def test_headers_of_one_connection_do_not_pass_and_the_key_goes_to_the_upstream() -> None:
    async def test() -> None:
        hop = "keep-alive: timeout=5\r\nproxy-authenticate: x\r\nx-mine: 1\r\nx-other: 2\r\n"
        steps = answer("200 OK", f"content-type: text/plain\r\n{hop}", b"ok").replace(b": close", b": close, X-Mine")
        async with Upstream(steps) as upstream, serve(upstream) as proxy:
            sent = {
                "authorization": "Bearer key",
                "connection": "keep-alive, x-hop",
                "x-hop": "1",
                "te": "trailers",
                "proxy-authorization": "secret",
                "x-end": "2",
            }
            response = await proxy.client.post("/v1/chat/completions", json={"messages": []}, headers=sent)
            assert response.headers["x-other"] == "2"
            assert not {"keep-alive", "proxy-authenticate", "x-mine"} & {*response.headers}
            (got,) = upstream.got
            assert (got.header("authorization"), got.header("x-end")) == ("Bearer key", "2")
            assert got.header("host") == f"127.0.0.1:{upstream.port}"
            assert [got.header(name) for name in ("x-hop", "te", "proxy-authorization")] == [None] * 3
            assert got.header("accept-encoding") == "identity"

    run(test)


@pytest.mark.parametrize(
    ("base", "path", "reached"),
    [
        ("", "/v1/models", "/v1/models"),
        ("/", "/v1/models", "/v1/models"),
        ("/v1", "/v1/models", "/v1/models"),
        ("/api/v1/", "/models", "/api/v1/models"),
        ("/api/v1", "/v1/models?a=/v1/", "/api/v1/models?a=/v1/"),
        ("/api", "//x", "/api//x"),
        ("/api", "/../x", None),
        ("/api", "/%2e%2E/x", None),
    ],
)
def test_a_path_is_put_behind_that_of_the_upstream_and_never_leaves_it(
    base: str, path: str, reached: str | None
) -> None:
    async def test() -> None:
        async with Upstream(answer("200 OK", "", b"ok")) as upstream, serve(upstream, path=base) as proxy:
            reader, writer = await proxy.connect()
            writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
            status = (await reader.read()).split(b" ")[1]
            writer.close()
            assert status == (b"200" if reached else b"400")
            assert [got.line for got in upstream.got] == ([f"GET {reached} HTTP/1.1"] if reached else [])

    run(test)


# What goes wrong.


def test_an_upstream_that_cannot_be_reached_is_a_bad_gateway() -> None:
    async def test() -> None:
        async with Upstream() as upstream:
            pass
        async with serve(upstream) as proxy:
            response = await proxy.complete()
            assert response.status_code == 502
            assert response.json()["error"]["type"] == "upstream_error"
            assert response.json()["error"].keys() == {"message", "type", "param", "code"}
            assert (await proxy.client.get("/v1/models")).status_code == 502

    run(test)


@pytest.mark.parametrize("steps", [[hang], [b"HTTP/1.1 200 OK\r\ncontent-ty", hang]], ids=["silent", "half a head"])
def test_an_upstream_that_does_not_answer_is_a_gateway_timeout(steps: list[Step]) -> None:
    response = ask(*steps, read_timeout=0.2)
    assert (response.status_code, response.json()["error"]["code"]) == (504, "upstream_timeout")


def test_a_whole_answer_that_breaks_off_is_a_bad_gateway() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n"
    assert ask(head, b'{"choices": [').status_code == 502
    assert ask(head, b'{"choices": [', hang, read_timeout=0.2).status_code == 504


def test_an_upstream_that_hangs_in_a_stream_gives_an_error_event() -> None:
    healed = Answer(ask(SSE_HEAD, *STREAM[:2], MID_CALL, hang, read_timeout=0.2).content)
    assert (healed.errors[0]["code"], healed.finish, healed.names) == ("upstream_timeout", [], [])
    assert healed.content.startswith("Moin.")


@pytest.mark.parametrize("mode", ["atomic", "progressive"])
@pytest.mark.parametrize("tail", [abort, b""], ids=["reset", "closed"])
def test_a_connection_that_breaks_in_the_middle_of_a_call_never_completes_it(mode: Any, tail: Step) -> None:
    response = ask(CHUNKED_HEAD, chunked(MID_CALL), tail, options=HealingOptions(mode=mode))
    healed = Answer(response.content)
    assert (healed.errors[0]["code"], healed.finish) == ("upstream_error", [])
    assert "}" not in healed.arguments
    assert mode == "progressive" or not healed.names


@pytest.mark.parametrize("mode", ["atomic", "progressive"])
def test_a_stream_that_ends_in_the_middle_of_a_call_ends_for_its_length(mode: Any) -> None:
    healed = Answer(ask(SSE_HEAD, MID_CALL, options=HealingOptions(mode=mode)).content)
    assert (healed.finish, healed.errors) == (["length"], [])
    assert "}" not in healed.arguments


@pytest.mark.parametrize("back", [1, 3, 5, 20, 60])
def test_a_stream_that_ends_in_the_middle_of_an_event_or_of_a_character_is_an_error(back: int) -> None:
    data = event(chunk("ü"))
    cut = data[: data.index("ü".encode()) + 1] if back == 1 else data[:-back]
    healed = Answer(ask(SSE_HEAD, event(chunk("Moin.")), cut).content)
    assert (healed.content, healed.errors[0]["code"]) == ("Moin.", "upstream_incomplete")


def test_an_error_event_reaches_the_client_behind_the_text() -> None:
    error = event({"error": {"message": "overloaded", "code": 503}})
    healed = Answer(ask(SSE_HEAD, event(chunk("Moin <tool")), error, hang).content)
    assert (healed.content, healed.finish) == ("Moin <tool", [])
    assert (healed.errors[0]["message"], healed.errors[0]["code"]) == ("overloaded", 503)


@pytest.mark.parametrize("end", [b"", DONE, event(chunk("", "stop"))], ids=["nothing", "done", "reason"])
def test_a_reason_and_done_come_even_if_the_upstream_sends_none(end: bytes) -> None:
    healed = Answer(ask(SSE_HEAD, *STREAM, end).content)
    assert (healed.names, healed.finish) == (["get_tide"], ["tool_calls"])


def test_an_upstream_that_compresses_wrongly_is_an_error() -> None:
    head = SSE_HEAD.replace(b"connection", b"content-encoding: gzip\r\nconnection")
    assert Answer(ask(head, b"not gzip").content).errors[0]["code"] == "upstream_error"


def test_an_answer_that_is_cut_does_not_look_whole() -> None:
    async def test() -> None:
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        async with Upstream(head, chunked(b"half"), abort) as upstream, serve(upstream) as proxy:
            with pytest.raises(httpx.RemoteProtocolError):
                await proxy.client.get("/v1/files/7")

    run(test)


def test_a_request_that_is_too_long_is_refused() -> None:
    async def test() -> None:
        async with Upstream(hang) as upstream, serve(upstream, max_request_bytes=1000) as proxy:
            response = await proxy.complete(more="x" * 2000)
            assert (response.status_code, response.json()["error"]["code"]) == (413, "request_too_large")
            assert upstream.got == []

    run(test)


def test_an_event_that_is_too_long_is_an_error() -> None:
    async def forever(conversation: Conversation) -> None:
        while True:
            conversation.writer.write(b"x" * 1000)
            await conversation.writer.drain()
            await asyncio.sleep(0)

    response = ask(SSE_HEAD, b"data: ", forever, options=HealingOptions(max_event_bytes=100_000))
    assert Answer(response.content).errors[0]["code"] == "upstream_event_too_large"


def test_held_text_is_bounded() -> None:
    text = "<tool_call>" + json.dumps({"name": "get_tide", "arguments": {"x": "y" * 5000}})
    draft = event(chunk(f"<think>\n{text}")) * 20
    options = HealingOptions(scanner_options={"max_held_chars": 3000})
    healed = Answer(ask(SSE_HEAD, draft, END, options=options).content)
    assert healed.errors == []
    assert healed.finish


# Clients that leave.


async def leaves(proxy: Proxy, upstream: Upstream, data: bytes, *, after: bytes = b"") -> None:
    """A client sends this, waits for the upstream to be busy and for `after`, and leaves."""
    reader, writer = await proxy.connect()
    writer.write(data)
    await until(lambda: upstream.open == 1)
    if after:
        await reader.readuntil(after)
    writer.close()
    await until(lambda: upstream.open == 0)


def test_the_upstream_is_let_go_at_once_when_the_client_leaves() -> None:
    async def test() -> None:
        async with Upstream(SSE_HEAD, STREAM[0], hang) as upstream, serve(upstream) as proxy:
            await leaves(proxy, upstream, proxy.request(stream=True, tools=TOOLS), after=b"Moin")
        async with Upstream(hang) as upstream, serve(upstream) as proxy:
            await leaves(proxy, upstream, proxy.request(stream=True))
            await leaves(proxy, upstream, b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n")
            gone = metrics((await proxy.client.get("/metrics")).text)
            assert gone["dialects_requests_total pass client_gone"] == 2
            assert gone["dialects_streams_active"] == gone["dialects_held_bytes"] == 0
        async with Upstream(answer("200 OK", "", b"x" * 100)[:-50], hang) as upstream, serve(upstream) as proxy:
            await leaves(proxy, upstream, b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n", after=b"xxx")

    run(test)


def test_a_client_that_leaves_in_its_request_leaves_nothing_behind() -> None:
    async def test() -> None:
        async with Upstream(hang) as upstream, serve(upstream) as proxy:
            head = b"POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n"
            await leaves(proxy, upstream, head + b"x" * 10)
            _, writer = await proxy.connect()
            writer.write(proxy.request(more="x" * 1000)[:-500])
            await asyncio.sleep(0.05)
            writer.close()

    run(test)


def test_a_client_that_reads_slowly_slows_the_upstream_down() -> None:
    async def test() -> None:
        async def pour(conversation: Conversation) -> None:
            piece = event(chunk("word " * 4000))
            while True:
                conversation.writer.write(piece)
                await conversation.writer.drain()
                upstream.sent += len(piece)

        async with Upstream(SSE_HEAD, pour) as upstream, serve(upstream) as proxy:
            _, writer = await proxy.connect()
            writer.write(proxy.request(stream=True))
            await until(lambda: upstream.sent > 0)
            before = -1
            while upstream.sent != before:
                before = upstream.sent
                assert before < 100_000_000, "nothing slows the upstream down"
                await asyncio.sleep(0.5)
            writer.close()

    run(test)


def test_a_client_that_reads_no_more_is_let_go() -> None:
    async def test() -> None:
        async def pour(conversation: Conversation) -> None:
            while True:
                conversation.writer.write(event(chunk("word " * 4000)))
                await conversation.writer.drain()

        async with Upstream(SSE_HEAD, pour) as upstream, serve(upstream, client_timeout=0.3) as proxy:
            _, writer = await proxy.connect()
            writer.write(proxy.request(stream=True))
            await until(lambda: upstream.open == 1)
            await until(lambda: upstream.open == 0)
            writer.close()
            assert metrics((await proxy.client.get("/metrics")).text)["dialects_streams_total client_stuck"] == 1

    run(test)


@pytest.mark.parametrize("chunks", [False, True], ids=["comments", "chunks"])
def test_a_waiting_client_is_kept_patient(chunks: bool) -> None:
    word = b'"delta":{},"finish_reason":null' if chunks else b": ping\n"

    async def test() -> None:
        heard = asyncio.Event()

        async def wait(_: Conversation) -> None:
            await heard.wait()

        steps: list[Step] = [SSE_HEAD, *STREAM[:4], wait, *STREAM[4:], END]
        async with (
            Upstream(*steps) as upstream,
            serve(upstream, keep_alive=0.05, keep_alive_chunks=chunks) as proxy,
            proxy.stream(stream=True, tools=TOOLS) as response,
        ):
            seen = b""
            async for data in response.aiter_raw():
                seen += data
                if seen.count(word) >= 3 and not heard.is_set():
                    assert b"tool_calls" not in seen
                    heard.set()
            healed = Answer(seen)
            assert (healed.names, healed.finish) == (["get_tide"], ["tool_calls"])

    run(test)


# Much.


def test_twenty_megabytes_pass_without_being_kept() -> None:
    async def test() -> None:
        pieces = 1000
        piece = event(chunk("word " * 4200))

        async def pour(conversation: Conversation) -> None:
            for _ in range(pieces):
                conversation.writer.write(piece)
                await conversation.writer.drain()

        async with Upstream(SSE_HEAD, pour, END) as upstream, serve(upstream) as proxy:

            async def read() -> int:
                size = 0
                async with proxy.stream() as response:
                    async for data in response.aiter_raw():
                        size += len(data)
                return size

            await read()
            gc.collect()
            tracemalloc.start()
            try:
                before, _ = tracemalloc.get_traced_memory()
                size = await read()
                gc.collect()
                after, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert size > 20_000_000
            assert peak - before < 8_000_000
            assert after - before < 1_000_000

    run(test)


def test_two_hundred_streams_at_once_do_not_mix() -> None:
    async def test() -> None:
        together = 200
        arrived = 0
        everyone = asyncio.Event()

        async def speak(conversation: Conversation) -> None:
            nonlocal arrived
            name = json.loads(conversation.body)["model"]
            arrived += 1
            if arrived == together:
                everyone.set()
            await everyone.wait()
            call = LEAK.replace("Büsum", name)
            for at in range(0, len(call), 16):
                conversation.writer.write(event(chunk(call[at : at + 16])))
                await conversation.writer.drain()
                await asyncio.sleep(0)

        async with Upstream(SSE_HEAD, speak, END) as upstream, serve(upstream) as proxy:
            limits = httpx.Limits(max_connections=None)
            async with httpx.AsyncClient(base_url=proxy.url, limits=limits, timeout=60) as client:

                async def one(number: int) -> None:
                    request = {"model": f"port {number}", "messages": [], "tools": TOOLS, "stream": True}
                    healed = Answer((await client.post("/v1/chat/completions", json=request)).content)
                    assert (healed.names, healed.finish) == (["get_tide"], ["tool_calls"])
                    assert json.loads(healed.arguments) == {"port": f"port {number}"}

                await asyncio.gather(*map(one, range(together)))
            counted = metrics((await proxy.client.get("/metrics")).text)
            assert counted["dialects_streams_total ok"] == counted["dialects_calls_healed_total"] == together

    run(test)


# What is shown.


def test_the_proxys_own_paths_tell_how_it_is() -> None:
    broken = LEAK.replace('"Büsum"}', '"Büsum",}')
    cut = event(chunk("", "length")) + DONE

    async def test() -> None:
        script = [event(chunk(broken)), b"data: : junk\n\n", END]
        async with Upstream(SSE_HEAD, *script) as upstream, serve(upstream) as proxy:
            health = await proxy.client.get("/healthz")
            assert (health.status_code, health.json()) == (200, {"status": "ok"})
            await proxy.complete(stream=True, tools=TOOLS)
            await proxy.complete(stream=True, tools=TOOLS, tool_choice="none")
            upstream.steps = [SSE_HEAD, MID_CALL, cut]
            await proxy.complete(stream=True, tools=TOOLS)
            await proxy.client.get("/v1/models")
            response = await proxy.client.get("/metrics")
            assert response.headers["content-type"].startswith("text/plain")
            counted = metrics(response.text)
            assert counted["dialects_streams_total ok"] == 3
            assert counted["dialects_calls_healed_total"] == 1
            assert counted["dialects_repairs_total trailing-comma"] == 2
            assert counted["dialects_calls_dropped_total tool-choice"] == 1
            assert counted["dialects_calls_dropped_total unfinished"] == 1
            assert counted["dialects_junk_events_total"] == 2
            assert counted["dialects_requests_total pass ok"] == 1
            assert counted["dialects_held_bytes"] == counted["dialects_streams_active"] == 0

    run(test)


def test_what_is_held_can_be_seen_while_it_is() -> None:
    async def test() -> None:
        async with Upstream(SSE_HEAD, MID_CALL, hang) as upstream, serve(upstream) as proxy:
            _, writer = await proxy.connect()
            writer.write(proxy.request(stream=True, tools=TOOLS))

            await until(lambda: upstream.sent > len(SSE_HEAD))
            for _ in range(1000):
                counted = metrics((await proxy.client.get("/metrics")).text)
                if counted["dialects_held_bytes"]:
                    break
            assert (counted["dialects_held_bytes"], counted["dialects_streams_active"]) == (len('{"port":"Bü'), 1)
            writer.close()

    run(test)


def test_logs_are_json_and_say_nothing_of_what_was_said(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        secret = chunk("my secret <tool_call>{broken secret")
        async with Upstream(SSE_HEAD, event(secret), b"data: {secret\n\n") as upstream, serve(upstream) as proxy:
            await proxy.client.post(
                "/v1/chat/completions?key=secret",
                json={"messages": [{"role": "user", "content": "secret"}], "user": "secret"},
                headers={"authorization": "Bearer secret", "x-api-key": "secret"},
            )

    with caplog.at_level(logging.DEBUG, logger="dialects"):
        run(test)
    records = [record for record in caplog.records if record.name.startswith("dialects")]
    lines = [json.loads(JsonFormatter().format(record)) for record in records]
    (line,) = [line for line in lines if line["message"] == "exchange"]
    assert line["path"] == "/v1/chat/completions"
    assert (line["status"], line["outcome"], line["kind"]) == (200, "upstream_error", "stream")
    assert line["level"] == "warning"
    assert "secret" not in json.dumps(lines)


def test_an_exception_is_logged_without_its_text() -> None:
    try:
        raise ValueError("secret")
    except ValueError:
        record = logging.getLogger("dialects").makeRecord(
            "dialects", logging.ERROR, __file__, 1, "it failed", (), sys.exc_info()
        )
    line = json.loads(JsonFormatter().format(record))
    assert line["exception"] == "ValueError"
    assert "secret" not in json.dumps(line)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"upstream": "127.0.0.1:8000"}, "http"),
        ({"upstream": "ftp://a"}, "http"),
        ({"upstream": "http://"}, "http"),
        ({"upstream": "http://me:secret@a"}, "no user"),
        ({"upstream": "http://a/?b"}, "no user, query"),
        ({"upstream": "http://a", "read_timeout": 0}, "read_timeout"),
        ({"upstream": "http://a", "options": HealingOptions(pattern="kimmi")}, "kimmi"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ProxySettings(**settings).check()


def test_settings_travel_as_json() -> None:
    settings = ProxySettings(
        upstream="http://a", options=HealingOptions(pattern="model", scanner_options={"max_held_chars": 7})
    )
    assert ProxySettings.from_json(settings.to_json()) == settings
