"""The documentation says what is so: its generated parts are up to date, and what is written by hand holds."""

import ast
import logging
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dialects import get_dialect, scan
from dialects.engine.scanner import Scanner, State
from docs import build
from docs.build import own_dialects
from docs.states import edges
from tests.streams import frame
from tests.test_cases import CASES

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(path for path in (ROOT / "dialects").rglob("*.py") if path.parent.name != "templates")
ABOUT_HTTP = {*(ROOT / "dialects" / "proxy").rglob("*.py"), ROOT / "dialects" / "healing" / "http.py"}
ABOUT_HTTP.add(ROOT / "dialects" / "healing" / "transport.py")
"""Sources in which such strings are the names of headers and of fields of a log."""
DOCUMENTS = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "benchmarks" / "README.md"]
NO_REPAIRS = {
    "fabricated-result",
    "fabricated-turn",
    "too-large",
    "unknown-tool",
    "gpt-oss",
    "inband-dialects",
    "native-copy",
    "tool-choice",
    "utf-8",
}
"""What looks like the name of a repair in the source: reasons of other events, and names of other things."""

every_dialect = pytest.mark.parametrize("name", own_dialects())


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "dialects")


def examples(page: Path) -> list[tuple[str, "re.Match[str]"]]:
    return list(build.examples(page.read_text(encoding="utf-8")))


