"""An agent in one file: three tools that look into this repository, and a model that uses them.

    python examples/agent.py
    python examples/agent.py --base-url http://127.0.0.1:8000/v1 --model moonshotai/Kimi-K2-Instruct "Where is …?"

Without a server the model is played: a script says what it would say, in three dialects one after the other. All that
differs between them is the name of the dialect.
"""

import argparse
import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from dialects import Message, Text, ToolArgDelta, ToolCall, ToolStart, dialect_for_model, get_dialect
from dialects.toolset import Complete, Limits, ToolError, ToolOutcome, Toolset, TurnResult, run_turn, tool
from dialects.toolset.completions import CompletionsEndpoint

ROOT = Path(__file__).resolve().parent.parent
SYSTEM = "You answer questions about the repository in the current directory. Look before you answer, and be brief."
QUESTION = "How many seconds may a tool take, and where does it say so?"
PLAYED = ("kimi", "glm", "harmony")

# -- The tools: typed functions. What their signatures and docstrings say is what the model reads.


def inside(path: str) -> Path:
    """The path in the repository. Raises ValueError for one that leads out of it."""
    found = (ROOT / path).resolve()
    if not found.is_relative_to(ROOT):
        raise ValueError(f"{path} is outside the repository")
    return found


@tool
def read_file(
    path: str,
    first_line: Annotated[int, Field(ge=1)] = 1,
    lines: Annotated[int, Field(ge=1, le=2000)] = 200,
) -> str | ToolError:
    """Read a text file of the repository.

    Args:
        path: The file, from the repository's root.
        first_line: The line to begin with.
        lines: How many lines to read.
    """
    file = inside(path)
    if not file.is_file():
        return ToolError(f"{path} is no file. list_folder shows what there is.", brief="No such file")
    text = file.read_text(encoding="utf-8", errors="replace").splitlines()
    wanted = text[first_line - 1 : first_line - 1 + lines]
    return "\n".join(f"{number} {line}" for number, line in enumerate(wanted, first_line))


@tool
def list_folder(path: str = ".") -> list[str] | ToolError:
    """List a folder of the repository; the names of folders end with a slash."""
    folder = inside(path)
    if not folder.is_dir():
        return ToolError(f"{path} is no folder.", brief="No such folder")
    return sorted(f"{entry.name}/" if entry.is_dir() else entry.name for entry in folder.iterdir())


@tool
def search(
    pattern: Annotated[str, Field(description="A regular expression, as Python's re takes it.")],
    folder: Annotated[str, Field(description="Where to search, with all folders in it.")] = ".",
    limit: Annotated[int, Field(ge=1, le=200)] = 20,
) -> list[str] | ToolError:
    """Search the text files of the repository, line by line."""
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        return ToolError(f"The pattern is no regular expression: {error}.", brief="Bad pattern")
    hits: list[str] = []
    for file in text_files(inside(folder)):
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if wanted.search(line):
                hits.append(f"{file.relative_to(ROOT).as_posix()}:{number}: {line.strip()[:200]}")
                if len(hits) == limit:
                    return hits
    return hits


def text_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        is_hidden = any(part.startswith((".", "__")) for part in path.relative_to(ROOT).parts)
        if path.suffix in (".py", ".md", ".toml") and path.is_file() and not is_hidden:
            yield path


def make_toolset() -> Toolset:
    return Toolset([read_file, list_folder, search], limits=Limits(concurrency=4, seconds=20, result_chars=20_000))


# -- The model: anything that takes a prompt and gives text, piece by piece.


class PlayedModel:
    """A model that says what is in a script, reply by reply, a few characters at a time."""

    def __init__(self, replies: Sequence[str]) -> None:
        self.prompts: list[str] = []
        self._replies = iter(replies)

    async def __call__(self, prompt: str) -> AsyncIterator[str]:
        self.prompts.append(prompt)
        reply = next(self._replies)
        for start in range(0, len(reply), 7):
            await asyncio.sleep(0)
            yield reply[start : start + 7]


def script(dialect: str) -> list[str]:
    """The replies of a model that searches, reads what it has found, and answers."""
    look = [
        ToolCall(None, "search", {"pattern": r"seconds: float \| None", "folder": "dialects/toolset"}),
        ToolCall(None, "list_folder", {"path": "dialects/toolset"}),
    ]
    read = [ToolCall(None, "read_file", {"path": "dialects/toolset/dispatch.py", "first_line": 65, "lines": 8})]
    spoken, tools = get_dialect(dialect), make_toolset().tools
    return [
        spoken.render_thinking("It will be among the limits.") + spoken.render_assistant_tool_calls(look, tools=tools),
        spoken.render_assistant_tool_calls(read, tools=tools),
        "120 seconds, unless the tool says otherwise: `Limits` in dialects/toolset/dispatch.py.",
    ]


# -- The agent: a toolset, a model, and a loop over what happens.


async def answer(complete: Complete, dialect: str, question: str) -> TurnResult:
    """Let the model answer, and print what happens while it happens."""
    messages = [Message("system", SYSTEM), Message("user", question)]
    async with run_turn(complete, messages, make_toolset(), dialect=dialect, max_steps=20) as turn:
        async for item in turn:
            match item:
                case Text(text):
                    print(text, end="", flush=True)
                case ToolStart(name=name):
                    print(f"\n→ {name} ", end="", flush=True)
                case ToolArgDelta(json=piece):
                    print(piece, end="", flush=True)
                case ToolOutcome(name=name, content=content, is_error=is_error):
                    print(f"\n{'✗' if is_error else '✓'} {name}: {content[:100]!r}", flush=True)
                case TurnResult(reason):
                    print(f"\n({reason})")
                case _:
                    pass
    return turn.result


async def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="An agent that answers questions about this repository.")
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument(
        "--base-url", help="an OpenAI-compatible server with /v1/completions; without it, a played model"
    )
    parser.add_argument("--model", default="", help="the model's id on that server")
    parser.add_argument("--dialect", help="what the model speaks, if its id does not say so")
    options = parser.parse_args(arguments)
    if options.base_url is None:
        results: list[TurnResult] = []
        for name in PLAYED:
            print(f"== {name}")
            results.append(await answer(PlayedModel(script(name)), name, QUESTION))
        return 0 if all(result.reason == "answered" for result in results) else 1
    dialect: str | None = options.dialect or dialect_for_model(options.model).name
    if dialect is None:
        parser.error(f"which dialect {options.model!r} speaks is not known; say it with --dialect")
    server = CompletionsEndpoint(options.base_url, options.model, api_key=os.environ.get("OPENAI_API_KEY"))
    result = await answer(server, dialect, options.question)
    return 0 if result.reason == "answered" else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
