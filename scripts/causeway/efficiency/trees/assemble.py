"""`efficiency.json` and `efficiency.parquet` from what the exports' passes measured.

Load balance of like with like: within groups of ranks that do the same work, and what the groups differ by.
"""

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from causeway.core.formatting import ranks_named, time_three_digits
from causeway.core.tables import SCHEMAS
from causeway.core.vocabulary import BALANCE, COMMUNICATION, DEVICE_RATIO_NAMES, FLAVOUR_NAMES, PARALLEL, TREE_LEVELS
from causeway.efficiency.device_time.compared_time import OWN_TIMES, ComparedTime
from causeway.efficiency.device_time.measure import COPY_KINDS, PATH_FIELDS, Measured, host_times
from causeway.efficiency.device_time.shared_gpus import SharedGpu
from causeway.efficiency.device_time.states import MIGRATION_SETS, SETS, STATES, device_times, time_in
from causeway.efficiency.device_time.sweep import COPY_FIELDS
from causeway.efficiency.trees.copy_rates import copies
from causeway.efficiency.trees.trees import (
    DEVICE_FORMULAS,
    DeviceTime,
    HostTime,
    device_tree,
    host_tree,
    ratio,
    waterfall,
)

STACKED = ("compute", "exposed_communication", "exposed_memory")
"""Sets of states that the waterfall sums: each is the part of its work that those before it leave uncovered."""
GRAPH_NOTE = "executions of whole graphs count as compute: the kernels inside were not traced"
MISSING = (
    "launches of {ranks} are missing, as the numbers of the others leave some out: the time in which they ran counts as"
    " idle"
)
MPI_OUTSIDE = (
    "ranks are in MPI for {time}, summed over threads, before and after the time that is measured: that is not in the"
    " MPI tree"
)
NO_MPI = "no export holds MPI calls of a rank with GPU work: there is no MPI tree"
SHARED_NOTE = "GPUs that several ranks share count once, but in the flavour talp once per rank"
NO_COPIES = (
    "no copies are recorded of {ranks}: there is no communication efficiency but by kernels, and copies would count as"
    " orchestration"
)
ONE_EVENT = "only one event is recorded of {ranks}: it is all of the time that is known, so there are no efficiencies"
NO_CALLS = "no export holds runtime or MPI calls: nothing is known of the hosts"


