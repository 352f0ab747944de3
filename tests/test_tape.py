"""The tape is a string that forgets: whatever is done to it, it agrees with one that does not."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dialects.engine.tape import Pieces, Tape

_PIECES = st.text("ab\n<é😀", max_size=6) | st.just("x" * 40)


class TapeMachine(RuleBasedStateMachine):
    """Drives a tape beside the whole text."""

    def __init__(self) -> None:
        super().__init__()
        self.tape = Tape()
        self.fed = ""
        self.visible: int | None = None
        self.pos = 0
        self.mark: int | None = None

    @property
    def end(self) -> int:
        return len(self.fed) if self.visible is None else self.visible

    @precondition(lambda self: self.visible is None)
    @rule(piece=_PIECES, times=st.sampled_from([1, 1, 1, 3, 3, 1100]))
    def feed(self, piece: str, times: int) -> None:
        for _ in range(times):
            self.tape.feed(piece)
            self.fed += piece
            if times > 3:
                self.tape.i = len(self.tape.text)
                self.pos = len(self.fed)

    @rule(data=st.data())
    def read_on(self, data: st.DataObject) -> None:
        step = data.draw(st.integers(0, self.end - self.pos))
        self.tape.i += step
        self.pos += step

    @precondition(lambda self: self.mark is None)
    @rule()
    def set_mark(self) -> None:
        self.tape.set_mark(self.pos)
        self.mark = self.pos

    @rule()
    def clear_mark(self) -> None:
        self.tape.clear_mark()
        self.mark = None

    @precondition(lambda self: self.mark is not None)
    @rule(data=st.data())
    def slice_what_was_kept(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(self.mark, self.end))
        end = data.draw(st.integers(start, self.end))
        assert self.tape.slice(start, end) == self.fed[start:end]

    @precondition(lambda self: self.mark is not None)
    @rule(data=st.data())
    def seek(self, data: st.DataObject) -> None:
        self.pos = data.draw(st.integers(self.mark, self.end))
        self.tape.seek(self.pos)

    @precondition(lambda self: self.visible is None)
    @rule(data=st.data())
    def hide(self, data: st.DataObject) -> None:
        position = data.draw(st.integers(self.pos, self.end))
        self.tape.hide(position)
        if position < len(self.fed):
            self.visible = position

    @precondition(lambda self: self.visible is not None)
    @rule()
    def unhide(self) -> None:
        self.tape.unhide()
        self.visible = None

    @invariant()
    def it_stands_where_the_whole_text_does(self) -> None:
        assert self.tape.pos == self.pos
        assert self.tape.end == self.end
        assert self.tape.text[self.tape.i :] == self.fed[self.pos : self.end]


TapeMachine.TestCase.settings = settings(stateful_step_count=30)
TestTape = TapeMachine.TestCase


def test_pieces_joined_are_the_text() -> None:
    pieces = Pieces("a")
    for number in range(5000):
        pieces.append(str(number))
    expected = "a" + "".join(map(str, range(5000)))
    assert pieces.text() == expected
    pieces.append("end")
    assert pieces.text() == expected + "end"


def test_without_a_mark_nothing_is_kept() -> None:
    tape = Tape()
    for _ in range(10):
        tape.feed("x" * 100)
        tape.i = len(tape.text)
    assert len(tape.text) == 100
    assert tape.pos == 1000
