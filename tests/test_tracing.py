"""A traced scanner says the same as any, and where it says things stood is where they stand."""

from typing import Any

import pytest

from dialects.engine.tracing import Place, traced
from dialects.events import Event, Text, ThinkingDelta, ToolDropped, ToolEnd
from dialects.factory import dialect_names, get_dialect
from tests.streams import joined
from tests.test_cases import CASES

SHORT = [case for case in CASES if "scale" not in case and case["dialect"] in dialect_names()]


def said(event: Event) -> str:
    match event:
        case Text(words) | ThinkingDelta(words) | ToolEnd(raw_block=words) | ToolDropped(raw_block=words):
            return words
    raise AssertionError(f"{event} has no place")


def is_at(place: Place, raw: str) -> bool:
    """Whether the event's characters stand there, but for newlines at its beginning that were held from before."""
    words, there = said(place.event), raw[max(place.start, 0) : place.end]
    return words.endswith(there) and not words[: len(words) - len(there)].strip("\n")


@pytest.mark.parametrize("size", [1, 3, 10**6])
@pytest.mark.parametrize("case", SHORT, ids=[f"{case['dialect']}-{case['id']}" for case in SHORT])
def test_places_are_where_the_words_stand(case: dict[str, Any], size: int) -> None:
    scanner = get_dialect(case["dialect"]).scanner
    assert scanner is not None
    options = {"tools": case["tools"], "generation_prompt": case["generation_prompt"]}
    numbers = [iter(range(10**6)), iter(range(10**6))]
    plain = scanner(**options, id_factory=lambda: f"call_{next(numbers[0])}")
    reading = traced(scanner)(**options, id_factory=lambda: f"call_{next(numbers[1])}")
    raw = case["raw"]
    expected: list[Event] = []
    events: list[Event] = []
    for start in range(0, len(raw), size):
        expected += plain.feed(raw[start : start + size])
        events += reading.feed(raw[start : start + size])
    expected += plain.flush(truncated=case["truncated"])
    events += reading.flush(truncated=case["truncated"])
    assert joined(events) == joined(expected)
    places = reading.take_places()
    assert [place for place in places if not is_at(place, raw)] == []
    kinds = (Text, ThinkingDelta, ToolEnd, ToolDropped)
    assert sorted(map(repr, (place.event for place in places))) == sorted(
        repr(event) for event in events if isinstance(event, kinds)
    )
