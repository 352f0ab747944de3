"""What `dialects heal --explain` says: every character of the upstream's text is accounted for, at its own place."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects.healing import ChatCompletionHealer
from dialects.healing.explain import ExplainingHealer, Explanation
from tests.leaks import CASES, Chunk, chunk, native, text
from tests.test_healing import DRAFT
from tests.test_healing_chat import HERMES, KIMI, TIDE, accumulate, options_of, patterns_of

BROKEN = KIMI.replace('"Oban"}', '"Oban",}')


def explain(chunks: list[Chunk], pattern: str = "auto", **options: Any) -> tuple[list[Explanation], list[Chunk]]:
    healer = ExplainingHealer(pattern, **options)
    out = [healed for each in chunks for healed in healer.feed(each)]
    out += healer.finish()
    return healer.explanation(), out


def rows(lines: list[Explanation]) -> list[tuple[int, str, str, str]]:
    return [(line.chunk, line.fate, line.text, line.why) for line in lines]


def of(lines: list[Explanation], *fates: str) -> str:
    return "".join(line.text for line in lines if line.fate in fates)


def pieces_of(raw: str, size: int) -> list[Chunk]:
    return [text(raw[at : at + size]) for at in range(0, len(raw), size)]


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_every_character_has_one_fate_and_the_fates_are_what_came_out(case: Chunk, size: int) -> None:
    for pattern in patterns_of(case):
        chunks = [*pieces_of(case["raw"], size), chunk({}, "stop")]
        options = options_of(case)
        lines, out = explain(chunks, pattern, **options)
        assert "".join(line.text for line in lines) == case["raw"]
        for number, each in enumerate(chunks[:-1], 1):
            said = "".join(line.text for line in lines if line.chunk == number)
            assert said == each["choices"][0]["delta"]["content"]
        (turn,) = accumulate(out).values()
        (plain,) = accumulate(plainly(chunks, pattern, **options)).values()
        assert (turn.content, turn.reasoning, turn.calls) == (plain.content, plain.reasoning, plain.calls)
        assert without_newlines(of(lines, "text")) == without_newlines(turn.content)
        assert without_newlines(of(lines, "reasoning")) == without_newlines(turn.reasoning)
        assert bool(of(lines, "call")) == bool(turn.calls)


def plainly(chunks: list[Chunk], pattern: str, **options: Any) -> list[Chunk]:
    healer = ChatCompletionHealer(pattern, **options)
    return [healed for each in chunks for healed in healer.feed(each)] + healer.finish()


def without_newlines(said: str) -> str:
    return said.replace("\n", "")


_PIECES = st.sampled_from(
    [
        *(
            "a",
            "\n",
            "\n\n",
            " b",
            "<",
            "`",
            "```\n",
            "<think>",
            "</think>",
            "<thinking>",
            "</thinking>",
            "<scratchpad>",
        ),
        *(KIMI, HERMES, BROKEN, KIMI[:-40], "<tool_call>", "<|im_end|>", "<|tool_calls_section_begin|>"),
    ]
)


@given(
    st.lists(_PIECES, max_size=8).map("".join),
    st.lists(st.integers(0, 600), max_size=6),
    st.sampled_from(["auto", "kimi", "hermes", "thinking"]),
)
def test_any_text_is_accounted_for(raw: str, cuts: list[int], pattern: str) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut < len(raw)), len(raw)]
    chunks = [text(raw[start:end]) for start, end in pairwise(edges)]
    lines, out = explain(chunks, pattern, tools=[TIDE])
    assert "".join(line.text for line in lines) == raw
    (turn,) = accumulate(out).values()
    assert without_newlines(of(lines, "text")) == without_newlines(turn.content)
    assert without_newlines(of(lines, "reasoning")) == without_newlines(turn.reasoning)


def test_a_call_is_told_with_its_name_what_was_mended_and_until_when_it_was_held() -> None:
    whole = f"Moin.{BROKEN}Bye."
    cut = whole.index("Oban")
    lines, _ = explain([text(whole[:cut]), text(whole[cut:]), chunk({}, "stop")], "kimi", tools=[TIDE])
    call = BROKEN[len("<|tool_calls_section_begin|>") : -len("<|tool_calls_section_end|>")]
    before = call[: call.index("Oban")]
    assert [(line.chunk, line.fate, line.text, line.until, line.why) for line in lines] == [
        (1, "text", "Moin.", None, ""),
        (1, "markup", "<|tool_calls_section_begin|>", None, "swallowed"),
        (1, "call", before, 2, "get_tide, mended: trailing-comma"),
        (2, "call", call[len(before) :], None, "get_tide, mended: trailing-comma"),
        (2, "markup", "<|tool_calls_section_end|>", None, "swallowed"),
        (2, "text", "Bye.", None, ""),
    ]


@pytest.mark.parametrize(
    ("chunks", "options", "fate", "why"),
    [
        ([text(KIMI[: KIMI.index('"}')])], {}, "dropped", "get_tide, unfinished"),
        ([text(KIMI)], {"tool_choice": "none"}, "dropped", "get_tide, the request wanted no call"),
        ([text(KIMI)], {"tools": []}, "text", "get_tide was not offered"),
        ([text(KIMI), native("get_tide", '{"port": "Oban"}')], {}, "dropped", "get_tide, the same call came natively"),
        ([chunk({"reasoning": HERMES}), text("No.")], {"pattern": "hermes"}, "reasoning", "a draft"),
        ([chunk({"reasoning": HERMES})], {"pattern": "hermes"}, "call", "get_tide"),
        ([text(f"<thinking>{DRAFT}</thinking>")], {"pattern": "hermes"}, "reasoning", "a draft"),
    ],
)
def test_why_a_call_is_none_is_told(chunks: list[Chunk], options: dict[str, Any], fate: str, why: str) -> None:
    lines, _ = explain([*chunks, chunk({}, "stop")], **{"tools": [TIDE], **options})
    assert [(line.fate, line.why) for line in lines if "Oban" in line.text or "get_tide" in line.text] == [(fate, why)]


def test_what_an_upstream_that_failed_left_is_told() -> None:
    healer = ExplainingHealer("kimi", tools=[TIDE])
    healer.feed(text(f"{KIMI}x <thin"))
    healer.interrupt()
    assert [(line.fate, line.why, line.until) for line in healer.explanation() if line.fate != "markup"] == [
        ("call", "get_tide", None),
        ("text", "", None),
        ("text", "", 0),
    ]


def test_choices_and_channels_are_told_apart() -> None:
    chunks = [chunk({"content": "a"}, index=1), chunk({"reasoning_content": "b"}), chunk({"content": "c"})]
    lines, _ = explain(chunks)
    assert [(line.choice, line.channel, line.text) for line in lines] == [
        (1, "content", "a"),
        (0, "reasoning", "b"),
        (0, "content", "c"),
    ]


def test_the_tags_around_a_call_that_was_not_offered_are_told_as_text() -> None:
    invoke = '<invoke name="get_tide"><parameter name="port">Oban</parameter></invoke>'
    raw = f"See\n<function_calls>\n{invoke}\n</function_calls>\nHm."
    lines, out = explain([*pieces_of(raw, 9), chunk({}, "stop")], "anthropic", tools=[])
    assert of(lines, "text", "newlines") == raw
    assert accumulate(out)[0].content == raw
    assert {line.why for line in lines if "Oban" in line.text} == {"get_tide was not offered"}


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("header", ["<|assistant|>", "<think>Hm.</think>", "<channel|>"])
@pytest.mark.parametrize("call", [KIMI, HERMES])
def test_newlines_before_a_header_are_not_found_in_it(call: str, header: str, size: int) -> None:
    lines, out = explain([*pieces_of(f"Hello.\n\n{header}{call} Bye.", size), chunk({}, "stop")])
    (turn,) = accumulate(out).values()
    assert without_newlines(of(lines, "text")) == without_newlines(turn.content) == "Hello. Bye."
    assert without_newlines(of(lines, "markup")).startswith(header.replace("Hm.", ""))
