"""What one export's devices and hosts did, in one pass over its ordered tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from causeway.core.errors import TableError
from causeway.core.reduced import has_time_line
from causeway.core.tables import read_json, rows_if_there
from causeway.efficiency.device_time import event_streams, regions
from causeway.efficiency.device_time.event_streams import LaunchSums
from causeway.efficiency.device_time.states import CALL, MPI, STATES
from causeway.efficiency.device_time.sweep import COPY_FIELDS, Sweep, take_copies
from causeway.events.device_events import UNKNOWN
from causeway.events.event_blocks import only, spans, widen
from causeway.events.few_values import RowNumbers, few_rows
from causeway.numeric import intervals

COPY_KINDS = 256
EVENT = ("start", "end", "rank", "device", "kind", "returned", "launch")
"""What is needed of launches, transfers and graphs."""
Windows = Mapping[int, tuple[int, int]]
"""Begin and end of a time by rank, ns, own clock."""
Device = tuple[int, int]
"""Rank, and the number that the rank has for the device."""
ALWAYS = -(1 << 62), 1 << 62
"""A window without end: regions of the host may lie outside the device's window."""


PATH_FIELDS = ("launches", "kernel_ns", "queued", "queue_ns")
"""Launches and their durations; those that started after their call had returned, and the time between."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    """An export before its pass.

    Attributes
    ----------
    windows : dict of int to (int, int)
        Start of the first and end of the last launch, transfer or graph of each rank, ns, own clock.
    devices : list of Device
        Ascending.
    graphs : mapping of int to int
        How many executions of whole graphs each rank has, where it has any.
    graph_durations : list of int
        The sum, the least and the largest of their durations, ns; empty without any.
    gpus : dict of Device to str
        Which GPU a device is, where the export says so: digits within the export, else anywhere.
    format : str or None
        Its word, as the sheet names it.
    """

    export: str
    folder: Path
    node: str | None
    windows: dict[int, tuple[int, int]]
    devices: list[Device]
    graphs: Mapping[int, int]
    graph_durations: list[int] = field(default_factory=list)
    issues: frozenset[str] = frozenset()
    gpus: Mapping[Device, str] = field(default_factory=dict)
    format: str | None = None

    @property
    def copies_recorded(self) -> bool:
        """Whether the export holds any copies; one without any may have had none, or not have looked."""
        return "no_transfers" not in self.issues

    @property
    def launches_missing(self) -> bool:
        """Whether the numbers of its launches show that others ran between them."""
        return "missing_dispatches" in self.issues


@dataclass(kw_only=True)
class Measured:
    """An export after its pass; times are ns, arrays int64.

    Attributes
    ----------
    windows : mapping of int to (int, int)
        The time in which each rank was measured, own clock.
    total, binned, within : ndarray, shapes of `sweep.Sweep`
        A row per device; regions in the order of `regions`.
    events : ndarray, shape (devices,)
        Launches, transfers and executions of whole graphs.
    copies : ndarray, shape of `sweep.COPY_FIELDS` per device and kind
    path : ndarray, shape (4,)
        `PATH_FIELDS`, of all devices.
    host : dict of (int, int) to ndarray, shape (1 + regions, 32)
        By rank and thread: time in each state, in the rank's window and in each region.
    region_ns : dict of int to ndarray, shape (regions,)
        By rank: how long it was inside each region.
    mpi_outside_ns : int
        Time in MPI before and after the windows, summed over threads.
    launches : LaunchSums
        None where nothing was measured.
    """

    opened: Opened
    windows: Windows
    total: np.ndarray
    binned: np.ndarray
    within: np.ndarray
    events: np.ndarray
    copies: np.ndarray
    path: np.ndarray
    host: dict[tuple[int, int], np.ndarray]
    region_ns: dict[int, np.ndarray]
    mpi_ranks: set[int] = field(default_factory=set)
    mpi_outside_ns: int = 0
    launches: LaunchSums = field(default_factory=lambda: LaunchSums(0))


def open_export(folder: Path) -> Opened | None:
    """Return an export that has launches, transfers or graphs with the program's times; None otherwise."""
    document = read_json(folder / "capabilities.json")
    if not has_time_line(document):
        return None
    rows = rows_if_there(folder, "devices", ["rank", "device", "gpu"])
    devices = sorted({(row["rank"], row["device"]) for row in rows})
    windows = _windows(folder, document)
    graphs, durations = _with_graphs(folder, windows)
    if not windows:
        return None
    devices = [device for device in devices if device[0] in windows]
    kinds = frozenset(issue["kind"] for issue in document["issues"])
    gpus = {(row["rank"], row["device"]): row["gpu"] for row in rows if row["gpu"]}
    return Opened(
        export=document["export"],
        folder=folder,
        node=document["node"],
        windows=windows,
        devices=devices,
        graphs=graphs,
        graph_durations=durations,
        issues=kinds,
        gpus=gpus,
        format=document.get("format"),
    )


