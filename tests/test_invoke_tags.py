"""Function and parameter tags, as users met them in the dialects that write calls so."""

import re
from typing import Any

import pytest

from dialects.events import Event, Text, ToolDropped, ToolEnd
from tests.laws import check_arguments, check_order
from tests.streams import cut, joined, scan_pieces, whole

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


CALL = '<invoke name="write"><parameter name="text">one</parameter></invoke>'


@pytest.mark.parametrize(
    ("name", "begin", "call", "end"),
    [
        ("anthropic", "<function_calls>", CALL, "</function_calls>"),
        ("minimax", "<minimax:tool_call>", CALL, "</minimax:tool_call>"),
        ("xml", "<tool_calls>\n<tool_call>", CALL, "</tool_call>\n</tool_calls>"),
        (
            "qwen3-coder",
            "<tool_call>",
            "<function=write>\n<parameter=text>\none\n</parameter>\n</function>",
            "</tool_call>",
        ),
    ],
)
@pytest.mark.parametrize("words", ["I call it now:", "<!-- one call -->", "**Call**", "```xml"])
def test_words_before_the_first_call_of_a_batch_do_not_cost_it(
    name: str, begin: str, call: str, end: str, words: str
) -> None:
    events = read(name, f"{begin}\n{words}\n{call}\n{end}")
    assert calls(events) == [({"text": "one"}, ())]
    assert said(events) == words
    assert not [event for event in events if isinstance(event, ToolDropped)]


def test_words_behind_a_tag_on_its_line_make_it_prose() -> None:
    for tag in ("<tool_calls>", '<invoke name="write">', '<invoke name="other">'):
        events = read("xml", f"{tag} opens them.\n{CALL}")
        assert (said(events), calls(events)) == (f"{tag} opens them.", [({"text": "one"}, ())])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "anthropic",
            "<function_calls>\n" + CALL.removeprefix('<invoke name="write">') + f"\n{CALL}\n</function_calls>",
        ),
        (
            "anthropic",
            f"<function_calls>\n{CALL}\n" + CALL.removeprefix('<invoke name="write">') + "\n</function_calls>",
        ),
        (
            "deepseek",
            "<｜DSML｜tool_calls>\n"
            '<｜DSML｜parameter name="text" string="true">two</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
            '<｜DSML｜invoke name="write">\n<｜DSML｜parameter name="text" string="true">one</｜DSML｜parameter>\n'
            "</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
        ),
    ],
)
def test_parameters_without_a_call_are_neither_text_nor_the_next_calls_loss(name: str, text: str) -> None:
    events = read(name, text)
    assert (said(events), calls(events)) == ("", [({"text": "one"}, ())])
    assert len([event for event in events if isinstance(event, ToolDropped)]) == 1


@pytest.mark.parametrize(
    ("name", "begin", "tag", "rest"),
    [
        ("anthropic", "<function_calls>\n", '<invoke name="write">', '<parameter name="text">one</parameter></invoke>'),
        ("xml", "", '<invoke name="write">\n', '<parameter name="text">one</parameter></invoke>'),
        ("qwen3-coder", "<tool_call>\n", "<function=write>\n", "<parameter=text>\none\n</parameter>\n</function>"),
        (
            "deepseek",
            "<｜DSML｜tool_calls>\n",
            '<｜DSML｜invoke name="write">\n',
            '<｜DSML｜parameter name="text" string="true">one</｜DSML｜parameter>\n</｜DSML｜invoke>',
        ),
        (
            "minimax",
            "",
            ']<]minimax[>[<invoke name="write">',
            "]<]minimax[>[<text>one]<]minimax[>[</text>]<]minimax[>[</invoke>",
        ),
    ],
)
def test_a_call_that_opens_twice_is_not_made_without_arguments_as_well(
    name: str, begin: str, tag: str, rest: str
) -> None:
    assert calls(read(name, begin + tag * 2 + rest)) == [({"text": "one"}, ("stray-marker",))]


def test_a_stream_that_ends_in_a_mark_before_the_first_argument_made_no_call_without_it() -> None:
    opening = ']<]minimax[>[<invoke name="write">'
    for at in range(len("]<]minimax[>[<") + 1):
        assert calls(read("minimax", opening + "]<]minimax[>[<"[:at])) == []
    assert calls(read("minimax", opening + "]<]minimax[>[</")) == [({}, ("missing-call-end",))]


@pytest.mark.parametrize(
    "begin", ['One tag: <parameter name="lines"> opens it', '<parameter name="lines">', '<parameter name="lines">\n']
)
def test_the_opening_of_an_argument_that_comes_later_is_text_in_a_value(begin: str) -> None:
    call = (
        f'<invoke name="write"><parameter name="text">{begin}</parameter><parameter name="lines">3</parameter></invoke>'
    )
    assert calls(read("xml", call, strict=True)) == [({"text": begin, "lines": 3}, ())]
    assert calls(read("anthropic", f"<function_calls>\n{call}\n</function_calls>"))[0] == (
        {"text": begin, "lines": 3},
        (),
    )


MARK = "]<]minimax[>["
LISTS = [
    {
        "name": "pick",
        "parameters": {
            "type": "object",
            "properties": {"names": {"type": "array", "items": {"type": "string"}}, "why": {"type": "string"}},
        },
    }
]


