"""Tags that are plain text: where they are used, and where they are only mentioned.

For every dialect whose markers a person may write as well. Each stream is read in one piece, one character at a time,
and in every way of cutting it in two; all must say the same.
"""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dialects import dialect_names, get_dialect, scan
from dialects.engine.plain_tags import THINK_BEGIN
from dialects.events import Event, Stopped, Text, ThinkingEnd, ToolDropped, ToolEnd
from dialects.messages import ToolCall
from tests.laws import (
    SPECIAL_TOKENS,
    check_arguments,
    check_no_leak,
    check_nothing_lost,
    check_order,
    check_splits,
)
from tests.streams import Stream, cut, joined, raw_closers, scan_pieces, tools_for

plain_tag_dialects = pytest.mark.parametrize(
    "name",
    [
        name
        for name in dialect_names()
        if THINK_BEGIN in getattr(get_dialect(name).scanner, "thinking_tags", ()) and name not in SPECIAL_TOKENS
    ],
)
examples = settings(max_examples=max(5, settings().max_examples // 20))

EXAMPLE = ToolCall(None, "example", {"path": "a"})
LATER = ToolCall(None, "later", {"path": "b"})
PROSE = st.sampled_from(["", "So:", "I call it like this, see.", "a < b", "é 😀", "* item", "    indented"])
LINES = st.lists(PROSE, max_size=3).map("\n".join)
RUNS = st.tuples(st.sampled_from("`~"), st.integers(3, 6)).map(lambda it: it[0] * it[1])


def written(name: str, call: ToolCall = EXAMPLE) -> str:
    """A call as its dialect writes it."""
    return get_dialect(name).render_assistant_tool_calls([call], tools=tools_for([call])).strip("\n")


def on_a_line(name: str, call: ToolCall = EXAMPLE) -> str:
    """The same without the newlines between its tags."""
    return written(name, call).replace("\n", "")


def opener(name: str) -> str:
    """The tag that opens a call."""
    text = written(name)
    return text[: text.index(">") + 1]


def result_opener(name: str) -> str:
    """The tag that opens the results of calls."""
    text = get_dialect(name).render_tool_results([{"role": "tool", "content": "ok", "name": "example"}])
    return text[text.index("<", 1 if text.startswith("<observation>") else 0) : text.index(">", 14) + 1]


def closers(name: str) -> tuple[str, ...]:
    """The closers in a call, innermost first, the call's own last."""
    text = written(name)
    found = raw_closers(name) or (text[text.rindex("</") :],)
    assert found[-1] == text[text.rindex("</") :]
    return found


def read(name: str, text: str, *, truncated: bool = False, prompt: str = "") -> list[Event]:
    """The events of a text, the same however it is cut."""
    options = {"tools": tools_for([EXAMPLE, LATER]), "generation_prompt": prompt}
    stream = Stream(name, text, options, truncated)
    events = check_splits(stream, (cut(text, [at]) for at in range(1, len(text))))
    check_order(events)
    check_arguments(events)
    in_one_piece = scan_pieces(name, [text], truncated=truncated, **options)
    check_nothing_lost(stream, in_one_piece)
    check_no_leak(stream, in_one_piece)
    return events


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Text))


def thinking_of(events: list[Event]) -> list[str]:
    return [event.thinking for event in events if isinstance(event, ThinkingEnd)]


def calls_of(events: list[Event]) -> list[tuple[str, tuple[str, ...]]]:
    """Names and repairs of the calls; their arguments are right."""
    calls = [event for event in events if isinstance(event, ToolEnd)]
    wanted = {call.name: call.arguments for call in (EXAMPLE, LATER)}
    assert [call.arguments for call in calls] == [wanted[call.name] for call in calls]
    return [(call.name, call.repairs) for call in calls]


def dropped(events: list[Event]) -> list[tuple[str | None, str, str]]:
    return [(event.name, event.reason, event.raw_block) for event in events if isinstance(event, ToolDropped)]


def stopped(events: list[Event]) -> str | None:
    return next((event.reason for event in events if isinstance(event, Stopped)), None)


