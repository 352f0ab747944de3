"""Arguments in a notation of their own, read while they stream and written as JSON.

    OBJECT = { [ KEY : VALUE ( , KEY : VALUE )* ] }
    VALUE  = QUOTE text QUOTE | number | true | false | null | [ [ VALUE ( , VALUE )* ] ] | OBJECT

KEY is bare, or a JSON string where it could not be (`write_key`). QUOTE is a token of the dialect; nothing is escaped
between two of them.

A `LiteralReader` is lenient, one pass, and writes the JSON text as it goes. What is out is certain: a scalar leaves
when its end is known, a key with its value, and the text of a string as it arrives. Only brackets at the end of what
has arrived wait, for they belong to the arguments if a marker follows that ends a call whose string nobody closed.

Where does a string end? A quote that a legal continuation follows closes it. At another one, and at a marker that may
end the call, the reader looks ahead in silence:

- another quote is one of the string's characters if later one closes the string, before what may end the call;
- a marker was text if the next quote closes the string; else it was real, and so it is at the end of the stream.

Here is the grammar. The markers and what may follow a string stand in `literal_form.py`, and what becomes of the pieces
in `literal_arguments.py`.
"""

import re
from typing import Any, Final

from dialects.engine.arguments import Arguments, skipping
from dialects.engine.candidates import Rereading
from dialects.engine.coercion import is_text_only
from dialects.engine.json_text import MAX_DEPTH, NUMBER, decode_string, too_many_digits
from dialects.engine.literal_arguments import OPENERS, LiteralArguments
from dialects.engine.literal_form import EQUALS, PLAIN_MEMBER, LiteralForm, is_bare
from dialects.engine.reader import DONE, GOING, TOO_DEEP, Reader, State
from dialects.engine.schema import property_schema
from dialects.engine.tape import Tape
from dialects.events import Event

__all__ = ["LiteralReader"]

_LONGEST_TAIL: Final = 64
"""How many brackets and spaces at the end of a string may turn out to belong to the arguments."""

_LITERALS: dict[str, tuple[str, str | None]] = {
    **{word: (word, None) for word in ("true", "false", "null")},
    "None": ("null", None),
    "True": ("true", "python-literal"),
    "False": ("false", "python-literal"),
    **dict.fromkeys(("nan", "inf", "-inf", "NaN", "Infinity", "-Infinity"), ("null", "not-a-number")),
}
_CLOSERS = {"}": "{", ")": "{", "]": "["}
_TAIL = "}]) \t\r\n"
_OPEN_ESCAPE = re.compile(
    r"(?<!\\)(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?)\Z"
)
"""The beginning of an escape at the end of a text, or one that may be the first half of a pair."""
_skip_space = skipping(r"\s*+")


