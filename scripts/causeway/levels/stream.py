"""The rows of an export in the order of time, as the sums of a tower take them: lanes, classes, means, directions and stalls as numbers."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.errors import TableError
from causeway.levels import cells
from causeway.tables import KERNEL_CLASSES, LAUNCH_SHAPE, open_table, read_table

CHUNK_ROWS = 1 << 17
"""Rows that are worked on at once: a megabyte per column."""
DIRECTIONS = {1: 0, 3: 0, 6: 0, 11: 0, 2: 1, 4: 1, 7: 1, 12: 1, 255: 3}
"""Copy kinds by direction: 0 host to device, 1 device to host, 3 memory set; all others (2) stay on the device or run between devices."""
Link = Callable[..., tuple[np.ndarray, np.ndarray]]
"""`link(start, end, lane, t_start, t_end, t_lane, window)` gives for each launch the place of its transfer, or -1, and their overlap."""


def chunks(path: Path, name: str, columns: list[str], time: str = "start_ns") -> Iterator[pa.RecordBatch]:
    """Yield some columns of a table in bounded pieces.

    Raises
    ------
    TableError
        If its rows are not in the order of time.
    """
    before, row = None, 0
    with open_table(path, name) as file:
        for batch in file.iter_batches(CHUNK_ROWS, columns=columns, use_threads=False):
            if not batch.num_rows:
                continue
            if time in columns:
                at = batch.column(time).to_numpy()
                falls = np.flatnonzero(np.diff(at) < 0)
                if falls.size or (before is not None and at[0] < before):
                    place = row + (int(falls[0]) + 1 if falls.size else 0)
                    raise TableError(f"{path}: row {place} begins before the row above it; expected rows ordered by {time}")
                before = int(at[-1])
            row += batch.num_rows
            yield batch


def launches_in(folder: Path) -> int:
    """Return the number of an export's launches."""
    path = folder / "launches.parquet"
    if not path.is_file():
        return 0
    with open_table(path, "launches") as file:
        return file.metadata.num_rows


class Lanes:
    """The streams and devices of an export, numbered as they come."""

    def __init__(self) -> None:
        self.streams: dict[tuple[int, int, int], int] = {}
        self.devices: dict[tuple[int, int], int] = {}
        self.device_of = np.empty(0, np.int64)
        self._cache = np.full((cells.LANE_SLOTS, 4), -1, np.int64)

    def of(self, batch: pa.RecordBatch) -> np.ndarray:
        """Return the lane of each row; int64."""
        rank, device, stream = (batch.column(name).to_numpy() for name in ("rank", "device", "stream"))
        lane = np.empty(batch.num_rows, np.int64)
        if not cells.find_lanes(rank, device, stream, self._cache, lane):
            places = np.flatnonzero(lane < 0)
            keys = np.column_stack([column[places].astype(np.int64) for column in (rank, device, stream)])
            distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
            numbers = [self._number(*key) for key in distinct.tolist()]
            lane[places] = np.array(numbers, np.int64)[inverse.ravel()]
        return lane

    def _number(self, rank: int, device: int, stream: int) -> int:
        number = self.streams.setdefault((rank, device, stream), len(self.streams))
        if number == self.device_of.size:
            self.device_of = np.append(self.device_of, self.device(rank, device))
        self._cache[cells.lane_slot(rank, device, stream)] = (rank, device, stream, number)
        return number

    def device(self, rank: int, device: int) -> int:
        """Return the number of a device."""
        return self.devices.setdefault((rank, device), len(self.devices))


class Means:
    """The mean duration of each configuration over all exports, in whole ns.

    A configuration is the same everywhere if the full kernel name, the launch shape and the label agree. Sums are exact; the mean is
    rounded to the nearest ns, so that variability stays an integer, at most half a nanosecond off.
    """

    def __init__(self, folders: Mapping[str, Path]) -> None:
        sums: dict[tuple, list[int]] = {}
        keys = {export: configurations_of(folder) for export, folder in folders.items()}
        for export, folder in folders.items():
            count, total = (np.zeros(len(keys[export]), np.int64) for _ in range(2))
            row = 0
            for batch in chunks(folder / "launches.parquet", "launches", ["duration_ns", "configuration"]):
                number = batch.column("configuration").to_numpy().astype(np.int64)
                wrong = cells.sum_by_configuration(number, batch.column("duration_ns").to_numpy(), count, total)
                if wrong >= 0:
                    raise TableError(
                        f"{folder}/launches.parquet: row {row + wrong} has configuration {number[wrong]}, which configurations.parquet"
                        " does not have"
                    )
                row += batch.num_rows
            for key, n, amount in zip(keys[export], count.tolist(), total.tolist(), strict=True):
                if key is not None:
                    held = sums.setdefault(key, [0, 0])
                    held[0] += n
                    held[1] += amount
        self.mean = {
            export: np.array([_rounded(*sums[key]) if key else 0 for key in known], np.int64).reshape(-1) for export, known in keys.items()
        }
        self.kind = {
            export: np.array([KERNEL_CLASSES.index(key[0]) if key else 0 for key in known], np.int64) for export, known in keys.items()
        }


