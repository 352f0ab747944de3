"""What a conversation is made of, and the readers that accept it from callers.

Four immutable types, `Tool`, `ToolCall`, `ToolResult` and `Message`, and one reader for each. A reader takes the dicts
of OpenAI's chat-completions interface or the package's own types, checks every part of them, and gives its own types
back. What does not fit raises a `MessageError` that names the path to the fault, what was expected and what was found:

    messages[3].tool_calls[0].function.name: expected text that is not empty, found no such key
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import msgspec

from dialects.events import ToolEnd

__all__ = [
    "REASONING_KEYS",
    "ROLES",
    "CallLike",
    "Message",
    "MessageError",
    "MessageLike",
    "ResultLike",
    "Tool",
    "ToolCall",
    "ToolLike",
    "ToolResult",
    "call_as_dict",
    "is_json",
    "message_as_dict",
    "read_call",
    "read_calls",
    "read_message",
    "read_messages",
    "read_results",
    "read_tools",
]

ROLES = ("system", "developer", "user", "assistant", "tool")

MAX_DEPTH = 200
"""How deep arguments and schemas may be nested; deeper ones would exhaust Python's stack somewhere downstream."""

REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
"""The keys that an assistant's reasoning is read from; the first that says something counts."""

_PART_KEYS = {"text": "text", "thinking": "thinking"}


class MessageError(ValueError):
    """A message, call, result or tool is not what it should be; `path` says where, `problem` what."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class Tool(msgspec.Struct, frozen=True):
    """A tool that the model may call. `parameters` is its JSON Schema, `definition` the function object as given."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    definition: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if not self.definition:
            plain = {"name": self.name, "description": self.description, "parameters": self.parameters}
            msgspec.structs.force_setattr(self, "definition", plain)

    @property
    def properties(self) -> dict[str, Any]:
        """The schemas of its parameters by name, as far as its own schema lists them."""
        properties = self.parameters.get("properties")
        return properties if isinstance(properties, dict) else {}

    def fits(self, arguments: Mapping[str, object]) -> bool:
        """Whether arguments name only parameters of this tool, and all that it requires."""
        required = self.parameters.get("required")
        return arguments.keys() <= self.properties.keys() and set(required or ()) <= arguments.keys()


class ToolCall(msgspec.Struct, frozen=True):
    """A call of a tool. `arguments_json` is the arguments' text as it was received, if they came as text."""

    id: str | None
    name: str
    arguments: dict[str, Any]
    arguments_json: str | None = None


class ToolResult(msgspec.Struct, frozen=True):
    """What a tool answered to the call `call_id`; `name` is the tool's, where it is known."""

    call_id: str | None
    name: str | None
    content: str
    is_error: bool = False


class Message(msgspec.Struct, frozen=True):
    """One message. `reasoning` and `tool_calls` belong to an assistant's, `tool_call_id` and `is_error` to a tool's."""

    role: str
    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    is_error: bool = False

    def as_result(self) -> ToolResult:
        """What a tool's message says, without its place in the conversation."""
        return ToolResult(self.tool_call_id, self.name, self.content, self.is_error)


ToolLike: TypeAlias = Mapping[str, object] | Tool
CallLike: TypeAlias = Mapping[str, object] | ToolCall | ToolEnd
ResultLike: TypeAlias = Mapping[str, object] | ToolResult | Message
MessageLike: TypeAlias = Mapping[str, object] | Message


def read_tools(tools: Sequence[ToolLike] | None, path: str = "tools") -> tuple[Tool, ...] | None:
    """Tools as OpenAI function tools, as bare function objects or as `Tool`; None stays None. The schema may also be
    called `input_schema`. No two tools may have one name."""
    if tools is None:
        return None
    read: dict[str, Tool] = {}
    for at, item in _items(tools, "tools", path):
        tool = _read_tool(item, at)
        if tool.name in read:
            raise MessageError(at, f"expected a tool with a name of its own, found a second {tool.name!r}")
        read[tool.name] = tool
    return tuple(read.values())


def read_messages(messages: Sequence[MessageLike], path: str = "messages") -> tuple[Message, ...]:
    """A whole conversation."""
    return tuple(read_message(message, at) for at, message in _items(messages, "messages", path))


def read_calls(calls: Sequence[CallLike], path: str = "calls") -> tuple[ToolCall, ...]:
    """The calls of one assistant message."""
    return tuple(read_call(call, at) for at, call in _items(calls, "tool calls", path))


def read_results(results: Sequence[ResultLike], path: str = "results") -> tuple[ToolResult, ...]:
    """Tool results: `tool` messages or `ToolResult`s."""
    return tuple(_read_result(result, at) for at, result in _items(results, "tool results", path))


