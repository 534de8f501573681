"""What `explain_waiting` does: every idle nanosecond of each device of a dataset with its reason, as one table; over
MPI ranks, each of which reads some exports.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.clock import Clock, clocks_of
from causeway.core.logs import LOG
from causeway.core.reduced import EFFICIENCY, why_not
from causeway.core.tables import folder_bytes, read_json, read_table, write_table
from causeway.numeric.mpi import Ranks
from causeway.waiting.idle.export_pass import Explained, explain_export
from causeway.waiting.idle.reason_words import NAMES
from causeway.waiting.idle.totals import Steps

Sums = dict[tuple[int, int, int, int, str], int]
"""Ns by rank, device, step (-1: the whole run), reason and detail."""


def explain_waiting(
    name: str,
    folders: Sequence[str | Path],
    clocks_file: str | Path,
    steps_file: str | Path | None,
    out: str | Path,
    *,
    ranks: Ranks | None = None,
) -> None:
    """Write `waiting.parquet` of a dataset; without rows for a reduced one whose filter dropped events, since time of
    dropped events would count as idle: the file's metadata then say why.

    Every export is read by one rank, and only its sums travel: the results are the same, to the byte, on any number of
    ranks.

    Parameters
    ----------
    name : str
    folders : sequence of path
        Folders of tables, in the sheet's order.
    clocks_file : path
    steps_file : path or None
        `steps.parquet`; None, or a file that does not exist: no steps are known.
    out : path
    ranks : Ranks or None
        The processes that share the work; None for this one alone. Rank 0 writes.

    Raises
    ------
    TableError
        If a table is damaged or not ordered by start.
    CausewayError
        On all ranks, if anything failed on one.
    """
    ranks = ranks or Ranks()
    why = None
    with ranks.together():
        if ranks.first:
            why = why_not(folders, EFFICIENCY)
    why = ranks.share(why)
    usable = [] if why else [Path(folder) for folder in folders]
    with ranks.together():
        clocks = clocks_of(read_json(clocks_file))
        steps = _steps(steps_file)
        sums: Sums = {}
        bounds = {}
        for at in ranks.share_of([folder_bytes(folder) for folder in usable]):
            document = read_json(usable[at] / "capabilities.json")
            if document["status"] == "refused" or not (document["time"] or {}).get("has_start"):
                continue
            clock = clocks[document["export"]]
            own = {rank: _own(steps[rank], clock) for rank in document["ranks"] if rank in steps}
            found = explain_export(usable[at], own)
            bounds[at] = f"{document['export']}: {found.start_up_ns}"
            _add(sums, found)
            LOG.info("%s: idle time of %d devices explained", document["export"], len(found.devices))
    parts = ranks.collect((sums, bounds))
    with ranks.together():
        if ranks.first:
            whole: Sums = {}
            for part, _ in parts:
                for key, ns in part.items():
                    whole[key] = whole.get(key, 0) + ns
            used = dict(sorted(pair for _, part in parts for pair in part.items()))
            facts = {"dataset": name, "start_up_ns": ", ".join(used.values())}
            write_table(waiting_table(whole), out, "waiting", metadata=facts | ({"why": why} if why else {}))


def _steps(path: str | Path | None) -> Steps:
    """Return the steps of each rank on the dataset's time line."""
    if path is None or not Path(path).is_file():
        return {}
    rows = read_table(path, "steps", ["rank", "step", "start_ns", "duration_ns"])
    rank, number, start, duration = (rows.column(at).to_numpy() for at in range(4))
    found = {}
    for one in np.unique(rank).tolist():
        mine = np.flatnonzero(rank == one)
        mine = mine[np.argsort(start[mine], kind="stable")]
        found[one] = (start[mine], start[mine] + duration[mine], number[mine])
    return found


def _own(rows: tuple[np.ndarray, np.ndarray, np.ndarray], clock: Clock) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    start, end, number = rows
    return clock.own(start), clock.own(end), number


def _add(sums: Sums, found: Explained) -> None:
    whole = ((device, -1, reason, detail, ns) for (device, reason, detail), ns in found.totals.whole.items())
    for device, step, reason, detail, ns in (*whole, *((*key, ns) for key, ns in found.totals.steps.items())):
        key = (*found.devices[device], step, reason, found.texts[detail])
        sums[key] = sums.get(key, 0) + ns


def waiting_table(sums: Sums) -> pa.Table:
    """Return the rows of `waiting`, ordered by rank, device, step (the whole run first), reason and detail."""
    rows = sorted(sums.items())
    columns = [list(column) for column in zip(*(key for key, _ in rows), strict=True)] or [[] for _ in range(5)]
    rank, device, step, reason, detail = columns
    return pa.table(
        {
            "rank": pa.array(rank, pa.uint32()),
            "device": pa.array(device, pa.uint16()),
            "reason": pa.array([NAMES[number] for number in reason], pa.string()),
            "detail": pa.array(detail, pa.string()),
            "step": pa.array([None if number < 0 else number for number in step], pa.int64()),
            "wait_ns": pa.array([ns for _, ns in rows], pa.int64()),
        }
    )
