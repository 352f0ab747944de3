"""Kimi: the dialect of the Kimi-K2 family (Instruct, Thinking, K2.5, K2.6, K2.7-Code).

A turn is a role token, a name, `<|im_middle|>`, the body and `<|im_end|>`. An assistant's body ends with its calls:

    <|tool_calls_section_begin|>
        ( <|tool_call_begin|> ID <|tool_call_argument_begin|> ARGUMENTS <|tool_call_end|> )+
    <|tool_calls_section_end|>

with nothing between the tokens. ID is `functions.NAME:INDEX`, and the name of the tool stands nowhere else; ARGUMENTS
is one JSON object. A result is a system turn of its own: `## Return of ID`, and the text below it. Thinking comes
first, in `<think>` and `</think>`.

Source: Moonshot AI's tool-call guidance for Kimi-K2, and the chat templates of the family.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import regex

from dialects.engine.argument_scanner import ArgumentScanner
from dialects.engine.arguments import Arguments, StringEnds
from dialects.engine.dialect import Dialect, Tools
from dialects.engine.json_text import dump
from dialects.engine.markers import MarkerSet, begun
from dialects.engine.rendering import compact_json
from dialects.engine.scanner import State
from dialects.engine.turns import Turns, of_each_role
from dialects.messages import Tool, ToolCall, ToolResult

__all__ = ["KIMI", "Kimi", "KimiScanner"]

SECTION_BEGIN, SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
SECTION_BEGINS = (SECTION_BEGIN, "<|tool_call_section_begin|>")
SECTION_ENDS = (SECTION_END, "<|tool_call_section_end|>")
CALL_BEGIN, CALL_END = "<|tool_call_begin|>", "<|tool_call_end|>"
ARGUMENTS_BEGIN = "<|tool_call_argument_begin|>"
TURN_OPENERS = ("<|im_system|>", "<|im_user|>", "<|im_assistant|>")
TURN_MIDDLE, TURN_END = "<|im_middle|>", "<|im_end|>"
THINK_BEGIN, THINK_END = "<think>", "</think>"
TURN_TOKENS = (*TURN_OPENERS, TURN_MIDDLE, TURN_END)
CALL_MARKERS = (*SECTION_BEGINS, *SECTION_ENDS, CALL_BEGIN, CALL_END)
MEDIA_TOKENS = ("<|media_begin|>", "<|media_content|>", "<|media_pad|>", "<|media_end|>")
CONTROL_TOKENS = (*TURN_TOKENS, *CALL_MARKERS, ARGUMENTS_BEGIN, THINK_BEGIN, THINK_END, *MEDIA_TOKENS, "[BOS]", "[EOS]")

HEADER_ENDS = MarkerSet([ARGUMENTS_BEGIN, "{", *CALL_MARKERS, *TURN_TOKENS])
TURN_HEADER = regex.compile(r"<\|im_(?P<role>system|user|assistant)\|>[^<\n]{0,64}<\|im_middle\|>")
RESULT_HEADING = regex.compile(r"\s{0,16}## Return of")
CUT_HEADER = re.compile(
    rf"(?:{begun(('system', 'user', 'assistant', 'tool'))}|[^<\n]{{1,64}}<{begun([TURN_MIDDLE[1:]])})\Z"
)

# An id is read as the first of these that fits; one that names no declared tool is looked up among them before.
_ID = re.compile(r"(?:functions\.)?+(\S+):[0-9]+")
_PREFIXED_ID = re.compile(r"functions\.([^\s:]+)(?::\S*)?")
_BARE_NAME = re.compile(r"(?!functions|call[_-]|toolu[_-]|chatcmpl-)[A-Za-z_][\w.-]*")
_WRITTEN_ID = re.compile(r"functions\.(.+):[0-9]+", re.DOTALL)


class KimiScanner(ArgumentScanner):
    """Reads Kimi in five states; see the grammar above.

    `outside` (text) -> `section` -> `header` (the id) -> `args` -> `section` -> ... -> `outside`, and `thinking` beside
    them. A call that stands outside a section is read as well, and a section that was never ended ends with its turn.
    """

    assistant_openers = ("<|im_assistant|>",)
    turn_openers = TURN_OPENERS
    text_markers = MarkerSet(CONTROL_TOKENS)
    thinking_tags = (THINK_BEGIN, THINK_END)
    call_ends = (CALL_END,)
    argument_ends = MarkerSet([*CALL_MARKERS, *TURN_TOKENS])
    broken_ends = MarkerSet(CALL_MARKERS)
    string_ends = StringEnds(
        r"<\|tool_call_end\|>\s{0,64}<\|(?:tool_call_begin|tool_calls?_section_(?:begin|end)|im_\w{3,9})\|>"
        r"|<\|tool_call_begin\|>\s{0,64}[\w.:-]{1,256}\s{0,64}<\|tool_call_argument_begin\|>"
        r"|<\|tool_calls?_section_end\|>\s{0,64}<\|(?:tool_calls?_section_begin|im_\w{3,9})\|>",
        markers=(CALL_BEGIN, CALL_END, *SECTION_ENDS),
        closers=(CALL_END, *SECTION_ENDS),
    )

    def _reset(self) -> None:
        self.in_section = False
        self.section_repairs: tuple[str, ...] = ()
        self.header_start = 0
        super()._reset()

    def outside(self) -> State | None:
        return self.after(self.read_text(self.text_markers))

    def thinking(self) -> State | None:
        return self.after(self.read_text(self.text_markers))

    def section(self) -> State | None:
        self.skip_layout(self.text_markers)
        return self.after(self.read_text(self.text_markers))

    def after(self, marker: str | None) -> State | None:
        """Pass the marker at the cursor; the state that it leads to."""
        if marker is None:
            return None
        if marker in TURN_OPENERS:
            return self.turn_header(marker)
        if marker == CALL_BEGIN:
            return self.call_begin()
        if marker in SECTION_BEGINS:
            self.in_section = True
            self.section_repairs = ("unclosed-thinking",) if self.thinking_open else ()
            self.end_thinking()
        elif marker == THINK_END:
            self.end_thinking()
        elif marker in SECTION_ENDS or marker == TURN_END:
            self.in_section = False
        self.pass_markup(marker)
        if marker == THINK_BEGIN:
            self.begin_thinking()
        return self.home()

    def home(self) -> State:
        """The state that goes on where no call is open."""
        if self.thinking_open:
            return self.thinking
        return self.section if self.in_section else self.outside

    def call_begin(self) -> State:
        self.begin_call(*self.section_repairs, *(() if self.in_section else ("missing-section",)))
        self.section_repairs = ()
        self.tape.i += len(CALL_BEGIN)
        self.header_start = self.tape.pos
        return self.header

    def header(self) -> State | None:
        tape = self.tape
        tape.i, marker = HEADER_ENDS.find(tape.text, tape.i, final=self.final)
        if marker is None:
            if self.final:
                self.drop_call("unfinished")
                return self.home()
            return None
        call_id = tape.slice(self.header_start, tape.pos).strip()
        if marker in (ARGUMENTS_BEGIN, "{"):
            if marker == "{":
                self.open_call.repairs.append("missing-arguments-begin")
            else:
                tape.i += len(marker)
            self.identify(call_id)
            self.begin_arguments()
            return self.args
        name, resolved = name_in_id(call_id, self.tools)
        if marker != CALL_END or name is None or (resolved and name not in (self.tools or ())):
            tape.i += len(marker) if marker == CALL_END else 0
            self.drop_call("malformed")
            return self.after_call()
        tape.i += len(marker)
        self.identify(call_id)
        self.end_call(self.write_arguments(Arguments({}, "{}", ("empty-arguments",))))
        return self.after_call()

    def after_call(self) -> State:
        return self.section

    def turn_header(self, marker: str) -> State | None:
        """A role token and what belongs to it. Only an assistant's turn may go on."""
        tape = self.tape
        header = TURN_HEADER.match(tape.text, tape.i, partial=not self.final)
        if header is None:
            self.pass_markup(marker)
            cut = CUT_HEADER.match(tape.text, tape.i) if self.final else None
            tape.i = cut.end() if cut else tape.i
            return self.home()
        if header.partial:
            return None
        if header["role"] == "assistant":
            self.end_thinking()
            self.in_section = False
            self.pass_markup(header.group())
            return self.outside
        is_system = header["role"] == "system"
        result = RESULT_HEADING.match(tape.text, header.end(), partial=not self.final) if is_system else None
        if result is not None and result.partial:
            return None
        self.stop("fabricated-turn" if result is None else "fabricated-result")
        return self.outside

    # The id is where the name is.

    def identify(self, call_id: str) -> None:
        """Name the open call by its id, if that says the name."""
        self.native_id = call_id
        name, resolved = name_in_id(call_id, self.tools)
        if resolved:
            self.open_call.repairs.append("resolved-name")
        if name is not None:
            self.name_call(name, call_id)

    def finish_arguments(self, end: int) -> Arguments:
        arguments = super().finish_arguments(end)
        if self.open_call.name is not None or arguments.too_deep:
            return arguments
        name, value = name_by_arguments(arguments.value, self.tools or {})
        if name is None:
            return arguments
        self.open_call.repairs.append("resolved-name")
        self.name_call(name, self.native_id)
        text = arguments.text if value is arguments.value else dump(value)
        return self.write_arguments(Arguments(value, text, arguments.repairs))


