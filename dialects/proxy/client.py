"""The client's side of an exchange: its request's body, what it is answered, and the moment it leaves.

A client that waits must not lose patience, and one that has left, or reads no more, must not keep the upstream busy. So
two things run beside the exchange: `watch`, which ends it when the client is gone, and `attend`, which says something
where nothing else was said for a while, and ends it when nobody takes what is said. Both use its cancel scope.
"""

import time
from collections.abc import AsyncIterator, Callable

import anyio
from starlette.types import Message, Receive, Scope, Send

from dialects.proxy.headers import Header

__all__ = ["Client", "ClientGoneError"]


class ClientGoneError(Exception):
    """The client left before its request was complete."""


class Client:
    """The one who asked."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.raw_path: bytes = scope.get("raw_path") or self.path.encode()
        self.query: bytes = scope["query_string"]
        self.headers: list[Header] = list(scope["headers"])
        self.status: int | None = None
        """What was answered, once it was."""
        self.gone = False
        """Whether it left before it had its answer."""
        self.stuck = False
        """Whether it had stopped reading."""
        self._receive = receive
        self._send = send
        self._has_asked = anyio.Event()
        self._answered = False
        self._last = time.monotonic()
        """When something was last sent."""
        self._sending_since: float | None = None

    def header(self, name: bytes) -> str:
        """A header's value; empty if there is none."""
        return next((value.decode("latin-1") for key, value in self.headers if key == name), "")

    @property
    def has_body(self) -> bool:
        """Whether the request says that it has a body."""
        return any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers)

    # The request.

    async def body(self) -> AsyncIterator[bytes]:
        """The request's body as it comes. Raises ClientGoneError if it breaks off."""
        while True:
            message: Message = await self._receive()
            if message["type"] == "http.disconnect":
                self.gone = True
                raise ClientGoneError
            if message.get("body"):
                yield message["body"]
            if not message.get("more_body"):
                self._has_asked.set()
                return

    async def read(self, limit: int) -> bytes | None:
        """The whole body; None if it is longer than `limit` bytes."""
        pieces, size = [], 0
        async for piece in self.body():
            size += len(piece)
            if size > limit:
                return None
            pieces.append(piece)
        return b"".join(pieces)

    # The answer.

    async def start(self, status: int, headers: list[Header]) -> None:
        """Send the head of the answer."""
        self.status = status
        await self._give({"type": "http.response.start", "status": status, "headers": headers})

    async def send(self, data: bytes) -> None:
        """Send a piece of its body; waits while the client reads too slowly."""
        await self._give({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        """Send the last piece of its body."""
        self._answered = True
        await self._give({"type": "http.response.body", "body": data, "more_body": False})

    async def _give(self, message: Message) -> None:
        self._sending_since = time.monotonic()
        await self._send(message)
        self._sending_since = None
        self._last = time.monotonic()

    # Beside it.

    async def watch(self, scope: anyio.CancelScope) -> None:
        """End the exchange when the client leaves."""
        await self._has_asked.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self._answered:
            self.gone = True
            scope.cancel()

    async def attend(
        self, scope: anyio.CancelScope, *, patience: float, interval: float, word: Callable[[], bytes]
    ) -> None:
        """Send `word()` whenever nothing was sent for `interval` seconds, and end the exchange if the client does not
        take what it is sent for `patience` seconds."""
        while not self.stuck:
            now = time.monotonic()
            if self._sending_since is not None:
                left = self._sending_since + patience - now
                self.stuck = left <= 0
            else:
                left = self._last + interval - now
                if left <= 0:
                    await self._say(word(), patience)
            await anyio.sleep(max(min(left, interval, patience), 0))
        scope.cancel()

    async def _say(self, word: bytes, patience: float) -> None:
        self._last = time.monotonic()
        with anyio.move_on_after(patience) as waiting:
            if word and not self._answered:
                await self.send(word)
        self.stuck = waiting.cancelled_caught
