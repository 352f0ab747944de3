"""Pieces that several renderers share: compact JSON, results between tags, and text that can be encoded."""

import json
from collections.abc import Iterable

from dialects.messages import ToolResult

__all__ = ["compact_json", "tagged_results", "without_surrogates"]


def compact_json(value: object) -> str:
    """JSON on one line without spaces: keys in their order, non-ASCII characters and `<`, `>`, `&` as they are."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def without_surrogates(text: str) -> str:
    """The text with every lone surrogate replaced by U+FFFD; two that form a pair become their character."""
    try:
        text.encode()  # much faster than looking for one
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def tagged_results(begin: str, results: Iterable[ToolResult], end: str) -> str:
    """The texts of results, each on lines of its own between two tags."""
    return "\n".join(f"{begin}\n{result.content}\n{end}" for result in results)
