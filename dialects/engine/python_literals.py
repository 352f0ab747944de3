"""The literals of Python as JSON: how far a string's text goes, its escapes decoded, and numbers and names.

Nothing is ever evaluated. `StringForm` knows one form of string (its quotes, raw, formatted); `decode_escape` reads one
escape that its runs stop at; `scalar` gives the JSON text of what is no string and no container. `write_keywords` is
the mirror: JSON values as the keyword arguments of a call.

Source: the lexical analysis chapter of the Python language reference.
"""

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from itertools import groupby
from keyword import iskeyword
from typing import Any, Final, NamedTuple

from dialects.engine.arguments import skipping
from dialects.engine.json_text import HEX, NUMBER, dump, too_many_digits

__all__ = ["NAME", "Escape", "Scalar", "StringForm", "decode_escape", "scalar", "string_form", "write_keywords"]

NAME: Final = r"[^\W\d]\w{0,127}+"
"""The source of a pattern for a keyword's name."""

_LINE: Final = r"\n(?![ \t]{0,8}(?:`{3}|`{0,2}\Z))"
"""A line break behind which no fence stands, nor what may become one."""
_CODE: Final = rf"u(?![dD][89a-fA-F]){HEX}{{4}}|x{HEX}{{2}}"
_ESCAPE = re.compile(rf"\\({_CODE}|.)", re.DOTALL)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"'}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_HEX = re.compile(rf"{HEX}*", re.ASCII)
_OCTAL = re.compile(r"[0-7]{1,3}")
_NAMED = re.compile(r"\{[A-Za-z0-9 -]{0,100}\}?")


class StringForm:
    """A form of string literals. `run` matches a stretch of its text that needs no second look: it stops before the
    closing quote, what may be the end of the call, and what the end of the text may have cut."""

    def __init__(self, quote: str, *, is_raw: bool, is_formatted: bool) -> None:
        self.quote = quote
        self.is_raw = is_raw
        self.is_formatted = is_formatted
        char, is_triple = quote[0], len(quote) == 3
        braces = "{}" if is_formatted else ""
        plain = rf"[^{char}\\\n{'' if is_triple else chr(13)}{braces}\ud800-\udfff]*+"
        inner = [r"\\[^\r\n\ud800-\udfff]" if is_raw else rf"\\(?:[^xuUN0-7\r\n\ud800-\udfff]|{_CODE})"]
        if is_triple:
            inner += [_LINE, f"{char}{{1,2}}(?=[^{char}])"]
        self.run = skipping(f"{plain}(?:(?:{'|'.join(inner)}){plain})*+")

    def decode(self, run: str) -> str:
        """The value of what `run` matched."""
        return run if self.is_raw or "\\" not in run else _ESCAPE.sub(_decoded, run)


@cache
def string_form(prefix: str, quote: str) -> StringForm:
    """The form of a string with this prefix, in lower case, and these quotes."""
    return StringForm(quote, is_raw="r" in prefix, is_formatted="f" in prefix)


def _decoded(escape: "re.Match[str]") -> str:
    body = escape[1]
    if len(body) > 1:
        return chr(int(body[1:], 16))
    return _SIMPLE.get(body, escape[0])


class Escape(NamedTuple):
    """An escape: how long it is, its value, and the tolerance that it needed."""

    length: int
    value: str
    repair: str = ""


_INVALID = Escape(1, "\\", "invalid-escape")


def decode_escape(text: str, start: int, *, final: bool) -> Escape | None:
    """The escape that the backslash at `start` begins; None while its end is not there."""
    kind = text[start + 1 : start + 2]
    if kind in _HEX_DIGITS:
        return _coded(text, start, _HEX_DIGITS[kind], final=final)
    if kind == "N":
        return _named(text, start, final=final)
    octal = _OCTAL.match(text, start + 1)
    if octal is not None:
        is_whole = final or octal.end() < len(text) or len(octal[0]) == 3
        return Escape(1 + len(octal[0]), chr(int(octal[0], 8))) if is_whole else None
    if kind == "\r" and not final and start + 2 == len(text):
        return None
    if kind in ("\r", "\n"):
        return Escape(3 if text.startswith("\r\n", start + 1) else 2, "")
    if "\ud800" <= kind <= "\udfff":
        return Escape(1, "\\")
    if kind:
        return Escape(2, _SIMPLE.get(kind, "\\" + kind))
    return _INVALID if final else None


