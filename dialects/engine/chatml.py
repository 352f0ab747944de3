"""ChatML's turns: `<|im_start|>`, the role, a newline, the body, `<|im_end|>` and a newline."""

import re
from collections.abc import Mapping
from typing import ClassVar

import regex

__all__ = ["TURN_BEGIN", "TURN_END", "ChatmlTurns", "chatml_turn"]

TURN_BEGIN, TURN_END = "<|im_start|>", "<|im_end|>"


def chatml_turn(role: str, body: str) -> str:
    """A turn."""
    return f"{TURN_BEGIN}{role}\n{body}{TURN_END}\n"


class ChatmlTurns:
    """What a `PlainTagScanner` needs to know of the turns."""

    turn_opener = f"{TURN_BEGIN}assistant"
    turn_openers: ClassVar[tuple[str, ...]] = (TURN_BEGIN,)
    turn_header_pattern = regex.compile(r"<\|im_start\|>(?P<role>\w{1,32})\n")
    cut_turn_header = re.compile(r"<\|im_start\|>(?:system|user|assistant|tool)?\Z")
    roles: ClassVar[Mapping[str, str | None]] = {"assistant": None, "tool": "fabricated-result"}
