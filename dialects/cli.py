"""The `dialects` command: scan a stream, render a conversation, print a guide, find a dialect, chat, show a demo.

`scan` reads bytes as they arrive and writes events as they come out, for a person (`terminal.py`) or as JSON Lines.
Results go to standard output, everything about the run to standard error. Exit codes: 0; 1 where `scan --check` saw a
dropped call, `which` knows no answer, or `chat` got none; 2 for wrong use or a server that fails, with one line that
says what was wrong; 130 after Ctrl-C; 141 where the reader of the output went away, as any program in a pipe.
"""

import argparse
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from typing import Any, BinaryIO, NoReturn, TextIO

from dialects import demo
from dialects.bytestream import Utf8Text, recut
from dialects.detection import dialect_for_model
from dialects.engine.dialect import Dialect
from dialects.events import Event, event_to_json
from dialects.factory import all_dialects, create_inband_scanner, get_dialect
from dialects.terminal import EventPrinter, Tally, wants_colour
from dialects.transcript import render_tool_prompt, render_transcript

__all__ = ["main"]

DISTRIBUTION = "inband-dialects"
OK, CALL_DROPPED, UNKNOWN_MODEL, WRONG_USE, INTERRUPTED, OUTPUT_CLOSED = 0, 1, 1, 2, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (by default the process's own) and return its exit code."""
    if sys.stdout is None:  # started with its standard output closed
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    logging.basicConfig(format="dialects: %(message)s")
    try:
        code = _run(argv)
        sys.stdout.flush()
    except UsageError as error:
        _complain(error)
        code = WRONG_USE
    except BrokenPipeError:
        _silence_output()
        code = OUTPUT_CLOSED
    except OSError as error:  # the disk is full, say
        _complain(error)
        _silence_output()
        code = WRONG_USE
    except KeyboardInterrupt:
        code = INTERRUPTED
    return code


class UsageError(Exception):
    """The command was used wrongly; the text is for the user, one line."""


def _run(argv: Sequence[str] | None) -> int:
    try:
        options = _parser().parse_args(argv)
    except SystemExit as exit_:  # argparse has printed its help or its complaint
        return exit_.code if isinstance(exit_.code, int) else OK
    run: Callable[[argparse.Namespace], int] = options.run
    return run(options)


# -- the commands


def _scan(options: argparse.Namespace) -> int:
    tools = _tools(options)
    with _as_usage_errors():
        scanner = create_inband_scanner(
            options.dialect, tools=tools, generation_prompt=options.generation_prompt, strict=options.strict
        )
    write, finish = _json_lines(sys.stdout) if options.json else _for_a_person(sys.stdout)
    tally = Tally()

    def out(events: list[Event]) -> None:
        for event in events:
            tally.count(event)
            write(event)
        if events:
            sys.stdout.flush()

    with _input(options.file) as source:
        text = Utf8Text(source)
        for chunk in recut(text, options.chunk) if options.chunk else text:
            out(scanner.feed(chunk))
            tally.held(scanner.held_chars)
    out(scanner.flush(truncated=options.truncated))
    finish()
    sys.stdout.flush()
    for line in (*tally.lines(), *text.report()):
        print(line, file=sys.stderr)
    return CALL_DROPPED if options.check and tally.dropped else OK


def _render(options: argparse.Namespace) -> int:
    tools = _tools(options)
    messages = _json_file(options.file)
    with _as_usage_errors():
        transcript = render_transcript(
            messages, options.dialect, tools=tools, add_generation_prompt=options.add_generation_prompt
        )
    _print_exactly(transcript)
    return OK


def _prompt(options: argparse.Namespace) -> int:
    tools = _tools(options)
    with _as_usage_errors():
        dialect = get_dialect(options.dialect)
        guide = dialect.prompt if tools is None else render_tool_prompt(tools, options.dialect)
    _print_exactly(guide)
    return OK


def _list(options: argparse.Namespace) -> int:
    rows = [("NAME", "MODELS", "CAN BE", "GUIDE", "MODEL IDS MATCH")]
    for dialect in all_dialects():
        abilities = "written" if dialect.scanner is None else "read, written"
        rows.append((dialect.name, dialect.title, abilities, _guide_of(dialect), dialect.models))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    return OK


def _guide_of(dialect: Dialect) -> str:
    """The command that prints a dialect's guide, if it has one."""
    try:
        return f"dialects prompt {dialect.name}" if dialect.prompt else "none"
    except FileNotFoundError:
        return "none"


def _which(options: argparse.Namespace) -> int:
    match = dialect_for_model(options.model)
    if match.name is not None:
        print(match.name)
    print(match.reason, file=sys.stderr)
    return OK if match.name is not None else UNKNOWN_MODEL


def _chat(options: argparse.Namespace) -> int:
    try:
        from dialects import chat  # its extra may not be installed
    except ImportError as error:
        raise UsageError(str(error)) from error
    sampling = {"max_tokens": options.max_tokens, "temperature": options.temperature}
    _never_refuse_a_character(sys.stdout)
    with _as_usage_errors():
        conversation = chat.Chat(
            options.base_url,
            options.model,
            tools=options.tools,
            dialect=options.dialect,
            template=options.template,
            system=options.system,
            api_key=os.environ.get(options.api_key_env),
            options={name: value for name, value in sampling.items() if value is not None},
            out=sys.stdout,
        )
    return conversation.run([options.message] if options.message else chat.messages_from(sys.stdin))


def _demo(options: argparse.Namespace) -> int:
    _never_refuse_a_character(sys.stdout)
    demo.run(sys.stdout, colour=wants_colour(sys.stdout))
    return OK


# -- what comes in


@contextmanager
def _input(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        if sys.stdin is None:
            raise UsageError("cannot read: standard input is closed")
        if sys.stdin.isatty():
            print("reading from the terminal; end with Ctrl-D", file=sys.stderr)
        yield sys.stdin.buffer
        return
    try:
        source = open(path, "rb")  # noqa: SIM115 (closed below)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    with source:
        yield source


def _tools(options: argparse.Namespace) -> Any:
    if not options.tools:
        return None
    if options.tools == "-" and getattr(options, "file", None) == "-":
        raise UsageError("standard input cannot be both the tools and FILE")
    return _json_file(options.tools)


def _json_file(path: str) -> Any:
    name = "standard input" if path == "-" else path
    with _input(path) as source:
        data = source.read()
    try:
        return json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise UsageError(f"{name} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8: byte {error.start}") from error
    except (ValueError, RecursionError) as error:  # a number of too many digits, too deep a nesting
        raise UsageError(f"{name} cannot be read as JSON: {error}") from error


# -- what goes out


def _json_lines(out: TextIO) -> tuple[Callable[[Event], None], Callable[[], None]]:
    def write(event: Event) -> None:
        out.buffer.write(event_to_json(event) + b"\n")

    return write, lambda: None


def _for_a_person(out: TextIO) -> tuple[Callable[[Event], None], Callable[[], None]]:
    _never_refuse_a_character(out)
    printer = EventPrinter(out, colour=wants_colour(out))
    return printer.show, printer.close_row


def _print_exactly(text: str) -> None:
    """The text in UTF-8, byte for byte; on a terminal its last line is ended."""
    if sys.stdout.isatty() and not text.endswith("\n"):
        text += "\n"
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


def _never_refuse_a_character(out: TextIO) -> None:
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="backslashreplace")


def _complain(what: object) -> None:
    print("dialects:", " ".join(str(what).split()), file=sys.stderr)


def _silence_output() -> None:
    """Send what is still buffered nowhere, or the interpreter fails to write it at its exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())


@contextmanager
def _as_usage_errors() -> Iterator[None]:
    """What the library says about the user's tools, messages and names is the command's complaint."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from error
    except RecursionError as error:
        raise UsageError("the JSON is nested too deeply") from error


# -- the arguments


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_USE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _positive(text: str) -> int:
    if text.isascii() and text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"expected a whole number of characters, 1 or more, not {text!r}")


