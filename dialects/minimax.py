"""MiniMax: the dialect of MiniMax-M2 and MiniMax-M3 (M1 has another).

M2 writes function and parameter tags in a section of calls, which may be missing:

    <minimax:tool_call>
    ( <invoke name="NAME"> ( <parameter name="KEY"> VALUE </parameter> )* </invoke> )+
    </minimax:tool_call>

A VALUE is plain text where the tool's schema allows only strings, white space and all, and JSON elsewhere. M3 writes a
mark before every tag, here `*`, and a tag for each argument; the members of an object and the items of an array are
elements in it:

    *<tool_call>
    ( *<invoke name="NAME"> ( *<KEY> VALUE *</KEY> )* *</invoke> )+
    *</tool_call>

The mark is a special token, so M3's tags count wherever they stand. A call has no id. A model's turns begin with a
token and the role; the in-band form has `Human:` and `Assistant:` behind an empty line, the system's text before all of
them, and the results of a batch between `<function_results>` and `</function_results>` in the next human turn; the
family's templates write them as `<response>`. Thinking comes first, in `<think>` (M2), `<mm:think>` (M3) or
`<thinking>`; the prompt may have opened it.

Source: the chat templates of MiniMax-M2, M2.5 and M3, and the in-band form of the reference renderer.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

import regex
from msgspec.structs import replace

from dialects.engine.arguments import skipping
from dialects.engine.element_values import element_value
from dialects.engine.invoke_tags import InvokeTags, PlainInvokeScanner, read_attributes
from dialects.engine.markers import MarkerSet, begun
from dialects.engine.scanner import State
from dialects.engine.text_arguments import ReadValue
from dialects.engine.text_turns import (
    ASSISTANT,
    FUNCTION_RESULT,
    HUMAN,
    InvokeDialect,
    TextTurns,
    function_results,
    text_transcript,
    thinking_begins,
    thinking_ends,
)
from dialects.engine.turns import Turns
from dialects.engine.values import ValueEnds, ValueReader
from dialects.messages import ToolResult

__all__ = ["MINIMAX", "MiniMax", "MiniMaxScanner"]

SECTION_BEGIN, SECTION_END = "<minimax:tool_call>", "</minimax:tool_call>"
RESULT_BEGINS, RESULT_ENDS = ("<function_results>", "<response>"), ("</function_results>", "</response>")
MARK = "]<]minimax[>["
TURN_BEGIN, TURN_END, TEXT_BEGIN = "]~b]", "[e~[", "]~!b["
SPECIAL_TOKENS = (TURN_END, TEXT_BEGIN, MARK)
THINK_BEGINS, THINK_ENDS = thinking_begins("mm:"), thinking_ends("mm:")
CONTROL_TOKENS = (
    HUMAN,
    ASSISTANT,
    TURN_BEGIN,
    *SPECIAL_TOKENS,
    SECTION_BEGIN,
    SECTION_END,
    "<invoke",
    "</invoke>",
    "<parameter",
    "</parameter>",
    *RESULT_BEGINS,
    *RESULT_ENDS,
    *THINK_BEGINS,
    *THINK_ENDS,
)
_ROLES = ("system", "developer", "root", "user", "tool", "ai")

_MARK = re.escape(MARK)
_CALL_TAG = r"(?:invoke|tool_call)[\s>]"
_TAG = regex.compile(r"<(?P<slash>/?)(?P<name>[^<>\s/=]{1,256}+)(?P<rest>[^<>]{0,1024}+)>")
_CALL_MARKS = MarkerSet([MARK, TURN_BEGIN, TURN_END])
ELEMENT_ENDS = ValueEnds(
    MarkerSet([MARK]),
    closer=rf"{_MARK}</(?!{_CALL_TAG})(?P<name>[^<>\s/]{{1,256}}+)>",
    continuation=rf"\s{{0,64}}(?:{_MARK}|{re.escape(TURN_END)}|{re.escape(TURN_BEGIN)})",
    opening=rf"{_MARK}<(?!/|{_CALL_TAG})(?P<key>[^<>\s/=]{{1,256}}+)[^<>]{{0,256}}+>",
    others=rf"{_MARK}</?{_CALL_TAG}",
    has_elements=True,
)
_skip_space = skipping(r"\s*+")


class MiniMaxScanner(TextTurns, PlainInvokeScanner):
    """Reads it. M2's calls are those of `PlainInvokeScanner`: `section` (around calls), `invoke` (an opening tag),
    `pairs` (between parameters), `parameter` (an opening tag), `value`. An M3 call begins in text, at a mark, and has
    `member` (a marked tag) in the place of `parameter`."""

    tags = InvokeTags(sections=("tool_call", "tool_calls", "function_calls"), turn_ends=(TURN_BEGIN, TURN_END))
    think_begins, think_ends = THINK_BEGINS, THINK_ENDS
    thinking_tags = (*THINK_BEGINS, *THINK_ENDS)
    special_tokens = SPECIAL_TOKENS
    namespaces = ("minimax:",)
    layout_tokens = (MARK,)
    result_begins, result_ends = RESULT_BEGINS, RESULT_ENDS
    assistant_openers = (ASSISTANT, f"{TURN_BEGIN}ai")
    turn_openers = (HUMAN, ASSISTANT, TURN_BEGIN)
    turn_header_pattern = regex.compile(
        rf"\]~b\](?P<role>{'|'.join(_ROLES)})(?:\n|(?=[^\n]))|{TextTurns.turn_header_pattern.pattern}"
    )
    cut_turn_header = re.compile(rf"(?:\]~b\]{begun(_ROLES)}|\n\n(?:Human|Assistant):)\Z")
    roles: ClassVar[Mapping[str, str | None]] = {"Assistant": None, "ai": None, "tool": "fabricated-result"}

    def _reset(self) -> None:
        self._is_marked = False
        """Whether the open call is one of marked tags."""
        self._values = [
            ValueReader(ends, max_held_chars=self.max_held_chars) for ends in (self.value_ends, ELEMENT_ENDS)
        ]
        super()._reset()

    def begin_pairs(self, name: str) -> State:
        self.values = self._values[self._is_marked]
        return super().begin_pairs(name)

    @property
    def reads(self) -> ReadValue:
        return partial(element_value, mark=MARK) if self._is_marked else super().reads

    @property
    def element_mark(self) -> str:
        return MARK if self._is_marked else ""

    def enter_call(self) -> State:
        self._is_marked = False
        return super().enter_call()

    # Marked tags.

    def _special_token(self, marker: str) -> State | None:
        return self._marked_tag() if marker == MARK else super()._special_token(marker)

    def _marked_tag(self) -> State | None:
        """A marked tag outside a call opens one, or is left out."""
        tape = self.tape
        tag = _TAG.match(tape.text, tape.i + len(MARK), partial=not self.final)
        if tag is None:
            return super()._special_token(MARK)
        if tag.partial:
            return None
        if tag["slash"] or tag["name"] != "invoke":
            self.pass_markup(MARK + tag.group())
            return self.section
        self.begin_call()
        tape.i += len(MARK + tag.group())
        self._is_marked = True
        return self.begin_pairs(read_attributes(tag["rest"])[0] or "")

    def pairs(self) -> State | None:
        if not self._is_marked:
            return super().pairs()
        tape = self.tape
        tape.i = _skip_space(tape.text, tape.i).end()
        index, marker = _CALL_MARKS.find(tape.text, tape.i)
        if index > tape.i:
            self.arguments.note("surrounding-text")
            tape.i = index
        if marker is None:
            return self._ended_between() if self.final else None
        if marker != MARK:
            self.arguments.note("missing-call-end")
            return self.finish_call()
        self.key_start = tape.pos
        return self.member

    def member(self) -> State | None:
        """The marked tag of an argument, or what ends the call."""
        tape = self.tape
        tag = _TAG.match(tape.text, tape.i + len(MARK), partial=True)
        if tag is None:
            tape.i += len(MARK)
            self.arguments.note("stray-marker")
            return self.pairs
        if tag.partial:
            return self._ended_between() if self.final else None
        if tag["name"] in ("invoke", "tool_call"):
            end = tape.i + len(MARK + tag.group())
            if tag["slash"] and tag["name"] == "invoke":
                tape.i = end
            elif not tag["slash"] and self.is_twice(read_attributes(tag["rest"])[0]):
                return self.pass_twice(end)
            else:
                self.arguments.note("missing-call-end")
            return self.finish_call()
        tape.i += len(MARK + tag.group())
        if tag["slash"]:
            self.arguments.note("stray-closer")
            return self.pairs
        if not tag["rest"].endswith("/"):
            return self.begin_value(tag["name"])
        self.arguments.begin(tag["name"], self.sink(), is_text=True)
        self.arguments.end("", self.sink())
        return self.pairs

    def is_cut_end(self, text: str) -> bool:
        """Whether the end of the stream cut the call's end to this text."""
        return f"{MARK}</invoke>".startswith(text) if self._is_marked else super().is_cut_end(text)