def read_message(message: MessageLike, path: str = "message") -> Message:
    """One message. Text parts are joined with nothing between them, absent content of an assistant is empty text.

    Reasoning is read from `reasoning_content`, `reasoning`, `thinking`, or from content parts of type `thinking`.
    """
    source = _fields(message, (Message,), path)
    role = source.get("role")
    if role not in ROLES:
        _fail(path, "role", f"one of {', '.join(ROLES)}", source)
    if "content" not in source and role != "assistant":
        _fail(path, "content", "text", source)
    content, thought = _content(source.get("content"), f"{path}.content")
    reasoning = _reasoning(source, path) or thought
    raw_calls = source.get("tool_calls")
    if role != "assistant" and (raw_calls or thought):
        key = "tool_calls" if raw_calls else "content"
        raise MessageError(
            f"{path}.{key}", f"expected none but in an assistant message, found them in a {role} message"
        )
    return Message(
        role=str(role),
        content=content,
        reasoning=reasoning if role == "assistant" else "",
        tool_calls=() if raw_calls is None else read_calls(raw_calls, f"{path}.tool_calls"),  # type: ignore[arg-type]
        tool_call_id=_optional_text(source, "tool_call_id", path),
        name=_optional_text(source, "name", path),
        is_error=_flag(source, "is_error", path),
    )


def read_call(call: CallLike, path: str = "call") -> ToolCall:
    """One call: OpenAI's `{"id", "type", "function": {"name", "arguments"}}`, the bare inner object, or an own type.

    The arguments are an object or its JSON text; empty text, `null` and None mean no arguments.
    """
    source = _fields(call, (ToolCall, ToolEnd), path)
    function, at = _function(source, path)
    raw = function.get("arguments")
    received = raw if isinstance(raw, str) else _optional_text(function, "arguments_json", at)
    return ToolCall(_optional_text(source, "id", path), _name(function, at), _arguments(raw, at), received)


def message_as_dict(message: Message) -> dict[str, Any]:
    """A message in OpenAI's form, with the keys that it has something for."""
    optional = {
        "reasoning_content": message.reasoning,
        "tool_calls": [call_as_dict(call) for call in message.tool_calls],
        "tool_call_id": message.tool_call_id,
        "name": message.name,
        "is_error": message.is_error,
    }
    return {"role": message.role, "content": message.content} | {key: it for key, it in optional.items() if it}


def call_as_dict(call: ToolCall | ToolEnd) -> dict[str, Any]:
    """A call in OpenAI's form; its arguments are the text as it was received, or the object."""
    arguments = call.arguments if call.arguments_json is None else call.arguments_json
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _read_tool(tool: object, path: str) -> Tool:
    source = _fields(tool, (Tool,), path)
    function, at = _function(source, path)
    name = _name(function, at)
    description = _optional_text(function, "description", at) or ""
    key = "input_schema" if "input_schema" in function and "parameters" not in function else "parameters"
    parameters = function.get(key)
    if not isinstance(parameters, dict | None):
        _fail(at, key, "a JSON Schema object", function)
    definition = tool.definition if isinstance(tool, Tool) else dict(function)
    _check_json(definition, at)
    return Tool(name, description, parameters or {}, definition)


def _read_result(result: object, path: str) -> ToolResult:
    source = _fields(result, (ToolResult, Message), path)
    if source.get("role", "tool") != "tool":
        _fail(path, "role", "'tool'", source)
    if "content" not in source:
        _fail(path, "content", "text", source)
    content, thought = _content(source["content"], f"{path}.content")
    if thought:
        raise MessageError(f"{path}.content", "expected text, found thinking")
    key = "call_id" if isinstance(result, ToolResult) else "tool_call_id"
    name = _optional_text(source, "name", path)
    return ToolResult(_optional_text(source, key, path), name, content, _flag(source, "is_error", path))


