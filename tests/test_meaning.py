"""What a damaged call plainly means is what comes out of it.

A call is rendered and damaged in one known way. It must come out as it was meant, say which repair it needed, obey the
law of arguments, and leave the next call alone. `JSON_DAMAGES` damages arguments that are JSON, whatever the dialect;
`DAMAGES` damages the markup of one dialect. The strings beside the damage are arbitrary and well-formed.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialects import dialect_names, get_dialect
from dialects.events import Event, Text, ThinkingEnd, ToolDropped, ToolEnd
from dialects.messages import ToolCall
from tests.laws import check_arguments, check_order, exactly
from tests.streams import Frame, Turn, cut, cuts, frame, joined, plain_texts, scan_pieces, tools_for

every_dialect = pytest.mark.parametrize("name", dialect_names())
json_dialects = pytest.mark.parametrize("name", [name for name in dialect_names() if frame(name)])

examples = settings(max_examples=max(5, settings().max_examples // (4 * len(dialect_names()))))
"""There are many damages, and the dialects share the time that the tests may take."""

GOOD = ToolCall(None, "good", {"ok": True, "text": "fine"})

_WORDS = st.text("abcdefgh éß中😀", min_size=1, max_size=12).filter(lambda word: word.strip() == word != "")


class Broken(NamedTuple):
    """A JSON text with a fault, and the arguments it plainly means."""

    text: str
    means: dict[str, Any]


class Pieces(NamedTuple):
    """What a damage works with: three words, and arbitrary well-formed text before and after the damage."""

    a: str
    b: str
    c: str
    before: str
    after: str

    def members(self, raw: str, value: object) -> Broken:
        """Arguments in which one member's JSON text is `raw`, meaning `value`."""
        head, tail = json.dumps(self.before), json.dumps(self.after, ensure_ascii=False)
        text = f'{{"before": {head}, "text": {raw}, "n": 1, "after": {tail}}}'
        return Broken(text, {"before": self.before, "text": value, "n": 1, "after": self.after})

    @property
    def clean(self) -> Broken:
        """Arguments without a fault."""
        value = f'{self.a} "{self.b}" \\ {self.c}'
        return self.members(json.dumps(value), value)

    @property
    def plain(self) -> Broken:
        """Arguments without a fault, and without quotes or backslashes inside strings."""
        means = {"a": self.a, "list": [self.b, 1, {"c": self.c}], "last": self.c}
        return Broken(json.dumps(means, ensure_ascii=False), means)


class Outer(NamedTuple):
    """What stands around the arguments in the object that holds them and the name."""

    head: str
    tail: str

    @classmethod
    def of(cls, around: Frame) -> "Outer | None":
        """None where the arguments stand in no other object."""
        start, end = around.before.find("{"), around.after.rfind("}") + 1
        return cls(around.before[start:], around.after[:end]) if start >= 0 and end > 0 else None


def within(raw: Callable[[Pieces], str], value: Callable[[Pieces], object]) -> Callable[[Pieces], Broken]:
    return lambda p: p.members(raw(p), value(p))


def around(before: str, after: str) -> Callable[[Pieces], Broken]:
    return lambda p: Broken(before + p.clean.text + after, p.clean.means)


def python_repr(p: Pieces) -> Broken:
    before = "".join(char for char in p.before if char.isprintable() or char in "\n\t")
    means = {"a": p.a, "list": [True, False, None, -1.5], "before": before, "it's": {"x": f"{p.b}'s"}}
    return Broken(repr(means), means)


def duplicate(p: Pieces) -> Broken:
    return Broken(f'{{"text": "{p.a}", "n": 1, "text": "{p.b}"}}', {"text": p.a, "n": 1})


def encoded(p: Pieces) -> Broken:
    return Broken(json.dumps(p.clean.text), p.clean.means)


OUTER_DAMAGES: dict[str, Callable[[str], str]] = {
    "a code fence around": lambda block: f"```json\n{block}\n```",
    "a code fence without a language": lambda block: f"```\n{block}\n```",
    "prose after": lambda block: f"{block} That is all.",
    "one brace too many": lambda block: block + "}",
    "two braces too many": lambda block: block + "}}",
    "a list that holds the object": lambda block: f"[{block}]",
}
"""Where the arguments stand inside another object, with the name, these happen to all of it."""

SENSELESS = ("prose before", "a missing quote and brace")
"""These have no plain meaning there: what is no call's first character opens none; the outer braces close a string."""

