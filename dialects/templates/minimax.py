"""Templates of MiniMax-M2, M2.5 and M3: turns between brackets, calls as tags, results as responses in a tool turn.

M2 and M2.5 declare tools in the system turn, write parameters as tags with names in attributes, and keep reasoning
behind the user's last message. M3 has a fixed system turn; the caller's system text and the tools are a developer's. It
writes arguments as nested tags, each behind a marker of its own, in which values lose their types and members that are
null are left out; every turn keeps its reasoning, or has a lone closer.

Source: the vendor's `chat_template` of each model.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dialects.templates.fields import (
    after_system,
    function_of,
    is_first_of_run,
    is_last_of_run,
    joined_parts,
    last_user,
    object_arguments,
    printed,
    pyjson,
    text_or_json,
    with_paths,
)
from dialects.templates.template import Certainty, Chat, Fields, Template, TemplateError, choice

__all__ = ["TEMPLATES"]

BEGIN, TURN_BEGIN, TURN_END = "]~!b[", "]~b]", "[e~[\n"
DEFAULT_SYSTEM = "You are a helpful assistant."
TOOLS_BEGIN = """

# Tools
You may call one or more tools to assist with the user query.
Here are the tools available in JSONSchema format:

<tools>
"""
M2_TOOLS_END = """</tools>

When making tool calls, use XML format to invoke tools and pass parameters:

<minimax:tool_call>
<invoke name="tool-name-1">
<parameter name="param-key-1">param-value-1</parameter>
<parameter name="param-key-2">param-value-2</parameter>
...
</invoke>
</minimax:tool_call>"""

NS = "]<]minimax[>["
M3_TOOLS_END = """</tools>

To call tools, wrap all invocations in a single NS<tool_call>NS</tool_call> block. Parameter values containing nested \
objects or arrays are recursively expanded into XML elements. Example:

NS<tool_call>
NS<invoke name="tool-name-1">NS<param-1>value-1NS</param-1>NS<param-2>NS<item>NS<key-a>val-aNS</key-a>\
NS<key-b>val-bNS</key-b>NS</item>NS</param-2>NS</invoke>
NS<invoke name="tool-name-2">NS<param-1>value-1NS</param-1>NS</invoke>
NS</tool_call>""".replace("NS", NS)
M3_SYSTEM = """Your model version is MiniMax-M3, developed by MiniMax. Knowledge cutoff: January 2026. Founded in \
early 2022, MiniMax is a global AI foundation model company committed to advancing the frontiers of AI towards AGI.

