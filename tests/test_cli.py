"""The `dialects` command as a user meets it: in a process of its own, on pipes, files and a terminal."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dialects import dialect_names, get_dialect
from dialects.demo import SAMPLE

ROOT = Path(__file__).resolve().parent.parent
DEADLINE = 20.0
posix = pytest.mark.skipif(os.name != "posix", reason="POSIX signals and terminals")

BEGIN, END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"


def call(arguments: str, *, name: str = "read", index: int = 0) -> str:
    return f"<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"


def section(*calls: str) -> str:
    return BEGIN + "".join(calls) + END


def environment(**changes: str) -> dict[str, str]:
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "PYTHONIOENCODING")}
    return {**clean, "PYTHONPATH": str(ROOT), "TERM": "xterm", **changes}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "dialects", *arguments]


def run(
    *arguments: str, stdin: str | bytes = "", env: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        command(*arguments),
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        env=env or environment(),
        timeout=60,
        check=False,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in err
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def events(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def joined(output: str, kind: str, field: str) -> str:
    return "".join(event[field] for event in events(output) if event["type"] == kind)


class Live:
    """A running command whose output is read while its input is still open."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            command(*arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            bufsize=0,
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line)

    def write(self, text: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(text.encode())

    def next_event(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self._lines.get(timeout=DEADLINE))
        return event

    def end(self) -> str:
        """What the command said on standard error, after its end."""
        process = self.process
        assert process.stdin
        assert process.stderr
        process.stdin.close()
        err = process.stderr.read().decode()
        process.wait(DEADLINE)
        self._reader.join(DEADLINE)
        return err

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()


@pytest.fixture
def live() -> Iterator[Live]:
    started = Live("scan", "--json")
    yield started
    started.close()


class TestScan:
    def test_events_come_out_while_the_input_is_still_open(self, live: Live) -> None:
        live.write("Let me look.")
        assert live.next_event() == {"type": "text", "text": "Let me look."}
        live.write(BEGIN + "<|tool_call_begin|>functions.read:0<|tool_call_arg")
        live.write('ument_begin|>{"path":"src/')
        assert live.next_event() == {"type": "toolStart", "id": "functions.read:0", "name": "read"}
        pieces = ""
        while "src/" not in pieces:
            pieces += live.next_event()["json"]
        live.write('a.py"}<|tool_call_end|>' + END)
        while (event := live.next_event())["type"] != "toolEnd":
            pieces += event["json"]
        assert pieces == '{"path":"src/a.py"}'
        assert event["arguments"] == {"path": "src/a.py"}
        assert "calls    1\n" in live.end()
        assert live.process.returncode == 0

    def test_a_character_cut_between_two_reads_arrives_whole(self, live: Live) -> None:
        wave = "🌊".encode()
        assert live.process.stdin
        live.process.stdin.write(b"a" + wave[:2])
        assert live.next_event() == {"type": "text", "text": "a"}
        live.process.stdin.write(wave[2:])
        assert live.next_event() == {"type": "text", "text": "🌊"}
        assert "UTF-8" not in live.end()

    def test_every_line_of_json_is_one_event_of_the_wire_form(self) -> None:
        done = run("scan", "--json", stdin=SAMPLE)
        assert done.returncode == 0
        assert {event["type"] for event in events(done.stdout)} == {
            "thinkingStart",
            "thinkingDelta",
            "thinkingEnd",
            "text",
            "toolStart",
            "toolArgDelta",
            "toolEnd",
        }
        ends = [event for event in events(done.stdout) if event["type"] == "toolEnd"]
        assert [end["name"] for end in ends] == ["run", "write_file"]
        assert ends[0]["repairs"]
        assert not ends[1]["repairs"]

    def test_a_file_gives_what_standard_input_gives(self, tmp_path: Path) -> None:
        (tmp_path / "out.txt").write_text(SAMPLE, encoding="utf-8")
        from_file = run("scan", "--json", str(tmp_path / "out.txt"))
        assert from_file.stdout == run("scan", "--json", "-", stdin=SAMPLE).stdout

    @pytest.mark.parametrize("size", ["1", "3", "7", "1000000"])
    def test_the_size_of_the_chunks_does_not_change_the_calls(self, size: str) -> None:
        done = run("scan", "--json", "--chunk", size, stdin=SAMPLE)
        whole = run("scan", "--json", stdin=SAMPLE)
        for kind, field in (("text", "text"), ("thinkingDelta", "delta"), ("toolArgDelta", "json")):
            assert joined(done.stdout, kind, field) == joined(whole.stdout, kind, field)

    def test_a_chunk_size_cuts_the_input_into_pieces_of_that_size(self) -> None:
        done = run("scan", "--json", "--chunk", "4", stdin="Hello, world")
        assert [event["text"] for event in events(done.stdout)] == ["Hell", "o, w", "orld"]

    def test_invalid_bytes_are_replaced_and_reported_with_their_place(self) -> None:
        done = run("scan", "--json", stdin=b"caf\xe9 \xff and more")
        assert done.returncode == 0
        assert joined(done.stdout, "text", "text") == "caf\ufffd \ufffd and more"
        assert "2 faults replaced by U+FFFD, the first at byte 3" in done.stderr

    def test_input_that_ends_inside_a_character_is_reported(self) -> None:
        done = run("scan", "--json", stdin="a🌊".encode()[:-1])
        assert joined(done.stdout, "text", "text") == "a\ufffd"
        assert "one fault replaced by U+FFFD, the first at byte 1" in done.stderr

    def test_a_replacement_character_in_valid_input_is_no_fault(self) -> None:
        assert "UTF-8" not in run("scan", stdin="a\ufffdb").stderr

    def test_line_ends_are_left_as_they_are(self) -> None:
        assert joined(run("scan", "--json", stdin="a\r\nb\rc\n").stdout, "text", "text") == "a\r\nb\rc\n"

    def test_a_person_sees_text_calls_arguments_and_repairs(self) -> None:
        out = run("scan", stdin=SAMPLE).stdout
        assert "\x1b" not in out
        rows = [[cell.strip() for cell in line.split("│", 1)] for line in out.splitlines()]
        assert ["text", "I'll look for the timeout, and note the format."] in rows
        assert ["call", "run"] in rows
        assert ["command", 'grep -rn "timeout = 30" src'] in rows
        assert ["path", "notes/kimi.md"] in rows
        assert [row[0] for row in rows].count("end") == 2
        assert [row[0] for row in rows].count("mended") == 1

    def test_lines_of_one_text_share_a_row_and_its_last_line_end_adds_none(self) -> None:
        assert run("scan", stdin="one\n\ntwo\n").stdout == "text     │ one\n         │ \n         │ two\n"

    def test_control_characters_of_the_model_do_not_reach_the_terminal(self) -> None:
        out = run("scan", stdin="\x1b]0;owned\x07 red\x1b[31m \x9b31m").stdout
        assert "\\x1b]0;owned\\x07 red\\x1b[31m \\x9b31m" in out

    def test_a_terminal_that_knows_no_utf8_gets_escapes_rather_than_a_crash(self) -> None:
        done = run("scan", stdin="wave 🌊", env=environment(PYTHONIOENCODING="ascii"))
        assert done.returncode == 0
        assert "| wave \\U0001f30a" in done.stdout

    def test_the_summary_counts_calls_repairs_and_drops(self) -> None:
        stream = section(call('{"a":1}'), call('{"a":1,}', index=1)) + BEGIN + "<|tool_call_begin|>functions.x:2"
        err = run("scan", stdin=stream).stderr
        assert "calls    2\n" in err
        assert "repairs  trailing-comma 1\n" in err
        assert "dropped  " in err
        assert "dropped  none" not in err
        assert "held     at most " in err

    def test_the_summary_says_why_the_scanner_stopped(self) -> None:
        stream = section(call("{}")) + "<|im_end|><|im_user|>user<|im_middle|>Thanks!"
        assert "stopped  fabricated-turn\n" in run("scan", stdin=stream).stderr

    def test_check_fails_where_a_call_was_dropped_and_only_there(self) -> None:
        unfinished = BEGIN + "<|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{"
        assert run("scan", "--check", stdin=unfinished).returncode == 1
        assert run("scan", stdin=unfinished).returncode == 0
        assert run("scan", "--check", stdin=SAMPLE).returncode == 0

    def test_strict_drops_a_call_that_needs_a_repair(self) -> None:
        done = run("scan", "--strict", "--check", "--json", stdin=section(call('{"a":1,}')))
        assert done.returncode == 1
        assert [event["reason"] for event in events(done.stdout) if event["type"] == "toolDropped"] == ["malformed"]

    def test_truncated_drops_a_call_whose_end_is_missing(self) -> None:
        stream = BEGIN + call('{"a":1}').removesuffix("<|tool_call_end|>")
        assert "calls    1\n" in run("scan", stdin=stream).stderr
        assert "dropped  unfinished 1\n" in run("scan", "--truncated", stdin=stream).stderr

    def test_a_generation_prompt_opens_the_thinking(self) -> None:
        done = run("scan", "--json", "--generation-prompt", "<think>", stdin="Hm.</think>Yes.")
        assert joined(done.stdout, "thinkingDelta", "delta") == "Hm."
        assert joined(done.stdout, "text", "text") == "Yes."

    def test_tools_resolve_an_id_without_a_name(self, tmp_path: Path) -> None:
        tools = [{"type": "function", "function": {"name": "get_tide", "parameters": {"type": "object"}}}]
        (tmp_path / "tools.json").write_text(json.dumps(tools), encoding="utf-8")
        stream = section(call("{}").replace("functions.read:0", "functionsget_tide5"))
        done = run("scan", "--json", "--tools", str(tmp_path / "tools.json"), stdin=stream)
        assert [event["name"] for event in events(done.stdout) if event["type"] == "toolEnd"] == ["get_tide"]

    def test_empty_input_gives_no_events(self) -> None:
        done = run("scan", "--json", "--check")
        assert (done.returncode, done.stdout) == (0, "")
        assert "calls    0\n" in done.stderr


class TestPipesAndTerminals:
    def test_a_reader_that_goes_away_is_no_traceback(self, tmp_path: Path) -> None:
        (tmp_path / "long.txt").write_text("line\n" * 200_000, encoding="utf-8")
        with subprocess.Popen(
            command("scan", "--json", "--chunk", "5", str(tmp_path / "long.txt")),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        ) as process:
            assert process.stdout
            assert process.stderr
            assert json.loads(process.stdout.readline()) == {"type": "text", "text": "line\n"}
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode == 141

    @pytest.mark.parametrize("arguments", [("demo",), ("--help",), ("prompt", "kimi")])
    def test_no_command_minds_a_pipe_that_is_closed_from_the_start(self, arguments: tuple[str, ...]) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        try:
            done = subprocess.run(
                command(*arguments), stdout=writer, stderr=subprocess.PIPE, env=environment(), check=False
            )
        finally:
            os.close(writer)
        assert done.stderr == b""

    @posix
    def test_ctrl_c_is_no_traceback(self, live: Live) -> None:
        live.write("Let me look.")
        live.next_event()
        live.process.send_signal(signal.SIGINT)
        live.process.wait(DEADLINE)
        assert live.process.returncode == 130
        assert live.end() == ""

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
    def test_a_full_disk_is_one_line(self) -> None:
        with open("/dev/full", "wb") as full:
            done = subprocess.run(command("demo"), stdout=full, stderr=subprocess.PIPE, env=environment(), check=False)
        assert done.returncode == 2
        assert done.stderr.decode().splitlines() == ["dialects: [Errno 28] No space left on device"]

    @posix
    @pytest.mark.parametrize(("no_color", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
    def test_a_terminal_gets_colour_unless_no_color_is_set(self, no_color: dict[str, str], coloured: bool) -> None:
        ours, theirs = os.openpty()
        with subprocess.Popen(
            command("demo"), stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment(**no_color)
        ):
            os.close(theirs)
            shown = b""
            while piece := _read_terminal(ours):
                shown += piece
        os.close(ours)
        assert b"write_file" in shown
        assert (b"\x1b[" in shown) is coloured


def _read_terminal(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other side was closed
        return b""


class TestWrongUse:
    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (("scan", "no/such/file"), "cannot read no/such/file: No such file or directory"),
            (("scan", "."), "cannot read .: Is a directory"),
            (("scan", "--tools", "no/such/file"), "cannot read no/such/file: No such file or directory"),
            (("scan", "--chunk", "0"), "1 or more, not '0'"),
            (("scan", "--chunk", "ten"), "1 or more, not 'ten'"),
            (("scan", "--dialect", "kimmi"), "kimi"),
            (("render", "--dialect", "kimmi"), "kimi"),
            (("prompt", "kimmi"), "kimi"),
            (("scan", "--tools", "-"), "standard input cannot be both the tools and FILE"),
            (("render", "--tools", "-"), "standard input cannot be both the tools and FILE"),
            (("prompt",), "the following arguments are required: DIALECT"),
            (("scann",), "invalid choice: 'scann'"),
            ((), "the following arguments are required: COMMAND"),
            (("list", "--all"), "unrecognized arguments: --all"),
            (("which",), "which needs a MODEL_ID or --template FILE"),
        ],
    )
    def test_is_one_line_that_says_what_was_wrong(self, arguments: tuple[str, ...], expected: str) -> None:
        done = run(*arguments, stdin="[]")
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("dialects")
        assert expected in done.stderr

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (b'[{"name": "a"},\n {"name" "b"}]', "tools.json is not JSON: line 2, column 10: "),
            (b"", "tools.json is not JSON: line 1, column 1: "),
            (b'[{"name": "\xff"}]', "tools.json is not UTF-8: byte 11"),
            (b"[" * 100_000, "tools.json cannot be read as JSON: "),
            (b'{"name": "a"}', "tools"),
            (b'[{"type": "function", "function": {"description": "no name"}}]', "tools[0].function.name"),
            (b'["read"]', "tools[0]"),
        ],
    )
    def test_of_a_tools_file_names_the_place(self, tmp_path: Path, content: bytes, expected: str) -> None:
        (tmp_path / "tools.json").write_bytes(content)
        for subcommand in (("scan",), ("prompt", "kimi")):
            done = run(*subcommand, "--tools", str(tmp_path / "tools.json"))
            assert (done.returncode, done.stdout) == (2, "")
            assert len(done.stderr.splitlines()) == 1
            assert expected in done.stderr

    def test_of_a_message_names_the_path(self) -> None:
        done = run("render", stdin='[{"role": "user", "content": "Hi"}, {"role": "robot", "content": ""}]')
        assert (done.returncode, done.stdout) == (2, "")
        assert "messages[1].role" in done.stderr


