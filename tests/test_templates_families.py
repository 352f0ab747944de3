"""What the recorded conversations do not show of DeepSeek's, MiniMax's, Gemma's, Mistral's, Llama's and Kimi-K3's."""

import json
from typing import Any

import pytest

from dialects import template_for_model
from dialects.templates import FAMILIES, OptionError, TemplateError, find_template, write
from tests.template_cases import CASES

DIALECTS = {template.name: family.dialect for family in FAMILIES for template in family.templates}
ASKED = {"role": "user", "content": "Q"}
MISTRALS = ("Mistral-Nemo-Instruct-2407", "Mistral-Small-3.2-24B-Instruct-2506")
LLAMAS = ("Llama-3.3-70B-Instruct", "Llama-3.2-3B-Instruct")
V3S = ("DeepSeek-V3", "DeepSeek-V3-0324", "DeepSeek-R1-0528", "DeepSeek-V3.1")
TOOLS = [{"type": "function", "function": {"name": "f", "description": "F.", "parameters": {"type": "object"}}}]


def rendered(template: str, *messages: dict[str, Any], **options: Any) -> str:
    known = ("tools", "add_generation_prompt", "normalise", "now")
    given = {key: options.pop(key) for key in known if key in options}
    return write(find_template(DIALECTS[template], template), messages, options=options, **given)


def refused(template: str, *messages: dict[str, Any], **options: Any) -> TemplateError:
    with pytest.raises(TemplateError) as caught:
        rendered(template, *messages, **options)
    return caught.value


def call(call_id: str | None, arguments: Any, name: str = "f") -> dict[str, Any]:
    written = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return written if call_id is None else {"id": call_id, **written}


def said(text: str = "", *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {}), **more}


def result(text: str, call_id: str | None = None, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "content": text, **({} if call_id is None else {"tool_call_id": call_id}), **more}


