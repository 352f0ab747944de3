"""The grammar of calls that are Python: `NAME(KEY=LITERAL, ...)`, read while it streams and never evaluated.

A `PythonCallReader` follows one call from behind its `(` to its `)`, and writes the arguments as one JSON object on the
way. Its states are methods, in the order of the grammar:

    argument -> value -> string -> quote -> after_string | scalar | nested element -> after_value -> ...

What leaves is never taken back, so what may still change is held: a scalar until it is complete, a key until the `=` or
`:` behind it, a closing quote until what follows shows that the string ends there, the first thing in `(` or `{` until
a comma or colon shows whether a tuple, a set or a dict stands there. Faults whose repair is certain are mended on the
way, each under a name. At any other the reader is `BROKEN`.

A string may hold any text. What could end the call although the string was never closed (`StringEnd`) makes the reader
a `CANDIDATE`: a copy of it (`ahead`) says whether the string is closed after all.
"""

import copy
import json
from collections.abc import Callable, Collection
from json.encoder import encode_basestring
from typing import Any, TypeAlias

import regex

from dialects.engine.arguments import BROKEN, CANDIDATE, DONE, GOING, TOO_DEEP, Arguments, skipping
from dialects.engine.python_literals import NAME, decode_escape, scalar, string_form
from dialects.engine.repair import MAX_DEPTH, dump, load
from dialects.engine.schema import kinds_of, property_schema
from dialects.engine.tape import Pieces, Tape
from dialects.events import Event, ToolArgDelta

__all__ = ["Layout", "PythonCallReader", "StringEnd"]

State: TypeAlias = Callable[[], "State | None"]

CALL, SPREAD, LIST, PAREN, TUPLE, OBJECT = "call", "spread", "list", "paren", "tuple", "object"
BRACE, SET, KEY, DICT, SPREAD_KEY = "brace", "set", "key", "dict", "spread key"
"""What may be open: a parenthesis or brace is called `PAREN` or `BRACE` until its first comma or colon says more."""

_CLOSER = {
    **dict.fromkeys((CALL, PAREN, TUPLE, OBJECT), ")"),
    **dict.fromkeys((SPREAD, SPREAD_KEY, BRACE, SET, KEY, DICT), "}"),
    LIST: "]",
}
_OPENED = {"[": LIST, "(": PAREN, "{": BRACE}
_DIRECT = {CALL, SPREAD, PAREN}

_skip_space = skipping(r"(?:\s|\\\r?\n)*+")
_skip_comment = skipping(r"[^\n]*+")
_skip_scalar = skipping(r"[^\s,:\[\](){}\"'#`=<;]*+")
_opening_quotes = regex.compile(r"(?P<prefix>[rRbBuUfF]{0,2})(?P<quote>\"\"\"|'''|\"|')")
_argument_without_comma = regex.compile(rf"\s{{1,64}}+({NAME})\s{{0,64}}+=\s{{0,64}}+[\"'\d\[({{TFN-]")
_CLASS = rf"(?:{NAME}\.){{0,8}}+(?:dict|[A-Z]\w{{0,127}}+)"
_class = regex.compile(_CLASS)
_bare_key = regex.compile(rf"({NAME})\s{{0,64}}+:")
_argument = regex.compile(
    rf"\*\*\s{{0,64}}+(?P<spread>\{{)|(?:(?P<name>{NAME})|(?P<quote>[\"'])(?P<quoted>[^\"'\\\n]{{1,64}})(?P=quote))"
    r"\s{0,64}+(?P<sign>[=:])"
)

_SPACE = r"(?:\s|\\\r?\n){0,256}+"
_VALUE = rf"(?:{_CLASS}\(|[rRbBuUfF]{{0,2}}[\"']|[\d\[({{+.-]|(?:True|False|None|true|false|null)(?=\W))"
_END_OF_CALL = r"\)(?:[ \t]{0,64}+[\r\n,;\])#`<]|\.[A-Za-z_])|[\])}]{1,3}\s{0,16}+`{3}"
_END_OF_INNER = rf"{_SPACE}(?:[,)\]}}:\#]|`{{3}})"


