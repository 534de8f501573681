"""GPUs that several ranks share: what they do all together, where the exports say that it is one GPU."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from causeway import intervals
from causeway.efficiency import regions, streams
from causeway.efficiency.measure import Lane, Opened
from causeway.efficiency.sweep import Sweep
from causeway.efficiency.timeline import Clock


@dataclass(frozen=True)
class SharedGpu:
    """One GPU that several ranks drive; times are ns, arrays int64.

    Attributes
    ----------
    lanes : list of (int, int)
        Ranks, and the number that each has for it.
    elapsed : int
        From the first to the last event of its ranks, on the dataset's time line.
    region_ns : list of int
        How long any of its ranks is in each region.
    total, binned, within
        As `sweep.Sweep` has them for all its work together; regions are those that any of its ranks is in.
    """

    lanes: list[Lane]
    elapsed: int
    region_ns: list[int]
    total: np.ndarray
    binned: np.ndarray
    within: np.ndarray


def groups(opened: Sequence[Opened]) -> list[list[tuple[Opened, Lane]]]:
    """Return the lanes of each GPU that more than one rank drives, in their order."""
    found: dict[tuple, list[tuple[Opened, Lane]]] = {}
    for one in opened:
        for lane in one.lanes:
            gpu = one.gpus.get(lane)
            if gpu is not None:
                found.setdefault((one.export if gpu.isdigit() else None, gpu), []).append((one, lane))
    return [members for members in found.values() if len({rank for _, (rank, _) in members}) > 1]


def measure_shared(
    members: Sequence[tuple[Opened, Lane]], names: Sequence[str], edges: np.ndarray, clocks: Mapping[str, Clock]
) -> SharedGpu:
    """Measure what the ranks of a GPU do on it together; `edges` are bins on the dataset's time line."""
    lanes_of: dict[str, list[Lane]] = {}
    exports = {one.export: one for one, _ in members}
    for one, lane in members:
        lanes_of.setdefault(one.export, []).append(lane)
    windows = [clocks[one.export].aligned(np.array(one.windows[rank])).tolist() for one, (rank, _) in members]
    begin, stop = min(first for first, _ in windows), max(last for _, last in windows)
    instances = {one.export: regions.instances(one.folder, names) for one in exports.values()}
    sets = []
    for name in names:
        parts = [
            (clocks[one.export], instances[one.export][rank, name]) for one, (rank, _) in members if (rank, name) in instances[one.export]
        ]
        ends = [np.concatenate([np.empty(0, np.int64), *(clock.aligned(part[edge]) for clock, part in parts)]) for edge in (0, 1)]
        sets.append(intervals.union(*ends))
    sweep = Sweep([begin], [stop], edges, [sets])
    sources = [_events(exports[name], lanes, clocks[name]) for name, lanes in lanes_of.items()]
    for block in streams.merged(sources):
        sweep.take(np.zeros(block["start"].size, np.int32), block["kind"], block["start"], block["end"])
    sweep.finish()
    region_ns = [intervals.length(one) for one in sets]
    return SharedGpu([lane for _, lane in members], stop - begin, region_ns, sweep.total[0], sweep.binned[0], sweep.within[0])


def _events(one: Opened, lanes: Sequence[Lane], clock: Clock) -> Iterator[streams.Block]:
    """Give the events of some lanes of an export on the dataset's time line."""
    wanted = np.array([rank << 16 | device for rank, device in lanes], np.int64)
    for block in streams.merged([streams.launches(one.folder), streams.transfers(one.folder), streams.graphs(one.graphs)]):
        mine = np.isin(block["rank"].astype(np.int64) << 16 | block["device"], wanted)
        if mine.any():
            yield {"start": clock.aligned(block["start"][mine]), "end": clock.aligned(block["end"][mine]), "kind": block["kind"][mine]}
