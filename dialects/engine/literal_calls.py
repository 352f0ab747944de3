"""The grammar of calls whose arguments are literals in a notation of their own.

    CALL_BEGIN PREFIX NAME { KEY : VALUE , ... } CALL_END

`LiteralForm` (in `literal_form.py`) holds the markers. What is read beside that: no prefix before a tool's name, a path
before the name, a Python call (`NAME(KEY=VALUE)`), a JSON object that holds the name, several calls in one block.
"""

import re
from abc import abstractmethod
from typing import ClassVar

from dialects.engine.arguments import Arguments
from dialects.engine.json_text import dump
from dialects.engine.literal_form import LiteralForm
from dialects.engine.literals import LiteralReader
from dialects.engine.reader import DONE, GOING, TOO_DEEP
from dialects.engine.scanner import RunReader, Scanner, State

__all__ = ["LiteralCallScanner"]

_BRACKETS = "}]) \t\r\n,"
_NEAR = 400
"""How far behind complete arguments the call's end marker may stand."""


class LiteralCallScanner(Scanner):
    """Reads such calls in these states; the dialect reads the rest.

    `header` (the name) -> `args` -> `tail` (up to the call's end) -> `after_call`, or `malformed` for what is no call.
    """

    form: ClassVar[LiteralForm]

    def _reset(self) -> None:
        self.reader = LiteralReader(self.form, max_held_chars=self.max_held_chars)
        self.header_start = 0
        self.skipped_last = ""
        """The last character of what was skipped of a call that is too large."""
        super()._reset()

    @abstractmethod
    def after_call(self) -> State:
        """The state that follows a call."""

    def call_begin(self, opener: str, *repairs: str) -> State:
        """A call begins at the cursor, with what opens it."""
        self.begin_call(*repairs)
        self.tape.i += len(opener)
        self.header_start = self.tape.pos
        return self.header

    def header(self) -> State | None:
        tape, form = self.tape, self.form
        tape.i, marker = form.header_ends.find(tape.text, tape.i, final=self.final)
        if marker is None:
            return self.cut_off() if self.final else None
        header = tape.slice(self.header_start, tape.pos)
        if marker == "{" and not header.replace(form.prefix, "").strip():
            return self.begin_arguments()
        named = form.header.fullmatch(header)
        name = "" if named is None else self.known_name(named["name"])
        if named is None or not (named["prefix"] or name in (self.tools or (name if marker == "{" else ()))):
            return self.malformed
        if marker not in ("{", "(", form.call_end):
            return self.malformed
        call = self.open_call
        if not named["prefix"]:
            call.repairs.append("missing-call-prefix")
        if named["prefix"].count(":") > 1:
            call.repairs.append("stray-marker")
        if name != named["name"]:
            call.repairs.append("resolved-name")
        self.name_call(name)
        if marker != form.call_end:
            return self.begin_arguments()
        tape.i += len(marker)
        self.end_call(self.write_arguments(Arguments({}, "{}", ("empty-arguments",))))
        return self.after_call()

    def known_name(self, written: str) -> str:
        """A tool's name, as it is or behind a path; else the name without what cannot be part of it."""
        name, tools = written.replace(self.form.quote, "").rstrip(":"), self.tools or {}
        if name in tools:
            return name
        ends = (name[separator.end() :] for separator in re.finditer(r"[.:/]", name))
        return next((end for end in ends if end in tools), name)

    def begin_arguments(self) -> State:
        """The arguments begin at the cursor."""
        call = self.open_call
        name = call.name or ""
        self.reader.begin(self.tape, self.parameters_of(name), call_id=call.id, name=name)
        return self.args

    def args(self) -> State | None:
        status = self.reader.read(self.sink(), final=self.final)
        if status is GOING:
            return self.cut_off() if self.final else None
        if status is DONE:
            return self.tail
        if status is TOO_DEEP:
            return self.malformed
        return self.end_at_marker()

    def end_at_marker(self) -> State:
        """The arguments end at the marker at the cursor; behind the call's own, or before the next call."""
        tape = self.tape
        if self.reader.in_doubt and self.truncated:
            return self.cut_off()
        if tape.text.startswith(self.form.call_end, tape.i):
            tape.i += len(self.form.call_end)
        elif tape.text.startswith(self.form.call_begin, tape.i):
            self.open_call.repairs.append("missing-call-end")
        else:
            self.drop_call("unfinished")
            return self.after_call()
        return self.finish_call()

    def tail(self) -> State | None:
        """Behind complete arguments: the call's end, or another call in the same block, or what should not be there."""
        tape, end = self.tape, self.reader.end
        tape.i, marker = self.form.tail_ends.find(tape.text, tape.i, final=False)
        is_far = tape.pos - end > _NEAR
        if marker is None and not (self.final or is_far):
            return None
        is_cut = marker is None and tape.text.startswith("<", tape.i)
        between = tape.slice(end, min(tape.pos, end + _NEAR)).strip()
        if marker == self.form.prefix and not is_far:
            following = self.form.call_start.match(tape.text, tape.i, partial=not self.final)
            if following is not None and following.partial:
                return None
            if following is None or between.strip(_BRACKETS):
                tape.i += len(marker)
                return self.tail
            self.finish_call()
            return self.call_begin("", "shared-block")
        if between and not is_far and (marker == self.form.call_end or not between.strip(_BRACKETS)):
            self.reader.note("trailing-text" if between.strip(_BRACKETS) else "extra-closer")
        elif between or is_far:
            tape.seek(end)
            is_cut = False
        if marker == self.form.call_end and not is_far:
            return self.end_at_marker()
        if marker is None and self.truncated and not is_far:
            return self.cut_off()
        if is_cut:
            tape.i = len(tape.text)
        self.open_call.repairs.append("missing-call-end")
        return self.finish_call()

    def finish_call(self) -> State:
        """The open call is over, the cursor behind it."""
        arguments = self.reader.finish(self.sink())
        self.end_call(self.named_inside(arguments) if self.open_call.name is None else arguments)
        return self.after_call()

    def named_inside(self, arguments: Arguments) -> Arguments:
        """The arguments of a call that is a JSON object with its name in it."""
        value = arguments.value
        name, inner = value.get("name"), value.get("arguments", value.get("parameters", {}))
        if not isinstance(name, str) or not name or not isinstance(inner, dict) or arguments.too_deep:
            return arguments
        self.name_call(name)
        return self.write_arguments(Arguments(inner, dump(inner), ("call-object", *arguments.repairs)))

    def malformed(self) -> State | None:
        """The rest of what is no call."""
        tape = self.tape
        tape.i, marker = self.form.call_ends.find(tape.text, tape.i, final=self.final)
        if marker is None and not self.final:
            return None
        tape.i += len(marker) if marker == self.form.call_end else 0
        self.drop_call("malformed")
        return self.after_call()

    def after_too_large(self) -> State:
        self.skipped_last = ""
        return self.skip

    def skip(self) -> State | None:
        """The rest of a call that was too large."""
        tape, start = self.tape, self.tape.i
        tape.i, marker = self.form.call_markers.find(tape.text, start, final=self.final)
        self.skipped_last = tape.text[start : tape.i].rstrip()[-1:] or self.skipped_last
        if marker is None:
            return None
        real = self.form.string_ends.real(tape.text, tape.i, final=self.final)
        if marker == self.form.call_end and self.skipped_last in ("}", ")"):
            real = True
        if real is None:
            return None
        tape.i += 0 if real and marker == self.form.call_begin else len(marker)
        return self.after_call() if real else self.skip

    def _forget_call(self) -> None:
        super()._forget_call()
        self.reader.release()

    @property
    def released(self) -> int:
        if self.call is not None and self.call.shown and self.state in (self.args, self.tail):
            return self.reader.out
        return super().released

    def run_reader(self) -> RunReader | None:
        return self.reader if self.state == self.args and self.reader.in_run else None
