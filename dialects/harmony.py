"""Harmony: the dialect of the gpt-oss family.

A turn is a row of messages, each under a header that says who writes, on which channel, and to whom:

    MESSAGE = <|start|> AUTHOR HEADER <|message|> BODY ( <|end|> | <|call|> | <|return|> )
    HEADER  = [ to=RECIPIENT ] [ <|channel|> CHANNEL [ to=RECIPIENT ] ] [ [ <|constrain|> ] TYPE ]

AUTHOR is `assistant`; the prompt ends with `<|start|>assistant`, so a stream begins inside a header. CHANNEL is
`analysis` (thinking), `commentary` or `final` (both text). A message with a recipient is a call, whatever its channel;
its `<|call|>` is a stop token, which the end of the stream may stand for, and `<|end|>` or `<|return|>` in its place is
the repair `wrong-call-end`. A result is a message from `functions.NAME` to `assistant`. No word of a header is text.

The body of a call to `functions.NAME` is a JSON object. Other recipients (`python`, `browser.search`) are built-in
tools under their own names: where such a body does not begin with `{` and the header does not say `json`, it is raw,
one string argument, which is `input` or the only string parameter that the tool is declared with.

`parse_thinking=False` makes the bodies on `analysis` text. A stream that lost its special tokens is understood in the
form `analysisHe greets.assistantfinalHello!`, where the prompt began the header; it is held until `assistantfinal`.

Source: OpenAI's Harmony response format, and the chat template of gpt-oss.
"""

import re
from collections.abc import Sequence

import regex

from dialects.engine.argument_scanner import ArgumentScanner
from dialects.engine.arguments import StringEnds, skipping
from dialects.engine.coercion import is_text_only
from dialects.engine.dialect import Dialect, Tools
from dialects.engine.markers import MarkerSet
from dialects.engine.raw_argument import RawArgument
from dialects.engine.rendering import compact_json
from dialects.engine.scanner import State
from dialects.engine.turns import Turns, of_each_role
from dialects.messages import Message, ToolCall, ToolResult

__all__ = ["HARMONY", "Harmony", "HarmonyScanner"]

START, CHANNEL, CONSTRAIN, MESSAGE = "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>"
CALL, END, RETURN = MESSAGE_ENDS = ("<|call|>", "<|end|>", "<|return|>")
CONTROL_TOKENS = (START, CHANNEL, CONSTRAIN, MESSAGE, *MESSAGE_ENDS, "<|endoftext|>")
CHANNELS = ("analysis", "commentary", "final")
CUTS = {START: ("assistant", "user", "system", "developer"), CHANNEL: CHANNELS, CONSTRAIN: ("json",)}
FUNCTIONS = "functions."
TOOLS = ("tool", "python", "browser")  # authors of results, beside the functions
PEOPLE = ("assistant", "user", "all")  # recipients that make no call of a message

# What fits as a piece of a header fits whatever will follow, so that it does not matter how a stream is cut.
_CHANNEL = "|".join(CHANNELS)
_TOKEN = r"<\|(?:channel|constrain|message)\|>"
_GOES_ON = rf"(?=\s{{0,16}}(?:to=|{_TOKEN}))"
_WORD = rf"[\w.+/-]{{1,64}}+{_GOES_ON}"
_AUTHOR = (
    r"\s{0,16}+(?:assistant|(?P<turn>(?:user|system|developer)(?=[^a-z0-9_.-]))|(?P<result>functions\.)"
    rf"|(?P<author>[^\s<{{=]{{1,256}}+){_GOES_ON})"
)
_ITEM = (
    rf"\s{{0,16}}+(?:<\|channel\|>(?:\s{{0,16}}+(?P<channel>{_CHANNEL}|{_WORD}))?+"
    rf"|<\|constrain\|>(?:\s{{0,16}}+(?P<type>json|{_WORD}))?+"
    r"|to=(?P<to>[^\s<{]{0,256}+)(?=[\s<{])"
    rf"|(?P<word>json(?=\s{{0,16}}\{{)|(?:{_CHANNEL}){_GOES_ON}|[\w.+/-]{{1,64}}+(?=\s{{0,16}}{_TOKEN})))"
)
_ITEMS = rf"(?:<\|start\|>(?:{_AUTHOR})?+)?+(?:{_ITEM}){{0,12}}+"
_MESSAGE = r"\s{0,16}+(?P<message><\|message\|>)"
HEADER = regex.compile(f"{_ITEMS}(?:{_MESSAGE})?+")
LONGER_HEADER = regex.compile(f"{_ITEMS}(?:{_MESSAGE}|{_ITEM})")
"""Where this matches in part, the text ends inside the next piece of a header."""
STRIPPED = re.compile(r"analysis\w")
STRIPPED_ENDS = MarkerSet(["assistantfinal", *CONTROL_TOKENS])
_CALL_ID = re.compile(r"functions\.(.+):[0-9]+", re.DOTALL)
_skip_space = skipping(r"\s*+")


