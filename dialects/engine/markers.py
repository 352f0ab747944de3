"""Find the next marker of a set, or hold back what may be the beginning of one.

`MarkerSet.find` answers both questions that a streaming scanner has with one search: where is the next marker, and up
to where may the text in front of it leave? Its pattern matches a marker, or the beginning of one at the very end of the
text, and nothing else; so a lone `<` costs no more than any other character once what follows it is there. The longest
marker wins, and a complete one at the end of the text is held while a longer one may still be coming. Nobody need ask
about a chunk without any of `leads`, the markers' first characters.

`TagSet` adds tags to them that are known by their names.

The patterns are built for the standard library's `re`. The partial matches of the `regex` package give the same answer,
but searching with them takes several times as long; the dialects use them where a continuation is no literal. Compiling
one takes longer than importing a module, and a process needs few of those of all dialects: so that waits for the first
`find`.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

__all__ = ["NAMESPACE", "NO_MARK", "Mark", "MarkerSet", "TagSet", "begun"]

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


class Mark(NamedTuple):
    """What stands before the name in a tag."""

    parts: tuple[str, ...]
    """Patterns of one character each, which may be repeated."""
    is_optional: bool = False

    @property
    def pattern(self) -> str:
        """The source of a pattern that matches it."""
        whole = "".join(self.parts)
        return f"(?:{whole})?" if self.is_optional else whole

    def begun(self, rest: str) -> str:
        """The source of a pattern that matches it and the rest, or at the end of the text the beginning of both."""
        source = rest
        for part in reversed(self.parts):
            source = rf"(?:{part}{source}|\Z)"
        return f"(?:{source}|{rest})" if self.is_optional else source


NO_MARK = Mark(())
NAMESPACE = Mark(("[A-Za-z]", r"[\w.-]{0,31}+", ":"), is_optional=True)


class MarkerSet:
    """A set of literal markers, whose patterns are compiled when they are first needed."""

    __slots__ = ("_at_end", "_longer", "_longest", "_next", "leads", "literals")

    def __init__(self, literals: Iterable[str]) -> None:
        self.literals = frozenset(literals)
        if not self.literals or "" in self.literals:
            raise ValueError("a marker set needs at least one literal, and none of them empty")
        self.leads = tuple(dict.fromkeys(literal[0] for literal in sorted(self.literals)))
        self._longest = max(map(len, self.literals))
        self._longer = {
            literal for literal in self.literals if any(o != literal and o.startswith(literal) for o in self.literals)
        }
        """Those with which a longer one begins."""
        self._next: re.Pattern[str] | None = None
        self._at_end: re.Pattern[str] | None = None

    def find(self, text: str, start: int, *, final: bool = False) -> tuple[int, str | None]:
        """The next marker in `text[start:]` as (index, marker); or (index, None): no marker, and from that index on
        `text` may be the beginning of one. `final` says that nothing will follow, so nothing is held."""
        found = ((self._at_end if final else self._next) or self._compile(final=final)).search(text, start)
        if found is None:
            return len(text), None
        marker = found[0]
        if not final and found.end() == len(text) and (marker not in self.literals or marker in self._longer):
            return found.start(), None
        return found.start(), marker

    def split(self, text: str) -> tuple[str, str] | None:
        """The text up to what may be the beginning of a marker, and the rest; None: it holds a whole one."""
        found = (self._next or self._compile()).search(text)
        if found is None:
            return text, ""
        rest = found[0]
        if found.end() < len(text) or rest in self.literals:
            return None
        return text[: -len(rest)], rest

    def held_suffix(self, text: str, start: int) -> int:
        """Where the suffix of `text[start:]` begins that is a proper prefix of a marker; `len(text)` if none is."""
        for found in (self._next or self._compile()).finditer(text, max(start, len(text) - self._longest + 1)):
            if found.end() == len(text) and (found.group() not in self.literals or found.group() in self._longer):
                return found.start()
        return len(text)

    def without(self, literals: Iterable[str]) -> "MarkerSet":
        """A set that lacks some of these markers."""
        return _subset(self, frozenset(literals))

    def _compile(self, *, final: bool = False) -> re.Pattern[str]:
        pattern = re.compile(self._source(final=final))
        if final:
            self._at_end = pattern
        else:
            self._next = pattern
        return pattern

    def _source(self, *, final: bool) -> str:
        """The source of a pattern that finds a marker and, unless `final`, what begins one at the end of the text."""
        return _any_of(self.literals) if final else _any_begun(self.literals)


class TagSet(MarkerSet):
    """Literal markers, and tags: a marker is then the beginning of a tag, up to the end of its name.

    `opening` and `closing` are the names of the tags that count, `closing_too` is a pattern of other names of closing
    ones. Before the name stands the `mark`; both have at most `_LONGEST_TAG` characters, and no `<` among them.
    """

    __slots__ = ("_arguments",)

    def __init__(
        self,
        literals: Iterable[str] = (),
        *,
        opening: Iterable[str] = (),
        closing: Iterable[str] = (),
        closing_too: str = "",
        mark: Mark,
    ) -> None:
        self._arguments = (tuple(opening), tuple(closing), closing_too, mark)
        literals = frozenset(literals)
        super().__init__(literals or "<")  # which every tag begins with
        self.literals = literals
        self.leads = tuple(dict.fromkeys(("<", *self.leads)))
        self._longest = max(_LONGEST_TAG, self._longest)

    def without(self, literals: Iterable[str]) -> "TagSet":
        """A set that lacks some of the literals."""
        return _tag_set(self.literals - frozenset(literals), *self._arguments)

    def _source(self, *, final: bool) -> str:
        opening, closing, closing_too, mark = self._arguments
        kinds = [kind for kind in (("", opening, ""), ("/", closing, closing_too)) if kind[1]]
        if not kinds:
            return super()._source(final=final) or "(?!)"
        if final:
            tags = "|".join(_tag(mark, *kind) for kind in kinds)
            return "|".join(filter(None, [rf"<(?:{tags})(?=[\s=/>]|\Z)", _any_of(self.literals)]))
        begun_tags = "|".join(_begun_tag(mark, *kind) for kind in kinds)
        return "|".join(filter(None, [rf"<(?:{begun_tags}|\Z)", _any_begun(self.literals)]))


def _any_of(literals: Iterable[str]) -> str:
    """The source of a pattern that matches one of the literals, the longest."""
    return "|".join(map(re.escape, sorted(literals, key=len, reverse=True)))


def _any_begun(literals: Iterable[str]) -> str:
    """As `begun`, but what it matches has a character at least."""
    rests_of: dict[str, list[str]] = {}
    for literal in sorted(literals):
        rests_of.setdefault(literal[0], []).append(literal[1:])
    return "|".join(re.escape(lead) + begun(rests) for lead, rests in rests_of.items())


def _tag(mark: Mark, slash: str, names: tuple[str, ...], other_names: str) -> str:
    """The source of a pattern of tags behind their `<`, up to the end of their names."""
    return f"{slash}{mark.pattern}(?:{'|'.join([*map(re.escape, names), *filter(None, [other_names])])})"


def _begun_tag(mark: Mark, slash: str, names: tuple[str, ...], other_names: str) -> str:
    """The same with what follows the name, or at the end of the text of what begins one."""
    whole = "|".join([*map(re.escape, names), *filter(None, [other_names])])
    begun_name = f"(?:{begun(names)}|{other_names})" if other_names else begun(names)
    return slash + mark.begun(rf"(?:(?:{whole})(?=[\s=/>])|{begun_name}\Z)")


@cache
def _tag_set(
    literals: frozenset[str], opening: tuple[str, ...], closing: tuple[str, ...], closing_too: str, mark: Mark
) -> TagSet:
    return TagSet(literals, opening=opening, closing=closing, closing_too=closing_too, mark=mark)


@cache
def _subset(markers: MarkerSet, left_out: frozenset[str]) -> MarkerSet:
    return MarkerSet(markers.literals - left_out)