class TestDeepSeek:
    @pytest.mark.parametrize("template", V3S)
    def test_arguments_that_are_an_object_are_written_as_json(self, template: str) -> None:
        conversation = (ASKED, said("", call("a", {"n": [1, "ü"]})))
        assert '{"n": [1, "ü"]}' in rendered(template, *conversation)
        error = refused(template, *conversation, normalise=False)
        assert error.path == "messages[1].tool_calls[0].function.arguments"

    @pytest.mark.parametrize("template", V3S)
    def test_thinking_in_the_text_is_cut_and_system_texts_are_joined(self, template: str) -> None:
        first, second = ({"role": "system", "content": text} for text in "AB")
        text = rendered(template, first, ASKED, said("<think>no</think>yes"), second)
        assert text.startswith("<｜begin▁of▁sentence｜>A\n\nB<｜User｜>Q")
        assert text.endswith("yes<｜end▁of▁sentence｜>")
        assert "no" not in text

    def test_an_older_file_opens_calls_and_results_once_and_the_later_ones_with_every_batch(self) -> None:
        conversation = (ASKED, said("", call("a", "{}")), result("R"), said("", call("b", "{}")), result("S"))
        older = rendered("DeepSeek-V3", *conversation)
        assert (older.count("<｜tool▁calls▁begin｜>"), older.count("<｜tool▁outputs▁begin｜>")) == (1, 1)
        for template in ("DeepSeek-V3-0324", "DeepSeek-R1-0528"):
            later = rendered(template, *conversation)
            assert (later.count("<｜tool▁calls▁begin｜>"), later.count("<｜tool▁outputs▁begin｜>")) == (2, 2)
            assert later.count("<｜Assistant｜>") == 1
            assert "R<｜tool▁output▁end｜><｜tool▁outputs▁end｜><｜tool▁calls▁begin｜>" in later

    def test_nothing_is_prompted_behind_results_and_behind_answers_it_depends(self) -> None:
        answered = (ASKED, said("A"))
        for template in V3S:
            calls = (ASKED, said("", call("a", "{}")), result("R"))
            assert rendered(template, *calls, add_generation_prompt=True) == rendered(template, *calls)
        assert rendered("DeepSeek-V3", *answered, add_generation_prompt=True).endswith("<｜Assistant｜><think>\n")
        for template in ("DeepSeek-V3.1", "DeepSeek-V3.2", "DeepSeek-V4"):
            assert rendered(template, *answered, add_generation_prompt=True) == rendered(template, *answered)

    @pytest.mark.parametrize(
        ("template", "ending"),
        [
            ("DeepSeek-V3.2", "\n\n<think>"),
            ("DeepSeek-V4", "<｜Assistant｜><think>"),
            ("DeepSeek-V4.1", "<｜Assistant｜><think>"),
        ],
    )
    def test_what_opens_an_answer_is_left_out_unless_it_is_asked_for(self, template: str, ending: str) -> None:
        called = (ASKED, said("", call("a", "{}")), result("R"))
        for conversation, opened in (((ASKED,), "<｜Assistant｜><think>"), (called, ending)):
            without = rendered(template, *conversation, thinking_mode="thinking")
            written = rendered(template, *conversation, thinking_mode="thinking", add_generation_prompt=True)
            assert written == without + opened

    def test_v32_refuses_an_answer_without_reasoning_in_thinking_mode_unless_normalised(self) -> None:
        conversation = (ASKED, said("A"))
        error = refused("DeepSeek-V3.2", *conversation, thinking_mode="thinking", normalise=False)
        assert error.path == "messages[1]"
        assert "<think></think>A" in rendered("DeepSeek-V3.2", *conversation, thinking_mode="thinking")
        assert "<think></think>A" in rendered("DeepSeek-V4", *conversation, thinking_mode="thinking", normalise=False)

    def test_v32_needs_a_call_for_every_result(self) -> None:
        calls = said("", call("a", "{}"))
        for conversation in ((result("R"),), (ASKED, calls, result("R"), result("S")), (calls, ASKED, result("R"))):
            assert refused("DeepSeek-V3.2", *conversation).path == f"messages[{len(conversation) - 1}]"

    def test_text_that_is_no_arguments(self) -> None:
        for arguments in ("{", "[1]", "3"):
            for template in ("DeepSeek-V3.2", "DeepSeek-V4.1"):
                error = refused(template, ASKED, said("", call("a", arguments)), normalise=False)
                assert error.path == "messages[1].tool_calls[0].function.arguments"
        assert "{<｜tool▁call▁end｜>" in rendered("DeepSeek-V3.1", ASKED, said("", call("a", "{")))

    def test_in_v4_a_turn_of_the_user_is_all_that_no_one_interrupts(self) -> None:
        text = rendered(
            "DeepSeek-V4",
            ASKED,
            {"role": "user", "content": "Q2"},
            said("", call("a", "{}"), call("b", "{}")),
            result("of b", "b"),
            {"role": "user", "content": "also"},
            result("of a", "a"),
            said("A"),
        )
        assert "<｜User｜>Q\n\nQ2<｜Assistant｜></think>" in text
        of_a, of_b = "<tool_result>of a</tool_result>", "<tool_result>of b</tool_result>"
        assert f"<｜User｜>{of_a}\n\nalso\n\n{of_b}<｜Assistant｜></think>A" in text

    def test_results_stay_where_they_are_where_no_id_says_more(self) -> None:
        for ids in ((None, None), ("x", "y")):
            text = rendered(
                "DeepSeek-V4.1",
                ASKED,
                said("", call(ids[0], "{}"), call(ids[1], "{}")),
                result("1", "unknown"),
                result("2", "unknown"),
            )
            assert "<tool_result>1</tool_result>\n\n<tool_result>2</tool_result>" in text

    def test_v4_keeps_all_reasoning_where_there_are_tools(self) -> None:
        conversation = (ASKED, said("A", reasoning_content="Hm."), {"role": "user", "content": "Q2"})
        assert "Hm." not in rendered("DeepSeek-V4", *conversation, thinking_mode="thinking")
        assert "<think>Hm.</think>A" in rendered("DeepSeek-V4", *conversation, thinking_mode="thinking", tools=TOOLS)
        assert "Hm." not in rendered("DeepSeek-V4", *conversation, tools=TOOLS)
        assert "Hm." not in rendered("DeepSeek-V3.2", *conversation, thinking_mode="thinking", tools=TOOLS)

    def test_effort_is_told_while_thinking_alone(self) -> None:
        for effort in (1, 100):
            text = rendered("DeepSeek-V4.1", ASKED, thinking_mode="thinking", reasoning_effort=effort)
            assert f"<｜System｜>Reasoning Effort: {effort} (range" in text
        assert "<｜System｜>" not in rendered("DeepSeek-V4.1", ASKED, reasoning_effort=5)
        for wrong in (0, 101, True, "75"):
            with pytest.raises(OptionError, match="a whole number from 1 to 100"):
                rendered("DeepSeek-V4.1", ASKED, thinking_mode="thinking", reasoning_effort=wrong)

    def test_what_a_developer_said_goes_with_the_reasoning(self) -> None:
        conversation = ({"role": "developer", "content": "Briefly."}, said("A"), ASKED)
        assert "Briefly." in rendered("DeepSeek-V4", *conversation, normalise=False)
        assert "Briefly." not in rendered("DeepSeek-V4", *conversation, thinking_mode="thinking", normalise=False)
        assert "Briefly." in rendered("DeepSeek-V4", *conversation, thinking_mode="thinking")


