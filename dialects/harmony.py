"""Harmony: the dialect of the gpt-oss family.

A turn is a row of messages, each under a header that says who writes, on which channel, and to whom:

    MESSAGE = <|start|> AUTHOR HEADER <|message|> BODY ( <|end|> | <|call|> | <|return|> )
    HEADER  = [ to=RECIPIENT ] [ <|channel|> CHANNEL [ to=RECIPIENT ] ] [ [ <|constrain|> ] TYPE ]

AUTHOR is `assistant`. The prompt ends with `<|start|>assistant`, so a stream begins inside a header. CHANNEL is
`analysis` (thinking), `commentary` or `final` (both text). A message with a recipient is a call, whatever its channel;
it ends with `<|call|>`, a stop token, which need not be there at the end of the stream. A result is a message from
`functions.NAME` to `assistant`. All of a header is markup, never text.

The body of a call to `functions.NAME` is a JSON object. Other recipients (`python`, `browser.search`) are built-in
tools under their own names: where such a body does not begin with `{` and the header does not say `json`, it is raw.
Then it is one string argument, `input`, or the only string parameter that the tool is declared with. A call that ends
with `<|end|>` or `<|return|>` has the repair `wrong-call-end`.

With `parse_thinking=False` the bodies on `analysis` are text; their headers stay hidden. Where all special tokens of a
stream were lost (`analysisHe greets.assistantfinalHello!`) its words are read in their place, but only in the header
that the prompt began, and everything is held until `assistantfinal` comes.

Source: OpenAI's Harmony response format, and the chat template of gpt-oss.
"""

import re
from collections.abc import Sequence
from typing import Any

import regex

from dialects.engine.arguments import Arguments, StringEnds, skipping
from dialects.engine.coercion import is_text_only
from dialects.engine.dialect import Dialect, Tools
from dialects.engine.markers import MarkerSet
from dialects.engine.raw_argument import RawArgument
from dialects.engine.rendering import compact_json
from dialects.engine.scanner import ArgumentScanner, State
from dialects.messages import Message, ToolCall, ToolResult

__all__ = ["HARMONY", "Harmony", "HarmonyScanner"]

START, CHANNEL, CONSTRAIN, MESSAGE = "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>"
CALL, END, RETURN = MESSAGE_ENDS = ("<|call|>", "<|end|>", "<|return|>")
CONTROL_TOKENS = (START, CHANNEL, CONSTRAIN, MESSAGE, *MESSAGE_ENDS, "<|endoftext|>")
CHANNELS = ("analysis", "commentary", "final")
FUNCTIONS = "functions."
NO_TOOLS = ("assistant", "user", "all")
"""Recipients to whom a message of the assistant is text."""


def _header(*pieces: str) -> regex.Pattern[str]:
    """One of these pieces of a header, after white space."""
    return regex.compile(rf"\s{{0,16}}+(?:{'|'.join(pieces)})")


_CHANNEL = "|".join(CHANNELS)
_GOES_ON = r"(?=\s{0,16}(?:to=|<\|(?:channel|constrain|message)\|>))"
_WORD = rf"[\w.+/-]{{1,64}}+{_GOES_ON}"
_ITEMS = (
    r"(?P<message><\|message\|>)",
    rf"<\|channel\|>\s{{0,16}}+(?P<channel>{_CHANNEL}|{_WORD})",
    rf"<\|constrain\|>\s{{0,16}}+(?P<type>json|{_WORD})",
    r"to=(?P<recipient>[^\s<{]{0,256}+)(?=[\s<{])",
)
ITEM = _header(*_ITEMS, rf"(?P<word>json(?=\s{{0,16}}\{{)|{_WORD})")
FIRST_ITEM = _header(*_ITEMS, rf"(?P<word>(?:{_CHANNEL}){_GOES_ON})")
"""In the header that the prompt began: text may stand there instead, so that only a channel's name is a word of it."""
BARE_TOKEN = _header(r"<\|(?:channel|constrain)\|>")
AUTHOR = _header(
    r"assistant|(?P<turn>(?:user|system|developer)(?=[^a-z0-9_.-]))|(?P<tool>functions\.)",
    rf"(?P<word>[^\s<{{]{{1,256}}+){_GOES_ON}",
)
CUT = _header(
    rf"assistant|user|system|developer|functions\.|(?:<\|channel\|>\s{{0,16}})?(?:{_CHANNEL})",
    r"<\|(?:constrain|message)\|>|to=[^\s<{]*+",
)
"""What the end of the stream may cut short in a header."""

STRIPPED = re.compile(r"analysis\w")
STRIPPED_END = "assistantfinal"
STRIPPED_ENDS = MarkerSet([STRIPPED_END, *CONTROL_TOKENS])

_CALL_ID = re.compile(r"functions\.(.+):[0-9]+", re.DOTALL)
_skip_space = skipping(r"\s*+")


