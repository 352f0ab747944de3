"""What makes a tool: its schema from types, its descriptions, and which arguments it takes."""

import asyncio
import functools
import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from pydantic import BaseModel, Field

from dialects.messages import MessageError
from dialects.toolset import (
    CallableTool,
    FunctionTool,
    ToolDefinitionError,
    Toolset,
    TypedTool,
    load_description,
    tool,
)
from dialects.toolset.descriptions import read_docstring
from tests.event_loops import run


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Place(BaseModel):
    city: str
    country: str = "CH"


class Tree(BaseModel):
    name: str
    branches: "list[Tree]" = []


@dataclass
class Span:
    first: int
    last: int


def answer(made: CallableTool, arguments: dict[str, Any]) -> tuple[str | None, str]:
    """The kind of error and the text that a call with these arguments gives."""

    async def main() -> tuple[str | None, str]:
        outcome = await Toolset([made]).handle({"name": made.name, "arguments": arguments})
        return outcome.kind, outcome.content

    return run(main)


class TestSchemas:
    def test_of_a_whole_signature(self) -> None:
        @tool
        def weather(
            place: Place,
            unit: Unit = Unit.CELSIUS,
            days: Annotated[int, Field(ge=1, le=7, description="How far to look ahead.")] = 1,
            hours: list[int] | None = None,
            style: Literal["short", "long"] = "short",
        ) -> str:
            """The weather of a place.

            Args:
                place: Where.
                days: Never read, the annotation says it better.
                style: How much
                    to say.
            """
            return ""

        schema = weather.parameters
        assert weather.name == "weather"
        assert weather.description == "The weather of a place."
        assert schema["type"] == "object"
        assert schema["required"] == ["place"]
        assert schema["additionalProperties"] is False
        assert list(schema["properties"]) == ["place", "unit", "days", "hours", "style"]
        place = schema["$defs"]["Place"]
        assert place == {
            "type": "object",
            "properties": {"city": {"type": "string"}, "country": {"type": "string", "default": "CH"}},
            "required": ["city"],
        }
        assert schema["properties"]["place"] == {"$ref": "#/$defs/Place", "description": "Where."}
        assert schema["$defs"]["Unit"]["enum"] == ["c", "f"]
        assert schema["properties"]["unit"]["default"] == "c"
        assert schema["properties"]["days"] == {
            "type": "integer",
            "minimum": 1,
            "maximum": 7,
            "default": 1,
            "description": "How far to look ahead.",
        }
        assert schema["properties"]["hours"]["anyOf"] == [
            {"type": "array", "items": {"type": "integer"}},
            {"type": "null"},
        ]
        assert schema["properties"]["style"]["enum"] == ["short", "long"]
        assert schema["properties"]["style"]["description"] == "How much to say."

    def test_options_go_before_what_the_function_says(self) -> None:
        @tool(name="look", description="Look.", field_descriptions={"x": "Given."}, timeout=3, needs_approval=True)
        def function(x: Annotated[int, Field(description="Annotated.")]) -> int:
            """Never read.

            :param x: Documented.
            """
            return x

        assert (function.name, function.description) == ("look", "Look.")
        assert function.parameters["properties"]["x"]["description"] == "Given."
        assert (function.timeout, function.needs_approval) == (3, True)

    def test_a_schema_that_is_given_whole(self) -> None:
        schema = {"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]}

        @tool(schema=schema)
        def seek(at: Callable[[], int]) -> str:
            return repr(at)

        assert seek.definition.parameters == schema
        assert answer(seek, {"at": 3}) == (None, "3")
        assert answer(seek, {"at": "3"}) == (
            "invalid-arguments",
            "Error: The arguments are not what the tool takes:\n- at: must be integer",
        )
        assert answer(seek, {})[1].endswith("\n- at: is required")
        with pytest.raises(ToolDefinitionError, match="'seek' has a schema of its own"):
            tool(schema=schema, field_descriptions={"at": "x"})(seek.function)

    def test_names_that_a_model_has_already_are_no_problem(self) -> None:
        @tool
        def odd(json: str, schema: int, _x: int, model_config: str = "m", class_: str = "c") -> str:
            return f"{json}{schema}{_x}{model_config}{class_}"

        assert list(odd.parameters["properties"]) == ["json", "schema", "_x", "model_config", "class_"]
        assert answer(odd, {"json": "a", "schema": 1, "_x": 2, "class_": "d"}) == (None, "a12md")

    def test_a_default_stays_the_functions_own(self) -> None:
        marker = object()

        @tool
        def default(seconds: float = 1, other: Any = marker) -> str:
            return f"{seconds!r} {other is marker}"

        assert "default" not in default.parameters["properties"]["other"]
        assert answer(default, {}) == (None, "1 True")

    def test_a_field_as_the_default(self) -> None:
        @tool
        def limited(n: int = Field(3, ge=1, description="How many."), m: int = Field(ge=2)) -> int:
            return n * m

        assert limited.parameters["properties"]["n"] == {
            "type": "integer",
            "minimum": 1,
            "default": 3,
            "description": "How many.",
        }
        assert limited.parameters["required"] == ["m"]
        assert answer(limited, {"m": 5}) == (None, "15")
        assert answer(limited, {"m": 1})[0] == "invalid-arguments"

    def test_positional_and_keyword_only_parameters(self) -> None:
        @tool
        def mixed(a: int, /, b: int = 2, *, c: int = 3) -> str:
            return f"{a}{b}{c}"

        assert answer(mixed, {"a": 1, "c": 9}) == (None, "129")

    def test_a_bound_method_and_a_partial(self) -> None:
        class Counter:
            def __init__(self) -> None:
                self.total = 0

            def add(self, n: int) -> int:
                """Add."""
                self.total += n
                return self.total

        counter = Counter()
        assert answer(tool(counter.add), {"n": 2}) == (None, "2")
        assert counter.total == 2
        made = tool(name="add2")(functools.partial(counter.add, n=2))
        assert made.description == "Add."
        assert answer(made, {}) == (None, "4")

    def test_what_cannot_be_a_tool(self) -> None:
        def star(*paths: str) -> None: ...
        def untyped(a: int, b) -> None: ...  # type: ignore[no-untyped-def]
        def lines() -> Iterator[str]:
            yield ""

        with pytest.raises(ToolDefinitionError, match=r"'\*paths: str' of the tool 'star'"):
            tool(star)
        with pytest.raises(ToolDefinitionError, match="the parameter 'b' of the tool 'untyped' has no type"):
            tool(untyped)
        with pytest.raises(
            ToolDefinitionError, match="'self' of the tool 'look' has no type; make the tool of a bound"
        ):
            tool(Unbound.look)
        with pytest.raises(ToolDefinitionError, match="'lines' yields"):
            tool(lines)
        with pytest.raises(ToolDefinitionError, match="has no name to call it by"):
            tool(lambda: None)
        with pytest.raises(ToolDefinitionError, match="'named' has no parameter 'c'"):
            tool(name="named", field_descriptions={"c": "x"})(lambda: None)


Node = TypeVar("Node", bound=BaseModel)


class Unbound:
    def look(self, at: int) -> int:
        return at


class Silent:
    pass


@pytest.mark.parametrize(
    "kind",
    [
        object,
        Callable[[int], int],
        Callable,
        list[Callable[[], None]],
        Callable[[], None] | None,
        queue.Queue,
        asyncio.Queue[int],
        list[object],
        dict[str, object],
        object | None,
        type[int],
        Silent,
        Annotated[object, "a note"],
    ],
    ids=str,
)
class TestTypesWithoutASchema:
    def test_are_refused_when_the_tool_is_made(self, kind: Any) -> None:
        def function(path: str, thing: Any) -> None: ...

        function.__annotations__["thing"] = kind
        with pytest.raises(ToolDefinitionError, match="the parameter 'thing' of the tool 'function'"):
            tool(function)

    def test_are_refused_in_a_model_too(self, kind: Any) -> None:
        model = type(
            "Model",
            (BaseModel,),
            {"__annotations__": {"thing": kind}, "model_config": {"arbitrary_types_allowed": True}},
        )
        with pytest.raises(ToolDefinitionError, match="the parameter 'thing' of the tool 'broken'"):
            type("Broken", (TypedTool,), {"name": "broken", "params": model})


class TestArguments:
    def test_are_what_the_types_say(self) -> None:
        seen: list[Any] = []

        @tool
        def take(place: Place, unit: Unit, span: Span, path: Path, tags: set[str]) -> None:
            seen.extend([place, unit, span, path, tags])

        arguments = {
            "place": {"city": "Bern"},
            "unit": "f",
            "span": {"first": 1, "last": 2},
            "path": "a/b",
            "tags": ["x"],
        }
        assert answer(take, arguments) == (None, "null")
        assert seen == [Place(city="Bern"), Unit.FAHRENHEIT, Span(1, 2), Path("a/b"), {"x"}]

    def test_every_fault_is_a_line_without_what_the_model_wrote(self) -> None:
        @tool
        def take(place: Place, n: Annotated[int, Field(ge=1)]) -> None: ...

        kind, text = answer(take, {"place": {"city": 5}, "n": 0, "secret": "tell no one"})
        assert kind == "invalid-arguments"
        assert text.split("\n") == [
            "Error: The arguments are not what the tool takes:",
            "- place.city: Input should be a valid string",
            "- n: Input should be greater than or equal to 1",
            "- secret: Extra inputs are not permitted",
        ]

    def test_only_the_first_faults_are_told(self) -> None:
        @tool
        def take(numbers: list[int]) -> None: ...

        lines = answer(take, {"numbers": ["x"] * 50})[1].split("\n")
        assert len(lines) == 12
        assert lines[-1] == "- and 40 more"

    def test_a_lone_surrogate_is_no_accident(self) -> None:
        @tool
        def take(text: str) -> str:
            return text

        assert answer(take, {"text": "a\ud800"})[0] in (None, "invalid-arguments")

    def test_of_a_callable_tool(self) -> None:
        class Move(CallableTool):
            name = "move"
            parameters = {  # noqa: RUF012
                "type": "object",
                "properties": {
                    "to": {"enum": ["left", "right"]},
                    "steps": {"type": ["integer", "null"]},
                    "mode": {"const": "slow"},
                    "anything": True,
                },
                "required": ["to"],
                "additionalProperties": False,
            }

            async def __call__(self, to: str, steps: int | None = 1, mode: str = "slow", anything: Any = None) -> str:
                return f"{to} {steps}"

        assert answer(Move(), {"to": "left"}) == (None, "left 1")
        assert answer(Move(), {"to": "left", "steps": None, "anything": []}) == (None, "left None")
        assert answer(Move(), {"to": "up", "steps": 1.5, "mode": "fast", "x": 1})[1].split("\n")[1:] == [
            "- to: must be one of 'left', 'right'",
            "- steps: must be integer or null",
            "- mode: must be 'slow'",
            "- x: there is no such parameter",
        ]
        assert answer(Move(), {"steps": 2.0})[1].endswith("\n- to: is required")

    def test_that_the_function_does_not_take(self) -> None:
        class Loose(CallableTool):
            name = "loose"

            async def __call__(self, a: int) -> int:
                return a

        assert answer(Loose(), {"b": 1}) == (
            "invalid-arguments",
            "Error: The arguments are not what the tool takes:\n- missing a required argument: 'a'",
        )


class TestTypedTools:
    def test_the_model_is_the_parameters(self) -> None:
        class Weather(TypedTool[Place]):
            name = "weather"
            description = "The weather."

            async def __call__(self, params: Place) -> str:
                return f"{params.city}, {params.country}"

        assert Weather().params is Place
        assert Weather().definition.parameters["required"] == ["city"]
        assert answer(Weather(), {"city": "Bern"}) == (None, "Bern, CH")
        assert answer(Weather(), {}) == (
            "invalid-arguments",
            "Error: The arguments are not what the tool takes:\n- city: Field required",
        )

    def test_the_model_may_come_through_another_class(self) -> None:
        class Reading(TypedTool[Node], Generic[Node]):
            async def __call__(self, params: Node) -> str:
                return params.model_dump_json()

        class Weather(Reading[Place]):
            name = "weather"

        class Cached(Weather):
            name = "cached"

        assert answer(Weather(), {"city": "Bern"}) == (None, '{"city":"Bern","country":"CH"}')
        assert Cached().params is Place
        assert answer(Cached(), {"city": "Bern"})[0] is None

    def test_the_parameters_of_a_model_that_holds_itself_are_at_the_top(self) -> None:
        class Plant(TypedTool[Tree]):
            name = "plant"

            async def __call__(self, params: Tree) -> str:
                return repr(params)

        assert Plant.parameters["type"] == "object"
        assert list(Plant.parameters["properties"]) == ["name", "branches"]
        assert Plant.parameters["properties"]["branches"]["items"] == {"$ref": "#/$defs/Tree"}
        assert "title" not in Plant.parameters["$defs"]["Tree"]
        arguments = {"name": "a", "branches": [{"name": "b"}]}
        assert answer(Plant(), arguments) == (None, "Tree(name='a', branches=[Tree(name='b', branches=[])])")

    def test_without_a_model_it_is_refused(self) -> None:
        class Bare(TypedTool):  # type: ignore[type-arg]
            name = "bare"

            async def __call__(self, params: Place) -> None: ...

        with pytest.raises(ToolDefinitionError, match=r"which parameters Bare takes is not said: TypedTool\[…\]"):
            Toolset([Bare()])

    def test_a_validators_own_exception_does_not_get_out(self) -> None:
        class Bad(BaseModel):
            @classmethod
            def model_validate_json(cls, *args: Any, **kwargs: Any) -> Any:
                raise RuntimeError("broken validator")

        class Tool(TypedTool[Bad]):
            name = "bad"

            async def __call__(self, params: Bad) -> None: ...

        assert answer(Tool(), {}) == ("raised", "Error: bad failed. RuntimeError: broken validator")


def _go(at: int) -> int:
    return at


class TestDefinitions:
    def test_a_tool_without_a_name_is_told(self) -> None:
        class Nameless(CallableTool):
            async def __call__(self) -> None: ...

        with pytest.raises(MessageError, match=r"Nameless\[0\]\.name: expected text"):
            Toolset([Nameless()])

    def test_attributes_may_be_given_to_the_constructor(self) -> None:
        class Say(CallableTool):
            async def __call__(self, **arguments: Any) -> dict[str, Any]:
                return arguments

        class Move(TypedTool[Place]):
            description = "Move."

            async def __call__(self, params: Place) -> str:
                return params.city

        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        say, move = Say(name="say", description="Say it.", parameters=schema), Move(name="move")
        assert say.definition.parameters == schema
        assert (say.definition.description, move.definition.description) == ("Say it.", "Move.")
        assert answer(say, {"text": "x"}) == (None, '{"text":"x"}')
        assert answer(say, {"text": 7})[0] == "invalid-arguments"
        assert answer(move, {"city": "Husum"}) == (None, "Husum")

    def test_what_is_no_json_schema_is_told(self) -> None:
        with pytest.raises(MessageError, match=r"FunctionTool\.parameters\.properties\.at\.type: .* found 'nmuber'"):
            Toolset([tool(schema={"type": "object", "properties": {"at": {"type": "nmuber"}}})(_go)])
        old = {"type": "OBJECT", "properties": {"at": {"type": "int", "required": True, "enum": None}}, "required": []}
        assert Toolset([tool(_go, name="it", schema=old)]).tools[0].parameters == old

    def test_a_decorated_function_can_still_be_called(self) -> None:
        @tool
        def double(n: int) -> int:
            return 2 * n

        async def main() -> None:
            assert await double(n=4) == 8
            assert double.function(5) == 10
            assert isinstance(double, FunctionTool)

        run(main)


@pytest.mark.parametrize(
    "docstring",
    [
        """Copy a file.

        Existing files are kept.

        Args:
            source: What to copy; a colon: is
                fine.
            target (str): Where to.

        Returns:
            How many bytes.
        """,
        """Copy a file.

        Existing files are kept.

        Parameters
        ----------
        source : str
            What to copy; a colon: is
            fine.
        target
            Where to.

        Returns:
            How many bytes.
        """,
        """Copy a file.

        Existing files are kept.

        :param source: What to copy; a colon: is
            fine.
        :param str target: Where to.
        :type target: str

        Returns:
            How many bytes.
        """,
    ],
    ids=["google", "numpy", "sphinx"],
)
def test_docstrings_of_three_styles_say_the_same(docstring: str) -> None:
    description, parameters = read_docstring(docstring)
    assert parameters["source"] == "What to copy; a colon: is fine."
    assert parameters["target"].startswith("Where to.")
    assert description.startswith("Copy a file.\n\nExisting files are kept.")
    assert "source" not in description


def test_docstrings_that_only_look_like_sections() -> None:
    assert read_docstring(None) == ("", {})
    assert read_docstring("Args:\nnothing indented") == ("Args:\nnothing indented", {})
    assert read_docstring("x, y : both\n") == ("x, y : both", {})
    assert read_docstring("Do.\n\nParameters\n----------\nx, y : int\n    Both.")[1] == {"x": "Both.", "y": "Both."}


def test_a_description_from_a_markdown_file(tmp_path: Path) -> None:
    page = tmp_path / "read.md"
    page.write_text('# Reading\n\nAt most {limit} lines: `{"limit": 3}`, {{limit}} stays.\n', encoding="utf-8")
    assert load_description(page, limit=5) == '# Reading\n\nAt most 5 lines: `{"limit": 3}`, {limit} stays.'
    with pytest.raises(ValueError, match=r"read\.md: no value for \{limit\}"):
        load_description(page)
    with pytest.raises(ValueError, match=r"read\.md: no placeholder for \{other\}"):
        load_description(page, limit=5, other=1)
