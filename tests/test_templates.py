"""What all templates have in common: normalising, options, dates, refusals; and finding one for a model."""

import copy
import json
import re
from collections import UserDict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects import Message, MessageError, Tool, ToolCall, render_transcript, scan, template_for_model, templates
from dialects.templates import FAMILIES, OptionError, TemplateError, find_template, write
from tests.template_cases import CASES, Case

ALL = [(family.dialect, template.name) for family in FAMILIES for template in family.templates]
WRITE_NOTHING = {
    "Hermes-2-Pro-Llama-3-8B",
    *("Kimi-K2-Instruct", "Kimi-K2-Thinking", "Kimi-K2.5", "Kimi-K2.6"),
    *("GLM-4.5", "GLM-4.7", "GLM-5.3"),
    *("DeepSeek-V3", "DeepSeek-V3-0324", "DeepSeek-R1-0528", "DeepSeek-V3.1"),
    *("DeepSeek-V3.2", "DeepSeek-V4", "DeepSeek-V4.1"),
    *("MiniMax-M2", "MiniMax-M2.5", "MiniMax-M3"),
    "Kimi-K3",
}
"""The templates that write something for no messages at all; the others look for the first one."""
NEED_TEXT_ARGUMENTS = {"DeepSeek-V3", "DeepSeek-V3-0324", "DeepSeek-R1-0528", "DeepSeek-V3.1"}
"""The templates that cannot write arguments that are an object."""
PARSES_WHEN_NORMALISED = {"Kimi-K3"}
"""The recorded template writes arguments that came as JSON text as they are; the vendor's encoder parses it."""
every_template = pytest.mark.parametrize(("dialect", "template"), ALL, ids=[name for _, name in ALL])


def rendered(dialect: str, template: str, messages: Any, **options: Any) -> str:
    """As `render_transcript`, also for a dialect that only has templates."""
    known = ("tools", "add_generation_prompt", "normalise", "now")
    given = {key: options.pop(key) for key in known if key in options}
    return write(find_template(dialect, template), messages, options=options, **given)


def cases_named(prefix: str) -> list[Case]:
    return [case for case in CASES if case.id.startswith(prefix)]


