"""Gemini: the in-band dialect of Google's Gemini models, Python calls in a Markdown fence.

A turn is `<start_of_turn>`, `user` or `model`, a line break, a body and `<end_of_turn>`. A model's body:

    [ ```thinking NEWLINE THINKING NEWLINE ``` ] [ TEXT ] ```tool_code NEWLINE CALLS NEWLINE ```
    CALLS = CALL | "[" [ CALL ( "," CALL )* ] "]" | CALL ( NEWLINE CALL )*
    CALL  = [ "print(" ] [ "default_api." ] NAME "(" [ KEY "=" LITERAL ( "," KEY "=" LITERAL )* ] ")" [ ")" ]

The grammar of a call is that of `engine/python_calls.py`. A plain answer ends with an empty list. A call has no id.
The results of a batch stand in one user turn, each in a fence ```tool_outputs, in the order of the calls. There is no
system turn: its text stands before that of the next user turn.

The fence is all the markup there is, and a person may write it as well. It is used where a line break and a call's
first characters follow, and it stands in no other code. It may begin in the middle of a line: the renderer puts it
there.

Source: the reference renderer's form of the dialect; no vendor template exists.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import ClassVar

import regex
from msgspec.structs import replace

from dialects.engine.dialect import Dialect, Tools
from dialects.engine.markdown import FenceClose, NestedMarkdown
from dialects.engine.markers import MarkerSet, begun
from dialects.engine.plain_tags import BLOCK_CHARS
from dialects.engine.python_blocks import PythonBlockScanner, statement, swallowed_call
from dialects.engine.python_calls import StringEnd
from dialects.engine.python_literals import write_keywords
from dialects.engine.scanner import State
from dialects.messages import Message, ToolCall, ToolResult

__all__ = ["GEMINI", "Gemini", "GeminiScanner"]

FENCE = "```"
CALL_INFO, RESULT_INFO, THINKING_INFO = "tool_code", "tool_outputs", "thinking"
NAMESPACE = "default_api"
TURN_BEGIN, TURN_END, TEXT_BEGIN = "<start_of_turn>", "<end_of_turn>", "<bos>"
SPECIAL_TOKENS = (TURN_BEGIN, TURN_END, TEXT_BEGIN)
CONTROL_TOKENS = (*SPECIAL_TOKENS, FENCE + CALL_INFO, FENCE + RESULT_INFO, FENCE + THINKING_INFO)
LONGEST_FENCE = 6


def _fences(info: str) -> tuple[str, ...]:
    return tuple("`" * length + info for length in range(3, LONGEST_FENCE + 1))


CALL_FENCES, RESULT_FENCES, THINKING_FENCES = map(_fences, (CALL_INFO, RESULT_INFO, THINKING_INFO))

_LINE_END = r"[ \t]{0,16}+\r?\n"
_COMMENTS = r"\s{0,64}+(?:#[^\n]{0,256}+\n\s{0,64}+){0,4}+"
_IN_STRING = r"\r?\n[ \t]{0,8}+`{3,64}+"
STATEMENT = statement(NAMESPACE)
line_end = regex.compile(_LINE_END)
line_end_or_cut = regex.compile(rf"{_LINE_END}|[ \t\r]{{0,16}}+\Z")
rest_of_closer = regex.compile(r"[ \t]{0,16}+\r?(?=[\n<])")
rest_of_closer_or_cut = regex.compile(r"[ \t]{0,16}+\r?(?=[\n<]|\Z)")
another_fence = regex.compile(rf"(?:{CALL_INFO}|{RESULT_INFO}|{THINKING_INFO}){_LINE_END}")
near_end = re.compile(rf"(?P<fence>\n[ \t]*`{{3,}})|{'|'.join(map(re.escape, SPECIAL_TOKENS))}")
run_of_ticks = re.compile(r"`+")
line_of_ticks = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)


class GeminiScanner(PythonBlockScanner):
    """Reads Gemini: `outside` -> `block` -> `args` -> `block` -> ... -> `outside`, and `thinking`."""

    call_begin = FENCE + CALL_INFO
    call_start = regex.compile(rf"{_LINE_END}{_COMMENTS}(?:`{{3}}|\[{_COMMENTS}\]|\[?{_COMMENTS}{STATEMENT})")
    closers = ()
    special_tokens = SPECIAL_TOKENS
    thinking_tags = THINKING_FENCES
    text_markers = MarkerSet([*CALL_FENCES, *RESULT_FENCES, *THINKING_FENCES, *SPECIAL_TOKENS])
    thinking_markers = MarkerSet([FENCE, *SPECIAL_TOKENS])
    turn_opener = f"{TURN_BEGIN}model"
    turn_openers = (TURN_BEGIN,)
    turn_header_pattern = regex.compile(r"<start_of_turn>(?P<role>\w{1,32})\r?\n")
    cut_turn_header = re.compile(r"<start_of_turn>" + begun(["system", "user", "model"]) + r"\r?\Z")
    roles: ClassVar[Mapping[str, str | None]] = {"model": None}
    statement = regex.compile(STATEMENT)
    string_end = StringEnd(
        closer=_IN_STRING,
        next_call=rf"{_IN_STRING}{CALL_INFO}{_LINE_END}",
        opener=rf"{_IN_STRING}[ \t]{{0,16}}+[^`\s<][^`\n]{{0,64}}+\n",
        swallowed=swallowed_call(NAMESPACE),
    )

    def _reset(self) -> None:
        self.thinking_open = False
        self._ticks = 3
        """The length of the fence that is open, of calls or thinking."""
        super()._reset()

    def fresh_markdown(self) -> NestedMarkdown:
        """Thinking stands in a fence itself."""
        return NestedMarkdown(("`", self._ticks) if self.thinking_open else None)

    # Text.

    def read_marker(self, marker: str) -> State | None:
        """What a marker in text, outside code, is."""
        if marker in self.turn_openers:
            return self._turn_header(marker)
        if marker in self.special_tokens:
            self.pass_markup(marker)
            return self.outside
        info = marker.lstrip("`")
        self._ticks = len(marker) - len(info)
        if self._ticks > 3 and not self.markdown.blank:
            self._mention("`" * (self._ticks - 3))
            marker, self._ticks = FENCE + info, 3
        if info == CALL_INFO:
            return self._call_fence(marker)
        is_used = (self.markdown.blank or self._after_markup) and (self.called or info != RESULT_INFO)
        pattern = line_end_or_cut if self.final else line_end
        rest = pattern.match(self.tape.text, self.tape.i + len(marker), partial=not self.final)
        if not is_used or rest is None:
            return self._mention(marker)
        if rest.partial:
            return None
        if info == RESULT_INFO:
            self.stop("fabricated-result")
            return self.outside
        self.pass_markup(self.tape.text[self.tape.i : rest.end()])
        self.begin_thinking()
        return self.thinking

    def _call_fence(self, marker: str) -> State | None:
        tape = self.tape
        behind = tape.i + len(marker)
        start = self.call_start.match(tape.text, behind, partial=True)
        if start is None:
            return self._fence_without_call(marker)
        if start.partial:
            if not self.final:
                return None
            if not (self.truncated or self.markdown.blank or "\n" in tape.text[behind:]):
                return self._mention(marker)
            self.begin_call()
            tape.i = len(tape.text)
            self.drop_call("unfinished")
            return self.after_call()
        return self._open_block(marker)

    def _open_block(self, marker: str) -> State:
        self._may_be_prose = not self.markdown.blank and not self.thinking_open
        self.begin_call()
        self.tape.i += len(marker)
        return self.enter_call()

    def _fence_without_call(self, marker: str) -> State | None:
        """At a line's start, with its closer near, or cut off by the turn's end, it is a malformed block; else it is
        prose."""
        tape = self.tape
        behind = tape.i + len(marker)
        if not line_end.match(tape.text, behind):
            return self._mention(marker)
        near = tape.text[behind : behind + BLOCK_CHARS]
        is_all = self.final or len(near) == BLOCK_CHARS
        closer = near_end.search(near)
        if closer is None or (not is_all and closer.end() == len(near)):
            return self._mention(marker) if is_all else None
        end = behind + closer.start()
        is_cut = not closer["fence"] and self.call_start.match(tape.text[:end], behind, partial=True) is not None
        if not (is_cut or self.markdown.blank):
            return self._mention(marker)
        self.begin_call()
        tape.i = behind + closer.end() if closer["fence"] else end
        self.drop_call("malformed")
        return self.after_call()

    # Thinking.

    def thinking(self) -> State | None:
        """Thinking, up to the end of its fence; a fence in it is closed before it is."""
        marker = self.read_text(self.thinking_markers)
        if marker is None:
            return None
        if marker in self.turn_openers:
            return self._turn_header(marker)
        if marker != FENCE:
            self.tape.i += len(marker)
            return self.thinking
        return self._fence_in_thinking()

    def _fence_in_thinking(self) -> State | None:
        tape, text = self.tape, self.tape.text
        ticks = self._run_of_ticks()
        if ticks is None:
            return None
        behind = tape.i + len(ticks)
        if text.startswith(CALL_INFO, behind) and tape.pos >= self._mention_until:
            return self._call_in_thinking(ticks)
        if not self.final and CALL_INFO.startswith(text[behind : behind + len(CALL_INFO)]):
            return None
        markdown = self.markdown
        assert isinstance(markdown, NestedMarkdown)
        if markdown.blank and markdown.depth == 1 and len(ticks) >= self._ticks:
            pattern = rest_of_closer_or_cut if self.final else rest_of_closer
            rest = pattern.match(text, behind, partial=not self.final)
            if rest is not None and rest.partial:
                return None
            if rest is not None:
                self.end_thinking()
                self.pass_markup(text[tape.i : rest.end()])
                return self.outside
        return self._mention(ticks)

    def _call_in_thinking(self, ticks: str) -> State | None:
        """A block of calls in thinking is a draft, unless the thinking is never ended."""
        tape = self.tape
        marker = ticks + CALL_INFO
        start = self.call_start.match(tape.text, tape.i + len(marker), partial=not self.final)
        if start is None:
            return self._mention(marker)
        if start.partial:
            return None
        if tape.pos != self._used:
            return self._look_ahead(FenceClose(self.markdown))
        self._ticks = len(ticks)
        return self._open_block(marker)

    # Blocks.

    def read_block_end(self) -> bool | None:
        """A fence ends a block of calls, and so do the turn's end and another fence of the dialect."""
        tape, text = self.tape, self.tape.text
        if text.startswith("<", tape.i):
            return self._is_special_token()
        if not text.startswith("`", tape.i):
            return False
        ticks = self._run_of_ticks()
        if ticks is None:
            return None
        end = tape.i + len(ticks)
        if len(ticks) < self._ticks:
            is_cut = self.final and end == len(text) and not self.truncated
            if is_cut:
                self.note("missing-call-end")
                tape.i = end
            return is_cut
        if len(ticks) >= self._ticks + 3:
            tape.i += self._ticks
            return True
        other = another_fence.match(text, end, partial=not self.final)
        if other is not None and other.partial:
            return None
        if other is not None:
            self.note("missing-call-end")
        else:
            tape.i = end
        return True

    def _is_special_token(self) -> bool | None:
        rest = self.tape.text[self.tape.i :]
        if rest.startswith(SPECIAL_TOKENS):
            self.note("missing-call-end")
            return True
        is_begun = any(token.startswith(rest) for token in SPECIAL_TOKENS)
        return None if is_begun and not self.final else False

    def _run_of_ticks(self) -> str | None:
        """The run of backticks at the cursor; None while it may go on."""
        run = run_of_ticks.match(self.tape.text, self.tape.i)
        assert run is not None
        return None if run.end() == len(self.tape.text) and not self.final else run[0]


