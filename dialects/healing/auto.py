"""Which dialect leaked into a text: decided by the first marker that only one can have begun.

Nothing here names a dialect. What decides is derived from the scanners of the factory's table:

- a special token decides if one dialect alone has it; one that several have is swallowed and decides nothing;
- a tag that is plain text and opens a call (`call_begins`) decides together with what follows it, if that is a call's
  first characters (`start_behind`) in one dialect alone.

Dialects whose scanners read alike count as one: the first of the table. Until the decision `AutoScanner` lifts
reasoning out of the text, as the thinking healer does; then it hands over, from that marker on, and is done.
"""

from collections.abc import Callable
from functools import cache

import msgspec

from dialects.engine.dialect import Dialect
from dialects.engine.markdown import FenceClose, SpanClose
from dialects.engine.markers import MarkerSet
from dialects.engine.plain_tags import THINK_BEGIN, PlainTagScanner
from dialects.engine.scanner import Scanner, State
from dialects.events import Event
from dialects.factory import all_dialects, get_dialect
from dialects.healing.thinking import ThinkingScanner

__all__ = ["AutoScanner", "Handover", "Openers", "openers", "thinking_opener"]


class Openers(msgspec.Struct, frozen=True):
    """What may decide, out of one table of dialects."""

    tokens: dict[str, str | None]
    """Special tokens, each with the only dialect that has it, or None."""
    calls: dict[str, tuple[str, ...]]
    """The plain-text tags that open calls, each with the dialects that have it."""
    quotable: frozenset[str]
    """Those of them that Markdown code can quote."""
    markers: MarkerSet
    """All of them, and those of the thinking healer."""
    thinking_ends: dict[str, MarkerSet]
    """What is looked for in thinking, by what opened it."""
    line_ends: MarkerSet
    """What is looked for in a line of a thinking fence."""


class Handover(msgspec.Struct, frozen=True):
    """The decision: a scanner of `name`, told that the prompt ended with `generation_prompt`, reads `shown + rest`; as
    many characters as `shown` has, which stand for text that is out already, are to be left out of its text."""

    name: str
    generation_prompt: str
    shown: str
    rest: str


class AutoScanner(ThinkingScanner):
    """Reads text and reasoning until `handover` says which dialect's scanner goes on.

    `scanner_of` makes or finds a scanner of the dialect of that name, for the stream's own options.
    """

    def __init__(
        self,
        scanner_of: Callable[[str], Scanner],
        *,
        parse_thinking: bool = True,
        generation_prompt: str = "",
        max_held_chars: int,
    ) -> None:
        self._scanner_of = scanner_of
        self.handover: Handover | None = None
        self._openers = openers(all_dialects())
        markers = self._openers.markers
        self.text_markers = markers if parse_thinking else markers.without(ThinkingScanner.text_markers.literals)
        self.thinking_ends = self._openers.thinking_ends
        self.line_ends = self._openers.line_ends
        super().__init__(generation_prompt=generation_prompt, max_held_chars=max_held_chars)

    def _reset(self) -> None:
        self._is_first = True
        """Whether nothing has come out yet (`_said` knows it of text), and no markup was read."""
        super()._reset()

    def say(self, text: str) -> None:
        """Text or thinking."""
        self._is_first = False
        super().say(text)

    def _plain_text(self, chunk: str) -> list[Event] | None:
        events = super()._plain_text(chunk)
        self._is_first = self._is_first and not (events or self._text_newlines)
        return events

    def _read_generation_prompt(self) -> None:
        super()._read_generation_prompt()
        self._is_first = True
        self.handover = None

    # States.

    def outside(self) -> State | None:
        """Text, up to what opens thinking, or decides."""
        marker = self.read_text(self.text_markers)
        if marker is None:
            return None
        known = self._openers
        if marker not in known.tokens and marker not in known.calls:
            return super().outside()
        if marker in known.quotable:
            if self.tape.pos < self._mention_until:
                return self._mention(marker)
            if self.tape.pos != self._used and self.markdown.in_fence() and not self.markdown.unclosed:
                return self._look_ahead(FenceClose(self.markdown))
            if spans := self._open_spans():
                return self._look_ahead(SpanClose(spans))
        return self._call(marker) if marker in known.calls else self._token(marker)

    def thinking(self) -> State | None:
        """Thinking, up to what closes it, or decides."""
        marker = self.read_text(self.thinking_ends[self.idiom.opener])
        if marker in self._openers.calls:
            return self._call(marker)
        if marker in self._openers.tokens and marker not in self.idiom.closers:
            return self._token(marker)
        return super().thinking()

    def fenced_line(self) -> State | None:
        """The rest of a line in a thinking fence, in which a special token decides."""
        marker = self.read_text(self.line_ends)
        if marker in self._openers.tokens:
            return self._token(marker)
        return super().fenced_line()

    # Steps.

    def _token(self, token: str) -> State | None:
        name = self._openers.tokens[token]
        if name is not None:
            return self._choose(name)
        self._is_first = False
        if self.thinking_open:
            self.tape.i += len(token)
        else:
            self.pass_markup(token)
        return self.home()

    def _call(self, tag: str) -> State | None:
        """A tag that opens a call in the dialect that what follows says, or is prose."""
        tape = self.tape
        if tape.pos < self._mention_until:
            return self._mention(tag)
        begun = None
        known = self._openers.calls
        begins = [(begin, name) for begin in known if tag.startswith(begin) for name in known[begin]]
        for begin, name in begins:
            scanner = self._scanner_of(name)
            assert isinstance(scanner, PlainTagScanner)
            start = scanner.start_behind(begin).match(tape.text, tape.i + len(begin), partial=True)
            if start is None:
                continue
            key = (start.partial, 0 if start.partial else start.end())
            if begun is None or key < begun[0]:
                begun = (key, scanner, name)
        if begun is None:
            return self._mention(tag)
        (is_open, _), scanner, name = begun
        if is_open and not self.final:
            return None
        if is_open and not (self.truncated or self.markdown.blank):
            return self._mention(tag)
        if self.thinking_open and self.idiom.opener == THINK_BEGIN and not self._never_ends:
            return self._mention(tag) if is_open else self._look_ahead(scanner.think_end())
        return self._choose(name)

    def _choose(self, name: str) -> State | None:
        """The marker at the cursor decides. The newlines before it are for the chosen scanner to judge."""
        tape = self.tape
        prompt, shown, newlines = "", "", 0
        if self._is_first and not self._said:
            prompt, newlines = self.generation_prompt, self._text_newlines
        elif self.thinking_open:
            prompt = thinking_opener(get_dialect(name))
        elif self._gap is None:
            newlines = self._text_newlines
            if self._said:
                shown = "x\n " if self.markdown.blank and not newlines else "x"
        self.handover = Handover(name, prompt, shown, "\n" * newlines + tape.text[tape.i :])
        self._text_newlines = 0
        self.end_thinking()
        tape.i = len(tape.text)
        self.stopped = True
        return None


