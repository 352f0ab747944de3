"""The shapes of DeepSeek-V3.2, V4 and V4.1, which have an encoder in place of a chat template.

It attaches the tools to the first system message, writes calls as tags with one parameter a line, and ends what the
model answers to with `<think>`, or with a lone `</think>` where thinking is off or was dropped. From V4 on the results
of a batch and what the user says are one turn. In thinking mode the reasoning before the user's last message is
dropped, and with it what developers said there; from V4 on, not where tools are declared.

The encoder knows no generation prompt, for it always writes one; here it is left out unless it is asked for.

Source: the vendor's encoder of each model.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeAlias

from dialects.templates.fields import (
    arguments_of,
    function_of,
    needs_text,
    printed,
    pyjson,
    text_or_json,
    with_paths,
)
from dialects.templates.template import Chat, Fields, Option, Template, TemplateError, choice

__all__ = [
    "ANY_TOKEN",
    "ASSISTANT",
    "BOS",
    "EOS",
    "SYSTEM",
    "THINK",
    "THINKING_MODE",
    "THOUGHT",
    "USER",
    "V4Template",
    "V32Template",
]

BOS, EOS = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
SYSTEM, USER, ASSISTANT = "<｜System｜>", "<｜User｜>", "<｜Assistant｜>"
THINK, THOUGHT = "<think>", "</think>"
ANY_TOKEN = "<｜"
"""What every special token of the family begins with, those for search and for other tasks too."""

_EXAMPLE = """\
<<TAG><CALLS>>
<<TAG>invoke name="$NAME">
<<TAG>parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</<TAG>parameter>
...
</<TAG>invoke>
<<TAG>invoke name="$NAME2">
...
</<TAG>invoke>
</<TAG><CALLS>>
"""
V32_TOOLS = f"""

## Tools

You have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "<<TAG><CALLS>>" block like the following as part of your reply to the user:
{_EXAMPLE.replace("$NAME", "$FUNCTION_NAME")}
String and scalar parameters should be specified as is without any escaping or quotes, while lists and objects should \
use JSON format. The "string" attribute should be set to "true" for string type parameters and "false" for other types \
(numbers, booleans, arrays, objects).

If the thinking_mode is enabled, then after function results you should strongly consider outputting a thinking block. \
Here is an example:

<<TAG><CALLS>>
...
</<TAG><CALLS>>

<function_results>
...
</function_results>

<think>...thinking about results</think>

Here are the functions available in JSONSchema format:
<functions>
<TOOLS>
</functions>
"""
V4_TOOLS = f"""

## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a \
"<<TAG><CALLS>>" block like the following:

{_EXAMPLE.replace("$NAME", "$TOOL_NAME")}
String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, \
objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> \
BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

<TOOLS>

You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.
"""
EFFORT = "Reasoning Effort: {} (range 1-100, the higher the value, the more thorough the reasoning)\n\n"

THINKING_MODE = choice("chat", "thinking", default="chat")

Turns: TypeAlias = list[tuple[str, Fields]]
"""Messages as they are written, one a turn, each with the path of its first."""


@dataclass(frozen=True, kw_only=True)
class V32Template(Template):
    """V3.2. `tag` precedes the names of all tags, `calls` is that of the outer one."""

    options: Mapping[str, Option] = field(default_factory=lambda: {"thinking_mode": THINKING_MODE})
    control_tokens: tuple[str, ...] = (ANY_TOKEN, "<function_results>", "</function_results>", "<result>", "</result>")
    tag: str = "｜DSML｜"
    calls: str
    tools_text: str = V32_TOOLS

    def pieces(self, chat: Chat) -> Iterator[str]:
        turns = self.turns(chat.messages)
        is_thinking = chat.options["thinking_mode"] == "thinking"
        asked = _last_asked(turns)
        if is_thinking and self.keeps_all_thinking(chat):
            asked = -1
        elif is_thinking:  # what a developer said before goes with the reasoning
            turns = [turn for at, turn in enumerate(turns) if at >= asked or turn[1]["role"] != "developer"]
            asked = _last_asked(turns)
        yield BOS
        if not turns or turns[0][1]["role"] != "system":
            yield self.first_system("", chat)
        called = answered = 0
        for at, (path, message) in enumerate(turns):
            role, content = message["role"], message.get("content")
            ending = THINK if is_thinking and at >= asked else THOUGHT
            is_written = chat.add_generation_prompt or at + 1 < len(turns)
            if role == "system":
                called, text = 0, printed(content or "")
                yield self.system(text) if at else self.first_system(text, chat)
            elif role == "assistant":
                calls = message.get("tool_calls") or ()
                called, answered = len(calls), 0
                if is_thinking and at > asked:
                    yield self.thought(message, path, chat) + THOUGHT
                yield printed(content or "") + (self._calls(calls, path) if calls else "") + EOS
            elif role == "tool":
                answered += 1
                if answered > called:
                    raise TemplateError("the template needs a call for every result", path)
                yield "\n\n<function_results>" if answered == 1 else ""
                yield f"\n<result>{printed(content)}</result>"
                if answered == called:
                    yield "\n</function_results>"
                    yield f"\n\n{ending}" if is_written else ""
            else:
                called = 0
                yield USER + self.question(role, content)
                yield ASSISTANT + ending if is_written and self.is_answered(turns, at) else ""

    def turns(self, messages: Sequence[Fields]) -> Turns:
        """The turns of a conversation."""
        return [(f"messages[{index}]", message) for index, message in enumerate(messages)]

    def keeps_all_thinking(self, chat: Chat) -> bool:
        """Whether reasoning before the last question is kept, too."""
        return False

    def system(self, text: str) -> str:
        """A system turn."""
        return text

    def first_system(self, text: str, chat: Chat) -> str:
        """The first turn, which tells of the tools, too."""
        return text + self.tools_section(chat.tools)

    def tools_section(self, tools: Sequence[Fields]) -> str:
        """The tools and how to call them."""
        if not tools:
            return ""
        catalogue = "\n".join(pyjson(function_of(tool)) for tool in tools)
        return self.tools_text.replace("<TAG>", self.tag).replace("<CALLS>", self.calls).replace("<TOOLS>", catalogue)

    def question(self, role: str, content: Any) -> str:
        """What a user says, or a developer."""
        return f"\n\n# The user's message is: {printed(content)}" if role == "developer" else printed(content)

    def is_answered(self, turns: Turns, at: int) -> bool:
        """Whether the assistant's token stands behind a question."""
        return True

    def thought(self, message: Fields, path: str, chat: Chat) -> str:
        """The reasoning of a turn that shows it."""
        reasoning = message.get("reasoning_content") or ""
        if not (reasoning or message.get("tool_calls") or chat.normalise):
            raise TemplateError("in thinking mode the last turns need reasoning or calls", path)
        return printed(reasoning)

    def _calls(self, calls: Sequence[Fields], path: str) -> str:
        invokes = "\n".join(self._invoke(call, where) for call, where in with_paths(calls, path))
        return f"\n\n<{self.tag}{self.calls}>\n{invokes}\n</{self.tag}{self.calls}>"

    def _invoke(self, call: Fields, path: str) -> str:
        parameters = "\n".join(
            f'<{self.tag}parameter name="{key}" string="{"true" if isinstance(value, str) else "false"}">'
            f"{text_or_json(value)}</{self.tag}parameter>"
            for key, value in _parsed(arguments_of(call), f"{path}.function.arguments").items()
        )
        return f'<{self.tag}invoke name="{function_of(call)["name"]}">\n{parameters}\n</{self.tag}invoke>'


