"""Names of calls into which a server's own parser let markup of the arguments slip.

`get_tide<arg_key>port</arg_key><arg_value>Leith</arg_value>` is a call's text from its name on. So what the dialect
writes before a name is put in front, as far as the name does not begin with it, and its scanner reads the rest.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache

from dialects.events import ToolEnd, ToolStart
from dialects.factory import create_inband_scanner, get_dialect
from dialects.messages import Tool

__all__ = ["has_markup", "healed_name"]

_PLAIN = re.compile(r"[\w.:/-]{1,256}")


def has_markup(name: str) -> bool:
    """Whether a name has characters that no tool's name has."""
    return _PLAIN.fullmatch(name) is None


def healed_name(name: str, dialects: Iterable[str], tools: Mapping[str, Tool] | None) -> tuple[str, str | None]:
    """The name without markup, and the arguments' JSON text if the markup held any; the name as it was, if none of
    these dialects makes a plain one, or one of the tools, out of it. Of several the first that finds arguments counts,
    since many stop reading at markup that is not theirs."""
    plain: str | None = None
    for dialect in dialects:
        declared = None if tools is None else list(tools.values())
        scanner = create_inband_scanner(dialect, tools=declared)
        before = _before_name(dialect)
        begun = next(at for at in range(len(before) + 1) if name.startswith(before[at:]))
        events = scanner.feed(before[:begun] + name) + scanner.flush()
        start = next((event for event in events if isinstance(event, ToolStart)), None)
        if start is None or start.name == name or start.name not in name or has_markup(start.name):
            continue
        if tools is not None and start.name not in tools:
            continue
        end = next((event for event in events if isinstance(event, ToolEnd)), None)
        if end is not None and end.arguments:
            return start.name, end.arguments_json
        plain = plain or start.name
    return plain or name, None


@cache
def _before_name(dialect: str) -> str:
    """What a dialect writes before a call's name."""
    return get_dialect(dialect).render_tool_call({"name": "NAME", "arguments": {}}).partition("NAME")[0]
