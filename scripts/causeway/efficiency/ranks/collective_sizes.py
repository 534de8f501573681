"""Collectives by operation, algorithm and size: how long they take, and the bandwidth that they reach.

Bandwidths are those of nccl-tests (doc/PERFORMANCE.md): algorithm bandwidth = size / time, bus bandwidth = algorithm
bandwidth x bus factor, which can be held against the rate of the links whatever the number of ranks.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.tables import SCHEMAS, read_table, write_table
from causeway.efficiency.device_time import event_streams, states
from causeway.efficiency.ranks.collectives import bus_factor, match, operation, rows_of

ALGORITHM = re.compile(
    r"_(RING|TREE|COLLNET_DIRECT|COLLNET_CHAIN|COLLNET|NVLS_TREE|NVLS|PAT)(?:_(LL128|LL|SIMPLE))?(?=_|\(|$)", re.I
)
"""How NCCL and RCCL name a kernel's algorithm and protocol, as in ncclDevKernel_AllReduce_Sum_f16_RING_LL; kernels that
run what they are told (ncclDevKernel_Generic) name none.
"""
FACTOR_ONE = ("broadcast", "send_recv")
"""Operations whose data crosses each link once."""
Moment = tuple[int, int]
"""Rank and start on its own clock, ns."""


def summarise_collectives(dataset: str, folders: Sequence[Path], path: Path) -> None:
    """Write `collective_sizes.parquet`, the row with most time first; no row without collectives.

    Parameters
    ----------
    dataset : str
    folders : sequence of Path
        Folders of tables of the exports that were not refused.
    path : Path
    """
    exports = [rows_of(folder) for folder in folders]
    kernels: dict[Moment, str] = {}
    sizes: dict[Moment, int] = {}
    for folder in folders:
        kernels |= _kernel_names(folder)
        sizes |= _group_sizes(folder)
    groups = [group for group in match(exports)[0] if group.synchronising().any()]
    together = {
        (rank, int(start)): (at, number)
        for at, group in enumerate(groups)
        for rank, starts in zip(group.ranks, group.start, strict=True)
        for number, start in enumerate(starts.tolist())
        if group.synchronising()[number]
    }
    shortest: dict[tuple, tuple[tuple, int, bool]] = {}
    for export in exports:
        for rank, rows in export.items():
            for start, end, name, _, _, size in rows:
                moment = rank, start
                instance = together.get(moment, (-1, *moment))
                kernel = kernels.get(moment, name)
                what = operation(name if operation(name) != "other" else kernel)
                key = (what, *algorithm(kernel), sizes.get(moment), size)
                known = shortest.get(instance)
                if known is None or end - start < known[1]:
                    shortest[instance] = key, end - start, moment in together
    found: dict[tuple, list[int]] = {}
    for key, time, matched in shortest.values():
        found.setdefault((*key, matched), []).append(time)
    rows = sorted((_row(key, times) for key, times in found.items()), key=_order)
    schema = SCHEMAS["collective_sizes"]
    columns = {field.name: pa.array([row[field.name] for row in rows], field.type) for field in schema}
    write_table(pa.table(columns, schema=schema), path, "collective_sizes", metadata={"dataset": dataset})


def algorithm(kernel: str) -> tuple[str | None, str | None]:
    """Return the algorithm and protocol that a kernel's name gives, None where it gives none.

    >>> algorithm("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*, unsigned long)")
    ('ring', 'LL')
    >>> algorithm("ncclKernel_Generic")
    (None, None)
    """
    found = ALGORITHM.search(kernel)
    return (None, None) if found is None else (found[1].lower(), found[2] and found[2].upper())


def _order(row: dict) -> tuple:
    return -row["total_ns"], row["operation"], row["bytes"] or 0, str(row)


def _row(key: tuple, times: list[int]) -> dict:
    what, way, protocol, ranks, size, matched = key
    times.sort()
    median = times[(len(times) - 1) // 2]
    factor = 1.0 if what in FACTOR_ONE else bus_factor(what, ranks) if ranks else None
    known = size >= 0 and median > 0
    return {
        "operation": what, "algorithm": way, "protocol": protocol, "ranks": ranks, "bytes": size if size >= 0 else None,
        "matched": matched, "collectives": len(times), "total_ns": sum(times), "least_ns": times[0],
        "median_ns": median, "algorithm_gb_per_s": size / median if known else None,
        "bus_gb_per_s": size * factor / median if known and factor is not None else None,
        "best_bus_gb_per_s": size * factor / times[0] if known and factor is not None and times[0] > 0 else None,
    }  # fmt: skip


def _group_sizes(folder: Path) -> dict[Moment, int]:
    path = folder / "collectives.parquet"
    if not path.is_file():
        return {}
    rows = read_table(path, "collectives", ["rank", "start_ns", "group_size"]).to_pylist()
    return {(row["rank"], row["start_ns"]): row["group_size"] for row in rows if row["group_size"] is not None}


def _kernel_names(folder: Path) -> dict[Moment, str]:
    """Return the full names of communication kernels by rank and start."""
    if not (folder / "launches.parquet").is_file():
        return {}
    kinds = event_streams.class_bits(folder)
    rows = read_table(folder / "kernels.parquet", "kernels", ["kernel", "name"]).to_pylist()
    name_of = {row["kernel"]: row["name"] for row in rows}
    of = read_table(folder / "configurations.parquet", "configurations", ["kernel"]).column("kernel").to_pylist()
    wanted = states.COMMUNICATION.bit_length() - 1
    found = {}
    for batch in event_streams.chunks(folder, "launches", ["start_ns", "configuration", "rank"]):
        configuration = batch.column("configuration").to_numpy()
        at = np.flatnonzero(kinds[configuration] == wanted)
        start = batch.column("start_ns").to_numpy()[at].tolist()
        rank = batch.column("rank").to_numpy()[at].tolist()
        for own, begun, number in zip(rank, start, configuration[at].tolist(), strict=True):
            found[own, begun] = name_of[of[number]]
    return found
