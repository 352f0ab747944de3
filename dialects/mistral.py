"""Mistral: the dialect of Mistral's models since Ministral 3 and Magistral 1.2. It can be written, not read yet.

A conversation begins with `<s>`. The system's text and a user's stand between tokens of their own, an assistant's ends
with `</s>`, and nothing opens it. An assistant's body ends with its calls:

    ( [TOOL_CALLS] NAME [ARGS] ARGUMENTS )+

ARGUMENTS is one JSON object. A call has no id here; earlier models put one between the name and the arguments, or write
a JSON array of calls, as their templates do. Results stand in the order of the calls, each between `[TOOL_RESULTS]` and
`[/TOOL_RESULTS]`. Thinking comes first, in `[THINK]` and `[/THINK]`.

Source: the chat templates of Mistral's models.
"""

from collections.abc import Sequence

from dialects.engine.dialect import Dialect, Tools
from dialects.engine.rendering import compact_json
from dialects.messages import Message, ToolCall, ToolResult

__all__ = ["MISTRAL", "Mistral"]

TEXT_BEGIN, TEXT_END = "<s>", "</s>"
TURNS = {
    "system": ("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
    "user": ("[INST]", "[/INST]"),
    "assistant": ("", TEXT_END),
}
CALL_BEGIN, CALL_ID, ARGUMENTS_BEGIN = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
RESULT_BEGIN, RESULT_TEXT, RESULT_END = "[TOOL_RESULTS]", "[TOOL_CONTENT]", "[/TOOL_RESULTS]"
THINK_BEGIN, THINK_END = "[THINK]", "[/THINK]"
CONTROL_TOKENS = (
    *(TEXT_BEGIN, TEXT_END),
    *(*TURNS["system"], *TURNS["user"]),
    *("[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
    *(CALL_BEGIN, CALL_ID, ARGUMENTS_BEGIN),
    *(RESULT_BEGIN, RESULT_TEXT, RESULT_END),
    *(THINK_BEGIN, THINK_END),
)


class Mistral(Dialect):
    """The dialect of Mistral's models."""

    name = "mistral"
    title = "Mistral's models"
    models = r"mistral|ministral|magistral|devstral|mixtral|codestral|pixtral"
    control_tokens = CONTROL_TOKENS
    generation_prompt = ""

    def call_text(self, call: ToolCall, tools: Tools) -> str:
        return f"{CALL_BEGIN}{call.name}{ARGUMENTS_BEGIN}{compact_json(call.arguments)}"

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        return "".join(self.call_text(call, tools) for call in calls)

    def results_text(self, results: Sequence[ToolResult]) -> str:
        return "".join(f"{RESULT_BEGIN}{result.content}{RESULT_END}" for result in results)

    def bare_results_text(self, results: Sequence[ToolResult]) -> str:
        return "\n".join(result.content for result in results)

    def thinking_text(self, text: str) -> str:
        return f"{THINK_BEGIN}{text}{THINK_END}"

    def turn_text(self, role: str, name: str | None, body: str) -> str:
        begin, end = TURNS[role]
        return begin + body + end

    def transcript_text(self, messages: Sequence[Message], tools: Tools) -> str:
        return TEXT_BEGIN + super().transcript_text(messages, tools)


MISTRAL = Mistral()