class TestFences:
    @plain_tag_dialects
    @examples
    @given(before=LINES, run=RUNS, info=st.sampled_from(["", "xml", " json"]), inside=LINES, longer=st.integers(0, 2))
    def test_a_call_in_a_closed_fence_is_an_example(
        self, name: str, before: str, run: str, info: str, inside: str, longer: int
    ) -> None:
        start = f"{before}\n" if before else ""
        prose = f"{start}{run}{info}\n{inside}\n{written(name)}\n{run}{run[0] * longer}"
        events = read(name, f"{prose}\nThat was it.\n{written(name, LATER)}")
        assert calls_of(events) == [("later", ())]
        assert text_of(events).rstrip("\n") == f"{prose}\nThat was it."

    @plain_tag_dialects
    @examples
    @given(before=LINES, run=RUNS, data=st.data())
    def test_a_call_in_a_fence_that_nothing_closes_is_real(
        self, name: str, before: str, run: str, data: st.DataObject
    ) -> None:
        other = "~" if run[0] == "`" else "`"
        behind = data.draw(st.sampled_from(["", run[:-1], other * 3, other * 7, f"{run} x", f"x {run}"]))
        start = f"{before}\n" if before else ""
        events = read(name, f"{start}{run}\n{written(name)}\n{behind}")
        assert calls_of(events) == [("example", ())]
        assert dropped(events) == []

    @plain_tag_dialects
    @examples
    @given(run=RUNS, inner=RUNS)
    def test_a_fence_in_a_longer_one_or_one_of_another_kind_closes_nothing(
        self, name: str, run: str, inner: str
    ) -> None:
        assume(inner[0] != run[0] or len(inner) < len(run))
        prose = f"{run}\n{inner}\n{written(name)}\n{inner}\n{written(name)}\n{run}"
        events = read(name, f"{prose}\n{written(name, LATER)}")
        assert (calls_of(events), text_of(events).rstrip("\n")) == ([("later", ())], prose)

    @plain_tag_dialects
    @pytest.mark.parametrize("line", ["``` x", "``` ` x", "~~~ x"])
    def test_a_line_that_only_begins_like_the_fences_end_leaves_it_open_wherever_it_is_cut(
        self, name: str, line: str
    ) -> None:
        prose = f"{line[:3]}\n{line}\n{written(name)}\n{line[:3]}"
        events = read(name, f"{prose}\n{written(name, LATER)}")
        assert (calls_of(events), text_of(events).rstrip("\n")) == ([("later", ())], prose)

    @plain_tag_dialects
    @pytest.mark.parametrize("run", ["```", "~~~~"])
    def test_several_fences(self, name: str, run: str) -> None:
        prose = f"{run}\n{written(name)}\n{run}\nand\n{run}xml\n{written(name)}\n{run}"
        events = read(name, f"{prose}\n{written(name, LATER)}")
        assert (calls_of(events), text_of(events).rstrip("\n")) == ([("later", ())], prose)

    @plain_tag_dialects
    @pytest.mark.parametrize("tag", ["<think>", "</think>", "OPENER", "CLOSER", "<tool_response>", "</tool_response>"])
    def test_every_tag_may_be_mentioned_in_a_closed_fence(self, name: str, tag: str) -> None:
        tag = tag.replace("OPENER", opener(name)).replace("CLOSER", closers(name)[-1])
        prose = f"```\n{tag}\nx {tag}\n```"
        events = read(name, f"{written(name, LATER)}\n{prose}\nok")
        assert (calls_of(events), text_of(events), thinking_of(events)) == ([("later", ())], f"{prose}\nok", [])

    @plain_tag_dialects
    def test_two_backticks_open_no_fence(self, name: str) -> None:
        assert calls_of(read(name, f"``\n{written(name)}\n``\n")) == [("example", ())]