def repairs_in_source() -> set[str]:
    """Every string in the source that has the form of a repair's name; templates repair nothing."""
    constants = (
        node.value
        for source in SOURCES
        if source not in ABOUT_HTTP and source.parent.name != "toolset"  # these name other things than repairs
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return {value for value in constants if re.fullmatch("[a-z]+(?:-[a-z]+)+", value)} - NO_REPAIRS


def repairs_listed() -> list[str]:
    text = (ROOT / "docs" / "repairs.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE)


@pytest.mark.parametrize("page", build.pages(), ids=lambda page: page.stem)
def test_a_page_is_what_the_build_writes_now(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == build.built(page), "run: python docs/build.py"


def test_every_dialect_has_a_page_which_the_index_links() -> None:
    pages = {page.stem for page in (ROOT / "docs" / "dialects").glob("*.md")} - {"README"}
    assert pages == set(own_dialects())
    index = (ROOT / "docs" / "dialects" / "README.md").read_text(encoding="utf-8")
    assert all(f"({name}.md)" in index for name in own_dialects())


@every_dialect
def test_an_example_under_the_name_of_a_repair_has_that_repair(name: str) -> None:
    shown = set()
    for heading, match in examples(ROOT / "docs" / "dialects" / f"{name}.md"):
        if heading.startswith("`"):
            result = build.read_stream(get_dialect(name), match["body"], match["words"])
            assert any(heading.strip("`") in call.repairs for call in result.tool_calls), match["body"]
            shown.add(heading.strip("`"))
        if heading == "Without a name for it":
            result = build.read_stream(get_dialect(name), match["body"], match["words"])
            assert [repair for call in result.tool_calls for repair in call.repairs] == []
    headings = re.findall(r"^### `([a-z-]+)`$", build.built(ROOT / "docs" / "dialects" / f"{name}.md"), re.MULTILINE)
    assert shown == set(headings)


@every_dialect
def test_what_was_decided_in_debatable_cases_is_on_the_page(name: str) -> None:
    page = (ROOT / "docs" / "dialects" / f"{name}.md").read_text(encoding="utf-8")
    debatable = {case["id"] for case in CASES if case["dialect"] == name and case.get("debatable")}
    assert set(re.findall("<!-- case: (.*) -->", page)) == debatable


@every_dialect
def test_a_repair_that_only_this_dialect_names_is_on_its_page(name: str) -> None:
    source = ast.parse((ROOT / "dialects" / f"{name.replace('-', '_')}.py").read_text(encoding="utf-8"))
    strings = {
        node.value for node in ast.walk(source) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    page = (ROOT / "docs" / "dialects" / f"{name}.md").read_text(encoding="utf-8")
    assert {repair for repair in strings & repairs_in_source() if f"`{repair}`" not in page} == set()


@pytest.mark.parametrize("name", [name for name in own_dialects() if frame(name)])
def test_json_arguments_are_mended_alike_in_every_dialect(name: str) -> None:
    """Where they are JSON; those of Hermes and Qwen3 stand inside an object, so what is around them is part of that."""
    text = (ROOT / "docs" / "repairs.md").read_text(encoding="utf-8")
    inside, _, around = text.partition("## Faults around the object")
    for heading, match in build.examples(inside if name in ("hermes", "qwen3") else inside + around):
        read = build.read_arguments(get_dialect(name), match["body"])
        kimis = build.read_arguments(get_dialect("kimi"), match["body"])
        assert [call.arguments for call in read.tool_calls] == [call.arguments for call in kimis.tool_calls], heading
        assert heading.strip("`") in read.tool_calls[0].repairs, match["body"]


def test_the_list_of_repairs_is_complete_and_names_none_twice() -> None:
    assert len(repairs_listed()) == len(set(repairs_listed()))
    assert set(repairs_listed()) == repairs_in_source()


def test_no_repair_comes_out_that_is_not_listed() -> None:
    named: set[str] = set()
    for case in CASES:
        if "scale" not in case:
            options: dict[str, Any] = {"tools": case["tools"], "generation_prompt": case["generation_prompt"]}
            for call in scan(case["raw"], case["dialect"], **options).tool_calls:
                named.update(call.repairs)
    assert named
    assert named <= set(repairs_listed())


@every_dialect
def test_no_stream_takes_a_way_that_the_diagram_lacks(name: str) -> None:
    scanner = get_dialect(name).scanner
    assert scanner is not None
    known = {*edges(scanner)}
    taken: set[tuple[str, str]] = set()
    for case in CASES:
        if case["dialect"] == name and "scale" not in case:
            options = {"tools": case["tools"], "generation_prompt": case["generation_prompt"]}
            watched = _watching(scanner, taken)(**options)
            for char in case["raw"]:
                watched.feed(char)
            watched.flush(truncated=case["truncated"])
    assert len(taken) > 3
    assert {step for step in taken if step[0] != step[1]} <= known


def _watching(scanner: type[Scanner], taken: set[tuple[str, str]]) -> type[Scanner]:
    """The scanner class, noting every step from one state to another that a state asked for."""

    class Watched(scanner):  # type: ignore[misc, valid-type]
        @property
        def state(self) -> State:
            return self._state

        @state.setter
        def state(self, following: State) -> None:
            before = getattr(self, "_state", None)
            if before is not None and self._steps:
                taken.add((before.__name__, following.__name__))
            self._state = following

        def _reset(self) -> None:
            self._steps = False
            super()._reset()
            self._steps = True

    return Watched


@every_dialect
def test_the_sample_on_a_page_reads_back(name: str) -> None:
    page = (ROOT / "docs" / "dialects" / f"{name}.md").read_text(encoding="utf-8")
    sample = re.search(
        r"<!-- generated: sample -->\n(?P<fence>`{3,})text\n(?P<text>.*?)\n(?P=fence)\n", page, re.DOTALL
    )
    assert sample
    assert "5.1 m" in sample["text"]
    (turn,) = [message for message in build.CONVERSATION if message["role"] == "assistant"]
    dialect = get_dialect(name)
    written = dialect.render_thinking(turn["reasoning_content"])
    assert written in sample["text"]
    calls = dialect.render_assistant_tool_calls([call["function"] for call in turn["tool_calls"]], tools=build.TOOLS)
    assert calls in sample["text"]


@every_dialect
def test_a_guide_shows_the_model_what_the_renderer_writes(name: str) -> None:
    dialect = get_dialect(name)
    shown = re.search(r"exactly like this:\n\n(.*?)\n\n\(`get_weather`", dialect.prompt, re.DOTALL)
    assert shown
    read = scan(shown[1], name)
    assert [(call.name, call.repairs) for call in read.tool_calls] == [("get_weather", ()), ("read_file", ())]
    assert read.tool_calls[0].arguments["city"] == "Zürich"
    assert read.tool_calls[1].arguments == {"path": 'notes/"to do".txt'}
    assert (read.text, read.dropped) == ("", [])
    text = {"type": "object", "properties": {"city": {"type": "string"}, "path": {"type": "string"}}}
    tools = [{"name": call.name, "parameters": text} for call in read.tool_calls]
    assert dialect.render_assistant_tool_calls(read.tool_calls, tools=tools) == shown[1]


def test_the_example_of_a_new_dialect_works(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "adding-a-dialect.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    module = ModuleType("my_package.use")
    names: dict[str, Any] = vars(module)
    exec(compile(code, "adding-a-dialect.md", "exec"), names)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr("dialects.factory._DIALECTS", {"use": "my_package.use:USE"})
    call = re.search(r"`(<\|use\|>.*?)`", page)
    assert call
    assert get_dialect("use").render_tool_call(build.CALL) == call[1]
    text = f'I look.{call[1]}<|use|>run<|with|>{{"command":"echo <|done|>"}}<|done|>Done.'
    whole = scan(text, "use", id_factory=iter("abc").__next__)
    assert (whole.text, whole.dropped) == ("I look.Done.", [])
    assert [end.arguments for end in whole.tool_calls] == [{"port": "Leith"}, {"command": "echo <|done|>"}]
    assert [end.repairs for end in whole.tool_calls] == [(), ()]
    for cut in range(1, len(text)):
        scanner = names["UseScanner"](id_factory=iter("abc").__next__)
        events = scanner.feed(text[:cut]) + scanner.feed(text[cut:]) + scanner.flush()
        assert [event for event in events if event in whole.tool_calls] == whole.tool_calls


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub("`[^`\n]+`", "", text)
    folder = page.parent.parent / "dialects" if page.parent.name == "shared" else page.parent
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if path.startswith("https://"):
            continue
        linked = (folder / path).resolve() if path else page
        assert linked.exists(), target
        headings = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), re.MULTILINE) if anchor else []
        assert not anchor or anchor in {re.sub(r"[^\w-]", "", title.lower().replace(" ", "-")) for title in headings}
