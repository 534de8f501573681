"""Collectives of all ranks side by side: which kernel on one rank belongs to which on another.

By communicator and sequence number where the export reports them, else by communicator and order of occurrence; an
export that reports neither is matched by order alone, each device and stream by itself, and only if all ranks have the
same kernels in the same order.
What cannot be matched is reported, never guessed.

Where communicators are unknown, collectives of one device and stream are a sequence: they start in the order in which
the program issued them. Kernels of two streams may start in another order on another rank.
"""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from causeway.core.tables import read_json
from causeway.efficiency.ranks.common_events import GOOD_SHARE, are_common, scatter
from causeway.efficiency.ranks.rank_collectives import UNNUMBERED, RankCollectives, collectives_of

FEWEST_IN_COMMON = 10
"""Collectives in common from which the moments of their ends tell whether two recordings were matched rightly."""
SEND_RECEIVE = "send_recv"
EXCHANGE = "exchange"
"""Operations of sends and receives: of some ranks with others, and of all ranks with all (see `exchanges`)."""
OTHER = "other"
"""An operation that no name tells."""
_OPERATIONS = (
    ("all_reduce", r"all_?reduce|cross_device_reduce", lambda n: 2 * (n - 1) / n),
    ("reduce_scatter", r"reduce_?scatter", lambda n: (n - 1) / n),
    ("all_gather", r"all_?gather", lambda n: (n - 1) / n),
    ("all_to_all", r"all_?to_?all", lambda n: (n - 1) / n),
    ("barrier", r"barrier", None),
    ("broadcast", r"broadcast|bcast", None),
    (SEND_RECEIVE, r"send|recv", None),
    (OTHER, r"", None),
)
"""Operations by what their names hold, and the bus factor: bus bandwidth = factor x size / latency (nccl-tests,
doc/PERFORMANCE.md).
"""
SYNCHRONISING = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier", EXCHANGE)
"""Operations that no rank can end before all have begun, so that all end at about the same moment."""


def operation(name: str) -> str:
    """Return the operation of a collective or of its kernel.

    >>> names = "ncclDevKernel_AllReduce_Sum_f16_RING_LL", "_allgather_base", "ncclDevKernel_Generic"
    >>> [operation(name) for name in names]
    ['all_reduce', 'all_gather', 'other']
    """
    return next(word for word, pattern, _ in _OPERATIONS if re.search(pattern, name, re.I))