<thinking_instructions>
You have a thinking capability that allows you to reason step by step before responding. When thinking is enabled, \
wrap your reasoning in <mm:think></mm:think> tags before your response. When thinking is disabled, begin your response \
directly after the </mm:think> prefix. When thinking is adaptive, decide on your own whether to think for the current \
turn.
Current thinking mode: {}
</thinking_instructions>"""
M3_MODES = {
    "enabled": "enabled. You MUST think step by step before every response, including after receiving function/tool "
    "results.",
    "disabled": "disabled. Do not output any thinking process.",
    "adaptive": "adaptive. You are encouraged to think for complex decision-making, multi-step reasoning, or when "
    "analyzing function/tool results.",
}
M3_OPENERS = {"enabled": "<mm:think>", "disabled": "</mm:think>", "adaptive": ""}


@dataclass(frozen=True, kw_only=True)
class MiniMaxTemplate(Template):
    """The turns that both languages share."""

    takes_string_arguments: bool = False
    control_tokens: tuple[str, ...] = ("]~!b", "[e~", "]<]minimax[>")
    """What would be a token together with the bracket that the end of a turn, behind a text, begins with."""

    def pieces(self, chat: Chat) -> Iterator[str]:
        messages = chat.messages
        first = self.first_message(messages)
        yield BEGIN
        yield from self.head(chat, messages[:first])
        asked = last_user(messages)
        has_called = False
        for index in range(first, len(messages)):
            message, path = messages[index], f"messages[{index}]"
            role, content = message["role"], message.get("content")
            if role == "user":
                yield f"{TURN_BEGIN}user\n{self.visible(content)}{TURN_END}"
            elif role == "assistant":
                has_called = bool(message.get("tool_calls"))
                yield f"{TURN_BEGIN}ai\n{self.answer(message, path, is_recent=index > asked)}{TURN_END}"
            elif role == "tool":
                if not has_called:
                    raise TemplateError("the template needs an assistant's message with calls before a result", path)
                yield f"{TURN_BEGIN}tool" if index == first or is_first_of_run(messages, index) else ""
                yield from (f"\n<response>{text}</response>" for text in self.results(content, f"{path}.content"))
                yield TURN_END if is_last_of_run(messages, index) else ""
        if chat.add_generation_prompt:
            yield f"{TURN_BEGIN}ai\n{self.opener(chat)}"

    @abstractmethod
    def first_message(self, messages: Sequence[Fields]) -> int:
        """How many of the messages belong to the head."""

    @abstractmethod
    def head(self, chat: Chat, messages: Sequence[Fields]) -> Iterator[str]:
        """The turns before the conversation."""

    @abstractmethod
    def answer(self, message: Fields, path: str, *, is_recent: bool) -> str:
        """What an assistant said, thought and called; it is recent behind the user's last message."""

    @abstractmethod
    def results(self, content: Any, path: str) -> list[str]:
        """The texts of one tool message, each as it stands between tags."""

    @abstractmethod
    def visible(self, content: Any) -> str:
        """A content as text."""

    @abstractmethod
    def opener(self, chat: Chat) -> str:
        """What stands before a generation, behind the header of its turn."""


@dataclass(frozen=True, kw_only=True)
class M2Template(MiniMaxTemplate):
    """M2, M2.1 and M2.5."""

    default_system: str = DEFAULT_SYSTEM

    def first_message(self, messages: Sequence[Fields]) -> int:
        return after_system(messages)

    def head(self, chat: Chat, messages: Sequence[Fields]) -> Iterator[str]:
        content = messages[0].get("content") if messages else None
        text = self.visible(content) if content else self.default_system
        yield f"{TURN_BEGIN}system\n{text}{_catalogue(chat.tools, M2_TOOLS_END)}{TURN_END}"

    def answer(self, message: Fields, path: str, *, is_recent: bool) -> str:
        thought, text = _split_thinking(message, self.visible(message.get("content", "")), "think")
        block = f"<think>\n{thought}\n</think>\n\n" if thought and is_recent else ""
        calls = message.get("tool_calls")
        if not calls:
            return block + text
        invokes = "".join(self._invoke(call, where) for call, where in with_paths(calls, path))
        return f"{block}{text}\n<minimax:tool_call>\n{invokes}</minimax:tool_call>"

    def results(self, content: Any, path: str) -> list[str]:
        if isinstance(content, str):
            return [content]
        if not isinstance(content, list | tuple):
            raise TemplateError(f"the template needs text or a list, found {content!r}", path)
        return [f"{_result_part(part)}\n" for part in content]

    def visible(self, content: Any) -> str:
        """Text, the texts of parts, or what Jinja prints for anything else: `None`."""
        return joined_parts(content) if isinstance(content, list | tuple) else printed(content)

    def opener(self, chat: Chat) -> str:
        return "<think>\n"

    def _invoke(self, call: Fields, path: str) -> str:
        parameters = "".join(
            f'<parameter name="{key}">{text_or_json(value)}</parameter>\n'
            for key, value in object_arguments(call, path).items()
        )
        return f'<invoke name="{function_of(call)["name"]}">\n{parameters}</invoke>\n'


