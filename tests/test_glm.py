"""GLM's calls: pairs of tags around plain text, whole and damaged. Every stream here is read in every way of cutting it
in two, and one character at a time."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects.engine.coercion import coerce
from dialects.events import Event, Stopped, Text, ThinkingEnd, ToolArgDelta, ToolDropped, ToolEnd, ToolStart
from dialects.glm import GLM, GlmScanner
from dialects.messages import Tool, ToolCall
from tests.laws import check_arguments, check_order
from tests.streams import counter, joined

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
LOG = Tool("create_log", parameters={"properties": {"title": TEXT, "body": TEXT, "n": NUMBER, "any": {}}})
PING = Tool("ping")
TOOLS = [LOG, PING]
SCRAPS = (
    "null", "None", "nu", "ll", "t", "true", "12", "-", ".5e3", " ", "\n", '"', "[", "]", "{", "}", ",", "a",
    "\ud83d", "é",
)  # fmt: skip


def scan_pieces(pieces: list[str], *, truncated: bool = False, **options: Any) -> list[Event]:
    scanner = GlmScanner(**{"tools": TOOLS, "id_factory": counter(), **options})
    events = [event for piece in pieces for event in scanner.feed(piece)]
    return events + scanner.flush(truncated=truncated)


def in_pieces(pieces: list[str], **options: Any) -> list[Event]:
    return joined(scan_pieces(pieces, **options))


def read(text: str, **options: Any) -> list[Event]:
    """The events of a text, the same however it is cut."""
    events = in_pieces([text], **options)
    check_order(events)
    check_arguments(events)
    for pieces in (list(text), *([text[:at], text[at:]] for at in range(1, len(text)))):
        assert in_pieces(pieces, **options) == events, pieces
    return events


def calls(events: list[Event]) -> list[tuple[str, dict[str, Any], tuple[str, ...]]]:
    return [(event.name, event.arguments, event.repairs) for event in events if isinstance(event, ToolEnd)]


def the_call(text: str, **options: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The arguments and the repairs of the only call, which is all that there is."""
    events = read(text, **options)
    ((_, arguments, repairs),) = calls(events)
    assert not [event for event in events if isinstance(event, Text | ToolDropped | Stopped)]
    return arguments, repairs


def dropped(events: list[Event]) -> list[tuple[str | None, str, str]]:
    return [(event.name, event.reason, event.raw_block) for event in events if isinstance(event, ToolDropped)]


def text(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Text))


class TestForms:
    @pytest.mark.parametrize("newline", ["\n", ""], ids=["4.5", "4.7"])
    def test_both_written_forms(self, newline: str) -> None:
        written = newline.join(
            ["<tool_call>create_log", "<arg_key>title</arg_key>", "<arg_value>swell</arg_value>",
             "<arg_key>n</arg_key>", "<arg_value>3</arg_value>", "</tool_call>"]
        )  # fmt: skip
        assert the_call(written) == ({"title": "swell", "n": 3}, ())

    @pytest.mark.parametrize("written", ["<tool_call>ping</tool_call>", "<tool_call>ping\n</tool_call>"])
    def test_a_call_without_arguments(self, written: str) -> None:
        assert the_call(written) == ({}, ())

    def test_several_calls(self) -> None:
        events = read("<tool_call>ping</tool_call>\n<tool_call>ping</tool_call><tool_call>ping</tool_call>")
        assert calls(events) == [("ping", {}, ())] * 3
        assert text(events) == ""

    def test_white_space_in_a_value_is_the_value(self) -> None:
        value = "\n  two\n\nlines \n\n"
        written = f"<tool_call>create_log<arg_key>body</arg_key><arg_value>{value}</arg_value></tool_call>"
        assert the_call(written) == ({"body": value}, ())

    @pytest.mark.parametrize("prompt", ["<|assistant|>", "<|assistant|>\n", "<|assistant|></think>", ""])
    def test_thinking_that_the_model_opens(self, prompt: str) -> None:
        events = read("\n<think>Hm.\n</think>\n<tool_call>ping</tool_call>", generation_prompt=prompt)
        assert [event.thinking for event in events if isinstance(event, ThinkingEnd)] == ["Hm."]
        assert (calls(events), text(events)) == ([("ping", {}, ())], "")

    @pytest.mark.parametrize("prompt", ["<|assistant|><think>", "<|assistant|>\n<think>", "<think>"])
    def test_thinking_that_the_prompt_opened(self, prompt: str) -> None:
        events = read("Hm.</think>Yes.<tool_call>ping</tool_call>", generation_prompt=prompt)
        assert [event.thinking for event in events if isinstance(event, ThinkingEnd)] == ["Hm."]
        assert (calls(events), text(events)) == ([("ping", {}, ())], "Yes.")

    @pytest.mark.parametrize("space", ["\r", " ", "\u2028", "\xa0\r\n."])
    def test_white_space_that_is_all_or_the_beginning_of_an_answer_is_text(self, space: str) -> None:
        for prompt in ("", "<|assistant|>", "<|assistant|>\n"):
            assert text(read(space, generation_prompt=prompt)) == space
            assert text(read(f"{space}<tool_call>ping</tool_call>", generation_prompt=prompt)) == space

    def test_the_raw_block_is_the_call_as_it_was_written(self) -> None:
        written = "<tool_call>create_log\n<arg_key>n</arg_key>\n<arg_value> 3 </arg_value>\n</tool_call>"
        (end,) = [event for event in read(f"So:\n{written}<|observation|>") if isinstance(event, ToolEnd)]
        assert (end.raw_block, end.arguments_json) == (written, '{"n":3}')


