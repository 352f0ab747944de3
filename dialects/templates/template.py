"""What a vendor's template is here: facts and options as data, and one method that writes a conversation.

A template is an instance of a *shape*, a frozen dataclass whose fields are what the templates of that shape differ in
(turn markers, thinking policy, default texts) and whose `pieces` yields the text. It sees what the vendor's template
sees: OpenAI-style dicts as they came, or, normalised, dicts in which content is text, nobody is a developer, and
arguments are what the template can write. `Chat` holds them with the options, whose defaults are filled in by then.

    Vendor file in Jinja          here
    {{ value }}                   printed(value): `None` and Python lists included
    {{ value | tojson }}          pyjson(value)
    'text' + value                needs_text(value, path): raises what Jinja would raise
    raise_exception('reason')     raise TemplateError('reason', path)
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Any, TypeAlias

__all__ = [
    "Certainty",
    "Chat",
    "Fields",
    "Option",
    "OptionError",
    "Template",
    "TemplateError",
    "any_text",
    "arguments_of",
    "choice",
    "flag",
    "function_of",
    "in_call_order",
    "is_first_of_run",
    "is_last_of_run",
    "joined_parts",
    "last_user",
    "needs_text",
    "number",
    "object_arguments",
    "printed",
    "properties_of",
    "pyjson",
    "required_of",
    "schema_of",
    "split_thinking",
    "with_defaults",
]

Fields: TypeAlias = Mapping[str, Any]
"""A message, call or tool, as a template sees it."""


class TemplateError(ValueError):
    """There is no such template, or the template refuses the conversation: `reason` says why, `path` where."""

    def __init__(self, reason: str, path: str | None = None) -> None:
        super().__init__(reason, path)
        self.reason = reason
        self.path = path

    def __str__(self) -> str:
        return self.reason if self.path is None else f"{self.path}: {self.reason}"


class OptionError(TemplateError, TypeError):
    """The template has no such option, or the option cannot have that value."""


class Certainty(StrEnum):
    """What the recorded texts of a template come from, and so how sure it is that its vendor's writes the same."""

    VENDOR = "the vendor's own file"
    COPIES = "several copies that agree"
    RESTORED = "a serving engine's copy, its edits undone"
    ENCODER = "the vendor's encoder (there is no template), or a port of it"
    COPY = "one copy in another project"
    DESCRIBED = "nothing: what is known of its differences from a recorded one"


@dataclass(frozen=True)
class Option:
    """An option of a template: its value if none is given, which values it takes, and how to say so."""

    default: Any
    accepts: Callable[[Any], bool]
    expected: str


def flag(default: bool) -> Option:
    """True or false."""
    return Option(default, lambda value: isinstance(value, bool), "true or false")


def choice(*values: str, default: str | None) -> Option:
    """One of several words."""
    return Option(default, lambda value: isinstance(value, str) and value in values, f"one of {', '.join(values)}")


def any_text(default: str) -> Option:
    """Any text."""
    return Option(default, lambda value: isinstance(value, str), "text")


def number(default: int, low: int, high: int) -> Option:
    """A whole number, both limits included."""
    return Option(
        default,
        lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
        f"a whole number from {low} to {high}",
    )


@dataclass(frozen=True, slots=True)
class Chat:
    """What a template writes: a conversation, the tools, and how."""

    messages: Sequence[Fields]
    tools: Sequence[Fields]
    """The tools as the template sees them, `type` and `function` around them; empty where there are none."""
    options: Mapping[str, Any]
    """Every option of the template, given or not."""
    add_generation_prompt: bool
    normalise: bool
    """Whether the messages are normalised, so that the template need not care for what they can no longer hold."""
    now: datetime


@dataclass(frozen=True, kw_only=True)
class Template(ABC):
    """A template of one shape. Subclasses add fields for what their templates differ in, and write `pieces`."""

    name: str
    models: str
    """A regular expression found (whatever the case) in the ids of the models that it belongs to."""
    certainty: Certainty
    options: Mapping[str, Option] = field(default_factory=dict)
    takes_string_arguments: bool = True
    """Whether the vendor's template writes arguments that came as JSON text, one way or another; where it fails,
    normalising parses them."""
    quotes_string_arguments: bool = False
    """Whether it writes such text as a JSON string, or between braces of its own. Calls of this package's types have
    both, and give it the object."""
    control_tokens: tuple[str, ...] = ()
    """Control tokens of its own beside those of the dialect."""
    roles: tuple[str, ...] = ()
    """Roles of its own beside those of OpenAI's messages."""

    @abstractmethod
    def pieces(self, chat: Chat) -> Iterator[str]:
        """The text of a conversation, piece by piece. Raises `TemplateError` where the vendor's template raises."""

    def normalised(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The last step of normalising, for what only this template asks for. The messages are already normalised,
        belong to nobody else and may be changed in place."""
        return messages

    def normalised_tools(self, tools: list[Fields]) -> list[Fields]:
        """The same for the tools, which belong to the caller and may not be changed in place."""
        return tools

    def read_options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All options with their values. Raises `OptionError` for one that is unknown or has a value it cannot have."""
        for name, value in given.items():
            if name not in self.options:
                known = ", ".join(self.options) or "none"
                raise OptionError(f"the template {self.name!r} has no option {name!r}; it has: {known}")
            option = self.options[name]
            if not option.accepts(value):
                raise OptionError(
                    f"the option {name!r} of the template {self.name!r} is {option.expected}, not {value!r}"
                )
        return {name: given.get(name, option.default) for name, option in self.options.items()}


# What the vendors' templates do with values


pyjson: Callable[[object], str] = json.JSONEncoder(ensure_ascii=False).encode
"""JSON as Python writes it by default, non-ASCII characters as they are: Jinja's `tojson` for chat templates."""


def printed(value: object) -> str:
    """A value as Jinja prints it: None is the word, a list is Python's notation."""
    return value if isinstance(value, str) else str(value)


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


def object_arguments(call: Fields, path: str) -> Mapping[str, Any]:
    """The arguments of a call at that path, for a template that can only write an object."""
    arguments = arguments_of(call)
    if isinstance(arguments, Mapping):
        return arguments
    raise TemplateError(f"the template needs an object, found {type(arguments).__name__}", f"{path}.function.arguments")