class HarmonyScanner(ArgumentScanner):
    """Reads Harmony; see the grammar above.

    `header` -> text (`outside`) or `thinking` or, of a call, `body` -> `args`; then `between`, where white space is,
    until the next header. `stripped` is the stream without special tokens.
    """

    assistant_openers = (f"{START}assistant",)
    text_markers = MarkerSet(CONTROL_TOKENS)
    call_ends = MESSAGE_ENDS
    call_end_stops = True
    argument_ends = MarkerSet(CONTROL_TOKENS)
    broken_ends = MarkerSet([START, *MESSAGE_ENDS])
    string_ends = StringEnds(
        r"<\|(?:call|end|return)\|>\s{0,64}<\|(?:start|endoftext)\|>"
        r"|<\|start\|>[\w.:-]{1,256}\s{0,16}(?:to=|<\|(?:channel|constrain|message)\|>)",
        markers=(START, *MESSAGE_ENDS),
        closers=MESSAGE_ENDS,
    )

    def _reset(self) -> None:
        self.header_start = self.body_start = self.prompt_end = 0
        self.raw_key: str | None = None
        super()._reset()

    def _read_generation_prompt(self) -> None:
        self.prompt_end = len(self.generation_prompt)
        super()._read_generation_prompt()
        self.prompt_end = self.tape.end
        if self.state == self.header:
            self.tape.seek(self.header_start)

    def outside(self) -> State | None:
        return self.after(self.read_text(self.text_markers))

    def thinking(self) -> State | None:
        return self.after(self.read_text(self.text_markers))

    def between(self) -> State | None:
        self.skip_layout(self.text_markers)
        return None if self.text_markers.held_suffix(self.tape.text, self.tape.i) == self.tape.i else self.outside

    def after(self, marker: str | None) -> State | None:
        """The state that the marker at the cursor leads to."""
        if marker is None:
            return None
        if marker in (START, CHANNEL, CONSTRAIN):
            self.header_start = self.tape.pos
            return self.header
        self.pass_markup(marker)
        if marker == MESSAGE:
            return self.message(None)
        self.end_thinking()
        return self.between

    def after_call(self) -> State:
        return self.between

    def header(self) -> State | None:
        """A header up to `<|message|>`, or to what is none of it."""
        tape, text = self.tape, self.tape.text
        found, longer = HEADER.match(text, tape.i), LONGER_HEADER.match(text, tape.i, partial=True)
        assert found is not None
        is_open = longer is not None and longer.partial
        cut = text[found.end() :] if is_open and self.final else ""
        recipients = [*found.captures("to"), *([""] if cut.lstrip().startswith("to=") else [])]
        author = found["author"]
        is_result = author and ("assistant" in recipients[:1] or author in (*TOOLS, *(self.tools or ())))
        if found["turn"] or found["result"] or is_result:
            self.stop("fabricated-turn" if found["turn"] else "fabricated-result")
            return self.outside
        called = [name for name in recipients if name not in PEOPLE]
        if called and self.call is None and tape.end > self.prompt_end:
            self.begin_call_to(called[0])
            return self.header
        if (is_open and (tape.is_hiding or not self.final)) or (called and self.call is None):
            tape.i = len(text) if tape.is_hiding else tape.i
            return None
        words = next((words for token, words in CUTS.items() if found.group().endswith(token)), (" to=",))
        is_cut = cut.lstrip().startswith(("<", "to=")) or any(word.startswith(cut) for word in words if cut)
        tape.i = len(text) if is_cut else found.end()
        return self.end_of_header(found)

    def end_of_header(self, found: "regex.Match[str]") -> State:
        """The header ends at the cursor, with `<|message|>` or without."""
        tape = self.tape
        self.body_start = tape.pos
        words = [*found.captures("type"), *found.captures("word")]
        if self.call is not None:
            self.open_call.repairs += [] if found["message"] else ["missing-arguments-begin"]
            self.raw_key = None if "json" in words else self.raw_key
            return self.body
        if tape.pos == self.prompt_end and STRIPPED.match(tape.text, tape.i):
            tape.set_mark(tape.pos)
            return self.stripped
        channels = [word for word in (found["author"], *found.captures("channel"), *words) if word in CHANNELS]
        unknown = "" if found.group().startswith(START) else found["channel"]
        return self.message(channels[-1] if channels else unknown)

    def begin_call_to(self, recipient: str) -> None:
        """The header is that of a call. To the name a content type may be glued."""
        self.begin_call()
        self.open_call.start = max(self.open_call.start, self.prompt_end)
        name, tools = recipient.removeprefix(FUNCTIONS), self.tools or {}
        self.raw_key = None if recipient.startswith(FUNCTIONS) else "input"
        if name not in tools and name.removesuffix("json") in tools:
            name, self.raw_key = name.removesuffix("json"), None
            self.open_call.repairs.append("resolved-name")
        elif self.raw_key and name in tools:
            schemas = tools[name].properties
            strings = [key for key in schemas if is_text_only(schemas[key], tools[name].parameters)]
            self.raw_key = strings[0] if len(strings) == 1 else self.raw_key
        if name:
            self.name_call(name)

    def message(self, channel: str | None) -> State:
        """The body of a message that is no call; None: of the same message."""
        if channel is not None:
            self.end_thinking()
        if channel == "analysis" and self.parse_thinking:
            self.begin_thinking()
        self.touch_markup()
        return self.thinking if self.thinking_open else self.outside

    def stripped(self) -> State | None:
        tape = self.tape
        tape.i, marker = STRIPPED_ENDS.find(tape.text, tape.i, final=self.final)
        is_too_far = tape.pos - self.body_start > self.max_held_chars
        if marker is None and not self.final and not is_too_far:
            return None
        held = tape.slice(self.body_start, tape.pos)
        tape.clear_mark()
        is_stripped = marker == "assistantfinal" and not is_too_far
        self.message("analysis" if is_stripped else "final")
        self.say(held.removeprefix("analysis") if is_stripped else held)
        if is_stripped:
            self.end_thinking()
            self.pass_markup("assistantfinal")
        return self.outside

    def body(self) -> State | None:
        """What the body of a call is, its first character says."""
        tape, text = self.tape, self.tape.text
        tape.i = _skip_space(text, tape.i).end()
        is_over = self.argument_ends.held_suffix(text, tape.i) == tape.i
        if is_over and not self.final:
            return None
        if text.startswith(MESSAGE, tape.i):
            tape.i += len(MESSAGE)
            self.open_call.repairs.append("stray-marker")
            return self.body
        self.begin_arguments()
        if text.startswith(CONTROL_TOKENS, tape.i):
            return self.end_at(self._marker_at_cursor())
        if is_over or text[tape.i] == "{":
            return self.args
        if "missing-arguments-begin" in self.open_call.repairs:
            self.drop_call("malformed")
            return self.between
        if self.raw_key is not None:
            tape.seek(self.body_start)
            self.reader = RawArgument(self.reader, self.broken_ends, self.raw_key)
        return self.args

    def end_at(self, marker: str) -> State:
        if marker in (END, RETURN):
            self.open_call.repairs.append("wrong-call-end")
        return super().end_at(marker)


