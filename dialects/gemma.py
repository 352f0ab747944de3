"""Gemma: the dialect of Gemma 4.

A turn is `<|turn>`, a role (`user`, `system` or `model`), a newline, the body and `<turn|>`. In a model's turn stand
its thinking, text, calls, and the results of these:

    <|channel>thought \\n THINKING <channel|>
    ( <|tool_call> call: NAME { KEY : VALUE , ... } <tool_call|> )+
    ( <|tool_response> response: NAME { KEY : VALUE , ... } <tool_response|> )+

with nothing between the tokens. The arguments are literals in a notation of the family's own (`engine/literals.py`):
bare keys, strings between two `<|"|>` in which nothing is escaped, numbers, `true`, `false`, `null` (or `None`), lists
in `[]` and maps in `{}`. NAME may hold dots, dashes and colons. A call has no id. `<|tool_response>` alone is a stop
token: behind its calls the model waits for the results, and does not write them itself.

Source: the chat templates of Gemma 4.
"""

import json
import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import regex

from dialects.engine.dialect import Dialect, Tools
from dialects.engine.literal_calls import LiteralCallScanner
from dialects.engine.literal_form import LiteralForm, write_key
from dialects.engine.markers import MarkerSet
from dialects.engine.rendering import compact_json
from dialects.engine.scanner import State
from dialects.engine.turns import Turns, of_each_role
from dialects.events import ToolEnd
from dialects.messages import Message, ToolCall, ToolResult

__all__ = ["GEMMA", "Gemma", "GemmaScanner"]

TURN_BEGIN, TURN_END = "<|turn>", "<turn|>"
CALL_BEGIN, CALL_END = "<|tool_call>", "<tool_call|>"
RESULT_BEGIN, RESULT_END = "<|tool_response>", "<tool_response|>"
CHANNEL_BEGIN, CHANNEL_END = "<|channel>", "<channel|>"
QUOTE = '<|"|>'
TEXT_BEGIN, TEXT_END = "<bos>", "<eos>"
TURN_ENDS = (TURN_BEGIN, TURN_END, RESULT_BEGIN, TEXT_END)
OTHER_TOKENS = (RESULT_END, QUOTE, "<|tool>", "<tool|>", "<|think|>", TEXT_BEGIN)
CONTROL_TOKENS = (CALL_BEGIN, CALL_END, *TURN_ENDS, CHANNEL_BEGIN, CHANNEL_END, *OTHER_TOKENS)

_END = r"(?:\r?\n|(?=[^\w\r-])|\r(?=[^\n]))"
ROLE = regex.compile(rf"\s{{0,16}}+(?:(?P<own>model|assistant)|(?P<other>user|system|developer|tool)){_END}")
ROLES = ("model", "assistant", "user", "system", "developer", "tool")
LABEL = regex.compile(rf"[ \t]{{0,16}}+thought{_END}")
RESULT = regex.compile(r"\s{0,16}+response\s{0,16}+:")
_CALL_ID = re.compile(r"(?:functions\.)?(.+):[0-9]+", re.DOTALL)


class GemmaScanner(LiteralCallScanner):
    """Reads Gemma: calls as `LiteralCallScanner` does, `outside` is text, and `thinking` stands beside it."""

    form = LiteralForm(quote=QUOTE, call_begin=CALL_BEGIN, prefix="call:", call_end=CALL_END, turn_ends=TURN_ENDS)
    assistant_openers = (f"{TURN_BEGIN}model",)
    turn_openers = (TURN_BEGIN,)
    text_markers = MarkerSet(CONTROL_TOKENS)
    thinking_tags = (CHANNEL_BEGIN, CHANNEL_END)

    def _read_generation_prompt(self) -> None:
        """Behind the results of its calls a model's turn goes on."""
        prompt = self.generation_prompt
        self.generation_prompt = prompt[prompt.rfind(RESULT_END) + 1 :]
        super()._read_generation_prompt()
        self.generation_prompt = prompt

    def outside(self) -> State | None:
        return self.after(self.read_text(self.text_markers))

    def thinking(self) -> State | None:
        return self.after(self.read_text(self.text_markers))

    def after(self, marker: str | None) -> State | None:
        """Pass the marker at the cursor; the state that it leads to."""
        if marker is None:
            return None
        if marker == CALL_BEGIN:
            return self.call_begin(marker)
        if marker == CHANNEL_BEGIN:
            return self.channel_begin()
        if marker == TURN_BEGIN:
            return self.turn_begin()
        if marker == RESULT_BEGIN:
            return self.result_begin()
        if marker in (CHANNEL_END, TURN_END):
            self.end_thinking()
        self.pass_markup(marker)
        return self.home()

    def home(self) -> State:
        """The state that goes on where no call is open."""
        return self.thinking if self.thinking_open else self.outside

    def after_call(self) -> State:
        return self.outside

    # Turns, thinking and results.

    def turn_begin(self) -> State | None:
        """A turn's header. Only the model's own turn may go on."""
        text, start = self.tape.text, self.tape.i + len(TURN_BEGIN)
        role = ROLE.match(text, start, partial=not self.final)
        if role is not None and role.partial:
            return None
        if role is not None and role["other"]:
            self.stop("fabricated-turn")
            return self.outside
        if role is not None:
            self.end_thinking()
        self.pass_header(start if role is None else role.end(), ROLES)
        return self.home()

    def channel_begin(self) -> State | None:
        """Thinking, with the label of its channel."""
        start = self.tape.i + len(CHANNEL_BEGIN)
        label = LABEL.match(self.tape.text, start, partial=not self.final)
        if label is not None and label.partial:
            return None
        self.pass_header(start if label is None else label.end(), ("thought",))
        self.begin_thinking()
        return self.thinking

    def result_begin(self) -> State | None:
        start = self.tape.i + len(RESULT_BEGIN)
        result = RESULT.match(self.tape.text, start, partial=not self.final)
        if result is not None and result.partial:
            return None
        if result is not None:
            self.stop("fabricated-result")
            return self.outside
        self.end_thinking()
        self.pass_header(start, ("response:",))
        return self.outside

    def pass_header(self, end: int, words: tuple[str, ...]) -> None:
        """Pass a token and what belongs to it, up to `end`; also one of these words if the end of the stream cut it."""
        rest = self.tape.text[end : end + 16] if self.final else ""
        if any(word.startswith(rest) for word in words):
            end += len(rest)
        self.pass_markup(self.tape.text[self.tape.i : end])


