"""Qwen3-Coder: the dialect of Qwen3-Coder, and of Qwen3.5 and later: function and parameter tags.

A turn is `<|im_start|>`, the role, a newline, the body and `<|im_end|>` (ChatML). An assistant's body ends with its
calls, one after the other, a newline between them:

    ( <tool_call> <function=NAME> ( <parameter=KEY> VALUE </parameter> )* </function> </tool_call> )+

Each tag stands on a line of its own; of a VALUE exactly one newline on each side belongs to the tags, all else is the
value's. Strings are written bare, objects and arrays as JSON, and `True`, `False` and `None` as Python has them;
Qwen3-Coder-Next, Qwen3.6 and later write `true`, `false` and `null`. Only the tool's schema tells a string from other
values. The outer `<tool_call>` may be missing. A call has no id. All results of a batch stand in one turn of the user,
each between `<tool_response>` and `</tool_response>`, in the order of the calls. Thinking (Qwen3.5 and later) comes
first, in `<think>` and `</think>`, a newline on the inner sides of the tags; the prompt may have opened it.

Source: the chat templates of Qwen3-Coder, Qwen3.5, Qwen3.6 and Qwen3.8.
"""

import json
from collections.abc import Sequence
from typing import Any

from dialects.engine.chatml import TEXT_END, TURN_BEGIN, TURN_END, ChatmlTurns, chatml_transcript, chatml_turn
from dialects.engine.coercion import argument_texts, coerce_python
from dialects.engine.dialect import Dialect, Tools
from dialects.engine.invoke_tags import InvokeTags, PlainInvokeScanner
from dialects.engine.markers import NO_MARK
from dialects.engine.plain_tags import CALL_BEGIN, CALL_END, RESULT_BEGIN, RESULT_END, THINK_BEGIN, THINK_END
from dialects.engine.rendering import compact_json
from dialects.engine.text_arguments import ReadValue
from dialects.messages import Message, ToolCall, ToolResult

__all__ = ["QWEN3_CODER", "Qwen3Coder", "Qwen3CoderScanner"]

FUNCTION_BEGIN, FUNCTION_END = "<function=", "</function>"
PARAMETER_BEGIN, PARAMETER_END = "<parameter=", "</parameter>"
CONTROL_TOKENS = (
    TURN_BEGIN,
    TURN_END,
    TEXT_END,
    CALL_BEGIN,
    CALL_END,
    FUNCTION_BEGIN,
    FUNCTION_END,
    PARAMETER_BEGIN,
    PARAMETER_END,
    RESULT_BEGIN,
    RESULT_END,
    THINK_BEGIN,
    THINK_END,
)
TAGS = InvokeTags(
    sections=("tool_call", "tool_calls"),
    invoke="function",
    mark=NO_MARK,
    turn_ends=(TURN_BEGIN, TURN_END, TEXT_END),
    has_layout=True,
)


class Qwen3CoderScanner(ChatmlTurns, PlainInvokeScanner):
    """Reads it: `outside`, `thinking`, `section` (around calls), and of a call `invoke` (its opening tag), `pairs`
    (between its parameters), `parameter` (an opening tag) and `value`."""

    tags = TAGS
    result_ends = (RESULT_END,)

    @property
    def reads(self) -> ReadValue:
        return coerce_python


class Qwen3Coder(Dialect):
    """The XML dialect of the Qwen family, written in the form of Qwen3-Coder."""

    name = "qwen3-coder"
    title = "Qwen3-Coder, Qwen3.5 and later"
    models = r"qwen[-_ ]?3[-_ ]?coder|qwen[-_ ]?3\.[5-9]"
    rank = -1
    control_tokens = CONTROL_TOKENS
    scanner = Qwen3CoderScanner
    generation_prompt = f"{TURN_BEGIN}assistant\n"
    turns = chatml_transcript("user")

    def call_text(self, call: ToolCall, tools: Tools) -> str:
        parameters = "".join(
            f"{PARAMETER_BEGIN}{key}>\n{text}\n{PARAMETER_END}\n"
            for key, text in argument_texts(call, tools, _value_text)
        )
        return f"{CALL_BEGIN}\n{FUNCTION_BEGIN}{call.name}>\n{parameters}{FUNCTION_END}\n{CALL_END}"

    def results_text(self, results: Sequence[ToolResult]) -> str:
        return "".join(f"{RESULT_BEGIN}\n{result.content}\n{RESULT_END}\n" for result in results)

    def results_turn_text(self, results: Sequence[ToolResult]) -> str:
        return chatml_turn("user", self.results_text(results))

    def turn_text(self, role: str, name: str | None, body: str) -> str:
        return chatml_turn(role, body)

    def assistant_text(self, message: Message, tools: Tools) -> str:
        thinking = self.thinking_text(message.reasoning) if message.reasoning else ""
        calls = self.calls_text(message.tool_calls, tools) if message.tool_calls else ""
        return "\n\n".join(part for part in (thinking, message.content, calls) if part)


def _value_text(value: Any, schema: object, root: object) -> str:
    """A value as the family's template writes it, or as JSON where that would be read as something else."""
    if isinstance(value, str):
        written = value
    elif isinstance(value, bool) or value is None:
        written = repr(value)
    else:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    as_json = compact_json(value)
    return as_json if _means(as_json, value, schema, root) and not _means(written, value, schema, root) else written


def _means(text: str, value: Any, schema: object, root: object) -> bool:
    read = coerce_python(text, schema, root).value
    return type(read) is type(value) and read == value


QWEN3_CODER = Qwen3Coder()
