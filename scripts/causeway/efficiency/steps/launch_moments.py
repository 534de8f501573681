"""Launches with the moment that decides to which step they belong: when their call began, or else when they started.

The device may be half a second behind the host. What it runs when a recording begins was launched before, and its calls
are not known: by their starts, such launches would fall among others that were called at that time.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from causeway.core.schemas import GRID_AND_BLOCK
from causeway.core.schemas.launch_threads import launch_threads
from causeway.core.tables import read_table
from causeway.efficiency.device_time import event_streams
from causeway.events.device_events import UNKNOWN, device_events

MOST_BEFORE = 0.1
"""Share of a rank's launches that may have been called before the recording began: these are then in no step. Of more
of them, repeats are looked for in the order of the starts.
"""
MOST_THREADS = 1 << 40
"""Of one launch: the sums of steps fit 64 bits."""
IN_NO_STEP = np.iinfo(np.int64).min
"""Moment of a launch that was called before the recording began."""
_BY_START = np.iinfo(np.int64).max


def called_since(folder: Path, annotated: bool) -> dict[int, int]:
    """Return the ranks of an export whose launches belong to steps by their calls, and the start of the first launch of
    each whose call is known, ns; the launches of other ranks belong to steps by their starts.

    Parameters
    ----------
    folder : Path
        The export's tables.
    annotated : bool
        Steps are ranges of the host: starts on the device say nothing of them where any call is known.
    """
    since: dict[int, int] = {}
    before: dict[int, int] = {}
    total: dict[int, int] = {}
    for block, _ in device_events(folder, "launches"):
        ranks, many = np.unique(block["rank"], return_counts=True)
        total |= {rank: total.get(rank, 0) + more for rank, more in zip(ranks.tolist(), many.tolist(), strict=True)}
        for rank in [rank for rank in ranks.tolist() if rank not in since]:
            rows = np.flatnonzero(block["rank"] == rank)
            called = np.flatnonzero(block["called"][rows] != UNKNOWN)
            before[rank] = before.get(rank, 0) + (int(called[0]) if called.size else rows.size)
            if called.size:
                since[rank] = int(block["start"][rows[called[0]]])
    return {rank: start for rank, start in since.items() if annotated or before[rank] <= MOST_BEFORE * total[rank]}


def threads_of(folder: Path) -> np.ndarray:
    """Return the threads of a launch of each configuration, at most `MOST_THREADS`; 0 where they are not known; int64,
    shape (configurations,).
    """
    table = read_table(folder / "configurations.parquet", "configurations", list(GRID_AND_BLOCK))
    return np.array([min(max(0, threads or 0), MOST_THREADS) for threads in launch_threads(table)], np.int64)


def launch_moments(folder: Path, since: Mapping[int, int]) -> Iterator[event_streams.Block]:
    """Give launches, ordered by start: start, end, rank, kernel, threads, moment and until.

    `moment` is when the call that made the launch began, where the export knows the call; else when the launch started;
    `IN_NO_STEP` for what was called before the recording began. `until` is when that call returned, or the launch
    ended.

    Parameters
    ----------
    folder : Path
        The export's tables.
    since : mapping of int to int
        `called_since`.
    """
    if not (folder / "configurations.parquet").is_file():
        return
    kernels = read_table(folder / "configurations.parquet", "configurations", ["kernel"]).column("kernel").to_numpy()
    threads = threads_of(folder)
    for block, batch in device_events(folder, "launches", ["configuration"]):
        configuration = batch.column("configuration").to_numpy()
        block |= {
            "kernel": kernels[configuration].astype(np.int64),
            "threads": threads[configuration],
        }
        called = block["called"]
        ranks, index = np.unique(block["rank"], return_inverse=True)
        first = np.array([since.get(rank, _BY_START) for rank in ranks.tolist()], np.int64)[index]
        by_call = (called != UNKNOWN) & (first != _BY_START)
        moment = np.where(by_call, called, block["start"])
        block["moment"] = np.where(~by_call & (block["start"] < first) & (first != _BY_START), IN_NO_STEP, moment)
        block["until"] = np.where(by_call, block["returned"], block["end"])
        yield block


def called_launches(folder: Path) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Give rank, begin of the call and duration, ns, of launches whose calls are known; int64, shape (n,).

    Parameters
    ----------
    folder : Path
        The export's tables.
    """
    for block, _ in device_events(folder, "launches"):
        has_call = block["called"] != UNKNOWN
        yield block["rank"][has_call], block["called"][has_call], (block["end"] - block["start"])[has_call]


def transfer_moments(folder: Path) -> Iterator[event_streams.Block]:
    """Give the transfers whose calls are known, ordered by start: end, rank and moment, when the call began.

    Parameters
    ----------
    folder : Path
        The export's tables.
    """
    for block, _ in device_events(folder, "transfers"):
        has_call = block["called"] != UNKNOWN
        yield {"end": block["end"][has_call], "rank": block["rank"][has_call], "moment": block["called"][has_call]}


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
        of_rank = block["rank"] == rank
        np.maximum.at(latest, np.searchsorted(moments, block["start"][of_rank], "right"), block["end"][of_rank])
    return np.maximum.accumulate(latest)[:-1]