def _with_vendor_turns(own: Turns) -> Turns:
    """The same, and the turns that the family's templates write."""
    begin = re.escape(TURN_BEGIN)
    roles = {"tool": "tool", "system": r"(?:system|developer|root)\n", "user": r"user\n", "assistant": r"ai\n"}
    return replace(
        own,
        headers={role: rf"{header}|{begin}{roles[role]}" for role, header in own.headers.items()},
        end=rf"{re.escape(TURN_END)}\n?",
        result=rf"{own.result}|<response>(?P<text>.*?)\n?</response>(?=\n<response>|{re.escape(TURN_END)}|\Z)",
        start=re.escape(TEXT_BEGIN),
    )


class MiniMax(InvokeDialect):
    """The MiniMax family's dialect, written in the form of MiniMax-M2."""

    name = "minimax"
    title = "MiniMax-M2 and M3"
    models = r"minimax[-_ ]?m[23]"
    control_tokens = CONTROL_TOKENS
    scanner = MiniMaxScanner
    call_marks = ((MARK, "<tool_call>", "</tool_call>"),)
    turns = _with_vendor_turns(text_transcript(RESULT_BEGINS[0], FUNCTION_RESULT))
    section = (f"{SECTION_BEGIN}\n", f"\n{SECTION_END}")

    def results_text(self, results: Sequence[ToolResult]) -> str:
        return function_results(results)


MINIMAX = MiniMax()
