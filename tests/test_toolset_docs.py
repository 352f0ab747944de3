"""The page on the toolset says what is so: its examples print what is printed there, its tables are complete."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from dialects.toolset import ErrorKind, StopReason

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "toolset.md").read_text(encoding="utf-8")


def test_the_examples_print_what_is_printed_there(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == ["python", "text"] * 2
    names: dict[str, Any] = {"__name__": "toolset_page"}
    for kind, content in blocks:
        if kind == "python":
            exec(compile(content, "toolset.md", "exec"), names)
        else:
            assert capsys.readouterr().out == content


@pytest.mark.parametrize(("column", "values"), [("kind", get_args(ErrorKind)), ("reason", get_args(StopReason))])
def test_a_table_names_every_value(column: str, values: tuple[str, ...]) -> None:
    (table,) = re.findall(rf"^\| `{column}` \|.*\n\|---\|---\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    firsts = [row.split("|")[1] for row in table.splitlines()]
    assert {name for first in firsts for name in re.findall("`(.*?)`", first)} == set(values)