class LiteralReader(Reader):
    """Reads the arguments of the calls of one stream, one after the other; see the module's description. They are
    `BROKEN` where they end at a marker, which the cursor is at.

    `max_held_chars` is how far it looks ahead.
    """

    def __init__(self, form: LiteralForm, *, max_held_chars: int) -> None:
        self.form = form
        self._max_held_chars = max_held_chars
        self._rereading = Rereading()
        self.begin(Tape(), {}, call_id="", name="")

    # What a scanner calls.

    def begin(self, tape: Tape, parameters: dict[str, Any], *, call_id: str, name: str) -> None:
        """Arguments begin with the opener at the cursor. `parameters` is their JSON Schema."""
        self._enter(self._begin)
        self.out = self.end = tape.pos
        """Where the arguments end, once they are `DONE`."""
        self.in_doubt = False
        """Whether the arguments end in a string at a marker, because the stream ended without another answer."""
        self.tape = tape
        self._parameters = parameters
        self._arguments = LiteralArguments(self.note, call_id=call_id, name=name)
        self._owed = 0
        """How many closers the model has written that are not out yet."""
        self._last = ""
        """What stands before the cursor, beside white space: an `opener`, a `comma`, or a `value`."""
        self._in_parentheses = False
        self._start = tape.pos
        """Where the key, scalar or string begins that is being read."""
        self._equals = -1
        """Where the first `=` in a key stands that only the rest of the member tells from a colon."""
        self._has_comma = False
        """Whether the scalar has a comma in it, so that it is a text."""
        self._quote = ""
        self._in_key = False
        self.literal_until = -1
        self._doubtful = 0
        """Where the quote or marker stands behind which the reader looks ahead."""
        self._doubts_quote = False

    def read(self, events: list[Event] | None, *, final: bool = False) -> str:
        """Read on as far as the tape goes, and return the status. `events` receives the pieces, if it is a list."""
        self._arguments.events = events
        return super().read(events, final=final)

    def finish(self, events: list[Event] | None) -> Arguments:
        """The arguments are over: write what is still missing, and return them."""
        written = self._arguments
        written.events = events
        if self.status is TOO_DEEP:
            arguments = Arguments({}, "{}", tuple(self.repairs), too_deep=True)
        else:
            if len(written.stack) > self._owed:
                self.note("missing-closer")
            while written.stack:
                written.close()
            value, text = written.finish()
            arguments = Arguments(value, text, tuple(self.repairs))
        self.release()
        return arguments

    def release(self) -> None:
        super().release()
        self._arguments = LiteralArguments(self.note, call_id="", name="")

    @property
    def in_run(self) -> bool:
        """Whether `read_run` may be asked: inside a string that leaves as it arrives."""
        return (
            self._state == self._string
            and self.status is GOING
            and self._events is not None
            and self._quote == self.form.quote
            and not self._in_key
            and not self._arguments.is_skipping
            and self.tape.pos >= self.literal_until
        )

    def read_run(self, chunk: str) -> list[Event] | None:
        """The short way for a chunk that only continues the string; None, with nothing done, if it does not. It may be
        asked where `in_run` says so."""
        tape = self.tape
        text = tape.text + chunk
        if tape.base + len(text) >= self.run_limit:
            return None
        rest = ""
        if "<" in text:
            index, marker = self.form.in_strings[self._quote].find(text, 0)
            if marker is not None:
                return None
            text, rest = text[:index], text[index:]
        body = tape.slice(self.out, tape.base) + text if self.out < tape.base else text
        tape.text = rest
        if text:
            tape.pass_by(text)
        if body and body[-1] in _TAIL and (tail := len(_tail(body))):
            body = body[:-tail]
        self.out += len(body)
        return [self._arguments.piece(body)] if body else []

    # The grammar.

    def _begin(self) -> State | None:
        self._in_parentheses = self.tape.text.startswith("(", self.tape.i)
        if self._in_parentheses:
            self.note("call-parentheses")
        return self._open("{")

    def _open(self, opener: str) -> State | None:
        if len(self._arguments.stack) >= MAX_DEPTH:
            self.status = TOO_DEEP
            return None
        if self._arguments.stack:
            self._arguments.begin_value()
        self.tape.i += 1
        self._arguments.open(opener)
        self.out = self.tape.pos
        self._last = "opener"
        return self._member if opener == "{" else self._value

    def _member(self) -> State | None:
        """A key, or the end of the object."""
        char = self._next_char()
        if char is None:
            return None
        if char in _CLOSERS and (char != ")" or self._in_parentheses):
            return self._close(char)
        if char == ",":
            return self._comma()
        self._start = self.tape.pos
        if char in ("'", '"', self.form.quote):
            return self._open_string(char, in_key=True)
        if char == "{":
            self.note("nested-arguments" if self._arguments.at_top and not self._arguments.keys else "stray-character")
            self._owed -= 1
            self.tape.i += 1
            return self._member
        return self._bare_key

    def _bare_key(self) -> State | None:
        tape = self.tape
        tape.i, marker = self.form.key_ends.find(tape.text, tape.i, final=False)
        if marker is None:
            return None
        if marker == self.form.quote:
            tape.i += len(marker)
            return self._bare_key
        if marker == "=" and not self._in_parentheses:
            separates = EQUALS.match(tape.text, tape.i, partial=not self._final)
            if separates is None:
                if self._equals < self._start:
                    self._equals = tape.pos
                tape.i += 1
                return self._bare_key
            if separates.partial:
                return None
        if marker not in (":", "=") and self._equals >= self._start:
            tape.seek(self._equals)
        key = tape.slice(self._start, tape.pos).replace(self.form.quote, "").strip()
        return self._key_is(key)

    def _key_is(self, key: str) -> State | None:
        self._arguments.member_key = key
        return self._colon

    def _colon(self) -> State | None:
        char = self._next_char()
        if char is None:
            return None
        if char not in (":", "="):
            self._no_value()
            return self._after_value
        if char == "=" and not self._in_parentheses:
            self.note("stray-character")
        self.tape.i += 1
        return self._value

    def _no_value(self) -> None:
        self.note("missing-value")
        self._last = "value"

    def _value(self) -> State | None:
        char = self._next_char()
        if char is None:
            return None
        if char in ("'", '"', self.form.quote):
            return self._open_string(char, in_key=False)
        if char in OPENERS:
            return self._open(char)
        is_closer = char in _CLOSERS and (char != ")" or self._in_parentheses)
        if self._arguments.stack[-1] == "{" and (is_closer or char == "," or char in self.form.ends):
            self._no_value()
            return self._after_value
        if is_closer:
            return self._close(char)
        if char == ",":
            return self._comma()
        if char in self.form.ends:
            return self._break()
        self._start = self.tape.pos
        if self._arguments.stack[-1] == "[" and self._arguments.stack[-2] == "{":
            member = PLAIN_MEMBER.match(self.tape.text, self.tape.i, partial=not self._final)
            if member is not None and member.partial:
                return None
            if member is not None:
                self.note("missing-closer")
                self._close_container()
                return self._member
        self._has_comma = False
        return self._scalar

    def _scalar(self) -> State | None:
        tape, form = self.tape, self.form
        marker = self._scalar_end()
        if marker is None:
            return None
        raw = "" if self._has_comma else tape.slice(self._start, tape.pos).strip()
        is_known = raw in _LITERALS or NUMBER.fullmatch(raw) is not None
        if marker == "," and self._arguments.stack[-1] == "{" and not is_known:
            ends_here = form.after_string["{"].match(tape.text, tape.i, partial=not self._final)
            if ends_here is None:
                self._has_comma = True
                tape.i += 1
                return self._scalar
            if ends_here.partial:
                return None
        raw = tape.slice(self._start, tape.pos).strip()
        self._arguments.begin_value()
        if is_known and marker != form.quote:
            self._write_known(raw)
        else:
            self.note("bare-value")
            self._emit_string(raw)
        if marker == form.quote:
            tape.i += len(marker)
        return self._value_done()

    def _write_known(self, raw: str) -> None:
        text, name = _LITERALS.get(raw, (raw, None))
        if text != "null" and self._is_text_only():
            self.note("bare-value")
            self._emit_string(raw)
            return
        if name:
            self.note(name)
        if raw not in _LITERALS and too_many_digits(raw) and raw.lstrip("-").isdigit():
            self.note("number-too-long")
            self._emit_string(raw)
            return
        self._emit(text)

    def _is_text_only(self) -> bool:
        """Whether the tool wants nothing but a string here."""
        key = self._arguments.key
        if not self._arguments.at_top or key is None:
            return False
        return is_text_only(property_schema(self._parameters, key), self._parameters)

    def _value_done(self) -> State:
        self.out = self.tape.pos
        self._last = "value"
        self._arguments.end_value()
        return self._after_value

    def _after_value(self) -> State | None:
        tape = self.tape
        char = self._next_char()
        if char is None:
            return None
        if char == ",":
            return self._comma()
        if char in _CLOSERS and (char != ")" or self._in_parentheses):
            return self._close(char)
        if char in self.form.ends:
            return self._break()
        if self._arguments.stack[-1] == "{":
            member = PLAIN_MEMBER.match(tape.text, tape.i, partial=not self._final)
            if member is not None:
                if member.partial:
                    return None
                self.note("missing-comma")
                return self._member
        elif char in OPENERS or char in ("'", '"', self.form.quote):
            self.note("missing-comma")
            return self._value
        self.note("stray-character")
        return self._stray

    def _stray(self) -> State | None:
        """Text that means nothing, up to what does."""
        marker = self._scalar_end()
        if marker is None:
            return None
        if marker == self.form.quote:
            self.tape.i += len(marker)
            return self._stray
        return self._after_value

    def _scalar_end(self) -> str | None:
        """Move the cursor to what ends a scalar, and return it; None: more input."""
        tape, form = self.tape, self.form
        ends = form.scalar_ends_in_parentheses if self._in_parentheses else form.scalar_ends
        tape.i, marker = ends.find(tape.text, tape.i, final=False)
        return marker

    def _comma(self) -> State:
        self.tape.i += 1
        if self._last != "value":
            self.note("extra-comma")
        self._last = "comma"
        return self._member if self._arguments.stack[-1] == "{" else self._value

    def _close(self, char: str) -> State | None:
        self.tape.i += 1
        opener = _CLOSERS[char]
        if self._last == "comma":
            self.note("trailing-comma")
        stack = self._arguments.stack
        if opener not in stack:
            self.note("extra-closer")
            return self._after_value
        depth = 1 if char == ")" else len(stack) - stack[::-1].index(opener)
        if depth < len(stack):
            self.note("missing-closer")
        while len(stack) > depth:
            self._close_container()
        if depth == 1:
            return self._closed()
        self._close_container()
        return self._value_done()

    def _closed(self) -> State | None:
        """The closer of the arguments is read; it leaves with the end of the call."""
        self._last = "value"
        self._owed += 1
        if self._owed < 1:
            return self._after_value
        self._owed = 1
        self.end = self.tape.pos
        self.status = DONE
        return None

    # Strings.

    def _open_string(self, quote: str, *, in_key: bool) -> State:
        self.tape.i += len(quote)
        self._quote, self._in_key = quote, in_key
        self._start = self.tape.pos
        if not in_key:
            self._arguments.begin_value()
            if quote != self.form.quote:
                self.note("double-quotes" if quote == '"' else "single-quotes")
            self._emit('"', "")
        return self._string

    def _string(self) -> State | None:
        tape, form = self.tape, self.form
        tape.i, marker = form.in_strings[self._quote].find(tape.text, tape.i, final=self._final)
        if not self._in_key:
            self._give(tape.pos, may_go_on=True)
        if marker is None:
            return None
        known = tape.pos < self.literal_until
        if marker == self._quote:
            closes = False if known else self._closes()
            if closes is None:
                return None
            if closes:
                return self._close_string()
            return self._inner_quote() if known else self._doubt(quote=True)
        if marker in (form.call_begin, form.call_end) and not known:
            real = form.string_ends.real(tape.text, tape.i, final=self._final)
            if real is None:
                return None
            if real:
                return self._doubt(quote=False)
        tape.i += len(marker)
        return self._string

    def _closes(self) -> bool | None:
        """Whether a legal continuation follows the quote at the cursor; None while the text does not say yet."""
        place = "key" if self._in_key else "top" if self._arguments.at_top else self._arguments.stack[-1]
        pattern, start = self.form.after_string[place], self.tape.i + len(self._quote)
        found = pattern.match(self.tape.text, start, partial=not self._final)
        if found is None:
            return self._final and pattern.match(self.tape.text, start, partial=True) is not None
        return None if found.partial else True

    def _inner_quote(self) -> State:
        """A quote that is one of the string's characters."""
        if self._quote == self.form.quote and not self._in_key:
            self._give(self.tape.pos)
            self.note("unescaped-quote")
            self.tape.i += len(self._quote)
            self._emit('\\"', '"')
        else:
            self.tape.i += len(self._quote)
        return self._string

    def _close_string(self) -> State | None:
        end = self.tape.pos
        self.tape.i += len(self._quote)
        if self._in_key:
            return self._close_key(self.tape.slice(self._start, end))
        self._give(end)
        self._emit('"', "")
        return self._value_done()

    def _close_key(self, raw: str) -> State | None:
        key = raw if self._quote == self.form.quote else self._decoded(raw)
        if self._quote != '"' or is_bare(key):
            self.note("quoted-key")
        return self._key_is(key)

    def _decoded(self, raw: str) -> str:
        """The meaning of a string in double or single quotes."""
        if raw.isprintable() and "\\" not in raw and '"' not in raw:
            return raw
        decoded = decode_string(raw)
        for name in decoded.repairs:
            if self._quote == '"' or name not in ("unescaped-quote", "invalid-escape"):
                self.note(name)
        return decoded.value

    def _end_in_string(self) -> State | None:
        """The arguments end at the marker at the cursor, in a string that nobody closed. Behind its text the arguments'
        closers may stand."""
        if self._in_key:
            self.note("missing-value")
            return self._break()
        end = self.tape.pos
        text = self.tape.slice(self.out, end)
        kept, closers = self._without_closers(text)
        self._give(self.out + kept)
        self._emit('"', "")
        self.note("missing-value-end")
        self._value_done()
        self._owed = closers
        return self._break()

    def _without_closers(self, text: str) -> tuple[int, int]:
        """How much of a string's text stands before the closers of the arguments at its end, and how many those are."""
        wanted = ["})" if opener == "{" else "]" for opener in self._arguments.stack]
        kept, found = len(text), 0
        for index in range(len(text) - 1, max(len(text) - _LONGEST_TAIL, 0) - 1, -1):
            if found < len(wanted) and text[index] in wanted[found]:
                kept, found = index, found + 1
            elif not text[index].isspace():
                break
        return kept, found

    # What lies ahead.

    def _doubt(self, *, quote: bool) -> State | None:
        """The quote, or the marker, at the cursor may be text, or real."""
        tape = self.tape
        self._doubts_quote = quote
        if self._rereading.is_used_up(tape.pos):
            return self._is_real()
        self._doubtful = tape.pos
        tape.i += 1
        return self._look_ahead

    def _look_ahead(self) -> State | None:
        tape, form = self.tape, self.form
        while True:
            tape.i, marker = form.in_strings[self._quote].find(tape.text, tape.i, final=self._final)
            if tape.pos - self._doubtful > self._max_held_chars:
                return self._was_text(self._doubtful + self._max_held_chars)
            if marker is None:
                return self._was_real(by_the_end=True) if self._final else None
            if marker == self._quote:
                closes = self._closes()
                if closes is None:
                    return None
                if closes:
                    return self._was_text(tape.pos)
                if not self._doubts_quote:
                    return self._was_real()
            elif marker in (form.call_begin, form.call_end) and self._doubts_quote:
                real = form.string_ends.real(tape.text, tape.i, final=self._final)
                if real is None:
                    return None
                if real:
                    return self._was_real()
            tape.i += len(marker)

    def _go_back(self) -> None:
        self._rereading.go_back(self.tape, self._doubtful)

    def _was_text(self, until: int) -> State:
        self._go_back()
        self.literal_until = until
        return self._string

    def _was_real(self, *, by_the_end: bool = False) -> State | None:
        self._go_back()
        self.in_doubt = by_the_end and not self._doubts_quote
        return self._is_real()

    def _is_real(self) -> State | None:
        return self._close_string() if self._doubts_quote else self._end_in_string()

    # What the states use.

    def _next_char(self) -> str | None:
        """The next character that is no white space, or the marker that begins there; None: more input."""
        tape = self.tape
        tape.i = _skip_space(tape.text, tape.i).end()
        char = tape.text[tape.i : tape.i + 1]
        if char != "<":
            return char or None
        index, marker = self.form.scalar_ends.find(tape.text, tape.i, final=False)
        if index > tape.i:
            return char
        return marker

    def _give(self, end: int, *, may_go_on: bool = False) -> None:
        """Let a string's text leave up to `end`. If it may go on there, what only the rest of it tells has to wait:
        brackets and the beginning of an escape."""
        if end <= self.out:
            return
        text = self.tape.slice(self.out, end)
        is_raw = self._quote == self.form.quote
        if may_go_on:
            text = text[: len(text) - len(_tail(text))]
            if not is_raw and (escape := _OPEN_ESCAPE.search(text)):
                text = text[: escape.start(1)]
        self.out += len(text)
        if text and not self._arguments.is_skipping:
            self._arguments.write_text(text if is_raw else self._decoded(text))

    def _close_container(self) -> None:
        self.out = self.tape.pos
        self._arguments.close()

    def _emit(self, json_text: str, shown: str | None = None) -> None:
        """Write JSON text, which stands for all that was read."""
        self.out = self.tape.pos
        self._arguments.write(json_text, shown)

    def _emit_string(self, value: str) -> None:
        self.out = self.tape.pos
        self._arguments.write_string(value)


def _tail(text: str) -> str:
    """The brackets at the end of a text, with the white space between and behind them."""
    tail = text[len(text.rstrip(_TAIL)) :].lstrip()
    return tail[-_LONGEST_TAIL:]
