"""Where a string ends, and a call, in calls that are Python: by legal continuations.

`behind_string` is what may follow the quote that closes a string, by what is open around it. `StringEnd` is what may
end the whole call inside a string that nobody closed.

Patterns alone, all of them bounded, for they are matched again while the text arrives. `python_calls.py` says what is
open, and decides.
"""

import regex

from dialects.engine.python_literals import NAME

__all__ = [
    "BEHIND_KEYWORD",
    "BRACE",
    "CALL",
    "CLASS",
    "CODE_BEHIND_CALL",
    "DICT",
    "EXPRESSION",
    "KEY",
    "LIST",
    "NEXT_ARGUMENT",
    "OBJECT",
    "PAREN",
    "SET",
    "SPREAD",
    "SPREAD_KEY",
    "TUPLE",
    "StringEnd",
    "behind_string",
]

CALL, SPREAD, LIST, PAREN, TUPLE, OBJECT = "call", "spread", "list", "paren", "tuple", "object"
BRACE, SET, KEY, DICT, SPREAD_KEY = "brace", "set", "key", "dict", "spread key"
"""What may be open: a parenthesis or brace is called `PAREN` or `BRACE` until its first comma or colon says more."""

CLASS = rf"(?:{NAME}\.){{0,8}}+(?:dict|[A-Z]\w{{0,127}}+)"
"""The name of a class, whose call is an object."""
_SPACE = r"(?:\s|\\\r?\n){0,256}+"
_VALUE = rf"(?:{CLASS}\(|[rRbBuUfF]{{0,2}}[\"']|[\d\[({{+.-]|(?:True|False|None|true|false|null)(?=\W))"
_END_OF_CALL = r"\)(?:[ \t]{0,64}+[\r\n,;\])#`<]|\.[A-Za-z_])|[\])}]{1,3}\s{0,16}+`{3}"
_END_OF_INNER = rf"{_SPACE}(?:[,)\]}}:\#]|`{{3}})"


def _follower(*ways: str) -> "regex.Pattern[str]":
    """What may follow a string: another one, a comment, a fence, a great deal of white space, or one of these."""
    return regex.compile(rf"\s{{256}}|{_SPACE}(?:[\#\"']|(?<=\s)[rRbBuUfF]{{1,2}}[\"']|`{{3}}|{'|'.join(ways)})")


def _next_argument(*ways: str) -> str:
    return rf",{_SPACE}(?:[\#,]|\*\*|{_END_OF_CALL}|{'|'.join(ways)})"


_KEYWORD = rf"{NAME}\s{{0,64}}+="
_PAIR = rf"(?:{NAME}|[\"'][^\"'\\\n]{{1,64}}[\"'])\s{{0,64}}+[=:]"
BEHIND_KEYWORD = _follower(_END_OF_CALL, _next_argument(_KEYWORD))
_BEHIND_PAIR = _follower(_END_OF_CALL, _next_argument(_PAIR))
_BEHIND_POSITIONAL = _follower(_END_OF_CALL, _next_argument(_PAIR, _VALUE))
_BEHIND_ELEMENT = _follower(rf"[\])}}]{_END_OF_INNER}", rf",{_SPACE}(?:[\#,\])}}*]|{_VALUE})")
_BEHIND_MEMBER = _follower(rf"[\])}}]{_END_OF_INNER}", rf",{_SPACE}(?:[\#,\])}}*]|{_VALUE}|{NAME}\s{{0,64}}+:)")
_BEHIND_KEY = _follower(":")
_BEHIND_FIELD = _follower(rf"\){_END_OF_INNER}", rf",{_SPACE}(?:[\#,)]|{_KEYWORD})")
_BEHIND_FIRST = _follower(":", rf"[\])}}]{_END_OF_INNER}", rf",{_SPACE}(?:[\#,\])}}]|{_VALUE})")
_FOLLOWERS = {
    **dict.fromkeys((LIST, PAREN, TUPLE, SET), _BEHIND_ELEMENT),
    **dict.fromkeys((DICT, SPREAD), _BEHIND_MEMBER),
    **dict.fromkeys((KEY, SPREAD_KEY), _BEHIND_KEY),
    BRACE: _BEHIND_FIRST,
    OBJECT: _BEHIND_FIELD,
}


def _in_pairs(char: str) -> str:
    """The rest of a line on which quotes stand in pairs. They do not behind a quote that is part of a string."""
    between = rf"(?:[^{char}\\\n]|\\.){{0,256}}+"
    return rf"{between}(?:{char}{between}{char}{between}){{0,8}}+\n"


_CONDITION = r"\sif\s[^\n]{1,128}?\selse\s"
_NAME_THEN = rf"(?:await\s{{1,16}}+)?{NAME}(?:\.\w{{1,128}}+){{0,8}}+[(\[]"
_CODE = rf"\s{{0,16}}+(?:[\[.+*/%|<>-]|[=!]=|{_NAME_THEN}|(?:or|and)\s{{1,16}}+(?:{_NAME_THEN}|[\[{{\"'\d]|None))"
EXPRESSION = {
    char: regex.compile(
        r"\s{0,16}+(?:\+\s{0,16}+[\w\"']|%\s{0,16}+[\w(]|\.[a-z]{1,16}+\()"
        rf"|(?=\s{{0,16}}+(?:\*\s{{0,16}}+\d|\[[\d:-])|{_CONDITION}){_in_pairs(char)}"
    )
    for char in "\"'"
}
"""By quote, what makes of a string an expression, which nobody evaluates."""
CODE_BEHIND_CALL = {char: regex.compile(rf"(?={_SPACE}\)(?:{_CODE}|{_CONDITION})){_in_pairs(char)}") for char in "\"'"}
"""By quote, the call's end with code behind it that is no part of a string."""
NEXT_ARGUMENT = regex.compile(rf"\s{{1,64}}+({NAME})\s{{0,64}}+=\s{{0,64}}+[\"'\d\[({{TFN-]")
"""The next argument behind a string, where the comma between them was forgotten."""


def behind_string(kind: str, *, has_keywords: bool, has_pairs: bool) -> "regex.Pattern[str]":
    """What may follow a string in a container of this kind. What follows the value of an argument depends on how the
    others are written: as `NAME=`, as pairs with a colon, or without a name."""
    found = _FOLLOWERS.get(kind)
    if found is not None:
        return found
    if not has_keywords:
        return _BEHIND_POSITIONAL
    return _BEHIND_PAIR if has_pairs else BEHIND_KEYWORD


class StringEnd:
    """What may end a call inside a string that was never closed. All patterns match from a line break on, and are
    bounded.

    `next_call` may. A `closer` with nothing behind it on its line may, but not in a string in triple quotes, which has
    lines of its own. `swallowed` is found where another call begins within the string.
    """

    def __init__(self, *, closer: str, next_call: str, swallowed: str) -> None:
        other = rf"|(?P<next_call>{next_call})"
        self._pattern = regex.compile(rf"(?P<closer>{closer}[ \t]{{0,16}}+\r?[\n<]){other}")
        self._at_the_end = regex.compile(rf"(?P<closer>{closer}[ \t]{{0,16}}+\r?(?:[\n<]|\Z)){other}")
        self.swallowed = regex.compile(swallowed)

    def at(self, text: str, start: int, *, final: bool) -> str | None:
        """What stands behind the line break at `start`: `closer`, `next_call`; empty: something else; None: more
        input."""
        found = (self._at_the_end if final else self._pattern).match(text, start, partial=not final)
        if found is None:
            return ""
        return None if found.partial else found.lastgroup or ""
