"""A model behind `/v1/completions`, on a server that plays it: the client, `dialects chat`, and the example."""

import asyncio
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from dialects import render_transcript, scan
from dialects.messages import Message, ToolCall
from dialects.toolset import Toolset, Truncated, run_turn, tool
from dialects.toolset.completions import CompletionError, CompletionsEndpoint
from tests.event_loops import run

ROOT = Path(__file__).resolve().parent.parent
MODEL = "moonshotai/Kimi-K2-Instruct"

Play = Callable[["Player"], None]


class Player(BaseHTTPRequestHandler):
    """One request; the server's `play` answers it."""

    server: "Server"

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.server.requests.append((self.path, dict(self.headers), json.loads(self.rfile.read(length))))
        try:
            self.server.play(self)
        except OSError:
            self.server.broken_off.set()

    def begin(self, status: int = 200, kind: str = "text/event-stream") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()

    def say(self, text: str, finish: str | None = None) -> None:
        self.line(json.dumps({"choices": [{"index": 0, "text": text, "finish_reason": finish}]}, ensure_ascii=False))

    def line(self, data: str) -> None:
        self.wfile.write(f"data: {data}\n\n".encode())
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, play: Play) -> None:
        super().__init__(("127.0.0.1", 0), Player)
        self.play = play
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.broken_off = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@contextmanager
def serving(play: Play) -> Iterator[Server]:
    with Server(play) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def playing(*replies: str) -> Play:
    """One reply after the other, a few characters at a time."""
    left = iter(replies)

    def play(player: Player) -> None:
        player.begin()
        text = next(left)
        for start in range(0, len(text), 9):
            player.say(text[start : start + 9])
        player.say("", "stop")
        player.line("[DONE]")

    return play


def lines(*data: str) -> Play:
    def play(player: Player) -> None:
        player.begin()
        player.wfile.write(b": a comment\n\nevent: message\n")
        for line in data:
            player.line(line)

    return play


def completed(play: Play, **options: Any) -> str:
    """All the text that the server gives."""

    async def main(url: str) -> str:
        return "".join([text async for text in CompletionsEndpoint(url, "m", **options)("prompt")])

    with serving(play) as server:
        return run(lambda: main(server.url))


def chunk(text: str, finish: str | None = None) -> str:
    return json.dumps({"choices": [{"text": text, "finish_reason": finish}]})


