"""Steps: the iterations of each rank from annotations or from repeats of its launches, and why some are slow: an MPI
program.

`mpiexec -n N python -m mpi4py scripts/efficiency/find_steps.py --ranks N ...` writes `steps.json`, `steps.parquet` and
`step_causes.parquet`. Each rank reads some exports. Without a launcher it runs as one rank.
"""

import sys
from pathlib import Path

# Ranks are started by this file's path, also on nodes to which a launcher passes no PYTHONPATH.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from causeway.numeric.mpi_program import folders_of, parser_of, running


def main(argv: list[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--clocks", type=Path, required=True, help="clocks.json of the dataset")
    parser.add_argument("--seed", type=int, default=1, help="of the resamples behind intervals")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    options = parser.parse_args(argv)
    with running(options, "causeway.efficiency.steps.find_steps") as ranks:
        from causeway.efficiency.steps.find_steps import find_steps

        results = (options.out / name for name in ("steps.json", "steps.parquet", "step_causes.parquet"))
        find_steps(options.dataset, folders_of(options), options.clocks, options.seed, *results, ranks=ranks)


if __name__ == "__main__":
    sys.exit(main())
