"""Steps of the host of which the recording holds nothing: what is not recorded is unknown, and no idle time."""

from collections import Counter
from pathlib import Path

import numpy as np

from causeway.core.vocabulary import form_of, without_numbers
from causeway.events.event_blocks import chunks, host_ranges, numbers, times
from causeway.readers.common.issues import Issues

FEW_UNRECORDED = 0.01
"""Share of the time of all steps that may be without a record without ruling out the time line: no share of time is off
by more, and results show shares in whole percent.
"""
AS_BUSY = 0.5
"""Share of the usual number of host events, and of the least time of others, from which a step without a call is taken
for one like the others, whose calls were lost, and not for one without work for a device, or one that the end of the
recording cut: half tells both apart whatever the noise.
"""
MOST_STEPS = 1_000_000
MOST_NAMES = 10_000
"""Steps and names that are looked at: names come from outside."""
NO_THREAD = (1 << 32) - 1
HOST_EVENTS = ("host_operators", "system_calls", "mpi")
"""Tables of what the host does beside calls of the GPU's library."""


def note_unrecorded_steps(folder: Path, issues: Issues) -> None:
    """Count the steps of an export in which neither a call nor any work of a device is recorded, where others have
    both.

    Steps are the ranges of one name of one thread of each rank. A step in which the host is recorded doing much less
    than in others had nothing for a device to do, and one that is much shorter was cut: neither is counted.

    Parameters
    ----------
    folder : Path
        With the export's tables.
    issues : Issues
    """
    lost = many = lost_ns = all_ns = 0
    for rank, (start, end) in _steps(folder).items():
        work, called, host = (np.zeros(start.size, np.int64) for _ in range(3))
        for table in ("launches", "transfers", "graphs"):
            _count(folder, table, rank, start, end, work, overlapping=True)
        _count(folder, "calls", rank, start, end, called)
        for table in HOST_EVENTS:
            _count(folder, table, rank, start, end, host)
        _count(folder, "ranges", rank, start, end, host)
        has_all = (work > 0) & (called > 0)
        if not has_all.any():
            continue
        own = host - 1  # without the range of the step
        unlike = (own > 0) & (own < AS_BUSY * np.median(own[has_all]))
        is_cut = end - start < AS_BUSY * (end - start)[has_all].min()  # as the last one, by the end of the recording
        missing = (work == 0) & (called == 0) & ~unlike & ~is_cut
        lost += int(missing.sum())
        many += start.size
        lost_ns += int((end - start)[missing].sum())
        all_ns += int((end - start).sum())
    kind = "unrecorded_steps" if lost_ns > FEW_UNRECORDED * all_ns else "few_unrecorded_steps"
    issues.add(kind, lost, f"{lost:,} of {many:,} steps, {lost_ns / 1e6:,.3f} of {all_ns / 1e6:,.3f} ms")


def _steps(folder: Path) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return starts and ends of the steps of each rank, ns, int64, ascending; {} where the export has no calls, or no
    ranges that name steps.
    """
    if not (folder / "calls.parquet").is_file():
        return {}
    rows: dict[tuple[int, str], dict[tuple[int, int], list[tuple[int, int]]]] = {}
    time: Counter = Counter()
    for batch in host_ranges(folder, ["start_ns", "duration_ns", "name", "rank", "thread"]):
        names = batch.column("name").dictionary_encode()
        families = [_family(text) for text in names.dictionary.to_pylist()]
        code = names.indices.to_numpy()
        chosen = np.flatnonzero(np.array([family is not None for family in families], bool)[code])
        block = times(batch)
        origins = (batch.column("rank").to_numpy()[chosen], numbers(batch.column("thread"), NO_THREAD)[chosen])
        columns = (code[chosen], block["start"][chosen], block["end"][chosen], *origins)
        for index, start, end, *origin in zip(*(column.tolist() for column in columns), strict=True):
            family = families[index]
            if family in rows or len(rows) < MOST_NAMES:
                own = rows.setdefault(family, {}).setdefault(tuple(origin), [])
                time[family] += end - start
                if len(own) < MOST_STEPS:
                    own.append((start, end))
    if not time:
        return {}
    family = min(time, key=lambda key: (key[0], -time[key], key[1]))
    longest: dict[int, list[tuple[int, int]]] = {}
    for (rank, _), spans in sorted(rows[family].items()):
        if len(spans) > len(longest.get(rank, [])):
            longest[rank] = spans
    ends = {rank: np.array(sorted(spans), np.int64).T for rank, spans in longest.items()}
    return {rank: (start, end) for rank, (start, end) in ends.items()}


def _family(name: str) -> tuple[int, str] | None:
    """Return the form of a step's name and the name without numbers; None of a range that is no step."""
    form = form_of(name)
    return None if form is None else (form, without_numbers(name)[:1000])


def _count(
    folder: Path,
    table: str,
    rank: int,
    start: np.ndarray,
    end: np.ndarray,
    counts: np.ndarray,
    overlapping: bool = False,
) -> None:
    """Add to `counts`, int64 of shape (steps,), how many events of a rank in a table begin in each step, or overlap
    it.
    """
    for batch in chunks(folder, table, ["start_ns", "duration_ns", "rank"]):
        block = times(batch)
        of_rank = batch.column("rank").to_numpy() == rank
        begins = np.sort(block["start"][of_rank])
        before_end = np.searchsorted(begins, end)
        gone = np.searchsorted(np.sort(block["end"][of_rank]), start, "right") if overlapping else None
        counts += before_end - (np.searchsorted(begins, start) if gone is None else gone)