class Gemini(Dialect):
    """The dialect of the Gemini models."""

    name = "gemini"
    title = "Gemini"
    models = r"gemini"
    control_tokens = CONTROL_TOKENS
    scanner = GeminiScanner
    generation_prompt = f"{TURN_BEGIN}model\n"

    def call_text(self, call: ToolCall, tools: Tools) -> str:
        return f"{NAMESPACE}.{call.name}({write_keywords(call.arguments)})"

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        written = ", ".join(self.call_text(call, tools) for call in calls)
        return _fenced(CALL_INFO, written if len(calls) == 1 else f"[{written}]")

    def results_text(self, results: Sequence[ToolResult]) -> str:
        return "\n".join(_fenced(RESULT_INFO, result.content) for result in results)

    def results_turn_text(self, results: Sequence[ToolResult]) -> str:
        return self.turn_text("user", None, self.results_text(results))

    def thinking_text(self, text: str) -> str:
        longest = max((len(run) for run in line_of_ticks.findall(text)), default=2)
        return _fenced(THINKING_INFO, text, ticks=min(longest + 1, LONGEST_FENCE))

    def turn_text(self, role: str, name: str | None, body: str) -> str:
        return f"{TURN_BEGIN}{'model' if role == 'assistant' else 'user'}\n{body}{TURN_END}\n"

    def assistant_text(self, message: Message, tools: Tools) -> str:
        thinking = f"{self.thinking_text(message.reasoning)}\n" if message.reasoning else ""
        apart = "\n" if message.content.endswith("`") else ""
        calls = self.calls_text(message.tool_calls, tools) if message.tool_calls or message.content else ""
        return thinking + message.content + apart + calls

    def transcript_text(self, messages: Sequence[Message], tools: Tools) -> str:
        return TEXT_BEGIN + super().transcript_text(_without_system(messages), tools)


def _fenced(info: str, text: str, *, ticks: int = 3) -> str:
    return f"{'`' * ticks}{info}\n{text}\n{'`' * ticks}"


def _without_system(messages: Sequence[Message]) -> list[Message]:
    """The messages with system texts in front of that of the next user turn, or in a user turn of their own."""
    out: list[Message] = []
    for role, run in groupby(messages, key=lambda message: "system" if message.role == "developer" else message.role):
        turns = list(run)
        if out and out[-1].role == "system" and role == "user":
            turns[0] = replace(turns[0], content=f"{out.pop().content}\n{turns[0].content}")
        if role == "system":
            turns = [Message("system", "\n".join(message.content for message in turns))]
        out += turns
    return out


GEMINI = Gemini()
