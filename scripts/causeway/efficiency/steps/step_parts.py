"""What each step's time consists of: states of its devices, time and launches of each kernel, sampled clocks."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from causeway.core.tables import read_table
from causeway.efficiency.device_time import event_streams
from causeway.efficiency.device_time.measure import Opened
from causeway.efficiency.device_time.states import time_in
from causeway.efficiency.device_time.sweep import Sweep
from causeway.efficiency.steps.launch_moments import launch_moments, transfer_moments
from causeway.efficiency.steps.rank_steps import RankSteps
from causeway.numeric.intervals import meetings

MOST_CELLS = 2_000_000
"""Numbers that are held for each quantity of kernels in steps; kernels that do not fit are counted together."""
ENDS_AFTER = 0.25
"""Share of a rank's steps that the device ends after their windows, above which these do not tell how long steps take.
"""
FEWEST_STEPS = 10
"""Steps that this share is taken of: with fewer none is called slow either."""
BEGINS_AFTER = 0.5
"""Share of a rank's steps that the device begins after their windows, above which launches belong to steps by their
starts, not by their calls.
"""
CLOCK = re.compile(r"(?<!memory_)clock(?!.*(memory|video|display)).*_hz$")
"""Names of sampled clocks of the processors."""
PARTS = ("idle_before", "idle_inside", "exposed_communication", "exposed_copies", "compute")
"""Disjoint parts of a step: their sum is its duration times the rank's devices. `compute` is time with a compute kernel
or a whole graph; idle time is that before the start of the first launch that belongs to the step, and the rest.
"""


@dataclass(kw_only=True)
class StepParts:
    """The parts of one rank's steps.

    Attributes
    ----------
    steps : RankSteps
    devices : int
    on_device : bool
        The host runs ahead: a step ends with its work on the device, not with its window.
    windows : RankSteps or None
        The windows of the host in which the calls of each step's launches lie; None where launches belong to steps by
        their starts.
    parts : dict of str to ndarray of int64, shape (steps,), ns
        By `PARTS`, sums over the rank's devices.
    busy : ndarray of int64, shape (steps,), ns
    launches, bytes : ndarray of int64, shape (steps,)
        Launches that belong to each step; bytes of copies that start in it.
    kernels : list of str
        Names of the columns below.
    count, kernel_ns, threads : ndarray of int64, shape (steps, kernels)
        Launches that belong to the step; the time of compute kernels inside its window, launches that run beside each
        other both counted; threads of its launches, 0 where not known.
    clock_hz : ndarray of float64, shape (steps,), Hz
        Mean of the samples in the step; -1 without any.
    """

    steps: RankSteps
    devices: int
    on_device: bool
    windows: RankSteps | None
    parts: dict[str, np.ndarray]
    busy: np.ndarray
    launches: np.ndarray
    bytes: np.ndarray
    kernels: list[str]
    count: np.ndarray
    kernel_ns: np.ndarray
    threads: np.ndarray
    clock_hz: np.ndarray

    @property
    def idle(self) -> np.ndarray:
        """Time without any work, int64, shape (steps,), ns, summed over devices."""
        return self.parts["idle_before"] + self.parts["idle_inside"]


def overlaps(steps: RankSteps, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each pair of an event and a step that overlap: position of the event, of the step, and the overlap,
    ns; int64, shape (pairs,).

    Parameters
    ----------
    steps : RankSteps
    start, end : ndarray of int64, shape (events,), ns
        In any order.
    """
    event, step = meetings(start, end, (steps.start, steps.end))
    return event, step, np.minimum(end[event], steps.end[step]) - np.maximum(start[event], steps.start[step])


