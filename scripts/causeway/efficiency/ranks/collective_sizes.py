"""Collectives by operation, algorithm and size: how long they take, and the bandwidth that they reach.

Bandwidths are those of nccl-tests (doc/PERFORMANCE.md): algorithm bandwidth = size / time, bus bandwidth = algorithm
bandwidth x bus factor, which can be held against the rate of the links whatever the number of ranks.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.tables import SCHEMAS, folder_bytes, read_json, write_table
from causeway.efficiency.device_time import event_streams, states
from causeway.efficiency.ranks.collectives import aligned, bus_factor, of_ranks, operation
from causeway.efficiency.ranks.exchanges import with_exchanges
from causeway.efficiency.ranks.rank_collectives import RankCollectives, collectives_of
from causeway.events.event_blocks import kernel_columns
from causeway.numeric.mpi import Ranks, merged

ALGORITHM = re.compile(
    r"_(RING|TREE|COLLNET_DIRECT|COLLNET_CHAIN|COLLNET|NVLS_TREE|NVLS|PAT)(?:_(LL128|LL|SIMPLE))?(?=_|\(|$)", re.I
)
"""How NCCL and RCCL name a kernel's algorithm and protocol, as in ncclDevKernel_AllReduce_Sum_f16_RING_LL; kernels that
run what they are told (ncclDevKernel_Generic) name none.
"""
FACTOR_ONE = ("broadcast", "send_recv")
"""Operations whose data crosses each link once."""
Label = tuple[str, str | None, str | None]
"""Operation, algorithm and protocol."""
KEYS = ["label", "group_size", "bytes", "matched"]
UNKNOWN = -1
"""A group size or a kernel that the export does not tell."""


def summarise_collectives(
    dataset: str,
    folders: Sequence[str | Path],
    clocks_file: str | Path,
    path: str | Path,
    *,
    ranks: Ranks | None = None,
) -> None:
    """Write `collective_sizes.parquet`, the row with most time first; no row without collectives.

    Every export is read by one rank: the results are the same, to the byte, on any number of ranks.

    Parameters
    ----------
    dataset : str
    folders : sequence of path
        Folders of tables, in the sheet's order; exports that were refused are left out.
    clocks_file : path
        `clocks.json`: whether sends and receives are exchanges of all ranks.
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
        here = {
            index: read_export(given[index]) for index in ranks.share_of([folder_bytes(folder) for folder in given])
        }
    parts = ranks.collect(here)
    with ranks.together():
        if parts is not None:
            sized = {rank: of_rank for of_export in merged(parts).values() for rank, of_rank in of_export.items()}
            rows = _rows(sized, read_json(clocks_file))
            table = pa.Table.from_pylist(rows, SCHEMAS["collective_sizes"])
            write_table(table, path, "collective_sizes", metadata={"dataset": dataset})


@dataclass(frozen=True)
class SizedCollectives:
    """Collectives of a rank, with what tells them apart.

    Attributes
    ----------
    rank : RankCollectives
        n of them.
    label : ndarray of int64, shape (n,)
        Place in `labels`.
    labels : list of (str, str or None, str or None)
        Operation, algorithm and protocol.
    """

    rank: RankCollectives
    label: np.ndarray
    labels: list[Label]


def read_export(folder: Path) -> dict[int, SizedCollectives]:
    """Return the collectives of an export by rank; none of one that was refused."""
    if read_json(folder / "capabilities.json")["status"] == "refused":
        return {}
    ranks = collectives_of(folder)
    kernels = {rank: np.full(len(collectives), UNKNOWN) for rank, collectives in ranks.items()}
    names = kernel_columns(folder, ["name"]).column("name").to_pylist()
    wanted = states.COMMUNICATION.bit_length() - 1
    kinds = event_streams.class_bits(folder)
    for batch in event_streams.chunks(folder, "launches", ["start_ns", "configuration", "rank"]):
        configuration = batch.column("configuration").to_numpy().astype(np.int64)
        _at_starts(ranks, kernels, batch, np.where(kinds[configuration] == wanted, configuration, UNKNOWN))
    return {rank: _sized(collectives, kernels[rank], names) for rank, collectives in ranks.items()}


def _at_starts(
    ranks: Mapping[int, RankCollectives], into: Mapping[int, np.ndarray], batch: pa.RecordBatch, values: np.ndarray
) -> None:
    """Give collectives the values of the rows that start with them on their rank, but for `UNKNOWN` ones."""
    rows = np.flatnonzero(values != UNKNOWN)
    start, rank = (batch.column(name).to_numpy()[rows] for name in ("start_ns", "rank"))
    for owner in np.unique(rank).tolist():
        if owner not in ranks or not len(ranks[owner]):
            continue
        own = ranks[owner].start
        chosen = np.flatnonzero(rank == owner)
        order = np.argsort(start[chosen], kind="stable")
        ordered = start[chosen][order]
        low, high = np.searchsorted(own, [ordered[0], ordered[-1] + 1])
        index = np.searchsorted(ordered, own[low:high], "right") - 1
        there = ordered[index] == own[low:high]
        into[owner][low:high][there] = values[rows][chosen][order][index[there]]