def _read_output(literal: str) -> str:
    """The text of a result: its only value is read as one of a call's arguments would be."""
    events = GemmaScanner().feed(f"{CALL_BEGIN}call:result{literal}{CALL_END}")
    values = next((event.arguments for event in events if isinstance(event, ToolEnd)), {})
    output = next(iter(values.values()), literal)
    return output if isinstance(output, str) else compact_json(output)


class Gemma(Dialect):
    """The dialect of Gemma 4."""

    name = "gemma"
    title = "Gemma 4"
    models = r"gemma[-_ ]?4"
    control_tokens = CONTROL_TOKENS
    scanner = GemmaScanner
    generation_prompt = f"{TURN_BEGIN}model\n"
    call_separator = ""

    turns = Turns(
        headers={
            "tool": r"(?=<\|tool_response>response:)",
            **of_each_role(r"<\|turn>ROLE\n", assistant="model"),
        },
        end=r"<turn\|>\n?",
        result=r"<\|tool_response>response:(?P<name>[^{<]*)(?P<text>\{.*?\})<tool_response\|>",
        start="<bos>",
        result_text=_read_output,
    )

    def call_text(self, call: ToolCall, tools: Tools) -> str:
        return f"{CALL_BEGIN}call:{call.name}{_literal(call.arguments)}{CALL_END}"

    def results_text(self, results: Sequence[ToolResult]) -> str:
        return "".join(map(_result_text, results))

    def thinking_text(self, text: str) -> str:
        return f"{CHANNEL_BEGIN}thought\n{text}{CHANNEL_END}"

    def turn_text(self, role: str, name: str | None, body: str) -> str:
        return f"{TURN_BEGIN}{'model' if role == 'assistant' else role}\n{body}{TURN_END}"

    def transcript_text(self, messages: Sequence[Message], tools: Tools) -> str:
        """The results of calls belong to the turn of the message that called."""
        turns: list[tuple[str, str]] = []
        for is_result, run in groupby(self.answered(messages), key=lambda message: message.role == "tool"):
            if is_result:
                before = turns.pop()[1] if turns and turns[-1][0] == "assistant" else ""
                turns.append(("assistant", before + self.results_text([message.as_result() for message in run])))
                continue
            for message in run:
                is_own = message.role == "assistant"
                body = self.assistant_text(message, tools) if is_own else message.content
                turns.append(("system" if message.role == "developer" else message.role, body))
        return TEXT_BEGIN + "".join(self.turn_text(role, None, body) for role, body in turns)


GEMMA = Gemma()


def _literal(value: Any) -> str:
    """A value in the family's notation."""
    match value:
        case str():
            return f"{QUOTE}{value}{QUOTE}"
        case list():
            return f"[{','.join(map(_literal, value))}]"
        case dict():
            return f"{{{','.join(f'{write_key(key)}:{_literal(item)}' for key, item in value.items())}}}"
        case _:
            return compact_json(value)


def _result_text(result: ToolResult) -> str:
    output: Any = result.content
    if output.lstrip()[:1] in ("{", "["):
        try:
            output = json.loads(output, parse_constant=_refuse)
        except (ValueError, RecursionError):
            output = result.content
    named = _CALL_ID.fullmatch(result.call_id or "")
    name = result.name or (named[1] if named else "tool")
    return f"{RESULT_BEGIN}response:{name}{_literal({'output': output})}{RESULT_END}"


def _refuse(constant: str) -> None:
    raise ValueError(constant)
