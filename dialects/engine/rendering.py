"""Pieces that several renderers share: JSON as a dialect writes it, and text that can be encoded."""

import json
import re

__all__ = ["compact_json", "without_surrogates"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def compact_json(value: object) -> str:
    """JSON on one line without spaces: keys in their order, non-ASCII characters and `<`, `>`, `&` as they are."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def without_surrogates(text: str) -> str:
    """The text with every lone surrogate replaced by U+FFFD; two that form a pair become their character."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