JSON_DAMAGES: dict[str, Callable[[Pieces], Broken]] = {
    "a raw newline in a string": within(lambda p: f'"{p.a}\n{p.b}\r\n\t{p.c}"', lambda p: f"{p.a}\n{p.b}\r\n\t{p.c}"),
    "a raw control character in a string": within(lambda p: f'"{p.a}\x01{p.b}"', lambda p: f"{p.a}\x01{p.b}"),
    "unescaped quotes around a word": within(lambda p: f'"{p.a} "{p.b}" {p.c}"', lambda p: f'{p.a} "{p.b}" {p.c}'),
    "unescaped quotes at the start": within(lambda p: f'""{p.a}" {p.b}"', lambda p: f'"{p.a}" {p.b}'),
    "unescaped quotes, then a comma": within(lambda p: f'"{p.a} "{p.b}", {p.c}"', lambda p: f'{p.a} "{p.b}", {p.c}'),
    "unescaped quotes, then a full stop": within(lambda p: f'"{p.a} "{p.b}"."', lambda p: f'{p.a} "{p.b}".'),
    "one unescaped quote": within(lambda p: f'"{p.a} 12" {p.b}"', lambda p: f'{p.a} 12" {p.b}'),
    "unescaped quotes of an attribute": within(
        lambda p: f'"<a href="{p.a}" id="{p.b}">{p.c}</a>"', lambda p: f'<a href="{p.a}" id="{p.b}">{p.c}</a>'
    ),
    "unescaped quotes in a list": within(
        lambda p: f'["{p.a}", "{p.a} "{p.b}" {p.c}", "{p.c}"]', lambda p: [p.a, f'{p.a} "{p.b}" {p.c}', p.c]
    ),
    "Python literals": within(lambda p: "[True, False, None]", lambda p: [True, False, None]),
    "a Python literal as a member": within(lambda p: "None", lambda p: None),
    "a Python dict": python_repr,
    "single quotes": lambda p: Broken(p.plain.text.replace('"', "'"), p.plain.means),
    "single quotes around one value": within(lambda p: f"'{p.a} {p.b}'", lambda p: f"{p.a} {p.b}"),
    "an apostrophe in single quotes": lambda p: Broken(
        f"{{'text': '{p.a} don't {p.b}', 'n': 1}}", {"text": f"{p.a} don't {p.b}", "n": 1}
    ),
    "an invalid escape": within(lambda p: f'"{p.a}\\d+\\.{p.b}"', lambda p: f"{p.a}\\d+\\.{p.b}"),
    "a Windows path": within(lambda p: '"C:\\Users\\xy\\_z"', lambda p: "C:\\Users\\xy\\_z"),
    "an escaped apostrophe": within(lambda p: f'"{p.a}\\\'s {p.b}"', lambda p: f"{p.a}'s {p.b}"),
    "a trailing comma": lambda p: Broken(p.clean.text[:-1] + ", }", p.clean.means),
    "a trailing comma in a list": within(lambda p: f'["{p.a}", 1, ]', lambda p: [p.a, 1]),
    "a missing brace": lambda p: Broken(p.clean.text[:-1], p.clean.means),
    "missing brackets and braces": lambda p: Broken(
        f'{{"before": {json.dumps(p.before)}, "list": [1, {{"a": "{p.a}"', {"before": p.before, "list": [1, {"a": p.a}]}
    ),
    "a missing quote and brace": lambda p: Broken(
        f'{{"before": {json.dumps(p.before)}, "a": "{p.a}', {"before": p.before, "a": p.a}
    ),
    "one brace too many": around("", "}"),
    "two braces too many": around("", "}}"),
    "a code fence around": around("```json\n", "\n```"),
    "a code fence without a language": around("```\n", "\n```"),
    "prose before": around("Here are the arguments: ", ""),
    "prose after": around("", " That is all."),
    "a duplicate key": duplicate,
    "a JSON string that holds the object": encoded,
    "a list that holds the object": around("[", "]"),
    "bare keys": lambda p: Broken(f'{{a: "{p.a}", b: [1, {{c: "{p.c}"}}]}}', {"a": p.a, "b": [1, {"c": p.c}]}),
    "a missing comma": lambda p: Broken(f'{{"a": "{p.a}" "b": "{p.b}", "n": 1}}', {"a": p.a, "b": p.b, "n": 1}),
    "missing commas between lines": lambda p: Broken(
        f'{{\n  "a": "{p.a}"\n  "n": 1\n  "b": "{p.b}"\n}}', {"a": p.a, "n": 1, "b": p.b}
    ),
    "a missing comma in a list": within(lambda p: f'["{p.a}" "{p.b}"]', lambda p: [p.a, p.b]),
    "not a number": within(lambda p: "[NaN, Infinity, -Infinity]", lambda p: [None, None, None]),
    "a lone surrogate": within(lambda p: f'"{p.a}\\ud83d{p.b}"', lambda p: f"{p.a}\ufffd{p.b}"),
    "a raw lone surrogate": within(lambda p: f'"{p.a}\ud83d{p.b}"', lambda p: f"{p.a}\ufffd{p.b}"),
    "a number beyond the digit limit": within(lambda p: "9" * 5000, lambda p: "9" * 5000),
    "no arguments": lambda p: Broken("", {}),
    "null": lambda p: Broken("null", {}),
    "an empty string": lambda p: Broken('""', {}),
}


def read_all_ways(name: str, text: str, positions: list[int], **options: Any) -> list[Event]:
    events = joined(scan_pieces(name, [text], **options))
    for pieces in (list(text), cut(text, positions)):
        assert joined(scan_pieces(name, pieces, **options)) == events
    check_order(events)
    check_arguments(events)
    return events


@json_dialects
@pytest.mark.parametrize("damage", JSON_DAMAGES)
@examples
@given(data=st.data())
def test_damaged_json_is_read_as_it_was_meant(name: str, damage: str, data: st.DataObject) -> None:
    plain = plain_texts(name)
    pieces = Pieces(*(data.draw(part) for part in (_WORDS, _WORDS, _WORDS, plain, plain)))
    broken = JSON_DAMAGES[damage](pieces)
    dialect = get_dialect(name)
    around = frame(name, "bad")
    assert around
    outer = Outer.of(around)
    batch = around.around('{"holder":"HOLDER"}') + dialect.render_assistant_tool_calls([GOOD])
    assert dialect.render_tool_call(GOOD) in batch
    if outer and damage in SENSELESS:
        pytest.skip("has no plain meaning where the arguments stand inside another object")
    if outer and damage in OUTER_DAMAGES:
        block = outer.head + pieces.clean.text + outer.tail
        text = batch.replace(outer.head + '{"holder":"HOLDER"}' + outer.tail, OUTER_DAMAGES[damage](block))
        broken = pieces.clean
    else:
        text = batch.replace('{"holder":"HOLDER"}', broken.text)
    assert text != batch
    events = read_all_ways(name, text, data.draw(cuts(text)))
    call, good = (event for event in events if isinstance(event, ToolEnd | ToolDropped))
    assert isinstance(call, ToolEnd)
    assert (call.name, exactly(call.arguments)) == ("bad", exactly(broken.means))
    assert call.repairs
    assert "json-repair" not in call.repairs
    assert isinstance(good, ToolEnd)
    assert (good.name, good.arguments, good.repairs) == (GOOD.name, GOOD.arguments, ())
    assert not [event for event in events if isinstance(event, Text)]
    (strict,) = (event for event in scan_pieces(name, [text], strict=True) if isinstance(event, ToolDropped))
    assert (strict.reason, strict.name) == ("malformed", "bad")


