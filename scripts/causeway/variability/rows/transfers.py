"""Stream an export's transfers beside its launches, and measure how much of a transfer no kernel hid.

Of the transfers, only those that can still matter are held. A transfer may last long, so row groups that began long ago may matter too: the
latest end of each row group, found in one pass that ranks divide among themselves, tells which.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numba import int64, void

from causeway import intervals
from causeway.compiled import I8, U2, U4, compiled
from causeway.errors import TableError
from causeway.ranks import Ranks
from causeway.variability.links import NONE, UNKNOWN, by_value, link, link_by_correlation
from causeway.variability.sources import Chunk, Rows, Source

HELD_GROUPS = 4
"""Groups of launches whose busy times are kept for exposure: a transfer rarely reaches farther than into a neighbouring group."""
LONG_AGO = -(1 << 62)


def lanes(chunk: Chunk) -> np.ndarray:
    """Number the (rank, device) of each row; int64."""
    lane = np.empty(chunk.size, np.int64)
    _number_lanes(chunk.column("rank"), chunk.column("device"), lane)
    return lane


@compiled(void(U4, U2, int64[::1]))
def _number_lanes(rank, device, lane):
    for i in range(lane.size):
        lane[i] = (np.int64(rank[i]) << 16) | device[i]


def durations(chunk: Chunk) -> np.ndarray:
    """Return the duration of each row in ns; int64.

    Raises
    ------
    TableError
        For a negative one; the message names the row.
    """
    duration = chunk.column("duration_ns")
    wrong = _first_negative(duration)
    if wrong >= 0:
        raise TableError(f"{chunk.source.path}: row {chunk.row(wrong)} has duration {duration[wrong]} ns; expected 0 or more")
    return duration


@compiled(int64(I8))
def _first_negative(values):
    lowest = np.int64(0)
    for i in range(values.size):
        lowest = min(lowest, values[i])
    if lowest < 0:
        for i in range(values.size):
            if values[i] < 0:
                return i
    return -1


def ends(chunk: Chunk) -> np.ndarray:
    """Return the end of each row in ns; int64. Negative durations are refused."""
    return chunk.column("start_ns") + durations(chunk)


def latest_ends(tables: list[Rows], ranks: Ranks) -> list[np.ndarray]:
    """Return, for each table, the latest end (ns) of each group of rows; groups are divided among ranks."""
    found = [np.zeros(len(rows.groups), np.int64) for rows in tables]
    with ranks.together():
        todo = [(table, place) for table, rows in enumerate(tables) for place in range(len(rows.groups))]
        for table, place in todo[ranks.rank :: ranks.size]:
            chunks = tables[table].chunks(["start_ns", "duration_ns"], [tables[table].groups[place]])
            found[table][place] = max(ends(chunk).max() for chunk in chunks)
    return [ranks.total(latest) for latest in found]


@dataclass
class Linked:
    """The transfer of each launch of a chunk.

    `index` (int64) is its place in the arrays of `held`, or -1; `overlap` (int64) what the two share in ns. `held` has for each transfer
    its `row` in the table, `start` and `end` (ns, the export's clock), `bytes` and `correlation` (`UNKNOWN` if null), `copy_kind`, `lane`.
    """

    index: np.ndarray
    overlap: np.ndarray
    held: dict[str, np.ndarray]

    @property
    def found(self) -> np.ndarray:
        """Where a launch has a transfer; bool."""
        return self.index != NONE

    def of(self, name: str) -> np.ndarray:
        """Return a fact about each launch's transfer; int64, 0 where it has none."""
        column = self.held[name]
        return np.where(self.found, column[self.index], 0) if column.size else np.zeros(self.index.size, np.int64)

    def take(self, rows: np.ndarray | slice) -> "Linked":
        """Return the links of some launches."""
        return Linked(self.index[rows], self.overlap[rows], self.held)


class TransferWindow:
    """The transfers near the launches that are being read; launches must come in the order of time.

    Parameters
    ----------
    rows : Rows or None
        The transfers table; None if the export has none.
    latest : ndarray of int64
        Latest end of each of its groups, from `latest_ends`.
    window_ns : int
        How long before a launch a transfer may have ended to be linked to it.
    by : str
        `overlap` or `correlation`; see `links`.
    """

    COLUMNS = ("start_ns", "duration_ns", "rank", "device", "bytes", "copy_kind", "correlation")

    def __init__(self, rows: Rows | None, latest: np.ndarray, window_ns: int, by: str = "overlap") -> None:
        self.rows, self.latest, self.window_ns, self.by = rows, latest, window_ns, by
        self.held = {name: np.empty(0, np.int64) for name in ("row", "start", "end", "bytes", "copy_kind", "lane", "correlation")}
        self._coming: Iterator[Chunk] | None = None
        self._next: Chunk | None = None

    def link(self, chunk: Chunk) -> Linked:
        """Link the launches of a chunk to their transfers."""
        start, end = chunk.column("start_ns"), ends(chunk)
        if self.rows is None or start.size == 0:
            return Linked(np.full(start.size, NONE, np.int64), np.zeros(start.size, np.int64), self.held)
        self._move(int(start[0]), int(end.max()))
        held = self.held
        if self.by == "correlation":
            launches = {"start": start, "end": end, "lane": lanes(chunk), "correlation": numbers_of(chunk, "correlation")}
            return Linked(*link_by_correlation(launches, held, self.window_ns), held)
        return Linked(*link(start, end, lanes(chunk), held["start"], held["end"], held["lane"], self.window_ns), held)

    def _move(self, first: int, last: int) -> None:
        """Hold every transfer that ends at or after `first` less the window, and starts by `last`."""
        earliest = first - self.window_ns
        if self._coming is None:
            groups = [group for group, latest in zip(self.rows.groups, self.latest, strict=True) if latest >= earliest]
            self._coming = self.rows.chunks(list(self.COLUMNS), groups)
            self._next = next(self._coming, None)
        parts = []
        while self._next is not None and self._next.column("start_ns")[0] <= last:
            fresh = facts_of(self._next)
            parts.append({name: column[fresh["end"] >= earliest] for name, column in fresh.items()})
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
    """Return what is held of a chunk of transfers; see `Linked`."""
    return {
        "row": chunk.numbers(),
        "start": chunk.column("start_ns"),
        "end": ends(chunk),
        "bytes": numbers_of(chunk, "bytes"),
        "correlation": numbers_of(chunk, "correlation"),
        "copy_kind": chunk.column("copy_kind").astype(np.int64),
        "lane": lanes(chunk),
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
        self.rows, self.latest = source.rows, latest
        self.first = np.array([group.first for group in self.rows.groups], np.int64)
        self._held: dict[int, dict[int, intervals.Set]] = {}
        self._known = self._values = np.empty(0, np.int64)

    def of(self, linked: Linked) -> np.ndarray:
        """Return the exposed part in ns of each launch's transfer; int64, 0 where there is none. Ask in the order of time."""
        exposed = np.zeros(linked.index.size, np.int64)
        found = linked.found
        if not found.any():
            return exposed
        met = np.zeros(linked.held["row"].size, bool)
        met[linked.index[found]] = True
        row, start, end, lane = (linked.held[name][met] for name in ("row", "start", "end", "lane"))
        # long transfers are met again by later launches; of the others none needs to be remembered
        place = np.minimum(np.searchsorted(self._known, row), max(self._known.size - 1, 0))
        known = self._known[place] == row if self._known.size else np.zeros(row.size, bool)
        values = np.empty(row.size, np.int64)
        values[known] = self._values[place[known]]
        values[~known] = self._measure(start[~known], end[~known], lane[~known])
        self._known, self._values = row, values
        exposed[found] = values[(np.cumsum(met) - 1)[linked.index[found]]]
        return exposed

    def _measure(self, start: np.ndarray, end: np.ndarray, lane: np.ndarray) -> np.ndarray:
        exposed = end - start
        if exposed.size == 0:
            return exposed
        reach: dict[int, int] = {}
        begin, stop = start.min(), end.max()
        for place in np.flatnonzero((self.latest > begin) & (self.first < stop)).tolist():
            touched = (start < self.latest[place]) & (end > self.first[place])
            for value, (low, high) in self._busy(place).items() if touched.any() else ():
                mine = np.flatnonzero(touched & (lane == value))
                if mine.size:
                    # what earlier groups cover from here on is one stretch that reaches to their latest end
                    covered = max(reach.get(value, LONG_AGO), int(start[mine].min()))
                    near = slice(np.searchsorted(high, covered, side="right"), np.searchsorted(low, end[mine].max()))
                    part = (np.maximum(low[near], reach.get(value, LONG_AGO)), high[near])
                    exposed[mine] -= intervals.overlap(start[mine], end[mine], part)
                reach[value] = max(reach.get(value, LONG_AGO), int(high[-1]) if high.size else LONG_AGO)
        return exposed

    def _busy(self, place: int) -> dict[int, intervals.Set]:
        """Return the union of the kernels of one group of launches, by lane."""
        if place not in self._held:
            while len(self._held) >= HELD_GROUPS:
                del self._held[min(self._held)]
            parts: dict[int, list[intervals.Set]] = {}
            for chunk in self.rows.chunks(["start_ns", "duration_ns", "rank", "device"], [self.rows.groups[place]]):
                start, end = chunk.column("start_ns"), ends(chunk)
                for lane, mine in by_value(lanes(chunk)):
                    here = slice(None) if mine is None else mine
                    parts.setdefault(lane, []).append(intervals.union(start[here], end[here]))
            self._held[place] = {
                lane: intervals.union(*(np.concatenate(side) for side in zip(*sets, strict=True))) for lane, sets in parts.items()
            }
        return self._held[place]


def transfers_of(folder: Path) -> Rows | None:
    """Open an export's transfers; None if it has none."""
    path = folder / "transfers.parquet"
    return Rows(path, "transfers") if path.is_file() else None
