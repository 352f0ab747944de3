"""What is DeepSeek's own: four forms of calls in one scanner, the spellings of its markers, and where reading stops."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialects import dialect_for_model, scan
from dialects.events import Event, Stopped, Text, ThinkingEnd, ToolArgDelta, ToolDropped, ToolEnd
from tests.laws import check_arguments, check_order
from tests.streams import any_json, cut, cuts, joined, scan_pieces
from tests.test_meaning import JSON_DAMAGES, Pieces

TYPED_BEGIN, TYPED_END = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{}\n```json\n", "\n```<｜tool▁call▁end｜>"
BEGIN, END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
BARE = "<｜tool▁call▁begin｜>get_tide<｜tool▁sep｜>" + '{"port": "Leith"}<｜tool▁call▁end｜>'
TIDE = {"name": "get_tide", "parameters": {"type": "object", "properties": {"port": {"type": "string"}}}}
LEITH = ("get_tide", {"port": "Leith"}, ())

examples = settings(max_examples=max(5, settings().max_examples // 20))


def typed(*calls: tuple[str, str]) -> str:
    """A section in the form of V3: names and JSON texts."""
    return BEGIN + "\n".join(TYPED_BEGIN.format(name) + text + TYPED_END for name, text in calls) + END


def read(text: str, positions: list[int] | None = None, **options: Any) -> list[Event]:
    """The joined events, the same however the text is cut."""
    options.setdefault("truncated", False)
    events = joined(scan_pieces("deepseek", [text], **options))
    halves = [[text[:at], text[at:]] for at in range(1, len(text), 1 + len(text) // 40)]
    for pieces in (list(text), cut(text, positions or []), *halves):
        assert joined(scan_pieces("deepseek", pieces, **options)) == events, pieces[0][-40:]
    check_order(events)
    check_arguments(events)
    return events


def seen(text: str, **options: Any) -> tuple[str, str, list[tuple[str, Any, Any]]]:
    """Text, thinking, and calls with their repairs; of those that were dropped the reason and the text."""
    events = read(text, **options)
    calls: list[tuple[str, Any, Any]] = []
    for event in events:
        match event:
            case ToolEnd(name=name, arguments=arguments, repairs=repairs):
                calls.append((name, arguments, repairs))
            case ToolDropped(name=name, reason=reason, raw_block=raw):
                calls.append((name or "", reason, raw))
            case Stopped(reason):
                calls.append(("stopped", reason, ()))
    said = "".join(event.text for event in events if isinstance(event, Text))
    thought = "".join(event.thinking for event in events if isinstance(event, ThinkingEnd))
    return said, thought, calls


# The typed form, of V3 and R1.


@pytest.mark.parametrize("damage", [damage for damage in JSON_DAMAGES if damage != "a missing quote and brace"])
@examples
@given(data=st.data())
def test_damaged_json_in_a_fence_is_read_as_it_was_meant(damage: str, data: st.DataObject) -> None:
    words = st.text("abcdefgh éß中😀", min_size=1, max_size=12).filter(lambda word: word.strip() == word != "")
    plain = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<｜`"), max_size=20)
    pieces = Pieces(*(data.draw(part) for part in (words, words, words, plain, plain)))
    broken = JSON_DAMAGES[damage](pieces)
    text = typed(("bad", broken.text), ("get_tide", '{"port": "Leith"}'))
    events = read(text, data.draw(cuts(text)))
    call, good = (event for event in events if isinstance(event, ToolEnd))
    assert (call.name, repr(call.arguments)) == ("bad", repr(broken.means))
    assert call.repairs
    assert (good.name, good.arguments, good.repairs) == LEITH
    assert not [event for event in events if isinstance(event, Text | ToolDropped)]


@examples
@given(data=st.data())
def test_clean_arguments_in_a_fence_need_no_repair(data: st.DataObject) -> None:
    value = data.draw(st.dictionaries(st.text(max_size=3), any_json("deepseek"), max_size=3))
    text = typed(("one", json.dumps(value, ensure_ascii=data.draw(st.booleans()))), ("get_tide", '{"port": "Leith"}'))
    for pieces in ([text], list(text), cut(text, data.draw(cuts(text)))):
        first, second = (e for e in scan_pieces("deepseek", pieces, strict=True) if isinstance(e, ToolEnd))
        assert (first.name, first.arguments, first.repairs) == ("one", value, ())
        assert (second.name, second.arguments, second.repairs) == LEITH


def test_arguments_in_a_fence_leave_as_they_arrive() -> None:
    before, after = typed(("write", '{"text": "HERE"}')).split("HERE")
    pieces = [before, *(f"Line {i} of a file. " for i in range(20)), after]
    events = scan_pieces("deepseek", pieces)
    shown = [event.delta for event in events if isinstance(event, ToolArgDelta) and event.key == "text"]
    assert [delta for delta in shown if delta] == pieces[1:-1]


FENCED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "nothing": ("", "", ()),
    "no language": ("```json", "```", ()),
    "the JSON behind the language": ("```json\n", "```json ", ()),
    "no newlines": ("\n```json\n", "```json", ()),
    "empty lines": ("get_tide\n```json\n", "\nget_tide \n\n```json\n\n", ()),
    "other line ends": ("get_tide\n```json\n", "get_tide\r\n```json\r\n", ()),
    "no newline before the closing fence": ("\n```<", "```<", ()),
    "a newline behind the closing fence": ("\n```<", "\n```\n<", ()),
    "no opening fence": ("```json\n", "", ("missing-code-fence",)),
    "no closing fence": ("\n```<", "<", ("missing-code-fence",)),
    "half a closing fence": ("\n```<", "\n``<", ("missing-code-fence", "trailing-text")),
    "no fence": ("```json\n", "", ("missing-code-fence",)),
    "no call begin": ("<｜tool▁call▁begin｜>", "", ("missing-call-begin",)),
    "no type": ("function<｜tool▁sep｜>", "", ("missing-arguments-begin",)),
    "no separator": ("<｜tool▁sep｜>", " ", ("missing-arguments-begin",)),
    "no call end": ("<｜tool▁call▁end｜>", "", ("missing-call-end",)),
    "no section end": (END, "", ()),
    "no ends": ("<｜tool▁call▁end｜>" + END, "", ("missing-call-end",)),
    "the turn's end for all": ("<｜tool▁call▁end｜>" + END, "<｜end▁of▁sentence｜>", ("missing-call-end",)),
    "no section": (BEGIN, "", ("missing-section",)),
    "a section twice": (BEGIN, BEGIN * 2, ()),
    "prose behind the arguments": ("\n```<", "\n```\nThat is all.<", ("trailing-text",)),
    "the bare form in a fence": ("function<｜tool▁sep｜>get_tide\n", "get_tide<｜tool▁sep｜>\n", ("code-fence",)),
    "cut in the closing fence": ("```<｜tool▁call▁end｜>" + END, "``", ("missing-code-fence", "missing-call-end")),
    "cut in the call's end": ("<｜tool▁call▁end｜>" + END, "<｜tool▁ca", ("missing-call-end",)),
}


@pytest.mark.parametrize("damage", FENCED)
def test_a_damaged_call_of_the_typed_form_is_read_as_it_was_meant(damage: str) -> None:
    old, new, repairs = FENCED[damage]
    text = typed(("get_tide", '{"port": "Leith"}'))
    assert old in text
    said, _, calls = seen(text.replace(old, new, 1) if old else text)
    assert (said, [call[:2] for call in calls]) == ("", [LEITH[:2]])
    assert set(repairs) <= set(calls[0][2])
    assert bool(repairs) == bool(calls[0][2])


def test_a_call_end_in_a_string_in_a_fence_is_text() -> None:
    for inner in (
        "\\n```<｜tool▁call▁end｜>",
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "```",
        "\\n```json\\n{}\\n```",
    ):
        (call,) = [e for e in read(typed(("run", f'{{"command": "a{inner}b", "n": 1}}'))) if isinstance(e, ToolEnd)]
        assert call.arguments == {"command": "a" + inner.replace("\\n", "\n") + "b", "n": 1}
        assert call.repairs == ()


def test_a_typed_call_without_arguments() -> None:
    head = BEGIN + "<｜tool▁call▁begin｜>function<｜tool▁sep｜>ping"
    for rest in ("", "\n", "\n```json\n```", "\n```json\nnull\n```"):
        ((name, arguments, repairs),) = seen(head + rest + "<｜tool▁call▁end｜>" + END)[2]
        assert (name, arguments) == ("ping", {})
        assert "empty-arguments" in repairs


def test_a_tool_may_be_called_function() -> None:
    bare = BEGIN + '<｜tool▁call▁begin｜>function<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜>' + END
    assert seen(bare)[2] == [("function", {"a": 1}, ())]
    assert seen(typed(("function", '{"a": 1}')))[2] == [("function", {"a": 1}, ())]


# Tags, of V3.2 and later.

OUTER = {"V3.2": ("function_calls", ""), "V4": ("tool_calls", ""), "V4.1": (" calls", " ")}
every_form = pytest.mark.parametrize("form", OUTER)


def tagged(form: str, *calls: tuple[str, dict[str, Any]]) -> str:
    """Calls as the vendor's encoder writes them."""
    outer, space = OUTER[form]
    blocks = []
    for name, arguments in calls:
        pairs = [
            f'<｜DSML｜{space}parameter name="{key}" string="{str(isinstance(value, str)).lower()}">'
            f"{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}</｜DSML｜{space}parameter>"
            for key, value in arguments.items()
        ]
        lines = "\n".join(pairs)
        blocks.append(f'<｜DSML｜{space}invoke name="{name}">\n{lines}\n</｜DSML｜{space}invoke>')
    body = "\n".join(blocks)
    return f"\n\n<｜DSML｜{outer}>\n{body}\n</｜DSML｜{outer}>"


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.lists(
    st.sampled_from(
        ["\n", " ", "<", "</", "｜DSML｜", "<｜", "null", "3", '"x"', "<b>", "```", "</think>", "<think>", "é"]
    ),
    max_size=5,
).map("".join)
_VALUES = _TEXTS | st.integers() | st.booleans() | st.none() | st.lists(_TEXTS, max_size=2) | st.just({"a": [1, None]})


