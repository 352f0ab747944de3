"""Which dialect a text is in: decided by the first marker that its calls are written with.

Nothing here names a dialect. What decides is derived from the scanners of the factory's table:

- a special token decides if calls are written with it;
- a tag that is plain text and opens a call (`call_begins`) decides together with what follows it, if that is a call's
  first characters (`start_behind`);
- any other special token, such as those of turns, decides nothing, since families that this package does not know have
  it as well. A scanner of a dialect that has it reads the turn's header that it may begin.

Where several dialects could have begun it, it decides for the first of them, and they are all named. Dialects whose
scanners read alike count as one. Until the decision a `Decider` lifts reasoning out of the text, as the thinking healer
does; then it hands over, from that marker on, and is done (`scanner_row.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain

import msgspec

from dialects.engine.dialect import Dialect
from dialects.engine.markdown import FenceClose, SpanClose
from dialects.engine.markers import NAMESPACE, MarkerSet, TagSet
from dialects.engine.plain_tags import BLOCK_CHARS, PlainTagScanner
from dialects.engine.scanner import Scanner, State
from dialects.events import Event, Stopped, Text, ThinkingDelta
from dialects.thinking import IDIOMS, ThinkingScanner

__all__ = ["Decider", "Handover", "Match", "Openers", "has_plain_tags", "openers", "thinking_opener"]

_CALL = {"name": "f", "arguments": {"key": "text"}}
_THINKING_FENCE = ("`", 3)
"""The character and length of the fence that a dialect's own thinking stands in."""

_LONGEST_OPENER = 128
"""How many characters the tag that opens a call has at most, up to the end of its name."""


class Match(msgspec.Struct, frozen=True):
    """An answer. `name` is None where nothing fits, or more than one thing; `candidates` are all that fit."""

    name: str | None
    candidates: tuple[str, ...]
    reason: str


class Openers(msgspec.Struct, frozen=True):
    """What may decide, out of one table of dialects."""

    tokens: dict[str, tuple[str, ...]]
    """Special tokens that decide, each with the dialects that could have begun it."""
    readers: dict[str, str]
    """Those that decide nothing, each with a dialect that has it."""
    special: frozenset[str]
    """Both."""
    plain: dict[str, tuple[str, ...]]
    """The dialects whose calls are opened by plain-text tags, each with the tokens that it writes."""
    calls: TagSet
    """Those tags."""
    fences: tuple[str, ...]
    """The Markdown fences among them."""
    quotable: frozenset[str]
    """The tokens that Markdown code can quote."""
    markers: MarkerSet
    """All of them, and those of the thinking healer."""
    thinking_ends: dict[str, MarkerSet]
    """What is looked for in thinking, by what opened it."""
    line_ends: MarkerSet
    """What is looked for in a line of a thinking fence."""
    thinking: dict[str, str]
    """What opens thinking, by the name of the dialect."""
    alike: dict[str, tuple[str, ...]]
    """The dialects whose scanners read as that of this name does, itself among them."""

    def opens_call(self, marker: str) -> bool:
        """Whether a marker is the beginning of a plain-text tag that opens calls."""
        return self.calls.find(marker, 0, final=True) == (0, marker)


class Begun(msgspec.Struct, frozen=True):
    """A call that may begin somewhere: in which dialect, whether more must come until that is certain, how long its
    beginning is, and how much of that is a token that the dialect itself writes."""

    name: str
    scanner: PlainTagScanner
    is_open: bool
    written: int = 0
    length: int = 0


class Header(msgspec.Struct, frozen=True):
    """The header of a turn: how long it is (0: it is none), whether thinking is open behind it, and if the turn is not
    the model's to write, why reading stops."""

    length: int
    thinks: bool
    stop: str = ""


class Handover(msgspec.Struct, frozen=True):
    """The decision: a scanner of `name`, told that the prompt ended with `generation_prompt`, reads `shown + rest`; as
    many characters as `shown` has, which stand for text that is out already, are to be left out of its text. `sign` is
    what decided, and could have begun in each of the `candidates`."""

    name: str
    candidates: tuple[str, ...]
    sign: str
    generation_prompt: str
    shown: str
    rest: str
    thinking: str = ""
    """What opened the thinking that is open, if that is no tag of the dialect's own."""
    far: int = 0
    """How many newlines `rest` begins with that do not stand next to what follows them in the stream."""


