"""Which dialect a model speaks and which chat template it has, judged by its id, with the reason.

Ambiguity and ignorance are answers too.
"""

import re

import msgspec

from dialects.factory import all_dialects
from dialects.templates import FAMILIES

__all__ = ["Match", "dialect_for_model", "template_for_model"]

_NOT_READ_YET = {
    "DeepSeek": r"deepseek",
    "Qwen's XML form": r"qwen[-_ ]?3[-_ ]?coder|qwen[-_ ]?3\.[5-9]",
    "MiniMax": r"minimax",
    "Gemma": r"gemma",
    "Llama 4": r"llama[-_ ]?4",
    "Claude": r"claude",
    "Gemini": r"gemini",
}
"""Families whose dialect this package does not have. An id that names one of them beside a family that it has (a
distilled model) is not answered with the other's dialect, unless that one goes first."""


class Match(msgspec.Struct, frozen=True):
    """An answer. `name` is None where nothing fits, or more than one thing; `candidates` are all that fit."""

    name: str | None
    candidates: tuple[str, ...]
    reason: str


def dialect_for_model(model_id: str) -> Match:
    """The dialect that the models with this id speak, by the patterns that each dialect has for them.

    Where several match, a dialect that models of other families were trained to speak goes first:
    `Hermes-3-Llama-3.1-8B` speaks hermes. Raises TypeError if the id is no str.
    """
    if not isinstance(model_id, str):
        raise TypeError(f"a model id is a str, not {type(model_id).__name__}")
    found = [dialect for dialect in all_dialects() if re.search(dialect.models, model_id, re.IGNORECASE)]
    first = min((dialect.rank for dialect in found), default=0)
    best = [dialect for dialect in found if dialect.rank == first]
    other = next((name for name, known in _NOT_READ_YET.items() if re.search(known, model_id, re.IGNORECASE)), None)
    if other is not None and first == 0:
        return Match(None, (), f"{model_id!r} names the family {other}, whose dialect this package does not read yet")
    names = tuple(dialect.name for dialect in best)
    if not names:
        return Match(None, (), f"no dialect has a pattern that fits {model_id!r}")
    if len(names) > 1:
        return Match(None, names, f"the patterns of {' and '.join(names)} all fit {model_id!r}")
    return Match(names[0], names, f"{model_id!r} fits the pattern of {best[0].title}: {best[0].models}")


def template_for_model(model_id: str) -> Match:
    """The vendor's template that the model with this id has, among those that `render_transcript` can write.

    The family is found first, as for a dialect, then its template. A model of a family that none of the family's
    templates is known to belong to is not answered with another one's. Raises TypeError if the id is no str.
    """
    if not isinstance(model_id, str):
        raise TypeError(f"a model id is a str, not {type(model_id).__name__}")
    found = [family for family in FAMILIES if re.search(family.models, model_id, re.IGNORECASE)]
    best = [family for family in found if family.rank == min(it.rank for it in found)]
    if not best:
        return Match(None, (), f"no family that has templates fits {model_id!r}")
    fitting = [it for family in best for it in family.templates if re.search(it.models, model_id, re.IGNORECASE)]
    names = tuple(template.name for template in fitting)
    families = " and ".join(family.dialect for family in best)
    if not names:
        known = ", ".join(template.name for family in best for template in family.templates)
        return Match(None, (), f"{model_id!r} is of the family {families}, but none of its templates fits: {known}")
    if len(names) > 1:
        return Match(None, names, f"the patterns of {' and '.join(names)} all fit {model_id!r}")
    return Match(names[0], names, f"{model_id!r} is of the family {families} and fits the pattern {fitting[0].models}")
