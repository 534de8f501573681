"""`efficiency.json` and `efficiency.parquet` from what the exports' passes measured."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from causeway.efficiency.measure import Measured, host_times
from causeway.efficiency.shared import SharedGpu
from causeway.efficiency.states import SETS, kernel_and_other, time_in
from causeway.efficiency.sweep import CAUSES, STREAM_FIELDS
from causeway.efficiency.transport import copies, launch_path
from causeway.efficiency.trees import FLAVOURS, RATIOS, DeviceTime, HostTime, classic, device_tree, host_tree, ratio, waterfall
from causeway.tables import SCHEMAS

GRAPH_NOTE = "executions of whole graphs count as compute: the kernels inside were not traced, nor which device ran them"
NO_MPI = "no export holds MPI calls: there is no MPI tree"
SHARED_NOTE = "GPUs that several ranks share count once, but in the flavour talp once per rank"
NO_COPIES = (
    "no copies are recorded of {ranks}: there is no communication efficiency but by kernels, and copies would count as orchestration"
)
ONE_EVENT = "only one event is recorded of {ranks}: it is all of the time that is known, so there are no efficiencies"
NO_CALLS = "no export holds runtime or MPI calls: nothing is known of the hosts"


class Dataset:
    """All exports of a dataset side by side: one lane per rank and device; behind the lanes, a row per GPU that several ranks share.

    Parameters
    ----------
    measured : sequence of Measured
    regions : sequence of str
        As they were measured.
    shared : sequence of SharedGpu
    """

    def __init__(self, measured: Sequence[Measured], regions: Sequence[str], shared: Sequence[SharedGpu] = ()) -> None:
        self.measured, self.regions, self.shared = list(measured), list(regions), list(shared)
        self.lanes = [lane for one in self.measured for lane in one.opened.lanes]
        self.node_of = {rank: one.opened.node for one in self.measured for rank in one.opened.windows}
        self.elapsed = {rank: stop - begin for one in self.measured for rank, (begin, stop) in one.opened.windows.items()}
        self.idle, self.path, self.copies = (
            np.concatenate([getattr(one, name) for one in self.measured]) for name in ("idle", "path", "copies")
        )
        self.total, self.within, self.binned = (
            np.concatenate([*(getattr(one, name) for one in self.measured), *(getattr(gpu, name)[None] for gpu in self.shared)])
            for name in ("total", "within", "binned")
        )
        self.host = {key: states for one in self.measured for key, states in one.host.items()}
        self.region_ns = {rank: times for one in self.measured for rank, times in one.region_ns.items()}
        self.with_copies = {rank for one in self.measured if one.opened.copies_recorded for rank in one.opened.windows}
        self.with_copies |= {rank for (rank, _), states in zip(self.lanes, self.total, strict=False) if int(time_in(states, "memory"))}
        self.events: dict[int, int] = {}
        for one in self.measured:
            for (rank, _, _), fields in one.streams.items():
                self.events[rank] = self.events.get(rank, 0) + int(fields[STREAM_FIELDS.index("events")])
            for rank in one.opened.graphs.get("rank", np.empty(0)).tolist():
                self.events[rank] = self.events.get(rank, 0) + 1
        self.with_mpi = {rank for one in self.measured for rank in one.mpi_ranks}

    def places(self, keep: Callable[[tuple[int, int]], bool]) -> list[int]:
        """Return the numbers of the lanes that are wanted."""
        return [place for place, lane in enumerate(self.lanes) if keep(lane)]

    def rows(self, places: Sequence[int]) -> list[int]:
        """Return the rows of the GPUs behind some lanes: the lanes, or the GPU that several of them share."""
        found = list(places)
        for number, gpu in enumerate(self.shared):
            among = [place for place in found if place < len(self.lanes) and self.lanes[place] in gpu.lanes]
            if len(among) > 1:
                found = [place for place in found if place not in among] + [len(self.lanes) + number]
        return found

    def tree(self, flavour: str, elapsed_ns: int, states: np.ndarray, places: Sequence[int]) -> dict:
        """Return the tree of some lanes, whose states have the shape (lanes and shared GPUs, 16)."""
        if flavour == "talp":  # as TALP does: processes know nothing of each other
            times = [DeviceTime(self.lanes[place][0], *kernel_and_other(states[place], flavour)) for place in places]
        else:
            times = [DeviceTime(row, *kernel_and_other(states[row], flavour)) for row in self.rows(places)]
        tree = device_tree(elapsed_ns, times, by_process=flavour == "talp")
        ranks = {self.lanes[place][0] for place in places}
        if tree["active_max_ns"] == tree["kernel_max_ns"] and not ranks & self.with_copies:
            tree["communication_efficiency"] = None  # nothing but kernels was looked at
        if all(self.events.get(rank, 0) < 2 for rank in ranks):
            tree |= dict.fromkeys(RATIOS)
        return tree

    def longest(self, places: Sequence[int]) -> int:
        """Return E of some lanes: the longest window of their ranks, or from the first to the last event on a GPU that they share."""
        together = [self.shared[row - len(self.lanes)].elapsed for row in self.rows(places) if row >= len(self.lanes)]
        return max([*together, *(self.elapsed[self.lanes[place][0]] for place in places)], default=0)


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
        together = [dataset.shared[row - len(dataset.lanes)].region_ns[number] for row in dataset.rows(places) if row >= len(dataset.lanes)]
        elapsed = max([*inside.values(), *together], default=0)
        found.append(("region", {"region": region}, elapsed, dataset.within[:, number].copy(), places))
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
    chosen = states[dataset.rows(places)]
    row = {"level": level, **names, "elapsed_ns": elapsed, "n_devices": len(chosen)}
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
    lanes = range(len(dataset.lanes))
    elapsed, gpus = dataset.longest(lanes), dataset.rows(lanes)
    parts = [tuple(int(time_in(dataset.total[row], part)) for part in PARTS) for row in gpus]
    notes = [GRAPH_NOTE] if int(time_in(dataset.total, "graph").sum()) else []
    notes += [SHARED_NOTE] if dataset.shared else []
    for words, ranks in (
        (NO_COPIES, set(dataset.elapsed) - dataset.with_copies),
        (ONE_EVENT, {r for r, n in dataset.events.items() if n < 2}),
    ):
        notes += [words.format(ranks=_ranks(sorted(ranks)))] if ranks else []
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
        "classic": classic(elapsed, [int(time_in(dataset.total[place], "kernel")) for place in gpus]),
        "waterfall_ns": waterfall(elapsed, parts),
        "breakdown": {name_of("device", {"r": rank, "d": device}): _breakdown(dataset, place) for place, (rank, device) in
                      enumerate(dataset.lanes)},
        "launch_path": launch_path(dataset.path, dataset.lanes, dataset.elapsed, small_ns, dataset.measured),
        "copies": copies(dataset.copies, dataset.lanes, devices),
        "shared": [_shared(dataset, number) for number in range(len(dataset.shared))],
    }  # fmt: skip


def _ranks(ranks: Sequence[int]) -> str:
    """Return ranks in words, at most four of them."""
    shown = ", ".join(str(rank) for rank in ranks[:4])
    more = f" and {len(ranks) - 4} more" if len(ranks) > 4 else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}{more}"


def _shared(dataset: Dataset, number: int) -> dict:
    """Return what a GPU's ranks do on it, together and each, and for how long kernels of several of them run at once, counted doubly."""
    gpu, states = dataset.shared[number], dataset.total[len(dataset.lanes) + number]
    kernel = int(time_in(states, "kernel"))
    each = {}
    for place, lane in enumerate(dataset.lanes):
        if lane in gpu.lanes:
            own = dataset.total[place]
            each[f"{lane[0]}/{lane[1]}"] = {"kernel_ns": int(time_in(own, "kernel")), "busy_ns": int(time_in(own, "busy"))}
    return {
        "devices": each,
        "elapsed_ns": gpu.elapsed,
        "kernel_ns": kernel,
        "busy_ns": int(time_in(states, "busy")),
        "at_once_ns": sum(one["kernel_ns"] for one in each.values()) - kernel,
        "parallel_efficiency": ratio(kernel, gpu.elapsed),
    }


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
