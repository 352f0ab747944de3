"""The table of dialects, and what finds one in it.

`_DIALECTS` is the one place that names this package's dialects. Other packages add theirs through the entry-point group
`dialects`: an entry's name is the dialect's, its value says where an instance of `Dialect` is, in the same notation as
the table. A built-in name cannot be replaced. A dialect is imported when it is first asked for, so that nobody pays for
those that are not used.
"""

import difflib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from dialects.engine.dialect import Dialect
from dialects.engine.scanner import MAX_CALL_CHARS, MAX_HELD_CHARS, InbandScanner, UnknownTools
from dialects.messages import Tool
from dialects.scanner_row import AUTO, AutoScanner

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "NoScannerError",
    "UnknownDialectError",
    "all_dialects",
    "create_inband_scanner",
    "dialect_names",
    "get_dialect",
]

_DIALECTS = {
    "kimi": "dialects.kimi:KIMI",
    "hermes": "dialects.hermes:HERMES",
    "qwen3": "dialects.qwen3:QWEN3",
    "glm": "dialects.glm:GLM",
    "harmony": "dialects.harmony:HARMONY",
    "deepseek": "dialects.deepseek:DEEPSEEK",
    "qwen3-coder": "dialects.qwen3_coder:QWEN3_CODER",
    "anthropic": "dialects.anthropic:ANTHROPIC",
    "minimax": "dialects.minimax:MINIMAX",
    "xml": "dialects.xml:XML",
    "gemini": "dialects.gemini:GEMINI",
    "gemma": "dialects.gemma:GEMMA",
    "mistral": "dialects.mistral:MISTRAL",
    "llama": "dialects.llama:LLAMA",
    "kimi-k3": "dialects.kimi_k3:KIMI_K3",
}
_GROUP = "dialects"
_log = logging.getLogger("dialects")


class UnknownDialectError(ValueError):
    """No dialect has this name. The message lists those that exist, and the nearest one."""


class NoScannerError(ValueError):
    """The dialect can be written but not read."""


def create_inband_scanner(
    name: str,
    *,
    tools: Sequence[Tool | Mapping[str, Any]] | None = None,
    parse_thinking: bool = True,
    generation_prompt: str = "",
    strict: bool = False,
    unknown_tools: UnknownTools = "keep",
    max_call_chars: int = MAX_CALL_CHARS,
    max_held_chars: int = MAX_HELD_CHARS,
    id_factory: Callable[[], str] | None = None,
) -> InbandScanner:
    """A scanner for one stream at a time of the dialect `name`; `auto` is an `AutoScanner`, which finds out by
    the stream itself what its dialect is, and whose `match` says it.

    tools: OpenAI function tools, or the bare function objects. They type plain-text values, and resolve broken names.
    parse_thinking: False lets thinking out as text, its tags too.
    generation_prompt: what the prompt ended with; reading goes on from an open thinking block or header in it.
    strict: a call that needs any tolerance is dropped as `malformed`.
    unknown_tools: `keep`, `text` or `drop` calls whose name is not in `tools`.
    max_call_chars: the longest call, in characters; a longer one is dropped as `too-large`.
    max_held_chars: how many characters may wait for the answer to a question of syntax; then they are text.
    id_factory: gives the ids of calls that have none of their own; it must never give one twice.

    Raises UnknownDialectError, NoScannerError, MessageError for a bad tool, ValueError or TypeError for a bad option.
    """
    create: Callable[..., InbandScanner]
    if name == AUTO:
        create = partial(AutoScanner, all_dialects())
    elif (create_one := get_dialect(name).scanner) is not None:
        create = create_one
    else:
        raise NoScannerError(f"the dialect {name!r} can be rendered, but there is no scanner for it yet")
    return create(
        tools=tools,
        parse_thinking=parse_thinking,
        generation_prompt=generation_prompt,
        strict=strict,
        unknown_tools=unknown_tools,
        max_call_chars=max_call_chars,
        max_held_chars=max_held_chars,
        id_factory=id_factory,
    )


def dialect_names() -> tuple[str, ...]:
    """The names of all dialects that have a scanner, the package's own first."""
    return tuple(dialect.name for dialect in all_dialects() if dialect.scanner is not None)


def all_dialects() -> tuple[Dialect, ...]:
    """Every dialect, those that can only be written too; the package's own first. This imports them all."""
    return (*map(_load, _DIALECTS), *(_load(name) for name in sorted(_plug_ins()) if _loads(name)))


def get_dialect(name: str) -> Dialect:
    """The dialect of that name. Raises UnknownDialectError."""
    if not isinstance(name, str):
        raise TypeError(f"a dialect's name is a str, not {type(name).__name__}")
    if name in _DIALECTS or name in _plug_ins():
        return _load(name)
    names = sorted({*_DIALECTS, *_plug_ins()})
    near = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise UnknownDialectError(f"unknown dialect {name!r}{hint} (known: {', '.join(names)})")


@cache
def _plug_ins() -> dict[str, "EntryPoint"]:
    from importlib.metadata import entry_points  # takes its time, and the package's own dialects do without

    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=_GROUP):
        if entry.name in _DIALECTS or entry.name in found:
            _log.warning("the entry point %s = %s is ignored: the name is taken", entry.name, entry.value)
            continue
        found[entry.name] = entry
    return found


@cache
def _load(name: str) -> Dialect:
    if name in _DIALECTS:
        own: Dialect = resolve_name(_DIALECTS[name])
        return own
    entry = _plug_ins()[name]
    dialect = entry.load()
    if not isinstance(dialect, Dialect):
        raise TypeError(f"the entry point {name} = {entry.value} is no Dialect but {type(dialect).__name__}")
    return dialect


def _loads(name: str) -> bool:
    try:
        _load(name)
    except Exception as error:
        _log.error("the dialect %r of another package cannot be loaded: %s: %s", name, type(error).__name__, error)
        return False
    return True
