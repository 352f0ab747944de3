"""Reads the object that a text plainly means, in one pass, whatever it takes.

Single quotes, bare keys, Python's literals, invalid escapes, raw control characters, quotes that nobody escaped,
missing commas, closers too many or too few, a code fence or prose around the object. A quote in a string closes it only
if what follows could follow a string there; else it is one of the string's characters.

Linear, and bounded in depth and in the number of faults. When it is asked, `repair.py` says.
"""

import json
import re
from typing import Any, NamedTuple

from dialects.engine.json_text import (
    HEX,
    MAX_DEPTH,
    NUMBER,
    REGULAR_ESCAPE,
    SURROGATE,
    Json,
    decode_string,
    too_many_digits,
)

__all__ = ["HopelessError", "LenientReader", "Repaired", "TooDeepError"]

_MOST_FAULTS = 20_000
"""After so many missing or stray pieces a text is no JSON, and reading it leads nowhere."""


class Repaired(NamedTuple):
    """`value` is None where the nesting is too deep. `complete` says that the object was closed in the text."""

    value: dict[str, Any] | None
    repairs: tuple[str, ...]
    complete: bool


class TooDeepError(Exception):
    """The arguments nest too deep."""


class HopelessError(Exception):
    """The text is no JSON."""


_LITERALS: dict[str, tuple[Json, str | None]] = {
    "true": (True, None),
    "false": (False, None),
    "null": (None, None),
    "True": (True, "python-literal"),
    "False": (False, "python-literal"),
    "None": (None, "python-literal"),
    "NaN": (None, "not-a-number"),
    "Infinity": (None, "not-a-number"),
    "-Infinity": (None, "not-a-number"),
    "undefined": (None, "python-literal"),
}
_SCALAR = re.compile(r"""-?\w[\w.+-]*+(?=\s*+(?:[,\]}"']|\Z))|[^,\]}\n]*+""")
_BARE_KEY = re.compile(r"[\w$.-]++")
_BARE_MEMBERS = re.compile(r"""(?:"[^"\\\n]{1,200}+"|'[^'\\\n]{1,200}+'|[A-Za-z_]\w{0,63}+)\s*+:""")

_LAYOUT = r"(?:\s|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+"
_SEPARATOR = r"(?:[\s,;]|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+"
_skip_layout = re.compile(_LAYOUT).match
_KEY = r"""(?:"[^"\\\n]{0,200}+"\s*+[:=]|(?:'[^'\\\n]{0,200}+'|[A-Za-z_$][\w$-]{0,63}+)\s*+:)"""
_MAY_CLOSE = r"""(?=\s*+(?:[,;/"'}\]]|\Z))"""
"""A cheap look at what follows a quote, before the exact one."""
_AFTER_MEMBER = (
    rf"(?={_LAYOUT}(?:[,;]{_SEPARATOR}{_KEY}"
    r"""|"[^"\\\n]{0,200}+"\s*+[:=]|(?<=\s)"[A-Za-z_]\w{0,63}+"\s*+\}"""
    r"""|,?\s*+[}\]]\s*+(?:[,}\]{<`]|\Z)|,?\s*+\Z))"""
)
"""What can follow the value of a member: another member, its comma perhaps forgotten, or a closer, or the end."""
_AFTER_ELEMENT = (
    r"""(?=\s*+(?:,\s*+(?:["'\[{\]\d-]|true|false|null|True|False|None)|(?<=\s)"[^"\\\n]{0,200}+"\s*+[,\]"]|\]|\Z))"""
)


def _string_bodies(quote: str) -> dict[str, re.Pattern[str]]:
    def body(closing: str) -> re.Pattern[str]:
        return re.compile(
            rf"(?:[^{quote}\\]++|\\.|(?:{quote}(?={quote * 3}))++|{quote}(?!{_MAY_CLOSE}{closing}))*+", re.DOTALL
        )

    return {
        "key": re.compile(rf"(?:[^{quote}\\]++|\\.)*+", re.DOTALL),
        "member": body(_AFTER_MEMBER),
        "element": body(_AFTER_ELEMENT),
    }


_BODIES = {'"': _string_bodies('"'), "'": _string_bodies("'")}


