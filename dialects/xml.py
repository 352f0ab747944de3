"""XML: function and parameter tags without anything around them, for models that have no form of their own.

    ( <invoke name="NAME"> ( <parameter name="KEY"> VALUE </parameter> )* </invoke> )+

An invoke stands on one line. A VALUE is plain text where the tool's schema allows only strings, white space and all,
and JSON elsewhere; entities in it are what they look like, while in the names `&`, `<`, `>` and `"` are escaped. Any
tag may have a namespace (`ns:invoke`), and calls may stand between the tags of a section, `<tool_calls>` or
`<function_calls>`. A call has no id. The results of a batch stand in the next human turn, each between
`<tool_response>` and `</tool_response>`, in the order of the calls. Thinking comes first, in `<thinking>` and
`</thinking>`. Turns begin with `Human:` and `Assistant:` behind an empty line; the system's text comes before all of
them.

Source: no chat template exists; the in-band form of the reference renderer.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from dialects.engine.dialect import Tools
from dialects.engine.invoke_tags import InvokeTags, PlainInvokeScanner
from dialects.engine.plain_tags import RESULT_BEGIN, RESULT_END
from dialects.engine.rendering import tagged_results
from dialects.engine.text_turns import ASSISTANT, HUMAN, InvokeDialect, TextTurns, text_transcript
from dialects.messages import Message, ToolResult

__all__ = ["XML", "Xml", "XmlScanner"]

CONTROL_TOKENS = (
    HUMAN,
    ASSISTANT,
    "<invoke",
    "</invoke>",
    "<parameter",
    "</parameter>",
    RESULT_BEGIN,
    RESULT_END,
    *TextTurns.thinking_tags,
)


class XmlScanner(TextTurns, PlainInvokeScanner):
    """Reads it: `outside`, `thinking`, `section` (around calls), and of a call `invoke` (its opening tag), `pairs`
    (between its parameters), `parameter` (an opening tag) and `value`."""

    tags = InvokeTags(sections=("function_calls", "tool_calls", "tool_call"))
    result_ends = (RESULT_END,)


class Xml(InvokeDialect):
    """The dialect of those that have none of their own."""

    name = "xml"
    title = "any model, by its prompt"
    models = r"(?!)"
    control_tokens = CONTROL_TOKENS
    scanner = XmlScanner
    turns = text_transcript(RESULT_BEGIN, rf"{RESULT_BEGIN}\n(?P<text>.*?)\n{RESULT_END}(?=\s*(?:{RESULT_BEGIN}|\Z))")
    section = ("", "")

    def assistant_text(self, message: Message, tools: Tools) -> str:
        """A backtick on the text's last line would quote the call with the next one that stands in its values."""
        if message.tool_calls and "`" in message.content.rpartition("\n")[2]:
            message = replace(message, content=f"{message.content}\n")
        return super().assistant_text(message, tools)

    def results_text(self, results: Sequence[ToolResult]) -> str:
        return tagged_results(RESULT_BEGIN, results, RESULT_END)


XML = Xml()
