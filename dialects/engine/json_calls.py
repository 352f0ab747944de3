"""The grammar of calls that are one JSON object between tags: `{"name": NAME, "arguments": {...}}`.

`CallReader` follows the outer object with the machine of `ArgumentReader` and lets only the inner one out. The name is
known as soon as its string closes, whatever the order of the keys. `JsonTagScanner` adds the tags: one object in them,
or by way of exception several, a list, or a fenced one.
"""

import re
from collections.abc import Callable
from typing import Any

import regex

from dialects.engine.argument_scanner import ArgumentScanner
from dialects.engine.arguments import ArgumentReader, Arguments, StringEnds, argument_events, skipping
from dialects.engine.json_text import decode_string, dump
from dialects.engine.markers import MarkerSet
from dialects.engine.plain_tags import RESULT_BEGIN, RESULT_END, PlainTagScanner
from dialects.engine.reader import BROKEN, DONE, TOO_DEEP, State
from dialects.engine.repair import repair
from dialects.engine.tape import Pieces, Tape
from dialects.events import Event

_skip_space = skipping(r"\s*+")
_FENCE = regex.compile(r"```\w{0,16}\s{0,16}(?=[\[{])")
_FOLLOWING = regex.compile(r"\s{0,64},?\s{0,64}\{")
_NAME = re.compile(r"[^\s<>{}\"'`]*\w[^\s<>{}\"'`]*")
"""What a tool may be called; a placeholder like `...` or `<name>` is none."""
ANOTHER = ","
"""Stands for the marker behind an object where none stands, but another object."""

__all__ = ["CallReader", "JsonTagScanner"]

ARGUMENT_KEYS = ("arguments", "parameters")
NAME_KEYS = ("name", "tool_name", "tool", "function")
_NOT_ARGUMENTS = {*ARGUMENT_KEYS, *NAME_KEYS, "id", "type"}


