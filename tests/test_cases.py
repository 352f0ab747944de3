"""Failures that people reported of other parsers, each in every way of cutting it.

The case files hold lines for dialects that do not exist yet; a line is tested from the day its dialect is registered.

- `raw` is the stream, `expected` what comes of it. `content` and `reasoning` are compared verbatim (null: nothing), but
  with `"ws": "ignore"` after trimming and collapsing white space.
- `chunks` is a split that caused trouble. `scale` stretches a placeholder, in `raw` and `expected`.
- `debatable` cases are questions of policy. They come out as they expect, but for those in `DECIDED`.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dialects import dialect_names
from dialects.events import Event, Text, ThinkingEnd, ToolEnd
from tests.laws import check_arguments, check_order
from tests.streams import cut, joined, scan_pieces

_TOOLS_WRAPPER = '<tools>\n{"name": "get_tide", "arguments": {"port": "Leith"}}\n</tools>'
_COLON_CALL = "Checking. <call:default_api:get_tide{port:Leith}/>"

DECIDED: dict[str, tuple[dict[str, Any], str]] = {
    "deepseek-draft-in-think": (
        {
            "content": " no.",
            "reasoning": "First idea: ",
            "tool_calls": [
                {"name": "get_tide", "arguments": {"port": "Oban"}},
                {"name": "get_tide", "arguments": {"port": "Leith"}},
            ],
        },
        "a marker that nobody writes by chance opens a call wherever it stands",
    ),
    "qwen3-tools-wrapper": (
        {"content": _TOOLS_WRAPPER, "reasoning": None, "tool_calls": []},
        "a copied list of tools is no call: only the dialect's own wrapper makes one",
    ),
    "gemini-call-colon-dsl": (
        {"content": _COLON_CALL, "reasoning": None, "tool_calls": []},
        "a notation of the model's own, with bare words for strings: nothing says where a value ends",
    ),
}
"""By case id: what is expected instead, and why."""

FOLDER = Path(__file__).parent / "cases"
CASES = [
    case
    for file in ("bug-reports.jsonl", "extra.jsonl")
    for case in map(json.loads, (FOLDER / file).read_text(encoding="utf-8").splitlines())
    if case["dialect"] in dialect_names()
]
every_case = pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])


def stretched(case: dict[str, Any], text: str) -> str:
    scale = case.get("scale")
    return text.replace(scale["placeholder"], scale["unit"] * scale["times"]) if scale else text


def expected(case: dict[str, Any]) -> dict[str, Any]:
    wanted = DECIDED[case["id"]][0] if case["id"] in DECIDED else case["expected"]
    scale = case.get("scale")
    if not scale:
        return dict(wanted)
    unit = json.dumps(scale["unit"] * scale["times"])[1:-1]
    stretched: dict[str, Any] = json.loads(json.dumps(wanted).replace(scale["placeholder"], unit))
    return stretched


def read(case: dict[str, Any], pieces: list[str]) -> list[Event]:
    return joined(
        scan_pieces(
            case["dialect"],
            pieces,
            truncated=case["truncated"],
            tools=case["tools"],
            generation_prompt=case["generation_prompt"],
        )
    )


def splits(case: dict[str, Any]) -> Iterator[list[str]]:
    raw = case["raw"]
    text = stretched(case, raw)
    if text == raw:
        yield from (cut(text, [at]) for at in range(1, len(text)))
        return
    at, scale = raw.index(case["scale"]["placeholder"]), case["scale"]
    longer = len(text) - len(raw)
    edges = [edge if edge <= at else edge + longer for edge in range(1, len(raw))]
    chance = random.Random(case["id"])
    yield from (cut(text, [edge]) for edge in edges)
    yield from (cut(text, [chance.randrange(len(text))]) for _ in range(200))
    assert len(scale["unit"]) * scale["times"] > 1000


def shown(text: str | None, case: dict[str, Any]) -> str:
    return " ".join((text or "").split()) if case.get("ws") == "ignore" else text or ""


def same(arguments: dict[str, Any]) -> str:
    """Arguments in a form in which 1, 1.0 and True differ, whatever the order of their keys."""
    return json.dumps(arguments, sort_keys=True)


@every_case
def test_a_reported_failure_comes_out_right_however_it_is_cut(case: dict[str, Any]) -> None:
    wanted = expected(case)
    text = stretched(case, case["raw"])
    events = read(case, [text])
    check_order(events)
    check_arguments(events)
    content = "".join(event.text for event in events if isinstance(event, Text))
    reasoning = "".join(event.thinking for event in events if isinstance(event, ThinkingEnd))
    assert shown(content, case) == shown(wanted["content"], case)
    assert shown(reasoning, case) == shown(wanted["reasoning"], case)
    calls = [(event.name, same(event.arguments)) for event in events if isinstance(event, ToolEnd)]
    assert calls == [(call["name"], same(call["arguments"])) for call in wanted["tool_calls"]]
    for pieces in (list(text), case.get("chunks", [text]), *splits(case)):
        assert "".join(pieces) == text
        assert read(case, pieces) == events, pieces[0][-40:]


def test_what_was_decided_belongs_to_a_case() -> None:
    assert DECIDED.keys() <= {case["id"] for case in CASES}


def test_every_dialect_has_cases() -> None:
    assert {case["dialect"] for case in CASES} == set(dialect_names())
