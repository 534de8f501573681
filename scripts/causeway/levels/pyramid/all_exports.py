"""Sums of several exports put together: their streams and devices numbered throughout, their rows brought to rank 0."""

from collections.abc import Mapping

import numpy as np

from causeway.levels.pyramid import busy_time
from causeway.levels.pyramid.level import Level, same_width, stacked
from causeway.numeric.mpi import Ranks


def lanes_of(series: Mapping[str, list[dict]], nodes: Mapping[str, str]) -> tuple[list[dict], dict[str, np.ndarray]]:
    """Return the streams and devices of all exports by rank, device and stream, and for each export the numbers
    (int64) of its own among them.
    """
    lanes = [
        {"export": export, "node": nodes.get(export) or None, **lane} for export, own in series.items() for lane in own
    ]
    order = sorted(
        range(len(lanes)),
        key=lambda k: (lanes[k]["rank"], lanes[k]["device"], -1 if (s := lanes[k]["stream"]) is None else s),
    )
    number = np.empty(len(lanes), np.int64)
    number[order] = np.arange(len(lanes))
    ends = np.cumsum([len(own) for own in series.values()])[:-1] if series else []
    of_export = dict(zip(series, np.split(number, ends), strict=True)) if series else {}
    return [{"lane": index, **lanes[k]} for index, k in enumerate(order)], of_export


def rows_of_all(parts: dict[str, Level], number: Mapping[str, np.ndarray], metrics: int, ranks: Ranks) -> Level | None:
    """Bring the sums of all exports to rank 0, their streams and devices renumbered.

    Parameters
    ----------
    parts : dict of str to Level
        Sums of the exports of this rank; emptied, as they and the result would take twice the memory.
    number : mapping of str to ndarray of int64
        For each export, the numbers of its streams and devices among all (`lanes_of`).
    metrics : int
        How many metrics there are.
    ranks : Ranks

    Returns
    -------
    Level or None
        On rank 0, cells as wide as the widest, rows in no certain order (`level.merged` makes a level of them); None
        elsewhere, and where there is no export.
    """
    width = int(ranks.highest(np.array([max((level.width for level in parts.values()), default=0)]))[0])
    if not width:
        return None
    with ranks.together():
        exports = list(parts)
        levels = same_width([parts.pop(export) for export in exports], width)
        for k, export in enumerate(exports):
            _renumber(levels[k], number[export], metrics)
        rows = stacked(levels) if levels else Level.empty(width)
        del levels
    return _of_all_ranks(rows, ranks)


def _renumber(level: Level, number: np.ndarray, metrics: int) -> None:
    """Give the streams and devices of an export's sums their numbers among those of all exports."""
    lane, metric = np.divmod(level.values[:, 0], metrics)
    level.values[:, 0] = number[lane] * metrics + metric
    device, what = np.divmod(level.busy[:, 0], busy_time.BUSY)
    level.busy[:, 0] = number[device] * busy_time.BUSY + what


def _of_all_ranks(rows: Level, ranks: Ranks) -> Level | None:
    """Return the rows of all ranks behind one another on rank 0; None elsewhere."""
    if ranks.size == 1:
        return rows
    values, entries, buckets, counts, busy = (
        ranks.stack(part) for part in (rows.values, np.diff(rows.offset), rows.buckets, rows.counts, rows.busy)
    )
    if values is None:
        return None
    return Level(rows.width, values, np.concatenate(([0], np.cumsum(entries))), buckets, counts, busy)
