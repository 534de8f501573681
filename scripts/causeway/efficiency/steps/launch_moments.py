"""Launches with the moment that decides to which step they belong: when their call began, or else when they started."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from causeway.core.tables import LAUNCH_SHAPE, read_table
from causeway.efficiency.device_time import event_streams
from causeway.efficiency.device_time.sweep import UNKNOWN

GRID_AND_BLOCK = LAUNCH_SHAPE[:6]


def threads_of(folder: Path) -> np.ndarray:
    """Return the threads of a launch of each configuration, grid times block; 0 where the export has neither; int64,
    shape (configurations,).
    """
    table = read_table(folder / "configurations.parquet", "configurations", list(GRID_AND_BLOCK))
    sizes = np.stack([event_streams.numbers(table.column(name).combine_chunks(), 1) for name in GRID_AND_BLOCK])
    known = table.column("grid_x").is_valid().to_numpy()
    return np.where(known, np.prod(sizes.astype(np.float64), axis=0), 0).clip(0, 1 << 40).astype(np.int64)


def launch_moments(folder: Path) -> Iterator[event_streams.Block]:
    """Give launches, ordered by start: start, end, rank, kernel, threads, moment and until.

    `moment` is when the call that made the launch began, where the export knows the call; else when the launch started.
    `until` is when that call returned, or the launch ended.
    """
    if not (folder / "configurations.parquet").is_file():
        return
    kernels = read_table(folder / "configurations.parquet", "configurations", ["kernel"]).column("kernel").to_numpy()
    threads = threads_of(folder)
    calls = event_streams.Calls(event_streams.calls(folder))
    wanted = ["start_ns", "duration_ns", "configuration", "rank", "queue_ns", "correlation"]
    for batch in event_streams.chunks(folder, "launches", wanted):
        block = event_streams.times(batch)
        queue = event_streams.numbers(batch.column("queue_ns"), -1)
        configuration = batch.column("configuration").to_numpy()
        block |= {
            "rank": batch.column("rank").to_numpy(),
            "correlation": event_streams.numbers(batch.column("correlation"), -1),
            "returned": np.where(queue < 0, UNKNOWN, block["start"] - queue),
            "kernel": kernels[configuration].astype(np.int64),
            "threads": threads[configuration],
        }
        called, returned = calls.find(block)
        known = called != UNKNOWN
        block["moment"] = np.where(known, called, block["start"])
        block["until"] = np.where(known, returned, block["end"])
        yield block


def ends_of_calls(folder: Path, rank: int, moments: np.ndarray) -> np.ndarray:
    """Return the latest end of the runtime calls of a rank that began before each moment; the least int64 without any.

    Parameters
    ----------
    folder : Path
    rank : int
    moments : ndarray of int64, shape (n,), ascending, ns

    Returns
    -------
    ndarray of int64, shape (n,), ns
    """
    latest = np.full(moments.size + 1, np.iinfo(np.int64).min)
    for block in event_streams.calls(folder):
        mine = block["rank"] == rank
        np.maximum.at(latest, np.searchsorted(moments, block["start"][mine], "right"), block["end"][mine])
    return np.maximum.accumulate(latest)[:-1]
