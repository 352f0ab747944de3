"""Calls that a model makes again and again, word for word.

Models get stuck: the same call, the same result, the same call. What counts is in how many steps of a turn a call was
made. The third, fifth and eighth time its result carries a reminder, clearer each time; after the twelfth the turn
should end.
"""

import json
from collections import Counter
from typing import TypeAlias

from dialects.events import ToolEnd

__all__ = ["DEFAULT_LIMIT", "CallKey", "Repetition", "key_of"]

CallKey: TypeAlias = tuple[str, str]
DEFAULT_LIMIT = 12

_REMINDERS = {
    3: "Note: you have made this same call three times now. Its result stands above; use it.",
    5: (
        "Reminder: this is the fifth time that you make this call with the same arguments. Repeating it brings nothing "
        "new. Change the arguments, use another tool, or answer with what you have."
    ),
    8: (
        "WARNING: you have made exactly this call eight times. You are going in circles. Do not make it again: think "
        "of what you are trying to find out, and try another way, or tell the user what keeps you from going on."
    ),
}


def key_of(call: ToolEnd) -> CallKey:
    """What two calls have in common that ask for the same: the name, and the arguments in canonical JSON."""
    if "unreadable-arguments" in call.repairs:
        return call.name, call.raw_block
    return call.name, json.dumps(call.arguments, sort_keys=True, separators=(",", ":"))


class Repetition:
    """Counts the steps of one turn in which a call was made; `limit` is the number of them that is enough."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._steps: Counter[CallKey] = Counter()

    def count(self, key: CallKey) -> str | None:
        """Note that a step makes this call; the reminder that its result should carry, if any."""
        self._steps[key] += 1
        return _REMINDERS.get(self._steps[key])

    @property
    def is_enough(self) -> bool:
        """Whether some call was made in as many steps as the limit says."""
        return any(steps >= self._limit for steps in self._steps.values())