class MeasuredDataset:
    """All exports of a dataset side by side: one row per device, that is per rank and device number; behind these, one
    per GPU that several ranks share.

    Parameters
    ----------
    measured : sequence of Measured
    regions : sequence of str
        As they were measured.
    shared : sequence of SharedGpu
    compared : ComparedTime
        In which time ranks are compared.
    """

    def __init__(
        self,
        measured: Sequence[Measured],
        regions: Sequence[str],
        shared: Sequence[SharedGpu] = (),
        compared: ComparedTime = OWN_TIMES,
    ) -> None:
        self.compared = compared
        self.measured = list(measured)
        self.regions = list(regions)
        self.shared = list(shared)
        self.devices = [device for export in self.measured for device in export.opened.devices]
        self.node_of = {rank: export.opened.node for export in self.measured for rank in export.opened.windows}
        self.elapsed = {
            rank: stop - begin for export in self.measured for rank, (begin, stop) in export.windows.items()
        }
        self.own_elapsed = {
            rank: stop - begin for export in self.measured for rank, (begin, stop) in export.opened.windows.items()
        }
        self.path = sum((export.path for export in self.measured), np.zeros(len(PATH_FIELDS), np.int64))
        no_copies = np.zeros((0, COPY_KINDS, len(COPY_FIELDS)), np.int64)
        self.copies = np.concatenate([no_copies, *(export.copies for export in self.measured)])
        of_none = {"total": (0, STATES), "within": (0, 0, STATES), "binned": (0, 1, STATES)}
        self.total, self.within, self.binned = (
            np.concatenate(
                [getattr(export, name) for export in self.measured] + [getattr(gpu, name)[None] for gpu in self.shared]
                or [np.zeros(shape, np.int64)]
            )
            for name, shape in of_none.items()
        )
        self.host = {key: states for export in self.measured for key, states in export.host.items()}
        self.region_ns = {rank: times for export in self.measured for rank, times in export.region_ns.items()}
        self.with_copies = {
            rank for export in self.measured if export.opened.copies_recorded for rank in export.opened.windows
        }
        self.with_copies |= {
            rank for (rank, _), states in zip(self.devices, self.total, strict=False) if int(time_in(states, "memory"))
        }
        self.events: dict[int, int] = {}
        for export in self.measured:
            for (rank, _), events in zip(export.opened.devices, export.events.tolist(), strict=True):
                self.events[rank] = self.events.get(rank, 0) + events
        alone = set() if compared.window else self.elapsed.keys()
        self.too_few = {rank for rank in alone if self.events.get(rank, 0) < 2}
        self.with_mpi = {rank for export in self.measured for rank in export.mpi_ranks}
        self.index_of = {device: index for index, device in enumerate(self.devices)}
        self.shared_of = {
            self.index_of[device]: number for number, gpu in enumerate(self.shared) for device in gpu.devices
        }
        self.of_rank: dict[int, list[int]] = {rank: [] for rank in self.elapsed}
        for index, (rank, _) in enumerate(self.devices):
            self.of_rank.setdefault(rank, []).append(index)
        self._states: np.ndarray | None = None
        self._times: dict[str, list[Any]] = {}
        self.threads: dict[int, list[np.ndarray]] = {}
        for (rank, _), states in self.host.items():
            self.threads.setdefault(rank, []).append(states)

    def indices(self, ranks: Container[int]) -> list[int]:
        """Return the indices of the devices of some ranks."""
        return [index for index, (rank, _) in enumerate(self.devices) if rank in ranks]

    def gpu_rows(self, indices: Sequence[int]) -> list[int]:
        """Return the rows of the GPUs behind some devices: their own, or that of the GPU that several of them share."""
        ranks_on = Counter(self.shared_of[index] for index in indices if index in self.shared_of)
        together = {number for number, ranks in ranks_on.items() if ranks > 1}
        if not together:
            return list(indices)
        alone = [index for index in indices if self.shared_of.get(index) not in together]
        return alone + [len(self.devices) + number for number in sorted(together)]

    def tree(self, flavour: str, elapsed_ns: int, states: np.ndarray, indices: Sequence[int]) -> dict:
        """Return the tree of some devices.

        Parameters
        ----------
        flavour : str
        elapsed_ns : int
        states : ndarray of int64, shape (devices and shared GPUs, 32), ns
        indices : sequence of int
            Of the devices.
        """
        if flavour == "talp":  # as TALP does: processes know nothing of each other
            rows = [(self.devices[index][0], index) for index in indices]
        else:
            rows = [(row, row) for row in self.gpu_rows(indices)]
        of_device = self.per_device(states, flavour, device_times)
        times = [DeviceTime(process, *of_device[row]) for process, row in rows]
        tree = device_tree(elapsed_ns, times, by_process=flavour == "talp")
        ranks = {self.devices[index][0] for index in indices}
        if tree["active_max_ns"] == tree["kernel_max_ns"] and not ranks & self.with_copies:
            tree[COMMUNICATION] = None  # nothing but kernels was looked at
        if ranks <= self.too_few:
            tree |= dict.fromkeys(DEVICE_RATIO_NAMES)
        return tree

    def per_device(self, states: np.ndarray, name: str, times: Callable[[np.ndarray, str], Any]) -> list[Any]:
        """Return what a function gives of all devices, kept while the states are the same: a thousand ranks ask for
        their own of one bin.

        Parameters
        ----------
        states : ndarray of int64, shape (devices and shared GPUs, 32), ns
        name : str
            Of a set of states, or a flavour.
        times : callable
            Of states, shape (devices and shared GPUs, 32), and a name: something for each row.

        Returns
        -------
        list, an item per row of `states`
        """
        if states is not self._states:
            self._states = states
            self._times.clear()
        if name not in self._times:
            self._times[name] = list(times(states, name))
        return self._times[name]

    def measured_ns(self, row: int) -> int:
        """Return the time in which a device, or a GPU that several ranks share, is measured, by its row, ns."""
        own = row - len(self.devices)
        return self.shared[own].elapsed if own >= 0 else self.elapsed[self.devices[row][0]]

    def longest(self, indices: Sequence[int]) -> int:
        """Return E of some devices: the longest window of their ranks, or that of a GPU that they share; ns."""
        return max((self.measured_ns(row) for row in [*self.gpu_rows(indices), *indices]), default=0)


