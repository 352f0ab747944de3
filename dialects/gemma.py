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

from dialects.engine.arguments import DONE, GOING, TOO_DEEP, Arguments
from dialects.engine.dialect import Dialect, Tools
from dialects.engine.literals import LiteralForm, LiteralReader, write_key
from dialects.engine.markers import MarkerSet
from dialects.engine.rendering import compact_json
from dialects.engine.repair import dump
from dialects.engine.scanner import Scanner, State
from dialects.events import Event
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

_NAME = r"""[^\s{}()<>\[\]"'`,;]{1,256}"""
_CALL_START = rf"(?:call\s{{0,16}}+:\s{{0,16}}+){{1,4}}+{_NAME}\s{{0,16}}+[{{(]"
LITERALS = LiteralForm(
    quote=QUOTE, call_begin=CALL_BEGIN, call_end=CALL_END, call_start=_CALL_START, turn_ends=TURN_ENDS
)
HEADER_ENDS = MarkerSet(["{", "(", *LITERALS.ends])
CALL_ENDS = MarkerSet(LITERALS.ends)
NEXT_CALL = MarkerSet(["call:", *LITERALS.ends])
ONLY_CALL_MARKERS = MarkerSet([CALL_BEGIN, CALL_END])

ROLE = regex.compile(r"\s{0,16}+(?:(?P<own>model|assistant)|(?P<other>user|system|developer|tool))(?:\n|(?=[^\w-]))")
ROLES = ("model", "assistant", "user", "system", "developer", "tool")
LABEL = regex.compile(r"[ \t]{0,16}+thought(?:\n|(?=[^\w-]))")
RESULT = regex.compile(r"\s{0,16}+response\s{0,16}+:")
HEADER = re.compile(rf"\s*(?P<prefix>(?:call\s*:\s*)*)(?P<name>{_NAME}|{re.escape(QUOTE)}{_NAME}{re.escape(QUOTE)})\s*")
CALL_START = regex.compile(_CALL_START)
_CALL_ID = re.compile(r"(?:functions\.)?(.+):[0-9]+", re.DOTALL)
_BRACKETS = "}]) \t\r\n,"
_NEAR = 400
"""How far behind complete arguments the call's end marker may stand."""


