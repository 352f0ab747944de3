"""Chat completions with leaked markup: the shape of what leaves, whatever the upstream sends."""

import asyncio
import copy
import json
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects.healing import ChatCompletionHealer, aheal_chunks, heal_chunks
from tests.leaks import CASES, DECIDED, Chunk, chunk, native, response_of, stream_of, text

every_case = pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
KIMI_CALL = '<|tool_call_begin|>functions.get_tide:0<|tool_call_argument_begin|>{"port":"Oban"}<|tool_call_end|>'
KIMI = f"<|tool_calls_section_begin|>{KIMI_CALL}<|tool_calls_section_end|>"
HERMES = '<tool_call>\n{"name": "get_tide", "arguments": {"port": "Oban"}}\n</tool_call>'
TIDE = {"name": "get_tide", "parameters": {"type": "object", "properties": {"port": {"type": "string"}}}}
CALL = ("get_tide", {"port": "Oban"})


class Turn:
    """What a client accumulates of one choice; every demand of the shape is checked on the way."""

    def __init__(self) -> None:
        self.content = ""
        self.reasoning = ""
        self.calls: list[tuple[str, Any]] = []
        self.ids: list[str] = []
        self.finish: str | None = None
        self.logprobs: list[Any] = []
        self._role = False
        self._arguments: list[str] = []

    def add(self, choice: Chunk) -> None:
        delta = choice["delta"]
        assert self.finish is None, "something follows the finish reason"
        assert ("role" in delta) != self._role, "the role is not first, or comes twice"
        self._role = True
        if choice["finish_reason"] is not None:
            assert delta == {}
            self.finish = choice["finish_reason"]
        self.content += delta.get("content") or ""
        self.reasoning += delta.get("reasoning_content") or ""
        assert "reasoning" not in delta
        self.logprobs += (choice.get("logprobs") or {}).get("content") or []
        if "tool_calls" in delta:
            assert delta.keys() == {"tool_calls"}
            (entry,) = delta["tool_calls"]
            self._call(entry)

    def _call(self, entry: Chunk) -> None:
        if "id" in entry:
            assert {"index", "id", "type", "function"} == entry.keys()
            assert entry["index"] == len(self.ids)
            assert entry["function"].keys() == {"name", "arguments"}
            assert entry["type"] == "function"
            assert entry["function"]["arguments"] == ""
            assert entry["function"]["name"]
            assert isinstance(entry["id"], str)
            assert entry["id"] not in self.ids
            assert 0 < len(entry["id"]) <= 64
            self.ids.append(entry["id"])
            self.calls.append((entry["function"]["name"], None))
            self._arguments.append("")
            return
        assert entry.keys() == {"index", "function"}
        assert entry["index"] == len(self.ids) - 1, "calls are interleaved"
        assert entry["function"].keys() == {"arguments"}
        assert entry["function"]["arguments"]
        self._arguments[-1] += entry["function"]["arguments"]

    def end(self) -> None:
        assert self.finish is not None
        for at, arguments in enumerate(self._arguments):
            try:
                self.calls[at] = (self.calls[at][0], json.loads(arguments))
            except ValueError:
                self.calls[at] = (self.calls[at][0], arguments)


def accumulate(chunks: list[Chunk]) -> dict[int, Turn]:
    turns: dict[int, Turn] = {}
    is_over = False
    for one in chunks:
        assert not (is_over and one["choices"]), "a choice goes on behind the usage"
        is_over = is_over or bool(turns and not one["choices"])
        for choice in one["choices"]:
            turns.setdefault(choice["index"], Turn()).add(choice)
    for turn in turns.values():
        turn.end()
    return turns


def heal(chunks: list[Chunk], pattern: str = "auto", **options: Any) -> Turn:
    given = copy.deepcopy(chunks)
    (turn,) = accumulate([*heal_chunks(chunks, pattern, **options)]).values()
    assert chunks == given, "the upstream's own objects were changed"
    return turn


# The reported leaks.


