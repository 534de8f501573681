"""Events that wait for what their call states, in bounded memory: calls and events are ordered by process and
correlation on disk, and what is found is put in the order in which the events came.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from causeway.readers.common.constants import NULL
from causeway.readers.sink.batches import EventBatch
from causeway.readers.sink.external_sort import ExternalSort
from causeway.readers.sink.records import FittingCorrelations

WINDOW_ROWS = 1 << 16
"""Rows held in memory of what waits, of each of its files."""

OF_CALL = -1
"""The index of a call among the events: it is none."""


class WaitingEvents:
    """Events of one kind, and what calls state of them.

    Parameters
    ----------
    folder : Path
        Where rows are spilled that do not fit the window.
    kind : str
        Part of the names of these files.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self.has_calls = False
        self._correlations = FittingCorrelations()
        # `start_ns` is what each is ordered by: process and correlation in one number, then twice the event's index
        self._by_call = ExternalSort(folder / f".{kind}_by_call.rows", WINDOW_ROWS)
        self._events = ExternalSort(folder / f".{kind}_waiting.rows", WINDOW_ROWS)
        self._matched = ExternalSort(folder / f".{kind}_found.rows", WINDOW_ROWS)

    def note_calls(self, process: np.ndarray, correlation: np.ndarray, stated: np.ndarray) -> None:
        """Note what calls state.

        Parameters
        ----------
        process, correlation, stated : ndarray of int64, shape (n,)
            All calls have a correlation; what one states is one number.
        """
        self.has_calls = True
        self._note(process, correlation, np.full(len(process), OF_CALL), stated)

    def add(self, events: Mapping[str, np.ndarray]) -> None:
        """Let events wait.

        Parameters
        ----------
        events : mapping of str to ndarray of int64, shape (n,)
            Columns: process, correlation (`NULL` for none), start_ns and any others.
        """
        n = len(events["correlation"])
        index = self._events.rows + np.arange(n)
        self._note(events["process"], events["correlation"], index, np.full(n, NULL))
        columns = {name: np.asarray(values, np.int64) for name, values in events.items() if name != "start_ns"}
        self._events.add(EventBatch({"start_ns": index, "begin_ns": events["start_ns"], **columns}))

    def _note(self, process: np.ndarray, correlation: np.ndarray, index: np.ndarray, stated: np.ndarray) -> None:
        correlation = self._correlations.of(correlation)
        linked = correlation >= 0
        if linked.any():
            key = process.astype(np.int64)[linked] << FittingCorrelations.FITTING_BITS | correlation[linked]
            columns = {"start_ns": key, "index": index[linked], "stated": stated.astype(np.int64)[linked]}
            self._by_call.add(EventBatch(columns))

    def resolved(self) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
        """Give the events in the order in which they came, and what the call of each states, int64 of shape (n,);
        `NULL` where there is none, where several calls have its number, or several events. Once.
        """
        if not self._events.rows:
            return
        self._match()
        blocks = self._matched.blocks()
        held = EventBatch({"start_ns": np.empty(0, np.int64), "stated": np.empty(0, np.int64)})
        for events in self._events.blocks():
            columns = dict(events.columns)
            index = columns.pop("start_ns")
            columns["start_ns"] = columns.pop("begin_ns")
            stated = np.full(len(index), NULL)
            while True:
                count = int(np.searchsorted(held["start_ns"], index[-1], "right"))
                stated[held["start_ns"][:count] - index[0]] = held["stated"][:count]
                held = held[count:]
                if len(held) or (block := next(blocks, None)) is None:
                    break
                held = block
            yield columns, stated

    def _match(self) -> None:
        """Find the pairs of one call and one event among the rows by process and correlation."""
        held = None
        for block in self._by_call.blocks():
            rows = block if held is None else EventBatch.concatenated([held, block])
            held = self._take_pairs(rows)
        if held is not None:
            end = {name: np.append(held[name], NULL) for name in held.columns}  # a row that ends the last group
            self._take_pairs(EventBatch(end))

    def _take_pairs(self, rows: EventBatch) -> EventBatch:
        """Take the pairs among rows that are ordered by process and correlation; return rows that stand for those of
        the last pair of numbers, of which more may come: as many as show whether they are two.
        """
        key = rows["start_ns"]
        begin = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        first = begin[:-1][np.diff(begin) == 2]
        index = np.maximum(rows["index"][first], rows["index"][first + 1])
        of_both = np.minimum(rows["index"][first], rows["index"][first + 1]) == OF_CALL
        # an event states NULL, which is less than all that a call states
        stated = np.maximum(rows["stated"][first], rows["stated"][first + 1])
        paired = of_both & (index != OF_CALL)
        if paired.any():
            self._matched.add(EventBatch({"start_ns": index[paired], "stated": stated[paired]}))
        return rows[begin[-1] : begin[-1] + 3].copy()

    def close(self) -> None:
        """Remove what was spilled."""
        for rows in (self._by_call, self._events, self._matched):
            rows.close()