def thinking_opener(dialect: Dialect) -> str:
    """What opens thinking in a dialect."""
    return dialect.thinking_text("\0").partition("\0")[0]


@cache
def openers(dialects: tuple[Dialect, ...]) -> Openers:
    """What decides between these dialects."""
    owners: dict[str, list[Dialect]] = {}
    calls: dict[str, list[Dialect]] = {}
    for dialect in dialects:
        if dialect.scanner is None:
            continue
        for token in _special_tokens(dialect):
            owners.setdefault(token, []).append(dialect)
        if issubclass(dialect.scanner, PlainTagScanner):
            for tag in dialect.scanner.call_begins:
                calls.setdefault(tag, []).append(dialect)
    tokens = {token: _only(found) for token, found in owners.items() if token not in calls}
    deciding = tuple(token for token, name in tokens.items() if name is not None)
    own = {marker for marker in ThinkingScanner.text_markers.literals if not marker.startswith(deciding)}
    return Openers(
        tokens=tokens,
        calls={tag: tuple(dialect.name for dialect in found) for tag, found in calls.items()},
        quotable=frozenset([*calls, *(token for token in tokens if all(map(_is_plain, owners[token])))]),
        markers=MarkerSet({*own, *tokens, *calls}),
        thinking_ends={
            opener: MarkerSet({*ends.literals, *tokens, *calls})
            for opener, ends in ThinkingScanner.thinking_ends.items()
        },
        line_ends=MarkerSet({"\n", *(token for token in tokens if not all(map(_is_plain, owners[token])))}),
    )


def _is_plain(dialect: Dialect) -> bool:
    return dialect.scanner is not None and issubclass(dialect.scanner, PlainTagScanner)


def _special_tokens(dialect: Dialect) -> tuple[str, ...]:
    scanner = dialect.scanner
    if scanner is not None and issubclass(scanner, PlainTagScanner):
        return tuple(dict.fromkeys((*scanner.special_tokens, *scanner.turn_openers)))
    return tuple(token for token in dialect.control_tokens if scanner is None or token not in scanner.thinking_tags)


def _only(dialects: list[Dialect]) -> str | None:
    """The name of the only dialect, or of the first of several that read alike."""
    return dialects[0].name if len(set(map(_reading, dialects))) == 1 else None


def _reading(dialect: Dialect) -> tuple[object, ...]:
    """Equal for dialects whose scanners read alike."""
    scanner = dialect.scanner
    if scanner is None or not issubclass(scanner, PlainTagScanner):
        return (dialect.name,)
    return (scanner.call_begins, getattr(scanner, "call_start", None), scanner.text_markers.literals)