class TestCodeSpans:
    @plain_tag_dialects
    @examples
    @given(before=PROSE, ticks=st.integers(1, 3), behind=PROSE, data=st.data())
    def test_a_call_in_a_code_span_that_closes_on_its_line_is_a_mention(
        self, name: str, before: str, ticks: int, behind: str, data: st.DataObject
    ) -> None:
        assume(ticks < 3 or before.strip())
        inside = data.draw(st.sampled_from(["", "x ", "`" if ticks > 1 else "", "``" if ticks != 2 else "` "]))
        assume(ticks == 1 or not inside.startswith("`") or ticks == 3)
        run = "`" * ticks
        spaced = f"{inside} " if inside else ""
        prose = f"{before}{run} {spaced}{on_a_line(name)} {run}{behind}"
        assume("``" not in spaced or ticks != 2)
        events = read(name, f"{prose}\n{written(name, LATER)}")
        assert (calls_of(events), text_of(events)) == ([("later", ())], prose)

    @plain_tag_dialects
    @pytest.mark.parametrize("ending", ["", " and on", "``", "\n`", "\nnext line` "])
    def test_a_call_behind_a_backtick_that_nothing_closes_on_its_line_is_real(self, name: str, ending: str) -> None:
        events = read(name, f"use `{on_a_line(name)}{ending}")
        assert calls_of(events) == [("example", ())]
        assert text_of(events).startswith("use `")

    @plain_tag_dialects
    def test_a_call_behind_a_closed_span_is_real(self, name: str) -> None:
        events = read(name, f"use `x`: {on_a_line(name)} and `y`")
        assert (calls_of(events), text_of(events)) == ([("example", ())], "use `x`:  and `y`")

    @plain_tag_dialects
    @pytest.mark.parametrize("tag", ["<think>", "</think>", "OPENER", "CLOSER", "<tool_response>", "</tool_response>"])
    def test_every_tag_may_be_mentioned_in_a_code_span(self, name: str, tag: str) -> None:
        tag = tag.replace("OPENER", opener(name)).replace("CLOSER", closers(name)[-1])
        events = read(name, f"{written(name, LATER)}\n`{tag}` and ``{tag}``.")
        assert (calls_of(events), text_of(events)) == ([("later", ())], f"`{tag}` and ``{tag}``.")
        assert (stopped(events), thinking_of(events)) == (None, [])


class TestMentions:
    @plain_tag_dialects
    @examples
    @given(
        before=st.sampled_from(["The tag ", "So: ", "é "]),
        behind=st.sampled_from([" opens a call.", ".", " .\n", ", "]),
    )
    def test_an_opener_without_a_call_in_the_middle_of_a_line_is_prose(
        self, name: str, before: str, behind: str
    ) -> None:
        prose = f"{before}{opener(name)}{behind}"
        for closer in ("", f" and then {closers(name)[-1]} too"):
            events = read(name, prose + closer)
            assert (text_of(events), calls_of(events), dropped(events)) == (prose + closer, [], [])

    @plain_tag_dialects
    @examples
    @given(size=st.integers(10, 370), before=st.sampled_from(["", "Hm.\n", "Hm.\n  "]))
    def test_a_block_that_is_no_call_is_dropped_where_its_opener_begins_a_line(
        self, name: str, size: int, before: str
    ) -> None:
        block = opener(name) + ("not a call " * 40)[:size] + closers(name)[-1]
        events = read(name, f"{before}{block}\n{written(name, LATER)}")
        assert dropped(events) == [(None, "malformed", block)]
        assert calls_of(events) == [("later", ())]
        assert text_of(events).strip() == before.strip()

    @plain_tag_dialects
    @settings(max_examples=3)
    @given(size=st.integers(401, 600))
    def test_an_opener_whose_closer_is_more_than_400_characters_away_is_prose(self, name: str, size: int) -> None:
        prose = opener(name) + ("not a call " * 60)[:size] + closers(name)[-1]
        events = read(name, f"{prose}\n{written(name, LATER)}")
        assert (text_of(events), dropped(events), calls_of(events)) == (prose, [], [("later", ())])

    @plain_tag_dialects
    @examples
    @given(size=st.integers(10, 300))
    def test_a_block_that_is_no_call_in_the_middle_of_a_line_is_prose(self, name: str, size: int) -> None:
        prose = "See " + opener(name) + ("not a call " * 40)[:size] + closers(name)[-1]
        events = read(name, f"{prose}\n{written(name, LATER)}")
        assert (text_of(events), dropped(events), calls_of(events)) == (prose, [], [("later", ())])

    @plain_tag_dialects
    def test_a_real_call_may_stand_in_the_middle_of_a_line(self, name: str) -> None:
        events = read(name, f"I read it: {written(name)} Done.")
        assert (calls_of(events), text_of(events)) == ([("example", ())], "I read it:  Done.")

    @plain_tag_dialects
    def test_a_stray_opener_before_a_call_costs_nothing(self, name: str) -> None:
        for between in ("", "\n", " \n "):
            events = read(name, f"So:\n{opener(name)}{between}{written(name)}\nDone.")
            slip = ("stray-marker",) if opener(name).startswith("<invoke") else ()
            assert (calls_of(events), "".join(text_of(events).split())) == ([("example", slip)], "So:Done.")


