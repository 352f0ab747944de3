"""How a transcript falls apart into turns again: the mirror of what writes them, as data.

A dialect says what stands before a turn of each role, what ends a turn, and how one result looks in a turn of results.
Bodies are left as they are: an assistant's is for the dialect's scanner, the others' are text.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
import regex

__all__ = ["Turn", "Turns", "of_each_role"]

BEFORE_ANY_TURN = "system"
"""Whose text it is that stands before the first header."""


def of_each_role(pattern: str, **words: str) -> dict[str, str]:
    """The headers of the system, the user and the assistant, where they differ only in the word ROLE: the role's name,
    or what `words` has for it."""
    return {role: pattern.replace("ROLE", words.get(role, role)) for role in ("system", "user", "assistant")}


class Turn(msgspec.Struct, frozen=True):
    """One turn, or one result of a turn of results: its role, its body, the author and the call that it names, and
    whether it says that it is an error."""

    role: str
    body: str
    name: str | None = None
    call_id: str | None = None
    is_error: bool = False


class Turns(msgspec.Struct, frozen=True):
    """The turns of a dialect. The patterns are those of the `regex` package.

    headers: by role, what stands before a body; `tool` for results. Tried in their order. The groups `name` and `id`,
      where a pattern has them, are the author and the call that is answered. A header that matches no characters is
      only a place: where the same role is speaking already, no new turn begins there.
    end: what may stand behind a body and is no part of it.
    result: in a turn of results, one of them and what stands around them all, with the group `text`, and `name`, `id`
      and `error` if they are there; without it the body is the result. What follows the last one is the user's, or
      where the header was only a place, the assistant's.
    start: what may stand before the whole transcript.
    begins_with_text: whether the system's text has no header, so that a transcript may begin with it.
    result_text: makes the result's text out of what `text` matched, where they are not the same.
    """

    headers: Mapping[str, str]
    end: str = r"\Z"
    result: str | None = None
    start: str = ""
    begins_with_text: bool = False
    result_text: Callable[[str], str] = str

    def read(self, text: str) -> Iterator[Turn]:
        """The turns of a transcript, in order. Text before the first header is the system's; blank text is nothing."""
        found = list(self._headers_in(text))
        first = found[0].start() if found else len(text)
        opening = regex.sub(rf"\A(?:{self.start})", "", text[:first]) if self.start else text[:first]
        if opening.strip():
            yield Turn(BEFORE_ANY_TURN, self._without_end(opening))
        ends = [*(header.start() for header in found[1:]), len(text)]
        for header, end in zip(found, ends, strict=bool(found)):
            body = text[header.end() : end]
            yield from self._turn(header, body)

    def are_in(self, text: str) -> bool:
        """Whether a text holds the header of a turn, or begins with what stands before them all."""
        return self._is_started(text) or next(self._headers_in(text), None) is not None

    def begin(self, text: str) -> bool:
        """Whether a text begins as a transcript does, so that it is no assistant's body."""
        if self._is_started(text):
            return True
        if self.begins_with_text and any(self._role(header) == "user" for header in self._headers_in(text)):
            return True
        header = _alternatives(self).match(text)
        return header is not None and header.end() > header.start()

    def _is_started(self, text: str) -> bool:
        start = regex.match(rf"(?:{self.start})\s*", text) if self.start else None
        return start is not None and start.end() > 0

    def _headers_in(self, text: str) -> "Iterator[regex.Match[str]]":
        speaking = None
        for header in _alternatives(self).finditer(text):
            role = self._role(header)
            if role != speaking or header.end() > header.start():
                speaking = role
                yield header

    def _role(self, header: "regex.Match[str]") -> str:
        return next(role for role in self.headers if header[role] is not None)

    def _turn(self, header: "regex.Match[str]", body: str) -> Iterator[Turn]:
        role = self._role(header)
        if role != "tool" or self.result is None:
            yield Turn(role, self._without_end(body), **_named(header))
            return
        behind = 0
        while result := _result(self.result).match(body, behind):
            yield Turn("tool", self.result_text(result["text"]), **_named(result))
            behind = result.end()
        rest = self._without_end(body[behind:])
        if rest.strip():
            is_place = header.end() == header.start()
            yield Turn("tool" if not behind else "assistant" if is_place else "user", rest)

    def _without_end(self, body: str) -> str:
        return regex.sub(rf"(?:{self.end})\Z", "", body)


@cache
def _patterns(headers: tuple[tuple[str, str], ...]) -> "regex.Pattern[str]":
    return regex.compile("|".join(f"(?P<{role}>{pattern})" for role, pattern in headers))


@cache
def _result(pattern: str) -> "regex.Pattern[str]":
    return regex.compile(rf"\s*(?:{pattern})", regex.DOTALL)


def _alternatives(turns: Turns) -> "regex.Pattern[str]":
    return _patterns(tuple(turns.headers.items()))


def _named(match: "regex.Match[str]") -> dict[str, Any]:
    groups = match.groupdict()
    return {
        "name": groups.get("name") or None,
        "call_id": groups.get("id") or None,
        "is_error": bool(groups.get("error")),
    }
