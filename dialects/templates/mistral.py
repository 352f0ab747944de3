"""Templates of Mistral's models: bracket tokens around what a user says, calls behind a token, no generation prompt.

The format was changed twice. In the first, calls are a JSON array and the system text stands in the last user's turn.
In the second (Small 3.2) every call has a token, its id another, and the system text has tokens of its own. In both the
tools stand before the last user's turn, ids have nine characters, and text beside calls is lost. The third (Ministral
3) has the tools once, after the system text, no ids, text beside calls, and thinking, which it takes from parts.

All want users and assistants to alternate, calls and results apart.

Source: the vendor's `chat_template` of Nemo and Ministral 3; the vendor's encoder of Small 3.2.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from dialects.templates.fields import (
    after_system,
    arguments_of,
    function_of,
    needs_messages,
    needs_text,
    printed,
    pyjson,
    with_paths,
)
from dialects.templates.template import Certainty, Chat, Fields, Option, Template, TemplateError, any_text

__all__ = ["TEMPLATES"]

SYSTEM_BEGIN, SYSTEM_END = "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"
TOOLS_BEGIN, TOOLS_END = "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"
USER_BEGIN, USER_END = "[INST]", "[/INST]"
CALLS, CALL_ID, ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
RESULT_BEGIN, RESULT, RESULT_END = "[TOOL_RESULTS]", "[TOOL_CONTENT]", "[/TOOL_RESULTS]"
THINK_BEGIN, THINK_END = "[THINK]", "[/THINK]"
ID_LENGTH = 9

SMALL_SYSTEM = """\
You are Mistral Small 3, a Large Language Model (LLM) created by Mistral AI, a French startup headquartered in \
Paris.
Your knowledge base was last updated on 2023-10-01. The current date is {today}.

When you're not sure about some information or when the user's request requires up-to-date or specific data, you \
must use the available tools to fetch the information. Do not hesitate to use tools whenever they can provide a more \
accurate or complete response. If no relevant tools are available, then clearly state that you don't have the \
information and avoid making up anything.

If the user's question is not clear, ambiguous, or does not provide enough context for you to accurately answer the \
question, you do not try to answer it right away and you rather ask the user to clarify their request (e.g. "What \
are some good restaurants around me?" => "Where are you?" or "When is the next flight to Tokyo" => "Where do you \
travel from?").
You are always very attentive to dates, and when asked about information at specific dates, you discard information \
that is at another date.
You follow these instructions in all languages, and always respond to the user in the language they use or request.
Next sections describe the capabilities that you have.

# WEB BROWSING INSTRUCTIONS

You cannot perform any web search or access internet to open URLs, links etc. If it seems like the user is expecting \
you to do so, you clarify the situation and ask the user to copy paste the text directly in the chat.

# MULTI-MODAL INSTRUCTIONS

You have the ability to read images, but you cannot generate images. You also cannot transcribe audio files or \
videos.
You cannot read nor transcribe audio files or videos.

# TOOL CALLING INSTRUCTIONS

You may have access to tools that you can use to fetch information or perform actions. You must use these tools in \
the following situations:

1. When the request requires up-to-date information.
2. When the request requires specific data that you do not have in your knowledge base.
3. When the request involves actions that you cannot perform without tools.

Always prioritize using tools to provide the most accurate and helpful response. If tools are not available, inform \
the user that you cannot perform the requested action at the moment."""
MINISTRAL_SYSTEM = """\
# HOW YOU SHOULD THINK AND ANSWER

First draft your thinking process (inner monologue) until you arrive at a response. Format your response using \
Markdown, and use LaTeX for any mathematical equations. Write both your thoughts and the response in the same \
language as the input.

