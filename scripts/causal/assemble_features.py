"""Features of the kept launches: configuration, context at their start, counters: an MPI program.

`mpiexec -n N python -m mpi4py scripts/causal/assemble_features.py --ranks N ...` writes `features.parquet`. Each MPI
rank computes the context of some ranks of the dataset. Without a launcher it runs as one rank.
"""

import sys
from pathlib import Path

# Ranks are started by this file's path, also on nodes to which a launcher passes no PYTHONPATH.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from causeway.numeric.mpi_program import folders_of, parser_of, running


def main(argv: list[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--nodes", nargs="*", default=[], help="node of each export, '' if unknown; none at all")
    parser.add_argument("--runs", nargs="*", default=[], help="repeat of the job of each export, likewise")
    parser.add_argument("--clocks", type=Path, required=True, help="clocks.json of the dataset")
    parser.add_argument(
        "--kept", type=Path, required=True, help="kept.parquet in the target's folder, with configurations.parquet"
    )
    parser.add_argument("--out", type=Path, required=True, help="features.parquet")
    parser.add_argument("--telemetry", type=Path, nargs="*", default=[], help="telemetry.parquet, if there is one")
    parser.add_argument("--steps", type=Path, nargs="*", default=[], help="steps.parquet, if there is one")
    options = parser.parse_args(argv)
    with running(options, "causeway.causal.data.assemble_features") as ranks:
        from causeway.causal.data.assemble_features import assemble
        from causeway.causal.data.features import exports_of
        from causeway.core.logs import LOG
        from causeway.core.reduced import CONTEXT_FEATURES, why_not
        from causeway.core.tables import read_json, read_table

        found = None
        with ranks.together():
            if ranks.first:
                folders = folders_of(options)
                nodes, runs = (
                    dict(zip(options.exports, given, strict=False)) for given in (options.nodes, options.runs)
                )
                filtered = why_not(folders, CONTEXT_FEATURES)
                found = exports_of(folders, read_json(options.clocks), nodes, runs), filtered
                if filtered:
                    LOG.info("context features: %s", filtered)
            means = read_table(options.kept.with_name("configurations.parquet"), "configuration_summary")
        exports, filtered = ranks.share(found)
        assemble(
            options.kept,
            exports,
            means,
            options.kept.parent.name,
            options.out,
            with_context=not filtered,
            telemetry=options.telemetry[0] if options.telemetry else None,
            steps=options.steps[0] if options.steps else None,
            ranks=ranks,
        )


if __name__ == "__main__":
    sys.exit(main())
