"""Malformed JSON to the value that was plainly meant.

`repair` climbs a ladder from cheap to dear: strict JSON; the same with raw control characters allowed in strings; a
JSON string that holds the object; a lenient reader of our own, linear and bounded in depth; and, for a short text from
which that reader got nothing, the `json_repair` package (it is quadratic on some inputs, hence short).

The lenient reader takes single quotes, bare keys, Python's literals, invalid escapes, raw control characters, quotes
that nobody escaped, missing commas, closers too many or too few, a code fence or prose around the object. A quote in a
string closes it only if what follows could follow a string there; else it is one of the string's characters.

`continuation` is the other half: part of the arguments may be out already, and is never taken back.
"""

import json.decoder
import logging
import re
import sys
from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

__all__ = [
    "HIGH_SURROGATE",
    "LOW_SURROGATE",
    "MAX_DEPTH",
    "NUMBER",
    "REGULAR_ESCAPE",
    "Repaired",
    "continuation",
    "decode_string",
    "dump",
    "load",
    "repair",
    "scanstring",
    "too_many_digits",
]

Json: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool | None

MAX_DEPTH = 200
"""How deep arguments may nest; deeper ones are malformed."""

NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(\.\d++)?([eE][+-]?\d++)?", re.ASCII)
"""A JSON number; an integer where neither group took part."""

_MOST_FAULTS = 20_000
"""After so many missing or stray pieces a text is no JSON, and reading it leads nowhere."""

