"""What comes of gpt-oss's streams, right, sloppy and broken ones. Each is read whole and character by character."""

from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects.events import (
    Event,
    Stopped,
    Text,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolArgDelta,
    ToolDropped,
    ToolEnd,
    ToolStart,
)
from dialects.harmony import CONTROL_TOKENS, HARMONY, HarmonyScanner
from dialects.messages import Message, Tool, ToolCall
from tests.laws import check_arguments, check_order
from tests.streams import cut, cuts, joined

ASSISTANT = "<|start|>assistant"
ANALYSIS, FINAL = "<|channel|>analysis<|message|>", "<|channel|>final<|message|>"
TO_F = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>"
TIDE = Tool("tide", parameters={"properties": {"port": {"type": "string"}}})
RUN = Tool("run", parameters={"properties": {"code": {"type": "string"}, "timeout": {"type": "integer"}}})
SPAN = Tool("span", parameters={"properties": {"first": {"type": "string"}, "last": {"type": "string"}}})


def events_of(pieces: list[str], *, truncated: bool = False, **options: Any) -> list[Event]:
    ids = count(1)
    scanner = HarmonyScanner(id_factory=lambda: f"id-{next(ids)}", **{"generation_prompt": ASSISTANT, **options})
    found = [event for piece in pieces for event in scanner.feed(piece)]
    return joined(found + scanner.flush(truncated=truncated))


def read(text: str, **options: Any) -> list[Event]:
    events = events_of([text], **options)
    assert events_of(list(text), **options) == events
    check_order(events)
    check_arguments(events)
    return events


def shown(text: str, **options: Any) -> str:
    """The text that a stream without calls gives."""
    events = read(text, **options)
    assert all(isinstance(event, Text) for event in events), events
    return "".join(event.text for event in events if isinstance(event, Text))


def thoughts(events: list[Event]) -> list[str]:
    return [event.thinking for event in events if isinstance(event, ThinkingEnd)]


def call(text: str, **options: Any) -> ToolEnd:
    """The only call of a stream, which holds nothing else."""
    events = read(text, **options)
    assert not [event for event in events if not isinstance(event, ToolStart | ToolArgDelta | ToolEnd)], events
    (ended,) = (event for event in events if isinstance(event, ToolEnd))
    return ended


def dropped(text: str, **options: Any) -> ToolDropped:
    (event,) = (event for event in read(text, **options) if isinstance(event, ToolDropped))
    return event


class TestMessages:
    def test_analysis_is_thinking_and_final_is_text(self) -> None:
        assert read(f"{ANALYSIS}Hm.<|end|>{ASSISTANT}{FINAL}Yes.<|return|>") == [
            ThinkingStart(),
            ThinkingDelta("Hm."),
            ThinkingEnd("Hm."),
            Text("Yes."),
        ]

    def test_a_preamble_on_commentary_is_text(self) -> None:
        events = read(f'<|channel|>commentary<|message|>I will look.<|end|>{ASSISTANT}{TO_F}{{"a":1}}<|call|>')
        assert events[0] == Text("I will look.")
        assert isinstance(events[-1], ToolEnd)

    def test_two_analyses_are_two_thinking_blocks(self) -> None:
        assert thoughts(read(f"{ANALYSIS}One.<|end|>{ASSISTANT}{ANALYSIS}Two.<|end|>")) == ["One.", "Two."]

    def test_two_analyses_of_which_the_first_has_no_end_are_two_as_well(self) -> None:
        assert thoughts(read(f"{ANALYSIS}One.{ASSISTANT}{ANALYSIS}Two.")) == ["One.", "Two."]

    def test_a_stream_may_end_inside_thinking(self) -> None:
        assert read(f"{ANALYSIS}I wonder", truncated=True)[-1] == ThinkingEnd("I wonder")

    def test_a_message_may_begin_without_its_end_or_its_start(self) -> None:
        assert read(f"{ANALYSIS}Hm.<|channel|>final<|message|>Yes.")[-2:] == [ThinkingEnd("Hm."), Text("Yes.")]
        assert read(f"{ANALYSIS}Hm.<|end|>{FINAL}Yes.")[-1] == Text("Yes.")

    def test_unparsed_thinking_is_text_without_its_header(self) -> None:
        assert shown(f"{ANALYSIS}Hm. <|end|>{ASSISTANT}{FINAL}Yes.", parse_thinking=False) == "Hm. Yes."

    def test_white_space_between_messages_is_layout(self) -> None:
        assert read(f"{ANALYSIS}Hm.<|end|>\n {ASSISTANT}{FINAL}Yes.<|return|>\n")[-1] == Text("Yes.")

    def test_text_between_messages_is_not_lost(self) -> None:
        assert shown(f"{FINAL}One.<|end|> Two.{ASSISTANT}{FINAL} Three.") == "One.Two. Three."


