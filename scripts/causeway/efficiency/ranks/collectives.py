"""Collectives of all ranks side by side: which kernel on one rank belongs to which on another.

By communicator and sequence number where the export reports them, else by communicator and order of occurrence; an
export that reports neither is matched by order alone, and only if all ranks have the same kernels in the same order.
What cannot be matched is reported, never guessed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causeway.core.tables import read_json, read_table
from causeway.efficiency.device_time import event_streams, states

_OPERATIONS = (
    ("all_reduce", r"all_?reduce|cross_device_reduce", lambda n: 2 * (n - 1) / n),
    ("reduce_scatter", r"reduce_?scatter", lambda n: (n - 1) / n),
    ("all_gather", r"all_?gather", lambda n: (n - 1) / n),
    ("all_to_all", r"all_?to_?all", lambda n: (n - 1) / n),
    ("barrier", r"barrier", None),
    ("broadcast", r"broadcast|bcast", None),
    ("send_recv", r"send|recv", None),
    ("other", r"", None),
)
"""Operations by what their names hold, and the bus factor: bus bandwidth = factor x size / latency (nccl-tests,
doc/PERFORMANCE.md).
"""
SYNCHRONISING = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier")
"""Operations that no rank can end before all have begun, so that all end at about the same moment."""


def operation(name: str) -> str:
    """Return the operation of a collective or of its kernel.

    >>> names = "ncclDevKernel_AllReduce_Sum_f16_RING_LL", "_allgather_base", "ncclDevKernel_Generic"
    >>> [operation(name) for name in names]
    ['all_reduce', 'all_gather', 'other']
    """
    return next(word for word, pattern, _ in _OPERATIONS if re.search(pattern, name, re.I))


def bus_factor(what: str, ranks: int) -> float | None:
    """Return the bus factor of an operation over some ranks; None where it has none."""
    factor = next((factor for word, _, factor in _OPERATIONS if word == what), None)
    return factor(ranks) if factor and ranks > 1 else None


@dataclass(frozen=True)
class MatchedCollectives:
    """Matched collectives of one communicator.

    Attributes
    ----------
    communicator : str or None
    ranks : list of int
        Ascending.
    start, end : ndarray of int64, shape (ranks, collectives), ns
        Of the kernels, on each rank's own clock.
    operations : list of str
        One per collective.
    bytes : ndarray of int64, shape (collectives,)
        -1 where unknown.
    """

    communicator: str | None
    ranks: list[int]
    start: np.ndarray
    end: np.ndarray
    operations: list[str]
    bytes: np.ndarray

    def synchronising(self) -> np.ndarray:
        """Return which collectives all ranks end together; bool, shape (collectives,)."""
        return np.isin(np.array(self.operations, object), SYNCHRONISING)

    def left_together(self) -> tuple[list[int], np.ndarray, np.ndarray]:
        """Return the collectives that all ranks end together.

        Returns
        -------
        ranks : list of int
        start : ndarray of int64, shape (ranks, collectives), ns
            Of the kernels, on each rank's own clock.
        bus_bytes : ndarray of int64, shape (collectives,), bytes
            What crosses each link: size times bus factor; -1 where it is not known.
        """
        together = self.synchronising()
        factors = [bus_factor(word, len(self.ranks)) or -1.0 for word in self.operations]
        sizes = np.where((self.bytes > 0) & (np.array(factors) > 0), self.bytes * factors, -1).astype(np.int64)
        return self.ranks, self.start[:, together], sizes[together]


Row = tuple[int, int, str, str | None, int | None, int]
"""Start, end, name, communicator, sequence number, bytes."""


def rows_of(folder: Path) -> dict[int, list[Row]]:
    """Return an export's collectives by rank, in order of start."""
    found: dict[int, list[Row]] = {}
    path = folder / "collectives.parquet"
    if path.is_file():
        for row in read_table(path, "collectives").to_pylist():
            size = -1 if row["bytes"] is None else row["bytes"]
            entry = (
                row["start_ns"],
                row["start_ns"] + row["duration_ns"],
                row["name"],
                row["communicator"],
                row["sequence"],
                size,
            )
            found.setdefault(row["rank"], []).append(entry)
        return found
    if not (folder / "launches.parquet").is_file():
        return found
    kinds = event_streams.class_bits(folder)
    names = dict(
        zip(
            *(
                read_table(folder / "kernels.parquet", "kernels").column(c).to_pylist()
                for c in ("kernel", "short_name")
            ),
            strict=True,
        )
    )
    kernels = read_table(folder / "configurations.parquet", "configurations", ["kernel"]).column("kernel").to_pylist()
    wanted = states.COMMUNICATION.bit_length() - 1
    for batch in event_streams.chunks(
        folder, "launches", ["start_ns", "duration_ns", "configuration", "rank", "stream"]
    ):
        configuration = batch.column("configuration").to_numpy()
        at = np.flatnonzero(kinds[configuration] == wanted)
        block = event_streams.times(batch)
        rank = batch.column("rank").to_numpy()
        for i in at.tolist():
            name = names[kernels[configuration[i]]]
            found.setdefault(int(rank[i]), []).append(
                (int(block["start"][i]), int(block["end"][i]), name, None, None, -1)
            )
    return found


