"""What a tool may answer, and what the model reads of it.

A tool returns text, a list of content parts, any JSON value, or one of `ToolOk`, `ToolError` and `ToolRejected`. Each
becomes a `ToolOutcome`: a `ToolResult` (so that every renderer takes it) with the kind of its error.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec
from pydantic_core import to_jsonable_python

from dialects.engine.rendering import compact_json
from dialects.messages import ToolResult

__all__ = [
    "ErrorKind",
    "ToolError",
    "ToolOk",
    "ToolOutcome",
    "ToolRejected",
    "cut_in_the_middle",
    "normalised",
    "text_for_the_model",
]

ErrorKind: TypeAlias = Literal[
    "unknown-tool",  # no tool has the name
    "malformed-arguments",  # the arguments are no object
    "invalid-arguments",  # they are one, but not what the tool takes
    "blocked",  # a hook forbade the call
    "rejected",  # whoever approves calls said no, or the tool did
    "timed-out",
    "cancelled",
    "raised",  # the tool raised an exception
    "unwritable-output",  # what it returned is no JSON value
    "failed",  # the tool said itself that it failed
]
"""Why a call has no good result."""

_PART_TYPES: Final = frozenset({"text", "image_url", "input_image", "input_audio", "audio_url", "video_url", "file"})


class ToolOk(msgspec.Struct, frozen=True):
    """The tool did what it was asked. The model reads `output` and then `message`, if there is one."""

    output: object = ""
    message: str = ""


class ToolError(msgspec.Struct, frozen=True):
    """The tool failed. The model reads `message` and then `output`; `brief` is for a person who watches."""

    message: str
    brief: str = ""
    output: object = ""
    kind: ErrorKind = "failed"


class ToolRejected(ToolError, frozen=True):  # noqa: N818 (the answer no, not an exception)
    """The call was not permitted."""

    message: str = "The user does not permit this call. Do not repeat it; go on without it, or ask."
    brief: str = "Rejected"
    kind: ErrorKind = "rejected"


class ToolOutcome(ToolResult, frozen=True):
    """The result of one call: `content` is what the model reads, `kind` says what went wrong, if something did.

    `brief` is for a person who watches; `seconds` is how long the tool ran, 0 if it did not.
    """

    kind: ErrorKind | None = None
    brief: str = ""
    seconds: float = 0.0


def normalised(returned: object) -> ToolOk | ToolError:
    """What a tool returned as one of the two, its output as text."""
    answer = returned if isinstance(returned, ToolOk | ToolError) else ToolOk(returned)
    try:
        return msgspec.structs.replace(answer, output=_as_text(answer.output))
    except (ValueError, RecursionError) as error:
        found = type(answer.output).__name__
        message = f"The tool returned a {found}, which cannot be written as JSON: {error}"
        return ToolError(message, "Unusable output", kind="unwritable-output")


def text_for_the_model(answer: ToolOk | ToolError) -> str:
    """The content of a result. Renderers do not mark errors, so the text says that it is one."""
    output = str(answer.output)
    if isinstance(answer, ToolOk):
        return "\n\n".join(filter(None, (output, str(answer.message))))
    return "\n\n".join(filter(None, (f"Error: {answer.message}", output)))


def cut_in_the_middle(text: str, limit: int) -> str:
    """At most `limit` characters: beginning and end of the text, and between them how much is missing."""
    if len(text) <= limit:
        return text
    # The note counts what it replaces, and its own length depends on that number.
    kept = limit - len(_note(len(text)))
    head, tail = kept - kept // 2, kept // 2
    return text[:head] + _note(len(text) - kept) + text[len(text) - tail :]


def _note(missing: int) -> str:
    return f"\n[… {missing:,} characters left out …]\n"


def _as_text(output: object) -> str:
    if isinstance(output, str):
        return output
    if isinstance(output, list) and output and all(map(_is_part, output)):
        return "".join(_part_text(part) for part in output)
    return compact_json(to_jsonable_python(output, inf_nan_mode="null"))


def _is_part(item: object) -> bool:
    if not isinstance(item, Mapping):
        return False
    kind = item.get("type")
    return isinstance(kind, str) and kind in _PART_TYPES and kind in item


def _part_text(part: Mapping[str, object]) -> str:
    """A part as text; what is no text cannot stand in a transcript."""
    return str(part["text"]) if part["type"] == "text" else f"[{part['type']}: only text can be shown here]"
