"""The log probabilities of tokens, kept beside the text that the tokens make while that text is being healed.

A healed stream lets text out later than it came, and some of it not as text. `Logprobs` remembers what came, and says
for each piece that leaves which tokens made it; each token goes out once, with the first piece that it has a part in.
"""

from collections import deque
from typing import Any

__all__ = ["Logprobs"]


class Logprobs:
    """The tokens of one choice's text that have not left yet."""

    def __init__(self) -> None:
        self.active = False
        """Whether the stream has any log probabilities."""
        self._text: list[str] = []
        self._tokens: deque[tuple[int, list[Any]]] = deque()
        """How many characters, and the entries that go out with the first of them."""

    def feed(self, text: str, entries: list[Any] | None) -> None:
        """Text came, with these entries. Where the tokens' texts are not the text, they stay together."""
        self.active = self.active or bool(entries)
        if not self.active or not text:
            return
        self._text.append(text)
        words = [entry.get("token") if isinstance(entry, dict) else None for entry in entries or ()]
        if entries and all(isinstance(word, str) for word in words) and "".join(map(str, words)) == text:
            self._tokens.extend((len(str(word)), [entry]) for word, entry in zip(words, entries, strict=True))
        else:
            self._tokens.append((len(text), list(entries or ())))

    def take(self, text: str) -> list[Any]:
        """The entries of a piece that leaves. What came before it and has not left was markup; newlines at its
        beginning may come from before that markup."""
        if not self.active or not text:
            return []
        held = "".join(self._text)
        start = held.find(text)
        if start < 0:
            text = text.lstrip("\n")
            start = held.find(text) if text else -1
        if start < 0:
            self._text = [held]
            return []
        self._pass(start)
        taken = self._pass(len(text))
        self._text = [held[start + len(text) :]]
        return taken

    def _pass(self, length: int) -> list[Any]:
        taken: list[Any] = []
        while length > 0 and self._tokens:
            size, entries = self._tokens.popleft()
            taken += entries
            if size > length:
                self._tokens.appendleft((size - length, []))
            length -= size
        return taken
