"""The template of gpt-oss: messages with channels, a fixed system message, the caller's system text as the developer's.

Only the first call of a message is written, and all results bear its name. Reasoning is kept beside a call while no
final answer follows, and in the last message of a conversation that ends there. Text beside a call is written as
reasoning.

Source: the vendor's `chat_template`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dialects.templates.fields import (
    function_of,
    needs_messages,
    needs_text,
    printed,
    properties_of,
    pyjson,
    required_of,
    schema_of,
    with_defaults,
)
from dialects.templates.template import Certainty, Chat, Fields, Template, TemplateError, any_text, choice

__all__ = ["TEMPLATES"]

START, CHANNEL, MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
END, CALL, RETURN = "<|end|>", "<|call|>", "<|return|>"
IDENTITY = "You are ChatGPT, a large language model trained by OpenAI."
CHANNELS = "# Valid channels: analysis, commentary, final. Channel must be included for every message."
HAS_TOOLS = "\nCalls to these tools must go to the commentary channel: 'functions'."
SCALARS = {"number": "number", "integer": "number", "boolean": "boolean"}
TYPE_MARGIN = "\n" + " " * 16
"""White space of the vendor's file that gets into the types of nested properties."""


@dataclass(frozen=True, kw_only=True)
class HarmonyTemplate(Template):
    """gpt-oss."""

    quotes_string_arguments: bool = True

    def pieces(self, chat: Chat) -> Iterator[str]:
        messages, first = needs_messages(chat.messages), 0
        yield _message("system", _system(chat))
        instructions = None
        if messages[0]["role"] in ("system", "developer"):
            instructions, first = messages[0].get("content"), 1
        if instructions or chat.tools:
            yield _message("developer", _developer(instructions, chat.tools))
        last_final = _last_final(messages)
        called: str | None = None
        for index in range(first, len(messages)):
            message, path = messages[index], f"messages[{index}]"
            role = message["role"]
            if role == "assistant" and "tool_calls" in message:
                called = _name_of_first_call(message, path)
                yield from _call(message, path, called, keeps_thinking=index > last_final)
            elif role == "assistant":
                is_end = index + 1 == len(messages) and not chat.add_generation_prompt
                yield from _final(message, path, is_end=is_end)
                called = called if is_end else None
            elif role == "tool":
                if called is None:
                    raise TemplateError("a tool's message needs a call before it", path)
                result = pyjson(message.get("content"))
                yield _message(f"functions.{called} to=assistant{CHANNEL}commentary", result)
            elif role == "user":
                yield _message("user", needs_text(message.get("content"), f"{path}.content"))
        if chat.add_generation_prompt:
            yield f"{START}assistant"

    def normalised_tools(self, tools: list[Fields]) -> list[Fields]:
        described = (with_defaults(tool, description="") for tool in tools)
        return [_with_text_defaults(tool, f"tools[{at}].function.parameters") for at, tool in enumerate(described)]

    def normalised(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Reasoning goes where the template looks for it. Beside a call there is either reasoning or text, or neither;
        the template would write the text as reasoning too, so that both together are reasoning."""
        for message in messages:
            reasoning = message.pop("reasoning_content", "")
            if "tool_calls" in message:
                both = [text for text in (reasoning, message["content"]) if text]
                del message["content"]
                reasoning = "\n\n".join(both)
            if reasoning:
                message["thinking"] = reasoning
        return messages


def _with_text_defaults(tool: Fields, path: str) -> Fields:
    """The tool with text as the default of every choice: the template joins that to text, whatever it is."""
    function = tool["function"]
    parameters = function.get("parameters") or {}
    properties = {
        key: {**schema, "default": pyjson(schema["default"])}
        for key, schema in properties_of(parameters, path).items()
        if _is_choice(schema) and not isinstance(schema.get("default", ""), str)
    }
    if not properties:
        return tool
    changed = {**parameters, "properties": parameters["properties"] | properties}
    return {**tool, "function": {**function, "parameters": changed}}


def _is_choice(schema: Fields) -> bool:
    return bool(schema.get("enum") or schema.get("oneOf"))


def _message(header: str, body: str, end: str = END) -> str:
    return f"{START}{header}{MESSAGE}{body}{end}"


def _system(chat: Chat) -> str:
    today, options = chat.now.strftime("%Y-%m-%d"), chat.options
    about = f"{options['model_identity']}\nKnowledge cutoff: 2024-06\nCurrent date: {today}\n\n"
    return f"{about}Reasoning: {options['reasoning_effort']}\n\n{CHANNELS}{HAS_TOOLS if chat.tools else ''}"


def _developer(instructions: object, tools: Sequence[Fields]) -> str:
    text = f"# Instructions\n\n{printed(instructions)}\n\n" if instructions else ""
    return f"{text}# Tools\n\n{_namespace(tools)}" if tools else text


def _last_final(messages: Sequence[Fields]) -> int:
    """Where the last assistant message without calls is; -1 if there is none."""
    places = range(len(messages) - 1, -1, -1)
    answers = (at for at in places if messages[at]["role"] == "assistant" and "tool_calls" not in messages[at])
    return next(answers, -1)


def _name_of_first_call(message: Fields, path: str) -> str:
    if not message["tool_calls"]:
        raise TemplateError("the template needs a call where there is a list of calls", f"{path}.tool_calls")
    name: str = function_of(message["tool_calls"][0])["name"]
    return name


def _call(message: Fields, path: str, name: str, *, keeps_thinking: bool) -> Iterator[str]:
    _check(message, path)
    content, thinking = message.get("content"), message.get("thinking")
    if content and thinking:
        raise TemplateError("beside a call there can be text or thinking, not both", path)
    if keeps_thinking and (content or thinking):
        key = "content" if content else "thinking"
        yield _analysis(message, key, path)
    function = function_of(message["tool_calls"][0])
    kind = printed(function.get("content_type", "json"))
    header = f"assistant to=functions.{name}{CHANNEL}commentary {kind}"
    yield _message(header, pyjson(function.get("arguments", {})), CALL)


def _final(message: Fields, path: str, *, is_end: bool) -> Iterator[str]:
    _check(message, path)
    if is_end and "thinking" in message:
        yield _analysis(message, "thinking", path)
    content = needs_text(message.get("content"), f"{path}.content")
    yield _message(f"assistant{CHANNEL}final", content, RETURN if is_end else END)


def _analysis(message: Fields, key: str, path: str) -> str:
    return _message(f"assistant{CHANNEL}analysis", needs_text(message[key], f"{path}.{key}"))


def _check(message: Fields, path: str) -> None:
    """Neither text nor thinking may hold channels that belong into fields of their own."""
    for key in ("content", "thinking"):
        value = message.get(key, "")
        if value is None:
            raise TemplateError("the template can only look into text here, found None", f"{path}.{key}")
        if any(f"{CHANNEL}{channel}{MESSAGE}" in value for channel in ("analysis", "final")):
            problem = "thinking and answers belong into the fields 'thinking' and 'content', without channel tokens"
            raise TemplateError(problem, f"{path}.{key}")


# Tools, as TypeScript


def _namespace(tools: Sequence[Fields]) -> str:
    written = "".join(f"{_function(tool, f'tools[{at}].function')}\n\n" for at, tool in enumerate(tools))
    return f"## functions\n\nnamespace functions {{\n\n{written}}} // namespace functions"


def _function(tool: Fields, path: str) -> str:
    function = function_of(tool)
    comment = f"// {needs_text(function.get('description'), f'{path}.description')}\n"
    parameters = function.get("parameters") or {}
    properties = properties_of(parameters, f"{path}.parameters")
    if not properties:
        return f"{comment}type {function['name']} = () => any;"
    required = required_of(parameters)
    at = f"{path}.parameters.properties"
    fields = "".join(f"{_field(key, schema, required, f'{at}.{key}')},\n" for key, schema in properties.items())
    return f"{comment}type {function['name']} = (_: {{\n{fields}}}) => any;"


def _field(key: str, schema: Fields, required: Sequence[str], path: str) -> str:
    comment = f"// {schema['description']}\n" if schema.get("description") else ""
    written = f"{comment}{key}{'' if key in required else '?'}: {_type(schema, path)}"
    if "default" not in schema:
        return written
    if _is_choice(schema):
        between = ", " if schema.get("enum") else ""
        return f"{written}{between}// default: {needs_text(schema['default'], f'{path}.default')}"
    return f"{written}, // default: {pyjson(schema['default'])}"


def _type(schema: Fields, path: str) -> str:
    kind = schema.get("type")
    if kind == "array":
        return _array(schema, path)
    if isinstance(kind, list | tuple) and kind:
        return " | ".join(map(printed, kind))
    if schema.get("oneOf"):
        return " | \n".join(_variant(schema_of(variant), path) for variant in schema["oneOf"])
    if kind == "string":
        if schema.get("enum"):
            return " | ".join(f'"{printed(value)}"' for value in schema["enum"])
        return f"string{_null(schema)}"
    if kind == "object":
        return _object(schema, path)
    return SCALARS.get(kind, "any") if isinstance(kind, str) else "any"


def _array(schema: Fields, path: str) -> str:
    items = schema_of(schema.get("items"))
    if not items:
        return f"any[]{_null(schema)}"
    inner = "string" if items.get("type") == "string" else _type(items, f"{path}.items")
    is_too_much = inner == "object | object" or len(inner) > 50
    return f"{'any' if is_too_much else inner}[]{_null(schema)}"


def _object(schema: Fields, path: str) -> str:
    properties = properties_of(schema, path)
    if not properties:
        return "object"
    required = required_of(schema)
    fields = (
        f"{key}{'' if key in required else '?'}: {TYPE_MARGIN}{_type(inner, path)}" for key, inner in properties.items()
    )
    return "{\n" + ", ".join(fields) + "}"


def _variant(schema: Fields, path: str) -> str:
    comment = f"// {schema['description']}" if schema.get("description") else ""
    default = f"{' ' * 20}// default: {pyjson(schema['default'])}" if "default" in schema else ""
    return _type(schema, path) + comment + default


def _null(schema: Fields) -> str:
    return " | null" if schema.get("nullable") else ""


TEMPLATES = (
    HarmonyTemplate(
        name="gpt-oss-120b",
        certainty=Certainty.VENDOR,
        models=r"gpt[-_ ]?oss",
        options={
            "reasoning_effort": choice("low", "medium", "high", default="medium"),
            "model_identity": any_text(IDENTITY),
        },
    ),
)