def scopes(dataset: MeasuredDataset) -> list[tuple[str, dict, int, np.ndarray, list[int]]]:
    """Return what has a tree of its own: level, its names, E, the states of all devices (int64, shape (devices, 32),
    ns), and the indices of those that belong to it.
    """
    everyone = list(range(len(dataset.devices)))
    whole = dataset.longest(everyone)
    entries: list[tuple[str, dict, int, np.ndarray, list[int]]] = [("dataset", {}, whole, dataset.total, everyone)]
    of_node: dict[str, list[int]] = {node: [] for node in dataset.node_of.values() if node}
    for index, (rank, _) in enumerate(dataset.devices):
        if node := dataset.node_of[rank]:
            of_node[node].append(index)
    for node, indices in of_node.items():
        entries.append(("node", {"node": node}, dataset.longest(indices), dataset.total, indices))
    for rank in sorted(dataset.elapsed):
        entries.append(("rank", {"rank": rank}, dataset.elapsed[rank], dataset.total, dataset.of_rank[rank]))
    for index, (rank, device) in enumerate(dataset.devices):
        entries.append(("device", {"rank": rank, "device": device}, dataset.elapsed[rank], dataset.total, [index]))
    for number, region in enumerate(dataset.regions):
        inside = {rank: int(times[number]) for rank, times in dataset.region_ns.items() if times[number]}
        indices = dataset.indices(inside)
        rows = [row - len(dataset.devices) for row in dataset.gpu_rows(indices)]
        shared = [dataset.shared[row].region_ns[number] for row in rows if row >= 0]
        elapsed = max([*inside.values(), *shared], default=0)
        entries.append(("region", {"region": region}, elapsed, dataset.within[:, number].copy(), indices))
    return entries


def name_of(level: str, names: Mapping) -> str:
    """Return a scope's key in `efficiency.json`: a device's is `rank/device`."""
    return "/".join(str(value) for value in names.values()) if level != "dataset" else level


def table(dataset: MeasuredDataset, edges_ns: np.ndarray, roles: Mapping[int, int] | None = None) -> pa.Table:
    """Return the table `efficiency`: one row per scope, then per bin and rank, and per bin of all ranks; `edges_ns`
    has shape (bins + 1,), `roles` which work each rank does.
    """
    of_scopes = [
        {"level": level, **names, "elapsed_ns": elapsed, **_times(dataset, elapsed, states, indices)}
        for level, names, elapsed, states, indices in scopes(dataset)
    ]
    parts = [_rows(of_scopes, roles)]
    ranks_of_bin = RanksOfBins(dataset, roles)
    everyone = list(range(len(dataset.devices)))
    for number, (start, end) in enumerate(zip(edges_ns.tolist(), edges_ns[1:].tolist(), strict=False)):
        names = {"level": "bin", "bin": number, "start_ns": start, "elapsed_ns": end - start}
        states = dataset.binned[:, number]
        parts.append(_rows([names | _times(dataset, end - start, states, everyone)], roles))
        parts.append(ranks_of_bin(names, states))
    return pa.concat_tables(parts)


def _rows(rows: Sequence[dict], roles: Mapping[int, int] | None) -> pa.Table:
    """Return rows as a part of the table `efficiency`: as dictionaries all of them would take a gigabyte."""
    with_roles = [row | {"role": roles.get(row["rank"]) if roles and "rank" in row else None} for row in rows]
    return pa.Table.from_pylist(with_roles, SCHEMAS["efficiency"])


def _times(dataset: MeasuredDataset, elapsed: int, states: np.ndarray, indices: list[int]) -> dict:
    """Return times and ratios of a scope, as columns of the table."""
    chosen = dataset.gpu_rows(indices)
    row: dict[str, Any] = {"n_devices": len(chosen)}
    for name in SETS:
        of_device = dataset.per_device(states, name, time_in)
        row[f"{name}_ns"] = int(sum(of_device[gpu] for gpu in chosen))
    for flavour in FLAVOUR_NAMES:
        tree = dataset.tree(flavour, elapsed, states, indices)
        row |= {f"{flavour}_{name}": tree[name] for name in DEVICE_RATIO_NAMES}
    return row


