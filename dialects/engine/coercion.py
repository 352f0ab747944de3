"""Values that a dialect writes as plain text, typed by the tool's JSON Schema.

Where the schema allows only strings (`is_text_only`), the text is the value, character by character, so it can stream
as it arrives. With any other schema it is read as JSON where it parses to a type that the schema allows, else kept as
text. Without a schema it is read as JSON where it is JSON: an object, an array, a number, true, false, null or one
quoted string. White space around JSON is layout; that of a text is the text's own.

`coerce` reads, `write_value` is its mirror (`argument_texts` for a whole call): whatever is valid under its schema
comes back as it was. So a string is written as JSON, quotes and all, wherever the schema allows anything else beside
strings.

The JSON text of a value is the model's own (`12e3`, `3.0`, `12345678901234567890123`). `3.0` is an integer, as JSON
Schema has it, and stays `3.0`; `3.5` is none. What a schema excludes outright but plainly means is read, and named:
`"5"` in quotes for a number, Python's literals and malformed objects or arrays for what their schemas want.

A schema is the tool author's, and may hold anything: what is not understood says nothing, and nothing raises.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from dialects.engine.json_text import MAX_DEPTH, NUMBER, SURROGATE, Json, dump, too_many_digits
from dialects.engine.rendering import compact_json
from dialects.engine.repair import repair
from dialects.engine.schema import ANY, Kind, kinds_of, property_schema
from dialects.messages import Tool, ToolCall

__all__ = [
    "NO_TEXT",
    "Coerced",
    "Opening",
    "argument_texts",
    "coerce",
    "coerce_python",
    "declared_json",
    "is_text_only",
    "plain_text",
    "write_value",
]

NO_TEXT: Final = ANY - {"string"}
"""The kinds of which a value is that must be read as JSON: it cannot be text."""

_SPACE = " \t\n\r"
_PYTHON: dict[str, tuple[Json, str, Kind]] = {
    "True": (True, "true", "boolean"),
    "False": (False, "false", "boolean"),
    "None": (None, "null", "null"),
}
_KINDS: dict[type, Kind] = {bool: "boolean", int: "integer", str: "string", dict: "object", list: "array"}
_CONTAINERS: dict[str, Kind] = {"{": "object", "[": "array"}

_MAY_HOLD_SURROGATES = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")
_ESCAPE_OR_SURROGATE = re.compile(
    r"(\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u(?![dD][89a-fA-F])|[^u]))"
    r"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|[\ud800-\udfff]",
    re.DOTALL,
)
_STRING_OR_NUMBER = re.compile(r'"(?:[^"\\]++|\\.)*+"|-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?', re.DOTALL)
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


class Coerced(NamedTuple):
    """A value, its JSON text, and the tolerances it needed."""

    value: Json
    json_text: str
    repairs: tuple[str, ...] = ()


def is_text_only(schema: object, root: object) -> bool:
    """Whether a schema allows only strings. `root` is the schema that its local references point into."""
    return kinds_of(schema, root) == {"string"}


def coerce_python(text: str, schema: object, root: object) -> Coerced:
    """The same as `coerce` where `True`, `False` and `None` are the dialect's own, and so no tolerance."""
    known = _PYTHON.get(text.strip(_SPACE))
    kinds = kinds_of(schema, root)
    return Coerced(*known[:2]) if known and kinds != ANY and known[2] in kinds else coerce(text, schema, root)


def coerce(text: str, schema: object, root: object) -> Coerced:
    """The value that a text means under a schema; see the module's description."""
    kinds = kinds_of(schema, root)
    if kinds == {"string"}:
        return plain_text(text)
    bare = text.strip(_SPACE)
    if _is_too_deep(bare):
        return _and(plain_text(text), "too-deep")
    found = _json(bare)
    if found is not None and _kind(found.value) in kinds:
        return found
    if kinds == ANY:
        return plain_text(text)
    return _as_long_number(bare, kinds) or _tolerated(bare, found, kinds) or plain_text(text)


