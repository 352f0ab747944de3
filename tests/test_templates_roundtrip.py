"""Templates and scanners fit together: what a template writes for an assistant is read back, and what it ends with is
where reading goes on."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from dialects import dialect_names, render_transcript, scan
from dialects.templates import FAMILIES, find_template

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"About {name}.",
            "parameters": {
                "type": "object",
                "properties": {
                    "place": {"type": "string", "description": "Where"},
                    "days": {"type": "integer", "description": "How long"},
                    "kinds": {"type": "array", "items": {"type": "string"}, "description": "Which"},
                },
                "required": ["place"],
            },
        },
    }
    for name in ("get_tide", "get_wind")
]


def call(call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


CONVERSATION: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Tide and wind at Büsum?"},
    {
        "role": "assistant",
        "content": "I look both up.",
        "reasoning_content": "Two tools.\nBoth now.",
        "tool_calls": [
            call("functions.get_tide:0", "get_tide", {"place": 'Büsum "Hafen"\n<b>', "days": 2}),
            call("functions.get_wind:1", "get_wind", {"place": "Büsum", "kinds": ["gusts", ""]}),
        ],
    },
    {"role": "tool", "tool_call_id": "functions.get_tide:0", "name": "get_tide", "content": "3.2 m"},
    {"role": "tool", "tool_call_id": "functions.get_wind:1", "name": "get_wind", "content": '{"kn": 12}'},
    {"role": "assistant", "content": "3.2 m and 12 kn.", "reasoning_content": "Report."},
    {"role": "user", "content": "And at Husum?"},
    {
        "role": "assistant",
        "content": "",
        "reasoning_content": "Tide only.",
        "tool_calls": [call("functions.get_tide:2", "get_tide", {"place": "Husum"})],
    },
    {"role": "tool", "tool_call_id": "functions.get_tide:2", "name": "get_tide", "content": "2.9 m"},
    {"role": "assistant", "content": "2.9 m.", "reasoning_content": "Done."},
]
UNFINISHED = CONVERSATION[:-1]

CHATML_TURN = r"<\|im_start\|>assistant\n?(.*?)<\|im_end\|>"
GLM_TURN = r"<\|assistant\|>(.*?)(?=<\|(?:user|observation|system)\|>|\Z)"
TURNS = {
    "kimi": r"<\|im_assistant\|>assistant<\|im_middle\|>(.*?)<\|im_end\|>",
    "hermes": CHATML_TURN,
    "qwen3": CHATML_TURN,
    "qwen3-coder": CHATML_TURN,
    "glm": GLM_TURN,
    "harmony": r"((?:<\|start\|>assistant(?:(?!<\|start\|>).)*)+)",
    "deepseek": (
        r"(?:<｜Assistant｜>|<｜tool▁outputs▁end｜>|<｜tool▁output▁end｜>(?!\n?<｜)|</result>\n</function_results>\n\n"
        r"|\n(?=<｜tool▁call▁begin｜>))(.*?)<｜end▁of▁sentence｜>"
    ),
    "minimax": r"\]~b\]ai\n(.*?)\[e~\[",
    "gemma": (
        r"(?:<\|turn>model\n|<tool_response\|>(?!<\|tool_response>))"
        r"(.+?)(?=<\|tool_response>|<turn\|>\n<\|turn>|\Z)"
    ),
}
"""What finds the assistant's turns in a transcript of the dialect."""


@dataclass(frozen=True)
class Fit:
    """How one template and its dialect's scanner fit together. The assistant's turns are numbered from 0 to 3."""

    keeps: set[int] = field(default_factory=set)
    """The turns whose thinking the template writes, in the conversation that ends with an answer."""
    keeps_unfinished: set[int] = field(default_factory=set)
    """And in the one that ends with a result."""
    drops_text_beside_calls: bool = False
    writes_text_behind_results: bool = False
    """Text beside calls stands before the answer to their results."""
    drops_all_calls_but_the_first: bool = False
    repairs: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """What is wrong with the calls of a turn."""
    generations: tuple[tuple[dict[str, Any], str, str], ...] = (({}, "{call}", ""),)
    """With which options a model would go on with what, `{call}` standing for a call, and the thinking that it has."""