class TestWhereTheStreamBegins:
    @pytest.mark.parametrize(
        ("prompt", "text"),
        [
            ("", f"{ASSISTANT}{ANALYSIS}Hm.<|end|>"),
            ("", f"{ANALYSIS}Hm."),
            (ASSISTANT, f"{ANALYSIS}Hm."),
            (ASSISTANT, f"{ASSISTANT}{ANALYSIS}Hm."),
            (f"{ASSISTANT}<|channel|>", "analysis<|message|>Hm."),
            (f"{ASSISTANT}<|channel|>analysis", "<|message|>Hm."),
            (f"{ASSISTANT}{ANALYSIS}", "Hm.<|end|>"),
            (f"<|start|>user<|message|>Hi<|end|>{ASSISTANT}{ANALYSIS}", "Hm."),
        ],
    )
    def test_the_prompt_may_have_written_any_part_of_the_header(self, prompt: str, text: str) -> None:
        events = read(text, generation_prompt=prompt)
        assert events == [ThinkingStart(), ThinkingDelta("Hm."), ThinkingEnd("Hm.")]

    def test_the_prompt_may_have_begun_the_answer(self) -> None:
        assert shown(" it is.", generation_prompt=f"{ASSISTANT}{FINAL}Yes,") == " it is."

    def test_the_prompt_may_force_a_call(self) -> None:
        forced = call('{"a":1}<|call|>', generation_prompt=ASSISTANT + TO_F)
        assert (forced.name, forced.arguments, forced.raw_block) == ("f", {"a": 1}, '{"a":1}<|call|>')

    def test_text_without_any_header_is_text(self) -> None:
        assert shown("Hello to you.", generation_prompt="") == "Hello to you."
        assert shown("  Hello to=you.") == "  Hello to=you."

    def test_a_prompt_that_ends_with_the_users_turn_leaves_nothing_open(self) -> None:
        assert shown("Hello.", generation_prompt="<|start|>user<|message|>Hi<|end|>") == "Hello."

    def test_after_a_flush_the_prompt_counts_again(self) -> None:
        scanner = HarmonyScanner(generation_prompt=f"{ASSISTANT}{ANALYSIS}")
        assert thoughts(scanner.feed("a") + scanner.flush()) == ["a"]
        assert thoughts(scanner.feed("b") + scanner.flush()) == ["b"]


