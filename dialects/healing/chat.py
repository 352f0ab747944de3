"""OpenAI chat completions with leaked markup, put right: streams chunk by chunk, and whole responses.

Whatever the upstream sends, what leaves has one shape, which every client that was measured reads:

    role            once, first
    a call          one header (index, id, type, name, empty arguments), then only its index and pieces of arguments;
                    `{}` where there are none; indexes from 0 without gaps; one call a delta, one after the other
    finish_reason   once, in a chunk of its own, when everything held has left
    usage           after it, unchanged

There is one code path: a whole response is fed like a chunk, and its deltas are put together again.
"""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from dialects.healing.calls import Mode
from dialects.healing.choice import REASONING_FIELDS, ChoiceHealer, Part, ReasoningField, Settings
from dialects.healing.counts import Counts
from dialects.healing.streams import AUTO, StreamHealer
from dialects.messages import Tool, read_tools

__all__ = ["ChatCompletionHealer", "Chunk", "aheal_chunks", "heal_chunks"]

Chunk: TypeAlias = dict[str, Any]
ChunkLike: TypeAlias = Mapping[str, Any] | msgspec.Struct


class ChatCompletionHealer:
    """Heals one chat completion at a time: `feed` and `finish` a stream, `heal_response` a whole response.

    pattern: that of `StreamHealer`.
    tools: those that the request offered. Only they are recovered: a call of another stays text. None: nobody knows
        what was offered, and every call counts; `[]`: nothing was.
    tool_choice: that of the request. With `none` no call is recovered: its markup is removed, the call with it.
    mode: `atomic` lets a healed call out when the turn is over, behind the native ones; `progressive` as it arrives.
    reasoning_field: what reasoning is written to: `reasoning_content`, `reasoning` or `both`. Both are read.
    generation_prompt: what the prompt ended with, for a server that does not parse reasoning itself.
    scanner_options: those of `create_inband_scanner`.

    Chunks and responses are dicts, or `msgspec` structs; they are not changed. What has no choices passes untouched.
    Raises what `create_inband_scanner` raises, and TypeError for a chunk that is neither.
    """

    def __init__(
        self,
        pattern: str = AUTO,
        *,
        tools: Sequence[Tool | Mapping[str, Any]] | None = None,
        tool_choice: str | Mapping[str, Any] | None = None,
        mode: Mode = "atomic",
        reasoning_field: ReasoningField = "reasoning_content",
        generation_prompt: str = "",
        **scanner_options: Any,
    ) -> None:
        if mode not in ("atomic", "progressive"):
            raise ValueError(f"mode must be 'atomic' or 'progressive', not {mode!r}")
        if reasoning_field not in (*REASONING_FIELDS, "both"):
            raise ValueError(
                f"reasoning_field must be 'reasoning_content', 'reasoning' or 'both', not {reasoning_field!r}"
            )
        self.counts = self._new_counts()
        """What was healed so far, over all streams and responses."""
        self._settings = Settings(
            pattern=pattern,
            tools=read_tools(tools),
            recovers=tool_choice != "none",
            mode=mode,
            reasoning_fields=REASONING_FIELDS if reasoning_field == "both" else (reasoning_field,),
            generation_prompt=generation_prompt,
            scanner_options=scanner_options,
            counts=self.counts,
            create=self._new_stream,
        )
        self._settings.healer(0, "content", generation_prompt)  # raises for what is no pattern and no option
        self._reset()

    def _new_counts(self) -> Counts:
        return Counts()

    def _new_stream(self, choice: int, channel: str, pattern: str, **options: Any) -> StreamHealer:
        return StreamHealer(pattern, **options)

    def _reset(self) -> None:
        self._choices: dict[int, ChoiceHealer] = {}
        self._envelope: dict[str, Any] = {}
        self._left_over: dict[str, Any] = {}
        """The fields of chunks that gave nothing to send: they leave with the next."""
        self._usage: Any = None
        self._has_usage = False
        """Whether the upstream's chunks have the key, be it null."""
        self._usage_chunks: list[Chunk] = []
        """Chunks with usage and without choices that came before the end."""

    def feed(self, chunk: ChunkLike) -> list[Chunk]:
        """The chunks that may leave, now that the upstream has sent this one."""
        plain = _plain(chunk)
        choices = plain.get("choices")
        if not isinstance(choices, list):
            return [plain]
        if not choices:
            return self._without_choices(plain)
        out = self._usage_chunks
        self._usage_chunks = []
        self._envelope = {key: value for key, value in plain.items() if key not in ("choices", "usage")}
        self._left_over |= self._envelope
        self._has_usage = self._has_usage or "usage" in plain
        self._usage = plain.get("usage") or self._usage
        for choice in choices:
            if isinstance(choice, Mapping):
                given = choice.get("index")
                index = given if isinstance(given, int) else 0
                if index not in self._choices:
                    self._choices[index] = ChoiceHealer(self._settings, index)
                out += self._chunks(index, self._choices[index].feed(choice))
        return self._with_usage(out)

    def finish(self, *, truncated: bool = False) -> list[Chunk]:
        """The upstream is over: what is still to be sent. `truncated` says that it was cut off, so that a choice
        without a finish reason ends with `length`. The healer is as new afterwards."""
        out = self._finished(truncated=truncated) + self._usage_chunks
        self._reset()
        return out

    def interrupt(self) -> list[Chunk]:
        """The upstream failed: the text and reasoning that were held. Nothing that is open is completed, no call is
        begun, no finish reason is given: what follows for the client is an error. The healer is as new afterwards."""
        out: list[Chunk] = []
        for index in sorted(self._choices):
            out += self._chunks(index, self._choices[index].interrupt())
        self._reset()
        return out

    def no_op(self) -> list[Chunk]:
        """A chunk with an empty delta, which keeps a waiting client patient; none before the first real one."""
        if not self._choices:
            return []
        choice = {"index": min(self._choices), "delta": {}, "finish_reason": None}
        return self._with_usage([{**self._envelope, "choices": [choice]}])

    def heal_response(self, response: ChunkLike) -> dict[str, Any]:
        """A whole response, healed."""
        plain = _plain(response)
        choices = plain.get("choices")
        if not isinstance(choices, list):
            return plain
        return {**plain, "choices": [self._whole(choice) for choice in choices]}

    @property
    def stopped(self) -> bool:
        """Whether every choice has begun to write what is not its turn, so that the upstream may be cancelled."""
        return bool(self._choices) and all(choice.stopped is not None for choice in self._choices.values())

    @property
    def choice_count(self) -> int:
        """How many choices the stream has so far."""
        return len(self._choices)

    @property
    def held_chars(self) -> int:
        """How many characters are held back at the moment, over all choices."""
        return sum(choice.held_chars for choice in self._choices.values())

    # Streams.

    def _without_choices(self, chunk: Chunk) -> list[Chunk]:
        """A chunk without choices. The one with the usage goes behind the finish reasons."""
        if not chunk.get("usage"):
            return [chunk]
        if self._choices and all(choice.finish_reason for choice in self._choices.values()):
            return [*self._finished(truncated=False), chunk]
        self._usage_chunks.append(chunk)
        return []

    def _finished(self, *, truncated: bool) -> list[Chunk]:
        out: list[Chunk] = []
        for index in sorted(self._choices):
            out += self._chunks(index, self._choices[index].finish(truncated=truncated))
        return self._with_usage(out)

    def _chunks(self, index: int, parts: list[Part]) -> list[Chunk]:
        chunks = []
        for part in parts:
            choice = {"index": index, "delta": part.delta, **part.fields, "finish_reason": part.finish_reason}
            chunks.append({**self._left_over, **self._envelope, "choices": [choice]})
            self._left_over = {}
        return chunks

    def _with_usage(self, chunks: list[Chunk]) -> list[Chunk]:
        """Usage that came on a chunk with choices leaves on the last chunk that it gave, or on the next one."""
        if self._has_usage:
            for chunk in chunks:
                chunk.setdefault("usage", None)
        if chunks and self._usage is not None:
            chunks[-1]["usage"], self._usage = self._usage, None
        return chunks

    # Whole responses.

    def _whole(self, choice: object) -> object:
        if not isinstance(choice, Mapping) or not isinstance(choice.get("message"), Mapping):
            return choice
        message = choice["message"]
        healer = ChoiceHealer(self._settings)
        parts = healer.feed({**choice, "delta": message}) + healer.finish()
        whole: dict[str, Any] = {}
        fields: dict[str, Any] = {}
        for part in parts:
            _add(whole, part.delta)
            entries = (part.fields.get("logprobs") or {}).get("content")
            before = (fields.get("logprobs") or {}).get("content")
            fields.update(part.fields)
            if entries and before:
                fields["logprobs"] = {**part.fields["logprobs"], "content": before + entries}
        fields.pop("message", None)
        read = {"content", "tool_calls", *REASONING_FIELDS}
        kept = {key: value for key, value in message.items() if key not in read or key in whole or value is None}
        healed = {**kept, **whole}
        return {**choice, **fields, "message": healed, "finish_reason": parts[-1].finish_reason}


