"""Metrics sampled over time, of exports and of the site's telemetry, as sums in cells of time."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.clock import Clock
from causeway.core.errors import CausewayError
from causeway.levels.pyramid.level import Level
from causeway.levels.pyramid.ordered_rows import StreamNumbers, chunks
from causeway.levels.pyramid.pyramid import Sums
from causeway.levels.pyramid.sketch import Buckets

OF_EXPORT = "samples.parquet"
SAMPLE_SCALE = 1024
"""Sampled metrics are summed as whole multiples of 1/1024: exact for whole numbers and percent in steps of 1/8, at
most 1/2048 off else.
"""


def metric_names(paths: Sequence[Path]) -> list[str]:
    """Return the names of the metrics of all tables of samples that there are, in order."""
    names: set[str] = set()
    for path in paths:
        if path.is_file():
            for batch in chunks(path, "samples", ["metric"]):
                names |= set(batch.column("metric").unique().to_pylist())
    return sorted(names)


def sums_of_samples(
    tables: Sequence[tuple[Path, Clock]],
    origin: int,
    numbers: StreamNumbers,
    buckets: Buckets,
    budget: float,
    metrics: list[str],
    width: int,
) -> Level | None:
    """Return the sums of an export's sampled metrics, with series = device times metrics plus the metric's index; of
    the site's telemetry those of its ranks. None without any table.
    """
    ranks = sorted({rank for rank, _ in numbers.devices.rows})
    tables = [(path, clock) for path, clock in tables if path.is_file()]
    if not tables:
        return None
    sums = Sums(buckets, origin, budget, width)
    for path, clock in tables:
        for batch in chunks(path, "samples", ["time_ns", "rank", "device", "metric", "value"], "time_ns", clock):
            if path.name != OF_EXPORT:
                batch = batch.filter(pc.is_in(batch.column("rank"), pa.array(ranks, pa.uint32())))
            if batch.num_rows:
                _add_samples(batch, path, numbers, metrics, sums)
    return sums.finish()


def _add_samples(batch: pa.RecordBatch, path: Path, numbers: StreamNumbers, metrics: list[str], sums: Sums) -> None:
    """Add samples to the sums.

    Raises
    ------
    CausewayError
        For a value that cannot be summed exactly.
    """
    value = batch.column("value").to_numpy()
    if not np.isfinite(value).all() or np.abs(value).max() > 1 << 52:
        raise CausewayError(f"{path}: holds a value that is no finite number below {1 << 52}; expected measured values")
    device_number = numbers.of_devices(batch)
    names = batch.column("metric")
    metric = np.array([metrics.index(name) for name in names.dictionary.to_pylist()], np.int64)[
        names.indices.to_numpy()
    ]
    sums.grow(len(numbers.devices) * len(metrics), 0)
    scaled = np.rint(value * SAMPLE_SCALE).astype(np.int64)
    sums.gather(batch.column("time_ns").to_numpy(), device_number * len(metrics) + metric, scaled)
