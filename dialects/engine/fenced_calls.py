"""Blocks of calls, and thinking, in Markdown fences: the info string says what a fence holds.

The fence is all the markup there is, and a person may write it as well. A fence of calls is used where a line break
and a call's first characters follow, and no code stands around it; it may begin in the middle of a line. One of
thinking is used at the start of a line. A fence inside another one is closed before that is: so a fence in thinking
does not end it, and a block of calls in another fence, or in thinking, is an example or a draft if that one is closed.

The states are those of `PythonBlockScanner`, and `outside` and `thinking`.
"""

import re
from typing import ClassVar

import regex

from dialects.engine.markdown import FenceClose, NestedMarkdown
from dialects.engine.markers import MarkerSet
from dialects.engine.plain_tags import BLOCK_CHARS
from dialects.engine.python_blocks import PythonBlockScanner, statement, swallowed_call
from dialects.engine.python_ends import StringEnd
from dialects.engine.python_literals import NAME
from dialects.engine.scanner import State

__all__ = ["FENCE", "LONGEST_FENCE", "FencedCallScanner"]

FENCE = "```"
LONGEST_FENCE = 6
"""The longest fence, in backticks, that may be markup."""

_LONGEST_RUN = 64
"""How many backticks are waited for; the next one begins another run."""

_UNCLOSED_FENCES = 16
"""After so many that nothing closes, no more is read ahead for the end of thinking, which would take the whole rest."""

_TOO_LONG = "`" * (LONGEST_FENCE + 1)
_LINE_END = r"[ \t]{0,16}+\r?\n"
_COMMENTS = r"\s{0,64}+(?:(?:#|(?:import|from)\s)[^\n]{0,256}+\n\s{0,64}+){0,4}+"
_VARIABLE = rf"{NAME}[ \t]{{0,16}}+=[ \t]{{0,16}}+"
_IN_STRING = r"\r?\n[ \t]{0,8}+`{3,64}+"
_line_end = regex.compile(_LINE_END)
_line_end_or_cut = regex.compile(rf"{_LINE_END}|[ \t\r]{{0,16}}+\Z")
_rest_of_closer = regex.compile(r"[ \t]{0,16}+\r?(?=[\n<])")
_rest_of_closer_or_cut = regex.compile(r"[ \t]{0,16}+\r?(?=[\n<]|\Z)")
_run_of_ticks = re.compile(rf"`{{1,{_LONGEST_RUN}}}+")