@every_form
@settings(max_examples=max(10, settings().max_examples // 10))
@given(data=st.data())
def test_calls_of_the_vendors_encoder_are_read_back(form: str, data: st.DataObject) -> None:
    values = st.dictionaries(st.sampled_from(["port", "a", "b-c", "x.y"]), _VALUES, max_size=3)
    calls = [(name, data.draw(values)) for name in ("one", "two")]
    said = data.draw(st.sampled_from(["", "I look it up."]))
    text = f"{said}{tagged(form, *calls)}<｜end▁of▁sentence｜>"
    for pieces in ([text], list(text), cut(text, data.draw(cuts(text)))):
        events = scan_pieces("deepseek", pieces, strict=True, tools=data.draw(st.sampled_from([None, [TIDE]])))
        check_order(events)
        check_arguments(events)
        ends = [event for event in events if isinstance(event, ToolEnd)]
        assert [(end.name, repr(end.arguments), end.repairs) for end in ends] == [(n, repr(a), ()) for n, a in calls]
        assert "".join(event.text for event in events if isinstance(event, Text)) == said


def test_what_string_says_of_a_value_counts_whatever_the_schema_does() -> None:
    tools = [
        {
            "name": "f",
            "parameters": {"type": "object", "properties": {"s": {"type": "string"}, "n": {"type": "integer"}}},
        }
    ]
    for given_tools in (None, tools):
        text = tagged("V4", ("f", {"s": 3, "n": "3"}))
        assert seen(text, tools=given_tools)[2] == [("f", {"s": 3, "n": "3"}, ())]
    without = tagged("V4", ("f", {"s": "3", "n": "3"})).replace(' string="true"', "")
    assert seen(without, tools=tools)[2] == [("f", {"s": "3", "n": 3}, ())]


@pytest.mark.parametrize("schema", [{}, {"type": "string"}, {"type": "integer"}, {"type": "array"}])
@pytest.mark.parametrize(
    ("written", "value", "repairs"),
    [
        ("3", 3, ()),
        (' {"a": [1]}\n', {"a": [1]}, ()),
        ('"3"', "3", ()),
        ("null", None, ()),
        ("123456789012345678901234567890", 123456789012345678901234567890, ()),
        ("True", True, ("python-literal",)),
        ("[1, 2,]", [1, 2], ("trailing-comma",)),
        ("{'a': 1}", {"a": 1}, ("single-quotes",)),
        ('{"a": 1', {"a": 1}, ("missing-closer",)),
        ("hello", "hello", ("bare-value",)),
        ("9" * 5000, "9" * 5000, ("number-too-long",)),
    ],
)
def test_what_is_said_to_be_json_is_read_as_json(
    schema: dict[str, Any], written: str, value: Any, repairs: tuple[str, ...]
) -> None:
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"x": schema}}}]
    text = tagged("V4", ("f", {"x": 0})).replace(">0<", f">{written}<")
    assert seen(text, tools=tools)[2] == [("f", {"x": value}, repairs)]


