"""Function and parameter tags, as users met them in the dialects that write calls so."""

from typing import Any

import pytest

from dialects.events import Event, Text, ToolDropped, ToolEnd
from tests.laws import check_arguments, check_order
from tests.streams import joined, scan_pieces

TOOLS = [
    {
        "name": "write",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}, "lines": {"type": "integer"}}},
    }
]
CODER_CALL = (
    "<tool_call>\n<function=write>\n<parameter=text>\nVALUE\n</parameter>\n"
    "<parameter=lines>\n3\n</parameter>\n</function>\n</tool_call>"
)


def read(name: str, text: str, **options: Any) -> list[Event]:
    """The events of a text, the same however it is cut."""
    options = {"tools": TOOLS, **options}
    events = joined(scan_pieces(name, [text], **options))
    check_order(events)
    check_arguments(events)
    for pieces in (list(text), *([text[:at], text[at:]] for at in range(1, len(text)))):
        assert joined(scan_pieces(name, pieces, **options)) == events, pieces
    return events


def calls(events: list[Event]) -> list[tuple[dict[str, Any], tuple[str, ...]]]:
    return [(event.arguments, event.repairs) for event in events if isinstance(event, ToolEnd)]


def said(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Text))


@pytest.mark.parametrize(
    "value", ["Oban", "", "a\r\nb", "a\r\n", "\r\na", "a </parameter>\r\nb", "a\r", "\r", "a\nb\n"]
)
def test_where_lines_end_in_crlf_that_is_the_newline_of_the_tags(value: str) -> None:
    text = CODER_CALL.replace("\n", "\r\n").replace("VALUE", value)
    assert calls(read("qwen3-coder", text)) == [({"text": value, "lines": 3}, ())]


@pytest.mark.parametrize("value", ["a\r", "\ra", "a\r\nb", "\r", "\n\r"])
def test_a_carriage_return_at_the_edge_of_a_value_is_the_values(value: str) -> None:
    assert calls(read("qwen3-coder", CODER_CALL.replace("VALUE", value))) == [({"text": value, "lines": 3}, ())]


@pytest.mark.parametrize("opening", ["<tool_call>\n<function=other>", "<function=other>"])
def test_a_value_that_was_not_closed_ends_where_the_next_call_begins(opening: str) -> None:
    text = (
        f"<tool_call>\n<function=write>\n<parameter=text>\none\n{opening}\n<parameter=other>\ntwo\n</parameter>\n"
        "</function>\n</tool_call>"
    )
    first, second = calls(read("qwen3-coder", text))
    assert first == ({"text": "one"}, ("missing-value-end", "missing-call-end"))
    assert second == ({"other": "two"}, ())


def test_a_whole_call_in_a_value_is_the_values() -> None:
    value = "See:\n<function=other>\n<parameter=x>\n1\n</parameter>\n</function>\nso."
    assert calls(read("qwen3-coder", CODER_CALL.replace("VALUE", value))) == [({"text": value, "lines": 3}, ())]


def test_the_next_call_after_one_without_closers_is_read_in_a_section() -> None:
    text = (
        '<function_calls>\n<invoke name="write"><parameter name="text">one</invoke>\n'
        '<invoke name="other"><parameter name="x">two</parameter></invoke>\n</function_calls>\nDone.'
    )
    events = read("anthropic", text)
    assert calls(events) == [({"text": "one"}, ("missing-value-end",)), ({"x": "two"}, ())]
    assert said(events).strip() == "Done."
    assert not [event for event in events if isinstance(event, ToolDropped)]
