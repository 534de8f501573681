"""What `bin_launches` does for each target: passes over the rows, ranking, kept rows, tables.

Rank 0 alone writes results, and gets nothing from the others but statistics of bins; kept rows travel as parts on disk. The result is the
same, to the byte, on any number of ranks.
"""

import resource
import time

import numpy as np
import pyarrow as pa

from causeway.logs import LOG
from causeway.ranks import Ranks
from causeway.tables import extended, write_table
from causeway.variability.bins import bins_table, feature_fields
from causeway.variability.dataset import Dataset, Settings, open_sources, prepare
from causeway.variability.kept import Chosen, KeptRows, counter_fields, fresh_folder, join_parts, trace_fields
from causeway.variability.passes import Passes, tell_rate
from causeway.variability.ranking import rank_bins
from causeway.variability.summaries import configuration_table, kernel_table
from causeway.variability.targets import TRACE_TARGETS, Counter, Deviation, Duration, Stall
from causeway.variability.transfers import Exposure

OUTPUTS = {"bins": "bins", "ranking": "ranking", "kept": "kept", "kernels": "kernel_summary", "configurations": "configuration_summary"}
"""The files of a target and the schemas of their tables."""


def run(settings: Settings, ranks: Ranks) -> None:
    """Write the five tables of every target.

    Raises
    ------
    CausewayError
        On all ranks, if anything failed on one.
    """
    traced = [name for name in settings.targets if name in TRACE_TARGETS]
    jobs: list[tuple[Duration | Counter, list[str]]] = [(Duration(), traced)] if traced else []
    jobs += [(Counter(name), [name]) for name in settings.targets if name not in TRACE_TARGETS]
    for value, names in jobs:
        analyse(settings, ranks, value, names)
    peak = max(ranks.exchange(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
    LOG.info("done; largest peak memory of a rank: %.0f MB", peak / 1024)


def analyse(settings: Settings, ranks: Ranks, value: Duration | Counter, names: list[str]) -> None:
    """Write the tables of the targets that are made of one value; without rows where no export has it."""
    with ranks.together():
        sources = open_sources(settings, value)
        dataset = prepare(settings, value, sources, ranks) if sources else None
    if dataset is None:
        reason = f"no export of dataset {settings.dataset} has rows with {value.column} in its table {value.table}"
        with ranks.together():
            for name in names if ranks.first else []:
                LOG.warning("%s: %s; its tables have no rows", name, reason)
                traced = isinstance(value, Duration)
                more = {"bins": feature_fields(list(settings.features)), "kept": trace_fields()} if traced else {}
                empty = {file: (extended(schema, more.get(file, ())).empty_table(), more.get(file, [])) for file, schema in OUTPUTS.items()}
                write_tables(settings, name, empty, facts(settings, value, name, timed=traced))
        return
    LOG.info(
        "%s: %d launches in %d exports, %d configurations of %d kernels; %d rank(s)",
        *(value.column, dataset.rows, len(sources), len(dataset.configurations), len(dataset.configurations.kernels), ranks.size),
    )
    passes = Passes(settings, dataset, ranks, names)
    for place in range(len(names)):
        finish_target(settings, dataset, ranks, passes, place)


def facts(settings: Settings, value: Duration | Counter, target: str, timed: bool) -> dict[str, str]:
    """Return what the files' metadata says about how they were made."""
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


def write_tables(settings: Settings, target: str, tables: dict[str, tuple[pa.Table, list[pa.Field]]], metadata: dict[str, str]) -> None:
    """Write some of a target's tables, each given with the columns behind those of its schema."""
    for file, (table, extra) in tables.items():
        write_table(table, settings.out / target / f"{file}.parquet", OUTPUTS[file], extra, metadata)


def finish_target(settings: Settings, dataset: Dataset, ranks: Ranks, passes: Passes, place: int) -> None:
    """Rank the bins of a target, write the launches of the chosen ones, and its tables."""
    target, sampler = passes.targets[place], passes.sampler
    metadata = facts(settings, sampler.value, target.name, dataset.timed)
    parts = settings.out / target.name / "kept.parts"
    ranking = None
    with ranks.together():
        if ranks.first:
            bins = passes.bins[place]
            control = (settings.control_ratio, settings.control_min_rows, settings.seed)
            ranking = rank_bins(bins, settings.score, settings.keep_share, settings.keep_count, *control)
            kernels = kernel_table(
                dataset.configurations, passes.values, passes.quartiles, passes.histograms, passes.timelines[place], passes.launches
            )
            means = configuration_table(dataset.configurations, target.moments, sampler.ranks if sampler.per_rank else None)
            tables = {
                "bins": (bins_table(bins, dataset.features, dataset.width, dataset.origin_ns), feature_fields(dataset.features)),
                "ranking": (ranking, []),
                "kernels": (kernels, []),
                "configurations": (means, []),
            }
            write_tables(settings, target.name, tables, metadata)
            fresh_folder(parts)
            tell_bins(target, dataset, ranking, int(bins.count.sum()))
    ranking = ranks.share(ranking)
    with ranks.together():
        extra = trace_fields() if passes.traced else counter_fields(dataset.sources, target.name)
        began = time.process_time()
        written = write_part(KeptRows(parts / f"{ranks.rank}.arrow", sampler, target, extra), dataset, passes, ranking)
        tell_rate(f"{target.name}: kept and control", sum(rows for _, rows in written), time.process_time() - began)
    entries = ranks.collect(written)
    with ranks.together():
        if ranks.first:
            join_parts(parts, entries, settings.out / target.name / "kept.parquet", extra, metadata)


def write_part(rows: KeptRows, dataset: Dataset, passes: Passes, ranking: pa.Table) -> list[tuple[int, int]]:
    """Write this rank's launches of chosen bins; return (rank of the traced program, rows) of each batch."""
    with rows:
        for share in dataset.shares:
            source = share.source
            exposure = Exposure(source, passes.launch_ends[source.export]) if passes.traced else None
            rows.write(share, Chosen(ranking, source, dataset.width), passes.window(source), exposure)
    return rows.entries


def tell_bins(target: Deviation | Stall, dataset: Dataset, ranking: pa.Table, rows: int) -> None:
    """Log how many bins there are and how many launches take no part, and why."""
    kept, control = (int(np.count_nonzero(ranking.column(name).to_numpy())) for name in ("kept", "control"))
    LOG.info("%s: %d bins, %d kept, %d control", target.name, ranking.num_rows, kept, control)
    if rows < dataset.rows:
        why = "no linked transfer" if isinstance(target, Stall) else "no value"
        LOG.info("%s: %d of %d launches have %s and no row", target.name, dataset.rows - rows, dataset.rows, why)