TAGGED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "nothing": ("", "", ()),
    "no newlines": ("\n", "", ()),
    "other line ends": (">\n<", ">\r\n<", ()),
    "empty lines": (">\n<", ">\n\n\n<", ()),
    "no section": ("<｜DSML｜tool_calls>\n", "", ("missing-section",)),
    "no section end": ("\n</｜DSML｜tool_calls>", "", ()),
    "no call end": ("\n</｜DSML｜invoke>", "", ("missing-call-end",)),
    "no ends": ("\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>", "", ("missing-call-end",)),
    "half a call end": ("</｜DSML｜invoke>\n</｜DSML｜tool_calls>", "</｜DSML｜inv", ("missing-call-end",)),
    "half a section end": ("tool_calls><", "tool_ca", ()),
    "the turn's end for both": (
        "\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>", "<｜end▁of▁sentence｜>", ("missing-call-end",)
    ),
    "no value end": ("</｜DSML｜parameter>", "", ("missing-value-end",)),
    "a misspelt value end": ("</｜DSML｜parameter>", "</｜DSML｜param>", ("wrong-value-end",)),
    "a value end twice": ("</｜DSML｜parameter>", "</｜DSML｜parameter></｜DSML｜parameter>", ("stray-closer",)),
    "single quotes": ('name="get_tide"', "name='get_tide'", ()),
    "another attribute": ('name="get_tide"', 'id="7" name="get_tide"', ()),
    "an odd attribute": ('string="true"', 'string="maybe"', ()),
    "no attribute": (' string="true"', "", ()),
    "a section twice": ("<｜DSML｜tool_calls>\n", "<｜DSML｜tool_calls>\n<｜DSML｜function_calls>", ()),
    "doubled bars": ("｜", "｜｜", ()),
    "ASCII bars": ("｜", "|", ()),
    "doubled ASCII bars": ("｜", "||", ()),
    "another section's end": ("</｜DSML｜tool_calls>", "</｜DSML｜function_calls>", ()),
    "spaced names": ("DSML｜", "DSML｜ ", ()),
    "prose before the parameter": ("<｜DSML｜parameter", "with <｜DSML｜parameter", ("surrounding-text",)),
}  # fmt: skip