class _Launches:
    """Launches of one rank's steps by kernel; the start of the first and the end of the last one of each step.

    Launches belong to the step in whose window, one of `windows`, their moment lies.
    """

    on_device = False
    by_starts = False

    def __init__(self, steps: RankSteps, windows: RankSteps, kernels: int) -> None:
        self.steps = steps
        self.windows = windows
        self.columns = max(1, min(kernels, MOST_CELLS // max(steps.start.size, 1)))
        self.count, self.kernel_ns, self.threads = (
            np.zeros((steps.start.size, self.columns), np.int64) for _ in range(3)
        )
        self.first = np.full(steps.end.size, np.iinfo(np.int64).max)
        self.last = np.full(steps.end.size, np.iinfo(np.int64).min)

    def take(self, block: event_streams.Block, is_compute: np.ndarray) -> None:
        column = np.minimum(block["kernel"], self.columns - 1)
        row = self.windows.of(block["moment"])
        inside = row >= 0
        np.add.at(self.count, (row[inside], column[inside]), 1)
        np.add.at(self.threads, (row[inside], column[inside]), block["threads"][inside])
        np.minimum.at(self.first, row[inside], block["start"][inside])
        np.maximum.at(self.last, row[inside], block["end"][inside])
        computes = is_compute[block["kernel"]]
        event, step, ns = overlaps(self.steps, block["start"][computes], block["end"][computes])
        np.add.at(self.kernel_ns, (step, column[computes][event]), ns)


def count_launches(
    folder: Path,
    steps: Mapping[int, RankSteps],
    since: Mapping[int, int],
    windows: Mapping[int, RankSteps] = MappingProxyType({}),
) -> dict[int, _Launches]:
    """Return the launches of each rank's steps by kernel; `windows` are those of the host, where they are others."""
    names = read_table(folder / "kernels.parquet", "kernels", ["class"]).column("class").to_pylist()
    is_compute = np.array([name == "compute" for name in names], bool)
    launches = {
        rank: _Launches(rank_steps, windows.get(rank, rank_steps), len(names)) for rank, rank_steps in steps.items()
    }
    for block in launch_moments(folder, since):
        for rank in launches:
            of_rank = block["rank"] == rank
            if of_rank.any():
                launches[rank].take({key: values[of_rank] for key, values in block.items()}, is_compute)
    return launches


def _is_far_ahead(tally: _Launches) -> bool:
    """Return whether the device has mostly not begun a step when the host ends it."""
    used = tally.count.sum(axis=1) > 0
    return bool(used.any()) and np.mean(tally.first[used] >= tally.steps.end[used]) > BEGINS_AFTER


def _runs_ahead(tally: _Launches) -> bool:
    """Return whether the host of a rank runs ahead of its device, far or in that this ends steps after their windows.

    Such a host makes the launches of a step in no time, and waits in another for what it launched long before: its
    windows tell how far ahead it is, and not how long a step takes.
    """
    used = tally.count.sum(axis=1) > 0
    late = used.sum() >= FEWEST_STEPS and np.mean(tally.last[used] > tally.steps.end[used]) > ENDS_AFTER
    return bool(late) or _is_far_ahead(tally)


def _on_device(tally: _Launches, busiest: np.ndarray) -> RankSteps:
    """Return the steps of a rank as its device has them: each ends with its last launch or transfer, or with its window
    where the host is not ahead, at the latest where the next step begins to launch and the `busiest` stream, with its
    last end in each step, is done with this one; and begins where the one before ended. The first one, and one that
    does not follow the one before, begins with its first launch. So time in which the device waits for a step's first
    launch is that step's, and a stream with less work that is ahead by some steps does not shorten them.
    """
    steps = tally.steps
    used = tally.count.sum(axis=1) > 0
    number, first, last, begun, ended, done = (
        values[used] for values in (steps.number, tally.first, tally.last, steps.start, steps.end, busiest)
    )
    first = np.maximum.accumulate(first)
    done = np.maximum.accumulate(done)
    last = np.maximum(np.maximum(last, first), done)
    latest = np.maximum(first[1:], done[:-1])
    end = np.append(np.minimum(np.maximum(last, ended)[:-1], latest), last[-1])
    follows = ended[:-1] >= begun[1:]
    start = np.append(first[:1], np.where(follows, end[:-1], np.maximum(end[:-1], first[1:])))
    device_steps = RankSteps(rank=steps.rank, number=number, start=start, end=end)
    return device_steps.kept(end > start)


def _done_by_busiest(folder: Path, ahead: Mapping[int, _Launches], since: Mapping[int, int]) -> dict[int, np.ndarray]:
    """Return when the stream with the most time of launches of each rank ends its last launch of each step; the least
    int64 where it has none; int64, shape (steps,), ns.
    """
    time: dict[int, Counter] = {rank: Counter() for rank in ahead}
    done: dict[int, dict[int, np.ndarray]] = {rank: {} for rank in ahead}
    for block in launch_moments(folder, since):
        streams = block["device"].astype(np.int64) << 32 | block["stream"].astype(np.int64)
        for rank, tally in ahead.items():
            of_rank = block["rank"] == rank
            row = tally.windows.of(block["moment"][of_rank])
            end = block["end"][of_rank]
            spent = end - block["start"][of_rank]
            numbers, index = np.unique(streams[of_rank], return_inverse=True)
            for position, stream in enumerate(numbers.tolist()):
                own = index == position
                time[rank][stream] += int(spent[own].sum())
                last = done[rank].setdefault(stream, np.full(tally.last.size, np.iinfo(np.int64).min))
                own &= row >= 0
                np.maximum.at(last, row[own], end[own])
    return {rank: done[rank][min(each, key=lambda stream: (-each[stream], stream))] for rank, each in time.items()}


def _take_transfers(folder: Path, by_rank: Mapping[int, _Launches]) -> None:
    """Let the last end of each step be that of its last launch or transfer; transfers belong to the step in which they
    were called, those of no known call to none.
    """
    for block in transfer_moments(folder):
        for rank, tally in by_rank.items():
            of_rank = block["rank"] == rank
            step = tally.steps.of(block["moment"][of_rank])
            np.maximum.at(tally.last, step[step >= 0], block["end"][of_rank][step >= 0])


def _counted_on_device(folder: Path, ahead: Mapping[int, _Launches], since: Mapping[int, int]) -> dict[int, _Launches]:
    """Return the launches of ranks whose host runs ahead, in the steps that their devices have."""
    _take_transfers(folder, ahead)
    far = {rank for rank, tally in ahead.items() if _is_far_ahead(tally)}
    busiest = _done_by_busiest(folder, ahead, since)
    steps = {rank: _on_device(tally, busiest[rank]) for rank, tally in ahead.items()}
    windows = {
        rank: tally.steps.kept(np.isin(tally.steps.number, steps[rank].number))
        for rank, tally in ahead.items()
        if rank not in far
    }
    counted = count_launches(folder, steps, {rank: since[rank] for rank in windows}, windows)
    for rank, tally in counted.items():
        tally.on_device = True
        tally.by_starts = rank in far
    return counted


def measure_parts(opened: Opened, steps: Mapping[int, RankSteps], since: Mapping[int, int]) -> dict[int, StepParts]:
    """Return the parts of the steps of each rank of an export; steps without any launch are left out.

    Where launches belong to steps by their calls and the host of a rank runs ahead of its device, the steps are taken
    as the device has them, wherever they come from.

    Parameters
    ----------
    opened : Opened
    steps : mapping of int to RankSteps
        By rank.
    since : mapping of int to int
        `launch_moments.called_since`.
    """
    launches = count_launches(opened.folder, steps, since)
    ahead = {rank: tally for rank, tally in launches.items() if rank in since and _runs_ahead(tally)}
    if ahead:
        launches |= _counted_on_device(opened.folder, ahead, since)
    for tally in launches.values():
        used = tally.count.sum(axis=1) > 0
        if not used.all():
            tally.steps, tally.windows = tally.steps.kept(used), tally.windows.kept(used)
            for name in ("count", "kernel_ns", "threads", "first"):
                setattr(tally, name, getattr(tally, name)[used])
        tally.first = np.clip(tally.first, tally.steps.start, tally.steps.end)
    launches = {rank: tally for rank, tally in launches.items() if tally.steps.start.size}
    swept = _sweep(opened, launches)
    names = read_table(opened.folder / "kernels.parquet", "kernels", ["name"]).column("name").to_pylist()
    clocks = _clocks(opened.folder, {rank: tally.steps for rank, tally in launches.items()})
    return {
        rank: _parts(tally, *swept[rank], names=names, clock_hz=clocks[rank])
        for rank, tally in sorted(launches.items())
    }


def _sweep(opened: Opened, launches: Mapping[int, _Launches]) -> dict[int, tuple[int, np.ndarray, np.ndarray]]:
    """Return by rank: its devices; the time of its devices in each state before and after the first launch of each
    step, int64, shape (steps, 2, 32), ns; the bytes of copies by step.
    """
    devices = {rank: [number for of, number in opened.devices if of == rank] for rank in launches}
    sweeps = {}
    for rank, tally in launches.items():
        edges = np.stack([tally.steps.start, tally.first, tally.steps.end], axis=1).reshape(-1)
        ends = np.array([edges[[0, -1]]] * len(devices[rank]))
        sweeps[rank] = Sweep(ends[:, 0], ends[:, 1], edges)
    moved = {rank: np.zeros(tally.steps.start.size, np.int64) for rank, tally in launches.items()}
    for block in event_streams.device_work(opened.folder):
        for rank, sweep in sweeps.items():
            of_rank = block["rank"] == rank
            if not of_rank.any():
                continue
            row = np.searchsorted(devices[rank], block["device"][of_rank]).astype(np.int32)
            start = np.ascontiguousarray(block["start"][of_rank])
            sweep.take(row, block["kind"][of_rank], start, np.ascontiguousarray(block["end"][of_rank]))
            step = launches[rank].steps.of(start)
            sized = (step >= 0) & (block["bytes"][of_rank] > 0)
            np.add.at(moved[rank], step[sized], block["bytes"][of_rank][sized])
    swept = {}
    for rank, sweep in sweeps.items():
        sweep.finish()
        steps = launches[rank].steps.start.size
        by_step = np.zeros((3 * steps, sweep.binned.shape[2]), np.int64)
        by_step[: 3 * steps - 1] = sweep.binned.sum(axis=0)
        swept[rank] = len(devices[rank]), by_step.reshape(steps, 3, -1)[:, :2], moved[rank]
    return swept


def _parts(
    tally: _Launches, devices: int, states: np.ndarray, moved: np.ndarray, *, names: list[str], clock_hz: np.ndarray
) -> StepParts:
    steps = tally.steps
    busy = time_in(states, "busy")
    length = np.stack([tally.first - steps.start, steps.end - tally.first], axis=1) * devices
    parts = {
        "idle_before": (length - busy)[:, 0],
        "idle_inside": (length - busy)[:, 1],
        "exposed_communication": time_in(states, "exposed_communication").sum(axis=1),
        "exposed_copies": time_in(states, "exposed_memory").sum(axis=1),
        "compute": time_in(states, "compute").sum(axis=1),
    }
    return StepParts(
        steps=steps,
        devices=devices,
        on_device=tally.on_device,
        windows=None if tally.by_starts else tally.windows,
        parts=parts,
        busy=busy.sum(axis=1),
        launches=tally.count.sum(axis=1),
        bytes=moved,
        kernels=[*names[: tally.columns - 1], names[-1] if tally.columns == len(names) else "other kernels"],
        count=tally.count,
        kernel_ns=tally.kernel_ns,
        threads=tally.threads,
        clock_hz=clock_hz,
    )


def _clocks(folder: Path, steps: Mapping[int, RankSteps]) -> dict[int, np.ndarray]:
    """Return the mean sampled clock of each step, -1 without a sample; of several clocks the first by name."""
    total: dict[int, dict[str, np.ndarray]] = {rank: {} for rank in steps}
    for batch in event_streams.chunks(folder, "samples", ["time_ns", "rank", "metric", "value"]):
        metrics = batch.column("metric").dictionary.to_pylist()
        code = batch.column("metric").indices.to_numpy()
        rank = batch.column("rank").to_numpy()
        time = batch.column("time_ns").to_numpy()
        value = batch.column("value").to_numpy()
        for number, metric in enumerate(metrics):
            for owner in steps if CLOCK.search(metric) else ():
                step = steps[owner].of(time)
                chosen = (code == number) & (rank == owner) & (step >= 0) & np.isfinite(value)
                if chosen.any():
                    sums = total[owner].setdefault(metric, np.zeros((2, steps[owner].start.size)))
                    np.add.at(sums[0], step[chosen], value[chosen])
                    np.add.at(sums[1], step[chosen], 1)
    clocks = {}
    for number in steps:
        sums = total[number][min(total[number])] if total[number] else np.zeros((2, steps[number].start.size))
        clocks[number] = np.where(sums[1] > 0, sums[0] / np.maximum(sums[1], 1), -1.0)
    return clocks
