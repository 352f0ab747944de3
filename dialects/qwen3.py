"""Qwen3: the JSON dialect of Qwen2.5, Qwen3 and QwQ (Qwen3-Coder and Qwen3.5 have another).

A turn is `<|im_start|>`, the role, a newline, the body and `<|im_end|>` (ChatML). An assistant's body ends with its
calls, each one JSON object between two tags, one after the other, a newline between them:

    ( <tool_call> {"name": NAME, "arguments": ARGUMENTS} </tool_call> )+

ARGUMENTS is a JSON object. A call has no id. All results of a batch stand in one turn of the user, each between
`<tool_response>` and `</tool_response>`, in the order of the calls. Thinking comes first, in `<think>` and `</think>`,
a newline on the inner sides of the tags; the prompt may have opened it.

Source: the chat templates of Qwen2.5, Qwen3 and the 2507 releases, and Qwen's function-calling guide.
"""

from dialects.engine.chatml import ChatmlJsonDialect, ChatmlJsonScanner, chatml_transcript

__all__ = ["QWEN3", "Qwen3", "Qwen3Scanner"]


class Qwen3Scanner(ChatmlJsonScanner):
    """Reads Qwen3: `outside`, `thinking`, and of a call `block` (before each of its objects) and `args` (in one)."""


class Qwen3(ChatmlJsonDialect):
    """The dialect of Qwen2.5, Qwen3 and QwQ."""

    name = "qwen3"
    title = "Qwen2.5, Qwen3 and QwQ"
    models = r"qwen[-_ ]?2\.5|qwen[-_ ]?3(?![-_ ]?coder)(?!\.\d)|qwq"
    rank = -1
    scanner = Qwen3Scanner
    results_role = "user"
    turns = chatml_transcript(results_role)


QWEN3 = Qwen3()
