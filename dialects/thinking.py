"""The thinking healer: it lifts reasoning out of text in which it leaked, whatever the family that wrote it.

`IDIOMS` lists the ways to write it. Three kinds differ in where they count:

    tags                <think> ... </think>        at the start of the text or of a line, or right behind markup
    fences              ```thinking ... ```         at the start of a line; a fence inside does not end it
    special tokens      <|channel>thought ...       anywhere

and none of them inside a Markdown fence, or inside a code span that is closed on its line. A closer without its opener
is swallowed, unless the opener stands on the same line as text.
"""

from collections.abc import Mapping

import msgspec
import regex

from dialects.engine.markdown import SpanClose
from dialects.engine.markers import MarkerSet
from dialects.engine.plain_tags import THINK_BEGIN, THINK_END, PlainTagScanner
from dialects.engine.scanner import State
from dialects.events import Event

__all__ = ["IDIOMS", "Idiom", "ThinkingScanner"]

_CHANNEL_END = "<|end|>"
_ANSWER = "<|channel|>final<|message|>"
_AUTHOR = "<|start|>assistant"
_ANSWER_MARKERS = (_AUTHOR + _ANSWER, _ANSWER, _CHANNEL_END, "<|return|>")
_ANALYSIS = "<|channel|>analysis<|message|>"


class Idiom(msgspec.Struct, frozen=True):
    """A way to write reasoning: what opens it and what closes it. `special`: nobody writes it by chance."""

    opener: str
    closers: tuple[str, ...]
    special: bool = False


IDIOMS = (
    Idiom(THINK_BEGIN, (THINK_END,)),
    Idiom("<thinking>", ("</thinking>",)),
    Idiom("<scratchpad>", ("</scratchpad>",)),
    Idiom("<mm:think>", ("</mm:think>",)),
    Idiom("<|channel>thought", ("<channel|>",), special=True),
    Idiom(_ANALYSIS, _ANSWER_MARKERS, special=True),
    Idiom(_AUTHOR + _ANALYSIS, _ANSWER_MARKERS, special=True),
)

_BY_OPENER = {idiom.opener: idiom for idiom in IDIOMS}
_OPENER_OF = {closer: idiom.opener for idiom in IDIOMS if not idiom.special for closer in idiom.closers}
_FENCES = tuple(char * length + "thinking" for char in "`~" for length in (3, 4, 5, 6))
_FENCE_REST = regex.compile(r"[ \t\r]{0,16}+\n")
_FENCE_REST_AT_END = regex.compile(r"\s{0,16}+\Z|[ \t\r]{0,16}+\n")
_LINE = r"[ \t]{0,16}+(?P<run>`{3,64}+|~{3,64}+)[ \t\r]{0,16}+(?P<info>[^`\n]{0,64}+)"
_FENCE_LINE = regex.compile(rf"{_LINE}\n")
_FENCE_LINE_AT_END = regex.compile(rf"{_LINE}(?:\n|\Z)")
_ENDS = {it.opener: MarkerSet(it.closers if it.special else (it.opener, *it.closers)) for it in IDIOMS}