def name_in_id(call_id: str, tools: Mapping[str, Tool] | None) -> tuple[str | None, bool]:
    """The name that an id says, and whether that had to be resolved: the index is missing, or all is glued together."""
    compact = re.sub(r"\s*([.:])\s*", r"\1", call_id)
    written = _ID.fullmatch(compact)
    if written and (not tools or written[1] in tools):
        return written[1], False
    glued = [name for name in tools or () if re.fullmatch(rf"(?:functions)?\W?{re.escape(name)}\W?\d*", compact)]
    if len(glued) == 1:
        return glued[0], True
    if prefixed := written or _PREFIXED_ID.fullmatch(compact):
        return prefixed[1], prefixed is not written
    if tools is None and _BARE_NAME.fullmatch(call_id):
        return call_id, True
    return None, False


def name_by_arguments(value: dict[str, Any], tools: Mapping[str, Tool]) -> tuple[str | None, dict[str, Any]]:
    """The only tool that the arguments fit, and its arguments: they may hold the tool's name beside the rest."""
    named = tools.get(str(value.get("name")))
    if named is not None and "name" not in named.properties:
        rest = {key: item for key, item in value.items() if key != "name"}
        inner = rest.get("arguments") if len(rest) == 1 else None
        return named.name, inner if isinstance(inner, dict) else rest
    fitting = [tool.name for tool in tools.values() if tool.fits(value)]
    return (fitting[0] if len(fitting) == 1 else None), value


