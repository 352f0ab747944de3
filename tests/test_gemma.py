"""What comes of Gemma's streams, right, sloppy and broken ones. Each is read whole and character by character.

In the streams “ stands for the token at both ends of a string, and «…» for a call's two markers.
"""

from typing import Any

import pytest

from dialects.events import (
    Event,
    Stopped,
    Text,
    ThinkingDelta,
    ThinkingEnd,
    ToolArgDelta,
    ToolDropped,
    ToolEnd,
    ToolStart,
)
from dialects.gemma import CALL_BEGIN, CALL_END, CONTROL_TOKENS, GEMMA, QUOTE, GemmaScanner
from dialects.messages import Message, Tool, ToolCall, ToolResult
from tests.laws import check_arguments, check_order
from tests.streams import counter, cut, joined

TIDE = Tool(
    "get_tide",
    parameters={
        "properties": {
            "port": {"type": "string"},
            "days": {"type": "integer"},
            "tags": {"type": "array"},
            "note": {"anyOf": [{"type": "string"}, {"type": "number"}]},
        }
    },
)
BERTHS = Tool("list-berths")


def spelled(text: str) -> str:
    return text.replace("“", QUOTE).replace("«", CALL_BEGIN).replace("»", CALL_END)


def events_of(pieces: list[str], *, truncated: bool = False, **options: Any) -> list[Event]:
    scanner = GemmaScanner(id_factory=counter(), **{"tools": [TIDE, BERTHS], **options})
    found = [event for piece in pieces for event in scanner.feed(piece)]
    return joined(found + scanner.flush(truncated=truncated))


def read(text: str, **options: Any) -> list[Event]:
    text = spelled(text)
    events = events_of([text], **options)
    assert events_of(list(text), **options) == events
    for at in range(1, len(text)):
        assert events_of(cut(text, [at]), **options) == events, text[:at]
    check_order(events)
    check_arguments(events)
    return events


def calls(text: str, **options: Any) -> list[tuple[str, dict[str, Any], tuple[str, ...]]]:
    found = [event for event in read(text, **options) if isinstance(event, ToolEnd)]
    return [(call.name, call.arguments, call.repairs) for call in found]


def dropped(text: str, **options: Any) -> list[tuple[str | None, str]]:
    return [(event.name, event.reason) for event in read(text, **options) if isinstance(event, ToolDropped)]


def said(text: str, **options: Any) -> tuple[str, str]:
    """Text and thinking."""
    events = read(text, **options)
    text = "".join(event.text for event in events if isinstance(event, Text))
    return text, "|".join(event.thinking for event in events if isinstance(event, ThinkingEnd))


# Clean calls.


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ("{}", {}),
        ("{port:“Leith“,days:2}", {"port": "Leith", "days": 2}),
        ("{a:true,b:false,c:null,d:None}", {"a": True, "b": False, "c": None, "d": None}),
        ("{a:1e-05,b:-1.5,c:1e+16,d:0}", {"a": 1e-05, "b": -1.5, "c": 1e16, "d": 0}),
        ("{time zone:“GMT“,a.b-c:1,size (cm):2,it's:3}", {"time zone": "GMT", "a.b-c": 1, "size (cm)": 2, "it's": 3}),
        ("{a:[1,[“x“,{b:{}}],[]],c:{d:[“y“]}}", {"a": [1, ["x", {"b": {}}], []], "c": {"d": ["y"]}}),
        ("{a:“} b, {c: d}]“,b:““}", {"a": "} b, {c: d}]", "b": ""}),
        ('{a:“say "hi" \\n\\“}', {"a": 'say "hi" \\n\\'}),
        ('{"a:b":“x“,"":“y“,"\\"":1}', {"a:b": "x", "": "y", '"': 1}),
        (" {\n a : “x“ ,\n b : [ 1 , 2 ]\n}\n", {"a": "x", "b": [1, 2]}),
    ],
)
def test_a_clean_call_is_read_without_a_repair(arguments: str, value: dict[str, Any]) -> None:
    assert calls(f"«call:f{arguments}»") == [("f", value, ())]


