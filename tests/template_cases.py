"""The vendors' templates as cases: conversations, and what each template writes for them with which options.

`cases/templates/conversations.jsonl` holds every conversation once. A file a dialect beside it begins with the pieces
that its texts share; an expected text is a list of its own pieces and of numbers of shared ones. Where there is none,
the vendor's template raises.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from dialects.templates import FAMILIES, find_template, write

FOLDER = Path(__file__).parent / "cases/templates"
NOW = datetime(2025, 6, 28)
"""The day on which the cases were recorded."""


@dataclass(frozen=True)
class Case:
    """One call of one template; `text` is what it writes, None where it raises."""

    dialect: str
    template: str
    id: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None
    options: dict[str, Any]
    add_generation_prompt: bool
    text: str | None

    def render(self, messages: list[dict[str, Any]] | None = None, *, normalise: bool = False) -> str:
        """What our template writes, for the case's messages or others."""
        return write(
            find_template(self.dialect, self.template),
            self.messages if messages is None else messages,
            tools=self.tools,
            add_generation_prompt=self.add_generation_prompt,
            normalise=normalise,
            now=NOW,
            options=self.options,
        )


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def _cases(dialect: str) -> list[Case]:
    conversations = {line["conversation"]: line for line in _lines("conversations")}
    head, *rows = _lines(dialect)
    shared: list[str] = head["shared"]
    cases = []
    for row in rows:
        conversation = conversations[row["conversation"]]
        pieces = row.get("expected")
        text = None if pieces is None else "".join(shared[it] if isinstance(it, int) else it for it in pieces)
        cases.append(
            Case(
                dialect=dialect,
                template=row["template"],
                id=row["id"],
                messages=conversation["messages"],
                tools=conversation["tools"],
                options=row["options"],
                add_generation_prompt=row["add_generation_prompt"],
                text=text,
            )
        )
    return cases


CASES = [case for family in FAMILIES for case in _cases(family.dialect)]
