"""What real clients make of a healed stream: the same call, arguments, text and finish reason in every one of them.

A scripted upstream on loopback leaks what the case file says. The clients ask it through the proxy, those of Python
that speak `httpx` also through the transport. They come with the extra `clients`; the two of Node need `npm install` in
`tests/clients`. Where they are missing, their tests are skipped and say so.
"""

import asyncio
import json
import os
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from dialects.healing import AsyncHealingTransport, HealingTransport
from tests.leaks import CASES, DECIDED, response_of, stream_of
from tests.upstream import Script, proxied, served

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would ask the network for prices
NODE = Path(__file__).parent / "clients"
MESSAGES = [{"role": "user", "content": "Go on."}]

pytestmark = pytest.mark.filterwarnings("ignore")  # the clients' own


class Outcome(msgspec.Struct, frozen=True):
    """What a client made of a completion. `reasoning` is None where it exposes none."""

    content: str
    reasoning: str | None
    calls: list[tuple[str, Any]]
    finish: str


Ask = Callable[[str, Mapping[str, Any]], Outcome]


def client(name: str) -> ModuleType | Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"{name} comes with the extra 'clients'")


def request_of(case: Mapping[str, Any]) -> dict[str, Any]:
    tools = [tool if "function" in tool else {"type": "function", "function": tool} for tool in case["tools"] or ()]
    request: dict[str, Any] = {"model": case["id"], "messages": MESSAGES}
    choice = case["upstream"].get("tool_choice")
    return request | ({"tools": tools} if tools else {}) | ({"tool_choice": choice} if choice else {})


# The clients.


def openai_raw(url: str, case: Mapping[str, Any], **options: Any) -> Outcome:
    with client("openai").OpenAI(base_url=url, api_key="none", max_retries=0, **options) as openai:
        return gathered(openai.chat.completions.create(**request_of(case), stream=True))


def openai_stream(url: str, case: Mapping[str, Any], **options: Any) -> Outcome:
    with (
        client("openai").OpenAI(base_url=url, api_key="none", max_retries=0, **options) as openai,
        openai.chat.completions.stream(**request_of(case)) as stream,
    ):
        for _ in stream:
            pass
        return whole(stream.get_final_completion())


def openai_whole(url: str, case: Mapping[str, Any], **options: Any) -> Outcome:
    with client("openai").OpenAI(base_url=url, api_key="none", max_retries=0, **options) as openai:
        return whole(openai.chat.completions.create(**request_of(case)))


def openai_async_raw(url: str, case: Mapping[str, Any], **options: Any) -> Outcome:
    async def ask() -> Outcome:
        async with client("openai").AsyncOpenAI(base_url=url, api_key="none", max_retries=0, **options) as openai:
            stream = await openai.chat.completions.create(**request_of(case), stream=True)
            return gathered([chunk async for chunk in stream])

    return asyncio.run(ask())


def openai_async_stream(url: str, case: Mapping[str, Any], **options: Any) -> Outcome:
    async def ask() -> Outcome:
        async with (
            client("openai").AsyncOpenAI(base_url=url, api_key="none", max_retries=0, **options) as openai,
            openai.chat.completions.stream(**request_of(case)) as stream,
        ):
            async for _ in stream:
                pass
            return whole(await stream.get_final_completion())

    return asyncio.run(ask())


def litellm_chunks(url: str, case: Mapping[str, Any]) -> Outcome:
    litellm = client("litellm")
    request = request_of(case)
    request["model"] = f"openai/{request['model']}"
    stream = litellm.completion(**request, api_base=url, api_key="none", stream=True, max_retries=0)
    return whole(litellm.stream_chunk_builder(list(stream), messages=MESSAGES))


def langchain_stream(url: str, case: Mapping[str, Any]) -> Outcome:
    request = request_of(case)
    model = client("langchain_openai").ChatOpenAI(
        base_url=url, api_key="none", model=request["model"], max_retries=0, stream_usage=False
    )
    bound = model.bind(**{key: request[key] for key in ("tools", "tool_choice") if key in request})
    message: Any = None
    for chunk in bound.stream("Go on."):
        message = chunk if message is None else message + chunk
    calls = [(call["name"], call["args"]) for call in message.tool_calls]
    assert not message.invalid_tool_calls
    return Outcome(message.content, None, calls, message.response_metadata["finish_reason"])