@pytest.mark.parametrize("name", ["a.b-c", "mcp__srv__do-it", "Büro", "v2", "ns:tool"])
def test_a_name_may_hold_dots_dashes_and_colons(name: str) -> None:
    assert calls(f"«call:{name}{{}}»") == [(name, {}, ())]


def test_values_leave_as_they_arrive() -> None:
    scanner = GemmaScanner(id_factory=counter())
    assert scanner.feed(spelled("«call:f{"))[0] == ToolStart("id-1", "f")
    assert scanner.feed("port:") == []
    assert [event for event in scanner.feed(spelled("“Le")) if isinstance(event, ToolArgDelta)] == [
        ToolArgDelta("id-1", "f", None, "", '"port":'),
        ToolArgDelta("id-1", "f", "port", "", '"'),
        ToolArgDelta("id-1", "f", "port", "Le", "Le"),
    ]
    assert scanner.feed('i"th') == [ToolArgDelta("id-1", "f", "port", 'i"th', 'i\\"th')]
    assert scanner.held_chars == 0


def test_only_brackets_at_the_end_of_a_string_wait() -> None:
    scanner = GemmaScanner(id_factory=counter())
    scanner.feed(spelled("«call:f{code:“"))
    assert scanner.feed("if (x) {") == [ToolArgDelta("id-1", "f", "code", "if (x) {", "if (x) {")]
    assert scanner.feed("y[0]") == [ToolArgDelta("id-1", "f", "code", "y[0", "y[0")]
    assert scanner.held_chars == 1
    assert scanner.feed("}}") == []
    assert scanner.feed(" else") == [ToolArgDelta("id-1", "f", "code", "]}} else", "]}} else")]


# Sloppy calls.


