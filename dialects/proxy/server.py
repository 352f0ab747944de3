"""Runs the proxy under uvicorn, in this process or in several."""

import os
import tempfile
from typing import Any

import uvicorn
from starlette.applications import Starlette

from dialects.proxy.app import create_app
from dialects.proxy.logs import configuration
from dialects.proxy.metrics import DIRECTORY
from dialects.proxy.settings import ProxySettings

__all__ = ["run", "worker_app"]

SETTINGS = "DIALECTS_PROXY_SETTINGS"
GRACE_SECONDS = 30
KEPT_SECONDS = 75
"""How long a client's connection is kept; longer than most clients keep theirs, so that none is closed in use."""


def run(settings: ProxySettings, *, host: str, port: int, workers: int = 1, log_level: str = "INFO") -> None:
    """Serve until the process is told to stop. Port 0 takes a free one, which the log names."""
    options: dict[str, Any] = {
        "host": host,
        "port": port,
        "log_config": configuration(log_level),
        "access_log": False,
        "server_header": False,
        "date_header": False,
        "proxy_headers": False,
        "ws": "none",
        "timeout_keep_alive": KEPT_SECONDS,
        "timeout_graceful_shutdown": GRACE_SECONDS,
    }
    if workers == 1:
        uvicorn.run(create_app(settings), **options)
        return
    with tempfile.TemporaryDirectory(prefix="dialects-metrics-") as directory:
        os.environ[DIRECTORY] = directory
        os.environ[SETTINGS] = settings.to_json()
        uvicorn.run(f"{__name__}:{worker_app.__name__}", factory=True, workers=workers, **options)


def worker_app() -> Starlette:
    """The application of a worker process, which finds the settings in its environment."""
    return create_app(ProxySettings.from_json(os.environ[SETTINGS]))