def normal(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages as a careful caller would write them for any template."""
    written = copy.deepcopy(messages)
    for message in written:
        if message["role"] == "developer":
            message["role"] = "system"
        content = message.get("content")
        if isinstance(content, list):
            message["content"] = "".join(part["text"] for part in content)
        elif content is None:
            message["content"] = ""
    return written


class TestNormalising:
    """The kinds of messages that vendors' templates print nonsense for, or fail at."""

    @pytest.mark.parametrize(
        "case",
        [case for kind in ("null-content", "multipart", "developer") for case in cases_named(kind)],
        ids=lambda case: f"{case.template}-{case.id}",
    )
    def test_the_text_is_that_of_the_messages_put_right(self, case: Case) -> None:
        written = case.render(normalise=True)
        assert written == case.render(normal(case.messages), normalise=False)
        assert "None" not in written
        assert "'type': 'text'" not in written

    @pytest.mark.parametrize("case", cases_named("arguments-as-string"), ids=lambda case: case.template)
    def test_json_text_is_parsed_only_where_the_template_cannot_write_it(self, case: Case) -> None:
        parsed = copy.deepcopy(case.messages)
        for message in parsed:
            for call in message.get("tool_calls", ()):
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
        is_parsed = case.text is None or case.template in PARSES_WHEN_NORMALISED
        expected = case.render(normal(parsed)) if is_parsed else case.text
        assert case.render(normalise=True) == expected

    @every_template
    def test_reasoning_is_read_from_any_of_its_fields(self, dialect: str, template: str) -> None:
        thoughts: list[dict[str, Any]] = [
            {"content": "A", "reasoning_content": "Hm."},
            {"content": "A", "thinking": "Hm."},
            {"content": "A", "reasoning": "Hm."},
            {"content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "A"}]},
        ]
        written = {
            rendered(dialect, template, [{"role": "user", "content": "Q"}, {"role": "assistant", **said}])
            for said in thoughts
        }
        assert len(written) == 1

    @every_template
    def test_no_arguments_are_an_empty_object(self, dialect: str, template: str) -> None:
        def conversation(arguments: Any) -> list[dict[str, Any]]:
            function = {"name": "f"} if arguments is ... else {"name": "f", "arguments": arguments}
            call = {"id": "abcdefgh1", "type": "function", "function": function}
            return [
                {"role": "user", "content": "Q"},
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "abcdefgh1", "name": "f", "content": "R"},
            ]

        expected = rendered(dialect, template, conversation({}))
        for empty in ("", "  ", "{}", None, ...):
            if empty == "{}" and not find_template(dialect, template).takes_string_arguments:
                continue
            written = rendered(dialect, template, conversation(empty))
            if empty == "{}":  # which some quote, and one puts braces around
                written = written.replace('"{}"', "{}").replace("{{}}", "{}")
            assert written == expected

    @every_template
    def test_own_types_are_read_like_dicts(self, dialect: str, template: str) -> None:
        function = {
            "name": "f",
            "description": "F.",
            "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
        }
        given: Any = {"n": 1}
        own_call = ToolCall("abcdefgh1", "f", {"n": 1})
        if template in NEED_TEXT_ARGUMENTS:
            given, own_call = '{"n": 1}', ToolCall("abcdefgh1", "f", {"n": 1}, '{"n": 1}')
        call = {"id": "abcdefgh1", "type": "function", "function": {"name": "f", "arguments": given}}
        dicts: list[dict[str, Any]] = [
            {"role": "user", "content": "Q"},
            {"role": "assistant", "content": "", "reasoning_content": "Hm.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "abcdefgh1", "name": "f", "content": "R"},
        ]
        own = [
            Message("user", "Q"),
            Message("assistant", reasoning="Hm.", tool_calls=(own_call,)),
            Message("tool", "R", tool_call_id="abcdefgh1", name="f"),
        ]
        mixed = [*dicts[:1], {**dicts[1], "tool_calls": [own_call]}, own[2]]
        tool = Tool("f", "F.", function["parameters"], function)  # type: ignore[arg-type]
        for normalise in (True, False):
            wrapped = [{"type": "function", "function": function}]
            expected = rendered(dialect, template, dicts, tools=wrapped, normalise=normalise)
            assert rendered(dialect, template, own, tools=[tool], normalise=normalise) == expected
            assert rendered(dialect, template, mixed, tools=wrapped, normalise=normalise) == expected
        assert rendered(dialect, template, dicts, tools=[function]) == rendered(dialect, template, dicts, tools=wrapped)

    @every_template
    @pytest.mark.parametrize("neutralize", ["keep", "escape"])
    def test_a_call_that_was_scanned_is_not_quoted_a_second_time(
        self, dialect: str, template: str, neutralize: Any
    ) -> None:
        [scanned] = scan('<tool_call>{"name": "f", "arguments": {"n": 1}}</tool_call>', "qwen3").tool_calls
        arguments: Any = '{"n": 1}' if template in NEED_TEXT_ARGUMENTS else {"n": 1}
        as_dict = {"id": scanned.id, "type": "function", "function": {"name": "f", "arguments": arguments}}

        def written(calls: Any) -> str:
            messages = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "", "tool_calls": calls}]
            return render_transcript(messages, dialect, template=template, neutralize=neutralize)

        expected = written([as_dict])
        assert written([scanned]) == expected
        message = Message("assistant", tool_calls=(ToolCall(scanned.id, "f", {"n": 1}, '{"n": 1}'),))
        said = [Message("user", "Q"), message]
        assert render_transcript(said, dialect, template=template, neutralize=neutralize) == expected

    @every_template
    def test_what_a_caller_gives_is_not_touched(self, dialect: str, template: str) -> None:
        case = next(case for case in cases_named("reasoning-then-call") if case.template == template)
        before = copy.deepcopy(case.messages)
        case.render(normalise=True)
        assert case.messages == before

    @every_template
    def test_no_tools_and_an_empty_list_of_them_are_the_same(self, dialect: str, template: str) -> None:
        messages = [{"role": "user", "content": "Q"}]
        assert rendered(dialect, template, messages, tools=[]) == rendered(dialect, template, messages)

    @every_template
    def test_lone_surrogates_do_not_get_out(self, dialect: str, template: str) -> None:
        text = rendered(dialect, template, [{"role": "user", "content": "a\ud800b \ud83d\ude00"}])
        assert "a\ufffdb 😀" in text


