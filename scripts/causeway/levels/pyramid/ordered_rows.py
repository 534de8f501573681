"""The rows of an export in the order of time, and what is known of their configurations: class and mean duration.

Numbers for the streams and devices of an export, given in the order in which they are met.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.clock import Clock
from causeway.core.codes import KERNEL_CLASSES
from causeway.core.errors import TableError
from causeway.core.tables import LAUNCH_SHAPE, extremes, open_table, read_table
from causeway.events.few_values import RowNumbers
from causeway.numeric.slice_statistics import first_fall

CHUNK_ROWS = 1 << 16
"""Rows that are worked on at once: half a megabyte per column."""
SAMPLES = 8
SAMPLE_ROWS = 1 << 15
LEAST_SAMPLE_ROWS = 1 << 12
SAMPLED_PART = 16
"""Stretches of rows by which the first width is chosen: so many, of so many rows at most and at least; of a short table
one row in so many.
"""
OWN_CLOCK = Clock()


def chunks(
    path: Path, name: str, columns: list[str], time: str = "start_ns", clock: Clock = OWN_CLOCK
) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a table in bounded pieces; times as a clock aligns them.

    Raises
    ------
    TableError
        If its rows are not in the order of time.
    """
    before = None
    row = 0
    with open_table(path, name) as file:
        for batch in file.iter_batches(CHUNK_ROWS, columns=columns, use_threads=False):
            if not batch.num_rows:
                continue
            if time in columns:
                times = batch.column(time).to_numpy()
                index = first_fall(times, times[0] if before is None else before)
                if index >= 0:
                    raise TableError(
                        f"{path}: row {row + index} begins before the row above it; expected rows ordered by {time}"
                    )
                before = times[-1]
            row += batch.num_rows
            yield on_time_line(batch, time, clock)


def on_time_line(batch: pa.RecordBatch, time: str, clock: Clock) -> pa.RecordBatch:
    """Return rows with their times as a clock aligns them."""
    index = batch.schema.get_field_index(time)
    if index < 0 or clock == OWN_CLOCK:
        return batch
    aligned = pa.array(clock.aligned(batch.column(index).to_numpy()))
    return batch.set_column(index, batch.schema.field(index), aligned)


