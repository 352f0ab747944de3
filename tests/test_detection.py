"""Which dialect a model speaks, by its id or its chat template: right, or unsure and saying so."""

import io
import json
import sys

import pytest

from dialects import dialect_for_model, dialect_for_template, template_for_model
from dialects.cli import main
from dialects.factory import all_dialects

_BAR, _BLOCK = "\uff5c", "\u2581"


def deepseek(text: str) -> str:
    """A snippet with DeepSeek's tokens, in which `!` is the full-width bar and `_` the lower block."""
    return text.replace("!", _BAR).replace("_", _BLOCK)


def dsml(section: str, space: str = "") -> str:
    """Calls as the later DeepSeek models write them."""
    return deepseek(
        f"{{{{ '\\n\\n<!DSML!{section.replace('_', '~')}>\\n<!DSML!{space}invoke name=' }}}}{{{{ call.name }}}}"
        f"<!DSML!{space}parameter name='{{{{ k }}}}' string='true'>{{{{ v }}}}</!DSML!{space}parameter>"
        f"</!DSML!{space}invoke></!DSML!{section.replace('_', '~')}><!end_of_sentence!>"
    ).replace("~", "_")


_LLAMA_3_2 = (
    "{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{{- '{\"name\": \"' + call.name + '\", ' }}"
    "{{- '\"parameters\": ' }}{{- call.arguments | tojson }}{{- '}<|eot_id|>' }}"
    "{{- '<|start_header_id|>ipython<|end_header_id|>\\n\\n' }}"
)
_QWEN3_CODER = (
    "{{- '<|im_start|>' + m.role }}{{- '\\n<tool_call>\\n<function=' + call.name + '>\\n' }}"
    "{{- '<parameter=' + k + '>\\n' }}{{- v }}{{- '\\n</parameter>\\n' }}{{- '</function>\\n</tool_call>' }}"
    "{{- '<|im_start|>user\\n' }}{{- '<tool_response>\\n' }}"
)
TEMPLATES = {
    "kimi": {
        "Kimi-K2": (
            "{% for m in messages %}<|im_user|>{{ m.role }}<|im_middle|>{{ m.content }}{% if m.tool_calls %}"
            "<|tool_calls_section_begin|>{% for call in m.tool_calls %}<|tool_call_begin|>{{ call.id }}"
            "<|tool_call_argument_begin|>{{ call.arguments | tojson }}<|tool_call_end|>{% endfor %}"
            "<|tool_calls_section_end|>{% endif %}<|im_end|>{% endfor %}"
        ),
    },
    "kimi-k3": {
        "Kimi-K3": (
            '<|open|>message role="{{ m.role }}"<|sep|>{{ m.content }}<|close|>message<|sep|><|end_of_msg|>'
            '<|open|>call tool="{{ call.name }}" index="{{ loop.index }}"<|sep|><|close|>call<|sep|>'
        ),
    },
    "hermes": {
        "Hermes 2 Pro": (
            "{{ '<|im_start|>' + m.role }}{{ '\\n<tool_call>\\n{\"name\": \"' + call.name }}{{ '}\\n</tool_call>' }}"
            "{% if m.role == 'tool' %}{{ '<|im_start|>tool\\n<tool_response>' }}{% endif %}"
        ),
    },
    "qwen3": {
        "Qwen2.5 and Qwen3": (
            "{{ '<|im_start|>' + m.role }}{{ '<tool_call>\\n{\"name\": \"' + call.name }}{{ '}\\n</tool_call>' }}"
            "{{ '<|im_start|>user' }}{{ '\\n<tool_response>\\n' + m.content }}"
        ),
    },
    "qwen3-coder": {
        "Qwen3-Coder": _QWEN3_CODER,
        "Qwen3.5": "{{ '<think>\\n' + r + '\\n</think>\\n\\n' }}<|vision_start|>" + _QWEN3_CODER,
    },
    "glm": {
        "GLM-4.5": (
            "[gMASK]<sop>{{ '\\n<tool_call>' + call.name }}\n<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v }}</arg_value>"
            "\n</tool_call><|observation|>"
        ),
        "GLM-4.7": (
            "[gMASK]<sop>{{ '<tool_call>' + call.name }}<arg_key>{{ k }}</arg_key><arg_value>{{ v }}</arg_value>"
            "</tool_call><|observation|><tool_response>"
        ),
    },
    "harmony": {
        "gpt-oss": (
            "<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|end|>{% for call in m.tool_calls %}"
            "<|start|>assistant to=functions.{{ call.name }}<|channel|>commentary json<|message|>{{ call.arguments }}"
            "<|call|>{% endfor %}"
        ),
    },
    "deepseek": {
        "V3 and R1": deepseek(
            "{{ '<!Assistant!><!tool_calls_begin!><!tool_call_begin!>' + tool.type + '<!tool_sep!>' + tool.name }}"
            "{{ '\\n```json\\n' + tool.arguments + '\\n```<!tool_call_end!>' }}{{ '<!tool_calls_end!>' }}"
        ),
        "V3.1": deepseek(
            "<!tool_calls_begin!><!tool_call_begin!>{{ tool.name }}<!tool_sep!>{{ tool.arguments }}<!tool_call_end!>"
            "<!tool_calls_end!><!end_of_sentence!>"
        ),
        "a section in a variable": deepseek("{{ begin }}<!tool_call_begin!>{{ name }}<!tool_sep!>{{ arguments }}"),
        "V3.2": dsml("function_calls"),
        "V4": dsml("tool_calls"),
        "V4.1": dsml(" calls", " "),
        "a mark in a variable": f"{{% set mark = '{_BAR}DSML{_BAR}' %}}{{{{ '<' ~ mark ~ 'invoke name=' ~ name }}}}",
    },
    "minimax": {
        "M2": (
            "{% set begin = '<minimax:tool_call>' %}{% set end = '</minimax:tool_call>' %}{{ ']~b]ai\\n' ~ begin }}"
            "{{ '<invoke name=' ~ call.name }}<parameter name='{{ k }}'>{{ v }}</parameter>{{ '</invoke>' ~ end }}"
        ),
        "M3": (
            "{% set mark = ']<]minimax[>[' %}{% set begin = mark ~ '<tool_call>' %}"
            "{% set end = mark ~ '</tool_call>' %}{{ ']~b]ai\\n' ~ begin }}"
            "{{ mark ~ '<invoke name=' ~ call.name }}{{ mark ~ '</invoke>' ~ end }}"
        ),
    },
    "gemma": {
        "Gemma 4": (
            "{{ '<|turn>model\\n' }}{{ '<|tool_call>call:' + call.name + '{' }}{{ k }}:{{ '<|\"|>' + v + '<|\"|>' }}"
            "{{ '}<tool_call|>' }}{{ '<|tool_response>response:' + name }}"
        ),
    },
    "gemini": {
        "Python in a fence": (
            "<start_of_turn>model\n```tool_code\n{{ 'default_api.' + call.name }}({{ arguments }})\n```<end_of_turn>"
        ),
    },
    "anthropic": {
        "in a section": (
            "<function_calls>\n<invoke name='{{ name }}'><parameter name='{{ k }}'>{{ v }}</parameter></invoke>\n"
            "</function_calls>"
        ),
    },
    "xml": {
        "bare": "<invoke name='{{ name }}'><parameter name='{{ k }}'>{{ v }}</parameter></invoke>",
    },
    "mistral": {
        "Nemo": "{{ '[INST]' + m.content + '[/INST]' }}{{ '[TOOL_CALLS][' }}{{ out[:-1] }}{{ ', \"id\": \"' + id }}",
        "Small-3.2": "{{ '[TOOL_CALLS]' + call.name + '[CALL_ID]' + call.id + '[ARGS]' + call.arguments }}",
        "Ministral-3": "{{ '[TOOL_CALLS]' + call.name + '[ARGS]' + call.arguments }}",
    },
    "llama": {
        "Llama-3.2": _LLAMA_3_2,
        "Llama-3.3": "{{- '<|python_tag|>' + call.name + '.call(' }}" + _LLAMA_3_2 + "<|eom_id|>",
    },
}
SNIPPETS = [(name, form) for name, forms in TEMPLATES.items() for form in forms]
WITHOUT_CALLS = {
    "Gemma 1 to 3": (
        "{{ bos_token }}{{ '<start_of_turn>' + role + '\\n' }}{{ m.content | trim }}{{ '<end_of_turn>\\n' }}"
        "{{ '<start_of_turn>model\\n' }}"
    ),
    "functiongemma": "<start_of_turn>model\n<start_function_call>call:{{ name }}<end_function_call><end_of_turn>",
    "Gemma 4": "{{ '<|turn>' + role + '\\n' }}{{ m.content }}{{ '<turn|>\\n' }}",
    "DeepSeek": deepseek("<!User!>{{ m.content }}<!Assistant!>{{ m.content }}<!end_of_sentence!>"),
    "gpt-oss": "<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|end|>",
    "Llama 3": "{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + m.content | trim + '<|eot_id|>' }}",
    "LFM2": "<|im_start|>assistant\n<|tool_call_start|>[{{ name }}({{ arguments }})]<|tool_call_end|><|im_end|>",
    "Llama 3's turns, of another tag": "<|start_header_id|>ipython<|end_header_id|><TOOLCALL>[{{ call }}]</TOOLCALL>",
    "Llama 4": "<|header_start|>assistant<|header_end|>\n\n[{{ name }}({{ arguments }})]<|eot|>",
    "Mistral": "{{ '[INST] ' + m.content + ' [/INST]' }}",
    "Kimi-K2": "<|im_user|>user<|im_middle|>{{ m.content }}<|im_end|>",
    "ChatML": "{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}",
    "Qwen's, of another tag": "<function={{ name }}>{{ arguments }}</function>",
    "nothing": "",
}


