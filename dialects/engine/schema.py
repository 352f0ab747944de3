"""What a JSON Schema says about the type of a value, as far as plain text needs to know it.

`kinds_of` gives the kinds of JSON values that a schema allows, `property_schema` the schema of one of an object's
members. Understood are boolean schemas, `type` (a list, too), `enum`, `const`, `anyOf`, `oneOf`, `allOf`, local `$ref`s
(recursive ones as well) and OpenAPI's `nullable`. Everything else says nothing about the type, and so does what is
malformed, refers to nowhere or contradicts itself: then all kinds are allowed. Nothing raises.

Sources: JSON Schema drafts 7 and 2020-12; OpenAPI 3.0 for `nullable`.
"""

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import unquote

__all__ = ["ANY", "TYPE_NAMES", "Kind", "kinds_of", "member_schema", "property_schema"]

Kind: TypeAlias = Literal["string", "integer", "fraction", "boolean", "null", "object", "array"]
Kinds: TypeAlias = frozenset[Kind]

ANY: Final[Kinds] = frozenset({"string", "integer", "fraction", "boolean", "null", "object", "array"})
_NUMBER: Final[Kinds] = frozenset({"integer", "fraction"})

_TYPES: dict[str, Kinds] = {
    "string": frozenset({"string"}),
    "str": frozenset({"string"}),
    "integer": frozenset({"integer"}),
    "int": frozenset({"integer"}),
    "number": _NUMBER,
    "float": _NUMBER,
    "boolean": frozenset({"boolean"}),
    "bool": frozenset({"boolean"}),
    "null": frozenset({"null"}),
    "none": frozenset({"null"}),
    "object": frozenset({"object"}),
    "dict": frozenset({"object"}),
    "array": frozenset({"array"}),
    "list": frozenset({"array"}),
}
"""The names of types, whatever their case; beside those of JSON Schema the Python names that tool authors write."""
TYPE_NAMES: Final = frozenset(_TYPES)

_MAX_DEPTH = 64
_MAX_STEPS = 1000
"""How many schemas are looked at: inside and behind each other, and in all."""


def kinds_of(schema: object, root: object) -> Kinds:
    """The kinds of values that `schema` allows; `root` is the schema that its local references point into."""
    return _Reader(root).kinds(schema, 0) or ANY


def property_schema(parameters: object, key: str) -> object:
    """The schema of the member `key` of an object that `parameters` describes. Patterns for keys are not looked at."""
    return member_schema(parameters, parameters, key)


def member_schema(schema: object, root: object, key: str | None) -> object:
    """The schema of the member `key` of an object that `schema` describes; None: of an array's items."""
    return {"allOf": list(_Reader(root).members(schema, key))}


class _Reader:
    """Reads schemas that share a root."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._known: dict[int, Kinds | None] = {}
        self._steps = 0

    def kinds(self, schema: object, depth: int) -> Kinds | None:
        """The kinds that a schema allows; None if it says nothing. A schema inside itself adds nothing to a choice."""
        if schema is False:
            return frozenset()
        if not isinstance(schema, dict) or depth > _MAX_DEPTH:
            return None
        if id(schema) not in self._known:
            self._known[id(schema)] = frozenset()
            self._known[id(schema)] = self._read(schema, depth + 1)
        return self._known[id(schema)]

    def _read(self, schema: dict[str, Any], depth: int) -> Kinds | None:
        said = [_types(schema.get("type")), *_values(schema)]
        if "$ref" in schema:
            said.append(self.kinds(self._target(schema["$ref"]), depth))
        for key in ("anyOf", "oneOf"):
            said.append(_union(self.kinds(choice, depth) for choice in _list(schema.get(key))))
        said.extend(self.kinds(part, depth) for part in _list(schema.get("allOf")))
        kinds = [each for each in said if each is not None]
        if not kinds:
            return None
        allowed = reduce(frozenset.__and__, kinds)
        return allowed | {"null"} if schema.get("nullable") is True else allowed

    def members(self, schema: object, key: str | None, depth: int = 0) -> Iterator[object]:
        """All schemas that hold for the member `key` of an object under `schema`, or for an array's items."""
        self._steps += 1
        if not isinstance(schema, dict) or depth > _MAX_DEPTH or self._steps > _MAX_STEPS:
            return
        properties, others = schema.get("properties"), schema.get("additionalProperties")
        if key is None:
            properties, others = None, schema.get("items")
        if isinstance(properties, dict) and key in properties:
            yield properties[key]
        elif isinstance(others, dict) and not schema.get("patternProperties"):
            yield others
        if "$ref" in schema:
            yield from self.members(self._target(schema["$ref"]), key, depth + 1)
        for part in _list(schema.get("allOf")):
            yield from self.members(part, key, depth + 1)
        for choices in (_list(schema.get("anyOf")), _list(schema.get("oneOf"))):
            found = [list(self.members(choice, key, depth + 1)) for choice in choices]
            if any(found):
                yield {"anyOf": [{"allOf": each} for each in found if each]}

    def _target(self, reference: object) -> object:
        """What a local reference points to; True if there is nothing."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            return True
        place: Any = self._root
        for step in reference.split("/")[1:]:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(place, list):
                place = dict(zip(map(str, range(len(place))), place, strict=True))
            if not isinstance(place, dict) or name not in place:
                return True
            place = place[name]
        return place


def _types(names: object) -> Kinds | None:
    listed = names if isinstance(names, list) else [names]
    found = [_TYPES.get(name.lower()) for name in listed if isinstance(name, str)]
    known = [kinds for kinds in found if kinds is not None]
    return frozenset[Kind]().union(*known) if known and len(known) == len(listed) else None


def _values(schema: dict[str, Any]) -> Iterator[Kinds]:
    """What `enum` and `const` say."""
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        yield frozenset[Kind]().union(*map(_kinds_of_value, schema["enum"]))
    if "const" in schema:
        yield _kinds_of_value(schema["const"])


def _kinds_of_value(value: object) -> Kinds:
    if isinstance(value, bool):
        return _TYPES["boolean"]
    if isinstance(value, int | float):
        return _TYPES["integer"] if value == value // 1 else _TYPES["number"]
    named = {str: "string", dict: "object", list: "array", tuple: "array", type(None): "null"}.get(type(value))
    return _TYPES[named] if named else ANY


def _union(choices: Iterable[Kinds | None]) -> Kinds | None:
    """What a choice allows. One that says nothing allows all; a choice of nothing is none."""
    listed = list(choices)
    if not listed or None in listed:
        return None
    return frozenset[Kind]().union(*filter(None, listed))


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
