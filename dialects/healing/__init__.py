"""Leaked markup in other people's streams, put right: one visible text, chat-completion chunks, whole responses, event
streams as bytes, and transports for HTTP clients."""

from dialects.healing.chat import ChatCompletionHealer, aheal_chunks, heal_chunks
from dialects.healing.event_stream import EventStreamHealer
from dialects.healing.streams import StreamHealer, pattern_for
from dialects.healing.transport import AsyncHealingTransport, HealingTransport

__all__ = [
    "AsyncHealingTransport",
    "ChatCompletionHealer",
    "EventStreamHealer",
    "HealingTransport",
    "StreamHealer",
    "aheal_chunks",
    "heal_chunks",
    "pattern_for",
]
