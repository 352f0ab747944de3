"""Whole conversations: options of `render_transcript`, histories for endpoints without tools, the prompt for tools."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects.kimi import KIMI, Kimi
from dialects.messages import Message, MessageError, Tool, ToolCall
from dialects.transcript import TemplateError, encode_history, render_tool_prompt, render_transcript, templates

CALLS = [{"id": "call_9", "type": "function", "function": {"name": "ping", "arguments": '{"n": 1}'}}]
CONVERSATION: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Ping."}]},
    {"role": "assistant", "content": "Pinging.", "reasoning_content": "Easy.", "tool_calls": CALLS},
    {"role": "tool", "tool_call_id": "call_9", "content": "pong"},
    {"role": "tool", "content": "late"},
    {"role": "assistant", "content": "Done."},
]
SECTION = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.ping:0<|tool_call_argument_begin|>"
    '{"n":1}<|tool_call_end|><|tool_calls_section_end|>'
)


class TestTranscript:
    def test_kimi_is_the_dialect_if_none_is_named(self) -> None:
        assert render_transcript(CONVERSATION) == render_transcript(CONVERSATION, "kimi")
        assert render_transcript(CONVERSATION) == render_transcript(CONVERSATION, KIMI)

    def test_a_generation_prompt_opens_the_assistants_turn(self) -> None:
        text = render_transcript(CONVERSATION[:2], add_generation_prompt=True)
        assert text == render_transcript(CONVERSATION[:2]) + "<|im_assistant|>assistant<|im_middle|>"

    def test_an_empty_conversation_is_empty(self) -> None:
        assert render_transcript([]) == ""

    def test_lone_surrogates_do_not_get_out(self) -> None:
        assert "a\ufffd<|im_end|>" in render_transcript([{"role": "user", "content": "a\ud800"}])

    def test_wrong_use_is_told(self) -> None:
        with pytest.raises(MessageError, match=r"^messages\[0\]\.role: "):
            render_transcript([{"content": "x"}])
        with pytest.raises(MessageError, match=r"^tools\[0\]\.name: "):
            render_transcript([], tools=[{"name": 1}])
        with pytest.raises(TypeError, match="no option 'enable_thinking'"):
            render_transcript([], enable_thinking=True)
        with pytest.raises(ValueError, match="neutralize is one of keep, escape, raise, not 'strip'"):
            render_transcript([], neutralize="strip")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="kimmy"):
            render_transcript([], "kimmy")

    def test_a_template_that_does_not_exist(self) -> None:
        with pytest.raises(TemplateError, match="'kimi' has no template 'k3'; it has: Kimi-K2-Instruct, "):
            render_transcript([], template="k3")

    def test_a_template_of_another_dialect(self) -> None:
        with pytest.raises(TemplateError, match=r"'kimi' has no template 'GLM-4.5'; .*\(the dialect 'glm' has it\)"):
            render_transcript([], template="GLM-4.5")

    def test_a_dialect_without_templates_has_none(self) -> None:
        class Untemplated(Kimi):
            name = "untemplated"

        assert templates(Untemplated()) == ()
        with pytest.raises(TemplateError, match="'untemplated' has no template 'k3'; it has: none"):
            render_transcript([], Untemplated(), template="k3")


class TestNeutralize:
    @pytest.mark.parametrize("role", ["system", "developer", "user", "tool"])
    @pytest.mark.parametrize("token", KIMI.control_tokens)
    def test_a_control_token_in_a_callers_text(self, role: str, token: str) -> None:
        messages = [{"role": "user", "content": "fine"}, {"role": role, "content": f"a{token}b"}]
        assert f"a{token}b" in render_transcript(messages)
        assert f"a{token[0]}\u200b{token[1:]}b" in render_transcript(messages, neutralize="escape")
        with pytest.raises(MessageError) as caught:
            render_transcript(messages, neutralize="raise")
        assert str(caught.value).startswith("messages[1].content: ")
        assert str(caught.value).endswith(f"found {token}")

    def test_a_token_in_two_parts_is_one(self) -> None:
        parts = [{"type": "text", "text": "<|im_"}, {"type": "text", "text": "end|>"}]
        assert render_transcript([{"role": "user", "content": parts}], neutralize="escape").count("<|im_end|>") == 1

    def test_a_name_is_a_callers_text_too(self) -> None:
        messages = [{"role": "user", "content": "", "name": "x<|im_middle|>"}]
        with pytest.raises(MessageError, match=r"^messages\[0\]\.name: "):
            render_transcript(messages, neutralize="raise")

    def test_the_assistants_own_text_stays(self) -> None:
        messages = [{"role": "assistant", "content": "say <|im_end|>"}]
        assert render_transcript(messages, neutralize="raise") == render_transcript(messages)

    def test_the_guide_in_a_system_message_stays_whole(self) -> None:
        prompt = render_tool_prompt([Tool("ping", "<|im_end|>")], "kimi")
        system = {"role": "system", "content": f"Be brief.\n{prompt.strip()}"}
        text = render_transcript([system], neutralize="escape")
        assert KIMI.prompt.strip() in text
        assert "<\u200b|im_end|>" in text
        text = render_transcript([{"role": "user", "content": prompt}], neutralize="escape")
        assert "<|tool_call_begin|>" not in text

    @given(st.lists(st.sampled_from([*KIMI.control_tokens, "<", "|", "think", ">", "a", "[", "BOS]"]), max_size=8))
    def test_no_token_survives_and_nothing_else_changes(self, fragments: list[str]) -> None:
        text = "".join(fragments)
        body = render_transcript([{"role": "user", "content": text}], neutralize="escape")
        body = body.removeprefix("<|im_user|>user<|im_middle|>").removesuffix("<|im_end|>")
        assert not [token for token in KIMI.control_tokens if token in body]
        assert body.replace("\u200b", "") == text


class TestHistory:
    def test_calls_and_results_become_plain_text(self) -> None:
        history = encode_history(CONVERSATION, "kimi")
        assert history == [
            CONVERSATION[0],
            CONVERSATION[1],
            {"role": "assistant", "content": f"<think>\nEasy.\n</think>Pinging.{SECTION}"},
            {
                "role": "user",
                "content": "<|im_system|>ping<|im_middle|>## Return of functions.ping:0\npong<|im_end|>"
                "<|im_system|>tool<|im_middle|>## Return of functions.tool:1\nlate<|im_end|>",
            },
            CONVERSATION[5],
        ]

    def test_without_role_tokens_only_the_text_is_left(self) -> None:
        history = encode_history(CONVERSATION, "kimi", role_tokens=False)
        assert history[3]["content"] == "## Return of functions.ping:0\npong\n## Return of functions.tool:1\nlate"
        assert not [message for message in history if "<|im_" in str(message["content"])]

    def test_an_image_passes_unchanged(self) -> None:
        image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}], "extra": 1}
        assert encode_history([image], "kimi") == [image]

    def test_own_types_become_dicts(self) -> None:
        messages = [
            Message("user", "hi", name="ann"),
            Message("assistant", tool_calls=(ToolCall("x", "ping", {"n": 1}),)),
        ]
        assert encode_history(messages, "kimi") == [
            {"role": "user", "content": "hi", "name": "ann"},
            {"role": "assistant", "content": SECTION},
        ]

    def test_the_callers_messages_are_not_touched(self) -> None:
        history = encode_history(CONVERSATION[:1], "kimi")
        history[0]["content"] = "changed"
        assert CONVERSATION[0]["content"] == "Be brief."

    @pytest.mark.parametrize("wrong", ["text", None, {"role": "user"}])
    def test_what_is_no_list_of_messages(self, wrong: Any) -> None:
        with pytest.raises(MessageError, match=r"^messages: expected a list of messages"):
            encode_history(wrong, "kimi")

    def test_a_fault_is_named(self) -> None:
        with pytest.raises(MessageError, match=r"^messages\[1\]\.tool_calls\[0\]\.function\.arguments: "):
            encode_history(
                [CONVERSATION[0], {"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": "{"}}]}],
                "kimi",
            )


class TestToolPrompt:
    def test_tools_one_a_line_then_the_guide(self) -> None:
        tools = [
            {"type": "function", "function": {"name": "ping", "strict": True, "description": "Ä & <b>"}},
            {"name": "pong", "parameters": {"type": "object"}},
        ]
        assert render_tool_prompt(tools, "kimi") == (
            '<tools>\n{"name":"ping","strict":true,"description":"Ä & <b>"}\n'
            '{"name":"pong","parameters":{"type":"object"}}\n</tools>\n\n' + KIMI.prompt
        )

    def test_no_tools_at_all_is_a_mistake(self) -> None:
        with pytest.raises(MessageError, match=r"^tools: expected a list of tools, found None"):
            render_tool_prompt(None, "kimi")  # type: ignore[arg-type]

    def test_a_missing_guide_is_told(self) -> None:
        class Unguided(Kimi):
            name = "unguided"

        with pytest.raises(FileNotFoundError, match=r"'unguided' has no prompt guide: no unguided\.md in "):
            render_tool_prompt([], Unguided())

    def test_a_dialect_may_bring_its_own_guide(self) -> None:
        class SelfGuided(Kimi):
            prompt = "Just ask."

        assert render_tool_prompt([], SelfGuided()) == "<tools>\n</tools>\n\nJust ask."
