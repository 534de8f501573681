"""Real exports as sequences of launches: what an agent sees where a profiler wrote it down, in any format that Causeway reads.

It takes one rank's normalised tables (`launches`, `configurations`, `kernels`, `transfers`) and nothing else.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causeway.errors import CausewayError
from causeway.fleet.catalogue import Run
from causeway.intervals import length, union
from causeway.tables import read_table

LEAST_LAUNCHES = 32
"""Streams with fewer launches are not learnt from: they say little of an application."""


@dataclass(frozen=True)
class Stream:
    """The launches of one stream of one rank and device, in order of their start.

    Attributes
    ----------
    names : ndarray of object, shape (n,)
        Full kernel names.
    start_ns, duration_ns : ndarray of int64, shape (n,)
    device : tuple of int
        Rank and device.
    """

    names: np.ndarray
    start_ns: np.ndarray
    duration_ns: np.ndarray
    device: tuple[int, int]


def streams(folder: Path) -> list[Stream]:
    """Return the streams of an export's tables, the one with most launches first.

    Raises
    ------
    CausewayError
        If the export holds no launch.
    """
    folder = Path(folder)
    if not (folder / "launches.parquet").exists():
        raise CausewayError(f"{folder}: holds no launches; an agent needs a trace with kernel launches")
    table = read_table(folder / "launches.parquet", "launches", ["start_ns", "duration_ns", "configuration", "rank", "device", "stream"])
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    kernel_of = read_table(folder / "configurations.parquet", "configurations", ["kernel"]).column("kernel").to_numpy()
    names = np.array(read_table(folder / "kernels.parquet", "kernels", ["name"]).column("name").to_pylist(), dtype=object)
    kernel = kernel_of[columns["configuration"]]
    lanes = np.column_stack([columns["rank"], columns["device"], columns["stream"]]).astype(np.int64)
    distinct, lane = np.unique(lanes, axis=0, return_inverse=True)
    found = []
    for number in np.argsort(-np.bincount(lane.ravel(), minlength=len(distinct)), kind="stable").tolist():
        rows = np.nonzero(lane.ravel() == number)[0]
        rows = rows[np.argsort(columns["start_ns"][rows], kind="stable")]
        where = (int(distinct[number, 0]), int(distinct[number, 1]))
        found.append(Stream(names[kernel[rows]], columns["start_ns"][rows], columns["duration_ns"][rows], where))
    if not found:
        raise CausewayError(f"{folder}: holds no launches; an agent needs a trace with kernel launches")
    return found


def runs_of(folders: Iterable[Path]) -> list[Run]:
    """Return the runs that a catalogue learns from exports' tables: one application per dataset, named after it."""
    runs = []
    for folder in folders:
        dataset = Path(folder).parts[-3]
        for stream in streams(folder):
            if len(stream.names) >= LEAST_LAUNCHES:
                runs.append(Run(dataset, dataset, "", stream.names.tolist(), stream.duration_ns.astype(np.float64)))
    return runs


@dataclass(frozen=True)
class Window:
    """A stretch of launches that an agent looks at.

    Attributes
    ----------
    names, duration_ns : ndarray, shape (n,)
    busy : float
        Share of the window in which the device worked, 0 to 1.
    totals : ndarray of float64, shape (3,)
        GPU-ms, launches and MiB moved, scaled to a window of a minute; MiB is NaN where transfers were not recorded.
    """

    names: np.ndarray
    duration_ns: np.ndarray
    busy: float
    totals: np.ndarray


def window(folder: Path, found: list[Stream], which: int, first: int, launches: int, seconds: float) -> Window:
    """Return the window of `launches` launches of stream `which` from number `first` on, or up to the stream's end."""
    stream = found[which]
    last = min(first + launches, len(stream.names))
    low, high = int(stream.start_ns[first]), int(stream.start_ns[last - 1] + stream.duration_ns[last - 1])
    mates = [mate for mate in found if mate.device == stream.device]
    start = np.concatenate([mate.start_ns for mate in mates])
    end = np.minimum(start + np.concatenate([mate.duration_ns for mate in mates]), high)
    inside = (end > low) & (start < high)
    worked = length(union(np.maximum(start[inside], low), end[inside]))
    span, minute = max(high - low, 1), seconds * 1e9
    begun = int(((start >= low) & (start < high)).sum())
    moved = _moved(folder, stream.device, low, high)
    busy = min(worked / span, 1.0)
    scale = minute / span
    return Window(
        stream.names[first:last], stream.duration_ns[first:last], busy, np.array([busy * minute / 1e6, begun * scale, moved * scale])
    )


def _moved(folder: Path, device: tuple[int, int], low: int, high: int) -> float:
    """Return the MiB whose transfers began in a window on a device; NaN where unknown."""
    path = Path(folder) / "transfers.parquet"
    if not path.exists():
        return float("nan")
    table = read_table(path, "transfers", ["start_ns", "bytes", "rank", "device"])
    start, rank, number = (table.column(name).to_numpy() for name in ("start_ns", "rank", "device"))
    size = table.column("bytes").to_numpy(zero_copy_only=False).astype(np.float64)
    return float(np.nansum(size[(start >= low) & (start < high) & (rank == device[0]) & (number == device[1])])) / 2**20