def _version() -> str:
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="dialects", description="Tool calls in the text that language models stream.")
    parser.add_argument("--version", action="version", version=f"{DISTRIBUTION} {_version()}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)

    def command(name: str, run: Callable[[argparse.Namespace], int], summary: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        sub.set_defaults(run=run)
        return sub

    def file_and_dialect(sub: argparse.ArgumentParser, what: str) -> None:
        sub.add_argument("file", nargs="?", default="-", metavar="FILE", help=f"{what}; standard input without it")
        sub.add_argument("--dialect", default="kimi", metavar="NAME", help="what the model speaks (default: kimi)")

    def tools_file(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--tools", metavar="FILE", help="JSON list of OpenAI function tools")

    scan = command("scan", _scan, "read a model's output as it arrives and print events")
    file_and_dialect(scan, "the output")
    tools_file(scan)
    scan.add_argument("--generation-prompt", default="", metavar="TEXT", help="what the prompt ended with: '<think>'")
    scan.add_argument("--chunk", type=_positive, metavar="N", help="cut the input into pieces of N characters")
    scan.add_argument("--truncated", action="store_true", help="generation was cut off (finish_reason: length)")
    scan.add_argument("--strict", action="store_true", help="drop every call that needs a repair")
    scan.add_argument("--json", action="store_true", help="print JSON Lines, one event a line")
    scan.add_argument("--check", action="store_true", help="exit with 1 if a call was dropped")

    render = command("render", _render, "write a conversation as the text that the model expects")
    file_and_dialect(render, "JSON list of OpenAI-style messages")
    tools_file(render)
    render.add_argument(
        "--add-generation-prompt", "--generation-prompt", action="store_true", help="end where the model is to go on"
    )

    prompt = command("prompt", _prompt, "print the guide that tells a model how to write a dialect")
    prompt.add_argument("dialect", metavar="DIALECT")
    tools_file(prompt)

    command("list", _list, "list the dialects, with the models that speak them")
    which = command("which", _which, "name the dialect of a model; exit with 1 if that is not known")
    which.add_argument("model", metavar="MODEL_ID", help="as its publisher writes it, such as example/Model-2-Instruct")

    chat = command("chat", _chat, "talk to a model behind /v1/completions, which may call tools")
    chat.add_argument("message", nargs="?", metavar="MESSAGE", help="without it, a message a line of standard input")
    chat.add_argument("--base-url", required=True, metavar="URL", help="where the API is: http://127.0.0.1:8000/v1")
    chat.add_argument("--model", required=True, metavar="MODEL_ID", help="as the server names it")
    chat.add_argument(
        "--tools",
        action="append",
        default=[],
        metavar="package.module:Class",
        help="a tool; may be given more than once",
    )
    chat.add_argument("--dialect", metavar="NAME", help="what the model speaks, if its id does not say so")
    chat.add_argument("--template", metavar="NAME", help="write the prompts as this vendor's chat template does")
    chat.add_argument("--system", metavar="TEXT", help="a system message")
    chat.add_argument("--max-tokens", type=_positive, metavar="N", help="how long a reply may be")
    chat.add_argument("--temperature", type=float, metavar="T", help="0: always the likeliest word")
    chat.add_argument(
        "--api-key-env", default="OPENAI_API_KEY", metavar="NAME", help="the environment variable that holds the key"
    )

    command("demo", _demo, "show a stream turning into events, chunk by chunk; needs nothing")
    return parser
