"""JSON Schemas from Python types: the signature of a function, or a pydantic model, as the parameters of a tool.

A signature becomes a pydantic model with one field a parameter. The fields have names of their own, and the parameters'
names are their aliases: so no parameter's name (`json`, `_x`, `class_`) can collide with what a model has already.
"""

import functools
import inspect
import types
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import PydanticUndefined

__all__ = ["Parameters", "ToolDefinitionError", "schema_of_model"]


class ToolDefinitionError(TypeError):
    """A tool cannot be made: the message names the tool, the parameter, and what is wrong with it."""


class Parameters:
    """The parameters of a function: their JSON Schema, and how arguments become those of a call."""

    def __init__(
        self,
        function: Callable[..., object],
        tool: str,
        documented: Mapping[str, str],
        descriptions: Mapping[str, str],
    ) -> None:
        """`documented` are the descriptions in the docstring, `descriptions` those that go before all others."""
        self._signature = inspect.signature(function)
        parameters = self._signature.parameters
        if unknown := sorted(descriptions.keys() - parameters.keys()):
            raise ToolDefinitionError(f"the tool {tool!r} has no parameter {unknown[0]!r} that could be described")
        hints = _hints(function, tool)
        fields: dict[str, Any] = {}
        for number, (name, parameter) in enumerate(parameters.items()):
            annotation, default = _annotation(parameter, hints, tool)
            about: dict[str, Any] = {}
            if description := descriptions.get(name) or (not _is_described(annotation) and documented.get(name)):
                about["description"] = description
            fields[f"p{number}"] = (annotation, Field(default, alias=name, **about))
        self._names = dict(zip(fields, parameters, strict=True))
        self._always = {field for field, name in self._names.items() if isinstance(parameters[name].default, FieldInfo)}
        self._model = create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
        self.schema = schema_of_model(self._model, tool)

    def bind(self, arguments_json: str) -> inspect.BoundArguments:
        """The arguments of one call, each of its parameter's type; what is missing is left to the function's own
        defaults. Raises pydantic's `ValidationError`."""
        values = self._model.model_validate_json(arguments_json)
        given = OrderedDict((self._names[at], getattr(values, at)) for at in values.model_fields_set | self._always)
        return inspect.BoundArguments(self._signature, given)


def schema_of_model(model: type[BaseModel], tool: str) -> dict[str, Any]:
    """The JSON Schema of a model, without the titles that pydantic makes of names."""
    for name, field in model.model_fields.items():
        if _holds_no_schema(field.annotation) and not any(map(_gives_schema, field.metadata)):
            raise _no_schema(name, tool, field.annotation)
    try:
        schema = model.model_json_schema(schema_generator=_Schema)
    except PydanticUserError as error:
        name, annotation = _to_blame(model)
        raise _no_schema(name, tool, annotation) from error
    if "$ref" in schema:  # a model that holds itself: readers of schemas look for the properties at the top
        schema = {**schema["$defs"][schema["$ref"].removeprefix("#/$defs/")], "$defs": schema["$defs"]}
    schema.pop("title", None)
    for name, definition in schema.get("$defs", {}).items():
        if definition.get("title") == name:
            del definition["title"]
    return schema


class _Schema(GenerateJsonSchema):
    """Titles only where somebody wrote one, and no choice of a union left out in silence."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        if kind == "skipped-choice":
            raise PydanticUserError(detail, code=None)


def _annotation(parameter: inspect.Parameter, hints: Mapping[str, Any], tool: str) -> tuple[Any, Any]:
    """A parameter's type, which a model can write a value of, and its default, `...` if it has none."""
    name = parameter.name
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        raise ToolDefinitionError(f"the parameter {str(parameter)!r} of the tool {tool!r} stands for no one argument")
    if name not in hints:
        hint = "; make the tool of a bound method: tool(it.method)" if name == "self" else ""
        raise ToolDefinitionError(f"the parameter {name!r} of the tool {tool!r} has no type{hint}")
    annotation, default = hints[name], parameter.default
    if isinstance(default, FieldInfo):
        annotation, default = Annotated[annotation, default], default.default
    if _holds_no_schema(annotation):
        raise _no_schema(name, tool, annotation)
    try:
        TypeAdapter(annotation).json_schema(schema_generator=_Schema)
    except PydanticUserError as error:
        raise _no_schema(name, tool, annotation) from error
    return annotation, ... if default is inspect.Parameter.empty or default is PydanticUndefined else default


def _is_described(annotation: object) -> bool:
    notes = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return any(isinstance(note, FieldInfo) and note.description for note in notes)


def _hints(function: Callable[..., object], tool: str) -> dict[str, Any]:
    target = inspect.unwrap(function)
    while isinstance(target, functools.partial):
        target = target.func
    if not isinstance(target, types.FunctionType | types.MethodType):
        target = type(target).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as error:
        raise ToolDefinitionError(
            f"a type of the tool {tool!r} cannot be found where it is defined: {error}"
        ) from error


def _holds_no_schema(annotation: object) -> bool:
    """Whether a type is or holds `object` or a class as a value, for which pydantic has an empty schema."""
    if annotation is object or get_origin(annotation) is type or annotation is type:
        return True
    if get_origin(annotation) is Annotated:
        kind, *notes = get_args(annotation)
        return _holds_no_schema(kind) and not any(map(_gives_schema, notes))
    return any(map(_holds_no_schema, get_args(annotation)))


def _no_schema(parameter: str, tool: str, annotation: object) -> ToolDefinitionError:
    shown = getattr(annotation, "__name__", None) if not get_args(annotation) else None
    return ToolDefinitionError(
        f"the parameter {parameter!r} of the tool {tool!r} has the type {shown or annotation}, "
        "which has no JSON Schema: no model can write a value of it"
    )


def _gives_schema(note: object) -> bool:
    return hasattr(note, "__get_pydantic_json_schema__")


def _to_blame(model: type[BaseModel]) -> tuple[str, object]:
    """The field of a model without a schema that has none of its own, and its type."""
    config = ConfigDict(arbitrary_types_allowed=True)
    for name, field in model.model_fields.items():
        annotation: Any = field.annotation
        try:
            create_model("Alone", __config__=config, it=(annotation, ...)).model_json_schema(schema_generator=_Schema)
        except PydanticUserError:
            return name, annotation
    return model.__name__, model
