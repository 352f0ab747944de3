"""Markers are found leftmost and longest, and only what may still become one is held."""

import re
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dialects.engine.markers import NAMESPACE, NO_MARK, Mark, MarkerSet, TagSet

_LITERALS = st.lists(st.text("<|ab", min_size=1, max_size=4), min_size=1, max_size=5, unique=True)
_TEXTS = st.text("<|abc", max_size=24)


def plainly(literals: list[str], text: str, start: int) -> tuple[int, str | None]:
    """The leftmost marker, the longest there."""
    for index in range(start, len(text)):
        here = [literal for literal in literals if text.startswith(literal, index)]
        if here:
            return index, max(here, key=len)
    return len(text), None


def may_grow(literals: list[str], text: str, index: int) -> bool:
    """Whether what follows the text may make a marker, or a longer one, of what begins at `index`."""
    rest = text[index:]
    return any(len(literal) > len(rest) and literal.startswith(rest) for literal in literals)


@given(_LITERALS, _TEXTS, st.integers(0, 24))
def test_in_a_finished_text_the_leftmost_longest_marker_is_found(literals: list[str], text: str, start: int) -> None:
    assume(start <= len(text))
    assert MarkerSet(literals).find(text, start, final=True) == plainly(literals, text, start)


@given(_LITERALS, _TEXTS, st.integers(0, 24))
def test_only_what_may_become_a_marker_is_held(literals: list[str], text: str, start: int) -> None:
    assume(start <= len(text))
    index, marker = MarkerSet(literals).find(text, start)
    held = next((at for at in range(start, len(text)) if may_grow(literals, text, at)), len(text))
    found, literal = plainly(literals, text, start)
    assert (index, marker) == ((found, literal) if literal and found < held else (min(held, found), None))


@pytest.mark.parametrize("make", [MarkerSet, partial(TagSet, opening=["a"], mark=NO_MARK)])
@given(literals=_LITERALS, text=_TEXTS, sizes=st.lists(st.integers(1, 5)))
@example(literals=["|a|", "<|a||"], text="<|a||b", sizes=[])
def test_a_text_in_pieces_holds_the_same_markers(
    make: Callable[[list[str]], MarkerSet], literals: list[str], text: str, sizes: list[int]
) -> None:
    markers = make(literals)

    def tokens(pieces: list[str]) -> list[str]:
        out: list[str] = []
        buffer = ""
        for number, piece in enumerate(pieces):
            buffer += piece
            final = number == len(pieces) - 1
            at = 0
            while True:
                index, marker = markers.find(buffer, at, final=final)
                out += list(buffer[at:index])
                at = index
                if marker is None:
                    break
                out.append(f"[{marker}]")
                at += len(marker)
            buffer = buffer[at:]
        assert not buffer
        return out

    pieces, rest = [], text
    for size in sizes:
        pieces.append(rest[:size])
        rest = rest[size:]
    assert tokens([*pieces, rest]) == tokens([text]) == tokens([*text, ""])


@given(_LITERALS, _TEXTS)
def test_text_without_a_lead_character_need_not_be_searched(literals: list[str], text: str) -> None:
    markers = MarkerSet(literals)
    if not any(lead in text for lead in markers.leads):
        assert markers.find(text, 0) == (len(text), None)


def test_characters_of_regular_expressions_are_literal() -> None:
    markers = MarkerSet(["[BOS]", "a.b", "^", "x-z", "]"])
    assert markers.find("aXb [BOS]", 0) == (4, "[BOS]")
    assert markers.find("y-^", 0) == (2, "^")
    assert markers.find("..]", 0) == (2, "]")


def test_a_set_may_leave_some_markers_out() -> None:
    markers = MarkerSet(["<think>", "</think>", "<tool>"])
    without = markers.without(["<think>", "</think>"])
    assert without.literals == {"<tool>"}
    assert without is markers.without(["</think>", "<think>"])
    assert markers.find("<think>", 0) == (0, "<think>")


@pytest.mark.parametrize("literals", [[], [""], ["a", ""]])
def test_a_set_without_a_marker_is_a_mistake(literals: list[str]) -> None:
    with pytest.raises(ValueError, match="at least one literal"):
        MarkerSet(literals)


_NAMES = ["invoke", "tool", "tool_calls"]
_TAG_TEXTS = st.lists(
    st.sampled_from(
        ["<", "</", ">", "/", "a:", "ns.1:", ":", "=", " ", "in", "voke", "invoke", "tool", "_calls", "\n", "x"]
    )
    | st.text("<>/ :=aintv", max_size=2),
    max_size=8,
).map("".join)
_MARKS = st.sampled_from([NO_MARK, NAMESPACE, Mark(("[|!]{1,2}", "D", " ?"))])


@given(_MARKS, _TAG_TEXTS, st.sampled_from([(), ("\n\nHi:",), ("<invoke!", "\n")]), st.booleans())
def test_only_what_may_become_a_tag_is_held(mark: Mark, text: str, literals: tuple[str, ...], has_slips: bool) -> None:
    text = text.replace("a:", "|D ") if len(mark.parts) == 3 and not mark.is_optional else text
    slips = r"(?!(?:invoke|tool)[\s=/>])\w{1,6}" if has_slips else ""
    tags = TagSet(literals, opening=_NAMES, closing=_NAMES[:2], closing_too=slips, mark=mark)
    index, marker = tags.find(text, 0)
    ahead = [text + more for more in ("", *_ends_of_tags(text))]
    found = [tags.find(longer, 0, final=True) for longer in ahead]
    assert all(at >= index or name is None for at, name in found)
    if marker is not None:
        assert {name for at, name in found if at == index} == {marker}
    elif index < len(text):
        assert any(at == index for at, name in found[1:] if name is not None)


def _ends_of_tags(text: str) -> list[str]:
    """What may follow a text so that its end is part of a tag or a literal."""
    wanted = [f"{mark}{name}>" for mark in ("", "a:", "|D", "|D ") for name in (*_NAMES, "x")]
    whole = [
        *(slash + one for one in wanted for slash in ("<", "</")),
        "\n\nHi:",
        "<invoke!",
        "\n",
        ":invoke>",
        "D invoke>",
    ]
    return [one[at:] for one in whole for at in range(len(one))]


def test_a_set_that_is_never_asked_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process has the sets of many dialects, and asks those of one."""
    compiled: list[str] = []
    compile_ = re.compile

    def compiling(pattern: str) -> re.Pattern[str]:
        compiled.append(pattern)
        return compile_(pattern)

    monkeypatch.setattr("dialects.engine.markers.re.compile", compiling)
    markers = MarkerSet(["<a>", "<b>"])
    tags = TagSet(["<a>"], opening=["invoke"], closing=["invoke"], mark=NAMESPACE)
    assert compiled == []
    for _ in range(2):
        assert markers.find("x<b>", 0) == (1, "<b>")
        assert tags.find("x<invoke>", 0) == (1, "<invoke")
    assert len(compiled) == 2


def test_a_set_of_no_tags_finds_its_literals_alone() -> None:
    tags = TagSet(["[x]"], mark=NAMESPACE)
    assert tags.find("a < b [x]", 0) == (6, "[x]")
    assert TagSet(mark=NAMESPACE).find("a < b", 0) == (5, None)
