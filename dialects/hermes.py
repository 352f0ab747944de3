"""Hermes: the dialect of Nous Research's Hermes 2 Pro, Hermes 3 and Hermes 4.

A turn is `<|im_start|>`, the role, a newline, the body and `<|im_end|>` (ChatML). An assistant's body ends with its
calls, each one JSON object between two tags, one after the other, a newline between them:

    ( <tool_call> {"name": NAME, "arguments": ARGUMENTS} </tool_call> )+

ARGUMENTS is a JSON object; a model may write it before the name. A call has no id. All results of a batch stand in one
turn of the role `tool`, each between `<tool_response>` and `</tool_response>`, in the order of the calls. Thinking
(Hermes 4) comes first, in `<think>` and `</think>`.

Source: Nous Research's Hermes-Function-Calling prompt format, and the chat templates of the family.
"""

from collections.abc import Sequence

from dialects.engine.chatml import TURN_BEGIN, TURN_END, ChatmlTurns, chatml_turn
from dialects.engine.dialect import Dialect, Tools
from dialects.engine.json_calls import JsonTagScanner
from dialects.engine.plain_tags import CALL_BEGIN, CALL_END, RESULT_BEGIN, RESULT_END, THINK_BEGIN, THINK_END
from dialects.engine.rendering import tagged_json_call, tagged_results
from dialects.messages import ToolCall, ToolResult

__all__ = ["HERMES", "Hermes", "HermesScanner"]

TEXT_END = "<|endoftext|>"
CONTROL_TOKENS = (
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


class HermesScanner(ChatmlTurns, JsonTagScanner):
    """Reads Hermes: one JSON object between the tags, in ChatML turns."""

    special_tokens = (TURN_BEGIN, TURN_END, TEXT_END)


class Hermes(Dialect):
    """The Hermes family's dialect."""

    name = "hermes"
    title = "Hermes 2 Pro, 3 and 4"
    models = r"hermes[-_ ]?(2[-_ ]?pro|3|4)"
    rank = -2
    control_tokens = CONTROL_TOKENS
    scanner = HermesScanner
    generation_prompt = f"{TURN_BEGIN}assistant\n"

    def call_text(self, call: ToolCall, tools: Tools) -> str:
        return tagged_json_call(CALL_BEGIN, call, CALL_END)

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        return "\n".join(self.call_text(call, tools) for call in calls)

    def results_text(self, results: Sequence[ToolResult]) -> str:
        return tagged_results(RESULT_BEGIN, results, RESULT_END)

    def results_turn_text(self, results: Sequence[ToolResult]) -> str:
        return chatml_turn("tool", self.results_text(results))

    def turn_text(self, role: str, name: str | None, body: str) -> str:
        return chatml_turn(role, body)


HERMES = Hermes()
