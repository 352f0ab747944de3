"""DeepSeek: the dialect of DeepSeek V3, R1, V3.1, V3.2, V4 and V4.1.

A prompt begins with `<｜begin▁of▁sentence｜>` and the system's text. A turn is `<｜User｜>` or `<｜Assistant｜>` and a
body, the assistant's ended by `<｜end▁of▁sentence｜>`. Thinking comes first, in `<think>` and `</think>`; the prompt
may have opened it, or closed it unopened. Of calls there are four forms, all read by one scanner:

    <｜tool▁calls▁begin｜> ( <｜tool▁call▁begin｜> CALL <｜tool▁call▁end｜> )+ <｜tool▁calls▁end｜>
        CALL = `function` <｜tool▁sep｜> NAME newline, a code fence around ARGUMENTS                      (V3, R1)
             | NAME <｜tool▁sep｜> ARGUMENTS                                                                (V3.1)
    <｜DSML｜function_calls> INVOKES </｜DSML｜function_calls>                                             (V3.2)
        the same with `tool_calls` for the outer tag (V4), or ` calls` and a space before every tag's name (V4.1)

ARGUMENTS are one JSON object, INVOKES the tags of `engine/invoke_tags.py`, in which `string="true"` says that a value
is text and `string="false"` that it is JSON. A call has no id. The bars may be `|`, the blocks `_`, and those of `DSML`
doubled. Results stand in `<｜tool▁output▁begin｜>` and `<｜tool▁output▁end｜>` (V3), in `<function_results>` (V3.2), or
in `<tool_result>` in a user's turn (V4). The renderer writes the form of V3.1. Not all markers are special to the
tokenizer, but nobody writes them by chance: in text one always counts.

Source: DeepSeek's chat templates of V3, R1 and V3.1, and its encoders of V3.2, V4 and V4.1.
"""

from collections.abc import Sequence

import regex

from dialects.engine.arguments import StringEnds
from dialects.engine.dialect import Dialect, Tools
from dialects.engine.fenced_arguments import FENCE, FencedArguments
from dialects.engine.invoke_tags import InvokeTags
from dialects.engine.markers import Mark, MarkerSet
from dialects.engine.mixed_calls import MixedCallScanner
from dialects.engine.rendering import compact_json
from dialects.engine.scanner import State
from dialects.engine.turns import Turns
from dialects.messages import Message, ToolCall, ToolResult

__all__ = ["DEEPSEEK", "DeepSeek", "DeepSeekScanner"]

SECTION_BEGIN, SECTION_END, SEPARATOR = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁sep｜>"
CALL_BEGIN, CALL_END = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"
CALL_TOKENS = (SECTION_BEGIN, SECTION_END, CALL_BEGIN, CALL_END)
TURN_TOKENS = TEXT_BEGIN, TEXT_END, SYSTEM, USER, ASSISTANT = (
    "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜System｜>", "<｜User｜>", "<｜Assistant｜>"
)  # fmt: skip
RESULT_TOKENS = RESULTS_BEGIN, RESULTS_END, RESULT_BEGIN, RESULT_END = (
    "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>", "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"
)  # fmt: skip
THINK_BEGIN, THINK_END = "<think>", "</think>"
RESULT_TAGS, RESULT_TAG_ENDS = ("<function_results>", "<tool_result>"), ("</function_results>", "</tool_result>")
OTHER_TOKENS = ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", "<|EOT|>")


def spellings(*tokens: str) -> dict[str, str]:
    """Every way to write these tokens, and the token that each is."""
    return {token.replace("｜", bar).replace("▁", block): token for token in tokens for bar in "｜|" for block in "▁_"}


TOKENS = spellings(*CALL_TOKENS, *TURN_TOKENS, *RESULT_TOKENS, SEPARATOR, *OTHER_TOKENS)
ANY_TOKEN, DSML = "<｜", "｜DSML｜"
TAG_BEGINS = tuple(slash + bars for slash in ("<", "</") for bars in (DSML, "|DSML|", "｜｜DSML｜｜", "||DSML||"))
SPACED_TAG_BEGINS = tuple(newlines + begin for newlines in ("\n", "\n\n") for begin in TAG_BEGINS)
"""The newlines that the template writes before the calls are layout."""
CONTROL_TOKENS = (*TURN_TOKENS, *spellings(SECTION_BEGIN, SECTION_END), CALL_BEGIN, CALL_END, SEPARATOR, *RESULT_TOKENS,
                  *OTHER_TOKENS, *TAG_BEGINS, DSML, THINK_BEGIN, THINK_END)  # fmt: skip

