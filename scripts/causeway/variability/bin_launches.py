"""What `bin_launches` does for each target: passes over the rows, ranking, kept rows, tables.

A trace's launches are decoded three times, for all its targets at once: means need every value, deviations need the
means, and which rows are kept shows when all bins are ranked. Decoding costs a small part of each pass, so nothing but
sums and bins is held between them. Ranks exchange exact integers and statistics of bins; kept rows travel as encoded
row groups on disk. The result is the same, to the byte, on any number of ranks and workers.
"""

import resource
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.logs import LOG
from causeway.core.tables import TableWriter, extended, write_table
from causeway.core.vocabulary import TRACE_TARGETS
from causeway.numeric.mpi import Ranks
from causeway.variability.bins.bins import bins_tables, feature_fields
from causeway.variability.bins.kept import (
    KeptPlan,
    Selection,
    counter_fields,
    fresh_folder,
    join_parts,
    row_group_rows,
    trace_fields,
    write_parts,
)
from causeway.variability.bins.passes import Passes, Team
from causeway.variability.bins.ranking import rank_bins
from causeway.variability.bins.summaries import configuration_table, kernel_table
from causeway.variability.rows.dataset import BinningSettings, PreparedDataset, open_sources, prepare
from causeway.variability.rows.targets import Counter, Deviation, Duration, Stall

OUTPUTS = {
    "bins": "bins",
    "ranking": "ranking",
    "kept": "kept",
    "kernels": "kernel_summary",
    "configurations": "configuration_summary",
}
"""The files of a target and the schemas of their tables."""


def tables_of(settings: BinningSettings) -> list[Path]:
    """Return the paths of the tables that `bin_launches` writes."""
    further = [width_name(width) for width in settings.more_widths_ns]
    return [
        Path(settings.out) / target / f"{table}.parquet"
        for target in settings.targets
        for table in (*OUTPUTS, *(further if target in TRACE_TARGETS else ()))
    ]