def _in_pairs(char: str) -> str:
    """The rest of a line on which quotes stand in pairs. They do not behind a quote that is part of a string."""
    between = rf"(?:[^{char}\\\n]|\\.){{0,256}}+"
    return rf"{between}(?:{char}{between}{char}{between}){{0,8}}+\n"


_CONDITION = r"\sif\s[^\n]{1,128}?\selse\s"
_NAME_THEN = rf"(?:await\s{{1,16}}+)?{NAME}(?:\.\w{{1,128}}+){{0,8}}+[(\[]"
_CODE = rf"\s{{0,16}}+(?:[\[.+*/%|<>-]|[=!]=|{_NAME_THEN}|(?:or|and)\s{{1,16}}+(?:{_NAME_THEN}|[\[{{\"'\d]|None))"
_OPERATOR = {
    char: regex.compile(
        r"\s{0,16}+(?:\+\s{0,16}+[\w\"']|%\s{0,16}+[\w(]|\.[a-z]{1,16}+\()"
        rf"|(?=\s{{0,16}}+(?:\*\s{{0,16}}+\d|\[[\d:-])|{_CONDITION}){_in_pairs(char)}"
    )
    for char in "\"'"
}
"""By quote, an operator behind a string."""
_CODE_BEHIND_CALL = {char: regex.compile(rf"(?={_SPACE}\)(?:{_CODE}|{_CONDITION})){_in_pairs(char)}") for char in "\"'"}
"""By quote, the call's end with code behind it that is no part of a string."""


def _follower(*ways: str) -> "regex.Pattern[str]":
    """What may follow a string: another one, a comment, a fence, a great deal of white space, or one of these."""
    return regex.compile(rf"\s{{256}}|{_SPACE}(?:[\#\"']|(?<=\s)[rRbBuUfF]{{1,2}}[\"']|`{{3}}|{'|'.join(ways)})")


def _next_argument(*ways: str) -> str:
    return rf",{_SPACE}(?:[\#,]|\*\*|{_END_OF_CALL}|{'|'.join(ways)})"


_KEYWORD = rf"{NAME}\s{{0,64}}+="
_PAIR = rf"(?:{NAME}|[\"'][^\"'\\\n]{{1,64}}[\"'])\s{{0,64}}+[=:]"
_BEHIND_KEYWORD = _follower(_END_OF_CALL, _next_argument(_KEYWORD))
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


def _over() -> State | None:
    return None


class Layout:
    """Skips white space and comments, which a stream may cut anywhere."""

    def __init__(self) -> None:
        self._in_comment = False
        self.has_comments = False
        """Whether there were any."""

    def skip(self, tape: Tape, *, final: bool) -> str:
        """The next character that is neither, with the cursor before it; empty: more input."""
        text = tape.text
        while True:
            if self._in_comment:
                tape.i = _skip_comment(text, tape.i).end()
                self._in_comment = tape.i == len(text)
            tape.i = _skip_space(text, tape.i).end()
            char = text[tape.i : tape.i + 1]
            if char != "#":
                break
            self._in_comment = self.has_comments = True
        if char == "\\" and tape.i + 2 >= len(text) and not final:
            return ""
        return char


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