MARK, SECTIONS = Mark(("[｜|]{1,2}", *"DSML", "[｜|]{1,2}", " ?")), ("function_calls", "tool_calls", "calls")
TOKEN = regex.compile(
    rf"(?P<invoke><{MARK.pattern}invoke(?=[\s=/>]))"
    rf"|<(?:(?P<section>)|(?P<section_end>/)){MARK.pattern}(?:{'|'.join(SECTIONS)})\s{{0,16}}>"
    rf"|<(?:(?P<parameter>)|/){MARK.pattern}parameter[^<>\n]{{0,512}}+>|</?{MARK.pattern}\w{{0,24}}+\s{{0,16}}/?>"
    r"|<｜[^<>｜\n]{1,64}+｜>"
)
BARE_HEADER = regex.compile(r"[^\s<>{}]{1,256}+\s{0,16}+<[｜|]tool[▁_]sep[｜|]>")
HEADER_ENDS = MarkerSet(["{", FENCE, *spellings(SEPARATOR, *CALL_TOKENS, *TURN_TOKENS)])
STOPS = {SYSTEM: "fabricated-turn", RESULTS_BEGIN: "fabricated-result", RESULT_BEGIN: "fabricated-result"}
RESULT_AHEAD = regex.compile(r"\s{0,16}+<tool_result>")
TYPE = "function"
NAME = regex.compile(rf"(?:{TYPE}\s+)?(\S{{1,256}})")
TYPED_NAME = regex.compile(r"\s{0,16}+(?:(?P<name>[^\s{}\[\]\"`<]{1,256}+)(?=[ \t]{0,16}+(?:\r?\n|```|[{<]))|(?=\{))")
FENCE_BEGIN = regex.compile(rf"\s{{0,16}}+{FENCE}[a-zA-Z]{{0,16}}+(?=[^a-zA-Z])")


