"""Tools as Kimi-K2.5 and later are told them: TypeScript types, written from JSON Schema.

Required parameters first, then the others, each in alphabetical order. Comments say what TypeScript's types do not:
descriptions, limits, defaults. Definitions (`$defs`) become interfaces before the type of their function.

Source: the tool declaration of the vendor's tokenizer code.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dialects.templates.fields import pyjson
from dialects.templates.template import Fields

__all__ = ["UnwritableSchemaError", "typescript_declaration"]

INDENT = "  "
LIMITS = {
    "string": ("maxLength", "minLength", "pattern"),
    "number": ("maximum", "minimum"),
    "integer": ("maximum", "minimum"),
    "array": ("maxItems", "minItems"),
}
MEMBERS = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "null": "null",
    "object": "{}",
    "array": "Array<any>",
}
"""How the types of a list of types are written."""


class UnwritableSchemaError(ValueError):
    """A schema that the declaration has no words for."""


def typescript_declaration(tools: Sequence[Fields]) -> str:
    """The functions among the tools, as one namespace. Raises `UnwritableSchemaError`."""
    functions = [tool["function"] for tool in tools if tool.get("type") == "function" and tool.get("function")]
    if not functions:
        raise UnwritableSchemaError("no functions")
    try:
        written = "\n".join(map(_function, functions))
    except (AttributeError, KeyError, TypeError) as error:  # what is no JSON Schema fails anywhere
        raise UnwritableSchemaError(f"a schema that is none: {error}") from error
    return f"# Tools\n\n## functions\nnamespace functions {{\n{written}\n}}\n"


def _function(function: Fields) -> str:
    schema = function.get("parameters") or {}
    interfaces = _Interfaces()
    parameters = interfaces.object(schema, "")
    lines = []
    if interfaces.refers_to_itself:
        fields = ",\n".join(interfaces.field(schema, key, INDENT) for key in schema.get("properties", {}))
        lines.append(f"interface parameters {{\n{fields}\n}}" if fields else "interface parameters {}")
        parameters = "parameters"
    for name, definition in list(interfaces.definitions.items()):
        lines += [_comment(definition["description"], "")] if definition.get("description") else []
        lines.append(f"interface {name} {interfaces.type(definition, '')}")
    if description := function.get("description"):
        lines.append(_comment(description, ""))
    lines.append(f"type {function.get('name', 'function')} = (_: {parameters}) => any;")
    return "\n".join(lines)


class _Interfaces:
    """Writes the types of one function, and collects the definitions that they refer to."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}
        self.refers_to_itself = False

    def type(self, schema: Any, indent: str) -> str:
        """A schema as a type; its comment is not part of it."""
        if isinstance(schema, bool):
            return "any" if schema else "null"
        if not isinstance(schema, Mapping):
            raise UnwritableSchemaError(f"a schema is an object, not {schema!r}")
        if "$ref" in schema:
            return self.reference(schema["$ref"])
        if "anyOf" in schema:
            return " | ".join(self.type(member, indent) for member in schema["anyOf"])
        if "enum" in schema:
            return " | ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in schema["enum"])
        if not schema:
            return "any"
        kind = schema.get("type")
        if isinstance(kind, list):
            return " | ".join(_member(name) for name in kind)
        if kind == "object":
            return self.object(schema, indent)
        if kind == "array":
            return self.array(schema, indent)
        if not isinstance(kind, str):
            raise UnwritableSchemaError("a schema without a type")
        return "number" if kind == "integer" else kind

    def object(self, schema: Mapping[str, Any], indent: str) -> str:
        self.definitions |= schema.get("$defs") or {}
        properties = schema.get("properties", {})
        required = set(schema.get("required", ()))
        inner = indent + INDENT
        ordered = sorted(properties, key=lambda key: (key not in required, key))
        fields = [self.field(schema, key, inner) for key in ordered]
        others = schema.get("additionalProperties")
        if others is not None:
            written = {True: "any", False: "never"}[others] if isinstance(others, bool) else self.type(others, inner)
            fields.append(f"{inner}[k: string]: {written}")
        return "{\n" + ",\n".join(fields) + f"\n{indent}}}" if fields else "{}"

    def field(self, schema: Mapping[str, Any], key: str, indent: str) -> str:
        field = schema["properties"][key]
        mark = "" if key in schema.get("required", ()) else "?"
        comments = "".join(f"{line}\n" for line in _comments(field, indent))
        return f"{comments}{indent}{key}{mark}: {self.type(field, indent)}"

    def array(self, schema: Mapping[str, Any], indent: str) -> str:
        items = schema.get("items")
        if not items:
            return "Array<any>"
        inner = indent + INDENT
        comments = "".join(f"{line}\n" for line in _comments(items, inner, with_default=False))
        if not comments:
            return f"Array<{self.type(items, indent)}>"
        return f"Array<\n{comments}{inner}{self.type(items, inner)}\n{indent}>"

    def reference(self, target: str) -> str:
        if target == "#":
            self.refers_to_itself = True
            return "parameters"
        name = target.removeprefix("#/$defs/")
        if name == target or name not in self.definitions:
            raise UnwritableSchemaError(f"a reference to {target!r}")
        return name


def _comments(schema: Any, indent: str, *, with_default: bool = True) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    if description := schema.get("description"):
        yield _comment(description, indent)
    kind = schema.get("type")
    is_plain = not any(key in schema for key in ("$ref", "anyOf", "enum"))
    limits = [key for key in LIMITS.get(kind, ()) if key in schema] if is_plain and isinstance(kind, str) else []
    if limits:
        yield f"{indent}// {', '.join(f'{key}: {schema[key]}' for key in limits)}"
    default = schema.get("default")
    if with_default and default is not None:
        written = repr(default) if isinstance(default, int | float) else pyjson(default)
        yield f"{indent}// Default: {written}"


def _comment(text: str, indent: str) -> str:
    return "\n".join(f"{indent}// {line}" if line else "" for line in text.split("\n"))


def _member(name: Any) -> str:
    if name not in MEMBERS:
        raise UnwritableSchemaError(f"the type {name!r} in a list of types")
    return MEMBERS[name]
