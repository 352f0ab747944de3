"""Calls with JSON arguments and calls with function and parameter tags, in one stream."""

from dialects.engine.argument_scanner import ArgumentScanner
from dialects.engine.invoke_tags import InvokeScanner
from dialects.engine.scanner import Call, State
from dialects.engine.values import TextValueScanner

__all__ = ["MixedCallScanner"]


class MixedCallScanner(InvokeScanner, ArgumentScanner):
    """Reads the inside of both: it is one or the other scanner, as the open call is one or the other."""

    def _reset(self) -> None:
        self._is_tagged = False
        super()._reset()

    def begin_call(self, *repairs: str) -> Call:
        """A call's first marker stands at the cursor. That it is one of tags, `enter_invoke` says."""
        self._is_tagged = False
        return super().begin_call(*repairs)

    def enter_invoke(self, marker: str) -> State:
        self._is_tagged = True
        return super().enter_invoke(marker)

    def after_too_large(self) -> State:
        return super(TextValueScanner, self).after_too_large()

    def skip(self) -> State | None:
        return super().skip() if self._is_tagged else super(TextValueScanner, self).skip()

    @property
    def released(self) -> int:
        return super().released if self._is_tagged else super(TextValueScanner, self).released
