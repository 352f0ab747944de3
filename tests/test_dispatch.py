"""What becomes of a call: every outcome, hooks and approval, limits, cancellation, external tools."""

import asyncio
import contextvars
import logging
import math
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import pytest
from pydantic import BaseModel

from dialects import ToolCall, ToolEnd, ToolResult, get_dialect, scan
from dialects.messages import MessageError
from dialects.toolset import (
    CallableTool,
    Limits,
    ToolError,
    ToolOk,
    ToolOutcome,
    ToolRejected,
    ToolRequest,
    Toolset,
    current_tool_call,
    tool,
)
from tests.event_loops import others, run, ticks


def call(name: str = "it", arguments: Any = None, call_id: str = "call_1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments or {}}}


def outcome_of(function: Callable[..., Any], arguments: Any = None, **options: Any) -> ToolOutcome:
    """The outcome of one call of a function."""

    async def main() -> ToolOutcome:
        return await Toolset([tool(name="it")(function)], **options).handle(call(arguments=arguments))

    return run(main)


class Place(BaseModel):
    city: str


class TestAnswers:
    @pytest.mark.parametrize(
        ("returned", "content"),
        [
            ("text", "text"),
            ("", ""),
            (None, "null"),
            (7, "7"),
            (True, "true"),
            (float("nan"), "null"),
            ({"a": [1, "ü"]}, '{"a":[1,"ü"]}'),
            ([], "[]"),
            ([1, 2], "[1,2]"),
            (Place(city="Bern"), '{"city":"Bern"}'),
            ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
            (
                [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:,"}}],
                "a[image_url: only text can be shown here]",
            ),
            ([{"type": "text"}], '[{"type":"text"}]'),
            ([{"type": "text", "text": "a"}, 1], '[{"type":"text","text":"a"},1]'),
            (["bad\ud800name"], '["bad\ud800name"]'),
            (ToolOk({"n": 1}), '{"n":1}'),
            (ToolOk("out", "Saved."), "out\n\nSaved."),
            (ToolOk(message="Saved."), "Saved."),
        ],
        ids=str,
    )
    def test_that_are_good(self, returned: Any, content: str) -> None:
        outcome = outcome_of(lambda: returned)
        assert outcome.content == content
        assert (outcome.is_error, outcome.kind) == (False, None)
        assert (outcome.call_id, outcome.name) == ("call_1", "it")

    def test_a_tool_that_fails_says_so(self) -> None:
        outcome = outcome_of(lambda: ToolError("No such file.", brief="Missing", output={"near": ["a.txt"]}))
        assert outcome.content == 'Error: No such file.\n\n{"near":["a.txt"]}'
        assert (outcome.is_error, outcome.kind, outcome.brief) == (True, "failed", "Missing")

    def test_a_tool_may_reject(self) -> None:
        outcome = outcome_of(lambda: ToolRejected())
        assert (outcome.is_error, outcome.kind, outcome.brief) == (True, "rejected", "Rejected")
        assert outcome.content.startswith("Error: The user does not permit this call.")

    def test_output_that_is_no_json(self) -> None:
        outcome = outcome_of(lambda: {"x": object()})
        assert outcome.kind == "unwritable-output"
        assert outcome.content.startswith("Error: The tool returned a dict, which cannot be written as JSON: ")
        ring: list[Any] = []
        ring.append(ring)
        assert outcome_of(lambda: ring).kind == "unwritable-output"

    def test_an_outcome_is_a_result_that_every_renderer_takes(self) -> None:
        outcome = outcome_of(lambda: "fine")
        assert isinstance(outcome, ToolResult)
        assert "fine" in get_dialect("kimi").render_tool_results([outcome])

    @pytest.mark.parametrize("length", [199, 200, 201, 1000, 123456])
    def test_a_long_result_loses_its_middle(self, length: int) -> None:
        text = "".join(chr(97 + number % 26) for number in range(length))
        content = outcome_of(lambda: text, limits=Limits(result_chars=200)).content
        if length <= 200:
            assert content == text
            return
        head, note, tail = content.split("\n")
        assert len(content) <= 200
        assert text.startswith(head)
        assert text.endswith(tail)
        assert note == f"[… {length - len(head) - len(tail):,} characters left out …]"
        assert abs(len(head) - len(tail)) <= 1


class _UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it has no text")


class TestRaising:
    @pytest.mark.parametrize("asynchronous", [True, False])
    @pytest.mark.parametrize(
        ("error", "said"),
        [
            (ValueError("no such port"), "ValueError: no such port"),
            (KeyError("x"), "KeyError: 'x'"),
            (ZeroDivisionError(), "ZeroDivisionError"),
            (TimeoutError("the server"), "TimeoutError: the server"),
            (StopIteration(), "StopIteration"),
            (type("Odd", (BaseException,), {})("own"), "Odd: own"),
            (GeneratorExit(), "GeneratorExit"),
            (_UnspeakableError(), "_UnspeakableError"),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_a_tool_that_raises(
        self, error: BaseException, said: str, asynchronous: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def later() -> NoReturn:
            raise error

        def now() -> NoReturn:
            raise error

        outcome = outcome_of(later if asynchronous else now)
        assert outcome.kind == "raised"
        assert outcome.content.startswith("Error: it failed. ")
        assert said in outcome.content
        assert "Traceback" not in outcome.content
        assert "test_dispatch" not in outcome.content
        (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert record.exc_info is not None

    @pytest.mark.parametrize("asynchronous", [True, False])
    def test_a_tool_that_cancels_itself(self, asynchronous: bool) -> None:
        async def later() -> NoReturn:
            raise asyncio.CancelledError

        def now() -> NoReturn:
            raise asyncio.CancelledError

        assert outcome_of(later if asynchronous else now).kind == "cancelled"

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
    @pytest.mark.parametrize("asynchronous", [True, False])
    def test_what_ends_the_program_ends_it(self, error: type[BaseException], asynchronous: bool) -> None:
        """And the other tools are cancelled, and awaited, on the way."""
        cleaned: list[str] = []

        @tool
        async def patient() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                cleaned.append("patient")

        async def later() -> NoReturn:
            raise error("stop")

        def now() -> NoReturn:
            raise error("stop")

        async def main() -> None:
            toolset = Toolset([patient, tool(name="it")(later if asynchronous else now)])
            waiting = toolset.handle(call("patient"))
            await ticks(5)
            try:
                await toolset.handle(call())
            finally:
                cleaned.append("main")
                assert (await waiting).kind == "cancelled"

        with pytest.raises(error):
            asyncio.run(main())
        assert sorted(cleaned) == ["main", "patient"]


class TestModelsFaults:
    def test_a_name_that_no_tool_has(self) -> None:
        async def main() -> list[ToolOutcome]:
            toolset = Toolset()
            none = await toolset.handle(call("read"))
            toolset.add(*(tool(name=name)(_nothing) for name in ("read_file", "Read_Folder", "search")))
            return [none, await toolset.handle(call("readfile")), await toolset.handle(call("x" * 500))]

        none, near, far = run(main)
        assert {outcome.kind for outcome in (none, near, far)} == {"unknown-tool"}
        assert none.content == "Error: There is no tool named 'read'. The tools are: none."
        assert near.content == (
            "Error: There is no tool named 'readfile'. Did you mean read_file or Read_Folder? "
            "The tools are: read_file, Read_Folder, search."
        )
        assert len(far.content) < 250

    @pytest.mark.parametrize("arguments", ["[1]", '"x"', "7", "{", '{"a":1', [1], 3])
    def test_arguments_that_are_no_object(self, arguments: Any) -> None:
        ran: list[int] = []
        outcome = outcome_of(lambda: ran.append(1), arguments)
        assert outcome.kind == "malformed-arguments"
        assert outcome.content.startswith("Error: The arguments are not one JSON object: expected ")
        assert (outcome.call_id, outcome.name) == ("call_1", "it")
        assert ran == []

    def test_arguments_that_the_scanner_could_not_read_are_not_taken_for_none(self) -> None:
        text = get_dialect("kimi").render_assistant_tool_calls([call("it")]).replace("{}", "[,,]")
        (end,) = scan(text, "kimi").tool_calls
        assert (end.arguments, end.repairs) == ({}, ("unreadable-arguments",))

        async def main() -> str | None:
            return (await Toolset([tool(name="it")(_nothing)]).handle(end)).kind

        assert run(main) == "malformed-arguments"

    def test_arguments_may_have_any_name(self) -> None:
        def echo(function: int, args: int, kwargs: int, call: int) -> int:
            return function + args + kwargs + call

        assert outcome_of(echo, {"function": 1, "args": 2, "kwargs": 3, "call": 4}).content == "10"

        async def main() -> dict[str, Any]:
            toolset = Toolset()
            toolset.register_external_tool("it", "", {"type": "object"})
            task = toolset.handle(call(arguments={"self": 1, "function": 2}))
            while not toolset.requests:
                await asyncio.sleep(0)
            arguments = toolset.requests[0].call.arguments
            toolset.resolve(toolset.requests[0].id, "fine")
            assert (await task).content == "fine"
            return arguments

        assert run(main) == {"self": 1, "function": 2}

    def test_a_call_may_have_any_form(self) -> None:
        end = ToolEnd("call_1", "it", {"n": 1}, '{"n":1}', "")
        forms: list[Any] = [
            call(arguments='{"n": 1}'),
            {"id": "call_1", "name": "it", "arguments": {"n": 1}},
            ToolCall("call_1", "it", {"n": 1}),
            end,
        ]

        def double(n: int) -> int:
            return 2 * n

        async def main() -> set[str]:
            toolset = Toolset([tool(name="it")(double)])
            return {(await toolset.handle(form)).content for form in forms}

        assert run(main) == {"2"}

    def test_what_is_no_call_is_the_callers_mistake(self) -> None:
        async def main() -> None:
            toolset = Toolset()
            for wrong in ({"id": "x"}, {"name": ""}, 7, {"type": "custom", "name": "it"}):
                with pytest.raises(MessageError):
                    toolset.handle(wrong)  # type: ignore[arg-type]

        run(main)


def _nothing() -> None:
    return None


class TestHooks:
    def test_before_may_block(self) -> None:
        ran: list[int] = []
        for before in (lambda call: "not today", _async(lambda call: "not today")):
            outcome = outcome_of(lambda: ran.append(1), before=before)
            assert (outcome.kind, outcome.content) == ("blocked", "Error: The call was not made: not today")
        assert ran == []
        assert outcome_of(lambda: "ran", before=lambda call: None).content == "ran"

    def test_before_may_give_its_reason_as_an_error(self) -> None:
        for reason, said in ((ToolRejected("Not at night."), "Not at night."), ("", "it is not permitted")):
            outcome = outcome_of(_nothing, before=lambda _, reason=reason: reason)
            assert (outcome.kind, outcome.content) == ("blocked", f"Error: The call was not made: {said}")

    def test_before_cannot_change_the_call(self) -> None:
        def before(call: ToolCall) -> None:
            call.arguments["place"]["city"] = "Basel"

        def take(place: dict[str, str]) -> str:
            return place["city"]

        assert outcome_of(take, {"place": {"city": "Bern"}}, before=before).content == "Bern"

    def test_a_hook_that_fails_permits_nothing(self, caplog: pytest.LogCaptureFixture) -> None:
        def before(call: ToolCall) -> NoReturn:
            raise RuntimeError("broken hook")

        outcome = outcome_of(lambda: "ran", before=before)
        assert outcome.kind == "blocked"
        assert "broken hook" not in outcome.content
        assert "broken hook" in caplog.text

    def test_hooks_are_not_asked_about_calls_that_cannot_run(self) -> None:
        asked: list[str] = []

        async def main() -> None:
            toolset = Toolset([tool(name="it")(_nothing)], before=lambda call: asked.append(call.name))
            await toolset.handle(call("other"))
            await toolset.handle(call(arguments={"x": 1}))
            await toolset.handle(call(arguments="[]"))

        run(main)
        assert asked == []

    def test_after_is_told_in_the_background(self, caplog: pytest.LogCaptureFixture) -> None:
        told: list[tuple[str, str | None]] = []
        gate: list[asyncio.Event] = []

        async def after(call: ToolCall, outcome: ToolOutcome) -> None:
            await gate[0].wait()
            told.append((call.name, outcome.kind))
            raise RuntimeError("broken afterwards")

        async def main() -> None:
            gate.append(asyncio.Event())
            toolset = Toolset([tool(name="it")(_nothing)], after=after)
            await toolset.handle(call())
            await toolset.handle(call("other"))
            assert told == []
            gate[0].set()
            await toolset.settle()

        run(main)
        assert told == [("it", None), ("other", "unknown-tool")]
        assert caplog.text.count("RuntimeError: broken afterwards") == 2

    def test_on_call_counts_every_outcome(self, caplog: pytest.LogCaptureFixture) -> None:
        counted: list[tuple[str, str, str | None]] = []

        def on_call(name: str, outcome: str, seconds: float, kind: str | None) -> None:
            assert seconds >= 0
            counted.append((name, outcome, kind))
            raise RuntimeError("broken counter")

        async def main() -> None:
            toolset = Toolset([tool(name="it")(_nothing)], on_call=on_call)
            assert (await toolset.handle(call())).kind is None
            await toolset.handle(call("other"))
            stopped = toolset.handle(call())
            stopped.cancel()
            await stopped

        run(main)
        assert counted == [("it", "ok", None), ("other", "error", "unknown-tool"), ("it", "error", "cancelled")]
        assert "broken counter" in caplog.text

    def test_the_log_names_calls_but_never_their_arguments(self, caplog: pytest.LogCaptureFixture) -> None:
        def take(secret: str) -> str:
            return secret

        with caplog.at_level(logging.INFO, logger="dialects.toolset"):
            outcome_of(take, {"secret": "hunter2"})
            outcome_of(take, {"secret": 5, "hunter2": 1})
        assert "'it': ok in 0." in caplog.text
        assert "'it': invalid-arguments in 0." in caplog.text
        assert "hunter2" not in caplog.text

    def test_the_current_call_is_known_inside(self) -> None:
        seen: list[str | None] = []

        def look() -> None:
            seen.append(current_tool_call.get().id)

        async def look_later() -> None:
            await asyncio.sleep(0)
            look()

        async def main() -> None:
            toolset = Toolset(
                [tool(name="sync")(look), tool(name="async")(look_later)], before=lambda call: look(), after=_look(look)
            )
            await asyncio.gather(toolset.handle(call("sync", call_id="a")), toolset.handle(call("async", call_id="b")))
            await toolset.settle()
            with pytest.raises(LookupError):
                current_tool_call.get()

        run(main)
        assert sorted(map(str, seen)) == ["a"] * 3 + ["b"] * 3


def _look(look: Callable[[], None]) -> Callable[[ToolCall, ToolOutcome], None]:
    return lambda call, outcome: look()


def _async(function: Callable[..., Any]) -> Callable[..., Any]:
    async def later(*args: Any) -> Any:
        await asyncio.sleep(0)
        return function(*args)

    return later


class TestApproval:
    @pytest.mark.parametrize("answer", [True, False])
    def test_is_asked_for_tools_that_want_it(self, answer: bool) -> None:
        asked: list[dict[str, Any]] = []

        async def approve(call: ToolCall) -> bool:
            asked.append(call.arguments)
            return answer

        async def main() -> list[ToolOutcome]:
            @tool(needs_approval=True)
            def delete(path: str) -> str:
                return f"{path} is gone"

            @tool
            def look() -> str:
                return "looked"

            toolset = Toolset([delete, look], approve=approve)
            return [await toolset.handle(call("look")), await toolset.handle(call("delete", {"path": "x"}))]

        looked, deleted = run(main)
        assert looked.content == "looked"
        assert asked == [{"path": "x"}]
        assert deleted.kind == (None if answer else "rejected")
        assert deleted.content.startswith("x is gone" if answer else "Error: The user does not permit this call.")

    def test_only_true_is_a_yes(self) -> None:
        async def main() -> str | None:
            toolset = Toolset([tool(name="it", needs_approval=True)(_nothing)], approve=lambda call: "no")  # type: ignore[arg-type, return-value]
            return (await toolset.handle(call())).kind

        assert run(main) == "rejected"

    def test_without_anybody_to_ask_the_answer_is_no(self) -> None:
        async def main() -> ToolOutcome:
            return await Toolset([tool(name="it", needs_approval=True)(_nothing)]).handle(call())

        outcome = run(main)
        assert outcome.kind == "rejected"
        assert "nobody who could give it" in outcome.content

    def test_an_approval_that_fails_is_none(self, caplog: pytest.LogCaptureFixture) -> None:
        async def approve(call: ToolCall) -> NoReturn:
            raise ConnectionError("the approver is away")

        async def main() -> ToolOutcome:
            return await Toolset([tool(name="it", needs_approval=True)(_nothing)], approve=approve).handle(call())

        assert run(main).kind == "rejected"
        assert "the approver is away" in caplog.text


@asynccontextmanager
async def released() -> AsyncIterator[threading.Event]:
    """An event for threads that wait; it is set at the end, so that none of them outlives the test."""
    event = threading.Event()
    try:
        yield event
    finally:
        event.set()


class TestTime:
    def test_a_synchronous_tool_that_blocks_does_not_block_the_loop(self) -> None:
        async def main() -> ToolOutcome:
            async with released() as event:
                toolset = Toolset([tool(name="it")(lambda: str(event.wait(60)))])
                waiting = toolset.handle(call())
                await ticks(20)  # the loop goes on
                assert not waiting.done()
                event.set()
                return await waiting

        assert run(main).content == "True"

    def test_a_synchronous_tool_that_never_ends_times_out(self) -> None:
        async def main() -> ToolOutcome:
            async with released() as event:
                return await Toolset([tool(name="it")(lambda: event.wait(60))], limits=Limits(seconds=0.01)).handle(
                    call()
                )

        outcome = run(main)
        assert outcome.kind == "timed-out"
        assert outcome.content == "Error: The call took longer than 0.01 seconds and was ended."
        assert outcome.seconds >= 0.01

    def test_a_tools_own_limit_goes_before_that_of_the_toolset(self) -> None:
        cleaned: list[bool] = []

        @tool(timeout=0.01)
        async def wait() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cleaned.append(True)

        async def main() -> ToolOutcome:
            return await Toolset([wait], limits=Limits(seconds=None)).handle(call("wait"))

        assert run(main).kind == "timed-out"
        assert cleaned == [True]

    def test_a_tool_that_does_not_end_when_cancelled_is_left_to_itself(self, caplog: pytest.LogCaptureFixture) -> None:
        async def main() -> str | None:
            free = asyncio.Event()

            @tool
            async def stubborn() -> None:
                while not free.is_set():
                    try:
                        await free.wait()
                    except asyncio.CancelledError:
                        continue

            outcome = await Toolset([stubborn], limits=Limits(seconds=0.01, grace=0.01)).handle(call("stubborn"))
            free.set()
            return outcome.kind

        assert run(main) == "timed-out"
        assert "'stubborn' goes on although it was cancelled" in caplog.text

    def test_the_program_can_end_although_a_tool_never_does(self) -> None:
        """Threads of a pool would be joined at its end."""
        begun, free = threading.Event(), threading.Event()

        def block() -> bool:
            begun.set()
            return free.wait(60)

        async def main() -> None:
            Toolset([tool(block)]).handle(call("block"))
            while not begun.is_set():
                await asyncio.sleep(0)

        asyncio.run(main())
        assert [thread.daemon for thread in threading.enumerate() if thread.name == "dialects-tool"] == [True]
        free.set()

    @pytest.mark.parametrize("asynchronous", [True, False])
    def test_200_calls_never_exceed_a_concurrency_of_8(self, asynchronous: bool) -> None:
        running = most = 0
        lock = threading.Lock()

        def count(change: int) -> None:
            nonlocal running, most
            with lock:
                running += change
                most = max(most, running)

        async def main() -> list[str]:
            together, threads_together = asyncio.Barrier(8), threading.Barrier(8)

            async def later(n: int) -> int:
                count(1)
                await together.wait()  # eight at a time do run, or none would go on
                count(-1)
                return n

            def now(n: int) -> int:
                count(1)
                threads_together.wait(60)
                count(-1)
                return n

            toolset = Toolset([tool(name="it")(later if asynchronous else now)], limits=Limits(concurrency=8))
            tasks = [toolset.handle(call(arguments={"n": n})) for n in range(200)]
            return [(await task).content for task in tasks]

        assert run(main) == [str(n) for n in range(200)]
        assert most == 8

    def test_a_slot_is_given_back_whatever_happens(self) -> None:
        def fail() -> NoReturn:
            raise ValueError

        async def main() -> list[str | None]:
            async with released() as event:
                toolset = Toolset([tool(fail), tool(name="it")(_nothing)], limits=Limits(concurrency=1))
                toolset.add(tool(name="block", timeout=0.01)(lambda: event.wait(60)))
                stopped = toolset.handle(call("block"))
                await ticks(4)
                stopped.cancel()
                tasks = [stopped, *(toolset.handle(call(name)) for name in ("fail", "block", "it"))]
                return [(await task).kind for task in tasks]

        assert run(main) == ["cancelled", "raised", "timed-out", None]

    def test_a_toolset_serves_one_event_loop_after_another(self) -> None:
        toolset = Toolset([tool(name="it")(_nothing)], limits=Limits(concurrency=1))

        async def main() -> list[str]:
            return [(await task).content for task in [toolset.handle(call()) for _ in range(3)]]

        assert run(main) == run(main) == ["null"] * 3

    def test_limits_that_make_no_sense(self) -> None:
        with pytest.raises(ValueError, match="concurrency is at least 1, not 0"):
            Limits(concurrency=0)
        with pytest.raises(ValueError, match="result_chars is at least 200, not 3"):
            Limits(result_chars=3)


class TestCancelling:
    def test_a_call_that_is_cancelled_at_any_await_has_an_outcome(self) -> None:
        """Through the hook, the approval, the wait for a slot, the tool's awaits and its clean-up."""
        begun: list[str] = []
        ended: list[str] = []

        @tool(needs_approval=True)
        async def work() -> str:
            begun.append("work")
            try:
                await ticks(4)
                return "done"
            finally:
                try:
                    await ticks(2)
                finally:
                    ended.append("work")

        async def main(pause: int) -> bool:
            approve = _async(lambda call: True)
            toolset = Toolset([work], before=_async(lambda call: None), approve=approve, limits=Limits(concurrency=1))
            other = toolset.handle(call("work"))
            task = toolset.handle(call("work"))
            await ticks(pause)
            is_running = not task.done()
            assert task.cancel() is is_running
            outcome = await task
            assert outcome.kind in ({"cancelled", None} if is_running else {None})
            assert not task.cancelled()
            assert task.cancel() is False
            assert (await other).content == "done"
            assert begun == ended
            assert (await toolset.handle(call("work"))).content == "done", "the slot is free again"
            return not is_running

        pause = 0
        while not run(lambda: main(pause)):  # noqa: B023
            pause += 1
            assert pause < 200
        assert pause > 25

    @pytest.mark.parametrize("pause", range(12))
    def test_who_awaits_a_call_and_is_cancelled_is_cancelled(self, pause: int) -> None:
        ended: list[str] = []

        @tool
        async def work() -> str:
            try:
                await ticks(100)
                return "done"
            finally:
                await ticks(2)
                ended.append("work")

        async def main() -> None:
            toolset = Toolset([work])

            async def caller() -> None:
                await toolset.handle(call("work"))
                raise AssertionError("it was cancelled")

            task = asyncio.get_running_loop().create_task(caller())
            await ticks(pause)
            task.cancel()
            await ticks(1)
            task.cancel()  # once more, while it waits for the tool to clean up
            with pytest.raises(asyncio.CancelledError):
                await task
            assert others() == set(), "the tool has ended before its caller"
            assert len(ended) <= 1

        run(main)

    def test_a_time_limit_around_a_call_is_kept(self) -> None:
        async def main() -> None:
            toolset = Toolset([tool(name="it")(_nothing)])
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await toolset.handle(call())

        run(main)


class Ask:
    """A toolset with an external tool, and the requests it makes."""

    def __init__(self, **limits: Any) -> None:
        self.requests: list[ToolRequest] = []
        self.toolset = Toolset(on_request=self.requests.append, limits=Limits(**limits))
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        assert self.toolset.register_external_tool("ask", "Ask the user.", schema) == (True, None)

    async def begun(self) -> "asyncio.Task[ToolOutcome]":
        task = self.toolset.handle(call("ask", {"text": "Really?"}))
        await ticks(3)
        return task


class TestExternalTools:
    def test_are_answered_late(self) -> None:
        async def main() -> None:
            ask = Ask()
            task = await ask.begun()
            (request,) = ask.requests
            assert list(ask.toolset.requests) == [request]
            assert (request.call.name, request.call.arguments) == ("ask", {"text": "Really?"})
            await ticks(50)
            assert not task.done()
            assert ask.toolset.resolve(request.id, {"said": "yes"})
            assert (await task).content == '{"said":"yes"}'
            assert not ask.toolset.requests

        run(main)

    def test_are_answered_from_another_thread(self) -> None:
        async def main() -> None:
            ask = Ask(seconds=30)
            task = await ask.begun()
            (request,) = ask.requests
            answering = threading.Timer(0.02, ask.toolset.resolve, (request.id, "from afar"))
            answering.start()  # while the event loop has nothing to do
            assert (await task).content == "from afar"
            answering.join()

        run(main)

    def test_are_answered_twice(self) -> None:
        async def main() -> None:
            ask = Ask()
            task = await ask.begun()
            assert ask.toolset.resolve(ask.requests[0].id, "yes") is True
            assert ask.toolset.resolve(ask.requests[0].id, "no") is False
            assert (await task).content == "yes"
            assert ask.toolset.resolve(ask.requests[0].id, "no") is False
            assert ask.toolset.resolve("request_0", "no") is False

        run(main)

    def test_are_answered_by_the_calls_id_while_it_is_the_only_one(self) -> None:
        async def main() -> None:
            ask = Ask()
            one, two = await ask.begun(), await ask.begun()
            assert ask.toolset.resolve("call_1", "whose?") is False
            assert ask.toolset.resolve(ask.requests[0].id, "first")
            assert ask.toolset.resolve("call_1", "second")
            assert ask.toolset.resolve("call_1", "third") is False
            assert [(await task).content for task in (one, two)] == ["first", "second"]

        run(main)

    def test_are_never_answered(self) -> None:
        async def main() -> None:
            ask = Ask(seconds=0.01)
            outcome = await (await ask.begun())
            assert outcome.kind == "timed-out"
            assert ask.toolset.requests == ()
            assert ask.toolset.resolve(ask.requests[0].id, "too late") is False

        run(main)

    def test_are_cancelled(self) -> None:
        async def main() -> None:
            ask = Ask()
            task = await ask.begun()
            task.cancel()
            assert (await task).kind == "cancelled"
            assert ask.toolset.resolve(ask.requests[0].id, "too late") is False

        run(main)

    def test_may_be_waited_for_longer_than_others(self) -> None:
        async def main() -> None:
            ask = Ask(seconds=0.01)
            assert ask.toolset.register_external_tool("ask", "Ask.", {}, timeout=math.inf) == (True, None)
            task = await ask.begun()
            await asyncio.sleep(0.05)
            assert ask.toolset.resolve(ask.requests[0].id, "at last")
            assert (await task).content == "at last"

        run(main)

    def test_can_fail_and_take_no_place_of_other_tools(self) -> None:
        async def main() -> None:
            ask = Ask(concurrency=1)
            ask.toolset.add(tool(name="it")(_nothing))
            tasks = [await ask.begun() for _ in range(3)]
            assert len({request.id for request in ask.requests}) == 3
            assert (await ask.toolset.handle(call())).content == "null"
            for request in reversed(ask.requests):
                ask.toolset.resolve(request.id, ToolError(f"no {request.id}"))
            for task, request in zip(tasks, ask.requests, strict=True):
                assert (await task).content == f"Error: no {request.id}"

        run(main)

    def test_arguments_are_checked_before_the_host_is_asked(self) -> None:
        async def main() -> None:
            ask = Ask()
            assert (await ask.toolset.handle(call("ask"))).kind == "invalid-arguments"
            assert ask.requests == []

        run(main)

    def test_a_name_can_be_registered_again_unless_it_is_anothers(self) -> None:
        toolset = Toolset([tool(name="it")(_nothing)])
        ok, reason = toolset.register_external_tool("it", "", {})
        assert not ok
        assert reason == "the name 'it' is that of a tool that is no external one"
        assert toolset.register_external_tool("", "", {})[0] is False
        assert toolset.register_external_tool("ask", "", [1])[0] is False  # type: ignore[arg-type]
        ok, reason = toolset.register_external_tool("ask", 7, {})  # type: ignore[arg-type]
        assert not ok
        assert reason is not None
        assert "description" in reason
        for wrong in (
            {"type": "nonsense"},
            {"type": "array"},
            {"type": "object", "properties": ["q"]},
            {"type": "object", "properties": {"q": {"type": 5}}},
            {"type": "object", "properties": {"q": "string"}},
            {"type": "object", "properties": {"q": {"enum": "ab"}}},
            {"type": "object", "properties": {"q": {"items": {"type": "strnig"}}}},
            {"type": "object", "properties": {"q": {"anyOf": {"type": "string"}}}},
            {"type": "object", "required": "q"},
        ):
            ok, reason = toolset.register_external_tool("ask", "One.", wrong)
            assert not ok
            assert reason is not None
            assert reason.startswith("ExternalTool.parameters.")
        assert toolset.register_external_tool("ask", "One.", {}) == (True, None)
        assert toolset.register_external_tool("ask", "Two.", {}) == (True, None)
        assert [definition.description for definition in toolset.tools] == ["", "Two."]


def test_a_tool_written_as_a_class_may_be_synchronous() -> None:
    class Blocking(CallableTool):
        name = "it"

        def __call__(self) -> Any:
            return threading.current_thread() is threading.main_thread()

    async def main() -> str:
        return (await Toolset([Blocking()]).handle(call())).content

    assert run(main) == "false"


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE")


def test_context_variables_of_the_caller_reach_the_tools_thread() -> None:
    async def main() -> str:
        VARIABLE.set("seen")
        return (await Toolset([tool(name="it")(lambda: VARIABLE.get())]).handle(call())).content

    assert run(main) == "seen"


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    for thread in threading.enumerate():
        if thread.name == "dialects-tool":
            thread.join(5)
            assert not thread.is_alive()
