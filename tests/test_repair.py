"""Malformed JSON becomes the plainly meant value; what is out already is never taken back."""

import json
import time
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dialects.engine.arguments import ArgumentReader
from dialects.engine.continuation import continuation
from dialects.engine.json_text import MAX_DEPTH, decode_string, dump, load
from dialects.engine.repair import repair
from dialects.engine.tape import Tape
from dialects.events import Event, ToolArgDelta
from tests.laws import exactly
from tests.streams import any_json, jsonish

_OBJECTS = st.dictionaries(st.text(max_size=4), any_json("kimi"), max_size=4)


def written(text: str) -> str:
    """What of a well-formed beginning is out."""
    tape = Tape()
    tape.set_mark(0)
    events: list[Event] = []
    tape.feed(text)
    ArgumentReader(tape).read(events)
    return "".join(event.json for event in events if isinstance(event, ToolArgDelta))


@given(_OBJECTS, st.data())
def test_the_rest_of_a_begun_text_completes_it_to_the_value(value: dict[str, Any], data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([dump(value), json.dumps(value), json.dumps(value, indent=1)]))
    begun = written(text[: data.draw(st.integers(0, len(text)))])
    assert exactly(json.loads(begun + continuation(begun, value))) == exactly(value)


@given(_OBJECTS, _OBJECTS, st.data())
def test_where_the_value_contradicts_what_is_out_that_wins(
    value: dict[str, Any], other: dict[str, Any], data: st.DataObject
) -> None:
    text = json.dumps(value)
    begun = written(text[: data.draw(st.integers(0, len(text)))])
    completed = json.loads(begun + continuation(begun, other))
    assert isinstance(completed, dict)
    for key in other:
        assert key in completed


@given(_OBJECTS)
def test_json_needs_no_repair(value: dict[str, Any]) -> None:
    for text in (dump(value), json.dumps(value, indent=1), f"  {json.dumps(value)}\n"):
        fixed = repair(text)
        if text.strip() not in ("", "null", '""'):
            assert (exactly(fixed.value), fixed.repairs, fixed.complete) == (exactly(value), (), True)


@given(st.text() | jsonish("kimi") | st.lists(st.sampled_from(list("{}[]\",:'\\ab1\n`"))).map("".join))
def test_anything_is_repaired_to_an_object_without_lone_surrogates(text: str) -> None:
    fixed = repair(text)
    if fixed.value is not None:
        assert isinstance(fixed.value, dict)
        assert exactly(json.loads(dump(fixed.value))) == exactly(fixed.value)
        dump(fixed.value).encode()


@pytest.mark.parametrize("opener", ["{", "[", '{"a":', '{"a":[', "[{", "{'a':", "{a:", '"', '{"a":"', '{"a" ', "({"])
@pytest.mark.parametrize("depth", [MAX_DEPTH // 2, MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 1000, 5000])
def test_deep_nesting_neither_raises_nor_comes_out(opener: str, depth: int) -> None:
    for before, closer in product(("", "{", '{"', "x ", '"'), ("", "}" * depth, "]}" * depth)):
        text = before + opener * depth + closer
        value = repair(text).value
        assert nesting(value) <= MAX_DEPTH
        value = repair(json.dumps(text)).value
        assert nesting(value) <= MAX_DEPTH


def nesting(value: object) -> int:
    """How deep a value nests, without recursion."""
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if isinstance(item, (dict, list)):
            deepest = max(deepest, depth)
            waiting += [(inner, depth + 1) for inner in (item.values() if isinstance(item, dict) else item)]
    return deepest


WORDS = "word and another, "
LARGE: dict[str, str] = {
    "clean": '{"a": "' + WORDS * 11_000 + '"}',
    "raw newlines": '{"a": "' + (WORDS + "\n") * 10_000 + '"}',
    "inner quotes": '{"a": "' + 'say "hi" now, ' * 14_000 + '"}',
    "inner quotes and commas": '{"a": "' + '"no", then ' * 18_000 + '"}',
    "python": "{'a': [" + "True, None, 'x', " * 12_000 + "]}",
    "invalid escapes": '{"a": "' + "\\d\\. " * 33_000 + '"}',
    "missing closers": '{"a": ["' + WORDS * 11_000 + "end",
    "key after key": '{"a" ' * 40_000,
    "quotes": '"' * 200_000,
    "quotes in an object": '{"a": "' + '"' * 200_000,
    "quotes and commas": '{"a": "' + '", ' * 66_000,
    "quotes, commas, words": '{"a": "' + '", x' * 50_000,
    "quotes and colons": '{"a": "' + '":' * 100_000,
    "quotes and spaces": '{"a": "' + ('"' + " " * 200) * 1000,
    "a quote before much space": '{"a": "x" ' + " " * 200_000 + "z",
    "half keys": '{"a": "' + '", "' * 50_000,
    "half keys of some length": '{"a": "' + ('", "' + "k" * 190) * 1000,
    "openers": "{" * 200_000,
    "lists": '{"a": ' + "[" * 200_000,
    "backslashes": '{"a": "' + "\\" * 200_000,
    "apostrophes": "{'a': '" + "don't " * 33_000 + "'}",
    "fences": "```json\n" * 25_000,
    "prose": "I do not know. " * 13_000,
    "commas": '{"a": 1' + "," * 200_000,
    "closers": '{"a": 1' + "}" * 200_000,
    "brackets in an object": '{"a": 1 ' + "]" * 200_000,
    "digits": '{"a": ' + "1" * 200_000,
    "bare words": '{"a": ' + "word " * 40_000,
    "colons": '{"a"' + ":" * 200_000,
    "encoded": json.dumps('{"a": "' + WORDS * 11_000),
    "encoded many times": '"' + '\\"' * 66_000,
}


@pytest.mark.parametrize("fault", LARGE)
def test_no_fault_of_200_kilobytes_blocks_for_long(fault: str) -> None:
    """A bound that only something worse than linear can miss: a linear repair takes a tenth of a second at most."""
    before = time.process_time()
    repair(LARGE[fault])
    assert time.process_time() - before < 2.5


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("raw newlines", (WORDS + "\n") * 10_000),
        ("inner quotes", 'say "hi" now, ' * 14_000),
        ("inner quotes and commas", '"no", then ' * 18_000),
        ("invalid escapes", "\\d\\. " * 33_000),
        ("missing closers", [WORDS * 11_000 + "end"]),
        ("python", [True, None, "x"] * 12_000),
        ("apostrophes", "don't " * 33_000),
    ],
)
def test_common_faults_come_out_right_at_any_size(fault: str, expected: object) -> None:
    assert repair(LARGE[fault]).value == {"a": expected}


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_json_string_decodes_to_its_value(value: str) -> None:
    for body in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        decoded = decode_string(body)
        assert (decoded.value, decoded.repairs) == (value, ())


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters='\\"')))
def test_what_json_forbids_in_strings_is_literal(value: str) -> None:
    assume(any(char < " " for char in value))
    decoded = decode_string(value)
    assert (decoded.value, decoded.repairs) == (value, ("control-character",))


def test_of_equal_keys_the_first_counts_at_the_top() -> None:
    assert load('{"a": 1, "b": 2, "a": 3}') == ({"a": 1, "b": 2}, True)
    assert load('{"a": {"b": 1, "b": 2}}') == ({"a": {"b": 2}}, True)
    assert load('{"a": 1}') == ({"a": 1}, False)