_SHORT = 2000
"""Up to how many characters `json_repair` may be asked."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_DECODER = json.JSONDecoder(strict=False)
_log = logging.getLogger("dialects")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Repaired(NamedTuple):
    """`value` is None where the nesting is too deep. `complete` says that the object was closed in the text."""

    value: dict[str, Any] | None
    repairs: tuple[str, ...]
    complete: bool


def repair(text: str) -> Repaired:
    """The object that `text` plainly means; `{}` with the repair `unreadable-arguments` where it means none."""
    bare = text.strip()
    if bare in ("", "null", "None", '""', "''"):
        return Repaired({}, ("empty-arguments",), bool(bare))
    for read in (_strict, _with_control_characters, _unwrapped, _first_object, _lenient, _repaired_elsewhere):
        try:
            found = read(bare)
        except _TooDeepError:
            return _TOO_DEEP
        if found is not None:
            return found if _is_shallow(found.value) else _TOO_DEEP
    _log.warning("arguments of %d characters could not be read", len(text))
    return Repaired({}, ("unreadable-arguments",), complete=False)


_TOO_DEEP = Repaired(None, (), complete=False)


class _TooDeepError(Exception):
    pass


class _HopelessError(Exception):
    pass


def _is_shallow(value: object) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for container in level
            if isinstance(container, (dict, list))
            for inner in (container.values() if isinstance(container, dict) else container)
        ]
        if not level:
            return True
    return False


def _strict(text: str) -> Repaired | None:
    return _loaded(text, (), strict=True)


def _with_control_characters(text: str) -> Repaired | None:
    return _loaded(text, ("control-character",), strict=False)


def _loaded(text: str, repairs: tuple[str, ...], *, strict: bool) -> Repaired | None:
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        value, has_duplicates = load(text, strict=strict)
    except (ValueError, RecursionError):
        return None
    if _SURROGATE.search(dump(value)):
        return None
    return Repaired(value, (*repairs, *(["duplicate-key"] if has_duplicates else [])), complete=True)


def _unwrapped(text: str) -> Repaired | None:
    """A JSON string, or a list of one, that holds the object."""
    if text[0] not in '"[':
        return None
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list) and value:
        value, name = value[0], "unwrapped-list" if len(value) == 1 else "several-objects"
    else:
        name = "unwrapped-string"
    if isinstance(value, dict):
        value = json.dumps(value)
    if not isinstance(value, str) or value[:1] == '"':
        return None
    inner = repair(value)
    if "unreadable-arguments" in inner.repairs:
        return None
    return Repaired(inner.value, (name, *inner.repairs), inner.complete)


def _first_object(text: str) -> Repaired | None:
    """A good object with something behind it, which is not the rest of a string that a stray quote ended."""
    if not text.startswith("{"):
        return None
    try:
        _, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    rest = text[end:].strip()
    if '"' in rest and rest.endswith("}") and not rest.startswith("{"):
        return None
    found = _strict(text[:end]) or _with_control_characters(text[:end])
    if not rest.strip("}] \n"):
        name = "extra-closer"
    elif rest == "```":
        name = "code-fence"
    else:
        name = "several-objects" if rest.lstrip(", \n").startswith("{") else "trailing-text"
    return found and Repaired(found.value, (*found.repairs, name), complete=True)


def _lenient(text: str) -> Repaired | None:
    try:
        return LenientReader(text).read()
    except _HopelessError:
        return None


def _repaired_elsewhere(text: str) -> Repaired | None:
    if len(text) > _SHORT:
        return None
    import json_repair  # rarely needed, and takes its time

    try:
        value = json_repair.loads(text)
        if not isinstance(value, dict) or not value:
            return None
        value = json.loads(_SURROGATE.sub("\ufffd", dump(value)))
    except (ValueError, RecursionError):
        return None
    return Repaired(value, ("json-repair",), complete=False)


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
_PYTHON_ESCAPE = re.compile(rf"(?:{REGULAR_ESCAPE})++|\\x({HEX}{{2}})|\\U00(0{HEX}{{5}}|10{HEX}{{4}})")
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
        if end > len(body) and not _SURROGATE.search(value):
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


def _without_python_escapes(body: str) -> str:
    def replace(match: re.Match[str]) -> str:
        digits = match[1] or match[2]
        return json.dumps(chr(int(digits, 16)))[1:-1] if digits else match.group()

    return _PYTHON_ESCAPE.sub(replace, body)


# The lenient reader.

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
            raise _HopelessError

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
                raise _TooDeepError
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
            return _SURROGATE.sub("\ufffd", raw)
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


# What is out is never taken back.

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[{}\[\],:]|[^\s{}\[\],:"]++')
_MISSING: Any = object()


class _Frame:
    """An open container of what is out, beside what the repaired value has in its place."""

    def __init__(self, opener: str, meant: Any) -> None:
        self.is_object = opener == "{"
        self.meant: Any = meant if isinstance(meant, dict if self.is_object else list) else _MISSING
        self.keys: set[str] = set()
        self.count = 0
        self.key: str | None = None
        self.wants_value = False

    def meant_next(self) -> Any:
        """What the repaired value has where the next value will stand."""
        if self.meant is _MISSING:
            return _MISSING
        if self.is_object:
            return self.meant.get(self.key, _MISSING)
        return self.meant[self.count] if self.count < len(self.meant) else _MISSING

    def value_done(self) -> None:
        self.count += 1
        self.key = None
        self.wants_value = False

    def rest(self) -> str:
        """The members that are still missing, and the closer."""
        missing: list[str] = []
        if self.meant is not _MISSING and self.is_object:
            missing = [f"{dump(k)}:{dump(v)}" for k, v in self.meant.items() if k not in self.keys]
        elif self.meant is not _MISSING:
            missing = [dump(v) for v in self.meant[self.count :]]
        separator = "," if self.count and missing else ""
        return separator + ",".join(missing) + ("}" if self.is_object else "]")


def continuation(written: str, value: dict[str, Any]) -> str:
    """The JSON text that completes `written`, the beginning of an object's text, to the whole of `value` as far as
    that agrees with what is written already."""
    if not written:
        return dump(value)
    frames: list[_Frame] = []
    tail = ""
    for match in _TOKEN.finditer(written):
        token = match.group()
        frame = frames[-1] if frames else None
        if token in ("{", "["):
            frames.append(_Frame(token, frame.meant_next() if frame else value))
        elif token in ("}", "]"):
            frames.pop()
            if frames:
                frames[-1].value_done()
        elif frame is None:
            break
        elif token == ":":
            frame.wants_value = True
        elif token == ",":
            frame.wants_value = not frame.is_object
        elif frame.is_object and not frame.wants_value:
            frame.key = json.loads(token)
            frame.keys.add(frame.key)
        elif token[0] == '"' and not _is_closed(token):
            tail = _rest_of_string(token, frame.meant_next())
            frame.value_done()
        else:
            frame.value_done()
    if frames and frames[-1].wants_value:
        meant = frames[-1].meant_next()
        tail = dump(None if meant is _MISSING else meant)
        frames[-1].value_done()
    return tail + "".join(frame.rest() for frame in _closing(frames))


def _closing(frames: list[_Frame]) -> list[_Frame]:
    """The open containers from the inside out, each but the innermost with one value more: the one that it holds."""
    for frame in frames[:-1]:
        frame.value_done()
    return frames[::-1]


def _is_closed(token: str) -> bool:
    backslashes = len(token) - 1 - len(token[:-1].rstrip("\\"))
    return len(token) > 1 and token[-1] == '"' and backslashes % 2 == 0


def _rest_of_string(begun: str, meant: Any) -> str:
    so_far = json.loads(begun + '"')
    if isinstance(meant, str) and meant.startswith(so_far):
        return dump(meant[len(so_far) :])[1:-1] + '"'
    return '"'