class RanksOfBins:
    """The rows of single ranks in bins, all ranks of a bin at once: a thousand ranks have a quarter of a million rows.

    Parameters
    ----------
    dataset : MeasuredDataset
    roles : mapping of int to int, or None
        Which work each rank does.
    """

    def __init__(self, dataset: MeasuredDataset, roles: Mapping[int, int] | None) -> None:
        self.ranks = sorted(dataset.elapsed)
        devices = [dataset.of_rank[rank] for rank in self.ranks]
        self.devices, self.gpus = (
            np.array([(owner, row) for owner, own in enumerate(rows) for row in own], np.int64).reshape(-1, 2).T
            for rows in (devices, [dataset.gpu_rows(own) for own in devices])
        )
        self.with_copies, self.too_few = (
            np.array([rank in chosen for rank in self.ranks], bool) for chosen in (dataset.with_copies, dataset.too_few)
        )
        self.roles = [roles.get(rank) if roles else None for rank in self.ranks]

    def __call__(self, names: Mapping[str, Any], states: np.ndarray) -> pa.Table:
        """Return the rows of all ranks in a bin.

        Parameters
        ----------
        names : mapping
            What the columns of the bin hold: elapsed_ns among them.
        states : ndarray of int64, shape (devices and shared GPUs, 32), ns
            Of the bin.
        """
        columns: dict[str, Any] = {name: [value] * len(self.ranks) for name, value in names.items()}
        columns |= {"rank": self.ranks, "role": self.roles, "n_devices": self._sums(np.ones(len(states), np.int64))}
        columns |= {f"{name}_ns": self._sums(time_in(states, name)) for name in SETS}
        for flavour in FLAVOUR_NAMES:
            ratios = self._ratios(flavour, names["elapsed_ns"], states)
            columns |= {f"{flavour}_{name}": pa.array(values, from_pandas=True) for name, values in ratios.items()}
        schema = SCHEMAS["efficiency"]
        nulls = pa.nulls(len(self.ranks))
        return pa.Table.from_pydict({name: columns.get(name, nulls) for name in schema.names}, schema)

    def _sums(self, times: np.ndarray, by_process: bool = False) -> np.ndarray:
        """Return sums of times of GPUs, or of devices `by_process`, of each rank; int64, shape (ranks,)."""
        owners, rows = self.devices if by_process else self.gpus
        sums = np.zeros(len(self.ranks), np.int64)
        np.add.at(sums, owners, times[rows])
        return sums

    def _ratios(self, flavour: str, elapsed_ns: int, states: np.ndarray) -> dict[str, np.ndarray]:
        """Return the ratios of the tree of each rank, as `MeasuredDataset.tree`; NaN for None."""
        by_process = flavour == "talp"
        kernel, other, copies, hidden = np.array(device_times(states, flavour), np.int64).reshape(-1, 4).T
        times = {"n_devices": np.ones_like(kernel), "kernel_ns": kernel, "copy_ns": copies, "hidden_copy_ns": hidden}
        sums = {name: self._sums(values, by_process) for name, values in times.items()}
        sums["elapsed_ns"] = np.full(len(self.ranks), elapsed_ns)
        for name, values in (("kernel_max_ns", kernel), ("active_max_ns", kernel + other)):
            if by_process:
                sums[name] = self._sums(values, by_process)
            else:
                owners, rows = self.gpus
                sums[name] = np.zeros(len(self.ranks), np.int64)
                np.maximum.at(sums[name], owners, values[rows])
        ratios = {name: DEVICE_FORMULAS[name](sums) for name in DEVICE_RATIO_NAMES}
        ratios[COMMUNICATION][(sums["active_max_ns"] == sums["kernel_max_ns"]) & ~self.with_copies] = np.nan
        for values in ratios.values():
            values[self.too_few] = np.nan
        return ratios


