"""Text and thinking in dialects whose tags are plain text, so that a person may write them as well.

Most of this file answers one question: is a tag used, or only mentioned? It is mentioned inside a Markdown fence or
code span that is closed, where a call's opener is not followed by a call's first characters, where `<think>` stands in
the middle of a line, in thinking that is ended later. Where only what follows can tell, the scanner reads ahead in
silence (a `ReadAhead` says when the answer is known), and then goes back to the tag knowing it.
"""

import re
from abc import abstractmethod
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import ClassVar, Protocol

import regex

from dialects.engine.arguments import ArgumentReader, Arguments
from dialects.engine.markdown import LONGEST_SPAN, FenceClose, Markdown, SpanClose
from dialects.engine.markers import MarkerSet
from dialects.engine.reader import DONE, GOING
from dialects.engine.scanner import Scanner, State
from dialects.engine.tape import Tape
from dialects.events import Event, Text

__all__ = [
    "BLOCK_CHARS",
    "CALL_BEGIN",
    "CALL_END",
    "RESULT_BEGIN",
    "RESULT_END",
    "THINK_BEGIN",
    "THINK_END",
    "PlainTagScanner",
    "ReadAhead",
    "ThinkEnd",
]

CALL_BEGIN, CALL_END = "<tool_call>", "</tool_call>"
RESULT_BEGIN, RESULT_END = "<tool_response>", "</tool_response>"
THINK_BEGIN, THINK_END = "<think>", "</think>"

BLOCK_CHARS = 400
"""How far behind an opener at a line's start that no call follows its closer may stand."""


class ReadAhead(Protocol):
    """Looks for what makes a tag a mention."""

    def read(self, tape: Tape, *, final: bool) -> bool | None:
        """True: it was a mention, as far as the cursor. False: it was used. None: more input. Moves the cursor."""


class ThinkEnd:
    """Reads ahead to the tag that ends the thinking, behind a call that may be a draft in it. What JSON strings of such
    a call hold does not count, if its JSON closes well-formed."""

    def __init__(self, call_begin: str, think_ends: tuple[str, ...]) -> None:
        self._markers = _marker_set(call_begin, *think_ends)
        self._think_end = _any_of(think_ends)
        self._think_ends = think_ends
        self._draft: ArgumentReader | None = None

    def read(self, tape: Tape, *, final: bool) -> bool | None:
        """True: the thinking ends at the cursor. False: it never does. None: more input."""
        while True:
            if self._draft is not None:
                status = self._draft.read(None, final=final)
                if status is GOING and not final:
                    return None
                draft, self._draft = self._draft, None
                end = None if status is DONE else self._think_end.search(tape.slice(draft.start, tape.pos))
                if end is not None:
                    tape.seek(draft.start + end.start())
                    return True
            index, marker = self._markers.find(tape.text, tape.i, final=final)
            tape.i = index
            if marker is None:
                return False if final else None
            if marker in self._think_ends:
                return True
            tape.i += len(marker)
            self._draft = ArgumentReader(tape)