def check(turn: Turn, case: Chunk) -> None:
    wanted = DECIDED[case["id"]][0] if case["id"] in DECIDED else case["expected"]
    assert shown(turn.content, case) == shown(wanted["content"], case)
    assert shown(turn.reasoning, case) == shown(wanted["reasoning"], case)
    assert turn.calls == [(call["name"], call["arguments"]) for call in wanted["tool_calls"]]
    assert turn.finish == wanted["finish_reason"]


def shown(value: str | None, case: Chunk) -> str:
    return " ".join((value or "").split()) if case.get("ws") == "ignore" else value or ""


def options_of(case: Chunk) -> Chunk:
    return {
        "tools": case["tools"],
        "tool_choice": case["upstream"].get("tool_choice"),
        "generation_prompt": case["generation_prompt"],
    }


def patterns_of(case: Chunk) -> list[str]:
    return ["auto", case["dialect"]]


def splits(raw: str) -> Iterator[list[str]]:
    yield from ([raw[:at], raw[at:]] for at in range(len(raw) + 1))
    yield list(raw)


@every_case
@pytest.mark.parametrize("native_first", [True, False], ids=["native-first", "text-first"])
def test_a_reported_leak_comes_out_right_however_it_is_cut(case: Chunk, native_first: bool) -> None:
    for pattern in patterns_of(case):
        for pieces in (case["chunks"], *splits(case["raw"])):
            check(heal(stream_of(case, pieces, native_first=native_first), pattern, **options_of(case)), case)


@every_case
def test_a_reported_leak_comes_out_right_in_a_whole_response(case: Chunk) -> None:
    response = response_of(case)
    for pattern in patterns_of(case):
        healer = ChatCompletionHealer(pattern, **options_of(case))
        healed = healer.heal_response(response)
        assert healed["usage"] == response["usage"]
        (out,) = healed["choices"]
        turn = Turn()
        turn.content, turn.reasoning = out["message"]["content"] or "", out["message"].get("reasoning_content") or ""
        turn.finish = out["finish_reason"]
        assert out["message"].get("tool_calls") != []
        for call in out["message"].get("tool_calls", []):
            turn.calls.append((call["function"]["name"], json.loads(call["function"]["arguments"])))
        check(turn, case)


def test_what_was_decided_belongs_to_a_case() -> None:
    assert DECIDED.keys() <= {case["id"] for case in CASES}


# The shape.


def test_the_golden_shape_to_the_letter() -> None:
    usage = {"id": "c1", "choices": [], "usage": {"total_tokens": 9}}
    out = [*heal_chunks([text(KIMI), chunk({}, "stop"), usage], "kimi", tools=[TIDE])]
    choices = [one["choices"][0] for one in out[:-1]]
    function = {"name": "get_tide", "arguments": ""}
    header = {"index": 0, "id": "functions.get_tide:0", "type": "function", "function": function}
    assert choices == [
        {"index": 0, "delta": {"role": "assistant", "content": None}, "finish_reason": None},
        {"index": 0, "delta": {"tool_calls": [header]}, "finish_reason": None},
        {
            "index": 0,
            "delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"port":"Oban"}'}}]},
            "finish_reason": None,
        },
        {"index": 0, "delta": {}, "finish_reason": "tool_calls"},
    ]
    assert out[-1] == usage
    assert all(one["model"] == "m" for one in out[:-1])


def test_a_finish_chunk_that_carries_a_delta_is_split() -> None:
    turn = heal([text("a <thi"), chunk({"content": "rd"}, "stop")])
    assert (turn.content, turn.finish) == ("a <third", "stop")


def test_an_upstream_without_a_finish_reason_gets_one() -> None:
    assert heal([text("hello")]).finish == "stop"
    assert heal([text(HERMES)], "hermes").finish == "tool_calls"
    assert heal([text(HERMES[:40])], "hermes").finish == "length"
    assert heal([native("get_tide", '{"port":"O')]).finish == "length"
    healer = ChatCompletionHealer()
    assert accumulate(healer.feed(text("hello")) + healer.finish(truncated=True))[0].finish == "length"


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_cut_always_wins(reason: str) -> None:
    for finish in ([chunk({}, reason)], [chunk({}, reason), chunk({}, "stop")], [chunk({}, "stop"), chunk({}, reason)]):
        turn = heal([text(KIMI), *finish], "kimi")
        assert (turn.finish, turn.calls) == (reason, [CALL])
    turn = heal([text(HERMES[:-14]), chunk({}, reason)], "hermes")
    assert (turn.finish, turn.calls) == (reason, [])