@pytest.mark.parametrize(
    ("call", "value", "repairs"),
    [
        ('call:get_tide{"port": "King\'s \\"Lynn\\"", "days": 2}', {"port": 'King\'s "Lynn"', "days": 2},
         ("quoted-key", "double-quotes")),
        ("call:get_tide{'port': 'King\\'s', 'note': 'x', 'days': 2}", {"port": "King's", "note": "x", "days": 2},
         ("quoted-key", "single-quotes")),
        ("call:get_tide{“port“:“L“,“note“:“x“}", {"port": "L", "note": "x"}, ("quoted-key",)),
        ("call:get_tide{port:King's Lynn, Norfolk, days: 2}", {"port": "King's Lynn, Norfolk", "days": 2},
         ("bare-value",)),
        ("call:get_tide{note:https://a.b/c?d=e,days:1}", {"note": "https://a.b/c?d=e", "days": 1}, ("bare-value",)),
        ("call:get_tide{port:42,note:42}", {"port": "42", "note": 42}, ("bare-value",)),
        ("call:get_tide{port:007,days:007}", {"port": "007", "days": "007"}, ("bare-value",)),
        ("call:get_tide{port:null,tags:[a,b c]}", {"port": None, "tags": ["a", "b c"]}, ("bare-value",)),
        ("call:get_tide{port:Leith“,days:1}", {"port": "Leith", "days": 1}, ("bare-value",)),
        ("call:get_tide{days:nan,tags:[True,-inf]}", {"days": None, "tags": [True, None]},
         ("not-a-number", "python-literal")),
        ("call:get_tide{port:“L“ days:2}", {"port": "L", "days": 2}, ("missing-comma",)),
        ("call:get_tide{,port:“L“,,days:2,}", {"port": "L", "days": 2}, ("extra-comma", "trailing-comma")),
        ("call:get_tide{port:,days:2,note}", {"days": 2}, ("missing-value",)),
        ("call:get_tide{tags:[1,2}", {"tags": [1, 2]}, ("missing-closer",)),
        ("call:get_tide{tags:[1,2,days:[3]}", {"tags": [1, 2], "days": [3]}, ("missing-closer",)),
        ("call:get_tide{port:“L“]}}", {"port": "L"}, ("extra-closer",)),
        ("call:get_tide{port:“L“,port:[“M“],days:1}", {"port": "L", "days": 1}, ("duplicate-key",)),
        ("call:get_tide{port = “L“, days = 2}", {"port": "L", "days": 2}, ("stray-character",)),
        ("call:get_tide{port:“L“ (UK),days:2}", {"port": "L", "days": 2}, ("stray-character",)),
        ("call:get_tide(port=“L“, tags=[1], days=2)", {"port": "L", "tags": [1], "days": 2}, ("call-parentheses",)),
        ("call:get_tide{{“port“:“L“}}", {"port": "L"}, ("nested-arguments", "quoted-key")),
        ("call:get_tide{port:“L“} thanks", {"port": "L"}, ("trailing-text",)),
        ("call:get_tide", {}, ("empty-arguments",)),
        ("get_tide{port:“L“}", {"port": "L"}, ("missing-call-prefix",)),
        ("call:desk.mcp/get_tide:{port:“L“}", {"port": "L"}, ("resolved-name",)),
        ('{"name": "get_tide", "arguments": {"port": "L"}}', {"port": "L"},
         ("call-object", "quoted-key", "double-quotes")),
        ("call:get_tide{port:“say “hi“ now“,days:1}", {"port": 'say "hi" now', "days": 1}, ("unescaped-quote",)),
        ("call:get_tide{port:“{“a“: “b“, “c“: 1}“,days:1}", {"port": '{"a": "b", "c": 1}', "days": 1},
         ("unescaped-quote",)),
        ("call:get_tide{port:“L\ud800“}", {"port": "L\ufffd"}, ("lone-surrogate",)),
    ],
)  # fmt: skip
def test_what_is_plainly_meant_is_read(call: str, value: dict[str, Any], repairs: tuple[str, ...]) -> None:
    assert calls(f"«{call}»") == [("get_tide", value, repairs)]
    (dropped,) = (event for event in read(f"«{call}»", strict=True) if isinstance(event, ToolDropped))
    assert dropped.reason == "malformed"


def test_a_value_is_typed_by_the_tool_only_where_the_model_left_its_type_open() -> None:
    assert calls("«call:get_tide{port:true,days:“2“}»") == [
        ("get_tide", {"port": "true", "days": "2"}, ("bare-value",))
    ]
    assert calls("«call:get_tide{port:true}»", tools=None) == [("get_tide", {"port": True}, ())]


def test_without_tools_a_long_name_stays_and_one_without_its_prefix_is_read() -> None:
    assert calls("«call:desk:get_tide{}»«f{}»", tools=None) == [
        ("desk:get_tide", {}, ()),
        ("f", {}, ("missing-call-prefix",)),
    ]


def test_two_calls_may_share_a_block() -> None:
    assert calls("«call:f{a:1}call:g{a:2} , call:h{}»") == [
        ("f", {"a": 1}, ()),
        ("g", {"a": 2}, ("shared-block",)),
        ("h", {}, ("shared-block",)),
    ]


def test_a_number_beyond_pythons_digits_is_kept_as_text() -> None:
    digits = "1" * 5000
    (call,) = (e for e in events_of([f"<|tool_call>call:f{{a:{digits}}}<tool_call|>"]) if isinstance(e, ToolEnd))
    assert (call.arguments, call.repairs) == ({"a": digits}, ("number-too-long",))


