"""Gemini: Python calls in a fence. What a literal is, what is only mentioned, what leaves when, and what is written."""

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects import create_inband_scanner, get_dialect, read_transcript, render_transcript, scan
from dialects.engine.markdown import FenceClose
from dialects.engine.tape import Tape
from dialects.events import Event, Stopped, Text, ThinkingEnd, ToolArgDelta, ToolDropped, ToolEnd, ToolStart
from dialects.messages import ToolCall
from dialects.scanner_row import AutoScanner
from tests.laws import check_arguments, check_order, check_splits, exactly
from tests.streams import Stream, cut

TOOLS = [
    {
        "name": "get_tide",
        "parameters": {"type": "object", "properties": {"port": {"type": "string"}, "days": {"type": "integer"}}},
    }
]
CALL = 'default_api.get_tide(port="Leith")'


def fenced(*lines: str) -> str:
    return "\n".join(["```tool_code", *lines, "```"])


def read(text: str, *, truncated: bool = False, **options: Any) -> list[Any]:
    """The events of a text, the same in every cut in two."""
    stream = Stream("gemini", text, options, truncated)
    events = check_splits(stream, [cut(text, [at]) for at in range(1, len(text))])
    check_order(events)
    check_arguments(events)
    return events


def calls(events: list[Any]) -> list[tuple[str, Any, tuple[str, ...]]]:
    return [(event.name, event.arguments, event.repairs) for event in events if isinstance(event, ToolEnd)]


def pieces(events: list[Event]) -> list[str]:
    return [event.json for event in events if isinstance(event, ToolArgDelta)]


def text_of(events: list[Any]) -> str:
    return "".join(event.text for event in events if isinstance(event, Text))


# Literals.

_INSIDE = st.sampled_from(
    [
        "a",
        " ",
        '"',
        "'",
        "\\n",
        "\\\\",
        '\\"',
        "\\'",
        "\\x41",
        "\\u00e9",
        "\\U0001F600",
        "\\N{BULLET}",
        "\\101",
        "\\0",
        "\\q",
        "\n",
        "#",
        "(",
        ")",
        ",",
        "=",
        "```",
        "\n```\n",
        "\n```py\n",
        "default_api.f(",
        "\\\n",
        "\x0b",
        "{",
        "}",
    ]
)
_STRINGS = st.builds(
    lambda prefix, quote, inside: prefix + quote + "".join(inside) + quote,
    st.sampled_from(["", "", "", "r", "R", "u"]),
    st.sampled_from(['"', "'", '"""', "'''"]),
    st.lists(_INSIDE, max_size=6),
)
_LONG_STRINGS = st.lists(_STRINGS, min_size=1, max_size=3).flatmap(
    lambda parts: st.sampled_from([" ", "\n", " # 'c\n"]).map(lambda between: f"({between.join(parts)})")
)
_SCALARS = st.sampled_from(
    [
        "0",
        "-1",
        "1_000",
        "0x1F",
        "0o17",
        "0b101",
        "1.5",
        "-2.",
        ".5",
        "1E-3",
        "+3",
        "12345678901234567890123",
        "True",
        "False",
        "None",
    ]
)
_SPACE = st.sampled_from(["", " ", "\n  ", " # a, b\n"])


