"""`dialects chat`: a conversation with a model behind `/v1/completions`, which may call tools, shown as it happens."""

import asyncio
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from dialects.detection import dialect_for_model
from dialects.events import Event
from dialects.messages import Message, ToolCall
from dialects.terminal import BOLD, DIM, GREEN, RED, YELLOW, EventPrinter, excerpt, wants_colour
from dialects.toolset import StepResult, ToolOutcome, ToolRequest, Toolset, Turn, TurnResult, run_turn
from dialects.toolset.calling import in_thread
from dialects.toolset.completions import CompletionsEndpoint

__all__ = ["Chat", "messages_from", "show"]

ANSWERED, NOT_ANSWERED = 0, 1


class Chat:
    """A conversation. Wrong use raises ValueError: an unknown dialect, a tool that cannot be loaded, a bad URL."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        tools: Iterable[str] = (),
        dialect: str | None = None,
        template: str | None = None,
        system: str | None = None,
        api_key: str | None = None,
        options: Mapping[str, Any] | None = None,
        out: TextIO,
    ) -> None:
        self._complete = CompletionsEndpoint(base_url, model, api_key=api_key, options=options)
        self._dialect = dialect or _dialect_of(model)
        self._template = template
        self._toolset = Toolset(approve=self._approve)
        self._toolset.load_tools(_from_here(tools))
        self._messages = [] if system is None else [Message("system", system)]
        self._turn(self._messages)  # wrong use shows here, before anybody has said anything
        self._out = out
        self._printer = EventPrinter(out, colour=wants_colour(out))

    def run(self, said: Iterable[str]) -> int:
        """Answer one message after the other; the exit code says whether the last one was answered. Raises
        CompletionError, an OSError, where the server fails."""
        code = ANSWERED
        with asyncio.Runner() as runner:
            for text in said:
                turn = self._turn([*self._messages, Message("user", text)])
                try:
                    result = runner.run(self._shown(turn))
                finally:
                    self._printer.close_row()
                self._messages += [Message("user", text), *result.messages]
                code = ANSWERED if result.reason == "answered" else NOT_ANSWERED
        return code

    def _turn(self, messages: list[Message]) -> Turn:
        return run_turn(self._complete, messages, self._toolset, dialect=self._dialect, template=self._template)

    async def _shown(self, turn: Turn) -> TurnResult:
        async with turn:
            async for item in turn:
                show(item, self._printer)
                self._out.flush()
        return turn.result

    async def _approve(self, call: ToolCall) -> bool:
        """Ask on the terminal; without one the answer is no."""
        if not sys.stdin.isatty():
            return False
        self._printer.note("approve", f"{call.name} {excerpt(str(call.arguments))}", YELLOW)
        self._out.flush()
        print("call it? [y/N] ", end="", flush=True, file=sys.stderr)
        # Not `input`: a thread that waits in it holds a lock which the program's end needs after Ctrl-C.
        answer = await in_thread(lambda: os.read(sys.stdin.fileno(), 1024))
        return answer.strip().lower() in (b"y", b"yes")


def show(item: Event | ToolRequest | ToolOutcome | StepResult | TurnResult, printer: EventPrinter) -> None:
    """Write one item of a turn for a person."""
    match item:
        case ToolOutcome(name=name, content=content, kind=kind, seconds=seconds):
            printer.note("result", f"{name}: {kind or 'ok'}, {seconds:.2f} s", RED if kind else GREEN)
            printer.note("", excerpt(content), DIM)
        case ToolRequest(id, call):
            printer.note("request", f"{call.name}, to be answered as {id}", BOLD)
        case StepResult():
            printer.close_row()
        case TurnResult(reason="answered"):
            printer.close_row()
        case TurnResult(reason):
            printer.note("ended", reason, RED)
        case _:
            printer.show(item)


def messages_from(stream: TextIO) -> Iterator[str]:
    """What a person says, a message a line; on a terminal after a prompt."""
    while True:
        if stream.isatty():
            print("> ", end="", flush=True, file=sys.stderr)
        line = stream.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()


def _dialect_of(model: str) -> str:
    match = dialect_for_model(model)
    if match.name is None:
        raise ValueError(f"{match.reason}; say which one it speaks with --dialect")
    return match.name


def _from_here(paths: Iterable[str]) -> Iterable[str]:
    """The paths, whose modules may stand in the current directory."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    return paths
