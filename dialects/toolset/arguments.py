"""Whether arguments are what a tool takes, and how that is said to the model.

pydantic judges the arguments of a tool that was made from types. For one that came with a JSON Schema, the outermost
level of the schema is checked here: what is required, what is not permitted, and the type, `enum` and `const` of each
argument. Deeper levels are the tool's own business.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from dialects.engine.schema import kinds_of, property_schema
from dialects.toolset.results import ToolError

__all__ = ["InvalidArgumentsError", "check_against_schema", "described"]

_MOST_FAULTS = 10
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


def described(error: ValidationError) -> InvalidArgumentsError:
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
