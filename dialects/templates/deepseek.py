"""Templates of DeepSeek-V3, R1 and V3.1, and of those with an encoder (`deepseek_encoder.py`): V3.2, V4 and V4.1.

The chat templates write arguments as the JSON text that they came as, ignore tools, and never write reasoning. What
stands before a message depends on what came before it, so each keeps a state.

Source: the vendor's `chat_template` of V3, R1 and V3.1; what differs in V3-0324 and R1-0528 is known, but not recorded.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dialects.templates.deepseek_encoder import (
    ANY_TOKEN,
    ASSISTANT,
    BOS,
    EOS,
    SYSTEM,
    THINK,
    THINKING_MODE,
    THOUGHT,
    USER,
    V4Template,
    V32Template,
)
from dialects.templates.fields import (
    arguments_of,
    function_of,
    needs_text,
    pyjson,
    with_paths,
)
from dialects.templates.template import Certainty, Chat, Fields, Option, Template, TemplateError, any_text, flag, number

__all__ = ["TEMPLATES"]

CALLS_BEGIN, CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL_BEGIN, SEPARATOR, CALL_END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
OUTPUTS_BEGIN, OUTPUTS_END = "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"
OUTPUT_BEGIN, OUTPUT_END = "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"


@dataclass(frozen=True, kw_only=True)
class ChatTemplate(Template):
    """What the two have in common."""

    options: Mapping[str, Option] = field(default_factory=lambda: {"bos_token": any_text(BOS)})
    control_tokens: tuple[str, ...] = (ANY_TOKEN,)

    def normalised(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Arguments become text, the only thing that these templates can write."""
        for message in messages:
            for call in message.get("tool_calls", ()):
                arguments = arguments_of(call)
                if not isinstance(arguments, str):
                    call["function"]["arguments"] = pyjson(arguments)
        return messages


@dataclass(frozen=True, kw_only=True)
class V3Template(ChatTemplate):
    """V3 and R1. The older file opens a batch of calls, and one of results, only once in a conversation: what comes
    later lacks its opener, and the assistant's token with it. The later ones `restart` with every batch."""

    generation_prompt: str
    restarts: bool = True
    between_outputs: str = ""

    def pieces(self, chat: Chat) -> Iterator[str]:
        yield chat.options["bos_token"] + _system_texts(chat.messages)
        has_called = has_output = in_outputs = False
        for index, message in enumerate(chat.messages):
            role, content, path = message["role"], message.get("content"), f"messages[{index}]"
            if role == "user":
                in_outputs = False
                yield USER + needs_text(content, f"{path}.content")
            elif role == "assistant" and "tool_calls" in message:
                begin = ASSISTANT
                if self.restarts:
                    has_called = has_output = False
                    begin = OUTPUTS_END if in_outputs else ASSISTANT
                in_outputs = False
                for call, where in with_paths(_calls(message, path), path):
                    written = _fenced_call(call, where)
                    opener = "\n" if has_called else begin + _text_beside_calls(message, path) + CALLS_BEGIN
                    yield opener + written
                    has_called = True
                yield CALLS_END + EOS
            elif role == "assistant":
                text = needs_text(content, f"{path}.content")
                yield OUTPUTS_END + text if in_outputs else ASSISTANT + text.rpartition(THOUGHT)[2]
                yield EOS
                in_outputs = False
            elif role == "tool":
                yield self.between_outputs if has_output else OUTPUTS_BEGIN
                yield OUTPUT_BEGIN + needs_text(content, f"{path}.content") + OUTPUT_END
                has_output = in_outputs = True
        if in_outputs:
            yield OUTPUTS_END
        elif chat.add_generation_prompt:
            yield self.generation_prompt


