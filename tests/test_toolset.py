"""The tools of a toolset: finding, hiding, and loading them by their import paths with what they need."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest
from pydantic import BaseModel

from dialects import render_tool_prompt
from dialects.toolset import CallableTool, InvalidToolError, Toolset, TypedTool, tool
from tests.event_loops import run

ROOT = Path(__file__).resolve().parent.parent


class Config:
    def __init__(self, name: str = "base") -> None:
        self.name = name


class ProjectConfig(Config):
    pass


class Clock(Protocol):
    def now(self) -> float: ...


class Named(CallableTool):
    def __init__(self, name: str) -> None:
        self.name = name

    async def __call__(self) -> str:
        return self.name


class Text(BaseModel):
    text: str


class Echo(TypedTool[Text]):
    name = "echo"

    async def __call__(self, params: Text) -> str:
        return params.text


class TestFinding:
    def test_by_name_and_by_class(self) -> None:
        echo, first, second = Echo(), Named("first"), Named("second")
        toolset = Toolset([echo, first])
        toolset.add(second)
        assert toolset.find("second") is second
        assert toolset.find(Echo) is echo
        assert toolset.find(Named) is first
        assert toolset.find("third") is None
        assert Toolset().find(Echo) is None

    def test_hidden_tools_are_neither_listed_nor_called_but_found(self) -> None:
        async def main() -> list[str | None]:
            toolset = Toolset([Named("a"), Named("b"), Named("c")])
            toolset.hide("b")
            assert [definition.name for definition in toolset.tools] == ["a", "c"]
            assert [definition.name for definition in toolset.known] == ["a", "b", "c"]
            assert '"name":"b"' not in render_tool_prompt(toolset.tools, "kimi")
            assert toolset.find("b") is not None
            hidden = await toolset.handle({"name": "b"})
            assert hidden.content.endswith("The tools are: a, c.")
            toolset.unhide("b")
            assert [definition.name for definition in toolset.tools] == ["a", "b", "c"]
            return [hidden.kind, (await toolset.handle({"name": "b"})).kind]

        assert run(main) == ["unknown-tool", None]

    def test_wrong_use_is_told(self) -> None:
        toolset = Toolset([Named("a")])
        with pytest.raises(ValueError, match="there is a tool named 'a' already"):
            toolset.add(Named("a"))
        with pytest.raises(ValueError, match="there is no tool named 'x'"):
            toolset.hide("a", "x")
        assert [definition.name for definition in toolset.tools] == ["a"]
        with pytest.raises(TypeError, match="make one of a function with"):
            toolset.add(print)  # type: ignore[arg-type]


MODULE = '''
from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional

from dialects.toolset import CallableTool, SkipThisTool, tool
from tests.test_toolset import Clock, Config

if TYPE_CHECKING:
    from somewhere.only_checkers_look import Engine


class Base(CallableTool):
    async def __call__(self) -> str:
        return repr(self.given)


class Plain(Base):
    name = "plain"
    given = "nothing"


class Wants(Base):
    name = "wants"

    def __init__(self, config: Config, engine: Engine, /, clock: Annotated[Clock, "a note"], *, log: Missing = "own"):
        self.given = (config.name, engine.power, clock.now(), log)


class MayHave(Base):
    name = "may_have"

    def __init__(self, config: Optional[Config], engine: Engine | None = None, size=3, level: int = 4):
        self.given = (config and config.name, engine and engine.power, size, level)


class Collects(Base):
    name = "collects"

    def __init__(self, config: Config, *more: Engine, **options: Any):
        self.given = (config.name, more, options)


class Inherits(Wants):
    name = "inherits"


class Skips(Base):
    name = "skips"

    def __init__(self, config: Config):
        raise SkipThisTool("no compiler here")


class Breaks(Base):
    name = "breaks"

    def __init__(self, config: Config):
        raise OSError("no disk")


class Untyped(Base):
    name = "untyped"

    def __init__(self, config):
        self.given = config


class Outer:
    class Inner(Plain):
        name = "inner"


class KeywordOnly(Base):
    name = "keyword_only"

    def __init__(self, *, config: Config):
        self.given = config


@tool
def ready(n: int) -> int:
    return n


def bare(n: int = 2) -> int:
    """Bare."""
    return n


NUMBER = 7
'''


class Engine:
    power = 90


class TurboEngine(Engine):
    power = 200


class WallClock:
    def now(self) -> float:
        return 12.5


@pytest.fixture(autouse=True)
def _modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    package = tmp_path / "some_tools"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "kit.py").write_text(MODULE.replace("tests.test_toolset", __name__))
    (package / "broken.py").write_text("def (\n")
    (package / "failing.py").write_text("import module_that_does_not_exist\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.startswith("some_tools")]:
        del sys.modules[name]


def loaded(path: str, dependencies: Mapping[type[Any], object] | list[object]) -> str:
    """What the tool at a path was given."""
    toolset = Toolset()
    toolset.load_tools([f"some_tools.kit:{path}"], dependencies)
    (definition,) = toolset.tools

    async def main() -> str:
        return (await toolset.handle({"name": definition.name})).content

    return run(main)


ALL = {Config: Config(), Engine: Engine(), Clock: WallClock()}


class TestInjection:
    def test_by_annotation_up_to_the_first_keyword_only_parameter(self) -> None:
        assert loaded("Plain", {}) == "'nothing'"
        assert loaded("Wants", ALL) == "('base', 90, 12.5, 'own')"
        assert loaded("Inherits", ALL) == "('base', 90, 12.5, 'own')"

    def test_a_subclass_will_do(self) -> None:
        dependencies = {ProjectConfig: ProjectConfig("project"), Engine: TurboEngine(), Clock: WallClock()}
        assert loaded("Wants", dependencies) == "('project', 200, 12.5, 'own')"

    def test_objects_answer_for_their_own_types(self) -> None:
        dependencies = [ProjectConfig("project"), TurboEngine()]
        assert loaded("MayHave", dependencies) == "('project', 200, 3, 4)"
        with pytest.raises(ValueError, match="two dependencies are of the type Config; give them by their types"):
            loaded("MayHave", [Config(), Config()])

    def test_exactly_the_type_goes_before_a_subclass(self) -> None:
        dependencies = {ProjectConfig: ProjectConfig("project"), **ALL}
        assert loaded("Wants", dependencies) == "('base', 90, 12.5, 'own')"

    def test_what_is_not_there_is_left_to_defaults(self) -> None:
        assert loaded("MayHave", {}) == "(None, None, 3, 4)"
        assert loaded("MayHave", {Config: Config(), Engine: Engine(), int: 9}) == "('base', 90, 3, 9)"

    def test_parameters_that_collect_are_left_empty(self) -> None:
        assert loaded("Collects", ALL) == "('base', (), {})"


class TestLoading:
    def test_what_a_path_may_lead_to(self) -> None:
        toolset = Toolset()
        toolset.load_tools(["some_tools.kit:ready", "some_tools.kit:bare", "some_tools.kit:Outer.Inner"])
        assert [definition.name for definition in toolset.tools] == ["ready", "bare", "inner"]

    def test_a_tool_may_ask_to_be_left_out(self) -> None:
        toolset = Toolset()
        toolset.load_tools(["some_tools.kit:Skips", "some_tools.kit:Plain"], ALL)
        assert [definition.name for definition in toolset.tools] == ["plain"]

    def test_one_error_names_every_path_that_failed_and_why(self) -> None:
        kit = "some_tools.kit"
        reasons = {
            "some_tools.kit": "ValueError: it does not have the form package.module:Class",
            "nowhere:Tool": "ModuleNotFoundError: No module named 'nowhere'",
            "some_tools.broken:Tool": "SyntaxError: ",
            "some_tools.failing:Tool": "ModuleNotFoundError: No module named 'module_that_does_not_exist'",
            f"{kit}:Nothing": "AttributeError: module 'some_tools.kit' has no attribute 'Nothing'",
            f"{kit}:NUMBER": "TypeError: it is no tool but of the type int",
            f"{kit}:Outer": "TypeError: it is no tool but the class Outer",
            f"{kit}:Breaks": "OSError: no disk",
            f"{kit}:Untyped": "TypeError: the parameter 'config' of its constructor has no type",
            f"{kit}:KeywordOnly": "TypeError: KeywordOnly.__init__() missing 1 required keyword-only argument: ",
            f"{kit}:Wants": "LookupError: there is no dependency of the type Clock for the parameter 'clock'",
        }
        toolset = Toolset()
        with pytest.raises(InvalidToolError) as caught:
            toolset.load_tools([*reasons, f"{kit}:Base", f"{kit}:Plain", f"{kit}:Plain"], {Config: Config(), Engine: 1})
        failures = caught.value.failures
        assert [path for path in reasons if not failures[path].startswith(reasons[path])] == []
        assert failures[f"{kit}:Base"].startswith("MessageError: Base[0].name: ")
        assert failures[f"{kit}:Plain"] == "ValueError: there is a tool named 'plain' already"
        assert len(failures) == len(reasons) + 2
        assert all(f"\n  {path}: {reason}" in str(caught.value) for path, reason in failures.items())
        assert [definition.name for definition in toolset.tools] == ["plain"]

    def test_two_subclasses_are_one_too_many(self) -> None:
        class OtherConfig(Config):
            pass

        dependencies = {ProjectConfig: ProjectConfig(), OtherConfig: OtherConfig()}
        with pytest.raises(InvalidToolError, match="several dependencies are a Config"):
            loaded("Collects", dependencies)

    def test_a_name_that_cannot_be_resolved_is_told(self) -> None:
        with pytest.raises(InvalidToolError, match="NameError: name 'Engine' is not defined"):
            loaded("Wants", {Config: Config()})


def test_without_pydantic_the_extra_is_named_and_all_else_works() -> None:
    program = (
        "import sys; sys.modules['pydantic'] = None\n"
        "import dialects, dialects.cli\n"
        "assert dialects.cli.main(['list']) == 0\n"
        "assert dialects.cli.main(['chat', '--base-url', 'http://127.0.0.1:9', '--model', 'kimi-k2', 'hi']) == 2\n"
        "import dialects.toolset\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "inband-dialects[toolset]" in done.stderr.splitlines()[0]
    assert done.stderr.splitlines()[-1] == (
        "ImportError: dialects.toolset needs pydantic: python -m pip install 'inband-dialects[toolset]'"
    )


def test_the_rest_of_the_package_does_not_import_pydantic() -> None:
    program = "import dialects, dialects.cli, dialects.healing, sys; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


def test_a_decorated_tool_is_found_by_its_class() -> None:
    @tool
    def look() -> str:
        return ""

    assert Toolset([look]).find(type(look)) is look