class TestRender:
    MESSAGES = json.dumps(
        [
            {"role": "user", "content": "Wie hoch ist die Flut? 🌊"},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {
                        "id": "functions.tide:0",
                        "type": "function",
                        "function": {"name": "tide", "arguments": '{"port":"Büsum"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "functions.tide:0", "content": "3.2 m"},
        ],
        ensure_ascii=False,
    )

    def test_writes_the_transcript_and_nothing_else(self) -> None:
        done = run("render", stdin=self.MESSAGES)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("<|im_user|>user<|im_middle|>Wie hoch ist die Flut? 🌊<|im_end|>")
        assert call('{"port":"Büsum"}', name="tide") in done.stdout
        assert done.stdout.endswith("3.2 m<|im_end|>")

    @pytest.mark.parametrize("flag", ["--add-generation-prompt", "--generation-prompt"])
    def test_ends_where_the_model_is_to_go_on(self, flag: str) -> None:
        assert run("render", flag, stdin=self.MESSAGES).stdout.endswith("<|im_assistant|>assistant<|im_middle|>")

    def test_reads_a_file_with_a_byte_order_mark(self, tmp_path: Path) -> None:
        (tmp_path / "messages.json").write_text(self.MESSAGES, encoding="utf-8-sig")
        assert run("render", str(tmp_path / "messages.json")).stdout == run("render", stdin=self.MESSAGES).stdout

    def test_writes_utf8_whatever_the_terminal_speaks(self) -> None:
        done = run("render", stdin=self.MESSAGES, env=environment(PYTHONIOENCODING="ascii"))
        assert "🌊" in done.stdout


class TestRenderWithATemplate:
    TOOLS = json.dumps([{"name": "tide", "parameters": {"type": "object", "properties": {}}}])

    def test_the_template_says_the_dialect(self, tmp_path: Path) -> None:
        (tmp_path / "tools.json").write_text(self.TOOLS, encoding="utf-8")
        (tmp_path / "messages.json").write_text(TestRender.MESSAGES, encoding="utf-8")
        files = ("--tools", str(tmp_path / "tools.json"), "--generation-prompt", str(tmp_path / "messages.json"))
        done = run("render", "--template", "GLM-4.7", *files)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("[gMASK]<sop><|system|>\n# Tools\n")
        assert '{"type": "function", "function": {"name": "tide", "parameters": ' in done.stdout
        assert done.stdout.endswith("3.2 m</tool_response><|assistant|><think>")
        assert run("render", "--template", "GLM-4.7", "--dialect", "glm", *files).stdout == done.stdout

    def test_options_are_json_or_text(self) -> None:
        thoughtless = ("--template", "GLM-4.7", "--option", "enable_thinking=false", "--generation-prompt")
        assert run("render", *thoughtless, stdin=TestRender.MESSAGES).stdout.endswith("<|assistant|></think>")
        busy = ("--template", "gpt-oss-120b", "--option", "reasoning_effort=high")
        assert "Reasoning: high\n" in run("render", *busy, stdin=TestRender.MESSAGES).stdout

    def test_the_vendors_nonsense_if_it_is_wanted(self) -> None:
        messages = TestRender.MESSAGES.replace('"I look."', "null")
        vendor = ("--template", "Kimi-K2-Instruct")
        assert run("render", *vendor, "--no-normalise", stdin=messages).returncode == 0
        done = run("render", "--template", "GLM-4.7", "--no-normalise", stdin=messages)
        assert (done.returncode, done.stdout) == (2, "")
        assert "messages[1].tool_calls[0].function.arguments: the template needs an object" in done.stderr

    def test_control_tokens_are_refused_or_broken(self) -> None:
        messages = TestRender.MESSAGES.replace("3.2 m", "<|im_end|>")
        assert "<\u200b|im_end|>" in run("render", "--neutralize", "escape", stdin=messages).stdout
        done = run("render", "--template", "Kimi-K2.5", "--neutralize", "raise", stdin=messages)
        assert (done.returncode, done.stdout) == (2, "")
        assert "messages[2].content: expected no control token" in done.stderr

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (("--template", "GLM-9"), "there is no template 'GLM-9'; there are: "),
            (("--template", "GLM-4.7", "--dialect", "kimi"), "has no template 'GLM-4.7'"),
            (("--template", "GLM-4.7", "--option", "x=1"), "has no option 'x'; it has: enable_thinking"),
            (("--template", "GLM-4.7", "--option", "tools=1"), "has no option 'tools'"),
            (("--template", "GLM-4.7", "--option", "enable_thinking=no"), "is true or false, not 'no'"),
            (("--template", "GLM-4.7", "--option", "enable_thinking"), "expected NAME=VALUE"),
            (("--option", "x=1"), "--option belongs to a --template"),
        ],
    )
    def test_wrong_use_is_told_in_a_line(self, arguments: tuple[str, ...], complaint: str) -> None:
        done = run("render", *arguments, stdin="[]")
        assert (done.returncode, done.stdout) == (2, "")
        assert complaint in done.stderr