@dataclass(frozen=True, kw_only=True)
class M3Template(MiniMaxTemplate):
    """M3. A message of its role `root` replaces the text of the fixed system turn."""

    def first_message(self, messages: Sequence[Fields]) -> int:
        first = 1 if messages and messages[0]["role"] == "root" else 0
        return first + (len(messages) > first and messages[first]["role"] in ("system", "developer"))

    def head(self, chat: Chat, messages: Sequence[Fields]) -> Iterator[str]:
        contents = {message["role"] == "root": message.get("content") for message in messages}
        root = self.visible(contents.get(True)) or M3_SYSTEM.format(M3_MODES[chat.options["thinking_mode"]])
        text = self.visible(contents.get(False)) or DEFAULT_SYSTEM
        yield f"{TURN_BEGIN}system\n{root}{TURN_END}"
        yield f"{TURN_BEGIN}developer\n{text}{_catalogue(chat.tools, M3_TOOLS_END)}{TURN_END}"

    def answer(self, message: Fields, path: str, *, is_recent: bool) -> str:
        thought, text = _split_thinking(message, self.visible(message.get("content")), "mm:think")
        block = f"<mm:think>{thought}</mm:think>" if thought else "</mm:think>"
        calls = message.get("tool_calls")
        if not calls:
            return block + text
        invokes = "".join(
            f'{NS}<invoke name="{function_of(call)["name"]}">{_nested(object_arguments(call, where))}{NS}</invoke>\n'
            for call, where in with_paths(calls, path)
        )
        return f"{block}{text}{NS}<tool_call>\n{invokes}{NS}</tool_call>"

    def results(self, content: Any, path: str) -> list[str]:
        return [self.visible(content)]

    def visible(self, content: Any) -> str:
        return joined_parts(content)

    def opener(self, chat: Chat) -> str:
        return M3_OPENERS[chat.options["thinking_mode"]]


def _catalogue(tools: Sequence[Fields], end: str) -> str:
    if not tools:
        return ""
    return "".join([TOOLS_BEGIN, *(f"<tool>{pyjson(function_of(tool))}</tool>\n" for tool in tools), end])


def _split_thinking(message: Fields, text: str, tag: str) -> tuple[str, str]:
    """The reasoning and the text of a message; without a field for it, reasoning may stand in the text."""
    reasoning = message.get("reasoning_content")
    if isinstance(reasoning, str):
        return reasoning, text
    if f"</{tag}>" not in text:
        return "", text
    before = text.partition(f"</{tag}>")[0].strip("\n")
    return before.rpartition(f"<{tag}>")[2].strip("\n"), text.rpartition(f"</{tag}>")[2].strip("\n")


def _result_part(part: Any) -> str:
    """A part of a result: what its `output` is, or its text, or the part itself."""
    if not isinstance(part, Mapping):
        return printed(part)
    return printed(part.get("output", part.get("text", part)))


def _nested(value: Any) -> str:
    """A value as text and tags."""
    if isinstance(value, Mapping):
        return "".join(f"{NS}<{key}>{_nested(inner)}{NS}</{key}>" for key, inner in value.items() if inner is not None)
    if isinstance(value, list | tuple):
        return "".join(f"{NS}<item>{_nested(inner)}{NS}</item>" for inner in value)
    if value is None:
        return ""
    return pyjson(value) if isinstance(value, bool) else printed(value)


TEMPLATES = (
    M2Template(name="MiniMax-M2", certainty=Certainty.COPY, models=r"minimax[-_ ]?m2(?!\.[5-9])"),
    M2Template(
        name="MiniMax-M2.5",
        certainty=Certainty.RESTORED,
        models=r"minimax[-_ ]?m2\.5",
        default_system=f"{DEFAULT_SYSTEM} Your name is MiniMax-M2.5 and is built by MiniMax.",
    ),
    M3Template(
        name="MiniMax-M3",
        certainty=Certainty.COPY,
        models=r"minimax[-_ ]?m3",
        roles=("root",),
        options={"thinking_mode": choice("adaptive", "enabled", "disabled", default="adaptive")},
    ),
)
