"""The calls of one choice, native and healed, in the order and the shape in which they may leave.

One call leaves at a time. A header says its index, id, type and whole name; after it only pieces of its arguments
follow; the next call waits until it is complete. What a strict client would not take is put right on the way: ids that
are missing, twice there or too long, indexes with gaps, arguments that are no text, or none at all.

Native calls of type `custom` have an `input`, which is text of any kind, where the others have `arguments`. Where it
ends is known when the next call begins, or the turn is over.
"""

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from dialects.engine.json_text import dump
from dialects.events import ToolArgDelta, ToolDropped, ToolEnd, ToolStart
from dialects.factory import all_dialects
from dialects.healing.counts import Counts
from dialects.healing.json_end import JsonEnd
from dialects.healing.names import has_markup

__all__ = ["CallLine", "Mode", "TurnCall"]

Mode: TypeAlias = Literal["atomic", "progressive"]
Delta: TypeAlias = dict[str, Any]
NameHealer: TypeAlias = Callable[[str], tuple[str, str | None]]

MAX_ID_CHARS = 64
MAX_WAITING_CALLS = 256
MAX_WAITING_CHARS = 16_000_000
"""So many healed calls, and characters of their arguments, may wait for the end of the turn; then they leave."""
CUSTOM = "custom"
_KNOWN = ("index", "id", "type", "function", CUSTOM)


class TurnCall:
    """A call on its way out."""

    def __init__(self, name: str, call_id: str | None, *, native: bool) -> None:
        self.name = name
        self.id = call_id
        self.native = native
        self.raw_block = ""
        """What it was in the text, if it was found there."""
        self.extra: dict[str, Any] = {}
        """Unknown fields of its entry, and under `function` of its function."""
        self.kind = "function"
        """Its type, which is also the name of the object that holds its name and its arguments."""
        self.pieces: list[str] = []
        """All pieces of its arguments."""
        self.size = 0
        """How many characters they have."""
        self.sent = 0
        """How many of them have left."""
        self.index: int | None = None
        """Its place in the turn, once its header has left."""
        self.held = False
        """Whether it must be over before it leaves: its name holds markup, or it may be one that is there already."""
        self.over = False
        """Whether nothing more of it will come."""
        self.broken = False
        """Whether it was cut off."""
        self.json_end = JsonEnd()

    def add(self, piece: str) -> None:
        """The next piece of its arguments."""
        if piece:
            self.pieces.append(piece)
            self.size += len(piece)
            if not self.is_custom:
                self.json_end.feed(piece)

    @property
    def is_custom(self) -> bool:
        """Whether its arguments are text of any kind."""
        return self.kind == CUSTOM

    @property
    def field(self) -> str:
        """What its arguments are called."""
        return "input" if self.is_custom else "arguments"

    @property
    def arguments(self) -> str:
        """Their text so far."""
        return "".join(self.pieces)

    @property
    def has_arguments(self) -> bool:
        """Whether they have begun, and are not `null`."""
        if self.is_custom:
            return True
        return not "null".startswith(self.arguments.strip()) if len(self.pieces) < 8 else True

    @property
    def is_ready(self) -> bool:
        """Whether its header may leave."""
        return self.over or (bool(self.name) and not self.held and (not self.native or self.has_arguments))

    @property
    def may_be_over(self) -> bool:
        """Whether it is over if another one has begun."""
        return self.native and (self.json_end.complete or (self.is_custom and bool(self.name)))

    def is_complete(self) -> bool:
        """Whether its arguments are whole."""
        if self.json_end.complete or self.is_custom or not self.native or not self.has_arguments:
            return True
        return _canonical(self.arguments) is not None

    def same_as(self, other: "TurnCall") -> bool:
        """Whether the two are equal in name and arguments."""
        if self.kind != other.kind:
            return False
        mine = _canonical(self.arguments)
        return self.name == other.name and mine is not None and mine == _canonical(other.arguments)


