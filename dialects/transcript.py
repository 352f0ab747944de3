"""Conversations as text: a whole transcript, a history for endpoints without tools, the prompt that declares tools.

`render_transcript` writes what a model of the family reads, role headers included. `encode_history` keeps the messages
and turns only calls and results into plain text, for an endpoint that writes role headers itself and knows no tools.
`render_tool_prompt` is the system text that goes with either: the tools, and how to call them in the dialect.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Literal, TypeAlias

from dialects.engine.dialect import Dialect, Tools
from dialects.engine.rendering import compact_json, without_surrogates
from dialects.factory import get_dialect
from dialects.injection import Neutralizer
from dialects.messages import (
    Message,
    MessageError,
    MessageLike,
    ToolLike,
    read_messages,
    read_tools,
)
from dialects.templates import TemplateError, find_template, templates_of, tokens_of
from dialects.templates import write as write_template

__all__ = ["TemplateError", "encode_history", "render_tool_prompt", "render_transcript", "templates"]

Neutralize: TypeAlias = Literal["keep", "escape", "raise"]

_NEUTRALIZE = ("keep", "escape", "raise")


def templates(dialect: str | Dialect) -> tuple[str, ...]:
    """The names of the vendor templates that `render_transcript` can write for a dialect."""
    return templates_of(_resolve(dialect).name)


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
    """A conversation as the model reads it: in the dialect's in-band form, or as its vendor's chat template writes it.

    Without `template`, `tools` serves only to type the values of the calls (to declare tools to the model, put
    `render_tool_prompt` into a system message), and the messages are always normalised: developer is system, parts are
    joined. `add_generation_prompt` appends what stands before an assistant's body.

    With the name of a `template` (`templates` lists a dialect's, `template_for_model` finds one) the text is that of
    the vendor's own chat template, its tools and its generation prompt included. `template_options` are the vendor's
    own too, and `now` is the date where a template prints one. Messages are normalised first where the vendor's
    template would print nonsense or fail; `normalise=False` gives its own output, nonsense included.

    `neutralize` says what to do with control tokens in texts that come from outside: of system, user and tool messages,
    of tools, and of the names, ids and arguments of calls. Kept, they can pass for turns and calls: a tool's result may
    then give orders. `keep` them, `escape` them (a zero-width space behind the first character; they read the same) or
    `raise`. The dialect's own guide in a system message is exempt.

    Raises `MessageError` for messages or tools that are not well-formed and for tokens that are not wanted;
    `UnknownDialectError` for a dialect, and `TemplateError` for a template or an option of it that does not exist; also
    `TemplateError` where the template refuses the conversation; `TypeError` for an option without a template.
    """
    spoken = _resolve(dialect)
    chosen = None if template is None else find_template(spoken.name, template)
    if chosen is None and template_options:
        names = ", ".join(map(repr, template_options))
        raise TypeError(f"render_transcript() has no option {names}; the in-band form (no template) takes none")
    if neutralize not in _NEUTRALIZE:
        raise ValueError(f"neutralize is one of {', '.join(_NEUTRALIZE)}, not {neutralize!r}")
    if neutralize != "keep":
        ends = (template_options.get("bos_token"), template_options.get("eos_token"))
        given = (token for token in ends if isinstance(token, str))
        tokens = (*spoken.control_tokens, *tokens_of(spoken.name), *given)
        safe = Neutralizer(spoken.name, tokens, guide=_guide_of(spoken), escape=neutralize == "escape")
        messages, tools = safe.messages(messages), safe.tools(tools)
    if chosen is None:
        text = spoken.transcript_text(read_messages(messages), read_tools(tools))
        return without_surrogates(text + spoken.generation_prompt if add_generation_prompt else text)
    return write_template(
        chosen,
        messages,
        tools=tools,
        add_generation_prompt=add_generation_prompt,
        normalise=normalise,
        now=now,
        options=template_options,
    )


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


def _guide_of(dialect: Dialect) -> str:
    try:
        return dialect.prompt.strip()
    except FileNotFoundError:  # a dialect that can only be written has none
        return ""


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
