"""The pyramid of a dataset: exact statistics over cells of time, four times as wide from level to level, for each
stream and device: an MPI program.

`mpiexec -n N python -m mpi4py scripts/levels/build_levels.py --ranks N ...` writes the folder of levels. Each rank
reads some exports. Without a launcher it runs as one rank.
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
    parser.add_argument(
        "--ranks", type=int, required=True, help="number of MPI ranks that the launcher was told to start"
    )
    parser.add_argument("--tables", type=Path, required=True, help="folder with one folder of tables per export")
    parser.add_argument("--exports", nargs="+", required=True, help="names of the exports, in the sheet's order")
    parser.add_argument("--nodes", nargs="*", default=[], help="node of each export, '' if unknown; none at all")
    parser.add_argument("--clocks", type=Path, required=True, help="clocks.json of the dataset")
    parser.add_argument("--out", type=Path, required=True, help="folder of the levels; it is replaced")
    parser.add_argument("--levels", type=json.loads, required=True, help="`levels` of the configuration, as JSON")
    parser.add_argument(
        "--link-window-us", type=float, default=50, help="a transfer may have ended this long before its launch"
    )
    parser.add_argument("--telemetry", type=Path, nargs="*", default=[], help="telemetry.parquet, if there is one")
    parser.add_argument("--log", help="the log's file; standard error if absent")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    options = arguments(argv)
    with ending_together(options.ranks, options.log) as ranks:
        ranks.load("causeway.levels.pyramid.build", "causeway.variability.rows.transfer_links")
        from causeway.core.tables import read_json
        from causeway.levels.pyramid.build import build
        from causeway.variability.rows.transfer_links import link

        with ranks.together():
            clocks = read_json(options.clocks)
        build(
            {export: options.tables / export for export in options.exports},
            clocks,
            options.out,
            nodes=dict(zip(options.exports, options.nodes, strict=False)),
            error=options.levels["quantile_error"],
            share=options.levels["share"],
            link_window_ns=round(options.link_window_us * 1000),
            link=link,
            metrics=options.levels["metrics"],
            telemetry=options.telemetry[0] if options.telemetry else None,
            ranks=ranks,
        )


if __name__ == "__main__":
    sys.exit(main())