def test_tool_calls_without_a_call_is_stop() -> None:
    assert heal([text("hello"), chunk({}, "tool_calls")]).finish == "stop"


def test_a_finish_reason_on_every_chunk_comes_out_once() -> None:
    chunks = [chunk({"content": piece}, "stop") for piece in ("a", "b")] + [native("get_tide", "{}")]
    turn = heal(chunks)
    assert (turn.content, turn.calls, turn.finish) == ("ab", [("get_tide", {})], "tool_calls")


def test_usage_on_every_chunk_stays_on_the_stream() -> None:
    chunks = [
        chunk({"content": piece}, usage={"total_tokens": at}) for at, piece in enumerate(("a", "<thi", "nk", ">b"), 1)
    ]
    out = [*heal_chunks([*chunks, chunk({}, "stop", usage={"total_tokens": 9})])]
    accumulate(out)
    assert out[-1]["usage"] == {"total_tokens": 9}
    assert out[-1]["choices"][0]["finish_reason"] == "stop"


def test_usage_without_a_finish_reason_still_comes_last() -> None:
    usage = {"id": "c1", "choices": [], "usage": {"total_tokens": 9}}
    out = [*heal_chunks([text("a"), usage])]
    accumulate(out)
    assert out[-1] is not usage
    assert out[-1] == usage


def test_chunks_without_choices_pass_untouched() -> None:
    filtered = {"id": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}
    error = {"error": {"message": "no"}}
    assert [*heal_chunks([filtered, error])] == [filtered, error]


def test_choices_are_healed_apart() -> None:
    pieces = [KIMI[at : at + 7] for at in range(0, len(KIMI), 7)]
    chunks = []
    for piece in pieces:
        chunks += [chunk({"content": piece}, index=1), chunk({"content": "<thi"}, index=0)]
    chunks += [chunk({}, "stop", index=1), chunk({}, "stop", index=0)]
    turns = accumulate([*heal_chunks(chunks, "auto")])
    assert (turns[1].calls, turns[1].finish) == ([CALL], "tool_calls")
    assert (turns[0].content, turns[0].finish) == ("<thi" * len(pieces), "stop")


# Native calls.


def test_native_calls_are_numbered_from_zero_whatever_their_index() -> None:
    turn = heal([native("get_tide", '{"port":', index=1), native(None, '"Oban"}', index=1), chunk({}, "tool_calls")])
    assert turn.calls == [CALL]
    assert turn.ids == ["n1"]


def test_native_calls_without_id_or_index_get_them() -> None:
    chunks = [
        native("get_tide", '{"port":', index=None, call_id=None),
        native(None, '"Oban"}', index=None, call_id=None),
        native("get_tide", "", index=None, call_id=None),
    ]
    turn = heal([*chunks, chunk({}, "tool_calls")])
    assert turn.calls == [CALL, ("get_tide", {})]
    assert all(call_id.startswith("call_") for call_id in turn.ids)


def test_null_fields_are_as_good_as_none() -> None:
    entry = {"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": '"Oban"}'}}
    chunks = [
        chunk({"role": None, "content": None, "tool_calls": None, "reasoning_content": None, "refusal": None}),
        native("get_tide", '{"port":'),
        chunk({"tool_calls": [entry]}),
        chunk({"tool_calls": [{"index": 0, "function": None}]}),
        {**chunk(None, "tool_calls"), "choices": [{"index": 0, "delta": None, "finish_reason": "tool_calls"}]},
    ]
    turn = heal(chunks)
    assert (turn.calls, turn.ids) == ([CALL], ["n1"])


def test_a_name_or_id_that_is_repeated_is_not_doubled() -> None:
    turn = heal([native("get_tide", '{"port":'), native("get_tide", '"Oban"}'), chunk({}, "tool_calls")])
    assert (turn.calls, turn.ids) == ([CALL], ["n1"])


def test_a_name_in_two_fragments_is_whole_in_the_header() -> None:
    assert heal([native("get_", ""), native("tide", ""), native(None, '{"port":"Oban"}')]).calls == [CALL]


