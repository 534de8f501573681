"""What is going on at given instants: intervals in flight and their weights, idle time, last values. Exact integers,
streamed.

Intervals come in chunks in order of start; what outlives a chunk is carried over. An interval [start, end) is in flight
at an instant t if start <= t < end, so an empty one never is.
"""

from collections.abc import Iterable, Iterator

import numpy as np


def whole_instants(
    chunks: Iterable[dict[str, np.ndarray]], key: str = "start"
) -> Iterator[tuple[dict[str, np.ndarray], int | None]]:
    """Regroup chunks so that equal starts never lie in two of them.

    Parameters
    ----------
    chunks : iterable of dict of str to ndarray, shape (n,)
        Columns of equal length, ascending in `key` over all chunks.
    key : str
        Name of the column of starts.

    Yields
    ------
    chunk : dict of str to ndarray, shape (m,)
        Never empty.
    boundary : int or None
        Start of the next chunk; None for the last.
    """
    pending: dict[str, np.ndarray] | None = None
    for chunk in chunks:
        if chunk[key].size == 0:
            continue
        if pending is not None:
            chunk = {name: np.concatenate([pending[name], values]) for name, values in chunk.items()}
        first_of_last = int(np.searchsorted(chunk[key], chunk[key][-1], side="left"))
        pending = {name: values[first_of_last:] for name, values in chunk.items()}
        if first_of_last:
            yield {name: values[:first_of_last] for name, values in chunk.items()}, int(pending[key][0])
    if pending is not None:
        yield pending, None


class InFlight:
    """Sums over the intervals in flight, of as many weights as wanted.

    Parameters
    ----------
    n_weights : int
        Weights per interval, e.g. 1 for a count and the bytes by kind.
    """

    def __init__(self, n_weights: int) -> None:
        self.ends = np.zeros(0, dtype=np.int64)
        self.weights = np.zeros((0, n_weights), dtype=np.int64)
        self.latest_end: int | None = None

    def advance(self, starts: np.ndarray, ends: np.ndarray, weights: np.ndarray, instants: np.ndarray) -> np.ndarray:
        """Return the sums at `instants` and carry over the intervals that outlive this chunk.

        Parameters
        ----------
        starts, ends : ndarray of int64, shape (n,), ns
            A chunk, ascending in `starts`.
        weights : ndarray of int64, shape (n, n_weights)
        instants : ndarray of int64, shape (m,), ns
            Before the next chunk's first start, and not before this one's unless it is the first.

        Returns
        -------
        ndarray of int64, shape (m, n_weights)
        """
        all_ends = np.concatenate([self.ends, ends])
        all_weights = np.vstack([self.weights, weights])
        by_end = np.argsort(all_ends, kind="stable")
        ended = _cumulated(all_weights[by_end])[np.searchsorted(all_ends[by_end], instants, side="right")]
        begun = self.weights.sum(axis=0) + _cumulated(weights)[np.searchsorted(starts, instants, side="right")]
        # an interval of this chunk that starts after an instant also ends after it, so nothing ends that has not begun
        if starts.size:
            alive = all_ends > starts[-1]
            self.ends = all_ends[alive]
            self.weights = all_weights[alive]
            self.latest_end = (
                int(all_ends.max()) if self.latest_end is None else max(self.latest_end, int(all_ends.max()))
            )
        return begun - ended


class LastEnded:
    """The value of the interval that ended last, at or before given instants; state between chunks."""

    def __init__(self) -> None:
        self.ends = np.zeros(0, dtype=np.int64)
        self.values = np.zeros(0)

    def advance(self, ends: np.ndarray, values: np.ndarray, instants: np.ndarray, boundary: int | None) -> np.ndarray:
        """Return the values at `instants` and carry over what later ones may need.

        Parameters
        ----------
        ends : ndarray of int64, shape (n,), ns
            A chunk of intervals, in order of start; of equal ends the later row counts.
        values : ndarray, shape (n,)
        instants : ndarray of int64, shape (m,), ns
            Before `boundary`, the next chunk's first start, if there is one.
        boundary : int or None

        Returns
        -------
        ndarray of float, shape (m,)
            NaN before the first end.
        """
        ends = np.concatenate([self.ends, ends])
        values = np.concatenate([self.values, values])
        order = np.argsort(ends, kind="stable")
        ends = ends[order]
        values = values[order]
        position = np.searchsorted(ends, instants, side="right")
        found = np.concatenate([[np.nan], values])[position]
        ended = 0 if boundary is None else int(np.searchsorted(ends, boundary, side="right"))
        self.ends = ends[max(ended - 1, 0) :]
        self.values = values[max(ended - 1, 0) :]
        return found


def _cumulated(weights: np.ndarray) -> np.ndarray:
    return np.vstack([np.zeros((1, weights.shape[1]), dtype=np.int64), np.cumsum(weights, axis=0)])


def idle_before(starts: np.ndarray, ends: np.ndarray, earlier_end: int | None, rows: np.ndarray) -> np.ndarray:
    """Return for some intervals how long before their start all others that began before or with them had ended.

    Parameters
    ----------
    starts, ends : ndarray of int64, shape (n,), ns
        A chunk, ascending in `starts`, with all intervals that share a start.
    earlier_end : int or None
        Latest end of all intervals before the chunk; None if there is none.
    rows : ndarray of int, shape (m,)
        Positions in the chunk.

    Returns
    -------
    ndarray of int64, shape (m,), ns
        0 while another is in flight, -1 where nothing began before.
    """
    latest = np.maximum.accumulate(ends)
    first = np.searchsorted(starts, starts[rows], side="left")
    after = np.searchsorted(starts, starts[rows], side="right")
    none = np.iinfo(np.int64).min
    before = np.where(first > 0, latest[np.maximum(first - 1, 0)], none)
    if earlier_end is not None:
        before = np.maximum(before, earlier_end)
    together = after - first > 1  # another begins at the same instant: the device is busy, or was until now
    idle = np.where(before == none, -1, np.maximum(starts[rows] - np.where(before == none, 0, before), 0))
    return np.where(together, 0, idle)


class LastValue:
    """The last value of a series at or before given instants.

    Parameters
    ----------
    instants : ndarray of int64, shape (m,), ns, ascending
    """

    def __init__(self, instants: np.ndarray) -> None:
        self.instants = instants
        self.values = np.full(instants.size, np.nan)

    def advance(self, times: np.ndarray, values: np.ndarray) -> None:
        """Take a chunk of the series.

        Parameters
        ----------
        times : ndarray of int64, shape (n,), ns
            Ascending, none before those of earlier chunks; at least one.
        values : ndarray of float, shape (n,)
        """
        first = int(np.searchsorted(self.instants, times[0], side="left"))
        position = np.searchsorted(times, self.instants[first:], side="right") - 1
        self.values[first:] = values[position]
