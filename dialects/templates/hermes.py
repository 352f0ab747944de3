"""The template of Hermes 2 Pro (and 3) for tools: ChatML, a system turn about the tools first, results in a tool turn.

The tool turn's end has no newline behind it, so that the next turn begins on its line. Text beside calls is dropped.

Source: the vendor's `chat_template` named `tool_use`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dialects.templates.chatml import RESULT_BEGIN, RESULT_END, TURN_BEGIN, TURN_END, json_calls, turn
from dialects.templates.fields import (
    function_of,
    is_last_of_run,
    needs_text,
    printed,
    properties_of,
    pyjson,
    with_defaults,
)
from dialects.templates.template import Certainty, Chat, Fields, Template, TemplateError, any_text

__all__ = ["TEMPLATES"]

TOOLS_BEGIN = (
    "You are a function calling AI model. You are provided with function signatures within <tools></tools> XML tags. "
    "You may call one or more functions to assist with the user query. Don't make assumptions about what values to "
    "plug into functions. Here are the available tools: <tools> "
)
TOOLS_END = """ </tools>Use the following pydantic model json schema for each tool call you will make: \
{"properties": {"name": {"title": "Name", "type": "string"}, "arguments": {"title": "Arguments", "type": "object"}}, \
"required": ["name", "arguments"], "title": "FunctionCall", "type": "object"}}
For each function call return a json object with function name and arguments within <tool_call></tool_call> XML tags \
as follows:
<tool_call>
{"name": <function-name>, "arguments": <args-dict>}
</tool_call>"""

PYTHON_TYPES = {"string": "str", "number": "float", "integer": "int", "boolean": "bool"}


@dataclass(frozen=True, kw_only=True)
class HermesTemplate(Template):
    """Hermes 2 Pro."""

    def normalised_tools(self, tools: list[Fields]) -> list[Fields]:
        return [with_defaults(tool, description="", parameters={}) for tool in tools]

    def pieces(self, chat: Chat) -> Iterator[str]:
        messages = chat.messages
        yield chat.options["bos_token"]
        tools = "\n".join(_tool(tool, f"tools[{at}]", chat.normalise) for at, tool in enumerate(chat.tools))
        yield turn("system", f"{TOOLS_BEGIN}{tools}{TOOLS_END}")
        for index, message in enumerate(messages):
            role, content = message["role"], message.get("content")
            if role in ("user", "system") or (role == "assistant" and "tool_calls" not in message):
                yield turn(role, needs_text(content, f"messages[{index}].content"))
            elif role == "assistant":
                calls = message["tool_calls"]
                written = f"\n{json_calls(calls)}" if calls else ""
                yield f"{TURN_BEGIN}assistant{written}{TURN_END}"
            elif role == "tool":
                is_after_another = index > 0 and messages[index - 1]["role"] != "tool"
                is_last = index + 1 == len(messages)
                yield f"{TURN_BEGIN}tool\n" if is_after_another else ""
                yield f"{RESULT_BEGIN}\n{printed(content)}\n{RESULT_END}"
                yield "" if is_last else "\n"
                yield TURN_END.rstrip("\n") if is_last_of_run(messages, index) else ""
        if chat.add_generation_prompt:
            yield f"{TURN_BEGIN}assistant\n"


def _tool(tool: Fields, path: str, normalise: bool) -> str:
    """A tool as something that resembles JSON: its description holds a Python signature, and newlines as they are."""
    function = function_of(tool)
    name, parameters = function["name"], function.get("parameters")
    if not isinstance(parameters, Mapping):
        raise TemplateError("the template needs the parameters of a tool", f"{path}.parameters")
    properties = properties_of(parameters, f"{path}.parameters")
    types = {
        key: _python_type(field, f"{path}.parameters.properties.{key}", normalise) for key, field in properties.items()
    }
    signature = ", ".join(f"{key}: {written}" for key, written in types.items())
    described = [f"        {key}({types[key]}): {_description(field)}" for key, field in properties.items()]
    text = f"{name}({signature})"
    if "return" in function:
        text += f" -> {_python_type(function['return'], f'{path}.return', normalise)}"
    text += f" - {needs_text(function.get('description'), f'{path}.description')}\n\n"
    if described:
        text += "    Args:\n" + "".join(described)
    if isinstance(result := function.get("return"), Mapping) and "description" in result:
        text += f"\n    Returns:\n        {result['description']}"
    schema = pyjson(parameters) if properties else "{}"
    return f'{{"type": "function", "function": {{"name": "{name}", "description": "{text}", "parameters": {schema}}}'


def _description(field: Any) -> str:
    described = field.get("description", "") if isinstance(field, Mapping) else ""
    return printed(described).strip()


def _python_type(schema: Any, path: str, normalise: bool) -> str:
    """A JSON Schema's type in Python's notation. The vendor's template knows neither the type of a list's items nor any
    name but the six below; at another it calls itself until Python stops it. Normalised, that is `Any`."""
    named = schema.get("type", []) if isinstance(schema, Mapping) else []
    if isinstance(named, str):
        if named in PYTHON_TYPES:
            return PYTHON_TYPES[named]
        if named == "array":
            return "list[Union[]]"
        if named == "object":
            if "additionalProperties" not in schema:
                return "dict"
            return (
                f"dict[str, {_python_type(schema['additionalProperties'], f'{path}.additionalProperties', normalise)}]"
            )
        if named and normalise:
            return "None" if named == "null" else "Any"
        if named:
            raise TemplateError(f"the template never ends writing the type {named!r}", path)
    if not isinstance(named, str | list | tuple | Mapping):
        return "Any"
    members = [_python_type({"type": name}, path, normalise) for name in named]
    return f"Union[{','.join(members)}]"


TEMPLATES = (
    HermesTemplate(
        name="Hermes-2-Pro-Llama-3-8B",
        certainty=Certainty.COPY,
        models=r"hermes[-_ ]?(?:2[-_ ]?pro|3)",
        options={"bos_token": any_text("<|begin_of_text|>")},
        control_tokens=("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"),
    ),
)
