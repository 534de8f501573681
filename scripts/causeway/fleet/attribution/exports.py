"""Real exports as sequences of launches: an agent's input, in any format that Causeway reads.

It takes one rank's normalised tables (`launches`, `configurations`, `kernels`, `transfers`) and nothing else.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causeway.core.errors import CausewayError
from causeway.core.tables import read_table
from causeway.fleet.attribution.catalogue import TrainingRun
from causeway.fleet.report_layout import WINDOW_S
from causeway.numeric.intervals import length, union

LEAST_LAUNCHES = 32
"""Streams with fewer launches are not learnt from: they do not identify an application."""


@dataclass(frozen=True, kw_only=True)
class LaunchStream:
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


def streams(folder: Path) -> list[LaunchStream]:
    """Return the streams of an export's tables, the one with most launches first.

    Raises
    ------
    CausewayError
        If the export holds no launch.
    """
    folder = Path(folder)
    if not (folder / "launches.parquet").exists():
        raise CausewayError(f"{folder}: holds no launches; an agent needs a trace with kernel launches")
    table = read_table(
        folder / "launches.parquet",
        "launches",
        ["start_ns", "duration_ns", "configuration", "rank", "device", "stream"],
    )
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    kernel_of = read_table(folder / "configurations.parquet", "configurations", ["kernel"]).column("kernel").to_numpy()
    names = np.array(
        read_table(folder / "kernels.parquet", "kernels", ["name"]).column("name").to_pylist(), dtype=object
    )
    kernel = kernel_of[columns["configuration"]]
    identity = np.column_stack([columns["rank"], columns["device"], columns["stream"]]).astype(np.int64)
    distinct, stream = np.unique(identity, axis=0, return_inverse=True)
    stream = stream.ravel()
    streams = []
    for index in np.argsort(-np.bincount(stream, minlength=len(distinct)), kind="stable").tolist():
        rows = np.nonzero(stream == index)[0]
        rows = rows[np.argsort(columns["start_ns"][rows], kind="stable")]
        device = (int(distinct[index, 0]), int(distinct[index, 1]))
        streams.append(
            LaunchStream(
                names=names[kernel[rows]],
                start_ns=columns["start_ns"][rows],
                duration_ns=columns["duration_ns"][rows],
                device=device,
            )
        )
    if not streams:
        raise CausewayError(f"{folder}: holds no launches; an agent needs a trace with kernel launches")
    return streams


def runs_of(folders: Iterable[Path]) -> list[TrainingRun]:
    """Return the runs that a catalogue learns from exports' tables: one application per dataset, named after it.

    Raises
    ------
    CausewayError
        If a dataset has no stream of `LEAST_LAUNCHES`: it would be missing in the catalogue.
    """
    runs = []
    wanted = []
    for folder in folders:
        dataset = Path(folder).parts[-3]
        wanted.append(dataset)
        for stream in streams(folder):
            if len(stream.names) >= LEAST_LAUNCHES:
                runs.append(
                    TrainingRun(
                        application=dataset,
                        family=dataset,
                        version="",
                        names=stream.names.tolist(),
                        durations=stream.duration_ns.astype(np.float64),
                    )
                )
    if short := sorted(set(wanted) - {run.application for run in runs}):
        raise CausewayError(
            f"fleet/learn_from: {', '.join(short)}: no stream has {LEAST_LAUNCHES} launches, so that nothing can be"
            " learnt; give a longer trace, or leave it out"
        )
    return runs


@dataclass(frozen=True, kw_only=True)
class SampledWindow:
    """Consecutive launches that an agent samples.

    Attributes
    ----------
    names : ndarray of object, shape (n,)
    duration_ns : ndarray of int64, shape (n,)
    busy : float
        Share of the window in which the device worked, 0 to 1.
    totals : ndarray of float64, shape (3,)
        GPU-ms, launches and MiB moved, scaled to a window of a minute; MiB is NaN where transfers were not recorded.
    """

    names: np.ndarray
    duration_ns: np.ndarray
    busy: float
    totals: np.ndarray


def sampled_window(
    folder: Path, streams: list[LaunchStream], index: int, *, first: int, launches: int
) -> SampledWindow:
    """Return a window of an export's launches.

    Parameters
    ----------
    folder : Path
        Of the export's tables.
    streams : list of LaunchStream
        Its streams.
    index, first, launches : int
        The stream, its first launch in the window, and how many; fewer at the stream's end.
    """
    stream = streams[index]
    last = min(first + launches, len(stream.names))
    low = int(stream.start_ns[first])
    high = int(stream.start_ns[last - 1] + stream.duration_ns[last - 1])
    same_device = [other for other in streams if other.device == stream.device]
    start = np.concatenate([other.start_ns for other in same_device])
    end = np.minimum(start + np.concatenate([other.duration_ns for other in same_device]), high)
    inside = (end > low) & (start < high)
    worked = length(union(np.maximum(start[inside], low), end[inside]))
    span = max(high - low, 1)
    window_ns = WINDOW_S * 1e9
    begun = int(((start >= low) & (start < high)).sum())
    moved = _mib_moved(folder, stream.device, low, high)
    busy = min(worked / span, 1.0)
    scale = window_ns / span
    return SampledWindow(
        names=stream.names[first:last],
        duration_ns=stream.duration_ns[first:last],
        busy=busy,
        totals=np.array([busy * window_ns / 1e6, begun * scale, moved * scale]),
    )


def _mib_moved(folder: Path, device: tuple[int, int], low: int, high: int) -> float:
    """Return the MiB whose transfers began in a window on a device; NaN where unknown."""
    path = Path(folder) / "transfers.parquet"
    if not path.exists():
        return float("nan")
    table = read_table(path, "transfers", ["start_ns", "bytes", "rank", "device"])
    start, rank, index = (table.column(name).to_numpy() for name in ("start_ns", "rank", "device"))
    size = table.column("bytes").to_numpy(zero_copy_only=False).astype(np.float64)
    return float(np.nansum(size[(start >= low) & (start < high) & (rank == device[0]) & (index == device[1])])) / 2**20
