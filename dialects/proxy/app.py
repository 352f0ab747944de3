"""The application: `/healthz` and `/metrics` are the proxy's own, every other path is the upstream's."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from dialects.proxy.client import Client
from dialects.proxy.exchange import Forwarder
from dialects.proxy.metrics import CONTENT_TYPE, Metrics
from dialects.proxy.settings import ProxySettings

__all__ = ["create_app"]

KEPT_CONNECTIONS = 100
KEPT_SECONDS = 4.0
"""How long an idle connection to the upstream is kept: less than servers keep theirs (uvicorn 5 seconds), so that none
is used just when it is being closed."""


def create_app(settings: ProxySettings, *, transport: httpx.AsyncBaseTransport | None = None) -> Starlette:
    """The ASGI application.

    transport: what brings requests to the upstream; by default connections that are kept and used again, as many as
        are needed. It follows no redirects, keeps no cookies, and asks no proxy that the environment names.

    Raises ValueError for settings that cannot be.
    """
    settings.check()
    metrics = Metrics()
    limits = httpx.Limits(
        max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS, keepalive_expiry=KEPT_SECONDS
    )
    upstream = transport or httpx.AsyncHTTPTransport(limits=limits)
    forwarder = Forwarder(settings, upstream, metrics)

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def show_metrics(_: Request) -> Response:
        return Response(metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def forward(scope: Scope, receive: Receive, send: Send) -> None:
        await forwarder.handle(Client(scope, receive, send))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with upstream:
            yield

    routes = [Route("/healthz", healthz), Route("/metrics", show_metrics), Mount("/", forward)]
    return Starlette(routes=routes, lifespan=lifespan)