class HarmonyScanner(ArgumentScanner):
    """Reads Harmony; see the grammar above.

    `author` and `header` read a header; after it comes text (`outside`), `thinking`, or the `body` of a call with its
    `args`. `between` messages there is white space. `stripped` is the stream without special tokens.
    """

    turn_opener = f"{START}assistant"
    text_markers = MarkerSet(CONTROL_TOKENS)
    call_ends = MESSAGE_ENDS
    argument_ends = MarkerSet(CONTROL_TOKENS)
    broken_ends = MarkerSet([START, *MESSAGE_ENDS])
    string_ends = StringEnds(
        r"<\|(?:call|end|return)\|>\s{0,64}<\|(?:start|endoftext)\|>"
        r"|<\|start\|>[\w.:-]{1,256}\s{0,16}(?:to=|<\|(?:channel|constrain|message)\|>)",
        markers=(START, *MESSAGE_ENDS),
        closers=MESSAGE_ENDS,
    )

    def __init__(self, *, parse_thinking: bool = True, **options: Any) -> None:
        self.parse_thinking = parse_thinking
        super().__init__(**options)

    def _reset(self) -> None:
        self.begin_header(0)
        super()._reset()

    def _read_generation_prompt(self) -> None:
        super()._read_generation_prompt()
        if self.call is not None:
            return
        self.tape.clear_mark()
        if self.state in (self.author, self.header):
            self.header_start = self.tape.pos
            self.tape.set_mark(self.header_start)

    # Around headers.

    def outside(self) -> State | None:
        return self.after(self.read_text(self.text_markers))

    def thinking(self) -> State | None:
        return self.after(self.read_text(self.text_markers))

    def between(self) -> State | None:
        self.skip_layout(self.text_markers)
        held = self.text_markers.held_suffix(self.tape.text, self.tape.i)
        return None if held == self.tape.i else self.outside

    def after(self, marker: str | None) -> State | None:
        """The state that the marker at the cursor leads to."""
        if marker is None:
            return None
        if marker in (START, CHANNEL, CONSTRAIN):
            self.begin_header(self.tape.pos)
            self.tape.set_mark(self.header_start)
            return self.author if marker == START else self.header
        self.pass_markup(marker)
        if marker == MESSAGE:
            return self.home()
        self.end_thinking()
        return self.between

    def home(self) -> State:
        """The state that reads an open message which is no call."""
        return self.thinking if self.thinking_open else self.outside

    def after_call(self) -> State:
        return self.between

    # The header.

    def begin_header(self, start: int) -> None:
        """A header begins at `start`; nothing of it is known."""
        self.header_start = start
        self.channel: str | None = None  # empty: a message without a channel; None: perhaps no message at all
        self.stranger: str | None = None  # the author, if it is not the assistant
        self.is_json = False
        self.raw_key: str | None = None  # the argument that a raw body is; None: it cannot be raw
        self.body_start = 0

    def author(self) -> State | None:
        if self.tape.pos == self.header_start:
            self.tape.i += len(START)
        found = self.look(AUTHOR)
        if found is not None and found.partial:
            return None
        self.channel = ""
        if found is None:
            return self.header
        self.tape.i = found.end()
        self.stranger = word = found["word"]
        if found["turn"] or found["tool"] or word in (self.tools or ()):
            return self.fabricated("fabricated-turn" if found["turn"] else "fabricated-result")
        self.channel = word if word in CHANNELS else ""
        return self.header

    def header(self) -> State | None:
        """One item of a header. The header ends with `<|message|>`, or before what is no item."""
        found = self.look(FIRST_ITEM if self.tape.pos == self.header_start else ITEM)
        if found is None:
            return self.end_of_header()
        if found.partial:
            return None
        self.tape.i = found.end()
        if found["message"]:
            return self.message() if self.call is None else self.begin_body()
        if found["recipient"] is not None:
            return self.recipient(found["recipient"])
        if found["channel"] or found["word"] in CHANNELS:
            self.channel = found["channel"] or found["word"]
        elif "json" in (found["word"], found["type"]):
            self.is_json = True
        return self.header

    def look(self, pattern: regex.Pattern[str]) -> "regex.Match[str] | None":
        """What stands at the cursor of a header. What the end of the stream cut short is passed."""
        tape = self.tape
        found = pattern.match(tape.text, tape.i, partial=not self.final)
        if found is None and self.final and tape.pos > self.header_start:
            tape.i = len(tape.text) if CUT.fullmatch(tape.text, tape.i, partial=True) else tape.i
        return found

    def recipient(self, recipient: str) -> State:
        """The call, if it is one, begins with the header. To its name a content type may be glued."""
        if recipient == "assistant" and self.stranger:
            return self.fabricated("fabricated-result")
        if self.call is not None or recipient in NO_TOOLS:
            return self.header
        end = self.tape.pos
        self.tape.seek(self.header_start)
        self.begin_call()
        self.tape.seek(end)
        tools = self.tools or {}
        name = recipient.removeprefix(FUNCTIONS)
        if name not in tools and name.removesuffix("json") in tools:
            name = name.removesuffix("json")
            self.is_json = True
            self.open_call.repairs.append("resolved-name")
        if not recipient.startswith(FUNCTIONS):
            schemas = tools[name].properties if name in tools else {}
            strings = [key for key, schema in schemas.items() if is_text_only(schema, tools[name].parameters)]
            self.raw_key = strings[0] if len(strings) == 1 else "input"
        if name:
            self.name_call(name)
        return self.header

    def end_of_header(self) -> State:
        """The header ends without `<|message|>`, or there was none."""
        tape = self.tape
        if bare := BARE_TOKEN.match(tape.text, tape.i):
            tape.i = bare.end()
            return self.header
        if self.call is not None:
            self.open_call.repairs.append("missing-arguments-begin")
            return self.begin_body()
        if tape.pos == self.header_start and STRIPPED.match(tape.text, tape.i):
            return self.stripped
        return self.message()

    def fabricated(self, reason: str) -> State:
        """The message is not the assistant's."""
        self.stop(reason)
        return self.outside

    # The body.

    def message(self) -> State:
        """Text or thinking begins at the cursor."""
        self.tape.clear_mark()
        if self.channel is not None:
            self.end_thinking()
        if self.channel == "analysis" and self.parse_thinking:
            self.begin_thinking()
        self.touch_markup()
        return self.home()

    def stripped(self) -> State | None:
        tape = self.tape
        tape.i, marker = STRIPPED_ENDS.find(tape.text, tape.i, final=self.final)
        end = tape.pos
        is_too_far = end - self.header_start > self.max_held_chars
        if marker is None and not self.final and not is_too_far:
            return None
        tape.seek(self.header_start)
        if marker != STRIPPED_END or is_too_far:
            return self.message()
        thinking = tape.slice(self.header_start + len("analysis"), end)
        tape.seek(end)
        self.channel = "analysis"
        self.message()
        self.say(thinking)
        self.end_thinking()
        self.pass_markup(STRIPPED_END)
        return self.outside

    def begin_body(self) -> State:
        self.body_start = self.tape.pos
        return self.body

    def body(self) -> State | None:
        """What a call's body is, its first character says."""
        tape = self.tape
        text = tape.text
        tape.i = _skip_space(text, tape.i).end()
        is_over = self.argument_ends.held_suffix(text, tape.i) == tape.i
        if is_over and not self.final:
            return None
        self.begin_arguments()
        if text.startswith(CONTROL_TOKENS, tape.i):
            return self.end_at(self._marker_at_cursor())
        if is_over or text[tape.i] == "{":
            return self.args
        call = self.open_call
        if "missing-arguments-begin" in call.repairs:
            self.drop_call("malformed")
            return self.between
        if self.raw_key is not None and not self.is_json:
            tape.seek(self.body_start)
            name = call.name or ""
            ends = (self.string_ends, self.broken_ends)
            self.reader = RawArgument(tape, *ends, self.raw_key, call_id=call.id, name=name)
        return self.args

    def end_at(self, marker: str) -> State:
        if marker in (END, RETURN):
            self.open_call.repairs.append("wrong-call-end")
        return super().end_at(marker)

    def end_call(self, arguments: Arguments) -> None:
        repairs = self.open_call.repairs
        if self.final and self.tape.i == len(self.tape.text) and "missing-call-end" in repairs:
            repairs.remove("missing-call-end")
        super().end_call(arguments)


