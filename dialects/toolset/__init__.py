"""Runs the calls that a scanner reads and sends their results back: tools, their dispatch, the loop around a model.

From the bottom up: a tool is a function (`@tool`) or a class (`TypedTool`, `CallableTool`); a `Toolset` holds tools and
runs calls of them; `run_step` reads one reply and runs its calls while it is still coming; `run_turn` goes on, step by
step, until the model has answered. Needs the extra `toolset`.
"""

try:
    import pydantic as _pydantic  # noqa: F401 (only to say plainly that it is missing)
except ModuleNotFoundError as error:
    if error.name != "pydantic":
        raise
    raise ImportError("dialects.toolset needs pydantic: python -m pip install 'inband-dialects[toolset]'") from error

from dialects.toolset.descriptions import load_description
from dialects.toolset.dispatch import Limits, current_tool_call
from dialects.toolset.external import ToolRequest
from dialects.toolset.loading import InvalidToolError, SkipThisTool
from dialects.toolset.results import ErrorKind, ToolError, ToolOk, ToolOutcome, ToolRejected
from dialects.toolset.stages import CallTask
from dialects.toolset.step import Step, StepItem, StepResult, Truncated, run_step
from dialects.toolset.tools import CallableTool, FunctionTool, ToolDefinitionError, TypedTool, tool
from dialects.toolset.toolset import Toolset
from dialects.toolset.turn import Complete, StopReason, Turn, TurnItem, TurnResult, run_turn

__all__ = [
    "CallTask",
    "CallableTool",
    "Complete",
    "ErrorKind",
    "FunctionTool",
    "InvalidToolError",
    "Limits",
    "SkipThisTool",
    "Step",
    "StepItem",
    "StepResult",
    "StopReason",
    "ToolDefinitionError",
    "ToolError",
    "ToolOk",
    "ToolOutcome",
    "ToolRejected",
    "ToolRequest",
    "Toolset",
    "Truncated",
    "Turn",
    "TurnItem",
    "TurnResult",
    "TypedTool",
    "current_tool_call",
    "load_description",
    "run_step",
    "run_turn",
    "tool",
]