def _sized(collectives: RankCollectives, kernel: np.ndarray, names: Sequence[str]) -> SizedCollectives:
    """Return a rank's collectives with their labels, from their names and those of the kernels that start with them."""
    pairs, label = np.unique(collectives.name.astype(np.int64) * (len(names) + 1) + kernel + 1, return_inverse=True)
    labels = []
    for name, configuration in zip(*(half.tolist() for half in np.divmod(pairs, len(names) + 1)), strict=True):
        own = collectives.names[name]
        full = names[configuration - 1] if configuration else own
        labels.append((operation(own if operation(own) != "other" else full), *algorithm(full)))
    return SizedCollectives(collectives, label, labels)


def _rows(ranks: Mapping[int, SizedCollectives], clocks: Mapping) -> list[dict]:
    """Return the rows of `collective_sizes`, in order, by `clocks.json`."""
    of_rank = {rank: sized.rank for rank, sized in ranks.items()}
    number: dict[Label, int] = {}
    index = {
        rank: np.array([number.setdefault(label, len(number)) for label in sized.labels], np.int64)
        for rank, sized in ranks.items()
    }
    alone = {rank: np.ones(len(sized), bool) for rank, sized in of_rank.items()}
    parts = []
    groups = aligned(of_rank)[0]
    named, _ = with_exchanges([of_ranks(group, of_rank) for group in groups], clocks)
    for group, matched in zip(groups, named, strict=True):
        together = matched.synchronising()
        members = np.stack([of_rank[rank].group_size[rows] for rank, rows in group.rows.items()]).max(axis=0)
        together &= members <= len(group.rows)
        for rank, rows in group.further.items():
            alone[rank][rows[together]] = False
        chosen = {rank: rows[together] for rank, rows in group.rows.items()}
        times = np.stack([(of_rank[rank].end - of_rank[rank].start)[rows] for rank, rows in chosen.items()])
        last = times.argmin(axis=0)
        for position, (rank, rows) in enumerate(chosen.items()):
            alone[rank][rows] = False
            parts.append(_counted(ranks[rank], index[rank], rows[last == position], matched=True))
    parts += [_counted(sized, index[rank], np.flatnonzero(alone[rank]), matched=False) for rank, sized in ranks.items()]
    if not parts:
        return []
    labels = list(number)
    grouped = pa.concat_tables(parts).group_by(KEYS, use_threads=False).aggregate([("time_ns", "list")])
    keys = (grouped.column(name).to_pylist() for name in KEYS)
    lists = (scalar.values.to_numpy() for scalar in grouped.column("time_ns_list"))
    entries = [_row((*labels[label], *key), time) for label, *key, time in zip(*keys, lists, strict=True)]
    return sorted(entries, key=_order)


def _counted(sized: SizedCollectives, index: np.ndarray, rows: np.ndarray, *, matched: bool) -> pa.Table:
    """Return `KEYS` and the times of some of a rank's collectives."""
    values = index[sized.label[rows]], sized.rank.group_size[rows], sized.rank.bytes[rows]
    time = sized.rank.end[rows] - sized.rank.start[rows]
    return pa.table([*values, np.full(rows.size, matched), time], names=[*KEYS, "time_ns"])


def algorithm(kernel: str) -> tuple[str | None, str | None]:
    """Return the algorithm and protocol that a kernel's name gives, None where it gives none.

    >>> algorithm("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*, unsigned long)")
    ('ring', 'LL')
    >>> algorithm("ncclKernel_Generic")
    (None, None)
    """
    match = ALGORITHM.search(kernel)
    return (None, None) if match is None else (match[1].lower(), match[2] and match[2].upper())


def _order(row: dict) -> tuple:
    return -row["total_ns"], row["operation"], row["bytes"] or 0, str(row)


def _row(key: tuple, times: np.ndarray) -> dict:
    what, way, protocol, ranks, size, matched = key
    times = np.sort(times)
    least, median = (int(times[position]) for position in (0, (times.size - 1) // 2))
    factor = 1.0 if what in FACTOR_ONE else bus_factor(what, ranks) if ranks != UNKNOWN else None
    has_rate = size >= 0 and median > 0
    return {
        "operation": what, "algorithm": way, "protocol": protocol, "ranks": None if ranks == UNKNOWN else ranks,
        "bytes": size if size >= 0 else None, "matched": matched, "collectives": times.size,
        "total_ns": int(times.sum()), "least_ns": least, "median_ns": median,
        "algorithm_gb_per_s": size / median if has_rate else None,
        "bus_gb_per_s": size * factor / median if has_rate and factor is not None else None,
        "best_bus_gb_per_s": size * factor / least if has_rate and factor is not None and least > 0 else None,
    }  # fmt: skip