class TestClosers:
    @plain_tag_dialects
    @examples
    @given(before=st.sampled_from(["", "Hm.\n", "Hm.\n  ", "Hm.\n\n\t"]), which=st.integers(0, 9), behind=PROSE)
    def test_a_closer_without_an_opener_is_swallowed_at_the_start_of_a_line(
        self, name: str, before: str, which: int, behind: str
    ) -> None:
        closer = closers(name)[which % len(closers(name))]
        events = read(name, before + closer + behind)
        assert not any(closer in event.text for event in events if isinstance(event, Text))
        assert "".join(text_of(events).split()) == "".join((before + behind).split())

    @plain_tag_dialects
    @examples
    @given(which=st.integers(0, 9), behind=st.sampled_from(["", " is how it ends", ".", "\nx"]))
    def test_a_closer_without_an_opener_is_prose_in_the_middle_of_a_line(
        self, name: str, which: int, behind: str
    ) -> None:
        prose = f"Write {closers(name)[which % len(closers(name))]}{behind}"
        if prose.endswith(closers(name)[-1]) and len(closers(name)) == 1:
            assert text_of(read(name, prose)) == prose
        events = read(name, prose)
        assert (text_of(events), dropped(events)) == (prose, [])

    @plain_tag_dialects
    @pytest.mark.parametrize("between", ["", "\n", " "])
    def test_a_run_of_closers_in_call_closing_order_is_swallowed(self, name: str, between: str) -> None:
        run = closers(name)
        if len(run) == 1:
            pytest.skip("the dialect has one closer")
        for start in range(len(run) - 1):
            events = read(name, f"Done.{between.join(run[start:])} So")
            assert "".join(text_of(events).split()) == "Done.So"

    @plain_tag_dialects
    @pytest.mark.parametrize("between", ["", "\n", " \n"])
    def test_another_closer_behind_a_run_of_them_is_swallowed_too(self, name: str, between: str) -> None:
        events = read(name, f"x{''.join(closers(name)[-2:])}{between}{closers(name)[-1]}\nf")
        assert len(closers(name)) == 1 or "".join(text_of(events).split()) == "xf"

    @plain_tag_dialects
    def test_closers_in_another_order_are_prose(self, name: str) -> None:
        run = closers(name)
        if len(run) == 1:
            pytest.skip("the dialect has one closer")
        prose = f"Not {run[-1]} and {run[0]}, but {run[-1]}{run[0]}."
        assert text_of(read(name, prose)) == prose

    @plain_tag_dialects
    @pytest.mark.parametrize("text", ["a</think>b", "</think>ab", "ab</think>", "a</think></think>b"])
    def test_the_end_of_thinking_that_nobody_began_is_swallowed(self, name: str, text: str) -> None:
        events = read(name, text)
        assert (text_of(events), thinking_of(events)) == ("ab", [])