def declared_json(text: str) -> Coerced:
    """The value of a text that is said to be JSON, whatever the schema says."""
    bare = text.strip(_SPACE)
    if _is_too_deep(bare):
        return _and(plain_text(text), "too-deep")
    found = _json(bare) or _as_long_number(bare, NO_TEXT) or _tolerated(bare, None, NO_TEXT)
    return found or _and(plain_text(text), "bare-value")


def plain_text(text: str) -> Coerced:
    """A text that is the value itself."""
    value = SURROGATE.sub("\ufffd", text)
    return Coerced(value, dump(value), () if value == text else ("lone-surrogate",))


def write_value(value: Json, schema: object, root: object) -> str:
    """The text of a value that is valid under its schema, such that `coerce` gives the value back."""
    return value if isinstance(value, str) and is_text_only(schema, root) else compact_json(value)


def argument_texts(
    call: ToolCall, tools: Iterable[Tool] | None, write: Callable[[Json, object, object], str] = write_value
) -> Iterator[tuple[str, str]]:
    """The name of each argument of a call, and its text under the schema of the tool."""
    schema = next((tool.parameters for tool in tools or () if tool.name == call.name), {})
    return ((key, write(value, property_schema(schema, key), schema)) for key, value in call.arguments.items())


# The beginning of a value.

_ANYTHING = re.compile(r".*", re.DOTALL)
_DIGITS = re.compile(r"[-+.0-9eE \t\n\r]*")
_LAYOUT = re.compile(r"[ \t\n\r]*")
_WORDS: dict[str, Kind] = {"true": "boolean", "false": "boolean", "null": "null"}
_OPENINGS: dict[str, tuple[frozenset[Kind], str, re.Pattern[str]]] = {
    "{": (frozenset({"object"}), "", _ANYTHING),
    "[": (frozenset({"array"}), "", _ANYTHING),
    '"': (frozenset({"string"}), "", _ANYTHING),
    **{char: (frozenset({"integer", "fraction"}), "", _DIGITS) for char in "-0123456789"},
    **{word[0]: (frozenset({kind}), word, _LAYOUT) for word, kind in _WORDS.items()},
}
"""By first character: the kinds of JSON that begin so, the word that must follow, and the pattern of the rest."""
_PYTHON_OPENINGS = {word[0]: (frozenset({kind}), word, _LAYOUT) for word, (_, _, kind) in _PYTHON.items()}


class Opening:
    """Follows the beginning of a value, until its type is known or only its end can tell."""

    def __init__(self, kinds: frozenset[Kind], element_mark: str = "") -> None:
        """`element_mark` is what stands before the first element in a value that consists of them."""
        self._kinds = kinds
        self._openings = _OPENINGS if kinds == ANY else {**_OPENINGS, **_PYTHON_OPENINGS}
        if element_mark:
            elements: frozenset[Kind] = frozenset(("object", "array"))
            self._openings = {**self._openings, element_mark[0]: (elements, "", _ANYTHING)}
        self._word = ""
        self._rest: re.Pattern[str] | None = None

    def read(self, text: str) -> bool | None:
        """True: with this piece the value can only be a text. False: only its end will tell. None: more input."""
        if self._kinds == {"string"}:
            return True
        if "string" not in self._kinds:
            return False
        if self._rest is None:
            text = text.lstrip(_SPACE)
            if not text:
                return None
            kinds, self._word, self._rest = self._openings.get(text[0], (frozenset(), "", _ANYTHING))
            if not kinds & self._kinds:
                return True
            if self._rest is _ANYTHING:
                return False
        size = min(len(self._word), len(text))
        if text[:size] != self._word[:size]:
            return True
        self._word = self._word[size:]
        return None if self._rest.fullmatch(text, size) else True


# Reading JSON.


