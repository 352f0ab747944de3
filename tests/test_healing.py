"""Leaked markup in one visible text: the events of `StreamHealer`, however the text is cut, and what `auto` decides."""

import random
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects import dialect_names, get_dialect
from dialects.auto import openers
from dialects.events import Event, Text, ThinkingEnd, ToolEnd, ToolStart
from dialects.factory import UnknownDialectError, all_dialects
from dialects.healing import StreamHealer, pattern_for
from tests.laws import check_arguments, check_order
from tests.streams import joined

CALL = {"name": "get_tide", "arguments": {"port": "Oban"}}
SECTION_TOKENS = re.compile(r"<\|tool_calls_section_(?:begin|end)\|>|<｜tool▁calls▁(?:begin|end)｜>")
TOOLS = [{"name": "get_tide", "parameters": {"type": "object", "properties": {"port": {"type": "string"}}}}]


def events_of(pieces: list[str], pattern: str = "thinking", **options: Any) -> list[Event]:
    numbers = iter(range(10**6))
    healer = StreamHealer(pattern, id_factory=lambda: f"call_{next(numbers)}", **options)
    return joined([event for piece in pieces for event in healer.feed(piece)] + healer.flush())


def shown(events: list[Event]) -> tuple[str, str]:
    text = "".join(event.text for event in events if isinstance(event, Text))
    return text, "|".join(event.thinking for event in events if isinstance(event, ThinkingEnd))


def heal(text: str, pattern: str = "thinking", **options: Any) -> tuple[str, str]:
    """Text and thinking, the same however the text is cut."""
    whole = events_of([text], pattern, **options)
    check_order(whole)
    check_arguments(whole)
    assert events_of(list(text), pattern, **options) == whole
    for at in range(1, len(text)):
        assert events_of([text[:at], text[at:]], pattern, **options) == whole, text[:at]
    return shown(whole)


# Thinking.


@pytest.mark.parametrize(
    ("leak", "thinking"),
    [
        ("<think>Plan.</think>", "Plan."),
        ("<thinking>\nPlan.\n</thinking>", "Plan."),
        ("<scratchpad>Plan.</scratchpad>", "Plan."),
        ("<mm:think>Plan.</mm:think>", "Plan."),
        ("```thinking\nPlan.\n```\n", "Plan."),
        ("````thinking\nPlan.\n```\nx\n````\n", "Plan.\n```\nx"),
        ("~~~thinking\nPlan.\n```py\n```\n~~~\n", "Plan.\n```py\n```"),
        ("<|channel>thought\nPlan.\n<channel|>", "Plan."),
        ("<|channel|>analysis<|message|>Plan.<|end|>", "Plan."),
        (
            "<|start|>assistant<|channel|>analysis<|message|>Plan.<|end|><|start|>assistant<|channel|>final<|message|>",
            "Plan.",
        ),
    ],
)
def test_every_familys_reasoning_is_lifted_out(leak: str, thinking: str) -> None:
    for pattern in ("thinking", "kimi", "hermes", "auto"):
        assert heal(f"{leak}Answer.", pattern) == ("Answer.", thinking)


def test_reasoning_opens_at_the_start_of_a_line_or_behind_markup() -> None:
    assert heal("Hi\n<think>a</think><think>b</think> yes") == ("Hi\n yes", "a|b")
    assert heal("The <think> and </think> tags") == ("The <think> and </think> tags", "")
    assert heal("x </think>y") == ("x y", "")


def test_code_keeps_its_tags() -> None:
    for text in ("a `</think>` b", "```\n<think>\nx\n</think>\n```", "~~~\n<scratchpad>\n~~~", "``a ` </think>`` b"):
        assert heal(text) == (text, "")
    assert heal("a ` </think> b\n") == ("a `  b\n", "")


def test_a_fence_inside_a_thinking_fence_does_not_end_it() -> None:
    assert heal("```thinking\na\n```py\nx\n```\nb\n```\nc") == ("c", "a\n```py\nx\n```\nb")
    assert heal("```thinking\na\n  ~~~\nb\n") == ("", "a\n  ~~~\nb")
    assert heal("```thinking aloud\na\n```") == ("```thinking aloud\na\n```", "")


def test_thinking_that_never_ends_is_thinking() -> None:
    assert heal("<thinking>a") == ("", "a")
    assert heal("a", generation_prompt="x<think>\n") == ("", "a")
    assert heal("a</think>b", generation_prompt="x<think>\n") == ("b", "a")


def test_thinking_may_stay_in_the_text() -> None:
    text = "<think>a</think> <scratchpad>"
    for pattern in ("thinking", "auto", "hermes", "kimi"):
        assert heal(text, pattern, parse_thinking=False) == (text, "")


