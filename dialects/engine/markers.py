"""Find the next marker of a set, or hold back what may be the beginning of one.

`MarkerSet.find` answers both questions that a streaming scanner has with one search: where is the next marker, and up
to where may the text in front of it leave? Its pattern matches a marker, or the beginning of one at the very end of the
text, and nothing else; so a lone `<` costs no more than any other character once what follows it is there. The longest
marker wins, and a complete one at the end of the text is held while a longer one may still be coming. Nobody need ask
about a chunk without any of `leads`, the markers' first characters.

`TagSet` adds tags to them that are known by their names.

The pattern is built for the standard library's `re`. The partial matches of the `regex` package give the same answer,
but searching with them takes several times as long; the dialects use them where a continuation is no literal.
"""

import re
from collections.abc import Iterable
from functools import cache

import regex

__all__ = ["PREFIX", "MarkerSet", "TagSet", "begun"]

PREFIX = r"(?:[A-Za-z][\w.-]{0,31}:)?"
"""What may stand before the name in a tag: a namespace."""

_LONGEST_TAG = 80
"""How many characters a tag has at most, up to the end of its name."""


def begun(literals: Iterable[str]) -> str:
    """The source of a pattern that matches one of the literals, or at the end of the text the beginning of one."""
    rests_of: dict[str, list[str]] = {}
    otherwise = r"\Z"
    for literal in literals:
        if literal:
            rests_of.setdefault(literal[0], []).append(literal[1:])
        else:
            otherwise = ""
    if not rests_of:
        return otherwise
    branches = [re.escape(lead) + begun(rests) for lead, rests in sorted(rests_of.items())]
    return f"(?:{'|'.join([*branches, otherwise])})"


class MarkerSet:
    """A compiled set of literal markers."""

    __slots__ = ("_begun", "_complete", "_longer", "_longest", "leads", "literals")

    def __init__(self, literals: Iterable[str]) -> None:
        self.literals = frozenset(literals)
        if not self.literals or "" in self.literals:
            raise ValueError("a marker set needs at least one literal, and none of them empty")
        rests_of: dict[str, list[str]] = {}
        for literal in sorted(self.literals):
            rests_of.setdefault(literal[0], []).append(literal[1:])
        self.leads = tuple(rests_of)
        self._begun = re.compile("|".join(re.escape(lead) + begun(rests) for lead, rests in rests_of.items()))
        self._complete = re.compile("|".join(map(re.escape, sorted(self.literals, key=len, reverse=True))))
        self._longest = max(map(len, self.literals))
        self._longer = {
            literal for literal in self.literals if any(o != literal and o.startswith(literal) for o in self.literals)
        }
        """Those with which a longer one begins."""

    def find(self, text: str, start: int, *, final: bool = False) -> tuple[int, str | None]:
        """The next marker in `text[start:]` as (index, marker); or (index, None): no marker, and from that index on
        `text` may be the beginning of one. `final` says that nothing will follow, so nothing is held."""
        found = (self._complete if final else self._begun).search(text, start)
        if found is None:
            return len(text), None
        marker = found.group()
        if not final and (marker not in self.literals or (found.end() == len(text) and marker in self._longer)):
            return found.start(), None
        return found.start(), marker

    def held_suffix(self, text: str, start: int) -> int:
        """Where the suffix of `text[start:]` begins that is a proper prefix of a marker; `len(text)` if none is."""
        for found in self._begun.finditer(text, max(start, len(text) - self._longest + 1)):
            if found.end() == len(text) and (found.group() not in self.literals or found.group() in self._longer):
                return found.start()
        return len(text)

    def without(self, literals: Iterable[str]) -> "MarkerSet":
        """A set that lacks some of these markers."""
        return _subset(self, frozenset(literals))


class TagSet(MarkerSet):
    """Literal markers, and tags: a marker is then the beginning of a tag, up to the end of its name.

    `opening` and `closing` are the names of the tags that count, `closing_too` is a pattern of other names of closing
    ones, `mark` one of what stands before the name. They must not match a `<`, and at most `_LONGEST_TAG` characters.
    """

    __slots__ = ("_arguments", "_at_end", "_begins", "_inner", "_tag")

    def __init__(
        self,
        literals: Iterable[str] = (),
        *,
        opening: Iterable[str] = (),
        closing: Iterable[str] = (),
        closing_too: str = "",
        mark: str,
    ) -> None:
        self._arguments = (tuple(opening), tuple(closing), closing_too, mark)
        self.literals = frozenset(literals)
        if self.literals:
            super().__init__(self.literals)
        else:
            self._longer = set()
        self._inner = {one for one in self.literals if any(one in literal[1:] for literal in self.literals)}
        """Those that stand in the middle of others, which may have begun before them."""
        self.leads = tuple(dict.fromkeys(("<", *(literal[0] for literal in sorted(self.literals)))))
        openers, closers = (list(map(re.escape, names)) for names in self._arguments[:2])
        kinds = [("", openers), ("/", closers + [closing_too] * bool(closing_too))]
        tag = "<(?:" + "|".join(f"{slash}{mark}(?:{'|'.join(names)})" for slash, names in kinds if names) + ")"
        literal = "".join(f"|{re.escape(one)}" for one in sorted(self.literals, key=len, reverse=True))
        self._complete = re.compile(rf"{tag}(?=[\s=/>]){literal}")
        self._at_end = re.compile(rf"{tag}(?=[\s=/>]|\Z){literal}")
        self._begins = re.compile(rf"<[^<>={'' if ' ' in mark else ' '}]*+\Z").match
        """Rules out most of what is no tag, at a fraction of the cost of a partial match."""
        self._tag = regex.compile(rf"{tag}(?=[\s=/>])")

    def find(self, text: str, start: int, *, final: bool = False) -> tuple[int, str | None]:
        """As `MarkerSet.find`."""
        found = (self._at_end if final else self._complete).search(text, start)
        if found is None:
            return (len(text) if final else self.held_suffix(text, start)), None
        marker = found.group()
        if not final and found.end() == len(text) and marker in self._longer:
            return found.start(), None
        if not final and marker in self._inner and (held := self.held_suffix(text, start)) < found.start():
            return held, None
        return found.start(), marker

    def held_suffix(self, text: str, start: int) -> int:
        """As `MarkerSet.held_suffix`. Only the last `<` of a text can begin a tag that is not complete."""
        held = super().held_suffix(text, start) if self.literals else len(text)
        lead = text.rfind("<", max(start, len(text) - _LONGEST_TAG), held)
        if lead >= 0 and self._begins(text, lead):
            tag = self._tag.match(text, lead, partial=True)
            if tag is not None and tag.partial:
                return lead
        return held

    def without(self, literals: Iterable[str]) -> "TagSet":
        """A set that lacks some of the literals."""
        return _tag_set(self.literals - frozenset(literals), *self._arguments)


@cache
def _tag_set(
    literals: frozenset[str], opening: tuple[str, ...], closing: tuple[str, ...], closing_too: str, mark: str
) -> TagSet:
    return TagSet(literals, opening=opening, closing=closing, closing_too=closing_too, mark=mark)


@cache
def _subset(markers: MarkerSet, left_out: frozenset[str]) -> MarkerSet:
    return MarkerSet(markers.literals - left_out)