class TestMiniMax:
    @pytest.mark.parametrize("template", ["MiniMax-M2", "MiniMax-M2.5", "MiniMax-M3"])
    def test_a_result_needs_calls_in_the_last_answer(self, template: str) -> None:
        assert refused(template, ASKED, result("R")).path == "messages[1]"
        calls = said("", call("a", {}))
        assert refused(template, ASKED, calls, result("R"), said("A"), result("S")).path == "messages[4]"
        assert rendered(template, ASKED, calls, {"role": "user", "content": "Q2"}, result("R"))

    def test_thinking_in_the_text_is_thinking(self) -> None:
        text = rendered("MiniMax-M2", ASKED, said("<think>\nHm.\n</think>\n\nA\n"))
        assert "]~b]ai\n<think>\nHm.\n</think>\n\nA[e~[" in text
        assert "]~b]ai\nA[e~[" in rendered("MiniMax-M2", ASKED, said("<think>Hm.</think>A"), ASKED)
        assert "]~b]ai\n<mm:think>Hm.</mm:think>A[e~[" in rendered(
            "MiniMax-M3", ASKED, said("<mm:think>Hm.</mm:think>A")
        )

    def test_m3_writes_values_as_elements_and_leaves_out_members_that_are_null(self) -> None:
        arguments = {"a": {"b": None, "c": [None, True, {"d": 1e-05}]}, "e": None, "f": "<x>"}
        text = rendered("MiniMax-M3", ASKED, said("", call("a", arguments))).replace("]<]minimax[>[", "*")
        assert (
            '*<invoke name="f">*<a>*<c>*<item>*</item>*<item>true*</item>*<item>*<d>1e-05*</d>*</item>*</c>*</a>'
            "*<f><x>*</f>*</invoke>" in text
        )

    def test_m3_takes_a_root_message_for_its_fixed_turn(self) -> None:
        text = rendered("MiniMax-M3", {"role": "root", "content": "R"}, {"role": "developer", "content": "D"}, ASKED)
        assert text == "]~!b[]~b]system\nR[e~[\n]~b]developer\nD[e~[\n]~b]user\nQ[e~[\n"
        assert text == rendered(
            "MiniMax-M3", {"role": "root", "content": "R"}, {"role": "system", "content": "D"}, ASKED
        )


