"""JSON text and what it means: numbers, strings, objects, and back.

Strict JSON, but for one thing: `decode_string` knows what a string's text plainly means where JSON does not allow it.
What is wrong around strings is not mended here, but in `lenient.py`.
"""

import json.decoder
import re
import sys
from collections.abc import Callable
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

__all__ = [
    "HEX",
    "HIGH_SURROGATE",
    "LOW_SURROGATE",
    "MAX_DEPTH",
    "NUMBER",
    "REGULAR_ESCAPE",
    "SURROGATE",
    "Decoded",
    "Json",
    "decode_string",
    "dump",
    "load",
    "scanstring",
    "too_many_digits",
]

Json: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool | None

MAX_DEPTH = 200
"""How deep arguments may nest; deeper ones are malformed."""

NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(\.\d++)?([eE][+-]?\d++)?", re.ASCII)
"""A JSON number; an integer where neither group took part."""

SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""A character that no text may hold, as it cannot be encoded."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def load(text: str, *, strict: bool = True) -> tuple[dict[str, Any], bool]:
    """The value of an object's JSON text, and whether any object in it has a key twice (the last one wins; at the top
    level the first)."""
    duplicates: list[dict[str, Any]] = []
    last: list[list[tuple[str, Any]]] = [[]]

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) != len(pairs):
            duplicates.append(built)
            last[0] = pairs
        return built

    value = json.loads(text, object_pairs_hook=build, strict=strict, parse_constant=lambda _: None)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    if duplicates and duplicates[-1] is value:
        value = dict(reversed(last[0]))
        value = dict(reversed(list(value.items())))
    return value, bool(duplicates)


def dump(value: Json) -> str:
    """Compact JSON text; NaN and infinities are not JSON and become null."""
    try:
        return _encode(value)
    except ValueError:
        return _encode(json.loads(json.dumps(value), parse_constant=lambda _: None))


def too_many_digits(number: str) -> bool:
    """Whether Python refuses to read an integer of so many digits."""
    limit = sys.get_int_max_str_digits()
    return bool(limit) and len(number) - number.startswith("-") > limit


# Strings.

scanstring: Callable[[str, int], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]
"""Decodes the JSON string whose first character stands at an index; the standard library's own, in C."""

HEX = "[0-9a-fA-F]"
LOW_SURROGATE = rf"\\u[dD][c-fC-F]{HEX}{{2}}"
HIGH_SURROGATE = rf"\\u[dD][89abAB]{HEX}{{2}}"
REGULAR_ESCAPE = rf'\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F]){HEX}{{4}})|{HIGH_SURROGATE}{LOW_SURROGATE}'
_LONE_SURROGATE = re.compile(
    rf"[\ud800-\udfff]|{HIGH_SURROGATE}(?!{LOW_SURROGATE})|(?<!\\u[dD][89abAB]{HEX}{HEX}){LOW_SURROGATE}"
)
_INVALID_ESCAPE = re.compile(rf'\\(?!["/bfnrt]|u{HEX}{{4}})')
_FAULTS = {
    "lone-surrogate": _LONE_SURROGATE,
    "invalid-escape": _INVALID_ESCAPE,
    "unescaped-quote": re.compile(r'(?<!\\)"'),
    "control-character": re.compile(r"[\x00-\x1f]"),
}
"""What JSON does not allow in a string in which no backslash is escaped."""
_CONTROLS = {code: json.dumps(chr(code))[1:-1] for code in range(0x20)}


class Decoded(NamedTuple):
    """What a string means, the same as JSON (without its quotes), and what it needed for it."""

    value: str
    text: str
    repairs: tuple[str, ...]


def decode_string(body: str) -> Decoded:
    """The meaning of what stands between a string's quotes; whatever JSON does not allow there is literal.

    Each kind of fault is mended in one pass over the text, and named in the order in which the kinds first stand there.
    """
    try:
        value, end = scanstring(body + '"', 0)
        if end > len(body) and not SURROGATE.search(value):
            return Decoded(value, body, ())
    except ValueError:
        pass
    escaped_backslash, escaped_quote = _two_characters_not_in(body)
    text = body.replace(r"\\", escaped_backslash)
    may_hold_surrogates = r"\ud" in text or r"\uD" in text or not text.isascii()
    places = [
        (found.start(), name)
        for name, fault in _FAULTS.items()
        if (may_hold_surrogates or fault is not _LONE_SURROGATE) and (found := fault.search(text))
    ]
    names = tuple(name for _, name in sorted(places))
    if "lone-surrogate" in names:
        text = _LONE_SURROGATE.sub("\ufffd", text)
    if "invalid-escape" in names:
        text = _INVALID_ESCAPE.sub(escaped_backslash, text.replace(r"\'", "'"))
    if "unescaped-quote" in names:
        text = text.replace(r"\"", escaped_quote).replace('"', r"\"").replace(escaped_quote, r"\"")
    if "control-character" in names:
        text = text.translate(_CONTROLS)
    text = text.replace(escaped_backslash, r"\\")
    return Decoded(scanstring(text + '"', 0)[0], text, names)


def _two_characters_not_in(text: str) -> tuple[str, str]:
    """Stand-ins for what must be told from its like while that is replaced."""
    absent = (chr(code) for code in chain(range(0x7F, 0xD800), range(0xE000, 0x110000)) if chr(code) not in text)
    return next(absent), next(absent)
