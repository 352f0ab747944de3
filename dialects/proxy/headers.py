"""Which headers pass, and how a request's target becomes the upstream's."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from dialects.healing.http import BODY_HEADERS

__all__ = ["Header", "answer_headers", "healed_headers", "request_headers", "target"]

Header = tuple[bytes, bytes]

_HOP_BY_HOP = frozenset(
    [
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    ]
)
"""Headers that speak of one connection (RFC 9110, section 7.6.1, and what older software sends); those that
`connection` names are added."""

_OURS = frozenset([b"host", b"expect"])
"""Headers of a request that this proxy writes itself, or has answered already."""


def request_headers(headers: Iterable[Header]) -> list[Header]:
    """Those of a request that go to the upstream."""
    return [(name, value) for name, value in _end_to_end(headers) if name not in _OURS]


def answer_headers(headers: Iterable[Header]) -> list[Header]:
    """Those of an answer that go to the client, if its body passes as it is."""
    return _end_to_end(headers)


def healed_headers(headers: Iterable[Header], **added: str) -> list[Header]:
    """Those that go to the client if the body is healed, with some that are set where the upstream has not set them."""
    passed = [(name, value) for name, value in _end_to_end(headers) if name.decode("latin-1") not in BODY_HEADERS]
    present = {name for name, _ in passed}
    wanted = [(name.replace("_", "-").encode(), value.encode()) for name, value in added.items()]
    return passed + [(name, value) for name, value in wanted if name not in present]


def target(upstream: str, path: bytes, query: bytes) -> bytes | None:
    """What is asked of the upstream for a request's path and query, as the client wrote them; None for a path with dot
    segments, which could lead out of the upstream's."""
    base = urlsplit(upstream).path.rstrip("/").encode()
    if any(segment.lower().replace(b"%2e", b".") in (b".", b"..") for segment in path.split(b"/")):
        return None
    if base.endswith(b"/v1") and (path == b"/v1" or path.startswith(b"/v1/")):
        path = path.removeprefix(b"/v1")
    return base + path + (b"?" + query if query else b"")


def _end_to_end(headers: Iterable[Header]) -> list[Header]:
    lowered = [(name.lower(), value) for name, value in headers]
    named = {part.strip().lower() for name, value in lowered if name == b"connection" for part in value.split(b",")}
    return [(name, value) for name, value in lowered if name not in _HOP_BY_HOP and name not in named]