class Kimi(Dialect):
    """The Kimi-K2 family's dialect."""

    name = "kimi"
    title = "Kimi-K2"
    models = r"kimi[-_ ]?k2"
    control_tokens = CONTROL_TOKENS
    scanner = KimiScanner
    call_marks = ((SECTION_BEGINS[1],),)
    generation_prompt = f"<|im_assistant|>assistant{TURN_MIDDLE}"
    turns = Turns(
        headers={
            "tool": r"<\|im_system\|>(?P<name>[^<]*)<\|im_middle\|>## Return of (?P<id>[^\n<]+)\n",
            **of_each_role(r"<\|im_ROLE\|>(?:ROLE|(?P<name>[^<]*))<\|im_middle\|>"),
        },
        end=r"<\|im_end\|>",
    )

    def call_text(self, call: ToolCall, tools: Tools) -> str:
        return f"{CALL_BEGIN}{call.id}{ARGUMENTS_BEGIN}{compact_json(call.arguments)}{CALL_END}"

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        return SECTION_BEGIN + "".join(self.call_text(call, tools) for call in calls) + SECTION_END

    def results_text(self, results: Sequence[ToolResult]) -> str:
        return "".join(self.turn_text("system", *_return(*item)) for item in enumerate(results))

    def bare_results_text(self, results: Sequence[ToolResult]) -> str:
        return "\n".join(_return(*item)[1] for item in enumerate(results))

    def turn_text(self, role: str, name: str | None, body: str) -> str:
        return f"<|im_{role}|>{name or role}{TURN_MIDDLE}{body}{TURN_END}"

    def written_ids(self, calls: Sequence[ToolCall]) -> Sequence[str]:
        """A call's own id where it says the call's name, else `functions.NAME:` and the call's position in its message.

        Two calls of a message never share an id: the second would lose its result to the first.
        """
        kept = {call.id for call in calls if _name_in(call.id) == call.name}
        written: dict[str, None] = {}
        for position, call in enumerate(calls):
            if call.id is not None and _name_in(call.id) == call.name and call.id not in written:
                written[call.id] = None
                continue
            numbered = (f"functions.{call.name}:{index}" for index in count(position))
            written[next(call_id for call_id in numbered if call_id not in kept and call_id not in written)] = None
        return list(written)

    def is_written_id(self, call_id: str) -> bool:
        return _name_in(call_id) is not None


KIMI = Kimi()


def _name_in(call_id: str | None) -> str | None:
    """The tool's name, if the id is of the form that the family writes."""
    match = _WRITTEN_ID.fullmatch(call_id or "")
    return match[1] if match else None


def _return(position: int, result: ToolResult) -> tuple[str, str]:
    """The name and the body of a result's turn."""
    name = result.name or _name_in(result.call_id) or "tool"
    call_id = result.call_id if _name_in(result.call_id) else f"functions.{name}:{position}"
    return name, f"## Return of {call_id}\n{result.content}"