@json_dialects
@pytest.mark.parametrize(
    ("damage", "repair"),
    [
        ("a duplicate key", "duplicate-key"),
        ("a lone surrogate", "lone-surrogate"),
        ("a number beyond the digit limit", "number-too-long"),
    ],
)
def test_the_repairs_that_the_laws_name_are_named_so(name: str, damage: str, repair: str) -> None:
    around = frame(name)
    assert around
    broken = JSON_DAMAGES[damage](Pieces("a", "b", "c", "", ""))
    (call,) = (event for event in scan_pieces(name, [around.around(broken.text)]) if isinstance(event, ToolEnd))
    assert call.repairs == (repair,)


class Block(NamedTuple):
    """What stands between a call's tags, and which repairs it needs."""

    write: Callable[[ToolCall], str]
    repairs: tuple[str, ...] = ()


def _fields(**fields: Any) -> str:
    return json.dumps(fields, ensure_ascii=False)


BLOCKS: dict[str, Block] = {
    "the arguments first": Block(lambda call: _fields(arguments=call.arguments, name=call.name)),
    "parameters for arguments": Block(
        lambda call: _fields(name=call.name, parameters=call.arguments), ("arguments-alias",)
    ),
    "other members beside": Block(
        lambda call: _fields(type="function", id="x", name=call.name, arguments=call.arguments, more={"name": "no"})
    ),
    "the arguments as a JSON string": Block(
        lambda call: _fields(name=call.name, arguments=json.dumps(call.arguments)), ("unwrapped-string",)
    ),
    "the arguments as a JSON string first": Block(
        lambda call: _fields(arguments=json.dumps(call.arguments), name=call.name), ("unwrapped-string",)
    ),
    "spread over lines": Block(lambda call: json.dumps({"name": call.name, "arguments": call.arguments}, indent=4)),
    "a Python dict": Block(
        lambda call: repr({"name": call.name, "arguments": call.arguments}), ("single-quotes",)
    ),
    "the outer brace missing": Block(
        lambda call: _fields(name=call.name, arguments=call.arguments)[:-1], ("missing-closer",)
    ),
    "both braces missing": Block(
        lambda call: _fields(name=call.name, arguments=call.arguments)[:-2], ("missing-closer",)
    ),
    "an object around": Block(
        lambda call: _fields(function={"name": call.name, "arguments": call.arguments}), ("nested-call",)
    ),
    "a fence that is only closed": Block(
        lambda call: _fields(name=call.name, arguments=call.arguments) + "\n```", ("code-fence",)
    ),
}  # fmt: skip

tagged_json = pytest.mark.parametrize(
    "name", [name for name in dialect_names() for found in [frame(name)] if found and Outer.of(found)]
)


def tagged(name: str, *blocks: str) -> str:
    """Calls in a dialect's tags, whose blocks are written so."""
    around = frame(name, "bad")
    assert around
    outer = Outer.of(around)
    assert outer
    before, after = around.before.removesuffix(outer.head), around.after.removeprefix(outer.tail)
    return "\n".join(before + block + after for block in blocks)


@tagged_json
@pytest.mark.parametrize("block", BLOCKS)
@examples
@given(data=st.data())
def test_a_call_object_of_another_shape_is_read_as_it_was_meant(name: str, block: str, data: st.DataObject) -> None:
    words = _WORDS if BLOCKS[block].repairs == ("single-quotes",) else plain_texts(name)
    call = ToolCall(None, "bad", {"text": data.draw(words), "list": [1, {"a": data.draw(words)}], "z": None})
    if BLOCKS[block].repairs == ("single-quotes",):
        call.arguments.pop("z")
    text = tagged(name, BLOCKS[block].write(call), _fields(name=GOOD.name, arguments=GOOD.arguments))
    events = read_all_ways(name, text, data.draw(cuts(text)))
    bad, good = (event for event in events if isinstance(event, ToolEnd | ToolDropped))
    assert isinstance(bad, ToolEnd)
    assert (bad.name, exactly(bad.arguments), bad.repairs) == ("bad", exactly(call.arguments), BLOCKS[block].repairs)
    assert isinstance(good, ToolEnd)
    assert (good.name, good.arguments, good.repairs) == (GOOD.name, GOOD.arguments, ())
    assert not [event for event in events if isinstance(event, Text)]


@tagged_json
@pytest.mark.parametrize(
    ("before", "between", "after"),
    [
        ("", "\n", ""),
        ("", ", ", ""),
        ("", "", ""),
        ("[", ", ", "]"),
        ("[\n", ",\n", "\n]"),
        ("```json\n", "\n", "\n```"),
    ],
)
@examples
@given(data=st.data())
def test_several_calls_in_one_pair_of_tags_are_all_read(
    name: str, before: str, between: str, after: str, data: st.DataObject
) -> None:
    calls = [ToolCall(None, f"tool_{i}", {"text": data.draw(plain_texts(name))}) for i in range(3)]
    blocks = [_fields(name=call.name, arguments=call.arguments) for call in calls]
    text = tagged(name, before + between.join(blocks) + after, _fields(name=GOOD.name, arguments=GOOD.arguments))
    events = read_all_ways(name, text, data.draw(cuts(text)))
    found = [event for event in events if isinstance(event, ToolEnd)]
    assert [(call.name, call.arguments) for call in found] == [(c.name, c.arguments) for c in (*calls, GOOD)]
    assert found[-1].repairs == ()
    assert "".join(call.raw_block for call in found[:3]) in text
    assert not [event for event in events if isinstance(event, Text | ToolDropped)]


@tagged_json
@pytest.mark.parametrize("block", ["Here it is: {}", "sorry", "one({{'a': 1}})", '"name": "one"}}', "<one>{}</one>"])
def test_a_block_that_does_not_begin_like_a_call_is_malformed_and_the_next_call_is_read(name: str, block: str) -> None:
    good = _fields(name=GOOD.name, arguments=GOOD.arguments)
    events = read_all_ways(name, tagged(name, block.format(good), good), [])
    bad, call = (event for event in events if isinstance(event, ToolEnd | ToolDropped))
    assert isinstance(bad, ToolDropped)
    assert (bad.name, bad.reason, bad.raw_block) == (None, "malformed", tagged(name, block.format(good)).strip())
    assert isinstance(call, ToolEnd)
    assert (call.name, call.arguments, call.repairs) == (GOOD.name, GOOD.arguments, ())