@functools.cache  # asked for each collective
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
    group_size : ndarray of int64, shape (collectives,), or None
        Ranks of the communicator as the exports tell, more than `ranks` where some were not read; -1 where unknown,
        None where all are.
    shape : ndarray of int64, shape (collectives,), or None
        Equal where the launches' shapes are on the first rank; -1 where unknown, None where all are.
    sequence : int or None
        Which of several sequences of unknown communicators, from 1 on.
    unrecorded : ndarray of bool, shape (collectives,), or None
        Which began on some rank before the recording of another one: how long that one was waited for is not known.
        None where none did.
    """

    communicator: str | None
    ranks: list[int]
    start: np.ndarray
    end: np.ndarray
    operations: list[str]
    bytes: np.ndarray
    group_size: np.ndarray | None = None
    shape: np.ndarray | None = None
    sequence: int | None = None
    unrecorded: np.ndarray | None = None

    def members(self, index: int) -> int:
        """Return how many ranks take part in a collective, by its index: as told, at least those that were read."""
        return max(len(self.ranks), -1 if self.group_size is None else int(self.group_size[index]))

    def synchronising(self) -> np.ndarray:
        """Return which collectives all ranks end together, of those that all ranks recorded; bool, shape
        (collectives,).
        """
        together = np.isin(np.array(self.operations, object), SYNCHRONISING)
        return together if self.unrecorded is None else together & ~self.unrecorded

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
        factors = [bus_factor(word, self.members(index)) or -1.0 for index, word in enumerate(self.operations)]
        sizes = np.where((self.bytes > 0) & (np.array(factors) > 0), self.bytes * factors, -1).astype(np.int64)
        return self.ranks, self.start[:, together], sizes[together]


@dataclass(frozen=True)
class AlignedRanks:
    """Which collective of one rank is which of another.

    Attributes
    ----------
    communicator : str or None
    rows : dict of int to ndarray of int64, shape (collectives,)
        By rank, ascending: places among the rank's own collectives; those at one place of the arrays are one.
    further : dict of int to ndarray of int64, shape (collectives, devices - 1)
        Indices of the same collectives' kernels on further devices of a rank; no entry where there are none.
    sequence : int or None
        Which of several sequences of unknown communicators, from 1 on.
    """

    communicator: str | None
    rows: dict[int, np.ndarray]
    further: dict[int, np.ndarray] = field(default_factory=dict)
    sequence: int | None = None


def matched(folders: Sequence[str | Path]) -> tuple[list[MatchedCollectives], list[str]]:
    """Return the matched collectives of a dataset's exports, in the sheet's order."""
    usable = [folder for folder in map(Path, folders) if read_json(folder / "capabilities.json")["status"] != "refused"]
    return match([collectives_of(folder) for folder in usable])


def match(exports: Sequence[Mapping[int, RankCollectives]]) -> tuple[list[MatchedCollectives], list[str]]:
    """Return the matched collectives of two ranks or more, and sentences on what could not be matched."""
    ranks = {rank: collectives for export in exports for rank, collectives in export.items()}
    groups, notes = aligned(ranks)
    return [of_ranks(group, ranks) for group in groups], notes


def aligned(ranks: Mapping[int, RankCollectives]) -> tuple[list[AlignedRanks], list[str]]:
    """Return which collectives of two ranks or more belong together, and sentences on what could not be matched."""
    by_group: dict[str | None, dict[int, np.ndarray]] = {}
    for rank, collectives in sorted(ranks.items()):
        for communicator, rows in collectives.by_communicator():
            by_group.setdefault(communicator, {})[rank] = rows
    groups = []
    notes = []
    for communicator, members in sorted(by_group.items(), key=lambda item: str(item[0])):
        if len(members) < 2:
            continue
        label = f"communicator {communicator}" if communicator is not None else "kernels of unknown communicators"
        numbered = _by_number(ranks, members)
        if numbered:
            groups.append(AlignedRanks(communicator, numbered))
            continue
        parts = [AlignedRanks(communicator, members)]
        why: str | None = None
        if communicator is None:
            parts, why = sequences(ranks, members)
        if why:
            notes.append(f"{label}: {why}")
        for number, part in enumerate(parts, 1):
            part = replace(part, sequence=number if len(parts) > 1 else None)
            if _same_order(ranks, part.rows):
                groups.append(part)
                continue
            counts = sorted({rows.size for rows in part.rows.values()})
            shared = _recorded_by_all(ranks, part.rows)
            if shared:
                groups.append(replace(part, rows=shared, further={}))
                notes.append(f"{label}: {counts[-1] - counts[0]} collectives of some ranks were not recorded by others")
                continue
            notes.append(
                f"{label}: ranks have {counts[0]} to {counts[-1]} collectives, or not the same ones in order, and no"
                " numbers"
            )
    if not groups and not notes:
        notes.append("no collective of the GPUs runs on two ranks or more")
    return groups, notes


def of_ranks(group: AlignedRanks, ranks: Mapping[int, RankCollectives]) -> MatchedCollectives:
    """Return the collectives of a group, as all its ranks have them."""
    start, end, size, members = (
        np.stack([getattr(ranks[rank], name)[rows] for rank, rows in group.rows.items()])
        for name in ("start", "end", "bytes", "group_size")
    )
    first, rows = next(iter(group.rows.items()))
    words = [operation(name) for name in ranks[first].names]
    operations = [words[name] for name in ranks[first].name[rows].tolist()]
    return MatchedCollectives(
        communicator=group.communicator,
        ranks=list(group.rows),
        start=start,
        end=end,
        operations=operations,
        bytes=size.max(axis=0),
        group_size=members.max(axis=0),
        shape=ranks[first].shape[rows],
        sequence=group.sequence,
    )


def _by_number(ranks: Mapping[int, RankCollectives], members: Mapping[int, np.ndarray]) -> dict[int, np.ndarray] | None:
    """Match by sequence number: those that all ranks have; of equal numbers on a rank the last."""
    numbers = {rank: ranks[rank].sequence[rows] for rank, rows in members.items()}
    if any((own == UNNUMBERED).any() for own in numbers.values()):
        return None
    common = functools.reduce(np.intersect1d, numbers.values())
    if not common.size:
        return None
    matches = {}
    for rank, own in numbers.items():
        order = np.argsort(own, kind="stable")
        matches[rank] = members[rank][order[np.searchsorted(own[order], common, "right") - 1]]
    return matches


def _recorded_by_all(
    ranks: Mapping[int, RankCollectives], members: Mapping[int, np.ndarray]
) -> dict[int, np.ndarray] | None:
    """Match by order what all ranks have, counted from the last where recordings begin apart, from the first where they
    end apart; None where the ends on all ranks agree with neither, or with both.

    Clocks may differ by a constant: of each rank only how far its ends scatter around their median distance from those
    of the first counts.
    """
    fewest = min(rows.size for rows in members.values())
    if fewest < FEWEST_IN_COMMON:
        return None
    agreeing: list[tuple[float, dict[int, np.ndarray]]] = []
    for is_end in (True, False):
        own = {rank: rows[rows.size - fewest :] if is_end else rows[:fewest] for rank, rows in members.items()}
        ends, starts = (
            scatter(_without_offsets(np.stack([getattr(ranks[rank], name)[rows] for rank, rows in own.items()])))
            for name in ("end", "start")
        )
        if _same_order(ranks, own) and are_common(ends, starts):
            agreeing.append((ends, own))
    agreeing.sort(key=lambda candidate: candidate[0])
    if not agreeing or (len(agreeing) > 1 and agreeing[0][0] >= GOOD_SHARE * agreeing[1][0]):
        return None
    return agreeing[0][1]


def _without_offsets(times: np.ndarray) -> np.ndarray:
    """Return ranks' times of the same events on the clock of the first rank, by their median distance; ns."""
    apart = times - times[0]
    return times - np.round(np.median(apart, axis=1, keepdims=True)).astype(np.int64)


