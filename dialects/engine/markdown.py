"""Where in Markdown a text stands, as far as it matters to tags that are text like any other.

`Markdown` follows a text piece by piece and knows whether only white space precedes on the line, whether a fence is
open, and which backtick runs of the line nobody has closed yet. `FenceClose` and `SpanClose` read ahead to see whether
the code around a tag is closed: then the tag is quoted there, not used.
"""

import re

from dialects.engine.tape import Tape

__all__ = ["LONGEST_SPAN", "FenceClose", "Markdown", "NestedMarkdown", "SpanClose"]

_TOKEN = re.compile(r"\n|`+|~+")
_MARKS = r"(?:[ \t]|>|[-*+][ \t]|\d{1,9}[.)][ \t])*"
_ITEM = re.compile(_MARKS)
"""What stands before the text of a list's item or of a quotation."""
_MAY_BE_ITEM = re.compile(rf"{_MARKS}(?:[-*+]|\d{{1,9}}[.)]?)?")
_QUOTATION = re.compile(r"[> \t]*")
_LONGEST_LEAD = 64
_SPAN_TOKEN = re.compile(r"\n|`+")
LONGEST_SPAN = 4000
"""How far ahead, in characters, the end of a code span is looked for."""


class Markdown:
    """The state behind a text. A run of backticks or tildes at its end may still grow."""

    __slots__ = (
        "_lead",
        "_quoted",
        "_run",
        "_run_length",
        "_spans",
        "blank",
        "closing",
        "fence",
        "opening",
        "unclosed",
    )

    def __init__(self) -> None:
        self.blank = True
        """Whether only white space stands before on the line."""
        self.fence: tuple[str, int] | None = None
        """The run that opened the fence in which the text stands: its character and its length."""
        self.unclosed = False
        """Whether it is known that this fence is never closed."""
        self.opening = False
        self.closing = False
        self._spans: dict[int, None] = {}
        self._lead: str | None = ""
        """The line so far, while a fence may begin or end behind it: white space, which is left out, or the marks of a
        list's item or of a quotation."""
        self._quoted = False
        """Whether the open fence began in a quotation, so that every line of it does."""
        self._run = ""
        self._run_length = 0

    def copy(self) -> "Markdown":
        """The same state, to read ahead with."""
        other = type(self)()
        other.blank, other.fence = self.blank, self.fence
        other._run, other._run_length = self._run, self._run_length
        other._lead, other._quoted = self._lead, self._quoted
        other.opening, other.closing, other._spans = self.opening, self.closing, self._spans.copy()
        return other

    @property
    def settled(self) -> bool:
        """Whether text without a line's end or a backtick changes nothing."""
        return not (self._run or self.closing or self._lead is not None)

    @property
    def spans(self) -> frozenset[int]:
        """The lengths of the line's backtick runs that are not closed, outside a fence."""
        self._end_run()
        return frozenset(() if self.fence else self._spans)

    def in_fence(self) -> bool:
        """Whether a fence is open."""
        self._end_run()
        return self.fence is not None

    def touch_markup(self) -> None:
        """Markup stands here: what follows it begins like a line."""
        self._end_run()
        self.blank, self._lead = True, ""

    def update(self, text: str) -> bool:
        """Follow the next piece of the text. Whether the state behind it is settled."""
        if self._run or self.closing or "`" in text or "~" in text:
            if self.closing or self._lead is not None or "\n" in text:
                self.read(text)
            else:
                self._read_spans(text)
            return self.settled
        if "\n" in text:
            if self.opening or self._spans:
                self._end_line()
            self.blank, self._lead = True, ""
            text = text.rpartition("\n")[2]
        elif self._lead is None:
            return True
        self._other(text)
        return self._lead is None

    def _read_spans(self, text: str) -> None:
        """The same in the middle of a line, where only backticks matter."""
        length = self._run_length if self._run == "`" else 0
        for part in text.split("`"):
            if part and length:
                self._mark("`", length)
                length = 0
            length += 1
        self._run_length = length - 1
        self._run = "`" if self._run_length else ""

    def read(self, text: str, *, until_closed: bool = False) -> int:
        """The same, run by run; with `until_closed` only to the end of the fence. How much has been read."""
        start = 0
        if self._run:
            start = len(text) - len(text.lstrip(self._run))
            self._run_length += start
            if start == len(text):
                return start
            self._end_run()
            if until_closed and self.fence is None:
                return start
        while (token := _TOKEN.search(text, start)) is not None:
            begin, end = token.span()
            self._other(text[start:begin])
            start = end
            char = text[begin]
            if char == "\n":
                self._end_line()
            elif end == len(text):
                self._run, self._run_length = char, end - begin
            else:
                self._mark(char, end - begin)
            if until_closed and self.fence is None:
                return end
        self._other(text[start:])
        return len(text)

    def end(self) -> None:
        """The text is over."""
        self._end_run()
        self._end_line()

    def _end_run(self) -> None:
        if self._run:
            run, self._run = self._run, ""
            self._mark(run, self._run_length)

    def _end_line(self) -> None:
        if self.closing:
            self.fence = None
            self.unclosed = False
        self.blank, self._lead = True, ""
        self.opening = self.closing = False
        if self._spans:
            self._spans.clear()

    def _other(self, text: str) -> None:
        """What is neither a backtick nor a tilde, which matters where a fence may begin or end."""
        if self._lead is None and not self.closing:
            return
        if text and not text.isspace():
            self.blank = self.closing = False
        if self._lead is not None and not self.blank:
            lead = self._lead + text if self._lead else text.lstrip()
            may_be_item = lead[0] in ">-*+0123456789" and len(lead) <= _LONGEST_LEAD and _MAY_BE_ITEM.fullmatch(lead)
            self._lead = lead if may_be_item else None

    def _mark(self, char: str, length: int) -> None:
        """A run of backticks or tildes."""
        lead, self._lead = self._lead, None
        blank, self.blank = self.blank, False
        if self.opening and char == "`" and self.fence and self.fence[0] == "`":
            self._spans[self.fence[1]] = None
            self.fence = None
        if self.fence is not None:
            begins = blank or bool(self._quoted and lead and _QUOTATION.fullmatch(lead))
            self.closing = begins and char == self.fence[0] and length >= self.fence[1]
        elif length >= 3 and (blank or (lead and _ITEM.fullmatch(lead))):
            self.fence = (char, length)
            self._quoted = ">" in (lead or "")
            self.opening = True
            self._spans.clear()
        elif char == "`":
            self._toggle(length)

    def _toggle(self, length: int) -> None:
        """A run closes the span that one of the same length began, and whatever began in between."""
        if length not in self._spans:
            self._spans[length] = None
            return
        while self._spans.popitem()[0] != length:
            pass