class CallReader(ArgumentReader):
    """Reads one call's object, from the cursor on.

    `named` is called with the name as soon as that is known; it returns the call's id if the arguments may be shown.
    """

    def __init__(self, tape: Tape, ends: StringEnds | None, named: Callable[[str], str | None]) -> None:
        super().__init__(tape, ends)
        self._named = named
        self._top = 2
        self._inside = False
        self.call_start = tape.pos
        self.call_end = tape.pos
        self.layout = " \t\r\n"
        """Characters that may stand behind the object."""
        self._has_name = False
        self._has_arguments = False
        self._arguments_done = False
        self._field = ""
        self._fields: set[str] = set()
        self._field_start = 0

    # The outer object.

    def _begin(self) -> State | None:
        following = super()._begin()
        self.call_start = self.start
        return following

    def _colon(self) -> State | None:
        if len(self._stack) > 1:
            return super()._colon()
        char = self._next_char()
        if not char:
            return None
        if char != ":":
            return self._break()
        raw = self.tape.slice(self._key_start, self.tape.pos).rstrip(" \t\n\r")
        self.tape.i += 1
        self._field = decode_string(raw[1:-1]).value
        field = ARGUMENT_KEYS[0] if self._field in ARGUMENT_KEYS else self._field
        if field in self._fields:
            self.note("duplicate-key")
        self._fields.add(field)
        return self._value

    def _value(self) -> State | None:
        if len(self._stack) == 1 and self._next_char():
            self._field_start = self.tape.pos
        return super()._value()

    def _open(self, char: str) -> State | None:
        if len(self._stack) == 1 and char == "{" and self._field in ARGUMENT_KEYS and not self._has_arguments:
            if self._field != ARGUMENT_KEYS[0]:
                self.note("arguments-alias")
            self._has_arguments = self._inside = True
            self.start = self.out = self.tape.pos
            self._key = None
        return super()._open(char)

    def _object_done(self) -> State | None:
        return self._after_value

    def _after_value(self) -> State | None:
        if len(self._stack) > 1:
            return super()._after_value()
        char = self._next_char()
        if char and char in ",}":
            self._field_done()
        return super()._after_value()

    def _field_done(self) -> None:
        if self._inside:
            self._confirm_end()
            self._inside = False
            self._arguments_done = True

    def _close(self, char: str, *, after_comma: bool = False) -> State | None:
        if len(self._stack) > 1:
            return super()._close(char, after_comma=after_comma)
        if char != "}":
            return self._break()
        if after_comma:
            self.note("trailing-comma")
        self.tape.i += 1
        self._stack.pop()
        self.call_end = self.tape.pos
        self.status = DONE
        return None

    def _string_done(self) -> State:
        if len(self._stack) == 1:
            self._quote_end = None
            if self._field == "name" and not self._has_name and not self._silent:
                raw = self.tape.slice(self._field_start, self.tape.pos)
                self._name_known(decode_string(raw[1:-1]).value)
        return self._after_value

    def _name_known(self, name: str) -> None:
        self._has_name = True
        if not name:
            return
        self.name = name
        call_id = self._named(name)
        if call_id is None:
            return
        self.call_id = call_id
        if self._arguments_done and self._events is not None:
            self._events.extend(argument_events("", self._written(), call_id, name))

    @property
    def in_run(self) -> bool:
        """Whether `read_run` may be asked."""
        return bool(self.call_id) and super().in_run

    def _emit(self, json_text: str, delta: str) -> None:
        if self.call_id:
            super()._emit(json_text, delta)
            return
        events, self._events = self._events, None
        super()._emit(json_text, delta)
        self._events = events

    # The end.

    def finish(self, end: int, events: list[Event] | None) -> Arguments:
        """The call's object ends at position `end`. Its name may become known only here."""
        self._events = events
        if self.status is TOO_DEEP:
            return self._too_deep()
        is_clean = self.status is DONE and not self.tape.slice(self.call_end, end).strip(self.layout)
        if is_clean and self._arguments_done and self._has_name:
            return self._finished()
        fixed = repair(self.tape.slice(self.call_start, end))
        if fixed.value is None:
            return self._too_deep()
        self.note(*fixed.repairs)
        return self._from_fields(fixed.value)

    @property
    def object_end(self) -> int:
        """Where the call's object ends."""
        return self.call_end

    def is_complete(self, end: int) -> bool:
        """Whether the text up to `end` is a complete object, even if it needs repair."""
        return self.status is DONE or repair(self.tape.slice(self.call_start, end)).complete

    def _too_deep(self) -> Arguments:
        return Arguments({}, "{}", tuple(self.repairs), too_deep=True)

    def _from_fields(self, fields: dict[str, Any]) -> Arguments:
        """Name and arguments from the value of the whole object."""
        was_shown = bool(self.call_id)
        inner = fields.get("function")
        if "name" not in fields and isinstance(inner, dict):
            self.note("nested-call")
            fields = inner
        if not self._has_name:
            key = next((key for key in NAME_KEYS if isinstance(fields.get(key), str)), None)
            if key is not None:
                if key != "name":
                    self.note("name-alias")
                self._name_known(fields[key])
        if not self._arguments_done:
            self._inside = True
            if not was_shown:
                self._pieces = Pieces()
            value = self._arguments_of(fields)
            if value is None:
                return self._too_deep()
            self._write_rest(value)
        return self._finished()

    def _arguments_of(self, fields: dict[str, Any]) -> dict[str, Any] | None:
        """The arguments in the value of the whole object; None: they nest too deep."""
        given = next((fields[key] for key in ARGUMENT_KEYS if key in fields), None)
        if "arguments" not in fields and given is not None:
            self.note("arguments-alias")
        if isinstance(given, dict):
            return given
        if given is None or given == "":
            rest = {key: value for key, value in fields.items() if key not in _NOT_ARGUMENTS}
            self.note("inline-arguments" if rest else "empty-arguments")
            return rest
        if isinstance(given, str):
            self.note("unwrapped-string")
        fixed = repair(given if isinstance(given, str) else dump(given))
        self.note(*fixed.repairs)
        return fixed.value


