"""The dialects that can be written and not read: what they write, and what is said to whoever wants them read."""

from typing import Any

import pytest

from dialects import (
    NoScannerError,
    create_inband_scanner,
    dialect_for_model,
    dialect_names,
    encode_history,
    get_dialect,
    render_tool_prompt,
    render_transcript,
    scan,
    templates,
)
from dialects.factory import all_dialects
from dialects.healing.streams import THINKING, pattern_for

NAMES = ("mistral", "llama", "kimi-k3")
every_dialect = pytest.mark.parametrize("name", NAMES)

CONVERSATION: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Tides?"},
    {
        "role": "assistant",
        "reasoning_content": "Two.",
        "content": "I look.",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "tide", "arguments": {"port": 'Le"ith', "days": 2}}},
            {"id": "b", "type": "function", "function": {"name": "ping", "arguments": {}}},
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": '5 "m"'},
    {"role": "tool", "tool_call_id": "b", "content": "pong"},
    {"role": "assistant", "content": "5 m."},
]
TRANSCRIPTS = {
    "mistral": (
        "<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST]Tides?[/INST][THINK]Two.[/THINK]I look."
        '[TOOL_CALLS]tide[ARGS]{"port":"Le\\"ith","days":2}[TOOL_CALLS]ping[ARGS]{}</s>'
        '[TOOL_RESULTS]5 "m"[/TOOL_RESULTS][TOOL_RESULTS]pong[/TOOL_RESULTS]5 m.</s>'
    ),
    "llama": (
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nTides?<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nI look.<|python_tag|>"
        '{"name":"tide","parameters":{"port":"Le\\"ith","days":2}}; {"name":"ping","parameters":{}}<|eot_id|>'
        '<|start_header_id|>ipython<|end_header_id|>\n\n"5 \\"m\\""<|eot_id|>'
        '<|start_header_id|>ipython<|end_header_id|>\n\n"pong"<|eot_id|>'
        "<|start_header_id|>assistant<|end_header_id|>\n\n5 m.<|eot_id|>"
    ),
    "kimi-k3": (
        '<|open|>message role="system"<|sep|>Be brief.<|close|>message<|sep|><|end_of_msg|>'
        '<|open|>message role="user"<|sep|>Tides?<|close|>message<|sep|><|end_of_msg|>'
        '<|open|>message role="assistant"<|sep|><|open|>think<|sep|>Two.<|close|>think<|sep|>'
        "<|open|>response<|sep|>I look.<|close|>response<|sep|><|open|>tools<|sep|>"
        '<|open|>call tool="tide" index="1"<|sep|>'
        '<|open|>argument key="port" type="string"<|sep|>Le"ith<|close|>argument<|sep|>'
        '<|open|>argument key="days" type="number"<|sep|>2<|close|>argument<|sep|><|close|>call<|sep|>'
        '<|open|>call tool="ping" index="2"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>'
        "<|close|>message<|sep|><|end_of_msg|>"
        '<|open|>message role="tool" tool="tide" index="1"<|sep|>5 "m"<|close|>message<|sep|><|end_of_msg|>'
        '<|open|>message role="tool" tool="ping" index="2"<|sep|>pong<|close|>message<|sep|><|end_of_msg|>'
        '<|open|>message role="assistant"<|sep|><|open|>response<|sep|>5 m.<|close|>response<|sep|>'
        "<|close|>message<|sep|><|end_of_msg|>"
    ),
}
BARE_RESULTS = {"mistral": '5 "m"\npong', "llama": '"5 \\"m\\""\n"pong"', "kimi-k3": '5 "m"\npong'}


@every_dialect
def test_a_conversation(name: str) -> None:
    assert render_transcript(CONVERSATION, name) == TRANSCRIPTS[name]
    prompted = render_transcript(CONVERSATION, name, add_generation_prompt=True)
    assert prompted == TRANSCRIPTS[name] + get_dialect(name).generation_prompt


@every_dialect
def test_its_pieces_are_pieces_of_it(name: str) -> None:
    dialect, said = get_dialect(name), CONVERSATION[2]
    calls = dialect.render_assistant_tool_calls(said["tool_calls"])
    assert calls in TRANSCRIPTS[name]
    assert dialect.render_tool_call(said["tool_calls"][0]) in calls
    assert dialect.render_thinking("Two.") in TRANSCRIPTS[name]
    assert dialect.render_tool_results([{"name": "tide", **CONVERSATION[3]}]) in TRANSCRIPTS[name]


@every_dialect
def test_a_history_for_an_endpoint_without_tools(name: str) -> None:
    history = encode_history(CONVERSATION, name)
    assert [message["role"] for message in history] == ["system", "user", "assistant", "user", "assistant"]
    assert history[2]["content"] in TRANSCRIPTS[name]
    assert history[3]["content"] in TRANSCRIPTS[name]
    bare = encode_history(CONVERSATION, name, role_tokens=False)[3]["content"]
    assert bare == BARE_RESULTS[name]


def test_results_that_come_in_another_order_name_their_calls() -> None:
    turned = [*CONVERSATION[:3], CONVERSATION[4], CONVERSATION[3]]
    assert 'tool="ping" index="2"<|sep|>pong' in render_transcript(turned, "kimi-k3")
    assert 'tool="tide" index="1"<|sep|>5 "m"' in render_transcript(turned, "kimi-k3")


def test_calls_that_are_all_that_llama_says_need_no_token() -> None:
    said = {**CONVERSATION[2], "content": None}
    assert '<|end_header_id|>\n\n{"name":"tide"' in render_transcript([said], "llama")


@every_dialect
def test_control_tokens_of_others_are_broken(name: str) -> None:
    for template in (None, *templates(name)):
        for token in get_dialect(name).control_tokens:
            messages = [{"role": "user", "content": f"a{token}b"}]
            text = render_transcript(messages, name, template=template, neutralize="escape")
            assert f"a{token[0]}\u200b{token[1:]}b" in text


@every_dialect
def test_nobody_reads_them(name: str) -> None:
    assert name not in dialect_names()
    assert name in {dialect.name for dialect in all_dialects()}
    with pytest.raises(NoScannerError, match=f"'{name}' can be rendered, but there is no scanner for it"):
        create_inband_scanner(name)
    with pytest.raises(NoScannerError):
        scan("text", name)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("mistralai/Magistral-Small-2509", "mistral"),
        ("mistralai/Devstral-Small-2505", "mistral"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama"),
        ("moonshotai/Kimi-K3", "kimi-k3"),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "hermes"),
        ("moonshotai/Kimi-K2-Instruct", "kimi"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", None),
    ],
)
def test_a_models_dialect_is_known_whether_it_is_read_or_not(model: str, name: str | None) -> None:
    assert dialect_for_model(model).name == name
    if name in (*NAMES, None):
        assert pattern_for(model).name == THINKING


@every_dialect
def test_nobody_is_taught_what_cannot_be_read(name: str) -> None:
    with pytest.raises(NoScannerError, match="no guide"):
        render_tool_prompt([], name)