@pytest.mark.parametrize("damage", TAGGED)
def test_a_damaged_call_with_tags_is_read_as_it_was_meant(damage: str) -> None:
    old, new, repairs = TAGGED[damage]
    text = tagged("V4", LEITH[:2])
    if damage == "half a section end":
        text = text.replace("</｜DSML｜tool_calls>", "</｜DSML｜tool_ca")
    else:
        assert old in text
        text = text.replace(old, new) if old else text
    assert seen(text) == ("", "", [(*LEITH[:2], repairs)])
    if not repairs:
        assert seen(text, strict=True)[2] == [LEITH]


def test_a_tag_in_a_value_is_text_where_the_grammar_could_not_go_on_behind_it() -> None:
    for inner in ("</｜DSML｜parameter>", "<｜DSML｜", "</｜DSML｜foo> x", "<｜DSML｜invoke>", "</｜DSML｜tool_calls>",
                  "<｜tool▁call▁end｜>", "<｜end▁of▁sentence｜>", "</think>", "<｜DSML｜parameter name="):  # fmt: skip
        value = f"a {inner} b"
        assert seen(tagged("V4", ("run", {"command": value, "n": 1}), LEITH[:2]))[2] == [
            ("run", {"command": value, "n": 1}, ()),
            LEITH,
        ]


