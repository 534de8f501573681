"""What calls state of the launches and copies that they make: grid, block and bytes.

On AMD's devices older versions of PyTorch write these of the call alone, not of the device's event (a trace of 2024
with ROCm 6.2). Calls stand before their events there; an event that lacks its sizes waits until all calls and events
were seen, since of a call that made several events nobody can say which has what size. It waits in bounded memory:
calls and events are ordered by process and correlation on disk, and what is found is put in the order of the events.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from causeway.readers.common.constants import NULL
from causeway.readers.common.numbers import integers
from causeway.readers.pytorch.event_fields import GIVEN_WORK_ITEMS, along_axes
from causeway.readers.sink.batches import EventBatch
from causeway.readers.sink.external_sort import ExternalSort
from causeway.readers.sink.records import FittingCorrelations, RowCodes
from causeway.readers.sink.sink import Sink

SHAPE = tuple(f"{size}_{axis}" for size in ("grid", "block") for axis in "xyz")


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


class CallSizes:
    """Sizes that calls state, and the events that wait for them.

    Parameters
    ----------
    sink : Sink
        Takes the events; what waits is spilled to its folder.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        sink.work_item_calls = GIVEN_WORK_ITEMS
        self._shapes = RowCodes()  # grid and block
        self._waiting = {kind: WaitingEvents(sink.folder, kind) for kind in ("launches", "transfers")}
        for waiting in self._waiting.values():
            sink.at_close.callback(waiting.close)

    def note(self, process: np.ndarray, correlation: np.ndarray, arguments: Sequence[Any]) -> None:
        """Note what calls state.

        Parameters
        ----------
        process, correlation : ndarray of int64, shape (n,)
        arguments : sequence of struct, n of them
            grid, block, bytes and size of each call, None where it has none.
        """
        linked = correlation != NULL
        launches = linked & np.array([isinstance(argument.grid, list) for argument in arguments], bool)
        sizes = [argument.size if argument.bytes is None else argument.bytes for argument in arguments]
        copies = linked & ~launches & np.array([size is not None for size in sizes], bool)
        for kind, chosen in (("launches", launches), ("transfers", copies)):
            rows = np.flatnonzero(chosen).tolist()
            if not rows:
                continue
            if kind == "launches":
                axes = [
                    *along_axes([arguments[row].grid for row in rows]),
                    *along_axes([arguments[row].block for row in rows]),
                ]
                stated = self._shapes.codes([integers(list(column))[0] for column in axes])
            else:
                stated = integers([sizes[row] for row in rows])[0]
            self._waiting[kind].note_calls(process[rows], correlation[rows], stated)

    def launches(self, shape: dict[str, np.ndarray], **events: np.ndarray) -> None:
        """Hand launches over, at once or at the end.

        Parameters
        ----------
        shape : dict of str to ndarray of int64, shape (n,)
            Columns of `LAUNCH_SHAPE`, those of grid and block among them.
        **events : ndarray of int64, shape (n,)
            The other columns that `Sink.launches` takes, by its names.
        """
        if self._must_wait("launches", np.all([shape[name] == NULL for name in SHAPE], axis=0), events):
            self._waiting["launches"].add(events | {f"shape {name}": values for name, values in shape.items()})
        else:
            self._sink.launches(events | shape)

    def transfers(self, size: np.ndarray, **events: np.ndarray) -> None:
        """Hand transfers over, at once or at the end.

        Parameters
        ----------
        size : ndarray of int64, shape (n,), bytes
            `NULL` where an event states none.
        **events : ndarray of int64, shape (n,)
            The other columns that `Sink.transfers` takes, by its names.
        """
        if self._must_wait("transfers", size == NULL, events):
            self._waiting["transfers"].add({"bytes": size, **events})
        else:
            self._sink.transfers(events | {"bytes": size})

    def _must_wait(self, kind: str, lacking: np.ndarray, events: dict) -> bool:
        return self._waiting[kind].has_calls and bool(np.any(lacking & (events["correlation"] != NULL)))

    def finish(self) -> None:
        """Hand over the events that waited, with the sizes of their calls."""
        shapes = np.array([(NULL,) * len(SHAPE), *self._shapes.rows], np.int64)
        for events, code in self._waiting["launches"].resolved():
            shape = {
                name.removeprefix("shape "): events.pop(name) for name in list(events) if name.startswith("shape ")
            }
            lacking = np.all([shape[name] == NULL for name in SHAPE], axis=0)
            for index, name in enumerate(SHAPE):
                shape[name] = np.where(lacking, shapes[np.where(code == NULL, 0, code + 1), index], shape[name])
            self._sink.launches(events | shape)
        self._waiting["launches"].close()
        for events, stated in self._waiting["transfers"].resolved():
            events["bytes"] = np.where(events["bytes"] == NULL, stated, events["bytes"])
            self._sink.transfers(events)
        self._waiting["transfers"].close()
