"""GLM: the dialect of Z.ai's GLM-4.5, 4.6, 4.7 and 5.

A turn is a role token and a body; the next role token ends it. An assistant's body ends with its calls:

    ( <tool_call> NAME ( <arg_key> KEY </arg_key> <arg_value> VALUE </arg_value> )* </tool_call> )+

GLM-4.5 and 4.6 write a newline after the name and between the tags, GLM-4.7 and later write nothing there. A VALUE is
plain text where the tool's schema allows only strings, white space and all, and JSON elsewhere: only the schema tells
`3` from `"3"`. A call has no id. All results of a batch stand in one turn of the observer, each between
`<tool_response>` and `</tool_response>`, in the order of the calls. Thinking comes first, in `<think>` and `</think>`;
the prompt may have opened it.

Source: the chat templates of GLM-4.5, GLM-4.7 and GLM-5.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import ClassVar

import regex

from dialects.engine.arguments import skipping
from dialects.engine.coercion import argument_texts
from dialects.engine.dialect import Dialect, Tools
from dialects.engine.markers import MarkerSet
from dialects.engine.plain_tags import (
    CALL_BEGIN,
    CALL_END,
    RESULT_BEGIN,
    RESULT_END,
    THINK_BEGIN,
    THINK_END,
    PlainTagScanner,
    ThinkEnd,
)
from dialects.engine.rendering import tagged_results
from dialects.engine.scanner import State
from dialects.engine.turns import Turns, of_each_role
from dialects.engine.values import TextValueScanner, ThinkEndOutsideValues, ValueEnds
from dialects.messages import Message, ToolCall, ToolResult

__all__ = ["GLM", "Glm", "GlmScanner"]

KEY_BEGIN, KEY_END = "<arg_key>", "</arg_key>"
VALUE_BEGIN, VALUE_END = "<arg_value>", "</arg_value>"
TEXT_BEGIN, TEXT_END = "[gMASK]<sop>", "<|endoftext|>"
ROLE_TOKENS = ("<|system|>", "<|user|>", "<|assistant|>", "<|observation|>")
CALL_TAGS = (CALL_BEGIN, CALL_END, KEY_BEGIN, KEY_END, VALUE_BEGIN, VALUE_END)
OTHER_TAGS = (RESULT_BEGIN, RESULT_END, THINK_BEGIN, THINK_END)
CONTROL_TOKENS = (*ROLE_TOKENS, TEXT_END, "[gMASK]", "<sop>", *CALL_TAGS, *OTHER_TAGS)

TURN_OPENERS = ("<|system|>", "<|user|>", "<|assistant|>")
SPECIAL_TOKENS = ("<|observation|>", TEXT_END, "[gMASK]", "<sop>")
TAGS = MarkerSet([CALL_BEGIN, CALL_END, KEY_BEGIN, KEY_END, VALUE_END, *ROLE_TOKENS, TEXT_END])
KEY_TAGS = MarkerSet([CALL_BEGIN, CALL_END, KEY_BEGIN, KEY_END, VALUE_BEGIN, VALUE_END])
VALUE_TAGS = MarkerSet([CALL_BEGIN, CALL_END, KEY_BEGIN, VALUE_BEGIN])

_TURN_TOKEN = r"<\|(?:system|user|assistant|observation|endoftext)\|>"
_NAME = r"\w[^\s<>{}()\[\]\"'`]{0,255}"
_NAMED = rf"\s{{0,64}}{_NAME}\s{{0,64}}(?:</?arg_key>|</arg_value>|</?tool_call>|{_TURN_TOKEN})"
VALUE_ENDS = ValueEnds(
    MarkerSet([CALL_BEGIN, CALL_END, KEY_BEGIN, KEY_END, VALUE_END]),
    closer=VALUE_END,
    continuation=rf"(?:\s{{0,16}}(?:{KEY_END}|{VALUE_END})){{0,3}}\s{{0,64}}(?:{KEY_BEGIN}|{CALL_END}|</tool\w{{0,5}}>|{CALL_BEGIN}(?:{_NAMED}|\s{{0,64}}{CALL_BEGIN}))",
    opening=rf"{KEY_BEGIN}[^<\n]{{0,256}}{KEY_END}\s{{0,64}}{VALUE_BEGIN}",
    others=rf"{CALL_END}|{CALL_BEGIN}{_NAMED}|{KEY_END}\s{{0,64}}(?:{KEY_BEGIN}|{CALL_END})"
    rf"|{VALUE_END}\s{{0,64}}{_TURN_TOKEN}",
)
name_at = re.compile(rf"\s*({_NAME})").match
skip_space = skipping(r"\s*+")
call_end_at = re.compile(rf"\s*{CALL_END}").match


@cache
def _draft_markers(think_ends: tuple[str, ...]) -> MarkerSet:
    """What opens a value in a call that may be a draft, and what ends the thinking."""
    return MarkerSet([VALUE_BEGIN, *think_ends])


@cache
def _call_start(names: frozenset[str]) -> "regex.Pattern[str]":
    """What follows a call's opener: a name and a tag, or a tool's name and the end of the line."""
    if not names:
        return regex.compile(_NAMED)
    known = "|".join(map(re.escape, sorted(names)))
    return regex.compile(rf"[ \t]{{0,64}}(?:{known})[ \t]{{0,64}}\n|{_NAMED}")


class GlmScanner(TextValueScanner, PlainTagScanner):
    """Reads GLM. Text and thinking are those of `PlainTagScanner`; a call has four states.

    `outside` -> `pairs` (between them) -> `key` -> `value_opener` -> `value` -> `pairs` -> ... -> `outside`. The name
    stands in what opens a call. Malformed pairs without a value are left out.
    """

    assistant_openers = ("<|assistant|>",)
    text_markers = MarkerSet(CONTROL_TOKENS).without((KEY_BEGIN, VALUE_BEGIN))
    call_start = _call_start(frozenset())
    closers = (KEY_END, VALUE_END, CALL_END)
    special_tokens = SPECIAL_TOKENS
    turn_openers = TURN_OPENERS
    turn_header_pattern = regex.compile(r"<\|(?P<role>assistant)\|>|<\|(?P<role>system|user)\|>\s{0,16}(?=\S)")
    cut_turn_header = re.compile(r"<\|(?:system|user)\|>\s*\Z")
    roles: ClassVar[Mapping[str, str | None]] = {"assistant": None}
    value_ends = VALUE_ENDS
    block_ends = MarkerSet([CALL_END])

    def _reset(self) -> None:
        self.call_start = _call_start(frozenset(self.tools or ()))
        self.key_text = ""
        super()._reset()

    def think_end(self, think_ends: tuple[str, ...]) -> ThinkEnd:
        return ThinkEndOutsideValues(VALUE_ENDS, _draft_markers(think_ends), think_ends)

    def enter_call(self) -> State:
        tape = self.tape
        named = name_at(tape.text, tape.i)
        assert named is not None
        tape.i = named.end()
        is_kept = self._may_be_prose or self.unknown_tools == "keep"
        is_unknown = self.tools is not None and named[1] not in self.tools
        if is_unknown and is_kept and (closer := call_end_at(tape.text, tape.i)):
            return self.no_call(closer.end())
        return self.begin_pairs(named[1])

    def no_call(self, end: int) -> State:
        """A word that is no tool's name, alone between the tags: in the middle of a line they were only mentioned."""
        if self._may_be_prose:
            self.take_back_opener()
        else:
            self.tape.i = end
            self.drop_call("malformed")
        return self.after_call()

    def pairs(self) -> State | None:
        tape = self.tape
        tape.i = skip_space(tape.text, tape.i).end()
        index, marker = TAGS.find(tape.text, tape.i, final=False)
        if index > tape.i:
            self.arguments.note("surrounding-text")
            tape.i = index
        if marker is None:
            return self._stream_ended() if self.final else None
        if marker in (CALL_BEGIN, *ROLE_TOKENS, TEXT_END):
            self.arguments.note("missing-call-end")
            return self.finish_call()
        tape.i += len(marker)
        if marker == CALL_END:
            return self.finish_call()
        if marker != KEY_BEGIN:
            self.arguments.note("stray-closer")
            return self.pairs
        self.key_start = tape.pos
        return self.key

    def key(self) -> State | None:
        tape = self.tape
        tape.i, marker = KEY_TAGS.find(tape.text, tape.i, final=self.final)
        if marker is None:
            return self.cut_off() if self.final else None
        if marker in (CALL_BEGIN, CALL_END, KEY_BEGIN):
            self.arguments.note("missing-value")
            return self.pairs
        self.key_text = tape.slice(self.key_start, tape.pos)
        if marker != KEY_END:
            self.key_text = self.key_text.strip()
            self.arguments.note("missing-key-end")
        if marker != VALUE_BEGIN:
            tape.i += len(marker)
        return self.value_opener

    def value_opener(self) -> State | None:
        tape = self.tape
        tape.i = skip_space(tape.text, tape.i).end()
        index, marker = VALUE_TAGS.find(tape.text, tape.i, final=False)
        if index == tape.i and marker is None:
            return self.cut_off() if self.final else None
        if index == tape.i and marker != VALUE_BEGIN:
            self.arguments.note("missing-value")
            return self.pairs
        if index > tape.i:
            self.arguments.note("missing-value-begin")
        else:
            tape.i += len(VALUE_BEGIN)
        return self.begin_value(self.key_text)

    def _stream_ended(self) -> State:
        """The stream ends between two pairs, or before the first, if its closer was not begun."""
        rest = self.tape.text[self.tape.i :]
        begun = bool(self.arguments.value) or len(rest) > 1
        if self.truncated or not begun or not CALL_END.startswith(rest):
            return self.cut_off()
        self.tape.i = len(self.tape.text)
        self.arguments.note("missing-call-end")
        return self.finish_call()