class Decider(ThinkingScanner):
    """Reads text and reasoning until `handover` says which dialect's scanner goes on.

    `create` makes a scanner of the dialect of that name, for the stream's own options and that generation prompt.
    """

    def __init__(
        self,
        dialects: tuple[Dialect, ...],
        create: Callable[[str, str], Scanner],
        *,
        parse_thinking: bool = True,
        generation_prompt: str = "",
        max_held_chars: int,
    ) -> None:
        self._create = create
        self._scanners: dict[tuple[str, str], Scanner] = {}
        self.handover: Handover | None = None
        self._openers = openers(dialects)
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
        decided = self.handover  # at the end of the stream, before everything was made as new
        super()._read_generation_prompt()
        self._is_first = True
        self.handover = decided

    # States.

    def outside(self) -> State | None:
        """Text, up to what opens thinking, or decides."""
        marker = self.read_text(self.text_markers)
        if marker is None:
            return None
        known = self._openers
        is_call = known.opens_call(marker)
        if not is_call and marker not in known.special:
            return super().outside()
        if is_call or marker in known.quotable:
            if self.tape.pos < self._mention_until:
                return self._mention(marker)
            if self.tape.pos != self._used and self.markdown.in_fence() and not self.markdown.unclosed:
                return self._look_ahead(FenceClose(self.markdown))
            if spans := self._open_spans():
                return self._look_ahead(SpanClose(spans))
        return self._call(marker) if is_call else self._token(marker)

    def thinking(self) -> State | None:
        """Thinking, up to what closes it, or decides."""
        marker = self.read_text(self.thinking_ends[self.idiom.opener])
        if marker is not None and self._openers.opens_call(marker):
            return self._call(marker)
        if marker in self._openers.special and marker not in self.idiom.closers:
            return self._token(marker)
        if marker in self.idiom.closers and self.tape.pos < self._thinking_until:
            return self._mention(marker)
        return super().thinking()

    def fenced(self) -> State | None:
        """The start of a line in a thinking fence, in which a fence of calls decides."""
        tape = self.tape
        if self._fences == [_THINKING_FENCE] and tape.text.startswith(self._openers.fences, tape.i):
            begun = next(self._find_begun(), None)
            if begun is not None and not begun.is_open:
                return self._choose(begun.name, [begun.name], tape.text[tape.i : tape.i + begun.length])
            if begun is not None and not self.final:
                return None
        return super().fenced()

    def fenced_line(self) -> State | None:
        """The rest of a line in a thinking fence, in which a special token decides."""
        marker = self.read_text(self.line_ends)
        if marker in self._openers.special:
            return self._token(marker)
        return super().fenced_line()

    # Steps.

    def _token(self, token: str) -> State | None:
        """A special token: it decides, or says something of the turn."""
        if token not in self._openers.tokens:
            return self._turn_token(token)
        names = self._openers.tokens[token]
        return self._choose(names[0], names, token)

    def _turn_token(self, token: str) -> State | None:
        """A token that decides nothing, with the header of a turn that it may begin."""
        name = self._openers.readers[token]
        header = self._read_header(token, name)
        if header is None:
            return None
        if header.stop:
            self.stop(header.stop)
        if not header.length:
            return self._mention(token)
        self._is_first = False
        opener, markup = self._openers.thinking[name], self.tape.text[self.tape.i : self.tape.i + header.length]
        idiom = next((idiom for idiom in IDIOMS if opener.startswith(idiom.opener)), None)
        if header.thinks and self.thinking_open:
            self.tape.i += header.length
        elif header.thinks and idiom is not None:
            self._open(idiom, markup)
        else:
            self.end_thinking()
            self.pass_markup(markup)
        return self.home()

    def _read_header(self, token: str, name: str) -> Header | None:
        """What a scanner that knows the token at the cursor makes of it and of what follows; None: more input."""
        reader = self._scanner(name, self._openers.thinking[name] if self.thinking_open else "")
        said: list[Event] = []
        length = 0
        text, behind = self.tape.text, self.tape.i + len(token)
        for piece in chain([token], map(text.__getitem__, range(behind, len(text)))):  # no copy of a long rest
            said += reader.feed(piece)
            length += len(piece)
            if said or reader.held_chars < length:
                break
        held, thinks = reader.held_chars, reader.thinking_open
        rest = reader.flush(truncated=self.truncated)
        if held == length and not said:
            if not self.final:
                return None
            held, said = 0, rest
        for event in said:
            match event:
                case Stopped(reason):
                    return Header(len(token), thinks, reason)
                case Text(text) | ThinkingDelta(text):
                    held += len(text)
        return Header(length - held, thinks)

    def _call(self, tag: str) -> State | None:
        """A tag that opens a call in the dialect that what follows says, or is prose."""
        tape = self.tape
        if tape.pos < self._mention_until:
            return self._mention(tag)
        at, begun = tape.i, self._begun()
        if not begun and self.markdown.blank and not self.thinking_open:
            following = self._next_opener(tag)
            if following is None:
                return None
            at, begun = following
        if not begun:
            return self._mention(tag)
        first = begun[0]
        if first.is_open and not self.final:
            return None
        may_be_draft = self.thinking_open and not self._never_ends
        if first.is_open and (may_be_draft or not (self.truncated or self.markdown.blank)):
            return self._mention(tag)
        if may_be_draft:
            return self._look_ahead(first.scanner.think_end(self.idiom.closers))
        alike = [it.name for it in begun if (it.is_open, it.written) == (first.is_open, first.written)]
        return self._choose(first.name, alike, tape.text[at : at + first.length])

    def _next_opener(self, tag: str) -> tuple[int, list[Begun]] | None:
        """Where near behind a tag at a line's start, that opens no call, the next one stands, and the calls that begin
        there: then the first was a slip, or prose, as the dialect's own scanner will judge. None: more input."""
        tape, start = self.tape, self.tape.i
        behind = start + len(tag)
        near = tape.text[behind : behind + BLOCK_CHARS]
        is_all = self.final or len(near) == BLOCK_CHARS
        index, marker = self._openers.calls.find(near, 0, final=is_all)
        if marker is None:
            return (start, []) if is_all else None
        tape.i = behind + index
        begun = self._begun()
        tape.i = start
        if begun and begun[0].is_open:
            return (start, []) if self.final else None
        return behind + index, begun

    def _is_thinking_of(self, name: str) -> bool:
        """Whether thinking is open in tags that the scanner of that dialect reads itself."""
        if not self.thinking_open or self._fences:
            return False
        opener = self.idiom.opener
        return opener in self._scanner(name).thinking_tags or self._openers.thinking[name].startswith(opener)

    def _scanner(self, name: str, generation_prompt: str = "") -> Scanner:
        """A scanner of the dialect that this one asks, and that is as new."""
        key = (name, generation_prompt)
        if key not in self._scanners:
            self._scanners[key] = self._create(*key)
        return self._scanners[key]

    def _begun(self) -> list[Begun]:
        """The calls that may begin at the cursor, the likeliest first."""
        return sorted(self._find_begun(), key=lambda it: (it.is_open, -it.written, it.length))

    def _find_begun(self) -> Iterator[Begun]:
        tape = self.tape
        for name, written in self._openers.plain.items():
            scanner = self._scanner(name)
            assert isinstance(scanner, PlainTagScanner)
            near = tape.text[tape.i : tape.i + _LONGEST_OPENER]
            index, opener = scanner.text_markers.find(near, 0, final=self.final or len(near) == _LONGEST_OPENER)
            if index or (opener is not None and not scanner.opens_call(opener)):
                continue
            if opener is None:
                yield Begun(name, scanner, is_open=True)
                continue
            start = scanner.start_behind(opener).match(tape.text, tape.i + len(opener), partial=True)
            if start is not None:
                own = max((len(token) for token in written if near.startswith(token)), default=0)
                yield Begun(name, scanner, is_open=start.partial, written=own, length=start.end() - tape.i)

    def _choose(self, name: str, candidates: Sequence[str], sign: str) -> State | None:
        """The marker at the cursor decides. The newlines before it are for the chosen scanner to judge."""
        tape = self.tape
        prompt, shown, newlines, thinking, far = "", "", 0, "", 0
        if self._is_first and not self._said:
            prompt, newlines = self.generation_prompt, self._text_newlines
        elif self._fences or self._is_thinking_of(name):
            prompt = self._openers.thinking[name]
        elif self.thinking_open:
            shown, thinking = "x", self.idiom.opener
        elif self._said:
            newlines = self._text_newlines
            if self._gap is not None and isinstance(self._scanner(name), PlainTagScanner):
                newlines = max(newlines, self._gap)
            far = newlines if self._gap is not None else 0
            shown = "x\n " if self.markdown.blank and not newlines else "x"
        elif self._gap is None:
            newlines = self._text_newlines
        alike = dict.fromkeys(twin for candidate in candidates for twin in self._openers.alike[candidate])
        rest = "\n" * newlines + tape.text[tape.i :]
        self.handover = Handover(name, tuple(alike), sign, prompt, shown, rest, thinking, far)
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
    plain: dict[str, tuple[str, ...]] = {}
    openers: set[str] = set()
    for dialect in dialects:
        if dialect.scanner is None:
            continue
        for token in _special_tokens(dialect):
            owners.setdefault(token, []).append(dialect)
        if issubclass(dialect.scanner, PlainTagScanner):
            plain[dialect.name] = dialect.control_tokens
            openers |= {*dialect.scanner.call_begins}
    writers: dict[str, tuple[str, ...]] = {}
    readers: dict[str, str] = {}
    for token, found in owners.items():
        if token in openers:
            continue
        if writing := [it for it in found if _writes_calls_with(it, token)]:
            reading = [it for it in dialects if it not in writing and _has(it, token)]
            writers[token] = tuple(it.name for it in (*writing, *reading))
        else:
            readers[token] = max(found, key=lambda it: _begins_turn(it, token)).name
    own = {marker for marker in ThinkingScanner.text_markers.literals if not marker.startswith((*writers,))}
    special = frozenset((*writers, *readers))
    unquotable = {token for token in special if not all(map(has_plain_tags, owners[token]))}

    def with_calls(literals: Iterable[str]) -> TagSet:
        names = {opener[1:].rstrip(">") for opener in openers if opener.startswith("<")}
        others = {opener for opener in openers if not opener.startswith("<")}
        return TagSet({*literals, *others}, opening=sorted(names), mark=NAMESPACE)

    return Openers(
        tokens=writers,
        readers=readers,
        special=special,
        plain=plain,
        calls=with_calls(()),
        fences=tuple(opener for opener in openers if opener.startswith("`")),
        quotable=special - unquotable,
        markers=with_calls({*own, *special}),
        thinking_ends={
            opener: with_calls({*ends.literals, *special}) for opener, ends in ThinkingScanner.thinking_ends.items()
        },
        thinking={dialect.name: thinking_opener(dialect) for dialect in dialects},
        alike={one.name: tuple(it.name for it in dialects if _reading(it) == _reading(one)) for one in dialects},
        line_ends=MarkerSet({"\n", *unquotable}),
    )


