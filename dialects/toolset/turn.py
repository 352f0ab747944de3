"""A whole turn: the model replies, its calls run, their results go back, until it has nothing more to call.

All that is asked of a model is `complete(prompt)`, an asynchronous iterator of text. The prompt is the conversation in
the dialect's own form. Its tools stand in the system message, with the dialect's guide, or, with a vendor's template,
where that template puts them, if it writes tools at all.
"""

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from dialects.factory import create_inband_scanner, get_dialect
from dialects.messages import Message, MessageLike, Tool, read_messages
from dialects.toolset.repetition import DEFAULT_LIMIT, Repetition
from dialects.toolset.run import Run
from dialects.toolset.step import Step, StepItem, StepResult, run_step
from dialects.toolset.toolset import Toolset
from dialects.transcript import Neutralize, render_tool_prompt, render_transcript

__all__ = ["Complete", "StopReason", "Turn", "TurnItem", "TurnResult", "run_turn"]

Complete: TypeAlias = Callable[[str], AsyncIterable[str] | Awaitable[AsyncIterable[str]]]
"""A model: a prompt in, the text that follows it out, piece by piece, or an awaitable that gives the pieces. They may
raise `Truncated` at their end."""

StopReason: TypeAlias = Literal[
    "unfinished",  # it is still going on, or was left
    "answered",  # the last reply has no calls
    "too-many-steps",
    "repeated-call",  # the model made the same call in too many steps
    "truncated",  # the last reply was cut off and has no complete call
    "unreadable-call",  # the last reply has no calls but one that could not be read
    "fabricated-result",  # the last reply has no calls, and goes on with a made-up result
    "fabricated-turn",  # or with a made-up turn of somebody else
]


class TurnResult(msgspec.Struct, frozen=True):
    """What came of a turn: why it ended, and the messages that it adds to the conversation."""

    reason: StopReason
    messages: tuple[Message, ...] = ()
    steps: tuple[StepResult, ...] = ()

    @property
    def text(self) -> str:
        """What the model said at last."""
        return self.steps[-1].message.content if self.steps else ""


_STOPS: dict[str, StopReason] = {
    "fabricated-result": "fabricated-result",
    "fabricated-turn": "fabricated-turn",
}

_ANYTHING = (Message("user", "x"),)

TurnItem: TypeAlias = StepItem | TurnResult


def run_turn(
    complete: Complete,
    messages: Sequence[MessageLike],
    toolset: Toolset,
    *,
    dialect: str,
    template: str | None = None,
    template_options: Mapping[str, Any] | None = None,
    max_steps: int = 50,
    max_repeats: int = DEFAULT_LIMIT,
    neutralize: Neutralize = "escape",
) -> "Turn":
    """Let a model answer a conversation, calling tools as it needs them.

    Iterating the turn gives what each step gives (`run_step`), each step's `StepResult`, and at the end the
    `TurnResult`; awaiting it gives the `TurnResult`. Its messages, put behind `messages`, are the conversation that the
    next turn begins with. What `complete` raises, `Truncated` apart, is raised.

    template, template_options: a vendor's template and its options, as for `render_transcript`.
    max_steps: how many replies the turn may have.
    max_repeats: in how many steps the model may make the same call.
    neutralize: what becomes of control tokens in the texts of system, user and tool messages, as for
        `render_transcript`. A file that a tool reads may hold some, and could pass for a turn: so they are escaped.

    Raises, at once, what `render_transcript` raises for messages, dialects and templates, and `NoScannerError` for a
    dialect that can only be written.
    """
    if max_steps < 1:
        raise ValueError(f"max_steps is at least 1, not {max_steps!r}")
    options = dict(template_options or {})
    return Turn(complete, messages, toolset, dialect, template, options, max_steps, max_repeats, neutralize)


class Turn(Run[TurnItem, TurnResult]):
    """A turn that is going on; see `run_turn`."""

    def __init__(
        self,
        complete: Complete,
        messages: Sequence[MessageLike],
        toolset: Toolset,
        dialect: str,
        template: str | None,
        template_options: dict[str, Any],
        max_steps: int,
        max_repeats: int,
        neutralize: Neutralize,
    ) -> None:
        self._complete = complete
        self._toolset = toolset
        self._dialect = dialect
        self._template = template
        self._options = template_options
        self._neutralize: Neutralize = neutralize
        self._given = list(messages)
        self._max_steps = max_steps
        self._repetition = Repetition(max_repeats)
        self._steps: list[StepResult] = []
        self._step: Step | None = None
        self._reason: StopReason = "unfinished"
        create_inband_scanner(dialect)  # wrong use shows here, not in the middle of a turn
        self._prompt()
        super().__init__()

    @property
    def result(self) -> TurnResult:
        steps = (*self._steps, *([self._step.result] if self._step is not None else []))
        messages = tuple(message for step in steps for message in step.messages)
        return TurnResult(self._reason, messages, steps)

    async def _items(self) -> AsyncGenerator[TurnItem, None]:
        while self._reason == "unfinished":
            prompt, ending = self._prompt()
            reply = self._complete(prompt)
            step = self._step = run_step(
                reply if isinstance(reply, AsyncIterable) else await reply,
                self._toolset,
                dialect=self._dialect,
                repetition=self._repetition,
                generation_prompt=ending,
            )
            async with step:
                async for item in step:
                    yield item
            self._steps.append(step.result)
            self._step = None
            self._reason = self._judged(step.result)
        yield self.result

    def _judged(self, step: StepResult) -> StopReason:
        """Why the turn ends after this step, if it does."""
        if step.calls:
            if self._repetition.is_enough:
                return "repeated-call"
            return "too-many-steps" if len(self._steps) >= self._max_steps else "unfinished"
        if step.truncated:
            return "truncated"
        if step.dropped:
            return "unreadable-call"
        return _STOPS.get(step.stopped or "", "answered")

    def _prompt(self) -> tuple[str, str]:
        """The prompt, and its end, which the model's own words continue."""
        written = [message for step in self._steps for message in step.messages]
        conversation = [*(self._told() if self._tells_tools else self._given), *written]
        prompt = self._rendered(conversation, ending=True)
        if self._template is None:
            return prompt, get_dialect(self._dialect).generation_prompt
        return prompt, prompt.removeprefix(self._rendered(conversation, ending=False))

    @property
    def _tells_tools(self) -> bool:
        """Whether the system message tells the model its tools: in the in-band form, and with a template that writes
        none (DeepSeek's, up to V3.1)."""
        if self._template is None:
            return True
        return self._rendered(_ANYTHING, ending=True) == self._rendered(_ANYTHING, ending=True, tools=())

    def _rendered(self, messages: Sequence[MessageLike], *, ending: bool, tools: Sequence[Tool] | None = None) -> str:
        # In the in-band form tools only type the values of calls, and a call of a hidden one has values too.
        listed = self._toolset.known if self._template is None else self._toolset.tools
        return render_transcript(
            messages,
            self._dialect,
            tools=listed if tools is None else tools,
            template=self._template,
            add_generation_prompt=ending,
            neutralize=self._neutralize,
            **self._options,
        )

    def _told(self) -> list[Message]:
        """The conversation as it was given, with the tools in its system message."""
        given = list(read_messages(self._given))
        if not self._toolset.tools:
            return given
        prompt = render_tool_prompt(self._toolset.tools, self._dialect)
        if not given or given[0].role not in ("system", "developer"):
            return [Message("system", prompt), *given]
        system = "\n\n".join(filter(None, (given[0].content, prompt)))
        return [msgspec.structs.replace(given[0], content=system), *given[1:]]