@pytest.mark.parametrize(
    ("inside", "arguments", "repairs"),
    [
        ("@<names>@<item>a@</item>@</names>", {"names": ["a"]}, ()),
        ("@<names>\n@<item>a@</item>\n@<item>b@</item>\n@</names>", {"names": ["a", "b"]}, ()),
        ("@<why>a@</names>", {"why": "a"}, ("wrong-value-end",)),
        ("@<names>@<item>a@</item>", {"names": ["a"]}, ("missing-value-end", "wrong-value-end")),
        ("@<names>@<item>a@</names>", {"names": ["a"]}, ("missing-value-end",)),
        ("@<names>@<item>a@</item>@</name>@</names>", {"names": ["a"]}, ("wrong-value-end", "stray-closer")),
    ],
)
def test_an_element_without_its_closer_is_no_argument(
    inside: str, arguments: dict[str, Any], repairs: tuple[str, ...]
) -> None:
    text = f'@<tool_call>\n@<invoke name="pick">{inside}@</invoke>\n@</tool_call>'.replace("@", MARK)
    assert calls(read("minimax", text, tools=LISTS)) == [(arguments, repairs)]


@pytest.mark.parametrize("lead", ["- ", "* ", "1. ", "12) ", "> ", "> - ", "  - ", ">"])
def test_an_example_in_a_fence_of_a_list_or_quotation_is_no_call(lead: str) -> None:
    inner = "".join(char if char in "> " else " " for char in lead)
    example = f"So:\n{lead}```xml\n{inner}{CALL}\n{inner}```\n"
    events = read("xml", f"{example}{CALL}")
    assert (said(events), calls(events)) == (example.rstrip("\n"), [({"text": "one"}, ())])


@pytest.mark.parametrize("lead", ["a ", "-", "1.", "- a ", "--- "])
def test_backticks_behind_words_open_no_fence(lead: str) -> None:
    events = read("xml", f"{lead}```xml\n{CALL}\n```\n")
    assert calls(events) == [({"text": "one"}, ())]


@pytest.mark.parametrize(
    ("rest", "value"),
    [("one", "one"), (" one two", " one two"), ("\none", "\none"), ("<b>", "<b>")],
)
def test_a_value_behind_an_opening_tag_without_its_end_is_not_lost(rest: str, value: str) -> None:
    text = f'<invoke name="write"><parameter name="text"{rest}</parameter></invoke>'
    assert calls(read("xml", text)) == [({"text": value}, ("missing-key-end",))]


def test_two_parameters_in_a_value_stay_in_it() -> None:
    value = 'Write <parameter name="lines">1</parameter><parameter name="lines">2</parameter> twice.'
    text = CALL.replace("one", value)
    assert calls(read("xml", text, strict=True)) == [({"text": value}, ())]


def test_the_same_argument_of_the_next_call_says_nothing_of_a_value_without_its_closer() -> None:
    first = '<invoke name="write"><parameter name="text">one<parameter name="lines">1</parameter></invoke>'
    second = '<invoke name="write"><parameter name="text">two</parameter><parameter name="lines">2</parameter></invoke>'
    for between in ("", "\n", "\nand\n"):
        events = read("anthropic", f"<function_calls>\n{first}{between}{second}\n</function_calls>")
        assert calls(events) == [
            ({"text": "one", "lines": 1}, ("missing-value-end",)),
            ({"text": "two", "lines": 2}, ()),
        ]


def test_words_behind_half_a_tag_are_not_lost() -> None:
    for line in ("<tool_calls is how they begin", "<tool_calls x"):
        events = read("xml", f"{line}\n{CALL}")
        assert (said(events), calls(events)) == (line, [({"text": "one"}, ())])
    assert said(read("xml", f"<tool_calls\n{CALL}\n</tool_calls>")) == ""


def test_a_stray_closer_behind_an_opener_makes_no_prose_of_it() -> None:
    events = read("xml", f'<invoke name="refresh"></parameter>\n{CALL}')
    assert (said(events), calls(events)) == ("", [({}, ("stray-closer", "missing-call-end")), ({"text": "one"}, ())])
    events = read("anthropic", f"<function_calls></parameter>\n{CALL}\n</function_calls>")
    assert (said(events), calls(events)) == ("", [({"text": "one"}, ())])


def test_words_glued_to_a_sections_tag_do_not_show_the_tag() -> None:
    events = read("minimax", f"<minimax:tool_call>I call.\n{CALL}\n</minimax:tool_call>")
    assert (said(events), calls(events)) == ("I call.", [({"text": "one"}, ())])


@pytest.mark.parametrize("attributes", ['name="text"" kind="a"', 'name="text" kind=a"', 'name="text" kind=""a"'])
def test_a_quote_too_many_in_a_tag_is_no_part_of_the_value(attributes: str) -> None:
    text = f'<invoke name="write"><parameter {attributes}>one</parameter></invoke>'
    assert calls(read("xml", text)) == [({"text": "one"}, ())]


@pytest.mark.parametrize("dialect", ["anthropic", "xml", "minimax", "deepseek"])
def test_a_cut_before_the_name_in_a_tag_changes_nothing(dialect: str) -> None:
    text = '<invoke name="f"><parameter name="a">x<parameter kind="s" name="b">y</parameter></invoke>'
    if dialect == "deepseek":
        text = re.sub(r"<(/?)(?=\w)", "<\\1\uff5cDSML\uff5c", text)
    expected = whole(dialect, text)
    assert [event.arguments for event in expected if isinstance(event, ToolEnd)] == [{"a": "x", "b": "y"}]
    for at in range(len(text)):
        assert joined(scan_pieces(dialect, cut(text, [at]))) == expected