Your thinking process must follow the template below:[THINK]Your thoughts or/and draft, like working through an \
exercise on scratch paper. Be as casual and as long as you want until you are confident to generate the response to \
the user.[/THINK]Here, provide a self-contained response."""


@dataclass(frozen=True, kw_only=True)
class MistralTemplate(Template):
    """What all have in common."""

    options: Mapping[str, Option] = field(
        default_factory=lambda: {"bos_token": any_text("<s>"), "eos_token": any_text("</s>")}
    )


@dataclass(frozen=True, kw_only=True)
class NemoTemplate(MistralTemplate):
    """The first format."""

    quotes_string_arguments: bool = True

    def pieces(self, chat: Chat) -> Iterator[str]:
        messages = needs_messages(chat.messages)
        first = after_system(messages)
        others = range(first, len(messages))
        speakers = (at for at in others if messages[at]["role"] != "tool" and messages[at].get("tool_calls") is None)
        _check_turns(messages, speakers)
        eos = chat.options["eos_token"]
        asked = next((message for message in reversed(messages[first:]) if message["role"] == "user"), None)
        yield chat.options["bos_token"] + self.system(chat, messages[:first])
        for index in range(first, len(messages)):
            message, path = messages[index], f"messages[{index}]"
            role, content, calls = message["role"], message.get("content"), message.get("tool_calls")
            if role == "user":
                yield _tools(chat.tools) if chat.tools and message == asked else ""
                system = messages[:first] if index + 1 == len(messages) else ()
                yield f"{USER_BEGIN}{self.question(content, f'{path}.content', system)}{USER_END}"
            elif calls is not None:
                yield self.calls(list(with_paths(calls, path)), eos)
            elif role == "assistant":
                yield needs_text(content, f"{path}.content") + eos
            elif role == "tool":
                yield self.result(printed(content), _checked_id(message.get("tool_call_id"), f"{path}.tool_call_id"))
            else:
                raise TemplateError(f"the template knows no role {role!r} but in the first message", f"{path}.role")

    def system(self, chat: Chat, messages: Sequence[Fields]) -> str:
        """The turn of the system message, if there is a turn for it."""
        return ""

    def question(self, content: Any, path: str, system: Sequence[Fields]) -> str:
        """What the user says; `system` is the system message that goes with it."""
        before = f"{needs_text(system[0].get('content'), 'messages[0].content')}\n\n" if system else ""
        return before + needs_text(content, path)

    def calls(self, calls: Sequence[tuple[Fields, str]], eos: str) -> str:
        """Calls, each with its path."""
        written = ", ".join(
            f'{pyjson(function_of(call))[:-1]}, "id": "{_checked_id(call.get("id"), f"{path}.id")}"}}'
            for call, path in calls
        )
        return f"{CALLS}[{written}{']' + eos if calls else ''}"

    def result(self, text: str, call_id: str) -> str:
        """The result of a call."""
        return f'{RESULT_BEGIN}{{"content": {text}, "call_id": "{call_id}"}}{RESULT_END}'

    def normalised(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Ids that the template refuses are replaced by numbers, in calls and their results alike."""
        given = (call.get("id") for message in messages for call in message.get("tool_calls", ()))
        taken = set(filter(_is_id, given))
        fresh = (number for number in map("{:09d}".format, count()) if number not in taken)
        new_ids: dict[str | None, str] = {}
        batch: list[str] = []
        position = 0
        for message in messages:
            if message["role"] == "tool":
                old = message.get("tool_call_id")
                at_position = batch[position] if position < len(batch) else None
                new = new_ids.get(old) or (old if _is_id(old) else at_position)
                message["tool_call_id"] = new or next(fresh)
                position += 1
                continue
            batch, position = [], 0
            for call in message.get("tool_calls", ()):
                old = call.get("id")
                call["id"] = old if _is_id(old) else next(fresh)
                batch.append(call["id"])
                if old is not None:
                    new_ids[old] = call["id"]
        return messages


@dataclass(frozen=True, kw_only=True)
class SmallTemplate(NemoTemplate):
    """The second format."""

    default_system: str

    def system(self, chat: Chat, messages: Sequence[Fields]) -> str:
        if not messages:
            text = self.default_system.format(today=chat.now.strftime("%Y-%m-%d"))
        else:
            text = _joined(messages[0].get("content"), "messages[0].content")
        return f"{SYSTEM_BEGIN}{text}{SYSTEM_END}"

    def question(self, content: Any, path: str, system: Sequence[Fields]) -> str:
        return _joined(content, path)

    def calls(self, calls: Sequence[tuple[Fields, str]], eos: str) -> str:
        written = "".join(
            f"{CALLS}{function_of(call)['name']}{CALL_ID}{_checked_id(call.get('id'), f'{path}.id')}"
            f"{ARGUMENTS}{pyjson(arguments_of(call))}"
            for call, path in calls
        )
        return written + eos

    def result(self, text: str, call_id: str) -> str:
        return f"{RESULT_BEGIN}{call_id}{RESULT}{text}{RESULT_END}"


