"""Gemini: the in-band dialect of Google's Gemini models, Python calls in a Markdown fence.

A turn is `<start_of_turn>`, `user` or `model`, a line break, a body and `<end_of_turn>`. A model's body:

    [ ```thinking NEWLINE THINKING NEWLINE ``` ] [ TEXT ] ```tool_code NEWLINE CALLS NEWLINE ```
    CALLS = CALL | "[" [ CALL ( "," CALL )* ] "]" | CALL ( NEWLINE CALL )*
    CALL  = [ "print(" ] [ "default_api." ] NAME "(" [ KEY "=" LITERAL ( "," KEY "=" LITERAL )* ] ")" [ ")" ]

The fences are those of `engine/fenced_calls.py`, the calls those of `engine/python_calls.py`. A plain answer ends with
an empty list. A call has no id. The results of a batch stand in one user turn, each in a fence ```tool_outputs, in the
order of the calls. There is no system turn: its text stands before that of the next user turn.

Source: the reference renderer's form of the dialect; no vendor template exists.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import ClassVar

import regex
from msgspec.structs import replace

from dialects.engine.dialect import Dialect, Tools
from dialects.engine.fenced_calls import FENCE, LONGEST_FENCE, FencedCallScanner
from dialects.engine.markers import begun
from dialects.engine.python_literals import write_keywords
from dialects.engine.turns import Turns, of_each_role
from dialects.messages import Message, ToolCall, ToolResult

__all__ = ["GEMINI", "Gemini", "GeminiScanner"]

CALL_INFO, RESULT_INFO, THINKING_INFO = "tool_code", "tool_outputs", "thinking"
NAMESPACE = "default_api"
TURN_BEGIN, TURN_END, TEXT_BEGIN = "<start_of_turn>", "<end_of_turn>", "<bos>"
SPECIAL_TOKENS = (TURN_BEGIN, TURN_END, TEXT_BEGIN)
CONTROL_TOKENS = (*SPECIAL_TOKENS, FENCE + CALL_INFO, FENCE + RESULT_INFO, FENCE + THINKING_INFO)

line_of_ticks = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)
may_join_fence = re.compile(r"`\Z|`{3}[^\n]*\Z")
"""Backticks on the last line of a text, with which a fence on that line could be one, or end a span."""


class GeminiScanner(FencedCallScanner):
    """Reads Gemini: `outside` -> `block` -> `args` -> `block` -> ... -> `outside`, and `thinking`."""

    call_info, result_info, thinking_info = CALL_INFO, RESULT_INFO, THINKING_INFO
    namespace = NAMESPACE
    special_tokens = SPECIAL_TOKENS
    assistant_openers = (f"{TURN_BEGIN}model",)
    turn_openers = (TURN_BEGIN,)
    turn_header_pattern = regex.compile(r"<start_of_turn>(?P<role>\w{1,32})\r?\n")
    cut_turn_header = re.compile(r"<start_of_turn>" + begun(["system", "user", "model"]) + r"\r?\Z")
    roles: ClassVar[Mapping[str, str | None]] = {"model": None}


class Gemini(Dialect):
    """The dialect of the Gemini models."""

    name = "gemini"
    title = "Gemini"
    models = r"gemini"
    control_tokens = CONTROL_TOKENS
    scanner = GeminiScanner
    generation_prompt = f"{TURN_BEGIN}model\n"
    turns = Turns(
        headers={
            "tool": rf"<start_of_turn>user\n(?=```{RESULT_INFO}\n)",
            **of_each_role(r"<start_of_turn>ROLE\n", assistant="model"),
        },
        end=r"<end_of_turn>\n?",
        result=rf"```{RESULT_INFO}\n(?P<text>.*?)\n```(?=\s*(?:```{RESULT_INFO}\n|<end_of_turn>|\Z))",
        start="<bos>",
    )

    def call_text(self, call: ToolCall, tools: Tools) -> str:
        return f"{NAMESPACE}.{call.name}({write_keywords(call.arguments)})"

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        written = ", ".join(self.call_text(call, tools) for call in calls)
        return _fenced(CALL_INFO, written if len(calls) == 1 else f"[{written}]")

    def results_text(self, results: Sequence[ToolResult]) -> str:
        return "\n".join(_fenced(RESULT_INFO, result.content) for result in results)

    def results_turn_text(self, results: Sequence[ToolResult]) -> str:
        return self.turn_text("user", None, self.results_text(results))

    def thinking_text(self, text: str) -> str:
        longest = max((len(run) for run in line_of_ticks.findall(text)), default=2)
        return _fenced(THINKING_INFO, text, ticks=min(longest + 1, LONGEST_FENCE))

    def turn_text(self, role: str, name: str | None, body: str) -> str:
        return f"{TURN_BEGIN}{'model' if role == 'assistant' else 'user'}\n{body}{TURN_END}\n"

    def assistant_text(self, message: Message, tools: Tools) -> str:
        thinking = f"{self.thinking_text(message.reasoning)}\n" if message.reasoning else ""
        apart = "\n" if may_join_fence.search(message.content) else ""
        calls = self.calls_text(message.tool_calls, tools) if message.tool_calls or message.content else ""
        return thinking + message.content + apart + calls

    def transcript_text(self, messages: Sequence[Message], tools: Tools) -> str:
        return TEXT_BEGIN + super().transcript_text(_without_system(messages), tools)


def _fenced(info: str, text: str, *, ticks: int = 3) -> str:
    return f"{'`' * ticks}{info}\n{text}\n{'`' * ticks}"


def _without_system(messages: Sequence[Message]) -> list[Message]:
    """The messages with system texts in front of that of the next user turn, or in a user turn of their own."""
    out: list[Message] = []
    for role, run in groupby(messages, key=lambda message: "system" if message.role == "developer" else message.role):
        turns = list(run)
        if out and out[-1].role == "system" and role == "user":
            turns[0] = replace(turns[0], content=f"{out.pop().content}\n{turns[0].content}")
        if role == "system":
            turns = [Message("system", "\n".join(message.content for message in turns))]
        out += turns
    return out


GEMINI = Gemini()
