"""Which dialect a model speaks, by its id or its chat template: right, or unsure and saying so."""

import io
import sys

import pytest

from dialects import dialect_for_model, dialect_for_template
from dialects.cli import main

CALL = "{{ call.name }}"
TEMPLATES = {
    "kimi": (
        "{% for m in messages %}<|im_user|>{{ m.role }}<|im_middle|>{{ m.content }}{% if m.tool_calls %}"
        "<|tool_calls_section_begin|>{% for call in m.tool_calls %}<|tool_call_begin|>{{ call.id }}"
        "<|tool_call_argument_begin|>{{ call.arguments | tojson }}<|tool_call_end|>{% endfor %}"
        "<|tool_calls_section_end|>{% endif %}<|im_end|>{% endfor %}"
    ),
    "hermes": (
        "{{ '<|im_start|>' + m.role }}{% for call in m.tool_calls %}{{ '\\n<tool_call>\\n{\"name\": \"' + call.name }}"
        "{{ '}\\n</tool_call>' }}{% endfor %}"
        "{% if m.role == 'tool' %}{{ '<|im_start|>tool\\n<tool_response>' }}{% endif %}"
    ),
    "qwen3": (
        "{{ '<|im_start|>' + m.role }}{% for call in m.tool_calls %}{{ '<tool_call>\\n{\"name\": \"' + call.name }}"
        "{{ '}\\n</tool_call>' }}{% endfor %}{{ '<|im_start|>user' }}{{ '\\n<tool_response>\\n' + m.content }}"
    ),
    "glm": (
        "[gMASK]<sop>{% for call in m.tool_calls %}<tool_call>{{ call.name }}{% for k, v in call.arguments.items() %}"
        "<arg_key>{{ k }}</arg_key><arg_value>{{ v }}</arg_value>{% endfor %}</tool_call>{% endfor %}<|observation|>"
    ),
    "harmony": (
        "<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|end|>{% for call in m.tool_calls %}"
        "<|start|>assistant to=functions.{{ call.name }}<|channel|>commentary json<|message|>{{ call.arguments }}"
        "<|call|>{% endfor %}"
    ),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_tells_its_dialect(name: str) -> None:
    match = dialect_for_template(TEMPLATES[name])
    assert (match.name, match.candidates) == (name, (name,))
    assert "it writes calls with" in match.reason


def test_a_template_that_writes_calls_as_two_dialects_do_is_not_decided() -> None:
    match = dialect_for_template("<tool_call>{{ call }}</tool_call>")
    assert match.name is None
    assert {*match.candidates} == {"hermes", "qwen3"}


def test_a_template_without_calls_is_no_dialects() -> None:
    match = dialect_for_template(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"
    )
    assert (match.name, match.candidates) == (None, ())
    assert "no dialect" in match.reason


def test_a_template_copied_out_of_json_may_have_its_characters_escaped() -> None:
    assert dialect_for_template(TEMPLATES["kimi"].replace("<", "\\u003c")).name == "kimi"


def test_wrong_types_raise() -> None:
    for detect in (dialect_for_model, dialect_for_template):
        with pytest.raises(TypeError, match="is a str, not bytes"):
            detect(b"x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("moonshotai/Kimi-K2-Instruct-0905", "kimi"),
        ("kimi_k2.5", "kimi"),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "hermes"),
        ("hermes-4-405b", "hermes"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen3"),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507", "qwen3"),
        ("QwQ-32B", "qwen3"),
        ("zai-org/GLM-4.5-Air", "glm"),
        ("glm-5.3", "glm"),
        ("openai/gpt-oss-120b", "harmony"),
        ("deepseek-v31", "deepseek"),
        ("DeepSeek-V32", "deepseek"),
        ("Qwen3-0.6B", "qwen3"),
        ("Qwen3-Next-80B-A3B-Instruct", "qwen3"),
        ("qwen-3-coder:30b", "qwen3-coder"),
        ("Qwen3.5-397B", "qwen3-coder"),
        ("MiniMaxAI/MiniMax-M3", "minimax"),
        ("minimax_m2.7", "minimax"),
        ("google/gemma-4-E2B-it", "gemma"),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "anthropic"),
        ("models/gemini-3-pro-preview", "gemini"),
        ("open-mixtral-8x22b", "mistral"),
        ("Meta-Llama-3-8B-Instruct", "llama"),
        ("moonshotai/Kimi-K3", "kimi-k3"),
        ("some-model", None),
        ("deepseek-chat", None),
        ("Qwen2-7B-Instruct", None),
        ("glm-4-9b-chat", None),
        ("google/gemma-3-27b-it", None),
        ("functiongemma-270m-it", None),
        ("MiniMax-M1-80k", None),
        ("my-model-v3.2", None),
    ],
)
def test_an_id_tells_the_dialect(model: str, name: str | None) -> None:
    assert dialect_for_model(model).name == name


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("NousResearch/Hermes-4-Qwen3-14B", "hermes"),
        ("adrienbrault/DeepHermes-3-Mistral-24B", "hermes"),
        ("DeepSeek-R1-0528-Qwen3-8B", "deepseek"),
        ("DeepSeek-R1-Distill-Llama-3-8B", "deepseek"),
        ("Qwen3-14B-Claude-4.5-Opus-Distill", "qwen3"),
        ("Qwen3-Coder-30B-Kimi-K2-Distill", "qwen3-coder"),
        ("Qwen2.5-7B-Gemma-3-Merge", "qwen3"),
    ],
)
def test_of_two_families_in_an_id_the_first_in_order_answers(model: str, name: str) -> None:
    assert dialect_for_model(model).name == name


def test_two_families_of_which_none_goes_first_are_both_named() -> None:
    match = dialect_for_model("Llama-3-Mistral-Merge")
    assert (match.name, {*match.candidates}) == (None, {"llama", "mistral"})


# The command.


def test_the_command_goes_by_a_template(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEMPLATES["glm"].encode())))
    assert main(["which", "--template", "-"]) == 0
    assert capsys.readouterr().out == "glm\n"
    assert main(["which", "--template", "-", "glm-5"]) == 2
    assert "which needs a MODEL_ID or --template FILE" in capsys.readouterr().err
