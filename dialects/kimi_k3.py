"""Kimi-K3: the dialect of Kimi-K3. It can be written, not read yet.

Everything is an element: `<|open|>TAG ATTRIBUTES<|sep|>`, what is inside, and `<|close|>TAG<|sep|>`. A turn is a
`message` element and `<|end_of_msg|>`. In an assistant's are, in this order, `think` (its thinking), `response` (what
it says, always there) and `tools`, which holds its calls:

    <|open|>call tool="NAME" index="INDEX"<|sep|>
        ( <|open|>argument key="KEY" type="TYPE"<|sep|> VALUE <|close|>argument<|sep|> )*
    <|close|>call<|sep|>

with nothing between the elements. INDEX counts the calls of a message from 1, and is what a result names its call by;
there are no ids. TYPE is a JSON type; a VALUE that is a string is written as it is, any other as JSON. In attributes
`&` and `"` are escaped. A result is a message of the role `tool`.

Source: the vendor's encoder for Kimi-K3.
"""

from collections.abc import Sequence
from typing import Any

from dialects.engine.dialect import Dialect, Tools
from dialects.engine.rendering import compact_json
from dialects.messages import Message, ToolCall, ToolResult

__all__ = ["KIMI_K3", "KimiK3"]

OPEN, SEP, CLOSE, MESSAGE_END = "<|open|>", "<|sep|>", "<|close|>", "<|end_of_msg|>"
TYPES = {str: "string", bool: "boolean", int: "number", float: "number", type(None): "null", dict: "object"}


class KimiK3(Dialect):
    """Kimi-K3's dialect."""

    name = "kimi-k3"
    title = "Kimi-K3"
    models = r"kimi[-_ ]?k3"
    control_tokens = (OPEN, SEP, CLOSE, MESSAGE_END)
    generation_prompt = f'{OPEN}message role="assistant"{SEP}'

    def call_text(self, call: ToolCall, tools: Tools) -> str:
        body = "".join(_argument(key, value) for key, value in call.arguments.items())
        return _element("call", body, tool=call.name, index=call.id or "1")

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        return _element("tools", "".join(self.call_text(call, tools) for call in calls))

    def results_text(self, results: Sequence[ToolResult]) -> str:
        return "".join(
            _element("message", result.content, role="tool", tool=result.name or "", index=_index(result, position))
            + MESSAGE_END
            for position, result in enumerate(results, 1)
        )

    def bare_results_text(self, results: Sequence[ToolResult]) -> str:
        return "\n".join(result.content for result in results)

    def thinking_text(self, text: str) -> str:
        return _element("think", text)

    def assistant_text(self, message: Message, tools: Tools) -> str:
        thinking = self.thinking_text(message.reasoning) if message.reasoning else ""
        calls = self.calls_text(message.tool_calls, tools) if message.tool_calls else ""
        return thinking + _element("response", message.content) + calls

    def turn_text(self, role: str, name: str | None, body: str) -> str:
        return _element("message", body, role=role) + MESSAGE_END

    def written_ids(self, calls: Sequence[ToolCall]) -> Sequence[str]:
        """Their places in the message, which stand for ids."""
        return [str(place) for place in range(1, len(calls) + 1)]


KIMI_K3 = KimiK3()


def _element(tag: str, body: str, **attributes: str) -> str:
    written = "".join(f' {key}="{_escaped(value)}"' for key, value in attributes.items())
    return f"{OPEN}{tag}{written}{SEP}{body}{CLOSE}{tag}{SEP}"


def _escaped(value: str) -> str:
    return value.replace("&", "&amp;").replace('"', "&quot;")


def _argument(key: str, value: Any) -> str:
    written = value if isinstance(value, str) else compact_json(value)
    return _element("argument", written, key=key, type=TYPES.get(type(value), "array"))


def _index(result: ToolResult, position: int) -> str:
    """The place of the call that a result answers: what its id is by now, if it answers one, else its own place."""
    call_id = result.call_id or ""
    return call_id if call_id.isascii() and call_id.isdecimal() else str(position)