class LenientReader:
    """Reads the first object in a text, whatever it takes, in one pass."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.i = 0
        self.repairs: dict[str, None] = {}
        self.stack: list[dict[str, Any] | list[Any]] = []
        self.key: list[str] = []
        self.after_value = False
        self.faults = 0

    def read(self) -> Repaired | None:
        """The object with what it needed; None if there is none."""
        start = self.text.find("{")
        if _BARE_MEMBERS.match(self.text) and not self.text.startswith("{"):
            self._note("missing-opener")
            start = 0
        elif start < 0:
            return None
        else:
            self._note_surroundings(self.text[:start], "surrounding-text")
            self.i = start + 1
        root: dict[str, Any] = {}
        self.stack = [root]
        complete = self._read_members()
        if complete:
            self._note_surroundings(self.text[self.i :], "trailing-text")
        else:
            self._fault("missing-closer")
        if not root and not complete:
            return None
        return Repaired(root, tuple(self.repairs), complete)

    def _note(self, name: str) -> None:
        self.repairs[name] = None

    def _fault(self, name: str) -> None:
        self.repairs[name] = None
        self.faults += 1
        if self.faults > _MOST_FAULTS:
            raise HopelessError

    def _note_surroundings(self, text: str, name: str) -> None:
        bare = text.strip()
        if bare:
            self._note("code-fence" if "```" in bare else "extra-closer" if not bare.strip("}] \n") else name)

    def _char(self) -> str:
        layout = _skip_layout(self.text, self.i)
        assert layout is not None
        if "/" in layout.group():
            self._note("code-comment")
        self.i = layout.end()
        return self.text[self.i : self.i + 1]

    def _read_members(self) -> bool:
        stack = self.stack
        while stack:
            char = self._char()
            if not char:
                return False
            if char in "}]":
                self.i += 1
                self._close("{" if char == "}" else "[")
                self.after_value = True
                continue
            if char in ",;":
                self.i += 1
                if char == ";":
                    self._fault("stray-character")
                if self._char() in ("}", "]"):
                    self._note("trailing-comma")
                elif not self.after_value:
                    self._fault("extra-comma")
                self.after_value = False
                continue
            if self.after_value:
                self._fault("missing-comma")
            self.after_value = True
            if isinstance(stack[-1], list):
                self._put(self._value(char, "element"))
            else:
                self._member(char)
        return True

    def _close(self, opener: str) -> None:
        kind: type = dict if opener == "{" else list
        if isinstance(self.stack[-1], kind):
            self.stack.pop()
        elif any(isinstance(container, kind) for container in self.stack):
            self._fault("missing-closer")
            while not isinstance(self.stack.pop(), kind):
                pass
        else:
            self._fault("extra-closer")

    def _member(self, char: str) -> None:
        if char in "\"'":
            key = self._string(char, "key")
        else:
            bare = _BARE_KEY.match(self.text, self.i)
            if bare is None:
                self.i += 1
                self._fault("stray-character")
                return
            self.i = bare.end()
            key = bare.group()
            self._fault("bare-key")
        if self._char() not in (":", "="):
            self._fault("missing-value")
            return
        if self.text[self.i] == "=":
            self._fault("stray-character")
        self.i += 1
        char = self._char()
        if not char or char in ",}]":
            self._fault("missing-value")
            return
        self.key.append(key)
        self._put(self._value(char, "member"))

    def _put(self, value: Json) -> None:
        """Add a value to the innermost container, and go into it if it is one."""
        inside = self.stack[-1]
        if isinstance(inside, list):
            inside.append(value)
        else:
            key = self.key.pop()
            if key in inside:
                self._note("duplicate-key")
            if len(self.stack) > 1 or key not in inside:
                inside[key] = value
        if isinstance(value, (dict, list)):
            if len(self.stack) >= MAX_DEPTH:
                raise TooDeepError
            self.stack.append(value)

    def _value(self, char: str, place: str) -> Json:
        if char in "{[":
            self.i += 1
            self.after_value = False
            return {} if char == "{" else []
        if char in "\"'":
            return self._string(char, place)
        found = _SCALAR.match(self.text, self.i)
        assert found is not None
        self.i = found.end()
        if not found.group():
            self.i += 1
        return self._scalar(found.group().strip())

    def _scalar(self, raw: str) -> Json:
        if raw in _LITERALS:
            value, name = _LITERALS[raw]
            if name:
                self._note(name)
            return value
        number = NUMBER.fullmatch(raw)
        if number is None:
            self._fault("bare-value")
            return SURROGATE.sub("\ufffd", raw)
        if number.lastindex is None and too_many_digits(raw):
            self._note("number-too-long")
            return raw
        value = json.loads(raw)
        assert isinstance(value, (int, float))
        return value

    def _string(self, quote: str, place: str) -> str:
        body = _BODIES[quote][place].match(self.text, self.i + 1)
        assert body is not None
        self.i = body.end() + 1
        if quote == "'":
            self._note("single-quotes")
        decoded = decode_string(body.group() if quote == '"' else _without_python_escapes(body.group()))
        for name in decoded.repairs:
            if not (quote == "'" and name in ("unescaped-quote", "invalid-escape")):
                self._note(name)
        return decoded.value


_PYTHON_ESCAPE = re.compile(rf"(?:{REGULAR_ESCAPE})++|\\x({HEX}{{2}})|\\U00(0{HEX}{{5}}|10{HEX}{{4}})")


def _without_python_escapes(body: str) -> str:
    def replace(match: re.Match[str]) -> str:
        digits = match[1] or match[2]
        return json.dumps(chr(int(digits, 16)))[1:-1] if digits else match.group()

    return _PYTHON_ESCAPE.sub(replace, body)
