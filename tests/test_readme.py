"""The README does what it says: its examples run one after the other, and print what is printed there."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from dialects import get_dialect, scan
from dialects.cli import main
from docs.build import own_dialects

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")


def test_examples_print_what_the_readme_says(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == ["python", "text"] * 4
    names: dict[str, Any] = {}
    for kind, content in blocks:
        if kind == "python":
            exec(compile(content, "README.md", "exec"), names)
        else:
            assert capsys.readouterr().out == content


def test_the_first_lines_show_what_the_demo_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    shown = re.findall(r"(?:^    [' ].*\n)+", README, re.MULTILINE)[0]
    assert textwrap.dedent(shown) in capsys.readouterr().out


def test_the_table_of_dialects_is_complete_and_its_calls_are_calls() -> None:
    rows = re.findall(r"^\| \[`([\w-]+)`\]\(docs/dialects/\1\.md\) \| (.*?) \| (.*) \|$", README, re.MULTILINE)
    assert [name for name, _, _ in rows] == list(own_dialects())
    for name, title, shown in rows:
        assert title == get_dialect(name).title
        if shown.startswith("`"):
            (call,) = scan(shown.strip("`").replace("\\|", "|"), name).tool_calls
            assert (call.name, call.arguments) == ("run", {"command": "ls"})
            assert set(call.repairs) <= {"missing-section"}