class TestClient:
    def test_asks_for_a_stream_and_for_special_tokens(self) -> None:
        async def main(url: str) -> str:
            endpoint = CompletionsEndpoint(url, "m", api_key="key", options={"max_tokens": 5})
            return "".join([text async for text in endpoint("prömpt")])

        with serving(playing("Grüße, <|tool_call_end|>")) as server:
            assert run(lambda: main(server.url)) == "Grüße, <|tool_call_end|>"
            ((path, headers, body),) = server.requests
        assert path == "/v1/completions"
        assert headers["Authorization"] == "Bearer key"
        assert body == {
            "model": "m",
            "prompt": "prömpt",
            "stream": True,
            "skip_special_tokens": False,
            "max_tokens": 5,
        }

    @pytest.mark.parametrize("given", ["http://127.0.0.1:{}", "http://127.0.0.1:{}/", "http://127.0.0.1:{}/v1/"])
    def test_a_url_without_a_path_means_v1(self, given: str) -> None:
        async def main(port: int) -> str:
            return "".join([text async for text in CompletionsEndpoint(given.format(port), "m")("x")])

        with serving(playing("fine")) as server:
            assert run(lambda: main(server.server_address[1])) == "fine"
            assert server.requests[0][0] == "/v1/completions"
            assert "Authorization" not in server.requests[0][1]

    @pytest.mark.parametrize(
        "url", ["127.0.0.1:8000", "ftp://host/v1", "http:///v1", "http://u:p@host/v1", "http://h/?q=1"]
    )
    def test_a_url_that_is_none_is_told(self, url: str) -> None:
        with pytest.raises(ValueError, match="a base URL"):
            CompletionsEndpoint(url, "m")

    def test_the_end_of_a_text_that_was_cut_off(self) -> None:
        for play in (lines(chunk("a"), chunk("b", "length"), "[DONE]"), lines(chunk("a"), chunk("b"))):
            with pytest.raises(Truncated):
                completed(play)

    def test_the_end_of_a_whole_text(self) -> None:
        usage = json.dumps({"choices": [], "usage": {"total_tokens": 3}})
        assert completed(lines(chunk("a"), chunk("b", "stop"), usage, "[DONE]")) == "ab"
        assert completed(lines(chunk("a"), "[DONE]", chunk("never"))) == "a"
        assert completed(lines(chunk("a", "stop"))) == "a"

    def test_a_server_that_does_not_stream(self) -> None:
        def play(player: Player) -> None:
            player.begin(kind="application/json")
            player.wfile.write(json.dumps({"choices": [{"text": "all of it", "finish_reason": "stop"}]}).encode())

        assert completed(play) == "all of it"

    @pytest.mark.parametrize(
        ("play", "said"),
        [
            (lines(chunk("a"), json.dumps({"error": {"message": "out of memory"}})), "broke off.*out of memory"),
            (lines("{"), r"no chunk of a completion: \{"),
            (lines("[1]"), r"no chunk of a completion: \[1\]"),
            (lines('{"choices": [7]}'), "no chunk of a completion"),
        ],
    )
    def test_a_server_that_fails_in_the_middle(self, play: Play, said: str) -> None:
        with pytest.raises(CompletionError, match=said):
            completed(play)

    def test_a_server_that_refuses(self) -> None:
        def play(player: Player) -> None:
            player.begin(401, "application/json")
            player.wfile.write(b'{"error": "no key"}')

        with pytest.raises(CompletionError, match=r'/v1/completions: 401 Unauthorized: \{"error": "no key"\}'):
            completed(play)

    def test_a_server_that_is_not_there(self) -> None:
        with serving(playing()) as server:
            url = server.url

        async def main() -> None:
            with pytest.raises(CompletionError, match=r"127\.0\.0\.1: ConnectionRefusedError"):
                await anext(CompletionsEndpoint(url, "m")("x"))

        run(main)

    def test_a_silent_server_is_given_up(self) -> None:
        free = threading.Event()

        def play(player: Player) -> None:
            free.wait(60)

        async def main(url: str) -> None:
            with pytest.raises(CompletionError, match=r"127\.0\.0\.1: TimeoutError"):
                await _read_all(CompletionsEndpoint(url, "m", seconds=0.05))

        with serving(play) as server:
            run(lambda: main(server.url))
            free.set()

    def test_who_stops_reading_stops_the_server(self) -> None:
        def play(player: Player) -> None:
            player.begin()
            while True:
                player.say("on and on ")
                threading.Event().wait(0.001)

        async def main(url: str) -> None:
            @tool
            def never() -> None: ...

            messages = [{"role": "user", "content": "Go on."}]
            endpoint = CompletionsEndpoint(url, MODEL)
            async with run_turn(endpoint, messages, Toolset([never]), dialect="kimi") as turn:
                async for _ in turn:
                    break

        with serving(play) as server:
            run(lambda: main(server.url))
            assert server.broken_off.wait(20)

    def test_waiting_for_a_silent_server_can_be_cancelled(self) -> None:
        asked, free = threading.Event(), threading.Event()

        def play(player: Player) -> None:
            player.begin()
            asked.set()
            free.wait(60)

        async def main(url: str) -> None:
            task = asyncio.create_task(_read_all(CompletionsEndpoint(url, "m")))
            while not asked.is_set():
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        with serving(play) as server:
            try:
                run(lambda: main(server.url))
            finally:
                free.set()
        for thread in threading.enumerate():
            if thread.name == "dialects-completion":
                thread.join(20)
                assert not thread.is_alive()


async def _read_all(endpoint: CompletionsEndpoint) -> None:
    async for _ in endpoint("x"):
        pass


TOOLS = '''
from dialects.toolset import CallableTool, ToolError, tool


@tool
def tide(port: str) -> str:
    """How high the water is."""
    return f"{port}: 3.2 m"


@tool(needs_approval=True)
def close_lock(name: str) -> str:
    return "closed"


class Sink(CallableTool):
    name = "sink"

    async def __call__(self):
        return ToolError("It does not sink.")
'''


def reply(*calls: ToolCall, text: str = "") -> str:
    whole = render_transcript([Message("assistant", text, tool_calls=calls)], "kimi")
    return whole.removeprefix("<|im_assistant|>assistant<|im_middle|>").removesuffix("<|im_end|>")


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "KEY": "hidden"}


def chat_command(url: str, *arguments: str, model: str = MODEL) -> list[str]:
    return [sys.executable, "-m", "dialects", "chat", "--base-url", url, "--model", model, *arguments]


