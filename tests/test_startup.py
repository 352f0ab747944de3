"""What a new process loads: the dialect that it asks for, and nothing that only other uses need. (How long that takes,
`benchmarks/startup.py` measures.)"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dialects.factory import all_dialects
from dialects.templates import FAMILIES

ROOT = Path(__file__).resolve().parent.parent
DIALECTS = {type(dialect).__module__ for dialect in all_dialects() if type(dialect).__module__.startswith("dialects.")}
FAMILY_MODULES = {family.where.partition(":")[0] for family in FAMILIES}
NOT_FOR_SCANNING = {
    *("argparse", "asyncio", "email", "http", "importlib.metadata", "json_repair", "secrets", "socket", "ssl"),
    *("anyio", "httpx", "jinja2", "jsonschema", "pydantic", "starlette", "uvicorn"),
    *("dialects.chat", "dialects.cli", "dialects.healing", "dialects.proxy", "dialects.toolset"),
}
ONE_DIALECT = {
    "a scanner": "import dialects; dialects.create_inband_scanner('kimi')",
    "a text": "import dialects; dialects.scan('Hi.', 'kimi')",
    "a transcript": "import dialects; dialects.render_transcript([{'role': 'user', 'content': 'Hi.'}], 'kimi')",
    "a healer": "from dialects.healing import ChatCompletionHealer; ChatCompletionHealer('kimi')",
    "a transport's options": "from dialects.healing.http import HealingOptions; HealingOptions(pattern='kimi').check()",
    "the command": f"from dialects.cli import main; main(['scan', '--dialect', 'kimi', {os.devnull!r}])",
    "a guide": "from dialects.cli import main; main(['prompt', 'kimi'])",
}


def run(code: str) -> str:
    """What a fresh interpreter prints last."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def loaded(code: str) -> set[str]:
    """The modules that a fresh interpreter has because of this code."""
    printed = run(f"import sys\nbefore = {{*sys.modules}}\n{code}\nprint(*{{*sys.modules}} - before)")
    return set(printed.split())


@pytest.mark.parametrize("code", ONE_DIALECT.values(), ids=ONE_DIALECT)
def test_who_uses_one_dialect_does_not_pay_for_the_others(code: str) -> None:
    modules = loaded(code)
    assert modules & DIALECTS == {"dialects.kimi"}
    assert modules & FAMILY_MODULES == set()


def test_who_writes_one_template_does_not_pay_for_the_others() -> None:
    modules = loaded(
        "import dialects; dialects.render_transcript([{'role': 'user', 'content': 'Hi.'}], 'kimi', "
        "template=dialects.templates('kimi')[0])"
    )
    assert modules & (DIALECTS | FAMILY_MODULES) == {"dialects.kimi", "dialects.templates.kimi"}


def test_the_package_loads_no_dialect_and_nothing_that_scanning_does_without() -> None:
    assert loaded("import dialects") & (DIALECTS | FAMILY_MODULES | NOT_FOR_SCANNING) == set()
    assert loaded("import dialects; dialects.create_inband_scanner('kimi')") & NOT_FOR_SCANNING == set()


def test_the_help_of_the_command_loads_no_dialect() -> None:
    modules = loaded("from dialects.cli import main; main(['--help'])")
    assert modules & {*DIALECTS, "asyncio", "importlib.metadata", "dialects.chat", "dialects.proxy"} == set()


def test_a_name_that_is_unknown_is_refused_without_loading_what_it_is_not() -> None:
    modules = loaded(
        "import dialects\n"
        "try: dialects.get_dialect('kimmi')\n"
        "except dialects.UnknownDialectError as error: assert \"did you mean 'kimi'?\" in str(error), error"
    )
    assert modules & DIALECTS == set()


def test_threads_that_ask_for_the_same_dialects_at_once_get_the_same() -> None:
    code = """
import sys, threading
sys.setswitchinterval(1e-6)
from dialects import get_dialect, scan
names = ["kimi", "hermes", "qwen3", "glm", "minimax", "deepseek", "gemini"]
start, found = threading.Barrier(8), []
def ask(turn):
    start.wait()
    for name in names[turn:] + names[:turn]:
        call = get_dialect(name).render_assistant_tool_calls([{"name": "f", "arguments": {"a": "b"}}])
        result = scan("Hi." + call, name)
        found.append((name, id(get_dialect(name)), result.text, result.tool_calls[0].arguments["a"]))
threads = [threading.Thread(target=ask, args=[turn % len(names)]) for turn in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(found), len(set(found)), len({name for name, *_ in found}))
"""
    assert run(code) == "56 7 7"
