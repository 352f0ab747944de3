"""Whether arguments are what a tool takes, and how that is said to the model.

pydantic judges the arguments of a tool that was made from types. For one that came with a JSON Schema, the outermost
level of the schema is checked here: what is required, what is not permitted, and the type, `enum` and `const` of each
argument. Deeper levels are the tool's own business. `check_schema` says whether it is a JSON Schema at all.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from dialects.engine.rendering import compact_json
from dialects.engine.schema import TYPE_NAMES, kinds_of, property_schema
from dialects.messages import MessageError
from dialects.toolset.results import ToolError

__all__ = ["InvalidArgumentsError", "check_against_schema", "check_schema", "validated"]

T = TypeVar("T")

_MOST_FAULTS = 10
_MAPS_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions")
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMAS = ("items", "additionalProperties", "not")
_KINDS: dict[type, frozenset[str]] = {
    str: frozenset({"string"}),
    bool: frozenset({"boolean"}),
    int: frozenset({"integer", "fraction"}),
    float: frozenset({"fraction"}),
    list: frozenset({"array"}),
    dict: frozenset({"object"}),
    type(None): frozenset({"null"}),
}


class InvalidArgumentsError(Exception):
    """The arguments of a call are not what the tool takes; each fault is a line for the model."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__(faults)
        self.faults = faults

    def as_answer(self) -> ToolError:
        """What the model is told."""
        shown = self.faults[:_MOST_FAULTS]
        more = len(self.faults) - len(shown)
        lines = [f"- {fault}" for fault in shown] + ([f"- and {more} more"] if more else [])
        message = "\n".join(["The arguments are not what the tool takes:", *lines])
        return ToolError(message, "Invalid arguments", kind="invalid-arguments")


def validated(validate: Callable[[str], T], arguments: Mapping[str, Any]) -> T:
    """What pydantic makes of the arguments' JSON text. Raises InvalidArgumentsError."""
    try:
        return validate(compact_json(arguments))
    except ValidationError as error:
        raise _described(error) from error


def _described(error: ValidationError) -> InvalidArgumentsError:
    """pydantic's complaint, a line for every fault. What the model wrote is not repeated: it may be long."""
    faults = []
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        where = ".".join(map(str, fault["loc"]))
        faults.append(f"{where}: {fault['msg']}" if where else fault["msg"])
    return InvalidArgumentsError(faults)


def check_against_schema(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    """Raises InvalidArgumentsError where the outermost level of the schema is not kept."""
    if faults := list(_faults(arguments, parameters)):
        raise InvalidArgumentsError(faults)


def _faults(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> Iterator[str]:
    properties = parameters.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    required = parameters.get("required")
    for name in required if isinstance(required, list) else ():
        if name not in arguments:
            yield f"{name}: is required"
    for name, value in arguments.items():
        if name not in known:
            if parameters.get("additionalProperties") is False:
                yield f"{name}: there is no such parameter"
            continue
        yield from _value_faults(name, value, known[name], parameters)


def _value_faults(name: str, value: object, schema: object, parameters: Mapping[str, Any]) -> Iterator[str]:
    allowed = kinds_of(property_schema(parameters, name), parameters)
    if not _kinds_of_value(value) & allowed:
        yield f"{name}: must be {' or '.join(sorted('number' if kind == 'fraction' else kind for kind in allowed))}"
        return
    if not isinstance(schema, Mapping):
        return
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        yield f"{name}: must be one of {', '.join(map(repr, choices))}"
    if "const" in schema and value != schema["const"]:
        yield f"{name}: must be {schema['const']!r}"


def _kinds_of_value(value: object) -> frozenset[str]:
    if isinstance(value, float) and value.is_integer():
        return frozenset({"integer", "fraction"})
    return _KINDS.get(type(value), frozenset())


def check_schema(parameters: Mapping[str, Any], path: str) -> None:
    """Raises MessageError where this is no JSON Schema, or not one of objects. Unknown keywords are no fault."""
    _check_any_schema(parameters, path)
    if "object" not in kinds_of(parameters, parameters):
        raise MessageError(f"{path}.type", "expected 'object', since arguments are one")


def _check_any_schema(schema: object, path: str) -> None:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise _unlike(path, "a JSON Schema", schema)
    schema = {key: value for key, value in schema.items() if value is not None}  # as good as not there
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if not isinstance(kind, str) or kind.lower() not in TYPE_NAMES:
            raise MessageError(f"{path}.type", f"expected the name of a JSON type, found {kind!r:.40}")
    required = schema.get("required", [])  # true: the property itself is, in an old draft
    if not isinstance(required, bool) and not (isinstance(required, list) and all(map(_is_text, required))):
        raise _unlike(f"{path}.required", "a list of names", required)
    if not isinstance(schema.get("enum", []), list):
        raise _unlike(f"{path}.enum", "a list of values", schema["enum"])
    for at, inner in _inner_schemas(schema, path):
        _check_any_schema(inner, at)


def _inner_schemas(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, object]]:
    for key in _MAPS_OF_SCHEMAS:
        found = schema.get(key, {})
        if not isinstance(found, Mapping):
            raise _unlike(f"{path}.{key}", "an object of JSON Schemas", found)
        yield from ((f"{path}.{key}.{name}", inner) for name, inner in found.items())
    for key in _LISTS_OF_SCHEMAS:
        found = schema.get(key, [])
        if not isinstance(found, list):
            raise _unlike(f"{path}.{key}", "a list of JSON Schemas", found)
        yield from ((f"{path}.{key}[{index}]", inner) for index, inner in enumerate(found))
    for key in _SCHEMAS:
        found = schema.get(key, True)
        yield from ((f"{path}.{key}", inner) for inner in (found if isinstance(found, list) else [found]))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _unlike(path: str, expected: str, found: object) -> MessageError:
    return MessageError(path, f"expected {expected}, found {type(found).__name__}")
