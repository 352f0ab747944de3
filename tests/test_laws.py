"""The laws of the package, each a property of every dialect in the factory's table.

1 split, 2 round trip, 3 arguments, 4 latency, 5 linear, 6 total, 7 no leak, 8 literal safety, 9 clean is free. What is
checked in several places stands in `laws.py`, the streams in `streams.py`.
"""

import asyncio
import gc
import json
import re
import sys
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from types import FrameType
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dialects import aiter_events, create_inband_scanner, dialect_names, get_dialect, iter_events, scan
from dialects.engine.tape import Tape
from dialects.events import Event, Stopped, Text, ThinkingDelta, ThinkingEnd, ToolArgDelta, ToolDropped, ToolEnd
from dialects.messages import ToolCall
from tests.laws import (
    SPECIAL_TOKENS,
    check_arguments,
    check_no_leak,
    check_nothing_lost,
    check_order,
    check_splits,
    exactly,
    said_by,
)
from tests.streams import (
    Frame,
    Stream,
    Turn,
    counter,
    cut,
    cuts,
    frame,
    joined,
    jsonish,
    markup,
    quotes,
    recovery,
    scan_pieces,
    stream_texts,
    streams,
    tools_for,
    turns,
    whole,
)

every_dialect = pytest.mark.parametrize("name", dialect_names())
examples = settings(max_examples=max(15, settings().max_examples // len(dialect_names())))
"""The dialects share the time that the tests may take."""


def calls_of(events: list[Event]) -> list[ToolEnd]:
    return [event for event in events if isinstance(event, ToolEnd)]


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Text))


def thinking_of(events: list[Event]) -> str:
    return "".join(event.thinking for event in events if isinstance(event, ThinkingEnd))


def meant(call: ToolCall | ToolEnd) -> tuple[str, str]:
    return call.name, exactly(call.arguments)


# 1. Split.


@every_dialect
@examples
@given(data=st.data())
def test_the_events_do_not_depend_on_how_the_stream_is_cut(name: str, data: st.DataObject) -> None:
    stream = data.draw(streams(name))
    check_splits(stream, [cut(stream.text, data.draw(cuts(stream.text))) for _ in range(2)])


@every_dialect
@examples
@given(data=st.data())
def test_a_rendered_turn_may_be_cut_in_two_anywhere(name: str, data: st.DataObject) -> None:
    turn = data.draw(turns(name))
    stream = Stream(name, turn.body, {"tools": turn.tools}, data.draw(st.booleans()))
    near = data.draw(st.integers(0, len(stream.text)))
    check_splits(stream, [cut(stream.text, [at]) for at in range(max(near - 20, 0), min(near + 20, len(stream.text)))])


@every_dialect
@examples
@given(data=st.data())
def test_a_whole_text_an_iterable_and_an_asynchronous_one_say_the_same(name: str, data: st.DataObject) -> None:
    stream = data.draw(streams(name))
    pieces = cut(stream.text, data.draw(cuts(stream.text)))
    events = whole(name, stream.text, truncated=stream.truncated, **stream.options)
    result = scan(stream.text, name, truncated=stream.truncated, id_factory=counter(), **stream.options)
    assert result.text == text_of(events)
    assert result.thinking == thinking_of(events)
    assert result.tool_calls == calls_of(events)
    assert result.dropped == [event for event in events if isinstance(event, ToolDropped)]
    assert result.stopped == next((event.reason for event in events if isinstance(event, Stopped)), None)

    async def collect() -> list[Event]:
        async def source() -> AsyncIterator[str]:
            for piece in pieces:
                yield piece

        return [event async for event in aiter_events(source(), name, id_factory=counter(), **stream.options)]

    events = whole(name, stream.text, **stream.options)
    assert joined(iter_events(pieces, name, id_factory=counter(), **stream.options)) == events
    assert joined(asyncio.run(collect())) == events


