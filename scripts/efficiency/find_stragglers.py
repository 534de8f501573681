"""Which rank holds the others back: arrival and transfer of matched collectives, late ranks and why, components of
variance: an MPI program.

`mpiexec -n N python -m mpi4py scripts/efficiency/find_stragglers.py --ranks N ...` writes `stragglers.json` and
`stragglers.parquet`. Each rank reads some exports. Without a launcher it runs as one rank.
"""

import sys
from pathlib import Path

# Ranks are started by this file's path, also on nodes to which a launcher passes no PYTHONPATH.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from causeway.numeric.mpi_program import folders_of, parser_of, running


def main(argv: list[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--clocks", type=Path, required=True, help="clocks.json of the dataset")
    parser.add_argument("--seed", type=int, default=1, help="of the resamples of the components of variance")
    parser.add_argument("--runs", nargs="*", default=[], help="repeat of the job of each export; none at all")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    options = parser.parse_args(argv)
    with running(options, "causeway.efficiency.ranks.find_stragglers") as ranks:
        from causeway.efficiency.ranks.find_stragglers import find_stragglers

        results = (options.out / "stragglers.json", options.out / "stragglers.parquet")
        runs = {export: run or None for export, run in zip(options.exports, options.runs, strict=False)}
        folders = folders_of(options)
        find_stragglers(options.dataset, folders, options.clocks, options.seed, *results, runs=runs, ranks=ranks)


if __name__ == "__main__":
    sys.exit(main())
