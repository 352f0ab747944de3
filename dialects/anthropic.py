"""Anthropic: function and parameter tags in a section of calls, as Claude models were prompted to write them.

    <function_calls>
    ( <invoke name="NAME"> ( <parameter name="KEY"> VALUE </parameter> )* </invoke> )+
    </function_calls>

An invoke stands on one line. A VALUE is plain text where the tool's schema allows only strings, white space and all,
and JSON elsewhere; entities in it are what they look like, while in the names `&`, `<`, `>` and `"` are escaped. Any
tag may have a namespace (`ns:invoke`). A call has no id. The results of a batch stand in the next human turn, in the
order of the calls:

    <function_results> ( <result> <tool_name> NAME </tool_name> <stdout> TEXT </stdout> </result> )+ </function_results>

with `<error>` and `<stderr>` for a call that failed. Thinking comes first, in `<thinking>` and `</thinking>`. Turns
begin with `Human:` and `Assistant:` behind an empty line; the system's text comes before all of them.

Source: no chat template exists; the in-band form of the reference renderer.
"""

from collections.abc import Sequence

from dialects.engine.invoke_tags import InvokeTags, PlainInvokeScanner
from dialects.engine.text_turns import (
    ASSISTANT,
    HUMAN,
    InvokeDialect,
    TextTurns,
    function_results,
)
from dialects.messages import ToolResult

__all__ = ["ANTHROPIC", "Anthropic", "AnthropicScanner"]

SECTION_BEGIN, SECTION_END = "<function_calls>", "</function_calls>"
RESULTS_BEGIN, RESULTS_END = "<function_results>", "</function_results>"
CONTROL_TOKENS = (
    HUMAN,
    ASSISTANT,
    SECTION_BEGIN,
    SECTION_END,
    "<invoke",
    "</invoke>",
    "<parameter",
    "</parameter>",
    RESULTS_BEGIN,
    RESULTS_END,
    *TextTurns.thinking_tags,
)


class AnthropicScanner(TextTurns, PlainInvokeScanner):
    """Reads it: `outside`, `thinking`, `section` (around calls), and of a call `invoke` (its opening tag), `pairs`
    (between its parameters), `parameter` (an opening tag) and `value`."""

    tags = InvokeTags(sections=("function_calls", "tool_calls", "tool_call"))
    result_begins = (RESULTS_BEGIN,)
    result_ends = (RESULTS_END,)


class Anthropic(InvokeDialect):
    """The dialect of Claude's prompts."""

    name = "anthropic"
    title = "Claude"
    models = r"claude"
    control_tokens = CONTROL_TOKENS
    scanner = AnthropicScanner
    section = (f"{SECTION_BEGIN}\n", f"\n{SECTION_END}")

    def results_text(self, results: Sequence[ToolResult]) -> str:
        return function_results(results)


ANTHROPIC = Anthropic()
