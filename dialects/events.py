"""What a scanner can say: nine immutable events, and their wire form.

An event is a frozen `msgspec.Struct`; `Event` is the closed union of them, so a `match` statement over it can be
checked for completeness. `event_to_json` gives the wire form: one JSON object, `type` first, field names in camelCase.
"""

import json
import re
from typing import Any, TypeAlias

import msgspec

__all__ = [
    "Event",
    "Stopped",
    "Text",
    "ThinkingDelta",
    "ThinkingEnd",
    "ThinkingStart",
    "ToolArgDelta",
    "ToolDropped",
    "ToolEnd",
    "ToolStart",
    "event_to_json",
]


class _Event(msgspec.Struct, frozen=True, tag_field="type", rename="camel", gc=False):
    pass


class Text(_Event, frozen=True, tag="text"):
    """Text for the reader."""

    text: str


class ThinkingStart(_Event, frozen=True, tag="thinkingStart"):
    """The model begins to think; a block without content gives no event at all."""


class ThinkingDelta(_Event, frozen=True, tag="thinkingDelta"):
    """The next piece of the thinking."""

    delta: str


class ThinkingEnd(_Event, frozen=True, tag="thinkingEnd"):
    """The thinking is over; `thinking` is all of it."""

    thinking: str


class ToolStart(_Event, frozen=True, tag="toolStart"):
    """A call begins: its name is complete, its arguments follow.

    `id` is the model's own where the dialect has one, else `call_` and 24 hexadecimal digits; it is unique within a
    scanner.
    """

    id: str
    name: str


class ToolArgDelta(_Event, frozen=True, tag="toolArgDelta"):
    """The next piece of a call's arguments.

    `key` is the top-level argument being written, or None between two of them. `delta` is what a person would read: the
    decoded text of a string argument, JSON text of any other, empty where `key` is None. `json` is the piece of the
    arguments' JSON text; all of a call's pieces joined are its `arguments_json`.
    """

    id: str
    name: str
    key: str | None
    delta: str
    json: str


class ToolEnd(_Event, frozen=True, tag="toolEnd"):
    """A call is complete.

    `arguments_json` is valid JSON and its value is `arguments`: the model's own characters wherever they were valid.
    `raw_block` is the call as the model wrote it, with its markers. `repairs` names every tolerance that was needed; it
    is empty for a clean call.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    arguments_json: str
    raw_block: str
    repairs: tuple[str, ...] = ()


class ToolDropped(_Event, frozen=True, tag="toolDropped"):
    """Something that began as a call and is not one.

    `reason` is `unfinished` (the stream ended inside it), `malformed`, `nameless`, `unknown-tool` or `too-large`;
    `name` is None if it never came.
    """

    id: str
    name: str | None
    reason: str
    raw_block: str


class Stopped(_Event, frozen=True, tag="stopped"):
    """The model writes what is not its turn; nothing more comes out until `flush`.

    `reason` is `fabricated-result` (a tool result) or `fabricated-turn` (a user or system turn).
    """

    reason: str


Event: TypeAlias = (
    Text | ThinkingStart | ThinkingDelta | ThinkingEnd | ToolStart | ToolArgDelta | ToolEnd | ToolDropped | Stopped
)

_SURROGATE = re.compile("[\ud800-\udfff]")


def event_to_json(event: Event) -> bytes:
    """The wire form of an event: one line of UTF-8 JSON. A lone surrogate becomes U+FFFD."""
    try:
        return msgspec.json.encode(event)
    except UnicodeEncodeError:
        plain = json.dumps(msgspec.to_builtins(event), ensure_ascii=False)
        return msgspec.json.encode(json.loads(_SURROGATE.sub("\ufffd", plain)))
