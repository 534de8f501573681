"""When the profiler itself was at work, in which process, and at what."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from causeway.core.formatting import share
from causeway.readers.common.constants import EPOCH_2100_NS, NULL, UNNAMED_OVERHEAD
from causeway.readers.common.issues import Issues
from causeway.readers.common.vocabularies import BoundedVocabulary
from causeway.readers.sink.table_columns import coded_text

MOST_INTERVALS = 1 << 20
"""Intervals held before they are merged into disjoint ones."""

HEAVY_SHARE = 0.1
"""Share of the time from which on the profiler's own work is worth a caution; a choice without a source."""

PROCESS, START, END, NAME = range(4)


class ProfilerOverhead:
    """Intervals in which the profiler itself was at work.

    Attributes
    ----------
    names : BoundedVocabulary
        Of what it did.
    """

    def __init__(self) -> None:
        self.names = BoundedVocabulary(unnamed=UNNAMED_OVERHEAD)
        self._held = 0
        self._parts = [np.zeros((4, 0), np.int64)]
        self._rows: dict[int, int] = {}

    def take(
        self,
        start_ns: np.ndarray,
        end_ns: np.ndarray,
        process: np.ndarray | int = NULL,
        name: np.ndarray | int | None = None,
    ) -> None:
        """Take intervals in any order; those without a plausible start and end, or that end before they
        start, are none.

        Parameters
        ----------
        start_ns, end_ns : ndarray of int64, shape (n,)
        process : ndarray of int64, shape (n,), or int
            Codes of `Processes.code`; `NULL` where the export does not say.
        name : ndarray of int64, shape (n,), or int, or None
            Codes of `names`.
        """
        name = self.names.code_of(None) if name is None else name
        rows = np.stack(np.broadcast_arrays(process, start_ns, end_ns, name)).astype(np.int64)
        plausible = (np.abs(rows[START : END + 1]) <= EPOCH_2100_NS) & (rows[START : END + 1] != NULL)
        rows = rows[:, plausible.all(axis=0) & (rows[END] >= rows[START])]
        used, counts = np.unique(rows[PROCESS], return_counts=True)
        for code, n in zip(used.tolist(), counts.tolist(), strict=True):
            self._rows[code] = self._rows.get(code, 0) + n
        self._parts.append(rows)
        self._held += rows.shape[1]
        if self._held > MOST_INTERVALS:
            self._parts = [disjoint(np.concatenate(self._parts, axis=1))]
            self._held = self._parts[0].shape[1]

    def within(self, first_ns: int, last_ns: int, process: int = NULL) -> int:
        """Return the nanoseconds between two times that the intervals of a process cover."""
        rows = disjoint(np.concatenate(self._parts, axis=1))
        start, end = np.clip(rows[START : END + 1, rows[PROCESS] == process], first_ns, last_ns)
        return int((end - start).sum())

    def settle(self, ranks: Mapping[int, int], first_ns: int, last_ns: int, issues: Issues) -> None:
        """Keep what is of the processes that are ranks and count the rest; note the share of a time in which the
        profiler was at work, of several processes the largest. What is of no named process is of the only rank, where
        there is one.

        Parameters
        ----------
        ranks : mapping of int to int
            The rank of each process, by its code.
        first_ns, last_ns : int
        issues : Issues
        """
        rows = np.concatenate(self._parts, axis=1)
        if len(ranks) == 1 and NULL in self._rows:
            only = next(iter(ranks))
            rows[PROCESS, rows[PROCESS] == NULL] = only
            self._rows[only] = self._rows.get(only, 0) + self._rows.pop(NULL)
        self._parts = [rows[:, np.isin(rows[PROCESS], list(ranks))]]
        others = [process for process in self._rows if process not in ranks]
        issues.add("other_processes", sum(self._rows.pop(process) for process in others))
        busy = max((self.within(first_ns, last_ns, process) for process in self._rows), default=0)
        if busy:
            part = busy / (last_ns - first_ns)
            where = " in the process with most of it" if len(self._rows) > 1 else ""
            detail = f"{share(part)} of the time between the first launch and the last{where}"
            kind = "heavy_profiler_overhead" if part > HEAVY_SHARE else "profiler_overhead"
            issues.add(kind, sum(self._rows.values()), detail)

    def table(self, ranks: Mapping[int, int]) -> pa.Table:
        """Return the table `profiler_overhead`, after `settle` and with its `ranks`."""
        rows = disjoint(np.concatenate(self._parts, axis=1))
        rows = rows[:, np.argsort(rows[START], kind="stable")]
        columns = {"start_ns": rows[START], "duration_ns": rows[END] - rows[START]}
        columns["rank"] = np.array([ranks[process] for process in rows[PROCESS].tolist()], np.int64)
        return pa.table(columns | {"name": coded_text(rows[NAME], self.names.texts)})


def disjoint(rows: np.ndarray) -> np.ndarray:
    """Return the same moments of each process as intervals that do not overlap: each moment is of that interval which
    began first, of equal starts of the longest.

    Not `numeric.intervals.union`: small exports do not load its compiled code.

    Parameters
    ----------
    rows : ndarray of int64, shape (4, n)
        Process, start, end and name.

    Returns
    -------
    ndarray of int64, shape (4, at most n)
        By process, then start.
    """
    parts = [rows[:, :0]]
    for process in np.unique(rows[PROCESS]).tolist():
        intervals = rows[:, rows[PROCESS] == process]
        intervals = intervals[:, np.lexsort([-intervals[END], intervals[START]])]
        reach = np.append(intervals[START, :1], np.maximum.accumulate(intervals[END])[:-1])
        intervals[START] = np.maximum(intervals[START], reach)
        parts.append(intervals[:, intervals[END] > intervals[START]])
    return np.concatenate(parts, axis=1)
