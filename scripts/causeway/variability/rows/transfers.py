"""Stream an export's transfers beside its launches, and measure how much of a transfer no kernel hid.

Of the transfers, only those that can still matter are held. A transfer may last long, so row groups that began long ago
may matter too: the latest end of each row group, found in one pass that ranks divide among themselves, decides which.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causeway.core.codes import MIGRATIONS
from causeway.core.errors import TableError
from causeway.core.reduced import why_not
from causeway.core.vocabulary import MEMORY_STALL
from causeway.events.few_values import by_value
from causeway.numeric import intervals
from causeway.numeric.compiled import U2, U4, compiled, int64, void
from causeway.numeric.mpi import Ranks
from causeway.variability.rows.sources import Chunk, Source, TableRows
from causeway.variability.rows.transfer_links import NONE, UNKNOWN, link

HELD_GROUPS = 4
"""Groups of launches whose busy times are kept for exposure: a transfer rarely reaches farther than into a
neighbouring group.
"""
LONG_AGO = -(1 << 62)


def device_numbers(chunk: Chunk) -> np.ndarray:
    """Return one number for the rank and device of each row: rank x 2^16 + device; int64."""
    device = np.empty(chunk.size, np.int64)
    _number_devices(chunk.column("rank"), chunk.column("device"), device)
    return device


@compiled(void(U4, U2, int64[::1]))
def _number_devices(rank, device, number):
    for i in range(number.size):
        number[i] = (np.int64(rank[i]) << 16) | device[i]


def durations(chunk: Chunk) -> np.ndarray:
    """Return the duration of each row in ns; int64.

    Raises
    ------
    TableError
        For a negative one; the message names the row.
    """
    duration = chunk.column("duration_ns")
    if duration.min(initial=0) < 0:
        wrong = int(np.argmax(duration < 0))
        raise TableError(
            f"{chunk.source.path}: row {chunk.row(wrong)} has duration {duration[wrong]} ns; expected 0 or more"
        )
    return duration


def ends(chunk: Chunk) -> np.ndarray:
    """Return the end of each row in ns; int64. Negative durations are refused."""
    return chunk.column("start_ns") + durations(chunk)


def latest_ends(tables: list[TableRows], ranks: Ranks) -> list[np.ndarray]:
    """Return, for each table, the latest end (ns) of each group of rows; groups are divided among ranks."""
    by_table = [np.zeros(len(rows.groups), np.int64) for rows in tables]
    with ranks.together():
        todo = [(table, group) for table, rows in enumerate(tables) for group in range(len(rows.groups))]
        for table, group in todo[ranks.rank :: ranks.size]:
            chunks = tables[table].chunks(["start_ns", "duration_ns"], [tables[table].groups[group]])
            by_table[table][group] = max(ends(chunk).max() for chunk in chunks)
    return [ranks.total(latest) for latest in by_table]


@dataclass
class LinkedTransfers:
    """The transfer of each launch of a chunk.

    Attributes
    ----------
    index : ndarray of int64, shape (launches,)
        Into the arrays of `held`; -1 without a transfer.
    overlap : ndarray of int64, shape (launches,), ns
        What the two share.
    held : dict of str to ndarray of int64
        Of each transfer: its `row` in the table, `start` and `end` (ns, the export's clock), `bytes` (`UNKNOWN` if
        null), `copy_kind`, and `device` (`device_numbers`).
    """

    index: np.ndarray
    overlap: np.ndarray
    held: dict[str, np.ndarray]

    @property
    def is_linked(self) -> np.ndarray:
        """Where a launch has a transfer; bool."""
        return self.index != NONE

    def of(self, name: str) -> np.ndarray:
        """Return a fact about each launch's transfer; int64, 0 where it has none."""
        column = self.held[name]
        return np.where(self.is_linked, column[self.index], 0) if column.size else np.zeros(self.index.size, np.int64)

    def take(self, rows: np.ndarray | slice) -> "LinkedTransfers":
        """Return the links of some launches."""
        return LinkedTransfers(self.index[rows], self.overlap[rows], self.held)


class TransferWindow:
    """The transfers near the launches that are being read; launches must come in the order of time.

    Parameters
    ----------
    rows : TableRows or None
        The transfers table; None if the export has none.
    latest : ndarray of int64
        Latest end of each of its groups, from `latest_ends`.
    window_ns : int
        How long before a launch a transfer may have ended to be linked to it.
    """

    COLUMNS = ("start_ns", "duration_ns", "rank", "device", "bytes", "copy_kind")

    def __init__(self, rows: TableRows | None, latest: np.ndarray, window_ns: int) -> None:
        self.rows = rows
        self.latest = latest
        self.window_ns = window_ns
        self.held = {name: np.empty(0, np.int64) for name in ("row", "start", "end", "bytes", "copy_kind", "device")}
        self._coming: Iterator[Chunk] | None = None
        self._next: Chunk | None = None

    def link(self, chunk: Chunk) -> LinkedTransfers:
        """Link the launches of a chunk to their transfers."""
        if self.rows is None or chunk.size == 0:
            return LinkedTransfers(np.full(chunk.size, NONE, np.int64), np.zeros(chunk.size, np.int64), self.held)
        start = chunk.column("start_ns")
        end = ends(chunk)
        self._move(self.rows, int(start[0]), int(end.max()))
        held = self.held
        return LinkedTransfers(
            *link(start, end, device_numbers(chunk), held["start"], held["end"], held["device"], self.window_ns), held
        )

    def _move(self, rows: TableRows, first: int, last: int) -> None:
        """Hold every transfer that ends at or after `first` less the window, and starts by `last`."""
        earliest = first - self.window_ns
        if self._coming is None:
            groups = [group for group, latest in zip(rows.groups, self.latest, strict=True) if latest >= earliest]
            self._coming = rows.chunks(list(self.COLUMNS), groups)
            self._next = next(self._coming, None)
        parts = []
        while self._next is not None and self._next.column("start_ns")[0] <= last:
            fresh = facts_of(self._next)
            # what the driver moves of managed memory is no copy that a launch competes with: the launch causes it
            copies = (fresh["end"] >= earliest) & ~np.isin(fresh["copy_kind"], MIGRATIONS)
            parts.append({name: column[copies] for name, column in fresh.items()})
            self._next = next(self._coming, None)
        stays = self.held["end"] >= earliest
        if parts:
            parts.insert(0, {name: column[stays] for name, column in self.held.items()})
            self.held = {name: np.concatenate([part[name] for part in parts]) for name in self.held}
        elif stays.size:  # without a copy: those at the front are the most
            begin = int(stays.argmax()) if stays.any() else stays.size
            self.held = {name: column[begin:] for name, column in self.held.items()}