class PlainTagScanner(Scanner):
    """The states `outside` and `thinking`; a dialect adds those of its calls, from `enter_call` on."""

    call_begin: ClassVar[str] = CALL_BEGIN
    """The tag that opens a call."""

    call_begins: ClassVar[tuple[str, ...]] = (CALL_BEGIN,)
    """All such tags, or their beginnings, where there are several."""

    call_start: "regex.Pattern[str]"
    """What follows that tag where it opens a call: its first characters. Bounded in length."""

    call_end: ClassVar[str] = CALL_END

    closers: ClassVar[tuple[str, ...]]
    """The plain-text closers within a call, innermost first, the call's own last."""

    special_tokens: ClassVar[tuple[str, ...]]
    """Tokens that nobody writes as text: they are swallowed wherever they stand."""

    result_begins: ClassVar[tuple[str, ...]] = (RESULT_BEGIN,)
    """The tags that open the results of calls."""

    text_headers: ClassVar[tuple[str, ...]] = ()
    """Those of the `turn_openers` that are plain text, too."""

    turn_header_pattern: ClassVar["regex.Pattern[str]"]
    """Such a header, with the group `role`. Bounded in length."""

    cut_turn_header: ClassVar["re.Pattern[str]"]
    """A header that the end of the stream cut off."""

    roles: ClassVar[Mapping[str, str | None]]
    """Why reading stops at a header of that role; None: the turn goes on. Others are a `fabricated-turn`."""

    think_begins: ClassVar[tuple[str, ...]] = (THINK_BEGIN,)
    think_ends: ClassVar[tuple[str, ...]] = (THINK_END,)
    thinking_tags: ClassVar[tuple[str, ...]] = (THINK_BEGIN, THINK_END)

    @abstractmethod
    def enter_call(self) -> State:
        """The state behind a call's opener; a call is open."""

    def fresh_markdown(self) -> Markdown:
        """The state of Markdown where text or thinking begins."""
        return Markdown()

    def think_end(self, think_ends: tuple[str, ...]) -> ThinkEnd:
        """Finds the end of the thinking behind a call's opener in it."""
        return ThinkEnd(self.call_begin, think_ends)

    # What opens a call; a dialect whose openers are no literals has its own answers.

    def opens_call(self, marker: str) -> bool:
        """Whether the marker is such an opener, or its beginning."""
        return marker == self.call_begin

    def start_behind(self, marker: str) -> "regex.Pattern[str]":
        """What follows it where it opens a call."""
        return self.call_start

    def whole_opener(self, marker: str) -> str:
        """All of the opener whose beginning stands at the cursor."""
        return marker

    def end_of_block(self, marker: str) -> str:
        """What closes the block that it opens, if that is no call."""
        return self.call_end

    def _reset(self) -> None:
        self.markdown = self.fresh_markdown()
        self._said = False
        """Whether any text has come out."""
        self._text_newlines = 0
        """How many newlines at the end of the text are held: markup may follow."""
        self._gap: int | None = None
        """How many newlines stand behind markup so far; None where text came last."""
        self.called = False
        self._lookout: ReadAhead | None = None
        self._return_to: State = self.outside
        self._tag = 0
        self._mention_until = 0
        """Up to where tags are known to be mentions."""
        self._opened_by = self.call_begin
        """The marker that opened the call."""
        self._thinking_until = 0
        """Where the open thinking is known to end, behind a draft in it."""
        self._unclosed_spans: frozenset[int] = frozenset()
        self._unclosed_until = 0
        self._used = -1
        self._never_ends = False
        self.unclosed_fences = 0
        """How often a fence turned out never to be closed, for which the rest of the stream was read."""
        self._may_be_prose = False
        super()._reset()
        self._begins_nothing = frozenset((*self.text_markers.leads, "\n", "`")).isdisjoint

    def _read_generation_prompt(self) -> None:
        super()._read_generation_prompt()
        self.markdown = self.fresh_markdown()
        self._said, self._text_newlines, self._gap = False, 0, 0

    # Text. Newlines that touch markup belong to it, as far as they do not keep two pieces of text apart.

    def say(self, text: str) -> None:
        """Text or thinking. Other than in `Scanner.say`, newlines at both ends of any text belong to the markup there;
        where markup stands between two pieces of text, the longer one of its two runs of newlines is kept."""
        self.markdown.update(text)
        if self.thinking_open:
            text = text.lstrip("\n") if self._after_markup else text
            if text:
                self._after_markup = False
                self._think(text)
            return
        if self._gap is not None:
            rest = text.lstrip("\n")
            self._gap += len(text) - len(rest)
            if not rest:
                return
            self._text_newlines = max(self._text_newlines, self._gap) if self._said else 0
            text, self._gap, self._after_markup = rest, None, False
        rest = text.rstrip("\n")
        if rest:
            self._said = True
            self.events.append(Text("\n" * self._text_newlines + rest))
            self._text_newlines = 0
        self._text_newlines += len(text) - len(rest)

    def touch_markup(self) -> None:
        """Markup stands here."""
        super().touch_markup()
        self._gap = self._gap or 0
        self.markdown.touch_markup()

    def end_text(self) -> None:
        """The stream is over: newlines at the very end are text."""
        if self._text_newlines and self._gap is None:
            self.events.append(Text("\n" * self._text_newlines))

    def _find_short_ways(self) -> None:
        super()._find_short_ways()
        if self._in_plain_text:
            self._in_plain_text = self.markdown.settled and not self._text_newlines

    def _plain_text(self, chunk: str) -> list[Event] | None:
        tape = self.tape
        parts = self.text_markers.split(tape.text + chunk)
        if parts is None:
            return None
        text, tape.text = parts
        tape.base += len(text)
        if self._in_plain_text and "\n" not in text and "`" not in text:
            return [Text(text)] if text else []
        is_settled = self.markdown.update(text)
        newlines, words = self._text_newlines, text.rstrip("\n")
        if not words:
            self._text_newlines = newlines + len(text)
            self._in_plain_text = False
            return []
        self._said = True
        self._text_newlines = len(text) - len(words)
        self._in_plain_text = is_settled and not self._text_newlines
        return [Text("\n" * newlines + words if newlines else words)]

    # The two states.

    def outside(self) -> State | None:
        """Text for the reader."""
        marker = self.read_text(self.text_markers)
        if marker is None:
            return None
        if self.tape.pos < self._mention_until:
            return self._mention(marker)
        if self.tape.pos != self._used:
            if self.markdown.in_fence() and not self.markdown.unclosed:
                return self._look_ahead(FenceClose(self.markdown))
            spans = self.markdown.spans
            if self.tape.pos < self._unclosed_until:
                spans -= self._unclosed_spans
            if spans:
                return self._look_ahead(SpanClose(spans))
        return self.read_marker(marker)

    def thinking(self) -> State | None:
        """Thinking, up to its closer. A call in it is real only if no closer follows."""
        marker = self.read_text(self.text_markers)
        if marker is None:
            return None
        if marker in self.think_ends and self.tape.pos >= self._thinking_until:
            self.end_thinking()
            self.pass_markup(marker)
            return self.outside
        if marker in self.turn_openers:
            return self._turn_header(marker)
        if marker in self.special_tokens:
            return self._special_token(marker)
        if marker in self.think_begins and self._after_markup:
            self.pass_markup(marker)
            return self.thinking
        if self.opens_call(marker) and self.tape.pos >= self._mention_until:
            return self._opener_in_thinking(marker)
        return self._mention(marker)

    def begin_thinking(self) -> None:
        """A tag that opens thinking was read."""
        super().begin_thinking()
        self.markdown = self.fresh_markdown()

    def end_thinking(self) -> None:
        """Thinking ends here, if it is open."""
        if self.thinking_open:
            super().end_thinking()
            self.markdown = self.fresh_markdown()
            self._mention_until = self._thinking_until = 0

    def home(self) -> State:
        """The state that goes on where no call is open."""
        return self.thinking if self.thinking_open else self.outside

    def after_call(self) -> State:
        """The state behind a call."""
        return self.outside

    # Tags.

    def read_marker(self, marker: str) -> State | None:
        """What the marker at the cursor is; no code around quotes it."""
        if self.opens_call(marker):
            return self._opener(marker)
        if marker in self.turn_openers:
            return self._turn_header(marker)
        if marker in self.special_tokens:
            return self._special_token(marker)
        if marker in self.think_ends:
            self.pass_markup(marker)
            return self.outside
        if marker in self.think_begins:
            return self._think_tag(marker)
        if marker in self.result_begins:
            return self._result_tag(marker)
        return self._closer(marker)

    def _mention(self, marker: str) -> State:
        """The tag at the cursor is text."""
        self.tape.i += len(marker)
        self.say(marker)
        return self.home()

    def _special_token(self, marker: str) -> State | None:
        """A token that means nothing here is left out."""
        if self.thinking_open:
            self.tape.i += len(marker)
        else:
            self.pass_markup(marker)
        return self.home()

    def _turn_header(self, marker: str) -> State | None:
        tape = self.tape
        header = self.turn_header_pattern.match(tape.text, tape.i, partial=not self.final)
        if header is None:
            cut = self.cut_turn_header.match(tape.text, tape.i) if self.final else None
            self.pass_markup(cut.group() if cut else marker)
            return self.home()
        if header.partial:
            return None
        reason = self.roles.get(header["role"], "fabricated-turn")
        if reason is not None:
            self.stop(reason)
            return self.outside
        self.end_thinking()
        self.pass_markup(header.group())
        return self.outside

    def _think_tag(self, marker: str) -> State:
        if not self.markdown.blank and not self._after_markup:
            return self._mention(marker)
        self.pass_markup(marker)
        self.begin_thinking()
        return self.thinking

    def _result_tag(self, marker: str) -> State:
        if not (self.markdown.blank and self.called):
            return self._mention(marker)
        self.stop("fabricated-result")
        return self.outside

    def _closer(self, marker: str) -> State | None:
        """A closer without its opener: swallowed at a line's start, or as the first of a run up to the call's own."""
        if self.markdown.blank:
            self.pass_markup(marker)
            return self.outside
        run = _closer_run(self.closers[self.closers.index(marker) :]) if marker in self.closers else None
        found = run.match(self.tape.text, self.tape.i, partial=not self.final) if run else None
        if found is None:
            return self._mention(marker)
        if found.partial:
            return None
        self.pass_markup(found.group())
        return self.outside

    def _opener(self, marker: str) -> State | None:
        tape = self.tape
        start = self.start_behind(marker).match(tape.text, tape.i + len(marker), partial=True)
        if start is None:
            return self._no_call(marker)
        if not start.partial:
            return self._begin_call_here(marker)
        if not self.final:
            return None
        if not (self.truncated or self.markdown.blank):
            return self._mention(marker)
        self.begin_call()
        tape.i = len(tape.text)
        self.drop_call("unfinished")
        return self.after_call()

    def _begin_call_here(self, marker: str) -> State:
        self._may_be_prose = not self.markdown.blank and not self.thinking_open
        self._opened_by = marker
        self.begin_call()
        self.tape.i += len(marker)
        return self.enter_call()

    def _no_call(self, marker: str) -> State | None:
        """An opener that no call follows: at a line's start, with its closer near, a malformed block; where the next
        tag opens a call, a slip; else prose."""
        if not self.markdown.blank:
            return self._mention(marker)
        tape = self.tape
        behind = tape.i + len(marker)
        near = tape.text[behind : behind + BLOCK_CHARS]
        closer = self.end_of_block(marker)
        index, found = _marker_set(marker, closer).find(near, 0, final=self.final or len(near) == BLOCK_CHARS)
        if found is None and not self.final and len(near) < BLOCK_CHARS:
            return None
        if found == closer:
            self.begin_call()
            tape.i = behind + index + len(found)
            self.drop_call("malformed")
            return self.after_call()
        if found is not None:
            following = behind + index + len(found)
            start = self.start_behind(marker).match(tape.text, following, partial=not self.final)
            if start is not None:
                return None if start.partial else self._stray_opener(marker, following)
        return self._mention(marker)

    def _stray_opener(self, marker: str, following: int) -> State:
        """An opener before another one whose marker ends at `following`: a slip."""
        self.pass_markup(self.whole_opener(marker))
        return self.outside

    def _opener_in_thinking(self, marker: str) -> State | None:
        tape = self.tape
        start = self.start_behind(marker).match(tape.text, tape.i + len(marker), partial=not self.final)
        if start is None:
            return self._mention(marker)
        if start.partial:
            return None
        if tape.pos != self._used and self.markdown.in_fence() and not self.markdown.unclosed:
            return self._look_ahead(FenceClose(self.markdown))
        if self._never_ends:
            return self._begin_call_here(marker)
        return self._look_ahead(self.think_end(self.think_ends))

    def end_call(self, arguments: Arguments) -> None:
        """The open call is over. If it turned out to be none, in the middle of a line, its opener was prose."""
        if self._may_be_prose and self.open_call.name is None and not arguments.too_deep:
            self.take_back_opener()
            return
        super().end_call(arguments)
        self.called = True

    def take_back_opener(self) -> None:
        """The open call's opener is text."""
        self._mention_until = self.take_back_call() + len(self._opened_by)

    # Reading ahead.

    def _look_ahead(self, reader: ReadAhead) -> State:
        """Find out whether the tag at the cursor is a mention; then come back to it."""
        tape = self.tape
        self._lookout = reader
        self._return_to = self.home()
        self._tag = tape.pos
        tape.set_mark(tape.pos)
        return self._looking_ahead

    def _looking_ahead(self) -> State | None:
        reader, tape = self._lookout, self.tape
        assert reader is not None
        far = self._tag + self.max_held_chars + 1
        if tape.end > far:
            tape.hide(far)
        mention = reader.read(tape, final=self.final and not tape.is_hiding)
        too_far = tape.pos == far or (mention is None and tape.is_hiding)
        tape.unhide()
        if mention is None and not too_far:
            return None
        if too_far:
            self._mention_until = self._tag + self.max_held_chars
        elif mention:
            self._mention_until = tape.pos
            if isinstance(reader, ThinkEnd):
                self._thinking_until = tape.pos
        else:
            self._used = self._tag
            if isinstance(reader, FenceClose):
                self.markdown.unclosed = True
                self.unclosed_fences += 1
            elif isinstance(reader, SpanClose):
                self._unclosed_spans = reader.lengths
                self._unclosed_until = min(tape.pos, self._tag + LONGEST_SPAN)
            elif isinstance(reader, ThinkEnd):
                self._never_ends = True
        self._lookout = None
        tape.seek(self._tag)
        tape.clear_mark()
        return self._return_to


@lru_cache(maxsize=256)
def _marker_set(*literals: str) -> MarkerSet:
    return MarkerSet(literals)


@cache
def _any_of(literals: tuple[str, ...]) -> "re.Pattern[str]":
    return re.compile("|".join(map(re.escape, literals)))


@cache
def _closer_run(closers: tuple[str, ...]) -> "regex.Pattern[str] | None":
    """A run of closers from the first to the last of these, white space and the others between; None for one alone."""
    first, *others = map(re.escape, closers)
    if not others:
        return None
    *inner, last = others
    between = rf"(?:\s{{0,16}}(?:{'|'.join(inner)})){{0,4}}" if inner else ""
    return regex.compile(rf"{first}{between}\s{{0,16}}{last}")
