"""Leaked markup in other people's streams, put right: one visible text, chat-completion chunks, whole responses."""

from dialects.healing.chat import ChatCompletionHealer, aheal_chunks, heal_chunks
from dialects.healing.streams import StreamHealer, pattern_for

__all__ = ["ChatCompletionHealer", "StreamHealer", "aheal_chunks", "heal_chunks", "pattern_for"]