class Harmony(Dialect):
    """The gpt-oss family's dialect."""

    name = "harmony"
    title = "gpt-oss"
    models = r"gpt[-_ ]?oss"
    control_tokens = CONTROL_TOKENS
    scanner = HarmonyScanner
    generation_prompt = f"{START}assistant"

    def call_text(self, call: ToolCall, tools: Tools) -> str:
        return _message(
            "assistant", f"{CHANNEL}commentary to={FUNCTIONS}{call.name}", compact_json(call.arguments), CALL
        )

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        return "".join(self.call_text(call, tools) for call in calls)

    def results_text(self, results: Sequence[ToolResult]) -> str:
        header = f" to=assistant{CHANNEL}commentary"
        return "".join(_message(_writer(result), header, result.content) for result in results)

    def bare_results_text(self, results: Sequence[ToolResult]) -> str:
        return "\n".join(f"{_writer(result)} to=assistant\n{result.content}" for result in results)

    def thinking_text(self, text: str) -> str:
        return _message("assistant", f"{CHANNEL}analysis", text)

    def assistant_text(self, message: Message, tools: Tools) -> str:
        thinking = self.thinking_text(message.reasoning) if message.reasoning else ""
        is_bare = not message.reasoning and not message.tool_calls
        answer = _message("assistant", f"{CHANNEL}final", message.content) if message.content or is_bare else ""
        return thinking + answer + self.calls_text(message.tool_calls, tools)

    def turn_text(self, role: str, name: str | None, body: str) -> str:
        if role == "assistant":
            return body
        author = "developer" if role == "system" else role
        return _message(f"{author}:{name}" if name else author, "", body)


HARMONY = Harmony()


def _message(author: str, header: str, body: str, end: str = END) -> str:
    return f"{START}{author}{header}{MESSAGE}{body}{end}"


def _writer(result: ToolResult) -> str:
    """Who writes a result: the function that was called."""
    match = _CALL_ID.fullmatch(result.call_id or "")
    return FUNCTIONS + (result.name or (match[1] if match else "tool"))