class TestGemma:
    NEW, EARLIER = "gemma-4-31B-it-2026-07-09", "gemma-4-31B-it-earlier"

    @pytest.mark.parametrize("template", [NEW, EARLIER])
    def test_a_schema_without_a_type_still_closes_its_brace(self, template: str) -> None:
        properties = {"a": {"type": "string"}}
        bare = [{"name": "f", "parameters": {"properties": properties}}]
        typed = [{"name": "f", "parameters": {"properties": properties, "type": "object"}}]
        assert rendered(template, ASKED, tools=bare) == rendered(template, ASKED, tools=typed)
        function = {"type": "function", "function": bare[0]}
        assert '<|"|>STRING<|"|>}},}<tool|>' in rendered(template, ASKED, tools=[function], normalise=False)

    def test_a_turn_is_closed_by_who_speaks_next(self) -> None:
        calls = said("", call("a", {}))
        called = "<|turn>model\n<|tool_call>call:f{}<tool_call|><|tool_response>"
        answered = called + 'response:f{value:<|"|>R<|"|>}<tool_response|>'
        user = "<|turn>user\nQ<turn|>\n"
        assert rendered(self.NEW, ASKED, calls) == f"<bos>{user}{called}"
        assert rendered(self.NEW, ASKED, calls, result("R", "a")) == f"<bos>{user}{answered}"
        assert rendered(self.NEW, ASKED, calls, result("R", "a"), ASKED) == f"<bos>{user}{answered}<turn|>\n{user}"
        assert rendered(self.EARLIER, ASKED, calls, result("R", "a"), ASKED) == f"<bos>{user}{answered}{user}"
        both = rendered(self.NEW, ASKED, said("A"), said("B"))
        assert both == f"<bos>{user}<|turn>model\nAB<turn|>\n"

    def test_thinking_that_is_kept(self) -> None:
        called = said("", call("a", {}), reasoning_content="One.")
        conversation = (ASKED, called, result("R", "a"), said("A", reasoning_content="Two."), ASKED)
        assert "One." not in rendered(self.NEW, *conversation)
        kept = rendered(self.NEW, *conversation, preserve_thinking=True)
        assert "<|channel>thought\nOne.\n<channel|><|tool_call>" in kept
        assert "Two." not in kept
        recent = rendered(self.NEW, *conversation[:-1])
        assert "One." in recent
        assert "Two." in recent
        assert "Two." not in rendered(self.EARLIER, *conversation[:-1])
        with pytest.raises(OptionError):
            rendered(self.EARLIER, ASKED, preserve_thinking=True)

    def test_thinking_in_the_text_is_cut(self) -> None:
        assert "<|turn>model\nA<turn|>" in rendered(self.NEW, ASKED, said("<|channel>thought\nHm.\n<channel|> A "))

    def test_a_result_has_the_name_of_the_call_that_it_answers(self) -> None:
        calls = said("", call("a", {}, "one"), call("b", {}, "two"))
        text = rendered(self.NEW, ASKED, calls, result("R", "b"), result("S", "a", name="other"))
        assert text.endswith(
            'response:two{value:<|"|>R<|"|>}<tool_response|><|tool_response>response:one{value:<|"|>S<|"|>}<tool_response|>'
        )
        foreign = (ASKED, calls, result("R", "x"), result("S", "y", name="own"))
        assert 'response:one{value:<|"|>R<|"|>}' in rendered(self.NEW, *foreign)
        assert 'response:own{value:<|"|>S<|"|>}' in rendered(self.NEW, *foreign)
        assert refused(self.NEW, *foreign, normalise=False).path == "messages[2].name"

    def test_schemas(self) -> None:
        properties = {
            "b": {"type": "array", "items": {"type": ["string", "null"], "required": ["x"], "properties": {"x": {}}}},
            "A": {"type": "object", "additionalProperties": False, "description": "D"},
            "c": {"type": "string", "enum": [1, {"k": None}], "nullable": True},
            "d": {"type": "object", "properties": {"e": {"type": "integer"}}, "required": ["e"]},
        }
        tool = {"name": "f", "parameters": {"type": "object", "properties": properties}}
        text = rendered(self.NEW, ASKED, tools=[tool]).replace('<|"|>', "'")
        assert text.startswith(
            "<bos><|turn>system\n<|tool>declaration:f{description:'',parameters:{properties:{"
            "A:{description:'D',properties:{additionalProperties:{type:''}},type:'OBJECT'},"
            "b:{items:{properties:{x:{type:''}},required:['x'],type:['STRING','NULL']},type:'ARRAY'},"
            "c:{enum:[1,{'k':null}],nullable:true,type:'STRING'},"
            "d:{properties:{e:{type:'INTEGER'}},required:['e'],type:'OBJECT'}},type:'OBJECT'}}<tool|><turn|>\n"
        )


