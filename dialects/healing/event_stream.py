"""A chat completion as an event stream, healed: the upstream's bytes in, the client's bytes out, no input or output.

`EventStreamHealer` puts an `EventReader` before a `ChatCompletionHealer`, and keeps what belongs to neither:

    [DONE]      sent exactly once, whatever the upstream does, also behind an error
    errors      in OpenAI's form; what was held as text leaves before, what is open is not completed
    junk        data that is no JSON object kills clients (an empty `data:`, keep-alives written as data): it is
                dropped; what begins as an object and is none was a chunk, so that is an error
    comments    pass, between events
"""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from dialects.healing.chat import ChatCompletionHealer, Chunk
from dialects.healing.sse import (
    MAX_EVENT_BYTES,
    Comment,
    EventReader,
    Item,
    ServerEvent,
    TooLarge,
    write_comment,
    write_event,
)

__all__ = ["DONE", "EventStreamHealer", "error_object", "read_object", "write_json"]

DONE = "[DONE]"
_ERROR = "error"
_TOO_LARGE = "upstream_event_too_large"


class EventStreamHealer:
    """Heals one stream. `feed` takes what the upstream sends, and `finish` says that it is over; `fail` that it failed.

    healer: what heals the chunks.
    choices: how many the request asked for (`n`). Once all of them have begun to write another's turn, the stream ends.
    max_event_bytes: a longer event ends the stream with an error.
    """

    def __init__(
        self, healer: ChatCompletionHealer, *, choices: int = 1, max_event_bytes: int = MAX_EVENT_BYTES
    ) -> None:
        self.healer = healer
        self._choices = choices
        self._reader = EventReader(max_event_bytes=max_event_bytes)
        self.done = False
        """Whether the client has all that it will get, so that the upstream may be closed."""
        self.stopped = False
        """Whether the stream was ended because the model wrote another's turn, with more to come from the upstream."""
        self.error: str | None = None
        """What went wrong, if anything did."""
        self.events = 0
        """How many of the upstream's events were chunks."""
        self.junk = 0
        """How many events were dropped because they are no JSON objects."""

    def feed(self, data: bytes) -> bytes:
        """What the client gets, now that the upstream has sent this."""
        if self.done:
            return b""
        return self._take(self._reader.feed(data))

    def finish(self) -> bytes:
        """The upstream is over."""
        if self.done:
            return b""
        items = self._reader.end()
        cut = next((item for item in items if isinstance(item, ServerEvent) and not item.whole), None)
        out = self._take([item for item in items if item is not cut])
        if cut is not None and not self.done and cut.data.strip():
            is_readable = bool(cut.event) or cut.data.startswith(DONE) or read_object(cut.data) is not None
            if not is_readable:
                return out + self.fail("The upstream broke off in the middle of an event.", code="upstream_incomplete")
            out += self._take([cut])
        return out if self.done else out + self._finish()

    def fail(self, message: str, *, code: str | None = None, kind: str = "upstream_error") -> bytes:
        """The upstream failed, for this reason."""
        if self.done:
            return b""
        return self._fail({"error": error_object({"message": message, "type": kind, "code": code})})

    def interrupt(self) -> bytes:
        """The upstream failed, and the client learns it in another way: only the text that was held."""
        if self.done:
            return b""
        self.done = True
        return _written(self.healer.interrupt())

    def no_op(self) -> bytes:
        """A chunk that says nothing, for clients that lose patience; empty while there is none that may be sent."""
        return b"" if self.done else _written(self.healer.no_op())

    @property
    def held_chars(self) -> int:
        """How many characters are held back at the moment."""
        return 0 if self.done else self.healer.held_chars

    # Steps.

    def _take(self, items: list[Item]) -> bytes:
        out: list[bytes] = []
        for item in items:
            if self.done:
                break
            match item:
                case Comment(text):
                    out.append(write_comment(text))
                case TooLarge(limit):
                    out.append(self.fail(f"The upstream sent an event of more than {limit} bytes.", code=_TOO_LARGE))
                case ServerEvent():
                    out.append(self._event(item))
        return b"".join(out)

    def _event(self, event: ServerEvent) -> bytes:
        data = event.data.strip()
        if data.startswith(DONE):
            return self._finish()
        given = read_object(data)
        if event.event == _ERROR or (given is not None and _is_error(given)):
            return self._fail(_as_error(data if given is None else given), _ERROR if event.event == _ERROR else "")
        if given is None and data.startswith("{"):
            return self.fail("The upstream sent a chunk that is no JSON.", code="upstream_invalid_json")
        if given is None:
            self.junk += 1
            return b""
        self.events += 1
        out = _written(self.healer.feed(given))
        if self.healer.stopped and self.healer.choice_count >= self._choices:
            self.stopped = True
            out += self._finish()
        return out

    def _finish(self) -> bytes:
        self.done = True
        return _written(self.healer.finish()) + write_event(DONE)

    def _fail(self, error: Chunk, event: str = "") -> bytes:
        self.error = error["error"]["message"]
        return self.interrupt() + write_event(write_json(error), event) + write_event(DONE)


def error_object(given: object) -> dict[str, Any]:
    """An error in OpenAI's form, out of what somebody sent as one; further fields are kept."""
    fields = dict(given) if isinstance(given, Mapping) else {"message": given}
    message = fields.get("message")
    if not isinstance(message, str) or not message:
        said = message or fields.get("detail") or "The upstream reported an error."
        fields["message"] = said if isinstance(said, str) else write_json(said)
    rest = {"type": fields.get("type") or "upstream_error", "param": fields.get("param"), "code": fields.get("code")}
    return {**fields, **rest}


def read_object(data: str | bytes) -> Chunk | None:
    """A JSON object; None for anything else."""
    try:
        value = msgspec.json.decode(data)
    except (ValueError, RecursionError):  # what it refuses and others send: halves of surrogate pairs, NaN
        try:
            value = json.loads(data, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def write_json(value: object) -> str:
    """JSON text on one line."""
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, ValueError, OverflowError):  # halves of surrogate pairs, huge numbers
        return json.dumps(value, separators=(",", ":"))


def _written(chunks: list[Chunk]) -> bytes:
    return b"".join([write_event(write_json(chunk)) for chunk in chunks])


def _is_error(given: Chunk) -> bool:
    return bool(given.get("error")) or given.get("object") == _ERROR


def _as_error(given: Chunk | str) -> Chunk:
    """An error event's data in OpenAI's form. Servers send `{"error": …}`, the error itself, or words."""
    if isinstance(given, str):
        return {"error": error_object(given)}
    if given.get("error"):
        return {**given, "error": error_object(given["error"])}
    return {"error": error_object({key: value for key, value in given.items() if key not in ("object", "error")})}
