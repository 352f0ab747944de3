"""Templates of Kimi-K2: a turn a message, results as system turns, the tools declared first.

K2-Instruct and K2-Thinking declare tools as JSON and insert a default system turn; K2.5 and later insert none, can
declare tools in TypeScript, and open the thinking in the generation prompt. All that think have a think block in every
assistant turn; its text is kept only behind the last assistant turn without calls.

Source: the vendor's `chat_template` of each model, and its tokenizer code, which sorts the keys of tools.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dialects.templates.fields import (
    arguments_of,
    joined_parts,
    printed,
    text_or_json,
)
from dialects.templates.kimi_typescript import UnwritableSchemaError, typescript_declaration
from dialects.templates.template import Certainty, Chat, Fields, Template, choice, flag

__all__ = ["TEMPLATES"]

MIDDLE, END = "<|im_middle|>", "<|im_end|>"
GENERATION_PROMPT = f"<|im_assistant|>assistant{MIDDLE}"
DEFAULT_SYSTEM = f"<|im_system|>system{MIDDLE}You are Kimi, an AI assistant created by Moonshot AI.{END}"
ROLE_TOKENS = {"user": "<|im_user|>", "assistant": "<|im_assistant|>"}


@dataclass(frozen=True, kw_only=True)
class KimiTemplate(Template):
    """Kimi-K2. `default_system` is inserted where the conversation does not begin with a system message."""

    default_system: str = ""
    thinks: bool = True
    opens_thinking: bool = False

    def pieces(self, chat: Chat) -> Iterator[str]:
        messages, options = chat.messages, chat.options
        if chat.tools:
            yield f"<|im_system|>tool_declare{MIDDLE}{_declaration(chat)}{END}"
        if self.default_system and (messages[0]["role"] != "system" if messages else self.thinks):
            yield self.default_system
        is_thinking = options.get("thinking", True)
        first_kept = 0 if options.get("preserve_thinking") else _last_answer(messages) + 1
        for index, message in enumerate(messages):
            role = message["role"]
            yield f"{ROLE_TOKENS.get(role, '<|im_system|>')}{message.get('name') or role}{MIDDLE}"
            if role == "tool":
                yield f"## Return of {printed(message.get('tool_call_id', ''))}\n"
            if role == "assistant" and self.thinks:
                kept = is_thinking and index >= first_kept
                yield f"<think>{printed(message.get('reasoning_content', '')) if kept else ''}</think>"
            yield joined_parts(message.get("content"))
            if role == "assistant" and message.get("tool_calls"):
                yield _calls(message["tool_calls"])
            yield END
        if chat.add_generation_prompt:
            yield GENERATION_PROMPT
            if self.opens_thinking:
                yield "<think>" if is_thinking else "<think></think>"

    def normalised(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Calls without an id get the one that the model would have written: its index counts all calls so far."""
        written = 0
        unanswered: list[str] = []
        for message in messages:
            if message["role"] == "tool":
                call_id = unanswered.pop(0) if unanswered else ""
                message.setdefault("tool_call_id", call_id)
                continue
            unanswered = []
            for call in message.get("tool_calls", ()):
                call.setdefault("id", f"functions.{call['function']['name']}:{written}")
                unanswered.append(call["id"])
                written += 1
        return messages


def _declaration(chat: Chat) -> str:
    if chat.options.get("tool_declaration") == "typescript":
        try:
            return typescript_declaration(chat.tools)
        except UnwritableSchemaError:
            pass  # as the vendor's tokenizer does: JSON is what is left
    return json.dumps(chat.tools, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _last_answer(messages: Sequence[Fields]) -> int:
    """Where the last assistant message without calls is; -1 if there is none."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] == "assistant" and not messages[index].get("tool_calls"):
            return index
    return -1


def _calls(calls: Sequence[Fields]) -> str:
    return f"<|tool_calls_section_begin|>{''.join(map(_call, calls))}<|tool_calls_section_end|>"


def _call(call: Fields) -> str:
    written = text_or_json(arguments_of(call))
    call_id = printed(call.get("id", ""))
    return f"<|tool_call_begin|>{call_id}<|tool_call_argument_begin|>{written}<|tool_call_end|>"


_DECLARATION = choice("json", "typescript", default="json")

TEMPLATES = (
    KimiTemplate(
        name="Kimi-K2-Instruct",
        certainty=Certainty.RESTORED,
        models=r"kimi[-_ ]?k2(?!\.\d)(?!.*thinking)",
        default_system=DEFAULT_SYSTEM + "\n",
        thinks=False,
    ),
    KimiTemplate(
        name="Kimi-K2-Thinking",
        certainty=Certainty.RESTORED,
        models=r"kimi[-_ ]?k2[-_ ]thinking",
        default_system=DEFAULT_SYSTEM,
    ),
    KimiTemplate(
        name="Kimi-K2.5",
        certainty=Certainty.COPIES,
        models=r"kimi[-_ ]?k2\.5",
        opens_thinking=True,
        options={"thinking": flag(True), "tool_declaration": _DECLARATION},
    ),
    KimiTemplate(
        name="Kimi-K2.6",
        certainty=Certainty.RESTORED,
        models=r"kimi[-_ ]?k2\.6",
        opens_thinking=True,
        options={"thinking": flag(True), "preserve_thinking": flag(False), "tool_declaration": _DECLARATION},
    ),
)
