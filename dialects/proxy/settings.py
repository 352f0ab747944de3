"""What can be set, checked, and as JSON, in which form it travels to the worker processes."""

from urllib.parse import urlsplit

import msgspec

from dialects.healing.http import HealingOptions

__all__ = ["ProxySettings"]


class ProxySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the proxy does; times are in seconds, sizes in bytes.

    upstream: the URL that stands for the proxy's root: `http://127.0.0.1:8000`, or with a path. Where it ends with
        `/v1` and so begins a request's path, that is not doubled.
    options: how answers are healed.
    connect_timeout: how long to wait for a connection to the upstream.
    read_timeout: how long the upstream may say nothing, before its answer or in it.
    client_timeout: how long a client may refuse to read.
    keep_alive: after how long without anything for the client a comment is sent, so that it keeps waiting.
    keep_alive_chunks: send a chunk with an empty delta instead, for clients whose timers ignore comments.
    max_request_bytes: how long the body of a request that is healed may be.
    """

    upstream: str
    options: HealingOptions = HealingOptions()
    connect_timeout: float = 10.0
    read_timeout: float = 300.0
    client_timeout: float = 300.0
    keep_alive: float = 15.0
    keep_alive_chunks: bool = False
    max_request_bytes: int = 64_000_000

    def check(self) -> None:
        """Raises ValueError for what cannot be, and what `ChatCompletionHealer` raises for options that are none."""
        url = urlsplit(self.upstream)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"the upstream must be an http:// or https:// URL, not {self.upstream!r}")
        if url.username is not None or url.query or url.fragment:
            raise ValueError("the upstream's URL must have no user, query or fragment")
        for name in ("connect_timeout", "read_timeout", "client_timeout", "keep_alive", "max_request_bytes"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be more than 0, not {getattr(self, name)!r}")
        self.options.check()

    def to_json(self) -> str:
        """As JSON text."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> "ProxySettings":
        """From what `to_json` wrote. Raises msgspec.ValidationError, a ValueError, for anything else."""
        return msgspec.json.decode(text, type=cls)