def _items(values: object, kind: str, path: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(values, Sequence) or isinstance(values, str | bytes | bytearray | memoryview):
        raise MessageError(path, f"expected a list of {kind}, found {_found(values)}")
    return ((f"{path}[{index}]", value) for index, value in enumerate(values))


def _fields(value: object, own_types: tuple[type[msgspec.Struct], ...], path: str) -> Mapping[str, object]:
    """The value's keys, whichever form it has, so that own types pass through the same checks as dicts."""
    if isinstance(value, own_types):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return value
    names = " or ".join(own.__name__ for own in own_types)
    raise MessageError(path, f"expected a dict or {names}, found {_found(value)}")


def _function(source: Mapping[str, object], path: str) -> tuple[Mapping[str, object], str]:
    """The inner function object and its path; a source without one is the function object itself."""
    if source.get("type", "function") != "function":
        _fail(path, "type", "'function'", source)
    if "function" not in source and "name" in source:
        return source, path
    function = source.get("function")
    if not isinstance(function, Mapping):
        _fail(path, "function", "a dict with a name", source)
    return function, f"{path}.function"


def _content(value: object, path: str) -> tuple[str, str]:
    """The text and the thinking that a message's content holds."""
    if value is None or isinstance(value, str):
        return value or "", ""
    if not isinstance(value, list | tuple):
        raise MessageError(path, f"expected text, a list of text parts or None, found {_found(value)}")
    found: dict[str, list[str]] = {kind: [] for kind in _PART_KEYS}
    for index, part in enumerate(value):
        kind, text = _part(part, f"{path}[{index}]")
        found[kind].append(text)
    return "".join(found["text"]), "".join(found["thinking"])


def _part(part: object, path: str) -> tuple[str, str]:
    if isinstance(part, str):
        return "text", part
    if not isinstance(part, Mapping):
        raise MessageError(path, f"expected a text part, found {_found(part)}")
    kind = part.get("type")
    if not isinstance(kind, str) or kind not in _PART_KEYS:
        _fail(path, "type", "'text' (only text can be written into a transcript)", part)
    text = part.get(_PART_KEYS[kind])
    if not isinstance(text, str):
        _fail(path, _PART_KEYS[kind], "text", part)
    return kind, text


def _reasoning(source: Mapping[str, object], path: str) -> str:
    texts = (_optional_text(source, key, path) for key in REASONING_KEYS)
    return next(filter(None, texts), "")


def _arguments(value: object, path: str) -> dict[str, Any]:
    at = f"{path}.arguments"
    if isinstance(value, str):
        value = _parse(value, at)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MessageError(at, f"expected a JSON object or its text, found {_found(value)}")
    _check_json(value, at)
    return value


def _parse(text: str, path: str) -> object:
    if not text.strip():
        return None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"found invalid JSON ({error.msg} at character {error.pos})"
    except RecursionError:
        problem = f"found JSON nested more than {MAX_DEPTH} deep"
    except ValueError:  # what json raises for an integer beyond sys.get_int_max_str_digits()
        problem = "found an integer with more digits than Python converts"
    raise MessageError(path, f"expected the JSON text of an object, {problem}")


def is_json(value: object) -> bool:
    """Whether a value is one that JSON can express, and no deeper than what is accepted."""
    return _json_fault(value, MAX_DEPTH) is None


def _check_json(value: object, path: str) -> None:
    if fault := _json_fault(value, MAX_DEPTH):
        where, problem = fault
        raise MessageError(path + where, problem)


def _json_fault(value: object, depth: int) -> tuple[str, str] | None:
    """The first thing in `value` that JSON cannot express: the rest of its path, and the problem."""
    if value is None or isinstance(value, str | bool):
        return None
    if isinstance(value, int):
        return None if _is_writable(value) else ("", "expected a number, found an integer too long for Python to write")
    if isinstance(value, float):
        return None if math.isfinite(value) else ("", f"expected a number that a float can hold, found {value!r}")
    if not isinstance(value, dict | list | tuple):
        return "", f"expected a JSON value, found {_found(value)}"
    if depth == 0:
        return "", f"expected at most {MAX_DEPTH} levels of nesting, found more"
    if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
        odd = next(key for key in value if not isinstance(key, str))
        return "", f"expected text as every key, found {_found(odd)}"
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if type(inner) is str:  # most are
            continue
        if fault := _json_fault(inner, depth - 1):
            return (f".{key}" if isinstance(key, str) else f"[{key}]") + fault[0], fault[1]
    return None


def _is_writable(number: int) -> bool:
    if number.bit_length() < 2000:  # below the lowest digit limit that can be set
        return True
    try:
        str(number)
    except ValueError:
        return False
    return True


def _name(source: Mapping[str, object], path: str) -> str:
    name = source.get("name")
    if not isinstance(name, str) or not name:
        _fail(path, "name", "text that is not empty", source)
    return name


def _optional_text(source: Mapping[str, object], key: str, path: str) -> str | None:
    value = source.get(key)
    if not isinstance(value, str | None):
        _fail(path, key, "text or None", source)
    return value


def _flag(source: Mapping[str, object], key: str, path: str) -> bool:
    value = source.get(key)
    if not isinstance(value, bool | None):
        _fail(path, key, "true or false", source)
    return bool(value)


def _fail(path: str, key: str, expected: str, source: Mapping[str, object]) -> NoReturn:
    found = _found(source[key]) if key in source else "no such key"
    raise MessageError(f"{path}.{key}", f"expected {expected}, found {found}")


def _found(value: object) -> str:
    """What a value is, in one short phrase; never all of it, it may be huge."""
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:40] + "…")
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
