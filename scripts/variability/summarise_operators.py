"""GPU time, launches and variability of a dataset by operator, module and phase: an MPI program.

`mpiexec -n N python -m mpi4py scripts/variability/summarise_operators.py --ranks N ...` writes
`operator_summary.parquet`. Each rank reads some exports. Without a launcher it runs as one rank.
"""

import sys
from pathlib import Path

# Ranks are started by this file's path, also on nodes to which a launcher passes no PYTHONPATH.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from causeway.numeric.mpi_program import folders_of, parser_of, running


def main(argv: list[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="operator_summary.parquet")
    options = parser.parse_args(argv)
    with running(options, "causeway.variability.operator_summary") as ranks:
        from causeway.variability.operator_summary import summarise_operators

        summarise_operators(options.dataset, folders_of(options), options.out, ranks=ranks)


if __name__ == "__main__":
    sys.exit(main())