def matched(folders: Sequence[Path]) -> tuple[list[MatchedCollectives], list[str]]:
    """Return the matched collectives of a dataset's exports, in the sheet's order."""
    usable = [folder for folder in map(Path, folders) if read_json(folder / "capabilities.json")["status"] != "refused"]
    return match([rows_of(folder) for folder in usable])


def match(exports: Sequence[dict[int, list[Row]]]) -> tuple[list[MatchedCollectives], list[str]]:
    """Return the matched collectives of two ranks or more, and sentences on what could not be matched."""
    ranks: dict[int, list[Row]] = {}
    for export in exports:
        ranks |= export
    by_group: dict[str | None, dict[int, list[Row]]] = {}
    for rank, rows in sorted(ranks.items()):
        for row in rows:
            by_group.setdefault(row[3], {}).setdefault(rank, []).append(row)
    groups = []
    notes = []
    for communicator, members in sorted(by_group.items(), key=lambda item: str(item[0])):
        if len(members) < 2:
            continue
        label = f"communicator {communicator}" if communicator is not None else "kernels of unknown communicators"
        aligned = _by_number(members) or _by_order(members)
        if aligned is None:
            counts = sorted({len(rows) for rows in members.values()})
            notes.append(
                f"{label}: ranks have {counts[0]} to {counts[-1]} collectives, or not the same ones in order, and no"
                " numbers"
            )
            continue
        start, end, size = (
            np.array([[row[field] for row in aligned[rank]] for rank in aligned], np.int64) for field in (0, 1, 5)
        )
        names = [operation(row[2]) for row in next(iter(aligned.values()))]
        groups.append(MatchedCollectives(communicator, list(aligned), start, end, names, size.max(axis=0)))
    if not groups and not notes:
        notes.append("no collective runs on two ranks or more")
    return groups, notes


def _by_number(members: dict[int, list[Row]]) -> dict[int, list[Row]] | None:
    """Match by sequence number: those that all ranks have."""
    if any(row[4] is None for rows in members.values() for row in rows):
        return None
    numbered = {rank: {row[4]: row for row in rows} for rank, rows in members.items()}
    common = sorted(set.intersection(*(set(rows) for rows in numbered.values())))
    return {rank: [rows[number] for number in common] for rank, rows in numbered.items()} if common else None


def _by_order(members: dict[int, list[Row]]) -> dict[int, list[Row]] | None:
    """Match by order of occurrence, if all ranks have the same names in the same order."""
    names = {tuple(row[2] for row in rows) for rows in members.values()}
    return members if len(names) == 1 else None