class TestCallHeaders:
    @pytest.mark.parametrize(
        "header",
        [
            "<|channel|>commentary to=functions.tide <|constrain|>json<|message|>",
            "<|channel|>commentary to=functions.tide<|constrain|>json<|message|>",
            "<|channel|>commentary to=functions.tide <|constrain|> json <|message|>",
            "<|channel|>commentary to=functions.tide json<|message|>",
            "<|channel|>commentary to=functions.tide code<|message|>",
            "<|channel|>commentary to=functions.tide<|message|>",
            "<|channel|>commentary to=tide <|constrain|>json<|message|>",
            "<|channel|>commentaryto=functions.tide<|message|>",
            "<|channel|>analysis to=functions.tide <|constrain|>json<|message|>",
            "<|channel|>final to=functions.tide <|constrain|>json<|message|>",
            "<|channel|>musing to=functions.tide<|message|>",
            " to=functions.tide<|channel|>commentary json<|message|>",
            "to=functions.tide<|channel|>commentary <|constrain|>json<|message|>",
            " to=functions.tide<|message|>",
            "<|channel|>commentary to=functions.tide<|channel|>commentary to=functions.tide json<|message|>",
        ],
    )
    def test_the_recipient_may_stand_anywhere_in_a_header(self, header: str) -> None:
        for tools in (None, [TIDE]):
            found = call(f'{header}{{"port":"Leith"}}<|call|>', tools=tools)
            assert (found.name, found.arguments, found.repairs) == ("tide", {"port": "Leith"}, ())

    def test_a_call_is_named_before_its_header_has_ended(self) -> None:
        scanner = HarmonyScanner(generation_prompt=ASSISTANT)
        assert scanner.feed("<|channel|>commentary to=functions.tide") == []
        (started,) = scanner.feed(" ")
        assert isinstance(started, ToolStart)
        assert started.name == "tide"

    def test_a_content_type_glued_to_a_known_name_is_told_apart(self) -> None:
        found = call("<|channel|>commentary to=functions.tidejson<|message|>{}<|call|>", tools=[TIDE])
        assert (found.name, found.repairs) == ("tide", ("resolved-name",))
        unknown = call("<|channel|>commentary to=functions.tidejson<|message|>{}<|call|>")
        assert (unknown.name, unknown.repairs) == ("tidejson", ())

    def test_a_header_without_message_token_before_the_arguments(self) -> None:
        for gap in ("", " ", " json", " <|constrain|>json", " <|constrain|>"):
            found = call(f'<|channel|>commentary to=functions.f{gap}{{"a":1}}<|call|>')
            assert (found.arguments, found.repairs) == ({"a": 1}, ("missing-arguments-begin",))

    def test_a_header_that_goes_over_into_prose_is_no_call(self) -> None:
        events = read("<|channel|>commentary to=functions.f Sorry, I cannot.<|end|>")
        assert isinstance(events[1], ToolDropped)
        assert events[1].reason == "malformed"
        assert events[2] == Text("Sorry, I cannot.")

    def test_nobody_called_is_nameless(self) -> None:
        assert dropped("<|channel|>commentary to=<|message|>{}<|call|>").reason == "nameless"

    @pytest.mark.parametrize("recipient", ["user", "all", "assistant"])
    def test_a_message_to_people_is_text(self, recipient: str) -> None:
        assert shown(f"<|channel|>commentary to={recipient}<|message|>Hello.<|end|>") == "Hello."

    @pytest.mark.parametrize("end", range(len("<|channel|>commentary"), len(TO_F)))
    def test_a_stream_that_ends_inside_a_calls_header_shows_nothing_of_it(self, end: int) -> None:
        events = read(TO_F[:end])
        assert not [event for event in events if isinstance(event, Text)], events
        assert [event.reason for event in events if isinstance(event, ToolDropped)] == ["unfinished"] * (
            "to=" in TO_F[:end]
        )


class TestBrokenHeaders:
    @pytest.mark.parametrize(
        ("text", "visible"),
        [
            ("<|channel|>final <|constrain|>response<|message|>It is noon.", "It is noon."),
            ("<|channel|>final json<|message|>{}", "{}"),
            ("<|channel|>finalHello there.", "Hello there."),
            ("<|channel|>final\nHello there.", "\nHello there."),
            ("<|channel|>final Hello there.", " Hello there."),
            ("<|channel|>final<|end|>", ""),
            ("<|channel|>musing<|message|>Hello there.", "Hello there."),
            ("<|channel|>Hello there.", "Hello there."),
            ("<|channel|><|channel|>final<|message|>Hello there.", "Hello there."),
            ("<|message|>Hello there.", "Hello there."),
            ("final<|message|>Hello there.", "Hello there."),
            (" final <|message|>Hello there.", "Hello there."),
            (f"{ASSISTANT}<|message|>Hello there.", "Hello there."),
            (f"{ASSISTANT}final<|message|>Hello there.", "Hello there."),
            (f"{ASSISTANT} Hello there.", " Hello there."),
            (f"<|start|>{FINAL}Hello there.", "Hello there."),
            ("<|start|>final<|message|>Hello there.", "Hello there."),
            ("<|start|>Hello there.", "Hello there."),
            (f"{FINAL}Hello<|message|> there.", "Hello there."),
            (f"{FINAL}Hello<|constrain|> there.", "Hello there."),
        ],
    )
    def test_no_text_is_lost_behind_one_and_nothing_of_it_is_seen(self, text: str, visible: str) -> None:
        assert shown(text) == visible

    def test_a_channel_is_understood_without_its_token(self) -> None:
        assert thoughts(read("analysis<|message|>Hm.<|end|>")) == ["Hm."]
        assert thoughts(read("<|start|>analysis<|message|>Hm.<|end|>")) == ["Hm."]

    def test_a_stray_channel_token_does_not_end_the_thinking(self) -> None:
        assert thoughts(read(f"{ANALYSIS}One, <|channel|>two.<|end|>")) == ["One, two."]

    @pytest.mark.parametrize(
        "text",
        [ASSISTANT[:end] for end in range(7, len(ASSISTANT) + 1)] + [FINAL[:end] for end in range(2, len(FINAL))],
    )
    def test_a_stream_that_ends_inside_a_header_shows_nothing_of_it(self, text: str) -> None:
        assert shown(f"{FINAL}Yes.<|end|>{text}") == "Yes."


