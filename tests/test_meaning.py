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
from tests.streams import Turn, cut, cuts, frame, joined, plain_texts, scan_pieces

every_dialect = pytest.mark.parametrize("name", dialect_names())
json_dialects = pytest.mark.parametrize("name", [name for name in dialect_names() if frame(name)])

examples = settings(max_examples=max(8, settings().max_examples // (4 * len(dialect_names()))))
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
    broken = JSON_DAMAGES[damage](Pieces(*(data.draw(part) for part in (_WORDS, _WORDS, _WORDS, plain, plain))))
    dialect = get_dialect(name)
    bad = ToolCall(None, "bad", {"holder": "HOLDER"})
    batch = dialect.render_assistant_tool_calls([bad, GOOD])
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


class Markup(NamedTuple):
    """Damage to the markup of a turn of two calls: what replaces what, and the repairs of the two calls."""

    old: str
    new: str
    first: tuple[str, ...] = ()
    second: tuple[str, ...] = ()
    text: str = ""
    thinking: str = "hm"


_KIMI_CALL = "<|tool_call_begin|>functions.one:0<|tool_call_argument_begin|>"
_KIMI_NEXT = "<|tool_call_end|><|tool_call_begin|>"
_KIMI_LAST = "<|tool_call_end|><|tool_calls_section_end|>"

DAMAGES: dict[str, dict[str, Markup]] = {
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
    plain = plain_texts(name)
    calls = (ToolCall(None, "one", {"first": data.draw(plain)}), ToolCall(None, "two", {"second": data.draw(plain)}))
    body = Turn(name, "hm", "", calls).body
    assert case.old in body
    text = body.replace(case.old, case.new, 1) if case.old else body
    tools = [
        {"name": call.name, "parameters": {"type": "object", "properties": {key: {} for key in call.arguments}}}
        for call in calls
    ]
    events = read_all_ways(name, text, data.draw(cuts(text)), tools=tools)
    first, second = (event for event in events if isinstance(event, ToolEnd | ToolDropped))
    assert isinstance(first, ToolEnd)
    assert (first.name, first.arguments, first.repairs) == ("one", calls[0].arguments, case.first)
    assert isinstance(second, ToolEnd)
    other = "one" if "duplicate-id" in case.second else "two"
    assert (second.name, second.arguments, second.repairs) == (other, calls[1].arguments, case.second)
    assert "".join(event.text for event in events if isinstance(event, Text)).strip() == case.text.strip()
    assert "".join(event.thinking for event in events if isinstance(event, ThinkingEnd)) == case.thinking
