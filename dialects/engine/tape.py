"""The text of a stream, addressed by absolute position, kept only as far back as somebody may still need it.

A scanner reads `text` from the cursor `i` on. `base` is the absolute position of `text[0]`, so `base + i` is where the
scanner stands in the stream. Text behind the cursor is forgotten at the next `feed`, unless `mark` says from where on
it must be kept: then it can be cut out (`slice`) and read again (`seek`). Kept text is joined into larger blocks as it
grows, so that a megabyte fed in pieces of four characters costs a megabyte, and a cut or a seek costs what lies between
the cursor and its target.
"""

from itertools import chain

__all__ = ["Pieces", "Tape"]

_SMALL_BLOCKS = 1024
"""How many fed pieces are kept as they came before they are joined into one block."""


class Pieces:
    """Text that grows by small pieces and takes about its own size in memory."""

    __slots__ = ("_blocks", "_recent")

    def __init__(self, first: str = "") -> None:
        self._blocks = [first]
        self._recent: list[str] = []

    def append(self, piece: str) -> None:
        """Add a piece at the end."""
        recent = self._recent
        recent.append(piece)
        if len(recent) >= _SMALL_BLOCKS:
            self._blocks.append("".join(recent))
            recent.clear()

    def text(self) -> str:
        """All of it."""
        joined = "".join([*self._blocks, *self._recent])
        self._blocks = [joined]
        self._recent.clear()
        return joined


class Tape:
    """The fed text since a mark; see the module's description. All positions are absolute, in characters."""

    __slots__ = ("_blocks", "_hidden", "_recent", "base", "i", "mark", "text")

    def __init__(self) -> None:
        self.text = ""
        self.i = 0
        self.base = 0
        self.mark: int | None = None
        self._blocks: list[str] = []
        self._recent: list[str] = []
        self._hidden: list[str] = []

    @property
    def pos(self) -> int:
        """Where the cursor stands."""
        return self.base + self.i

    @property
    def end(self) -> int:
        """The position after the last visible character."""
        return self.base + len(self.text)

    @property
    def is_hiding(self) -> bool:
        """Whether text behind `end` is hidden."""
        return bool(self._hidden)

    def feed(self, new: str) -> None:
        """Append `new`, and forget (or, with a mark, keep aside) what the cursor has passed."""
        text, i = self.text, self.i
        if i == len(text):
            if self.mark is not None:
                self.keep(text)
            self.text = new
        else:
            if self.mark is not None and i:
                self.keep(text[:i])
            self.text = text[i:] + new
        self.base += i
        self.i = 0

    def pass_by(self, new: str) -> None:
        """The same as to feed `new` and to move the cursor to its end, when the cursor is at the end of an empty `text`
        and there is a mark."""
        recent = self._recent
        recent.append(new)
        self.base += len(new)
        if len(recent) >= _SMALL_BLOCKS:
            self._blocks.append("".join(recent))
            recent.clear()

    def keep(self, passed: str) -> None:
        """Keep text that ends where `text` begins, or will once the caller has moved `base`."""
        assert self.mark is not None
        if self.mark > self.base:
            passed = passed[self.mark - self.base :]
        recent = self._recent
        recent.append(passed)
        if len(recent) >= _SMALL_BLOCKS:
            self._blocks.append("".join(recent))
            recent.clear()

    def set_mark(self, position: int) -> None:
        """Keep everything from `position` on; it must not lie before the current mark, or, without one, before
        `base`."""
        if self.mark is None:
            self._blocks.clear()
            self._recent.clear()
        self.mark = position

    def clear_mark(self) -> None:
        """Nothing before the cursor is needed any more."""
        self.mark = None
        self._blocks.clear()
        self._recent.clear()

    def slice(self, start: int, end: int) -> str:
        """The text between two positions, neither before the mark."""
        base = self.base
        if start >= base:
            return self.text[start - base : end - base]
        pieces = [self.text[: end - base]] if end > base else []
        for block in chain(reversed(self._recent), reversed(self._blocks)):
            block_start = base - len(block)
            if block_start < end:
                pieces.append(block[max(start - block_start, 0) : end - block_start])
            base = block_start
            if base <= start:
                break
        pieces.reverse()
        return "".join(pieces)

    def seek(self, position: int) -> None:
        """Move the cursor to `position`, which is not before the mark."""
        if position >= self.base:
            self.i = position - self.base
            return
        pieces = [self.text]
        while self.base > position:
            block = (self._recent or self._blocks).pop()
            pieces.append(block)
            self.base -= len(block)
        pieces.reverse()
        self.text = "".join(pieces)
        self.i = position - self.base

    def hide(self, position: int) -> None:
        """Put everything from `position` on out of sight until `unhide`."""
        cut = position - self.base
        self._hidden.append(self.text[cut:])
        self.text = self.text[:cut]

    def unhide(self) -> None:
        """Bring hidden text back."""
        if self._hidden:
            self.text += "".join(self._hidden)
            self._hidden.clear()