def test_two_calls_under_one_index_are_two() -> None:
    turn = heal([native("get_tide", "{}", call_id="a"), native("get_tide", '{"port":"Oban"}', call_id="b")])
    assert (turn.calls, turn.ids) == ([("get_tide", {}), CALL], ["a", "b"])


def test_interleaved_native_calls_leave_one_after_the_other() -> None:
    chunks = [
        native("get_tide", '{"port":', index=0, call_id="a"),
        native("run", '{"x":', index=1, call_id="b"),
        native(None, '"Oban"}', index=0, call_id=None),
        native(None, "1}", index=1, call_id=None),
    ]
    assert heal(chunks).calls == [CALL, ("run", {"x": 1})]


def test_arguments_that_are_an_object_null_or_missing_are_text() -> None:
    for function, wanted in (
        ({"name": "f", "arguments": {"a": 1}}, {"a": 1}),
        ({"name": "f", "arguments": None}, {}),
        ({"name": "f"}, {}),
        ({"name": "f", "arguments": "null"}, {}),
    ):
        turn = heal([chunk({"tool_calls": [{"index": 0, "id": 7, "function": function}]}), chunk({}, "tool_calls")])
        assert (turn.calls, turn.ids, turn.finish) == ([("f", wanted)], ["7"], "tool_calls")


def test_arguments_before_the_name_wait_for_it() -> None:
    assert heal([native(None, '{"port":'), native("get_tide", ""), native(None, '"Oban"}')]).calls == [CALL]


def test_an_id_that_is_too_long_or_there_twice_is_replaced() -> None:
    turn = heal([native("a", "{}", call_id="x" * 80), native("b", "{}", index=1), native("c", "{}", index=2)])
    assert turn.ids[1] == "n1"
    assert len({*turn.ids}) == 3
    assert all(len(call_id) <= 64 for call_id in turn.ids)


def test_unknown_fields_of_a_native_call_stay_on_its_header() -> None:
    entry = {"index": 0, "id": "n1", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"sign": "s"}}
    out = [*heal_chunks([chunk({"tool_calls": [entry]})])]
    assert out[1]["choices"][0]["delta"]["tool_calls"][0]["extra_content"] == {"sign": "s"}


def test_markup_in_a_native_name_is_healed() -> None:
    name = "get_tide<|tool_call_argument_begin|>"
    assert heal([native(name + '{"port":"Oban"}', ""), chunk({}, "tool_calls")], tools=[TIDE]).calls == [CALL]
    assert heal([native(name, '{"port":"Oban"}'), chunk({}, "tool_calls")], "kimi", tools=[TIDE]).calls == [CALL]
    name = "get_tide<|channel|>commentary"
    assert heal([native(name, '{"port":"Oban"}'), chunk({}, "tool_calls")], tools=[TIDE]).calls == [CALL]
    assert heal([native("no tool<", "{}")], tools=[TIDE]).calls == [("no tool<", {})]


@pytest.mark.parametrize(
    "name",
    [
        "get_tide<arg_key>port</arg_key><arg_value>Oban</arg_value>",
        'get_tide"><parameter name="port">Oban</parameter>',
        "get_tide>\n<parameter=port>\nOban\n</parameter>",
        'get_tide", "arguments": {"port": "Oban"}}',
        'functions.get_tide:0<|tool_call_argument_begin|>{"port":"Oban"}',
    ],
)
@pytest.mark.parametrize("tools", [[TIDE], None])
def test_arguments_in_a_native_name_are_not_lost(name: str, tools: list[Chunk] | None) -> None:
    assert heal([native(name, "{}"), chunk({}, "tool_calls")], tools=tools).calls == [CALL]


# Native and healed calls.


@pytest.mark.parametrize("mode", ["atomic", "progressive"])
@pytest.mark.parametrize("native_first", [True, False])
def test_a_healed_copy_of_a_native_call_is_dropped(mode: Any, native_first: bool) -> None:
    copies = [native("get_tide", '{ "port": '), native(None, '"Oban"}', call_id=None)]
    texts = [text(piece) for piece in (KIMI[:70], KIMI[70:])]
    chunks = [*copies, *texts] if native_first else [*texts, *copies]
    turn = heal([*chunks, chunk({}, "tool_calls")], "kimi", mode=mode)
    assert (turn.calls, turn.finish) == ([CALL], "tool_calls")