class NestedMarkdown(Markdown):
    """Markdown as models nest it: a fence with an info string inside another one is closed before that is."""

    __slots__ = ("_length", "_outer")

    def __init__(self, opened: tuple[str, int] | None = None) -> None:
        super().__init__()
        self.fence = opened
        self._outer: list[tuple[str, int]] = []
        self._length = 0

    def copy(self) -> "NestedMarkdown":
        """The same fence, as it goes on with a line of its own; whether it stands in another does not matter."""
        other = super().copy()
        assert isinstance(other, NestedMarkdown)
        other.blank, other._lead = True, ""
        return other

    @property
    def depth(self) -> int:
        """How many fences are open."""
        self._end_run()
        return len(self._outer) + (self.fence is not None)

    def _mark(self, char: str, length: int) -> None:
        self._length = length
        super()._mark(char, length)

    def _other(self, text: str) -> None:
        if self.closing and self.fence is not None and text and not text.isspace():
            self._outer.append(self.fence)
            self.fence = (self.fence[0], self._length)
        super()._other(text)

    def _end_line(self) -> None:
        super()._end_line()
        if self.fence is None and self._outer:
            self.fence = self._outer.pop()


class FenceClose:
    """Reads ahead to the end of the open fence."""

    def __init__(self, markdown: Markdown) -> None:
        self._markdown = markdown.copy()

    def read(self, tape: Tape, *, final: bool) -> bool | None:
        """True: the fence is closed before the cursor. False: it never is. None: more input."""
        read = self._markdown.read(tape.text[tape.i :], until_closed=True)
        tape.i += read
        if final:
            self._markdown.end()
        if self._markdown.fence is None:
            return True
        return False if final else None


class SpanClose:
    """Reads ahead on the line for a run of backticks that closes one of its open spans."""

    def __init__(self, lengths: frozenset[int]) -> None:
        self.lengths = lengths
        self._read = 0

    def read(self, tape: Tape, *, final: bool) -> bool | None:
        """True: a span is closed before the cursor. False: the line ends without. None: more input."""
        for match in _SPAN_TOKEN.finditer(tape.text, tape.i):
            if match.end() == len(tape.text) and not final and match.group() != "\n":
                self._move(tape, match.start())
                return None if self._read < LONGEST_SPAN else False
            self._move(tape, match.end())
            if len(match.group()) in self.lengths and match.group() != "\n":
                return self._read <= LONGEST_SPAN
            if match.group() == "\n" or self._read > LONGEST_SPAN:
                return False
        self._move(tape, len(tape.text))
        return False if final or self._read > LONGEST_SPAN else None

    def _move(self, tape: Tape, index: int) -> None:
        self._read += index - tape.i
        tape.i = index
