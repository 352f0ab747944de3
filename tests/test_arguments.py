"""The reader of streamed arguments: it says as early as possible what it can never have to take back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects.engine.arguments import ArgumentReader, Arguments, argument_events
from dialects.engine.reader import BROKEN, DONE, GOING, TOO_DEEP
from dialects.engine.tape import Tape
from dialects.events import Event, ToolArgDelta, ToolEnd, ToolStart
from tests.laws import check_arguments, exactly
from tests.streams import any_json, cut, cuts

_OBJECTS = st.dictionaries(st.text(max_size=4), any_json("kimi"), max_size=4)


class Reading:
    """A reader with its tape, and the pieces that came out of it."""

    def __init__(self) -> None:
        self.tape = Tape()
        self.tape.set_mark(0)
        self.reader = ArgumentReader(self.tape, call_id="id", name="name")
        self.events: list[Event] = []

    def feed(self, piece: str) -> str:
        """Feed a piece; the JSON text that it let out."""
        self.tape.feed(piece)
        before = len(self.events)
        self.reader.read(self.events)
        return "".join(event.json for event in self.events[before:] if isinstance(event, ToolArgDelta))

    def finish(self) -> Arguments:
        arguments = self.reader.finish(self.tape.end, self.events)
        end = ToolEnd("id", "name", arguments.value, arguments.text, "", arguments.repairs)
        if not arguments.too_deep:
            check_arguments([ToolStart("id", "name"), *self.events, end])
        return arguments


def read(pieces: list[str]) -> tuple[str, Arguments]:
    reading = Reading()
    for piece in pieces:
        reading.feed(piece)
    return reading.reader.status, reading.finish()


def spellings(value: dict[str, Any]) -> list[str]:
    return [
        json.dumps(value),
        json.dumps(value, ensure_ascii=False, separators=(",", ":")),
        json.dumps(value, indent=2),
    ]


@given(_OBJECTS, st.data())
def test_well_formed_arguments_keep_their_own_characters(value: dict[str, Any], data: st.DataObject) -> None:
    for text in spellings(value):
        for pieces in ([text], list(text), cut(text, data.draw(cuts(text)))):
            status, arguments = read(pieces)
            assert (status, arguments.text, arguments.repairs) == (DONE, text, ())
            assert exactly(arguments.value) == exactly(value)


@given(_OBJECTS, st.data())
def test_what_is_out_is_the_beginning_of_what_was_fed(value: dict[str, Any], data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(spellings(value)))
    reading = Reading()
    out = ""
    for fed, char in enumerate(text, 1):
        out += reading.feed(char)
        assert text.startswith(out)
        assert len(out) == reading.reader.out
        assert reading.reader.status in (GOING, DONE)
        assert len(out) <= fed


def test_a_string_leaves_character_by_character() -> None:
    reading = Reading()
    assert reading.feed('{"text": "') == '{"text": "'
    for char in "Grüße, {not} [json] : 😀 'x'":
        assert reading.feed(char) == char


def test_what_a_repair_may_change_is_held_and_nothing_else() -> None:
    reading = Reading()
    assert reading.feed('{"te') == "{"
    assert reading.feed('xt"') == ""
    assert reading.feed(":") == '"text":'
    assert reading.feed(' "a"') == ' "a'
    assert reading.feed(" ") == ""
    assert reading.feed(",") == ""
    assert reading.feed(' "n": 1').endswith('"n": ')
    assert reading.feed("2") == ""
    assert reading.feed("}") == "12"
    assert reading.finish().text == '{"text": "a" , "n": 12}'


@pytest.mark.parametrize(
    ("fault", "meaning", "repair"),
    [
        ("\n", "\n", "control-character"),
        ("\x00", "\x00", "control-character"),
        ("\\d", "\\d", "invalid-escape"),
        ("\\'", "'", "invalid-escape"),
        ("\\u12x", "\\u12x", "invalid-escape"),
        ("\\ud83d", "\ufffd", "lone-surrogate"),
        ("\\ude00", "\ufffd", "lone-surrogate"),
        ("\ud83d", "\ufffd", "lone-surrogate"),
    ],
)
def test_after_a_local_fault_streaming_goes_on(fault: str, meaning: str, repair: str) -> None:
    reading = Reading()
    reading.feed(f'{{"text": "a{fault}b')
    for char in "cde":
        assert reading.feed(char) == char
    reading.feed('"}')
    arguments = reading.finish()
    assert arguments.value == {"text": f"a{meaning}bcde"}
    assert arguments.repairs == (repair,)


@pytest.mark.parametrize(
    ("fault", "meaning", "repair"),
    [
        ('"flag": True, ', {"flag": True}, "python-literal"),
        ('"none": None, ', {"none": None}, "python-literal"),
        ('"nan": NaN, ', {"nan": None}, "not-a-number"),
        ('"list": [1, ], ', {"list": [1]}, "trailing-comma"),
        ('"long": ' + "7" * 5000 + ", ", {"long": "7" * 5000}, "number-too-long"),
        ('"a": 1, "a": {"b": "c"}, ', {"a": 1}, "duplicate-key"),
    ],
)
def test_after_a_mended_value_streaming_goes_on(fault: str, meaning: dict[str, Any], repair: str) -> None:
    reading = Reading()
    reading.feed("{" + fault + '"text": "')
    for char in "cde":
        assert reading.feed(char) == char
    reading.feed('"}')
    arguments = reading.finish()
    assert arguments.value == {**meaning, "text": "cde"}
    assert arguments.repairs == (repair,)


def test_surrogate_pairs_cut_anywhere_are_one_character() -> None:
    text = '{"t": "\\ud83d\\ude00\\uD83D\\uDE00"}'
    for at in range(len(text)):
        assert read(cut(text, [at]))[1].value == {"t": "😀😀"}


def test_of_equal_keys_the_first_counts_at_the_top_and_the_last_below() -> None:
    status, arguments = read(['{"a": 1, "b": {"c": 1, "c": 2}, "a": {"x": "y"}, "\\u0061": 3, "z": 0}'])
    assert status == DONE
    assert arguments.value == {"a": 1, "b": {"c": 2}, "z": 0}
    assert json.loads(arguments.text) == arguments.value
    assert arguments.repairs == ("duplicate-key",)


def test_nesting_is_limited() -> None:
    for depth, expected in ((200, DONE), (201, TOO_DEEP)):
        status, arguments = read(['{"a":' * (depth - 1) + "{}" + "}" * (depth - 1)])
        assert status == expected
        assert arguments.too_deep == (expected == TOO_DEEP)
    assert read(["[" * 5000])[1].value == {}


@given(
    st.text() | st.lists(st.sampled_from(['"', "{", "}", "[", "]", ":", ",", "a", "1", "\\", "\n", "'"])).map("".join)
)
def test_any_text_ends_as_an_object(text: str) -> None:
    for start in ("", "{", '{"a": "'):
        status, arguments = read(list(start + text))
        assert status in (GOING, DONE, BROKEN, TOO_DEEP)
        assert isinstance(arguments.value, dict)


@given(_OBJECTS, st.data())
def test_arguments_known_at_once_give_the_same_pieces(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value)
    events: list[Event] = [*argument_events("", text, "id", "name")]
    assert all(isinstance(event, ToolArgDelta) and event.json for event in events)
    check_arguments([ToolStart("id", "name"), *events, ToolEnd("id", "name", value, text, "")])
