"""How long the collectives of a dataset take by operation, algorithm and size, and the bandwidth that they reach: an
MPI program.

`mpiexec -n N python -m mpi4py scripts/efficiency/summarise_collectives.py --ranks N ...` writes
`collective_sizes.parquet`. Each rank reads some exports. Without a launcher it runs as one rank.
"""

import sys
from pathlib import Path

# Ranks are started by this file's path, also on nodes to which a launcher passes no PYTHONPATH.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from causeway.numeric.mpi_program import folders_of, parser_of, running


def main(argv: list[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="collective_sizes.parquet")
    options = parser.parse_args(argv)
    with running(options, "causeway.efficiency.ranks.collective_sizes") as ranks:
        from causeway.efficiency.ranks.collective_sizes import summarise_collectives

        summarise_collectives(options.dataset, folders_of(options), options.out, ranks=ranks)


if __name__ == "__main__":
    sys.exit(main())
