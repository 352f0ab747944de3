"""Qwen3: the JSON dialect of Qwen2.5, Qwen3 and QwQ (Qwen3-Coder and Qwen3.5 have another).

A turn is `<|im_start|>`, the role, a newline, the body and `<|im_end|>` (ChatML). An assistant's body ends with its
calls, each one JSON object between two tags, one after the other, a newline between them:

    ( <tool_call> {"name": NAME, "arguments": ARGUMENTS} </tool_call> )+

ARGUMENTS is a JSON object. A call has no id. All results of a batch stand in one turn of the user, each between
`<tool_response>` and `</tool_response>`, in the order of the calls. Thinking comes first, in `<think>` and `</think>`,
a newline on the inner sides of the tags; the prompt may have opened it.

Source: the chat templates of Qwen2.5, Qwen3 and the 2507 releases, and Qwen's function-calling guide.
"""

from collections.abc import Sequence

from dialects.engine.chatml import TURN_BEGIN, TURN_END, ChatmlTurns, chatml_turn
from dialects.engine.dialect import Dialect, Tools
from dialects.engine.json_calls import JsonTagScanner
from dialects.engine.plain_tags import CALL_BEGIN, CALL_END, RESULT_BEGIN, RESULT_END, THINK_BEGIN, THINK_END
from dialects.engine.rendering import tagged_json_call, tagged_results
from dialects.messages import ToolCall, ToolResult

__all__ = ["QWEN3", "Qwen3", "Qwen3Scanner"]

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


class Qwen3Scanner(ChatmlTurns, JsonTagScanner):
    """Reads Qwen3: one JSON object between the tags, in ChatML turns."""

    special_tokens = (TURN_BEGIN, TURN_END, TEXT_END)


class Qwen3(Dialect):
    """The dialect of Qwen2.5, Qwen3 and QwQ."""

    name = "qwen3"
    title = "Qwen2.5, Qwen3 and QwQ"
    models = r"qwen[-_ ]?2\.5|qwen[-_ ]?3(?![-_ ]?coder)(?!\.\d)|qwq"
    control_tokens = CONTROL_TOKENS
    scanner = Qwen3Scanner
    generation_prompt = f"{TURN_BEGIN}assistant\n"

    def call_text(self, call: ToolCall, tools: Tools) -> str:
        return tagged_json_call(CALL_BEGIN, call, CALL_END)

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        return "\n".join(self.call_text(call, tools) for call in calls)

    def results_text(self, results: Sequence[ToolResult]) -> str:
        return tagged_results(RESULT_BEGIN, results, RESULT_END)

    def results_turn_text(self, results: Sequence[ToolResult]) -> str:
        return chatml_turn("user", self.results_text(results))

    def turn_text(self, role: str, name: str | None, body: str) -> str:
        return chatml_turn(role, body)


QWEN3 = Qwen3()