def heal_chunks(chunks: Iterable[ChunkLike], pattern: str = AUTO, **options: Any) -> Iterator[Chunk]:
    """A stream of chunks, healed; the options and errors are those of `ChatCompletionHealer`. If the upstream's
    iterator raises, so does this one, and nothing that is open is completed."""
    return _healed(chunks, ChatCompletionHealer(pattern, **options))


def aheal_chunks(chunks: AsyncIterable[ChunkLike], pattern: str = AUTO, **options: Any) -> AsyncIterator[Chunk]:
    """The same for an asynchronous stream."""
    return _ahealed(chunks, ChatCompletionHealer(pattern, **options))


def _healed(chunks: Iterable[ChunkLike], healer: ChatCompletionHealer) -> Iterator[Chunk]:
    for chunk in chunks:
        yield from healer.feed(chunk)
    yield from healer.finish()


async def _ahealed(chunks: AsyncIterable[ChunkLike], healer: ChatCompletionHealer) -> AsyncIterator[Chunk]:
    async for chunk in chunks:
        for healed in healer.feed(chunk):
            yield healed
    for healed in healer.finish():
        yield healed


def _plain(chunk: ChunkLike) -> Chunk:
    if isinstance(chunk, msgspec.Struct):
        built = msgspec.to_builtins(chunk)
        if isinstance(built, dict):
            return built
    if not isinstance(chunk, Mapping):
        raise TypeError(f"a chunk is a dict or a msgspec struct, not {type(chunk).__name__}")
    return dict(chunk)


def _add(whole: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Put the next delta of a choice into its message."""
    for key, value in delta.items():
        if key == "tool_calls":
            calls = whole.setdefault("tool_calls", [])
            for entry in value:
                if entry["index"] == len(calls):
                    calls.append({name: part for name, part in entry.items() if name != "index"})
                    continue
                call = calls[entry["index"]]
                for field, piece in entry[call["type"]].items():
                    call[call["type"]][field] += piece
        elif isinstance(value, str) and isinstance(whole.get(key), str) and key != "role":
            whole[key] += value
        elif value is not None or key not in whole:
            whole[key] = value