@tagged_json
@pytest.mark.parametrize(
    ("block", "arguments", "repairs"),
    [
        ('{"name": "bad"}', {}, ("empty-arguments",)),
        ('{"name": "bad", "arguments": null}', {}, ("empty-arguments",)),
        ('{"name": "bad", "arguments": ""}', {}, ("empty-arguments",)),
        ('{"name": "bad", "arguments": {}}', {}, ()),
        ('{"name": "bad", "arguments": "hello"}', {}, ("unwrapped-string", "unreadable-arguments")),
        ('{"name": "bad", "a": 1}', {"a": 1}, ("inline-arguments",)),
        ('{"tool_name": "bad", "arguments": {"a": 1}}', {"a": 1}, ("name-alias",)),
        ('{"arguments": {"a": 1}}', None, ()),
        ('{"name": "", "arguments": {"a": 1}}', None, ()),
        ('{"name": 7, "arguments": {"a": 1}}', None, ()),
        ("{}", None, ()),
    ],
)
def test_a_call_object_with_members_missing(
    name: str, block: str, arguments: dict[str, Any] | None, repairs: tuple[str, ...]
) -> None:
    text = tagged(name, block, _fields(name=GOOD.name, arguments=GOOD.arguments))
    bad, good = (e for e in read_all_ways(name, text, []) if isinstance(e, ToolEnd | ToolDropped))
    if arguments is None:
        assert isinstance(bad, ToolDropped)
        assert (bad.name, bad.reason) == (None, "nameless")
    else:
        assert isinstance(bad, ToolEnd)
        assert (bad.name, bad.arguments, bad.repairs) == ("bad", arguments, repairs)
    assert isinstance(good, ToolEnd)
    assert (good.name, good.arguments, good.repairs) == (GOOD.name, GOOD.arguments, ())


class Markup(NamedTuple):
    """Damage to the markup of a turn of two calls: what replaces what, and the repairs of the two calls."""

    old: str
    new: str
    first: tuple[str, ...] = ()
    second: tuple[str, ...] = ()
    text: str = ""
    thinking: str = "hm"
    words: bool = False
    """The arguments are words, because layout beside the damage cannot be told from other white space."""


_KIMI_CALL = "<|tool_call_begin|>functions.one:0<|tool_call_argument_begin|>"
_KIMI_NEXT = "<|tool_call_end|><|tool_call_begin|>"
_KIMI_LAST = "<|tool_call_end|><|tool_calls_section_end|>"

_HARMONY_TO = "<|channel|>commentary to=functions.one"
_HARMONY_TWO = "<|start|>assistant<|channel|>commentary to=functions.two"
_HARMONY_NEXT = "<|call|>" + _HARMONY_TWO
_GEMMA_NEXT = "<tool_call|><|tool_call>call:two"
_TAGS_NEXT = "\n</tool_call>\n<tool_call>\n"
_TAGGED_JSON: dict[str, Markup] = {
    "nothing": Markup("", ""),
    "no layout": Markup(_TAGS_NEXT, "</tool_call><tool_call>"),
    "empty lines": Markup(_TAGS_NEXT, "\n\n</tool_call>\n\n\n<tool_call> \n"),
    "no end of the first call": Markup(_TAGS_NEXT, "\n<tool_call>\n", ("missing-call-end",)),
    "no end of the first call on its line": Markup(_TAGS_NEXT, "<tool_call>", ("missing-call-end",)),
    "an opener for the end of the first call": Markup(
        _TAGS_NEXT, "\n<tool_call>\n<tool_call>\n", ("missing-call-end",)
    ),
    "a mangled end of the first call": Markup(
        _TAGS_NEXT, "\n</tool_cal>\n<tool_call>\n", ("missing-call-end", "trailing-text")
    ),
    "the end of the first call twice": Markup(_TAGS_NEXT, "\n</tool_call></tool_call>\n<tool_call>\n"),
    "an opener twice": Markup(_TAGS_NEXT, "\n</tool_call>\n<tool_call>\n<tool_call>\n"),
    "no end of the last call": Markup("\n</tool_call>", "", (), ("missing-call-end",)),
    "half an end": Markup("</tool_call>", "</tool_c", (), ("missing-call-end",)),
    "the turn's end for the last call's": Markup("\n</tool_call>", "<|im_end|>\n", (), ("missing-call-end",)),
    "thinking that is not closed": Markup("\n</think>", "", ("unclosed-thinking",)),
    "thinking that is closed twice": Markup("</think>", "</think></think>"),
    "prose between calls": Markup(_TAGS_NEXT, "\n</tool_call>\nThen:\n<tool_call>\n", text="Then:"),
}
_GLM_NEXT = "</arg_value>\n</tool_call>\n<tool_call>two"

_INVOKE_NEXT = '</parameter></invoke>\n<invoke name="two">'
_INVOKES: dict[str, Markup] = {
    "nothing": Markup("", ""),
    "layout": Markup(_INVOKE_NEXT, '</parameter>\n </invoke>\n\n<invoke name="two">\n'),
    "no layout": Markup(_INVOKE_NEXT, '</parameter></invoke><invoke name="two">'),
    "single quotes": Markup('<invoke name="one">', "<invoke name='one'>"),
    "no quotes": Markup('<invoke name="one"><parameter name="first">', "<invoke name=one><parameter name=first>"),
    "names behind equals signs": Markup('<invoke name="one"><parameter name="first">', "<invoke=one><parameter=first>"),
    "another attribute": Markup('<parameter name="first">', '<parameter type="x" name="first" id="3">'),
    "an attribute that says what the value is": Markup(
        '<parameter name="first">', '<parameter name="first" string="true">'
    ),
    "a namespace": Markup('<invoke name="one"><parameter', '<ns:invoke name="one"><ns:parameter'),
    "a namespace on the closers": Markup(_INVOKE_NEXT, '</ns:parameter></ns:invoke>\n<invoke name="two">'),
    "spaces in the closers": Markup(_INVOKE_NEXT, '</parameter ></invoke >\n<invoke name="two">'),
    "no end of the first call": Markup(_INVOKE_NEXT, '</parameter>\n<invoke name="two">', ("missing-call-end",)),
    "no end of value nor call": Markup(
        _INVOKE_NEXT, '\n<invoke name="two">', ("missing-value-end", "missing-call-end"), words=True
    ),
    "no end of the value": Markup(
        _INVOKE_NEXT, '</invoke>\n<invoke name="two">', ("missing-value-end",), words=True
    ),
    "the end of the value twice": Markup(_INVOKE_NEXT, "</parameter>" + _INVOKE_NEXT, ("stray-closer",)),
    "the end of the first call twice": Markup(_INVOKE_NEXT, '</parameter></invoke></invoke>\n<invoke name="two">'),
    "the parameter twice": Markup(
        _INVOKE_NEXT, f'</parameter><parameter name="first">other{_INVOKE_NEXT}', ("duplicate-key",)
    ),
    "no end of the last call": Markup("</parameter></invoke>", "</parameter>", (), ("missing-call-end",)),
    "thinking that is not closed": Markup("\n</thinking>", "", ("unclosed-thinking",)),
    "thinking that is closed twice": Markup("</thinking>", "</thinking></thinking>"),
    "other tags around the thinking": Markup("<thinking>\nhm\n</thinking>", "<think>hm</think>"),
    "prose between calls": Markup(
        _INVOKE_NEXT, '</parameter></invoke>\nThen:\n<invoke name="two">', text="Then:"
    ),
}  # fmt: skip