class ThinkingScanner(PlainTagScanner):
    """Reads text with reasoning in it in four states: `outside`, `thinking`, and for a thinking fence `fenced` (at the
    start of a line) and `fenced_line` (the rest of it)."""

    text_markers = MarkerSet(
        [*_BY_OPENER, *_FENCES, *(closer for idiom in IDIOMS for closer in idiom.closers)],
    )
    line_ends: MarkerSet = MarkerSet(["\n"])
    """What is looked for in a line of a thinking fence."""

    thinking_ends: Mapping[str, MarkerSet] = _ENDS
    """What is looked for in thinking, by what opened it: what closes it, and a tag that opened it once more."""

    def _reset(self) -> None:
        self.idiom = IDIOMS[0]
        """That of the thinking that is open."""
        self._fences: list[tuple[str, int]] = []
        """The thinking fence, and those open in it: each one's character and length."""
        self._mentioned: set[str] = set()
        """The openers that stand on the line as text."""
        self._channels = False
        """Whether reasoning on a channel has come, so that an answer's header may follow."""
        super()._reset()

    def settle(self) -> list[Event]:
        """What is held of the text, which something else follows: a call, or reasoning that was read elsewhere."""
        prompt, self.generation_prompt = self.generation_prompt, ""
        events = self.flush()
        self.generation_prompt = prompt
        return events

    def quote(self, text: str) -> list[Event]:
        """Text that is text, whatever it holds: a call of a tool that is not there."""
        self._mention_until = self.tape.end + len(text)
        return self.feed(text)

    def think(self, text: str) -> list[Event]:
        """Text that is thinking, whatever it holds: a draft of a call. Nothing of it is read as a tag."""
        if self.held_chars:
            return self.feed(text)
        self.say(text)
        return self._taken_events()

    def say(self, text: str) -> None:
        """Text or thinking."""
        if self._mentioned and "\n" in text:
            self._mentioned.clear()
        super().say(text)

    def _read_generation_prompt(self) -> None:
        """Only whether the prompt leaves thinking open matters; who speaks before it is another dialect's markup."""
        prompt = self.generation_prompt
        opener = max(prompt.rfind(idiom.opener) for idiom in IDIOMS)
        self.generation_prompt = prompt[opener:] if opener >= 0 else ""
        super()._read_generation_prompt()
        self.generation_prompt = prompt

    def _plain_text(self, chunk: str) -> list[Event] | None:
        return None if self._mentioned else super()._plain_text(chunk)

    def enter_call(self) -> State:
        """There are no calls here: no marker of one is looked for."""
        return self.outside

    # States.

    def outside(self) -> State | None:
        """Text, up to what opens thinking."""
        marker = self.read_text(self.text_markers)
        if marker is None:
            return None
        if self.tape.pos < self._mention_until or self.markdown.in_fence():
            return self._mention(marker)
        idiom = _BY_OPENER.get(marker)
        is_plain = marker in _FENCES or (idiom is not None and not idiom.special)
        if is_plain and not (self.markdown.blank or self._after_markup):
            self._mentioned.add(marker)
            return self._mention(marker)
        if spans := self._open_spans():
            return self._look_ahead(SpanClose(spans))
        if marker in _FENCES:
            return self._fence(marker)
        if idiom is not None:
            return self._open(idiom, marker)
        if _OPENER_OF.get(marker) in self._mentioned or (marker in _ANSWER_MARKERS and not self._channels):
            return self._mention(marker)
        self.pass_markup(marker)
        return self.outside

    def thinking(self) -> State | None:
        """Thinking, up to what closes it. Behind a prompt that opened it models do so once more."""
        marker = self.read_text(self.thinking_ends[self.idiom.opener])
        if marker is None:
            return None
        if marker == self.idiom.opener:
            if not self._after_markup:
                return self._mention(marker)
            self.pass_markup(marker)
            return self.thinking
        self.end_thinking()
        self.pass_markup(marker)
        return self.outside

    def fenced(self) -> State | None:
        """The start of a line in a thinking fence: it may be the fence's end, or the beginning or end of one inside."""
        tape = self.tape
        pattern = _FENCE_LINE_AT_END if self.final else _FENCE_LINE
        line = pattern.match(tape.text, tape.i, partial=not self.final)
        if line is None:
            return self.fenced_line
        if line.partial:
            return None
        fence = (line["run"][0], len(line["run"]))
        char, length = self._fences[-1]
        if line["info"]:
            self._fences.append(fence)
        elif fence[0] == char and fence[1] >= length:
            self._fences.pop()
        tape.i = line.end()
        if not self._fences:
            self.end_thinking()
            return self.outside
        self.say(line.group())
        return self.fenced

    def fenced_line(self) -> State | None:
        """The rest of a line in a thinking fence."""
        marker = self.read_text(self.line_ends)
        if marker is None:
            return None
        self.tape.i += 1
        self.say(marker)
        return self.fenced

    def home(self) -> State:
        """The state that goes on."""
        if not self.thinking_open:
            return self.outside
        return self.fenced_line if self._fences else self.thinking

    # Steps.

    def _open_spans(self) -> frozenset[int]:
        """The code spans that are open here and may be closed yet."""
        if self.tape.pos == self._used:
            return frozenset()
        spans = self.markdown.spans
        return spans - self._unclosed_spans if self.tape.pos < self._unclosed_until else spans

    def _open(self, idiom: Idiom, markup: str) -> State:
        self.idiom = idiom
        self._fences = []
        self._channels = self._channels or _CHANNEL_END in idiom.closers
        self.pass_markup(markup)
        self.begin_thinking()
        return self.thinking

    def _fence(self, marker: str) -> State | None:
        tape = self.tape
        pattern = _FENCE_REST_AT_END if self.final else _FENCE_REST
        rest = pattern.match(tape.text, tape.i + len(marker), partial=not self.final)
        if rest is None:
            return self._mention(marker)
        if rest.partial:
            return None
        self.pass_markup(tape.text[tape.i : rest.end()])
        self.begin_thinking()
        self._fences = [(marker[0], marker.count(marker[0]))]
        return self.fenced
