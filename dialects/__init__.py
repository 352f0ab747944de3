"""Reads the tool calls, thinking and text that language models write in-band, and writes them back into prompts."""

from dialects.conversion import Conversion, convert, read_transcript
from dialects.detection import Match, dialect_for_model, dialect_for_template, template_for_model
from dialects.events import (
    Event,
    Stopped,
    Text,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolArgDelta,
    ToolDropped,
    ToolEnd,
    ToolStart,
    event_to_json,
)
from dialects.factory import NoScannerError, UnknownDialectError, create_inband_scanner, dialect_names, get_dialect
from dialects.messages import Message, MessageError, Tool, ToolCall, ToolResult
from dialects.reading import ScanResult, aiter_events, iter_events, scan
from dialects.transcript import TemplateError, encode_history, render_tool_prompt, render_transcript, templates

__all__ = [
    "Conversion",
    "Event",
    "Match",
    "Message",
    "MessageError",
    "NoScannerError",
    "ScanResult",
    "Stopped",
    "TemplateError",
    "Text",
    "ThinkingDelta",
    "ThinkingEnd",
    "ThinkingStart",
    "Tool",
    "ToolArgDelta",
    "ToolCall",
    "ToolDropped",
    "ToolEnd",
    "ToolResult",
    "ToolStart",
    "UnknownDialectError",
    "aiter_events",
    "convert",
    "create_inband_scanner",
    "dialect_for_model",
    "dialect_for_template",
    "dialect_names",
    "encode_history",
    "event_to_json",
    "get_dialect",
    "iter_events",
    "read_transcript",
    "render_tool_prompt",
    "render_transcript",
    "scan",
    "template_for_model",
    "templates",
]