def document(name: str, dataset: MeasuredDataset, clocks: Mapping, edges_ns: np.ndarray, devices: Mapping) -> dict:
    """Return `efficiency.json`.

    Parameters
    ----------
    name : str
    dataset : Dataset
    clocks : mapping
        The document `clocks.json`.
    edges_ns : ndarray of int64, shape (bins + 1,)
        Bins on the dataset's time line.
    devices : mapping of (rank, device) to the devices' names
    """
    trees = {flavour: _flavour(dataset, flavour) for flavour in FLAVOUR_NAMES}
    everyone = range(len(dataset.devices))
    elapsed = dataset.longest(everyone)
    gpus = dataset.gpu_rows(everyone)
    parts = [(*(int(time_in(dataset.total[row], part)) for part in STACKED), dataset.measured_ns(row)) for row in gpus]
    notes = [GRAPH_NOTE] if int(time_in(dataset.total, "graph").sum()) else []
    notes += [SHARED_NOTE] if dataset.shared else []
    notes += [dataset.compared.note] if dataset.compared.note else []
    outside = sum(export.mpi_outside_ns for export in dataset.measured)
    notes += [MPI_OUTSIDE.format(time=time_three_digits(outside))] if outside else []
    for words, ranks in (
        (MISSING, {r for export in dataset.measured if export.opened.launches_missing for r in export.opened.windows}),
        (NO_COPIES, set(dataset.elapsed) - dataset.with_copies),
        (ONE_EVENT, dataset.too_few & dataset.events.keys()),
    ):
        notes += [words.format(ranks=ranks_named(sorted(ranks), 4))] if ranks else []
    return {
        "dataset": name,
        "why": None if dataset.devices else "no export has launches, transfers or graphs with times",
        "elapsed_ns": elapsed,
        "origin_ns": int(edges_ns[0]),
        "bin_ns": int(edges_ns[1] - edges_ns[0]),
        "clocks": {key: clocks[key] for key in ("method", "residual_ns", "reason")},
        "notes": notes,
        "recordings": dataset.compared.recordings,
        "formats": sorted({export.opened.format for export in dataset.measured if export.opened.format}),
        **trees,
        "host": _host(dataset),
        "waterfall_ns": waterfall(elapsed, parts),
        "breakdown": {
            f"{rank}/{device}": _breakdown(dataset, index) for index, (rank, device) in enumerate(dataset.devices)
        },
        "launch_path": _launch_path(dataset),
        "graphs": _graphs(dataset),
        "copies": copies(dataset.copies, dataset.devices, devices),
        "shared": [_shared(dataset, number) for number in range(len(dataset.shared))],
    }


def _launch_path(dataset: MeasuredDataset) -> dict:
    """Return launches, their durations and how long they were queued; the mean length of the queue is that of waiting
    launches, sum of queue times / elapsed (Little's law).
    """
    sums = dict(zip(PATH_FIELDS, dataset.path.tolist(), strict=True))
    elapsed = sum(dataset.own_elapsed[rank] for rank, _ in dataset.devices)
    return sums | {"mean_queue_length": ratio(sums["queue_ns"], elapsed) if sums["queued"] else None}


def _graphs(dataset: MeasuredDataset) -> dict | None:
    """Return how many executions of whole graphs there are, and how long they take; None without any."""
    parts = [export.opened.graph_durations for export in dataset.measured if export.opened.graph_durations]
    if not parts:
        return None
    total, least, most = zip(*parts, strict=True)
    executions = sum(sum(export.opened.graphs.values()) for export in dataset.measured)
    return {"executions": executions, "duration_ns": sum(total), "least_ns": min(least), "largest_ns": max(most)}


def _shared(dataset: MeasuredDataset, number: int) -> dict:
    """Return what a GPU's ranks do on it, together and each, and for how long kernels of several of them run at
    once, counted doubly.
    """
    gpu = dataset.shared[number]
    states = dataset.total[len(dataset.devices) + number]
    kernel = int(time_in(states, "kernel"))
    each = {}
    for index in sorted(dataset.index_of[device] for device in gpu.devices):
        rank, device = dataset.devices[index]
        own = dataset.total[index]
        each[f"{rank}/{device}"] = {"kernel_ns": int(time_in(own, "kernel")), "busy_ns": int(time_in(own, "busy"))}
    return {
        "devices": each,
        "elapsed_ns": gpu.elapsed,
        "kernel_ns": kernel,
        "busy_ns": int(time_in(states, "busy")),
        "at_once_ns": sum(times["kernel_ns"] for times in each.values()) - kernel,
        PARALLEL: ratio(kernel, gpu.elapsed),
    }


def _flavour(dataset: MeasuredDataset, flavour: str) -> dict:
    trees: dict = {}
    for level, names, elapsed, states, indices in scopes(dataset):
        tree = dataset.tree(flavour, elapsed, states, indices)
        if level == "dataset":
            trees = tree | {group: {} for group in TREE_LEVELS.values()}
        else:
            trees[TREE_LEVELS[level]][name_of(level, names)] = tree
    return trees


