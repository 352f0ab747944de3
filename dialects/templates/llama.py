"""Templates of Llama 3.1, 3.2 and 3.3: a header a turn, tools in the first user's turn, one call a message.

The system turn is always there, with a date: that of the release in 3.1 and 3.3, the real one in 3.2. What comes first
behind the system message is put into the user's turn with the tools, whoever said it. Text beside a call is dropped,
and more calls than one are refused; normalised, they become messages of their own, each with its result.

Source: the vendor's `chat_template` of each model.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dialects.templates.fields import (
    after_system,
    arguments_of,
    function_of,
    needs_messages,
    printed,
    pyjson,
)
from dialects.templates.template import Certainty, Chat, Fields, Option, Template, TemplateError, any_text, flag

__all__ = ["TEMPLATES"]

TURN_END = "<|eot_id|>"
DATES = "Cutting Knowledge Date: December 2023\nToday Date: {}\n\n"
FORMAT = (
    'Respond in the format {"name": function name, "parameters": dictionary of argument name and its value}.'
    "Do not use variables.\n\n"
)
FOR_USER = (
    "Given the following functions, please respond with a JSON for a function call with its proper arguments that best "
    f"answers the given prompt.\n\n{FORMAT}"
)
FOR_SYSTEM = (
    "You have access to the following functions. To call a function, please respond with JSON for a function call."
    + FORMAT
)


@dataclass(frozen=True, kw_only=True)
class LlamaTemplate(Template):
    """Llama 3.1 and later, with the date that it prints, or None for today's."""

    options: Mapping[str, Option] = field(
        default_factory=lambda: {"bos_token": any_text("<|begin_of_text|>"), "tools_in_user_message": flag(True)}
    )
    quotes_string_arguments: bool = True
    date: str | None = None

    def pieces(self, chat: Chat) -> Iterator[str]:
        messages, in_user_turn = needs_messages(chat.messages), chat.options["tools_in_user_message"]
        first = after_system(messages)
        tools = "".join(f"{json.dumps(tool, ensure_ascii=False, indent=4)}\n\n" for tool in chat.tools)
        yield chat.options["bos_token"] + _header("system")
        yield "Environment: ipython\n" if tools else ""
        yield DATES.format(self.date or chat.now.strftime("%d %b %Y"))
        yield FOR_SYSTEM + tools if tools and not in_user_turn else ""
        yield (_trimmed(messages[0]) if first else "") + TURN_END
        if tools and in_user_turn:
            if len(messages) == first:
                raise TemplateError("the template needs a message of the user to put the tools into", "messages")
            yield f"{_header('user')}{FOR_USER}{tools}{_trimmed(messages[first])}{TURN_END}"
            first += 1
        for index in range(first, len(messages)):
            message, role = messages[index], messages[index]["role"]
            if "tool_calls" in message:
                yield f"{_header('assistant')}{_call(message['tool_calls'], f'messages[{index}]')}{TURN_END}"
            elif role == "tool":
                content = message["content"]
                yield f"{_header('ipython')}{printed(content) if content is None else pyjson(content)}{TURN_END}"
            else:
                yield f"{_header(role)}{_trimmed(message)}{TURN_END}"
        if chat.add_generation_prompt:
            yield _header("assistant")

    def normalised(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A message with several calls becomes several, each followed by the results of its call."""
        single: list[dict[str, Any]] = []
        place = 0
        while place < len(messages):
            message = messages[place]
            place += 1
            calls = message.get("tool_calls", ())
            if len(calls) < 2:
                single.append(message)
                continue
            end = place
            while end < len(messages) and messages[end]["role"] == "tool":
                end += 1
            answers = _by_call(calls, messages[place:end])
            for call, results in zip(calls, answers, strict=True):
                single += [{**message, "tool_calls": [call]}, *results]
            place = end
        return single


def _header(role: str) -> str:
    return f"<|start_header_id|>{role}<|end_header_id|>\n\n"


def _trimmed(message: Fields) -> str:
    return printed(message.get("content", "")).strip()


def _call(calls: Sequence[Fields] | None, path: str) -> str:
    if calls is None or len(calls) != 1:
        raise TemplateError("the template knows only one call a message", f"{path}.tool_calls")
    return f'{{"name": "{function_of(calls[0])["name"]}", "parameters": {pyjson(arguments_of(calls[0]))}}}'


def _by_call(calls: Sequence[Fields], results: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The results of each call: those with its id, and of others those at its position, or behind the last."""
    places = {call["id"]: place for place, call in enumerate(calls) if "id" in call}
    answers: list[list[dict[str, Any]]] = [[] for _ in calls]
    for position, result in enumerate(results):
        place = places.get(result.get("tool_call_id"), min(position, len(calls) - 1))
        answers[place].append(result)
    return answers


TEMPLATES = (
    LlamaTemplate(
        name="Llama-3.3-70B-Instruct", certainty=Certainty.VENDOR, models=r"llama[-_ ]?3\.[13]", date="26 Jul 2024"
    ),
    LlamaTemplate(name="Llama-3.2-3B-Instruct", certainty=Certainty.COPIES, models=r"llama[-_ ]?3\.2(?!.*vision)"),
)