@dataclass(frozen=True, kw_only=True)
class MinistralTemplate(MistralTemplate):
    """The third format."""

    default_system: str

    def pieces(self, chat: Chat) -> Iterator[str]:
        messages = needs_messages(chat.messages)
        first = after_system(messages)
        system = _with_thinking(messages[0].get("content"), "messages[0].content") if first else self.default_system
        yield f"{chat.options['bos_token']}{SYSTEM_BEGIN}{system}{SYSTEM_END}"
        yield f"{TOOLS_BEGIN}{pyjson(list(chat.tools))}{TOOLS_END}" if chat.tools else ""
        speakers = (
            at
            for at in range(first, len(messages))
            if messages[at]["role"] == "user"
            or (messages[at]["role"] == "assistant" and not messages[at].get("tool_calls"))
        )
        _check_turns(messages, speakers)
        for index in range(first, len(messages)):
            message, path = messages[index], f"messages[{index}]"
            role, content, calls = message["role"], message.get("content"), message.get("tool_calls")
            if role == "user":
                if not content and not isinstance(content, str):
                    raise TemplateError("the template needs something that the user says", f"{path}.content")
                yield f"{USER_BEGIN}{_joined(content, f'{path}.content')}{USER_END}"
            elif role == "assistant":
                content = message.get("content", "")
                if not content and not calls:
                    raise TemplateError("the template needs text or calls of an assistant", path)
                yield _with_thinking(content, f"{path}.content")
                yield "".join(map(_call, calls or ()))
                yield chat.options["eos_token"]
            elif role == "tool":
                yield f"{RESULT_BEGIN}{printed(content)}{RESULT_END}"
            else:
                raise TemplateError(f"the template knows no role {role!r} but in the first message", f"{path}.role")

    def normalised(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Reasoning goes where the template looks for it: into a part of the content, before the text."""
        for message in messages:
            if reasoning := message.pop("reasoning_content", ""):
                text = [{"type": "text", "text": message["content"]}] if message["content"] else []
                message["content"] = [{"type": "thinking", "thinking": reasoning}, *text]
        return messages


def _check_turns(messages: Sequence[Fields], places: Iterable[int]) -> None:
    """The messages at these places are a user's and another's by turns."""
    for turn, index in enumerate(places):
        if (messages[index]["role"] == "user") != (turn % 2 == 0):
            expected = "an assistant's" if turn % 2 else "a user's"
            problem = f"the template needs users and assistants by turns, and {expected} message here"
            raise TemplateError(problem, f"messages[{index}]")


def _tools(tools: Sequence[Fields]) -> str:
    """The tools as JSON, but that the template does not escape a function's own texts."""
    functions = (function_of(tool).items() for tool in tools)
    written = (
        ", ".join(
            f'"{key}": "{value}"' if isinstance(value, str) else f'"{key}": {pyjson(value)}'
            for key, value in function
            if key != "return"
        )
        for function in functions
    )
    catalogue = ", ".join(f'{{"type": "function", "function": {{{function}}}}}' for function in written)
    return f"{TOOLS_BEGIN}[{catalogue}]{TOOLS_END}"


def _is_id(call_id: object) -> bool:
    return isinstance(call_id, str) and len(call_id) == ID_LENGTH and call_id.isascii() and call_id.isalnum()


def _checked_id(call_id: object, path: str) -> str:
    if not isinstance(call_id, str) or len(call_id) != ID_LENGTH:
        raise TemplateError(f"the template needs an id of {ID_LENGTH} letters and digits, found {call_id!r}", path)
    return call_id


def _call(call: Fields) -> str:
    arguments = arguments_of(call)
    written = (arguments or "{}") if isinstance(arguments, str) else pyjson(arguments)
    return f"{CALLS}{function_of(call)['name']}{ARGUMENTS}{written}"


def _joined(content: Any, path: str) -> str:
    """Text, or the texts of parts."""
    if not isinstance(content, list | tuple):
        return needs_text(content, path)
    return "".join(needs_text(_part(part).get("text"), f"{path}[{at}]") for at, part in enumerate(content))


def _with_thinking(content: Any, path: str) -> str:
    """Text, or the texts of parts, thinking in its tokens."""
    if not isinstance(content, list | tuple):
        return needs_text(content, path)
    return "".join(
        f"{THINK_BEGIN}{part['thinking']}{THINK_END}" if "thinking" in part else printed(part.get("text", ""))
        for part in map(_part, content)
    )


def _part(part: Any) -> Fields:
    return part if isinstance(part, Mapping) else {"text": part}


TEMPLATES = (
    NemoTemplate(name="Mistral-Nemo-Instruct-2407", certainty=Certainty.COPY, models=r"mistral[-_ ]?nemo"),
    SmallTemplate(
        name="Mistral-Small-3.2-24B-Instruct-2506",
        certainty=Certainty.ENCODER,
        models=r"mistral[-_ ]?small[-_ ]?3\.2",
        default_system=SMALL_SYSTEM,
    ),
    MinistralTemplate(
        name="Ministral-3-14B-Reasoning-2512",
        certainty=Certainty.COPY,
        models=r"ministral[-_ ]?3[-_ ].*reasoning",
        default_system=MINISTRAL_SYSTEM,
    ),
)