@pytest.mark.parametrize("unit", ["`", "` </think> ", "``` <think>\n", "```thinking\n", "<thi", "`` ` ", "\n", "~~~"])
@pytest.mark.parametrize("pattern", ["thinking", "auto"])
def test_time_is_linear(unit: str, pattern: str) -> None:
    def cost(times: int) -> float:
        best = 9.0
        for _ in range(3):
            healer = StreamHealer(pattern)
            start = time.process_time()
            for _ in range(times):
                healer.feed(unit)
            healer.flush()
            best = min(best, time.process_time() - start)
        return best

    assert cost(16_000) < 8 * cost(4_000) + 0.05


# Auto.


def leak(dialect: str) -> str:
    return get_dialect(dialect).render_assistant_tool_calls([CALL], tools=TOOLS)


@pytest.mark.parametrize("name", dialect_names())
@pytest.mark.parametrize(
    "before", ["", "Hi. ", "Hi.\n\n", "\n", "Hi\n  ", "<think>hm</think>\n", "<scratchpad>hm</scratchpad>x"]
)
@pytest.mark.parametrize("behind", ["", "\nDone.", "\n\n`x`", "<think>b</think>y"])
def test_auto_reads_what_the_dialects_own_pattern_reads(name: str, before: str, behind: str) -> None:
    text = before + leak(name) + behind
    events = events_of([text], "auto", tools=TOOLS)
    assert shown(events)[1] == shown(events_of([text], name, tools=TOOLS))[1]
    calls = [event for event in events if isinstance(event, ToolEnd)]
    assert [(call.name, call.arguments, call.repairs) for call in calls if call.repairs != ("missing-section",)] == [
        ("get_tide", {"port": "Oban"}, ())
    ]
    if "scratchpad" not in before and ("think" not in before or name != "gemini"):
        assert shown(events)[0] == shown(events_of([text], name, tools=TOOLS))[0]
    assert events_of(list(text), "auto", tools=TOOLS) == events


def test_auto_says_what_it_decided_and_forgets_it_at_the_end() -> None:
    healer = StreamHealer()
    healer.feed("Hi <tool_call>")
    assert (healer.pattern, healer.held_chars) == ("auto", len("<tool_call>"))
    assert [type(event) for event in healer.feed('{"name": "f"')] == [ToolStart]
    assert healer.pattern == "hermes"
    healer.feed(', "arguments": {"x": "<|tool_call_begin|> <tool_call>f<arg_key>"')
    assert healer.pattern == "hermes"
    healer.flush()
    assert healer.pattern == "auto"
    healer.feed("<tool_call>f\n<arg_key>")
    assert healer.pattern == "glm"


def test_auto_is_not_decided_by_what_several_dialects_share_or_code_quotes() -> None:
    for text, out in (
        ("a<|im_end|>b", "ab"),
        ("The <tool_call> tag", "The <tool_call> tag"),
        ("`<tool_call>{` x", "`<tool_call>{` x"),
        ('```\n<tool_call>{"name": "f"}\n</tool_call>\n```', '```\n<tool_call>{"name": "f"}\n</tool_call>\n```'),
    ):
        assert heal(text, "auto") == (out, "")


def test_auto_knows_a_draft_in_thinking() -> None:
    draft = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    assert heal(f"<think>a\n{draft}\nb</think>c", "auto") == ("c", f"a\n{draft}\nb")
    assert heal(f"<think>a\n{draft}", "auto") == ("", "a")


def test_a_prompt_may_decide() -> None:
    assert StreamHealer(generation_prompt="<|start|>assistant").pattern == "harmony"
    assert StreamHealer(generation_prompt="<|im_assistant|>assistant<|im_middle|>").pattern == "auto"
    assert StreamHealer(generation_prompt="<think>\n").pattern == "auto"


def test_plain_text_leaves_at_once_while_nothing_is_decided() -> None:
    healer = StreamHealer()
    assert healer.feed("Nothing < here, `x` too") == [Text("Nothing < here, `x` too")]
    assert healer.feed(" and <") == [Text(" and ")]


def test_what_decides_is_derived_from_the_table() -> None:
    known = openers(all_dialects())
    assert known.tokens["<|tool_calls_section_begin|>"] == ("kimi",)
    assert known.tokens["<|tool_call_begin|>"] == ("kimi", "deepseek")
    assert known.tokens["<|channel|>"] == ("harmony",)
    assert known.readers.keys() >= {"<|im_end|>", "<|im_assistant|>", "<|end|>", "<|assistant|>", "<start_of_turn>"}
    assert known.opens_call("<tool_call")
    assert {*known.plain} >= {"hermes", "qwen3", "glm"}
    assert "<think>" not in known.tokens


# Calls.