THINKS: tuple[dict[str, Any], str, str] = ({}, "Hm.</think>{call}", "Hm.")
DEEPSEEK_ENCODER = Fit(generations=(({}, "{call}", ""), ({"thinking_mode": "thinking"}, "Hm.</think>{call}", "Hm.")))
MINIMAX_M2 = Fit(keeps={2, 3}, keeps_unfinished={2}, generations=(({}, "Hm.\n</think>\n\n{call}", "Hm."),))
FITS = {
    "Kimi-K2-Instruct": Fit(),
    "Kimi-K2-Thinking": Fit(keeps_unfinished={2}, generations=(({}, "<think>Hm.</think>{call}", "Hm."),)),
    "Kimi-K2.5": Fit(keeps_unfinished={2}, generations=(THINKS, ({"thinking": False}, "{call}", ""))),
    "Kimi-K2.6": Fit(keeps_unfinished={2}, generations=(THINKS, ({"thinking": False}, "{call}", ""))),
    "Hermes-2-Pro-Llama-3-8B": Fit(drops_text_beside_calls=True),
    "Qwen2.5-7B-Instruct": Fit(),
    "Qwen3-4B-Instruct-2507": Fit(),
    "Qwen3-0.6B": Fit(
        keeps={2, 3},
        keeps_unfinished={2},
        generations=(
            ({}, "<think>\nHm.\n</think>\n\n{call}", "Hm."),
            ({"enable_thinking": False}, "{call}", ""),
        ),
    ),
    "Qwen3-4B-Thinking-2507": Fit(
        keeps={2, 3}, keeps_unfinished={2}, generations=(({}, "Hm.\n</think>\n\n{call}", "Hm."),)
    ),
    "Qwen3-Coder": Fit(),
    "Qwen3.5": Fit(keeps={2, 3}, keeps_unfinished={2}, generations=(({}, "Hm.\n</think>\n\n{call}", "Hm."),)),
    "Qwen3.6": Fit(
        keeps={2, 3},
        keeps_unfinished={2},
        generations=(({}, "Hm.\n</think>\n\n{call}", "Hm."), ({"enable_thinking": False}, "{call}", "")),
    ),
    "Qwen3.8": Fit(
        keeps={0, 1, 2, 3}, keeps_unfinished={0, 1, 2}, generations=(({}, "Hm.\n</think>\n\n{call}", "Hm."),)
    ),
    "GLM-4.5": Fit(
        keeps={2, 3},
        keeps_unfinished={2},
        generations=(
            ({}, "\n<think>Hm.</think>\n{call}", "Hm."),
            ({"enable_thinking": False}, "\n{call}", ""),
        ),
    ),
    "GLM-4.7": Fit(
        keeps={2, 3}, keeps_unfinished={2}, generations=(THINKS, ({"enable_thinking": False}, "{call}", ""))
    ),
    "GLM-5.3": Fit(keeps={0, 1, 2, 3}, keeps_unfinished={0, 1, 2}, generations=(THINKS,)),
    "gpt-oss-120b": Fit(
        keeps={3},
        keeps_unfinished={2},
        drops_text_beside_calls=True,
        drops_all_calls_but_the_first=True,
        generations=(
            ({}, "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant{call}", "Hm."),
            ({"reasoning_effort": "low"}, "{call}", ""),
        ),
    ),
    "DeepSeek-V3": Fit(repairs={2: ("missing-section",)}),
    "DeepSeek-V3-0324": Fit(),
    "DeepSeek-R1-0528": Fit(),
    "DeepSeek-V3.1": Fit(generations=(({}, "{call}", ""), ({"thinking": True}, "{call}", ""))),
    "DeepSeek-V3.2": DEEPSEEK_ENCODER,
    "DeepSeek-V4": DEEPSEEK_ENCODER,
    "DeepSeek-V4.1": DEEPSEEK_ENCODER,
    "MiniMax-M2": MINIMAX_M2,
    "MiniMax-M2.5": MINIMAX_M2,
    "MiniMax-M3": Fit(
        keeps={0, 1, 2, 3},
        keeps_unfinished={0, 1, 2},
        generations=(
            ({}, "<mm:think>Hm.</mm:think>{call}", "Hm."),
            ({"thinking_mode": "enabled"}, "Hm.</mm:think>{call}", "Hm."),
            ({"thinking_mode": "disabled"}, "{call}", ""),
        ),
    ),
    "gemma-4-31B-it-2026-07-09": Fit(
        keeps={2, 3},
        keeps_unfinished={2},
        writes_text_behind_results=True,
        generations=(({}, "{call}", ""), ({"enable_thinking": True}, "Hm.\n<channel|>{call}", "Hm.")),
    ),
    "gemma-4-31B-it-earlier": Fit(
        keeps={2},
        keeps_unfinished={2},
        writes_text_behind_results=True,
        generations=(
            ({}, "{call}", ""),
            ({"enable_thinking": True}, "<|channel>thought\nHm.\n<channel|>{call}", "Hm."),
        ),
    ),
}
WRITTEN_CALLS = {
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_tide:3<|tool_call_argument_begin|>"
    '{"place": "List"}<|tool_call_end|><|tool_calls_section_end|>',
    "hermes": '<tool_call>\n{"name": "get_tide", "arguments": {"place": "List"}}\n</tool_call>',
    "qwen3": '<tool_call>\n{"name": "get_tide", "arguments": {"place": "List"}}\n</tool_call>',
    "qwen3-coder": "<tool_call>\n<function=get_tide>\n<parameter=place>\nList\n</parameter>\n</function>\n</tool_call>",
    "glm": "<tool_call>get_tide<arg_key>place</arg_key><arg_value>List</arg_value></tool_call>",
    "harmony": '<|channel|>commentary to=functions.get_tide <|constrain|>json<|message|>{"place": "List"}<|call|>',
    "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_tide<｜tool▁sep｜>"
    '{"place": "List"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "minimax": '<minimax:tool_call>\n<invoke name="get_tide">\n<parameter name="place">List</parameter>\n</invoke>\n'
    "</minimax:tool_call>",
    "gemma": '<|tool_call>call:get_tide{place:<|"|>List<|"|>}<tool_call|>',
}

