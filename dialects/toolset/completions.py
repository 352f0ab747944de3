"""A model behind an OpenAI-compatible `/v1/completions` endpoint, as `run_turn` wants it: a prompt in, text out.

Needs nothing but the standard library: a thread reads the server's events, and the text comes out in the event loop.
Where the reader stops, the connection is closed, and the server stops writing.
"""

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from dialects.toolset.step import Truncated

__all__ = ["CompletionError", "CompletionsEndpoint"]

_MOST_OF_AN_ERROR = 500


class CompletionError(OSError):
    """The server cannot be reached, refuses, or does not answer in the form of a stream of completions."""


class CompletionsEndpoint:
    """The text completions of one model of one server.

    base_url: where the API is: `http://127.0.0.1:8000/v1`; a URL without a path means its `/v1`.
    api_key: sent as a bearer token, if there is one.
    seconds: how long the server may be silent.
    options: more fields of the request (`temperature`, `max_tokens`, `stop` …). Servers leave special tokens out of
        their text unless they are asked not to, and some dialects' calls are made of them; so `skip_special_tokens` is
        False unless it is among the options.

    Calling it with a prompt gives the text piece by piece. It raises `CompletionError`, and `Truncated` at the end of a
    text that the server cut off.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        seconds: float = 300.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"a base URL begins with http:// or https:// and names a host, unlike {base_url!r}")
        if parts.username or parts.query or parts.fragment:
            raise ValueError(f"a base URL has no user, query or fragment, unlike {base_url!r}")
        self._is_secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._path = (parts.path.rstrip("/") or "/v1") + "/completions"
        self._model = model
        self._api_key = api_key
        self._seconds = seconds
        self._options = {"skip_special_tokens": False, **(options or {})}

    async def __call__(self, prompt: str) -> AsyncGenerator[str, None]:
        """The text that follows the prompt."""
        exchange = _Exchange(self._connection(), self._path, self._headers(), self._body(prompt))
        try:
            while (event := await exchange.events.get()) is not None:
                if isinstance(event, Exception):
                    raise event
                if event:
                    yield event
        finally:
            exchange.close()

    def _connection(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._is_secure else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=self._seconds)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        return headers | ({"Authorization": f"Bearer {self._api_key}"} if self._api_key else {})

    def _body(self, prompt: str) -> bytes:
        return json.dumps({"model": self._model, "prompt": prompt, "stream": True, **self._options}).encode()


class _Exchange:
    """One request and its answer, made by a thread. `events` gets texts, at the end None or what went wrong."""

    def __init__(self, connection: http.client.HTTPConnection, path: str, headers: dict[str, str], body: bytes) -> None:
        self.events: asyncio.Queue[str | Exception | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._connection = connection
        self._request = (path, headers, body)
        self._socket: socket.socket | None = None
        self._is_closed = threading.Event()
        threading.Thread(target=self._run, name="dialects-completion", daemon=True).start()

    def close(self) -> None:
        """Break the connection off, whatever the thread is waiting for."""
        self._is_closed.set()
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it is closed already

    def _run(self) -> None:
        end: Exception | None = None
        try:
            for text in self._texts():
                self._put(text)
        except (CompletionError, Truncated) as error:
            end = error
        except Exception as error:
            end = CompletionError(f"{self._connection.host}: {type(error).__name__}: {error}")
            end.__cause__ = error
        finally:
            self._connection.close()
        self._put(end)

    def _put(self, event: str | Exception | None) -> None:
        if self._is_closed.is_set():
            return
        try:
            self._loop.call_soon_threadsafe(self.events.put_nowait, event)
        except RuntimeError:
            self._is_closed.set()  # the event loop is closed, and nobody reads

    def _texts(self) -> Iterator[str]:
        path, headers, body = self._request
        self._connection.connect()
        self._socket = self._connection.sock
        if self._is_closed.is_set():
            return
        self._connection.request("POST", path, body, headers)
        with self._connection.getresponse() as response:
            if response.status != 200:
                said = response.read(_MOST_OF_AN_ERROR).decode("utf-8", "replace")
                raise CompletionError(f"{path}: {response.status} {response.reason}: {said}")
            is_whole = response.headers.get_content_type() == "application/json"
            yield from _read_stream([b"data:" + response.read()] if is_whole else response)


def _read_stream(lines: Iterable[bytes]) -> Iterator[str]:
    """The texts of a stream of completions. Raises Truncated where the server says that it cut the text off, and where
    the stream ends before the server has said why it ended."""
    finish: str | None = None
    for line in lines:
        if not line.startswith(b"data:"):
            continue
        data = line[len(b"data:") :].strip()
        if data == b"[DONE]":
            finish = finish or "stop"
            break
        text, reason = _read_chunk(data)
        finish = reason or finish
        yield text
    if finish in (None, "length"):
        raise Truncated


def _read_chunk(data: bytes) -> tuple[str, str | None]:
    try:
        chunk = json.loads(data)
        if "error" in chunk:
            raise CompletionError(f"the server broke off: {json.dumps(chunk['error'])[:_MOST_OF_AN_ERROR]}")
        choice = chunk["choices"][0] if chunk.get("choices") else {}
        return str(choice.get("text") or ""), choice.get("finish_reason")
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        shown = data[:100].decode("utf-8", "replace")
        raise CompletionError(f"the server sent what is no chunk of a completion: {shown}") from error