@pytest.mark.parametrize("name", dialect_names())
def test_calls_of_tools_that_were_not_offered_stay_as_they_stood(name: str) -> None:
    calls = get_dialect(name).render_assistant_tool_calls([CALL, {**CALL, "name": "g"}])
    text = f"Try\n{calls}\n\nDone."
    without_sections = "".join(SECTION_TOKENS.split(text))
    for pieces in ([text], [*text]):
        for pattern in (name, "auto"):
            events = events_of(pieces, pattern, tools=[])
            assert not [event for event in events if not isinstance(event, Text)]
            assert shown(events)[0] == without_sections


def test_the_tags_around_a_call_that_stays_text_are_text_where_the_next_call_has_no_arguments() -> None:
    text = 'See\n<function_calls>\n<invoke name="f"></invoke>\n<invoke name="g"></invoke>\n</function_calls>'
    assert shown(events_of([text], "anthropic", tools=[]))[0] == text


@pytest.mark.parametrize("name", ["anthropic", "minimax", "qwen3-coder"])
def test_tags_around_calls_come_out_in_pairs_where_one_of_them_was_not_offered(name: str) -> None:
    other = {"name": "rm", "arguments": {"path": "/x"}}
    section = get_dialect(name).render_assistant_tool_calls([other])
    for calls in ([CALL, other], [other, CALL], [other, CALL, other], [CALL, other, CALL]):
        events = events_of([get_dialect(name).render_assistant_tool_calls(calls), "\nDone."], name, tools=TOOLS)
        text = shown(events)[0]
        assert [event.name for event in events if isinstance(event, ToolEnd)] == ["get_tide"] * calls.count(CALL)
        assert sorted(re.findall(r"</([\w:]+)", text)) == sorted(re.findall(r"<([\w:]+)", text))
        assert calls[0] == CALL or section.splitlines()[0] in text


def test_thinking_tags_in_a_call_that_stays_text_are_text() -> None:
    value = "<parameter=text>\n<think>\nHm.\n</think>\n</parameter>"
    call = f"<tool_call>\n<function=note>\n{value}\n</function>\n</tool_call>"
    events = events_of([call, "\n<think>Really.</think>\nYes."], "qwen3-coder", tools=[])
    assert shown(events)[0] == f"{call}\nYes."
    assert [event.thinking for event in events if isinstance(event, ThinkingEnd)] == ["Really."]


def test_calls_that_came_natively_too_are_left_out() -> None:
    healer = StreamHealer("hermes")
    first, second = leak("hermes"), leak("hermes")
    events = (
        healer.feed(first) + healer.feed_without_calls("Hi" + second[:40]) + healer.feed(second[40:]) + healer.flush()
    )
    assert len([event for event in events if isinstance(event, ToolStart)]) == 1
    assert len([event for event in events if isinstance(event, ToolEnd)]) == 1
    assert shown(events)[0] == "Hi"


# Patterns.


def test_the_token_that_opens_thinking_in_one_family_alone_is_no_text() -> None:
    for pattern in ("gemma", "auto"):
        assert heal("Moin. <|channel>Now.", pattern) == ("Moin. ", "Now.")
        assert heal("<|channel>thought\nHm.<channel|>Now.", pattern) == ("Now.", "Hm.")


def test_a_pattern_that_is_none_is_told_with_those_that_are_no_dialects() -> None:
    with pytest.raises(UnknownDialectError, match=r"'Thinking'.*hermes.*'auto' or 'thinking'"):
        StreamHealer("Thinking")


def test_the_pattern_for_a_model_and_why() -> None:
    assert pattern_for("moonshotai/Kimi-K2-Instruct").name == "kimi"
    unknown = pattern_for("some-model")
    assert unknown.name == "thinking"
    assert "only thinking" in unknown.reason
    with pytest.raises(TypeError):
        pattern_for(3)  # type: ignore[arg-type]


def test_wrong_use_raises() -> None:
    with pytest.raises(ValueError, match="unknown dialect"):
        StreamHealer("nonsense")
    for pattern in ("thinking", "auto", "kimi"):
        with pytest.raises(TypeError):
            StreamHealer(pattern).feed(b"x")  # type: ignore[arg-type]


# Any text.

_PIECES = st.sampled_from(
    [
        *(
            "<think>",
            "</think>",
            "<thinking>",
            "</thinking>",
            "<scratchpad>",
            "```thinking\n",
            "```",
            "```\n",
            "`",
            "``",
        ),
        *("\n", " ", "a", "<|channel>thought", "<channel|>", "<|channel|>analysis<|message|>", "<|end|>", "<|im_end|>"),
        *("<tool_call>", "{", '"name": "f"', "}", "</tool_call>", "f\n<arg_key>", "<|start|>", "~~~", "<|im_start|>"),
        *(leak("kimi"), leak("hermes"), leak("glm"), leak("harmony")),
    ]
)


