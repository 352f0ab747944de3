"""Measures chat templates against Jinja: `python benchmarks/templates.py [--quick]`.

The same conversation of 1,000 messages with 20 tools is written by `render_transcript`, messages checked and normalised
too, and by `jinja2` from a template in `jinja/` that gives the same text; it is compiled before the clock starts. Both
must agree on the conversation, and Jinja's must give the recorded texts of the vendor's template
(`tests/cases/templates`), or the run fails. Then conversations of twice and four times the length: linear is 2.00 and
4.00.
"""

import argparse
import gc
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import jinja2

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dialects import render_transcript
from tests.template_cases import CASES

FOLDER = Path(__file__).parent / "jinja"
COMPARED = (("qwen3", "Qwen3-0.6B"), ("glm", "GLM-4.7"), ("kimi", "Kimi-K2-Thinking"))
Write = Callable[[list[dict[str, Any]], list[dict[str, Any]]], str]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure chat templates against Jinja.")
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    runs = 3 if parser.parse_args(argv).quick else 21
    tools = [_tool(number) for number in range(20)]
    print(
        f"Python {sys.version.split()[0]}, jinja2 {jinja2.__version__}; 20 tools; milliseconds, median of {runs} runs\n"
    )
    print(f"{'template':<20}{'dialects':>10}{'jinja2':>10}{'ratio':>8}   2,000 and 4,000 messages, times 1,000")
    for dialect, name in COMPARED:
        _check(name)
        ours, theirs = _ours(dialect, name), _theirs(name)
        usual, *longer = (partial(ours, _conversation(count), tools) for count in (1000, 2000, 4000))
        in_jinja = partial(theirs, _conversation(1000), tools)
        if usual() != in_jinja():
            sys.exit(f"{name}: the texts differ")
        # One after the other in every run, so that whatever slows the machine down slows all.
        seconds, *others = _medians(runs, [usual, in_jinja, *longer])
        times = f"{seconds * 1e3:>10.2f}{others[0] * 1e3:>10.2f}{seconds / others[0]:>8.2f}"
        print(f"{name:<20}{times}   {others[1] / seconds:.2f}, {others[2] / seconds:.2f}")
    return 0


def _ours(dialect: str, name: str) -> Write:
    return lambda messages, tools: render_transcript(
        messages, dialect, template=name, tools=tools, add_generation_prompt=True
    )


def _theirs(name: str) -> Write:
    template = _jinja(name)
    return lambda messages, tools: template.render(messages=messages, tools=tools, add_generation_prompt=True)


def _jinja(name: str) -> jinja2.Template:
    environment = jinja2.Environment(autoescape=False)
    environment.filters["pyjson"] = lambda value: json.dumps(value, ensure_ascii=False)
    environment.filters["compact_sorted_json"] = lambda value: json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), sort_keys=True
    )
    return environment.from_string((FOLDER / f"{name}.jinja").read_text(encoding="utf-8"))


def _check(name: str) -> None:
    """That Jinja's template gives the recorded texts too, so that both do the same work."""
    template = _jinja(name)
    for case in CASES:
        if case.template != name or case.text is None:
            continue
        written = template.render(
            messages=case.messages,
            tools=case.tools,
            add_generation_prompt=case.add_generation_prompt,
            **case.options,
        )
        if written != case.text:
            sys.exit(f"{name}: jinja/{name}.jinja does not give the text of the case {case.id}")


def _medians(runs: int, tasks: Sequence[Callable[[], object]]) -> list[float]:
    seconds: list[list[float]] = [[] for _ in tasks]
    for _ in range(runs):
        for task, measured in zip(tasks, seconds, strict=True):
            gc.collect()
            start = perf_counter()
            task()
            measured.append(perf_counter() - start)
    return [median(measured) for measured in seconds]


def _tool(number: int) -> dict[str, Any]:
    fields = {
        f"field_{at}": {"type": "string", "description": f"What field {at} is about, in a sentence."} for at in range(6)
    }
    parameters = {"type": "object", "properties": fields, "required": ["field_0"]}
    function = {
        "name": f"tool_{number}",
        "description": f"Does the thing of number {number}.",
        "parameters": parameters,
    }
    return {"type": "function", "function": function}


def _conversation(count: int) -> list[dict[str, Any]]:
    """A question, two rounds of a call and its result, and an answer, until there are so many messages."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a terse assistant."}]
    while len(messages) < count:
        turn = len(messages)
        messages.append({"role": "user", "content": f"Please look at the thing of number {turn} and tell me. " * 3})
        for at in (1, 2):
            call_id = f"functions.tool_{at}:{turn + at}"
            arguments = {"field_0": f"src/file_{turn}.py", "field_1": 'A text with "quotes"\nand lines.\n' * 5, "n": at}
            call = {"id": call_id, "type": "function", "function": {"name": f"tool_{at}", "arguments": arguments}}
            thought = f"I need tool {at} for number {turn}.\nThen I see." * 2
            messages.append(
                {"role": "assistant", "content": "I look.", "reasoning_content": thought, "tool_calls": [call]}
            )
            result = f"line of a result {turn}\n" * 20
            messages.append({"role": "tool", "tool_call_id": call_id, "name": f"tool_{at}", "content": result})
        messages.append({"role": "assistant", "content": f"It is {turn}. " * 10, "reasoning_content": "Report."})
    return messages[: count - 1] + messages[1:2]


if __name__ == "__main__":
    sys.exit(main())
