"""Where a dataset's device time goes, its late ranks, and its levels of detail: an MPI program.

`mpiexec -n N python -m mpi4py scripts/efficiency/measure_efficiency.py --ranks N ...` writes `efficiency.json` and
`efficiency.parquet`. Each rank measures some exports. Without a launcher it runs as one rank.
"""

import argparse
import json
import sys
from pathlib import Path

# Ranks are started by this file's path, also on nodes to which a launcher passes no PYTHONPATH.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from causeway.numeric.mpi import Ranks
from causeway.numeric.mpi_program import by_export, folders_of, parser_of, running
from causeway.numeric.parts import Parts

MODULES = {
    "efficiency": ["causeway.efficiency.measure_efficiency"],
    "stragglers": ["causeway.efficiency.ranks.find_stragglers"],
    "collectives": ["causeway.efficiency.ranks.collective_sizes"],
    "levels": ["causeway.levels.pyramid.build", "causeway.variability.rows.transfer_links"],
}
"""The parts of this step, in their order, and what does each."""
CHOICES = ("bins", "regions")


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--parts", nargs="+", choices=MODULES, default=["efficiency"], help="what to do, in this order")
    parser.add_argument("--bins", type=int, default=240, help="bins of time")
    parser.add_argument("--regions", type=int, default=12, help="regions of the code, at most")
    parser.add_argument("--levels", type=json.loads, default={}, help="`levels` of the configuration, as JSON")
    parser.add_argument(
        "--link-window-us", type=float, default=50, help="a transfer may have ended this long before its launch"
    )
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    options = arguments(argv)
    with running(options, *(module for name in options.parts for module in MODULES[name]), many_passes=True) as (
        ranks,
        parts,
    ):
        for name in options.parts:
            PARTS[name](options, ranks, parts)


def do_efficiency(options: argparse.Namespace, ranks: Ranks, parts: Parts) -> None:
    from causeway.efficiency.measure_efficiency import measure_efficiency

    folders = folders_of(options)
    choices = {name: getattr(options, name) for name in CHOICES}
    made = (options.out / "efficiency.json", options.out / "efficiency.parquet")

    def work() -> None:
        measure_efficiency(options.dataset, folders, options.clocks, choices, *made, ranks=ranks)

    parts.do("efficiency", work, made, [*folders, options.clocks], choices)


def do_stragglers(options: argparse.Namespace, ranks: Ranks, parts: Parts) -> None:
    from causeway.efficiency.ranks.find_stragglers import find_stragglers

    folders = folders_of(options)
    made = (options.out / "stragglers.json", options.out / "stragglers.parquet")
    runs = {export: run or None for export, run in by_export(options, options.runs).items()}

    def work() -> None:
        find_stragglers(options.dataset, folders, options.clocks, options.seed, *made, runs=runs, ranks=ranks)

    parts.do("stragglers", work, made, [*folders, options.clocks], [options.seed, runs])


def do_collectives(options: argparse.Namespace, ranks: Ranks, parts: Parts) -> None:
    from causeway.efficiency.ranks.collective_sizes import summarise_collectives

    folders = folders_of(options)
    table = options.out / "collective_sizes.parquet"

    def work() -> None:
        summarise_collectives(options.dataset, folders, options.clocks, table, ranks=ranks)

    parts.do("collectives", work, [table], [*folders, options.clocks])


def do_levels(options: argparse.Namespace, ranks: Ranks, parts: Parts) -> None:
    from causeway.core.tables import read_json
    from causeway.levels.pyramid.build import build
    from causeway.variability.rows.transfer_links import link

    folders = folders_of(options)
    made = options.out / "levels"
    nodes = by_export(options, options.nodes)

    def work() -> None:
        with ranks.together():
            clocks = read_json(options.clocks)
        build(
            dict(zip(options.exports, folders, strict=True)),
            clocks,
            made,
            nodes=nodes,
            error=options.levels["quantile_error"],
            share=options.levels["share"],
            link_window_ns=round(options.link_window_us * 1000),
            link=link,
            metrics=options.levels["metrics"],
            telemetry=options.telemetry[0] if options.telemetry else None,
            ranks=ranks,
        )

    choices = [options.levels, options.link_window_us, nodes]
    parts.do("levels", work, [made], [*folders, options.clocks, *options.telemetry], choices)


PARTS = {
    "efficiency": do_efficiency,
    "stragglers": do_stragglers,
    "collectives": do_collectives,
    "levels": do_levels,
}


if __name__ == "__main__":
    main()
