"""Dialects of other people's packages: found through their entry points, under the same laws, harmless when broken."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

DIALECT = """
from dialects.engine.arguments import Arguments
from dialects.engine.dialect import Dialect
from dialects.engine.json_text import dump
from dialects.engine.markers import MarkerSet
from dialects.engine.rendering import compact_json
from dialects.engine.repair import repair
from dialects.engine.scanner import Scanner

BEGIN, NAMED, END = "[[call ", "]]", "[[end]]"


class BracketScanner(Scanner):
    # [[call NAME]]{...}[[end]]

    text_markers = MarkerSet([BEGIN, END])
    name_ends = MarkerSet([NAMED])
    ends = MarkerSet([END])

    def outside(self):
        marker = self.read_text(self.text_markers)
        if marker is None:
            return None
        if marker == END:
            self.pass_markup(marker)
            return self.outside
        self.begin_call()
        self.tape.i += len(marker)
        self.begun = self.tape.pos
        return self.header

    def header(self):
        name = self.up_to(self.name_ends)
        if name is not None and self.call:
            self.name_call(name or "nameless")
            self.begun = self.tape.pos
            return self.args
        return None if self.call else self.outside

    def args(self):
        body = self.up_to(self.ends)
        if body is not None and self.call:
            fixed = repair(body)
            value = fixed.value or {}
            self.end_call(self.write_arguments(Arguments(value, dump(value), fixed.repairs, fixed.value is None)))
            return self.outside
        return None if self.call else self.outside

    def after_too_large(self):
        return self.outside

    def up_to(self, ends):
        tape = self.tape
        tape.i, marker = ends.find(tape.text, tape.i, final=self.final)
        if marker is None:
            if self.final:
                self.drop_call("unfinished")
            return None
        found = tape.slice(self.begun, tape.pos)
        tape.i += len(marker)
        return found


class Bracket(Dialect):
    name = "bracket"
    title = "Brackets"
    models = "bracket"
    control_tokens = (BEGIN, END)
    scanner = BracketScanner
    generation_prompt = "assistant: "

    def call_text(self, call, tools):
        return f"{BEGIN}{call.name}{NAMED}{compact_json(call.arguments)}{END}"

    def calls_text(self, calls, tools):
        return "".join(self.call_text(call, tools) for call in calls)

    def results_text(self, results):
        return "".join(f"result: {result.content}\\n" for result in results)

    def turn_text(self, role, name, body):
        return f"{role}: {body}\\n"


class WriteOnly(Bracket):
    name = "writeonly"
    scanner = None


BRACKET = Bracket()
WRITE_ONLY = WriteOnly()
NOT_A_DIALECT = "bracket"
"""

ENTRY_POINTS = """
[dialects]
bracket = other_dialects:BRACKET
writeonly = other_dialects:WRITE_ONLY
missing = other_dialects:NOT_THERE
absent = no_such_module:X
wrong = other_dialects:NOT_A_DIALECT
kimi = other_dialects:BRACKET
"""

INFO = "other_dialects-1.0.dist-info"
WHEEL = {
    "other_dialects.py": DIALECT,
    f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: other-dialects\nVersion: 1.0\n",
    f"{INFO}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{INFO}/entry_points.txt": ENTRY_POINTS,
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed another package, from a wheel and without a network."""
    wheel = tmp_path_factory.mktemp("wheels") / "other_dialects-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in WHEEL.items():
            archive.writestr(name, text)
        archive.writestr(f"{INFO}/RECORD", "".join(f"{name},,\n" for name in (*WHEEL, f"{INFO}/RECORD")))
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", str(folder), str(wheel)], check=True)
    return folder


def run(site: Path, code: str) -> tuple[Any, str]:
    """What the code prints as JSON in a new Python that has the package, and its standard error."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(site)!r})\nimport json\n{code}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_an_installed_dialect_is_read_and_written_by_name(site: Path) -> None:
    code = """
from dialects import dialect_names, get_dialect, scan, render_transcript
written = get_dialect("bracket").render_assistant_tool_calls([{"name": "f", "arguments": {"a": "b", "n": [1]}}])
result = scan("Hi. " + written + "Bye.", "bracket")
messages = [{"role": "user", "content": "go"}]
print(json.dumps([dialect_names(), result.text, [[c.name, c.arguments, c.repairs] for c in result.tool_calls],
                  render_transcript(messages, "bracket", add_generation_prompt=True)]))
"""
    (names, text, calls, transcript), _ = run(site, code)
    assert names[0] == "kimi"
    assert "bracket" in names
    assert text == "Hi. Bye."
    assert calls == [["f", {"a": "b", "n": [1]}, []]]
    assert transcript == "user: go\nassistant: "


def test_a_broken_plug_in_does_not_take_the_others_down(site: Path) -> None:
    code = """
import logging; logging.basicConfig(level="WARNING")
from dialects import dialect_names, get_dialect, scan
print(json.dumps([dialect_names(), type(get_dialect("kimi")).__module__, scan("x", "kimi").text]))
"""
    (names, module, text), log = run(site, code)
    assert not {"missing", "absent", "wrong", "writeonly"} & set(names)
    assert (module, text) == ("dialects.kimi", "x")
    assert "'absent'" in log
    assert "'missing'" in log
    assert "the name is taken" in log


def test_asking_for_a_broken_or_renderer_only_one_says_what_is_wrong(site: Path) -> None:
    code = """
from dialects import create_inband_scanner, get_dialect
def fault(name):
    try: create_inband_scanner(name)
    except Exception as error: return [type(error).__name__, str(error)]
print(json.dumps([fault("writeonly"), fault("wrong"), fault("absent"), fault("brackets")]))
"""
    (renderer_only, wrong, absent, unknown), _ = run(site, code)
    assert renderer_only[0] == "NoScannerError"
    assert wrong[0] == "TypeError"
    assert "is no Dialect" in wrong[1]
    assert absent[0] == "ModuleNotFoundError"
    assert unknown[0] == "UnknownDialectError"
    assert "did you mean 'bracket'?" in unknown[1]


def test_a_plug_in_is_under_the_same_laws(site: Path) -> None:
    """The tests of this folder find it in the factory's table and test it like the package's own."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "tests/test_laws.py",
            "-q",
            "-p",
            "no:cacheprovider",
            "-k",
            "bracket and (depend or anywhere)",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONPATH": str(site)},
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "2 passed" in done.stdout