class FencedCallScanner(PythonBlockScanner):
    """Reads them. A dialect says what the info strings are, and in which namespace tools may stand."""

    call_info: ClassVar[str]
    result_info: ClassVar[str]
    thinking_info: ClassVar[str]
    namespace: ClassVar[str]

    closers: ClassVar[tuple[str, ...]] = ()
    thinking_markers: ClassVar[MarkerSet]
    block_start: ClassVar["regex.Pattern[str]"]
    """How a block begins that only the dialect's scanner can tell from prose: with a call, or other code before one."""
    another_fence: ClassVar["regex.Pattern[str]"]
    near_end: ClassVar["regex.Pattern[str]"]

    def __init_subclass__(cls) -> None:
        """Make patterns and marker sets out of the info strings."""
        infos = (cls.call_info, cls.result_info, cls.thinking_info)
        lengths = range(3, LONGEST_FENCE + 1)
        begun = statement(cls.namespace)
        cls.call_begin = FENCE + cls.call_info
        cls.call_begins = (cls.call_begin,)
        first = rf"(?:(?:{_VARIABLE})?\[)?{_COMMENTS}{begun}"
        cls.call_start = regex.compile(rf"{_LINE_END}{_COMMENTS}(?:`{{3}}|\[\s{{0,64}}+\]|{first})")
        in_namespace = rf"(?:{_VARIABLE})?(?:print\s{{0,16}}+\(\s{{0,16}}+)?{cls.namespace}\s{{0,16}}+\."
        lines = rf"{_LINE_END}(?:[^\n`]{{0,128}}+\n){{1,8}}?{in_namespace}"
        cls.block_start = regex.compile(f"{cls.call_start.pattern}|{lines}")
        cls.statement = regex.compile(begun)
        cls.thinking_tags = tuple("`" * length + cls.thinking_info for length in lengths)
        fences = ("`" * length + info for length in lengths for info in infos)
        cls.text_markers = MarkerSet([*fences, _TOO_LONG, *cls.special_tokens])
        cls.thinking_markers = MarkerSet([FENCE, *cls.special_tokens])
        cls.another_fence = regex.compile(rf"(?:{'|'.join(infos)}){_LINE_END}")
        cls.near_end = regex.compile(
            rf"(?P<fence>\n[ \t]*`{{3,}})|\n(?P<call>{begun})|{'|'.join(map(re.escape, cls.special_tokens))}"
        )
        cls.string_end = StringEnd(
            closer=_IN_STRING,
            next_call=rf"{_IN_STRING}{cls.call_info}{_LINE_END}",
            swallowed=swallowed_call(cls.namespace),
        )

    def _reset(self) -> None:
        self.thinking_open = False
        self._ticks = 3
        """The length of the fence that is open, of calls or thinking."""
        super()._reset()

    def fresh_markdown(self) -> NestedMarkdown:
        """Thinking stands in a fence itself."""
        return NestedMarkdown(("`", self._ticks) if self.thinking_open else None)

    def start_behind(self, marker: str) -> "regex.Pattern[str]":
        return self.block_start

    # Text.

    def read_marker(self, marker: str) -> State | None:
        """What a marker in text, outside code, is."""
        if marker in self.turn_openers:
            return self._turn_header(marker)
        if marker in self.special_tokens:
            self.pass_markup(marker)
            return self.outside
        info = marker.lstrip("`")
        if not info:
            run = self._ticks_here()
            return None if run is None else self._mention(run)
        self._ticks = len(marker) - len(info)
        if self._ticks > 3 and not self.markdown.blank:
            return self._mention("`" * (self._ticks - 3))
        if info == self.call_info:
            return self._call_fence(marker)
        is_used = (self.markdown.blank or self._after_markup) and (self.called or info != self.result_info)
        pattern = _line_end_or_cut if self.final else _line_end
        rest = pattern.match(self.tape.text, self.tape.i + len(marker), partial=not self.final)
        if not is_used or rest is None:
            return self._mention(marker)
        if rest.partial:
            return None
        if info == self.result_info:
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
        """A fence with something else behind it. At a line's start it is a block, if a line near by is plainly a call,
        and a malformed one with its closer near, or cut off by the turn's end; else it is prose."""
        tape = self.tape
        behind = tape.i + len(marker)
        if not _line_end.match(tape.text, behind):
            return self._mention(marker)
        near = tape.text[behind : behind + BLOCK_CHARS]
        is_all = self.final or len(near) == BLOCK_CHARS
        closer = next((found for found in self.near_end.finditer(near) if self._is_near_end(found)), None)
        if closer is None or (not is_all and closer.end() == len(near)):
            return self._mention(marker) if is_all else None
        if closer["call"]:
            return self._open_block(marker)
        end = behind + closer.start()
        is_cut = not closer["fence"] and self.call_start.match(tape.text[:end], behind, partial=True) is not None
        if not (is_cut or self.markdown.blank):
            return self._mention(marker)
        self.begin_call()
        tape.i = behind + closer.end() if closer["fence"] else end
        self.drop_call("malformed")
        return self.after_call()

    def _is_near_end(self, found: "regex.Match[str]") -> bool:
        """Whether a fence, the turn's end, or a line that is plainly a call was found."""
        is_other_code = bool(found["call"]) and not (found["namespace"] or found["name"] in (self.tools or ()))
        return not (is_other_code or (found["call"] and not self.markdown.blank))

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
        ticks = self._ticks_here()
        if ticks is None:
            return None
        behind = tape.i + len(ticks)
        if text.startswith(self.call_info, behind) and tape.pos >= self._mention_until:
            return self._call_in_thinking(ticks)
        if not self.final and self.call_info.startswith(text[behind : behind + len(self.call_info)]):
            return None
        markdown = self.markdown
        assert isinstance(markdown, NestedMarkdown)
        if markdown.blank and markdown.depth == 1 and len(ticks) >= self._ticks:
            pattern = _rest_of_closer_or_cut if self.final else _rest_of_closer
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
        marker = ticks + self.call_info
        start = self.call_start.match(tape.text, tape.i + len(marker), partial=not self.final)
        if start is None:
            return self._mention(marker)
        if start.partial:
            return None
        if tape.pos != self._used and self.unclosed_fences < _UNCLOSED_FENCES:
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
        ticks = self._ticks_here()
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
        other = self.another_fence.match(text, end, partial=not self.final)
        if other is not None and other.partial:
            return None
        if other is not None:
            self.note("missing-call-end")
        else:
            tape.i = end
        return True

    def _is_special_token(self) -> bool | None:
        rest = self.tape.text[self.tape.i :]
        if rest.startswith(self.special_tokens):
            self.note("missing-call-end")
            return True
        is_begun = any(token.startswith(rest) for token in self.special_tokens)
        return None if is_begun and not self.final else False

    def _ticks_here(self) -> str | None:
        """The run of backticks at the cursor; None while it may go on."""
        run = _run_of_ticks.match(self.tape.text, self.tape.i)
        assert run is not None
        may_go_on = run.end() == len(self.tape.text) and len(run[0]) < _LONGEST_RUN and not self.final
        return None if may_go_on else run[0]