class GemmaScanner(Scanner):
    """Reads Gemma; see the grammar above.

    `outside` (text) -> `header` (the name) -> `args` -> `tail` (up to the call's end) -> `outside`, or `malformed` for
    what is no call; and `thinking` beside them.
    """

    turn_opener = f"{TURN_BEGIN}model"
    turn_openers = (TURN_BEGIN,)
    text_markers = MarkerSet(CONTROL_TOKENS)
    thinking_tags = (CHANNEL_BEGIN, CHANNEL_END)

    def _reset(self) -> None:
        self.reader = LiteralReader(LITERALS, max_held_chars=self.max_held_chars)
        self.header_start = 0
        self.skipped_last = ""
        """The last character of what was skipped of a call that is too large."""
        super()._reset()

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
            return self.call_begin(len(marker))
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
        rest = self.tape.text[end:]
        if self.final and len(rest) < 16 and any(word.startswith(rest) for word in words):
            end += len(rest)
        self.pass_markup(self.tape.text[self.tape.i : end])

    # Calls.

    def call_begin(self, opener: int, *repairs: str) -> State:
        """A call begins at the cursor, with so many characters that open it."""
        self.begin_call(*repairs)
        self.tape.i += opener
        self.header_start = self.tape.pos
        return self.header

    def header(self) -> State | None:
        tape = self.tape
        tape.i, marker = HEADER_ENDS.find(tape.text, tape.i, final=self.final)
        if marker is None:
            return self.cut_off() if self.final else None
        header = tape.slice(self.header_start, tape.pos)
        if marker == "{" and not header.strip():
            return self.begin_arguments()
        named = HEADER.fullmatch(header)
        known = self.tools or {}
        if named is None or not (named["prefix"] or named["name"] in known or (not known and marker == "{")):
            return self.malformed
        if marker in ("{", "("):
            self.identify(named)
            return self.begin_arguments()
        if marker != CALL_END or not (named["prefix"] or named["name"] in known):
            return self.malformed
        self.identify(named)
        tape.i += len(marker)
        self.end_call(self.write_arguments(Arguments({}, "{}", ("empty-arguments",))))
        return self.outside

    def identify(self, named: "re.Match[str]") -> None:
        """Name the open call; of a longer name it may be the end that a tool has."""
        call = self.open_call
        if not named["prefix"] and "shared-block" not in call.repairs:
            call.repairs.append("missing-call-prefix")
        name = named["name"].strip('<|">').removesuffix(":")
        tools = self.tools or {}
        if name not in tools:
            ends = (name[at.end() :] for at in re.finditer(r"[.:/]", name))
            name = next((end for end in ends if end in tools), name)
        if name != named["name"]:
            call.repairs.append("resolved-name")
        self.name_call(name)

    def begin_arguments(self) -> State:
        """The arguments begin at the cursor."""
        call = self.open_call
        tool = (self.tools or {}).get(call.name or "")
        self.reader.begin(self.tape, tool.parameters if tool else {}, call_id=call.id, name=call.name or "")
        return self.args

    def args(self) -> State | None:
        status = self.reader.read(self._sink(), final=self.final)
        if status is GOING:
            return self.cut_off() if self.final else None
        if status is DONE:
            return self.tail
        if status is TOO_DEEP:
            return self.malformed
        return self.end_at_marker()

    def end_at_marker(self) -> State:
        """The arguments end at the marker at the cursor; behind the call's own, or before the next call."""
        tape = self.tape
        if self.reader.in_doubt and self.truncated:
            return self.cut_off()
        if tape.text.startswith(CALL_END, tape.i):
            tape.i += len(CALL_END)
        elif tape.text.startswith(CALL_BEGIN, tape.i):
            self.open_call.repairs.append("missing-call-end")
        else:
            self.drop_call("unfinished")
            return self.outside
        return self.finish_call()

    def tail(self) -> State | None:
        """Behind complete arguments: the call's end, or another call in the same block, or what should not be there."""
        tape, end = self.tape, self.reader.end
        tape.i, marker = NEXT_CALL.find(tape.text, tape.i, final=False)
        is_far = tape.pos - end > _NEAR
        if marker is None and not (self.final or is_far):
            return None
        between = tape.slice(end, min(tape.pos, end + _NEAR)).strip()
        if marker == "call:" and not is_far:
            following = CALL_START.match(tape.text, tape.i, partial=not self.final)
            if following is not None and following.partial:
                return None
            if following is None or between.strip(_BRACKETS):
                tape.i += len(marker)
                return self.tail
            self.finish_call()
            return self.call_begin(0, "shared-block")
        if between and not is_far and (marker == CALL_END or not between.strip(_BRACKETS)):
            self.reader.note("trailing-text" if between.strip(_BRACKETS) else "extra-closer")
        elif between:
            tape.seek(end)
        if marker == CALL_END and not is_far:
            return self.end_at_marker()
        if marker is None and self.truncated and not is_far:
            return self.cut_off()
        if marker is None and tape.text.startswith("<", tape.i):
            tape.i = len(tape.text)
        self.open_call.repairs.append("missing-call-end")
        return self.finish_call()

    def finish_call(self) -> State:
        """The open call is over, the cursor behind it."""
        arguments = self.reader.finish(self._sink())
        self.end_call(self.named_inside(arguments) if self.open_call.name is None else arguments)
        return self.outside

    def named_inside(self, arguments: Arguments) -> Arguments:
        """The arguments of a call that is a JSON object with its name in it."""
        value = arguments.value
        name, inner = value.get("name"), value.get("arguments", value.get("parameters", {}))
        if not isinstance(name, str) or not name or not isinstance(inner, dict) or arguments.too_deep:
            return arguments
        self.name_call(name)
        return self.write_arguments(Arguments(inner, dump(inner), ("call-object", *arguments.repairs)))

    def malformed(self) -> State | None:
        """The rest of what is no call."""
        tape = self.tape
        tape.i, marker = CALL_ENDS.find(tape.text, tape.i, final=self.final)
        if marker is None and not self.final:
            return None
        tape.i += len(marker) if marker == CALL_END else 0
        self.drop_call("malformed")
        return self.outside

    def cut_off(self) -> State:
        """The stream ended inside the call."""
        self.tape.i = len(self.tape.text)
        self.drop_call("unfinished")
        return self.outside

    def after_too_large(self) -> State:
        self.skipped_last = ""
        return self.skip

    def skip(self) -> State | None:
        """The rest of a call that was too large."""
        tape, start = self.tape, self.tape.i
        tape.i, marker = ONLY_CALL_MARKERS.find(tape.text, start, final=self.final)
        self.skipped_last = tape.text[start : tape.i].rstrip()[-1:] or self.skipped_last
        if marker is None:
            return None
        real = LITERALS.string_ends.real(tape.text, tape.i, final=self.final)
        if marker == CALL_END and self.skipped_last in ("}", ")"):
            real = True
        if real is None:
            return None
        tape.i += 0 if real and marker == CALL_BEGIN else len(marker)
        return self.outside if real else self.skip

    def _forget_call(self) -> None:
        super()._forget_call()
        self.reader.release()

    def _sink(self) -> list[Event] | None:
        return self.events if self.open_call.shown else None

    @property
    def released(self) -> int:
        if self.call is not None and self.call.shown and self.state in (self.args, self.tail):
            return self.reader.out
        return super().released

    def _find_short_ways(self) -> None:
        super()._find_short_ways()
        if self.call is not None and self.call.shown and self.state == self.args and self.reader.in_run:
            self.tape.feed("")
            self.reader.run_limit = self._limit
            self._quick = self.reader.read_run


class Gemma(Dialect):
    """The dialect of Gemma 4."""

    name = "gemma"
    title = "Gemma 4"
    models = r"gemma[-_ ]?4"
    control_tokens = CONTROL_TOKENS
    scanner = GemmaScanner
    generation_prompt = f"{TURN_BEGIN}model\n"

    def call_text(self, call: ToolCall, tools: Tools) -> str:
        return f"{CALL_BEGIN}call:{call.name}{_literal(call.arguments)}{CALL_END}"

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        return "".join(self.call_text(call, tools) for call in calls)

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
