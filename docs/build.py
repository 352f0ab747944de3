"""Writes the generated parts of the pages in this directory: `python docs/build.py`, or with `--check` only compares.

A page is Markdown written by hand, but for two kinds of parts, which this script fills in and which stay committed:

- what stands between `<!-- generated: NAME ARGUMENTS -->` and `<!-- end -->`: `facts`, `sample` and `states` of the
  page's dialect, or `include FILE`, a file of `docs/shared/` that several pages have in common;
- the `result` block behind every `stream` block, which says what the scanner makes of that stream, and behind every
  `arguments` block, which says how a call's JSON arguments are read.

Behind the word `stream` stand its circumstances: `tools` (those of `TOOLS` are declared), `truncated`, `strict`, and
`after=TEXT` (what the prompt ended with). In an included file `{call}` stands for a call in the dialect's own form.
"""

import json
import logging
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dialects import ScanResult, dialect_names, get_dialect, render_transcript, scan
from dialects.engine.dialect import Dialect
from dialects.templates import FAMILIES
from docs.states import mermaid

DOCS = Path(__file__).resolve().parent
TOOLS: list[dict[str, Any]] = [
    {
        "name": "get_tide",
        "parameters": {
            "type": "object",
            "properties": {"port": {"type": "string"}, "days": {"type": "integer"}, "options": {"type": "object"}},
            "required": ["port"],
        },
    },
    {
        "name": "run",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
]
_SIGNATURES = "get_tide(port: string, days?: integer, options?: object), run(command: string)"
CALL = {"name": "get_tide", "arguments": {"port": "Leith"}}
CONVERSATION: list[dict[str, Any]] = [
    {"role": "system", "content": "You know the sea."},
    {"role": "user", "content": "How high is the tide at Leith, and at Oban?"},
    {
        "role": "assistant",
        "reasoning_content": "Two calls will do.",
        "content": "I look it up.",
        "tool_calls": [
            {"function": {"name": "get_tide", "arguments": {"port": "Leith", "days": 2}}},
            {"function": {"name": "get_tide", "arguments": {"port": "Oban"}}},
        ],
    },
    {"role": "tool", "content": "5.1 m"},
    {"role": "tool", "content": "3.8 m"},
]

_REGION = re.compile(r"(<!-- generated: (\w+)(?: (\S+))? -->\n).*?(<!-- end -->)", re.DOTALL)
_EXAMPLE = re.compile(
    r"^(?P<fence>`{3,}|~{3,})(?P<kind>stream|arguments)(?P<words>[^\n]*)\n(?P<body>.*?)\n(?P=fence)\n"
    r"(?:\n(?P<old>`{3,}|~{3,})result\n.*?\n(?P=old)\n)?",
    re.DOTALL | re.MULTILINE,
)


def own_dialects() -> list[str]:
    """The names of the package's own dialects; other packages may have added theirs."""
    return [name for name in dialect_names() if type(get_dialect(name)).__module__.startswith("dialects.")]


def pages() -> list[Path]:
    """The pages that have generated parts."""
    return [DOCS / "dialects" / f"{name}.md" for name in own_dialects()] + [DOCS / "repairs.md", DOCS / "templates.md"]


def built(page: Path) -> str:
    """The page's text as it should be."""
    dialect = get_dialect(page.stem if page.parent.name == "dialects" else "kimi")
    text = _REGION.sub(
        lambda match: match[1] + _generated(dialect, match[2], match[3]) + match[4], page.read_text(encoding="utf-8")
    )
    return _EXAMPLE.sub(lambda match: _with_result(dialect, match), text)


def examples(text: str) -> Iterator[tuple[str, "re.Match[str]"]]:
    """The examples of a page, each under the nearest heading above it."""
    heading, at = "", 0
    for match in _EXAMPLE.finditer(text):
        headings = re.findall(r"^#+ (.*)$", text[at : match.start()], re.MULTILINE)
        heading, at = headings[-1] if headings else heading, match.end()
        yield heading, match


def read_stream(dialect: Dialect, body: str, words: str = "") -> ScanResult:
    """What the scanner makes of an example."""
    options: dict[str, Any] = {}
    for word in shlex.split(words):
        name, _, value = word.partition("=")
        if name == "tools":
            options["tools"] = TOOLS
        elif name == "after":
            options["generation_prompt"] = _unescaped(value)
        else:
            options[name] = True
    return scan(body, dialect.name, **options)


def read_arguments(dialect: Dialect, arguments: str) -> ScanResult:
    """What comes of a call with these JSON arguments in a dialect."""
    call = dialect.render_tool_call({"name": "get_tide", "arguments": {"HERE": 0}})
    return scan(call.replace('{"HERE":0}', arguments), dialect.name)


def _generated(dialect: Dialect, name: str, argument: str | None) -> str:
    if name == "include":
        return (
            (DOCS / "shared" / f"{argument}")
            .read_text(encoding="utf-8")
            .replace("{call}", dialect.render_tool_call(CALL, tools=TOOLS))
        )
    if name == "sample":
        return _fenced("text", render_transcript(CONVERSATION, dialect.name, tools=TOOLS))
    if name == "states":
        assert dialect.scanner is not None
        return _fenced("mermaid", mermaid(dialect.scanner))
    if name == "facts":
        return _facts(dialect)
    if name == "templates":
        return _templates()
    raise ValueError(f"there is no generated part {name!r}")


def _facts(dialect: Dialect) -> str:
    prompt = dialect.prompt.splitlines()
    rows = {
        "name": f"`{dialect.name}`",
        "models": f"{dialect.title}; ids that match {_code(dialect.models)}",
        "what a prompt ends with": _code(dialect.generation_prompt),
        "control tokens": " ".join(map(_code, dialect.control_tokens)),
        "guide for the model": f"[prompts/{dialect.name}.md](../../prompts/{dialect.name}.md), {len(prompt)} lines",
    }
    return "| | |\n|---|---|\n" + "".join(f"| {name} | {value} |\n" for name, value in rows.items())


def _templates() -> str:
    """Every template: its dialect, which options it has, how sure it is."""
    rows = [
        "| dialect | template | options, and what they are without being given | recorded from |",
        "|---|---|---|---|",
    ]
    for family in FAMILIES:
        for template in family.templates:
            options = ", ".join(_code(f"{name}={option.default!r}") for name, option in template.options.items())
            rows.append(f"| {family.dialect} | `{template.name}` | {options or 'none'} | {template.certainty} |")
    return "\n".join(rows) + "\n"


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|").replace("\n", "\\n") + "`"


def _with_result(dialect: Dialect, match: "re.Match[str]") -> str:
    example = match.group()[: match.end("body") - match.start()] + f"\n{match['fence']}\n"
    if match["kind"] == "arguments":
        (call,) = read_arguments(dialect, match["body"]).tool_calls
        return f"{example}\n{_fenced('result', call.arguments_json)}"
    return f"{example}\n{_fenced('result', _said(read_stream(dialect, match['body'], match['words']), match['words']))}"


def _said(result: ScanResult, words: str) -> str:
    """A result in lines: what was said, and under which circumstances."""
    lines: list[tuple[str, str]] = []
    for word in shlex.split(words):
        name, _, value = word.partition("=")
        given = {"tools": _SIGNATURES, "after": f"a prompt that ends with {_quoted(_unescaped(value))}"}
        lines.append(("given", given.get(name, name)))
    if result.thinking:
        lines.append(("thinking", _quoted(result.thinking)))
    if result.text:
        lines.append(("text", _quoted(result.text)))
    for call in result.tool_calls:
        lines.append(("call", f"{call.name} {call.arguments_json}"))
        lines += [("  id", call.id)] if not re.fullmatch("call_[0-9a-f]{24}", call.id) else []
        lines += [("  repairs", ", ".join(call.repairs))] if call.repairs else []
    lines += [("dropped", f"{dropped.reason}: {_quoted(dropped.raw_block)}") for dropped in result.dropped]
    lines += [("stopped", result.stopped)] if result.stopped else []
    return "\n".join(f"{label:<9} {value}" for label, value in lines)


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _fenced(kind: str, text: str) -> str:
    fence = "````" if "```" in text else "```"
    return f"{fence}{kind}\n{text.removesuffix(chr(10))}\n{fence}\n"


def main() -> int:
    logging.getLogger("dialects").disabled = True
    stale = [page for page in pages() if built(page) != page.read_text(encoding="utf-8")]
    for page in stale:
        print(f"{page.relative_to(DOCS.parent)}: {'not up to date' if '--check' in sys.argv else 'written'}")
        if "--check" not in sys.argv:
            page.write_text(built(page), encoding="utf-8")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