@pytest.mark.parametrize(("depth", "reason"), [(199, None), (200, "malformed"), (5000, "malformed")])
def test_what_nests_too_deep_is_dropped(depth: int, reason: str | None) -> None:
    text = spelled(f"«call:f{{a:{'[' * depth}{']' * depth}}}»«call:g{{}}»")
    for pieces in ([text], list(text)):
        first, second = (e for e in events_of(pieces) if isinstance(e, ToolEnd | ToolDropped))
        assert (first.reason if isinstance(first, ToolDropped) else None) == reason
        assert second.name == "g"


# Markers inside strings.


@pytest.mark.parametrize(
    "literal",
    [
        "»", "«", "»«", "}»", "}»«call:g{", "»«call:g{a:1}»", "<turn|>", "»<turn|>", "<|tool_response>",
        "<|channel>thought\n", "»\n«call:g{}", "]}}»<eos>", "<|tool_ca",
    ],
)  # fmt: skip
def test_a_marker_inside_a_string_is_text(literal: str) -> None:
    value = spelled(f"a {literal} b")
    assert calls(f"«call:f{{s:“{value}“,n:1}}»") == [("f", {"s": value, "n": 1}, ())]
    nested = {"n": 1, "l": [value, {"k": value}]}
    assert calls(f"«call:f{{n:1,l:[“{value}“,{{k:“{value}“}}]}}»") == [("f", nested, ())]
    quoted = value.replace("\n", "\\n")
    assert calls(f'«call:f{{s:"{quoted}",n:1}}»') == [("f", {"s": value, "n": 1}, ("double-quotes",))]


def test_a_string_that_nobody_closed_ends_with_its_call() -> None:
    assert calls("«call:f{port:“Leith}»") == [("f", {"port": "Leith"}, ("missing-value-end",))]
    assert calls("«call:f{a:{b:[“x]}}»<turn|>") == [("f", {"a": {"b": ["x"]}}, ("missing-value-end",))]
    assert calls('«call:f{port:"Leith}»') == [("f", {"port": "Leith"}, ("double-quotes", "missing-value-end"))]
    good = ("g", {"port": "Oban"}, ())
    assert calls("«call:f{port:“Leith}»«call:g{port:“Oban“}»") == [
        ("f", {"port": "Leith"}, ("missing-value-end",)),
        good,
    ]
    assert calls("«call:f{port:“Leith«call:g{port:“Oban“}»") == [
        ("f", {"port": "Leith"}, ("missing-call-end", "missing-value-end", "missing-closer")),
        good,
    ]
    assert calls("«call:f{“port«call:g{port:“Oban“}»") == [
        ("f", {}, ("missing-call-end", "missing-value", "missing-closer")),
        good,
    ]


def test_a_quote_that_nothing_closes_later_closed_its_string() -> None:
    assert calls("«call:f{port:“Leith“ oops}»«call:g{a:“x“}»") == [
        ("f", {"port": "Leith"}, ("stray-character",)),
        ("g", {"a": "x"}, ()),
    ]


# What ends a call.


def test_a_call_may_lack_its_end() -> None:
    complete = ("f", {"a": 1}, ("missing-call-end",))
    for end in ("", "<tool_c", "\n", "<turn|>", "<|tool_response>", "<eos>"):
        assert calls(f"«call:f{{a:1}}{end}") == [complete]
        assert said(f"«call:f{{a:1}}{end}") == ("", "")
    assert calls("«call:f{a:1}«call:g{}»") == [complete, ("g", {}, ())]
    assert calls("«call:f{a:1}The tide is high.") == [complete]
    assert said("«call:f{a:1}The tide is high.") == ("The tide is high.", "")
    assert dropped("«call:f{a:1}", truncated=True) == [("f", "unfinished")]
    assert dropped("«call:f{port:“Leith}»", truncated=True) == [("f", "unfinished")]