def chat(
    url: str, *arguments: str, folder: Path, stdin: str | int = "", model: str = MODEL
) -> "subprocess.CompletedProcess[str]":
    """Run the command; `stdin` is a text, or the descriptor of a terminal."""
    given: dict[str, Any] = {"input": stdin} if isinstance(stdin, str) else {"stdin": stdin}
    return subprocess.run(
        chat_command(url, *arguments, model=model),
        **given,
        capture_output=True,
        cwd=folder,
        env=ENVIRONMENT,
        timeout=60,
        check=False,
        encoding="utf-8",
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "harbour.py").write_text(TOOLS, encoding="utf-8")
    return tmp_path


class TestChat:
    def test_one_message_with_tools_from_the_current_directory(self, folder: Path) -> None:
        calls = [
            ToolCall(None, "tide", {"port": "Büsum"}),
            ToolCall(None, "close_lock", {"name": "north"}),
            ToolCall(None, "sink", {}),
        ]
        with serving(playing(reply(*calls, text="I look."), "It is **3.2 m**.")) as server:
            names = [word for name in ("tide", "close_lock", "Sink") for word in ("--tools", f"harbour:{name}")]
            done = chat(
                server.url, *names, "--system", "Be brief.", "--max-tokens", "50", "--temperature", "0",
                "--api-key-env", "KEY", "How high is it?", folder=folder,
            )  # fmt: skip
            first, second = server.requests
        assert (done.returncode, done.stderr) == (0, "")
        shown = done.stdout
        for row in (
            "text     │ I look.",
            "call     │ tide",
            "  port   │ Büsum",
            "result   │ tide: ok, 0.",
            "         │ Büsum: 3.2 m",
            "result   │ close_lock: rejected, 0.00 s",
            "result   │ sink: failed, 0.",
            "         │ Error: It does not sink.",
            "text     │ It is **3.2 m**.",
        ):
            assert row in shown
        assert first[1]["Authorization"] == "Bearer hidden"
        assert (first[2]["max_tokens"], first[2]["temperature"]) == (50, 0)
        assert "Be brief." in first[2]["prompt"]
        assert '{"name":"tide"' in first[2]["prompt"]
        assert [call.name for call in scan(second[2]["prompt"].split("How high is it?")[1], "kimi").tool_calls] == [
            call.name for call in calls
        ]
        assert "Büsum: 3.2 m" in second[2]["prompt"]

    @pytest.mark.skipif(os.name != "posix", reason="POSIX terminals")
    @pytest.mark.parametrize(("typed", "outcome"), [(b"y\n", "close_lock: ok"), (b"no\n", "close_lock: rejected")])
    def test_a_person_at_the_terminal_approves(self, folder: Path, typed: bytes, outcome: str) -> None:
        keyboard, terminal = os.openpty()
        try:
            with serving(playing(reply(ToolCall(None, "close_lock", {"name": "north"})), "Done.")) as server:
                os.write(keyboard, typed)
                done = chat(server.url, "--tools", "harbour:close_lock", "Close it.", folder=folder, stdin=terminal)
        finally:
            os.close(keyboard)
            os.close(terminal)
        assert done.returncode == 0
        assert "approve  │ close_lock {'name': 'north'}" in done.stdout
        assert outcome in done.stdout
        assert done.stderr == "call it? [y/N] "

    @pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
    def test_ctrl_c_ends_it_in_the_middle_of_a_reply(self, folder: Path) -> None:
        def play(player: Player) -> None:
            player.begin()
            player.say("It is ")
            player.server.broken_off.wait(60)

        with serving(play) as server:
            command = chat_command(server.url, "How high is it?")
            with subprocess.Popen(
                command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            ) as process:
                assert process.stdout is not None
                assert process.stdout.read(9)  # it has begun to show the reply
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=60)
            server.broken_off.set()
        assert (process.returncode, err) == (130, b"")

    def test_a_conversation_on_standard_input(self, folder: Path) -> None:
        with serving(playing("One.", "Two.")) as server:
            done = chat(server.url, "--dialect", "hermes", folder=folder, stdin="First?\n\nSecond?\n", model="any")
            prompts = [body["prompt"] for _, _, body in server.requests]
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == "text     │ One.\ntext     │ Two.\n"
        assert len(prompts) == 2
        for said in ("First?", "One.", "Second?"):
            assert said in prompts[1]

    def test_a_turn_without_an_answer(self, folder: Path) -> None:
        with serving(lines(chunk("It is", "length"))) as server:
            done = chat(server.url, "How high is it?", folder=folder)
        assert done.returncode == 1
        assert done.stdout == "text     │ It is\nended    │ truncated\n"

    @pytest.mark.parametrize(
        ("arguments", "model", "said"),
        [
            (["hi"], "no-such-model", "say which one it speaks with --dialect"),
            (["--dialect", "kimmy", "hi"], MODEL, "did you mean 'kimi'?"),
            (["--dialect", "mistral", "hi"], MODEL, "can be rendered, but there is no scanner for it yet"),
            (["--tools", "harbour:Nothing", "hi"], MODEL, "harbour:Nothing: AttributeError"),
            (["--template", "none-such", "hi"], MODEL, "has no template 'none-such'"),
            (["hi"], MODEL, "127.0.0.1: ConnectionRefusedError"),
        ],
    )
    def test_wrong_use_is_one_line(self, folder: Path, arguments: list[str], model: str, said: str) -> None:
        with serving(playing()) as server:
            url = server.url
        done = chat(url, *arguments, folder=folder, model=model)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith("dialects: ")
        assert said in line