class TestMarkupInValues:
    @pytest.mark.parametrize(
        "value",
        [
            "write </arg_value> last",
            "</arg_value>.",
            "</arg_value> </arg_value> x",
            "a <tool_call> and </tool_call> b",
            "<tool_call>ping</tool_call>",
            "<tool_call>ping</tool_call>\n<tool_call>ping</tool_call>\n",
            "x <tool_call>ping",
            "see <arg_key>k</arg_key>",
            "<arg_key>k</arg_key><arg_value>v</arg_value>.",
            "doc: <tool_call>f\n<arg_key>k</arg_key>\n<arg_value>v</arg_value>\n</tool_call>\n",
            "</arg_key></tool_call>",
            "</arg_value><|user|>",
            "<|observation|>\n<tool_response>\n</tool_response>",
            "<think></think>",
            "a <b> &amp; \\n \" ' < ",
            "<",
            "\n<\n",
            "",
        ],
    )
    @pytest.mark.parametrize("newline", ["\n", ""])
    def test_text_that_looks_like_markup_is_text(self, value: str, newline: str) -> None:
        written = newline.join(
            ["<tool_call>create_log", "<arg_key>body</arg_key>", f"<arg_value>{value}</arg_value>",
             "<arg_key>title</arg_key>", "<arg_value>t</arg_value>", "</tool_call>"]
        )  # fmt: skip
        assert the_call(written) == ({"body": value, "title": "t"}, ())
        assert the_call(written, strict=True) == ({"body": value, "title": "t"}, ())

    @given(
        st.lists(
            st.sampled_from(["<tool_call>", "<arg_key>", "<arg_value>", "ping", "\n", "<", "</", "<|user|>", "x", " "])
        ).map("".join)
    )
    def test_openers_and_tokens_in_any_order(self, value: str) -> None:
        call = ToolCall(None, "create_log", {"body": value, "title": value})
        written = GLM.render_tool_call(call, tools=TOOLS)
        for pieces in ([written], list(written)):
            assert calls(in_pieces(pieces)) == [("create_log", call.arguments, ())]


