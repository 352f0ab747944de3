"""Values in plain text: what a schema makes of a text, and that what is written comes back."""

import json
import math
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects.engine.coercion import Coerced, coerce, is_text_only, plain_text, write_value
from dialects.engine.json_text import MAX_DEPTH
from dialects.engine.schema import ANY, kinds_of, property_schema

STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "object": dict,
    "array": list,
}
LONG = "9" * (sys.get_int_max_str_digits() + 1)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
looks = st.sampled_from(
    ["null", "true", "True", "None", "5", "-0", "007", "1.50", "12e3", '"x"', "[1]", "{}", "", " 5\n", "NaN", "[", '"',
     "{'a': 1}", '{"a": 1', "[1, 2", "True story", "\ud83d", '"\\ud83d"', "[" * 300, "Infinity", "5,", "1 2", LONG,
     f"[{LONG}]", '{"a": 1, "a": 2}', "'x'", '"5"', '"[1]"', "\x00", "</arg_value>"]
)  # fmt: skip
texts = looks | st.text() | values.map(json.dumps) | st.lists(looks, max_size=4).map("".join)
simple = st.sampled_from([{"type": name} for name in TYPES])
schemas = st.recursive(
    simple | st.just({}) | st.booleans(),
    lambda inner: st.one_of(
        st.lists(st.sampled_from(list(TYPES)), max_size=3).map(lambda types: {"type": types}),
        st.lists(inner, max_size=3).map(lambda choices: {"anyOf": choices}),
        st.lists(inner, max_size=3).map(lambda parts: {"allOf": parts}),
        st.lists(values, max_size=3).map(lambda listed: {"enum": listed}),
        st.tuples(inner, st.booleans()).map(lambda pair: {"oneOf": [pair[0]], "nullable": pair[1]}),
        st.just({"$ref": "#/$defs/it"}),
    ),
    max_leaves=5,
)
garbage = st.recursive(
    values | st.sampled_from(["string", "#", "#/$defs/it", "#/properties/a"]),
    lambda inner: st.dictionaries(
        st.sampled_from(["type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "nullable", "properties", "$defs",
                         "additionalProperties", "items", "it", "a", "not"]),
        inner | st.lists(inner, max_size=3), max_size=4,
    ),
    max_leaves=8,
)  # fmt: skip


def exactly(value: object) -> str:
    return repr(value)


def is_valid(value: object, types: list[str]) -> bool:
    """Whether a value has one of these types, as JSON Schema has them."""
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, float) and value.is_integer() and "integer" in types:
        return True
    return any(isinstance(value, TYPES[name]) for name in types)  # type: ignore[arg-type]


def assert_consistent(found: Coerced) -> None:
    found.json_text.encode()
    assert exactly(json.loads(found.json_text, parse_constant=pytest.fail)) == exactly(found.value)


