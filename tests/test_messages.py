"""Reading OpenAI-style dicts: what is accepted, and what a caller is told about what is not."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects.events import ToolEnd
from dialects.messages import (
    Message,
    MessageError,
    Tool,
    ToolCall,
    ToolResult,
    read_call,
    read_calls,
    read_message,
    read_messages,
    read_results,
    read_tools,
)

WEATHER = {"name": "get_weather", "description": "Current weather", "parameters": {"type": "object"}, "strict": True}
NESTED_200 = "[" * 199 + "]" * 199


def call(arguments: object = "{}", name: object = "ping") -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(*calls: object) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def user(content: object) -> dict[str, Any]:
    return {"role": "user", "content": content}


def complaint(read: Callable[..., object], *values: object) -> str:
    with pytest.raises(MessageError) as caught:
        read(*values)
    return str(caught.value)


class TestWhatIsAccepted:
    def test_an_openai_tool_and_its_bare_function_read_alike(self) -> None:
        wrapped = read_tools([{"type": "function", "function": WEATHER}])
        assert (
            wrapped == read_tools([WEATHER]) == (Tool("get_weather", "Current weather", {"type": "object"}, WEATHER),)
        )

    def test_no_tools_and_an_empty_list_stay_apart(self) -> None:
        assert read_tools(None) is None
        assert read_tools([]) == ()

    def test_a_tool_made_by_hand_has_a_definition(self) -> None:
        assert Tool("ping").definition == {"name": "ping", "description": "", "parameters": {}}

    @pytest.mark.parametrize("nothing", ["", " \n", "null", "{}", None, {}])
    def test_no_arguments_in_every_spelling(self, nothing: object) -> None:
        assert read_call(call(nothing)).arguments == {}

    def test_arguments_keep_the_text_they_came_as(self) -> None:
        text = '{ "b": 1.50, "a": 2 }'
        assert read_call(call(text)) == ToolCall("call_1", "ping", {"b": 1.5, "a": 2}, text)
        assert read_call(call({"a": 1})).arguments_json is None

    def test_a_call_without_arguments_or_id_is_a_call(self) -> None:
        assert read_call({"function": {"name": "ping"}}) == ToolCall(None, "ping", {})

    def test_a_scanned_call_can_be_rendered_again(self) -> None:
        event = ToolEnd(id="x", name="ping", arguments={"n": 1}, arguments_json='{"n": 1}', raw_block="...")
        assert read_calls([event]) == (ToolCall("x", "ping", {"n": 1}, '{"n": 1}'),)

    def test_integers_keep_every_digit(self) -> None:
        number = int("9" * 4000)
        assert read_call(call(f'{{"n": {number}}}')).arguments["n"] == number

    def test_text_parts_are_joined_with_nothing_between(self) -> None:
        parts = [{"type": "text", "text": "one\n"}, {"type": "text", "text": "two"}, "!"]
        assert read_message(user(parts)).content == "one\ntwo!"

    def test_an_assistant_without_content_says_nothing(self) -> None:
        assert read_message({"role": "assistant"}) == Message("assistant")
        assert read_message(user(None)).content == ""

    @pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking"])
    def test_reasoning_under_every_name(self, key: str) -> None:
        assert read_message({"role": "assistant", "content": "a", key: "why"}).reasoning == "why"

    def test_reasoning_in_content_parts(self) -> None:
        parts = [{"type": "thinking", "thinking": "why"}, {"type": "text", "text": "a"}]
        assert read_message({"role": "assistant", "content": parts}) == Message("assistant", "a", "why")

    def test_results_in_every_form(self) -> None:
        expected = ToolResult("c", "ping", "pong", is_error=True)
        plain = {"tool_call_id": "c", "name": "ping", "content": "pong", "is_error": True}
        message = {"role": "tool", **plain}
        assert read_results([plain, message, read_message(message), expected]) == (expected,) * 4

    def test_own_types_read_back_as_they_are(self) -> None:
        messages = (
            Message("user", "hi", name="ann"),
            Message("assistant", "a", "r", (ToolCall("i", "ping", {"a": [1]}, '{"a":[1]}'),)),
            Message("tool", "pong", tool_call_id="i"),
        )
        assert read_messages(messages) == messages
        tools = (Tool("ping", "d", {"type": "object"}, WEATHER),)
        assert read_tools(tools) == tools

    def test_deep_arguments_up_to_the_limit(self) -> None:
        assert read_call(call(f'{{"a": {NESTED_200}}}')).arguments["a"]


class TestWhatACallerIsTold:
    @pytest.mark.parametrize(
        ("messages", "told"),
        [
            ("hello", "messages: expected a list of messages, found 'hello'"),
            (b"hello", "messages: expected a list of messages, found a bytes"),
            (None, "messages: expected a list of messages, found None"),
            (user("x"), "messages: expected a list of messages, found a dict"),
            (["hello"], "messages[0]: expected a dict or Message, found 'hello'"),
            ([{}], "messages[0].role: expected one of system, developer, user, assistant, tool, found no such key"),
            (
                [{"role": "bot"}],
                "messages[0].role: expected one of system, developer, user, assistant, tool, found 'bot'",
            ),
            (
                [{"role": ["user"]}],
                "messages[0].role: expected one of system, developer, user, assistant, tool, found a list",
            ),
            ([{"role": "user"}], "messages[0].content: expected text, found no such key"),
            ([user(5)], "messages[0].content: expected text, a list of text parts or None, found an int"),
            ([user(b"x")], "messages[0].content: expected text, a list of text parts or None, found a bytes"),
            ([user("a"), user([{"type": "text"}])], "messages[1].content[0].text: expected text, found no such key"),
            ([user([7])], "messages[0].content[0]: expected a text part, found an int"),
            (
                [user([{"type": "image_url", "image_url": {}}])],
                "messages[0].content[0].type: expected 'text' (only text can be written into a transcript), "
                "found 'image_url'",
            ),
            ([{"role": "user", "content": "", "name": 3}], "messages[0].name: expected text or None, found an int"),
            (
                [{"role": "user", "content": "", "tool_calls": [call()]}],
                "messages[0].tool_calls: expected none but in an assistant message, found them in a user message",
            ),
            (
                [user([{"type": "thinking", "thinking": "hm"}])],
                "messages[0].content: expected none but in an assistant message, found them in a user message",
            ),
            (
                [{"role": "tool", "content": "", "is_error": "no"}],
                "messages[0].is_error: expected true or false, found 'no'",
            ),
            (
                [user(""), assistant(call(), call(name=""))],
                "messages[1].tool_calls[1].function.name: expected text that is not empty, found ''",
            ),
            (
                [assistant({"function": {}})],
                "messages[0].tool_calls[0].function.name: expected text that is not empty, found no such key",
            ),
            (
                [assistant({"id": "x"})],
                "messages[0].tool_calls[0].function: expected a dict with a name, found no such key",
            ),
            (
                [assistant({"type": "custom", "custom": {}})],
                "messages[0].tool_calls[0].type: expected 'function', found 'custom'",
            ),
            ([assistant("ping")], "messages[0].tool_calls[0]: expected a dict or ToolCall or ToolEnd, found 'ping'"),
            (
                [{"role": "assistant", "tool_calls": call()}],
                "messages[0].tool_calls: expected a list of tool calls, found a dict",
            ),
        ],
    )
    def test_where_a_message_is_wrong_and_why(self, messages: object, told: str) -> None:
        assert complaint(read_messages, messages) == told

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            ('{"a": ', "expected the JSON text of an object, found invalid JSON (Expecting value at character 6)"),
            ("[1]", "expected a JSON object or its text, found a list"),
            ('"{}"', "expected a JSON object or its text, found '{}'"),
            (True, "expected a JSON object or its text, found True"),
            (b"{}", "expected a JSON object or its text, found a bytes"),
            ("[" * 100_000, "expected the JSON text of an object, found JSON nested more than 200 deep"),
        ],
    )
    def test_arguments_that_are_no_object(self, arguments: object, told: str) -> None:
        assert complaint(read_call, call(arguments)) == f"call.function.arguments: {told}"

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            ('{"a": [0, 1e999]}', "a[1]: expected a number that a float can hold, found inf"),
            ('{"a": NaN}', "a: expected a number that a float can hold, found nan"),
            ({"a": {"b": float("-inf")}}, "a.b: expected a number that a float can hold, found -inf"),
            ({"a": {1, 2}}, "a: expected a JSON value, found a set"),
            ({"a": b"x"}, "a: expected a JSON value, found a bytes"),
            ({"a": {1: 2}}, "a: expected text as every key, found an int"),
        ],
    )
    def test_values_that_json_does_not_have(self, arguments: object, told: str) -> None:
        assert complaint(read_call, call(arguments)) == f"call.function.arguments.{told}"

    def test_a_tool_that_is_wrong(self) -> None:
        wrapped = {"type": "function", "function": {"description": "nameless"}}
        told = "tools[0].function.name: expected text that is not empty, found no such key"
        assert complaint(read_tools, [wrapped]) == told
        told = "tools[1].parameters: expected a JSON Schema object, found a list"
        assert complaint(read_tools, [WEATHER, {"name": "x", "parameters": []}]) == told
        assert complaint(read_tools, WEATHER) == "tools: expected a list of tools, found a dict"
        assert complaint(read_tools, "ping") == "tools: expected a list of tools, found 'ping'"

    def test_a_message_that_is_no_result(self) -> None:
        assert complaint(read_results, [user("x")]) == "results[0].role: expected 'tool', found 'user'"
        assert (
            complaint(read_results, [{"tool_call_id": "c"}]) == "results[0].content: expected text, found no such key"
        )

    def test_a_long_wrong_value_is_not_printed_whole(self) -> None:
        assert len(complaint(read_messages, "x" * 1_000_000)) < 120


class TestNumbersTooLongForPython:
    @pytest.fixture(autouse=True)
    def digit_limit(self) -> Iterator[None]:
        before = sys.get_int_max_str_digits()
        sys.set_int_max_str_digits(4300)
        yield
        sys.set_int_max_str_digits(before)

    def test_in_text(self) -> None:
        told = complaint(read_call, call('{"n": ' + "9" * 4301 + "}"))
        assert told.endswith("found an integer with more digits than Python converts")

    def test_as_an_object(self) -> None:
        told = complaint(read_call, call({"n": 10**4300}))
        assert told == "call.function.arguments.n: expected a number, found an integer too long for Python to write"


class TestObjectsWithoutEnd:
    def test_an_object_that_holds_itself(self) -> None:
        loop: dict[str, Any] = {}
        loop["me"] = loop
        assert complaint(read_call, call(loop)).endswith("expected at most 200 levels of nesting, found more")

    def test_an_object_one_level_too_deep(self) -> None:
        text = f'{{"a": [{NESTED_200}]}}'
        assert complaint(read_call, call(text)).endswith("expected at most 200 levels of nesting, found more")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), json_values))
def test_arguments_read_the_same_as_object_and_as_text(arguments: dict[str, Any]) -> None:
    assert read_call(call(arguments)).arguments == arguments
    assert read_call(call(json.dumps(arguments))).arguments == arguments


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "tool_calls", "function", "name", "arguments", "id"])
            | st.integers(),
            inner | st.sampled_from(["user", "assistant", "tool", "text", "thinking", "function"]),
            max_size=6,
        )
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("read", [read_messages, read_calls, read_results, read_tools])
@given(value=anything)
def test_whatever_is_handed_in_is_read_or_named(read: Callable[[Any], object], value: object) -> None:
    for given_value in (value, [value]):
        with suppress(MessageError):
            read(given_value)