class CallLine:
    """The calls of one choice. `native` and `healed` take what comes, `finish` ends it, `take` gives the deltas."""

    def __init__(self, mode: Mode, heal_name: NameHealer, counts: Counts) -> None:
        self._mode = mode
        self._counts = counts
        self._heal_name = heal_name
        self._line: list[TurnCall] = []
        """Those that have not left whole."""
        self._natives: list[TurnCall] = []
        self._by_index: dict[object, TurnCall] = {}
        self._healed: list[TurnCall] = []
        """Those that wait for the end of the turn, or for their own."""
        self._streamed: list[TurnCall] = []
        """Healed calls that have left already, and of which no native copy has been met."""
        self._open: dict[str, TurnCall] = {}
        self._ids: set[str] = set()
        self._next_index = 0
        self.completed = False
        """Whether a whole call has left."""

    # What comes.

    def native(self, entry: Mapping[str, Any]) -> None:
        """An entry of `delta.tool_calls`, or of `message.tool_calls`."""
        kind = CUSTOM if isinstance(entry.get(CUSTOM), Mapping) else "function"
        given = entry.get(kind)
        function: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        name = function.get("name") if isinstance(function.get("name"), str) else ""
        call = self._native_of(entry, name or "")
        if call.over:
            return
        if not call.pieces and (kind == CUSTOM or entry.get("type") == CUSTOM):
            call.kind = CUSTOM
        if name and name != call.name and not (call.name and call.pieces):
            call.name = name if name.startswith(call.name) else call.name + name
        call.extra.update({key: value for key, value in entry.items() if key not in _KNOWN and value is not None})
        inner = {key: value for key, value in function.items() if key not in ("name", call.field)}
        if inner:
            call.extra["function"] = {**call.extra.get("function", {}), **inner}
        arguments = function.get(call.field)
        call.add(arguments if isinstance(arguments, str) else "" if arguments is None else dump(arguments))
        call.held = call.held or has_markup(call.name) or any(call.name == sent.name for sent in self._streamed)

    def healed(self, event: ToolStart | ToolArgDelta | ToolEnd | ToolDropped) -> None:
        """An event of a call that was found in text."""
        call = self._open.get(event.id)
        match event:
            case ToolStart(id=call_id, name=name):
                call = self._open[call_id] = TurnCall(name, call_id, native=False)
                if self._mode == "progressive" and all(native.name != name for native in self._natives):
                    self._line.append(call)
                    self._streamed.append(call)
            case ToolArgDelta(json=piece) if call is not None:
                call.add(piece)
            case ToolEnd(raw_block=raw) if call is not None:
                call.over = True
                call.raw_block = raw
                del self._open[event.id]
                if call in self._streamed:
                    self.completed = True
                else:
                    self._healed.append(call)
                    self._limit_waiting()
            case ToolDropped() if call is not None:
                call.over = call.broken = True
                del self._open[event.id]
                if call in self._streamed:
                    self._streamed.remove(call)

    def finish(self, *, truncated: bool) -> None:
        """The turn is over; with `truncated` a native call that is not complete was cut off."""
        for call in self._natives:
            if not call.over:
                self._end_native(call, truncated=truncated)
        for call in self._open.values():
            call.over = call.broken = True
        for call in self._healed:
            if any(native.same_as(call) and not native.broken for native in self._natives):
                self._counts.copied(call.raw_block)
            else:
                self._line.append(call)
        self._healed.clear()

    def _limit_waiting(self) -> None:
        """Too much waits for the end of the turn: let it leave. Native copies that come later are still left out."""
        if len(self._healed) > MAX_WAITING_CALLS or self.held_chars > MAX_WAITING_CHARS:
            self._line += self._healed
            self._streamed += self._healed
            self._healed.clear()

    @property
    def held_chars(self) -> int:
        """How many characters of arguments wait."""
        waiting = {id(call): call for call in (*self._healed, *self._line, *self._open.values())}
        return sum(call.size for call in waiting.values() if call.index is None)

    @property
    def is_cut(self) -> bool:
        """Whether a call that was begun was not completed."""
        return any(call.broken for call in self._natives)

    @property
    def any_sent(self) -> bool:
        """Whether a call has left, whole or not."""
        return self._next_index > 0

    # What leaves.

    def take(self) -> list[Delta]:
        """The deltas that may leave now."""
        deltas: list[Delta] = []
        while self._line:
            call = self._line[0]
            if not call.over and call.may_be_over and len(self._line) > 1:
                self._end_native(call, truncated=False)
                continue
            if not call.is_ready:
                break
            if not self._send(call, deltas):
                break
            self._line.pop(0)
        return deltas

    def _send(self, call: TurnCall, deltas: list[Delta]) -> bool:
        """Send what there is of a call; whether it is through."""
        if call.over and call.index is None and (call.broken or not call.name):
            return True
        if call.index is None:
            deltas.append(self._header(call))
        piece = "".join(call.pieces[call.sent :])
        if call.over and not call.has_arguments and not call.broken:
            piece = "{}"
        if piece and (call.has_arguments or call.over):
            call.sent = len(call.pieces)
            deltas.append({"tool_calls": [{"index": call.index, call.kind: {call.field: piece}}]})
        if call.over and not call.broken and call.is_complete():
            self.completed = True
        return call.over

    def _header(self, call: TurnCall) -> Delta:
        call.index = self._next_index
        self._next_index += 1
        self._counts.calls += not call.native
        inner = call.extra.pop("function", {})
        function = {"name": call.name, call.field: "", **inner}
        entry = {"index": call.index, "id": self._id_of(call), "type": call.kind, call.kind: function, **call.extra}
        return {"tool_calls": [entry]}

    # Native calls.

    def _native_of(self, entry: Mapping[str, Any], name: str) -> TurnCall:
        """The call that an entry belongs to: that of its index, unless id and name begin another one."""
        index, call_id = entry.get("index"), entry.get("id")
        call_id = str(call_id) if call_id not in (None, "") else None
        if isinstance(index, int) and not isinstance(index, bool):
            call = self._by_index.get(index)
        else:
            index = ("id", call_id) if call_id is not None else None
            last = self._natives[-1] if self._natives and not name else None
            call = self._by_index.get(index, last) if index is not None else last
        is_other = call is not None and bool(name) and None not in (call_id, call.id) and call_id != call.id
        if call is None or is_other:
            call = TurnCall("", call_id, native=True)
            self._natives.append(call)
            self._line.append(call)
            if index is not None:
                self._by_index[index] = call
        elif call.id is None:
            call.id = call_id
        return call

    def _end_native(self, call: TurnCall, *, truncated: bool) -> None:
        call.over = True
        if has_markup(call.name) and not call.is_custom:
            call.name, arguments = self._heal_name(call.name)
            if arguments is not None and _canonical(call.arguments) in ("{}", None):
                call.pieces = [arguments]
        call.broken = truncated and (not call.has_arguments or not call.is_complete())
        for sent in self._streamed:
            if call.index is None and sent.over and call.same_as(sent):
                self._streamed.remove(sent)
                self._line.remove(call)
                self._counts.copied(sent.raw_block)
                break

    def _id_of(self, call: TurnCall) -> str:
        """The call's own id where it may be kept; it is unique and at most 64 characters long, but for an id that a
        dialect itself writes."""
        wanted = call.id
        is_long = wanted is not None and len(wanted) > MAX_ID_CHARS
        if is_long and call.native:
            is_long = not any(dialect.is_written_id(str(wanted)) for dialect in all_dialects())
        elif is_long:
            is_long = False
        while wanted is None or is_long or wanted in self._ids:
            wanted, is_long = f"call_{os.urandom(12).hex()}", False
        self._ids.add(wanted)
        return wanted


def _canonical(arguments: str) -> str | None:
    """Equal for equal arguments; None for what is no JSON."""
    try:
        value = json.loads(arguments) if arguments.strip() else {}
        return json.dumps({} if value is None else value, sort_keys=True)
    except (ValueError, RecursionError):
        return None
