"""What the vendors' templates do with messages, calls, tools and values, where several do the same.

    Vendor file in Jinja          here
    {{ value }}                   printed(value): `None` and Python lists included
    {{ value | tojson }}          pyjson(value)
    'text' + value                needs_text(value, path): raises what Jinja would raise
    raise_exception('reason')     raise TemplateError('reason', path)

Whatever raises here raises because the vendor's template would. What one family alone does stands in its file.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from dialects.templates.template import Fields, TemplateError

__all__ = [
    "after_system",
    "arguments_of",
    "function_of",
    "in_call_order",
    "is_first_of_run",
    "is_last_of_run",
    "joined_parts",
    "last_user",
    "needs_messages",
    "needs_text",
    "object_arguments",
    "printed",
    "properties_of",
    "pyjson",
    "required_of",
    "schema_of",
    "split_thinking",
    "text_or_json",
    "with_defaults",
    "with_paths",
]


pyjson: Callable[[object], str] = json.JSONEncoder(ensure_ascii=False).encode
"""JSON as Python writes it by default, non-ASCII characters as they are: Jinja's `tojson` for chat templates."""


def printed(value: object) -> str:
    """A value as Jinja prints it: None is the word, a list is Python's notation."""
    return value if isinstance(value, str) else str(value)


def text_or_json(value: object) -> str:
    """Text as it is, anything else as JSON."""
    return value if isinstance(value, str) else pyjson(value)


def needs_text(value: object, path: str) -> str:
    """A value that the vendor's template joins to text, which fails for anything else. None is what is not there."""
    if isinstance(value, str):
        return value
    found = "None" if value is None else f"a {type(value).__name__}"
    raise TemplateError(f"the template can only write text here, found {found}", path)


def joined_parts(content: object) -> str:
    """The texts of content parts, one after the other; text as it is, None as nothing."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)


def function_of(item: Fields) -> Fields:
    """The function object of a call or a tool, which may be the thing itself."""
    function: Fields = item.get("function") or item
    return function


def split_thinking(message: Fields, content: str) -> tuple[str, str]:
    """The reasoning and the text of an assistant's message; without a field for it, reasoning may stand in the text."""
    reasoning = message.get("reasoning_content")
    if isinstance(reasoning, str):
        return reasoning, content
    if "</think>" not in content:
        return "", content
    reasoning = content.partition("</think>")[0].rstrip("\n").rpartition("<think>")[2].lstrip("\n")
    return reasoning, content.rpartition("</think>")[2].lstrip("\n")


def needs_messages(messages: Sequence[Fields]) -> Sequence[Fields]:
    """The messages, of which the vendor's template takes the first without a look whether there is one."""
    if not messages:
        raise TemplateError("the template needs at least one message", "messages")
    return messages


def after_system(messages: Sequence[Fields]) -> int:
    """Where the conversation begins: behind the system message, if the first is one."""
    return 1 if messages and messages[0]["role"] == "system" else 0


def is_first_of_run(messages: Sequence[Fields], index: int) -> bool:
    """Whether the message before this one has another role, or there is none."""
    return index == 0 or messages[index - 1]["role"] != messages[index]["role"]


def is_last_of_run(messages: Sequence[Fields], index: int) -> bool:
    """Whether the message after this one has another role, or there is none."""
    return index + 1 == len(messages) or messages[index + 1]["role"] != messages[index]["role"]


def last_user(messages: Sequence[Fields]) -> int:
    """Where the last message of the user is; -1 if there is none."""
    return next((index for index in range(len(messages) - 1, -1, -1) if messages[index]["role"] == "user"), -1)


def in_call_order(messages: Sequence[Fields]) -> list[Fields]:
    """The messages, each run of results in the order of the calls before it, if all of them name one of those calls."""
    ordered: list[Fields] = []
    places: dict[Any, int] = {}
    for is_result, run in groupby(messages, key=lambda message: message["role"] == "tool"):
        batch = list(run)
        if is_result and all(message.get("tool_call_id") in places for message in batch):
            batch.sort(key=lambda message: places[message["tool_call_id"]])
        ordered += batch
        calls = () if is_result else batch[-1].get("tool_calls") or ()
        places = {call["id"]: place for place, call in enumerate(calls) if call.get("id") is not None}
    return ordered


def schema_of(value: object) -> Fields:
    """A JSON Schema; Jinja finds nothing in one that is true or false, or no schema at all."""
    return value if isinstance(value, Mapping) else {}


def properties_of(schema: Fields, path: str) -> dict[str, Fields]:
    """The schemas of an object's properties by name."""
    properties = schema.get("properties") or {}
    if not isinstance(properties, Mapping):
        problem = f"the template needs an object of properties, found {type(properties).__name__}"
        raise TemplateError(problem, f"{path}.properties")
    return {key: schema_of(value) for key, value in properties.items()}


def required_of(schema: Fields) -> Sequence[str]:
    """The names of the properties that an object must have."""
    required = schema.get("required")
    return required if isinstance(required, list | tuple) else ()


def with_defaults(tool: Fields, **defaults: Any) -> Fields:
    """A tool with what its function does not say for itself."""
    return {**tool, "function": {**defaults, **function_of(tool)}}


def arguments_of(call: Fields) -> Any:
    """The arguments of a call, an object or its JSON text."""
    return function_of(call).get("arguments", {})


def with_paths(calls: Sequence[Fields], path: str) -> Iterator[tuple[Fields, str]]:
    """The calls of the message at that path, each with its own."""
    return ((call, f"{path}.tool_calls[{at}]") for at, call in enumerate(calls))


def object_arguments(call: Fields, path: str) -> Mapping[str, Any]:
    """The arguments of a call at that path, for a template that can only write an object."""
    arguments = arguments_of(call)
    if isinstance(arguments, Mapping):
        return arguments
    raise TemplateError(f"the template needs an object, found {type(arguments).__name__}", f"{path}.function.arguments")
