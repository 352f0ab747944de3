"""Templates of Qwen2.5, Qwen3 and the 2507 releases: ChatML, tools in the first system turn, results as a user turn.

Two shapes. Qwen2.5 has a default system text and no thinking. Qwen3 has no default; reasoning is kept only in the turns
after the last query of the user, where a result that was passed as a user's message is no query.

Source: the vendor's `chat_template` of each model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dialects.templates.chatml import (
    RESULT_BEGIN,
    RESULT_END,
    TURN_BEGIN,
    TURN_END,
    is_query,
    json_calls,
    json_tools,
    turn,
)
from dialects.templates.fields import (
    is_first_of_run,
    is_last_of_run,
    needs_messages,
    needs_text,
    printed,
    split_thinking,
)
from dialects.templates.template import Certainty, Chat, Fields, Template, flag

__all__ = ["TEMPLATES"]

DEFAULT_SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
NO_THINKING = "<think>\n\n</think>\n\n"


@dataclass(frozen=True, kw_only=True)
class Qwen3Template(Template):
    """Qwen3. `thinks` says whether it knows thinking at all, `always_thinks` that every turn after the last query has
    a block, and the generation prompt opens one; else only the last message has one, and those with reasoning."""

    thinks: bool = True
    always_thinks: bool = False

    def pieces(self, chat: Chat) -> Iterator[str]:
        messages = needs_messages(chat.messages)
        yield _system_turn(chat)
        query = _last_query(messages) if self.thinks else 0
        for index, message in enumerate(messages):
            role, content = message["role"], message.get("content")
            content = content if isinstance(content, str) else ""
            if role == "user" or (role == "system" and index > 0):
                yield turn(role, content)
            elif role == "assistant":
                thought, content = split_thinking(message, content) if self.thinks else ("", content)
                is_last = index + 1 == len(messages)
                has_block = self.thinks and index > query and (self.always_thinks or is_last or thought)
                yield _assistant_turn(message, thought if has_block else None, content)
            elif role == "tool":
                yield _result(messages, index, content)
        if chat.add_generation_prompt:
            yield f"{TURN_BEGIN}assistant\n"
            if self.always_thinks:
                yield "<think>\n"
            elif not chat.options.get("enable_thinking", True):
                yield NO_THINKING


@dataclass(frozen=True, kw_only=True)
class Qwen25Template(Template):
    """Qwen2.5, which joins every content to text and so refuses lists, and quotes arguments that came as text."""

    quotes_string_arguments: bool = True

    def pieces(self, chat: Chat) -> Iterator[str]:
        messages = needs_messages(chat.messages)
        yield self._system_turn(chat)
        for index, message in enumerate(messages):
            role, content, calls = message["role"], message.get("content"), message.get("tool_calls")
            if role == "assistant" and calls:
                body = "\n" + needs_text(content, f"messages[{index}].content") if content else ""
                yield f"{TURN_BEGIN}assistant{body}\n{json_calls(calls, quotes_text=True)}{TURN_END}"
            elif role in ("user", "assistant") or (role == "system" and index > 0):
                yield turn(role, needs_text(content, f"messages[{index}].content"))
            elif role == "tool":
                yield _result(messages, index, printed(content))
        if chat.add_generation_prompt:
            yield f"{TURN_BEGIN}assistant\n"

    def _system_turn(self, chat: Chat) -> str:
        first = chat.messages[0]
        content = first.get("content") if first["role"] == "system" else DEFAULT_SYSTEM
        if chat.tools:
            return turn("system", f"{printed(content)}\n\n{json_tools(chat.tools)}")
        return turn("system", needs_text(content, "messages[0].content"))


def _system_turn(chat: Chat) -> str:
    first = chat.messages[0]
    parts = [needs_text(first.get("content"), "messages[0].content")] if first["role"] == "system" else []
    if chat.tools:
        parts.append(json_tools(chat.tools))
    return turn("system", "\n\n".join(parts)) if parts else ""


def _last_query(messages: Sequence[Fields]) -> int:
    """Where the user asked last; the last message if nobody did."""
    for index in range(len(messages) - 1, -1, -1):
        content = messages[index].get("content")
        if messages[index]["role"] == "user" and isinstance(content, str) and is_query(content):
            return index
    return len(messages) - 1


def _assistant_turn(message: Fields, thought: str | None, content: str) -> str:
    calls = message.get("tool_calls")
    between = "\n" if calls and content else ""
    written = between + json_calls(calls) if calls else ""
    if thought is None:
        return turn("assistant", content + written)
    block = "<think>\n" + thought.strip("\n") + "\n</think>\n\n"
    return turn("assistant", block + content.lstrip("\n") + written)


def _result(messages: Sequence[Fields], index: int, text: str) -> str:
    begin = f"{TURN_BEGIN}user" if is_first_of_run(messages, index) else ""
    end = TURN_END if is_last_of_run(messages, index) else ""
    return f"{begin}\n{RESULT_BEGIN}\n{text}\n{RESULT_END}{end}"


TEMPLATES = (
    Qwen25Template(
        name="Qwen2.5-7B-Instruct", certainty=Certainty.COPIES, models=r"qwen[-_ ]?2\.5(?!.*(?:vl|omni|math|audio))"
    ),
    Qwen3Template(
        name="Qwen3-0.6B",
        certainty=Certainty.VENDOR,
        models=r"qwen[-_ ]?3(?![-_ ]?(?:next|vl|omni|guard|embedding|reranker|asr|tts))(?!.*2507)",
        options={"enable_thinking": flag(True)},
    ),
    Qwen3Template(
        name="Qwen3-4B-Instruct-2507",
        certainty=Certainty.VENDOR,
        models=r"qwen[-_ ]?3.*instruct[-_ ]?2507",
        thinks=False,
    ),
    Qwen3Template(
        name="Qwen3-4B-Thinking-2507",
        certainty=Certainty.RESTORED,
        models=r"qwen[-_ ]?3.*thinking[-_ ]?2507",
        always_thinks=True,
    ),
)
