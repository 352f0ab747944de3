"""Find the next marker of a set, or hold back what may be the beginning of one.

A `MarkerSet` compiles its literals into one alternation, the longest first. `find` answers both questions that a
streaming scanner has: where is the next marker, and up to where may the text in front of it leave? Text that ends in a
proper prefix of a marker is held from there on; so is a complete marker at the very end of the text while a longer one
may still be coming. Nobody need ask for a chunk without any of `leads`, the markers' first characters.

The standard library's `re` does the searching (it skips to a possible first character at memory speed), and a set of all
proper prefixes settles the last few characters: measured, that is several times cheaper than a partial match.
"""

import re
from collections.abc import Iterable
from functools import cache

__all__ = ["MarkerSet"]


class MarkerSet:
    """A compiled set of literal markers."""

    __slots__ = ("_alternation", "_lead", "_prefixes", "_reach", "leads", "literals")

    def __init__(self, literals: Iterable[str]) -> None:
        self.literals = frozenset(literals)
        if not self.literals or "" in self.literals:
            raise ValueError("a marker set needs at least one literal, and none of them empty")
        self.leads = tuple(sorted({literal[0] for literal in self.literals}))
        longest_first = sorted(self.literals, key=len, reverse=True)
        self._alternation = re.compile("|".join(map(re.escape, longest_first)))
        self._lead = re.compile("[" + "".join(map(re.escape, self.leads)) + "]")
        self._prefixes = frozenset(literal[:n] for literal in self.literals for n in range(1, len(literal)))
        self._reach = len(longest_first[0]) - 1

    def find(self, text: str, start: int, *, final: bool = False) -> tuple[int, str | None]:
        """The next marker in `text[start:]` as (index, marker); or (index, None): no marker, and from that index on
        `text` may be the beginning of one. `final` says that nothing will follow, so nothing is held."""
        found = self._alternation.search(text, start)
        if final:
            return (found.start(), found.group()) if found else (len(text), None)
        held = self.held_suffix(text, start)
        if found is None or held <= found.start():
            return held, None
        return found.start(), found.group()

    def held_suffix(self, text: str, start: int) -> int:
        """Where the suffix of `text[start:]` begins that is a proper prefix of a marker; `len(text)` if none is."""
        end = len(text)
        lead = self._lead.search(text, max(start, end - self._reach))
        while lead is not None:
            index = lead.start()
            if text[index:] in self._prefixes:
                return index
            lead = self._lead.search(text, index + 1)
        return end

    def without(self, literals: Iterable[str]) -> "MarkerSet":
        """A set that lacks some of these markers."""
        return _subset(self, frozenset(literals))


@cache
def _subset(markers: MarkerSet, left_out: frozenset[str]) -> MarkerSet:
    return MarkerSet(markers.literals - left_out)
