"""A fuzzer for the laws, run by hand: python tests/fuzz.py --seconds 60 [--dialect kimi] [--seed 1]

It builds streams as the tests do, for as long as it may, and checks that cutting changes nothing (law 1), that pieces
are arguments (law 3), that nothing raises and nothing is lost (law 6), and that no special token leaks (law 7). At the
first fault it prints the smallest stream that shows it, as a program to run, and exits with 1.
"""

import argparse
import logging
import random
import sys
import time
import traceback
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1]))

from dialects import dialect_names
from tests.laws import check_arguments, check_no_leak, check_nothing_lost, check_order, check_splits
from tests.streams import Stream, cut, cuts, scan_pieces, streams

BATCH = 500

REPRODUCTION = """
from tests.fuzz import check
from tests.streams import Stream

check({stream!r}, {positions!r})
"""


def check(stream: Stream, positions: list[int]) -> None:
    """Assert the laws for one stream, cut at these positions among others."""
    joined = check_splits(stream, [cut(stream.text, positions)])
    check_order(joined)
    check_arguments(joined)
    events = scan_pieces(stream.dialect, [stream.text], truncated=stream.truncated, **stream.options)
    check_order(events)
    check_nothing_lost(stream, events)
    check_no_leak(stream, events)


def fuzz(name: str, number: int) -> tuple[Stream, list[int], str] | None:
    """Try a batch of streams; the smallest that breaks a law, with the fault."""
    last: list[tuple[Stream, list[int]]] = []

    @seed(number)
    @settings(
        max_examples=BATCH,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(st.data())
    def run(data: st.DataObject) -> None:
        stream = data.draw(streams(name))
        positions = data.draw(cuts(stream.text))
        last[:] = [(stream, positions)]
        check(stream, positions)

    try:
        run()
    except BaseExceptionGroup as faults:
        return *last[0], "".join(traceback.format_exception(faults.exceptions[0]))
    except Exception:
        return *last[0], traceback.format_exc()
    return None


def main() -> int:
    """Fuzz until the time is over or a law is broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--dialect", choices=dialect_names(), action="append")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    until = time.monotonic() + options.seconds
    number = options.seed
    while time.monotonic() < until:
        for name in options.dialect or dialect_names():
            found = fuzz(name, number)
            if found:
                stream, positions, fault = found
                print(fault)
                print(REPRODUCTION.format(stream=stream, positions=positions))
                print(f"seed {number}")
                return 1
        number += 1
    print(f"{BATCH * (number - options.seed)} streams a dialect, no law broken; seeds {options.seed} to {number - 1}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