class TestTypes:
    @pytest.mark.parametrize(
        ("schema", "text_only"),
        [
            (STRING, True),
            ({"type": ["string"]}, True),
            ({"type": "STRING"}, True),
            ({"type": "str"}, True),
            ({"enum": ["c", "f"]}, True),
            ({"const": "c"}, True),
            ({"anyOf": [STRING, {"enum": ["x"]}]}, True),
            ({"allOf": [{"type": ["string", "null"]}, STRING]}, True),
            ({"type": ["string", "null"], "enum": ["a", "b"]}, True),
            ({"$ref": "#/$defs/text"}, True),
            ({"$ref": "#/$defs/chain"}, True),
            ({"$ref": "#/$defs/list/1"}, True),
            ({"$ref": "#/$defs/tree"}, True),
            ({"$ref": "#/definitions/a~1b%20c"}, True),
            ({"type": "string", "nullable": True}, False),
            ({"$ref": "#/$defs/text", "nullable": True}, False),
            ({"type": ["string", "null"]}, False),
            ({"enum": ["c", 1]}, False),
            ({"anyOf": [STRING, {}]}, False),
            ({"$ref": "#/$defs/missing"}, False),
            ({"$ref": "https://example.org/text.json"}, False),
            ({"$ref": "#text"}, False),
            ({"$ref": "#/$defs/loop"}, False),
            ({"type": "text"}, False),
            ({"type": []}, False),
            ({"anyOf": []}, False),
            ({}, False),
            (True, False),
            (False, False),
            (None, False),
            ("string", False),
        ],
    )
    def test_a_schema_that_allows_only_strings(self, schema: object, text_only: bool) -> None:
        root = {
            "$defs": {
                "text": STRING,
                "chain": {"$ref": "#/$defs/text"},
                "list": [INTEGER, STRING],
                "tree": {"anyOf": [STRING, {"$ref": "#/$defs/tree"}]},
                "loop": {"$ref": "#/$defs/loop"},
            },
            "definitions": {"a/b c": STRING},
        }
        assert is_text_only(schema, root) is text_only

    def test_a_schema_that_contradicts_itself_says_nothing(self) -> None:
        assert kinds_of({"allOf": [STRING, INTEGER]}, {}) == ANY

    @pytest.mark.parametrize(
        "parameters",
        [
            {"properties": {"k": STRING}},
            {"additionalProperties": STRING},
            {"$ref": "#/$defs/p", "$defs": {"p": {"properties": {"k": STRING}}}},
            {"allOf": [{"required": ["k"]}, {"properties": {"k": STRING}}]},
            {"oneOf": [{"properties": {"k": STRING}}, {"properties": {"other": INTEGER}}]},
            {"properties": {"k": {"type": ["string", "null"]}}, "allOf": [{"properties": {"k": STRING}}]},
        ],
    )
    def test_where_a_tools_parameter_gets_its_schema(self, parameters: dict[str, Any]) -> None:
        assert is_text_only(property_schema(parameters, "k"), parameters)

    @pytest.mark.parametrize(
        "parameters",
        [None, {}, True, {"properties": None}, {"properties": {"j": STRING}}, {"additionalProperties": False},
         {"additionalProperties": STRING, "patternProperties": {"^k": INTEGER}},
         {"anyOf": [{"properties": {"k": STRING}}, {"properties": {"k": INTEGER}}]}],
    )  # fmt: skip
    def test_where_a_tool_says_nothing_of_a_parameter(self, parameters: object) -> None:
        assert not is_text_only(property_schema(parameters, "k"), parameters)

    @given(garbage, garbage, texts)
    def test_no_schema_makes_anything_raise(self, schema: object, root: object, text: str) -> None:
        assert kinds_of(schema, root) <= ANY
        assert_consistent(coerce(text, property_schema(schema, "a"), root))

    def test_hostile_schemas_take_no_time(self) -> None:
        doubled = {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}
        assert kinds_of(property_schema(doubled, "k"), doubled) == ANY
        steps: dict[str, Any] = {f"s{n}": {"anyOf": 2 * [{"$ref": f"#/$defs/s{n + 1}"}]} for n in range(2000)}
        assert kinds_of({"$ref": "#/$defs/s0"}, {"$defs": steps}) == ANY