@every_dialect
@examples
@given(data=st.data())
def test_after_flush_the_scanner_is_as_new(name: str, data: st.DataObject) -> None:
    first, second = data.draw(streams(name)), data.draw(stream_texts(name))
    ids: list[Callable[[], str]] = [counter()]
    scanner = create_inband_scanner(name, **first.options, id_factory=lambda: ids[0]())
    scanner.feed(first.text)
    scanner.flush(truncated=first.truncated)
    ids[0] = counter()
    assert joined(scanner.feed(second) + scanner.flush()) == whole(name, second, **first.options)


# 2. Round trip, 8. Literal safety, 9. Clean is free.


@every_dialect
@examples
@given(data=st.data())
def test_what_the_renderer_wrote_is_read_back(name: str, data: st.DataObject) -> None:
    turn = data.draw(turns(name))
    strict = data.draw(st.booleans())
    tools = data.draw(st.sampled_from([turn.tools, None]) if frame(name) else st.just(turn.tools))
    prompt = data.draw(st.sampled_from(["", get_dialect(name).generation_prompt]))
    ending = data.draw(st.sampled_from(["", get_dialect(name).turn_text("assistant", None, "BODY").split("BODY")[1]]))
    pieces = data.draw(st.sampled_from([[turn.body], list(turn.body), cut(turn.body, data.draw(cuts(turn.body)))]))
    truncated = data.draw(st.booleans())
    events = scan_pieces(
        name, [*pieces, ending], tools=tools, strict=strict, generation_prompt=prompt, truncated=truncated
    )
    assert thinking_of(events).strip("\n") == turn.thinking.strip("\n")
    assert text_of(events).strip("\n") == turn.text.strip("\n")
    assert [meant(call) for call in calls_of(events)] == [meant(call) for call in turn.calls]
    assert [call.repairs for call in calls_of(events)] == [()] * len(turn.calls)
    assert not [event for event in events if isinstance(event, ToolDropped)]


@every_dialect
@examples
@given(data=st.data())
def test_ids_survive_where_the_dialect_writes_them(name: str, data: st.DataObject) -> None:
    turn = data.draw(turns(name, min_calls=1))
    dialect = get_dialect(name)
    written = dialect.with_written_ids(turn.calls)
    events = scan_pieces(name, [dialect.render_assistant_tool_calls(turn.calls, tools=turn.tools)], tools=turn.tools)
    for before, after in zip(written, calls_of(events), strict=True):
        if before.id and dialect.is_written_id(before.id):
            assert after.id == before.id


@every_dialect
@examples
@given(data=st.data())
def test_a_scanned_call_is_written_as_it_was(name: str, data: st.DataObject) -> None:
    turn = data.draw(turns(name, min_calls=1))
    text = get_dialect(name).render_assistant_tool_calls(turn.calls, tools=turn.tools)
    calls = calls_of(scan_pieces(name, [text], tools=turn.tools))
    assert get_dialect(name).render_assistant_tool_calls(calls, tools=turn.tools) == text
    for call in calls:
        assert call.raw_block in text


@every_dialect
@examples
@given(data=st.data())
def test_markup_inside_a_string_is_a_character_sequence_like_any_other(name: str, data: st.DataObject) -> None:
    if not frame(name):
        pytest.skip("the strings are plain text")
    inner = data.draw(turns(name, min_calls=1))
    dialect = get_dialect(name)
    literal = data.draw(
        st.sampled_from([inner.body, dialect.turn_text("assistant", None, inner.body), recovery(name), *markup(name)])
    )
    before, after = data.draw(st.text(max_size=3)), data.draw(st.text(max_size=3))
    value = (before + literal + after).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    arguments = {"a": value, "nested": [{value: value}], "n": 1}
    turn = Turn(name, calls=(ToolCall(None, "write", arguments), ToolCall(None, "later", {"ok": True})))
    for pieces in ([turn.body], list(turn.body)):
        events = scan_pieces(name, pieces, strict=data.draw(st.booleans()))
        assert [meant(call) for call in calls_of(events)] == [meant(call) for call in turn.calls]
        assert [call.repairs for call in calls_of(events)] == [(), ()]
        assert not text_of(events).strip()