def test_a_whole_call_in_a_value_is_text() -> None:
    value = tagged("V4", LEITH[:2]) + " is how"
    (call, other) = seen(tagged("V4", ("write", {"text": value}), LEITH[:2]))[2]
    assert (call, other) == (("write", {"text": value}, ()), LEITH)


def test_text_values_leave_as_they_arrive() -> None:
    before, after = tagged("V4", ("write", {"text": "HERE"})).split("HERE")
    pieces = [before, *(f"Line {i} of a file. " for i in range(20)), after]
    events = scan_pieces("deepseek", pieces)
    shown = [event.delta for event in events if isinstance(event, ToolArgDelta) and event.key == "text"]
    assert [delta for delta in shown if delta] == pieces[1:-1]


def test_one_bad_call_with_tags_costs_no_other() -> None:
    bad = '<｜DSML｜invoke>\n<｜DSML｜parameter name="port" string="true">X</｜DSML｜parameter>\n</｜DSML｜invoke>'
    text = tagged("V4", LEITH[:2], LEITH[:2]).replace("<｜DSML｜tool_calls>\n", f"<｜DSML｜tool_calls>\n{bad}\n")
    assert seen(text)[2] == [("", "nameless", bad), LEITH, LEITH]


def test_a_call_with_tags_that_is_too_large_is_skipped_to_its_end() -> None:
    text = tagged("V4", ("long", {"text": "y" * 900}), LEITH[:2]) + "Done."
    for pieces in ([text], list(text)):
        events = scan_pieces("deepseek", pieces, max_call_chars=300)
        dropped, call = (event for event in events if isinstance(event, ToolDropped | ToolEnd))
        assert isinstance(dropped, ToolDropped)
        assert (dropped.reason, len(dropped.raw_block)) == ("too-large", 300)
        assert call.name == "get_tide"
        assert "".join(event.text for event in events if isinstance(event, Text)) == "Done."


def test_a_stream_with_tags_that_was_cut_off_gives_only_whole_calls() -> None:
    text = tagged("V4.1", LEITH[:2])
    end = text.index("</｜DSML｜ invoke>") + len("</｜DSML｜ invoke>")
    for at in range(len(text)):
        for truncated in (True, False):
            said, _, calls = seen(text[:at], truncated=truncated) if at % 7 == 0 else ("", "", [])
            assert said.strip("\n<｜DSML") == ""
            assert all(
                call == LEITH or call[1] == "unfinished" or (not truncated and call[2] == ("missing-call-end",))
                for call in calls
            )
            if at >= end and at % 7 == 0:
                assert calls == [LEITH]


def test_newlines_before_calls_with_tags_belong_to_them() -> None:
    for said in ("", "I look it up.", "I look\n\nit up."):
        assert seen(said + tagged("V3.2", LEITH[:2])) == (said, "", [LEITH])
        assert seen(f"<think>\nhm\n</think>{said}" + tagged("V3.2", LEITH[:2])) == (said, "hm", [LEITH])


def test_stray_tags_are_left_out() -> None:
    assert seen("All is free.\n</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>")[0] == "All is free."
    assert seen("The <｜DSML｜ mark, ｜DSML｜ and <｜DSML｜thing>.")[0] == "The  mark,  and ."
    assert seen('a<｜DSML｜parameter name="k" string="true">v</｜DSML｜parameter>b')[0] == "avb"
    assert seen("a</｜DSML｜invo")[0] == "a"


def test_both_forms_in_one_turn() -> None:
    text = typed(("get_tide", '{"port": "Leith"}')) + tagged("V4", LEITH[:2]) + BEGIN + BARE + END
    assert seen(text, strict=True) == ("", "", [LEITH] * 3)


# Spellings.


