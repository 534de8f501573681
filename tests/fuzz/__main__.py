"""Fuzzing of every reader: `python -m tests.fuzz --inputs 20000` takes minutes; `--again "nsys.sqlite:17"` reads one
input again.

Inputs are read in worker processes. One that takes longer than 10 s, needs more than the memory bound or ends its
process is a finding, like an exception that no reader foresaw; the worker is replaced and goes on after it.
"""

import argparse
import json
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("scripts", "tests", "tests/unit/readers")]


def main() -> None:
    """Read the command line, fuzz and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first input, to go on after an earlier run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="sources whose name holds this text")
    parser.add_argument(
        "--made-up", action="store_true", help="no real exports, so that the inputs are the same everywhere"
    )
    parser.add_argument("--longest", type=float, default=10, help="seconds that an input may take")
    parser.add_argument(
        "--break", action="store_true", dest="broken", help="with a reader of tables that is wrong, to see it found"
    )
    parser.add_argument("--again", help="one input, as a finding names it")
    arguments = parser.parse_args()
    from layouts import LAYOUTS

    from fuzz.trial import sources, try_one, warm_up
    from fuzz.workers import fuzz

    if arguments.again:
        name, number = arguments.again.rsplit(":", 1)
        warm_up([name])
        print(try_one(name, int(number), sources()[name], arguments.seed) or "nothing is wrong")
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like an interrupt: the outcome so far is printed
    names = [name for name in (LAYOUTS if arguments.made_up else sources()) if arguments.only in name]
    outcome = fuzz(
        arguments.inputs,
        names,
        seed=arguments.seed,
        jobs=arguments.jobs,
        first=arguments.first,
        longest_s=arguments.longest,
        broken=arguments.broken,
    )
    print(json.dumps(outcome, indent=1))
    raise SystemExit(1 if outcome["findings"] else 0)


if __name__ == "__main__":
    main()