def _windows(folder: Path, document: Mapping) -> dict[int, tuple[int, int]]:
    """Return each rank's window: of one rank as the capabilities give it, of several by a pass of its own; also where
    there are counters, which another run of the program may have recorded, later.
    """
    tables = [table for table in ("launches", "transfers") if document["tables"].get(table)]
    if not tables:
        return {}
    if len(document["ranks"]) == 1 and not document["tables"].get("counters"):
        first = [int(next(event_streams.chunks(folder, table, ["start_ns"])).column(0)[0].as_py()) for table in tables]
        return {document["ranks"][0]: (min(first), int(document["time"]["last_ns"]))}
    return spans(folder, tables)


def _with_graphs(folder: Path, windows: dict[int, tuple[int, int]]) -> tuple[dict[int, int], list[int]]:
    """Widen the windows of ranks by executions of whole graphs; return how many each rank has, and the sum, the least
    and the largest of all durations, ns; empty without any.
    """
    counts: dict[int, int] = {}
    durations: list[int] = []
    for batch in event_streams.chunks(folder, "graphs", ["start_ns", "duration_ns", "rank"]):
        block = event_streams.times(batch)
        ranks = batch.column("rank").to_numpy()
        lasted = block["end"] - block["start"]
        total, least, most = durations or (0, int(lasted[0]), int(lasted[0]))
        durations = [total + int(lasted.sum()), min(least, int(lasted.min())), max(most, int(lasted.max()))]
        widen(windows, ranks, block)
        for rank, executions in zip(*np.unique(ranks, return_counts=True), strict=True):
            counts[int(rank)] = counts.get(int(rank), 0) + int(executions)
    return counts, durations


class _Host:
    """Sweeps of host threads, each opened when its first call is seen."""

    def __init__(self, windows: Windows, sets: Mapping[int, Sequence[intervals.Set]]) -> None:
        self.windows = windows
        self.sets = sets
        self.sweeps: dict[tuple[int, int], Sweep] = {}
        self.mpi_ranks: set[int] = set()

    def take(self, block: event_streams.Block) -> None:
        threads, code = few_rows(block["rank"], block["thread"])
        for position, (rank, thread) in enumerate(threads):
            if rank not in self.windows:
                continue
            of_thread = slice(None) if len(threads) == 1 else code == position
            if (rank, thread) not in self.sweeps:
                window = tuple(np.array([edge], np.int64) for edge in self.windows[rank])
                self.sweeps[rank, thread] = Sweep([ALWAYS[0]], [ALWAYS[1]], regions=[[window, *self.sets[rank]]])
            kind = block["kind"][of_thread]
            if (kind == MPI.bit_length() - 1).any():
                self.mpi_ranks.add(rank)
            self.sweeps[rank, thread].take(
                np.zeros(kind.size, np.int32), kind, block["start"][of_thread], block["end"][of_thread]
            )

    def finish(self) -> dict[tuple[int, int], np.ndarray]:
        for sweep in self.sweeps.values():
            sweep.finish()
        return {key: sweep.within[0] for key, sweep in sorted(self.sweeps.items())}

    def mpi_outside_ns(self) -> int:
        """Return the time in MPI outside the windows, summed over threads, ns."""
        return sum(_mpi_ns(sweep.total[0]) - _mpi_ns(sweep.within[0, 0]) for sweep in self.sweeps.values())


def _mpi_ns(states: np.ndarray) -> int:
    """Return a thread's time in MPI from its time in each state, int64 of shape (32,), ns."""
    return int(states[(np.arange(STATES) & MPI) > 0].sum())