class TestThinking:
    @plain_tag_dialects
    @pytest.mark.parametrize(
        ("before", "text"),
        [
            ("", ""),
            ("\n", ""),
            ("Hm.\n", "Hm."),
            ("Hm.\n  ", "Hm."),
            ("<think>x</think>", ""),
            ("CALL", ""),
            ("CALL\n", ""),
        ],
    )
    def test_it_opens_at_the_start_of_a_line_and_behind_markup(self, name: str, before: str, text: str) -> None:
        events = read(name, f"{before.replace('CALL', written(name))}<think>\nIt is.\n</think>\nYes.")
        assert thinking_of(events)[-1] == "It is."
        assert (text_of(events).replace("  ", "").replace("\n", "")) == f"{text}Yes."

    @plain_tag_dialects
    @pytest.mark.parametrize("before", ["I ", "Hm.\nWrite ", "`x` "])
    def test_in_the_middle_of_a_line_it_is_prose(self, name: str, before: str) -> None:
        events = read(name, f"{before}<think> to begin.\nYes.")
        assert (text_of(events), thinking_of(events)) == (f"{before}<think> to begin.\nYes.", [])

    @plain_tag_dialects
    @pytest.mark.parametrize("pair", ["<think></think>", "<think>\n\n</think>\n\n", "\n<think>\n</think>"])
    def test_an_empty_pair_gives_no_events(self, name: str, pair: str) -> None:
        assert read(name, f"{pair}Yes.") == [Text("Yes.")]
        assert calls_of(read(name, pair + written(name))) == [("example", ())]

    @plain_tag_dialects
    def test_the_end_of_the_stream_ends_it(self, name: str) -> None:
        assert thinking_of(read(name, "<think>Hm")) == ["Hm"]
        assert thinking_of(read(name, "Hm", prompt="<think>\n")) == ["Hm"]

    @plain_tag_dialects
    @examples
    @given(before=LINES, behind=LINES, drafts=st.integers(1, 3), opened=st.booleans())
    def test_a_call_in_thinking_that_is_closed_later_is_a_draft(
        self, name: str, before: str, behind: str, drafts: int, opened: bool
    ) -> None:
        thinking = f"{before}\n{written(name)}\n" * drafts + behind
        start, prompt = ("", "<think>\n") if opened else ("<think>\n", "")
        events = read(name, f"{start}{thinking}\n</think>\n\n{written(name, LATER)}", prompt=prompt)
        assert calls_of(events) == [("later", ())]
        assert thinking_of(events) == [thinking.strip("\n")]
        assert text_of(events) == ""

    @plain_tag_dialects
    @examples
    @given(before=LINES, behind=PROSE)
    def test_a_call_in_thinking_that_nobody_closes_is_real(self, name: str, before: str, behind: str) -> None:
        events = read(name, f"<think>{before}\n{written(name)}\n{written(name, LATER)}{behind}")
        assert calls_of(events) == [("example", ("unclosed-thinking",)), ("later", ())]
        assert thinking_of(events) == ([before.strip("\n")] if before.strip("\n") else [])
        assert text_of(events) == behind

    @plain_tag_dialects
    def test_the_end_of_thinking_in_a_string_of_a_draft_ends_nothing(self, name: str) -> None:
        call = ToolCall(None, "example", {"path": "a</think>b"})
        events = read(name, f"<think>Hm.{on_a_line(name, call)}")
        (end,) = (event for event in events if isinstance(event, ToolEnd))
        assert (end.arguments, end.repairs) == (call.arguments, ("unclosed-thinking",))
        events = read(name, f"<think>Hm.{on_a_line(name, call)} So.</think>{written(name, LATER)}")
        assert thinking_of(events) == [f"Hm.{on_a_line(name, call)} So."]
        assert calls_of(events) == [("later", ())]

    @plain_tag_dialects
    @pytest.mark.parametrize("run", ["```", "~~~~"])
    def test_a_call_in_a_closed_fence_in_it_is_an_example_even_if_nobody_closes_the_thinking(
        self, name: str, run: str
    ) -> None:
        thinking = f"Like so:\n{run}\n{written(name)}\n{run}\nNow."
        events = read(name, f"<think>{thinking}\n{written(name, LATER)}")
        assert calls_of(events) == [("later", ("unclosed-thinking",))]
        assert thinking_of(events) == [thinking]

    @plain_tag_dialects
    def test_neither_the_fence_nor_the_thinking_around_a_real_call_is_closed(self, name: str) -> None:
        events = read(name, f"<think>Like so:\n```\n{written(name)}")
        assert calls_of(events) == [("example", ("unclosed-thinking",))]
        assert thinking_of(events) == ["Like so:\n```"]

    @plain_tag_dialects
    def test_a_fence_in_it_is_over_with_it(self, name: str) -> None:
        events = read(name, f"<think>```\nx</think>{written(name)}\n```\n")
        assert (calls_of(events), thinking_of(events)) == ([("example", ())], ["```\nx"])

    @plain_tag_dialects
    def test_a_call_that_the_cut_off_end_leaves_open_in_it_never_runs(self, name: str) -> None:
        text = written(name)
        events = read(name, f"<think>Hm.{text[: text.index('path') + 6]}", truncated=True)
        assert calls_of(events) == []


