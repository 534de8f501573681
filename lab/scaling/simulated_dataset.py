"""Normalised tables of a simulated run of any size, written directly rather than through a profiler's format.

Their shape is that of the published measurement's traces (arXiv 2510.18300, section 5: 93 million samples in 68.8 K
bins of 10 ms), over 28 kernels of six launch configurations. Durations scatter around their configuration's mean, more
so in bursts, so that some bins stand out.
"""

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.logs import LOG, Progress
from causeway.core.tables import LAUNCH_SHAPE, ROW_GROUP_ROWS, SCHEMAS, TableWriter, write_json, write_table

KERNELS = 28
SHAPES = 6
GAP_NS = 10_000_000 // 1352
"""Mean time from one launch's start to the next one's."""
LAUNCHES_PER_TRANSFER = 4
BURST_NS = 30_000_000
CALM_NS = 1_000_000_000
"""A burst's length, and the time from one to the next."""


def write_dataset(folder: str | Path, launches: int, exports: int, seed: int) -> None:
    """Write the tables of a dataset, and its clocks.

    Parameters
    ----------
    folder : str or Path
        Gets `tables/{export}/` and `clocks.json`.
    launches : int
        In all exports together; they hold equally many, up to one.
    exports : int
        Ranks of the simulated run, each with an export of its own.
    seed : int
        Of everything drawn.
    """
    folder = Path(folder)
    sizes = [launches * (rank + 1) // exports - launches * rank // exports for rank in range(exports)]
    for rank, size in enumerate(sizes):
        _write_export(folder / "tables" / str(rank), size, rank, np.random.default_rng([seed, rank]))
    clocks = {str(rank): {"shift_ns": 0, "ranks": [rank]} for rank in range(exports)}
    facts = {"dataset": "scaling", "method": "zero", "residual_ns": None, "reason": "simulated on one clock"}
    write_json({**facts, "exports": clocks}, folder / "clocks.json", "clocks")
    LOG.info("%d launches in %d exports, seed %d", launches, exports, seed)


def _write_export(folder: Path, rows: int, rank: int, rng: np.random.Generator) -> None:
    """Write one export's tables in pieces of a row group."""
    _write_dimensions(folder)
    write_json({"ranks": [rank]}, folder / "capabilities.json")
    means = rng.lognormal(8.0, 1.0, KERNELS * SHAPES)
    start = 0
    progress = Progress(f"export {rank}: launches", rows, "launches")
    with (
        TableWriter(folder / "launches.parquet", "launches") as launches,
        TableWriter(folder / "transfers.parquet", "transfers") as transfers,
    ):
        for begin in range(0, rows, ROW_GROUP_ROWS):
            n = min(ROW_GROUP_ROWS, rows - begin)
            starts = start + np.cumsum(rng.integers(1, 2 * GAP_NS, n))
            start = int(starts[-1])
            launches.write(_launches(starts, begin, rank, means, rng))
            transfers.write(_transfers(starts[::LAUNCHES_PER_TRANSFER], rank, rng))
            progress.at(begin + n)


def _launches(starts: np.ndarray, begin: int, rank: int, means: np.ndarray, rng: np.random.Generator) -> pa.Table:
    n = starts.size
    configuration = rng.integers(0, means.size, n, dtype=np.uint32)
    burst = 1.0 + (starts % CALM_NS < BURST_NS)
    duration = means[configuration] * np.exp(rng.normal(0.0, 0.2, n) * burst)
    columns = {
        "start_ns": starts,
        "duration_ns": duration.astype(np.int64) + 1,
        "configuration": configuration,
        "stream": rng.integers(7, 11, n, dtype=np.uint32),
        "queue_ns": rng.integers(500, 50_000, n),
        "correlation": np.arange(begin, begin + n),
    }
    return _table("launches", columns, rank)


def _transfers(starts: np.ndarray, rank: int, rng: np.random.Generator) -> pa.Table:
    """Return transfers that begin up to a gap before some launches; the few that would begin before the one above
    are moved up to it.
    """
    n = starts.size
    size = rng.integers(1, 1 << 16, n)
    columns = {
        "start_ns": np.maximum.accumulate(np.maximum(starts - rng.integers(0, GAP_NS, n), starts[0])),
        "duration_ns": size // 8 + 500,
        "bytes": size,
        "copy_kind": rng.choice(np.array([1, 2, 8], np.uint8), n),
        "stream": rng.integers(7, 11, n, dtype=np.uint32),
    }
    return _table("transfers", columns, rank)


def _table(name: str, columns: dict[str, np.ndarray], rank: int) -> pa.Table:
    """Return a table of the schema `name`; other columns are null, or 0 where null is not allowed."""
    rows = columns["start_ns"].size
    columns["rank"] = np.full(rows, rank, np.uint32)
    arrays = {}
    for field in SCHEMAS[name]:
        if field.name in columns:
            arrays[field.name] = pa.array(columns[field.name], field.type)
        else:
            arrays[field.name] = (
                pa.nulls(rows, field.type) if field.nullable else pa.array(np.zeros(rows, field.type.to_pandas_dtype()))
            )
    return pa.table(arrays, schema=SCHEMAS[name])


def _write_dimensions(folder: Path) -> None:
    """Write kernels and configurations, the same in every export."""
    names = [f"kernel_{number:02d}(float *, int)" for number in range(KERNELS)]
    ids = [f"kernel-{number:02d}-{hashlib.sha256(name.encode()).hexdigest()[:10]}" for number, name in enumerate(names)]
    short = [name.partition("(")[0] for name in names]
    kernels = {"kernel": range(KERNELS), "id": ids, "name": names, "short_name": short, "class": ["compute"] * KERNELS}
    write_table(pa.table(kernels, schema=SCHEMAS["kernels"]), folder / "kernels.parquet", "kernels")
    numbers = range(KERNELS * SHAPES)
    shape = dict.fromkeys(LAUNCH_SHAPE, [None] * len(numbers))
    shape |= {name: [1] * len(numbers) for name in ("grid_y", "grid_z", "block_y", "block_z")}
    shape |= {"grid_x": [64 * (number % SHAPES + 1) for number in numbers], "block_x": [128] * len(numbers)}
    columns = {
        "configuration": numbers,
        "kernel": [number // SHAPES for number in numbers],
        **shape,
        "label": [None] * len(numbers),
    }
    write_table(
        pa.table(columns, schema=SCHEMAS["configurations"]), folder / "configurations.parquet", "configurations"
    )