class TestMissingTags:
    def test_a_values_opener(self) -> None:
        written = "<tool_call>create_log<arg_key>body</arg_key>\n calm sea</arg_value></tool_call>"
        assert the_call(written) == ({"body": "calm sea"}, ("missing-value-begin",))

    @pytest.mark.parametrize(
        ("written", "arguments"),
        [
            ("<arg_key>title</arg_key>\n<arg_value>a\n\n<arg_key>body</arg_key>\n<arg_value>b</arg_value>\n",
             {"title": "a\n", "body": "b"}),
            ("<arg_key>title</arg_key><arg_value>a<arg_key>body</arg_key><arg_value>b<arg_key>n</arg_key><arg_value>1",
             {"title": "a", "body": "b", "n": 1}),
            ("<arg_key>title</arg_key><arg_value>a", {"title": "a"}),
            ("<arg_key>title</arg_key><arg_value>a\n", {"title": "a"}),
        ],
    )  # fmt: skip
    def test_a_values_closer(self, written: str, arguments: dict[str, Any]) -> None:
        assert the_call(f"<tool_call>create_log{written}</tool_call>") == (arguments, ("missing-value-end",))

    def test_the_wrong_closer_of_a_value(self) -> None:
        written = "<tool_call>create_log<arg_key>title</arg_key><arg_value>a</arg_key></tool_call>"
        assert the_call(written) == ({"title": "a"}, ("missing-value-end", "stray-closer"))

    @pytest.mark.parametrize("closer", ["", "</arg_value>"])
    def test_a_keys_closer(self, closer: str) -> None:
        written = f"<tool_call>create_log<arg_key>title{closer}<arg_value>a</arg_value></tool_call>"
        assert the_call(written) == ({"title": "a"}, ("missing-key-end",))

    @pytest.mark.parametrize("pair", ["<arg_key>title</arg_key>", "<arg_key>title"])
    def test_a_value(self, pair: str) -> None:
        written = f"<tool_call>create_log{pair}<arg_key>n</arg_key><arg_value>1</arg_value></tool_call>"
        assert the_call(written) == ({"n": 1}, ("missing-value",))

    def test_the_calls_closer_before_the_next_call(self) -> None:
        one = "<tool_call>create_log<arg_key>n</arg_key><arg_value>1</arg_value>"
        events = read(f"{one}\n{one}</tool_call>")
        assert calls(events) == [("create_log", {"n": 1}, ("missing-call-end",)), ("create_log", {"n": 1}, ())]

    def test_both_closers_before_the_next_call(self) -> None:
        events = read("<tool_call>create_log<arg_key>title</arg_key><arg_value>a\n<tool_call>ping</tool_call>")
        assert calls(events) == [
            ("create_log", {"title": "a"}, ("missing-value-end", "missing-call-end")),
            ("ping", {}, ()),
        ]

    @pytest.mark.parametrize("token", ["<|observation|>", "<|user|>", "<|endoftext|>"])
    def test_the_calls_closer_before_the_end_of_the_turn(self, token: str) -> None:
        written = f"<tool_call>create_log<arg_key>n</arg_key><arg_value>1</arg_value>\n{token}"
        assert the_call(written) == ({"n": 1}, ("missing-call-end",))

    @pytest.mark.parametrize("cut", ["</", "</tool_cal", "\n</tool_call"])
    def test_a_cut_closer_at_the_end_of_the_stream(self, cut: str) -> None:
        written = f"<tool_call>create_log<arg_key>n</arg_key><arg_value>1</arg_value>{cut}"
        assert the_call(written) == ({"n": 1}, ("missing-call-end",))
        assert dropped(read(written, truncated=True)) == [("create_log", "unfinished", written)]

    @pytest.mark.parametrize("stray", ["</arg_value>", "</arg_key>\n", "</arg_value></arg_key>"])
    def test_a_stray_closer_behind_the_name_is_no_part_of_it(self, stray: str) -> None:
        assert the_call(f"<tool_call>ping{stray}</tool_call>") == ({}, ("stray-closer",))

    @pytest.mark.parametrize(
        "closers", ["</arg_value></arg_value>", "</arg_value>\n</arg_value>", "</arg_value></arg_key>"]
    )
    def test_of_several_closers_behind_a_value_the_first_is_its_own(self, closers: str) -> None:
        written = f"<tool_call>create_log<arg_key>title</arg_key><arg_value>a{closers}</tool_call>"
        assert the_call(written) == ({"title": "a"}, ("stray-closer",))

    def test_text_behind_a_call_whose_value_was_not_closed_is_not_lost(self) -> None:
        events = read("<tool_call>create_log<arg_key>title</arg_key><arg_value>a</tool_call> Done.")
        assert calls(events) == [("create_log", {"title": "a"}, ("missing-value-end",))]
        assert text(events) == " Done."


class TestCut:
    @pytest.mark.parametrize("truncated", [True, False])
    @pytest.mark.parametrize(
        "written",
        [
            "<tool_call>create_log\n",
            "<tool_call>create_log\n<arg_ke",
            "<tool_call>create_log\n<arg_key>tit",
            "<tool_call>create_log\n<arg_key>title</arg_key>",
            "<tool_call>create_log\n<arg_key>title</arg_key>\n<arg_value>swe",
            "<tool_call>create_log\n<arg_key>title</arg_key>\n<arg_value>swell\n",
            "<tool_call>create_log\n<arg_key>title</arg_key>\n<arg_value>swell</arg_val",
            "<tool_call>create_log\n<arg_key>n</arg_key>\n<arg_value>1",
        ],
    )
    def test_an_unfinished_call_never_runs(self, written: str, truncated: bool) -> None:
        events = read(f"Let me look.{written}", truncated=truncated)
        assert calls(events) == []
        assert dropped(events) == [("create_log", "unfinished", written)]
        assert text(events) == "Let me look."

    @pytest.mark.parametrize("behind", ["", "\n", "\n\n", "<", "\n</tool_cal"])
    def test_behind_a_whole_pair_only_the_closer_is_missing_unless_the_turn_was_cut_off(self, behind: str) -> None:
        written = "<tool_call>create_log\n<arg_key>title</arg_key>\n<arg_value>swell</arg_value>" + behind
        assert the_call(written) == ({"title": "swell"}, ("missing-call-end",))
        assert dropped(read(written, truncated=True)) == [("create_log", "unfinished", written)]

    def test_a_call_in_the_value_of_a_call_that_was_cut_off_does_not_run(self) -> None:
        written = "<tool_call>create_log<arg_key>body</arg_key><arg_value>Use <tool_call>ping</tool_call>."
        assert calls(read(written, truncated=True)) == []