class TestRefusals:
    @every_template
    def test_a_message_that_is_not_well_formed(self, dialect: str, template: str) -> None:
        for wrong, path in (
            ([{"role": "robot", "content": ""}], "messages[0].role"),
            ([{"role": "user", "content": 1}], "messages[0].content"),
            ([{"role": "user"}], "messages[0].content"),
            (
                [{"role": "assistant", "tool_calls": [{"function": {"name": ""}}]}],
                "messages[0].tool_calls[0].function.name",
            ),
            ("text", "messages"),
            ({"role": "user", "content": "Q"}, "messages"),
            ([None], "messages[0]"),
        ):
            for normalise in (True, False):
                with pytest.raises(MessageError) as caught:
                    rendered(dialect, template, wrong, normalise=normalise)
                assert caught.value.path == path

    @every_template
    def test_a_tool_that_is_not_well_formed(self, dialect: str, template: str) -> None:
        with pytest.raises(MessageError, match=r"^tools\[0\]\.name: "):
            rendered(dialect, template, [{"role": "user", "content": "Q"}], tools=[{"name": 1}])

    def test_text_that_is_no_arguments_where_the_template_needs_an_object(self) -> None:
        call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"a": '}}
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": "Q"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
        ]
        with pytest.raises(MessageError, match=r"^messages\[1\]\.tool_calls\[0\]\.function\.arguments: "):
            render_transcript(messages, "glm", template="GLM-4.7")
        assert '{"a": <|tool_call_end|>' in render_transcript(messages, "kimi", template="Kimi-K2.5")

    def test_the_reason_and_the_path_of_a_refusal(self) -> None:
        with pytest.raises(TemplateError) as caught:
            render_transcript([{"role": "tool", "content": "R"}], "harmony", template="gpt-oss-120b")
        assert caught.value.path == "messages[0]"
        assert caught.value.reason == "a tool's message needs a call before it"
        assert str(caught.value) == "messages[0]: a tool's message needs a call before it"

    @every_template
    def test_a_conversation_without_messages(self, dialect: str, template: str) -> None:
        if template in WRITE_NOTHING:
            assert rendered(dialect, template, [], add_generation_prompt=True)
            return
        with pytest.raises(TemplateError) as caught:
            rendered(dialect, template, [])
        assert caught.value.path == "messages"


scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3))
parts = st.sampled_from([{"type": "text", "text": "x"}, "some text", {"type": "thinking", "thinking": "Hm."}, {}])
texts = st.one_of(st.text(max_size=3), st.none(), st.just(1), st.lists(parts, max_size=2))
arguments = st.one_of(
    texts, st.just('{"a": 1}'), st.dictionaries(st.text(max_size=2), st.one_of(scalars, st.lists(scalars)), max_size=2)
)
functions = st.fixed_dictionaries({}, optional={"name": texts, "arguments": arguments})
calls = st.one_of(
    scalars,
    st.fixed_dictionaries({"function": functions}, optional={"id": texts, "type": st.sampled_from(["function", "x"])}),
    functions,
)
any_messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "robot"])},
    optional={
        "content": texts,
        "tool_calls": st.one_of(texts, st.lists(calls, max_size=2)),
        "tool_call_id": texts,
        "name": texts,
        "reasoning_content": texts,
        "thinking": texts,
        "is_error": scalars,
        "other": scalars,
    },
)