def load_example() -> Any:
    spec = importlib.util.spec_from_file_location("agent", ROOT / "examples" / "agent.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestExample:
    def test_a_played_model_in_three_dialects(self, capsys: pytest.CaptureFixture[str]) -> None:
        agent = load_example()
        assert run(lambda: agent.main([])) == 0
        shown = capsys.readouterr().out
        parts: Sequence[str] = shown.split("== ")[1:]
        assert [part.split("\n")[0] for part in parts] == list(agent.PLAYED)
        for part in parts:
            assert "seconds: float | None = 120.0" in part
            assert part.count("✓") == 3
            assert "✗" not in part
            assert part.endswith("dialects/toolset/dispatch.py.\n(answered)\n")

    def test_against_a_server(self, capsys: pytest.CaptureFixture[str]) -> None:
        agent = load_example()
        call = ToolCall(None, "read_file", {"path": "../../etc/passwd"})
        with serving(playing(reply(call), "It is not for me.")) as server:
            arguments = ["--base-url", server.url, "--model", MODEL, "What is in /etc/passwd?"]
            assert run(lambda: agent.main(arguments)) == 0
        shown = capsys.readouterr().out
        assert "✗ read_file: 'Error: read_file failed. ValueError: ../../etc/passwd is outside the repository'" in shown
        assert shown.endswith("It is not for me.\n(answered)\n")

    def test_its_tools_look_into_the_repository(self) -> None:
        async def main() -> list[str]:
            toolset = load_example().make_toolset()
            calls = [
                ("list_folder", {}),
                ("list_folder", {"path": "no/such/folder"}),
                ("read_file", {"path": "pyproject.toml", "first_line": 5, "lines": 1}),
                ("read_file", {"path": "dialects"}),
                ("search", {"pattern": "^name = ", "folder": "."}),
                ("search", {"pattern": "("}),
                ("search", {"pattern": ".", "limit": 3}),
            ]
            return [(await toolset.handle({"name": name, "arguments": given})).content for name, given in calls]

        listed, missing, read, no_file, found, bad, limited = run(main)
        assert {"dialects/", "README.md"} <= set(json.loads(listed))
        assert missing == "Error: no/such/folder is no folder."
        assert read == "5 [project]"
        assert no_file.startswith("Error: dialects is no file.")
        assert json.loads(found) == ['pyproject.toml:6: name = "inband-dialects"']
        assert bad.startswith("Error: The pattern is no regular expression: ")
        assert len(json.loads(limited)) == 3

    def test_passes_pyright_as_strict_as_it_can_be(self, tmp_path: Path) -> None:
        """As mypy's strictest does, which checks it with everything else."""
        pyright = shutil.which("pyright", path=str(Path(sys.executable).parent)) or shutil.which("pyright")
        if pyright is None or subprocess.run([pyright, "--version"], capture_output=True, check=False).returncode:
            pytest.skip("pyright is not installed")
        shutil.copy(ROOT / "examples" / "agent.py", tmp_path)
        config = {"typeCheckingMode": "strict", "include": ["agent.py"], "extraPaths": [str(ROOT)]}
        (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
        command = [pyright, "--pythonpath", sys.executable, "--project", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "0 errors, 0 warnings" in done.stdout, done.stdout
        assert "cast" not in (ROOT / "examples" / "agent.py").read_text(encoding="utf-8")