def _rounded(count: int, total: int) -> int:
    return (2 * total + count) // (2 * count) if count else 0


def configurations_of(folder: Path) -> list[tuple | None]:
    """Return what an export's configurations are, by their numbers: class, kernel's name, shape, label; None for numbers not in use."""
    kernels = {row["kernel"]: (row["class"], row["name"]) for row in read_table(folder / "kernels.parquet", "kernels").to_pylist()}
    rows = read_table(folder / "configurations.parquet", "configurations").to_pylist()
    found: list[tuple | None] = [None] * (max((row["configuration"] for row in rows), default=-1) + 1)
    for row in rows:
        found[row["configuration"]] = (*kernels[row["kernel"]], tuple(row[name] for name in LAUNCH_SHAPE), row["label"])
    return found


class Transfers:
    """An export's transfers beside its launches: those that are next to be counted, and those that a launch may still be linked to.

    Parameters
    ----------
    path : Path
        The table; it need not exist.
    lanes : Lanes
    window_ns : int
        How long before a launch a transfer may have ended to be linked to it.
    """

    COLUMNS = ("start_ns", "duration_ns", "bytes", "copy_kind", "rank", "device", "stream")

    def __init__(self, path: Path, lanes: Lanes, window_ns: int) -> None:
        self.lanes, self.window_ns = lanes, window_ns
        self._coming = chunks(path, "transfers", list(self.COLUMNS)) if path.is_file() else iter(())
        self._next = next(self._coming, None)
        self._held = np.empty((0, 5), np.int64)
        self._counted = 0

    def _load(self, last: int | None) -> None:
        """Hold every transfer that begins by `last`; all for None."""
        while self._next is not None and (last is None or self._next.column("start_ns")[0].as_py() <= last):
            self._held = np.vstack((self._held, self._facts(self._next)))
            self._next = next(self._coming, None)

    def _facts(self, batch: pa.RecordBatch) -> np.ndarray:
        """Return start, duration, lane, direction and bytes (-1 if unknown) of each row."""
        kinds = batch.column("copy_kind").to_numpy()
        direction = np.full(256, 2, np.int64)
        direction[list(DIRECTIONS)] = list(DIRECTIONS.values())
        size = pc.fill_null(batch.column("bytes"), -1).to_numpy()
        start, duration = batch.column("start_ns").to_numpy(), batch.column("duration_ns").to_numpy()
        return np.column_stack((start, duration, self.lanes.of(batch), direction[kinds], size))

    def due(self, last: int | None) -> tuple[np.ndarray, ...]:
        """Return the columns of the transfers that begin by `last` (all for None) and were not returned before."""
        self._load(last)
        stop = len(self._held) if last is None else int(np.searchsorted(self._held[:, 0], last, side="right"))
        rows = self._held[self._counted : stop]
        self._counted = stop
        return tuple(np.ascontiguousarray(rows[:, column]) for column in range(5))

    def stalls(self, start: np.ndarray, duration: np.ndarray, lane: np.ndarray, link: Link | None) -> np.ndarray:
        """Return |duration of the launch - that of its linked transfer| in ns, -1 where there is none; launches come in order of time."""
        stall = np.full(start.size, -1, np.int64)
        if link is None:
            return stall
        end = start + duration
        self._load(int(end.max()))
        alive = (self._held[:, 0] + self._held[:, 1] >= start[0] - self.window_ns) | (np.arange(len(self._held)) >= self._counted)
        self._counted -= int((~alive[: self._counted]).sum())
        self._held = self._held[alive]
        if not len(self._held):
            return stall
        begun, lasted, theirs = (np.ascontiguousarray(self._held[:, column]) for column in range(3))
        device_of = self.lanes.device_of
        place, _ = link(start, end, device_of[lane], begun, begun + lasted, device_of[theirs], self.window_ns)
        found = place >= 0
        stall[found] = np.abs(duration[found] - lasted[place[found]])
        return stall
