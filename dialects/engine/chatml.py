"""Calls that are JSON objects between tags, in ChatML's turns: what several families speak, reader and writer.

A turn is `<|im_start|>`, the role, a newline, the body, `<|im_end|>` and a newline. An assistant's body is its
thinking, its text and its calls; the results of a batch stand in one turn, of a role that differs between families.
"""

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

import regex

from dialects.engine.dialect import Dialect, Tools
from dialects.engine.json_calls import JsonTagScanner
from dialects.engine.markers import begun
from dialects.engine.plain_tags import CALL_BEGIN, CALL_END, RESULT_BEGIN, RESULT_END, THINK_BEGIN, THINK_END
from dialects.engine.rendering import compact_json, tagged_results
from dialects.engine.turns import Turns, of_each_role
from dialects.messages import ToolCall, ToolResult

__all__ = [
    "TEXT_END",
    "TURN_BEGIN",
    "TURN_END",
    "ChatmlJsonDialect",
    "ChatmlJsonScanner",
    "ChatmlTurns",
    "chatml_transcript",
    "chatml_turn",
]

TURN_BEGIN, TURN_END, TEXT_END = "<|im_start|>", "<|im_end|>", "<|endoftext|>"

_END = re.escape(TURN_END)


def chatml_turn(role: str, body: str) -> str:
    """A turn."""
    return f"{TURN_BEGIN}{role}\n{body}{TURN_END}\n"


def chatml_transcript(results_role: str) -> Turns:
    """The turns of a transcript in which results stand in that role's, or in turns of their own."""
    results = rf"<\|im_start\|>(?:tool\n|{results_role}\n(?={RESULT_BEGIN}))"
    return Turns(
        headers={"tool": results, **of_each_role(r"<\|im_start\|>ROLE\n")},
        end=rf"{_END}\n?",
        result=rf"{RESULT_BEGIN}\n(?P<text>.*?)\n{RESULT_END}(?=\s*(?:{RESULT_BEGIN}|{_END}|\Z))",
    )


class ChatmlTurns:
    """What a `PlainTagScanner` needs to know of the turns."""

    special_tokens: ClassVar[tuple[str, ...]] = (TURN_BEGIN, TURN_END, TEXT_END)
    assistant_openers: ClassVar[tuple[str, ...]] = (f"{TURN_BEGIN}assistant",)
    turn_openers: ClassVar[tuple[str, ...]] = (TURN_BEGIN,)
    turn_header_pattern = regex.compile(r"<\|im_start\|>(?P<role>\w{1,32})\r?\n")
    cut_turn_header = re.compile(r"<\|im_start\|>" + begun(["system", "user", "assistant", "tool"]) + r"\r?\Z")
    roles: ClassVar[Mapping[str, str | None]] = {"assistant": None, "tool": "fabricated-result"}


class ChatmlJsonScanner(ChatmlTurns, JsonTagScanner):
    """Reads it; the states of a call are those of `JsonTagScanner`."""


class ChatmlJsonDialect(Dialect):
    """Writes it. A dialect adds its name and its models, and says in whose turn the results stand."""

    results_role: ClassVar[str]
    turns: ClassVar[Turns]
    scanner = ChatmlJsonScanner
    generation_prompt = f"{TURN_BEGIN}assistant\n"
    control_tokens = (
        TURN_BEGIN,
        TURN_END,
        TEXT_END,
        CALL_BEGIN,
        CALL_END,
        RESULT_BEGIN,
        RESULT_END,
        THINK_BEGIN,
        THINK_END,
    )

    def call_text(self, call: ToolCall, tools: Tools) -> str:
        return f"{CALL_BEGIN}\n{compact_json({'name': call.name, 'arguments': call.arguments})}\n{CALL_END}"

    def results_text(self, results: Sequence[ToolResult]) -> str:
        return tagged_results(RESULT_BEGIN, results, RESULT_END)

    def results_turn_text(self, results: Sequence[ToolResult]) -> str:
        return chatml_turn(self.results_role, self.results_text(results))

    def turn_text(self, role: str, name: str | None, body: str) -> str:
        return chatml_turn(role, body)
