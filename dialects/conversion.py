"""From one dialect into another, through the messages: what is read is written anew, and what gets lost is named.

A transcript falls apart into turns as the dialect's `turns` say; what an assistant wrote goes through its scanner. The
messages are then rendered in the other dialect. What that one cannot express is not guessed from a list: the new text
is read back, and every difference between the messages is named with its path.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property

import msgspec

from dialects.engine.dialect import Dialect, Tools
from dialects.engine.rendering import compact_json, without_surrogates
from dialects.engine.scanner import InbandScanner
from dialects.events import Event, Stopped, Text, ThinkingEnd, ToolDropped, ToolEnd
from dialects.factory import create_inband_scanner, get_dialect
from dialects.messages import Message, ToolCall, ToolLike, read_tools

__all__ = ["Conversion", "convert", "read_transcript"]

_EMPTY = Message("assistant")
_RESULT_FIELDS = ("tool_call_id", "name", "is_error")


class Conversion(msgspec.Struct, frozen=True):
    """A text in another dialect, the messages that it says, and what of the original is not in it, each with its path:
    `messages[2].tool_calls[0].id: …`."""

    text: str
    messages: tuple[Message, ...]
    lost: tuple[str, ...]


def convert(
    text: str, source: str | Dialect, target: str | Dialect, *, tools: Sequence[ToolLike] | None = None
) -> Conversion:
    """A transcript, or the text of one assistant's turn, from the dialect `source` into the dialect `target`.

    A text that begins with a turn's header is a transcript, any other is a turn, and stays one. `tools` types the
    values where a dialect writes plain text. Raises what `create_inband_scanner` raises, and TypeError for no str.
    """
    if not isinstance(text, str):
        raise TypeError(f"convert takes a str, not {type(text).__name__}")
    reader, writer = _Reader(source, tools), _Reader(target, tools)
    is_transcript = reader.dialect.turns is not None and reader.dialect.turns.begin(text)
    messages = tuple(reader.transcript(text) if is_transcript else [reader.turn(text, "messages[0]")])
    if is_transcript:
        written = without_surrogates(writer.dialect.transcript_text(messages, writer.tools))
    else:
        (message,) = writer.dialect.answered(messages)
        written = without_surrogates(writer.dialect.assistant_text(message, writer.tools))
    if writer.dialect.scanner is None or (is_transcript and writer.dialect.turns is None):
        unknown = (f"messages: {writer.dialect.name} cannot be read back, so what it does not express is not known",)
        return Conversion(written, messages, (*reader.lost, *unknown))
    read_back = tuple(writer.transcript(written)) if is_transcript else (writer.turn(written, "messages[0]"),)
    lost = (*reader.lost, *_differences(messages, read_back, writer.dialect))
    return Conversion(written, messages, lost)


def read_transcript(
    text: str, dialect: str | Dialect, *, tools: Sequence[ToolLike] | None = None
) -> tuple[Message, ...]:
    """The messages of a transcript, as `render_transcript` or the model's own chat template wrote it.

    A text in which no turn begins is one assistant's turn. Raises what `create_inband_scanner` raises.
    """
    if not isinstance(text, str):
        raise TypeError(f"read_transcript takes a str, not {type(text).__name__}")
    return tuple(_Reader(dialect, tools).transcript(text))


class _Reader:
    """Reads what a dialect writes, and keeps what it could not make anything of in `lost`."""

    def __init__(self, dialect: str | Dialect, tools: Sequence[ToolLike] | None) -> None:
        self.dialect = dialect if isinstance(dialect, Dialect) else get_dialect(dialect)
        self.tools: Tools = read_tools(tools)
        self.lost: list[str] = []

    @cached_property
    def _scanner(self) -> InbandScanner:
        return create_inband_scanner(self.dialect.name, tools=self.tools)

    def transcript(self, text: str) -> Iterator[Message]:
        if self.dialect.turns is None or not self.dialect.turns.are_in(text):
            if text.strip():
                yield self.turn(text, "messages[0]")
            return
        index, before = 0, ""
        for turn in self.dialect.turns.read(text):
            message = Message(turn.role, turn.body, tool_call_id=turn.call_id, name=turn.name, is_error=turn.is_error)
            if turn.role == "assistant":
                message = msgspec.structs.replace(self.turn(turn.body, f"messages[{index}]"), name=turn.name)
            is_rest = before == "tool" and bool(turn.body)  # what is left of a turn of results may be markup alone
            if not (is_rest and message == _EMPTY):
                yield message
                index += 1
            before = turn.role

    def turn(self, text: str, path: str) -> Message:
        """The message that an assistant's turn says."""
        events = self._scanner.feed(text) + self._scanner.flush()
        self.lost += [f"{path}: {problem}" for problem in _problems(events)]
        return Message(
            "assistant",
            "".join(event.text for event in events if isinstance(event, Text)),
            reasoning="".join(event.thinking for event in events if isinstance(event, ThinkingEnd)),
            tool_calls=tuple(self._call(event) for event in events if isinstance(event, ToolEnd)),
        )

    def _call(self, event: ToolEnd) -> ToolCall:
        call_id = event.id if self.dialect.is_written_id(event.id) else None
        return ToolCall(call_id, event.name, event.arguments, event.arguments_json)


