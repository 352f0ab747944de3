"""Measures scanners and prints tables: `python benchmarks/run.py [--quick] [--dialect NAME]`.

Without a dialect it is one table, a line for each; with one, everything about that one.

Every figure is the median of several runs in this one process. The floor is a scanner that only wraps each chunk into a
`Text` event, measured on the same chunks: a ratio to it says what scanning costs, on a fast machine and on a slow one.
Peak memory is traced in a run of its own, which is not timed, and in which the chunks are made while they are fed, so
that a chunk which the scanner keeps counts as its memory. README.md beside this file says how to read the tables.
"""

import argparse
import gc
import logging
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple, Protocol

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.streams import (
    TOOLS,
    Stream,
    answer_with_code,
    damaged_calls,
    large_call,
    plain_prose,
    prose_with_tags,
    small_calls,
)
from dialects import Event, Text, ToolDropped, ToolEnd, create_inband_scanner, dialect_names

CHUNK_CHARS = 4
KB, MB = 1000, 1_000_000
LONG_RUN_SECONDS = 5.0


class Scanner(Protocol):
    """What is measured."""

    def feed(self, text: str) -> list[Event]: ...

    def flush(self) -> list[Event]: ...


class Floor:
    """The least that a scanner can do."""

    def feed(self, text: str) -> list[Event]:
        return [Text(text)]

    def flush(self) -> list[Event]:
        return []


class Measure(NamedTuple):
    """One stream in one cut; times in seconds, memory in bytes."""

    stream: Stream
    chunk_count: int
    seconds: float
    floor_seconds: float
    peak_bytes: int

    @property
    def ratio(self) -> float:
        """How many times the floor's time the scanner takes."""
        return self.seconds / self.floor_seconds

    @property
    def memory_ratio(self) -> float | None:
        """Peak memory in sizes of the large argument, None where there is none."""
        if not self.stream.argument:
            return None
        return self.peak_bytes / sys.getsizeof(self.stream.argument)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure scanners.")
    parser.add_argument("--dialect", choices=dialect_names(), help="everything about this one, not a line for each")
    parser.add_argument("--quick", action="store_true", help="small sizes, fewer runs: does it work, roughly how fast")
    options = parser.parse_args(argv)
    logging.getLogger("dialects").addHandler(logging.NullHandler())  # damaged calls are warned about
    print(f"Python {sys.version.split()[0]}\n")
    if options.dialect is None:
        _overview(quick=options.quick)
        return 0
    bench = _bench(options.dialect, quick=options.quick)
    sizes = [50 * KB, 200 * KB] if options.quick else [50 * KB, 200 * KB, MB, 4 * MB]
    streams = [plain_prose(MB), prose_with_tags(MB), answer_with_code(MB), small_calls(options.dialect, 200 * KB)]
    streams += [large_call(options.dialect, size) for size in sizes]
    in_chunks, in_one = _clean_tables(bench, streams)
    if not options.quick:
        print(
            f"one call, 4 MB over 1 MB: {in_chunks[-1].seconds / in_chunks[-2].seconds:.2f} times the time in chunks,",
            end="",
        )
        print(f" {in_one[-1].seconds / in_one[-2].seconds:.2f} in one piece\n")

    for size in [50 * KB] if options.quick else [200 * KB, MB]:
        at = sizes.index(size) - len(sizes)
        _damaged_table(bench, damaged_calls(options.dialect, size), in_chunks[at], in_one[at])
    return 0


def _bench(dialect: str, *, quick: bool) -> "Bench":
    return Bench(lambda: create_inband_scanner(dialect, tools=TOOLS), runs=3 if quick else 5)


def _overview(*, quick: bool) -> None:
    """A line for each dialect. Quick, all sizes are small."""
    text, argument, small = (200 * KB, 50 * KB, 10 * KB) if quick else (MB, 200 * KB, MB)
    _print_line("x floor:", ("prose", "with tags", "with code", "argument", "4 over 1", "one piece", "x argument"))
    for dialect in dialect_names():
        bench = _bench(dialect, quick=quick)
        streams = (plain_prose(text), prose_with_tags(text), answer_with_code(text), large_call(dialect, argument))
        to_floor = [bench.measure(stream, CHUNK_CHARS).ratio for stream in streams]
        calls = [large_call(dialect, size) for size in (small, 4 * small)]
        chunks = [bench.measure(call, CHUNK_CHARS) for call in calls]
        whole = [bench.measure(call, 0) for call in calls]
        growth = [longer.seconds / shorter.seconds for shorter, longer in (chunks, whole)]
        cells = [*(f"{ratio:.1f}" for ratio in to_floor), *(f"{times:.2f}" for times in growth)]
        _print_line(dialect, (*cells, f"{chunks[-1].memory_ratio:.1f}"))