class TestArguments:
    def test_tokens_in_a_string_are_characters(self) -> None:
        for token in CONTROL_TOKENS:
            found = call(f'{TO_F}{{"a": "x{token} y", "b": 1}}<|call|>')
            assert (found.arguments, found.repairs) == ({"a": f"x{token} y", "b": 1}, ())

    def test_a_whole_call_in_a_string_is_characters(self) -> None:
        inner = f"<|call|>{ASSISTANT}{TO_F}{{}}<|call|>{ASSISTANT}{FINAL}"
        assert call(f'{TO_F}{{"a": "{inner}"}}<|call|>').arguments == {"a": inner}

    def test_a_string_that_was_never_closed_ends_with_its_call(self) -> None:
        first, second = (
            event
            for event in read(f'{TO_F}{{"a": "x<|call|>{ASSISTANT}{TO_F}{{"a": 2}}<|call|>')
            if isinstance(event, ToolEnd)
        )
        assert first.arguments == {"a": "x"}
        assert first.repairs
        assert (second.arguments, second.repairs) == ({"a": 2}, ())

    @pytest.mark.parametrize("body", ["", " ", "\n"])
    def test_an_empty_body_is_no_arguments(self, body: str) -> None:
        found = call(f"{TO_F}{body}<|call|>")
        assert (found.arguments, found.repairs) == ({}, ("empty-arguments",))
        assert call(f"<|channel|>commentary to=python<|message|>{body}<|call|>").arguments == {}

    def test_a_function_has_json_whatever_it_looks_like(self) -> None:
        header = "<|channel|>commentary to=functions.f<|message|>"
        assert call(f'{header}```json\n{{"a": 1}}\n```<|call|>').arguments == {"a": 1}
        assert call(f'{header}"{{\\"a\\": 1}}"<|call|>').arguments == {"a": 1}


class TestBuiltInTools:
    def test_a_body_that_is_no_json_is_one_string(self) -> None:
        code = ' print("a\\n")\n'
        found = call(f"<|channel|>analysis to=python code<|message|>{code}<|call|>")
        assert (found.name, found.arguments, found.repairs) == ("python", {"input": code}, ())

    def test_a_body_that_is_json_is_json(self) -> None:
        found = call('<|channel|>analysis to=browser.search<|message|> {"query": "tides"}<|call|>')
        assert (found.name, found.arguments) == ("browser.search", {"query": "tides"})

    def test_a_body_that_is_said_to_be_json_is_json(self) -> None:
        found = call('<|channel|>commentary to=python <|constrain|>json<|message|>"{\\"a\\": 1}"<|call|>')
        assert found.arguments == {"a": 1}

    def test_the_string_is_the_only_string_parameter_of_a_declared_tool(self) -> None:
        assert call("<|channel|>analysis to=run<|message|>1<|call|>", tools=[RUN]).arguments == {"code": "1"}
        assert call("<|channel|>analysis to=span<|message|>1<|call|>", tools=[SPAN]).arguments == {"input": "1"}
        assert call("<|channel|>analysis to=run<|message|>1<|call|>", tools=[TIDE]).arguments == {"input": "1"}

    def test_the_string_streams_as_it_arrives(self) -> None:
        scanner = HarmonyScanner(generation_prompt=ASSISTANT)
        scanner.feed("<|channel|>analysis to=python<|message|>x")
        for piece in (" = 1\n", 'print("x")\n'):
            assert [event.delta for event in scanner.feed(piece) if isinstance(event, ToolArgDelta)] == [piece]
            assert scanner.held_chars == 0

    def test_a_token_in_it_counts_only_where_another_message_or_the_end_follows(self) -> None:
        header = "<|channel|>analysis to=python<|message|>"
        code = 'print("<|call|>", "<|end|>", "<|start|>", "<|channel|>")'
        assert call(f"{header}{code}<|call|>").arguments == {"input": code}
        *_, first, text = read(f"{header}{code}<|call|>{ASSISTANT}{FINAL}Done.")
        assert isinstance(first, ToolEnd)
        assert (first.arguments, text) == ({"input": code}, Text("Done."))

    def test_a_lone_surrogate_in_it_is_mended(self) -> None:
        found = call("<|channel|>analysis to=python<|message|>'\ud83d'<|call|>")
        assert (found.arguments, found.repairs) == ({"input": "'\ufffd'"}, ("lone-surrogate",))

    def test_it_may_end_with_the_stream_but_not_be_cut_off(self) -> None:
        text = "<|channel|>analysis to=python<|message|>1 + 1"
        assert (call(text).arguments, call(text).repairs) == ({"input": "1 + 1"}, ())
        assert dropped(text, truncated=True).reason == "unfinished"