@pytest.mark.parametrize("bar", "｜|")
@pytest.mark.parametrize("block", "▁_")
def test_bars_and_blocks_may_be_ascii(bar: str, block: str) -> None:
    text = f"Hi.{BEGIN}{BARE}{END}<｜end▁of▁sentence｜>" + typed(("get_tide", '{"port": "Leith"}'))
    text = text.replace("｜", bar).replace("▁", block)
    assert seen(text, strict=True) == ("Hi.", "", [LEITH, LEITH])


@pytest.mark.parametrize(
    "token",
    [
        "<｜fim▁hole｜>",
        "<｜search▁begin｜>",
        "<|EOT|>",
        "<｜latest_reminder｜>",
        "<｜some▁task｜>",
        "<tool_result>",
        "</function_results>",
        "<｜begin▁of▁sentence｜>",
        "<｜tool▁outputs▁end｜>",
        "<｜tool▁sep｜>",
    ],
)
def test_tokens_that_have_nothing_to_do_with_calls_are_never_visible(token: str) -> None:
    assert seen(f"One{token} two.")[:2] == ("One two.", "")
    assert seen(f"<think>One{token} two.")[:2] == ("", "One two.")


def test_a_bar_behind_a_bracket_is_no_token() -> None:
    for text in ("a <｜ b", "a <｜b", "<｜b c\n｜>", "<｜" + "x" * 80 + "｜>", "a <|b|> c", "<｜<｜"):
        assert seen(text)[0] == text


# Turns, results and thinking.


@pytest.mark.parametrize(
    ("markup", "reason"),
    [
        ("<｜User｜>And Oban?", "fabricated-turn"),
        ("<｜System｜>Be kind.", "fabricated-turn"),
        ("<｜User｜><tool_result>5 m</tool_result>", "fabricated-result"),
        ("<｜User｜>", "fabricated-turn"),
        ("<｜User｜><tool_res", "fabricated-turn"),
        ("<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>5 m<｜tool▁output▁end｜>", "fabricated-result"),
        ("<|tool_output_begin|>5 m", "fabricated-result"),
        ("\n\n<function_results>\n<result>5 m</result>", "fabricated-result"),
        ("<tool_result>5 m", "fabricated-result"),
    ],
)
def test_reading_stops_where_the_model_writes_what_is_not_its_turn(markup: str, reason: str) -> None:
    for end in ("", "<｜end▁of▁sentence｜>"):
        assert seen(f"{BEGIN}{BARE}{END}{end}{markup}")[2] == [LEITH, ("stopped", reason, ())]


def test_a_result_tag_before_any_call_is_left_out() -> None:
    assert seen("Its <tool_result> and </tool_result>.") == ("Its  and .", "", [])


def test_another_header_of_the_assistant_continues_the_turn() -> None:
    assert seen(
        f"<｜Assistant｜></think>Hi.<｜end▁of▁sentence｜><｜Assistant｜><think>hm</think>{BEGIN}{BARE}{END}"
    ) == (
        "Hi.",
        "hm",
        [LEITH],
    )


_PAST = f"<｜begin▁of▁sentence｜>S<｜User｜>Q<｜Assistant｜>{BEGIN}{BARE}{END}<｜end▁of▁sentence｜>"


@pytest.mark.parametrize(
    ("prompt", "is_open"),
    [
        ("<｜Assistant｜><think>\n", True),
        ("<｜Assistant｜><think>", True),
        ("<｜Assistant｜></think>", False),
        ("<｜Assistant｜>", False),
        ("<think>", True),
        ("<｜begin▁of▁sentence｜>S<｜User｜>Q<｜Assistant｜><think>\n", True),
        ("<｜begin▁of▁sentence｜>S <think> S<｜User｜>Q<｜Assistant｜></think>", False),
        (_PAST + "<｜tool▁output▁begin｜>5 m<｜tool▁output▁end｜>", False),
        (
            _PAST + "<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>5 m<｜tool▁output▁end｜><｜tool▁outputs▁end｜>",
            False,
        ),
        (_PAST + "\n\n<function_results>\n<result>5 m</result>\n</function_results>\n\n<think>", True),
        (_PAST + "\n\n<function_results>\n<result>5 m</result>\n</function_results>\n\n</think>", False),
        (_PAST + "<｜User｜><tool_result>5 m</tool_result><｜Assistant｜><think>", True),
        (_PAST + "<｜User｜><tool_result>5 m</tool_result><｜Assistant｜></think>", False),
        ("<|User|>Q<|Assistant|><think>\n", True),
    ],
)
def test_the_prompt_may_have_opened_or_closed_the_thinking(prompt: str, is_open: bool) -> None:
    thinking = "hm\n" if is_open else ""
    closer = "</think>\n\n" if is_open else ""
    said, thought, calls = seen(f"{thinking}{closer}{BEGIN}{BARE}{END}", generation_prompt=prompt, strict=True)
    assert (said, thought, calls) == ("", "hm" if is_open else "", [LEITH])


