"""Blocks of calls that are Python: one call, a list of them, or one a line.

A block's states are `block` (before and between its calls), `args` (in one) and `skip` (in one that is too large).
What stands around a call, a `print(...)`, the brackets of a list, is markup. A call is over for good when the next one
or the block's end follows, and its `raw_block` reaches to there; so the raw blocks of all calls together are the block.

A call that is broken ends where the block does, or where what is plainly another call begins.
"""

from abc import abstractmethod
from typing import ClassVar

import regex

from dialects.engine.arguments import Arguments, Skip, skipping
from dialects.engine.candidates import Candidates
from dialects.engine.json_text import MAX_DEPTH
from dialects.engine.plain_tags import PlainTagScanner
from dialects.engine.python_calls import Layout, PythonCallReader
from dialects.engine.python_ends import StringEnd
from dialects.engine.python_literals import NAME
from dialects.engine.reader import CANDIDATE, DONE, GOING
from dialects.engine.scanner import RunReader, State
from dialects.engine.tape import Tape

__all__ = ["PythonBlockScanner", "statement", "swallowed_call"]

_CLOSER = {"[": "]", "(": ")"}
_skip_line = skipping(r"[^\n`<]*+")
_skip_item = skipping(r"[^\n`<,]*+")
_skip_to_bracket = skipping(r"[^\n`<,()\[\]]*+")
_assigned_list = regex.compile(rf"{NAME}\s{{0,16}}+=\s{{0,16}}+(?=\[)")
_TOOL = r"\w[\w.:/$-]{0,255}+"


def statement(namespace: str) -> str:
    """The source of a pattern for what begins a call, up to its `(`: the tool's name, in a namespace or not, behind
    what an assignment or a `print(` puts before it."""
    return (
        rf"(?:(?P<variable>{NAME})\s{{0,16}}+=\s{{0,16}}+)?(?:await\s{{1,16}}+)?(?P<print>print\s{{0,16}}+\(\s{{0,16}}+)?"
        rf"(?:(?P<namespace>{namespace}\s{{0,16}}+\.\s{{0,16}}+)|(?!print\s{{0,16}}+\())(?P<name>{_TOOL})\s{{0,16}}+\("
    )


def swallowed_call(namespace: str) -> str:
    """The source of a pattern for a call in a namespace behind another one, in a string that was never closed."""
    return (
        rf"(?:\)\s{{0,64}}+,|\n)\s{{0,64}}+(?P<call>(?:print\s{{0,16}}+\(\s{{0,16}}+)?{namespace}\s{{0,16}}+\."
        rf"\s{{0,16}}+{_TOOL}\s{{0,16}}+\()"
    )