@pytest.mark.parametrize("mode", ["atomic", "progressive"])
def test_native_copies_of_each_other_survive(mode: Any) -> None:
    chunks = [native("get_tide", '{"port":"Oban"}', index=at, call_id=f"n{at}") for at in range(2)]
    assert heal([text(KIMI), *chunks], "kimi", mode=mode).calls == [CALL, CALL]


def test_progressive_lets_a_call_out_as_it_comes() -> None:
    healer = ChatCompletionHealer("kimi", mode="progressive")
    out = healer.feed(text(KIMI[:-50]))
    assert [entry for one in out for entry in one["choices"][0]["delta"].get("tool_calls", [])]
    turn = accumulate(out + healer.feed(text(KIMI[-50:])) + healer.finish())[0]
    assert (turn.calls, turn.finish) == ([CALL], "tool_calls")


def test_progressive_never_completes_a_call_that_was_cut() -> None:
    turn = heal([text(KIMI[:110]), chunk({}, "length")], "kimi", mode="progressive")
    assert turn.finish == "length"
    assert isinstance(turn.calls[0][1], str)


def test_atomic_lets_nothing_of_a_cut_call_out() -> None:
    assert heal([text(KIMI[:110]), chunk({}, "length")], "kimi").calls == []


def test_a_tool_that_was_not_offered_stays_text() -> None:
    for leak, pattern in ((HERMES, "hermes"), (KIMI_CALL, "kimi")):
        turn = heal([text(f"Try {leak}"), chunk({}, "stop")], pattern, tools=[])
        assert (turn.content, turn.calls, turn.finish) == (f"Try {leak}", [], "stop")


def test_where_tools_are_forbidden_the_markup_goes() -> None:
    turn = heal([text(f"Hi {HERMES}"), chunk({}, "stop")], "hermes", tools=[TIDE], tool_choice="none")
    assert (turn.content, turn.calls, turn.finish) == ("Hi ", [], "stop")


# Reasoning.


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_read_from_either_field(field: str) -> None:
    turn = heal([chunk({field: "\nI think."}), chunk({field: " So.\n"}), text("Yes.")])
    assert (turn.reasoning, turn.content) == ("\nI think. So.\n", "Yes.")


def test_reasoning_is_written_to_the_field_that_is_wanted() -> None:
    for field, wanted in (("reasoning", {"reasoning"}), ("both", {"reasoning", "reasoning_content"})):
        out = [*heal_chunks([chunk({"reasoning_content": "hm", "reasoning": "hm"})], reasoning_field=field)]
        assert out[1]["choices"][0]["delta"] == dict.fromkeys(wanted, "hm")


def test_a_special_call_in_reasoning_is_real() -> None:
    turn = heal([chunk({"reasoning": "Look." + KIMI}), text("Done."), chunk({}, "stop")], "kimi")
    assert (turn.reasoning, turn.calls, turn.content) == ("Look.", [CALL], "Done.")


@pytest.mark.parametrize("pattern", ["hermes", "auto"])
def test_a_plain_call_in_reasoning_is_a_draft_unless_the_turn_ends_with_it(pattern: str) -> None:
    reasoning = [chunk({"reasoning_content": piece}) for piece in ("Look.\n", HERMES[:20], HERMES[20:], " Or not.")]
    draft = heal([*reasoning, text("Done."), chunk({}, "stop")], pattern)
    assert (draft.calls, draft.finish) == ([], "stop")
    assert draft.reasoning.split() == f"Look. {HERMES} Or not.".split()
    real = heal([*reasoning[:-1], chunk({}, "stop")], pattern)
    assert (real.reasoning, real.calls, real.finish) == ("Look.", [CALL], "tool_calls")


