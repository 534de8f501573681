"""Write a simulated run: `python -m causeway.simulate demo FOLDER [--seed N]`."""

import argparse
import sys

from causeway.errors import CausewayError
from causeway.logs import log_to
from causeway.simulate.runs import write_trace_run


def main(argv: list[str] | None = None) -> None:
    """Write the run that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m causeway.simulate", description=__doc__)
    parser.add_argument("run", choices=["demo", "demo_counters"])
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--iterations", type=int)
    chosen = parser.parse_args(argv)
    log_to(None)
    values = {"seed": chosen.seed} | ({"iterations": chosen.iterations} if chosen.iterations else {})
    try:
        write_trace_run(values, chosen.folder)
    except CausewayError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
