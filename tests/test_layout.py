"""The house keeps its order: who imports whom, and who may name a dialect. Read from the source, not from what runs."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dialects.factory import all_dialects, get_dialect

PACKAGE = Path(__file__).resolve().parent.parent / "dialects"
NAMES = {dialect.name.replace("-", "_"): dialect.name for dialect in all_dialects()}
"""The modules of dialects, and what the dialects are called."""
DIALECTS = {module for module in NAMES if (PACKAGE / f"{module}.py").is_file()}
MODULES = {path.relative_to(PACKAGE).with_suffix("").as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
ENGINE = sorted(name for name in MODULES if name.startswith("engine/"))
TEMPLATES = sorted(name for name in MODULES if name.startswith("templates/"))
OTHERS = sorted(name for name in MODULES if name not in DIALECTS and name not in ENGINE and name not in TEMPLATES)

ALLOWED = {
    "factory": "the table of dialects",
    "detection": "lists families that have no dialect yet, by their names",
    "transcript": "`render_transcript` writes kimi unless it is told otherwise, as documented",
    "cli": "so do the commands that take `--dialect`",
    "demo": "its sample is a stream of one dialect",
}
"""The modules beside a dialect's own that may name one, and why."""

MAY_IMPORT = {
    "events": set(),
    "messages": {"events"},
    "thinking": {*ENGINE, "events"},
    "auto": {*ENGINE, "events", "thinking"},
    "scanner_row": {*ENGINE, "auto", "events", "thinking"},
    "factory": {"scanner_row", "messages", "engine/dialect", "engine/scanner"},
    "templates/__init__": {"templates/conversation", "templates/template"},
}
"""What the modules that everything else stands on may import."""


def tree(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


def words(name: str) -> Iterator[tuple[int, str]]:
    """The identifiers and strings of a module, its docstrings apart, with their lines."""
    module = tree(name)
    docs = {
        id(node.value)
        for node in ast.walk(module)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(module):
        line = getattr(node, "lineno", 0)
        for field in ("id", "attr", "arg", "name", "module", "asname"):
            if isinstance(value := getattr(node, field, None), str):
                yield line, value
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield line, node.value


def named_dialects(name: str, others: set[str]) -> list[tuple[int, str]]:
    """The words of a module in which a dialect is named. A name may stand in the module's own, or begin another."""
    pattern = re.compile("|".join(_spelt(other) + r"(?!\.\d)" for other in sorted(others)), re.IGNORECASE)
    own = re.compile(_spelt(name), re.IGNORECASE)
    return [(line, word) for line, word in words(name) if pattern.search(own.sub("", word))]


def _spelt(module: str) -> str:
    return module.replace("_", "[-_]?")


def imported(name: str) -> set[str]:
    """The modules of this package that a module imports when it is loaded."""
    found = set()
    module = tree(name)
    for_types = {
        id(inner)
        for node in ast.walk(module)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(module):
        if id(node) in for_types:
            continue
        targets = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports relatively"
            targets = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module or ""]
        elif isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        paths = (target.removeprefix("dialects.").replace(".", "/") for target in targets)
        found |= {path for path in paths if path in MODULES}
    return found


@pytest.mark.parametrize("name", ENGINE)
def test_the_engine_names_no_dialect(name: str) -> None:
    assert named_dialects(name, DIALECTS) == []
    docstrings = MODULES[name].read_text(encoding="utf-8").lower()
    assert [dialect for dialect in DIALECTS if re.search(rf"\b{dialect}\b", docstrings)] == []


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_dialect_names_no_other(name: str) -> None:
    """But one that its own name begins with."""
    assert named_dialects(name, {other for other in DIALECTS if not name.startswith(other)}) == []


@pytest.mark.parametrize("name", [name for name in OTHERS if name not in ALLOWED])
def test_nothing_else_names_a_dialect(name: str) -> None:
    assert named_dialects(name, DIALECTS) == []


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_an_exception_is_still_needed(name: str) -> None:
    assert named_dialects(name, DIALECTS)


@pytest.mark.parametrize("name", ["transcript", "cli", "demo"])
def test_only_the_default_is_named(name: str) -> None:
    assert named_dialects(name, DIALECTS - {"kimi"}) == []
    assert {word for _, word in named_dialects(name, {"kimi"}) if " " not in word and "|" not in word} == {"kimi"}


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_dialect_stands_on_the_engine_alone(name: str) -> None:
    assert imported(name) <= {*ENGINE, "events", "messages"}


@pytest.mark.parametrize("name", ENGINE)
def test_the_engine_stands_on_events_and_messages_alone(name: str) -> None:
    assert imported(name) <= {*ENGINE, "events", "messages"}


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_stand_on_the_engine_and_each_other_alone(name: str) -> None:
    assert imported(name) <= {*TEMPLATES, *ENGINE, "events", "messages"}


@pytest.mark.parametrize("name", sorted(MAY_IMPORT))
def test_what_all_stands_on_imports_little(name: str) -> None:
    assert imported(name) <= MAY_IMPORT[name]


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_imports_a_dialect(name: str) -> None:
    """The factory's table says where they are, and loads those that are asked for."""
    assert imported(name) & DIALECTS == set()


@pytest.mark.parametrize("module", sorted(DIALECTS))
def test_the_table_knows_a_dialect_by_its_own_name(module: str) -> None:
    dialect = get_dialect(NAMES[module])
    assert (dialect.name, type(dialect).__module__) == (NAMES[module], f"dialects.{module}")


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    graph = {name: imported(name) for name in MODULES}
    done: set[str] = set()
    while free := {name for name in graph if name not in done and graph[name] <= done}:
        done |= free
    assert set(graph) - done == set()


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_dialect_is_short_and_says_what_it_is(name: str) -> None:
    text = MODULES[name].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 320
    docstring = ast.get_docstring(tree(name)) or ""
    assert "Source:" in docstring
    dialect = get_dialect(NAMES[name])
    assert dialect.scanner is None or dialect.prompt.startswith("# Calling tools\n")
