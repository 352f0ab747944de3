"""What a healer came to, in numbers: for logs and metrics."""

from collections import Counter

from dialects.events import ToolDropped, ToolEnd

__all__ = ["Counts"]


class Counts:
    """Numbers over everything that one healer has healed.

    calls: healed calls that were given to the client.
    repairs: by name, how often a call that was found needed one.
    dropped: by reason, the calls that were found and not given to the client: those of `ToolDropped`; `native-copy` for
        one that came natively, too; `tool-choice` where the request wanted none.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.repairs: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()

    def found(self, event: ToolEnd | ToolDropped, *, recovers: bool) -> None:
        """A call that was found in text is over."""
        if isinstance(event, ToolDropped):
            self.dropped[event.reason] += 1
            return
        self.repairs.update(event.repairs)
        if not recovers:
            self.dropped["tool-choice"] += 1

    def copied(self, raw_block: str) -> None:
        """A call that was found, as this text, came natively, too."""
        self.dropped["native-copy"] += 1

    def drafted(self, raw_block: str) -> None:
        """A call that was found, as this text, was a draft in reasoning."""
