"""The tools that a model has, and the calls it makes of them."""

import difflib
import logging
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, overload

from dialects.messages import CallLike, MessageError, Tool
from dialects.toolset.dispatch import After, Approve, Before, Dispatcher, Limits, OnCall, read_request
from dialects.toolset.external import ExternalTool, OnRequest, Requests, ToolRequest
from dialects.toolset.loading import Dependencies, InvalidToolError, SkipThisTool, by_type, load_tool
from dialects.toolset.results import ToolError
from dialects.toolset.stages import CallTask
from dialects.toolset.tools import CallableTool

__all__ = ["Toolset"]

AnyTool = TypeVar("AnyTool", bound=CallableTool)

_MOST_NAMES = 30
_log = logging.getLogger("dialects.toolset")


class Toolset:
    """Tools by their names, and how calls of them are answered.

    tools: the first ones; `add` and `load_tools` bring more.
    limits: concurrency, time, and size of results.
    before: asked before every call whose arguments fit; a text that it returns is the reason why the call is not made.
    after: told of every call and its outcome, in the background; what it raises is logged.
    approve: asked before a call of a tool with `needs_approval`. Without it there is nobody who could say yes.
    on_call: told the name, "ok" or "error", the seconds, and the kind of error, for counters.
    on_request: told of every call of an external tool, to be answered with `resolve`.

    The hooks run in the event loop and must not block it. A toolset may serve several conversations at a time; they
    share its limits.
    """

    def __init__(
        self,
        tools: Iterable[CallableTool] = (),
        *,
        limits: Limits | None = None,
        before: Before | None = None,
        after: After | None = None,
        approve: Approve | None = None,
        on_call: OnCall | None = None,
        on_request: OnRequest | None = None,
    ) -> None:
        self._dispatcher = Dispatcher(limits or Limits(), before, after, approve, on_call)
        self._requests = Requests(on_request)
        self._tools: dict[str, CallableTool] = {}
        self._definitions: dict[str, Tool] = {}
        self._hidden: set[str] = set()
        self.add(*tools)

    # The tools

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What a prompt lists: the definitions of all tools that are not hidden, in the order they were added."""
        return tuple(tool for name, tool in self._definitions.items() if name not in self._hidden)

    @property
    def known(self) -> tuple[Tool, ...]:
        """The definitions of all tools, the hidden ones too: what a scanner and a renderer type values by."""
        return tuple(self._definitions.values())

    def add(self, *tools: CallableTool) -> None:
        """Add tools. Raises ValueError for a name that is taken, `MessageError` for a tool that is not well-formed."""
        for tool in tools:
            if not isinstance(tool, CallableTool):
                raise TypeError(
                    f"a tool is a CallableTool, not {tool!r}; make one of a function with dialects.toolset.tool"
                )
            definition = tool.definition
            if definition.name in self._tools:
                raise ValueError(f"there is a tool named {definition.name!r} already")
            self._tools[definition.name] = tool
            self._definitions[definition.name] = definition

    @overload
    def find(self, which: str) -> CallableTool | None: ...
    @overload
    def find(self, which: type[AnyTool]) -> AnyTool | None: ...
    def find(self, which: str | type[CallableTool]) -> CallableTool | None:
        """The tool of that name, or the first of that class; None if there is none. It may be hidden."""
        if isinstance(which, str):
            return self._tools.get(which)
        return next((tool for tool in self._tools.values() if isinstance(tool, which)), None)

    def hide(self, *names: str) -> None:
        """Take tools out of the prompt; calls of them are answered as if they did not exist. Raises ValueError for a
        name that no tool has."""
        self._hidden |= self._checked(names)

    def unhide(self, *names: str) -> None:
        """Undo `hide`."""
        self._hidden -= self._checked(names)

    def load_tools(self, paths: Iterable[str], dependencies: Dependencies | None = None) -> None:
        """Add the tools at import paths, `package.module:Class`.

        Constructors get their positional arguments from `dependencies`, objects by their types (or only objects); a
        class that raises `SkipThisTool` is left out. All paths are tried and all tools that can be loaded are added;
        then one `InvalidToolError` names every path that failed, and why.
        """
        provided = by_type(dependencies or {})
        failures: dict[str, str] = {}
        for path in paths:
            try:
                self.add(load_tool(path, provided))
            except SkipThisTool as wish:
                _log.info("the tool %s is left out: %s", path, wish)
            except Exception as error:
                _log.debug("the tool %s cannot be loaded", path, exc_info=error)
                failures[path] = f"{type(error).__name__}: {error}"
        if failures:
            raise InvalidToolError(failures)

    # External tools

    def register_external_tool(
        self, name: str, description: str, parameters: Mapping[str, Any], *, timeout: float | None = None
    ) -> tuple[bool, str | None]:
        """Add a tool that the host answers for: each call of it becomes a `ToolRequest`, which `resolve` answers.

        timeout: how many seconds to wait for an answer; None: what the toolset's `Limits` say; `math.inf`: for ever.

        The same name registered again replaces the tool. (False, reason) if the name is that of another tool, or the
        description or the JSON Schema is none.
        """
        if name in self._tools and not isinstance(self._tools[name], ExternalTool):
            return False, f"the name {name!r} is that of a tool that is no external one"
        schema = dict(parameters) if isinstance(parameters, Mapping) else parameters
        tool = ExternalTool(name, description, schema, self._requests, timeout)
        try:
            definition = tool.definition
        except MessageError as error:
            return False, str(error)
        self._tools[name] = tool
        self._definitions[name] = definition
        return True, None

    @property
    def requests(self) -> tuple[ToolRequest, ...]:
        """The calls of external tools that wait for an answer, oldest first."""
        return self._requests.waiting

    def resolve(self, request_id: str, result: object) -> bool:
        """Answer a request with anything that a tool may return. Any thread may call it.

        The id is the request's, or that of its call, as long as no other request waits for a call of that id.
        False if no request waits under this id: it was answered before, timed out, was cancelled, or never existed.
        """
        return self._requests.resolve(request_id, result)

    # Calls

    def handle(self, call: CallLike) -> CallTask:
        """Answer a call; the task ends with its outcome, whatever the model did, and also when it is cancelled.

        Needs a running event loop. Raises `MessageError` for what is no call at all (one without a name, say).
        """
        request = read_request(call)
        name = request.call.name
        tool = None if name in self._hidden else self._tools.get(name)
        return self._dispatcher.start(request, self._unknown(name) if tool is None else tool)

    async def settle(self) -> None:
        """Wait for the `after` hooks that are still running."""
        await self._dispatcher.settle()

    def _unknown(self, name: str) -> ToolError:
        names = {tool.name.lower(): tool.name for tool in self.tools}
        near = [names[match] for match in difflib.get_close_matches(name.lower(), names, n=3)]
        listed = ", ".join(list(names.values())[:_MOST_NAMES]) or "none"
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        message = f"There is no tool named {name[:100]!r}.{hint} The tools are: {listed}{more}."
        return ToolError(message, "Unknown tool", kind="unknown-tool")

    def _checked(self, names: Iterable[str]) -> set[str]:
        wanted = set(names)
        if unknown := sorted(wanted - self._tools.keys()):
            raise ValueError(f"there is no tool named {unknown[0]!r}")
        return wanted