def _print_line(name: str, cells: Iterable[str]) -> None:
    print(f"{name:<14}" + "".join(f"{cell:>12}" for cell in cells), flush=True)


def _clean_tables(bench: "Bench", streams: Iterable[Stream]) -> tuple[list[Measure], list[Measure]]:
    heads = ("well-formed", "cut", "chunks", "ns/chunk", "MB/s", "x floor", "peak MB", "x argument")
    in_chunks: list[Measure] = []
    in_one: list[Measure] = []
    print(_row(heads))
    for stream in streams:
        for cut, measures, chunk_chars in ((f"{CHUNK_CHARS} chars", in_chunks, CHUNK_CHARS), ("one piece", in_one, 0)):
            measure = bench.measure(stream, chunk_chars)
            measures.append(measure)
            print(_row((stream.name, cut, *_figures(measure))), flush=True)
    print()
    return in_chunks, in_one


def _damaged_table(bench: "Bench", streams: Iterable[Stream], clean_chunks: Measure, clean_one: Measure) -> None:
    heads = ("damaged", "cut", "chunks", "ns/chunk", "MB/s", "x floor", "peak MB", "x argument", "x clean", "  read as")
    worst: tuple[float, str] = (0.0, "")
    print(_row(heads))
    for stream in streams:
        for cut, clean, chunk_chars in (
            (f"{CHUNK_CHARS} chars", clean_chunks, CHUNK_CHARS),
            ("one piece", clean_one, 0),
        ):
            measure = bench.measure(stream, chunk_chars)
            slower = measure.seconds / clean.seconds
            worst = max(worst, (slower, f"{stream.name}, {cut}"))
            print(
                _row((stream.name, cut, *_figures(measure), f"{slower:.1f}", f"  {bench.outcome(stream)}")), flush=True
            )
    print(f"slowest: {worst[0]:.1f} times the well-formed call's time ({worst[1]})\n" if worst[1] else "(none here)\n")


def _figures(measure: Measure) -> tuple[str, ...]:
    chars = len(measure.stream.text)
    return (
        f"{measure.chunk_count}",
        f"{measure.seconds / measure.chunk_count * 1e9:.0f}",
        f"{chars / measure.seconds / MB:.1f}",
        f"{measure.ratio:.1f}" if measure.chunk_count > 1 else "",
        f"{measure.peak_bytes / MB:.1f}",
        f"{measure.memory_ratio:.1f}" if measure.memory_ratio is not None else "",
    )


_WIDTHS = (32, 10, 8, 12, 8, 8, 8, 12, 8, 0)


def _row(cells: Sequence[str]) -> str:
    left = f"{cells[0]:<{_WIDTHS[0]}}{cells[1]:<{_WIDTHS[1]}}"
    return left + "".join(f"{cell:>{width}}" for cell, width in zip(cells[2:], _WIDTHS[2:], strict=False))


class Bench:
    """Times and traces scanners that `create` makes; every figure is the median of `runs`."""

    def __init__(self, create: Callable[[], Scanner], runs: int) -> None:
        self._create = create
        self._runs = runs

    def measure(self, stream: Stream, chunk_chars: int) -> Measure:
        """Scan the stream in chunks of so many characters, 0 for one piece."""
        size = chunk_chars or len(stream.text)
        chunks = list(_cut(stream.text, size))
        return Measure(
            stream=stream,
            chunk_count=len(chunks),
            seconds=self._median_seconds(self._create, chunks),
            floor_seconds=self._median_seconds(Floor, chunks),
            peak_bytes=_peak_bytes(self._create(), _cut(stream.text, size)),
        )

    def outcome(self, stream: Stream) -> str:
        """What came of the call: read as it was meant, read otherwise, or why it was dropped."""
        scanner = self._create()
        for event in (*scanner.feed(stream.text), *scanner.flush()):
            if isinstance(event, ToolEnd):
                return "meant" if stream.argument in event.arguments.values() else "a call"
            if isinstance(event, ToolDropped):
                return event.reason
        return "no call"

    def _median_seconds(self, create: Callable[[], Scanner], chunks: list[str]) -> float:
        seconds: list[float] = []
        while len(seconds) < self._runs:
            scanner = create()
            gc.collect()
            start = perf_counter()
            _drive(scanner, chunks)
            seconds.append(perf_counter() - start)
            if sum(seconds) > LONG_RUN_SECONDS * self._runs:
                break
        return median(seconds)


def _cut(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _drive(scanner: Scanner, chunks: Iterable[str]) -> None:
    for chunk in chunks:
        for _ in scanner.feed(chunk):
            pass
    for _ in scanner.flush():
        pass


def _peak_bytes(scanner: Scanner, chunks: Iterable[str]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        _drive(scanner, chunks)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


if __name__ == "__main__":
    sys.exit(main())
