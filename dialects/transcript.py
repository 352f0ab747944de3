"""Conversations as text: a whole transcript, a history for endpoints without tools, the prompt that declares tools.

`render_transcript` writes what a model of the family reads, role headers included. `encode_history` keeps the messages
and turns only calls and results into plain text, for an endpoint that writes role headers itself and knows no tools.
`render_tool_prompt` is the system text that goes with either: the tools, and how to call them in the dialect.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace

from dialects.engine.dialect import Dialect, Tools
from dialects.engine.rendering import compact_json, without_surrogates
from dialects.factory import get_dialect
from dialects.messages import (
    Message,
    MessageError,
    MessageLike,
    ToolLike,
    read_messages,
    read_tools,
)

__all__ = ["TemplateError", "encode_history", "render_tool_prompt", "render_transcript", "templates"]

Neutralize: TypeAlias = Literal["keep", "escape", "raise"]

_NEUTRALIZE = ("keep", "escape", "raise")
_ZERO_WIDTH_SPACE = "\u200b"
_CALLER_TEXTS = ("content", "name", "tool_call_id")


class TemplateError(ValueError):
    """There is no such template, or the template refuses the conversation."""


def templates(dialect: str | Dialect) -> tuple[str, ...]:
    """The names of the vendor templates that `render_transcript` can write for a dialect; no dialect has one yet."""
    _resolve(dialect)
    return ()


def render_transcript(
    messages: Sequence[MessageLike],
    dialect: str | Dialect = "kimi",
    *,
    tools: Sequence[ToolLike] | None = None,
    template: str | None = None,
    add_generation_prompt: bool = False,
    normalise: bool = True,
    neutralize: Neutralize = "keep",
    now: datetime | None = None,
    **template_options: Any,
) -> str:
    """A conversation as the model reads it, in the dialect's in-band form.

    `tools` serves only to type the values of the calls; to declare tools to the model, put `render_tool_prompt` into a
    system message. `add_generation_prompt` appends what stands before an assistant's body. `neutralize` says what to do
    with control tokens in the texts of system, user and tool messages, which could otherwise pass for turns and calls:
    `keep` them, `escape` them (a zero-width space after the first character; they read the same) or `raise`. The
    dialect's own guide in a system message is exempt.

    `template`, and `normalise`, `now` and `template_options`, which only a template uses, are for vendor templates; see
    `templates`. The in-band form is always that of the normalised messages: developer is system, parts are joined.

    Raises `MessageError` for messages or tools that are not well-formed and for tokens that are not wanted,
    `UnknownDialectError` and `TemplateError` for names that do not exist, and `TypeError` for an unknown option.
    """
    spoken = _resolve(dialect)
    if template is not None:
        known = ", ".join(templates(spoken)) or "none"
        raise TemplateError(f"the dialect {spoken.name!r} has no template {template!r}; it has: {known}")
    if template_options:
        names = ", ".join(map(repr, template_options))
        raise TypeError(f"render_transcript() has no option {names}; the in-band form (no template) takes none")
    if neutralize not in _NEUTRALIZE:
        raise ValueError(f"neutralize is one of {', '.join(_NEUTRALIZE)}, not {neutralize!r}")
    checked = read_messages(messages)
    if neutralize != "keep":
        checked = tuple(_neutralized(checked, spoken, escape=neutralize == "escape"))
    text = spoken.transcript_text(checked, read_tools(tools))
    return without_surrogates(text + spoken.generation_prompt if add_generation_prompt else text)


def encode_history(
    messages: Sequence[MessageLike],
    dialect: str | Dialect,
    *,
    tools: Sequence[ToolLike] | None = None,
    role_tokens: bool = True,
) -> list[dict[str, Any]]:
    """The conversation with its structured calls and results rewritten as plain assistant and user text.

    An assistant message with calls becomes its thinking, text and calls in the dialect; a run of tool messages becomes
    one user message. Every other message passes unchanged. `role_tokens=False` leaves the family's role headers out,
    for an endpoint that would escape or refuse them. Raises `MessageError` and `UnknownDialectError`.
    """
    spoken = _resolve(dialect)
    declared = read_tools(tools)
    read = read_messages(list(map(_readable, messages)) if isinstance(messages, list | tuple) else messages)
    pairs = zip(messages, spoken.answered(read), strict=True)
    history: list[dict[str, Any]] = []
    for is_result, run in groupby(pairs, key=lambda pair: pair[1].role == "tool"):
        if is_result:
            results = [message.as_result() for _, message in run]
            write = spoken.results_text if role_tokens else spoken.bare_results_text
            history.append({"role": "user", "content": without_surrogates(write(results))})
            continue
        history.extend(_plain(original, message, spoken, declared) for original, message in run)
    return history


def render_tool_prompt(tools: Sequence[ToolLike], dialect: str | Dialect) -> str:
    """What tells a model about its tools: one JSON object a line between `<tools>` tags, then the dialect's guide.

    Raises `MessageError` for tools that are not well-formed and `UnknownDialectError`.
    """
    spoken = _resolve(dialect)
    declared = read_tools(tools)
    if declared is None:
        raise MessageError("tools", "expected a list of tools, found None")
    catalogue = [compact_json(tool.definition) for tool in declared]
    return without_surrogates("\n".join(["<tools>", *catalogue, "</tools>", "", spoken.prompt]))


def _resolve(dialect: str | Dialect) -> Dialect:
    return dialect if isinstance(dialect, Dialect) else get_dialect(dialect)


def _neutralized(messages: Sequence[Message], dialect: Dialect, *, escape: bool) -> Iterator[Message]:
    """The messages without control tokens in what a caller wrote; an assistant's own texts stay as they are."""
    alternatives = "|".join(re.escape(token) for token in sorted(dialect.control_tokens, key=len, reverse=True))
    # A look-ahead, so that a token that begins inside another one is found as well.
    token = re.compile(f"(?=({alternatives})).", re.DOTALL)
    for index, message in enumerate(messages):
        if message.role == "assistant":
            yield message
            continue
        guide = dialect.prompt.strip() if message.role in ("system", "developer") else ""
        texts = {key: text for key in _CALLER_TEXTS if (text := getattr(message, key))}
        for key, text in texts.items():
            parts = text.split(guide) if guide else [text]
            if not escape and (hit := next(filter(None, map(token.search, parts)), None)):
                problem = f"expected no control token of the dialect {dialect.name!r}, found {hit[1]}"
                raise MessageError(f"messages[{index}].{key}", problem)
            texts[key] = guide.join(token.sub(rf"\g<0>{_ZERO_WIDTH_SPACE}", part) for part in parts)
        yield replace(message, **texts)


def _readable(message: MessageLike) -> MessageLike:
    """The message, without parts that pass through unread: the endpoint may well know images."""
    if not isinstance(message, Mapping) or message.get("role") not in ("system", "developer", "user"):
        return message
    return {**message, "content": None} if isinstance(message.get("content"), list | tuple) else message


def _plain(original: MessageLike, message: Message, dialect: Dialect, tools: Tools) -> dict[str, Any]:
    if message.tool_calls:
        text = without_surrogates(dialect.assistant_text(message, tools))
        return _as_dict(Message("assistant", text, name=message.name))
    return dict(original) if isinstance(original, Mapping) else _as_dict(original)


def _as_dict(message: Message) -> dict[str, Any]:
    optional = {"reasoning_content": message.reasoning, "name": message.name}
    return {"role": message.role, "content": message.content} | {key: text for key, text in optional.items() if text}
