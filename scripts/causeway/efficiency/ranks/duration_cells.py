"""Log durations of all launches in cells of device and block of time: two passes, the first for medians and scales."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causeway.core.clock import Clock
from causeway.core.names.build_numbers import names_of_one_kernel
from causeway.core.schemas import GRID_AND_BLOCK
from causeway.core.tables import folder_bytes, read_table
from causeway.efficiency.device_time import event_streams
from causeway.events.event_blocks import kernel_columns
from causeway.events.few_values import few_rows
from causeway.numeric.compiled import F8, I4, I8, U4, compiled, float64, int64, record, void
from causeway.numeric.mpi import Ranks, merged

BLOCKS = 32
"""Slices of the run's time: enough to see a warm-up, few enough that each holds launches of all ranks."""
CUT = 4.0
STEPS = 64
"""Steps per factor e of the histograms that give medians: they are right to 1.6 %."""
OCTAVES = 42
"""The histograms' range: e^42 ns are beyond a century."""
SLICE = 1 << 10
"""Histograms that are summed up over processes at a time."""
WANTED = ["start_ns", "duration_ns", "configuration", "rank", "device"]
LOGS = np.log(np.maximum(np.arange(1 << 16), 1).astype(float))
"""Logarithms of the durations of most launches, in ns: looked up in the second-level cache, a fifth of the time of
`numpy.log`, with the same bits.
"""


@dataclass(frozen=True, kw_only=True)
class DurationCells:
    """Deviations of log durations from the medians of their configurations, cut at `CUT` times the scale, in cells.

    Attributes
    ----------
    devices : list of (int, int)
        Rank and device.
    count, total, squares : ndarray of float64, shape (devices, BLOCKS)
        Launches, and sums of their deviations and of the squares.
    configurations : int
    between : float
        Variance between the medians of configurations, weighted by launches.
    """

    devices: list[tuple[int, int]]
    count: np.ndarray
    total: np.ndarray
    squares: np.ndarray
    configurations: int
    between: float


def duration_cells(folders: Sequence[Path], clocks: Mapping[int, Clock], ranks: Ranks) -> DurationCells | None:
    """Return the cells of a dataset; None without launches, and on other MPI ranks than 0.

    Parameters
    ----------
    folders : sequence of Path
        Exports with launches.
    clocks : mapping of int to Clock
        By rank.
    ranks : Ranks
        The processes that share the reading; their number changes no bit.
    """
    with ranks.together():
        indices = ranks.share_of([folder_bytes(folder) for folder in folders])
        keys = {index: _keys(folders[index]) for index in indices}
    keys = _of_one_kernel(merged(ranks.exchange(keys)))
    numbers: dict[tuple, int] = {}
    codes = [
        np.array([numbers.setdefault(key, len(numbers)) for key in keys[index]], np.int64)
        for index in range(len(folders))
    ]
    del keys
    with ranks.together():
        histogram = np.zeros((len(numbers), STEPS * OCTAVES), np.int64)
        seen = {index: _count_durations(folders[index], codes[index], clocks, histogram) for index in indices}
    if ranks.size > 1:
        for begin in range(0, len(numbers), SLICE):
            part = histogram[begin : begin + SLICE]
            part[...] = ranks.total(part)
    seen = merged(ranks.exchange(seen))
    devices = list(dict.fromkeys(device for of_export, _ in seen.values() for device in of_export))
    ends = [moment for _, moments in seen.values() for moment in moments]
    if not ends:
        return None
    before = np.cumsum(histogram, axis=1, out=histogram)
    launches = before[:, -1].copy()
    quartile = [
        (np.argmax(before >= np.maximum(launches * q, 1)[:, None], axis=1) + 0.5) / STEPS for q in (0.25, 0.5, 0.75)
    ]
    medians = quartile[1]
    scale = np.maximum((quartile[2] - quartile[0]) / 1.349, 1.0 / STEPS)
    del histogram, before
    edges = np.linspace(min(ends), max(ends) + 1, BLOCKS + 1).astype(np.int64)
    with ranks.together():
        sums = {
            index: _sum_deviations(folders[index], codes[index], clocks, medians, scale, edges) for index in indices
        }
    parts = ranks.collect(sums)
    if parts is None:
        return None
    count, total, squares = whole = np.zeros((3, len(devices), BLOCKS))
    number = {device: position for position, device in enumerate(devices)}
    for of_devices in merged(parts).values():
        for device, device_sums in of_devices.items():
            whole[:, number[device]] += device_sums
    weights = launches / launches.sum()
    between = float((weights * (medians - (weights * medians).sum()) ** 2).sum())
    return DurationCells(
        devices=devices,
        count=count,
        total=total,
        squares=squares,
        configurations=len(medians),
        between=between,
    )


def _keys(folder: Path) -> list[tuple]:
    """Return what tells each configuration of an export from others, in any export."""
    names = kernel_columns(folder, ["name"]).column("name").to_pylist()
    rows = read_table(folder / "configurations.parquet", "configurations").drop_columns(["configuration", "kernel"])
    return [(name, *row.values()) for name, row in zip(names, rows.to_pylist(), strict=True)]


def _of_one_kernel(keys: Mapping[int, Sequence[tuple]]) -> dict[int, list[tuple]]:
    """Return keys in which kernels that several builds of the program name otherwise have one name."""
    exports = []
    for export in keys.values():
        shapes: dict[str, set[tuple]] = {}
        for name, *shape in export:
            shapes.setdefault(name, set()).add(tuple(shape[: len(GRID_AND_BLOCK)]))
        exports.append(shapes)
    names = names_of_one_kernel(exports)
    return {number: [(names.get(key[0], key[0]), *key[1:]) for key in export] for number, export in keys.items()}


