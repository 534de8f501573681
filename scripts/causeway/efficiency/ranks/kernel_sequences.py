"""Sequences of collective kernels of unknown communicators: those of one device and stream start in the order in which
the program issued them; kernels of two streams may start in another order on another rank.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from causeway.efficiency.ranks.common_events import are_common, scatter
from causeway.efficiency.ranks.rank_collectives import RankCollectives


@dataclass(frozen=True)
class Sequences:
    """Sequences that belong together.

    Attributes
    ----------
    rows : dict of int to ndarray of int64, shape (collectives,)
        By rank, ascending: indices among the rank's own collectives.
    further : dict of int to ndarray of int64, shape (collectives, devices - 1)
        Indices of the same collectives' kernels on further devices of a rank; no entry where there are none.
    """

    rows: dict[int, np.ndarray]
    further: dict[int, np.ndarray]


def sequences(
    ranks: Mapping[int, RankCollectives], members: Mapping[int, np.ndarray]
) -> tuple[list[Sequences], str | None]:
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
        return [Sequences(dict(members), {})], None
    forms = {tuple(map(len, devices)) for devices in sizes}
    if len(forms) > 1:
        counts = [sum(form) for form in forms]
        few = min(counts)
        many = max(counts)
        streams = f"{few} to {many} streams" if few < many else "streams of unlike devices"
        return [], f"ranks have collectives on {streams}, which run at once: which belong together cannot be told"
    (form,) = forms
    if len(set(form)) == 1 and len(form) > 1:
        return [one for stream in range(form[0]) for one in _of_devices(ranks, lanes, stream)], None
    pairs = [(device, stream) for device, streams in enumerate(form) for stream in range(streams)]
    return [Sequences({rank: own[device][stream] for rank, own in lanes.items()}, {}) for device, stream in pairs], None


def _lanes(one: RankCollectives, rows: np.ndarray) -> list[list[np.ndarray]]:
    """Return the indices of each device and stream, both in the order of their numbers."""
    found: list[list[np.ndarray]] = []
    for device in np.unique(one.device[rows]).tolist():
        mine = rows[one.device[rows] == device]
        found.append([mine[one.stream[mine] == stream] for stream in np.unique(one.stream[mine]).tolist()])
    return found


def _overlap(one: RankCollectives, rows: np.ndarray) -> bool:
    """Return whether two kernels of a rank run at once."""
    return bool((one.start[rows][1:] < np.maximum.accumulate(one.end[rows])[:-1]).any())


def _of_devices(
    ranks: Mapping[int, RankCollectives], lanes: Mapping[int, Sequence[Sequence[np.ndarray]]], stream: int
) -> Iterator[Sequences]:
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
        yield Sequences(chosen, further)
        return
    for device in range(len(next(iter(own.values())))):
        yield Sequences({rank: rows[device] for rank, rows in own.items()}, {})


def _end_together(one: RankCollectives, rows: Sequence[np.ndarray]) -> bool:
    """Return whether kernels of several devices of a rank, which have one clock, end at common moments."""
    if len({(part.size, tuple(one.name[part].tolist())) for part in rows}) > 1:
        return False
    indices = np.stack(rows)
    return are_common(scatter(one.end[indices]), scatter(one.start[indices]))
