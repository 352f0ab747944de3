"""The README does what it says: its examples run one after the other, and print what is printed there."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from dialects.cli import main

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")


def test_examples_print_what_the_readme_says(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == ["python", "text"] * 3
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