def gathered(chunks: Any) -> Outcome:
    """What a hand-written loop over the chunks makes of them."""
    content, reasoning = "", ""
    finish: list[str] = []
    calls: dict[int, list[str]] = {}
    for chunk in chunks:
        for choice in chunk.choices:
            content += choice.delta.content or ""
            reasoning += getattr(choice.delta, "reasoning_content", None) or ""
            finish += [choice.finish_reason] if choice.finish_reason else []
            for entry in choice.delta.tool_calls or ():
                call = calls.setdefault(entry.index, ["", ""])
                call[0] += entry.function.name or ""
                call[1] += entry.function.arguments or ""
    (reason,) = finish
    return Outcome(content, reasoning, [(name, json.loads(text)) for name, text in calls.values()], reason)


def whole(completion: Any) -> Outcome:
    (choice,) = completion.choices
    message = choice.message
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]
    reasoning = getattr(message, "reasoning_content", None)
    return Outcome(message.content or "", reasoning or "", calls, choice.finish_reason)


OPENAI: list[Ask] = [openai_raw, openai_stream, openai_whole, openai_async_raw, openai_async_stream]


# The tests.


@pytest.fixture(scope="module")
def leaking() -> Iterator[str]:
    """The URL of an upstream that leaks every case, by its id."""
    with served({case["id"]: Script(stream_of(case, case["chunks"]), response_of(case)) for case in CASES}) as url:
        yield url


@pytest.fixture(scope="module")
def healed(leaking: str) -> Iterator[str]:
    """The base URL of a proxy in front of it."""
    with proxied(leaking) as url:
        yield f"{url}/v1"


def check(outcome: Outcome, case: Mapping[str, Any]) -> None:
    wanted = DECIDED[case["id"]][0] if case["id"] in DECIDED else case["expected"]
    assert outcome.content.split() == (wanted["content"] or "").split()
    if outcome.reasoning is not None:
        assert outcome.reasoning.split() == (wanted["reasoning"] or "").split()
    assert [*map(list, outcome.calls)] == [[call["name"], call["arguments"]] for call in wanted["tool_calls"]]
    assert outcome.finish == wanted["finish_reason"]


every_case = pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])


@every_case
@pytest.mark.parametrize("ask", [*OPENAI, litellm_chunks, langchain_stream])
def test_a_client_behind_the_proxy_gets_the_call(ask: Ask, case: Mapping[str, Any], healed: str) -> None:
    check(ask(healed, case), case)


@every_case
@pytest.mark.parametrize("ask", OPENAI)
@pytest.mark.parametrize("library", ["httpx", "httpx2"])
def test_a_client_with_the_transport_gets_the_call(
    library: str, ask: Any, case: Mapping[str, Any], leaking: str
) -> None:
    http = client(library)
    http_client = (
        http.AsyncClient(transport=AsyncHealingTransport())
        if ask in (openai_async_raw, openai_async_stream)
        else http.Client(transport=HealingTransport())
    )
    check(ask(f"{leaking}/v1", case, http_client=http_client), case)


@pytest.fixture(scope="module")
def node_outcomes(healed: str) -> dict[tuple[str, str], dict[str, Any]]:
    """By client and case, what the clients of Node made of it."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed, so its clients are not tried")
    if not (NODE / "node_modules").is_dir():
        pytest.skip(f"the clients of Node are not installed: run npm install in {NODE}")
    run = subprocess.run(
        [node, "clients.mjs", healed],
        input=json.dumps([request_of(case) for case in CASES]),
        capture_output=True,
        cwd=NODE,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    outcomes = [json.loads(line) for line in run.stdout.splitlines()]
    return {(outcome.pop("client"), outcome.pop("model")): outcome for outcome in outcomes}


@every_case
@pytest.mark.parametrize("name", ["openai-node stream", "openai-node whole", "ai streamText"])
def test_a_client_of_node_gets_the_call(
    name: str, case: Mapping[str, Any], node_outcomes: dict[tuple[str, str], dict[str, Any]]
) -> None:
    outcome = node_outcomes[name, case["id"]]
    assert "error" not in outcome, outcome["error"]
    calls = [(called, json.loads(text)) for called, text in outcome["calls"]]
    check(Outcome(outcome["content"], outcome["reasoning"], calls, outcome["finish"]), case)