def numbers_of(chunk: Chunk, name: str) -> np.ndarray:
    """Return a column of int64, `UNKNOWN` where null."""
    return chunk.arrow(name).fill_null(UNKNOWN).to_numpy()


def facts_of(chunk: Chunk) -> dict[str, np.ndarray]:
    """Return what is held of a chunk of transfers; see `LinkedTransfers`."""
    return {
        "row": chunk.numbers(),
        "start": chunk.column("start_ns"),
        "end": ends(chunk),
        "bytes": numbers_of(chunk, "bytes"),
        "copy_kind": chunk.column("copy_kind").astype(np.int64),
        "device": device_numbers(chunk),
    }


class Exposure:
    """How much of a transfer no kernel on its rank and device hid.

    Parameters
    ----------
    source : Source
        The export's launches.
    latest : ndarray of int64
        Latest end of each of its groups of launches.
    """

    def __init__(self, source: Source, latest: np.ndarray) -> None:
        self.rows = source.rows
        self.latest = latest
        self.first = np.array([group.first for group in self.rows.groups], np.int64)
        self._held: dict[int, dict[int, intervals.Set]] = {}
        self._known = self._values = np.empty(0, np.int64)

    def of(self, linked: LinkedTransfers) -> np.ndarray:
        """Return the exposed part in ns of each launch's transfer; int64, 0 where there is none. Ask in the order of
        time.
        """
        exposed = np.zeros(linked.index.size, np.int64)
        is_linked = linked.is_linked
        if not is_linked.any():
            return exposed
        linked_to = np.zeros(linked.held["row"].size, bool)
        linked_to[linked.index[is_linked]] = True
        row, start, end, device = (linked.held[name][linked_to] for name in ("row", "start", "end", "device"))
        # later launches are linked to long transfers again; of the others none needs to be remembered
        index = np.minimum(np.searchsorted(self._known, row), max(self._known.size - 1, 0))
        remembered = self._known[index] == row if self._known.size else np.zeros(row.size, bool)
        values = np.empty(row.size, np.int64)
        values[remembered] = self._values[index[remembered]]
        values[~remembered] = self._measure(start[~remembered], end[~remembered], device[~remembered])
        self._known = row
        self._values = values
        exposed[is_linked] = values[(np.cumsum(linked_to) - 1)[linked.index[is_linked]]]
        return exposed

    def _measure(self, start: np.ndarray, end: np.ndarray, device: np.ndarray) -> np.ndarray:
        exposed = end - start
        if exposed.size == 0:
            return exposed
        reach: dict[int, int] = {}
        begin = start.min()
        stop = end.max()
        for group in np.flatnonzero((self.latest > begin) & (self.first < stop)).tolist():
            touched = (start < self.latest[group]) & (end > self.first[group])
            for value, (low, high) in self._busy(group).items() if touched.any() else ():
                rows = np.flatnonzero(touched & (device == value))
                if rows.size:
                    # what earlier groups cover from here on is one interval that reaches to their latest end
                    covered = max(reach.get(value, LONG_AGO), int(start[rows].min()))
                    near = slice(np.searchsorted(high, covered, side="right"), np.searchsorted(low, end[rows].max()))
                    part = (np.maximum(low[near], reach.get(value, LONG_AGO)), high[near])
                    exposed[rows] -= intervals.overlap(start[rows], end[rows], part)
                reach[value] = max(reach.get(value, LONG_AGO), int(high[-1]) if high.size else LONG_AGO)
        return exposed

    def _busy(self, group: int) -> dict[int, intervals.Set]:
        """Return the union of the kernels of one group of launches, by the number of their device."""
        if group not in self._held:
            while len(self._held) >= HELD_GROUPS:
                del self._held[min(self._held)]
            parts: dict[int, list[intervals.Set]] = {}
            for chunk in self.rows.chunks(["start_ns", "duration_ns", "rank", "device"], [self.rows.groups[group]]):
                start = chunk.column("start_ns")
                end = ends(chunk)
                for device, rows in by_value(device_numbers(chunk)):
                    here = slice(None) if rows is None else rows
                    parts.setdefault(device, []).append(intervals.union(start[here], end[here]))
            self._held[group] = {
                device: intervals.union(*(np.concatenate(side) for side in zip(*pairs, strict=True)))
                for device, pairs in parts.items()
            }
        return self._held[group]


def transfers_of(folder: Path) -> TableRows | None:
    """Open an export's transfers; None if it has none, or a filter dropped some: a launch's own may be among them."""
    path = folder / "transfers.parquet"
    if (folder / "filter.json").is_file() and why_not([folder], MEMORY_STALL):
        return None
    return TableRows(path, "transfers") if path.is_file() else None