class JsonTagScanner(PlainTagScanner, ArgumentScanner):
    """The states of a call in tags: `block` before each of its objects, `args` in one."""

    reader: CallReader

    call_start = regex.compile(r"\s{0,64}(?:[\[{]|```)")

    def __init_subclass__(cls) -> None:
        """Make the marker sets out of the tags."""
        begin, end = re.escape(cls.call_begin), re.escape(cls.call_end)
        after_end = "|".join(map(re.escape, (*cls.special_tokens, *cls.result_begins)))
        tags = (cls.call_begin, cls.call_end)
        cls.closers = cls.call_ends = (cls.call_end,)
        cls.text_markers = MarkerSet([*tags, RESULT_BEGIN, RESULT_END, *cls.thinking_tags, *cls.special_tokens])
        cls.argument_ends = MarkerSet([*tags, *cls.result_begins, *cls.special_tokens])
        cls.broken_ends = MarkerSet(tags)
        cls.string_ends = StringEnds(
            rf"{end}\s{{0,64}}(?:{begin}\s{{0,64}}[\[{{`]|{after_end})|{begin}\s{{0,64}}\{{\s{{0,64}}[\"']",
            markers=tags,
            closers=(cls.call_end,),
        )

    def enter_call(self) -> State:
        """The state behind the opener."""
        self._closers = ""
        return self.block

    def block(self) -> State | None:
        """What may stand before an object: white space, the opening of a list, a fence, a comma."""
        tape = self.tape
        tape.i = _skip_space(tape.text, tape.i).end()
        char = tape.text[tape.i : tape.i + 1]
        if not char and not self.final:
            return None
        if char == "`":
            fence = _FENCE.match(tape.text, tape.i, partial=not self.final)
            if fence is not None:
                if fence.partial:
                    return None
                tape.i = fence.end()
                return self._tolerate("code-fence", closer="`")
        if char == "[":
            tape.i += 1
            return self._tolerate("call-list", closer="]")
        self.reader = CallReader(tape, self.string_ends, self._named)
        self.reader.layout += self._closers
        self._maybe_end = None
        return self.args

    def _tolerate(self, name: str, *, closer: str) -> State:
        self._closers += closer
        self.open_call.repairs.append(name)
        return self.block

    def _named(self, name: str) -> str | None:
        if not _NAME.fullmatch(name) and name not in (self.tools or ()):
            return None
        self.name_call(name)
        return self.open_call.id if self.open_call.shown else None

    def sink(self) -> list[Event] | None:
        return self.events

    def _end_of_complete(self) -> str | None:
        """Right behind a complete object another may follow in the same tags."""
        tape = self.tape
        if tape.pos == self.reader.call_end and self.open_call.name is not None:
            following = _FOLLOWING.match(tape.text, tape.i, partial=not self.final)
            if following is not None:
                return None if following.partial else ANOTHER
        return super()._end_of_complete()

    def end_at(self, marker: str) -> State:
        """The object ends at `marker`; where that is no tag, another object does."""
        if marker != ANOTHER:
            return super().end_at(marker)
        self.end_call(self.finish_arguments(self.tape.pos))
        self.begin_call("shared-block")
        self._may_be_prose = False
        self.tape.i = _FOLLOWING.match(self.tape.text, self.tape.i).end() - 1  # type: ignore[union-attr]
        return self.block

    def _stream_ended(self) -> State:
        reader = self.reader
        is_broken = reader.status is BROKEN and not self.tape.slice(reader.broken_at, self.tape.pos).startswith(
            self.special_tokens
        )
        if self._may_be_prose and self.open_call.name is None and is_broken:
            self.take_back_opener()
            return self.after_call()
        return super()._stream_ended()
