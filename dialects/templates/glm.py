"""Templates of GLM-4.5 (and 4.6), GLM-4.7 and GLM-5.3: role tokens without closers, arguments as pairs of tags.

GLM-4.5 writes newlines around everything, the later ones write none. Reasoning is kept behind the last user message;
the later ones can keep all of it.

Source: the vendor's `chat_template` of each model.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dialects.templates.fields import (
    function_of,
    in_call_order,
    is_first_of_run,
    joined_parts,
    last_user,
    object_arguments,
    printed,
    pyjson,
    split_thinking,
    text_or_json,
    with_paths,
)
from dialects.templates.template import Certainty, Chat, Fields, Template, TemplateError, choice, flag

__all__ = ["TEMPLATES"]

BEGIN = "[gMASK]<sop>"
TOOLS_BEGIN = """<|system|>
# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
"""
TOOLS_END = """</tools>

For each function call, output the function name and arguments within the following XML format:
"""
EXAMPLE = (
    "<tool_call>{function-name}",
    "<arg_key>{arg-key-1}</arg_key>",
    "<arg_value>{arg-value-1}</arg_value>",
    "<arg_key>{arg-key-2}</arg_key>",
    "<arg_value>{arg-value-2}</arg_value>",
    "...",
    "</tool_call>",
)


@dataclass(frozen=True, kw_only=True)
class GlmTemplate(Template):
    """GLM-4.5, with `between` (a newline) around everything, and GLM-4.7 with nothing."""

    takes_string_arguments: bool = False
    between: str = ""
    no_thinking: str
    """What stands where there is no reasoning."""
    opens_thinking: str
    """What the generation prompt ends with while thinking is on."""
    marks_no_thinking: bool = False
    """Whether user texts say that thinking is off."""

    def pieces(self, chat: Chat) -> Iterator[str]:
        messages, options, between = chat.messages, chat.options, self.between
        is_thinking = options.get("enable_thinking", True)
        yield from self.head(chat)
        first_kept = 0 if options.get("clear_thinking") is False else last_user(messages) + 1
        for index, message in enumerate(messages):
            role, content = message["role"], message.get("content", "")
            if role == "assistant":
                yield self._assistant_turn(message, f"messages[{index}]", keeps_thinking=index >= first_kept)
            elif role == "tool":
                yield "<|observation|>" if is_first_of_run(messages, index) or not isinstance(content, str) else ""
                for text in self.results(content, f"messages[{index}].content"):
                    yield f"{between}<tool_response>{between}{text}{between}</tool_response>"
            elif role in ("user", "system"):
                text = self.visible(content)
                says_so = (
                    role == "user" and self.marks_no_thinking and not is_thinking and not text.endswith("/nothink")
                )
                yield f"<|{role}|>{between}{text}{'/nothink' if says_so else ''}"
        if chat.add_generation_prompt:
            yield f"<|assistant|>{self.opens_thinking if is_thinking else between + self.no_thinking}"

    def head(self, chat: Chat) -> Iterator[str]:
        """What stands before the conversation."""
        yield BEGIN
        if chat.tools:
            yield self.tools_turn(chat.tools)

    def tools_turn(self, tools: Sequence[Fields]) -> str:
        catalogue = "".join(f"{pyjson(tool)}\n" for tool in tools)
        return TOOLS_BEGIN + catalogue + TOOLS_END + self.between.join(EXAMPLE)

    def _assistant_turn(self, message: Fields, path: str, *, keeps_thinking: bool) -> str:
        thought, content = split_thinking(message, self.visible(message.get("content", "")))
        between = self.between
        block = f"<think>{self.thought(thought)}</think>" if keeps_thinking and thought else self.no_thinking
        text = content.strip()
        calls = message.get("tool_calls") or ()
        written = "".join(self._call(call, where) for call, where in with_paths(calls, path))
        return f"<|assistant|>{between}{block}{between + text if text else ''}{written}"

    def visible(self, content: Any) -> str:
        """Text, the texts of parts, or what Jinja prints for anything else: `None`."""
        return joined_parts(content) if isinstance(content, list | tuple) else printed(content)

    def thought(self, text: str) -> str:
        """The reasoning as it is written."""
        return text.strip()

    def results(self, content: Any, path: str) -> list[str]:
        """The texts of one tool message, which has several if its content is a list."""
        if isinstance(content, str):
            return [content]
        if not isinstance(content, list | tuple):
            raise TemplateError(f"the template needs text or a list, found {content!r}", path)
        return [printed(part["output"] if isinstance(part, Mapping) and "output" in part else part) for part in content]

    def _call(self, call: Fields, path: str) -> str:
        between = self.between
        pairs = "".join(
            f"<arg_key>{key}</arg_key>{between}<arg_value>{text_or_json(value)}</arg_value>{between}"
            for key, value in object_arguments(call, path).items()
        )
        return f"{between}<tool_call>{printed(function_of(call)['name'])}{between}{pairs}</tool_call>"


@dataclass(frozen=True, kw_only=True)
class Glm5Template(GlmTemplate):
    """GLM-5.3: says how much to think, shows the bare functions, and orders results like their calls."""

    def head(self, chat: Chat) -> Iterator[str]:
        yield f"{BEGIN}<|system|>Reasoning Effort: {chat.options['reasoning_effort'].capitalize()}"
        if chat.tools:
            yield self.tools_turn([_shown(tool) for tool in chat.tools])

    def pieces(self, chat: Chat) -> Iterator[str]:
        return super().pieces(replace(chat, messages=in_call_order(chat.messages)))

    def visible(self, content: Any) -> str:
        return joined_parts(content)

    def thought(self, text: str) -> str:
        return text

    def results(self, content: Any, path: str) -> list[str]:
        return [joined_parts(content)]


def _shown(tool: Fields) -> Fields:
    return {key: value for key, value in function_of(tool).items() if key not in ("strict", "defer_loading")}


TEMPLATES = (
    GlmTemplate(
        name="GLM-4.5",
        certainty=Certainty.VENDOR,
        models=r"glm[-_ ]?4[._-]?[56](?!\d)(?!v)",
        between="\n",
        no_thinking="<think></think>",
        opens_thinking="",
        marks_no_thinking=True,
        control_tokens=("/nothink",),
        options={"enable_thinking": flag(True)},
    ),
    GlmTemplate(
        name="GLM-4.7",
        certainty=Certainty.VENDOR,
        models=r"glm[-_ ]?(?:4[._-]?7|5(?![._-]?[1-9]))",
        no_thinking="</think>",
        opens_thinking="<think>",
        options={"enable_thinking": flag(True), "clear_thinking": flag(True)},
    ),
    Glm5Template(
        name="GLM-5.3",
        certainty=Certainty.ENCODER,
        models=r"glm[-_ ]?5[._-]?3",
        no_thinking="<think></think>",
        opens_thinking="<think>",
        options={"clear_thinking": flag(False), "reasoning_effort": choice("low", "high", "max", default="max")},
    ),
)