class Harmony(Dialect):
    """The gpt-oss family's dialect."""

    name = "harmony"
    title = "gpt-oss"
    models = r"gpt[-_ ]?oss"
    control_tokens = CONTROL_TOKENS
    scanner = HarmonyScanner
    call_marks = ((CONSTRAIN,),)
    generation_prompt = f"{START}assistant"
    call_separator = ""
    turns = Turns(
        headers={
            "tool": r"<\|start\|>functions\.(?P<name>[^\s<]+) to=assistant<\|channel\|>commentary<\|message\|>",
            **of_each_role(r"<\|start\|>ROLE(?::(?P<name>[^<]*))?<\|message\|>", system="(?:system|developer)"),
            "assistant": r"(?=<\|start\|>assistant)",
        },
        end=r"<\|end\|>",
    )

    def call_text(self, call: ToolCall, tools: Tools) -> str:
        return _message(f"assistant{CHANNEL}commentary to={FUNCTIONS}{call.name}", compact_json(call.arguments), CALL)

    def results_text(self, results: Sequence[ToolResult]) -> str:
        return "".join(_message(f"{_author(it)} to=assistant{CHANNEL}commentary", it.content) for it in results)

    def bare_results_text(self, results: Sequence[ToolResult]) -> str:
        return "\n".join(f"{_author(result)} to=assistant\n{result.content}" for result in results)

    def thinking_text(self, text: str) -> str:
        return _message(f"assistant{CHANNEL}analysis", text)

    def assistant_text(self, message: Message, tools: Tools) -> str:
        thinking = self.thinking_text(message.reasoning) if message.reasoning else ""
        has_answer = message.content or not (message.reasoning or message.tool_calls)
        answer = _message(f"assistant{CHANNEL}final", message.content) if has_answer else ""
        return thinking + answer + self.calls_text(message.tool_calls, tools)

    def turn_text(self, role: str, name: str | None, body: str) -> str:
        if role == "assistant":
            return body
        author = "developer" if role == "system" else role
        return _message(f"{author}:{name}" if name else author, body)


HARMONY = Harmony()


def _message(header: str, body: str, end: str = END) -> str:
    return f"{START}{header}{MESSAGE}{body}{end}"


def _author(result: ToolResult) -> str:
    """Who writes a result: the function that was called."""
    match = _CALL_ID.fullmatch(result.call_id or "")
    return FUNCTIONS + (result.name or (match[1] if match else "tool"))
