"""Which HTTP exchanges are healed, and with what: the transport's and the proxy's decisions, without input or output.

Healed are the successful answers, JSON or an event stream, to `POST …/chat/completions`. What the request says about
its tools, its `tool_choice`, its `n` and its model decides how.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from dialects.healing.calls import Mode
from dialects.healing.chat import ChatCompletionHealer
from dialects.healing.choice import ReasoningField
from dialects.healing.event_stream import EventStreamHealer, read_object, write_json
from dialects.healing.explain import ExplainingHealer
from dialects.healing.sse import MAX_EVENT_BYTES
from dialects.healing.streams import AUTO, pattern_for
from dialects.messages import MessageError, Tool, read_tools

__all__ = [
    "BODY_HEADERS",
    "BY_MODEL",
    "Exchange",
    "HealingOptions",
    "accepted_encodings",
    "answer_kind",
    "is_healed_request",
]

AnswerKind: TypeAlias = Literal["stream", "whole"]

BY_MODEL = "model"
"""The pattern that asks `pattern_for` for one that suits the request's model."""

BODY_HEADERS = frozenset(
    ["content-length", "content-encoding", "content-md5", "digest", "content-digest", "repr-digest", "etag"]
)
"""Headers that describe the bytes of a body, and are wrong for the healed one."""

_ENCODINGS = frozenset(["gzip", "deflate", "identity"])
"""The content encodings that are taken off before healing."""

_PATH = "/chat/completions"


class HealingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How exchanges are healed.

    pattern: that of `StreamHealer`, or `model`: what `pattern_for` answers for the model that the request names.
    mode, reasoning_field, generation_prompt: those of `ChatCompletionHealer`.
    max_event_bytes: a longer event of a stream ends it with an error.
    max_body_bytes: a longer JSON answer passes unhealed.
    scanner_options: those of `create_inband_scanner`.
    """

    pattern: str = AUTO
    mode: Mode = "atomic"
    reasoning_field: ReasoningField = "reasoning_content"
    generation_prompt: str = ""
    max_event_bytes: int = MAX_EVENT_BYTES
    max_body_bytes: int = 64_000_000
    scanner_options: dict[str, Any] = {}

    def check(self) -> None:
        """Raises what `ChatCompletionHealer` raises for options that are none."""
        self.healer(AUTO if self.pattern == BY_MODEL else self.pattern, tools=None, tool_choice=None)

    def healer(
        self,
        pattern: str,
        *,
        tools: Sequence[Tool] | None,
        tool_choice: str | Mapping[str, Any] | None,
        explain: bool = False,
    ) -> ChatCompletionHealer:
        """A healer with these options; `explain`: one that keeps account."""
        healer = ExplainingHealer if explain else ChatCompletionHealer
        return healer(
            pattern,
            tools=tools,
            tool_choice=tool_choice,
            mode=self.mode,
            reasoning_field=self.reasoning_field,
            generation_prompt=self.generation_prompt,
            **self.scanner_options,
        )


class Exchange:
    """One request that is healed: what it offered decides what its answer may hold. None: nobody knows what it said,
    and every call counts. `explain`: its healer keeps account."""

    def __init__(self, request: Mapping[str, Any] | None, options: HealingOptions, *, explain: bool = False) -> None:
        tools = None if request is None else _offered(request)
        request = request or {}
        model = request.get("model")
        choice = request.get("tool_choice")
        count = request.get("n")
        self._options = options
        self._choices = count if isinstance(count, int) else 1
        self.pattern = options.pattern
        if self.pattern == BY_MODEL:
            self.pattern = pattern_for(model if isinstance(model, str) else "").name or AUTO
        self.healer = options.healer(
            self.pattern,
            tools=tools,
            tool_choice=choice if isinstance(choice, str | Mapping) else None,
            explain=explain,
        )

    @classmethod
    def of_body(cls, body: bytes, options: HealingOptions) -> "Exchange | None":
        """That of a request's body; None if this is no JSON object, so that nothing is known about it."""
        request = read_object(body)
        return None if request is None else cls(request, options)

    def stream(self) -> EventStreamHealer:
        """The healer of the answer, if that is an event stream."""
        return EventStreamHealer(self.healer, choices=self._choices, max_event_bytes=self._options.max_event_bytes)

    def whole(self, body: bytes) -> bytes:
        """The answer healed, if that is JSON. What is no chat completion stays as it is, to the byte."""
        response = read_object(body) if len(body) <= self._options.max_body_bytes else None
        if response is None or not isinstance(response.get("choices"), list):
            return body
        return write_json(self.healer.heal_response(response)).encode()


def accepted_encodings(header: str) -> str:
    """An `accept-encoding` without the encodings that could not be taken off."""
    items = [item.strip() for item in header.split(",")]
    return ", ".join(item for item in items if item.partition(";")[0].strip() in _ENCODINGS) or "identity"


def is_healed_request(method: str, path: str) -> bool:
    """Whether an answer to this request may be healed."""
    return method.upper() == "POST" and path.rstrip("/").endswith(_PATH)


def answer_kind(status: int, content_type: str, content_encoding: str) -> AnswerKind | None:
    """As what an answer is healed; None: it passes as it is."""
    encodings = {name.strip().lower() for name in content_encoding.split(",")} - {""}
    if not 200 <= status < 300 or not encodings <= _ENCODINGS:
        return None
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == "text/event-stream":
        return "stream"
    return "whole" if media_type == "application/json" or media_type.endswith("+json") else None


def _offered(request: Mapping[str, Any]) -> list[Tool]:
    """The function tools of a request, also in its older form. What cannot be read is for the upstream to judge."""
    given = [*_list(request.get("tools")), *_list(request.get("functions"))]
    tools: dict[str, Tool] = {}
    for item in given:
        try:
            read = read_tools([item]) or ()
        except (MessageError, TypeError):
            continue
        tools |= {tool.name: tool for tool in read}
    return list(tools.values())


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
