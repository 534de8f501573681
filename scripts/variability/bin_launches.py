"""Targets, bins, ranking, kept and control rows of a dataset, and what is asked for beside them: an MPI program.

`mpiexec -n N python -m mpi4py scripts/variability/bin_launches.py --ranks N ...` writes bins, ranking, kept rows,
kernels and configurations of every target into OUT/<target>. Without a launcher it runs as one rank.
"""

import argparse
import sys
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

# Ranks are started by this file's path, also on nodes to which a launcher passes no PYTHONPATH.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from causeway.core.errors import CausewayError
from causeway.numeric.mpi import Ranks
from causeway.numeric.mpi_program import by_export, folders_of, parser_of, running
from causeway.numeric.parts import Parts

MODULES = {
    "bins": "causeway.variability.bin_launches",
    "operators": "causeway.variability.operator_summary",
    "steps": "causeway.efficiency.steps.find_steps",
    "features": "causeway.causal.data.features",
}
"""The parts of this step, in their order, and what does each."""
AS_GIVEN = (
    *("dataset", "tables", "clocks", "out", "launches_per_bin", "score", "mean", "configuration", "seed"),
    *("keep_share", "keep_count", "keep_max_rows", "control_ratio", "control_min_rows", "workers"),
)
"""Options that are settings as they stand."""


def nanoseconds(microseconds: str, what: str, least: int) -> int:
    """Return a time given in microseconds as whole nanoseconds."""
    value = Fraction(microseconds) * 1000
    if value.denominator != 1 or value < least:
        raise CausewayError(
            f"{what}: {microseconds} microseconds are not a whole number of nanoseconds of at least {least}"
        )
    return int(value)


def widths(microseconds: list[str]) -> list[int]:
    """Return widths of bins in ns, each once. A worker's share ends where a bin of the widest ends, so that must end
    bins of all widths.
    """
    widths_ns = [
        nanoseconds(text, "--more-widths-us" if index else "--width-us", 1) for index, text in enumerate(microseconds)
    ]
    for text, width in zip(microseconds, widths_ns, strict=True):
        if max(widths_ns) % width:
            raise CausewayError(
                f"--more-widths-us: bins of {text} microseconds do not divide the widest, of {max(widths_ns) / 1000:g}"
            )
    return list(dict.fromkeys(widths_ns))


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--parts", nargs="+", choices=MODULES, default=["bins"], help="what to do, in this order")
    parser.add_argument(
        "--targets", nargs="+", required=True, help="kernel_variability, memory_stall, or columns of counters"
    )
    parser.add_argument(
        "--searched", nargs="*", default=[], help="targets that get features, in which causes are searched"
    )
    parser.add_argument("--width-us", default="10000", help="width of a bin in microseconds")
    parser.add_argument("--launches-per-bin", type=int, default=32, help="launches in a bin, without start times")
    parser.add_argument(
        "--score",
        choices=["variance", "robust_cv", "iqr"],
        default="variance",
        help="statistic of the target that ranks bins",
    )
    keep = parser.add_mutually_exclusive_group()
    keep.add_argument("--keep-share", type=float, default=0.1, help="share of the bins to keep, 0 to 1")
    keep.add_argument("--keep-count", type=int, help="number of bins to keep")
    parser.add_argument(
        "--keep-max-rows", type=int, help="launches that the kept bins may hold at most; as many as they are without it"
    )
    parser.add_argument(
        "--control-ratio", type=float, default=1.0, help="launches in control bins per launch in kept bins"
    )
    parser.add_argument(
        "--control-min-rows", type=int, default=20000, help="least number of launches in kept and control bins"
    )
    parser.add_argument(
        "--mean", choices=["global", "rank"], default="global", help="means over all ranks, or over each alone"
    )
    parser.add_argument(
        "--configuration",
        choices=["launch_shape", "operator", "shape"],
        default="launch_shape",
        help="what tells launches of a kernel apart beside its launch parameters",
    )
    parser.add_argument(
        "--link-window-us", default="1000", help="how long before a launch its transfer may have ended, in microseconds"
    )
    parser.add_argument("--features", nargs="*", default=[], help="columns whose statistics stand beside the target's")
    parser.add_argument(
        "--more-widths-us", nargs="*", default=[], help="widths of further tables of bins; all widths divide the widest"
    )
    parser.add_argument("--workers", type=int, default=1, help="threads that work inside each rank")
    return parser.parse_args(argv)


