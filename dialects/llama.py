"""Llama: the dialect of Llama 3.1, 3.2 and 3.3. It can be written, not read yet.

A conversation begins with `<|begin_of_text|>`. A turn is its role between two header tokens, a blank line, the body and
`<|eot_id|>`. Calls are the whole body, or stand behind its text and `<|python_tag|>`:

    {"name": NAME, "parameters": ARGUMENTS} ( ; {"name": NAME, "parameters": ARGUMENTS} )*

ARGUMENTS is a JSON object. A call has no id. A result is a turn of the role `ipython`, its text a JSON string. The
family knows no thinking; reasoning is left out.

Source: the chat templates of Llama 3.1, 3.2 and 3.3.
"""

from collections.abc import Sequence

from dialects.engine.dialect import Dialect, Tools
from dialects.engine.rendering import compact_json
from dialects.messages import Message, ToolCall, ToolResult

__all__ = ["LLAMA", "Llama"]

TEXT_BEGIN, TEXT_END = "<|begin_of_text|>", "<|end_of_text|>"
HEADER_BEGIN, HEADER_END, TURN_END = "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"
CALL_BEGIN, CALL_END = "<|python_tag|>", "<|eom_id|>"
RESULT_ROLE = "ipython"


class Llama(Dialect):
    """The dialect of the Llama 3 family."""

    name = "llama"
    title = "Llama 3.1, 3.2 and 3.3"
    models = r"llama[-_ ]?3"
    control_tokens = (TEXT_BEGIN, TEXT_END, HEADER_BEGIN, HEADER_END, TURN_END, CALL_BEGIN, CALL_END)
    call_marks = ((HEADER_BEGIN, RESULT_ROLE, '"parameters"'),)
    generation_prompt = f"{HEADER_BEGIN}assistant{HEADER_END}\n\n"

    def call_text(self, call: ToolCall, tools: Tools) -> str:
        return compact_json({"name": call.name, "parameters": call.arguments})

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        return "; ".join(self.call_text(call, tools) for call in calls)

    def results_text(self, results: Sequence[ToolResult]) -> str:
        return "".join(self.turn_text(RESULT_ROLE, None, compact_json(result.content)) for result in results)

    def bare_results_text(self, results: Sequence[ToolResult]) -> str:
        return "\n".join(compact_json(result.content) for result in results)

    def thinking_text(self, text: str) -> str:
        return ""

    def assistant_text(self, message: Message, tools: Tools) -> str:
        between = CALL_BEGIN if message.content and message.tool_calls else ""
        return message.content + between + self.calls_text(message.tool_calls, tools)

    def turn_text(self, role: str, name: str | None, body: str) -> str:
        return f"{HEADER_BEGIN}{role}{HEADER_END}\n\n{body}{TURN_END}"

    def transcript_text(self, messages: Sequence[Message], tools: Tools) -> str:
        return TEXT_BEGIN + super().transcript_text(messages, tools)


LLAMA = Llama()
