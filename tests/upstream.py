"""A scripted server of chat completions on loopback, and the proxy in front of it, in threads of their own: for clients
that block. The `model` that a request names is the script that it gets."""

import json
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import uvicorn

from dialects.proxy.app import create_app
from dialects.proxy.settings import ProxySettings

__all__ = ["Script", "proxied", "served"]

Chunk = dict[str, Any]


class Script(msgspec.Struct, frozen=True):
    """What a model answers: the chunks of a stream, and the whole response."""

    chunks: Sequence[Chunk]
    whole: Chunk


@contextmanager
def served(scripts: Mapping[str, Script]) -> Iterator[str]:
    """The URL of a server that plays these scripts, by the name of the model."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            script = scripts[request["model"]]
            self.send_response(200)
            if not request.get("stream"):
                body = json.dumps(script.whole).encode()
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for chunk in script.chunks:
                self._write(f"data: {json.dumps(chunk)}\n\n".encode())
            self._write(b"data: [DONE]\n\n")
            self._write(b"")

        def _write(self, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the tests' output is for the tests."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """Nothing: a client may hang up."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def proxied(upstream: str) -> Iterator[str]:
    """The URL of a proxy in front of a server."""
    config = uvicorn.Config(create_app(ProxySettings(upstream=upstream)), port=0, log_level="warning", ws="none")
    server = uvicorn.Server(config)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
