"""Drives a dialect's state machine over a tape, and keeps what all dialects keep: thinking, the open call, its ids.

A scanner's states are methods. Each consumes from the tape and returns the next state, or None for "more input"; `feed`
runs states until one waits, so a stream may be cut anywhere. At the end of the stream `flush` runs them once more with
`final` set, when nothing need be held back any longer. A dialect subclasses `Scanner` (or `ArgumentScanner`, in a
file of its own, for arguments that are JSON), writes its states, and uses the methods below to say what it found.
"""

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, Protocol, TypeAlias

from dialects.engine.arguments import Arguments, argument_events, skipping
from dialects.engine.markers import MarkerSet
from dialects.engine.reader import State
from dialects.engine.tape import Pieces, Tape
from dialects.events import (
    Event,
    Stopped,
    Text,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolArgDelta,
    ToolDropped,
    ToolEnd,
    ToolStart,
)
from dialects.messages import Tool, read_tools

_skip_space = skipping(r"\s*+")
_NO_LIMIT = sys.maxsize

__all__ = [
    "MAX_CALL_CHARS",
    "MAX_HELD_CHARS",
    "Call",
    "InbandScanner",
    "RunReader",
    "Scanner",
    "State",
    "UnknownTools",
    "last_turn",
]

MAX_CALL_CHARS: Final = 16_000_000
MAX_HELD_CHARS: Final = 4_000_000

Quick: TypeAlias = Callable[[str], "list[Event] | None"]
UnknownTools: TypeAlias = Literal["keep", "text", "drop"]


class InbandScanner(Protocol):
    """What reads the text of a model, one stream at a time."""

    def feed(self, text: str) -> list[Event]:
        """The events that the next piece of the stream gives. Raises TypeError for anything but a str."""

    def flush(self, *, truncated: bool = False) -> list[Event]:
        """The stream is over: the events that were held back. `truncated` says that generation was cut off. The scanner
        is as new afterwards."""

    @property
    def held_chars(self) -> int:
        """How many characters of the stream are held back at the moment."""


class RunReader(Protocol):
    """What has a short way for a chunk that only continues a value."""

    run_limit: int
    """Up to which position it may go."""

    def read_run(self, chunk: str) -> list[Event] | None:
        """The events of the chunk; None, with nothing done, if it does more."""


class Call:
    """The call that is being read, from its first marker on."""

    def __init__(self, start: int, repairs: list[str]) -> None:
        self.start = start
        self.repairs = repairs
        self.id = ""
        self.name: str | None = None
        self.shown = False
        """Whether its `ToolStart` is out, and its arguments may follow."""
        self.raw: str | None = None
        """Its text, once it was cut out."""