class DeepSeekScanner(MixedCallScanner):
    """Reads DeepSeek; see the grammar above.

    `outside` (text) -> `section` -> `header` (up to the separator) -> `typed_name` (V3) -> `fence` -> `args` ->
    `section` -> ... -> `outside`, and `thinking` beside them. A call with tags has the states of `InvokeScanner`.
    """

    tags = InvokeTags(
        sections=SECTIONS,
        mark=MARK,
        turn_ends=(*spellings(*CALL_TOKENS, *TURN_TOKENS, *RESULT_TOKENS), *RESULT_TAGS),
        slips=r"\w{1,24}",
    )
    assistant_openers = (*spellings(ASSISTANT, RESULT_END, RESULTS_END), *RESULT_TAG_ENDS)
    text_markers = MarkerSet([*TOKENS, *TAG_BEGINS, *SPACED_TAG_BEGINS, DSML, ANY_TOKEN, *RESULT_TAGS,
                              *RESULT_TAG_ENDS, THINK_BEGIN, THINK_END])  # fmt: skip
    thinking_tags = (THINK_BEGIN, THINK_END)
    call_ends = tuple(spellings(CALL_END))
    closed_by = "}`"
    argument_ends = MarkerSet(spellings(*CALL_TOKENS, *TURN_TOKENS, *RESULT_TOKENS))
    broken_ends = MarkerSet(spellings(*CALL_TOKENS))
    string_ends = StringEnds(
        r"<[｜|]tool[▁_]calls?[▁_]end[｜|]>\s{0,64}<[｜|]"
        r"(?:tool[▁_](?:calls?|outputs?)[▁_](?:begin|end)|end[▁_]of[▁_]sentence|User|Assistant)[｜|]>"
        r"|<[｜|]tool[▁_]call[▁_]begin[｜|]>\s{0,64}[^\s<>]{1,256}\s{0,64}<[｜|]tool[▁_]sep[｜|]>",
        markers=spellings(CALL_BEGIN, CALL_END, SECTION_END),
        closers=tuple(spellings(CALL_END, SECTION_END)),
    )

    def _reset(self) -> None:
        self.in_section = self.has_called = False
        self.section_repairs: tuple[str, ...] = ()
        self.header_start = 0
        self.is_fenced = False  # as the open call's form wants it
        super()._reset()

    def outside(self) -> State | None:
        return self.after(self.read_text(self.text_markers))

    def thinking(self) -> State | None:
        return self.after(self.read_text(self.text_markers))

    def section(self) -> State | None:
        self.skip_layout(self.text_markers)
        is_first = self.in_section and self._after_markup
        header = BARE_HEADER.match(self.tape.text, self.tape.i, partial=not self.final) if is_first else None
        if header is not None and not header.partial:
            return self.call_begin("", "missing-call-begin")
        return None if header is not None else self.after(self.read_text(self.text_markers))

    def home(self) -> State:
        """The state that goes on where no call is open."""
        if self.thinking_open:
            return self.thinking
        return self.section if self.in_section else self.outside

    def after(self, marker: str | None) -> State | None:
        """Pass the marker at the cursor; the state that it leads to."""
        if marker is None:
            return None
        if marker in SPACED_TAG_BEGINS:
            self.pass_markup(marker[: marker.index("<")])
            return self.home()
        if marker in TAG_BEGINS or marker == ANY_TOKEN:
            return self.token(marker)
        token = TOKENS.get(marker, marker)
        if token in STOPS or (token in RESULT_TAGS and self.has_called):
            self.stop(STOPS.get(token, "fabricated-result"))
            return self.outside
        if token == USER:
            return self.user_turn(marker)
        if token == CALL_BEGIN:
            return self.call_begin(marker)
        if token == SECTION_BEGIN:
            self.begin_section()
        elif token in (SECTION_END, TEXT_END, ASSISTANT):
            self.in_section = False
        if token in (THINK_END, ASSISTANT):
            self.end_thinking()
        self.pass_markup(marker)
        if token == THINK_BEGIN:
            self.begin_thinking()
        return self.home()

    def user_turn(self, marker: str) -> State | None:
        """A turn that is not the model's to write. In V4 a user's turn holds the results."""
        tape = self.tape
        result = RESULT_AHEAD.match(tape.text, tape.i + len(marker), partial=not self.final)
        if result is not None and result.partial:
            return None
        self.stop("fabricated-turn" if result is None else "fabricated-result")
        return self.outside

    def token(self, marker: str) -> State | None:
        """A tag of a call or a stray one, or one of the many tokens that have nothing to do with calls. A beginning
        that nothing fits behind is swallowed alone, but for that of a mere `<｜`."""
        tape = self.tape
        found = TOKEN.match(tape.text, tape.i, partial=True)
        if found is not None and found.partial:
            if not self.final:
                return None
            found = found if marker in TAG_BEGINS else None
        if found is None and marker == ANY_TOKEN:
            tape.i += len(marker)
            self.say(marker)
            return self.home()
        kind = None if found is None or found.partial else found.lastgroup
        markup = marker if found is None else found.group()
        if kind == "invoke":
            self.begin_call_in_section()
            return self.enter_invoke(markup)
        if kind == "parameter" and self.in_section:
            self.begin_call_in_section()
            self.enter_invoke("")
            return self.begin_pairs("")
        if kind == "section":
            self.begin_section()
        elif kind == "section_end":
            self.in_section = False
        self.pass_markup(markup)
        return self.home()

    def begin_section(self) -> None:
        """A section of calls begins."""
        self.in_section = True
        self.section_repairs = ("unclosed-thinking",) if self.thinking_open else ()
        self.end_thinking()

    def begin_call_in_section(self, *repairs: str) -> None:
        """A call begins at the cursor; it may stand alone."""
        self.begin_call(*self.section_repairs, *(() if self.in_section else ("missing-section",)), *repairs)
        self.section_repairs = ()

    def call_begin(self, marker: str, *repairs: str) -> State:
        self.begin_call_in_section(*repairs)
        self.tape.i += len(marker)
        self.header_start = self.tape.pos
        return self.header

    def after_call(self) -> State:
        self.has_called = True
        return self.section

    def header(self) -> State | None:
        tape = self.tape
        tape.i, marker = HEADER_ENDS.find(tape.text, tape.i, final=self.final)
        if marker is None:
            return self.cut_off() if self.final else None
        header, token = tape.slice(self.header_start, tape.pos).strip(), TOKENS.get(marker, marker)
        self.is_fenced = token == FENCE
        if token == SEPARATOR:
            tape.i += len(marker)
            if header == TYPE:
                return self.typed_name
        elif token in ("{", FENCE):
            self.open_call.repairs.append("missing-arguments-begin")
        elif token != CALL_END or header not in (self.tools or ()):
            tape.i += len(marker) if token == CALL_END else 0
            self.drop_call("malformed")
            return self.after_call()
        if name := NAME.fullmatch(header):
            self.name_call(name[1])
        return self.fence

    def typed_name(self) -> State | None:
        """The name that follows a type, if that is no name itself."""
        tape = self.tape
        found = TYPED_NAME.match(tape.text, tape.i, partial=not self.final)
        if found is not None and found.partial:
            return None
        if found is not None:
            tape.i = found.end()
            self.is_fenced = found["name"] is not None
            self.name_call(found["name"] or TYPE)
        return self.fence

    def fence(self) -> State | None:
        """What stands before the arguments."""
        tape = self.tape
        found = FENCE_BEGIN.match(tape.text, tape.i, partial=not self.final)
        if found is not None and found.partial:
            return None
        tape.i = found.end() if found is not None else tape.i
        self.begin_arguments()
        if found is not None:
            self.reader = FencedArguments(self.reader)
        if self.is_fenced != (found is not None):
            self.open_call.repairs.append("missing-code-fence" if self.is_fenced else "code-fence")
        return self.args


