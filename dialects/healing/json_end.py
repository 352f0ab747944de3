"""Where JSON that arrives in pieces is complete, and nothing else about it."""

import re

__all__ = ["JsonEnd"]

_SIGNIFICANT = re.compile(r'["\\{}\[\]]')


class JsonEnd:
    """Follows a JSON object or array as it arrives: is it complete?"""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self.complete = False

    def feed(self, text: str) -> None:
        """The next piece."""
        skip = 0 if self._escaped and text else -1
        self._escaped = self._escaped and not text
        for found in _SIGNIFICANT.finditer(text):
            char, at = found.group(), found.start()
            if at == skip:
                continue
            if self._in_string:
                if char == "\\":
                    skip = at + 1
                    self._escaped = skip == len(text)
                elif char == '"':
                    self._in_string = False
            elif char == '"':
                self._in_string = True
            elif char in "{[":
                self._depth += 1
            elif char in "}]":
                self._depth -= 1
                self.complete = self.complete or self._depth == 0