@dataclass(frozen=True, kw_only=True)
class V31Template(ChatTemplate):
    """V3.1: the assistant's token, and thinking that is off, stand before its first message after the user's."""

    options: Mapping[str, Option] = field(
        default_factory=lambda: {"bos_token": any_text(BOS), "thinking": flag(default=False)}
    )

    def pieces(self, chat: Chat) -> Iterator[str]:
        yield chat.options["bos_token"] + _system_texts(chat.messages)
        asked = in_outputs = False
        for index, message in enumerate(chat.messages):
            role, content, path = message["role"], message.get("content"), f"messages[{index}]"
            if role == "user":
                yield USER + needs_text(content, f"{path}.content")
            elif role == "assistant":
                yield ASSISTANT + THOUGHT if asked else ""
                if message.get("tool_calls") is not None:
                    calls = [_bare_call(call, where) for call, where in with_paths(_calls(message, path), path)]
                    yield f"{_text_beside_calls(message, path)}{CALLS_BEGIN}{''.join(calls)}" if calls else ""
                    yield CALLS_END
                else:
                    text = needs_text(content, f"{path}.content")
                    yield text.partition(THOUGHT)[2] if THOUGHT in text and not in_outputs else text
                yield EOS
            elif role == "tool":
                yield OUTPUT_BEGIN + needs_text(content, f"{path}.content") + OUTPUT_END
            else:
                continue
            asked, in_outputs = role == "user", role == "tool"
        if chat.add_generation_prompt and asked:
            yield ASSISTANT + (THINK if chat.options["thinking"] else THOUGHT)


def _system_texts(messages: Sequence[Fields]) -> str:
    return "\n\n".join(
        needs_text(message.get("content"), f"messages[{index}].content")
        for index, message in enumerate(messages)
        if message["role"] == "system"
    )


def _calls(message: Fields, path: str) -> Sequence[Fields]:
    calls: Sequence[Fields] | None = message["tool_calls"]
    if calls is None:
        raise TemplateError("the template needs a list of calls, found None", f"{path}.tool_calls")
    return calls


def _text_beside_calls(message: Fields, path: str) -> str:
    """None is no text; not to say so is a fault."""
    content = message.get("content")
    return "" if content is None and "content" in message else needs_text(content, f"{path}.content")


def _fenced_call(call: Fields, path: str) -> str:
    kind = needs_text(call.get("type"), f"{path}.type")
    arguments = needs_text(arguments_of(call), f"{path}.function.arguments")
    return f"{CALL_BEGIN}{kind}{SEPARATOR}{function_of(call)['name']}\n```json\n{arguments}\n```{CALL_END}"


def _bare_call(call: Fields, path: str) -> str:
    arguments = needs_text(arguments_of(call), f"{path}.function.arguments")
    return f"{CALL_BEGIN}{function_of(call)['name']}{SEPARATOR}{arguments}{CALL_END}"


TEMPLATES = (
    V3Template(
        name="DeepSeek-V3",
        certainty=Certainty.COPY,
        models=r"deepseek[-_/ ]?(?:v3(?![._-]?\d)|r1(?!-0528))",
        generation_prompt=f"{ASSISTANT}{THINK}\n",
        restarts=False,
    ),
    V3Template(
        name="DeepSeek-V3-0324",
        certainty=Certainty.DESCRIBED,
        models=r"deepseek[-_/ ]?v3-0324",
        generation_prompt=ASSISTANT,
    ),
    V3Template(
        name="DeepSeek-R1-0528",
        certainty=Certainty.DESCRIBED,
        models=r"deepseek[-_/ ]?r1-0528",
        generation_prompt=ASSISTANT,
        between_outputs="\n",
    ),
    V31Template(name="DeepSeek-V3.1", certainty=Certainty.RESTORED, models=r"deepseek[-_ ]?v3[._-]?(?:1|2[-_ ]?exp)"),
    V32Template(
        name="DeepSeek-V3.2",
        certainty=Certainty.ENCODER,
        models=r"deepseek[-_ ]?v3[._-]?2(?!.*exp)",
        calls="function_calls",
    ),
    V4Template(name="DeepSeek-V4", certainty=Certainty.ENCODER, models=r"deepseek[-_ ]?v4(?!\.1)", calls="tool_calls"),
    V4Template(
        name="DeepSeek-V4.1",
        certainty=Certainty.ENCODER,
        models=r"deepseek[-_ ]?v4\.1",
        tag="｜DSML｜ ",
        calls="calls",
        begins_system=SYSTEM,
        joins_parts=True,
        options={"thinking_mode": THINKING_MODE, "reasoning_effort": number(75, 1, 100)},
    ),
)