def host_times(states: np.ndarray, elapsed_ns: int) -> tuple[int, int, int]:
    """Return useful, gpu and mpi time of a thread from its time in each state, int64 of shape (32,), ns: a runtime
    call made by MPI is part of MPI.
    """
    mpi = _mpi_ns(states)
    gpu = int(states[CALL])
    return elapsed_ns - mpi - gpu, gpu, mpi


def measure(
    opened: Opened,
    names: Sequence[str],
    edges: np.ndarray,
    *,
    windows: Windows | None = None,
    regions_within: tuple[int, int] | None = None,
) -> Measured:
    """Measure an export.

    Parameters
    ----------
    opened : Opened
    names : sequence of str
        Regions.
    edges : ndarray of int64, shape (bins + 1,), ascending, ns
        Bins in the export's own clock.
    windows : mapping of int to (int, int), optional
        The time in which each rank is measured, ns, own clock; from its first to its last GPU event if absent.
    regions_within : (int, int), optional
        What regions are cut to, ns, own clock.

    Raises
    ------
    TableError
        If a table's rows are not ordered, or hold a rank or device that the export's dimensions do not.
    """
    windows = opened.windows if windows is None else windows
    instances = regions.instances(opened.folder, names, regions_within)
    nothing = (np.empty(0, np.int64), np.empty(0, np.int64))
    sets = {rank: [instances.get((rank, name), nothing) for name in names] for rank in opened.windows}
    host = _Host(windows, sets)
    for block in event_streams.merged([event_streams.calls(opened.folder), event_streams.mpi_calls(opened.folder)]):
        host.take(block)
    edge = np.array([windows[rank] for rank, _ in opened.devices], np.int64).reshape(-1, 2)
    sweep = Sweep(edge[:, 0], edge[:, 1], edges, [sets[rank] for rank, _ in opened.devices])
    n_devices = len(opened.devices)
    events = np.zeros(n_devices, np.int64)
    queued = queue_ns = 0
    copies = np.zeros((n_devices, COPY_KINDS, len(COPY_FIELDS)), np.int64)
    devices = RowNumbers()
    for row in opened.devices:
        devices.number(row)

    def moved(blocks: Iterator[event_streams.Block]) -> Iterator[event_streams.Block]:
        for block in blocks:
            device = _device_indices(block, devices, opened.folder)
            take_copies(device, block["copy"], block["start"], block["end"], block["bytes"], copies)
            yield block

    launches = event_streams.launch_sums(opened.folder)
    sources = [
        event_streams.launches(opened.folder, launches),
        moved(event_streams.transfers(opened.folder)),
        event_streams.graphs(opened.folder),
    ]
    for block in event_streams.merged([only(source, EVENT) for source in sources]):
        device = _device_indices(block, devices, opened.folder)
        sweep.take(device, block["kind"], block["start"], block["end"])
        events += np.bincount(device, minlength=n_devices)
        waits = (block["launch"] == 1) & (block["returned"] != UNKNOWN) & (block["start"] > block["returned"])
        queued += int(np.count_nonzero(waits))
        queue_ns += int((block["start"][waits] - block["returned"][waits]).sum())
    sweep.finish()
    return Measured(
        opened=opened,
        windows=windows,
        total=sweep.total,
        binned=sweep.binned,
        within=sweep.within,
        events=events,
        copies=copies,
        path=np.array([*launches.sums.sum(axis=(0, 1)).tolist(), queued, queue_ns], np.int64),
        host=host.finish(),
        region_ns={
            rank: np.array([intervals.length(region) for region in sets[rank]], np.int64) for rank in opened.windows
        },
        mpi_ranks=host.mpi_ranks,
        mpi_outside_ns=host.mpi_outside_ns(),
        launches=launches,
    )


def _device_indices(block: event_streams.Block, devices: RowNumbers, folder: Path) -> np.ndarray:
    """Return the index of each event's device; int32."""
    before = len(devices)
    index = devices.of(block["rank"], block["device"])
    if len(devices) > before:
        unknown = devices.rows[before]
        raise TableError(
            f"{folder}: rank and device {unknown} are not among its devices; delete the folder and run again"
        )
    return index