def test_a_server_that_parses_reasoning_makes_the_prompt_moot() -> None:
    prompt = "<|im_start|>assistant\n<think>\n"
    parsed = heal([chunk({"reasoning_content": "hm"}), text("Yes.")], "qwen3", generation_prompt=prompt)
    assert (parsed.reasoning, parsed.content) == ("hm", "Yes.")
    not_parsed = heal([text("hm</think>\n\nYes.")], "qwen3", generation_prompt=prompt)
    assert (not_parsed.reasoning, not_parsed.content) == ("hm", "Yes.")


# Other fields.


def test_unknown_fields_pass() -> None:
    first = chunk({"role": "assistant", "annotations": [1]}, system_fingerprint="fp", odd={"a": 1})
    last = chunk({}, "stop")
    last["choices"][0]["stop_reason"] = 42
    out = [*heal_chunks([first, text("a"), last])]
    assert out[0]["odd"] == {"a": 1}
    assert out[0]["system_fingerprint"] == "fp"
    assert out[0]["choices"][0]["delta"]["annotations"] == [1]
    assert out[-1]["choices"][0]["stop_reason"] == 42


def with_logprobs(words: list[str]) -> Chunk:
    one = text("".join(words))
    one["choices"][0]["logprobs"] = {"content": [{"token": word, "logprob": -0.5} for word in words]}
    return one


def test_log_probabilities_stay_but_for_calls_and_reasoning() -> None:
    words = ["<think>", "no", "</think>", "\n", "Hel", "lo ", "th", "ere", KIMI[:30], KIMI[30:], "bye"]
    for size in (1, 2, 3, len(words)):
        pieces = [words[at : at + size] for at in range(0, len(words), size)]
        turn = heal([*map(with_logprobs, pieces), chunk({}, "stop")], "kimi")
        tokens = [entry["token"] for entry in turn.logprobs]
        assert tokens == ["\n", "Hel", "lo ", "th", "ere", "bye"]
        assert turn.calls == [CALL]


def test_text_keeps_its_log_probabilities_where_a_newline_before_markup_comes_out_with_it() -> None:
    words = ["Moin.", "\n", "<think>", "no", "</think>", "Now."]
    turn = heal([*(with_logprobs([word]) for word in words), chunk({}, "stop")], "qwen3")
    assert turn.content == "Moin.\nNow."
    assert [entry["token"] for entry in turn.logprobs] == ["Moin.", "Now."]


def test_a_whole_response_without_a_leak_is_the_same() -> None:
    message = {"role": "assistant", "content": "Moin.", "refusal": None, "reasoning_content": None, "tool_calls": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop", "stop_reason": None}
    response = {"id": "r", "object": "chat.completion", "choices": [choice], "usage": {"total_tokens": 3}, "odd": [1]}
    assert ChatCompletionHealer().heal_response(response) == response


# Objects and wrappers.


class Struct(msgspec.Struct):
    choices: list[Any]
    id: str = "c1"


def test_structs_are_read() -> None:
    healed = ChatCompletionHealer("kimi").heal_response(
        Struct([{"index": 0, "message": {"role": "assistant", "content": KIMI}, "finish_reason": "stop"}])
    )
    assert healed["choices"][0]["finish_reason"] == "tool_calls"
    assert healed["choices"][0]["message"]["content"] is None
    (turn,) = accumulate([*heal_chunks([Struct(text(KIMI)["choices"])])]).values()
    assert turn.calls == [CALL]


def test_an_asynchronous_stream_gives_the_same() -> None:
    chunks = [text(KIMI[:40]), text(KIMI[40:]), chunk({}, "stop")]

    async def stream() -> AsyncIterator[Chunk]:
        for one in chunks:
            yield one

    async def collect() -> list[Chunk]:
        return [one async for one in aheal_chunks(stream(), "kimi")]

    assert asyncio.run(collect()) == [*heal_chunks(chunks, "kimi")]


def test_an_upstream_that_raises_completes_nothing() -> None:
    def stream() -> Iterator[Chunk]:
        yield text("a " + KIMI)
        raise ConnectionError

    out = []
    with pytest.raises(ConnectionError):
        out += [*heal_chunks(stream(), "kimi")]
    assert out == []


@pytest.mark.parametrize(
    "options", [{"pattern": "nonsense"}, {"mode": "fast"}, {"reasoning_field": "thoughts"}, {"max_held_chars": 0}]
)
def test_a_bad_option_is_refused_at_once(options: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        ChatCompletionHealer(**options)
    with pytest.raises(TypeError):
        ChatCompletionHealer().feed("data: {}")  # type: ignore[arg-type]


# Any upstream.

_PIECES = st.sampled_from(
    [
        KIMI,
        HERMES,
        KIMI_CALL,
        "<think>",
        "</think>",
        "a `b",
        "\n\n",
        "```",
        "x < y",
        "<tool_call>",
        "{",
        "}",
        '"',
        "hi ",
    ]
)
_NATIVE = st.fixed_dictionaries(
    {"function": st.none() | st.fixed_dictionaries({}, optional={"name": st.sampled_from(["f", "get_tide", ""])})},
    optional={"index": st.integers(0, 3) | st.none(), "id": st.sampled_from(["a", "b", "", "z" * 70]) | st.none()},
)
_ARGUMENTS = st.sampled_from(["", "{}", '{"port":', '"Oban"}', '{"port":"Oban"}', "null", " "]) | st.none()


@st.composite
def deltas(draw: st.DrawFn) -> Chunk:
    kind = draw(st.sampled_from(["content", "content", "reasoning_content", "reasoning", "call", "role"]))
    if kind == "role":
        return {"role": "assistant", "content": ""}
    if kind != "call":
        piece = draw(_PIECES)
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(piece))] * 2)))
        return {kind: draw(st.sampled_from([piece, piece[start:end], None]))}
    entry: Chunk = copy.deepcopy(draw(_NATIVE))
    if entry["function"] is not None:
        entry["function"]["arguments"] = draw(_ARGUMENTS)
    return {"tool_calls": [entry]}