def has_plain_tags(dialect: Dialect) -> bool:
    """Whether a person may write the dialect's tags by chance."""
    return dialect.scanner is not None and issubclass(dialect.scanner, PlainTagScanner)


def _special_tokens(dialect: Dialect) -> tuple[str, ...]:
    """Those of a dialect that no person writes."""
    scanner = dialect.scanner
    if scanner is not None and issubclass(scanner, PlainTagScanner):
        tokens = dict.fromkeys((*scanner.special_tokens, *scanner.turn_openers))
        return tuple(token for token in tokens if token not in scanner.text_headers)
    shared = () if scanner is None else {*scanner.thinking_tags} & {*ThinkingScanner.text_markers.literals}
    return tuple(token for token in dialect.control_tokens if token not in shared)


def _writes_calls_with(dialect: Dialect, token: str) -> bool:
    """Whether the token stands in the dialect's calls, in one of their forms."""
    marks = (mark for marks in dialect.call_marks for mark in marks)
    return token in dialect.render_assistant_tool_calls([_CALL]) or any(mark in token for mark in marks)


def _has(dialect: Dialect, token: str) -> bool:
    return dialect.scanner is not None and token in dialect.scanner.text_markers.literals


def _begins_turn(dialect: Dialect, token: str) -> bool:
    return dialect.scanner is not None and token in dialect.scanner.turn_openers


def _reading(dialect: Dialect) -> tuple[object, ...]:
    """Equal for dialects whose scanners read alike."""
    scanner = dialect.scanner
    if scanner is None or not issubclass(scanner, PlainTagScanner):
        return (dialect.name,)
    return (scanner.call_begins, getattr(scanner, "call_start", None), scanner.text_markers.literals)
