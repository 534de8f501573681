"""The time in which launches ran on a device, in cells of equal width: what utilisation and power follow."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from causeway.core.tables import open_table

CHUNK_ROWS = 1 << 16


def busy_times(
    launches: Path, devices: Iterable[tuple[int, int]], origin_ns: int, width_ns: int, cells: int
) -> dict[tuple[int, int], np.ndarray]:
    """Return the busy time of each device of an export in cells of time, read in one pass.

    Parameters
    ----------
    launches : Path
        The table, in order of start.
    devices : iterable of (int, int)
        Rank and device.
    origin_ns, width_ns, cells : int
        Cell k is [origin + k width, origin + (k + 1) width) on the export's own clock.

    Returns
    -------
    dict of (int, int) to ndarray of int64, shape (cells,), ns, 0 to `width_ns`
        Time in which at least one launch ran; exact.
    """
    busy = {key: np.zeros(cells, np.int64) for key in devices}
    covered = dict.fromkeys(busy, np.iinfo(np.int64).min)
    edges = origin_ns + width_ns * np.arange(cells + 1, dtype=np.int64)
    with open_table(launches, "launches") as file:
        columns = ["start_ns", "duration_ns", "rank", "device"]
        for batch in file.iter_batches(CHUNK_ROWS, columns=columns, use_threads=False):
            start, duration, rank, device = (batch.column(name).to_numpy() for name in columns)
            for key in busy:
                of_device = (rank == key[0]) & (device == key[1])
                if of_device.any():
                    covered[key] = _add(
                        busy[key], edges, start[of_device], start[of_device] + duration[of_device], covered[key]
                    )
    return busy


def _add(busy: np.ndarray, edges: np.ndarray, start: np.ndarray, end: np.ndarray, covered: int) -> int:
    """Add the time that ordered intervals cover beyond `covered`, up to which earlier ones reach; return up to where
    all reach now.
    """
    reach = np.maximum.accumulate(np.maximum(end, covered))
    before = np.concatenate([[covered], reach[:-1]])
    low = np.maximum(start, before)
    new = end > low
    low, high = low[new], end[new]
    if low.size:
        first, last = np.searchsorted(edges, [low[0], high[-1]])
        window = slice(max(int(first) - 1, 0), min(int(last) + 1, edges.size))
        inner = edges[window]
        lengths = np.concatenate([[0], np.cumsum(high - low)])
        index = np.maximum(np.searchsorted(low, inner, side="right") - 1, 0)
        before = lengths[index] + np.clip(inner - low[index], 0, (high - low)[index])
        busy[window.start : window.start + inner.size - 1] += np.diff(before)
    return int(reach[-1]) if reach.size else covered