def binning(options: argparse.Namespace):
    """Return the settings of bins; refuse what they cannot be."""
    from causeway.variability.bin_launches import BinningSettings

    for name in ("launches_per_bin", "workers"):
        if getattr(options, name) < 1:
            raise CausewayError(f"--{name.replace('_', '-')}: {getattr(options, name)}; expected at least 1")
    width_ns, *more_widths_ns = widths([options.width_us, *options.more_widths_us])
    return BinningSettings(
        **{name: getattr(options, name) for name in AS_GIVEN},
        exports=tuple(options.exports),
        targets=tuple(dict.fromkeys(options.targets)),
        width_ns=width_ns,
        link_window_ns=nanoseconds(options.link_window_us, "--link-window-us", 0),
        features=tuple(options.features),
        more_widths_ns=tuple(more_widths_ns),
    )


def main(argv: list[str] | None = None) -> None:
    options = arguments(argv)
    with running(options, *(MODULES[name] for name in options.parts)) as (ranks, parts):
        for name in options.parts:
            PARTS[name](options, ranks, parts)


def do_bins(options: argparse.Namespace, ranks: Ranks, parts: Parts) -> None:
    from causeway.variability.bin_launches import bin_launches, tables_of

    with ranks.together():
        settings = binning(options)
    inputs = [*folders_of(options), options.clocks]
    parts.do("bins", lambda: bin_launches(settings, ranks), tables_of(settings), inputs, asdict(settings))


def do_operators(options: argparse.Namespace, ranks: Ranks, parts: Parts) -> None:
    from causeway.variability.operator_summary import summarise_operators

    folders = folders_of(options)
    table = options.out / "operator_summary.parquet"
    parts.do("operators", lambda: summarise_operators(options.dataset, folders, table, ranks=ranks), [table], folders)


def do_steps(options: argparse.Namespace, ranks: Ranks, parts: Parts) -> None:
    from causeway.efficiency.steps.find_steps import find_steps

    folders = folders_of(options)
    made = [options.out / name for name in ("steps.json", "steps.parquet", "step_causes.parquet")]

    def work() -> None:
        find_steps(options.dataset, folders, options.clocks, options.seed, *made, ranks=ranks)

    parts.do("steps", work, made, [*folders, options.clocks], options.seed)


def do_features(options: argparse.Namespace, ranks: Ranks, parts: Parts) -> None:
    from causeway.causal.data.features import assemble_target

    folders = folders_of(options)
    nodes = by_export(options, options.nodes)
    runs = by_export(options, options.runs)
    steps = [options.out / "steps.parquet"] if "steps" in options.parts else []
    for target in options.searched:
        folder = options.out / target
        tables = [folder / "kept.parquet", folder / "configurations.parquet", *steps, *options.telemetry]

        def work(folder: Path = folder) -> None:
            assemble_target(
                folder,
                folders,
                options.clocks,
                nodes=nodes,
                runs=runs,
                telemetry=options.telemetry,
                steps=steps,
                ranks=ranks,
            )

        made = [folder / "features.parquet"]
        inputs = [*folders, options.clocks, *tables]
        parts.do(f"features of {target}", work, made, inputs, [nodes, runs], needs=["bins", "steps"])


PARTS = {"bins": do_bins, "operators": do_operators, "steps": do_steps, "features": do_features}


if __name__ == "__main__":
    main()