class TestResults:
    @plain_tag_dialects
    @pytest.mark.parametrize("before", ["", "\n", "\n\n  ", "\nI wait.\n"])
    def test_a_result_that_the_model_writes_itself_stops_it(self, name: str, before: str) -> None:
        events = read(name, f"{written(name)}{before}{result_opener(name)}\nok\nIt is ok.")
        assert (calls_of(events), stopped(events)) == ([("example", ())], "fabricated-result")
        assert text_of(events).strip() == before.strip()

    @plain_tag_dialects
    def test_without_a_call_before_it_or_in_the_middle_of_a_line_it_is_prose(self, name: str) -> None:
        prose = f"{result_opener(name)} is what comes back."
        assert (text_of(read(name, prose)), stopped(read(name, prose))) == (prose, None)
        events = read(name, f"{written(name)}\nThen {result_opener(name)} comes.")
        assert (text_of(events), stopped(events)) == (f"Then {result_opener(name)} comes.", None)

    @plain_tag_dialects
    def test_nothing_follows_the_stop_not_even_a_newline_that_was_held(self, name: str) -> None:
        for run in ("```", "~~~"):
            events = read(name, f"{run}\n`{on_a_line(name)}`\n{result_opener(name)}")
            assert isinstance(events[-1], Stopped)


class TestLimits:
    @plain_tag_dialects
    @pytest.mark.parametrize("prompt", ["", "<think>\n"])
    @pytest.mark.parametrize("size", [1, 10, 30])
    def test_a_call_that_is_too_large_is_dropped_for_that_wherever_it_stands(
        self, name: str, prompt: str, size: int
    ) -> None:
        text = written(name)
        for pieces in ([text], list(text)):
            events = scan_pieces(name, pieces, generation_prompt=prompt, max_call_chars=size)
            (call,) = (event for event in events if isinstance(event, ToolDropped))
            assert (call.reason, text_of(events)) == ("too-large", "")
            assert call.raw_block in text
            assert 0 <= size - len(call.raw_block) < len("<parameter"), "at most a marker that the limit cuts is left"

    @plain_tag_dialects
    def test_what_is_held_at_most_bounds_how_far_is_read_ahead(self, name: str) -> None:
        """However much of the stream arrives at once: else each of many calls would read all that follows it."""
        text = (written(name) + "\n") * 500
        for start in ("<think>", "```\n"):
            events = scan_pieces(name, [start + text], max_held_chars=50)
            check_order(events)
            assert joined(events) == joined(scan_pieces(name, list(start + text), max_held_chars=50))

    @plain_tag_dialects
    def test_a_token_behind_a_second_object_that_is_none_is_not_visible(self, name: str) -> None:
        (token,) = get_dialect(name).control_tokens[:1]
        block = on_a_line(name).removesuffix(closers(name)[-1])
        events = read(name, f"x {block}{{{token}\n")
        assert not any(token in event.text for event in events if isinstance(event, Text))


class TestHeaders:
    @plain_tag_dialects
    def test_another_header_of_the_assistant_continues_the_turn(self, name: str) -> None:
        dialect = get_dialect(name)
        start, end = dialect.turn_text("assistant", None, "BODY").split("BODY")
        events = read(name, f"{start}Hi.{end}{start}{written(name)}{end}{start}Bye.{end}")
        assert ("".join(text_of(events).split()), calls_of(events), stopped(events)) == (
            "Hi.Bye.",
            [("example", ())],
            None,
        )

    @plain_tag_dialects
    @pytest.mark.parametrize("role", ["user", "system"])
    def test_a_header_of_somebody_else_stops_it(self, name: str, role: str) -> None:
        _, end = get_dialect(name).turn_text("assistant", None, "BODY").split("BODY")
        if not get_dialect(name).turn_text(role, None, "").strip():
            pytest.skip("that role's turn has no header")
        events = read(name, f"Hi.{end}{get_dialect(name).turn_text(role, None, 'What is it?')}")
        assert (text_of(events), stopped(events)) == ("Hi.", "fabricated-turn")

    @plain_tag_dialects
    def test_a_token_alone_never_stops_it(self, name: str) -> None:
        tokens = [token for token in get_dialect(name).control_tokens if token.startswith("<|")]
        for token in tokens:
            for text in (f"Hi.{token}", f"Hi.{token}\n"):
                events = read(name, text)
                assert (text_of(events), stopped(events)) == ("Hi.", None), text


@pytest.mark.parametrize("name", ["qwen3", "glm", "qwen3-coder"])
def test_thinking_in_the_prompt_that_stays_in_the_text_puts_no_newline_before_the_first_word(name: str) -> None:
    call = get_dialect(name).render_assistant_tool_calls([{"name": "refresh_board", "arguments": {"all": 1}}])
    prompt = "<think>\n\n</think>\n\n"
    assert scan(f"{call}\nDone.", name, generation_prompt=prompt, parse_thinking=False).text == "Done."
