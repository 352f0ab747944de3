"""What is counted, in Prometheus' text form.

`prometheus-client` does it, because of its mode for several processes: with `--workers` each process writes its numbers
into files of a directory that they share, and whichever of them is asked answers for all. `server.py` makes that
directory before any metric exists.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from dialects.healing.counts import Counts

__all__ = ["CONTENT_TYPE", "DIRECTORY", "Metrics"]

CONTENT_TYPE = CONTENT_TYPE_LATEST
DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable that names the directory."""


class Metrics:
    """The numbers of one process, or of all that share a directory."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "dialects_requests", "Requests, by what was done and how it ended.", ["kind", "outcome"], registry=registry
        )
        self.streams = Counter("dialects_streams", "Streams, by how they ended.", ["outcome"], registry=registry)
        self.active = Gauge(
            "dialects_streams_active", "Streams that are open.", registry=registry, multiprocess_mode="livesum"
        )
        self.held = Gauge(
            "dialects_held_bytes",
            "Text held back at the moment because it may be markup, in characters (so in bytes, where it is ASCII).",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.events = Counter("dialects_upstream_chunks", "Chunks read from streams.", registry=registry)
        self.junk = Counter("dialects_junk_events", "Events dropped because they were no JSON.", registry=registry)
        self.healed = Counter("dialects_calls_healed", "Calls found in text, given to clients.", registry=registry)
        self.repairs = Counter("dialects_repairs", "Repairs that calls needed, by name.", ["name"], registry=registry)
        self.dropped = Counter(
            "dialects_calls_dropped", "Calls found in text, not given to clients.", ["reason"], registry=registry
        )

    def count(self, counts: Counts) -> None:
        """What an answer's healer came to."""
        self.healed.inc(counts.calls)
        _add(self.repairs, counts.repairs)
        _add(self.dropped, counts.dropped)

    def text(self) -> bytes:
        """All numbers, in the text form."""
        if DIRECTORY not in os.environ:
            return generate_latest(self._registry)
        _forget_dead_processes(Path(os.environ[DIRECTORY]))
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


def _add(counter: Counter, numbers: Mapping[str, int]) -> None:
    for label, number in numbers.items():
        counter.labels(label).inc(number)


def _forget_dead_processes(directory: Path) -> None:
    """Nothing is held or open in a process that is no more."""
    for pid in {path.stem.rpartition("_")[2] for path in directory.glob("gauge_live*_*.db")}:
        if pid.isdecimal() and not _is_alive(int(pid)):
            mark_process_dead(int(pid))  # type: ignore[no-untyped-call]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
