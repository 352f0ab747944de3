"""The `dialects proxy` command as a user meets it: in processes of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests.test_cli import DEADLINE, command, environment, posix, run
from tests.test_proxy import metrics
from tests.test_sse import LEAK, Answer, chunk, event

TOOLS = [{"type": "function", "function": {"name": "get_tide", "parameters": {"type": "object"}}}]


@contextmanager
def upstream() -> Iterator[str]:
    """A server that leaks a call into every stream."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(event(chunk(LEAK)))

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def proxy(*arguments: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The command on a free port, and its URL."""
    with subprocess.Popen(
        command("proxy", "--port", "0", *arguments), stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stderr is not None
        watchdog = threading.Timer(3 * DEADLINE, process.kill)
        watchdog.start()
        try:
            said = ""
            while not ("startup complete" in said and "running on" in said):
                line = process.stderr.readline()
                assert line, said
                said += json.loads(line)["message"] + "\n"
            address = re.search(r"running on (http://[\d.:]+)", said)
            assert address
            yield address[1], process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.stderr.read()
                process.wait()
            watchdog.cancel()


@posix
@pytest.mark.parametrize("workers", [1, 2])
def test_the_command_serves_until_it_is_told_to_stop(workers: int) -> None:
    with upstream() as url, proxy("--upstream", url, "--workers", str(workers)) as (address, process):
        assert address.startswith("http://127.0.0.1:")
        with httpx.Client(base_url=address, timeout=DEADLINE, trust_env=False) as client:
            assert client.get("/healthz").json() == {"status": "ok"}
        for _ in range(6):
            with httpx.Client(base_url=address, timeout=DEADLINE, trust_env=False) as client:
                request = {"messages": [], "tools": TOOLS, "stream": True}
                healed = Answer(client.post("/v1/chat/completions", json=request).content)
                assert (healed.names, healed.finish) == (["get_tide"], ["tool_calls"])
        with httpx.Client(base_url=address, timeout=DEADLINE, trust_env=False) as client:
            counted = metrics(client.get("/metrics").text)
        assert counted["dialects_calls_healed_total"] == counted["dialects_streams_total ok"] == 6
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        lines = [json.loads(line) for line in process.stderr]
        assert process.wait() in (0, -signal.SIGTERM)
    assert sum(line["message"] == "exchange" for line in lines) == 6


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "--upstream"),
        (["--upstream", "localhost:8000"], "must be an http:// or https:// URL"),
        (["--upstream", "http://a", "--pattern", "kimmi"], "kimmi"),
        (["--upstream", "http://a", "--port", "70000"], "port"),
        (["--upstream", "http://a", "--workers", "0"], "whole number"),
        (["--upstream", "http://a", "--read-timeout", "inf"], "seconds"),
        (["--upstream", "http://a", "--read-timeout", "soon"], "seconds"),
    ],
)
def test_wrong_use_is_told_in_one_line(arguments: list[str], complaint: str) -> None:
    done = run("proxy", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("missing", ["uvicorn", "starlette", "httpx", "prometheus_client"])
def test_a_package_that_is_missing_is_named_with_the_way_to_get_it(missing: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules[{missing!r}] = None\n")
    paths = os.pathsep.join([str(tmp_path), environment()["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "dialects", "proxy", "--upstream", "http://a"],
        capture_output=True,
        text=True,
        env=environment(PYTHONPATH=paths),
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert missing in done.stderr
    assert "pip install 'inband-dialects[proxy]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_told() -> None:
    with upstream() as url:
        port = url.rpartition(":")[2]
        done = run("proxy", "--upstream", url, "--port", port)
        assert done.returncode != 0
        assert "address already in use" in done.stderr
