"""Control tokens in what a caller supplies: found and refused, or broken.

Text of a user, a system message or a tool's result may hold the very tokens that a dialect writes its turns and calls
with, `<|im_end|><|im_start|>system` say, and a model then reads a turn that nobody took. What a caller supplies is also
the names, descriptions and schemas of tools, the names, ids and arguments of calls that go back into a prompt, and the
names of who speaks. What an assistant said and thought is left alone: it was the model's own.

A broken token has a zero-width space behind its first character: no tokenizer reads it as the token any more, a person
still does.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dialects.events import ToolEnd
from dialects.messages import (
    MAX_DEPTH,
    REASONING_KEYS,
    Message,
    MessageError,
    Tool,
    ToolCall,
    message_as_dict,
)

__all__ = ["Neutralizer"]

_ZERO_WIDTH_SPACE = "\u200b"
_NAMES = ("name", "tool_call_id")


class Neutralizer:
    """Refuses or breaks some tokens. `guide` is a text that may hold them in a system message: the dialect's own."""

    def __init__(self, dialect: str, tokens: Iterable[str], *, guide: str, escape: bool) -> None:
        longest_first = sorted(filter(None, set(tokens)), key=len, reverse=True)
        alternatives = "|".join(map(re.escape, longest_first)) or "(?!)"
        self._any_token = re.compile(alternatives)  # fast, and nearly every text has none
        # A look-ahead, so that a token that begins inside another one is found as well.
        self._token = re.compile(f"(?=({alternatives}))")
        self._dialect = dialect
        self._guide = guide
        self._escape = escape

    def messages(self, messages: Any) -> Any:
        """The messages as dicts without tokens. What is no message stays as it is, for whoever checks them."""
        if not isinstance(messages, list | tuple):
            return messages
        return [self._message(message, f"messages[{index}]") for index, message in enumerate(messages)]

    def tools(self, tools: Any) -> Any:
        """The tools without tokens, as dicts."""
        if not isinstance(tools, list | tuple):
            return tools
        return [self._tool(tool, f"tools[{index}]") for index, tool in enumerate(tools)]

    def _message(self, message: Any, path: str) -> Any:
        source = message_as_dict(message) if isinstance(message, Message) else message
        if not isinstance(source, Mapping):
            return message
        safe = dict(source)
        calls = message.tool_calls if isinstance(message, Message) else source.get("tool_calls")
        if calls and isinstance(calls, list | tuple):
            safe["tool_calls"] = [self._call(call, f"{path}.tool_calls[{at}]") for at, call in enumerate(calls)]
        is_own = source.get("role") == "assistant"
        for key in _NAMES if is_own else (*_NAMES, *REASONING_KEYS):
            if isinstance(source.get(key), str):
                safe[key] = self._text(source[key], f"{path}.{key}")
        if "content" in source and not is_own:
            guide = self._guide if source.get("role") in ("system", "developer") else ""
            safe["content"] = self._content(source["content"], f"{path}.content", guide)
        return safe

    def _content(self, content: Any, path: str, guide: str) -> Any:
        """Text or parts. A token may begin in one part and end in another, for they are written without a gap."""
        if isinstance(content, str):
            return self._texts([content], path, guide)[0]
        if not isinstance(content, list | tuple):
            return content
        places = [at for at, part in enumerate(content) if isinstance(_part_text(part), str)]
        safe = list(content)
        for at, text in zip(places, self._texts([_part_text(content[at]) for at in places], path, guide), strict=True):
            safe[at] = (
                text if isinstance(content[at], str) else self._part({**content[at], "text": text}, f"{path}[{at}]")
            )
        return safe

    def _part(self, part: Mapping[str, Any], path: str) -> dict[str, Any]:
        """A part whose text is safe. Some templates write what else is in it, too."""
        return {key: item if key == "text" else self._value(item, f"{path}.{key}") for key, item in part.items()}

    def _call(self, call: Any, path: str) -> Any:
        """A call without tokens in its function's name and arguments, and whatever else it has."""
        if isinstance(call, ToolCall | ToolEnd):
            return self._own_call(call, path)
        if not isinstance(call, Mapping):
            return call
        if not isinstance(call.get("function"), Mapping):
            return self._function(call, path)
        return {
            key: self._function(item, f"{path}.function") if key == "function" else self._value(item, f"{path}.{key}")
            for key, item in call.items()
        }

    def _own_call(self, call: ToolCall | ToolEnd, path: str) -> ToolCall:
        text = call.arguments_json
        return ToolCall(
            self._value(call.id, f"{path}.id"),
            self._text(call.name, f"{path}.name"),
            self._value(call.arguments, f"{path}.arguments"),
            None if text is None else self._arguments(text, f"{path}.arguments"),
        )

    def _function(self, function: Mapping[str, Any], path: str) -> dict[str, Any]:
        return {
            key: (self._arguments if key == "arguments" else self._value)(item, f"{path}.{key}")
            for key, item in function.items()
        }

    def _arguments(self, arguments: Any, path: str) -> Any:
        """An object or its JSON text, in which an escape (`<\\u007cim_end|>`) may hide a token until it is parsed."""
        if not isinstance(arguments, str):
            return self._value(arguments, path)
        safe = self._text(arguments, path)
        try:
            parsed = json.loads(safe)
        except (ValueError, RecursionError):
            return safe
        broken = self._value(parsed, path)
        return safe if broken == parsed else json.dumps(broken, ensure_ascii=False)

    def _tool(self, tool: Any, path: str) -> Any:
        if isinstance(tool, Tool):
            tool = {"type": "function", "function": tool.definition}
        return self._value(tool, path)

    def _value(self, value: Any, path: str, depth: int = MAX_DEPTH) -> Any:
        """A JSON value without tokens in its texts and keys. What is too deep is for the check of the messages."""
        if isinstance(value, str):
            return self._text(value, path)
        if depth == 0:
            return value
        if isinstance(value, Mapping):
            return {
                self._text(key, path) if isinstance(key, str) else key: self._value(item, f"{path}.{key}", depth - 1)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._value(item, f"{path}[{at}]", depth - 1) for at, item in enumerate(value)]
        return value

    def _text(self, text: str, path: str) -> str:
        return self._texts([text], path, "")[0]

    def _texts(self, texts: Sequence[str], path: str, guide: str) -> list[str]:
        """Texts that are written one behind the other, without tokens in all of it."""
        whole = "".join(texts)
        if not self._any_token.search(whole):
            return list(texts)
        exempt = [match.start() for match in re.finditer(re.escape(guide), whole)] if guide else []
        found = [hit for hit in self._token.finditer(whole) if not _is_within(hit.start(), exempt, len(guide))]
        if not found:
            return list(texts)
        if not self._escape:
            problem = f"expected no control token of the dialect {self._dialect!r}, found {found[0][1]}"
            raise MessageError(path, problem)
        return _broken(texts, [match.start() + 1 for match in found])


def _part_text(part: Any) -> Any:
    return part.get("text") if isinstance(part, Mapping) else part


def _is_within(position: int, starts: Sequence[int], length: int) -> bool:
    """Whether a position is in one of the stretches of that length that begin at `starts`, which rise."""
    before = bisect_right(starts, position)
    return before > 0 and position < starts[before - 1] + length


def _broken(texts: Sequence[str], cuts: Sequence[int]) -> list[str]:
    """The texts with a zero-width space at each of the cuts, which count through all of them in rising order."""
    waiting = iter(cuts)
    cut = next(waiting, None)
    safe: list[str] = []
    start = 0
    for text in texts:
        pieces, last = [], 0
        while cut is not None and cut <= start + len(text):
            pieces.append(text[last : cut - start])
            last, cut = cut - start, next(waiting, None)
        safe.append(_ZERO_WIDTH_SPACE.join([*pieces, text[last:]]))
        start += len(text)
    return safe