@pytest.mark.parametrize(("name", "form"), SNIPPETS)
def test_a_template_tells_its_dialect(name: str, form: str) -> None:
    match = dialect_for_template(TEMPLATES[name][form])
    assert (match.name, match.candidates) == (name, (name,))
    assert "it writes calls with" in match.reason


@pytest.mark.parametrize(("name", "form"), SNIPPETS)
def test_a_template_copied_out_of_json_may_have_its_characters_escaped(name: str, form: str) -> None:
    copied = json.dumps(TEMPLATES[name][form])
    assert dialect_for_template(copied).name == name
    assert dialect_for_template(copied.replace("<", "\\u003c")).name == name


def test_every_dialect_has_a_template_that_tells_it() -> None:
    assert set(TEMPLATES) == {dialect.name for dialect in all_dialects()}


@pytest.mark.parametrize("family", WITHOUT_CALLS)
def test_a_template_without_calls_is_no_dialects(family: str) -> None:
    match = dialect_for_template(WITHOUT_CALLS[family])
    assert (match.name, match.candidates) == (None, ())
    assert "no dialect" in match.reason


def test_a_template_that_writes_calls_as_two_dialects_do_is_not_decided() -> None:
    match = dialect_for_template("<tool_call>{{ call }}</tool_call>")
    assert match.name is None
    assert {*match.candidates} == {"hermes", "qwen3"}


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
        ("qwen3p5-27b", "qwen3-coder"),
        ("qwen3_5-27b", "qwen3-coder"),
        ("glm-4p6", "glm"),
        ("Qwen3-4B", "qwen3"),
        ("deepseek-chat", None),
        ("Qwen2-7B-Instruct", None),
        ("glm-4-9b-chat", None),
        ("google/gemma-3-27b-it", None),
        ("functiongemma-270m-it", None),
        ("google/medgemma-4b-it", None),
        ("codegemma-4bit", None),
        ("gemma-4-31B-it-4bit", "gemma"),
        ("openlm-research/open_llama_3b_v2", None),
        ("huggyllama/llama-30b", None),
        ("open-r1/Distill-Qwen-32B", None),
        ("qwen3:30b", "qwen3"),
        ("Llama-3.2-3B-Instruct-4bit", "llama"),
        ("teknium/OpenHermes-2.5-Mistral-7B", None),
        ("nvidia/Llama-3_3-Nemotron-Super-49B-v1_5", None),
        ("Llama-3-Groq-8B-Tool-Use", None),
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


def test_a_size_is_no_version_of_a_template_either() -> None:
    assert template_for_model("medgemma-4b-it").name is None
    assert template_for_model("gemma-4-31B-it").name is not None


def test_two_families_of_which_none_goes_first_are_both_named() -> None:
    match = dialect_for_model("Llama-3-Mistral-Merge")
    assert (match.name, {*match.candidates}) == (None, {"llama", "mistral"})


# The command.


def test_the_command_goes_by_a_template(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEMPLATES["glm"]["GLM-4.7"].encode())))
    assert main(["which", "--template", "-"]) == 0
    assert capsys.readouterr().out == "glm\n"
    assert main(["which", "--template", "-", "glm-5"]) == 2
    assert "which needs a MODEL_ID or --template FILE" in capsys.readouterr().err