class PythonCallReader:
    """Reads one call's arguments from `tape`, from the cursor on, which stands behind the `(`.

    `schema` is that of the tool's parameters: their order names the arguments that have no name. `tools` are the names
    of all tools: a call of one of them is no value.
    """

    def __init__(
        self,
        tape: Tape,
        ends: StringEnd | None = None,
        *,
        call_id: str = "",
        name: str = "",
        schema: object = None,
        tools: Collection[str] = (),
    ) -> None:
        self.tape = tape
        self.status = GOING
        self.repairs: list[str] = []
        self.out = tape.pos
        """Up to which position everything is out, or no text of the arguments."""
        self.literal_until = -1
        """Up to which position nothing in a string ends the call."""
        self.string_start = -1
        """Where the string begins that is open."""
        self.run_limit = 0
        """Up to which position `read_run` may go."""
        self._ends = ends
        self._call_id = call_id
        self._name = name
        self._schema = schema
        self._tools = tools
        self._parameters = _parameters(schema)
        self._state: State = self._argument
        self._events: list[Event] | None = None
        self._final = False
        self._silent = False
        self._is_ahead = False
        self._layout = Layout()
        self._stack = [CALL]
        self._is_first = [True]
        """For each open container, whether nothing was written in it yet."""
        self._held: list[list[tuple[str, str]]] = []
        """Text that waits until it is known in what it stands: for each such container its JSON pieces and deltas."""
        self._position = 0
        self._has_pairs = False
        self._has_keywords = False
        self._key: str | None = None
        self._skipping = False
        """Whether the value belongs to a key that was there before."""
        self._shown = Pieces()
        """The deltas of the value being written."""
        self._is_text = False
        self._written: list[str] = []
        self._value_of: dict[str, Any] = {}
        self._form = string_form("", '"')
        self._bare_quotes = 0
        """How many quotes that nobody escaped the string has that is open."""
        self._is_direct = False
        """Whether the string that is open is the value of an argument."""
        self.is_at_next_call = False
        """Whether what may end the call, at a `CANDIDATE`, is the beginning of another one."""
        self._scalar_start = 0

    # What a scanner calls.

    def read(self, events: list[Event] | None, *, final: bool = False) -> str:
        """Read on as far as the tape goes, and return the status. `events` receives the pieces, if it is a list."""
        self._events = events
        self._final = final
        if self.status is CANDIDATE:
            self.status = GOING
        while self.status is GOING:
            following = self._state()
            if following is None:
                break
            self._state = following
        return self.status

    def read_run(self, chunk: str) -> list[Event] | None:
        """The short way for a chunk that only continues a string argument; None, with nothing done, if it does not. It
        may be asked where `in_run` says so."""
        tape = self.tape
        text = tape.text + chunk if tape.text else chunk
        form = self._form
        end = form.run(text, 0).end()
        rest = ""
        if end < len(text):
            rest = text[end:]
            if rest not in ("\\", "\n"):
                return None
            text = text[:end]
        if self.out + end >= self.run_limit:
            return None
        tape.text = rest
        if not text:
            return []
        self.out += end
        tape.pass_by(text)
        value = form.decode(text) if "\\" in text else text
        self._shown.append(value)
        return [ToolArgDelta(self._call_id, self._name, self._key, value, encode_basestring(value)[1:-1])]

    @property
    def in_run(self) -> bool:
        """Whether `read_run` may be asked: inside a string argument, of which nothing is held but perhaps the last
        character."""
        return (
            self._state == self._string
            and self.status is GOING
            and self._events is not None
            and self._is_direct
            and not (self._held or self._skipping or self._silent)
            and self.tape.i >= len(self.tape.text) - 1
            and self.tape.pos >= self.literal_until
        )

    @property
    def in_string(self) -> bool:
        """Whether a string is open."""
        return self._state in (self._string, self._quote)

    @property
    def has_arguments(self) -> bool:
        """Whether anything but white space stands in the call so far."""
        return bool(self._value_of) or self._state != self._argument

    @property
    def _is_triple(self) -> bool:
        return len(self._form.quote) == 3

    def ahead(self) -> "PythonCallReader":
        """A reader that goes on from here in silence, takes for literal what could end the call inside a string, and
        breaks at a quote that nobody escaped."""
        reader = copy.copy(self)
        reader._layout = copy.copy(self._layout)
        reader._stack, reader._is_first = self._stack.copy(), self._is_first.copy()
        reader._state = getattr(reader, self._state.__name__)
        reader._is_ahead = True
        reader._ends = None
        reader.repairs = []
        reader.silence()
        return reader

    def silence(self) -> None:
        """Write nothing any more, let go of what was written, and need no text but what is to come."""
        self._silent = True
        self._events = None
        self._held = [[] for _ in self._held]
        self._shown = Pieces()
        self._written = []
        self._value_of = {}
        if self.status is CANDIDATE:
            self.status = GOING

    def close(self, events: list[Event] | None) -> bool:
        """The call ends at the cursor, without its `)`. Whether what is missing is plain; then it is `DONE`. It is not
        in a string whose last quote of an odd number may have closed it."""
        self._events = events
        if self.in_string and (self._is_triple or self._bare_quotes % 2):
            return False
        is_begun = self._state != self._element
        if self._state in (self._scalar, self._escape) or (is_begun and self._stack[-1] in (KEY, SPREAD_KEY, BRACE)):
            return False
        self.note("missing-closer")
        if self.in_string or self._state == self._after_string:
            self._end_string()
        elif self._state == self._value:
            self._emit("null")
            self.note("missing-value")
            self._ended_value()
        while self._stack:
            self._pop()
        self.status = DONE
        return True

    def finish(self) -> Arguments:
        """The arguments of a call that is `DONE`."""
        text = "".join(self._written)
        self._written = []
        return Arguments(self._value_of, text, tuple(self.repairs))

    def release(self) -> None:
        """Let go of everything that takes memory; the reader is not used any more."""
        self._state = _over
        self._events = None
        self._shown = Pieces()
        self._written = []
        self._held = []
        self._value_of = {}

    def note(self, name: str) -> None:
        """Name a tolerance, once."""
        if name not in self.repairs:
            self.repairs.append(name)

    # The grammar: arguments.

    def _argument(self) -> State | None:
        """Before an argument, or behind the last one."""
        char = self._next_char()
        if not char:
            return None
        if char in ")]}":
            return self._closer(char, self._argument)
        if char == ",":
            return self._extra_comma()
        tape = self.tape
        found = _argument.match(tape.text, tape.i, partial=not self._final)
        if found is None:
            return self._unnamed(char)
        if found.partial:
            return None
        tape.i = found.end()
        if found["spread"]:
            self._open(SPREAD_KEY)
            return self._element
        self._has_keywords = True
        if found["quote"]:
            self.note("quoted-key")
        if found["sign"] == ":":
            self._has_pairs = True
            self.note("colon-for-equals")
        self._begin_argument(found["name"] or found["quoted"])
        return self._value

    def _unnamed(self, char: str) -> State | None:
        """An argument without a name. A dict alone may be all of them."""
        if char == "{" and not self._value_of and not self._takes_object():
            self.note("positional-object")
            self.tape.i += 1
            self._open(SPREAD_KEY)
            return self._element
        if self._position >= len(self._parameters) or char in "`<*=:;":
            return self._break()
        self.note("positional-argument")
        key = self._parameters[self._position]
        self._position += 1
        self._begin_argument(key)
        return self._value

    def _takes_object(self) -> bool:
        """Whether the first parameter may be an object, so that a dict is its value and not all arguments."""
        if not self._parameters:
            return False
        return "object" in kinds_of(property_schema(self._schema, self._parameters[0]), self._schema)

    def _begin_argument(self, key: str) -> None:
        self._key = None
        if key in self._value_of:
            self.note("duplicate-key")
            self._skipping = True
        else:
            text = f"{',' if self._value_of else '{'}{dump(key)}:"
            self._write(text)
        self._key = key
        self.out = self.tape.pos

    def _end_argument(self) -> None:
        """The value of an argument is complete."""
        if not (self._skipping or self._silent or self._key is None):
            shown = self._shown.text()
            self._shown = Pieces()
            if self._is_text:
                self._value_of[self._key] = shown
                self._written.append(dump(shown))
            else:
                value, has_duplicates = load(f'{{"":{shown}}}')
                self._value_of[self._key] = value[""]
                self._written.append(shown)
                if has_duplicates:
                    self.note("duplicate-key")
        self._skipping = self._is_text = False
        self._key = None

    # The grammar: values.

    def _value(self) -> State | None:
        char = self._next_char()
        if not char:
            return None
        tape = self.tape
        text = tape.text
        if self._is_undecided(text, tape.i):
            return None
        quotes = _opening_quotes.match(text, tape.i)
        if quotes is not None:
            return self._begin_string(quotes, is_first=True)
        if char in _OPENED and self._stack[-1] not in (KEY, SPREAD_KEY):
            tape.i += 1
            self._open(_OPENED[char])
            return self._element
        if char in ",)]}":
            self.note("missing-value")
            self._emit("null")
            return self._ended_value()
        if char in "[({:=`<;*":
            return self._break()
        self._scalar_start = tape.pos
        return self._scalar

    def _is_undecided(self, text: str, start: int) -> bool:
        """Whether the text ends in the opening quotes of a string, or in what may be their prefix."""
        rest = text[start : start + 6]
        if self._final or start + len(rest) < len(text):
            return False
        prefix = rest.rstrip("\"'")
        quotes = rest[len(prefix) :]
        is_prefix = len(prefix) <= 2 and not prefix.strip("rRbBuUfF")
        return is_prefix and len(quotes) < 3 and quotes in (quotes[:1] * len(quotes), "")

    def _begin_string(self, quotes: "regex.Match[str]", *, is_first: bool) -> State:
        self._form = string_form(quotes["prefix"].lower(), quotes["quote"])
        self._bare_quotes = 0
        self.tape.i = quotes.end()
        self.string_start = self.tape.pos
        if is_first:
            self._is_direct = self._stack[-1] in _DIRECT and set(self._stack) <= _DIRECT
            self._is_text = self._is_text or self._is_direct
            self._emit('"', "" if self._is_direct else None)
        self._release()
        return self._string

    def _string(self) -> State | None:
        tape, form = self.tape, self._form
        text = tape.text
        end = form.run(text, tape.i).end()
        if end > tape.i:
            self._take(form.decode(text[tape.i : end]), end - tape.i)
        if end == len(text):
            return None
        char = text[end]
        if char == form.quote[0]:
            return self._quote
        if char == "\\":
            return self._escape
        if char in "\r\n":
            return self._line_break()
        if char in "{}":
            return self._brace(char)
        if "\ud800" <= char <= "\udfff":
            self.note("lone-surrogate")
            char = "\ufffd"
        self._take(char, 1)
        return self._string

    def _escape(self) -> State | None:
        tape, text = self.tape, self.tape.text
        if self._form.is_raw:
            if tape.i + 1 == len(text) and not self._final:
                return None
            is_surrogate = "\ud800" <= text[tape.i + 1 : tape.i + 2] <= "\udfff"
            pair = text[tape.i : tape.i + (1 if is_surrogate else 2)]
            self._take(pair, len(pair))
            return self._string
        escape = decode_escape(text, tape.i, final=self._final)
        if escape is None:
            return None
        if escape.repair:
            self.note(escape.repair)
        self._take(escape.value, escape.length)
        return self._string

    def _brace(self, char: str) -> State | None:
        """A brace in a formatted string: twice it is itself, once it asks for a value that nobody knows."""
        following = self.tape.text[self.tape.i + 1 : self.tape.i + 2]
        if not following and not self._final:
            return None
        if following != char:
            return self._break()
        self._take(char, 2)
        return self._string

    def _line_break(self) -> State | None:
        """A line break in a string, perhaps the last one."""
        tape, text = self.tape, self.tape.text
        if self._ends is not None and tape.pos >= self.literal_until:
            kind = self._ends.at(text, tape.i, final=self._final)
            if kind is None:
                return None
            if kind == "next_call" or (kind and not self._is_triple):
                self.is_at_next_call = kind == "next_call"
                self.status = CANDIDATE
                return None
        length = 2 if text.startswith("\r\n", tape.i) else 1
        if text[tape.i] == "\r" and length == 1 and tape.i + 1 == len(text) and not self._final:
            return None
        if not self._is_triple:
            self.note("control-character")
        self._take(text[tape.i : tape.i + length], length)
        return self._string

    def _quote(self) -> State | None:
        """A quote in a string: it closes the string if what follows may follow a string, else it is a character."""
        tape, quote = self.tape, self._form.quote
        text, end = tape.text, tape.i + len(quote)
        if not text.startswith(quote, tape.i):
            if quote.startswith(text[tape.i :]) and not self._final:
                return None
            self._take(quote[0], 1)
            return self._string
        follows = self._follows(text, end)
        if follows is None:
            return None
        if follows:
            tape.i = end
            return self._after_string
        expression = _OPERATOR[quote[0]].match(text, end, partial=not self._final)
        if expression is not None and expression.partial:
            return None
        if expression is not None or self._is_ahead or self._opened_another_call():
            return self._break()
        self.note("unescaped-quote")
        self._bare_quotes += 1
        self._take(quote[0], 1)
        return self._string

    def _follows(self, text: str, start: int) -> bool | None:
        """Whether a string may end before `start`; None: more input."""
        pattern = _FOLLOWERS.get(self._stack[-1])
        if pattern is None:
            pattern = _BEHIND_POSITIONAL
            if self._has_keywords:
                pattern = _BEHIND_PAIR if self._has_pairs else _BEHIND_KEYWORD
        char = self._form.quote[0]
        is_one_too_many = text.startswith(char, start) and not text.startswith(char, start + 1)
        if is_one_too_many and (self._bare_quotes or self._is_triple):
            second = pattern.match(text, start + 1, partial=not self._final)
            if second is not None:
                return None if second.partial else False
        found = pattern.match(text, start, partial=not self._final)
        if found is None and self._stack[-1] == CALL and not self._bare_quotes:
            found = _CODE_BEHIND_CALL[char].match(text, start, partial=not self._final)
        if found is None and pattern is _BEHIND_KEYWORD:
            return self._forgot_comma(text, start)
        if found is None:
            return self._final and pattern.match(text, start, partial=True) is not None
        return None if found.partial else True

    def _forgot_comma(self, text: str, start: int) -> bool | None:
        """Whether the next argument follows at once: one that the tool has, and that has not come yet."""
        found = _argument_without_comma.match(text, start, partial=True) if self._parameters else None
        if found is None:
            return self._final and _BEHIND_KEYWORD.match(text, start, partial=True) is not None
        if found.partial and not self._final:
            return None
        return found[1] in self._parameters and found[1] not in self._value_of and found[1] != self._key

    def _opened_another_call(self) -> bool:
        """Whether the quote at the cursor opens a string of another call, because this call's was never closed."""
        if self._ends is None or self._silent:
            return False
        line = self.tape.slice(max(self.string_start, self.tape.pos - 256), self.tape.pos)
        return self._ends.swallowed.search(line) is not None and line.rstrip().endswith(("=", "("))

    def _after_string(self) -> State | None:
        """Behind a string: another one continues it."""
        char = self._next_char()
        if not char:
            return None
        tape = self.tape
        if self._is_undecided(tape.text, tape.i):
            return None
        quotes = _opening_quotes.match(tape.text, tape.i)
        if quotes is not None:
            return self._begin_string(quotes, is_first=False)
        return self._end_string()

    def _end_string(self) -> State:
        self._emit('"', "" if self._is_direct else None)
        self.string_start = -1
        return self._ended_value()

    def _scalar(self) -> State | None:
        tape = self.tape
        tape.i = _skip_scalar(tape.text, tape.i).end()
        if tape.i == len(tape.text) and not self._final:
            return None
        if self._silent and not self._is_ahead:
            return self._ended_value()
        token = tape.slice(self._scalar_start, tape.pos)
        found, bare = scalar(token), None
        if found is None and self._stack[-1] in (KEY, BRACE, SPREAD_KEY):
            bare = _bare_key.match(token + tape.text[tape.i : tape.i + 66], partial=not self._final)
        if bare is not None:
            if bare.partial:
                return None
            self.note("bare-key")
            self._emit(dump(bare[1]))
        elif found is None:
            return self._object(token)
        elif found.text is None:
            self._emit(found.json_text)
        elif set(self._stack) <= _DIRECT:
            self._is_text = True
            for json_text, delta in (('"', ""), (found.json_text[1:-1], found.text), ('"', "")):
                self._emit(json_text, delta)
        else:
            self._emit(found.json_text)
        if found is not None and found.repair:
            self.note(found.repair)
        return self._ended_value()

    def _ended_value(self) -> State:
        if self._stack and self._stack[-1] in (CALL, SPREAD):
            self._end_argument()
        self._release()
        return self._after_value

    # The grammar: containers.

    def _object(self, name: str) -> State | None:
        """The call of a class, whose keyword arguments are the members of an object; any other call is not read."""
        tape = self.tape
        is_class = _class.fullmatch(name) is not None and name.rpartition(".")[2] not in self._tools
        if not is_class or not tape.text.startswith("(", tape.i):
            return self._break()
        self.note("class-call")
        tape.i += 1
        self._open(OBJECT)
        return self._element

    def _field(self) -> State | None:
        """Before a keyword argument of a class."""
        tape = self.tape
        found = _argument.match(tape.text, tape.i, partial=not self._final)
        if found is not None and found.partial:
            return None
        if found is None or not found["name"] or found["sign"] == ":":
            return self._break()
        tape.i = found.end()
        self._emit(f"{'' if self._is_first[-1] else ','}{dump(found['name'])}:")
        self._is_first[-1] = False
        return self._value

    def _open(self, kind: str) -> None:
        if len(self._stack) >= MAX_DEPTH:
            self.status = TOO_DEEP
            return
        self._stack.append(kind)
        self._is_first.append(True)
        if kind in (LIST, OBJECT):
            self._emit("[" if kind == LIST else "{")
        elif kind != SPREAD_KEY:
            self._held.append([])
        self._release()

    def _element(self) -> State | None:
        """Before an element, a member or its key."""
        char = self._next_char()
        if not char:
            return None
        if char in ")]}":
            return self._closer(char, self._element)
        if char == ",":
            return self._extra_comma()
        kind = self._stack[-1]
        if kind == OBJECT:
            return self._field()
        if kind in (KEY, SPREAD_KEY):
            self._held.append([])
        elif kind not in (PAREN, BRACE) and not self._is_first[-1]:
            self._emit(",")
        self._is_first[-1] = False
        return self._value

    def _after_value(self) -> State | None:
        char = self._next_char()
        if not char:
            return None
        kind = self._stack[-1]
        if char in ":=" and kind in (KEY, BRACE, SPREAD_KEY):
            return self._colon()
        if char == ",":
            return self._comma()
        if char in ")]}" and kind not in (KEY, SPREAD_KEY):
            return self._closer(char, self._after_value)
        return self._missing_comma()

    def _colon(self) -> State | None:
        """What was read in a brace is a key."""
        self.tape.i += 1
        pieces = self._held.pop()
        key = "".join(json_text for json_text, _ in pieces) or '""'
        if key[0] in "[{":
            return self._break()
        if key[0] != '"':
            key = dump(key)
        kind = self._stack[-1]
        if kind == SPREAD_KEY:
            self._stack[-1] = SPREAD
            self._begin_argument(json.loads(key))
            return self._value
        self._emit(f"{'{' if kind == BRACE else ','}{key}:")
        self._stack[-1] = DICT
        self._release()
        return self._value

    def _comma(self) -> State | None:
        kind = self._stack[-1]
        if kind in (KEY, SPREAD_KEY):
            return self._break()
        self.tape.i += 1
        self._settle()
        if self._stack[-1] == CALL:
            return self._argument
        if self._stack[-1] == DICT:
            self._stack[-1] = KEY
        elif self._stack[-1] == SPREAD:
            self._stack[-1] = SPREAD_KEY
        return self._element

    def _extra_comma(self) -> State:
        self.note("extra-comma")
        self.tape.i += 1
        return self._argument if self._stack[-1] == CALL else self._element

    def _settle(self) -> None:
        """A comma says that what is open is a tuple or a set."""
        kind = self._stack[-1]
        if kind in (PAREN, BRACE):
            self._stack[-1] = TUPLE if kind == PAREN else SET
            self._release_held(as_list=True)

    def _missing_comma(self) -> State | None:
        tape, kind = self.tape, self._stack[-1]
        if kind == CALL:
            found = _argument.match(tape.text, tape.i, partial=not self._final)
            if found is not None and found.partial:
                return None
            is_plain = found is not None
        else:
            is_plain = kind in (LIST, TUPLE, SET, DICT) and tape.text[tape.i] in "\"'[({0123456789-"
        if not is_plain or self._is_ahead:
            return self._break()
        self.note("missing-comma")
        if kind == DICT:
            self._stack[-1] = KEY
        return self._argument if kind == CALL else self._element

    def _closer(self, char: str, otherwise: State) -> State | None:
        self.tape.i += 1
        if not any(_CLOSER[kind] == char for kind in self._stack):
            self.note("extra-closer")
            return otherwise
        while _CLOSER[self._stack[-1]] != char:
            self.note("missing-closer")
            self._pop()
        self._pop()
        if not self._stack:
            self.status = DONE
            self.out = self.tape.pos
            return None
        return self._after_value

    def _pop(self) -> None:
        """Close the innermost of what is open."""
        kind = self._stack.pop()
        is_empty = self._is_first.pop()
        if kind == CALL:
            self._key = None
            self._write("}" if self._value_of else "{}")
            return
        if kind in (SPREAD, SPREAD_KEY):
            return
        if kind == BRACE and is_empty:
            self._held.pop()
            self._emit("{}")
        elif kind in (PAREN, BRACE):
            self._release_held(as_list=is_empty or kind == BRACE)
            if is_empty or kind == BRACE:
                self._emit("]")
        else:
            self._emit("}" if kind in (DICT, KEY, OBJECT) else "]")
        if self._stack[-1] in (CALL, SPREAD):
            self._end_argument()
        self._release()

    def _release_held(self, *, as_list: bool) -> None:
        pieces = self._held.pop()
        if as_list:
            self._is_text = False
            self._emit("[")
        for json_text, delta in pieces:
            self._emit(json_text, None if as_list else delta)

    # What leaves.

    def _next_char(self) -> str:
        return self._layout.skip(self.tape, final=self._final)

    def _break(self) -> State | None:
        self.status = BROKEN
        return None

    def _take(self, value: str, length: int) -> None:
        """The next characters of a string."""
        self.tape.i += length
        if value:
            self._emit(encode_basestring(value)[1:-1], value if self._is_direct else None)
        self._release()

    def _release(self) -> None:
        if not self._held:
            self.out = self.tape.pos

    def _emit(self, json_text: str, delta: str | None = None) -> None:
        """The next piece of a value: its JSON text, and what a person would read, if that is something else."""
        if self._silent or self._skipping:
            return
        shown = json_text if delta is None else delta
        if self._held:
            self._held[-1].append((json_text, shown))
            return
        self._shown.append(shown)
        if self._events is not None:
            self._events.append(ToolArgDelta(self._call_id, self._name, self._key, shown, json_text))

    def _write(self, json_text: str) -> None:
        """JSON text between two arguments."""
        if self._silent:
            return
        self._written.append(json_text)
        if self._events is not None:
            self._events.append(ToolArgDelta(self._call_id, self._name, None, "", json_text))


def _parameters(schema: object) -> tuple[str, ...]:
    """The names of a tool's parameters, in their order."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return tuple(name for name in properties if isinstance(name, str)) if isinstance(properties, dict) else ()
