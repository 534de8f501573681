"""Where a dataset's device time goes: efficiency trees, breakdown, idle by cause, launch path, copies: an MPI program.

`mpiexec -n N python -m mpi4py scripts/efficiency/measure_efficiency.py --ranks N ...` writes `efficiency.json` and
`efficiency.parquet`. Each rank measures some exports. Without a launcher it runs as one rank.
"""

import argparse
import sys
from pathlib import Path

# Ranks are started by this file's path, also on nodes to which a launcher passes no PYTHONPATH.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from causeway.numeric.mpi import ending_together


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument(
        "--ranks", type=int, required=True, help="number of MPI ranks that the launcher was told to start"
    )
    parser.add_argument("--dataset", required=True, help="its name")
    parser.add_argument("--tables", type=Path, required=True, help="folder with one folder of tables per export")
    parser.add_argument("--exports", nargs="+", required=True, help="names of the exports, in the sheet's order")
    parser.add_argument("--clocks", type=Path, required=True, help="clocks.json of the dataset")
    parser.add_argument("--out", type=Path, required=True, help="folder of both results")
    parser.add_argument("--bins", type=int, default=240, help="bins of time")
    parser.add_argument("--regions", type=int, default=12, help="regions of the code, at most")
    parser.add_argument(
        "--kernel-wait-ns", type=int, default=30, help="gaps shorter than this are the device's own delay"
    )
    parser.add_argument("--small-kernel-us", type=float, default=10, help="kernels shorter than this are small")
    parser.add_argument("--log", help="the log's file; standard error if absent")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    options = arguments(argv)
    with ending_together(options.ranks, options.log) as ranks:
        ranks.load("causeway.efficiency.measure_efficiency")
        from causeway.efficiency.measure_efficiency import measure_efficiency

        folders = [options.tables / export for export in options.exports]
        choices = {name: getattr(options, name) for name in ("bins", "regions", "kernel_wait_ns", "small_kernel_us")}
        results = (options.out / "efficiency.json", options.out / "efficiency.parquet")
        measure_efficiency(options.dataset, folders, options.clocks, choices, *results, ranks=ranks)


if __name__ == "__main__":
    sys.exit(main())