def _host(dataset: MeasuredDataset) -> dict:
    """Return the host tree: every thread that makes runtime or MPI calls is a CPU."""
    if not dataset.host:
        return {"possible": False, "why": NO_CALLS}
    everyone = sorted({rank for rank, _ in dataset.host})
    elapsed = max(dataset.elapsed.values())
    trees: dict = {"possible": True, "why": None if dataset.with_mpi else NO_MPI}
    trees |= host_tree(elapsed, [_host_rank(dataset, rank, 0) for rank in everyone])
    nodes = {node for node in dataset.node_of.values() if node}
    groups = {"nodes": {node: [rank for rank in everyone if dataset.node_of[rank] == node] for node in sorted(nodes)}}
    groups["ranks"] = {str(rank): [rank] for rank in everyone}
    for group, members in groups.items():
        trees[group] = {}
        for key, ranks in members.items():
            longest = max((dataset.elapsed[rank] for rank in ranks), default=0)
            trees[group][key] = host_tree(longest, [_host_rank(dataset, rank, 0) for rank in ranks])
    trees["regions"] = {}
    for number, region in enumerate(dataset.regions):
        ranks = [rank for rank in everyone if dataset.region_ns[rank][number]]
        longest = max((int(dataset.region_ns[rank][number]) for rank in ranks), default=0)
        trees["regions"][region] = host_tree(longest, [_host_rank(dataset, rank, 1 + number) for rank in ranks])
    return trees


def _host_rank(dataset: MeasuredDataset, rank: int, row: int) -> HostTime:
    """Return the times of a rank's threads in its own window (`row` 0) or while it was in a region."""
    elapsed = int(dataset.region_ns[rank][row - 1]) if row else dataset.elapsed[rank]
    threads = [states[row] for states in dataset.threads[rank]]
    times = [host_times(states, elapsed) for states in threads]
    useful, gpu, mpi = (sum(values) for values in zip(*times, strict=True))
    return HostTime(len(threads), useful, gpu, mpi if rank in dataset.with_mpi else None)


def _breakdown(dataset: MeasuredDataset, index: int) -> dict:
    """Return where one device's window went, in exact ns: compute + non_compute + idle = elapsed."""
    states = dataset.total[index]
    elapsed = dataset.elapsed[dataset.devices[index][0]]
    breakdown = {f"{part}_ns": int(time_in(states, part)) for part in (*SETS, *MIGRATION_SETS)}
    breakdown |= {
        "elapsed_ns": elapsed,
        "idle_ns": elapsed - breakdown["busy_ns"],
        "non_compute_ns": breakdown["busy_ns"] - breakdown["compute_ns"],
    }
    return breakdown | {"overlap_ratio": ratio(breakdown["overlap_ns"], breakdown["communication_ns"])}


ONE_RANK = "one rank has computing launches: there is nothing to compare"
SHARED = "ranks share GPUs, whose time belongs to no single role"


def role_balance(dataset: MeasuredDataset, roles: Sequence[tuple[list[int], list[str]]], sentence: str | None) -> dict:
    """Return the roles of a dataset and what the imbalance of computing time is made of.

    within_ns = sum over roles of G_r max C_r - sum C_r; between_ns = G max C - sum C - within_ns: what devices compute
    less than the busiest one because their ranks do other work.

    Parameters
    ----------
    dataset : MeasuredDataset
    roles : sequence of (list of int, list of str)
        Ranks of each role, and kernels that it is described by.
    sentence : str or None
        That ranks do different work.

    Returns
    -------
    dict
        reason (why nothing is compared, or null), sentence, within_ns, between_ns (null where not told), and `roles`:
        role, ranks, kernels, n_devices, compute_ns, load_balance (null of a single device).
    """
    entries = []
    within = 0
    for number, (ranks, kernels) in enumerate(roles):
        compute = [int(time_in(dataset.total[row], "compute")) for row in dataset.indices(set(ranks))]
        total = sum(compute)
        longest = max(compute, default=0)
        within += len(compute) * longest - total
        balance = ratio(total, len(compute) * longest) if len(compute) > 1 else None
        facts = {"n_devices": len(compute), "compute_ns": total, BALANCE: balance}
        entries.append({"role": number, "ranks": ranks, "kernels": kernels} | facts)
    reason = ONE_RANK if sum(len(ranks) for ranks, _ in roles) < 2 else SHARED if dataset.shared else None
    everyone = [int(time_in(states, "compute")) for states in dataset.total[: len(dataset.devices)]]
    whole = len(everyone) * max(everyone, default=0) - sum(everyone)
    parts = {"within_ns": None, "between_ns": None} if reason else {"within_ns": within, "between_ns": whole - within}
    return {"reason": reason, "sentence": sentence} | parts | {"roles": entries}