READ = [
    (family.dialect, template.name)
    for family in FAMILIES
    for template in family.templates
    if family.dialect in dialect_names()
]
every_template_that_is_read = pytest.mark.parametrize(("dialect", "template"), READ, ids=[name for _, name in READ])


@every_template_that_is_read
@pytest.mark.parametrize("messages", [CONVERSATION, UNFINISHED], ids=["answered", "unfinished"])
def test_the_assistants_turns_are_read_back(dialect: str, template: str, messages: list[dict[str, Any]]) -> None:
    fit = FITS[template]
    kept = fit.keeps if messages is CONVERSATION else fit.keeps_unfinished
    text = render_transcript(messages, dialect, template=template, tools=TOOLS)
    turns = re.findall(TURNS[dialect], text, re.DOTALL)
    said = [message for message in messages if message["role"] == "assistant"]
    assert len(turns) == len(said)
    held = ""
    for number, (turn, message) in enumerate(zip(turns, said, strict=True)):
        read = scan(turn, dialect, tools=TOOLS)
        calls = message.get("tool_calls", [])
        text = held + ("" if calls and fit.drops_text_beside_calls else message["content"])
        text, held = ("", text) if calls and fit.writes_text_behind_results else (text, "")
        assert read.thinking.strip() == (message["reasoning_content"] if number in kept else "")
        assert read.text.replace("\n", "") == text  # none of the texts has one, the markup around them may
        written = calls[:1] if fit.drops_all_calls_but_the_first else calls
        assert [(it.name, it.arguments, it.repairs) for it in read.tool_calls] == [
            (it["function"]["name"], it["function"]["arguments"], fit.repairs.get(number, ())) for it in written
        ]
        assert read.dropped == []
        assert read.stopped is None