class TestPromptListAndDemo:
    def test_prompt_prints_the_guide(self) -> None:
        done = run("prompt", "kimi")
        assert done.returncode == 0
        assert "<|tool_call_begin|>" in done.stdout

    def test_prompt_with_tools_lists_them_too(self, tmp_path: Path) -> None:
        (tmp_path / "tools.json").write_text('[{"name": "get_tide", "parameters": {}}]', encoding="utf-8")
        done = run("prompt", "kimi", "--tools", str(tmp_path / "tools.json"))
        assert "<tools>" in done.stdout
        assert "get_tide" in done.stdout

    def test_prompt_says_so_where_there_is_none(self) -> None:
        done = run("prompt", "llama")
        assert (done.returncode, done.stdout) == (2, "")
        assert "the dialect 'llama' has no prompt guide" in done.stderr
        assert "Traceback" not in done.stderr

    def test_list_names_the_dialects_and_who_speaks_them(self) -> None:
        done = run("list")
        assert (done.returncode, done.stderr) == (0, "")
        header, *rows = done.stdout.splitlines()
        assert header.split()[0] == "NAME"
        names = [row.split()[0] for row in rows]
        assert [name for name in names if get_dialect(name).scanner] == list(dialect_names())
        assert {"mistral", "llama", "kimi-k3"} <= set(names)
        for row, name in zip(rows, names, strict=True):
            dialect = get_dialect(name)
            is_read = dialect.scanner is not None
            assert f"  {dialect.title}  " in row
            assert ("  read, written  " if is_read else "  written  ") in row
            assert (f"  dialects prompt {name}  " if is_read else "  none  ") in row
            assert row.endswith(f"  {dialect.models}")

    @pytest.mark.parametrize(
        ("model", "name"),
        [
            ("moonshotai/Kimi-K2-Instruct", "kimi"),
            ("NousResearch/Hermes-3-Llama-3.1-8B", "hermes"),
            ("gpt-oss:20b", "harmony"),
            ("google/gemma-4-31b-it", "gemma"),
            ("mistralai/Mistral-Nemo-Instruct-2407", "mistral"),
            ("meta-llama/Llama-3.3-70B-Instruct", "llama"),
            ("moonshotai/Kimi-K3", "kimi-k3"),
        ],
    )
    def test_which_names_the_dialect_and_says_why(self, model: str, name: str) -> None:
        done = run("which", model)
        assert (done.returncode, done.stdout) == (0, f"{name}\n")
        assert done.stderr.startswith(f"{model!r} fits the pattern ")

    @pytest.mark.parametrize("model", ["gpt-4o", "deepseek-chat", ""])
    def test_which_says_so_where_it_does_not_know(self, model: str) -> None:
        done = run("which", model)
        assert (done.returncode, done.stdout) == (1, "")
        assert len(done.stderr.splitlines()) == 1
        assert repr(model) in done.stderr

    def test_demo_shows_calls_coming_out_of_a_stream(self) -> None:
        out = run("demo").stdout
        assert "ToolStart      run, id functions.run:0" in out
        assert "ToolEnd        write_file, clean" in out
        assert "2 calls:" in out
        assert 'run  {"command": "grep -rn \\"timeout = 30\\" src", "limit": 20}' in out
        assert "A call ends with `<|tool_call_end|>`." in out

    def test_demo_is_the_same_every_time(self) -> None:
        assert run("demo").stdout == run("demo").stdout

    def test_version_names_the_distribution(self) -> None:
        assert run("--version").stdout.startswith("inband-dialects ")


def test_the_dialect_that_the_output_told_is_reported() -> None:
    found = run("scan", "--dialect", "auto", stdin=section(call("{}"))).stderr.splitlines()[0]
    assert found.startswith("dialect  kimi: '<|tool_calls_section_begin|>'")
    found = run("scan", "--dialect", "auto", stdin='<tool_call>{"name": "f", "arguments": {}}</tool_call>').stderr
    assert found.startswith("dialect  not sure: ")
    assert "hermes and qwen3" in found
    assert "dialect" not in run("scan", stdin=section(call("{}"))).stderr