def _problems(events: Sequence[Event]) -> Iterator[str]:
    """What a turn holds that a message has no place for."""
    called = said = False
    for event in events:
        match event:
            case ToolEnd():
                called = True
            case Text(text) if text.strip():
                said = said or called
            case ToolDropped(name=name, reason=reason, raw_block=raw):
                yield f"a call{f' of {name}' if name else ''} that cannot be read ({reason}): {_short(raw)}"
            case Stopped(reason=reason):
                yield f"what follows a {reason}"
    if said:
        yield "the place of the text behind a call; it stands before the calls now"


def _differences(originals: Sequence[Message], read_back: Sequence[Message], dialect: Dialect) -> Iterator[str]:
    """What messages say that is not in what was read back of them."""
    roles = SequenceMatcher(None, [it.role for it in originals], [it.role for it in read_back], autojunk=False)
    for operation, begin, end, begin_back, end_back in roles.get_opcodes():
        if operation == "equal":
            pairs = zip(range(begin, end), range(begin_back, end_back), strict=True)
            for index, back in pairs:
                for path, problem in _difference(_spelled(originals[index]), _spelled(read_back[back])):
                    yield f"messages[{index}]{path}: {problem} in {dialect.name}"
            continue
        for index in range(begin, end):
            yield f"messages[{index}]: {dialect.name} has no turn of its own for this {originals[index].role} message"


def _difference(original: Message, back: Message) -> Iterator[tuple[str, str]]:
    for field in ("content", "reasoning"):
        was, now = getattr(original, field), getattr(back, field)
        if was.strip() != now.strip():
            yield f".{field}", f"{_short(was)} becomes {_short(now)}"
    for field in _RESULT_FIELDS:
        if getattr(original, field) and not getattr(back, field):
            yield f".{field}", "has no place"
    for index, call in enumerate(original.tool_calls):
        path = f".tool_calls[{index}]"
        if index >= len(back.tool_calls):
            yield path, "has no place"
            continue
        other = back.tool_calls[index]
        if call.id and not other.id:
            yield f"{path}.id", "has no place"
        if call.name != other.name:
            yield f"{path}.name", f"{_short(call.name)} becomes {_short(other.name)}"
        for key in dict.fromkeys([*call.arguments, *other.arguments]):
            if _json(call, key) != _json(other, key):
                yield f"{path}.arguments.{key}", f"{_json(call, key)} becomes {_json(other, key)}"


def _spelled(message: Message) -> Message:
    """The message as it is compared: a developer's message is a system message everywhere."""
    return msgspec.structs.replace(message, role="system") if message.role == "developer" else message


def _json(call: ToolCall, key: str) -> str:
    return _short(compact_json(call.arguments[key])) if key in call.arguments else "nothing"


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")
