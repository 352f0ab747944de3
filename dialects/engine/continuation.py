"""The rest of a JSON text of which the beginning is out already, and is never taken back.

Arguments leave while they stream, before anybody knows that they are broken further on. `continuation` brings the value
that was plainly meant (`repair.py`) and what is out together.
"""

import json
import re
from typing import Any

from dialects.engine.json_text import dump

__all__ = ["continuation"]

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[{}\[\],:]|[^\s{}\[\],:"]++')
_MISSING: Any = object()


class _Frame:
    """An open container of what is out, beside what the repaired value has in its place."""

    def __init__(self, opener: str, meant: Any) -> None:
        self.is_object = opener == "{"
        self.meant: Any = meant if isinstance(meant, dict if self.is_object else list) else _MISSING
        self.keys: set[str] = set()
        self.count = 0
        self.key: str | None = None
        self.wants_value = False

    def meant_next(self) -> Any:
        """What the repaired value has where the next value will stand."""
        if self.meant is _MISSING:
            return _MISSING
        if self.is_object:
            return self.meant.get(self.key, _MISSING)
        return self.meant[self.count] if self.count < len(self.meant) else _MISSING

    def value_done(self) -> None:
        self.count += 1
        self.key = None
        self.wants_value = False

    def rest(self) -> str:
        """The members that are still missing, and the closer."""
        missing: list[str] = []
        if self.meant is not _MISSING and self.is_object:
            missing = [f"{dump(k)}:{dump(v)}" for k, v in self.meant.items() if k not in self.keys]
        elif self.meant is not _MISSING:
            missing = [dump(v) for v in self.meant[self.count :]]
        separator = "," if self.count and missing else ""
        return separator + ",".join(missing) + ("}" if self.is_object else "]")


def continuation(written: str, value: dict[str, Any]) -> str:
    """The JSON text that completes `written`, the beginning of an object's text, to the whole of `value` as far as
    that agrees with what is written already."""
    if not written:
        return dump(value)
    frames: list[_Frame] = []
    tail = ""
    for match in _TOKEN.finditer(written):
        token = match.group()
        frame = frames[-1] if frames else None
        if token in ("{", "["):
            frames.append(_Frame(token, frame.meant_next() if frame else value))
        elif token in ("}", "]"):
            frames.pop()
            if frames:
                frames[-1].value_done()
        elif frame is None:
            break
        elif token == ":":
            frame.wants_value = True
        elif token == ",":
            frame.wants_value = not frame.is_object
        elif frame.is_object and not frame.wants_value:
            frame.key = json.loads(token)
            frame.keys.add(frame.key)
        elif token[0] == '"' and not _is_closed(token):
            tail = _rest_of_string(token, frame.meant_next())
            frame.value_done()
        else:
            frame.value_done()
    if frames and frames[-1].wants_value:
        meant = frames[-1].meant_next()
        tail = dump(None if meant is _MISSING else meant)
        frames[-1].value_done()
    return tail + "".join(frame.rest() for frame in _closing(frames))


def _closing(frames: list[_Frame]) -> list[_Frame]:
    """The open containers from the inside out, each but the innermost with one value more: the one that it holds."""
    for frame in frames[:-1]:
        frame.value_done()
    return frames[::-1]


def _is_closed(token: str) -> bool:
    backslashes = len(token) - 1 - len(token[:-1].rstrip("\\"))
    return len(token) > 1 and token[-1] == '"' and backslashes % 2 == 0


def _rest_of_string(begun: str, meant: Any) -> str:
    so_far = json.loads(begun + '"')
    if isinstance(meant, str) and meant.startswith(so_far):
        return dump(meant[len(so_far) :])[1:-1] + '"'
    return '"'
