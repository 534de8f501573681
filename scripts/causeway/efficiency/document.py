"""`efficiency.json` and `efficiency.parquet` from what the exports' passes measured."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from causeway.efficiency.measure import Measured, host_times
from causeway.efficiency.states import SETS, kernel_and_other, time_in
from causeway.efficiency.sweep import CAUSES
from causeway.efficiency.transport import copies, launch_path
from causeway.efficiency.trees import FLAVOURS, RATIOS, DeviceTime, HostTime, classic, device_tree, host_tree, ratio, waterfall
from causeway.tables import SCHEMAS

GRAPH_NOTE = "executions of whole graphs count as compute: the kernels inside were not traced, nor which device ran them"
NO_MPI = "no export holds MPI calls: there is no MPI tree"
NO_CALLS = "no export holds runtime or MPI calls: nothing is known of the hosts"


class Dataset:
    """All exports of a dataset side by side: one lane per rank and device.

    Parameters
    ----------
    measured : sequence of Measured
    regions : sequence of str
        As they were measured.
    """

    def __init__(self, measured: Sequence[Measured], regions: Sequence[str]) -> None:
        self.measured, self.regions = list(measured), list(regions)
        self.lanes = [lane for one in self.measured for lane in one.opened.lanes]
        self.node_of = {rank: one.opened.node for one in self.measured for rank in one.opened.windows}
        self.elapsed = {rank: stop - begin for one in self.measured for rank, (begin, stop) in one.opened.windows.items()}
        self.total, self.idle, self.path, self.copies, self.within, self.binned = (
            np.concatenate([getattr(one, name) for one in self.measured])
            for name in ("total", "idle", "path", "copies", "within", "binned")
        )
        self.host = {key: states for one in self.measured for key, states in one.host.items()}
        self.region_ns = {rank: times for one in self.measured for rank, times in one.region_ns.items()}
        self.with_mpi = {rank for one in self.measured for rank in one.mpi_ranks}

    def places(self, keep: Callable[[tuple[int, int]], bool]) -> list[int]:
        """Return the numbers of the lanes that are wanted."""
        return [place for place, lane in enumerate(self.lanes) if keep(lane)]

    def tree(self, flavour: str, elapsed_ns: int, states: np.ndarray, places: Sequence[int]) -> dict:
        """Return the tree of some lanes, whose states have the shape (lanes, 16)."""
        times = [DeviceTime(self.lanes[place][0], *kernel_and_other(states[place], flavour)) for place in places]
        return device_tree(elapsed_ns, times, by_process=flavour == "talp")

    def longest(self, places: Sequence[int]) -> int:
        """Return E of some lanes: the longest window of their ranks."""
        return max((self.elapsed[self.lanes[place][0]] for place in places), default=0)


def scopes(dataset: Dataset) -> list[tuple[str, dict, int, np.ndarray, list[int]]]:
    """Return what has a tree of its own: level, its names, E, the states of all lanes and the lanes that belong to it."""
    everyone = list(range(len(dataset.lanes)))
    found = [("dataset", {}, dataset.longest(everyone), dataset.total, everyone)]
    for node in dict.fromkeys(node for node in dataset.node_of.values() if node):
        places = dataset.places(lambda lane, node=node: dataset.node_of[lane[0]] == node)
        found.append(("node", {"node": node}, dataset.longest(places), dataset.total, places))
    for rank in sorted(dataset.elapsed):
        places = dataset.places(lambda lane, rank=rank: lane[0] == rank)
        found.append(("rank", {"rank": rank}, dataset.elapsed[rank], dataset.total, places))
    for place, (rank, device) in enumerate(dataset.lanes):
        found.append(("device", {"rank": rank, "device": device}, dataset.elapsed[rank], dataset.total, [place]))
    for number, region in enumerate(dataset.regions):
        inside = {rank: int(times[number]) for rank, times in dataset.region_ns.items() if times[number]}
        places = dataset.places(lambda lane, inside=inside: lane[0] in inside)
        states = dataset.within[:, number].copy()
        found.append(("region", {"region": region}, max(inside.values(), default=0), states, places))
    return found


def name_of(level: str, names: Mapping) -> str:
    """Return a scope's key in `efficiency.json`: a device's is `rank/device`."""
    return "/".join(str(value) for value in names.values()) if level != "dataset" else level


def table(dataset: Dataset, edges_ns: np.ndarray) -> pa.Table:
    """Return the table `efficiency`: one row per scope, then per bin and rank, and per bin of all ranks."""
    rows = [_row(dataset, *scope) for scope in scopes(dataset)]
    everyone = list(range(len(dataset.lanes)))
    ranks = {rank: dataset.places(lambda lane, rank=rank: lane[0] == rank) for rank in sorted(dataset.elapsed)}
    for number, (start, end) in enumerate(zip(edges_ns.tolist(), edges_ns[1:].tolist(), strict=False)):
        place = {"bin": number, "start_ns": start}
        states = dataset.binned[:, number]
        rows.append(_row(dataset, "bin", place, end - start, states, everyone))
        rows += [_row(dataset, "bin", place | {"rank": rank}, end - start, states, lanes) for rank, lanes in ranks.items()]
    schema = SCHEMAS["efficiency"]
    return pa.table({field.name: pa.array([row.get(field.name) for row in rows], field.type) for field in schema}, schema=schema)


def _row(dataset: Dataset, level: str, names: Mapping, elapsed: int, states: np.ndarray, places: list[int]) -> dict:
    chosen = states[places]
    row = {"level": level, **names, "elapsed_ns": elapsed, "n_devices": len(places)}
    row |= {f"{name}_ns": int(time_in(chosen, name).sum()) for name in SETS}
    for flavour in FLAVOURS:
        tree = dataset.tree(flavour, elapsed, states, places)
        row |= {f"{flavour}_{name}": tree[name] for name in RATIOS}
    return row


def document(name: str, dataset: Dataset, clocks: Mapping, edges_ns: np.ndarray, small_ns: int, devices: Mapping) -> dict:
    """Return `efficiency.json`.

    Parameters
    ----------
    name : str
    dataset : Dataset
    clocks : mapping
        The document `clocks.json`.
    edges_ns : ndarray of int64
        Bins on the dataset's time line.
    small_ns : int
        Limit of small kernels.
    devices : mapping of (rank, device) to the devices' names
    """
    found = {flavour: _flavour(dataset, flavour) for flavour in FLAVOURS}
    everyone = range(len(dataset.lanes))
    elapsed = dataset.longest(list(everyone))
    parts = [tuple(int(time_in(dataset.total[place], part)) for part in PARTS) for place in everyone]
    notes = [GRAPH_NOTE] if int(time_in(dataset.total, "graph").sum()) else []
    return {
        "dataset": name,
        "why": None if dataset.lanes else "no export has launches, transfers or graphs with times",
        "elapsed_ns": elapsed,
        "origin_ns": int(edges_ns[0]),
        "bin_ns": int(edges_ns[1] - edges_ns[0]),
        "clocks": {key: clocks[key] for key in ("method", "residual_ns", "reason")},
        "notes": notes,
        **found,
        "host": _host(dataset),
        "classic": classic(elapsed, [int(time_in(dataset.total[place], "kernel")) for place in everyone]),
        "waterfall_ns": waterfall(elapsed, parts),
        "breakdown": {name_of("device", {"r": rank, "d": device}): _breakdown(dataset, place) for place, (rank, device) in
                      enumerate(dataset.lanes)},
        "launch_path": launch_path(dataset.path, dataset.lanes, dataset.elapsed, small_ns, dataset.measured),
        "copies": copies(dataset.copies, dataset.lanes, devices),
    }  # fmt: skip


PARTS = ("compute", "exposed_communication", "exposed_memory")
LEVELS = {"node": "nodes", "rank": "ranks", "device": "devices", "region": "regions"}
"""Where the trees of each level stand in a flavour."""


def _flavour(dataset: Dataset, flavour: str) -> dict:
    found: dict = {}
    for level, names, elapsed, states, places in scopes(dataset):
        tree = dataset.tree(flavour, elapsed, states, places)
        if level == "dataset":
            found = tree | {group: {} for group in LEVELS.values()}
        else:
            found[LEVELS[level]][name_of(level, names)] = tree
    return found


def _host(dataset: Dataset) -> dict:
    """Return the host tree: every thread that makes runtime or MPI calls is a CPU."""
    if not dataset.host:
        return {"possible": False, "why": NO_CALLS}
    everyone = sorted({rank for rank, _ in dataset.host})
    elapsed = max(dataset.elapsed.values())
    found = {"possible": True, "why": None if dataset.with_mpi else NO_MPI}
    found |= host_tree(elapsed, [_host_rank(dataset, rank, 0, elapsed) for rank in everyone])
    nodes = {node for node in dataset.node_of.values() if node}
    groups = {"nodes": {node: [rank for rank in everyone if dataset.node_of[rank] == node] for node in sorted(nodes)}}
    groups["ranks"] = {str(rank): [rank] for rank in everyone}
    for group, members in groups.items():
        found[group] = {}
        for key, ranks in members.items():
            longest = max((dataset.elapsed[rank] for rank in ranks), default=0)
            found[group][key] = host_tree(longest, [_host_rank(dataset, rank, 0, longest) for rank in ranks])
    found["regions"] = {}
    for number, region in enumerate(dataset.regions):
        ranks = [rank for rank in everyone if dataset.region_ns[rank][number]]
        longest = max((int(dataset.region_ns[rank][number]) for rank in ranks), default=0)
        found["regions"][region] = host_tree(longest, [_host_rank(dataset, rank, 1 + number, longest) for rank in ranks])
    return found


def _host_rank(dataset: Dataset, rank: int, row: int, elapsed: int) -> HostTime:
    threads = [states[row] for (owner, _), states in dataset.host.items() if owner == rank]
    times = [host_times(states, elapsed) for states in threads]
    useful, gpu, mpi = (sum(values) for values in zip(*times, strict=True))
    return HostTime(len(threads), useful, gpu, mpi if rank in dataset.with_mpi else None)


def _breakdown(dataset: Dataset, place: int) -> dict:
    """Return where one device's window went, in exact ns: compute + non_compute + idle = elapsed."""
    states, elapsed = dataset.total[place], dataset.elapsed[dataset.lanes[place][0]]
    found = {f"{part}_ns": int(time_in(states, part)) for part in SETS}
    found |= {"elapsed_ns": elapsed, "idle_ns": elapsed - found["busy_ns"], "non_compute_ns": found["busy_ns"] - found["compute_ns"]}
    found |= {f"idle_{cause}_ns": int(time) for cause, time in zip(CAUSES, dataset.idle[place], strict=True)}
    return found | {"overlap_ratio": ratio(found["overlap_ns"], found["communication_ns"])}
