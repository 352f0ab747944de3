"""The `dialects heal` command as a user meets it."""

import json
import re
from pathlib import Path

import pytest

from tests.test_cli import run
from tests.test_sse import LEAK, Answer, chunk, event

BROKEN = f"<think>Hm.</think>{LEAK}".replace('"Büsum"}', '"Büsum",}')
END = event(chunk("", "stop")) + b"data: [DONE]\n\n"
CAPTURE = b"".join(event(chunk(BROKEN[at : at + 20])) for at in range(0, len(BROKEN), 20)) + END
TOOLS = [{"type": "function", "function": {"name": "get_tide", "parameters": {"type": "object"}}}]


@pytest.fixture
def request_file(tmp_path: Path) -> str:
    path = tmp_path / "request.json"
    path.write_text(json.dumps({"model": "moonshotai/Kimi-K2-Instruct", "messages": [], "tools": TOOLS}))
    return str(path)


def test_a_capture_is_healed_and_the_summary_is_apart_from_it() -> None:
    done = run("heal", stdin=CAPTURE + b": after\n")
    answer = Answer(done.stdout.encode())
    assert (done.returncode, answer.content, answer.names, answer.finish) == (0, "Moin.", ["get_tide"], ["tool_calls"])
    assert done.stderr.splitlines()[:3] == ["calls    1", "repairs  trailing-comma 1", "dropped  none"]
    assert re.search(r"held     at most [1-9]\d* characters", done.stderr)
    assert "chunk  fate" not in done.stderr


def test_explain_tells_what_became_of_each_chunk_and_why(request_file: str) -> None:
    done = run("heal", "--explain", "--request", request_file, stdin=CAPTURE)
    assert Answer(done.stdout.encode()).names == ["get_tide"]
    rows = [line.split(None, 1) for line in done.stderr.splitlines()]
    assert rows[0] == ["chunk", "fate       text"]
    text = done.stderr
    assert re.search(r'^    1  markup +"<think>" +swallowed$', text, re.MULTILINE)
    assert re.search(r'^       reasoning +"Hm\."$', text, re.MULTILINE)
    assert re.search(r'^       text +"Mo.*"$', text, re.MULTILINE)
    assert re.search(
        r"^ +\d+  call +\".*\" +get_tide, mended: trailing-comma; held until chunk \d+$", text, re.MULTILINE
    )


@pytest.mark.parametrize(
    ("request_fields", "why"),
    [
        ({"tools": TOOLS, "tool_choice": "none"}, "dropped    .*get_tide, the request wanted no call"),
        ({"tools": []}, "text       .*get_tide was not offered"),
        ({}, "text       .*get_tide was not offered"),
    ],
)
def test_what_the_request_said_decides(request_fields: dict[str, object], why: str, tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_text(json.dumps({"messages": [], **request_fields}))
    done = run("heal", "--explain", "--request", str(path), stdin=CAPTURE)
    assert Answer(done.stdout.encode()).names == []
    assert re.search(why, done.stderr)


def test_tools_and_patterns_are_taken_from_the_command(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS))
    assert Answer(run("heal", "--tools", str(path), stdin=CAPTURE).stdout.encode()).names == ["get_tide"]
    assert Answer(run("heal", "--pattern", "hermes", stdin=CAPTURE).stdout.encode()).names == []
    healed = run("heal", "--mode", "progressive", "--reasoning-field", "reasoning", stdin=CAPTURE).stdout
    assert '"reasoning":"Hm."' in healed


def test_a_pattern_may_follow_the_model_of_the_request(request_file: str) -> None:
    done = run("heal", "--pattern", "model", "--request", request_file, stdin=CAPTURE)
    assert Answer(done.stdout.encode()).names == ["get_tide"]


def test_junk_and_errors_of_the_capture_are_told() -> None:
    broken = b"data: : keepalive\n\n" + event({"error": {"message": "over\nloaded"}})
    done = run("heal", stdin=event(chunk("a")) + broken)
    assert done.returncode == 0
    assert "junk     1 events" in done.stderr
    assert "error    over loaded" in done.stderr
    assert Answer(done.stdout.encode()).errors[0]["message"] == "over\nloaded"


def test_an_explanation_cannot_steer_the_terminal() -> None:
    done = run("heal", "--explain", stdin=event(chunk("\x1b[31mred\x9b")) + END)
    assert "\x1b" not in done.stderr
    assert "\x9b" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--pattern", "kimmi"], "kimmi"),
        (["--mode", "eager"], "eager"),
        (["--request", "/nowhere"], "cannot read /nowhere"),
        (["nowhere.sse"], "cannot read nowhere.sse"),
    ],
)
def test_wrong_use_is_told_in_one_line(arguments: list[str], complaint: str) -> None:
    done = run("heal", *arguments, stdin=CAPTURE)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_request_or_tools_that_are_none_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('[{"name": 7}]')
    assert "expected a JSON object" in run("heal", "--request", str(path)).stderr
    assert "tools[0].name" in run("heal", "--tools", str(path)).stderr


def test_a_capture_without_a_chunk_is_told() -> None:
    done = run("heal", stdin=b'{"choices": [{"index": 0, "message": {"content": "<think>x</think>y"}}]}')
    assert (done.returncode, done.stdout) == (0, "data: [DONE]\n\n")
    assert "no chunk of a chat completion" in done.stderr
    assert "no chunk" not in run("heal", stdin=CAPTURE).stderr
