"""The rows of an export in the order of time, as the sums of a tower take them: lanes, classes and means as numbers."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.errors import TableError
from causeway.levels import cells
from causeway.slices import first_fall
from causeway.tables import KERNEL_CLASSES, LAUNCH_SHAPE, open_table, read_table

CHUNK_ROWS = 1 << 16
"""Rows that are worked on at once: half a megabyte per column."""
STRETCHES, STRETCH_ROWS = 8, 1 << 15


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
                place = first_fall(at, at[0] if before is None else before)
                if place >= 0:
                    raise TableError(f"{path}: row {row + place} begins before the row above it; expected rows ordered by {time}")
                before = at[-1]
            row += batch.num_rows
            yield batch


def stretches(path: Path, name: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield some columns of the first `STRETCH_ROWS` rows of up to `STRETCHES` row groups, evenly spread over a table."""
    with open_table(path, name) as file:
        groups = range(file.num_row_groups)
        for group in groups[:: -(-len(groups) // STRETCHES)]:
            yield next(file.iter_batches(STRETCH_ROWS, row_groups=[group], columns=columns, use_threads=False))


def span_of(path: Path) -> int:
    """Return the ns between the begins of a table of launches, less those between its row groups."""
    with open_table(path, "launches") as file:
        statistics = [file.metadata.row_group(k).column(0).statistics for k in range(file.metadata.num_row_groups)]
    return sum(one.max - one.min for one in statistics if one is not None and one.has_min_max)


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
                number = batch.column("configuration").to_numpy()
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
