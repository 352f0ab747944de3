"""From what a caller gives to what a template sees: checking, normalising, and writing.

Normalised or not, every message is checked first, and an error names the path. Arguments that came as text are checked
only where a template needs the object: many write the text as it is. Normalising does for all templates what
`docs/templates.md` lists; a template adds its own by `normalised`.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from types import NoneType
from typing import Any

from dialects.engine.rendering import without_surrogates
from dialects.events import ToolEnd
from dialects.messages import (
    REASONING_KEYS,
    ROLES,
    Message,
    MessageLike,
    Tool,
    ToolCall,
    ToolLike,
    call_as_dict,
    is_json,
    message_as_dict,
    read_call,
    read_message,
    read_messages,
    read_tools,
)
from dialects.templates.template import Chat, Fields, Template

__all__ = ["write"]

_TEXT_KEYS = ("content", "name", "tool_call_id", *REASONING_KEYS)


def write(
    template: Template,
    messages: Sequence[MessageLike],
    *,
    tools: Sequence[ToolLike] | None = None,
    add_generation_prompt: bool = False,
    normalise: bool = True,
    now: datetime | None = None,
    options: Mapping[str, Any] | None = None,
) -> str:
    """The conversation as the template writes it.

    Raises `MessageError` for messages or tools that are not well-formed, `OptionError` for options that the template
    does not have, `TemplateError` where the template refuses the conversation, and TypeError if `now` is no date.
    """
    chosen = template.read_options(options or {})
    if not isinstance(now, date | None):
        raise TypeError(f"now is a datetime, not {type(now).__name__}")
    read_tools(tools)
    seen = _as_seen(messages, template, normalise=normalise)
    shown = [_tool(tool, normalise=normalise) for tool in tools or ()]
    chat = Chat(
        messages=template.normalised(seen) if normalise else seen,
        tools=template.normalised_tools(shown) if normalise else shown,
        options=chosen,
        add_generation_prompt=add_generation_prompt,
        normalise=normalise,
        now=now or datetime.now(),
    )
    return without_surrogates("".join(template.pieces(chat)))


def _as_seen(messages: Sequence[MessageLike], template: Template, *, normalise: bool) -> list[Any]:
    if not isinstance(messages, list | tuple):
        read_messages(messages)  # says what is wrong with them, if they are no sequence at all
    return [_seen(message, template, f"messages[{index}]", normalise) for index, message in enumerate(messages)]


def _seen(message: Any, template: Template, path: str, normalise: bool) -> Any:
    """The message as the template sees it, when it has been checked."""
    if _is_usual(message):
        if not normalise:
            return message
        is_assistant = message["role"] == "assistant"
        reasoning = next(filter(None, map(message.get, REASONING_KEYS)), "") if is_assistant else ""
        return _normalised(message, message.get("content") or "", reasoning, template, path)
    source = _source(message, template)
    read = read_message(_checkable(source, template), path)
    return _normalised(source, read.content, read.reasoning, template, path) if normalise else source


# Nearly all messages are dicts of the form that OpenAI's own clients send. These are told apart quickly: a conversation
# is written at every turn, and most of it has not changed.


def _is_usual(message: Any) -> bool:
    """Whether a message is a dict in which everything that is read is of the right type, and content is no list."""
    if type(message) is not dict or message.get("role") not in ROLES:
        return False
    calls = message.get("tool_calls")
    if message["role"] != "assistant" and (calls or "content" not in message):
        return False
    if calls is not None and not (type(calls) is list and all(map(_is_usual_call, calls))):
        return False
    if type(message.get("is_error")) not in (NoneType, bool):
        return False
    return all(map(_is_text_or_none, map(message.get, _TEXT_KEYS)))


def _is_usual_call(call: Any) -> bool:
    if type(call) is not dict or call.get("type", "function") != "function" or not _is_text_or_none(call.get("id")):
        return False
    function = call.get("function")
    if type(function) is not dict or type(function.get("name")) is not str or not function["name"]:
        return False
    arguments = function.get("arguments")
    return _is_text_or_none(arguments) or (type(arguments) is dict and is_json(arguments))


def _is_text_or_none(value: object) -> bool:
    return value is None or type(value) is str


def _source(message: Any, template: Template) -> Any:
    """A copy of the message as a dict, our own types in it too; what is no message is left for the check to refuse."""
    calls = message.tool_calls if isinstance(message, Message) else None
    if isinstance(message, Message):
        message = message_as_dict(message)
    elif isinstance(message, Mapping):
        calls = message.get("tool_calls")
    else:
        return message
    if not isinstance(calls, list | tuple) or not any(isinstance(call, ToolCall | ToolEnd) for call in calls):
        return dict(message)
    return {**message, "tool_calls": [_call_source(call, template) for call in calls]}


def _call_source(call: Any, template: Template) -> Any:
    if not isinstance(call, ToolCall | ToolEnd):
        return call
    source = call_as_dict(call)
    if template.quotes_string_arguments:
        source["function"]["arguments"] = call.arguments
    return source


def _checkable(source: Any, template: Template) -> Any:
    """The message without what is not checked: roles of the template's own, and arguments that are text."""
    if not isinstance(source, Mapping):
        return source
    hidden: dict[str, Any] = {}
    if source.get("role") in template.roles:
        hidden["role"] = "system"
    calls = source.get("tool_calls")
    if isinstance(calls, list | tuple):
        hidden["tool_calls"] = [_without_text_arguments(call) for call in calls]
    return {**source, **hidden} if hidden else source


def _without_text_arguments(call: Any) -> Any:
    if not isinstance(call, Mapping):
        return call
    function = call.get("function", call)
    if not isinstance(function, Mapping) or not isinstance(function.get("arguments"), str):
        return call
    bare = {key: value for key, value in function.items() if key != "arguments"}
    return bare if function is call else {**call, "function": bare}


def _normalised(source: Fields, content: str, reasoning: str, template: Template, path: str) -> dict[str, Any]:
    role = source["role"]
    message: dict[str, Any] = {"role": "system" if role == "developer" else role, "content": content}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls := source.get("tool_calls"):
        message["tool_calls"] = [
            _normalised_call(call, template, f"{path}.tool_calls[{at}]") for at, call in enumerate(calls)
        ]
    for key in ("tool_call_id", "name"):
        if source.get(key) is not None:
            message[key] = source[key]
    return message


def _normalised_call(call: Fields, template: Template, path: str) -> dict[str, Any]:
    function = call.get("function", call)
    arguments = function.get("arguments")
    if not arguments or (isinstance(arguments, str) and arguments.strip() in ("", "null")):
        arguments = {}
    elif isinstance(arguments, str) and not template.takes_string_arguments:
        arguments = read_call(call, path).arguments
    normal = {"type": "function", "function": {"name": function["name"], "arguments": arguments}}
    return {"id": call["id"], **normal} if call.get("id") is not None else normal


def _tool(tool: ToolLike, *, normalise: bool) -> Fields:
    fields: Fields = {"type": "function", "function": tool.definition} if isinstance(tool, Tool) else tool
    if not normalise:
        return dict(fields)
    inner: Fields = fields.get("function", fields)
    outer = {} if inner is fields else fields
    return {"type": "function", **outer, "function": _normalised_function(inner)}


def _normalised_function(function: Fields) -> Fields:
    """The function of a tool without what is null, its schema under the name that templates know."""
    schema = "input_schema" if "parameters" not in function else "parameters"
    return {"parameters" if key == schema else key: value for key, value in function.items() if value is not None}