@pytest.mark.parametrize("tail", ["<tool_c" + "x" * 450, " " * 450 + "Moin.", " " * 450 + "<tool_c", "<b>" * 150])
def test_text_behind_a_call_without_an_end_is_not_lost(tail: str) -> None:
    text = spelled("«call:f{a:1}") + tail
    for pieces in ([text], list(text), cut(text, [50, 440])):
        events = events_of(pieces)
        assert [event.name for event in events if isinstance(event, ToolEnd)] == ["f"]
        assert "".join(event.text for event in events if isinstance(event, Text)) == tail


def test_a_call_that_is_not_complete_is_dropped() -> None:
    for cut_off in (
        "«",
        "«call:",
        "«call:f",
        "«call:f{",
        "«call:f{a:“x",
        "«call:f{a:“x“",
        "«call:f{a:1,",
        "«call:f{a:[1]",
    ):
        for end in ("", "<turn|>"):
            found = dropped(cut_off + end)
            assert len(found) == 1
            assert found[0][1] == ("malformed" if end and "{" not in cut_off else "unfinished")


def test_a_block_that_is_no_call_is_dropped() -> None:
    assert dropped("«Sorry, no.»Hi") == [(None, "malformed")]
    assert said("«Sorry, no.»Hi") == ("Hi", "")
    assert dropped("«Sorry (no)«call:f{}»") == [(None, "malformed")]
    assert dropped('«{"a": 1}»') == [(None, "nameless")]
    assert dropped("«call:{a:1}»") == [(None, "nameless")]
    assert dropped("«»") == [(None, "malformed")]


def test_a_call_that_is_too_long_is_skipped_to_its_end() -> None:
    long = "«call:f{a:“" + "x" * 90 + "}» y“}»"
    assert dropped(long + "«call:g{}»Hi", max_call_chars=60) == [("f", "too-large")]
    assert [name for name, _, _ in calls(long + "«call:g{}»Hi", max_call_chars=60)] == ["g"]


def test_an_unknown_tool_is_kept_dropped_or_text() -> None:
    text = "a«call:f{x:“y“}»b"
    assert [name for name, _, _ in calls(text)] == ["f"]
    assert dropped(text, unknown_tools="drop") == [("f", "unknown-tool")]
    assert said(text, unknown_tools="text") == (spelled(text), "")


# Thinking, turns and results.


def test_thinking_stands_in_its_channel() -> None:
    assert said("<|channel>thought\nCheck the table.\n<channel|>High at noon.") == ("High at noon.", "Check the table.")
    assert said("<|channel>thought\n<channel|>High.") == ("High.", "")
    assert said("a<|channel>thoughtful<channel|>b<|channel>c") == ("ab", "thoughtful|c")
    assert said("<|channel>tho") == ("", "")
    assert said("High.<channel|>") == ("High.", "")
    assert calls("<|channel>thought\nhm «call:f{}»") == [("f", {}, ("unclosed-thinking",))]
    literal = "<|channel>thought\nhm<channel|>x"
    assert said(literal, parse_thinking=False) == (literal, "")


@pytest.mark.parametrize(
    ("prompt", "thinking"),
    [
        ("<|turn>model\n", ""),
        ("<|turn>model\n<|channel>thought\n<channel|>", ""),
        (
            "<|turn>user\nhi<turn|>\n<|turn>model\n«call:f{a:1}»<|tool_response>response:f{value:“x“}<tool_response|>",
            "",
        ),
        ("<|turn>model\n«call:f{}»<|tool_response>response:f{}<tool_response|><|channel>thought\n", "hm"),
        ("<|channel>thought\n", "hm"),
    ],
)
def test_the_prompt_says_where_the_stream_begins(prompt: str, thinking: str) -> None:
    stream = f"{thinking}\n<channel|>Hi" if thinking else "Hi"
    assert said(stream, generation_prompt=spelled(prompt)) == ("Hi", thinking)


def test_a_prompt_may_have_begun_the_call() -> None:
    prompt = spelled("<|turn>model\n«call:get_tide{port:“")
    assert calls("Leith“}»", generation_prompt=prompt) == [("get_tide", {"port": "Leith"}, ())]


