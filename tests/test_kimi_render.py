"""What Kimi's renderer writes where a conversation leaves it a choice, and what it does with foreign ids."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dialects.events import ToolEnd
from dialects.kimi import KIMI
from dialects.messages import Message, ToolCall, ToolResult, read_messages


def transcript(*messages: Message | dict[str, Any]) -> str:
    return KIMI.transcript_text(read_messages(messages), None)


def call(call_id: str | None, name: str = "ping", **arguments: Any) -> ToolCall:
    return ToolCall(call_id, name, arguments)


def ids(*calls: ToolCall) -> list[str]:
    return [piece.split("<|", 1)[0] for piece in KIMI.render_assistant_tool_calls(calls).split("call_begin|>")[1:]]


def headings(text: str) -> list[str]:
    return [line.split("## Return of ")[1] for line in text.splitlines() if "## Return of " in line]


def test_the_guide_shows_exactly_what_the_renderer_writes() -> None:
    example = KIMI.render_assistant_tool_calls(
        [call(None, "get_weather", city="Zürich", unit="c"), call(None, "read_file", path='notes/"to do".txt')]
    )
    assert KIMI.prompt.count(example) == 1


class TestIds:
    def test_a_foreign_id_becomes_name_and_position(self) -> None:
        assert ids(call("call_9"), call(None, "pong")) == ["functions.ping:0", "functions.pong:1"]

    def test_kimis_own_id_is_kept(self) -> None:
        assert ids(call("functions.ping:7"), call("functions.a.b-c:12", "a.b-c")) == [
            "functions.ping:7",
            "functions.a.b-c:12",
        ]

    def test_an_id_that_names_another_tool_is_not_kept(self) -> None:
        """The name stands only in the id: keeping it would call the wrong tool."""
        assert ids(call("functions.rm:0", "ls")) == ["functions.ls:0"]

    def test_two_calls_never_share_an_id(self) -> None:
        assert ids(call("functions.ping:0"), call("functions.ping:0")) == ["functions.ping:0", "functions.ping:1"]
        assert ids(call("x"), call("functions.ping:0")) == ["functions.ping:1", "functions.ping:0"]

    def test_a_name_that_ends_like_an_index_keeps_its_end(self) -> None:
        assert ids(call("functions.v:2", "v:2")) == ["functions.v:2:0"]

    @given(
        st.lists(
            st.tuples(
                st.sampled_from([None, "x", "functions.a:0", "functions.a:1", "functions.b:1"]), st.sampled_from("ab")
            )
        )
    )
    def test_every_id_of_a_batch_is_its_own_and_says_the_name(self, batch: list[tuple[str | None, str]]) -> None:
        written = ids(*(call(call_id, name) for call_id, name in batch))
        assert len(set(written)) == len(batch)
        assert [one.removeprefix("functions.").rsplit(":", 1)[0] for one in written] == [name for _, name in batch]


class TestResults:
    def test_a_result_follows_its_calls_new_id_whatever_the_order(self) -> None:
        text = transcript(
            Message("assistant", tool_calls=(call("x", "a"), call("y", "b"))),
            Message("tool", "of b", tool_call_id="y"),
            Message("tool", "of a", tool_call_id="x"),
        )
        assert text.endswith(
            "<|im_system|>b<|im_middle|>## Return of functions.b:1\nof b<|im_end|>"
            "<|im_system|>a<|im_middle|>## Return of functions.a:0\nof a<|im_end|>"
        )

    def test_a_late_result_still_finds_its_call(self) -> None:
        text = transcript(
            Message("assistant", tool_calls=(call("p"), call("x", "slow"))),
            Message("user", "Wait."),
            Message("assistant", tool_calls=(call("y"),)),
            Message("tool", "done", tool_call_id="x"),
        )
        assert headings(text) == ["functions.slow:1"]

    def test_an_id_used_in_every_turn_means_the_latest_call(self) -> None:
        text = transcript(
            Message("assistant", tool_calls=(call("call_0", "a"),)),
            Message("tool", "1", tool_call_id="call_0"),
            Message("assistant", tool_calls=(call("call_0", "b"),)),
            Message("tool", "2", tool_call_id="call_0"),
        )
        assert headings(text) == ["functions.a:0", "functions.b:0"]

    def test_an_id_used_twice_in_a_batch_is_answered_in_order(self) -> None:
        text = transcript(
            Message("assistant", tool_calls=(call("call_0", "a"), call("call_0", "b"))),
            Message("tool", "1", tool_call_id="call_0"),
            Message("tool", "2", tool_call_id="call_0"),
        )
        assert headings(text) == ["functions.a:0", "functions.b:1"]

    def test_results_without_ids_answer_in_order(self) -> None:
        text = transcript(
            Message("assistant", tool_calls=(call("functions.a:3", "a"), call("y", "b"))),
            Message("tool", "1"),
            Message("tool", "2", tool_call_id="lost"),
            Message("tool", "3", name="c"),
        )
        assert headings(text) == ["functions.a:3", "functions.b:1", "functions.c:2"]

    def test_a_result_whose_call_was_cut_from_the_history_keeps_its_id(self) -> None:
        text = transcript(
            Message("assistant", tool_calls=(call("x", "a"),)),
            Message("tool", "1", tool_call_id="functions.gone:4"),
        )
        assert text.endswith("<|im_system|>gone<|im_middle|>## Return of functions.gone:4\n1<|im_end|>")

    def test_a_result_that_says_nothing_of_its_call(self) -> None:
        alone = KIMI.render_tool_results([ToolResult(None, None, "pong")])
        assert alone == "<|im_system|>tool<|im_middle|>## Return of functions.tool:0\npong<|im_end|>"


class TestPieces:
    def test_a_named_speaker_keeps_the_name(self) -> None:
        assert transcript(Message("user", "hi", name="ann")) == "<|im_user|>ann<|im_middle|>hi<|im_end|>"

    def test_a_scanned_call_is_written_as_it_was(self) -> None:
        block = '<|tool_call_begin|>functions.ping:3<|tool_call_argument_begin|>{"n":1}<|tool_call_end|>'
        event = ToolEnd("functions.ping:3", "ping", {"n": 1}, '{"n":1}', block)
        assert KIMI.render_tool_call(event) == block

    @given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text()) | st.none()))
    def test_arguments_survive_the_writing(self, arguments: dict[str, Any]) -> None:
        text = KIMI.render_tool_call(ToolCall(None, "ping", arguments))
        body = text.split("<|tool_call_argument_begin|>", 1)[1].removesuffix("<|tool_call_end|>")
        assert json.loads(body) == arguments
