"""Arguments in a notation of their own, read while they stream and written as JSON.

    OBJECT = { [ KEY : VALUE ( , KEY : VALUE )* ] }
    VALUE  = QUOTE text QUOTE | number | true | false | null | [ [ VALUE ( , VALUE )* ] ] | OBJECT

KEY is bare, or a JSON string where it could not be (`write_key`). QUOTE is a token of the dialect; nothing is escaped
between two of them. The markers are data (`LiteralForm`).

A `LiteralReader` is lenient, one pass, and writes the JSON text as it goes. What is out is certain: a scalar leaves
when its end is known, a key with its value, and the text of a string as it arrives. Only brackets at the end of what
has arrived wait, for they belong to the arguments if a marker follows that ends a call whose string nobody closed.

Where does a string end? A quote that a legal continuation follows closes it. At another one, and at a marker that may
end the call, the reader looks ahead in silence:

- another quote is one of the string's characters if later one closes the string, before what may end the call;
- a marker was text if the next quote closes the string; else it was real, and so it is at the end of the stream.
"""

import re
from json.encoder import encode_basestring
from typing import Any, Final

from dialects.engine.arguments import Arguments, skipping
from dialects.engine.candidates import Rereading
from dialects.engine.coercion import is_text_only
from dialects.engine.json_text import MAX_DEPTH, NUMBER, SURROGATE, decode_string, dump, load, too_many_digits
from dialects.engine.literal_form import EQUALS, PLAIN_MEMBER, LiteralForm, is_bare
from dialects.engine.reader import DONE, GOING, TOO_DEEP, Reader, State
from dialects.engine.schema import property_schema
from dialects.engine.tape import Pieces, Tape
from dialects.events import Event, ToolArgDelta

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
_OPENERS = {"{": "}", "[": "]"}
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
        self._call_id, self._name = call_id, name
        self._written = Pieces()
        self._stack: list[str] = []
        """The openers of the containers that are open."""
        self._filled: list[bool] = []
        """Whether each of them has a member already."""
        self._owed = 0
        """How many closers the model has written that are not out yet."""
        self._keys: set[str] = set()
        """The top-level keys so far."""
        self._member_key: str | None = None
        """The key whose value is awaited; it leaves with that."""
        self._key: str | None = None
        """The top-level key whose value is being written."""
        self._skipping = False
        """Whether that is a key which was there before."""
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

    def finish(self, events: list[Event] | None) -> Arguments:
        """The arguments are over: write what is still missing, and return them."""
        self._events = events
        if self.status is TOO_DEEP:
            arguments = Arguments({}, "{}", tuple(self.repairs), too_deep=True)
        else:
            if len(self._stack) > self._owed:
                self.note("missing-closer")
            while self._stack:
                self._write_closer()
            text = self._written.text()
            value, has_duplicates = load(text)
            if has_duplicates:
                self.note("duplicate-key")
            arguments = Arguments(value, text, tuple(self.repairs))
        self.release()
        return arguments

    def release(self) -> None:
        super().release()
        self._written = Pieces()
        self._keys.clear()

    @property
    def in_run(self) -> bool:
        """Whether `read_run` may be asked: inside a string that leaves as it arrives."""
        return (
            self._state == self._string
            and self.status is GOING
            and self._events is not None
            and self._quote == self.form.quote
            and not self._in_key
            and not self._skipping
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
        return [self._piece(body)] if body else []

    # The grammar.

    def _begin(self) -> State | None:
        self._in_parentheses = self.tape.text.startswith("(", self.tape.i)
        if self._in_parentheses:
            self.note("call-parentheses")
        return self._open("{")

    def _open(self, opener: str) -> State | None:
        if len(self._stack) >= MAX_DEPTH:
            self.status = TOO_DEEP
            return None
        if self._stack:
            self._begin_value()
        self.tape.i += 1
        self._emit(opener)
        self._stack.append(opener)
        self._filled.append(False)
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
            self.note("nested-arguments" if len(self._stack) == 1 and not self._keys else "stray-character")
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
        self._member_key = key
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
        if char in _OPENERS:
            return self._open(char)
        is_closer = char in _CLOSERS and (char != ")" or self._in_parentheses)
        if self._stack[-1] == "{" and (is_closer or char == "," or char in self.form.ends):
            self._no_value()
            return self._after_value
        if is_closer:
            return self._close(char)
        if char == ",":
            return self._comma()
        if char in self.form.ends:
            return self._break()
        self._start = self.tape.pos
        if self._stack[-1] == "[" and self._stack[-2] == "{":
            member = PLAIN_MEMBER.match(self.tape.text, self.tape.i, partial=not self._final)
            if member is not None and member.partial:
                return None
            if member is not None:
                self.note("missing-closer")
                self._write_closer()
                return self._member
        self._has_comma = False
        return self._scalar

    def _scalar(self) -> State | None:
        tape, form = self.tape, self.form
        ends = form.scalar_ends_in_parentheses if self._in_parentheses else form.scalar_ends
        tape.i, marker = ends.find(tape.text, tape.i, final=False)
        if marker is None:
            return None
        raw = "" if self._has_comma else tape.slice(self._start, tape.pos).strip()
        is_known = raw in _LITERALS or NUMBER.fullmatch(raw) is not None
        if marker == "," and self._stack[-1] == "{" and not is_known:
            ends_here = form.after_string["{"].match(tape.text, tape.i, partial=not self._final)
            if ends_here is None:
                self._has_comma = True
                tape.i += 1
                return self._scalar
            if ends_here.partial:
                return None
        raw = tape.slice(self._start, tape.pos).strip()
        self._begin_value()
        if is_known and marker != form.quote:
            self._write_known(raw)
        else:
            self.note("bare-value")
            self._write_string(raw)
        if marker == form.quote:
            tape.i += len(marker)
        return self._value_done()

    def _write_known(self, raw: str) -> None:
        text, name = _LITERALS.get(raw, (raw, None))
        if text != "null" and self._is_text_only():
            self.note("bare-value")
            self._write_string(raw)
            return
        if name:
            self.note(name)
        if raw not in _LITERALS and too_many_digits(raw) and raw.lstrip("-").isdigit():
            self.note("number-too-long")
            self._write_string(raw)
            return
        self._emit(text)

    def _is_text_only(self) -> bool:
        """Whether the tool wants nothing but a string here."""
        if len(self._stack) > 1 or self._key is None:
            return False
        return is_text_only(property_schema(self._parameters, self._key), self._parameters)

    def _value_done(self) -> State:
        self.out = self.tape.pos
        self._last = "value"
        self._at_top_again()
        return self._after_value

    def _at_top_again(self) -> None:
        if len(self._stack) == 1:
            self._key = None
            self._skipping = False

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
        if self._stack[-1] == "{":
            member = PLAIN_MEMBER.match(tape.text, tape.i, partial=not self._final)
            if member is not None:
                if member.partial:
                    return None
                self.note("missing-comma")
                return self._member
        elif char in _OPENERS or char in ("'", '"', self.form.quote):
            self.note("missing-comma")
            return self._value
        self.note("stray-character")
        return self._stray

    def _stray(self) -> State | None:
        """Text that means nothing, up to what does."""
        tape, form = self.tape, self.form
        ends = form.scalar_ends_in_parentheses if self._in_parentheses else form.scalar_ends
        tape.i, marker = ends.find(tape.text, tape.i, final=False)
        if marker is None:
            return None
        if marker == form.quote:
            tape.i += len(marker)
            return self._stray
        return self._after_value

    def _comma(self) -> State:
        self.tape.i += 1
        if self._last != "value":
            self.note("extra-comma")
        self._last = "comma"
        return self._member if self._stack[-1] == "{" else self._value

    def _close(self, char: str) -> State | None:
        self.tape.i += 1
        opener = _CLOSERS[char]
        if self._last == "comma":
            self.note("trailing-comma")
        if opener not in self._stack:
            self.note("extra-closer")
            return self._after_value
        depth = 1 if char == ")" else len(self._stack) - self._stack[::-1].index(opener)
        if depth < len(self._stack):
            self.note("missing-closer")
        while len(self._stack) > depth:
            self._write_closer()
        if depth == 1:
            return self._closed()
        self._write_closer()
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
            self._begin_value()
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
        place = "key" if self._in_key else "top" if len(self._stack) == 1 else self._stack[-1]
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
        wanted = ["})" if opener == "{" else "]" for opener in self._stack]
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

    # What leaves.

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

    def _begin_value(self) -> None:
        """Write what stands between values: a comma, and a key with its colon."""
        separator = "," if self._filled[-1] else ""
        at_top = len(self._stack) == 1
        key = self._clean(self._member_key or "") if self._stack[-1] == "{" else None
        if at_top and key in self._keys:
            self.note("duplicate-key")
            self._skipping = True
            return
        self._filled[-1] = True
        if key is not None:
            separator += dump(key) + ":"
        self._emit(separator)
        if at_top and key is not None:
            self._keys.add(key)
            self._key = key

    def _write_closer(self) -> None:
        opener = self._stack.pop()
        self._filled.pop()
        self._emit(_OPENERS[opener])
        self._at_top_again()

    def _write_string(self, value: str) -> None:
        value = self._clean(value)
        self._emit(dump(value), value if len(self._stack) == 1 else None)

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
        if text and not self._skipping:
            piece = self._piece(text if is_raw else self._decoded(text))
            if self._events is not None:
                self._events.append(piece)

    def _piece(self, text: str) -> ToolArgDelta:
        """The event for the next piece of a string's text, which is thereby written."""
        text = self._clean(text)
        json_text = encode_basestring(text)[1:-1]
        self._written.append(json_text)
        return ToolArgDelta(
            self._call_id, self._name, self._key, text if len(self._stack) == 1 else json_text, json_text
        )

    def _clean(self, text: str) -> str:
        if text.isascii() or not SURROGATE.search(text):
            return text
        self.note("lone-surrogate")
        return SURROGATE.sub("\ufffd", text)

    def _emit(self, json_text: str, delta: str | None = None) -> None:
        """Write JSON text; at the top level `delta` is what a person would read."""
        self.out = self.tape.pos
        if self._skipping or not json_text:
            return
        self._written.append(json_text)
        if self._events is not None:
            shown = json_text if delta is None or len(self._stack) > 1 else delta
            self._events.append(
                ToolArgDelta(self._call_id, self._name, self._key, "" if self._key is None else shown, json_text)
            )


def _tail(text: str) -> str:
    """The brackets at the end of a text, with the white space between and behind them."""
    tail = text[len(text.rstrip(_TAIL)) :].lstrip()
    return tail[-_LONGEST_TAIL:]
