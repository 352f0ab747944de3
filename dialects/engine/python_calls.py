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

Here is the grammar. What a token means stands in `python_literals.py`, what may follow a string in `python_ends.py`,
and what becomes of the pieces in `python_arguments.py`.
"""

import copy
import json
from collections.abc import Collection
from json.encoder import encode_basestring

import regex

from dialects.engine.arguments import Arguments, skipping
from dialects.engine.json_text import MAX_DEPTH, dump
from dialects.engine.python_arguments import PythonArguments
from dialects.engine.python_ends import (
    BEHIND_KEYWORD,
    BRACE,
    CALL,
    CLASS,
    CODE_BEHIND_CALL,
    DICT,
    EXPRESSION,
    KEY,
    LIST,
    NEXT_ARGUMENT,
    OBJECT,
    PAREN,
    SET,
    SPREAD,
    SPREAD_KEY,
    TUPLE,
    StringEnd,
    behind_string,
)
from dialects.engine.python_literals import NAME, decode_escape, scalar, string_form
from dialects.engine.reader import CANDIDATE, DONE, GOING, TOO_DEEP, Reader, State
from dialects.engine.schema import kinds_of, property_schema
from dialects.engine.tape import Tape
from dialects.events import Event

__all__ = ["Layout", "PythonCallReader"]

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
_class = regex.compile(CLASS)
_bare_key = regex.compile(rf"({NAME})\s{{0,64}}+:")
_argument = regex.compile(
    rf"\*\*\s{{0,64}}+(?P<spread>\{{)|(?:(?P<name>{NAME})|(?P<quote>[\"'])(?P<quoted>[^\"'\\\n]{{1,64}})(?P=quote))"
    r"\s{0,64}+(?P<sign>[=:])"
)


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


class PythonCallReader(Reader):
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
        self._enter(self._argument)
        self.tape = tape
        self.out = tape.pos
        self.string_start = -1
        """Where the string begins that is open."""
        self._ends = ends
        self._arguments = PythonArguments(self.note, call_id=call_id, name=name)
        self._schema = schema
        self._tools = tools
        self._parameters = _parameters(schema)
        self._is_ahead = False
        self._layout = Layout()
        self._stack = [CALL]
        self._is_first = [True]
        """For each open container, whether nothing was written in it yet."""
        self._position = 0
        self._has_pairs = False
        self._has_keywords = False
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
        self._arguments.events = events
        return super().read(events, final=final)

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
        return self._arguments.text_run(form.decode(text) if "\\" in text else text)

    @property
    def in_run(self) -> bool:
        """Whether `read_run` may be asked: inside a string argument, of which nothing is held but perhaps the last
        character."""
        return (
            self._state == self._string
            and self.status is GOING
            and self._is_direct
            and self._arguments.leaves_at_once
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
        return bool(self._arguments.value) or self._state != self._argument

    @property
    def _is_triple(self) -> bool:
        return len(self._form.quote) == 3

    def ahead(self) -> "PythonCallReader":
        """A reader that goes on from here in silence, takes for literal what could end the call inside a string, and
        breaks at a quote that nobody escaped."""
        reader = self._twin()
        reader._layout = copy.copy(self._layout)
        reader._stack, reader._is_first = self._stack.copy(), self._is_first.copy()
        reader._is_ahead = True
        reader._ends = None
        reader._arguments = self._arguments.ahead(reader.note)
        return reader

    def silence(self) -> None:
        """Write nothing any more, let go of what was written, and need no text but what is to come."""
        self._arguments.silence()
        if self.status is CANDIDATE:
            self.status = GOING

    def close(self, events: list[Event] | None) -> bool:
        """The call ends at the cursor, without its `)`. Whether what is missing is plain; then it is `DONE`. It is not
        in a string whose last quote of an odd number may have closed it."""
        self._arguments.events = events
        if self.in_string and (self._is_triple or self._bare_quotes % 2):
            return False
        is_begun = self._state != self._element
        if self._state in (self._scalar, self._escape) or (is_begun and self._stack[-1] in (KEY, SPREAD_KEY, BRACE)):
            return False
        self.note("missing-closer")
        if self.in_string or self._state == self._after_string:
            self._end_string()
        elif self._state == self._value:
            self._arguments.write("null")
            self.note("missing-value")
            self._ended_value()
        while self._stack:
            self._pop()
        self.status = DONE
        return True

    def finish(self) -> Arguments:
        """The arguments of a call that is `DONE`."""
        value, json_text = self._arguments.finish()
        return Arguments(value, json_text, tuple(self.repairs))

    def release(self) -> None:
        super().release()
        self._arguments.silence()

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
        if char == "{" and not self._arguments.value and not self._takes_object():
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
        self._arguments.begin(key)
        self.out = self.tape.pos

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
            self._arguments.write("null")
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
            self._arguments.is_text = self._arguments.is_text or self._is_direct
            self._arguments.write('"', "" if self._is_direct else None)
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
        expression = EXPRESSION[quote[0]].match(text, end, partial=not self._final)
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
        pattern = behind_string(self._stack[-1], has_keywords=self._has_keywords, has_pairs=self._has_pairs)
        char = self._form.quote[0]
        is_one_too_many = text.startswith(char, start) and not text.startswith(char, start + 1)
        if is_one_too_many and (self._bare_quotes or self._is_triple):
            second = pattern.match(text, start + 1, partial=not self._final)
            if second is not None:
                return None if second.partial else False
        found = pattern.match(text, start, partial=not self._final)
        if found is None and self._stack[-1] == CALL and not self._bare_quotes:
            found = CODE_BEHIND_CALL[char].match(text, start, partial=not self._final)
        if found is None and pattern is BEHIND_KEYWORD:
            return self._forgot_comma(text, start)
        if found is None:
            return self._final and pattern.match(text, start, partial=True) is not None
        return None if found.partial else True

    def _forgot_comma(self, text: str, start: int) -> bool | None:
        """Whether the next argument follows at once: one that the tool has, and that has not come yet."""
        found = NEXT_ARGUMENT.match(text, start, partial=True) if self._parameters else None
        if found is None:
            return self._final and BEHIND_KEYWORD.match(text, start, partial=True) is not None
        if found.partial and not self._final:
            return None
        return (
            found[1] in self._parameters and found[1] not in self._arguments.value and found[1] != self._arguments.key
        )

    def _opened_another_call(self) -> bool:
        """Whether the quote at the cursor opens a string of another call, because this call's was never closed."""
        if self._ends is None or self._arguments.is_silent:
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
        self._arguments.write('"', "" if self._is_direct else None)
        self.string_start = -1
        return self._ended_value()

    def _scalar(self) -> State | None:
        tape = self.tape
        tape.i = _skip_scalar(tape.text, tape.i).end()
        if tape.i == len(tape.text) and not self._final:
            return None
        if self._arguments.is_silent and not self._is_ahead:
            return self._ended_value()
        token = tape.slice(self._scalar_start, tape.pos)
        found, bare = scalar(token), None
        if found is None and self._stack[-1] in (KEY, BRACE, SPREAD_KEY):
            bare = _bare_key.match(token + tape.text[tape.i : tape.i + 66], partial=not self._final)
        if bare is not None:
            if bare.partial:
                return None
            self.note("bare-key")
            self._arguments.write(dump(bare[1]))
        elif found is None:
            return self._object(token)
        elif found.text is None:
            self._arguments.write(found.json_text)
        elif set(self._stack) <= _DIRECT:
            self._arguments.is_text = True
            for json_text, delta in (('"', ""), (found.json_text[1:-1], found.text), ('"', "")):
                self._arguments.write(json_text, delta)
        else:
            self._arguments.write(found.json_text)
        if found is not None and found.repair:
            self.note(found.repair)
        return self._ended_value()

    def _ended_value(self) -> State:
        if self._stack and self._stack[-1] in (CALL, SPREAD):
            self._arguments.end()
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
        self._arguments.write(f"{'' if self._is_first[-1] else ','}{dump(found['name'])}:")
        self._is_first[-1] = False
        return self._value

    def _open(self, kind: str) -> None:
        if len(self._stack) >= MAX_DEPTH:
            self.status = TOO_DEEP
            return
        self._stack.append(kind)
        self._is_first.append(True)
        if kind in (LIST, OBJECT):
            self._arguments.write("[" if kind == LIST else "{")
        elif kind != SPREAD_KEY:
            self._arguments.hold()
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
            self._arguments.hold()
        elif kind not in (PAREN, BRACE) and not self._is_first[-1]:
            self._arguments.write(",")
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
        key = self._arguments.take_key() or '""'
        if key[0] in "[{":
            return self._break()
        if key[0] != '"':
            key = dump(key)
        kind = self._stack[-1]
        if kind == SPREAD_KEY:
            self._stack[-1] = SPREAD
            self._begin_argument(json.loads(key))
            return self._value
        self._arguments.write(f"{'{' if kind == BRACE else ','}{key}:")
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
            self._arguments.release(as_list=True)

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
            self._arguments.close()
            return
        if kind in (SPREAD, SPREAD_KEY):
            return
        if kind == BRACE and is_empty:
            self._arguments.release(as_list=False)
            self._arguments.write("{}")
        elif kind in (PAREN, BRACE):
            self._arguments.release(as_list=is_empty or kind == BRACE)
            if is_empty or kind == BRACE:
                self._arguments.write("]")
        else:
            self._arguments.write("}" if kind in (DICT, KEY, OBJECT) else "]")
        if self._stack[-1] in (CALL, SPREAD):
            self._arguments.end()
        self._release()

    # What the states use.

    def _next_char(self) -> str:
        return self._layout.skip(self.tape, final=self._final)

    def _take(self, value: str, length: int) -> None:
        """The next characters of a string."""
        self.tape.i += length
        if value:
            self._arguments.write(encode_basestring(value)[1:-1], value if self._is_direct else None)
        self._release()

    def _release(self) -> None:
        if not self._arguments.is_holding:
            self.out = self.tape.pos


def _parameters(schema: object) -> tuple[str, ...]:
    """The names of a tool's parameters, in their order."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return tuple(name for name in properties if isinstance(name, str)) if isinstance(properties, dict) else ()
