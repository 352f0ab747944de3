"""Tools: classes and functions that a model may call.

`CallableTool` is the contract: a name, a description, a JSON Schema of the parameters, and an asynchronous `__call__`.
`TypedTool[Params]` takes its parameters as a pydantic model. `@tool` makes a tool of a typed function, sync or async; a
synchronous one runs in a thread. `bind` checks the arguments of one call and gives what runs it.
"""

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import (
    Any,
    ClassVar,
    Generic,
    ParamSpec,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    get_args,
    get_origin,
    overload,
)

from pydantic import BaseModel

from dialects.messages import Tool, read_tools
from dialects.toolset.arguments import InvalidArgumentsError, check_against_schema, check_schema, validated
from dialects.toolset.calling import call
from dialects.toolset.descriptions import read_docstring
from dialects.toolset.signatures import Parameters, ToolDefinitionError, schema_of_model

__all__ = ["BoundCall", "CallableTool", "FunctionTool", "ToolDefinitionError", "TypedTool", "tool"]

P = ParamSpec("P")
R = TypeVar("R")
Params = TypeVar("Params", bound=BaseModel)

BoundCall: TypeAlias = Callable[[], Awaitable[object]]
"""A call whose arguments are checked; calling it runs the tool."""

NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


class CallableTool(ABC):
    """A tool that a model may call.

    A subclass sets the attributes, on the class or in its constructor (by `super().__init__(name=…)`, or one by one),
    and writes `__call__`, whose arguments are those that the schema names. It returns text, a list of content parts,
    any JSON value, `ToolOk`, `ToolError` or `ToolRejected`.
    """

    name: str
    """What the model calls it by."""
    description: str = ""
    parameters: dict[str, Any] = NO_PARAMETERS
    """The JSON Schema of the arguments, which are always an object."""
    needs_approval: bool = False
    """Whether somebody is asked before every call."""
    timeout: float | None = None
    """How many seconds a call may take; None: what the toolset's `Limits` say."""
    runs_here: ClassVar[bool] = True
    """False: somebody else does the work, so a call counts against no limit of concurrency."""

    def __init__(
        self, *, name: str | None = None, description: str | None = None, parameters: dict[str, Any] | None = None
    ) -> None:
        """What is not given stays as the class has it."""
        given = {"name": name, "description": description, "parameters": parameters}
        for attribute, value in given.items():
            if value is not None:
                setattr(self, attribute, value)

    @abstractmethod
    async def __call__(self, *args: Any, **kwargs: Any) -> object:
        """Do what the tool is for."""

    @property
    def definition(self) -> Tool:
        """The tool as a prompt lists it. Raises `MessageError` if its attributes are not what they should be."""
        name = getattr(self, "name", None)
        about = {"name": name, "description": self.description, "parameters": self.parameters}
        (definition,) = read_tools([about], type(self).__name__) or ()
        check_schema(definition.parameters, f"{type(self).__name__}.parameters")
        return definition

    def bind(self, arguments: dict[str, Any]) -> BoundCall:
        """The call with these arguments. Raises InvalidArgumentsError."""
        check_against_schema(arguments, self.parameters)
        return partial(call, self.__call__, **_accepted(self.__call__, arguments))


class TypedTool(CallableTool, Generic[Params]):
    """A tool whose parameters are a pydantic model: `class Read(TypedTool[ReadParams])`.

    `__call__` gets an instance of the model. Arguments that do not fit never reach it: the model is told why.
    """

    params: type[Params]
    """The model; read from the square brackets unless a subclass sets it."""

    def __init__(self, *, name: str | None = None, description: str | None = None) -> None:
        super().__init__(name=name, description=description)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__dict__.get("__orig_bases__", ()):
            origin = get_origin(base)
            if isinstance(origin, type) and issubclass(origin, TypedTool) and "params" not in cls.__dict__:
                for argument in get_args(base):
                    if isinstance(argument, type) and issubclass(argument, BaseModel):
                        cls.params = argument  # type: ignore[assignment]
        if "params" in cls.__dict__:
            cls.parameters = schema_of_model(cls.params, getattr(cls, "name", cls.__name__))

    @abstractmethod
    async def __call__(self, params: Params, /) -> object:
        """Do what the tool is for."""

    @property
    def definition(self) -> Tool:
        if not hasattr(self, "params"):
            raise ToolDefinitionError(f"which parameters {type(self).__name__} takes is not said: TypedTool[…]")
        return super().definition

    def bind(self, arguments: dict[str, Any]) -> BoundCall:
        return partial(call, self.__call__, validated(self.params.model_validate_json, arguments))


class FunctionTool(CallableTool, Generic[P, R]):
    """A function as a tool; `tool` makes them. Awaiting a call of it calls the function, which `function` is."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        field_descriptions: Mapping[str, str] | None = None,
        schema: Mapping[str, Any] | None = None,
        needs_approval: bool = False,
        timeout: float | None = None,
    ) -> None:
        self.function = function
        self.name = name or _name_of(function)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ToolDefinitionError(f"the tool {self.name!r} yields; a tool returns its result")
        about, of_parameters = read_docstring(
            inspect.getdoc(function.func if isinstance(function, partial) else function)
        )
        self.description = about if description is None else description
        self.needs_approval = needs_approval
        self.timeout = timeout
        if schema is not None:
            if field_descriptions:
                raise ToolDefinitionError(f"the tool {self.name!r} has a schema of its own, which describes its fields")
            self._parameters = None
            self.parameters = dict(schema)
            return
        self._parameters = Parameters(function, self.name, of_parameters, field_descriptions or {})
        self.parameters = self._parameters.schema

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        return await call(self.function, *args, **kwargs)

    def bind(self, arguments: dict[str, Any]) -> BoundCall:
        if self._parameters is None:
            check_against_schema(arguments, self.parameters)
            return partial(call, self.function, **_accepted(self.function, arguments))
        bound = validated(self._parameters.bind, arguments)
        return partial(call, self.function, *bound.args, **bound.kwargs)


class ToolOptions(TypedDict, total=False):
    """What `tool` may be told beside the function; it says what each means."""

    name: str | None
    description: str | None
    field_descriptions: Mapping[str, str] | None
    schema: Mapping[str, Any] | None
    needs_approval: bool
    timeout: float | None


@overload
def tool(function: Callable[P, R], /, **options: Unpack[ToolOptions]) -> FunctionTool[P, R]: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool of a typed function: a decorator, with or without options, or called with a function or bound method.

    name: what the model calls it by; by default the function's name.
    description: by default the docstring without its section on parameters.
    field_descriptions: descriptions of parameters by their names; they go before those of `Annotated[…, Field(…)]`,
        which go before those of the docstring.
    schema: the whole JSON Schema of the parameters; then the function gets the JSON values as they are.
    needs_approval: ask somebody before every call.
    timeout: how many seconds a call may take.

    Raises ToolDefinitionError for a parameter whose type has no JSON Schema, and for one without a type.
    """
    if function is None:
        return partial(FunctionTool, **options)
    return FunctionTool(function, **options)


def _name_of(function: Callable[..., object]) -> str:
    name = re.sub(r"\W", "", getattr(function, "__name__", ""))
    if not name or name == "lambda":
        raise ToolDefinitionError(f"{function!r} has no name to call it by; give it one: tool(name=…)")
    return name


def _accepted(function: Callable[..., object], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, if the function can be called with them."""
    try:
        inspect.signature(function).bind(**arguments)
    except TypeError as error:
        raise InvalidArgumentsError([str(error)]) from error
    return arguments