def _logs(batch) -> np.ndarray:
    """Return the natural logarithm of each duration, of 1 ns at least; float64, shape (rows,)."""
    duration = batch.column("duration_ns").to_numpy()
    logs = LOGS.take(duration, mode="clip")
    long = np.flatnonzero(duration >= LOGS.size)
    logs[long] = np.log(duration[long].astype(float))
    return logs


def _by_device(batch) -> tuple[list[tuple[int, int]], np.ndarray]:
    """Return rank and device of each device in a batch, ascending, and its number among them of each row; int32."""
    return few_rows(batch.column("rank").to_numpy(), batch.column("device").to_numpy())


def _count_durations(
    folder: Path, codes: np.ndarray, clocks: Mapping[int, Clock], histogram: np.ndarray
) -> tuple[list[tuple[int, int]], list[int]]:
    """Count an export's durations by configuration and step of their logarithm, into `histogram`; return its devices,
    (rank, device) in the order of their first launches, and its first and last starts on the dataset's time line.
    """
    devices: dict[tuple[int, int], None] = {}
    ends: list[int] = []
    for batch in event_streams.chunks(folder, "launches", WANTED):
        _count_steps(batch.column("configuration").to_numpy(), codes, _logs(batch), histogram)
        start = batch.column("start_ns").to_numpy()
        seen, number = _by_device(batch)
        for position, device in enumerate(seen):
            devices.setdefault(device)
            rows = (0, -1) if len(seen) == 1 else np.flatnonzero(number == position)[[0, -1]]
            ends += clocks[device[0]].aligned(start[list(rows)]).tolist()
            ends = [min(ends), max(ends)]
    return list(devices), ends


def _sum_deviations(
    folder: Path,
    codes: np.ndarray,
    clocks: Mapping[int, Clock],
    medians: np.ndarray,
    scale: np.ndarray,
    edges: np.ndarray,
) -> dict[tuple[int, int], np.ndarray]:
    """Return the sums of an export's devices: count, deviations and their squares; float, shape (3, blocks) each."""
    totals: dict[tuple[int, int], np.ndarray] = {}
    limits = DEVIATION_LIMITS.of(codes=codes, medians=medians, low=-CUT * scale, high=CUT * scale, edges=edges)
    for batch in event_streams.chunks(folder, "launches", WANTED):
        devices, number = _by_device(batch)
        start = batch.column("start_ns").to_numpy()
        one_rank = devices[0][0] == devices[-1][0]
        time = clocks[devices[0][0]].aligned(start) if one_rank else np.empty_like(start)
        for position, (rank, _) in enumerate(() if one_rank else devices):
            of_device = number == position
            time[of_device] = clocks[rank].aligned(start[of_device])
        # one piece of the table at a time: sums of floats depend on the order of their terms
        sums = np.zeros((len(devices), 3, BLOCKS))
        launches = TIMED_LAUNCHES.of(
            configurations=batch.column("configuration").to_numpy(), logs=_logs(batch), devices=number, times=time
        )
        _add_deviations(launches, limits, np.zeros(len(devices), np.int64), sums)
        for device, part in zip(devices, sums, strict=True):
            if device in totals:
                totals[device] += part
            else:
                totals[device] = part
    return totals


@compiled(void(U4, I8, F8, int64[:, ::1]))
def _count_steps(configurations, codes, logs, histogram):
    last = histogram.shape[1] - 1
    for i in range(configurations.size):
        step = min(int64(logs[i] * STEPS), last)
        histogram[codes[configurations[i]], step] += 1


TIMED_LAUNCHES = record("TIMED_LAUNCHES", configurations=U4, logs=F8, devices=I4, times=I8)
"""Launches of some devices.

Attributes
----------
configurations : ndarray of uint32, shape (n,)
logs : ndarray of float64, shape (n,)
    Of their durations.
devices : ndarray of int32, shape (n,)
times : ndarray of int64, shape (n,), ns
    On the dataset's time line.
"""


DEVIATION_LIMITS = record("DEVIATION_LIMITS", codes=I8, medians=F8, low=F8, high=F8, edges=I8)
"""What deviations are taken from, and within which limits.

Attributes
----------
codes : ndarray of int64, shape (configurations,)
    The dataset's number of each configuration of the export.
medians, low, high : ndarray of float64, shape (numbers,)
edges : ndarray of int64, shape (blocks + 1,), ns
"""


@compiled(void(TIMED_LAUNCHES, DEVIATION_LIMITS, int64[::1], float64[:, :, ::1]))
def _add_deviations(launches, limits, block_of, sums):
    """Add deviations to the sums of each device: count, deviations, squares, by block.

    `block_of` holds where each device is, int64 of shape (devices,). Moments outside of all blocks belong to the first
    or the last.
    """
    edges = limits.edges
    last = edges.size - 2
    for i in range(launches.configurations.size):
        code = limits.codes[launches.configurations[i]]
        deviation = min(max(launches.logs[i] - limits.medians[code], limits.low[code]), limits.high[code])
        device = int64(launches.devices[i])
        time = launches.times[i]
        block = block_of[device]
        while block < last and edges[block + 1] <= time:
            block += 1
        while block > 0 and edges[block] > time:
            block -= 1
        block_of[device] = block
        sums[device, 0, block] += 1.0
        sums[device, 1, block] += deviation
        sums[device, 2, block] += deviation * deviation