class TestMistral:
    @pytest.mark.parametrize("template", MISTRALS)
    def test_ids_that_the_template_refuses_become_numbers_for_calls_and_results_alike(self, template: str) -> None:
        conversation = (
            ASKED,
            said("", call("call_1", {}), call("abcDEF123", {}), call(None, {})),
            result("R", "call_1"),
            result("S", "abcDEF123"),
            result("T"),
            said("", call("call_1", {})),
            result("U", "call_1"),
        )
        text = rendered(template, *conversation)
        for call_id in ("000000000", "abcDEF123", "000000001", "000000002"):
            assert text.count(call_id) == 2
        longer = rendered(template, *conversation, said("", call("call_9", {})))
        assert longer.startswith(text)
        assert refused(template, *conversation, normalise=False).path == "messages[1].tool_calls[0].id"
        lost = (ASKED, said("", call("abcDEF123", {})), result("R"))
        assert refused(template, *lost, normalise=False).path == "messages[2].tool_call_id"

    @pytest.mark.parametrize("template", MISTRALS)
    def test_the_recorded_conversation_with_foreign_ids(self, template: str) -> None:
        (case,) = (case for case in CASES if case.template == template and case.id.startswith("foreign-call-ids"))
        own_ids = json.dumps(case.messages).replace("call_9fA2", "000000000").replace("toolu-77", "000000001")
        assert case.render(normalise=True) == case.render(
            [{**it, "content": it["content"] or ""} for it in json.loads(own_ids)]
        )

    @pytest.mark.parametrize("template", [*MISTRALS, "Ministral-3-14B-Reasoning-2512"])
    def test_users_and_assistants_take_turns(self, template: str) -> None:
        calls = said("", call("abcDEF123", {}))
        assert rendered(
            template, ASKED, calls, result("R", "abcDEF123"), calls, result("R", "abcDEF123"), said("A"), ASKED
        )
        assert refused(template, ASKED, ASKED).path == "messages[1]"
        assert refused(template, said("A")).path == "messages[0]"
        assert refused(template, ASKED, said("A"), said("B")).path == "messages[2]"
        assert refused(template, ASKED, {"role": "system", "content": "S"}).path in ("messages[1]", "messages[1].role")

    def test_tools_stand_before_the_last_question_and_are_not_escaped(self) -> None:
        tools = [{"name": "f", "description": 'Say "ü".', "return": {"type": "string"}, "parameters": {}}]
        for template in MISTRALS:
            text = rendered(template, ASKED, said("A"), {"role": "user", "content": "Q2"}, tools=tools)
            declared = '{"type": "function", "function": {"name": "f", "description": "Say "ü".", "parameters": {}}}'
            assert text.endswith(f"[INST]Q[/INST]A</s>[AVAILABLE_TOOLS][{declared}][/AVAILABLE_TOOLS][INST]Q2[/INST]")

    def test_nemo_loses_the_system_text_unless_the_user_spoke_last(self) -> None:
        system = {"role": "system", "content": "Be brief."}
        assert "[INST]Be brief.\n\nQ[/INST]" in rendered("Mistral-Nemo-Instruct-2407", system, ASKED)
        assert "Be brief." not in rendered("Mistral-Nemo-Instruct-2407", system, ASKED, said("A"))

    def test_ministral_takes_reasoning_from_any_field_and_text_beside_calls(self) -> None:
        spoken = said("A", call("x", '{"a":1}'), call("y", ""), reasoning_content="Hm.")
        text = rendered("Ministral-3-14B-Reasoning-2512", ASKED, spoken)
        assert text.endswith('[/INST][THINK]Hm.[/THINK]A[TOOL_CALLS]f[ARGS]{"a":1}[TOOL_CALLS]f[ARGS]{}</s>')
        assert "[THINK]Hm." not in rendered("Ministral-3-14B-Reasoning-2512", ASKED, spoken, normalise=False)
        assert refused("Ministral-3-14B-Reasoning-2512", ASKED, said("")).path == "messages[1]"


