"""GPUs that several ranks share: what they do all together, where the exports say that it is one GPU."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from causeway.core.clock import Clock
from causeway.efficiency.device_time import event_streams, regions
from causeway.efficiency.device_time.compared_time import ComparedTime
from causeway.efficiency.device_time.measure import Device, Opened
from causeway.efficiency.device_time.sweep import Sweep
from causeway.events.event_blocks import same_gpus
from causeway.numeric import intervals


@dataclass(frozen=True)
class SharedGpu:
    """One GPU that several ranks drive; times are ns, arrays int64.

    Attributes
    ----------
    devices : list of Device
        Its ranks, each with the number that it has for it.
    elapsed : int
        The time in which its ranks are compared, else from their first to their last event, on the dataset's time
        line.
    region_ns : list of int
        How long any of its ranks is in each region.
    total, binned, within : ndarray, shapes of `sweep.Sweep` for one device
        Of all its work together; regions are those that any of its ranks is in.
    """

    devices: list[Device]
    elapsed: int
    region_ns: list[int]
    total: np.ndarray
    binned: np.ndarray
    within: np.ndarray


def groups(opened: Sequence[Opened]) -> list[list[tuple[Opened, Device]]]:
    """Return the devices that are one GPU, for each GPU that more than one rank drives, in their order."""
    of = {export.export: export for export in opened}
    devices = ((export.export, *device, export.gpus.get(device)) for export in opened for device in export.devices)
    return [[(of[export], (rank, device)) for export, rank, device in members] for members in same_gpus(devices)]


def measure_shared(
    members: Sequence[tuple[Opened, Device]],
    names: Sequence[str],
    edges: np.ndarray,
    clocks: Mapping[str, Clock],
    compared: ComparedTime,
) -> SharedGpu:
    """Measure what the ranks of a GPU do on it together; `edges`, int64 of shape (bins + 1,), ns, are those of bins on
    the dataset's time line, `compared` says in which time ranks are compared.
    """
    devices_of: dict[str, list[Device]] = {}
    exports = {export.export: export for export, _ in members}
    for export, device in members:
        devices_of.setdefault(export.export, []).append(device)
    windows = [clocks[export.export].aligned(np.array(export.windows[rank])).tolist() for export, (rank, _) in members]
    own = min(first for first, _ in windows), max(last for _, last in windows)
    begin, stop = compared.window or own
    instances = {
        name: regions.instances(export.folder, names, compared.regions_within(clocks[name]))
        for name, export in exports.items()
    }
    sets = []
    for name in names:
        parts = [
            (clocks[export.export], instances[export.export][rank, name])
            for export, (rank, _) in members
            if (rank, name) in instances[export.export]
        ]
        ends = [
            np.concatenate([np.empty(0, np.int64), *(clock.aligned(part[edge]) for clock, part in parts)])
            for edge in (0, 1)
        ]
        sets.append(intervals.union(*ends))
    sweep = Sweep([begin], [stop], edges, [sets])
    sources = [_events(exports[name], devices, clocks[name]) for name, devices in devices_of.items()]
    for block in event_streams.merged(sources):
        sweep.take(np.zeros(block["start"].size, np.int32), block["kind"], block["start"], block["end"])
    sweep.finish()
    region_ns = [intervals.length(region) for region in sets]
    return SharedGpu(
        [device for _, device in members], stop - begin, region_ns, sweep.total[0], sweep.binned[0], sweep.within[0]
    )


def _events(opened: Opened, devices: Sequence[Device], clock: Clock) -> Iterator[event_streams.Block]:
    """Give the events of some devices of an export on the dataset's time line."""
    wanted = np.array([rank << 16 | device for rank, device in devices], np.int64)
    for block in event_streams.device_work(opened.folder):
        chosen = np.isin(block["rank"].astype(np.int64) << 16 | block["device"], wanted)
        if chosen.any():
            yield {
                "start": clock.aligned(block["start"][chosen]),
                "end": clock.aligned(block["end"][chosen]),
                "kind": block["kind"][chosen],
            }