def test_turns_of_the_model_go_on_and_others_stop() -> None:
    assert said("Hi<turn|>\n<|turn>model\nthere<turn|>") == ("Hithere", "")
    assert said("Hi<|turn>mod") == ("Hi", "")
    for role in ("user", "system", "developer"):
        assert Stopped("fabricated-turn") in read(f"Hi<turn|>\n<|turn>{role}\nYes")


def test_a_result_that_the_model_writes_stops_and_its_stop_token_does_not() -> None:
    assert read("«call:f{}»<|tool_response>response:f{value:“x“}<tool_response|>Hi")[-1] == Stopped("fabricated-result")
    assert [type(event) for event in read("«call:f{}»<|tool_response>")] == [ToolStart, ToolArgDelta, ToolEnd]
    assert said("«call:f{}»<|tool_response>Hi<tool_response|>") == ("Hi", "")
    assert said("«call:f{}»<|tool_response>respon") == ("", "")


def test_every_token_of_the_family_is_invisible() -> None:
    for token in CONTROL_TOKENS:
        assert token not in "".join(said(f"a{token}b"))
    assert said("a“b<bos>c<|think|>") == ("abc", "")


# The renderer.


def test_a_key_that_cannot_stand_bare_is_written_as_json() -> None:
    for key in ("a:b", "", '"', "'a'", " a", "a\n", "{", "x" * 200, '<|"|>', "<tool_call|>"):
        text = GEMMA.render_tool_call(ToolCall(None, "f", {"s": "x", key: {key: [None]}}))
        assert calls(text, strict=True) == [("f", {"s": "x", key: {key: [None]}}, ())]
    assert GEMMA.render_tool_call(ToolCall(None, "f", {"time zone": 1.0})) == spelled("«call:f{time zone:1.0}»")


def test_results_stand_in_the_turn_of_their_calls() -> None:
    called = Message("assistant", "", tool_calls=(ToolCall("x", "f", {}),))
    answered = [called, Message("tool", "ok", tool_call_id="x"), Message("assistant", "Done."), Message("tool", "late")]
    assert GEMMA.transcript_text(answered, None) == spelled(
        "<bos><|turn>model\n«call:f{}»<|tool_response>response:f{output:“ok“}<tool_response|><turn|>"
        "<|turn>model\nDone.<|tool_response>response:tool{output:“late“}<tool_response|><turn|>"
    )


@pytest.mark.parametrize(
    ("content", "written"),
    [
        ('{"a": [1, null]}', "{a:[1,null]}"),
        ("[]", "[]"),
        ("5.1 m", "“5.1 m“"),
        ("5", "“5“"),
        ("{not json}", "“{not json}“"),
        ('{"a": NaN}', '“{"a": NaN}“'),
    ],
)
def test_a_result_that_is_json_is_written_as_literals(content: str, written: str) -> None:
    text = GEMMA.render_tool_results([ToolResult(None, "f", content)])
    assert text == spelled(f"<|tool_response>response:f{{output:{written}}}<tool_response|>")


def test_reasoning_that_was_cut_off_ends_with_the_stream() -> None:
    events = read("<|channel>thought\nhm")
    assert events[1:] == [ThinkingDelta("hm"), ThinkingEnd("hm")]


def test_a_string_in_the_quotes_of_json_leaves_as_it_arrives() -> None:
    scanner = GemmaScanner(id_factory=counter())
    scanner.feed('<|tool_call>call:f{"a": "')
    assert scanner.feed("x\\ud83d") == [ToolArgDelta("id-1", "f", "a", "x", "x")]
    assert scanner.feed("\\ude") == []
    assert scanner.feed("00y\\") == [ToolArgDelta("id-1", "f", "a", "😀y", "😀y")]
    assert scanner.feed('"z') == [ToolArgDelta("id-1", "f", "a", '"z', '\\"z')]