@every_dialect
@examples
@given(data=st.data())
def test_markup_inside_plain_text_is_literal_where_no_legal_continuation_follows_it(
    name: str, data: st.DataObject
) -> None:
    if frame(name):
        pytest.skip("the strings are JSON")
    words = st.sampled_from(["x", "word ", ". ", "\n\n- ", "é"])
    tokens = [token for token in markup(name) if token not in quotes(name)]
    parts = data.draw(st.lists(st.tuples(st.sampled_from(tokens), words), min_size=1, max_size=5))
    value = data.draw(words) + "".join(token + word for token, word in parts)
    calls = (ToolCall(None, "write", {"a": value, "n": 1, "b": value}), ToolCall(None, "later", {"ok": True}))
    turn = Turn(name, calls=calls, tools=tools_for(calls))
    for pieces in ([turn.body], list(turn.body)):
        events = scan_pieces(name, pieces, tools=turn.tools, strict=data.draw(st.booleans()))
        assert [meant(call) for call in calls_of(events)] == [meant(call) for call in turn.calls]
        assert [call.repairs for call in calls_of(events)] == [(), ()]
        assert not text_of(events).strip()


@every_dialect
@examples
@given(data=st.data())
def test_a_turn_that_was_cut_off_gives_only_whole_calls(name: str, data: st.DataObject) -> None:
    """Where arguments are pairs of tags, nothing tells that another pair is missing, but that the turn was cut off."""
    truncated = data.draw(st.booleans())
    turn = data.draw(turns(name, min_calls=1, marked=truncated))
    at = data.draw(st.integers(0, len(turn.body)))
    events = scan_pieces(name, [turn.body[:at]], tools=turn.tools, truncated=truncated)
    found, wanted = calls_of(events), list(turn.calls)
    if found and not frame(name) and not truncated and found[-1].repairs == ("missing-call-end",):
        last = list(wanted[len(found) - 1].arguments.items())[: len(found[-1].arguments)]
        wanted[len(found) - 1] = ToolCall(None, found[-1].name, dict(last))
    assert [meant(call) for call in found] == [meant(call) for call in wanted[: len(found)]]
    assert {event.reason for event in events if isinstance(event, ToolDropped)} <= {"unfinished"}


@every_dialect
@examples
@given(data=st.data())
def test_strict_gives_the_same_calls_but_those_that_needed_a_repair(name: str, data: st.DataObject) -> None:
    stream = data.draw(streams(name))
    tolerant = {**stream.options, "strict": False}
    strict = {**stream.options, "strict": True}
    tolerated = calls_of(whole(name, stream.text, truncated=stream.truncated, **tolerant))
    clean = calls_of(whole(name, stream.text, truncated=stream.truncated, **strict))
    assert [call.raw_block for call in clean] == [call.raw_block for call in tolerated if not call.repairs]


# 3. Arguments.


@every_dialect
@examples
@given(data=st.data())
def test_the_pieces_of_a_call_are_its_arguments_even_if_they_needed_repair(name: str, data: st.DataObject) -> None:
    stream = data.draw(streams(name))
    for pieces in ([stream.text], list(stream.text)):
        events = scan_pieces(name, pieces, truncated=stream.truncated, **stream.options)
        check_order(events)
        check_arguments(events)


@every_dialect
@examples
@given(data=st.data())
def test_the_pieces_of_broken_arguments_are_the_repaired_ones(name: str, data: st.DataObject) -> None:
    around = frame(name)
    if around is None:
        pytest.skip("the arguments are not JSON")
    text = around.around(data.draw(jsonish(name)))
    for pieces in ([text], list(text), cut(text, data.draw(cuts(text)))):
        events = scan_pieces(name, pieces)
        check_order(events)
        check_arguments(events)