@given(
    st.lists(st.tuples(deltas(), st.sampled_from([None] * 6 + ["stop", "length", "tool_calls"]), st.integers(0, 1))),
    st.sampled_from(["auto", "thinking", "kimi", "hermes", "glm"]),
    st.sampled_from(["atomic", "progressive"]),
    st.booleans(),
)
def test_any_upstream_gets_the_shape(body: list[Any], pattern: str, mode: Any, has_usage: bool) -> None:
    chunks = [chunk(delta, finish, index=index) for delta, finish, index in body]
    tail = [{"id": "c1", "choices": [], "usage": {"total_tokens": 1}}] if has_usage else []
    for turn in accumulate([*heal_chunks(chunks + tail, pattern, mode=mode, tools=[TIDE])]).values():
        assert turn.finish in ("stop", "length", "tool_calls")
        whole = [arguments for _, arguments in turn.calls if isinstance(arguments, dict)]
        assert turn.finish != "tool_calls" or turn.calls
        assert turn.finish != "stop" or not whole


@given(st.lists(_PIECES, max_size=6).map("".join), st.integers(0, 2**32), st.sampled_from(["auto", "kimi", "glm"]))
def test_how_the_text_is_cut_does_not_matter(raw: str, seed: int, pattern: str) -> None:
    chance = random.Random(seed)
    pieces, at = [], 0
    while at < len(raw):
        size = chance.randint(1, 12)
        pieces.append(text(raw[at : at + size]))
        at += size
    first = chunk({"role": "assistant"})
    whole = heal([first, text(raw), chunk({}, "stop")], pattern, tools=[TIDE])
    cut = heal([first, *pieces, chunk({}, "stop")], pattern, tools=[TIDE])
    assert (cut.content, cut.reasoning, cut.calls, cut.finish) == (
        whole.content,
        whole.reasoning,
        whole.calls,
        whole.finish,
    )


# What the upstream sends beside.


def test_fields_of_a_chunk_that_gives_nothing_leave_with_the_next_one() -> None:
    first, second = chunk({"role": "assistant"}), text("<tool_c")
    out = [*heal_chunks([first, {**second, "x_groq": {"id": "r"}}, text("ard>"), chunk({}, "stop")])]
    assert [each.get("x_groq") for each in out] == [None, {"id": "r"}, None]
    assert out[1]["choices"][0]["delta"] == {"content": "<tool_card>"}