class TestLlama:
    @pytest.mark.parametrize("template", LLAMAS)
    def test_calls_of_one_message_become_messages_each_with_its_result(self, template: str) -> None:
        calls = said("", call("a", {"n": 1}), call("b", {"n": 2}), call(None, {"n": 3}))
        text = rendered(template, ASKED, calls, result("B", "b"), result("A", "a"), result("C"), said("Done."))
        order = ['"n": 1', '"A"', '"n": 2', '"B"', '"n": 3', '"C"', "Done."]
        assert [text.index(piece) for piece in order] == sorted(text.index(piece) for piece in order)
        assert text.count("<|start_header_id|>assistant") == 4
        assert refused(template, ASKED, calls, normalise=False).path == "messages[1].tool_calls"

    @pytest.mark.parametrize("template", LLAMAS)
    @pytest.mark.parametrize("prefix", ["parallel-calls", "foreign-call-ids"])
    def test_the_recorded_conversations_with_several_calls(self, template: str, prefix: str) -> None:
        (case,) = (case for case in CASES if case.template == template and case.id.startswith(prefix))
        asked, both, *results = case.messages
        single = [{**both, "tool_calls": [it]} for it in both["tool_calls"]]
        assert case.render(normalise=True) == case.render([asked, single[0], results[0], single[1], results[1]])

    @pytest.mark.parametrize("template", LLAMAS)
    def test_tools_need_a_message_to_stand_in(self, template: str) -> None:
        assert refused(template, {"role": "system", "content": "S"}, tools=TOOLS).path == "messages"
        assert rendered(template, {"role": "system", "content": "S"}, tools=TOOLS, tools_in_user_message=False)


class TestKimiK3:
    def test_results_are_numbered_and_ordered_like_their_calls(self) -> None:
        calls = said("", call("a", {}, "one"), call("b", {}, "two"))
        text = rendered("Kimi-K3", ASKED, calls, result("of two", "b"), result("of one", "a"))
        assert text.index('tool="one" index="1"<|sep|>of one') < text.index('tool="two" index="2"<|sep|>of two')
        nameless = rendered("Kimi-K3", ASKED, calls, result("of one", "x"), result("of two"))
        assert nameless.index('tool="one" index="1"<|sep|>of one') < nameless.index('tool="two" index="2"<|sep|>of two')

    def test_attributes_are_escaped_and_values_are_not(self) -> None:
        text = rendered("Kimi-K3", ASKED, said("", call("a", {'k"&<': '"&<', "n": 1e20}, 'f"&')))
        assert '<|open|>call tool="f&quot;&amp;" index="1"<|sep|>' in text
        assert '<|open|>argument key="k&quot;&amp;<" type="string"<|sep|>"&<<|close|>argument<|sep|>' in text
        assert '<|open|>argument key="n" type="number"<|sep|>1e+20<|close|>' in text

    def test_arguments_that_are_no_object_are_written_as_they_are(self) -> None:
        for arguments in ('{"a": ', "[1]"):
            text = rendered("Kimi-K3", ASKED, said("", call("a", arguments)))
            assert f'<|open|>json type="object"<|sep|>{arguments}<|close|>json<|sep|>' in text
        assert '<|open|>argument key="a" type="number"' in rendered("Kimi-K3", ASKED, said("", call("a", '{"a": 1}')))

    def test_options(self) -> None:
        for effort in ("low", "medium", "high", "max"):
            assert f"`thinking_effort={effort}`" in rendered("Kimi-K3", ASKED, thinking_effort=effort)
        assert "thinking_effort" not in rendered("Kimi-K3", ASKED, thinking=False, thinking_effort="low")
        assert rendered("Kimi-K3", ASKED, tool_choice="auto") == rendered("Kimi-K3", ASKED)


