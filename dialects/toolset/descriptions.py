"""What a model is told about a tool, taken from docstrings and from Markdown files.

A docstring gives the description and, from its section on parameters, their descriptions. Read are the three usual
forms: Google's (`Args:` and indented `name (type): text`), NumPy's (`Parameters` underlined) and Sphinx's
(`:param name: text`).
"""

import inspect
import re
from pathlib import Path

__all__ = ["load_description", "read_docstring"]

_GOOGLE = re.compile(r"(?:args|arguments|parameters|params):\s*", re.IGNORECASE)
_GOOGLE_ENTRY = re.compile(r"(?P<indent>[ \t]+)\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?\s*:\s*(?P<text>.*)")
_NUMPY = re.compile(r"(?:other )?parameters\s*", re.IGNORECASE)
_NUMPY_ENTRY = re.compile(r"(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_SPHINX_ENTRY = re.compile(
    r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(?P<name>\w+):\s*(?P<text>.*)"
)
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w*)\}")
_BRACES = {"{{": "{", "}}": "}"}


def load_description(path: str | Path, **values: object) -> str:
    """The text of a Markdown file, with `{name}` replaced by the value of that name; `{{` and `}}` are single braces.

    Other braces, such as those of JSON, stay. Raises `OSError`, and `ValueError` for a placeholder without a value or a
    value without a placeholder.
    """
    text = Path(path).read_text(encoding="utf-8")
    wanted = {match[1] for match in _PLACEHOLDER.finditer(text) if match[1]}
    if missing := sorted(wanted - values.keys()):
        raise ValueError(f"{path}: no value for {_listed(missing)}")
    if unused := sorted(values.keys() - wanted):
        raise ValueError(f"{path}: no placeholder for {_listed(unused)}")
    return _PLACEHOLDER.sub(lambda found: _BRACES.get(found[0]) or str(values[found[1]]), text).strip()


def read_docstring(docstring: str | None) -> tuple[str, dict[str, str]]:
    """The description without its section on parameters, and the descriptions of the parameters."""
    lines = inspect.cleandoc(docstring or "").split("\n")
    kept: list[str] = []
    found: dict[str, str] = {}
    at = 0
    while at < len(lines):
        entries, end = _section(lines, at)
        if end == at:
            kept.append(lines[at])
            end += 1
        found.update(entries)
        at = end
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), found


def _section(lines: list[str], at: int) -> tuple[dict[str, str], int]:
    """The parameters that the section beginning at a line describes, and the line behind it; none begins: that line."""
    if _GOOGLE.fullmatch(lines[at]):
        entries, end = _indented_entries(lines, at + 1)
        return entries, end if entries else at
    if _NUMPY.fullmatch(lines[at]) and _is_underlined(lines, at):
        return _numpy_entries(lines, at + 2)
    if match := _SPHINX_ENTRY.fullmatch(lines[at]):
        end = at + 1
        while end < len(lines) and lines[end][:1].isspace():
            end += 1
        return {match["name"]: _joined([match["text"], *lines[at + 1 : end]])}, end
    return {}, at + 1 if _is_type_field(lines[at]) else at


def _is_underlined(lines: list[str], at: int) -> bool:
    return at + 1 < len(lines) and re.fullmatch(r"-{3,}\s*", lines[at + 1]) is not None


def _is_type_field(line: str) -> bool:
    """Whether Sphinx says a parameter's type here, which the signature says better."""
    return line.startswith((":type ", ":rtype:"))


def _indented_entries(lines: list[str], at: int) -> tuple[dict[str, str], int]:
    entries: dict[str, list[str]] = {}
    indent, current = "", [""]
    while at < len(lines) and (not lines[at].strip() or lines[at][:1].isspace()):
        match = _GOOGLE_ENTRY.fullmatch(lines[at])
        if match and (not indent or match["indent"] == indent):
            indent = match["indent"]
            current = entries[match["name"]] = [match["text"]]
        else:
            current.append(lines[at])
        at += 1
    return {name: _joined(text) for name, text in entries.items()}, at


def _numpy_entries(lines: list[str], at: int) -> tuple[dict[str, str], int]:
    entries: dict[str, list[str]] = {}
    current: list[str] = []
    while at < len(lines):
        if _is_underlined(lines, at):
            break
        if lines[at].strip() and not lines[at][:1].isspace():
            match = _NUMPY_ENTRY.fullmatch(lines[at])
            if match is None:
                break
            current = []
            entries.update({name.strip(" *"): current for name in match["names"].split(",")})
        else:
            current.append(lines[at])
        at += 1
    return {name: _joined(text) for name, text in entries.items()}, at


def _joined(lines: list[str]) -> str:
    return " ".join(filter(None, map(str.strip, lines)))


def _listed(names: list[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)