class Scanner(ABC):
    """Reads one dialect; `create_inband_scanner` describes the options.

    A subclass writes the states, of which `outside` is the first, and says which markers stand in text.
    """

    text_markers: MarkerSet
    """The markers that may stand in text."""

    thinking_tags: ClassVar[tuple[str, ...]] = ()
    """Those of them that are text like any other with `parse_thinking=False`."""

    turn_openers: ClassVar[tuple[str, ...]] = ()
    """The special tokens that begin a turn's header."""

    tape: Tape
    events: list[Event]
    final: bool
    truncated: bool
    stopped: bool
    state: State
    _in_plain_text: bool
    """Text is expected: a chunk without a marker's first character is text, if nothing is held."""
    _quick: "Quick | None"
    """The short way of another state: the events of a chunk, or None, with nothing done, if it does not apply."""

    assistant_openers: ClassVar[tuple[str, ...]] = ()
    """What stands before an assistant's body in a prompt; the generation prompt is read from the last of them on."""

    def __init__(
        self,
        *,
        tools: Sequence[Tool | Mapping[str, Any]] | None = None,
        parse_thinking: bool = True,
        generation_prompt: str = "",
        strict: bool = False,
        unknown_tools: UnknownTools = "keep",
        max_call_chars: int = MAX_CALL_CHARS,
        max_held_chars: int = MAX_HELD_CHARS,
        id_factory: Callable[[], str] | None = None,
    ) -> None:
        for option, flag in (("parse_thinking", parse_thinking), ("strict", strict)):
            if not isinstance(flag, bool):
                raise TypeError(f"{option} must be a bool, not {flag!r}")
        if id_factory is not None and not callable(id_factory):
            raise TypeError(f"id_factory must be callable, not {id_factory!r}")
        declared = read_tools(tools)
        self.tools = None if declared is None else {tool.name: tool for tool in declared}
        self.parse_thinking = parse_thinking
        if not parse_thinking:
            self.text_markers = self.text_markers.without(self.thinking_tags)
        self.generation_prompt = generation_prompt
        self.strict = strict
        self.unknown_tools = unknown_tools
        if unknown_tools not in ("keep", "text", "drop"):
            raise ValueError(f"unknown_tools must be 'keep', 'text' or 'drop', not {unknown_tools!r}")
        for option, value in (("max_call_chars", max_call_chars), ("max_held_chars", max_held_chars)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{option} must be a positive int, not {value!r}")
        if not isinstance(generation_prompt, str):
            raise TypeError(f"generation_prompt must be a str, not {type(generation_prompt).__name__}")
        self.max_call_chars = max_call_chars
        self.max_held_chars = max_held_chars
        self._id_factory = id_factory or _mint_id
        self.quotes: list[Event] = []
        """Those of the events of the last `feed` or `flush` that are text because no such tool is there."""
        self._reset()

    # What a user calls.

    def feed(self, text: str) -> list[Event]:
        """The events that the next piece of the stream gives. Raises TypeError for anything but a str."""
        if text.__class__ is str:
            tape = self.tape
            if self._in_plain_text and text and not tape.text and self._begins_nothing(text):
                tape.base += len(text)
                return [Text(text)]
            if self._quick is not None and (events := self._quick(text)) is not None:
                return events
        elif not isinstance(text, str):
            raise TypeError(f"feed takes a str, not {type(text).__name__}")
        if self.stopped or not text:
            return []
        self.tape.feed(text)
        self._run()
        self._find_short_ways()
        return self._taken_events()

    def flush(self, *, truncated: bool = False) -> list[Event]:
        """The stream is over: the events that were held back. `truncated` says that generation was cut off, so that an
        open call is not complete even if it looks so. The scanner is as new afterwards."""
        if not self.stopped:
            self.final = True
            self.truncated = truncated
            self._run()
        if not self.stopped:
            self.end_text()
            self.end_thinking()
        events = self._taken_events()
        self._reset()
        return events

    @property
    def held_chars(self) -> int:
        """How many characters of the stream are held back at the moment: neither out nor known to be markup."""
        return self.tape.end - self.released

    @property
    def released(self) -> int:
        """Up to which position of the stream everything is out or markup; a state with an open call knows better."""
        return self.call.start if self.call else self.tape.pos

    # The machine.

    def _taken_events(self) -> list[Event]:
        events, self.events = self.events, []
        return events

    def _reset(self) -> None:
        self.tape = Tape()
        self.events = []
        self.final = False
        self.truncated = False
        self.stopped = False
        self.call: Call | None = None
        self.thinking_open = False
        self._thinking: Pieces | None = None
        self._newlines = 0
        self._after_markup = False
        self._limit = _NO_LIMIT
        self._seen_ids: set[str] = set()
        self._minted_ids: set[str] = set()
        self._begins_nothing = frozenset(self.text_markers.leads).isdisjoint
        self._quick = None
        self._in_plain_text = False
        self.state = self.outside
        if self.generation_prompt:
            self._read_generation_prompt()
        if not self.events:
            self._find_short_ways()

    def _read_generation_prompt(self) -> None:
        """The prompt's last turn sets the state; nothing of it comes out."""
        self.tape.feed(last_turn(self.generation_prompt, self.assistant_openers))
        self._run()
        if self.stopped:
            self.stopped = False
            self.state = self.outside
        self._thinking = None
        self._after_markup = True
        if self.call is None:
            self.events = []
            if not self.tape.text.startswith(self.turn_openers, self.tape.i):
                self.tape.seek(self.tape.end)
        else:
            opened = self.call.id
            self.events = [e for e in self.events if isinstance(e, ToolStart | ToolArgDelta) and e.id == opened]

    def _run(self) -> None:
        self.quotes.clear()
        tape, ending = self.tape, self.final
        while not self.stopped:
            if tape.end > self._limit:
                tape.hide(self._limit)
            self.final = ending and not tape.is_hiding
            following = self.state()
            if following is not None:
                self.state = following
            elif tape.is_hiding:
                self.drop_call("too-large")
                self.state = self.after_too_large()
            elif self.final == ending:
                return

    def after_too_large(self) -> State:
        """The state that skips the rest of a call which exceeded `max_call_chars`; where none is written, the rest is
        text."""
        return self.outside

    @abstractmethod
    def outside(self) -> "State | None":
        """The state in which text stands."""

    def after_call(self) -> State:
        """The state behind a call."""
        return self.outside

    def _find_short_ways(self) -> None:
        """Prepare the short ways for the chunks that will probably follow."""
        self._quick = None
        tape = self.tape
        if tape.i == len(tape.text):
            tape.feed("")
        self._in_plain_text = (
            self.state == self.outside and not self.thinking_open and not self._after_markup and not self.stopped
        )
        if self._in_plain_text:
            tape.feed("")
            self._quick = self._plain_text
        elif self.call is not None and (reader := self.run_reader()) is not None:
            tape.feed("")
            reader.run_limit = self._limit
            self._quick = reader.read_run

    def run_reader(self) -> RunReader | None:
        """What reads a chunk that only continues a value of the open call, if that may be asked."""
        return None

    def _plain_text(self, chunk: str) -> list[Event] | None:
        """Text without a marker; what may begin one stays behind on the tape."""
        tape = self.tape
        parts = self.text_markers.split(tape.text + chunk)
        if parts is None:
            return None
        text, tape.text = parts
        tape.base += len(text)
        return [Text(text)] if text else []

    def stop(self, reason: str) -> None:
        """The model writes what is not its turn."""
        self.end_thinking()
        self.events.append(Stopped(reason))
        self.stopped = True

    # Text and thinking.

    def read_text(self, markers: MarkerSet) -> str | None:
        """Let text leave up to the next marker, and return that marker, the cursor before it; None: more input."""
        start = self.tape.i
        text = self.tape.text
        index, marker = markers.find(text, start, final=self.final)
        if index > start:
            self.tape.i = index
            self.say(text[start:index])
        return marker

    def say(self, text: str) -> None:
        """Text, or thinking while that is open. Newlines that touch markup belong to it: those at both ends of the
        thinking, and a stretch of text that is nothing else. (`PlainTagScanner` has a rule of its own.)"""
        if self._after_markup:
            rest = text.lstrip("\n")
            self._newlines += len(text) - len(rest)
            if not rest:
                return
            text = rest if self.thinking_open else "\n" * self._newlines + rest
            self._newlines = 0
            self._after_markup = False
        if self.thinking_open:
            self._think(text)
        else:
            self.events.append(Text(text))

    def _think(self, text: str) -> None:
        rest = text.rstrip("\n")
        if not rest:
            self._newlines += len(text)
            return
        if self._thinking is None:
            self._thinking = Pieces()
            self.events.append(ThinkingStart())
        delta = "\n" * self._newlines + rest
        self._newlines = len(text) - len(rest)
        self._thinking.append(delta)
        self.events.append(ThinkingDelta(delta))

    def pass_markup(self, marker: str) -> None:
        """Move the cursor past the markup at it."""
        self.tape.i += len(marker)
        self.touch_markup()

    def skip_layout(self, markers: MarkerSet) -> None:
        """Behind markup, white space is layout, and a marker that the end of the stream cut off is no text."""
        if not self._after_markup:
            return
        tape = self.tape
        text = tape.text
        tape.i = _skip_space(text, tape.i).end()
        if self.final and markers.held_suffix(text, tape.i) == tape.i:
            tape.i = len(text)

    def touch_markup(self) -> None:
        """Markup stands here, so the newlines around it are no text."""
        self._after_markup = True
        self._newlines = 0

    def end_text(self) -> None:
        """The stream is over: what was held of its text leaves. Here only newlines behind markup are held; they go."""
        self._newlines = 0

    def begin_thinking(self) -> None:
        """A tag that opens thinking was read; the events come with its first character."""
        self.thinking_open = True
        self.touch_markup()

    def end_thinking(self) -> None:
        """Thinking ends here, if it is open."""
        if not self.thinking_open:
            return
        self.thinking_open = False
        self.touch_markup()
        if self._thinking is not None:
            self.events.append(ThinkingEnd(self._thinking.text()))
            self._thinking = None

    # Calls.

    def begin_call(self, *repairs: str) -> Call:
        """A call's first marker stands at the cursor."""
        if self.thinking_open:
            self.end_thinking()
            repairs = ("unclosed-thinking", *repairs)
        start = self.tape.pos
        self.tape.set_mark(start)
        self._limit = start + self.max_call_chars
        self.call = Call(start, list(repairs))
        return self.call

    def name_call(self, name: str, native_id: str = "") -> None:
        """The open call's name is complete; `native_id` is the id that the model gave it."""
        call = self.open_call
        call.name = name
        if native_id and native_id in self._seen_ids:
            call.repairs.append("duplicate-id")
            native_id = ""
        call.id = native_id or self._new_id()
        self._seen_ids.add(call.id)
        if self.unknown_tools == "keep" or self.tools is None or name in self.tools:
            call.shown = True
            self.events.append(ToolStart(call.id, name))

    @property
    def open_call(self) -> Call:
        """The call that is being read."""
        assert self.call is not None
        return self.call

    def parameters_of(self, name: str) -> dict[str, Any]:
        """The JSON Schema of a tool's parameters, as far as it is known."""
        tool = (self.tools or {}).get(name)
        return tool.parameters if tool else {}

    def end_call(self, arguments: Arguments) -> None:
        """The open call is over, the cursor stands behind it."""
        call = self.open_call
        repairs = tuple(dict.fromkeys((*call.repairs, *arguments.repairs)))
        if arguments.too_deep or (self.strict and repairs):
            self.drop_call("malformed")
        elif call.name is None:
            self.drop_call("nameless")
        elif call.shown:
            raw = self._close_call()
            self.events.append(ToolEnd(call.id, call.name, arguments.value, arguments.text, raw, repairs))
        elif self.unknown_tools == "drop":
            self.drop_call("unknown-tool")
        else:
            raw = self.tape.slice(call.start, self.tape.pos)
            self._forget_call()
            before = len(self.events)
            self.say_call(call.name, raw)
            self.quotes += self.events[before:]

    def say_call(self, name: str, raw: str) -> None:
        """A call of a tool that is not there is text."""
        self.say(raw)

    def write_arguments(self, arguments: Arguments) -> Arguments:
        """Arguments that are known all at once: their events."""
        call = self.open_call
        if call.shown:
            self.events.extend(argument_events("", arguments.text, call.id, call.name or ""))
        return arguments

    def sink(self) -> list[Event] | None:
        """What receives the events of the open call's arguments."""
        return self.events if self.open_call.shown else None

    def cut_off(self) -> State:
        """The stream ended inside the call."""
        self.tape.i = len(self.tape.text)
        self.drop_call("unfinished")
        return self.after_call()

    def drop_call(self, reason: str) -> None:
        """The open call is none."""
        call = self.open_call
        call_id = call.id or self._new_id()
        self._seen_ids.add(call_id)
        self.events.append(ToolDropped(call_id, call.name, reason, self._close_call()))

    def cut_out_call(self) -> None:
        """The cursor stands behind the open call, whose arguments are about to be written out: of a large one, the tape
        need not keep a copy beside theirs."""
        call = self.open_call
        call.raw = self.tape.slice(call.start, self.tape.pos)
        self.tape.clear_mark()

    def _close_call(self) -> str:
        """Forget the open call; its text."""
        call = self.open_call
        raw = self.tape.slice(call.start, self.tape.pos) if call.raw is None else call.raw
        self._forget_call()
        self.touch_markup()
        return raw

    def take_back_call(self) -> int:
        """What began as a call is text: go back to where it began, and forget it. That position."""
        start = self.open_call.start
        self.tape.seek(start)
        self._forget_call()
        return start

    def _forget_call(self) -> None:
        self.tape.clear_mark()
        self.tape.unhide()
        self._limit = _NO_LIMIT
        self.call = None

    def _new_id(self) -> str:
        while True:
            minted = self._id_factory()
            if not isinstance(minted, str) or not minted or minted in self._minted_ids:
                raise ValueError(f"id_factory must return a new, non-empty str each time, not {minted!r}")
            self._minted_ids.add(minted)
            if minted not in self._seen_ids:
                return minted


def last_turn(prompt: str, openers: Iterable[str]) -> str:
    """A prompt from where the last of the openers stands; all of it if none does."""
    return prompt[max([0, *map(prompt.rfind, openers)]) :]


def _mint_id() -> str:
    return f"call_{os.urandom(12).hex()}"