def sampled_rows(path: Path, name: str, columns: list[str], clock: Clock = OWN_CLOCK) -> Iterator[pa.RecordBatch]:
    """Yield some columns of the first rows of up to `SAMPLES` row groups, evenly spread over a table, `SAMPLE_ROWS` or
    fewer of each; times as a clock aligns them.
    """
    with open_table(path, name) as file:
        groups = range(file.num_row_groups)
        groups = groups[:: -(-len(groups) // SAMPLES)]
        wanted = file.metadata.num_rows // (SAMPLED_PART * len(groups))
        wanted = min(max(wanted, LEAST_SAMPLE_ROWS), SAMPLE_ROWS)
        for group in groups:
            rows = next(file.iter_batches(wanted, row_groups=[group], columns=columns, use_threads=False))
            yield on_time_line(rows, "start_ns", clock)


def extent_of(path: Path) -> tuple[int, int]:
    """Return the ns between the begins of a table of launches, which has rows: less those between its row groups, and
    from the first to the last.
    """
    with open_table(path, "launches") as file:
        groups = [file.metadata.row_group(k) for k in range(file.num_row_groups)]
        statistics = [group.column(0).statistics for group in groups]
        filled = [k for k, group in enumerate(groups) if group.num_rows]
        reach = extremes(file, filled[-1], "start_ns")[1] - extremes(file, filled[0], "start_ns")[0]
    return sum(limits.max - limits.min for limits in statistics if limits is not None and limits.has_min_max), reach


def launches_in(folder: Path) -> int:
    """Return the number of an export's launches."""
    path = folder / "launches.parquet"
    if not path.is_file():
        return 0
    with open_table(path, "launches") as file:
        return file.metadata.num_rows


class Means:
    """The mean duration of each configuration over all exports, in whole ns.

    A configuration is the same everywhere if the full kernel name, the launch shape and the label agree. Sums are
    exact; the mean is rounded to the nearest ns, so that variability stays an integer, at most half a nanosecond off.

    Parameters
    ----------
    folders : mapping of str to Path
        Folder of tables of each export whose means are asked for.
    parts : sequence of dict, optional
        `durations_of` of disjoint sets of exports, all exports together; None if `folders` are all.
    keys : mapping of str to list, optional
        `configurations_of` of each of `folders`, if they were read before.

    Attributes
    ----------
    mean, kind : dict of str to ndarray of int64
        Mean in ns and class of each configuration of each export of `folders`.
    """

    def __init__(
        self,
        folders: Mapping[str, Path],
        parts: Sequence[Mapping[tuple, list[int]]] | None = None,
        keys: Mapping[str, Sequence[tuple | None]] | None = None,
    ) -> None:
        keys = keys or {export: configurations_of(folder) for export, folder in folders.items()}
        sums: dict[tuple, list[int]] = {}
        for part in [durations_of(folders, keys)] if parts is None else parts:
            for key, (count, total) in part.items():
                _add(sums, key, count, total)
        self.mean = {
            export: np.array([_rounded(*sums[key]) if key else 0 for key in export_keys], np.int64).reshape(-1)
            for export, export_keys in keys.items()
        }
        self.kind = {
            export: np.array([KERNEL_CLASSES.index(key[0]) if key else 0 for key in export_keys], np.int64)
            for export, export_keys in keys.items()
        }


def durations_of(
    folders: Mapping[str, Path], configurations: Mapping[str, Sequence[tuple | None]]
) -> dict[tuple, list[int]]:
    """Return the launches of some exports and their summed durations (ns) by what their configuration is.

    Parameters
    ----------
    folders : mapping of str to Path
        Folder of tables of each export.
    configurations : mapping of str to list
        `configurations_of` of each of them.

    Raises
    ------
    TableError
        If a launch has a configuration that its export does not describe.
    """
    sums: dict[tuple, list[int]] = {}
    for export, folder in folders.items():
        keys = configurations[export]
        count, total = (np.zeros(len(keys), np.int64) for _ in range(2))
        row = 0
        for batch in chunks(folder / "launches.parquet", "launches", ["duration_ns", "configuration"]):
            number = batch.column("configuration").to_numpy()
            unknown = np.flatnonzero(number >= len(keys))
            if unknown.size:
                raise TableError(
                    f"{folder}/launches.parquet: row {row + unknown[0]} has configuration {number[unknown[0]]}, which"
                    " configurations.parquet does not have"
                )
            count += np.bincount(number, minlength=len(keys))
            np.add.at(total, number, batch.column("duration_ns").to_numpy())
            row += batch.num_rows
        for key, n, amount in zip(keys, count.tolist(), total.tolist(), strict=True):
            if key is not None:
                _add(sums, key, n, amount)
    return sums


def _add(sums: dict[tuple, list[int]], key: tuple, count: int, total: int) -> None:
    held = sums.setdefault(key, [0, 0])
    held[0] += count
    held[1] += total


def _rounded(count: int, total: int) -> int:
    return (2 * total + count) // (2 * count) if count else 0


def configurations_of(folder: Path) -> list[tuple | None]:
    """Return what an export's configurations are, by their numbers: class, kernel's name, shape, label; None for
    numbers not in use.
    """
    kernels = {
        row["kernel"]: (row["class"], row["name"])
        for row in read_table(folder / "kernels.parquet", "kernels").to_pylist()
    }
    rows = read_table(folder / "configurations.parquet", "configurations")
    numbers, kernel, label = (rows.column(name).to_pylist() for name in ("configuration", "kernel", "label"))
    shapes = zip(*(rows.column(name).to_pylist() for name in LAUNCH_SHAPE), strict=True)
    keys: list[tuple | None] = [None] * (max(numbers, default=-1) + 1)
    for number, kernel_id, shape, text in zip(numbers, kernel, shapes, label, strict=True):
        keys[number] = (*kernels[kernel_id], shape, text)
    return keys


class StreamNumbers:
    """The streams and devices of an export, numbered as they come.

    Attributes
    ----------
    streams, devices : RowNumbers
        By rank, device and stream; by rank and device.
    device_of : ndarray of int64, shape (streams,)
        The number of each stream's device.
    """

    def __init__(self) -> None:
        self.streams = RowNumbers()
        self.devices = RowNumbers()
        self.device_of = np.empty(0, np.int64)

    def of(self, batch: pa.RecordBatch) -> np.ndarray:
        """Return the number of each row's stream; int64."""
        number = self.streams.of(*(batch.column(name).to_numpy() for name in ("rank", "device", "stream")))
        if len(self.streams) > self.device_of.size:
            self.device_of = np.array([self.devices.number(row[:2]) for row in self.streams.rows], np.int64)
        return number.astype(np.int64)

    def of_devices(self, batch: pa.RecordBatch) -> np.ndarray:
        """Return the number of each row's device.

        Parameters
        ----------
        batch : RecordBatch
            With the columns rank and device.

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        return self.devices.of(*(batch.column(name).to_numpy() for name in ("rank", "device"))).astype(np.int64)