def _json(text: str) -> Coerced | None:
    """The value of a JSON text."""
    repairs: list[str] = []
    if _MAY_HOLD_SURROGATES.search(text):
        mended = _ESCAPE_OR_SURROGATE.sub(lambda match: match[1] or "\ufffd", text)
        if mended != text:
            text = mended
            repairs.append("lone-surrogate")
    has_duplicates = False

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_duplicates
        built = dict(pairs)
        has_duplicates = has_duplicates or len(built) != len(pairs)
        return built

    try:
        value = json.loads(text, object_pairs_hook=build, parse_constant=_refuse)
    except json.JSONDecodeError:
        return None
    except ValueError:
        return _with_long_numbers(text)
    if has_duplicates:
        repairs.append("duplicate-key")
    return Coerced(value, text, tuple(repairs))


def _refuse(constant: str) -> None:
    raise json.JSONDecodeError(f"{constant} is not JSON", "", 0)


def _with_long_numbers(text: str) -> Coerced | None:
    """The same for a JSON text that holds integers too long for Python: each is kept as the string of its digits."""

    def quote(match: re.Match[str]) -> str:
        token = match.group()
        number = NUMBER.fullmatch(token)
        return f'"{token}"' if number and number.lastindex is None and too_many_digits(token) else token

    quoted = _STRING_OR_NUMBER.sub(quote, text)
    found = _json(quoted) if quoted != text else None
    return found and _and(found, "number-too-long")


def _is_too_deep(text: str) -> bool:
    """Whether JSON is nested too deep to be part of a call's arguments."""
    limit = MAX_DEPTH - 1
    if text[:1] not in _CONTAINERS or text.count("[") + text.count("{") <= limit:
        return False
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        token = match.group()
        if token in "[{":
            depth += 1
            if depth > limit:
                return True
        elif token in "]}":
            depth -= 1
    return False


def _kind(value: Json) -> Kind:
    if isinstance(value, float):
        return "integer" if value.is_integer() else "fraction"
    return "null" if value is None else _KINDS[type(value)]


# What is plainly meant.


def _as_long_number(text: str, kinds: frozenset[Kind]) -> Coerced | None:
    """An integer of more digits than Python reads."""
    number = NUMBER.fullmatch(text)
    if "integer" not in kinds or number is None or number.lastindex is not None or not too_many_digits(text):
        return None
    return Coerced(text, f'"{text}"', ("number-too-long",))


def _tolerated(text: str, found: Coerced | None, kinds: frozenset[Kind]) -> Coerced | None:
    """What is no JSON of an allowed type, but plainly meant as one."""
    if text in _PYTHON:
        value, json_text, kind = _PYTHON[text]
        return Coerced(value, json_text, ("python-literal",)) if kind in kinds else None
    if "string" in kinds:
        return None
    if found is not None and isinstance(found.value, str):
        return _unwrapped(found.value, kinds)
    return _mended(text, kinds) if _CONTAINERS.get(text[:1]) in kinds else None


def _unwrapped(text: str, kinds: frozenset[Kind]) -> Coerced | None:
    """A quoted string for a schema that allows none: what stands in it."""
    bare = text.strip(_SPACE)
    inner = None if _is_too_deep(bare) else _json(bare)
    if inner is None or _kind(inner.value) not in kinds:
        return None
    return _and(inner, "unwrapped-string")


def _mended(text: str, kinds: frozenset[Kind]) -> Coerced | None:
    """A malformed object or array."""
    fixed = repair(text if text[0] == "{" else f'{{"":{text}}}')
    value: Any = fixed.value if text[0] == "{" or not fixed.value else fixed.value.get("")
    if value is None or "unreadable-arguments" in fixed.repairs or _kind(value) not in kinds:
        return None
    return Coerced(value, dump(value), fixed.repairs)


def _and(coerced: Coerced, *repairs: str) -> Coerced:
    return coerced._replace(repairs=(*coerced.repairs, *repairs))
