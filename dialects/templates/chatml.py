"""What the templates of several families share: ChatML turns, and tools and calls as JSON between tags."""

from collections.abc import Sequence

from dialects.templates.fields import (
    arguments_of,
    function_of,
    printed,
    pyjson,
)
from dialects.templates.template import Fields

__all__ = ["RESULT_BEGIN", "RESULT_END", "TURN_BEGIN", "TURN_END", "is_query", "json_calls", "json_tools", "turn"]

TURN_BEGIN, TURN_END = "<|im_start|>", "<|im_end|>\n"
RESULT_BEGIN, RESULT_END = "<tool_response>", "</tool_response>"

TOOLS_BEGIN = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>"""
TOOLS_END = """
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""


def turn(role: str, body: str) -> str:
    """A turn."""
    return f"{TURN_BEGIN}{role}\n{body}{TURN_END}"


def json_tools(tools: Sequence[Fields]) -> str:
    """The tools, one a line, and how to call them."""
    return "".join([TOOLS_BEGIN, *(f"\n{pyjson(tool)}" for tool in tools), TOOLS_END])


def json_calls(calls: Sequence[Fields], *, quotes_text: bool = False) -> str:
    """Calls between tags, a newline between them. Arguments that came as text stay as they are, or are quoted."""
    return "\n".join(_json_call(call, quotes_text) for call in calls)


def is_query(text: str) -> bool:
    """Whether a user's text is a query, not a result that was passed as one."""
    return not (text.startswith(RESULT_BEGIN) and text.endswith(RESULT_END))


def _json_call(call: Fields, quotes_text: bool) -> str:
    arguments = arguments_of(call)
    written = arguments if isinstance(arguments, str) and not quotes_text else pyjson(arguments)
    return f'<tool_call>\n{{"name": "{printed(function_of(call)["name"])}", "arguments": {written}}}\n</tool_call>'
