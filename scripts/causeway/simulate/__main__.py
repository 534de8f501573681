"""Write a simulated run: `python -m causeway.simulate demo FOLDER [--seed N] [--without CAUSE]`."""

import argparse
import sys

from causeway.core.errors import CausewayError
from causeway.core.logs import log_to
from causeway.simulate.runs import write_run
from causeway.simulate.scenario import DEMONSTRATION


def main(argv: list[str] | None = None) -> None:
    """Write the run that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m causeway.simulate", description=__doc__)
    parser.add_argument("run", choices=["demo", "demo_counters"])
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--iterations", type=int, help="of demo")
    parser.add_argument("--ranks", type=int, help="of demo")
    parser.add_argument("--format", help="of demo: nsys or kineto")
    parser.add_argument(
        "--without",
        action="append",
        metavar="CAUSE",
        help="of demo: the same run without a planted cause (`CAUSE`, `KERNEL:CAUSE` or `straggler`); may be repeated",
    )
    parser.add_argument("--launches", type=int, help="of demo_counters")
    chosen = vars(parser.parse_args(argv))
    log_to(None)
    base = DEMONSTRATION if chosen.pop("run") == "demo" else {"kind": "counters"}
    folder = chosen.pop("folder")
    try:
        write_run(base | {key: value for key, value in chosen.items() if value is not None}, folder)
    except CausewayError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
