"""Protect and aggregate the reports of a simulated fleet: an MPI program over clients.

`mpiexec -n N python -m mpi4py scripts/fleet/protect_reports.py --ranks N ...` writes one file per shard of clients, the
same for any N.
"""

import argparse
import json
import sys
from pathlib import Path

# Ranks are started by this file's path, also on nodes to which a launcher passes no PYTHONPATH.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from causeway.numeric.mpi import ending_together


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--ranks", type=int, default=1, help="number of ranks that the launcher starts")
    parser.add_argument(
        "--mode", required=True, choices=["clear", "share2", "ahe", "ldp"], help="how reports are protected"
    )
    parser.add_argument("--catalogue", type=Path, required=True, help="folder of the signed catalogue")
    parser.add_argument("--reports", type=Path, required=True, help="the reports' users and times")
    parser.add_argument("--counts", type=Path, required=True, help="the reports' counts")
    parser.add_argument("--fleet", type=json.loads, required=True, help="`fleet` of the configuration, as JSON")
    parser.add_argument("--out", type=Path, required=True, help="folder of shards")
    parser.add_argument("--log", help="the log's file; standard error if absent")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    options = arguments(argv)
    with ending_together(options.ranks, options.log) as ranks:
        with ranks.together():
            from causeway.fleet.protection.protect_reports import run
            from causeway.fleet.study.steps import protection_of

            settings = protection_of(
                options.fleet, options.mode, options.catalogue, options.counts, options.reports, options.out
            )
        run(settings, ranks)


if __name__ == "__main__":
    main()
