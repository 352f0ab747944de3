"""From what a caller gives to what a template sees: checking, normalising, and writing.

Normalised or not, every message is checked first, and an error names the path. Arguments that came as text are checked
only where a template needs the object: many write the text as it is. Normalising does for all templates what
`docs/templates.md` lists; a template adds its own by `normalised`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from dialects.engine.rendering import without_surrogates
from dialects.events import ToolEnd
from dialects.messages import (
    Message,
    MessageLike,
    Tool,
    ToolCall,
    ToolLike,
    call_as_dict,
    message_as_dict,
    read_call,
    read_messages,
    read_tools,
)
from dialects.templates.template import Chat, Fields, Template

__all__ = ["write"]


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
    does not have, and `TemplateError` where the template refuses the conversation.
    """
    chosen = template.read_options(options or {})
    read_tools(tools)
    seen = _as_seen(messages, template, normalise=normalise)
    chat = Chat(
        messages=template.normalised(seen) if normalise else seen,
        tools=[_tool(tool, normalise=normalise) for tool in tools or ()],
        options=chosen,
        add_generation_prompt=add_generation_prompt,
        normalise=normalise,
        now=now or datetime.now(),
    )
    return without_surrogates("".join(template.pieces(chat)))


def _as_seen(messages: Sequence[MessageLike], template: Template, *, normalise: bool) -> list[dict[str, Any]]:
    if not isinstance(messages, list | tuple):
        read_messages(messages)  # says what is wrong with them, if they are no sequence at all
    sources = [_source(message) for message in messages]
    read = read_messages([_checkable(source, template) for source in sources])
    if not normalise:
        return sources
    pairs = enumerate(zip(sources, read, strict=True))
    return [_normalised(source, message, template, f"messages[{index}]") for index, (source, message) in pairs]


def _source(message: Any) -> Any:
    """A copy of the message as a dict, our own types in it too; what is no message is left for the check to refuse."""
    if isinstance(message, Message):
        return message_as_dict(message)
    if not isinstance(message, Mapping):
        return message
    calls = message.get("tool_calls")
    if isinstance(calls, list | tuple) and any(isinstance(call, ToolCall | ToolEnd) for call in calls):
        return {
            **message,
            "tool_calls": [call_as_dict(it) if isinstance(it, ToolCall | ToolEnd) else it for it in calls],
        }
    return dict(message)


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


def _normalised(source: Fields, read: Message, template: Template, path: str) -> dict[str, Any]:
    role = source["role"]
    message: dict[str, Any] = {"role": "system" if role == "developer" else role, "content": read.content}
    if read.reasoning:
        message["reasoning_content"] = read.reasoning
    if read.tool_calls:
        calls = enumerate(source["tool_calls"])
        message["tool_calls"] = [_normalised_call(call, template, f"{path}.tool_calls[{at}]") for at, call in calls]
    if read.tool_call_id is not None:
        message["tool_call_id"] = read.tool_call_id
    if read.name is not None:
        message["name"] = read.name
    return message


def _normalised_call(call: Any, template: Template, path: str) -> dict[str, Any]:
    function = call.get("function", call)
    arguments = function.get("arguments")
    if not arguments or (isinstance(arguments, str) and not arguments.strip()):
        arguments = {}
    elif isinstance(arguments, str) and not template.takes_string_arguments:
        arguments = read_call(call, path).arguments
    normal = {"type": "function", "function": {"name": function["name"], "arguments": arguments}}
    return {"id": call["id"], **normal} if call.get("id") is not None else normal


def _tool(tool: ToolLike, *, normalise: bool) -> Fields:
    if isinstance(tool, Tool):
        return {"type": "function", "function": tool.definition}
    if normalise and "function" not in tool:
        return {"type": "function", "function": tool}
    return tool