def _in_section(begin: str, end: str) -> dict[str, Markup]:
    """The same in a section of calls."""
    return _INVOKES | {
        "no section begin": Markup(begin, ""),
        "no section end": Markup(end, ""),
        "no end of value nor call nor section": Markup(
            _INVOKE_NEXT, f'\n{begin}<invoke name="two">', ("missing-value-end", "missing-call-end"), words=True
        ),
        "text before the parameter": Markup('<invoke name="one">', '<invoke name="one">with: ', ("surrounding-text",)),
        "no end of the last call nor the section": Markup(f"</invoke>{end}", "", (), ("missing-call-end",)),
        "the section's end for the last call's": Markup(f"</invoke>{end}", end, (), ("missing-call-end",)),
        "half a section end": Markup(end, end[:-3]),
        "a section of its own for each call": Markup(
            _INVOKE_NEXT, f'</parameter></invoke>{end}\n{begin}<invoke name="two">'
        ),
        "another name of the section": Markup(begin, "<tool_calls>\n"),
        "the section begun twice": Markup(begin, begin * 2),
    }


_CODER_NEXT = "\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=two>"
_CODER_LAST = "\n</parameter>\n</function>\n</tool_call>"

_DEEPSEEK_NEXT = "<｜tool▁call▁end｜><｜tool▁call▁begin｜>"
_DEEPSEEK_LAST = "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"