class PythonBlockScanner(PlainTagScanner):
    """The states of a block, from `enter_call` on. The cursor stands behind its opener then, and a call is open."""

    statement: ClassVar["regex.Pattern[str]"]
    string_end: ClassVar[StringEnd]

    reader: PythonCallReader

    @abstractmethod
    def read_block_end(self) -> bool | None:
        """Whether the block is over at the cursor; None: more input. The cursor moves behind its closer, and where that
        is missing, the open call says so."""

    def _reset(self) -> None:
        self.reader = PythonCallReader(Tape())
        self._candidates = Candidates(max_held_chars=self.max_held_chars)
        self._layout = Layout()
        self._open_brackets = ""
        """What closes the brackets around the calls that are open."""
        self._arguments: Arguments | None = None
        """Those of the open call, once it is complete."""
        self._is_separated = False
        """Whether a comma says that a complete call is over."""
        self._is_line_start = True
        self._code = False
        """Whether anything that is no call stands where the open call begins."""
        self._pass_by: Skip | None = None
        """What passes over other code, as far as it goes."""
        self._is_broken = False
        """Whether the open call is none: it ends with the block, or where another begins."""
        self._broken_at = -1
        """Where it broke, if it could end there."""
        super()._reset()

    def _forget_call(self) -> None:
        super()._forget_call()
        self._arguments = None
        self._code = self._is_broken = False
        self._broken_at = -1
        self._candidates.forget()

    # States.

    def enter_call(self) -> State:
        """The state behind the opener of a block."""
        self._open_brackets = ""
        self._layout = Layout()
        self._pass_by = None
        self._is_line_start = True
        return self.block

    def block(self) -> State | None:
        """Before a call, or behind one."""
        tape = self.tape
        if self._pass_by is not None:
            tape.i = self._pass_by(tape.text, tape.i).end()
            if tape.i < len(tape.text):
                self._pass_by = None
        start = tape.i
        char = self._layout.skip(tape, final=self.final)
        self._is_line_start = self._is_line_start or "\n" in tape.text[start : tape.i]
        if not char:
            return self._stream_ended() if self.final else None
        if char in ",;":
            self._is_separated = True
            tape.i += 1
            return self.block
        could_end = tape.pos == self._broken_at
        is_over = self.read_block_end()
        if is_over is None:
            return None
        if is_over:
            return self._end_block(could_end=could_end)
        begun = self.statement.match(tape.text, tape.i, partial=not self.final)
        if begun is not None and begun.partial:
            return None
        if begun is not None and self._is_call(begun):
            return self._begin_statement(begun, could_end=could_end)
        assigned = _assigned_list.match(tape.text, tape.i, partial=not self.final) if self._is_line_start else None
        if assigned is not None and assigned.partial:
            return None
        if assigned is not None and not self._is_broken:
            return self._assignment(assigned.end() - tape.i)
        if char in "[(" and not self._is_broken and len(self._open_brackets) < MAX_DEPTH:
            self._open_brackets += _CLOSER[char]
            tape.i += 1
            return self.block
        if char in ")]" and not self._is_broken:
            return self._bracket(char)
        return self._other_code()

    def args(self) -> State | None:
        """The arguments of a call."""
        status = self._candidates.read(self.reader, self.sink(), final=self.final)
        if status is GOING:
            return self._stream_ended_inside() if self.final else None
        if status is CANDIDATE:
            return self._unclosed_string()
        if status is DONE:
            self._complete()
        else:
            self._give_up()
        return self.block

    def skip(self) -> State | None:
        """The rest of a call that was too large, and of the block if that is over."""
        reader = self.reader
        status = reader.read(None, final=self.final)
        while status is CANDIDATE and not reader.is_at_next_call:
            reader.literal_until = self.tape.pos + 1
            status = reader.read(None, final=self.final)
        if status is GOING and not self.final:
            return None
        return self.outside if status is CANDIDATE else self.block

    def after_too_large(self) -> State:
        self.reader.silence()
        if self.state != self.args:
            self.reader.status = DONE
            self._code = True
            self._is_line_start = self._is_separated = False
        return self.skip

    # Between calls.

    def _is_call(self, begun: "regex.Match[str]") -> bool:
        """Whether a statement is a call of a tool. Where the open call is broken, it may be a part of that."""
        is_plain = bool(begun["namespace"]) or begun["name"] in (self.tools or ())
        if not self._is_broken:
            return self._is_line_start or not self._code or self._is_separated
        return is_plain or (self._is_line_start and self.tools is None and not begun["variable"])

    def _begin_statement(self, begun: "regex.Match[str]", *, could_end: bool) -> State:
        tape = self.tape
        if self.call is not None and self.call.name is not None:
            is_wrapper = could_end and not self.reader.has_arguments
            self._open_brackets += ")" if is_wrapper else ""
            self._end_named(could_end=could_end and not is_wrapper)
        if self.call is None:
            self.begin_call()
            return self.block
        repairs = self.open_call.repairs
        if self._code or begun["variable"]:
            repairs.append("surrounding-code")
        if begun["print"]:
            self._open_brackets += ")"
        name = begun["name"]
        if self.tools is not None and name not in self.tools and name.rpartition(".")[2] in self.tools:
            name = name.rpartition(".")[2]
            repairs.append("resolved-name")
        tape.i = begun.end()
        self.name_call(name)
        schema, call_id = self.parameters_of(name), self.open_call.id
        self.reader.release()
        self.reader = PythonCallReader(
            tape, self.string_end, call_id=call_id, name=name, schema=schema, tools=self.tools or ()
        )
        self._is_line_start = self._is_separated = False
        return self.args

    def _assignment(self, length: int) -> State:
        """A list of calls is assigned to a variable."""
        self.tape.i += length
        self._code = True
        if self._arguments is not None:
            self.note("surrounding-code")
        return self.block

    def _bracket(self, char: str) -> State:
        """A closing bracket around calls."""
        self.tape.i += 1
        at = self._open_brackets.rfind(char)
        if at < 0:
            self.note("extra-closer")
        elif at < len(self._open_brackets) - 1:
            self.note("missing-closer")
        self._open_brackets = self._open_brackets[: max(at, 0)]
        return self.block

    def _other_code(self) -> State:
        """Something that is no call: its line is passed over, or behind a call's name the part up to the next comma,
        and behind its `)` up to a bracket."""
        tape = self.tape
        is_named = self.call is not None and self.call.name is not None
        tape.i += 1
        self._pass_by = _skip_line if not is_named else _skip_item if self._is_broken else _skip_to_bracket
        self._code = True
        self._is_line_start = self._is_separated = False
        if self._arguments is not None:
            self.note("surrounding-code")
        return self.block

    def note(self, name: str) -> None:
        """Name a tolerance that the open call needed."""
        if self.call is not None and name not in self.call.repairs:
            self.call.repairs.append(name)

    # In a call.

    def _complete(self) -> None:
        self._is_broken = False
        self._arguments = self.reader.finish()
        self.reader.release()

    def _unclosed_string(self) -> State:
        """The call ends at the cursor, in a string that was never closed."""
        if self.truncated:
            return self.cut_off()
        self._is_broken = True
        if not self._find_swallowed() and self.reader.close(self.sink()):
            self._complete()
        return self.block

    def _give_up(self) -> None:
        """The call is broken, unless it could end where it broke, and does."""
        self._is_broken = True
        if not self.reader.in_string:
            self._broken_at = self.tape.pos
        else:
            self._find_swallowed()

    def _find_swallowed(self) -> bool:
        """Go back to another call that a string swallowed because it was never closed, if there is one."""
        tape, start = self.tape, self.reader.string_start
        rereading = self._candidates.rereading
        if rereading.is_used_up(tape.pos):
            return False
        found = self.string_end.swallowed.search(tape.slice(start, tape.pos))
        if found is None:
            return False
        rereading.go_back(tape, start)
        tape.i += found.start("call")
        self._is_line_start = True
        return True

    # Ends.

    def _end_block(self, *, could_end: bool) -> State:
        """The block is over, the cursor stands behind it."""
        call = self.call
        if call is not None and call.name is not None:
            self._end_named(could_end=could_end, at_block_end=True)
        elif self._is_no_call():
            if self._may_be_prose:
                self.take_back_opener()
                return self.home()
            self.drop_call("malformed")
        else:
            self._end_nothing()
        return self.after_call()

    def _end_named(self, *, could_end: bool, at_block_end: bool = False) -> None:
        """Something ends the open call, which has a name."""
        if could_end and self.reader.close(self.sink()):
            self._complete()
        if self._open_brackets and at_block_end:
            self.note("missing-closer")
        if self._arguments is not None:
            self.end_call(self._arguments)
        else:
            self.drop_call("malformed")

    def _is_no_call(self) -> bool:
        """Whether the open call has no name, and something else stands in the block."""
        return self.call is not None and self.call.name is None and (self._code or self._layout.has_comments)

    def _end_nothing(self) -> None:
        """No call was made."""
        if self.call is not None:
            self._forget_call()
        self.touch_markup()

    def _stream_ended(self) -> State:
        """The stream ends between calls."""
        call = self.call
        if call is None or (call.name is None and not self._is_no_call()):
            self._end_nothing()
        elif self._arguments is None or (self.truncated and not self._is_separated):
            self.drop_call("unfinished")
        else:
            if not self._is_separated:
                self.note("missing-call-end")
            self.end_call(self._arguments)
        return self.after_call()

    def _stream_ended_inside(self) -> State:
        """The stream ends in the arguments, perhaps in a string that was never closed and swallowed another call."""
        if self.truncated or not self.reader.in_string or not self._find_swallowed():
            return self.cut_off()
        self._is_broken = True
        return self.block

    # What leaves.

    @property
    def released(self) -> int:
        """Up to which position everything is out."""
        if self.call is None or not self.call.shown:
            return super().released
        return self.reader.out if self.state == self.args else self.tape.pos

    def run_reader(self) -> RunReader | None:
        is_reading = self.state == self.args and self._candidates.ahead is None
        return self.reader if is_reading and self.reader.in_run else None