@given(st.lists(_PIECES, max_size=12).map("".join), st.integers(0, 2**32), st.sampled_from(["thinking", "auto", "glm"]))
def test_how_any_text_is_cut_does_not_matter(text: str, seed: int, pattern: str) -> None:
    chance, pieces, rest = random.Random(seed), [], text
    while rest:
        size = chance.choice([1, 1, 2, 3, 5, 8, 30])
        pieces.append(rest[:size])
        rest = rest[size:]
    whole = events_of([text], pattern, tools=TOOLS)
    check_order(whole)
    check_arguments(whole)
    assert events_of(pieces, pattern, tools=TOOLS) == whole


def test_newlines_before_thinking_that_a_call_cuts_short_are_no_text() -> None:
    section = get_dialect("kimi").render_assistant_tool_calls([CALL])
    assert heal(f"\n\n<think>{section}", "auto") == ("", "")


# Calls in thinking that the dialect does not know.

DRAFT = '<tool_call>\n{"name": "get_tide", "arguments": {"port": "Oban"}}\n</tool_call>'


@pytest.mark.parametrize("pattern", ["hermes", "auto"])
@pytest.mark.parametrize(
    ("opener", "closer"),
    [("<thinking>", "</thinking>"), ("<scratchpad>", "</scratchpad>"), ("```thinking\n", "\n```\n")],
)
def test_a_call_in_leaked_thinking_is_a_draft_if_that_thinking_ends(pattern: str, opener: str, closer: str) -> None:
    raw = f"{opener}Maybe\n{DRAFT}\nor not.{closer}Then {DRAFT}"
    (end,) = [event for event in events_of([raw], pattern) if isinstance(event, ToolEnd)]
    text, thinking = heal(raw, pattern)
    assert (text, end.repairs) == ("Then ", ())
    assert " ".join(thinking.replace("|", " ").split()) == " ".join(f"Maybe {DRAFT} or not.".split())


@pytest.mark.parametrize("pattern", ["hermes", "auto"])
@pytest.mark.parametrize("opener", ["<thinking>", "<scratchpad>"])
def test_a_call_in_leaked_thinking_that_never_ends_is_real(pattern: str, opener: str) -> None:
    raw = f"{opener}Maybe\n{DRAFT}"
    assert heal(raw, pattern) == ("", "Maybe")
    (end,) = [event for event in events_of([raw], pattern) if isinstance(event, ToolEnd)]
    assert (end.name, end.repairs) == ("get_tide", ("unclosed-thinking",))


def test_a_closer_in_the_arguments_of_a_draft_does_not_end_the_thinking() -> None:
    draft = DRAFT.replace("Oban", "</thinking>")
    assert heal(f"<thinking>{draft} no</thinking>Yes.", "hermes")[0] == "Yes."


def test_a_call_of_special_tokens_in_leaked_thinking_is_real() -> None:
    call = get_dialect("kimi").render_assistant_tool_calls([CALL])
    assert [
        event.name for event in events_of([f"<thinking>Maybe {call}</thinking>x"], "kimi") if isinstance(event, ToolEnd)
    ]


def test_what_is_held_of_a_draft_is_bounded() -> None:
    raw = f"<thinking>{DRAFT}{'y' * 500}</thinking>Yes."
    healer = StreamHealer("hermes", max_held_chars=200)
    held = []
    for char in raw:
        healer.feed(char)
        held.append(healer.held_chars)
    assert max(held) <= 200 + len(DRAFT)
    assert shown(events_of([raw], "hermes", max_held_chars=200))[0] == "Yes."


@pytest.mark.parametrize("call", ["<tool_call>launch_buoy</tool_call>", "<tool_call>launch_buoy\n</tool_call>"])
def test_a_call_without_arguments_of_a_tool_that_was_not_offered_does_not_vanish(call: str) -> None:
    for pattern in ("glm", "auto"):
        assert heal(f"Try:\n{call}\nok", pattern, tools=TOOLS) == (f"Try:\n{call}\nok", "")


@pytest.mark.parametrize("name", ["kimi", "harmony", "deepseek", "gemma"])
def test_a_call_that_ends_another_familys_open_thinking_says_so(name: str) -> None:
    call = get_dialect(name).render_assistant_tool_calls([CALL], tools=TOOLS)
    for pattern in (name, "auto"):
        events = events_of([f"<thinking>\nI look.\n{call}"], pattern)
        assert shown(events) == ("", "I look.")
        assert [event.repairs for event in events if isinstance(event, ToolEnd)] == [("unclosed-thinking",)]