class TestNoCall:
    def test_a_block_without_pairs_but_with_text_is_malformed(self) -> None:
        written = "<tool_call>ping\nplease\n</tool_call>"
        events = read(f"{written}Then.<tool_call>ping</tool_call>")
        assert dropped(events) == [("ping", "malformed", written)]
        assert calls(events) == [("ping", {}, ())]
        assert text(events) == "Then."

    def test_text_before_the_first_pair_is_skipped(self) -> None:
        written = "<tool_call>ping\nwith <b>\n<arg_key>n</arg_key><arg_value>1</arg_value></tool_call>"
        assert the_call(written) == ({"n": 1}, ("surrounding-text",))

    def test_a_mention_is_text(self) -> None:
        prose = "Write <tool_call> and the name, say `<tool_call>ping</tool_call>`, then </tool_call>."
        events = read(prose)
        assert (text(events), calls(events), dropped(events)) == (prose, [], [])

    def test_the_json_of_another_dialect_is_no_name(self) -> None:
        assert calls(read('<tool_call>{"name":"ping"}</tool_call>')) == []

    def test_a_result_that_the_model_wrote_itself(self) -> None:
        events = read("<tool_call>ping</tool_call><|observation|>\n<tool_response>\npong\n</tool_response>")
        assert calls(events) == [("ping", {}, ())]
        assert events[-1] == Stopped("fabricated-result")

    def test_a_turn_that_the_model_wrote_for_the_user(self) -> None:
        assert read("Hi.<|user|>\nBye.")[-1] == Stopped("fabricated-turn")
        assert read("Hi.<|user|>\n") == [Text("Hi.")]

    def test_a_call_too_large_is_skipped(self) -> None:
        value = "x" * 100
        written = f"<tool_call>create_log<arg_key>body</arg_key><arg_value>{value}</arg_value></tool_call>"
        events = read(f"{written}<tool_call>ping</tool_call>", max_call_chars=80)
        assert dropped(events) == [("create_log", "too-large", written[:80])]
        assert calls(events) == [("ping", {}, ())]


class TestThinking:
    def test_a_call_in_thinking_that_nobody_closed_is_real(self) -> None:
        events = read("The board is stale.<tool_call>ping</tool_call>", generation_prompt="<think>")
        assert calls(events) == [("ping", {}, ("unclosed-thinking",))]

    def test_a_draft_is_thinking(self) -> None:
        events = read("Maybe\n<tool_call>ping</tool_call>?</think>No.", generation_prompt="<think>")
        assert (calls(events), text(events)) == ([], "No.")

    def test_the_end_of_thinking_in_a_value_is_text(self) -> None:
        written = "<tool_call>create_log<arg_key>body</arg_key><arg_value>a</think>b</arg_value></tool_call>"
        events = read(f"So: {written}", generation_prompt="<think>")
        assert calls(events) == [("create_log", {"body": "a</think>b"}, ("unclosed-thinking",))]

    def test_the_end_of_thinking_in_a_value_that_nobody_closed_counts(self) -> None:
        events = read("<tool_call>create_log<arg_key>k</arg_key><arg_value>a</think>b", generation_prompt="<think>")
        assert (calls(events), text(events)) == ([], "b")


