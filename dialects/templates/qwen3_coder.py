"""Templates of Qwen3-Coder, Qwen3.5, Qwen3.6 and Qwen3.8: ChatML, calls as function and parameter tags.

Two shapes. Qwen3-Coder declares its tools in tags of their own and knows no thinking. The later ones declare them as
JSON before the system text, refuse what they do not expect, and have a think block in every turn behind the user's last
query.

Source: the vendor's `chat_template` of each model.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dialects.templates.chatml import RESULT_BEGIN, RESULT_END, TURN_BEGIN, TURN_END, is_query, turn
from dialects.templates.fields import (
    after_system,
    function_of,
    is_last_of_run,
    needs_messages,
    needs_text,
    object_arguments,
    printed,
    pyjson,
    split_thinking,
    text_or_json,
    with_paths,
)
from dialects.templates.template import Certainty, Chat, Fields, Template, TemplateError, flag

__all__ = ["TEMPLATES"]

DEFAULT_SYSTEM = "You are Qwen, a helpful AI assistant that can interact with a computer to solve tasks."
CODER_TOOLS_BEGIN = "# Tools\n\nYou have access to the following tools:\n\n<tools>"
JSON_TOOLS_BEGIN = "# Tools\n\nYou have access to the following functions:\n\n<tools>"
GUIDE = """
</tools>

If you choose to call a {what} ONLY reply in the following format with NO suffix:

<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
{value}
</parameter>
</function>
</tool_call>