@given(messages=st.lists(any_messages, max_size=4), form=st.sampled_from(ALL), normalise=st.booleans())
def test_the_quick_check_of_usual_messages_decides_as_the_thorough_one(
    messages: list[dict[str, Any]], form: tuple[str, str], normalise: bool
) -> None:
    """A `UserDict` is no dict, so it is never taken for a usual message. No other errors than these come out."""

    def outcome(messages: Any) -> str:
        try:
            return rendered(*form, messages, normalise=normalise)
        except (MessageError, TemplateError) as error:
            return f"{type(error).__name__} {error}"

    assert outcome(messages) == outcome(list(map(UserDict, messages)))


anything = st.recursive(
    st.one_of(scalars, st.sampled_from(["object", "array", "string", "integer", "null"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(
                ["type", "properties", "required", "items", "enum", "oneOf", "anyOf", "$ref", "$defs", "default", "a"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(
    function=st.fixed_dictionaries(
        {"name": st.just("f")},
        optional={"description": texts, "parameters": anything, "return": anything, "x": anything},
    ),
    form=st.sampled_from(ALL),
    normalise=st.booleans(),
)
def test_no_schema_is_worse_than_refused(function: dict[str, Any], form: tuple[str, str], normalise: bool) -> None:
    """A tool's schema may be no JSON Schema at all. What cannot be written is told, by its path."""
    tools = [{"type": "function", "function": function}]
    options = find_template(*form).options
    chosen = {"tool_declaration": "typescript"} if "tool_declaration" in options else {}
    told = "tools[0]"
    try:
        rendered(*form, [{"role": "user", "content": "Q"}], tools=tools, normalise=normalise, **chosen)
    except (MessageError, TemplateError) as error:
        told = str(error.path)
    assert told.startswith("tools[0]")


class TestOptions:
    @every_template
    def test_an_unknown_one_is_told_with_those_there_are(self, dialect: str, template: str) -> None:
        known = ", ".join(find_template(dialect, template).options) or "none"
        with pytest.raises(OptionError, match=f"'{template}' has no option 'enable_thoughts'; it has: {known}"):
            rendered(dialect, template, [{"role": "user", "content": "Q"}], enable_thoughts=True)

    @every_template
    def test_one_of_the_wrong_type_is_told(self, dialect: str, template: str) -> None:
        for name, option in find_template(dialect, template).options.items():
            values: tuple[Any, ...] = (
                None,
                1.5,
                [],
                b"x",
                "no such value" if not isinstance(option.default, str) else 0,
            )
            for wrong in values:
                with pytest.raises(OptionError, match=f"the option '{name}' of the template '{template}' is "):
                    rendered(dialect, template, [{"role": "user", "content": "Q"}], **{name: wrong})

    @every_template
    def test_its_default_is_one_of_its_values(self, dialect: str, template: str) -> None:
        for name, option in find_template(dialect, template).options.items():
            assert option.accepts(option.default), name

    @every_template
    def test_the_default_is_what_is_written_without_it(self, dialect: str, template: str) -> None:
        messages = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A", "reasoning_content": "Hm."}]
        options = {name: option.default for name, option in find_template(dialect, template).options.items()}
        for gp in (True, False):
            without = rendered(dialect, template, messages, add_generation_prompt=gp)
            assert rendered(dialect, template, messages, add_generation_prompt=gp, **options) == without

    def test_an_option_that_is_wrong_is_wrong_use_by_either_name(self) -> None:
        with pytest.raises(TypeError):
            render_transcript([{"role": "user", "content": "Q"}], template="Kimi-K2.5", thinkin=True)
        with pytest.raises(ValueError, match="thinking"):
            render_transcript([{"role": "user", "content": "Q"}], template="Kimi-K2.5", thinkin=True)

    @every_template
    def test_now_that_is_no_date_is_told(self, dialect: str, template: str) -> None:
        with pytest.raises(TypeError, match="now is a datetime, not str"):
            rendered(dialect, template, [{"role": "user", "content": "Q"}], now="2025-06-28")

    def test_now_is_the_date_that_is_written(self) -> None:
        messages = [{"role": "user", "content": "Q"}]
        text = render_transcript(messages, "harmony", template="gpt-oss-120b", now=datetime(2031, 2, 3))
        assert "Current date: 2031-02-03\n" in text
        today = datetime.now()
        text = render_transcript(messages, "harmony", template="gpt-oss-120b")
        assert f"Current date: {today:%Y-%m-%d}\n" in text or f"Current date: {datetime.now():%Y-%m-%d}\n" in text


class TestKimi:
    def test_a_call_without_an_id_gets_the_one_the_model_would_have_written(self) -> None:
        def said(*names: str) -> dict[str, Any]:
            calls = [{"type": "function", "function": {"name": name, "arguments": {}}} for name in names]
            return {"role": "assistant", "content": "", "tool_calls": calls}

        result = {"role": "tool", "content": "R"}
        text = render_transcript(
            [{"role": "user", "content": "Q"}, said("a", "b"), result, result, said("c"), result],
            template="Kimi-K2-Instruct",
        )
        for call_id in ("functions.a:0", "functions.b:1", "functions.c:2"):
            assert f"<|tool_call_begin|>{call_id}<|tool_call_argument_begin|>" in text
            assert f"## Return of {call_id}\nR" in text

    def test_a_schema_that_typescript_has_no_words_for_is_declared_as_json(self) -> None:
        tools = [
            {
                "type": "function",
                "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"not": {}}}}},
            }
        ]
        messages = [{"role": "user", "content": "Q"}]
        as_json = render_transcript(messages, template="Kimi-K2.5", tools=tools)
        assert render_transcript(messages, template="Kimi-K2.5", tools=tools, tool_declaration="typescript") == as_json

    def test_typescript_says_what_a_schema_says(self) -> None:
        node = {"type": "object", "description": "A node.", "properties": {"next": {"$ref": "#/$defs/Node"}}}
        properties = {
            "n": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
            "s": {"type": "string", "pattern": "a+", "description": "Two\nlines"},
            "u": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"x": {"type": "number"}}}]},
            "l": {"type": "array", "items": {"type": "string", "description": "One of them"}},
            "o": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "c": {"type": "object", "properties": {}, "additionalProperties": False},
            "r": {"$ref": "#/$defs/Node"},
            "e": {"enum": [1, "a", None]},
            "w": {},
        }
        schema = {"type": "object", "$defs": {"Node": node}, "properties": properties, "required": ["s", "n"]}
        tool = {"type": "function", "function": {"name": "f", "description": "F.", "parameters": schema}}
        text = render_transcript(
            [{"role": "user", "content": "Q"}], template="Kimi-K2.5", tools=[tool], tool_declaration="typescript"
        )
        declared = text.partition("namespace functions {\n")[2].partition("\n}\n<|im_end|>")[0]
        assert declared == (
            "// A node.\n"
            "interface Node {\n"
            "  next?: Node\n"
            "}\n"
            "// F.\n"
            "type f = (_: {\n"
            "  // maximum: 9, minimum: 1\n"
            "  // Default: 3\n"
            "  n: number,\n"
            "  // Two\n"
            "  // lines\n"
            "  // pattern: a+\n"
            "  s: string,\n"
            "  c?: {\n"
            "    [k: string]: never\n"
            "  },\n"
            '  e?: 1 | "a" | None,\n'
            "  l?: Array<\n"
            "    // One of them\n"
            "    string\n"
            "  >,\n"
            "  o?: {\n"
            "    [k: string]: boolean\n"
            "  },\n"
            "  r?: Node,\n"
            "  u?: string | {\n"
            "    x?: number\n"
            "  },\n"
            "  w?: any\n"
            "}) => any;"
        )


class TestHarmony:
    def test_text_and_thinking_beside_a_call_are_both_reasoning(self) -> None:
        call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": {}}}
        said: dict[str, Any] = {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "Hm.",
            "tool_calls": [call],
        }
        messages = [{"role": "user", "content": "Q"}, said]
        text = render_transcript(messages, "harmony", template="gpt-oss-120b")
        assert "<|channel|>analysis<|message|>Hm.\n\nI look.<|end|>" in text
        as_vendor: dict[str, Any] = {"role": "assistant", "content": "I look.", "thinking": "Hm.", "tool_calls": [call]}
        with pytest.raises(TemplateError, match=r"^messages\[1\]: beside a call there can be text or thinking"):
            render_transcript([messages[0], as_vendor], "harmony", template="gpt-oss-120b", normalise=False)

    def test_a_default_of_a_choice_is_written_as_json_unless_it_is_text(self) -> None:
        fields = {"a": {"type": "string", "enum": ["x"], "default": "x"}, "b": {"enum": [1], "default": 1}}
        tools = [
            {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": fields}}}
        ]
        messages = [{"role": "user", "content": "Q"}]
        text = render_transcript(messages, "harmony", template="gpt-oss-120b", tools=tools)
        assert '// \ntype f = (_: {\na?: "x", // default: x,\nb?: any, // default: 1,\n}) => any;' in text
        with pytest.raises(TemplateError, match=r"^tools\[0\]\.function\.description: "):
            render_transcript(messages, "harmony", template="gpt-oss-120b", tools=tools, normalise=False)
        tools[0]["function"]["description"] = "F."  # type: ignore[index]
        with pytest.raises(TemplateError, match=r"^tools\[0\]\.function\.parameters\.properties\.b\.default: "):
            render_transcript(messages, "harmony", template="gpt-oss-120b", tools=tools, normalise=False)


@pytest.mark.parametrize(("dialect", "template"), ALL)
def test_a_tool_as_clients_dump_it_is_written_as_if_they_did_not(dialect: str, template: str) -> None:
    """Clients that dump their models write null for what is not there; others call the schema `input_schema`."""
    parameters = {"type": "object", "properties": {"place": {"type": "string", "description": "Where"}}}
    messages = [{"role": "user", "content": "Q"}]

    def written(tool: dict[str, Any]) -> str:
        return render_transcript(messages, dialect, template=template, tools=[tool], now=datetime(2025, 6, 28))

    plain = written({"type": "function", "function": {"name": "f", "parameters": parameters}})
    dumped = {"name": "f", "description": None, "parameters": parameters, "strict": None}
    assert written({"type": "function", "function": dumped}) == plain
    assert written({"function": dumped}) == plain
    assert written({"name": "f", "input_schema": parameters}) == plain
    bare = written({"type": "function", "function": {"name": "f"}})
    assert written({"type": "function", "function": {"name": "f", "description": None, "parameters": None}}) == bare


class TestHermes:
    def test_a_tool_that_says_little(self) -> None:
        messages = [{"role": "user", "content": "Q"}]
        text = render_transcript(messages, "hermes", template="Hermes-2-Pro-Llama-3-8B", tools=[{"name": "f"}])
        assert '{"name": "f", "description": "f() - \n\n", "parameters": {}}' in text
        with pytest.raises(TemplateError, match=r"^tools\[0\]\.parameters: "):
            render_transcript(
                messages, "hermes", template="Hermes-2-Pro-Llama-3-8B", tools=[{"name": "f"}], normalise=False
            )

    def test_types_that_the_vendors_template_has_no_words_for(self) -> None:
        parameters = {"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": {"type": "uuid"}}}
        tools = [{"type": "function", "function": {"name": "f", "description": "F.", "parameters": parameters}}]
        messages = [{"role": "user", "content": "Q"}]
        text = render_transcript(messages, "hermes", template="Hermes-2-Pro-Llama-3-8B", tools=tools)
        assert "f(a: Union[str,None], b: Any) - F." in text


class TestModels:
    @pytest.mark.parametrize(
        ("model", "template"),
        [
            ("moonshotai/Kimi-K2-Instruct-0905", "Kimi-K2-Instruct"),
            ("moonshotai/Kimi-K2-Thinking", "Kimi-K2-Thinking"),
            ("moonshotai/Kimi-K2.5", "Kimi-K2.5"),
            ("kimi-k2.6", "Kimi-K2.6"),
            ("NousResearch/Hermes-2-Pro-Llama-3-8B", "Hermes-2-Pro-Llama-3-8B"),
            ("NousResearch/Hermes-3-Llama-3.1-8B", "Hermes-2-Pro-Llama-3-8B"),
            ("Qwen/Qwen2.5-72B-Instruct", "Qwen2.5-7B-Instruct"),
            ("Qwen/Qwen3-0.6B", "Qwen3-0.6B"),
            ("Qwen/Qwen3-235B-A22B-FP8", "Qwen3-0.6B"),
            ("Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen3-4B-Instruct-2507"),
            ("Qwen/Qwen3-235B-A22B-Thinking-2507", "Qwen3-4B-Thinking-2507"),
            ("Qwen/Qwen3-Coder-480B-A35B-Instruct", "Qwen3-Coder"),
            ("Qwen/Qwen3.5-397B-A17B", "Qwen3.5"),
            ("qwen3.6-plus", "Qwen3.6"),
            ("Qwen3.8", "Qwen3.8"),
            ("zai-org/GLM-4.5-Air", "GLM-4.5"),
            ("zai-org/GLM-4.6", "GLM-4.5"),
            ("zai-org/GLM-4.7-Flash", "GLM-4.7"),
            ("zai-org/GLM-5", "GLM-4.7"),
            ("zai-org/GLM-5.3", "GLM-5.3"),
            ("openai/gpt-oss-20b", "gpt-oss-120b"),
        ],
    )
    def test_a_model_has_its_template(self, model: str, template: str) -> None:
        match = template_for_model(model)
        assert match.name == template
        assert match.candidates == (template,)
        assert model in match.reason

    @pytest.mark.parametrize(
        "model",
        [
            "gpt-4o",
            "",
            "moonshotai/Kimi-K2.7-Code",
            "NousResearch/Hermes-4-70B",
            "Qwen/QwQ-32B",
            "Qwen/Qwen3-VL-8B-Thinking",
            "Qwen/Qwen3-Next-80B-A3B-Instruct",
            "Qwen/Qwen3-Coder-Next",
            "Qwen/Qwen2.5-VL-7B-Instruct",
            "zai-org/GLM-4.5V",
        ],
    )
    def test_a_model_whose_template_is_not_known_has_none(self, model: str) -> None:
        match = template_for_model(model)
        assert match.name is None
        assert repr(model) in match.reason

    def test_what_is_no_id(self) -> None:
        with pytest.raises(TypeError, match="a model id is a str, not int"):
            template_for_model(3)  # type: ignore[arg-type]

    def test_names_are_found_once(self) -> None:
        names = [name for _, name in ALL]
        assert len(set(names)) == len(names)
        assert templates("kimi") == ("Kimi-K2-Instruct", "Kimi-K2-Thinking", "Kimi-K2.5", "Kimi-K2.6")


def test_the_page_about_templates_shows_what_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).resolve().parent.parent / "docs/templates.md").read_text(encoding="utf-8")
    code, output = re.findall(r"^```(?:python|text)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[:2]
    exec(compile(code, "templates.md", "exec"), {})
    assert capsys.readouterr().out == output