@dataclass(frozen=True, kw_only=True)
class V4Template(V32Template):
    """V4 and V4.1: what a user says and the results of tools are one turn, as long as no one else speaks."""

    control_tokens: tuple[str, ...] = (ANY_TOKEN, "<tool_result>", "</tool_result>")
    tools_text: str = V4_TOOLS
    begins_system: str = ""
    """What stands before a system text."""
    joins_parts: bool = False
    """Whether a user's text may be in parts."""

    def turns(self, messages: Sequence[Fields]) -> Turns:
        turns: Turns = []
        places: dict[str, int] = {}
        for are_said, run in groupby(enumerate(messages), key=lambda it: it[1]["role"] in ("user", "tool")):
            batch = list(run)
            if are_said:
                texts = [self._said(message, f"messages[{index}].content") for index, message in _sorted(batch, places)]
                turns.append((f"messages[{batch[0][0]}]", {"role": "user", "content": "\n\n".join(texts)}))
                continue
            turns += [(f"messages[{index}]", message) for index, message in batch]
            for _, message in batch:
                if calls := message.get("tool_calls"):
                    places = {call["id"]: place for place, call in enumerate(calls) if call.get("id")}
        return turns

    def keeps_all_thinking(self, chat: Chat) -> bool:
        return bool(chat.tools)

    def system(self, text: str) -> str:
        return self.begins_system + text

    def first_system(self, text: str, chat: Chat) -> str:
        effort = ""
        if "reasoning_effort" in chat.options and chat.options["thinking_mode"] == "thinking":
            effort = EFFORT.format(chat.options["reasoning_effort"])
        whole = effort + text + self.tools_section(chat.tools)
        return self.begins_system + whole if whole else ""

    def question(self, role: str, content: Any) -> str:
        return printed(content)

    def is_answered(self, turns: Turns, at: int) -> bool:
        return at + 1 == len(turns) or turns[at + 1][1]["role"] == "assistant"

    def thought(self, message: Fields, path: str, chat: Chat) -> str:
        return printed(message.get("reasoning_content") or "")

    def _said(self, message: Fields, path: str) -> str:
        content = message.get("content")
        if isinstance(content, list | tuple) and (self.joins_parts or message["role"] == "tool"):
            content = "\n\n".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)
        return (
            f"<tool_result>{printed(content)}</tool_result>" if message["role"] == "tool" else needs_text(content, path)
        )


def _last_asked(turns: Turns) -> int:
    """Where a user or a developer spoke last; -1 if none did."""
    places = range(len(turns) - 1, -1, -1)
    return next((at for at in places if turns[at][1]["role"] in ("user", "developer")), -1)


def _sorted(batch: list[tuple[int, Fields]], places: Mapping[str, int]) -> list[tuple[int, Fields]]:
    """The results among the messages of one turn in the order of their calls; what else is said keeps its place."""
    results = [it for it in batch if it[1]["role"] == "tool"]
    waiting = iter(sorted(results, key=lambda it: places.get(it[1].get("tool_call_id") or "", 0)))
    return [next(waiting) if message["role"] == "tool" else (index, message) for index, message in batch]


def _parsed(arguments: Any, path: str) -> Mapping[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise TemplateError(f"the template parses arguments, and these are no JSON: {error}", path) from None
    if not isinstance(arguments, Mapping):
        raise TemplateError(f"the template needs an object, found {type(arguments).__name__}", path)
    return arguments