class TestEnds:
    @pytest.mark.parametrize(
        ("end", "repairs"),
        [
            ("<|call|>", ()),
            ("", ()),
            ("\n", ()),
            ("<|cal", ()),
            ("<|end|>", ("wrong-call-end",)),
            ("<|return|>", ("wrong-call-end",)),
            (ASSISTANT, ("missing-call-end",)),
        ],
    )
    def test_how_a_call_may_end(self, end: str, repairs: tuple[str, ...]) -> None:
        found = call(f'{TO_F}{{"a": 1}}{end}')
        assert (found.arguments, found.repairs) == ({"a": 1}, repairs)

    def test_a_call_that_was_cut_off_is_dropped(self) -> None:
        assert dropped(f'{TO_F}{{"a": "x').reason == "unfinished"
        assert dropped(f'{TO_F}{{"a": 1}}', truncated=True).reason == "unfinished"
        assert dropped(TO_F).reason == "unfinished"

    def test_calls_follow_each_other(self) -> None:
        text = f'{TO_F}{{"a": 1}}<|call|>{ASSISTANT}{TO_F}{{"a": 2}}<|call|>\n{ASSISTANT}{TO_F}{{"a": 3}}<|call|>'
        ended = [event for event in read(text) if isinstance(event, ToolEnd)]
        assert [event.arguments["a"] for event in ended] == [1, 2, 3]
        assert [event.repairs for event in ended] == [(), (), ()]

    def test_text_behind_a_call_is_text(self) -> None:
        assert read(f"{TO_F}{{}}<|call|>{ASSISTANT}{FINAL}Done.")[-1] == Text("Done.")
        assert read(f"{TO_F}{{}} Done.")[-1] == Text("Done.")

    def test_a_call_in_thinking_that_has_no_end(self) -> None:
        events = read(f"{ANALYSIS}Let me look.{ASSISTANT}{TO_F}{{}}<|call|>")
        assert thoughts(events) == ["Let me look."]
        assert isinstance(events[-1], ToolEnd)
        assert events[-1].repairs == ("unclosed-thinking",)

    def test_the_block_is_what_the_model_wrote_of_the_call(self) -> None:
        assert call(f"{TO_F}{{}}<|call|>").raw_block == f"{TO_F}{{}}<|call|>"
        last = read(f"{ANALYSIS}Hm.<|end|>{ASSISTANT}{TO_F}{{}}<|call|>")[-1]
        assert isinstance(last, ToolEnd)
        assert last.raw_block == f"{ASSISTANT}{TO_F}{{}}<|call|>"

    def test_too_large_a_header_is_skipped(self) -> None:
        assert dropped("<|start|> to=functions.f", max_call_chars=2).reason == "too-large"

    def test_too_large_a_call_is_skipped(self) -> None:
        for limit in (1, 20, 60, 80):
            events = read(f'{TO_F}{{"a": "{"x" * 99}"}}<|call|>{ASSISTANT}{FINAL}Done.', max_call_chars=limit)
            assert isinstance(events[-2], ToolDropped)
            assert events[-2].reason == "too-large"
            assert events[-1] == Text("Done.")


