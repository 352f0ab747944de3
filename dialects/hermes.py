"""Hermes: the dialect of Nous Research's Hermes 2 Pro, Hermes 3 and Hermes 4.

A turn is `<|im_start|>`, the role, a newline, the body and `<|im_end|>` (ChatML). An assistant's body ends with its
calls, each one JSON object between two tags, one after the other, a newline between them:

    ( <tool_call> {"name": NAME, "arguments": ARGUMENTS} </tool_call> )+

ARGUMENTS is a JSON object; a model may write it before the name. A call has no id. All results of a batch stand in one
turn of the role `tool`, each between `<tool_response>` and `</tool_response>`, in the order of the calls. Thinking
(Hermes 4) comes first, in `<think>` and `</think>`.

Source: Nous Research's Hermes-Function-Calling prompt format, and the chat templates of the family.
"""

from dialects.engine.chatml import ChatmlJsonDialect, ChatmlJsonScanner, chatml_transcript

__all__ = ["HERMES", "Hermes", "HermesScanner"]


class HermesScanner(ChatmlJsonScanner):
    """Reads Hermes: `outside`, `thinking`, and of a call `block` (before each of its objects) and `args` (in one)."""


class Hermes(ChatmlJsonDialect):
    """The Hermes family's dialect."""

    name = "hermes"
    title = "Hermes 2 Pro, 3 and 4"
    models = r"hermes[-_ ]?(2[-_ ]?pro|3|4)"
    rank = -3
    scanner = HermesScanner
    results_role = "tool"
    turns = chatml_transcript(results_role)


HERMES = Hermes()
