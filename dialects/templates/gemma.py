"""Templates of Gemma 4: calls, results and texts of a whole turn of the model between its own brackets.

Consecutive assistant messages and the results of their calls are one turn, in which the text of a message stands behind
its calls and their results. Keys are sorted without regard to case. A result is named after the call whose id it bears.
A turn that ends in calls without results ends with the opener of a result, which is a stop token.

The file of July 2026 keeps all thinking behind the user's last message, and closes a turn only once; the earlier one
keeps thinking beside calls alone, and closes a turn after every text.

Source: the vendor's `chat_template` of Gemma 4, in two versions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dialects.templates.fields import (
    arguments_of,
    function_of,
    joined_parts,
    needs_messages,
    needs_text,
    object_arguments,
    printed,
    properties_of,
    required_of,
    schema_of,
    with_paths,
)
from dialects.templates.template import Certainty, Chat, Fields, Template, any_text, flag

__all__ = ["TEMPLATES"]

TURN_BEGIN, TURN_END = "<|turn>", "<turn|>\n"
CALL_BEGIN, CALL_END = "<|tool_call>", "<tool_call|>"
RESULT_BEGIN, RESULT_END = "<|tool_response>", "<tool_response|>"
THOUGHT_BEGIN, THOUGHT_END = "<|channel>thought\n", "<channel|>"
QUOTE = '<|"|>'
HANDLED_KEYS = ("description", "type", "properties", "required", "nullable")
"""The keys of a schema that are never taken for properties."""


@dataclass(frozen=True, kw_only=True)
class GemmaTemplate(Template):
    """Gemma 4. `is_earlier` is the file before July 2026."""

    null: str = "null"
    is_earlier: bool = False

    def pieces(self, chat: Chat) -> Iterator[str]:
        messages = needs_messages(chat.messages)
        yield chat.options["bos_token"]
        first = 1 if messages[0]["role"] in ("system", "developer") else 0
        yield self._system_turn(chat, messages[:first])
        spoken = [at for at in range(first, len(messages)) if messages[at]["role"] != "tool"]
        last_user = max((at for at in spoken if messages[at]["role"] == "user"), default=-1)
        before: str | None = None
        ending = ""
        for place, at in enumerate(spoken):
            message, path = messages[at], f"messages[{at}]"
            role = message["role"]
            after = messages[spoken[place + 1]]["role"] if place + 1 < len(spoken) else None
            if role != "assistant" or before != "assistant":
                yield f"{TURN_BEGIN}{'model' if role == 'assistant' else role}\n"
            yield self._thought(message, path, chat, is_recent=at > last_user)
            calls = message.get("tool_calls") or ()
            yield "".join(self._call(call, where) for call, where in with_paths(calls, path))
            results = self._results(messages, at, calls) if calls else ""
            text = _text(message.get("content"), is_model=role == "assistant")
            yield results + text
            ending = RESULT_END if results else CALL_END if calls else TURN_END
            if ending == CALL_END:
                yield RESULT_BEGIN
            elif self._closes(results, text, role, after):
                yield TURN_END
            before = role
        if chat.add_generation_prompt:
            yield self._generation_prompt(chat, ending)

    def normalised(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Every result has the name of a call: where its id names none, that at its position."""
        calls: Sequence[Fields] = ()
        position = 0
        for message in messages:
            if message["role"] != "tool":
                calls, position = message.get("tool_calls", ()), 0
                continue
            at_position = function_of(calls[position])["name"] if position < len(calls) else "unknown"
            message.setdefault("name", at_position)
            position += 1
        return messages

    def normalised_tools(self, tools: list[Fields]) -> list[Fields]:
        """Every schema has a type: the template closes the parameters' brace behind it alone."""
        return [_with_type(tool) for tool in tools]

    def _system_turn(self, chat: Chat, messages: Sequence[Fields]) -> str:
        is_thinking = chat.options["enable_thinking"]
        if not (is_thinking or chat.tools or messages):
            return ""
        switch = "<|think|>\n" if is_thinking else ""
        text = _text(messages[0].get("content"), is_model=False) if messages else ""
        declared = (self._declaration(tool, f"tools[{at}]") for at, tool in enumerate(chat.tools))
        tools = "".join(f"<|tool>{declaration.strip()}<tool|>" for declaration in declared)
        return f"{TURN_BEGIN}system\n{switch}{text}{tools}{TURN_END}"

    def _thought(self, message: Fields, path: str, chat: Chat, *, is_recent: bool) -> str:
        thought = message.get("reasoning") or message.get("reasoning_content")
        has_calls = bool(message.get("tool_calls"))
        is_kept = is_recent and (has_calls or not self.is_earlier)
        if not thought or not (is_kept or (has_calls and chat.options.get("preserve_thinking"))):
            return ""
        return f"{THOUGHT_BEGIN}{needs_text(thought, f'{path}.reasoning_content')}\n{THOUGHT_END}"

    def _closes(self, results: str, text: str, role: str, after: str | None) -> bool:
        """Whether a turn is over behind a message: a text ends it, and in the later file what comes next tells more."""
        if self.is_earlier:
            return bool(text or not results)
        goes_on = role == "assistant" and after == "assistant"
        return not goes_on and (after is not None or not results)

    def _generation_prompt(self, chat: Chat, ending: str) -> str:
        is_thinking = chat.options["enable_thinking"]
        if ending == RESULT_END:
            return THOUGHT_BEGIN if is_thinking and not self.is_earlier else ""
        if ending == CALL_END:
            return ""
        return f"{TURN_BEGIN}model\n{'' if is_thinking else THOUGHT_BEGIN + THOUGHT_END}"

    def _call(self, call: Fields, path: str) -> str:
        arguments = arguments_of(call)
        if isinstance(arguments, Mapping) or not self.is_earlier:
            members = self._members(object_arguments(call, path))
        else:
            members = arguments if isinstance(arguments, str) else ""
        return f"{CALL_BEGIN}call:{function_of(call)['name']}{{{members}}}{CALL_END}"

    def _results(self, messages: Sequence[Fields], at: int, calls: Sequence[Fields]) -> str:
        """The results behind the message at that place."""
        names = {call.get("id"): function_of(call)["name"] for call in calls}
        written = []
        for place in range(at + 1, len(messages)):
            message = messages[place]
            if message["role"] != "tool":
                break
            path = f"messages[{place}]"
            name = names.get(message.get("tool_call_id")) or needs_text(message.get("name"), f"{path}.name")
            content = message.get("content")
            value = joined_parts(content) if isinstance(content, list | tuple) else content
            written.append(f"{RESULT_BEGIN}response:{name}{{value:{self._value(value)}}}{RESULT_END}")
        return "".join(written)

    def _members(self, value: Mapping[str, Any], quote: str = "") -> str:
        return ",".join(f"{quote}{key}{quote}:{self._value(inner, quote)}" for key, inner in _sorted(value))

    def _value(self, value: Any, quote: str = "") -> str:
        """A value; `quote` stands around the keys of objects."""
        if isinstance(value, str):
            return f"{QUOTE}{value}{QUOTE}"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, Mapping):
            return f"{{{self._members(value, quote)}}}"
        if isinstance(value, list | tuple):
            return f"[{','.join(self._value(item, quote) for item in value)}]"
        return self.null if value is None else printed(value)

    # Tools

    def _declaration(self, tool: Fields, path: str) -> str:
        function = function_of(tool)
        parameters = schema_of(function.get("parameters"))
        schema = self._parameters(parameters, f"{path}.function.parameters") if parameters else ""
        response = _response(schema_of(function["response"])) if "response" in function else ""
        description = f"description:{QUOTE}{printed(function.get('description', ''))}{QUOTE}"
        return f"declaration:{function['name']}{{{description}{schema}{response}}}"

    def _parameters(self, schema: Fields, path: str) -> str:
        properties = self._properties(properties_of(schema, path))
        written = f"properties:{{{properties}}}," if properties else ""
        required = f"{_required(schema)}," if required_of(schema) else ""
        kind = f"type:{QUOTE}{_upper(schema['type'])}{QUOTE}}}" if schema.get("type") else ""
        return f",parameters:{{{written}{required}{kind}"

    def _properties(self, properties: Mapping[str, Any], skipped: Sequence[str] = ()) -> str:
        return ",".join(f"{key}:{self._property(value)}" for key, value in _sorted(properties) if key not in skipped)

    def _property(self, schema: Any) -> str:
        """A property; what is no schema has no more than an empty type."""
        known = schema_of(schema)
        kind = _upper(known.get("type", ""))
        parts = [f"description:{QUOTE}{printed(known['description'])}{QUOTE}"] if known.get("description") else []
        if kind == "STRING" and known.get("enum"):
            parts.append(f"enum:{self._value(known['enum'], QUOTE)}")
        items = known.get("items")
        if kind == "ARRAY" and isinstance(items, Mapping) and items:
            parts.append(f"items:{{{self._items(items)}}}")
        if known.get("nullable"):
            parts.append("nullable:true")
        if kind == "OBJECT":
            inner = known.get("properties")
            is_nested = isinstance(inner, Mapping)
            members = self._properties(inner) if is_nested and inner else ""
            parts.append(f"properties:{{{members if is_nested else self._properties(known, HANDLED_KEYS)}}}")
            if required_of(known):
                parts.append(_required(known))
        return f"{{{','.join([*parts, f'type:{QUOTE}{kind}{QUOTE}'])}}}"

    def _items(self, items: Mapping[str, Any]) -> str:
        return ",".join(f"{key}:{self._item(key, value)}" for key, value in _sorted(items) if value is not None)

    def _item(self, key: str, value: Any) -> str:
        if key == "properties":
            return f"{{{self._properties(schema_of(value))}}}"
        if key == "required":
            return _names(value)
        if key == "type":
            return self._value(list(map(_upper, value)) if isinstance(value, list | tuple) else _upper(value))
        return self._value(value, QUOTE)