class TestOtherVoices:
    @pytest.mark.parametrize("role", ["user", "system", "developer"])
    def test_another_turn_stops_the_reading(self, role: str) -> None:
        for header in (f"<|start|>{role}<|message|>", f"<|start|>{role} ", f"<|start|>{role}:ann<|message|>"):
            assert read(f"{FINAL}Yes.<|end|>{header}And now?")[-1] == Stopped("fabricated-turn")

    @pytest.mark.parametrize(
        "header",
        [
            "<|start|>functions.tide to=assistant<|channel|>commentary<|message|>",
            "<|start|>functions.tide<|message|>",
            "<|start|>tide to=assistant<|message|>",
            "<|start|>tide<|channel|>commentary<|message|>",
            "<|start|>python to=assistant<|channel|>analysis<|message|>",
            "<|start|>browser.search<|channel|>commentary to=assistant<|message|>",
        ],
    )
    def test_a_result_stops_the_reading(self, header: str) -> None:
        events = read(f"{TO_F}{{}}<|call|>{header}12C<|end|>", tools=[TIDE])
        assert events[-1] == Stopped("fabricated-result")

    def test_the_assistant_goes_on(self) -> None:
        assert shown(f"{FINAL}One. <|end|>{ASSISTANT}{FINAL}Two.") == "One. Two."


class TestWithoutSpecialTokens:
    """Some servers lose all of a stream's special tokens and leave the words of the headers."""

    def test_thinking_and_answer_are_told_apart(self) -> None:
        events = read("analysisHe greets. Answer.assistantfinalHello!")
        assert events == [
            ThinkingStart(),
            ThinkingDelta("He greets. Answer."),
            ThinkingEnd("He greets. Answer."),
            Text("Hello!"),
        ]

    @pytest.mark.parametrize(
        "text",
        [
            "analysisHe greets.",
            "analysis of the data, then assistantfinal",
            "Look: analysisHe greets.assistantfinalHello!",
        ],
    )
    def test_other_text_stays_as_it_is(self, text: str) -> None:
        assert shown(text) == text

    def test_text_that_the_prompt_did_not_begin_stays_as_it_is(self) -> None:
        text = "analysisHe greets.assistantfinalHello!"
        assert shown(text, generation_prompt="") == text
        assert shown(f"{FINAL}{text}") == text

    def test_only_so_much_is_held(self) -> None:
        text = "analysisHe greets.assistantfinalHello!"
        assert shown(text, max_held_chars=10) == text


SCRAPS = (
    *CONTROL_TOKENS, *CONTROL_TOKENS, ASSISTANT, ASSISTANT, ANALYSIS, FINAL, TO_F, TO_F, "assistant", "user", "system",
    "functions.f", " to=", "to=", " to=assistant", " to=functions.f", " to=tidejson", " to=python", "analysis", "final",
    "commentary", " ", "\n", "json", " json", "Hello there", "Hello", "{", "}", '{"a":1}', '{"a":"b', '"}', '"', "<",
    "<|", "|>", "print(1)\n", "\ud83d", '{"a":"<|call|>"}', "analysisHi", "assistantfinal", " " * 17, "x" * 70, "\xa0",
)  # fmt: skip
PIECES = st.sampled_from(SCRAPS)
PROMPTS = ("", ASSISTANT, f"{ASSISTANT}<|channel|>", ASSISTANT + ANALYSIS, f"{ASSISTANT}{FINAL}Yes", ASSISTANT + TO_F)
TURNS = st.builds(
    lambda thinking, text, value: HARMONY.assistant_text(
        Message("assistant", text, thinking, (ToolCall(None, "f", {"a": value}),)), None
    ),
    st.text(max_size=9),
    st.text(max_size=9),
    st.text(max_size=9) | PIECES | st.integers(),
)
OPTIONS = st.fixed_dictionaries(
    {"generation_prompt": st.sampled_from(PROMPTS)},
    optional={
        "tools": st.sampled_from([[TIDE], [RUN, SPAN]]),
        "parse_thinking": st.booleans(),
        "max_call_chars": st.integers(1, 120),
        "max_held_chars": st.integers(1, 60),
    },
)


@given(st.data())
def test_headers_of_any_kind_are_read_alike_however_they_are_cut(data: st.DataObject) -> None:
    text = "".join(data.draw(st.lists(PIECES | PIECES | TURNS, max_size=12)))
    options = data.draw(OPTIONS)
    truncated = data.draw(st.booleans())
    events = events_of([text], truncated=truncated, **options)
    for pieces in (list(text), cut(text, data.draw(cuts(text)))):
        assert events_of(pieces, truncated=truncated, **options) == events
    check_order(events)
    check_arguments(events)