# 4. Latency.


def lead_characters(name: str) -> str:
    """What a marker may begin with; that may be white space which the template writes before it."""
    scanner = get_dialect(name).scanner
    assert scanner is not None
    return "".join({token[0] for token in markup(name)} | {*scanner.text_markers.leads})


@every_dialect
@examples
@given(data=st.data())
def test_text_that_cannot_begin_a_marker_leaves_at_once(name: str, data: st.DataObject) -> None:
    plain = st.text(st.characters(exclude_characters=lead_characters(name)), min_size=1)
    scanner = create_inband_scanner(name)
    said = shown = ""
    for chunk in data.draw(st.lists(plain, min_size=1)):
        events = scanner.feed(chunk)
        said, shown = said + chunk, shown + text_of(events)
        if name in SPECIAL_TOKENS:
            assert events == [Text(chunk)]
            assert scanner.held_chars == 0
        else:
            assert shown == said.rstrip("\n"), "only newlines wait: they may belong to markup"
    assert shown + text_of(scanner.flush()) == said


@every_dialect
@examples
@given(data=st.data())
def test_thinking_that_cannot_begin_a_marker_leaves_at_once(name: str, data: st.DataObject) -> None:
    opened, _ = get_dialect(name).render_thinking("HOLDER").split("HOLDER")
    plain = st.text(st.characters(exclude_characters=lead_characters(name)), min_size=1)
    scanner = create_inband_scanner(name)
    scanner.feed(opened)
    said = shown = ""
    for chunk in data.draw(st.lists(plain, min_size=1)):
        said += chunk
        shown += "".join(event.delta for event in scanner.feed(chunk) if isinstance(event, ThinkingDelta))
        assert shown == said.strip("\n"), "only newlines wait: they may belong to markup"


@every_dialect
@examples
@given(data=st.data())
def test_the_inside_of_a_string_argument_leaves_at_once(name: str, data: st.DataObject) -> None:
    calls = (ToolCall(None, "write", {"n": 1, "text": "HOLDER"}),)
    tools = tools_for(calls)
    before, after = Turn(name, calls=calls, tools=tools).body.split("HOLDER")
    waits = '"\\' + ("}]" if quotes(name) else "")
    harmless = st.characters(exclude_characters=lead_characters(name) + waits, exclude_categories=["Cs", "Cc", "Zs"])
    scanner = create_inband_scanner(name, tools=tools)
    scanner.feed(before)
    said = data.draw(st.lists(st.text(harmless, min_size=1), min_size=1))
    for chunk in said:
        events = scanner.feed(chunk)
        assert "".join(event.delta for event in events if isinstance(event, ToolArgDelta)) == chunk
        assert scanner.held_chars == 0
    (call,) = calls_of(scanner.feed(after) + scanner.flush())
    assert call.arguments == {"n": 1, "text": "".join(said)}


@every_dialect
@examples
@given(data=st.data())
def test_of_a_clean_turn_without_markup_in_its_strings_little_is_held(name: str, data: st.DataObject) -> None:
    """At most a marker, a header, a key or a scalar, with the white space and the token that confirm it."""
    turn = data.draw(turns(name, marked=False))
    keys = [key for call in turn.calls for key in call.arguments]
    scalars = [repr(value) for call in turn.calls for value in call.arguments.values() if not isinstance(value, str)]
    longest = max(map(len, [*map(repr, keys), *scalars, *(call.name for call in turn.calls), ""]))
    bound = 2 * max(map(len, markup(name))) + 2 * longest + 80
    scanner = create_inband_scanner(name, tools=turn.tools)
    for char in turn.body:
        scanner.feed(char)
        assert 0 <= scanner.held_chars <= bound
    scanner.flush()
    assert scanner.held_chars == 0


