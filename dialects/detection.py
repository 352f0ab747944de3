"""Which dialect a model speaks, judged by its id or its chat template, and which template it has, with the reason.

Ambiguity and ignorance are answers too. (What a stream says of its dialect, the scanner `auto` finds out.)
"""

import re
from functools import cache

from dialects.auto import Match, has_plain_tags
from dialects.engine.dialect import Dialect
from dialects.factory import all_dialects
from dialects.messages import Message, ToolCall, ToolResult
from dialects.templates import FAMILIES

__all__ = ["Match", "dialect_for_model", "dialect_for_template", "template_for_model"]

_NOT_READ_YET = {
    "Gemma before 4": r"gemma(?![-_ ]?4)",
    "Llama 4": r"llama[-_ ]?4",
    "Hermes before 2 Pro": r"hermes",
    "Nemotron": r"nemotron[-_ ]?(?:super|ultra|nano)",
    "xLAM": r"xlam",
    "Groq Tool Use": r"groq.*tool[-_ ]?use",
    "Dolphin": r"dolphin",
}
"""Families whose dialect this package does not have. An id that names one of them beside a family that it has (a
distilled or a finetuned model) is not answered with the other's dialect, unless that one goes first."""

_SIZE = re.compile(r"(?<![a-z\d.])\d+(?:\.\d+)?b(?:it)?(?![a-z\d])", re.IGNORECASE)
"""A number of parameters, or of bits: `medgemma-4b` is no Gemma 4, and `open_llama_3b` no Llama 3."""

_POINT = re.compile(r"(?<=\d)[p_-](?=\d(?![\d.]))", re.IGNORECASE)
"""How hosts that allow no point in an id write that of a version: `kimi-k2p5`, `minimax-m2-5`. With more digits behind
it, it is no point but stands before a date: `Kimi-K2-0905`."""


def _spelled(model_id: str) -> str:
    """An id as the patterns have it: without sizes, and with points in versions."""
    return _POINT.sub(".", _SIZE.sub("", model_id))


def dialect_for_model(model_id: str) -> Match:
    """The dialect that the models with this id speak, by the patterns that each dialect has for them.

    Where several match, a dialect that models of other families were trained to speak goes first:
    `Hermes-3-Llama-3.1-8B` speaks hermes. Raises TypeError if the id is no str.
    """
    if not isinstance(model_id, str):
        raise TypeError(f"a model id is a str, not {type(model_id).__name__}")
    spelled = _spelled(model_id)
    found = [dialect for dialect in all_dialects() if re.search(dialect.models, spelled, re.IGNORECASE)]
    first = min((dialect.rank for dialect in found), default=0)
    best = [dialect for dialect in found if dialect.rank == first]
    other = next((name for name, known in _NOT_READ_YET.items() if re.search(known, spelled, re.IGNORECASE)), None)
    if other is not None and first == 0:
        return Match(None, (), f"{model_id!r} names the family {other}, whose dialect this package does not read yet")
    names = tuple(dialect.name for dialect in best)
    if not names:
        return Match(None, (), f"no dialect has a pattern that fits {model_id!r}")
    if len(names) > 1:
        return Match(None, names, f"the patterns of {' and '.join(names)} all fit {model_id!r}")
    return Match(names[0], names, f"{model_id!r} fits the pattern of {best[0].title}: {best[0].models}")


# Chat templates.

_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\([\"'])")
_SAMPLE_CALL = ToolCall("call_1", "f", {"key": "text"})
_SAMPLE_RESULT = ToolResult("call_1", "f", "text")


def dialect_for_template(text: str) -> Match:
    """The dialect whose calls a chat template writes; `text` is the template's source (Jinja, as a rule).

    It is the dialect whose call markers, in one of its forms, the text holds; of several, the one with the most of
    them. Where two dialects write calls alike, the place of the results decides, if the text names it. A template that
    writes the turns of a family but none of its calls is not answered with that family. Raises TypeError if the text is
    no str.
    """
    if not isinstance(text, str):
        raise TypeError(f"a chat template is a str, not {type(text).__name__}")
    text = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else escape[2], text)
    fitting = {dialect: marks for dialect in all_dialects() if (marks := _marks_in(text, dialect))}
    most = max(map(len, fitting.values()), default=0)
    alike = [dialect for dialect, marks in fitting.items() if len(marks) == most]
    if not alike:
        return Match(None, (), "it writes the calls of no dialect that this package has")
    written = f"it writes calls with {', '.join(fitting[alike[0]])}"
    if len(alike) == 1:
        return Match(alike[0].name, (alike[0].name,), written)
    placed = [dialect for dialect in alike if _results_header(dialect) in text]
    names = tuple(dialect.name for dialect in placed or alike)
    if len(names) > 1:
        return Match(None, names, f"{written}, as {' and '.join(names)} do")
    return Match(names[0], names, f"{written}, and results behind {_results_header(placed[0])}")


def _marks_in(text: str, dialect: Dialect) -> tuple[str, ...]:
    """The marks of that form of a dialect's calls which the text holds, and of which it holds the most."""
    held = (marks for marks in _forms(dialect) if all(mark in text for mark in marks))
    return max(held, key=len, default=())


@cache
def _forms(dialect: Dialect) -> tuple[tuple[str, ...], ...]:
    """What a template holds that writes the dialect's calls: for each form all control tokens of a call, in their
    order, and where nobody writes such a token by chance, any that a turn without calls does not have. (What only
    ends a call is not enough: other families end theirs with `<|tool_call_end|>`, too.)"""
    call = dialect.render_assistant_tool_calls([_SAMPLE_CALL])
    written = tuple(sorted({token for token in dialect.control_tokens if token in call}, key=call.index))
    if has_plain_tags(dialect):
        return (written, *dialect.call_marks)
    turn = dialect.transcript_text([Message("assistant", "text", reasoning="text")], None)
    return (written, *dialect.call_marks, *((token,) for token in written if token not in turn and "end" not in token))


@cache
def _results_header(dialect: Dialect) -> str:
    """What a turn of results begins with, up to the first result."""
    results = dialect.results_turn_text([_SAMPLE_RESULT])
    return results[: results.index(_SAMPLE_RESULT.content)].partition("\n")[0]


def template_for_model(model_id: str) -> Match:
    """The vendor's template that the model with this id has, among those that `render_transcript` can write.

    The family is found first, as for a dialect, then its template. A model of a family that none of the family's
    templates is known to belong to is not answered with another one's. Raises TypeError if the id is no str.
    """
    if not isinstance(model_id, str):
        raise TypeError(f"a model id is a str, not {type(model_id).__name__}")
    spelled = _spelled(model_id)
    found = [family for family in FAMILIES if re.search(family.models, spelled, re.IGNORECASE)]
    best = [family for family in found if family.rank == min(it.rank for it in found)]
    if not best:
        return Match(None, (), f"no family that has templates fits {model_id!r}")
    fitting = [it for family in best for it in family.templates if re.search(it.models, spelled, re.IGNORECASE)]
    names = tuple(template.name for template in fitting)
    families = " and ".join(family.dialect for family in best)
    if not names:
        known = ", ".join(template.name for family in best for template in family.templates)
        return Match(None, (), f"{model_id!r} is of the family {families}, but none of its templates fits: {known}")
    if len(names) > 1:
        return Match(None, names, f"the patterns of {' and '.join(names)} all fit {model_id!r}")
    return Match(names[0], names, f"{model_id!r} is of the family {families} and fits the pattern {fitting[0].models}")