def bin_launches(settings: BinningSettings, ranks: Ranks) -> None:
    """Write the five tables of every target.

    Raises
    ------
    CausewayError
        On all ranks, if anything failed on one.
    """
    traced = [name for name in settings.targets if name in TRACE_TARGETS]
    jobs: list[tuple[Duration | Counter, list[str]]] = [(Duration(), traced)] if traced else []
    jobs += [(Counter(name), [name]) for name in settings.targets if name not in TRACE_TARGETS]
    with Team(ranks, settings.workers) as team:
        for value, names in jobs:
            bin_value(settings, ranks, team, value, names)
    peak = max(ranks.exchange(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
    LOG.info("done; largest peak memory of a rank: %.0f MB; rank 0: %.2f CPU-s", peak / 1024, time.process_time())


def bin_value(settings: BinningSettings, ranks: Ranks, team: Team, value: Duration | Counter, names: list[str]) -> None:
    """Write the tables of the targets that are made of one value; without rows where no export has it."""
    with ranks.together():
        sources = open_sources(settings, value)
        dataset = prepare(settings, value, sources) if sources else None
    if dataset is None:
        with ranks.together():
            for name in names if ranks.first else []:
                write_empty(settings, value, name)
        return
    LOG.info(
        "%s: %d launches in %d exports, %d configurations of %d kernels; %d rank(s), %d worker(s)",
        *(value.column, dataset.rows, len(sources), len(dataset.configurations), len(dataset.configurations.kernels)),
        *(ranks.size, team.size),
    )
    passes = Passes(settings, dataset, ranks, team, names)
    extra = [trace_fields() if passes.plan.traced else counter_fields(sources, name) for name in names]
    metadata = [facts(settings, value, name, dataset.timed) for name in names]
    folders = [settings.out / name / "kept.parts" for name in names]
    selections = ranks.of_first(
        lambda: [finish_bins(passes, target, extra[target], metadata[target]) for target in range(len(names))]
    )
    passes.bins.clear()
    with ranks.together():
        for folder in folders if ranks.first else []:
            fresh_folder(folder)
    written = ranks.collect(
        passes.run(write_parts, "kept and control rows", KeptPlan(passes.plan, selections, extra, folders))
    )
    with ranks.together():
        if written is not None:
            for index, name in enumerate(names):
                parts = [worker[index] for of_rank in written for worker in of_rank]
                join_parts(folders[index], parts, settings.out / name / "kept.parquet", extra[index], metadata[index])


def write_empty(settings: BinningSettings, value: Duration | Counter, target: str) -> None:
    """Write a target's tables without rows, as no export has its value."""
    reason = f"no export of dataset {settings.dataset} has rows with {value.column} in its table {value.table}"
    LOG.warning("%s: %s; its tables have no rows", target, reason)
    traced = isinstance(value, Duration)
    more = {"bins": feature_fields(list(settings.features)), "kept": trace_fields()} if traced else {}
    names = ["bins", *(width_name(width) for width in settings.more_widths_ns if traced), *(set(OUTPUTS) - {"bins"})]
    for file in names:
        schema = OUTPUTS.get(file, "bins")
        extra = more.get(file.split("_")[0], [])
        write_table(extended(schema, extra).empty_table(), table_path(settings, target, file), schema, extra,
                    facts(settings, value, target, timed=traced))  # fmt: skip


def facts(settings: BinningSettings, value: Duration | Counter, target: str, timed: bool) -> dict[str, str]:
    """Return the files' metadata: how they were made."""
    return {
        "dataset": settings.dataset,
        "target": target,
        "value": value.column,
        "value_unit": value.unit,
        "mean": settings.mean,
        "score": settings.score,
        "seed": str(settings.seed),
        "bin_width": str(settings.width_ns if timed else settings.launches_per_bin),
        "bin_unit": "ns" if timed else "launches",
    }


def table_path(settings: BinningSettings, target: str, name: str) -> Path:
    """Return the file of a target's table."""
    return settings.out / target / f"{name}.parquet"


def width_name(width_ns: int) -> str:
    """Return the name of the table of bins of a further width, in ns."""
    return f"bins_{width_ns}ns"


def finish_bins(passes: Passes, index: int, extra: list[pa.Field], metadata: dict[str, str]) -> Selection:
    """Rank the bins of the target with an index and write its tables but `kept`; return which bins' rows are kept.

    On rank 0 only.
    """
    settings = passes.plan.settings
    dataset = passes.plan.dataset
    sampler = passes.plan.dataset.sampler
    target = passes.plan.targets[index]
    bins = passes.bins[index][0]
    control = (settings.control_ratio, settings.control_min_rows, settings.seed, settings.keep_max_rows)
    ranking = rank_bins(bins, settings.score, settings.keep_share, settings.keep_count, *control)
    LOG.info("%s: %d of %d bins kept", target.name, pc.sum(ranking["kept"]).as_py() or 0, len(ranking))
    kernels = kernel_table(
        dataset.configurations,
        passes.plan.values,
        passes.quartiles,
        passes.histograms,
        passes.timelines[index],
        passes.launches,
        passes.between,
    )
    means = configuration_table(dataset.configurations, target.moments, sampler.ranks if sampler.per_rank else None)
    for name, table in (("ranking", ranking), ("kernels", kernels), ("configurations", means)):
        write_table(table, table_path(settings, target.name, name), OUTPUTS[name], (), metadata)
    for width, of_width in zip(dataset.widths, passes.bins[index], strict=True):
        name = "bins" if width == dataset.widths[0] else width_name(width)
        path = table_path(settings, target.name, name)
        fields = feature_fields(dataset.features)
        with TableWriter(path, "bins", fields, metadata | {"bin_width": str(width)}) as writer:
            for table in bins_tables(of_width, dataset.features, width, dataset.origin_ns):
                writer.write(table)
    log_bins(target, dataset, ranking, int(bins.count.sum()))
    return Selection(ranking, bins, row_group_rows(dataset, extra))


def log_bins(target: Deviation | Stall, dataset: PreparedDataset, ranking: pa.Table, rows: int) -> None:
    """Log how many bins the table `ranking` has and how many launches take no part, and why."""
    kept, control = (int(np.count_nonzero(ranking.column(name).to_numpy())) for name in ("kept", "control"))
    LOG.info("%s: %d bins, %d kept, %d control", target.name, ranking.num_rows, kept, control)
    if rows < dataset.rows:
        why = "no linked transfer" if isinstance(target, Stall) else "no value"
        LOG.info("%s: %d of %d launches have %s and no row", target.name, dataset.rows - rows, dataset.rows, why)