class TestReading:
    @pytest.mark.parametrize(
        ("text", "schema", "value"),
        [
            ("null", STRING, "null"),
            ("12e3", STRING, "12e3"),
            ("\n  two\n\nlines \n", STRING, "\n  two\n\nlines \n"),
            ('"quoted"', STRING, '"quoted"'),
            ("&amp;", STRING, "&amp;"),
            ("12e3", NUMBER, 12000.0),
            ("3.0", INTEGER, 3.0),
            ("3.5", INTEGER, "3.5"),
            ("3", NUMBER, 3),
            (" 3\n", INTEGER, 3),
            ("007", INTEGER, "007"),
            ("007", {}, "007"),
            ("12345678901234567890123", INTEGER, 12345678901234567890123),
            ("null", INTEGER, "null"),
            ("null", {"type": ["string", "null"]}, None),
            ("owner", {"type": ["string", "null"]}, "owner"),
            ('"null"', {"type": ["string", "null"]}, "null"),
            (" null ", {"type": "string", "nullable": True}, None),
            ("5", {"anyOf": [INTEGER, STRING]}, 5),
            ("5 ", {"anyOf": [{"type": "boolean"}, STRING]}, "5 "),
            ("true", {}, True),
            ("true ", {}, True),
            ("True", {}, "True"),
            ("5 apples", {}, "5 apples"),
            ('say "hi"', {}, 'say "hi"'),
            ('"say"', {}, "say"),
            ('"no", then', {}, '"no", then'),
            ("NaN", {}, "NaN"),
            ("[NaN]", {}, "[NaN]"),
            ("", {"type": "object"}, ""),
        ],
    )
    def test_a_clean_text(self, text: str, schema: object, value: object) -> None:
        found = coerce(text, schema, schema)
        assert exactly(found.value) == exactly(value)
        assert found.repairs == ()
        assert_consistent(found)

    @pytest.mark.parametrize(
        ("text", "schema", "value", "repair"),
        [
            ("True", {"type": "boolean"}, True, "python-literal"),
            ("None", {"type": ["string", "null"]}, None, "python-literal"),
            ('"5"', INTEGER, 5, "unwrapped-string"),
            ('"{\\"a\\": 1}"', {"type": "object"}, {"a": 1}, "unwrapped-string"),
            ("{'a': True}", {"type": "object"}, {"a": True}, "single-quotes"),
            ('{"a": [1, 2', {"type": "object"}, {"a": [1, 2]}, "missing-closer"),
            ("['a', 'b',]", {"type": "array"}, ["a", "b"], "trailing-comma"),
            ("[1, 2", {"type": "array"}, [1, 2], "missing-closer"),
            ('{"a": 1, "a": 2}', {}, {"a": 2}, "duplicate-key"),
            (LONG, INTEGER, LONG, "number-too-long"),
            (f"-{LONG}", {}, f"-{LONG}", "number-too-long"),
            (f'[{LONG}, 1.50, "{LONG}"]', {}, [LONG, 1.5, LONG], "number-too-long"),
            ("a\ud83d", STRING, "a\ufffd", "lone-surrogate"),
            ('["\\ud83d", "\\\\ud83d", "\\ud83d\\ude00"]', {}, ["\ufffd", "\\ud83d", "😀"], "lone-surrogate"),
            ("[" * 300 + "]" * 300, {}, "[" * 300 + "]" * 300, "too-deep"),
        ],
    )
    def test_a_text_that_needs_tolerance(self, text: str, schema: object, value: object, repair: str) -> None:
        found = coerce(text, schema, schema)
        assert exactly(found.value) == exactly(value)
        assert repair in found.repairs
        assert_consistent(found)

    def test_a_malformed_text_stays_text_where_text_is_allowed(self) -> None:
        assert coerce("{'a': 1}", {"type": ["object", "string"]}, {}).value == "{'a': 1}"
        assert coerce("{'a': 1}", {}, {}).value == "{'a': 1}"

    def test_the_models_own_characters_survive(self) -> None:
        text = '{"n": 1.50e+2, "big": 123456789012345678901234567890, "s": "\\u00e9"}'
        assert coerce(f"\n{text} ", {"type": "object"}, {}).json_text == text

    def test_a_number_beyond_a_float_is_as_json_reads_it(self) -> None:
        found = coerce("1e999", NUMBER, {})
        assert (found.value, found.json_text, found.repairs) == (math.inf, "1e999", ())

    def test_the_deepest_allowed_value_is_read(self) -> None:
        deepest = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
        assert coerce(deepest, {}, {}).json_text == deepest
        quoted = json.dumps(["[" * 1000])
        assert coerce(quoted, {}, {}).json_text == quoted

    @given(texts, schemas)
    def test_any_text_has_a_value_with_its_json_text(self, text: str, schema: Any) -> None:
        found = coerce(text, schema, {"$defs": {"it": {"type": ["null", "integer"]}}})
        assert_consistent(found)
        if not isinstance(found.value, str):
            assert is_valid(found.value, _types(kinds_of(schema, {"$defs": {"it": {"type": ["null", "integer"]}}})))

    @given(texts)
    def test_a_text_that_is_the_value(self, text: str) -> None:
        assert coerce(text, STRING, {}) == plain_text(text)
        assert "\ud83d" in text or plain_text(text).value == text

    @pytest.mark.parametrize("unit", ["[", '{"a":', "[1,", '"\\ud83d', "'", "{'a' ", "\\", "9"])
    @pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": "array"}, INTEGER])
    def test_long_malformed_values_take_no_time(self, unit: str, schema: object) -> None:
        for opener in ("", "[", "{"):
            assert_consistent(coerce(opener + unit * 50_000, schema, {}))


def _types(kinds: frozenset[str]) -> list[str]:
    return [{"fraction": "number"}.get(kind, kind) for kind in kinds]


class TestWriting:
    @given(values, schemas)
    def test_what_is_written_comes_back(self, value: Any, schema: Any) -> None:
        root = {"$defs": {"it": {"type": ["null", "integer"]}}}
        if not is_valid(value, _types(kinds_of(schema, root))):
            return
        found = coerce(write_value(value, schema, root), schema, root)
        assert exactly(found.value) == exactly(value)
        assert found.repairs == ()

    @given(values)
    def test_without_a_schema_as_well(self, value: Any) -> None:
        found = coerce(write_value(value, {}, {}), {}, {})
        assert (exactly(found.value), found.repairs) == (exactly(value), ())

    def test_a_string_is_quoted_where_it_could_be_something_else(self) -> None:
        assert write_value("5", STRING, {}) == "5"
        assert write_value("5", {"type": ["string", "integer"]}, {}) == '"5"'
        assert write_value("a b", {}, {}) == '"a b"'
        assert write_value(None, STRING, {}) == "null"
        assert write_value({"é": [1, "<"]}, {}, {}) == '{"é":[1,"<"]}'