class Glm(Dialect):
    """The GLM family's dialect, written in the form of GLM-4.5."""

    name = "glm"
    title = "GLM-4.5 to GLM-5"
    models = r"glm[-_ ]?(?:4[._-]?[56](?!\d)|4[._-]?7|5)"
    control_tokens = CONTROL_TOKENS
    scanner = GlmScanner
    generation_prompt = "<|assistant|>\n"
    turns = Turns(
        headers={"tool": r"<\|observation\|>", **of_each_role(r"<\|ROLE\|>\n?")},
        result=rf"{RESULT_BEGIN}\n?(?P<text>.*?)\n?{RESULT_END}(?=\s*(?:{RESULT_BEGIN}|\Z))",
        start=r"\[gMASK\]<sop>",
    )

    def call_text(self, call: ToolCall, tools: Tools) -> str:
        pairs = "".join(
            f"{KEY_BEGIN}{key}{KEY_END}\n{VALUE_BEGIN}{text}{VALUE_END}\n" for key, text in argument_texts(call, tools)
        )
        return f"{CALL_BEGIN}{call.name}\n{pairs}{CALL_END}"

    def results_text(self, results: Sequence[ToolResult]) -> str:
        return f"<observation>\n{self.bare_results_text(results)}\n</observation>"

    def bare_results_text(self, results: Sequence[ToolResult]) -> str:
        return tagged_results(RESULT_BEGIN, results, RESULT_END)

    def results_turn_text(self, results: Sequence[ToolResult]) -> str:
        return f"<|observation|>\n{self.bare_results_text(results)}"

    def turn_text(self, role: str, name: str | None, body: str) -> str:
        blank_line = "\n" if role == "assistant" and body.startswith(THINK_BEGIN) else ""
        return f"<|{role}|>\n{blank_line}{body}"

    def transcript_text(self, messages: Sequence[Message], tools: Tools) -> str:
        return TEXT_BEGIN + super().transcript_text(messages, tools)


GLM = Glm()