def _same_order(ranks: Mapping[int, RankCollectives], members: Mapping[int, np.ndarray]) -> bool:
    """Return whether all ranks have the same names in the same order."""
    number: dict[str, int] = {}
    first = None
    for rank, rows in members.items():
        own = np.array([number.setdefault(name, len(number)) for name in ranks[rank].names])[ranks[rank].name[rows]]
        first = own if first is None else first
        if not np.array_equal(own, first):
            return False
    return True


def sequences(
    ranks: Mapping[int, RankCollectives], members: Mapping[int, np.ndarray]
) -> tuple[list[AlignedRanks], str | None]:
    """Return the sequences of kernels that are to be matched by order, or why none can be told.

    Of each rank the kernels of its first device and first stream, of its first device and second stream, and so on, by
    their numbers; all in one sequence where ranks differ in that and no two run at once. Devices of one rank whose
    kernels end together are one member of their collectives, which begins with the last of them.

    Parameters
    ----------
    ranks : mapping of int to RankCollectives
    members : mapping of int to ndarray of int64, shape (n,)
        By rank, ascending: indices of its n collectives.
    """
    lanes = {rank: _lanes(ranks[rank], rows) for rank, rows in members.items()}
    sizes = {tuple(tuple(rows.size for rows in streams) for streams in devices) for devices in lanes.values()}
    if len(sizes) > 1 and not any(_overlap(ranks[rank], rows) for rank, rows in members.items()):
        return [AlignedRanks(None, dict(members))], None
    forms = {tuple(map(len, devices)) for devices in sizes}
    if len(forms) > 1:
        counts = [sum(form) for form in forms]
        few = min(counts)
        many = max(counts)
        streams = f"{few} to {many} streams" if few < many else "streams of unlike devices"
        return [], f"ranks have collectives on {streams}, which run at once: which belong together cannot be told"
    (form,) = forms
    if len(set(form)) == 1 and len(form) > 1:
        return [same for stream in range(form[0]) for same in _of_devices(ranks, lanes, stream)], None
    pairs = [(device, stream) for device, streams in enumerate(form) for stream in range(streams)]
    rows = [{rank: own[device][stream] for rank, own in lanes.items()} for device, stream in pairs]
    return [AlignedRanks(None, of_pair) for of_pair in rows], None


def _lanes(collectives: RankCollectives, rows: np.ndarray) -> list[list[np.ndarray]]:
    """Return the indices of each device and stream, both in the order of their numbers."""
    lanes: list[list[np.ndarray]] = []
    for device in np.unique(collectives.device[rows]).tolist():
        own = rows[collectives.device[rows] == device]
        lanes.append([own[collectives.stream[own] == stream] for stream in np.unique(collectives.stream[own]).tolist()])
    return lanes


def _overlap(collectives: RankCollectives, rows: np.ndarray) -> bool:
    """Return whether two kernels of a rank run at once."""
    return bool((collectives.start[rows][1:] < np.maximum.accumulate(collectives.end[rows])[:-1]).any())


def _of_devices(
    ranks: Mapping[int, RankCollectives], lanes: Mapping[int, Sequence[Sequence[np.ndarray]]], stream: int
) -> Iterator[AlignedRanks]:
    """Give the sequences of a stream of all devices: one where each rank's devices end together, else one of each."""
    own = {rank: [streams[stream] for streams in devices] for rank, devices in lanes.items()}
    if all(_end_together(ranks[rank], rows) for rank, rows in own.items()):
        chosen: dict[int, np.ndarray] = {}
        further: dict[int, np.ndarray] = {}
        for rank, rows in own.items():
            indices = np.stack(rows)
            last = ranks[rank].start[indices].argmax(axis=0)
            chosen[rank] = indices[last, np.arange(last.size)]
            is_other = np.arange(len(rows)) != last[:, None]
            further[rank] = indices.T[is_other].reshape(last.size, len(rows) - 1)
        yield AlignedRanks(None, chosen, further)
        return
    for device in range(len(next(iter(own.values())))):
        yield AlignedRanks(None, {rank: rows[device] for rank, rows in own.items()})


def _end_together(collectives: RankCollectives, rows: Sequence[np.ndarray]) -> bool:
    """Return whether kernels of several devices of a rank, which have one clock, end at common moments."""
    if len({(part.size, tuple(collectives.name[part].tolist())) for part in rows}) > 1:
        return False
    indices = np.stack(rows)
    return are_common(scatter(collectives.end[indices]), scatter(collectives.start[indices]))
