"""Measures what a new process pays before its first event: `python benchmarks/startup.py [--quick]`.

Every line is the median of several fresh interpreters, which take turns line by line, so that what else the machine
does falls on all of them. Only the CPU time of the statements counts, not that of Python's own start, and all modules
are compiled to bytecode. The ratio to `import asyncio` is the figure to compare between machines and versions.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent


def _call(dialect: str, pattern: str) -> str:
    return f"""
import dialects
call = dialects.get_dialect({dialect!r}).render_tool_call({{"name": "look", "arguments": {{"at": "the sea"}}}})
assert dialects.scan(call, {pattern!r}).tool_calls
"""


YARDSTICK = "import asyncio"
COMMAND = "import io, sys; sys.stdout = io.TextIOWrapper(io.BytesIO()); from dialects.cli import main; "
LINES = {
    YARDSTICK: YARDSTICK,
    "what it stands on": "import msgspec, regex",
    "import dialects": "import dialects",
    "a call of kimi": _call("kimi", "kimi"),
    "a call of hermes": _call("hermes", "hermes"),
    "the same by auto": _call("hermes", "auto"),
    "all dialects": "import dialects; dialects.dialect_names()",
    "a transcript of kimi": "import dialects; dialects.render_transcript([{'role': 'user', 'content': 'Hi'}], 'kimi')",
    "a healer of kimi": "from dialects.healing import ChatCompletionHealer; ChatCompletionHealer('kimi')",
    "dialects --help": COMMAND + "main(['--help'])",
    "dialects scan": COMMAND + "sys.stdin = io.TextIOWrapper(io.BytesIO(b'Hi')); main(['scan', '--dialect', 'kimi'])",
    "dialects list": COMMAND + "main(['list'])",
}
MEASURED = """
import sys, time
start = time.process_time()
exec(sys.argv[1])
print(time.process_time() - start, file=sys.__stdout__)
"""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure what a new process pays.")
    parser.add_argument("--quick", action="store_true", help="fewer runs: does it work, roughly how fast")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        rounds = [[_seconds(code, environment) for code in LINES.values()] for _ in range(6 if options.quick else 22)]
    medians = dict(zip(LINES, map(median, zip(*rounds[1:], strict=True)), strict=True))  # the first one compiled
    print(f"Python {sys.version.split()[0]}\n\n{'':<24}{'ms':>8}{'x asyncio':>12}")
    for name, seconds in medians.items():
        print(f"{name:<24}{seconds * 1e3:>8.0f}{seconds / medians[YARDSTICK]:>12.2f}")
    return 0


def _seconds(code: str, environment: Mapping[str, str]) -> float:
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, code], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{code!r} failed:\n{done.stderr}")
    return float(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
