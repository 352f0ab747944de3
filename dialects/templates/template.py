"""What a vendor's template is here: facts and options as data, and one method that writes a conversation.

A template is an instance of a *shape*, a frozen dataclass whose fields are what the templates of that shape differ in
(turn markers, thinking policy, default texts) and whose `pieces` yields the text. It sees what the vendor's template
sees: OpenAI-style dicts as they came, or, normalised, dicts in which content is text, nobody is a developer, and
arguments are what the template can write. `Chat` holds them with the options, whose defaults are filled in by then.

What they do with what they see, all of them alike, stands in `fields.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
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
    "choice",
    "flag",
    "number",
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