class DeepSeek(Dialect):
    """The DeepSeek family's dialect, written in the form of V3.1."""

    name = "deepseek"
    title = "DeepSeek V3, R1 and V3.1 to V4.1"
    models = r"deepseek(?:.*[^a-z0-9])?(?:v3[._-]?[12]|v4[._-]?1|v[34]|r1)(?!\d)"
    rank = -2
    control_tokens = CONTROL_TOKENS
    scanner = DeepSeekScanner
    generation_prompt = ASSISTANT
    call_marks = tuple((token,) for token in (DSML, "|DSML|", *spellings(SECTION_BEGIN)))
    turns = Turns(
        headers={
            "tool": rf"(?={RESULTS_BEGIN}|{RESULT_BEGIN})|{USER}(?=<tool_result>)"
            rf"|(?<={TEXT_END})(?=\n\n<function_results>)",
            "user": USER,
            "assistant": ASSISTANT,
            "system": SYSTEM,
        },
        end=TEXT_END,
        result=rf"(?:{RESULTS_BEGIN})?{RESULT_BEGIN}(?P<text>.*?){RESULT_END}(?:\s*{RESULTS_END})?"
        r"|(?:<function_results>\n)?<result>(?P<text>.*?)</result>(?:\n</function_results>\s*|(?=\n<result>))"
        r"|<tool_result>(?P<text>.*?)</tool_result>(?=\n\n|\Z)",
        start=TEXT_BEGIN,
        begins_with_text=True,
    )

    def call_text(self, call: ToolCall, tools: Tools) -> str:
        return f"{CALL_BEGIN}{call.name}{SEPARATOR}{compact_json(call.arguments)}{CALL_END}"

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        return SECTION_BEGIN + "".join(self.call_text(call, tools) for call in calls) + SECTION_END

    def results_text(self, results: Sequence[ToolResult]) -> str:
        return "\n".join(f"{RESULT_BEGIN}{result.content}{RESULT_END}" for result in results)

    def turn_text(self, role: str, name: str | None, body: str) -> str:
        before, after = {"user": (USER, ""), "assistant": (ASSISTANT, TEXT_END)}.get(role, ("", ""))
        return before + body + after

    def transcript_text(self, messages: Sequence[Message], tools: Tools) -> str:
        return TEXT_BEGIN + super().transcript_text(messages, tools)


DEEPSEEK = DeepSeek()