def test_thinking_that_the_prompt_opened_may_be_opened_again() -> None:
    assert seen("<think>\nhm\n</think>Hi.", generation_prompt="<｜Assistant｜><think>\n") == ("Hi.", "hm", [])


def test_a_draft_of_a_call_in_thinking_is_a_call() -> None:
    said, thought, calls = seen(f"<think>First: {BEGIN}{BARE}{END} no.</think>{BEGIN}{BARE}{END}")
    assert (said.strip(), thought) == ("no.", "First: ")
    assert calls == [(*LEITH[:2], ("unclosed-thinking",)), LEITH]


def test_thinking_may_stay_in_the_text() -> None:
    assert seen("<think>a</think>b", parse_thinking=False) == ("<think>a</think>b", "", [])


# Blocks that are no calls.


@pytest.mark.parametrize(
    ("block", "name", "reason"),
    [
        ("I am sorry.", "", "malformed"),
        ("sorry", "", "malformed"),
        ("", "", "malformed"),
        ('<｜tool▁sep｜>{"a": 1}', "", "nameless"),
        ('I call it <｜tool▁sep｜>{"a": 1}', "", "nameless"),
        ("function<｜tool▁sep｜>I am sorry", "", "nameless"),
    ],
)
def test_what_is_no_call_is_dropped_and_the_next_one_is_read(block: str, name: str, reason: str) -> None:
    raw = f"<｜tool▁call▁begin｜>{block}<｜tool▁call▁end｜>"
    assert seen(BEGIN + raw + BARE + END) == ("", "", [(name, reason, raw), LEITH])


def test_a_declared_tool_needs_no_separator_to_be_called_without_arguments() -> None:
    raw = "<｜tool▁call▁begin｜>get_tide<｜tool▁call▁end｜>"
    assert seen(BEGIN + raw + END, tools=[TIDE])[2] == [("get_tide", {}, ("empty-arguments",))]


def test_a_stream_that_ends_inside_a_call() -> None:
    call = f"{BEGIN}{BARE}"
    for at in range(call.index("Leith"), call.index("}")):
        assert [drop[1] for drop in seen(call[:at])[2]] == ["unfinished"]
    at = call.index("}") + 1
    assert seen(call[:at])[2] == [(*LEITH[:2], ("missing-call-end",))]
    assert [drop[1] for drop in seen(call[:at], truncated=True)[2]] == ["unfinished"]


# Model ids.


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("deepseek-ai/DeepSeek-V3", "deepseek"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek"),
        ("deepseek/deepseek-r1", "deepseek"),
        ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "deepseek"),
        ("deepseek-ai/DeepSeek-V3.1", "deepseek"),
        ("deepseek-v3.2-exp", "deepseek"),
        ("deepseekv3", "deepseek"),
        ("deepseek_v4", "deepseek"),
        ("DeepSeek-V4.1", "deepseek"),
        ("deepseek-chat", None),
        ("deepseek-reasoner", None),
        ("some-v3.2", None),
        ("deepseek-coder-v2", None),
        ("deepseek-vl2", None),
        ("Qwen3-R1-deepseek", "qwen3"),
    ],
)
def test_the_vendors_name_comes_before_the_version(model: str, name: str | None) -> None:
    assert dialect_for_model(model).name == name


def test_scan_is_the_same_code() -> None:
    assert scan(f"Hi.{BEGIN}{BARE}{END}", "deepseek").tool_calls[0].arguments == {"port": "Leith"}
