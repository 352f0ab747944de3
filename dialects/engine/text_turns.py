"""Turns that are plain text: `Human:` and `Assistant:` behind an empty line, reader and writer.

The text of the system comes before all turns, without a header. The results of a batch stand in a human turn.
`InvokeDialect` writes calls as function and parameter tags in such turns; `function_results` are results in tags.
"""

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

import regex

from dialects.engine.coercion import argument_texts
from dialects.engine.dialect import Dialect, Tools
from dialects.engine.invoke_tags import attribute
from dialects.engine.turns import Turns, of_each_role
from dialects.messages import Message, ToolCall, ToolResult

__all__ = [
    "ASSISTANT",
    "FUNCTION_RESULT",
    "HUMAN",
    "InvokeDialect",
    "TextTurns",
    "function_results",
    "text_transcript",
    "thinking_begins",
    "thinking_ends",
]

HUMAN, ASSISTANT = "\n\nHuman:", "\n\nAssistant:"
FUNCTION_RESULT = (
    r"(?:<function_results>\n)?<(?:result|(?P<error>error))>\n<tool_name>(?P<name>[^<]*)</tool_name>\n"
    r"<(?P<stream>stdout|stderr)>(?P<text>.*?)</(?P=stream)>\n</(?:result|error)>"
    r"(?:\n</function_results>)?"
)
"""One of the results that `function_results` writes, with the tags around them all."""
_THINKING = ("think", "thinking", "scratchpad")


def thinking_begins(*namespaces: str) -> tuple[str, ...]:
    """The tags that models open thinking with, whatever they were told; with these namespaces, too."""
    return tuple(f"<{namespace}{name}>" for namespace in ("", *namespaces) for name in _THINKING)


def thinking_ends(*namespaces: str) -> tuple[str, ...]:
    """Their closers."""
    return tuple(f"</{namespace}{name}>" for namespace in ("", *namespaces) for name in _THINKING)


def text_transcript(result_begin: str, result: str) -> Turns:
    """The turns of a transcript in which a batch of results begins with that tag."""
    return Turns(
        headers={
            "tool": rf"{HUMAN} ?(?={result_begin})",
            **of_each_role(r"\n\nROLE: ?", user="Human", assistant="Assistant"),
        },
        result=result,
        begins_with_text=True,
    )


class TextTurns:
    """What a `PlainInvokeScanner` needs to know of the turns, and of thinking in them."""

    think_begins: ClassVar[tuple[str, ...]] = thinking_begins()
    think_ends: ClassVar[tuple[str, ...]] = thinking_ends()
    thinking_tags: ClassVar[tuple[str, ...]] = (*think_begins, *think_ends)
    special_tokens: ClassVar[tuple[str, ...]] = ()
    assistant_openers: ClassVar[tuple[str, ...]] = (ASSISTANT,)
    turn_openers: ClassVar[tuple[str, ...]] = (HUMAN, ASSISTANT)
    text_headers: ClassVar[tuple[str, ...]] = (HUMAN, ASSISTANT)
    turn_header_pattern: ClassVar["regex.Pattern[str]"] = regex.compile(r"\n\n(?P<role>Human|Assistant):(?: |(?=[^ ]))")
    cut_turn_header: ClassVar["re.Pattern[str]"] = re.compile(r"\n\n(?:Human|Assistant):\Z")
    roles: ClassVar[Mapping[str, str | None]] = {"Assistant": None}


class InvokeDialect(Dialect):
    """Writes it. A dialect adds its name, its models and the tags around a batch of calls."""

    section: ClassVar[tuple[str, str]]
    """The tags around a batch of calls, each with its newline; empty where there are none."""
    turns: ClassVar[Turns]
    generation_prompt = f"{ASSISTANT} "

    def call_text(self, call: ToolCall, tools: Tools) -> str:
        parameters = "".join(
            f'<parameter name="{attribute(key)}">{text}</parameter>' for key, text in argument_texts(call, tools)
        )
        return f'<invoke name="{attribute(call.name)}">{parameters}</invoke>'

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        begin, end = self.section
        return begin + "\n".join(self.call_text(call, tools) for call in calls) + end

    def thinking_text(self, text: str) -> str:
        return f"<thinking>\n{text}\n</thinking>"

    def results_turn_text(self, results: Sequence[ToolResult]) -> str:
        return self.turn_text("user", None, self.results_text(results))

    def turn_text(self, role: str, name: str | None, body: str) -> str:
        header = {"user": f"{HUMAN} ", "assistant": f"{ASSISTANT} "}.get(role, "\n\n")
        return header + body

    def transcript_text(self, messages: Sequence[Message], tools: Tools) -> str:
        text = super().transcript_text(messages, tools)
        return text[2:] if messages and messages[0].role in ("system", "developer") else text


def function_results(results: Sequence[ToolResult]) -> str:
    """A batch of results, each with the name of its tool."""
    return "\n".join(["<function_results>", *map(_function_result, results), "</function_results>"])


def _function_result(result: ToolResult) -> str:
    kind, stream = ("error", "stderr") if result.is_error else ("result", "stdout")
    name = f"<tool_name>{result.name or _named_in(result.call_id or '')}</tool_name>"
    return f"<{kind}>\n{name}\n<{stream}>{result.content}</{stream}>\n</{kind}>"


def _named_in(call_id: str) -> str:
    """The name in an id of the form `functions.NAME:INDEX`, where the result itself has none."""
    named = re.fullmatch(r"functions\.(.+):\d+", call_id)
    return named[1] if named else ""