# 5. Linear.


class Work:
    """Counts what a scanner does: lines of Python, and the characters that its tape searches, copies or reads again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines = 0
        self.characters = 0
        self._patch(monkeypatch, "feed", lambda tape, *_: len(tape.text))
        self._patch(monkeypatch, "seek", lambda tape, *_: len(tape.text))
        self._patch(monkeypatch, "slice", lambda tape, start, end: end - start)

    def _patch(self, monkeypatch: pytest.MonkeyPatch, method: str, cost: Callable[..., int]) -> None:
        original = getattr(Tape, method)

        def counted(tape: Tape, *arguments: Any) -> Any:
            result = original(tape, *arguments)
            self.characters += cost(tape, *arguments)
            return result

        monkeypatch.setattr(Tape, method, counted)

    def of(self, action: Callable[[], object]) -> tuple[int, int]:
        self.lines = self.characters = 0
        before = sys.gettrace()

        def trace(frame: FrameType, event: str, _: object) -> Any:
            if "dialects" not in frame.f_code.co_filename:
                return None
            self.lines += 1
            return trace

        sys.settrace(trace)
        try:
            action()
        finally:
            sys.settrace(before)
        return self.lines, self.characters


def shapes(name: str, around: Frame | None) -> Iterator[tuple[str, Callable[[int], str]]]:
    """Texts that grow with n."""
    opener = markup(name)[0]
    one_call = Turn(name, calls=(ToolCall(None, "place", {"text": "a b", "n": 1}),)).body
    thought, _ = get_dialect(name).render_thinking("HOLDER").split("HOLDER")
    yield "prose", lambda n: "plain words, " * n
    yield "less-than", lambda n: "a < b <| c " * n
    yield "white space", lambda n: " \n" * (3 * n)
    yield "newlines after thinking", lambda n: get_dialect(name).render_thinking("x") + "\n" * (8 * n)
    yield "lead characters", lambda n: opener[0] * (8 * n)
    yield "half markers", lambda n: opener[:-1] * n
    yield "markers", lambda n: opener * n
    yield "thinking", lambda n: thought + "hmm\n\n" * n
    yield "many calls", lambda n: one_call * (n // 4)
    yield "one long string", lambda n: Turn(name, calls=(ToolCall(None, "place", {"t": 'a "b"\\\n' * n}),)).body
    if around is None:
        return
    for what, arguments in ARGUMENT_SHAPES.items():
        yield what, lambda n, arguments=arguments: around.around(arguments(n))  # type: ignore[misc]
        yield f"{what}, never closed", lambda n, arguments=arguments: around.before + arguments(n)  # type: ignore[misc]
        yield f"{what}, then calls", lambda n, arguments=arguments: around.around(arguments(n)) + one_call * 9  # type: ignore[misc]
    end = around.after
    yield "candidates in a string", lambda n: around.around('{"a": "' + (end + " ") * (n // 4) + '"}')
    yield "candidates in a string, never closed", lambda n: around.before + '{"a": "' + (end + " ") * (n // 4)
    yield "candidates in many strings", lambda n: around.around('{"a": ["' + (end + '", "') * (n // 4) + '"]}')
    yield "candidates after a fault", lambda n: around.around('{"a": "b" c" ' + (end + " ") * (n // 4))
    yield "a call in every call", lambda n: (around.before + '{"a": "') * (n // 4)
    yield "numbers", lambda n: around.around('{"a": ' + "1" * 4 * n + "}")
    yield "spaces in arguments", lambda n: around.around('{"a":' + " " * 4 * n + "1}")
    yield "an endless header", lambda n: around.before[:-1] + "x" * 4 * n


ARGUMENT_SHAPES: dict[str, Callable[[int], str]] = {
    "many members": lambda n: "{" + ",".join(f'"k{i}":{i}' for i in range(n)) + "}",
    "elements": lambda n: '{"a": [' + "1, " * n + "1]}",
    "escapes": lambda n: '{"a": "' + "\\u00e9\\n" * n + '"}',
    "raw newlines": lambda n: '{"a": "' + "b\n" * (2 * n) + '"}',
    "invalid escapes": lambda n: '{"a": "' + "\\d " * (2 * n) + '"}',
    "lone surrogates": lambda n: '{"a": "' + "\\ud83d " * n + '"}',
    "inner quotes": lambda n: '{"a": "' + 'say "hi" now ' * n + '"}',
    "unmatched quotes": lambda n: '{"a": ' + '"b ' * n,
    "python": lambda n: "{'a': [" + "True, None, " * n + "]}",
    "duplicate keys": lambda n: "{" + '"a": 1, ' * n + '"b": 2}',
    "deep": lambda n: '{"a":' * n,
    "openers": lambda n: "{" * n,
    "key after key": lambda n: '{"a" ' * n,
    "prose": lambda n: "I do not know, " * n,
    "backslashes": lambda n: '{"a": "' + "\\" * n + '"}',
}


@every_dialect
def test_four_times_the_stream_is_four_times_the_work(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    small, factor = 80, 4
    too_much: list[str] = []
    for what, shape in shapes(name, frame(name)):
        counts = []
        for n in (small, small * factor):
            text = shape(n)
            pieces = [text[i : i + 3] for i in range(0, len(text), 3)]
            counts.append(work.of(lambda pieces=pieces: scan_pieces(name, pieces)))  # type: ignore[misc]
        (lines, characters), (more_lines, more_characters) = counts
        if more_lines > 1.3 * factor * lines + 1500 or more_characters > 1.3 * factor * characters + 10000:
            too_much.append(f"{what}: {counts}")
    assert not too_much, "\n".join(too_much)


@every_dialect
def test_a_long_call_takes_a_few_times_its_arguments_size_in_memory(name: str) -> None:
    file = "Line of a file.\n" * 25_000
    text = Turn(name, calls=(ToolCall(None, "write", {"text": file}),)).body
    pieces = [text[i : i + 4] for i in range(0, len(text), 4)]
    scanner = create_inband_scanner(name)
    tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        for piece in pieces:
            scanner.feed(piece)
        scanner.flush()
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak < 5 * sys.getsizeof(file)


@every_dialect
def test_long_prose_takes_no_memory(name: str) -> None:
    scanner = create_inband_scanner(name)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(20_000):
            scanner.feed("A sentence < 80 characters, of no weight at all. ")
        assert tracemalloc.get_traced_memory()[1] - before < 20_000
    finally:
        tracemalloc.stop()


@every_dialect
def test_calls_that_are_over_take_no_memory(name: str) -> None:
    """They are gone at once, not when Python next looks for cycles."""
    body = Turn(name, "hm", "On it.", (ToolCall(None, "write", {"text": "Line.\n" * 30_000}),)).body
    scanner = create_inband_scanner(name)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(8):
            scanner.feed(body)
        assert tracemalloc.get_traced_memory()[0] - before < 6 * len(body)
    finally:
        tracemalloc.stop()
        gc.enable()


@every_dialect
@examples
@given(data=st.data())
def test_a_call_longer_than_allowed_is_dropped_and_the_next_one_is_read(name: str, data: st.DataObject) -> None:
    dialect = get_dialect(name)
    long = dialect.render_assistant_tool_calls([ToolCall(None, "long", {"text": "y" * 3000})])
    size = data.draw(st.integers(1, 2900))
    good = dialect.render_assistant_tool_calls([ToolCall(None, "later", {"ok": True})])
    size = max(size, len(good))
    text = long + good
    for pieces in ([text], list(text), cut(text, data.draw(cuts(text)))):
        events = scan_pieces(name, pieces, max_call_chars=size)
        check_order(events)
        (dropped,) = (event for event in events if isinstance(event, ToolDropped))
        assert (dropped.reason, dropped.name, len(dropped.raw_block)) == ("too-large", "long", size)
        (call,) = calls_of(events)
        assert (call.name, call.arguments) == ("later", {"ok": True})
        assert not text_of(events).strip()


# 6. Total.


@every_dialect
@examples
@given(data=st.data())
def test_nothing_is_lost(name: str, data: st.DataObject) -> None:
    stream = data.draw(streams(name))
    events = scan_pieces(name, [stream.text], truncated=stream.truncated, **stream.options)
    check_order(events)
    check_nothing_lost(stream, events)


@every_dialect
@examples
@given(data=st.data())
def test_whatever_came_before_a_later_good_turn_is_read_unharmed(name: str, data: st.DataObject) -> None:
    dialect = get_dialect(name)
    before = data.draw(stream_texts(name)) + recovery(name)
    tools = data.draw(st.sampled_from([None, ()]))
    assume(not any(isinstance(event, Stopped) for event in scan_pieces(name, [before + "."], tools=tools)))
    opener = data.draw(st.sampled_from(["", dialect.generation_prompt]))
    good = dialect.render_assistant_tool_calls(
        [ToolCall(None, "later", {"ok": True, "text": "fine"}), ToolCall(None, "last", {"n": [1, None]})]
    )
    text = before + opener + good
    for pieces in ([text], list(text)):
        later, last = calls_of(scan_pieces(name, pieces, tools=tools))[-2:]
        assert (later.name, later.arguments) == ("later", {"ok": True, "text": "fine"})
        assert (last.name, last.arguments) == ("last", {"n": [1, None]})
        assert set(last.repairs) <= {"duplicate-id"}


@every_dialect
@examples
@given(data=st.data())
def test_a_broken_call_does_not_cost_the_next_one_of_its_batch(name: str, data: st.DataObject) -> None:
    if frame(name) is None:
        pytest.skip("the arguments are not JSON")
    dialect = get_dialect(name)
    bad, good = ToolCall(None, "bad", {"holder": "HOLDER"}), ToolCall(None, "good", {"ok": True})
    before, after = dialect.render_assistant_tool_calls([bad, good]).split('{"holder":"HOLDER"}')
    arguments = data.draw(jsonish(name))
    assume(not any(token in arguments for token in dialect.control_tokens))
    text = before + arguments + after
    for pieces in ([text], list(text)):
        events = scan_pieces(name, pieces)
        call = calls_of(events)[-1]
        assert (call.name, call.arguments, call.repairs) == ("good", {"ok": True}, ())
        first = next(event for event in events if isinstance(event, ToolEnd | ToolDropped))
        assert first.name == "bad"


@every_dialect
@examples
@given(data=st.data())
def test_a_call_that_the_prompt_began_is_a_call_like_any_other(name: str, data: st.DataObject) -> None:
    """Where a server forces a tool, the prompt ends inside the call."""
    turn = data.draw(turns(name, min_calls=1))
    at = data.draw(st.integers(0, len(turn.body)))
    prompt = get_dialect(name).generation_prompt + turn.body[:at]
    events = scan_pieces(name, [turn.body[at:]], tools=turn.tools, generation_prompt=prompt)
    check_order(events)
    check_arguments(events)
    found = [meant(call) for call in calls_of(events)]
    assert found == [meant(call) for call in turn.calls][len(turn.calls) - len(found) :]


@every_dialect
def test_an_id_that_the_model_wrote_first_is_not_minted_again(name: str) -> None:
    dialect = get_dialect(name)
    calls = [ToolCall(None, "f", {}), ToolCall(None, "f", {})]
    written = [call.id for call in dialect.with_written_ids(calls) if call.id]
    if not written:
        pytest.skip("the dialect writes no ids")
    text = dialect.render_tool_call(ToolCall(written[0], "f", {})) * 2
    ids = iter([*written, "fresh-1", "fresh-2"])
    events = scan_pieces(name, [text], id_factory=lambda: next(ids))
    assert len({call.id for call in calls_of(events)}) == 2


@every_dialect
@pytest.mark.parametrize("wrong", [b"text", None, 1, ["text"], bytearray(b"x")])
def test_what_is_no_text_raises_a_type_error_at_once(name: str, wrong: Any) -> None:
    scanner = create_inband_scanner(name)
    with pytest.raises(TypeError, match="feed takes a str"):
        scanner.feed(wrong)
    with pytest.raises(TypeError):
        scan(wrong, name)
    with pytest.raises(TypeError):
        list(iter_events([wrong], name))
    assert joined(scanner.feed("fine") + scanner.flush()) == [Text("fine")]


# 7. No leak.


@every_dialect
@examples
@given(data=st.data())
def test_no_special_token_is_visible(name: str, data: st.DataObject) -> None:
    stream = data.draw(streams(name))
    stream = stream._replace(options={**stream.options, "parse_thinking": True, "unknown_tools": "keep"})
    check_no_leak(stream, scan_pieces(name, [stream.text], truncated=stream.truncated, **stream.options))


@every_dialect
@examples
@given(data=st.data())
def test_no_control_token_of_a_rendered_turn_is_visible(name: str, data: st.DataObject) -> None:
    """Wherever the turn ends. Plain-text tags: an opener with no more than a word, or the beginning of a tag, behind it
    may be prose."""
    turn = data.draw(turns(name))
    before, after = get_dialect(name).turn_text("assistant", None, "BODY").split("BODY")
    at = data.draw(st.integers(0, len(turn.body)))
    for text in (before + turn.body + after, before + turn.body[:at] + after, before + turn.body[:at]):
        events = scan_pieces(name, list(text), tools=turn.tools, truncated=data.draw(st.booleans()))
        leaks = {token for event in events for token in get_dialect(name).control_tokens if token in said_by(event)}
        if name not in SPECIAL_TOKENS and leaks:
            tokens = get_dialect(name).control_tokens
            calls = get_dialect(name).render_assistant_tool_calls([ToolCall(None, "f", {})]).lstrip("\n")
            thought = get_dialect(name).render_thinking("x")
            openers = (calls, thought) if thought.startswith("`") else (calls,)
            (leak,) = leaks
            assert leak in {max(filter(opener.startswith, tokens), key=len) for opener in openers}
            rest_of_tag = "" if leak.endswith(">") else "[^<>]*>?"
            assert re.search(rf"{re.escape(leak)}{rest_of_tag}\w*\s*(?:</?\w*)?\Z", turn.body[:at])
        else:
            assert not leaks


@every_dialect
@pytest.mark.parametrize("depth", [150, 200, 201, 250, 5000])
def test_arguments_that_nest_too_deep_are_dropped_even_where_a_repair_finds_them(name: str, depth: int) -> None:
    around = frame(name)
    if around is None:
        pytest.skip("the arguments are not JSON")
    deep = '{"a":' * depth + "1" + "}" * depth
    begun = '{"a":' * depth
    for arguments in (
        deep,
        begun,
        json.dumps(deep),
        f"[{deep}]",
        f"x {deep}",
        '{"' + begun,
        '{"b": "c" d", "a":' + deep,
    ):
        events = scan_pieces(name, [around.around(arguments) + around.around('{"ok":true}')])
        check_order(events)
        check_arguments(events)
        first, second = (event for event in events if isinstance(event, ToolEnd | ToolDropped))
        assert isinstance(second, ToolEnd)
        assert second.arguments == {"ok": True}
        if isinstance(first, ToolDropped):
            assert first.reason == "malformed"
        elif depth > 200:
            assert first.repairs
            assert first.arguments == {}, "what nests too deep is no argument"
