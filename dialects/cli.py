"""The `dialects` command: scan a stream, heal one, or all of a server's, render a conversation or convert one, print a
guide, find a dialect, chat, show a demo.

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
from dialects.bytestream import Utf8Text, read_some, recut
from dialects.conversion import convert
from dialects.detection import dialect_for_model, dialect_for_template
from dialects.engine.dialect import Dialect
from dialects.engine.scanner import MAX_HELD_CHARS
from dialects.events import Event, event_to_json
from dialects.factory import all_dialects, create_inband_scanner, get_dialect
from dialects.healing.explain import ExplainingHealer
from dialects.healing.http import Exchange, HealingOptions
from dialects.messages import read_tools
from dialects.scanner_row import AutoScanner
from dialects.templates import dialect_of_template, find_template
from dialects.terminal import EventPrinter, Tally, explained, wants_colour
from dialects.transcript import render_tool_prompt, render_transcript

__all__ = ["main"]

DISTRIBUTION = "inband-dialects"
DEFAULT_DIALECT = "kimi"
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
    if isinstance(scanner, AutoScanner):
        print(f"dialect  {scanner.match.name or 'not sure'}: {scanner.match.reason}", file=sys.stderr)
    for line in (*tally.lines(), *text.report()):
        print(line, file=sys.stderr)
    return CALL_DROPPED if options.check and tally.dropped else OK


def _render(options: argparse.Namespace) -> int:
    if options.option and options.template is None:
        raise UsageError("--option belongs to a --template")
    tools = _tools(options)
    messages = _json_file(options.file)
    with _as_usage_errors():
        dialect = options.dialect or (dialect_of_template(options.template) if options.template else DEFAULT_DIALECT)
        if options.template:  # an option must not pass for an argument of the function
            find_template(dialect, options.template).read_options(dict(options.option))
        transcript = render_transcript(
            messages,
            dialect,
            tools=tools,
            template=options.template,
            add_generation_prompt=options.add_generation_prompt,
            normalise=options.normalise,
            neutralize=options.neutralize,
            **dict(options.option),
        )
    _print_exactly(transcript)
    return OK


def _convert(options: argparse.Namespace) -> int:
    tools = _tools(options)
    with _input(options.file) as source:
        text = "".join(Utf8Text(source))
    with _as_usage_errors():
        converted = convert(text, options.source, options.target, tools=tools)
    _print_exactly(converted.text)
    for line in converted.lost:
        print(f"lost: {line}", file=sys.stderr)
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
    if (options.model is None) == (options.template is None):
        raise UsageError("which needs a MODEL_ID or --template FILE")
    if options.template is None:
        match = dialect_for_model(options.model)
    else:
        with _input(options.template) as source:
            match = dialect_for_template("".join(Utf8Text(source)))
    if match.name is not None:
        print(match.name)
    print(match.reason, file=sys.stderr)
    return OK if match.name is not None else UNKNOWN_MODEL


def _heal(options: argparse.Namespace) -> int:
    with _as_usage_errors():
        healing = _healing_options(options)
        exchange = Exchange(_request(options), healing, explain=options.explain)
    stream = exchange.stream()
    held = 0
    with _input(options.file) as source:
        while data := read_some(source):
            for piece in data.splitlines(keepends=True):
                _write_bytes(stream.feed(piece))
                held = max(held, stream.held_chars)
    _write_bytes(stream.finish())
    _never_refuse_a_character(sys.stderr)
    if isinstance(exchange.healer, ExplainingHealer):
        for row in explained(exchange.healer.explanation()):
            print(row, file=sys.stderr)
    for row in Tally.of(exchange.healer.counts, held).lines():
        print(row, file=sys.stderr)
    if stream.junk:
        print(f"junk     {stream.junk} events without a chunk were dropped", file=sys.stderr)
    if not stream.events and stream.error is None:
        print(
            "empty    no chunk of a chat completion was read: lines of an event stream begin with data:",
            file=sys.stderr,
        )
    if stream.error is not None:
        print(f"error    {' '.join(stream.error.split())}", file=sys.stderr)
    return OK


def _request(options: argparse.Namespace) -> dict[str, Any] | None:
    """What is known of the request that the stream answers."""
    request = _json_file(options.request) if options.request else None
    if not isinstance(request, dict | None):
        raise UsageError(f"{options.request} is no request: expected a JSON object")
    tools = _tools(options)
    read_tools(tools)
    return request if tools is None else {**(request or {}), "tools": tools}


def _write_bytes(data: bytes) -> None:
    if data:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def _proxy(options: argparse.Namespace) -> int:
    try:
        from dialects.proxy.server import run
        from dialects.proxy.settings import ProxySettings
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the proxy needs the package {error.name}: pip install '{DISTRIBUTION}[proxy]' installs all it needs"
        ) from error
    with _as_usage_errors():
        settings = ProxySettings(
            upstream=options.upstream,
            options=_healing_options(options),
            connect_timeout=options.connect_timeout,
            read_timeout=options.read_timeout,
            client_timeout=options.client_timeout,
            keep_alive=options.keep_alive,
            keep_alive_chunks=options.keep_alive_chunks,
            max_request_bytes=options.max_request_bytes,
        )
        settings.check()
    run(settings, host=options.host, port=options.port, workers=options.workers, log_level=options.log_level)
    return OK


def _healing_options(options: argparse.Namespace) -> HealingOptions:
    return HealingOptions(
        pattern=options.pattern,
        mode=options.mode,
        reasoning_field=options.reasoning_field,
        generation_prompt=options.generation_prompt,
        scanner_options={"max_held_chars": options.max_held_chars},
    )


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
    raise argparse.ArgumentTypeError(f"expected a whole number, 1 or more, not {text!r}")


def _port(text: str) -> int:
    if text.isascii() and text.isdecimal() and int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(f"expected a port, 0 to 65535, not {text!r}")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if 0 < seconds < float("inf"):
        return seconds
    raise argparse.ArgumentTypeError(f"expected seconds, more than 0, not {text!r}")


def _template_option(text: str) -> tuple[str, Any]:
    """A name and a value, which is JSON where it can be read as JSON, else text."""
    name, found, value = text.partition("=")
    if not name or not found:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


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

    def file_and_dialect(sub: argparse.ArgumentParser, what: str, also: str = "") -> None:
        sub.add_argument("file", nargs="?", default="-", metavar="FILE", help=f"{what}; standard input without it")
        about = f"what the model speaks{also} (default: {DEFAULT_DIALECT})"
        sub.add_argument("--dialect", default=DEFAULT_DIALECT, metavar="NAME", help=about)

    def tools_file(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--tools", metavar="FILE", help="JSON list of OpenAI function tools")

    scan = command("scan", _scan, "read a model's output as it arrives and print events")
    file_and_dialect(scan, "the output", ", or auto to find it out")
    tools_file(scan)
    scan.add_argument("--generation-prompt", default="", metavar="TEXT", help="what the prompt ended with: '<think>'")
    scan.add_argument("--chunk", type=_positive, metavar="N", help="cut the input into pieces of N characters")
    scan.add_argument("--truncated", action="store_true", help="generation was cut off (finish_reason: length)")
    scan.add_argument("--strict", action="store_true", help="drop every call that needs a repair")
    scan.add_argument("--json", action="store_true", help="print JSON Lines, one event a line")
    scan.add_argument("--check", action="store_true", help="exit with 1 if a call was dropped")

    def healing(sub: argparse.ArgumentParser) -> None:
        sub.add_argument(
            "--pattern",
            default="auto",
            metavar="NAME",
            help="what leaks: a dialect's name, 'thinking', 'auto' (the default), or 'model' to go by the model's id",
        )
        sub.add_argument(
            "--mode",
            choices=["atomic", "progressive"],
            default="atomic",
            help="send a healed call when the turn is over, or as it arrives (default: atomic)",
        )
        sub.add_argument(
            "--reasoning-field",
            choices=["reasoning_content", "reasoning", "both"],
            default="reasoning_content",
            help="where reasoning is written to (default: reasoning_content)",
        )
        sub.add_argument("--generation-prompt", default="", metavar="TEXT", help="what the prompt ends with: '<think>'")
        sub.add_argument(
            "--max-held-chars",
            type=_positive,
            default=MAX_HELD_CHARS,
            metavar="N",
            help=f"how much may wait until it is known what it is (default: {MAX_HELD_CHARS})",
        )

    heal = command("heal", _heal, "heal a captured event stream of an OpenAI-compatible server")
    heal.add_argument("file", nargs="?", default="-", metavar="FILE", help="the stream; standard input without it")
    heal.add_argument(
        "--request", metavar="FILE", help="the request as JSON: its tools, tool_choice, n and model count"
    )
    tools_file(heal)
    healing(heal)
    heal.add_argument(
        "--explain", action="store_true", help="tell on standard error what became of each chunk's text, and why"
    )

    proxy = command("proxy", _proxy, "run a reverse proxy that heals the chat completions of a server")
    proxy.add_argument("--upstream", required=True, metavar="URL", help="the server, such as http://127.0.0.1:8000")
    proxy.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    proxy.add_argument("--port", type=_port, default=8787, metavar="N", help="0 takes a free one (default: 8787)")
    proxy.add_argument("--workers", type=_positive, default=1, metavar="N", help="how many processes (default: 1)")
    healing(proxy)
    for name, default, summary in (
        ("--connect-timeout", 10.0, "how long to wait for a connection to the upstream"),
        ("--read-timeout", 300.0, "how long the upstream may say nothing"),
        ("--client-timeout", 300.0, "how long a client may refuse to read"),
        ("--keep-alive", 15.0, "after how long without a word a stream's client gets a comment"),
    ):
        proxy.add_argument(
            name, type=_seconds, default=default, metavar="SECONDS", help=f"{summary} (default: {default:g})"
        )
    proxy.add_argument(
        "--keep-alive-chunks",
        action="store_true",
        help="send empty chunks instead of comments, for clients that need it",
    )
    proxy.add_argument(
        "--max-request-bytes",
        type=_positive,
        default=64_000_000,
        metavar="N",
        help="how long the body of a request that is healed may be (default: 64000000)",
    )
    proxy.add_argument(
        "--log-level", choices=["DEBUG", "INFO", "WARNING", "ERROR"], default="INFO", help="(default: INFO)"
    )

    render = command("render", _render, "write a conversation as the text that the model expects")
    file_and_dialect(render, "JSON list of OpenAI-style messages")
    tools_file(render)
    render.set_defaults(dialect=None)
    render.add_argument("--template", metavar="NAME", help="write what this chat template of the model's vendor writes")
    render.add_argument(
        "--option",
        action="append",
        default=[],
        type=_template_option,
        metavar="NAME=VALUE",
        help="an option of the template: enable_thinking=false, reasoning_effort=high; may be repeated",
    )
    render.add_argument(
        "--no-normalise",
        dest="normalise",
        action="store_false",
        help="write what the template writes for the messages as they are, nonsense included",
    )
    render.add_argument(
        "--neutralize",
        choices=("keep", "escape", "raise"),
        default="keep",
        help="what to do with control tokens in texts from outside (default: keep)",
    )
    render.add_argument(
        "--add-generation-prompt", "--generation-prompt", action="store_true", help="end where the model is to go on"
    )

    convert_ = command("convert", _convert, "write a transcript, or one turn of a model, in another dialect")
    convert_.add_argument("file", nargs="?", default="-", metavar="FILE", help="the text; standard input without it")
    convert_.add_argument("--from", dest="source", required=True, metavar="NAME", help="the dialect it is in")
    convert_.add_argument("--to", dest="target", required=True, metavar="NAME", help="the dialect it is wanted in")
    tools_file(convert_)

    prompt = command("prompt", _prompt, "print the guide that tells a model how to write a dialect")
    prompt.add_argument("dialect", metavar="DIALECT")
    tools_file(prompt)

    command("list", _list, "list the dialects, with the models that speak them")
    which = command("which", _which, "name the dialect of a model; exit with 1 if that is not known")
    which.add_argument("--template", metavar="FILE", help="go by the source of a chat template instead")
    which.add_argument(
        "model", nargs="?", metavar="MODEL_ID", help="as its publisher writes it, such as example/Model-2-Instruct"
    )

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
