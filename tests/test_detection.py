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
        ("some-model", None),
        ("qwen3p5-27b", "qwen3-coder"),
        ("qwen3_5-27b", "qwen3-coder"),
        ("glm-4p6", "glm"),
        ("Qwen3-4B", "qwen3"),
        ("glm-4-9b-chat", None),
    ],
)
def test_an_id_tells_the_dialect(model: str, name: str | None) -> None:
    assert dialect_for_model(model).name == name


# The command.


def test_the_command_goes_by_a_template(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEMPLATES["glm"].encode())))
    assert main(["which", "--template", "-"]) == 0
    assert capsys.readouterr().out == "glm\n"
    assert main(["which", "--template", "-", "glm-5"]) == 2
    assert "which needs a MODEL_ID or --template FILE" in capsys.readouterr().err