@every_template_that_is_read
def test_reading_goes_on_where_the_prompt_ended(dialect: str, template: str) -> None:
    for options, generation, thought in FITS[template].generations:
        write = {"template": template, "tools": TOOLS, **options}
        prompt = render_transcript(UNFINISHED, dialect, add_generation_prompt=True, **write)
        ending = prompt.removeprefix(render_transcript(UNFINISHED, dialect, **write))
        assert ending != prompt
        generated = generation.format(call=WRITTEN_CALLS[dialect])
        for generation_prompt in (ending, prompt):
            read = scan(generated, dialect, tools=TOOLS, generation_prompt=generation_prompt)
            assert read.thinking.strip() == thought
            assert read.text.strip() == ""
            assert [(it.name, it.arguments, it.repairs) for it in read.tool_calls] == [
                ("get_tide", {"place": "List"}, ())
            ]
            assert (read.dropped, read.stopped) == ([], None)


TWO_CALLS = [
    call("functions.get_tide:3", "get_tide", {"place": "List <b>\n", "days": 2}),
    call("functions.get_wind:4", "get_wind", {"place": "Büsum", "kinds": ["gusts", ""]}),
]
NEXT_TURNS: list[dict[str, Any]] = [
    {"role": "assistant", "content": "", "reasoning_content": "Hm.\nYes.", "tool_calls": TWO_CALLS},
    {"role": "assistant", "content": "", "tool_calls": [call("functions.get_tide:3", "get_tide", {"place": "List"})]},
    {"role": "assistant", "content": "Low water.", "reasoning_content": "Hm."},
    {"role": "assistant", "content": "Low water."},
]


def settings(dialect: str, template: str) -> Iterator[dict[str, Any]]:
    """Every combination of a template's flags and thinking modes."""
    modes = ("chat", "thinking", "adaptive", "enabled", "disabled")
    axes = {
        name: list(filter(option.accepts, (True, False, *modes)))
        for name, option in find_template(dialect, template).options.items()
        if isinstance(option.default, bool) or name == "thinking_mode"
    }
    return (dict(zip(axes, chosen, strict=True)) for chosen in itertools.product(*axes.values()))


@every_template_that_is_read
def test_what_a_template_writes_behind_the_prompt_is_read_where_the_prompt_ended(dialect: str, template: str) -> None:
    """Where the turn goes on from the prompt: one with thinking does not where the prompt says that it is off, and
    one without may not where the prompt opens it."""
    fit, read_turns = FITS[template], 0
    for options, before, turn in itertools.product(
        settings(dialect, template), (CONVERSATION[1:2], UNFINISHED), NEXT_TURNS
    ):
        write = {"template": template, "tools": TOOLS, **options}
        prompt = render_transcript(before, dialect, add_generation_prompt=True, **write)
        whole = render_transcript([*before, turn], dialect, **write)
        if not whole.startswith(prompt):
            continue
        read = scan(whole[len(prompt) :], dialect, tools=TOOLS, generation_prompt=prompt)
        calls = turn.get("tool_calls", [])
        assert [(it.name, it.arguments, it.repairs) for it in read.tool_calls] == [
            (it["function"]["name"], it["function"]["arguments"], ())
            for it in (calls[:1] if fit.drops_all_calls_but_the_first else calls)
        ]
        assert read.text.strip() == turn["content"]
        assert read.thinking.strip() in ("", turn.get("reasoning_content"))
        assert (read.dropped, read.stopped) == ([], None)
        read_turns += 1
    assert read_turns


def test_no_template_is_forgotten() -> None:
    assert {name for _, name in READ} <= FITS.keys()
    assert FITS.keys() <= {template.name for family in FAMILIES for template in family.templates}