<IMPORTANT>
Reminder:
- Function calls MUST follow the specified format: {form}
- Required parameters MUST be specified
- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after
- If there is no function call available, answer the question like normal with your current knowledge and do not tell \
the user about function calls
</IMPORTANT>"""
CODER_TOOLS_END = GUIDE.format(
    what="tool",
    value="value_2",
    form="the tool calling block MUST begin with an opening <tool_call> tag and end with a closing </tool_call> tag.",
)
JSON_TOOLS_END = GUIDE.format(
    what="function",
    value="This is the value for the second parameter\nthat can span\nmultiple lines",
    form="an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags",
)
EFFORT = (
    "Reasoning effort is set to xhigh. Please think carefully through the task, validate key assumptions, consider "
    "plausible alternatives, and prioritize correctness, consistency, and clarity in the final answer."
)


@dataclass(frozen=True, kw_only=True)
class CoderTemplate(Template):
    """Qwen3-Coder."""

    takes_string_arguments: bool = False

    def pieces(self, chat: Chat) -> Iterator[str]:
        messages = needs_messages(chat.messages)
        first = after_system(messages)
        parts = [needs_text(messages[0].get("content"), "messages[0].content")] if first else []
        if chat.tools:
            catalogue = "".join(map(_tool_in_tags, chat.tools))
            parts = [*(parts or [DEFAULT_SYSTEM]), f"{CODER_TOOLS_BEGIN}{catalogue}{CODER_TOOLS_END}"]
        if parts:
            yield turn("system", "\n\n".join(parts))
        for index in range(first, len(messages)):
            message, path = messages[index], f"messages[{index}]"
            role, content, calls = message["role"], message.get("content"), message.get("tool_calls")
            if role == "assistant" and calls:
                text = content.strip() if isinstance(content, str) else ""
                before = f"\n{text}\n" if text else ""
                yield f"{TURN_BEGIN}assistant{before}\n{_calls(calls, path, _python_value)}{TURN_END}"
            elif role == "tool":
                is_after_another = index > first and messages[index - 1]["role"] != "tool"
                yield f"{TURN_BEGIN}user\n" if is_after_another else ""
                yield f"{RESULT_BEGIN}\n{printed(content)}\n{RESULT_END}\n"
                yield TURN_END if is_last_of_run(messages, index) else ""
            else:
                yield turn(role, needs_text(content, f"{path}.content"))
        if chat.add_generation_prompt:
            yield f"{TURN_BEGIN}assistant\n"


@dataclass(frozen=True, kw_only=True)
class Qwen35Template(Template):
    """Qwen3.5 and later. `effort` is a sentence before everything in the system turn, `value` writes an argument."""

    takes_string_arguments: bool = False
    effort: str = ""
    value: Callable[[Any], str]

    def pieces(self, chat: Chat) -> Iterator[str]:
        messages = needs_messages(chat.messages)
        texts = [_text(message.get("content"), f"messages[{index}].content") for index, message in enumerate(messages)]
        yield self._system_turn(chat, texts[0])
        query = _last_query(messages, texts)
        first_kept = 0 if chat.options.get("preserve_thinking") else query + 1
        for index, message in enumerate(messages):
            role, path = message["role"], f"messages[{index}]"
            if role == "user":
                yield turn(role, texts[index])
            elif role == "assistant":
                yield self._assistant_turn(message, texts[index], path, keeps_thinking=index >= first_kept)
            elif role == "tool":
                is_after_another = index > 0 and messages[index - 1]["role"] != "tool"
                yield f"{TURN_BEGIN}user" if is_after_another else ""
                yield f"\n{RESULT_BEGIN}\n{texts[index]}\n{RESULT_END}"
                yield TURN_END if is_last_of_run(messages, index) else ""
            elif role != "system":
                raise TemplateError(f"the template knows no role {role!r}", f"{path}.role")
            elif index > 0:
                raise TemplateError("a system message must be the first message", path)
        if chat.add_generation_prompt:
            yield f"{TURN_BEGIN}assistant\n<think>\n"
            yield "" if chat.options["enable_thinking"] else "\n</think>\n\n"

    def _system_turn(self, chat: Chat, first: str) -> str:
        is_system = chat.messages[0]["role"] == "system"
        parts = [self.effort] if self.effort else []
        if chat.tools:
            parts.append("".join([JSON_TOOLS_BEGIN, *(f"\n{pyjson(tool)}" for tool in chat.tools), JSON_TOOLS_END]))
        if is_system and (first or not parts):
            parts.append(first)
        return turn("system", "\n\n".join(parts)) if parts else ""

    def _assistant_turn(self, message: Fields, text: str, path: str, *, keeps_thinking: bool) -> str:
        thought, text = split_thinking(message, text)
        block = f"<think>\n{thought.strip()}\n</think>\n\n" if keeps_thinking else ""
        calls = message.get("tool_calls")
        written = _calls(calls, path, self.value) if calls else ""
        between = "\n\n" if calls and text.strip() else ""
        return turn("assistant", f"{block}{text}{between}{written}")


def _text(content: Any, path: str) -> str:
    """Text or the texts of parts, without white space around."""
    if content is None or isinstance(content, str):
        return (content or "").strip()
    for at, part in enumerate(content):
        if not isinstance(part, Mapping) or "text" not in part:
            raise TemplateError("the template knows only parts with text", f"{path}[{at}]")
    return "".join(part["text"] for part in content).strip()


def _last_query(messages: Sequence[Fields], texts: Sequence[str]) -> int:
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] == "user" and is_query(texts[index]):
            return index
    raise TemplateError("the template needs a query of the user", "messages")


def _calls(calls: Sequence[Fields], path: str, value: Callable[[Any], str]) -> str:
    return "\n".join(_call(call, where, value) for call, where in with_paths(calls, path))


def _call(call: Fields, path: str, value: Callable[[Any], str]) -> str:
    arguments = object_arguments(call, path)
    pairs = "".join(f"<parameter={key}>\n{value(item)}\n</parameter>\n" for key, item in arguments.items())
    return f"<tool_call>\n<function={function_of(call)['name']}>\n{pairs}</function>\n</tool_call>"


def _python_value(value: Any) -> str:
    return pyjson(value) if isinstance(value, dict | list | tuple) else printed(value)


def _tool_in_tags(tool: Fields) -> str:
    function = function_of(tool)
    described = f"\n<description>{_trimmed(function['description'])}</description>" if "description" in function else ""
    parameters = function.get("parameters")
    schema: Mapping[str, Any] = parameters if isinstance(parameters, Mapping) else {}
    properties = schema.get("properties")
    fields = "".join(_field(*item) for item in properties.items()) if isinstance(properties, Mapping) else ""
    more = _others(function, ("type", "name", "description", "parameters"))
    inner = f"\n<parameters>{fields}{_others(schema, ('type', 'properties'))}\n</parameters>"
    return f"\n<function>\n<name>{function['name']}</name>{described}{inner}{more}\n</function>"


def _field(name: str, schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return f"\n<parameter>\n<name>{name}</name>\n</parameter>"
    kind = f"\n<type>{printed(schema['type'])}</type>" if "type" in schema else ""
    described = f"\n<description>{_trimmed(schema['description'])}</description>" if "description" in schema else ""
    others = _others(schema, ("name", "type", "description"))
    return f"\n<parameter>\n<name>{name}</name>{kind}{described}{others}\n</parameter>"


def _others(fields: Fields, handled: Sequence[str]) -> str:
    """All other keys as tags."""
    others = ((key, value) for key, value in fields.items() if key not in handled)
    return "".join(f"\n<{key}>{_python_value(value)}</{key}>" for key, value in others)


def _trimmed(value: Any) -> str:
    return printed(value).strip()


_THINKING = {"enable_thinking": flag(True)}

TEMPLATES = (
    CoderTemplate(name="Qwen3-Coder", certainty=Certainty.COPY, models=r"qwen[-_ ]?3[-_ ]?coder(?![-_ ]?next)"),
    Qwen35Template(
        name="Qwen3.5", certainty=Certainty.VENDOR, models=r"qwen[-_ ]?3\.5", value=_python_value, options=_THINKING
    ),
    Qwen35Template(
        name="Qwen3.6",
        certainty=Certainty.COPY,
        models=r"qwen[-_ ]?3\.6",
        value=text_or_json,
        options={**_THINKING, "preserve_thinking": flag(False)},
    ),
    Qwen35Template(
        name="Qwen3.8",
        certainty=Certainty.COPY,
        models=r"qwen[-_ ]?3\.8",
        value=text_or_json,
        effort=EFFORT,
        options={**_THINKING, "preserve_thinking": flag(True)},
    ),
)
