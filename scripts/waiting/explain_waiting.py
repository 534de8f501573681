"""Why the devices of a dataset were idle, what its time had to wait for, and what a change would be worth: an MPI
program.

`mpiexec -n N python -m mpi4py scripts/waiting/explain_waiting.py --ranks N ...` writes `waiting.parquet`. Each rank
reads some exports. Without a launcher it runs as one rank.
"""

import argparse
import sys
from pathlib import Path

# Ranks are started by this file's path, also on nodes to which a launcher passes no PYTHONPATH.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from causeway.numeric.mpi import Ranks
from causeway.numeric.mpi_program import folders_of, parser_of, running
from causeway.numeric.parts import Parts

MODULES = {
    "waiting": ["causeway.waiting.explain_waiting"],
    "paths": ["causeway.waiting.find_critical_paths"],
    "what_ifs": ["causeway.waiting.replay_what_ifs"],
}
"""The parts of this step, in their order, and what does each."""


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--parts", nargs="+", choices=MODULES, default=["waiting"], help="what to do, in this order")
    parser.add_argument("--steps", type=Path, help="steps.parquet of the dataset")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    options = arguments(argv)
    with running(options, *(module for name in options.parts for module in MODULES[name]), many_passes=True) as (
        ranks,
        parts,
    ):
        for name in options.parts:
            PARTS[name](options, ranks, parts)


def do_waiting(options: argparse.Namespace, ranks: Ranks, parts: Parts) -> None:
    from causeway.waiting.explain_waiting import explain_waiting

    folders = folders_of(options)
    made = options.out / "waiting.parquet"

    def work() -> None:
        explain_waiting(options.dataset, folders, options.clocks, options.steps, made, ranks=ranks)

    parts.do("waiting", work, [made], [*folders, options.clocks, options.steps])


def do_paths(options: argparse.Namespace, ranks: Ranks, parts: Parts) -> None:
    from causeway.waiting.find_critical_paths import find_critical_paths

    folders = folders_of(options)
    made = [options.out / f"{name}.parquet" for name in ("critical_path", "replay", "path_pieces")]

    def work() -> None:
        with ranks.together():
            if ranks.first:  # one graph over all ranks of the dataset
                exchanges = matched(folders, options.clocks)
                find_critical_paths(options.dataset, folders, options.clocks, options.steps, exchanges, *made)

    parts.do("paths", work, made, [*folders, options.clocks, options.steps])


def do_what_ifs(options: argparse.Namespace, ranks: Ranks, parts: Parts) -> None:
    from causeway.waiting.replay_what_ifs import replay_what_ifs

    folders = folders_of(options)
    home = options.out / "kernel_variability"
    scopes = home / "causal" / "scopes.json"
    kernels = home / "kernels.parquet"
    made = home / "replayed_what_ifs.parquet"

    def work() -> None:
        with ranks.together():
            if ranks.first:
                exchanges = matched(folders, options.clocks)
                replay_what_ifs(
                    options.dataset, folders, options.clocks, exchanges, options.steps, scopes, kernels, made
                )

    parts.do("what-ifs", work, [made], [*folders, options.clocks, options.steps, scopes.parent, kernels])


def matched(folders: list[Path], clocks: Path) -> list:
    """Return the exchanges of the dataset's ranks, as the graph takes them."""
    from causeway.efficiency.ranks.exchanges import left_together
    from causeway.waiting.graph.graph_builder import Matched

    return [Matched(*group) for group in left_together(folders, clocks)]


PARTS = {"waiting": do_waiting, "paths": do_paths, "what_ifs": do_what_ifs}


if __name__ == "__main__":
    main()
