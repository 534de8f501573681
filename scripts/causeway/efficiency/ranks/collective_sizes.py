"""Collectives by operation, algorithm and size: how long they take, and the bandwidth that they reach.

Bandwidths are those of nccl-tests (doc/PERFORMANCE.md): algorithm bandwidth = size / time, bus bandwidth = algorithm
bandwidth x bus factor, which can be held against the rate of the links whatever the number of ranks.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.tables import SCHEMAS, folder_bytes, read_json, read_table, write_table
from causeway.efficiency.device_time import event_streams, states
from causeway.efficiency.ranks.collectives import Row, bus_factor, match, operation, rows_of
from causeway.numeric.mpi import Ranks

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


def summarise_collectives(
    dataset: str, folders: Sequence[str | Path], path: str | Path, *, ranks: Ranks | None = None
) -> None:
    """Write `collective_sizes.parquet`, the row with most time first; no row without collectives.

    Every export is read by one rank: the results are the same, to the byte, on any number of ranks.

    Parameters
    ----------
    dataset : str
    folders : sequence of path
        Folders of tables, in the sheet's order; exports that were refused are left out.
    path : path
    ranks : Ranks or None
        The processes that share the work; None for this one alone. Rank 0 writes.

    Raises
    ------
    CausewayError
        On all ranks, if anything failed on one.
    """
    ranks = ranks or Ranks()
    with ranks.together():
        given = [Path(folder) for folder in folders]
        here = {at: read_export(given[at]) for at in ranks.share_of([folder_bytes(folder) for folder in given])}
    parts = ranks.collect(here)
    with ranks.together():
        if ranks.first:
            found = {at: one for part in parts for at, one in part.items() if one is not None}
            rows = _rows([found[at] for at in sorted(found)])
            schema = SCHEMAS["collective_sizes"]
            columns = {field.name: pa.array([row[field.name] for row in rows], field.type) for field in schema}
            write_table(pa.table(columns, schema=schema), path, "collective_sizes", metadata={"dataset": dataset})


@dataclass(frozen=True)
class ExportCollectives:
    """Collectives of an export: rows by rank, full names of their kernels and numbers of ranks by moment."""

    rows: dict[int, list[Row]]
    kernels: dict[Moment, str]
    sizes: dict[Moment, int]


def read_export(folder: Path) -> ExportCollectives | None:
    """Return the collectives of an export; None for one that was refused."""
    if read_json(folder / "capabilities.json")["status"] == "refused":
        return None
    rows = rows_of(folder)
    moments = {(rank, row[0]) for rank, own in rows.items() for row in own}
    return ExportCollectives(rows, _kernel_names(folder, moments), _group_sizes(folder))


def _rows(exports: Sequence[ExportCollectives]) -> list[dict]:
    """Return the rows of `collective_sizes`, in order."""
    kernels = {moment: name for one in exports for moment, name in one.kernels.items()}
    sizes = {moment: size for one in exports for moment, size in one.sizes.items()}
    groups = [group for group in match([one.rows for one in exports])[0] if group.synchronising().any()]
    together = {
        (rank, int(start)): (at, number)
        for at, group in enumerate(groups)
        for rank, starts in zip(group.ranks, group.start, strict=True)
        for number, start in enumerate(starts.tolist())
        if group.synchronising()[number]
    }
    shortest: dict[tuple, tuple[tuple, int, bool]] = {}
    for one in exports:
        for rank, rows in one.rows.items():
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
    return sorted((_row(key, times) for key, times in found.items()), key=_order)


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


def _kernel_names(folder: Path, moments: set[Moment]) -> dict[Moment, str]:
    """Return the full names of those communication kernels that start at the moments, by rank and start."""
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
            if (own, begun) in moments:
                found[own, begun] = name_of[of[number]]
    return found
