"""Stream an export's transfers beside its launches, and measure how much of a transfer no kernel hid.

Launches are read group by group; of the transfers, only those that can still matter are held. A transfer may last long, so row groups that
began long ago may matter too: the latest end of each row group, found in one pass that ranks divide among themselves, tells which.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causeway import intervals
from causeway.errors import TableError
from causeway.ranks import Ranks
from causeway.variability.links import NONE, by_value, link
from causeway.variability.sources import Chunk, Group, Rows, Source

UNKNOWN = np.iinfo(np.int64).min
"""Stands for a null in an integer column."""
HELD_GROUPS = 4
"""Groups of launches kept in memory for exposure: a transfer rarely reaches farther than into a neighbouring group."""


def lanes(chunk: Chunk) -> np.ndarray:
    """Number the (rank, device) of each row; int64."""
    return (chunk.integers("rank") << 16) | chunk.integers("device")


def ends(chunk: Chunk) -> np.ndarray:
    """Return the end of each row in ns; int64.

    Raises
    ------
    TableError
        For a negative duration; the message names the row.
    """
    duration = chunk.integers("duration_ns")
    wrong = np.flatnonzero(duration < 0)
    if wrong.size:
        raise TableError(f"{chunk.source.path}: row {chunk.row + wrong[0]} has duration {duration[wrong[0]]} ns; expected 0 or more")
    return chunk.integers("start_ns") + duration


def latest_ends(tables: list[Rows], ranks: Ranks) -> list[np.ndarray]:
    """Return, for each table, the latest end (ns) of each group of rows; groups are divided among ranks."""
    found = [np.zeros(len(rows.groups), np.int64) for rows in tables]
    with ranks.together():
        todo = [(table, place) for table, rows in enumerate(tables) for place in range(len(rows.groups))]
        for table, place in todo[ranks.rank :: ranks.size]:
            chunk = tables[table].read(tables[table].groups[place], ["start_ns", "duration_ns"])
            found[table][place] = ends(chunk).max()
    return [ranks.total(latest) for latest in found]


@dataclass
class Linked:
    """The transfer of each launch of a chunk.

    Arrays of int64, one element per launch: `row` of the transfer in its table or -1, and where there is one its `start`, `end` (ns, the
    export's clock), `bytes` (`UNKNOWN` if null), `copy_kind`, `lane`, and the `overlap` with the launch in ns.
    """

    row: np.ndarray
    start: np.ndarray
    end: np.ndarray
    bytes: np.ndarray
    copy_kind: np.ndarray
    lane: np.ndarray
    overlap: np.ndarray

    @property
    def found(self) -> np.ndarray:
        """Where a launch has a transfer; bool."""
        return self.row != NONE

    def take(self, rows: np.ndarray | slice) -> "Linked":
        """Return the elements at `rows`."""
        return Linked(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


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
    """

    COLUMNS = ("start_ns", "duration_ns", "rank", "device", "bytes", "copy_kind")

    def __init__(self, rows: Rows | None, latest: np.ndarray, window_ns: int) -> None:
        self.rows, self.latest, self.window_ns = rows, latest, window_ns
        self.next = 0
        self.held = {name: np.empty(0, np.int64) for name in ("row", "start", "end", "bytes", "copy_kind", "lane")}

    def link(self, chunk: Chunk, chosen: np.ndarray | None = None) -> Linked:
        """Link a chunk's launches, or the `chosen` ones among them (ascending indices), to their transfers."""
        start, end, lane = chunk.integers("start_ns"), ends(chunk), lanes(chunk)
        if chosen is not None:
            start, end, lane = start[chosen], end[chosen], lane[chosen]
        if self.rows is None or start.size == 0:
            nothing = np.full(start.size, NONE, np.int64)
            return Linked(nothing, *(np.zeros(start.size, np.int64) for _ in range(6)))
        self._move(start[0], end.max())
        held = self.held
        index, overlap = link(start, end, lane, held["start"], held["end"], held["lane"], self.window_ns)
        if held["row"].size == 0:
            return Linked(index, *(np.zeros(start.size, np.int64) for _ in range(5)), overlap)
        facts = {name: np.where(index == NONE, NONE if name == "row" else 0, column[index]) for name, column in held.items()}
        return Linked(**facts, overlap=overlap)

    def _move(self, first: int, last: int) -> None:
        """Hold every transfer that ends at or after `first` less the window, and starts by `last`."""
        earliest = first - self.window_ns
        parts = [self.held]
        while self.next < len(self.rows.groups) and self.rows.groups[self.next].first <= last:
            if self.latest[self.next] >= earliest:
                parts.append(self._read(self.rows.groups[self.next]))
            self.next += 1
        if len(parts) > 1:
            self.held = {name: np.concatenate([part[name] for part in parts]) for name in self.held}
        stays = self.held["end"] >= earliest
        if not stays.all():
            self.held = {name: column[stays] for name, column in self.held.items()}

    def _read(self, group: Group) -> dict[str, np.ndarray]:
        chunk = self.rows.read(group, list(self.COLUMNS))
        known = chunk.present("bytes")
        size = chunk.table.column("bytes").fill_null(0).to_numpy().astype(np.int64)
        return {
            "row": np.arange(chunk.row, chunk.row + chunk.size, dtype=np.int64),
            "start": chunk.integers("start_ns"),
            "end": ends(chunk),
            "bytes": np.where(known, size, UNKNOWN),
            "copy_kind": chunk.integers("copy_kind"),
            "lane": lanes(chunk),
        }


class Exposure:
    """How much of a transfer no kernel on its rank and device hid.

    Parameters
    ----------
    source : Source
        The export's launches.
    latest : ndarray of int64
        Latest end of each of its groups of launches, from `latest_ends`.
    """

    def __init__(self, source: Source, latest: np.ndarray) -> None:
        self.rows, self.latest = source.rows, latest
        self.first = np.array([group.first for group in self.rows.groups], np.int64)
        self._held: dict[int, dict[int, intervals.Set]] = {}
        self._known: dict[int, int] = {}

    def of(self, linked: Linked) -> np.ndarray:
        """Return the exposed part in ns of each launch's transfer; int64, 0 where there is none. Ask in the order of time."""
        found = np.flatnonzero(linked.found)
        exposed = np.zeros(linked.row.size, np.int64)
        if found.size == 0:
            return exposed
        rows, place, inverse = np.unique(linked.row[found], return_index=True, return_inverse=True)
        once = linked.take(found[place])
        fresh = np.flatnonzero([row not in self._known for row in rows.tolist()])
        values = self._measure(once.take(fresh))
        # long transfers are met again by later launches; of the others none needs to be remembered
        self._known = {row: self._known[row] for row in rows.tolist() if row in self._known}
        self._known |= dict(zip(rows[fresh].tolist(), values.tolist(), strict=True))
        exposed[found] = np.array([self._known[row] for row in rows.tolist()], np.int64)[inverse]
        return exposed

    def _measure(self, transfers: Linked) -> np.ndarray:
        exposed = transfers.end - transfers.start
        if exposed.size == 0:
            return exposed
        reach: dict[int, int] = {}
        begin, end = transfers.start.min(), transfers.end.max()
        for place in np.flatnonzero((self.latest > begin) & (self.first < end)).tolist():
            touched = (transfers.start < self.latest[place]) & (transfers.end > self.first[place])
            if not touched.any():
                continue
            for lane, (low, high) in self._busy(place).items():
                # what earlier groups cover from here on is one stretch that reaches to their latest end
                seen = np.searchsorted(high, reach.get(lane, -(1 << 62)), side="right")
                part = (np.maximum(low[seen:], reach.get(lane, -(1 << 62))), high[seen:])
                mine = np.flatnonzero(touched & (transfers.lane == lane))
                exposed[mine] -= intervals.overlap(transfers.start[mine], transfers.end[mine], part)
                if high.size:
                    reach[lane] = max(reach.get(lane, -(1 << 62)), int(high[-1]))
        return exposed

    def _busy(self, place: int) -> dict[int, intervals.Set]:
        """Return the union of the kernels of one group of launches, by lane."""
        if place not in self._held:
            while len(self._held) >= HELD_GROUPS:
                del self._held[min(self._held)]
            chunk = self.rows.read(self.rows.groups[place], ["start_ns", "duration_ns", "rank", "device"])
            start, end = chunk.integers("start_ns"), ends(chunk)
            self._held[place] = {
                lane: intervals.union(start, end) if mine is None else intervals.union(start[mine], end[mine])
                for lane, mine in by_value(lanes(chunk))
            }
        return self._held[place]


def transfers_of(folder: Path) -> Rows | None:
    """Open an export's transfers; None if it has none."""
    path = folder / "transfers.parquet"
    return Rows(path, "transfers") if path.is_file() else None