DAMAGES: dict[str, dict[str, Markup]] = {
    "xml": _INVOKES,
    "anthropic": _in_section("<function_calls>\n", "\n</function_calls>"),
    "minimax": _in_section("<minimax:tool_call>\n", "\n</minimax:tool_call>"),
    "qwen3-coder": {
        "nothing": Markup("", ""),
        "no layout between tags": Markup(
            _CODER_NEXT, "\n</parameter></function></tool_call><tool_call><function=two>"
        ),
        "no outer tags": Markup(_CODER_NEXT, "\n</parameter>\n</function>\n<function=two>"),
        "no outer tag before the first": Markup("<tool_call>\n<function=one>", "<function=one>"),
        "no outer tag behind the first": Markup("</function>\n</tool_call>", "</function>"),
        "quotes around the names": Markup(
            "<function=one>\n<parameter=first>", "<function=\"one\">\n<parameter='first'>"
        ),
        "names in attributes": Markup(
            "<function=one>\n<parameter=first>", '<function name="one">\n<parameter name="first">'
        ),
        "spaces around the name": Markup("<function=one>", "<function= one >"),
        "no end of the first function": Markup(
            _CODER_NEXT, "\n</parameter>\n</tool_call>\n<tool_call>\n<function=two>", ("missing-call-end",)
        ),
        "no end of the first call at all": Markup(
            _CODER_NEXT, "\n</parameter>\n<tool_call>\n<function=two>", ("missing-call-end",)
        ),
        "no end of the value": Markup(
            _CODER_NEXT, "\n</function>\n</tool_call>\n<tool_call>\n<function=two>", ("missing-value-end",), words=True
        ),
        "no end of value nor call": Markup(
            _CODER_NEXT, "\n<tool_call>\n<function=two>", ("missing-value-end", "missing-call-end"), words=True
        ),
        "the end of the value twice": Markup(_CODER_NEXT, "\n</parameter>" + _CODER_NEXT, ("stray-closer",)),
        "the parameter twice": Markup(
            _CODER_NEXT, f"\n</parameter>\n<parameter=first>\nother{_CODER_NEXT}", ("duplicate-key",)
        ),
        "text before the parameter": Markup("<function=one>\n", "<function=one>\nwith:\n", ("surrounding-text",)),
        "no end of the opening tag": Markup("<function=one>\n", "<function=one\n", ("missing-key-end",)),
        "no end of the parameter's opening tag": Markup(
            "<parameter=first>\n", "<parameter=first\n", ("missing-key-end",)
        ),
        "an outer tag twice": Markup("<tool_call>\n<function=two>", "<tool_call>\n<tool_call>\n<function=two>"),
        "no end of the last call": Markup(_CODER_LAST, "\n</parameter>", (), ("missing-call-end",)),
        "the turn's end for the last call's": Markup(
            _CODER_LAST, "\n</parameter>\n<|im_end|>\n", (), ("missing-call-end",)
        ),
        "thinking that is not closed": Markup("\n</think>", "", ("unclosed-thinking",)),
        "thinking that is closed twice": Markup("</think>", "</think></think>"),
        "prose between calls": Markup(
            _CODER_NEXT,
            "\n</parameter>\n</function>\n</tool_call>\nThen:\n<tool_call>\n<function=two>", text="Then:"
        ),
    },
    "deepseek": {
        "nothing": Markup("", ""),
        "no section begin": Markup("<｜tool▁calls▁begin｜>", "", ("missing-section",), ("missing-section",)),
        "no section end": Markup("<｜tool▁calls▁end｜>", ""),
        "no end of the first call": Markup(_DEEPSEEK_NEXT, "<｜tool▁call▁begin｜>", ("missing-call-end",)),
        "no end of the last call": Markup(_DEEPSEEK_LAST, "<｜tool▁calls▁end｜>", (), ("missing-call-end",)),
        "no end of call nor section": Markup(_DEEPSEEK_LAST, "", (), ("missing-call-end",)),
        "the turn's end for both": Markup(_DEEPSEEK_LAST, "<｜end▁of▁sentence｜>", (), ("missing-call-end",)),
        "half an end": Markup(_DEEPSEEK_LAST, "<｜tool▁call▁e", (), ("missing-call-end",)),
        "half a section end": Markup(_DEEPSEEK_LAST, "<｜tool▁call▁end｜><｜tool▁calls▁e"),
        "a section of its own for each call": Markup(
            _DEEPSEEK_NEXT, _DEEPSEEK_LAST + "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>"
        ),
        "a newline between the calls": Markup(_DEEPSEEK_NEXT, "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>"),
        "white space around the name": Markup("one<｜tool▁sep｜>", "\n one <｜tool▁sep｜>\n"),
        "ASCII in the first call's begin": Markup("<｜tool▁call▁begin｜>one", "<|tool_call_begin|>one"),
        "another separator": Markup("one<｜tool▁sep｜>", "one<|tool▁sep|>"),
        "no separator": Markup("one<｜tool▁sep｜>", "one", ("missing-arguments-begin",)),
        "a type, but no fence": Markup(
            "one<｜tool▁sep｜>", "function<｜tool▁sep｜>one\n", ("missing-code-fence",)
        ),
        "noise between calls": Markup(
            _DEEPSEEK_NEXT, "<｜tool▁call▁end｜>\nnext:\n<｜tool▁call▁begin｜>", text="next:\n"
        ),
        "thinking that is not closed": Markup("\n</think>", "", ("unclosed-thinking",)),
        "thinking that is closed twice": Markup("</think>", "</think></think>"),
    },
    "hermes": _TAGGED_JSON,
    "qwen3": _TAGGED_JSON,
    "glm": {
        "nothing": Markup("", ""),
        "the form without newlines": Markup(
            "one\n<arg_key>first</arg_key>\n<arg_value>", "one<arg_key>first</arg_key><arg_value>"
        ),
        "no newline behind the call's values": Markup(_GLM_NEXT, "</arg_value></tool_call><tool_call>two"),
        "spaces around the name": Markup("<tool_call>one\n", "<tool_call> one \n"),
        "a newline before the name": Markup("<tool_call>one\n", "<tool_call>\none\n"),
        "no end of the first call": Markup(_GLM_NEXT, "</arg_value>\n<tool_call>two", ("missing-call-end",)),
        "no end of value nor call": Markup(
            _GLM_NEXT, "\n<tool_call>two", ("missing-value-end", "missing-call-end"), words=True
        ),
        "no end of the value": Markup(
            _GLM_NEXT, "\n</tool_call>\n<tool_call>two", ("missing-value-end",), words=True
        ),
        "the key's closer for the value's": Markup(
            _GLM_NEXT, "</arg_key>\n</tool_call>\n<tool_call>two", ("missing-value-end", "stray-closer"), words=True
        ),
        "the key's closer behind the value's": Markup(
            _GLM_NEXT, "</arg_value>\n</arg_key>\n</tool_call>\n<tool_call>two", ("stray-closer",)
        ),
        "a mangled end of the first call": Markup(
            _GLM_NEXT, "</arg_value>\n</tool_cal>\n<tool_call>two", ("surrounding-text", "missing-call-end")
        ),
        "an opener for the end of the first call": Markup(
            _GLM_NEXT, "</arg_value>\n<tool_call>\n<tool_call>two", ("missing-call-end",)
        ),
        "the end of the first call twice": Markup(
            _GLM_NEXT, "</arg_value>\n</tool_call></tool_call>\n<tool_call>two"
        ),
        "an opener twice": Markup("<tool_call>two", "<tool_call><tool_call>two"),
        "no end of the key": Markup("first</arg_key>\n", "first\n", ("missing-key-end",)),
        "no end of the key on its line": Markup("first</arg_key>\n", "first", ("missing-key-end",)),
        "the value's closer for the key's": Markup("first</arg_key>", "first</arg_value>", ("missing-key-end",)),
        "no begin of the value": Markup("first</arg_key>\n<arg_value>", "first</arg_key>\n", ("missing-value-begin",),
                                        words=True),
        "the key twice": Markup("<arg_key>first", "<arg_key><arg_key>first", ("missing-value",)),
        "a stray closer behind the name": Markup("one\n", "one</arg_value>\n", ("stray-closer",)),
        "the pair twice": Markup(
            _GLM_NEXT, f"</arg_value>\n<arg_key>first</arg_key>\n<arg_value>other{_GLM_NEXT}", ("duplicate-key",)
        ),
        "text before the pair": Markup("one\n", "one\nwith this:\n", ("surrounding-text",)),
        "the last closer missing": Markup("</arg_value>\n</tool_call>", "</arg_value>", (), ("missing-call-end",)),
        "thinking that is not closed": Markup("\n</think>", "", ("unclosed-thinking",)),
        "thinking that is closed twice": Markup("</think>", "</think></think>"),
        "prose between calls": Markup(
            _GLM_NEXT, "</arg_value>\n</tool_call>\nThen:\n<tool_call>two", text="Then:"
        ),
    },
    "gemini": {
        "nothing": Markup("", ""),
        "a list that nobody opened": Markup("[default_api.one", "default_api.one", (), ("extra-closer",)),
        "no layout": Markup("), default_api.two", "),default_api.two"),
        "layout": Markup("), default_api.two", " )\n,\n\n default_api . two"),
        "a comma behind the last call": Markup(")]", "),]"),
        "no namespace": Markup("default_api.two", "two"),
        "a print around the first call": Markup("[default_api.one", "[print(default_api.one", (), ("missing-closer",)),
        "a comment between the calls": Markup("), default_api.two", "), # and then:\ndefault_api.two"),
        "a block of its own for each call": Markup("), default_api.two", ")]\n```\n```tool_code\n[default_api.two"),
        "glued blocks": Markup("), default_api.two", ")]\n``````tool_code\n[default_api.two"),
        "no end of the first block": Markup(
            "), default_api.two", ")]\n```tool_code\n[default_api.two", ("missing-call-end",)
        ),
        "no closing parenthesis": Markup(")]", "]", (), ("missing-closer", "extra-closer"), words=True),
        "one too many": Markup(")]", "))]", (), ("extra-closer",)),
        "no end of the list": Markup(")]", ")", (), ("missing-closer",)),
        "no end of the block": Markup("\n```", "", (), ("missing-call-end",)),
        "half an end": Markup("\n```", "\n``", (), ("missing-call-end",)),
        "the turn's end for the block's": Markup("\n```", "<end_of_turn>\n", (), ("missing-call-end",)),
        "an assignment": Markup("[default_api.one", "tides = [default_api.one", ("surrounding-code",)),
        "thinking that is not closed": Markup("\n```\n```tool", "\n```tool", ("unclosed-thinking",)),
        "prose between blocks": Markup(
            "), default_api.two", ")]\n```\nThen:\n```tool_code\n[default_api.two", text="Then:"
        ),
    },
    "harmony": {
        "nothing": Markup("", ""),
        "the end of a message for the call's": Markup(_HARMONY_NEXT, "<|end|>" + _HARMONY_TWO, ("wrong-call-end",)),
        "the end of a turn for the call's": Markup(_HARMONY_NEXT, "<|return|>" + _HARMONY_TWO, ("wrong-call-end",)),
        "no end of the first call": Markup(_HARMONY_NEXT, _HARMONY_TWO, ("missing-call-end",)),
        "the end of the first call twice": Markup(_HARMONY_NEXT, "<|call|><|call|>" + _HARMONY_TWO),
        "a newline between the calls": Markup(_HARMONY_NEXT, "<|call|>\n" + _HARMONY_TWO),
        "no author": Markup("<|start|>assistant" + _HARMONY_TO, "<|start|>" + _HARMONY_TO),
        "no begin of the message": Markup("<|start|>assistant" + _HARMONY_TO, _HARMONY_TO),
        "the header begun twice": Markup("<|start|>assistant" + _HARMONY_TO, "<|start|>assistant" * 2 + _HARMONY_TO),
        "no channel": Markup(_HARMONY_TO, " to=functions.one"),
        "no channel token": Markup(_HARMONY_TO, "commentary to=functions.one"),
        "no space before the recipient": Markup(_HARMONY_TO, "<|channel|>commentaryto=functions.one"),
        "another channel": Markup(_HARMONY_TO, "<|channel|>analysis to=functions.one"),
        "a misspelt channel": Markup(_HARMONY_TO, "<|channel|>comentary to=functions.one"),
        "the recipient before the channel": Markup(_HARMONY_TO, " to=functions.one<|channel|>commentary"),
        "a bare recipient": Markup("to=functions.one", "to=one"),
        "the channel twice": Markup(_HARMONY_TO, _HARMONY_TO + "<|channel|>commentary"),
        "a constraint": Markup(_HARMONY_TO, _HARMONY_TO + " <|constrain|>json"),
        "a glued constraint": Markup(_HARMONY_TO, _HARMONY_TO + "<|constrain|>json"),
        "a constraint with a space": Markup(_HARMONY_TO, _HARMONY_TO + " <|constrain|> json"),
        "an empty constraint": Markup(_HARMONY_TO, _HARMONY_TO + " <|constrain|>"),
        "a content type": Markup(_HARMONY_TO, _HARMONY_TO + " json"),
        "another content type": Markup(_HARMONY_TO, _HARMONY_TO + " code"),
        "a glued content type": Markup(_HARMONY_TO, _HARMONY_TO + "json", ("resolved-name",)),
        "no message token": Markup(_HARMONY_TO + "<|message|>", _HARMONY_TO, ("missing-arguments-begin",)),
        "a content type for the message token": Markup(
            _HARMONY_TO + "<|message|>", _HARMONY_TO + " json", ("missing-arguments-begin",)
        ),
        "a space behind the message token": Markup(_HARMONY_TO + "<|message|>", _HARMONY_TO + "<|message|> \n"),
        "the message token twice": Markup(_HARMONY_TO + "<|message|>", _HARMONY_TO + "<|message|><|message|>",
                                          ("stray-marker",)),
        "thinking that is not closed": Markup("hm<|end|>", "hm", ("unclosed-thinking",)),
        "thinking that is closed twice": Markup("hm<|end|>", "hm<|end|><|end|>"),
        "a preamble": Markup(
            _HARMONY_NEXT, "<|call|><|start|>assistant<|channel|>commentary<|message|>Then:<|end|>" + _HARMONY_TWO,
            text="Then:",
        ),
    },
    "gemma": {
        "nothing": Markup("", ""),
        "no end of the first call": Markup(_GEMMA_NEXT, "<|tool_call>call:two", ("missing-call-end",)),
        "no end of the last call": Markup("<tool_call|>", "", (), ("missing-call-end",)),
        "half an end": Markup("<tool_call|>", "<tool_c", (), ("missing-call-end",)),
        "the turn's end for the last call's": Markup("<tool_call|>", "<turn|>\n", (), ("missing-call-end",)),
        "the stop token behind the calls": Markup("<tool_call|>", "<tool_call|><|tool_response>"),
        "the end of the first call twice": Markup(_GEMMA_NEXT, "<tool_call|>" + _GEMMA_NEXT),
        "a newline between the calls": Markup(_GEMMA_NEXT, "<tool_call|>\n<|tool_call>call:two"),
        "the prefix twice": Markup("call:one", "call:call:one", ("stray-marker",)),
        "no prefix": Markup("call:one", "one", ("missing-call-prefix",)),
        "a path before the name": Markup("call:one", "call:desk:mcp:one", ("resolved-name",)),
        "white space around the name": Markup("call:one{", " call: one {\n"),
        "white space around the key": Markup("{first:", "{ first : "),
        "white space behind the value": Markup('<|"|>}' + _GEMMA_NEXT, '<|"|> }\n' + _GEMMA_NEXT),
        "parentheses": Markup("call:two{second:", "call:two(second=", (), ("call-parentheses",)),
        "a quoted key": Markup("{first:", '{"first": ', ("quoted-key",)),
        "a key in the quotes of strings": Markup("{first:", '{<|"|>first<|"|>:', ("quoted-key",)),
        "braces twice": Markup("call:one{", "call:one{{", ("nested-arguments", "missing-closer")),
        "no closing brace": Markup('<|"|>}' + _GEMMA_NEXT, '<|"|>' + _GEMMA_NEXT, ("missing-closer",)),
        "a brace too many": Markup('<|"|>}' + _GEMMA_NEXT, '<|"|>}}' + _GEMMA_NEXT, ("extra-closer",)),
        "a comma before the brace": Markup('<|"|>}' + _GEMMA_NEXT, '<|"|>,}' + _GEMMA_NEXT, ("trailing-comma",)),
        "no end of the string": Markup('<|"|>}' + _GEMMA_NEXT, "}" + _GEMMA_NEXT, ("missing-value-end",), words=True),
        "no end of string nor object": Markup(
            '<|"|>}' + _GEMMA_NEXT, _GEMMA_NEXT, ("missing-value-end", "missing-closer"), words=True
        ),
        "no end of string, object nor call": Markup(
            '<|"|>}' + _GEMMA_NEXT, "<|tool_call>call:two",
            ("missing-call-end", "missing-value-end", "missing-closer"), words=True,
        ),
        "no begin of the string": Markup('first:<|"|>', "first:", ("bare-value",), words=True),
        "prose behind the arguments": Markup('<|"|>}' + _GEMMA_NEXT, '<|"|>} then ' + _GEMMA_NEXT, ("trailing-text",)),
        "thinking that is not closed": Markup("<channel|>", "", ("unclosed-thinking",)),
        "thinking that is closed twice": Markup("<channel|>", "<channel|><channel|>"),
        "prose between calls": Markup(_GEMMA_NEXT, "<tool_call|>Then:<|tool_call>call:two", text="Then:"),
    },
    "kimi": {
        "nothing": Markup("", ""),
        "no section begin": Markup(
            "<|tool_calls_section_begin|>", "", ("missing-section",), ("missing-section",)
        ),
        "no section end": Markup("<|tool_calls_section_end|>", ""),
        "no end of the first call": Markup(_KIMI_NEXT, "<|tool_call_begin|>", ("missing-call-end",)),
        "no end of the last call": Markup(_KIMI_LAST, "<|tool_calls_section_end|>", (), ("missing-call-end",)),
        "no end of call nor section": Markup(_KIMI_LAST, "", (), ("missing-call-end",)),
        "the turn's end for both": Markup(_KIMI_LAST, "<|im_end|>", (), ("missing-call-end",)),
        "half an end": Markup(_KIMI_LAST, "<|tool_call_e", (), ("missing-call-end",)),
        "half a section end": Markup(_KIMI_LAST, "<|tool_call_end|><|tool_calls_sec"),
        "a section of its own for each call": Markup(
            _KIMI_NEXT, _KIMI_LAST + "<|tool_calls_section_begin|><|tool_call_begin|>"
        ),
        "white space between calls": Markup(_KIMI_NEXT, "<|tool_call_end|> \n\n <|tool_call_begin|>"),
        "white space after the section begins": Markup("section_begin|>", "section_begin|>\n"),
        "white space around the id": Markup("functions.one:0", "\n functions.one:0 "),
        "noise between calls": Markup(_KIMI_NEXT, "<|tool_call_end|>\nnext:\n<|tool_call_begin|>", text="next:\n"),
        "the singular spelling": Markup("tool_calls_section_begin", "tool_call_section_begin"),
        "no arguments-begin": Markup(
            "functions.one:0<|tool_call_argument_begin|>", "functions.one:0", ("missing-arguments-begin",)
        ),
        "an id without an index": Markup("functions.one:0", "functions.one", ("resolved-name",)),
        "an id without a prefix": Markup("functions.one:0", "one:0"),
        "a glued id": Markup("functions.one:0", "functionsone0", ("resolved-name",)),
        "a bare counter": Markup("functions.one:0", "0", ("resolved-name",)),
        "the same id twice": Markup("functions.two:1", "functions.one:0", (), ("duplicate-id",)),
        "thinking that is not closed": Markup("\n</think>", "", ("unclosed-thinking",)),
        "thinking that is closed twice": Markup("</think>", "</think></think>"),
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "damage"), [(name, damage) for name in dialect_names() for damage in DAMAGES.get(name, {})]
)
@examples
@given(data=st.data())
def test_damaged_markup_is_read_as_it_was_meant(name: str, damage: str, data: st.DataObject) -> None:
    case = DAMAGES[name][damage]
    plain = _WORDS if case.words else plain_texts(name)
    calls = (ToolCall(None, "one", {"first": data.draw(plain)}), ToolCall(None, "two", {"second": data.draw(plain)}))
    typed = tools_for(calls)
    body = Turn(name, "hm", "", calls, typed).body
    assert case.old in body
    before, _, after = body.rpartition(case.old) if case.second else body.partition(case.old or body[:1])
    text = before + case.new + after if case.old else body
    events = read_all_ways(name, text, data.draw(cuts(text)), tools=typed)
    first, second = (event for event in events if isinstance(event, ToolEnd | ToolDropped))
    assert isinstance(first, ToolEnd)
    assert (first.name, first.arguments, first.repairs) == ("one", calls[0].arguments, case.first)
    assert isinstance(second, ToolEnd)
    other = "one" if "duplicate-id" in case.second else "two"
    assert (second.name, second.arguments, second.repairs) == (other, calls[1].arguments, case.second)
    assert "".join(event.text for event in events if isinstance(event, Text)).strip() == case.text.strip()
    assert "".join(event.thinking for event in events if isinstance(event, ThinkingEnd)) == case.thinking