@pytest.mark.parametrize(
    ("model", "template"),
    [
        ("deepseek-ai/DeepSeek-V3", "DeepSeek-V3"),
        ("deepseek-ai/DeepSeek-R1", "DeepSeek-V3"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "DeepSeek-V3"),
        ("deepseek-ai/DeepSeek-V3-0324", "DeepSeek-V3-0324"),
        ("deepseek-ai/DeepSeek-R1-0528", "DeepSeek-R1-0528"),
        ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "DeepSeek-R1-0528"),
        ("deepseek-ai/DeepSeek-V3.1-Terminus", "DeepSeek-V3.1"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "DeepSeek-V3.1"),
        ("deepseek-ai/DeepSeek-V3.2", "DeepSeek-V3.2"),
        ("deepseek-ai/DeepSeek-V3.2-Speciale", "DeepSeek-V3.2"),
        ("deepseek-ai/DeepSeek-V4", "DeepSeek-V4"),
        ("deepseek-v4.1", "DeepSeek-V4.1"),
        ("MiniMaxAI/MiniMax-M2", "MiniMax-M2"),
        ("MiniMaxAI/MiniMax-M2.1", "MiniMax-M2"),
        ("MiniMaxAI/MiniMax-M2.5", "MiniMax-M2.5"),
        ("minimax_m3", "MiniMax-M3"),
        ("google/gemma-4-31B-it", "gemma-4-31B-it-2026-07-09"),
        ("gemma-4-31B-it-earlier", "gemma-4-31B-it-earlier"),
        ("mistralai/Mistral-Nemo-Instruct-2407", "Mistral-Nemo-Instruct-2407"),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "Mistral-Small-3.2-24B-Instruct-2506"),
        ("mistralai/Ministral-3-8B-Reasoning-2512", "Ministral-3-14B-Reasoning-2512"),
        ("meta-llama/Llama-3.1-8B-Instruct", "Llama-3.3-70B-Instruct"),
        ("meta-llama/Meta-Llama-3.1-405B-Instruct-FP8", "Llama-3.3-70B-Instruct"),
        ("meta-llama/Llama-3.3-70B-Instruct", "Llama-3.3-70B-Instruct"),
        ("meta-llama/Llama-3.2-1B-Instruct", "Llama-3.2-3B-Instruct"),
        ("moonshotai/Kimi-K3", "Kimi-K3"),
        # As hosts that allow no point in an id write versions.
        ("accounts/fireworks/models/kimi-k2p5", "Kimi-K2.5"),
        ("kimi-k2-5", "Kimi-K2.5"),
        ("deepseek-v3p1", "DeepSeek-V3.1"),
        ("deepseek-v3p2", "DeepSeek-V3.2"),
        ("deepseek-v4-1", "DeepSeek-V4.1"),
        ("minimax-m2p5", "MiniMax-M2.5"),
        ("minimax-m2-1", "MiniMax-M2"),
        ("glm-4p7", "GLM-4.7"),
        ("glm-5p3", "GLM-5.3"),
        ("qwen3p5-27b", "Qwen3.5"),
        ("llama-3-3-70b-instruct", "Llama-3.3-70B-Instruct"),
        # And what only resembles one.
        ("kimi-k2-0905", "Kimi-K2-Instruct"),
        ("deepseek-v3-0324", "DeepSeek-V3-0324"),
        ("Qwen3-8B", "Qwen3-0.6B"),
        ("qwen3-1.7b", "Qwen3-0.6B"),
        ("kimi-k2-4bit", "Kimi-K2-Instruct"),
    ],
)
def test_a_model_has_its_template(model: str, template: str) -> None:
    match = template_for_model(model)
    assert match.name == template
    assert match.candidates == (template,)


@pytest.mark.parametrize(
    "model",
    [
        "deepseek-chat",
        "deepseek-ai/DeepSeek-V2.5",
        "MiniMaxAI/MiniMax-M1-80k",
        "MiniMaxAI/MiniMax-M2.7",
        "google/gemma-3-27b-it",
        "google/gemma-4-E4B-it",
        "mistralai/Mixtral-8x7B-Instruct-v0.1",
        "mistralai/Ministral-3-8B-Instruct-2512",
        "meta-llama/Meta-Llama-3-8B-Instruct",
        "meta-llama/Llama-3.2-11B-Vision-Instruct",
        "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    ],
)
def test_a_model_whose_template_is_not_known_has_none(model: str) -> None:
    match = template_for_model(model)
    assert match.name is None
    assert match.candidates == ()
    assert repr(model) in match.reason
