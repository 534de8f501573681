"""Why the devices of a dataset were idle, one reason for every nanosecond: an MPI program.

`mpiexec -n N python -m mpi4py scripts/waiting/explain_waiting.py --ranks N ...` writes `waiting.parquet`. Each rank
reads some exports. Without a launcher it runs as one rank.
"""

import sys
from pathlib import Path

# Ranks are started by this file's path, also on nodes to which a launcher passes no PYTHONPATH.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from causeway.numeric.mpi_program import folders_of, parser_of, running


def main(argv: list[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--clocks", type=Path, required=True, help="clocks.json of the dataset")
    parser.add_argument("--steps", type=Path, help="steps.parquet of the dataset")
    parser.add_argument("--out", type=Path, required=True, help="waiting.parquet")
    options = parser.parse_args(argv)
    with running(options, "causeway.waiting.explain_waiting") as ranks:
        from causeway.waiting.explain_waiting import explain_waiting

        explain_waiting(options.dataset, folders_of(options), options.clocks, options.steps, options.out, ranks=ranks)


if __name__ == "__main__":
    sys.exit(main())