class TestStreaming:
    def pieces_of(self, value: str, key: str = "body", **options: Any) -> list[str]:
        """The deltas of a value that comes in one-character pieces."""
        scanner = GlmScanner(**{"tools": TOOLS, **options})
        scanner.feed(f"<tool_call>create_log<arg_key>{key}</arg_key><arg_value>")
        events = [scanner.feed(char) for char in value]
        return ["".join(event.delta for event in one if isinstance(event, ToolArgDelta)) for one in events]

    def test_the_name_is_known_before_the_arguments(self) -> None:
        for written in ("<tool_call>create_log\n", "<tool_call>create_log<arg_key>"):
            (start,) = GlmScanner(tools=TOOLS, id_factory=counter()).feed(written)
            assert start == ToolStart("id-1", "create_log")

    def test_a_text_leaves_as_it_arrives(self) -> None:
        assert self.pieces_of('5 "é"') == ["5", " ", '"', "é", '"']

    def test_a_newline_waits_for_what_follows(self) -> None:
        assert self.pieces_of("a\nb\n\nc") == ["a", "", "\nb", "", "\n", "\nc"]

    def test_less_than_waits_only_as_long_as_it_may_begin_a_tag(self) -> None:
        assert self.pieces_of("a < b </b>") == ["a", " ", "", "< ", "b", " ", "", "", "</b", ">"]

    def test_any_other_type_waits_for_the_end(self) -> None:
        assert self.pieces_of("123", "n") == ["", "", ""]
        assert self.pieces_of('"abc', "any") == [""] * 4

    def test_without_a_schema_a_text_leaves_once_it_can_be_nothing_else(self) -> None:
        assert self.pieces_of("trust", "any") == ["", "", "", "trus", "t"]
        assert self.pieces_of("12 a", "any") == ["", "", "", "12 a"]
        assert self.pieces_of("print(1)", tools=None) == list("print(1)")
        assert self.pieces_of("True", "any") == list("True")

    def test_the_pieces_are_compact_json(self) -> None:
        events = in_pieces(
            list('<tool_call>create_log<arg_key>any</arg_key><arg_value>[1, "x"]</arg_value></tool_call>')
        )
        assert [event.json for event in events if isinstance(event, ToolArgDelta)] == ['{"any":', '[1, "x"]', "}"]

    def test_of_two_values_the_first_wins(self) -> None:
        pair = "<arg_key>title</arg_key><arg_value>{}</arg_value>"
        written = f"<tool_call>create_log{pair.format('a')}{pair.format('b')}</tool_call>"
        assert the_call(written) == ({"title": "a"}, ("duplicate-key",))

    @pytest.mark.parametrize("unknown_tools", ["text", "drop"])
    def test_a_call_that_is_not_wanted_gives_no_pieces(self, unknown_tools: str) -> None:
        written = "<tool_call>other<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>"
        events = read(written, unknown_tools=unknown_tools)
        assert [type(event) for event in events] == [Text if unknown_tools == "text" else ToolDropped]

    @given(
        st.sampled_from([{}, TEXT, NUMBER, {"type": ["string", "null"]}, {"type": ["string", "boolean", "array"]}]),
        st.lists(st.sampled_from(SCRAPS)).map("".join),
    )
    def test_what_streams_is_what_the_whole_value_means(self, schema: dict[str, Any], value: str) -> None:
        tools = [Tool("f", parameters={"properties": {"k": schema}})]
        written = f"<tool_call>f<arg_key>k</arg_key><arg_value>{value}</arg_value></tool_call>"
        for pieces in ([written], list(written)):
            events = in_pieces(pieces, tools=tools)
            check_arguments(events)
            ((_, arguments, repairs),) = calls(events)
            found = coerce(value, schema, {})
            assert (repr(arguments["k"]), repairs) == (repr(found.value), found.repairs)


HOSTILE = {
    "closers": "</arg_value> ",
    "calls": "<tool_call>ping",
    "call after call": "<tool_call>create_log<arg_key>body</arg_key><arg_value>v",
    "pairs without closers": "<arg_key>k</arg_key><arg_value>v",
    "ends of calls": "</tool_call>x",
    "newlines": "\n",
    "half tags": "</arg_valu",
    "keys": "<arg_key>",
    "digits": "1",
    "closers before a turn": "</arg_value><|user|>",
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("key", ["body", "any"])
def test_a_long_hostile_value_takes_no_time(unit: str, key: str) -> None:
    """A minute is far more than a linear scanner needs on any machine, and far less than any other."""
    started = time.perf_counter()
    written = f"<tool_call>create_log<arg_key>{key}</arg_key><arg_value>" + unit * (100_000 // len(unit))
    for ending, size in (("", 7), ("", 300_000), ("</arg_value></tool_call>", 7)):
        stream = written + ending
        events = scan_pieces([stream[at : at + size] for at in range(0, len(stream), size)])
        check_order(events)
        check_arguments(events)
    assert time.perf_counter() - started < 60


def test_json_text_of_a_long_value_is_whole() -> None:
    value = 'Line of a "file" \\ é😀\n' * 20_000
    written = GLM.render_tool_call(ToolCall(None, "create_log", {"body": value}), tools=TOOLS)
    events = scan_pieces([written[at : at + 4] for at in range(0, len(written), 4)])
    assert calls(events) == [("create_log", {"body": value}, ())]
    assert json.loads("".join(event.json for event in events if isinstance(event, ToolArgDelta))) == {"body": value}
