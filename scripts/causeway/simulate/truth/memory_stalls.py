"""Memory stalls of simulated launches, for the ground truth: |duration of the launch - that of its linked transfer|."""

import numpy as np

from causeway.simulate.stream_events import RankBatch

NEAREST = 24
"""Transfers looked at per launch, counted back from the last that begins before it ends. All copies of an iteration
that could reach into a launch are among them: streams of copies are serial, and there are four."""
WINDOW_NS = 1_000_000
"""How long before a launch its transfer may have ended; the default of `link_window_us` under `bins`."""


def memory_stalls(batch: RankBatch) -> np.ndarray:
    """Return the memory stall of each launch of a rank's batch; NaN for one without a linked transfer.

    Linked is the transfer that overlaps the launch for longest; if none does, the last that ended before it within
    `WINDOW_NS`; of equals the one that begins earlier.

    Returns
    -------
    ndarray of float64, shape (launches,), ns
    """
    parts = [part for part in (batch.copies, batch.memsets) if part]
    start, end = (np.concatenate([part[name] for part in parts]) for name in ("start", "end"))
    order = np.argsort(start, kind="stable")
    start = start[order]
    end = end[order]
    begin = batch.kernels["start"]
    finish = batch.kernels["end"]
    last = np.searchsorted(start, finish, side="left") - 1
    best = np.full(len(begin), -WINDOW_NS - 1, dtype=np.int64)
    linked = np.full(len(begin), -1, dtype=np.int64)
    for back in range(NEAREST):
        index = np.maximum(last - back, 0)
        inside = last - back >= 0
        # an overlap is positive; where there is none, the time since the transfer's end counts as a negative one
        overlap = np.minimum(end[index], finish) - np.maximum(start[index], begin)
        better = inside & (overlap >= best) & ((overlap > 0) | (end[index] <= begin))
        best = np.where(better, overlap, best)
        linked = np.where(better, index, linked)
    duration = np.where(linked >= 0, (end - start)[linked], 0)
    return np.where(linked >= 0, np.abs(finish - begin - duration), np.nan)
