"""Malformed JSON to the value that was plainly meant.

`repair` climbs a ladder from cheap to dear: strict JSON; the same with raw control characters allowed in strings; a
JSON string that holds the object; a good object with something behind it; a lenient reader of our own (`lenient.py`),
linear and bounded in depth; and, for a short text from which that reader got nothing, the `json_repair` package (it is
quadratic on some inputs, hence short).

Here are the rungs and their order; how a fault is read stands in `lenient.py`.
"""

import json
import logging

from dialects.engine.json_text import MAX_DEPTH, SURROGATE, dump, load
from dialects.engine.lenient import HopelessError, LenientReader, Repaired, TooDeepError

__all__ = ["Repaired", "repair"]

_SHORT = 2000
"""Up to how many characters `json_repair` may be asked."""

_DECODER = json.JSONDecoder(strict=False)
_log = logging.getLogger("dialects")


def repair(text: str) -> Repaired:
    """The object that `text` plainly means; `{}` with the repair `unreadable-arguments` where it means none."""
    bare = text.strip()
    if bare in ("", "null", "None", '""', "''"):
        return Repaired({}, ("empty-arguments",), bool(bare))
    for read in (_strict, _with_control_characters, _unwrapped, _first_object, _lenient, _repaired_elsewhere):
        try:
            found = read(bare)
        except TooDeepError:
            return _TOO_DEEP
        if found is not None:
            return found if _is_shallow(found.value) else _TOO_DEEP
    _log.warning("arguments of %d characters could not be read", len(text))
    return Repaired({}, ("unreadable-arguments",), complete=False)


_TOO_DEEP = Repaired(None, (), complete=False)


def _is_shallow(value: object) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for container in level
            if isinstance(container, (dict, list))
            for inner in (container.values() if isinstance(container, dict) else container)
        ]
        if not level:
            return True
    return False


def _strict(text: str) -> Repaired | None:
    return _loaded(text, (), strict=True)


def _with_control_characters(text: str) -> Repaired | None:
    return _loaded(text, ("control-character",), strict=False)


def _loaded(text: str, repairs: tuple[str, ...], *, strict: bool) -> Repaired | None:
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        value, has_duplicates = load(text, strict=strict)
    except (ValueError, RecursionError):
        return None
    if SURROGATE.search(dump(value)):
        return None
    return Repaired(value, (*repairs, *(["duplicate-key"] if has_duplicates else [])), complete=True)


def _unwrapped(text: str) -> Repaired | None:
    """A JSON string, or a list of one, that holds the object."""
    if text[0] not in '"[':
        return None
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list) and value:
        value, name = value[0], "unwrapped-list" if len(value) == 1 else "several-objects"
    else:
        name = "unwrapped-string"
    if isinstance(value, dict):
        value = json.dumps(value)
    if not isinstance(value, str) or value[:1] == '"':
        return None
    inner = repair(value)
    if "unreadable-arguments" in inner.repairs:
        return None
    return Repaired(inner.value, (name, *inner.repairs), inner.complete)


def _first_object(text: str) -> Repaired | None:
    """A good object with something behind it, which is not the rest of a string that a stray quote ended."""
    if not text.startswith("{"):
        return None
    try:
        _, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    rest = text[end:].strip()
    if '"' in rest and rest.endswith("}") and not rest.startswith("{"):
        return None
    found = _strict(text[:end]) or _with_control_characters(text[:end])
    if not rest.strip("}] \n"):
        name = "extra-closer"
    elif rest == "```":
        name = "code-fence"
    else:
        name = "several-objects" if rest.lstrip(", \n").startswith("{") else "trailing-text"
    return found and Repaired(found.value, (*found.repairs, name), complete=True)


def _lenient(text: str) -> Repaired | None:
    try:
        return LenientReader(text).read()
    except HopelessError:
        return None


def _repaired_elsewhere(text: str) -> Repaired | None:
    if len(text) > _SHORT:
        return None
    import json_repair  # rarely needed, and takes its time

    try:
        value = json_repair.loads(text)
        if not isinstance(value, dict) or not value:
            return None
        value = json.loads(SURROGATE.sub("\ufffd", dump(value)))
    except (ValueError, RecursionError):
        return None
    return Repaired(value, ("json-repair",), complete=False)