def _container(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def written(space: str, items: list[str], last: str) -> str:
        return space + f",{space}".join(items) + (last if items else "")

    items = st.builds(written, _SPACE, st.lists(inner, max_size=3), st.sampled_from(["", ","]))
    members = st.builds(written, _SPACE, st.lists(st.builds("{}: {}".format, _STRINGS, inner), max_size=3), st.just(""))
    return st.one_of(items.map("[{}]".format), inner.map("({},)".format), members.map("{{{}}}".format))


_LITERALS = st.recursive(st.one_of(_STRINGS, _LONG_STRINGS, _SCALARS), _container, max_leaves=6)


def as_json(value: Any) -> Any:
    match value:
        case list() | tuple():
            return [as_json(item) for item in value]
        case dict():
            return {key: as_json(item) for key, item in value.items()}
        case _:
            return value


@given(st.lists(_LITERALS, min_size=1, max_size=3), st.data())
def test_a_literal_is_what_python_reads(literals: list[str], data: st.DataObject) -> None:
    values = []
    for literal in literals:
        try:
            values.append(ast.literal_eval(literal))
        except (SyntaxError, ValueError):
            return
    arguments = ", ".join(f"a{number}={literal}" for number, literal in enumerate(literals))
    text = fenced(f"f({arguments})")
    positions = data.draw(st.lists(st.integers(0, len(text)), max_size=4))
    events = check_splits(Stream("gemini", text, {}), [cut(text, positions)])
    check_arguments(events)
    ((_, found, repairs),) = calls(events)
    assert exactly(found) == exactly({f"a{number}": as_json(value) for number, value in enumerate(values)})
    assert set(repairs) <= {"duplicate-key"}


@pytest.mark.parametrize(
    ("arguments", "json_text"),
    [
        ("n=1_000", '{"n":1000}'),
        ("n=1e-07, m=1E5, k=-0", '{"n":1e-07,"m":1E5,"k":-0}'),
        ("n=123456789012345678901234567890.10", '{"n":123456789012345678901234567890.10}'),
        ('s="\\ud83c\\udf0a", t=f"{{}}"', '{"s":"🌊","t":"{}"}'),
        ("d={1: 2, None: 3, True: 4}", '{"d":{"1":2,"null":3,"true":4}}'),
        ("s={1, 2}, t=(1, 2), u=(1), v=()", '{"s":[1,2],"t":[1,2],"u":1,"v":[]}'),
        ('**{"x y": 1, "z": 2}, b=3', '{"x y":1,"z":2,"b":3}'),
        ("", "{}"),
    ],
)
def test_arguments_are_written_as_json(arguments: str, json_text: str) -> None:
    (end,) = (event for event in read(fenced(f"f({arguments})"), strict=True) if isinstance(event, ToolEnd))
    assert end.arguments_json == json_text


@pytest.mark.parametrize(
    ("arguments", "meant", "repair"),
    [
        ('t="say "hi" now"', {"t": 'say "hi" now'}, "unescaped-quote"),
        ('t="say "hi""', {"t": 'say "hi"'}, "unescaped-quote"),
        ('t="no", then", n=1', {"t": 'no", then', "n": 1}, "unescaped-quote"),
        ('t=["say "hi" now", "x"]', {"t": ['say "hi" now', "x"]}, "unescaped-quote"),
        ('t="""a """b""" c"""', {"t": 'a """b""" c'}, "unescaped-quote"),
        ("t='it's'", {"t": "it's"}, "unescaped-quote"),
        ('t="press "f" now"', {"t": 'press "f" now'}, "unescaped-quote"),
        ('t="a\nb"', {"t": "a\nb"}, "control-character"),
        ('t="\\xZZ \\N{no such name}"', {"t": "\\xZZ \\N{no such name}"}, "invalid-escape"),
        ("a=true, b=null", {"a": True, "b": None}, "json-literal"),
        ("a=nan", {"a": None}, "not-a-number"),
        ("a=" + "9" * 5000, {"a": "9" * 5000}, "number-too-long"),
        ("a=[1 2]", {"a": [1, 2]}, "missing-comma"),
        ("a=[1, 2", {"a": [1, 2]}, "missing-closer"),
        ("a={b: 1}", {"a": {"b": 1}}, "bare-key"),
        ("a=1, a=2", {"a": 1}, "duplicate-key"),
        ('a={"b": 1, "b": 2}', {"a": {"b": 2}}, "duplicate-key"),
        ('"a"=1', {"a": 1}, "quoted-key"),
        ("a: 1", {"a": 1}, "colon-for-equals"),
        ('{"a": 1}', {"a": 1}, "positional-object"),
        ("a=['x', P(y='z')], b='c'", {"a": ["x", {"y": "z"}], "b": "c"}, "class-call"),
        ("a=default_api.Point(x=1, y=[P()])", {"a": {"x": 1, "y": [{}]}}, "class-call"),
        ("a=[dict(b='c)', d={'e': P(f=None,)})]", {"a": [{"b": "c)", "d": {"e": {"f": None}}}]}, "class-call"),
    ],
)
def test_a_fault_with_one_plain_meaning_is_mended_and_the_next_call_is_clean(
    arguments: str, meant: dict[str, Any], repair: str
) -> None:
    text = fenced(f"f({arguments})", CALL)
    stream = Stream("gemini", text, {})
    events = check_splits(stream, [cut(text, [at]) for at in range(1, min(len(text), 200))])
    check_arguments(events)
    first, second = calls(events)
    assert first == ("f", meant, (repair,))
    assert second == ("get_tide", {"port": "Leith"}, ())


@pytest.mark.parametrize(
    "call",
    [
        "f(a=b)",
        "f(a=1 + 2)",
        'f(a="x" + y)',
        'f(a="x".upper())',
        "f(a=g(1))",
        "f(a=g(x=1))",
        "f(a=Point(1))",
        "f(a=Point(x=1).y)",
        "f(a=Point)",
        'f(a=f"{x}")',
        "f(...)",
        "f(*a)",
        "f(a=1 if b else 2)",
        "f(" + "a=" + "[" * 300 + "]" * 300 + ")",
        'f("no name for it")',
        "f(a=[b for b in c])",
        'f(a=["x", y], b=1)',
        'f(a=["x" for y in z])',
        'f(a="x", *y)',
        'f(a="x"y)',
    ],
)
@pytest.mark.parametrize("between", ["\n", ", "])
def test_what_only_running_it_would_tell_is_malformed_and_costs_no_other_call(call: str, between: str) -> None:
    text = fenced(f"[{CALL}{between}{call}{between}{CALL}]" if between == ", " else f"{CALL}\n{call}\n{CALL}")
    events = check_splits(Stream("gemini", text, {}), [cut(text, [at]) for at in range(1, len(text), 7)])
    assert calls(events) == [("get_tide", {"port": "Leith"}, ())] * 2
    assert [(event.name, event.reason) for event in events if isinstance(event, ToolDropped)] == [("f", "malformed")]


@pytest.mark.parametrize(
    "code",
    [
        'default_api.f(a="x")["level"]',
        'print(default_api.f(a="x")["level"][0])',
        "default_api.f(a=\"x\" )['level']",
        'default_api.f(a="x") == "y"',
        'default_api.f(a="x") if ready else None',
        'tide = default_api.f(a="x") or "none"',
        'tide = default_api.f(a="x") or other["a"]',
        'default_api.f(a="x") + "m"',
    ],
)
def test_what_becomes_of_a_calls_result_is_no_part_of_its_last_argument(code: str) -> None:
    text = fenced(code, CALL)
    events = check_splits(Stream("gemini", text, {}), [cut(text, [at]) for at in range(1, len(text))])
    assert calls(events) == [("f", {"a": "x"}, ("surrounding-code",)), ("get_tide", {"port": "Leith"}, ())]


def test_thousands_of_brackets_cost_neither_the_time_nor_the_next_call() -> None:
    found = scan(fenced(CALL, "[(" * 5_000, CALL), "gemini").tool_calls
    assert [call.arguments for call in found] == [{"port": "Leith"}] * 2


def test_calls_without_anything_between_them_are_two() -> None:
    for between in ("", " "):
        events = read(fenced(f'default_api.f(a="x"){between}default_api.f(a="y")'))
        assert [call[1] for call in calls(events)] == [{"a": "x"}, {"a": "y"}]


@pytest.mark.parametrize(
    "meant", ['a pipe (6") or larger', 'print("hi")[0]', 'size 5" or 6"', 'echo "x" if "y"', '24" if wide else narrow']
)
def test_what_looks_like_code_behind_a_quote_may_still_be_the_strings(meant: str) -> None:
    ((_, found, repairs), _) = calls(read(fenced(f'f(a="{meant}")', CALL)))
    assert (found, repairs) == ({"a": meant}, ("unescaped-quote",))


@pytest.mark.parametrize("value", ['"=" * 3', '"tide"[:2]', '"low" if ebb else "high"'])
def test_an_operator_behind_a_string_is_not_written_into_it(value: str) -> None:
    events = read(fenced(f"f(a={value})", CALL))
    assert calls(events) == [("get_tide", {"port": "Leith"}, ())]
    assert [(event.name, event.reason) for event in events if isinstance(event, ToolDropped)] == [("f", "malformed")]


@pytest.mark.parametrize("wrapper", ["len", "json.dumps", "print(json.dumps"])
def test_a_function_around_a_call_is_not_called_without_arguments(wrapper: str) -> None:
    text = fenced(f"{wrapper}({CALL}{')' * (wrapper.count('(') + 1)}", CALL)
    events = check_splits(Stream("gemini", text, {}), [cut(text, [at]) for at in range(1, len(text))])
    assert calls(events) == [("get_tide", {"port": "Leith"}, ())] * 2
    assert [event.reason for event in events if isinstance(event, ToolDropped)] == ["malformed"]


@pytest.mark.parametrize("before", ['print("Checking the tide")', "port = 5", '"""Ask for the tide."""', "try: pass"])
def test_other_code_on_the_lines_before_a_call_does_not_cost_it(before: str) -> None:
    text = fenced(before, CALL, f"print({CALL})")
    events = check_splits(Stream("gemini", text, {}), [cut(text, [at]) for at in range(1, len(text))])
    assert calls(events) == [
        ("get_tide", {"port": "Leith"}, ("surrounding-code",)),
        ("get_tide", {"port": "Leith"}, ()),
    ]
    assert calls(read(fenced(before, 'get_tide(port="Leith")'))) == []
    assert len(calls(read(fenced(before, 'get_tide(port="Leith")'), tools=TOOLS))) == 1


def test_auto_is_told_by_a_call_behind_other_code_too() -> None:
    text = fenced('print("Checking the tide")', f"print({CALL})")
    for chunks in ([text], list(text)):
        scanner = create_inband_scanner("auto")
        events = [event for chunk in chunks for event in scanner.feed(chunk)] + scanner.flush()
        assert isinstance(scanner, AutoScanner)
        assert scanner.match.name == "gemini"
        assert calls(events) == [("get_tide", {"port": "Leith"}, ("surrounding-code",))]
    assert scan("Write ```tool_code\nand then more.\n```", "auto").tool_calls == []


def test_code_without_a_line_that_is_plainly_a_call_is_malformed_and_behind_prose_it_is_prose() -> None:
    code = fenced("for port in ports:", f"    {CALL}")
    assert calls(read(code)) == []
    assert [event.reason for event in read(code) if isinstance(event, ToolDropped)] == ["malformed"]
    mentioned = "Write " + fenced("x = 1", CALL)
    assert read(mentioned) == [Text(mentioned)]


@pytest.mark.parametrize("prefix", ["", "r"])
@pytest.mark.parametrize("quote", ['"', "'''"])
def test_half_a_character_behind_a_backslash_is_replaced_like_any_other(prefix: str, quote: str) -> None:
    events = read(fenced(f"f(a={prefix}{quote}x\\\ud83dy{quote})"))
    check_arguments(events)
    assert calls(events) == [("f", {"a": "x\\\ufffdy"}, ("lone-surrogate",))]
    (dropped,) = read(f"```tool_code\nf(a={prefix}{quote}x\\")[-1:]
    assert isinstance(dropped, ToolDropped)


@pytest.mark.parametrize("opened", ['default_api.f(a="x)', "default_api.f(a='''x)", "[default_api.f(a=\"x), ['"])
@pytest.mark.parametrize("between", ["\n", "\n```\nThen:\n```tool_code\n"])
def test_a_string_that_was_never_closed_costs_no_later_call(opened: str, between: str) -> None:
    events = read(fenced(f"{opened}{between}{CALL}"))
    assert ("get_tide", {"port": "Leith"}) in [call[:2] for call in calls(events)]


def test_arguments_without_a_name_get_those_of_the_tools_parameters() -> None:
    events = read(fenced('get_tide("Leith", 2)'), tools=TOOLS)
    assert calls(events) == [("get_tide", {"port": "Leith", "days": 2}, ("positional-argument",))]


def test_a_call_of_another_tool_is_no_object_however_it_is_spelled() -> None:
    call = fenced('get_tide(port=GetPort(name="Leith"))')
    assert calls(read(call)) == [("get_tide", {"port": {"name": "Leith"}}, ("class-call",))]
    assert calls(read(call, tools=[*TOOLS, {"name": "GetPort", "parameters": {}}])) == []


# Fences.


@pytest.mark.parametrize(
    "text",
    [
        "Use ```tool_code fences.",
        "A `` ```tool_code `` span",
        "```tool_code_example\nf()\n```",
        "``` tool_code\nf()\n```",
        f"````md\n{fenced(CALL)}\n````\nx",
        f"```md\n{fenced(CALL)}\n```\nx",
        f"~~~\n{fenced(CALL)}\n~~~\nx",
        "say ```tool_code\nand then ``` again",
        '```python\nf(x="y")\n```',
        "```tool_outputs\nno call came before\n```",
        "x ```thinking\ny\n```",
    ],
)
def test_what_is_only_mentioned_is_text(text: str) -> None:
    assert read(text) == [Text(text)]


@pytest.mark.parametrize(
    ("before", "behind"),
    [("", ""), ("It is so.", ""), ("```py\nx\n```\n", "\n```\n4 m\n```"), ("Use `x`", " as I said"), ("- a\n  ", "")],
)
@pytest.mark.parametrize("ticks", ["```", "````"])
def test_a_fence_that_is_used_is_read_wherever_it_stands(before: str, behind: str, ticks: str) -> None:
    if before.endswith("`"):
        ticks = "\n" + ticks
    fence = ticks if before.endswith("\n") or not before else "```"
    events = read(f"{before}{fence}tool_code\n{CALL}\n{fence.strip()}{behind}")
    assert calls(events) == [("get_tide", {"port": "Leith"}, ())]
    assert text_of(events).split() == (before + behind).split()


@pytest.mark.parametrize("inside", ["[]", "", "\n", "[ ]"])
def test_an_empty_block_says_nothing(inside: str) -> None:
    assert read(f"It is 12 degrees.```tool_code\n{inside}\n```<end_of_turn>\n") == [Text("It is 12 degrees.")]


@pytest.mark.parametrize("code", ["cat\n```\nx\n```\n", "```python\nx\n```", "a\n```tool_code\nf()\n```\nb"])
def test_a_fence_in_a_string_does_not_end_the_block(code: str) -> None:
    events = read(fenced(f"default_api.write(text='''{code}''')", CALL), strict=True)
    assert calls(events) == [("write", {"text": code}, ()), ("get_tide", {"port": "Leith"}, ())]


def test_a_file_that_was_cut_off_is_never_written_half() -> None:
    for truncated in (True, False):
        events = read('```tool_code\nwrite(text="""# T\n```\nx\n```\nmore', truncated=truncated)
        assert [event.reason for event in events if isinstance(event, ToolDropped)] == ["unfinished"]
        assert not text_of(events)


def test_thinking_ends_with_its_own_fence() -> None:
    events = read("```thinking\na\n```py\nb\n```\nc\n```\nd")
    assert [event.thinking for event in events if isinstance(event, ThinkingEnd)] == ["a\n```py\nb\n```\nc"]
    assert text_of(events) == "d"


def test_a_call_in_thinking_is_a_draft_if_the_thinking_ends() -> None:
    draft = f"```thinking\nhm\n{fenced(CALL)}"
    assert calls(read(draft + "\n```\nok")) == []
    assert calls(read(draft)) == [("get_tide", {"port": "Leith"}, ("unclosed-thinking",))]


def test_a_result_that_the_model_writes_itself_stops_it() -> None:
    for closer in ("\n```\n", "\n"):
        events = read(f"```tool_code\n{CALL}{closer}```tool_outputs\n5 m")
        assert events[-1] == Stopped("fabricated-result")
        assert len(calls(events)) == 1


def test_a_call_needs_its_fence_where_generation_was_cut_off() -> None:
    text = f"```tool_code\n{CALL}"
    assert calls(read(text)) == [("get_tide", {"port": "Leith"}, ("missing-call-end",))]
    assert calls(read(text, truncated=True)) == []
    assert len(calls(read(f"```tool_code\n[{CALL},", truncated=True))) == 1


def test_the_raw_blocks_of_a_block_are_all_of_it() -> None:
    text = fenced(f"[{CALL}, f(a=[1]), g()]")
    events = read(text)
    assert "".join(event.raw_block for event in events if isinstance(event, ToolEnd)) == text
    assert read(text, tools=[], unknown_tools="text") == [Text(text)]


# Streaming.


def test_values_leave_as_they_arrive() -> None:
    scanner = create_inband_scanner("gemini")
    assert scanner.feed("```tool_code\n[default_api.wri") == []
    assert [type(event) for event in scanner.feed("te(")] == [ToolStart]
    scanner.feed("text='''")
    for chunk, shown in (("a\\n", "a\n"), ("b\\", "b"), ("u00e9", "é"), ("c", "c")):
        deltas = [event for event in scanner.feed(chunk) if isinstance(event, ToolArgDelta)]
        assert "".join(event.delta for event in deltas) == shown
    scanner.feed("''', more={'k': [")
    assert pieces(scanner.feed("1, 2")) == ["1", ","]
    assert pieces(scanner.feed(", '"))[:1] == ["2"]
    assert pieces(scanner.feed("xy")) == ['"', "xy"]


def test_an_apostrophe_in_triple_quotes_leaves_with_the_character_behind_it() -> None:
    scanner = create_inband_scanner("gemini")
    scanner.feed("```tool_code\nf(a='''it'")
    events = scanner.feed("s")
    assert "".join(event.delta for event in events if isinstance(event, ToolArgDelta)) == "'s"


def test_a_model_that_writes_nothing_but_backticks_is_not_waited_for() -> None:
    scanner = create_inband_scanner("gemini")
    shown = "".join(event.text for _ in range(1000) for event in scanner.feed("`" * 20) if isinstance(event, Text))
    assert scanner.held_chars < 5_000
    shown += "".join(event.text for event in scanner.flush() if isinstance(event, Text))
    assert shown == "`" * 20_000


# Writing.


def test_a_name_that_is_none_in_python_is_passed_in_a_dict() -> None:
    arguments = {"a": 1, "x y": 2, "from": 3, "b": "c"}
    text = get_dialect("gemini").render_tool_call(ToolCall(None, "f", arguments))
    assert text == 'default_api.f(a=1, **{"x y": 2, "from": 3}, b="c")'
    (call,) = scan(f"```tool_code\n{text}\n```", "gemini", strict=True).tool_calls
    assert json.loads(call.arguments_json) == arguments
    assert list(call.arguments) == list(arguments)


def test_thinking_with_a_fence_in_it_stands_in_a_longer_one() -> None:
    thinking = "a\n```\nb"
    written = get_dialect("gemini").render_thinking(thinking)
    assert written == "````thinking\na\n```\nb\n````"
    assert scan(written, "gemini").thinking == thinking


def test_text_that_ends_with_code_stays_apart_from_the_fence() -> None:
    text = render_transcript([{"role": "assistant", "content": "Use `x`"}], "gemini")
    assert text == "<bos><start_of_turn>model\nUse `x`\n```tool_code\n[]\n```<end_of_turn>\n"


@pytest.mark.parametrize("text", ["``` as said", "Here: ```py\nx = 1\n``` as said", "```py\nx\n```", "Use ```"])
def test_an_answer_is_read_back_without_the_empty_list_behind_it(text: str) -> None:
    (message,) = read_transcript(render_transcript([{"role": "assistant", "content": text}], "gemini"), "gemini")
    assert message.content.strip() == text


def test_a_system_text_stands_before_the_next_user_turn_or_in_one_of_its_own() -> None:
    system, user = {"role": "system", "content": "S"}, {"role": "user", "content": "U"}
    turn = "<start_of_turn>user\n{}<end_of_turn>\n".format
    assert render_transcript([system, system, user], "gemini") == "<bos>" + turn("S\nS\nU")
    assert render_transcript([user, system], "gemini") == "<bos>" + turn("U") + turn("S")


def test_thinking_that_is_begun_again_and_again_and_never_closed_is_not_read_ahead_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[int] = []
    original = FenceClose.read

    def counted(self: FenceClose, tape: Tape, *, final: bool) -> bool | None:
        start = tape.pos
        answer = original(self, tape, final=final)
        read.append(tape.pos - start)
        return answer

    monkeypatch.setattr(FenceClose, "read", counted)
    text = "```thinking\n```tool_code\n" * 500
    scan(text, "gemini")
    assert sum(read) < 20 * len(text)