def _coded(text: str, start: int, digits: int, *, final: bool) -> Escape | None:
    end = start + 2 + digits
    found = _HEX.match(text, start + 2, end)
    assert found is not None
    if len(found[0]) < digits:
        return None if found.end() == len(text) and not final else _INVALID
    code = int(found[0], 16)
    if code > 0x10FFFF:
        return _INVALID
    if not 0xD800 <= code < 0xE000:
        return Escape(2 + digits, chr(code))
    low = text[end : end + 6]
    if code < 0xDC00 and digits == 4:
        if re.fullmatch(rf"\\u[dD][c-fC-F]{HEX}{{2}}", low):
            return Escape(12, chr(0x10000 + ((code - 0xD800) << 10) + int(low[2:], 16) - 0xDC00))
        if not final and len(low) < 6 and re.fullmatch(rf"(?:\\(?:u(?:[dD](?:[c-fC-F]{HEX}?)?)?)?)?", low):
            return None
    return Escape(2 + digits, "\ufffd", "lone-surrogate")


def _named(text: str, start: int, *, final: bool) -> Escape | None:
    name = _NAMED.match(text, start + 2)
    if name is None:
        return None if start + 2 == len(text) and not final else _INVALID
    if not name[0].endswith("}"):
        return None if name.end() == len(text) and not final else _INVALID
    try:
        return Escape(2 + len(name[0]), unicodedata.lookup(name[0][1:-1]))
    except KeyError:
        return _INVALID


class Scalar(NamedTuple):
    """A value that is neither a string nor a container: its JSON text, and the tolerance that it needed. `text` is the
    value where that is a string all the same."""

    json_text: str
    repair: str = ""
    text: str | None = None


_WORDS = {
    "True": Scalar("true"),
    "False": Scalar("false"),
    "None": Scalar("null"),
    **{word: Scalar(word, "json-literal") for word in ("true", "false", "null")},
    "undefined": Scalar("null", "json-literal"),
    **{
        sign + word: Scalar("null", "not-a-number")
        for sign in ("", "-", "+")
        for word in ("nan", "inf", "NaN", "Infinity")
    },
}
_DIGITS: Final = r"\d(?:_?\d)*+"
_INTEGER = re.compile(
    rf"[+-]?(?:0[xX](?:_?{HEX})++|0[oO](?:_?[0-7])++|0[bB](?:_?[01])++|0(?:_?0)*+|[1-9](?:_?\d)*+)", re.ASCII
)
_FLOAT = re.compile(rf"([+-]?)((?:{_DIGITS})?)(?:\.((?:{_DIGITS})?))?([eE][+-]?{_DIGITS})?", re.ASCII)


def scalar(token: str) -> Scalar | None:
    """What a token without quotes and brackets means; None where that is no literal."""
    found = _WORDS.get(token)
    if found is not None:
        return found
    if NUMBER.fullmatch(token) and not ("." not in token and too_many_digits(token)):
        return Scalar(token)
    if _INTEGER.fullmatch(token):
        return _integer(token)
    if token.isascii() and token.isdigit():
        return Scalar(f'"{token}"', "bare-value", token)
    number = _FLOAT.fullmatch(token)
    if number is None or not (number[2] or number[3]):
        return None
    sign, whole, fraction, exponent = (part or "" for part in number.groups())
    text = f"{sign.removeprefix('+')}{whole.lstrip('0_') or '0'}.{fraction or '0'}{exponent}"
    return Scalar(text.replace("_", ""))


def _integer(token: str) -> Scalar:
    digits = token.replace("_", "").removeprefix("+")
    try:
        return Scalar(dump(int(digits, 0)))
    except ValueError:
        return Scalar(f'"{digits}"', "number-too-long", digits)


# Writing.

_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"})
_keyword = re.compile(NAME)


def write_keywords(arguments: Mapping[str, Any]) -> str:
    """Keyword arguments; those whose keys are no names in Python stand in dicts, `**{...}`."""
    written: list[str] = []
    for is_name, run in groupby(arguments.items(), key=lambda item: _is_name(item[0])):
        if is_name:
            written += [f"{key}={_literal(value)}" for key, value in run]
        else:
            written.append(f"**{_literal(dict(run))}")
    return ", ".join(written)


def _is_name(key: str) -> bool:
    return bool(_keyword.fullmatch(key)) and key.isidentifier() and not iskeyword(key)


def _literal(value: Any) -> str:
    match value:
        case str():
            return f'"{value.translate(_ESCAPED)}"'
        case dict():
            return f"{{{', '.join(f'{_literal(key)}: {_literal(inner)}' for key, inner in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(_literal, value))}]"
        case _:
            return repr(value)