def _with_type(tool: Fields) -> Fields:
    parameters = tool["function"].get("parameters")
    if not parameters or parameters.get("type"):
        return tool
    return {**tool, "function": {**tool["function"], "parameters": {**parameters, "type": "object"}}}


def _sorted(value: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(value.items(), key=lambda item: item[0].lower())


def _upper(value: Any) -> str:
    return printed(value).upper()


def _required(schema: Fields) -> str:
    return f"required:{_names(schema['required'])}"


def _names(values: Any) -> str:
    names = values if isinstance(values, list | tuple) else ()
    return f"[{','.join(f'{QUOTE}{printed(name)}{QUOTE}' for name in names)}]"


def _response(schema: Fields) -> str:
    description = f"description:{QUOTE}{printed(schema['description'])}{QUOTE}," if schema.get("description") else ""
    kind = _upper(schema.get("type", ""))
    return f",response:{{{description}{f'type:{QUOTE}{kind}{QUOTE}}}' if kind == 'OBJECT' else ''}"


def _text(content: Any, *, is_model: bool) -> str:
    """A content's texts, each without white space around and, of the model, without thinking."""
    parts = content if isinstance(content, list | tuple) else [content]
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in parts)
    return "".join(_without_thinking(text) if is_model else text.strip() for text in texts if isinstance(text, str))


def _without_thinking(text: str) -> str:
    return "".join(part.partition("<|channel>")[0] for part in text.split(THOUGHT_END)).strip()


_OPTIONS = {"bos_token": any_text("<bos>"), "enable_thinking": flag(False)}

TEMPLATES = (
    GemmaTemplate(
        name="gemma-4-31B-it-2026-07-09",
        takes_string_arguments=False,
        certainty=Certainty.COPY,
        models=r"gemma[-_ ]?4(?![-_ ]?e[24]b)(?!.*earlier)",
        options={**_OPTIONS, "preserve_thinking": flag(False)},
    ),
    GemmaTemplate(
        name="gemma-4-31B-it-earlier",
        certainty=Certainty.COPY,
        models=r"gemma[-_ ]?4.*earlier",
        quotes_string_arguments=True,
        null="None",
        is_earlier=True,
        options=_OPTIONS,
    ),
)
