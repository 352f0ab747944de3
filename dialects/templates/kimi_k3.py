"""The template of Kimi-K3: messages as elements of four tokens, everything inside them too.

`<|open|>TAG ATTRIBUTES<|sep|>` begins an element and `<|close|>TAG<|sep|>` ends it. An assistant's message has an
element for thinking, one for what it says, and one for its calls, which hold an element an argument. Every turn keeps
its thinking, unless thinking is off. A result bears the name and the number of the call that its id names, or else of
the one at its position; if the ids of all results name calls, they stand in the order of these.

Source: the vendor's encoder, as a serving project's template renders it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dialects.templates.fields import (
    arguments_of,
    function_of,
    in_call_order,
    joined_parts,
    printed,
    text_or_json,
)
from dialects.templates.template import Certainty, Chat, Fields, Template, choice, flag

__all__ = ["TEMPLATES"]

OPEN, SEP, CLOSE, MESSAGE_END = "<|open|>", "<|sep|>", "<|close|>", "<|end_of_msg|>"
TYPES = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    type(None): "null",
    list: "array",
    tuple: "array",
}
TOOLS = "# Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n{}\n```"
EFFORT = (
    "`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), "
    "supported values include `low`, `medium`, `high`, and `max`.\nNow the system is invoked with `thinking_effort={}`."
)
MUST_CALL = "The system is invoked with `tool_choice=required`.\nYou MUST call tools in the next message."


@dataclass(frozen=True, kw_only=True)
class KimiK3Template(Template):
    """Kimi-K3."""

    def pieces(self, chat: Chat) -> Iterator[str]:
        options, is_thinking = chat.options, chat.options["thinking"]
        if chat.tools:
            catalogue = json.dumps(list(chat.tools), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
            yield _message("system", TOOLS.format(catalogue), type="tool-declare")
        if is_thinking:
            yield _message("system", EFFORT.format(options["thinking_effort"]), type="thinking-effort")
        calls: Sequence[Fields] = ()
        places: Mapping[str, int] = {}
        position = 0
        for message in in_call_order(chat.messages):
            role, content = message["role"], joined_parts(message.get("content"))
            if role == "tool":
                place = places.get(message.get("tool_call_id") or "", position)
                position += 1
                named = function_of(calls[place])["name"] if place < len(calls) else message.get("name")
                yield _message("tool", content, tool=named or "", index=str(place + 1))
                continue
            calls, position = message.get("tool_calls") or (), 0
            places = {call["id"]: place for place, call in enumerate(calls) if call.get("id")}
            if role == "assistant":
                yield _message("assistant", _answer(message, content, calls, is_thinking=is_thinking))
            elif role in ("system", "user"):
                yield _message(role, content)
        if options["tool_choice"] == "required":
            yield _message("system", MUST_CALL, type="tool-choice")
        if chat.add_generation_prompt:
            yield _open("message", role="assistant") + _open("think" if is_thinking else "response")

    def normalised(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Arguments that came as text are parsed, where they are an object; the template can also write what is not."""
        for message in messages:
            for call in message.get("tool_calls", ()):
                call["function"]["arguments"] = _parsed(call["function"]["arguments"])
        return messages


def _open(tag: str, **attributes: str) -> str:
    written = (
        f' {key}="{value.replace("&", "&amp;").replace(chr(34), "&quot;")}"' for key, value in attributes.items()
    )
    return f"{OPEN}{tag}{''.join(written)}{SEP}"


def _element(tag: str, body: str, **attributes: str) -> str:
    return f"{_open(tag, **attributes)}{body}{CLOSE}{tag}{SEP}"


def _message(role: str, body: str, **attributes: str) -> str:
    return _element("message", body, role=role, **attributes) + MESSAGE_END


def _answer(message: Fields, text: str, calls: Sequence[Fields], *, is_thinking: bool) -> str:
    thought = _element("think", printed(message.get("reasoning_content") or "")) if is_thinking else ""
    written = "".join(_call(call, index) for index, call in enumerate(calls, 1))
    return thought + _element("response", text) + (_element("tools", written) if calls else "")


def _call(call: Fields, index: int) -> str:
    arguments = arguments_of(call)
    if isinstance(arguments, Mapping):
        body = "".join(_argument(key, value) for key, value in arguments.items())
    else:
        body = _element("json", printed(arguments), type="object")
    return _element("call", body, tool=function_of(call)["name"], index=str(index))


def _argument(key: str, value: Any) -> str:
    written = text_or_json(value)
    return _element("argument", written, key=key, type=TYPES.get(type(value), "object"))


def _parsed(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return parsed if isinstance(parsed, dict) else arguments


TEMPLATES = (
    KimiK3Template(
        name="Kimi-K3",
        certainty=Certainty.ENCODER,
        models=r"kimi[-_ ]?k3",
        options={
            "thinking": flag(True),
            "thinking_effort": choice("low", "medium", "high", "max", default="max"),
            "tool_choice": choice("auto", "required", default="auto"),
        },
    ),
)