def test_fields_of_a_last_chunk_that_gives_nothing_leave_at_the_end() -> None:
    healer = ChatCompletionHealer()
    healer.feed(chunk({"role": "assistant"}))
    assert healer.feed({**chunk({}, "stop"), "citations": ["a"]}) == []
    assert [each.get("citations") for each in healer.finish()] == [["a"]]


def custom(name: str | None, piece: str, *, index: int = 0) -> Chunk:
    inner: Chunk = {"input": piece} if name is None else {"name": name, "input": piece}
    head: Chunk = {} if name is None else {"id": f"c{index}", "type": "custom"}
    return chunk({"tool_calls": [{"index": index, **head, "custom": inner}]})


def test_native_custom_calls_pass_with_their_text() -> None:
    upstream = [
        custom("patch", "*** Be"),
        custom(None, "gin {"),
        custom("patch", "", index=1),
        native("f", "{}", index=2),
    ]
    out = [*heal_chunks([*upstream, chunk({}, "tool_calls")])]
    entries = [entry for each in out for entry in each["choices"][0]["delta"].get("tool_calls", [])]
    assert entries == [
        {"index": 0, "id": "c0", "type": "custom", "custom": {"name": "patch", "input": ""}},
        {"index": 0, "custom": {"input": "*** Be"}},
        {"index": 0, "custom": {"input": "gin {"}},
        {"index": 1, "id": "c1", "type": "custom", "custom": {"name": "patch", "input": ""}},
        {"index": 2, "id": "n1", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"index": 2, "function": {"arguments": "{}"}},
    ]
    assert out[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_custom_calls_of_a_whole_response_pass() -> None:
    call = {"id": "c", "type": "custom", "custom": {"name": "patch", "input": "x = {"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    response = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    assert ChatCompletionHealer().heal_response(response) == response


@pytest.mark.parametrize("mode", ["atomic", "progressive"])
def test_an_upstream_that_fails_gives_its_text_and_completes_nothing(mode: Any) -> None:
    healer = ChatCompletionHealer(mode=mode)
    out = healer.feed(text("Moin <think"))
    out += healer.feed(chunk({"content": "<b>"}, index=1)) + healer.feed(chunk({"content": HERMES[:-14]}, index=2))
    out += healer.interrupt()
    assert {each["choices"][0]["finish_reason"] for each in out} == {None}
    contents = {
        index: "".join(d["content"] or "" for d in map(delta_of(index), out) if "content" in d) for index in (0, 1)
    }
    assert contents == {0: "Moin <think", 1: "<b>"}
    pieces = [entry["function"]["arguments"] for d in map(delta_of(2), out) for entry in d.get("tool_calls", [])]
    assert "}}" not in "".join(pieces)
    assert mode == "progressive" or not pieces
    assert healer.finish() == []


def delta_of(index: int) -> Any:
    return lambda each: each["choices"][0]["delta"] if each["choices"][0]["index"] == index else {}


def test_what_was_done_is_counted() -> None:
    broken = KIMI.replace('"Oban"}', '"Oban",}')
    healer = ChatCompletionHealer(tools=[TIDE])
    for body in ([text(broken)], [text(KIMI), native("get_tide", '{"port": "Oban"}')], [text(KIMI[:-60])]):
        for each in [*body, chunk({}, "stop")]:
            healer.feed(each)
        healer.finish()
    assert healer.counts.calls == 1
    assert healer.counts.repairs == {"trailing-comma": 1}
    assert healer.counts.dropped == {"native-copy": 1, "unfinished": 1}


def test_healed_calls_do_not_wait_without_bound() -> None:
    healer = ChatCompletionHealer("kimi", tools=[TIDE])
    many = "".join(KIMI_CALL.replace(":0", f":{number}").replace("Oban", f"Oban {number}") for number in range(300))
    out = healer.feed(text(f"<|tool_calls_section_begin|>{many}"))
    sent = sum("id" in entry for each in out for entry in each["choices"][0]["delta"].get("tool_calls", []))
    assert sent > 200
    assert healer.held_chars < 5000
    out += healer.feed(native("get_tide", '{"port":"Oban 0"}')) + healer.finish()
    (turn,) = accumulate(out).values()
    assert len(turn.calls) == 300
