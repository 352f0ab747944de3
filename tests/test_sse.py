"""Event streams over bytes: how they are read, however they are cut, and how a chat completion in one is healed."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects.healing import ChatCompletionHealer
from dialects.healing.event_stream import EventStreamHealer
from dialects.healing.sse import Comment, EventReader, ServerEvent, TooLarge, write_comment, write_event

CALL = '<|tool_call_begin|>functions.get_tide:0<|tool_call_argument_begin|>{"port":"Büsum"}<|tool_call_end|>'
LEAK = f"Moin.<|tool_calls_section_begin|>{CALL}<|tool_calls_section_end|>"
LINE_ENDS = st.sampled_from(["\n", "\r", "\r\n"])
TEXTS = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=8)
LINES = st.one_of(
    st.just(""),
    st.builds("{}{}{}".format, st.sampled_from(["data", "event", "id", ""]), st.sampled_from([":", ": "]), TEXTS),
    TEXTS,
)


def read(data: bytes, cuts: list[int] | None = None) -> list[Any]:
    reader = EventReader()
    edges = [0, *sorted(cuts or []), len(data)]
    items: list[Any] = []
    for start, end in pairwise(edges):
        items += reader.feed(data[start:end])
    return items + reader.end()


def chunk(content: str, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    delta = {"content": content} if content else {}
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **fields}


def event(value: object) -> bytes:
    return write_event(json.dumps(value, ensure_ascii=False))


def heal(data: bytes, size: int = 0, **options: Any) -> bytes:
    healer = EventStreamHealer(ChatCompletionHealer(), **options)
    pieces = [data[at : at + size] for at in range(0, len(data), size)] if size else [data]
    return b"".join(map(healer.feed, pieces)) + healer.finish()


class Answer:
    """What a client reads. Raises if there is not exactly one `[DONE]`, at the end."""

    def __init__(self, data: bytes) -> None:
        items = read(data)
        events = [item for item in items if isinstance(item, ServerEvent)]
        self.comments = [item.text for item in items if isinstance(item, Comment)]
        assert [each.data for each in events].count("[DONE]") == 1
        assert events.pop().data == "[DONE]"
        assert all(each.whole for each in events)
        self.chunks = [json.loads(each.data) for each in events]
        self.errors = [each["error"] for each in self.chunks if each.get("error")]
        self.types = [each.event for each in events]
        choices = [each["choices"][0] for each in self.chunks if each.get("choices")]
        self.content = "".join(each["delta"].get("content") or "" for each in choices)
        self.finish = [each["finish_reason"] for each in choices if each["finish_reason"]]
        entries = [entry for each in choices for entry in each["delta"].get("tool_calls", [])]
        self.names = [entry["function"]["name"] for entry in entries if "name" in entry["function"]]
        self.arguments = "".join(entry["function"]["arguments"] for entry in entries)


# Reading.


@given(st.lists(st.tuples(LINES, LINE_ENDS), max_size=12), st.booleans(), st.lists(st.integers(0, 200), max_size=20))
def test_the_same_is_read_however_the_bytes_are_cut(lines: list[tuple[str, str]], bom: bool, cuts: list[int]) -> None:
    data = (b"\xef\xbb\xbf" if bom else b"") + "".join(map("".join, lines)).encode()
    whole = read(data)
    assert read(data, [cut for cut in cuts if cut < len(data)]) == whole
    assert read(data, list(range(len(data)))) == whole


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_every_kind_of_line_end_is_one(end: str) -> None:
    lines = [": hi", "data: a", "data:b", "event: x", "id: 7", "", "data:  c", "", ""]
    expected = [Comment("hi"), ServerEvent("a\nb", "x"), ServerEvent(" c")]
    assert read(end.join(lines).encode()) == expected


def test_an_event_is_complete_at_a_lone_cr_and_does_not_wait_for_what_follows() -> None:
    reader = EventReader()
    assert reader.feed(b"data: a\r\r") == [ServerEvent("a")]
    assert reader.feed(b"\ndata: b\r\n\r") == [ServerEvent("b")]
    assert reader.feed(b"\n\n") == []


def test_other_separators_of_lines_are_text() -> None:
    text = "a\u2028b\x0bc\x85d"
    assert read(write_event(text)) == [ServerEvent(text)]


def test_a_comment_inside_an_event_comes_before_it() -> None:
    assert read(b"data: a\n: ping\ndata: b\n\n") == [Comment("ping"), ServerEvent("a\nb")]


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    assert read(b"data: a\xff\xc3\n\n") == [ServerEvent("a\ufffd\ufffd")]


def test_a_stream_that_breaks_off_says_so() -> None:
    assert read(b"data: a\n\ndata: b") == [ServerEvent("a"), ServerEvent("b", whole=False)]
    assert read("data: ü".encode()[:-1]) == [ServerEvent("\ufffd", whole=False)]


def test_a_reader_is_as_new_after_the_end() -> None:
    reader = EventReader()
    reader.feed(b"data: a\r")
    reader.end()
    assert reader.feed(b"\xef\xbb\xbfdata: b\n\n") == [ServerEvent("b")]


@pytest.mark.parametrize("piece", [b"x" * 60, b"data: x\n"], ids=["one line", "many lines"])
def test_an_event_that_is_too_large_is_refused(piece: bytes) -> None:
    reader = EventReader(max_event_bytes=50)
    before = reader.feed(b"data: a\n\n")
    assert [item for _ in range(20) for item in reader.feed(piece)] == [TooLarge(50)]
    assert before == [ServerEvent("a")]
    assert reader.end() == []


def test_comments_and_small_events_never_add_up_to_a_large_one() -> None:
    reader = EventReader(max_event_bytes=50)
    assert len(reader.feed(b": keep-alive\n" * 100 + b"data: 12345678901234567890\n\n" * 100)) == 200


def test_only_bytes_are_read() -> None:
    with pytest.raises(TypeError, match="bytes, not str"):
        EventReader().feed("data: a")  # type: ignore[arg-type]


def test_what_is_written_is_read_back() -> None:
    assert read(write_event("a\nb", "error") + write_comment("ping") + write_event("[DONE]")) == [
        ServerEvent("a\nb", "error"),
        Comment("ping"),
        ServerEvent("[DONE]"),
    ]


# Healing.


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 64])
def test_a_leak_is_healed_however_the_bytes_are_cut(size: int) -> None:
    pieces = [LEAK[at : at + 5] for at in range(0, len(LEAK), 5)]
    data = b"".join(event(chunk(piece)) for piece in pieces) + event(chunk("", "stop")) + write_event("[DONE]")
    answer = Answer(heal(data.replace(b"\n", b"\r\n"), size))
    assert (answer.content, answer.names, answer.arguments) == ("Moin.", ["get_tide"], '{"port":"Büsum"}')
    assert answer.finish == ["tool_calls"]


@given(st.lists(st.integers(0, 900), max_size=30))
def test_any_cut_of_the_bytes_gives_the_same_stream(cuts: list[int]) -> None:
    data = event(chunk(LEAK[:30])) + b": ping\r\n" + event(chunk(LEAK[30:])) + event(chunk("", "stop"))
    healer = EventStreamHealer(ChatCompletionHealer())
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    out = b"".join(healer.feed(data[a:b]) for a, b in pairwise(edges)) + healer.finish()
    assert out == heal(data)


@pytest.mark.parametrize("end", [b"", write_event("[DONE]"), write_event("[DONE]") * 2, b"data: [DONE]"])
def test_done_is_sent_exactly_once(end: bytes) -> None:
    answer = Answer(heal(event(chunk("Moin.")) + event(chunk("", "stop")) + end))
    assert (answer.content, answer.finish) == ("Moin.", ["stop"])


def test_nothing_follows_done() -> None:
    assert Answer(heal(event(chunk("a")) + write_event("[DONE]") + event(chunk("b")))).content == "a"


@pytest.mark.parametrize(
    "junk", ["data:\n\n", "data: : keepalive\n\n", "data: null\n\n", "data: 7\n\n", "id: 3\n\n", "\n"]
)
def test_data_that_would_kill_clients_is_swallowed(junk: str) -> None:
    answer = Answer(heal(event(chunk("a")) + junk.encode() + event(chunk("b"))))
    assert (answer.content, answer.errors) == ("ab", [])


def test_comments_pass_between_events() -> None:
    answer = Answer(heal(b": OPENROUTER PROCESSING\n\n" + event(chunk("a")) + b":\n"))
    assert (answer.comments, answer.content) == (["OPENROUTER PROCESSING", ""], "a")


@pytest.mark.parametrize(
    ("data", "message", "kept"),
    [
        ('{"error": {"message": "overloaded", "type": "server_error", "code": 503}}', "overloaded", {"code": 503}),
        ('{"error": "overloaded"}', "overloaded", {"type": "upstream_error"}),
        ('{"error": {"detail": "no"}}', "no", {"detail": "no"}),
        (
            '{"object": "error", "message": "too long", "type": "BadRequestError"}',
            "too long",
            {"type": "BadRequestError"},
        ),
    ],
)
def test_an_error_event_reaches_the_client_in_one_form(data: str, message: str, kept: dict[str, Any]) -> None:
    answer = Answer(heal(event(chunk("Moin <tool")) + f"data: {data}\n\n".encode() + event(chunk("never"))))
    (error,) = answer.errors
    assert error["message"] == message
    assert error.items() >= {"param": None, **kept}.items()
    assert (answer.content, answer.finish) == ("Moin <tool", [])


@pytest.mark.parametrize("data", ["event: error\ndata: boom\n\n", 'event: error\ndata: {"message": "boom"}\n\n'])
def test_an_event_of_type_error_stays_one(data: str) -> None:
    answer = Answer(heal(event(chunk("a")) + data.encode()))
    assert ([error["message"] for error in answer.errors], answer.types[-1]) == (["boom"], "error")


def test_error_null_is_no_error() -> None:
    assert Answer(heal(event(chunk("a", error=None)))).errors == []


@pytest.mark.parametrize("cut", range(len(LEAK) - 60, len(LEAK) - 30))
def test_an_error_in_the_middle_of_a_call_never_completes_it(cut: int) -> None:
    broken = event({"error": {"message": "gone"}})
    atomic = Answer(heal(event(chunk(LEAK[:cut])) + broken))
    assert (atomic.names, atomic.finish, len(atomic.errors)) == ([], [], 1)
    healer = EventStreamHealer(ChatCompletionHealer(mode="progressive"))
    progressive = Answer(healer.feed(event(chunk(LEAK[:cut])) + broken) + healer.finish())
    assert progressive.finish == []
    assert progressive.arguments != '{"port":"Büsum"}'


def test_a_stream_that_ends_in_the_middle_of_an_event_is_an_error() -> None:
    data = event(chunk("a")) + event(chunk("ü"))
    for cut in range(len(event(chunk("a"))) + 8, len(data) - 3):
        answer = Answer(heal(data[:cut]))
        assert (answer.content, answer.finish) == ("a", [])
        assert answer.errors[0]["code"] == "upstream_incomplete"
    assert Answer(heal(data[:-2])).content == "aü"


def test_a_chunk_that_is_no_json_is_an_error_and_not_lost_in_silence() -> None:
    answer = Answer(heal(event(chunk("a")) + b'data: {"choices": [\n\n' + event(chunk("b"))))
    assert (answer.content, answer.errors[0]["code"]) == ("a", "upstream_invalid_json")


def test_an_event_that_is_too_large_ends_the_stream_with_an_error() -> None:
    answer = Answer(heal(event(chunk("a")) + event(chunk("b" * 500)), max_event_bytes=400))
    assert (answer.content, answer.errors[0]["code"]) == ("a", "upstream_event_too_large")


def test_half_characters_and_large_numbers_arrive_as_they_were() -> None:
    data = event(chunk("a", seed=10**30)).replace(b'"a"', b'"\\ud83d"')
    out = Answer(heal(data)).chunks
    assert out[0]["seed"] == 10**30
    assert any(each["choices"][0]["delta"].get("content") == "\ud83d" for each in out)


_KEYS = [
    "index",
    "delta",
    "content",
    "role",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "id",
    "type",
    "custom",
    "input",
    "finish_reason",
    "logprobs",
    "token",
    "usage",
    "choices",
    "error",
    "reasoning",
    "message",
    "object",
]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.sampled_from(["", "0", "stop", LEAK, "\ud83d"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5),
    max_leaves=12,
)


@given(st.lists(_JSON | st.builds(lambda delta: {"choices": [{"index": 0, "delta": delta}]}, _JSON), max_size=4))
def test_whatever_json_an_upstream_sends_there_is_an_answer(values: list[Any]) -> None:
    events = read(heal(b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values)))
    assert [each.data for each in events].count("[DONE]") == 1
    assert all(isinstance(json.loads(each.data), dict) for each in events[:-1])


def test_a_model_that_answers_itself_is_cut_off_when_all_choices_do() -> None:
    one = LEAK + "<|im_system|>tool<|im_middle|>## Return of functions.get_tide:0\nhigh<|im_end|>"
    healer = EventStreamHealer(ChatCompletionHealer(), choices=2)
    first = healer.feed(event(chunk(one)))
    assert not healer.done
    second = healer.feed(event({"choices": [{"index": 1, "delta": {"content": one}, "finish_reason": None}]}))
    assert healer.done
    reasons = [each["choices"][0]["finish_reason"] for each in Answer(first + second).chunks]
    assert [reason for reason in reasons if reason] == ["tool_calls", "tool_calls"]
