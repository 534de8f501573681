"""What `explain_waiting` does: every idle nanosecond of each device of a dataset with its reason, as one table; over
MPI ranks, each of which reads some exports.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.clock import Clock, clocks_of
from causeway.core.logs import LOG
from causeway.core.reduced import EFFICIENCY, has_time_line, why_not
from causeway.core.tables import SCHEMAS, folder_bytes, read_json, write_table
from causeway.numeric.mpi import Ranks, merged
from causeway.waiting.idle.export_pass import Explained, explain_export
from causeway.waiting.idle.reason_words import NAMES
from causeway.waiting.steps_by_rank import StepsOfRank, steps_by_rank
from causeway.waiting.taken_gpus import taken_gpus

KEYS = ["rank", "device", "step", "reason", "detail"]
RUN = -1
"""In place of a step: the whole run."""


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
    why = ranks.of_first(lambda: why_not(folders, EFFICIENCY))
    usable = [] if why else [Path(folder) for folder in folders]
    with ranks.together():
        clocks = clocks_of(read_json(clocks_file))
        taken = taken_gpus(usable, clocks_file)
        steps = steps_by_rank(steps_file)
        sums = []
        bounds = {}
        for index in ranks.share_of([folder_bytes(folder) for folder in usable]):
            document = read_json(usable[index] / "capabilities.json")
            if not has_time_line(document):
                continue
            clock = clocks[document["export"]]
            own = {rank: _own(steps[rank], clock) for rank in document["ranks"] if rank in steps}
            explained = explain_export(usable[index], own, taken.in_clock(clock))
            bounds[index] = f"{document['export']}: {explained.start_up_ns}"
            sums.append(sums_of(explained))
            LOG.info("%s: idle time of %d devices explained", document["export"], len(explained.devices))
    parts = ranks.collect((sums, bounds))
    with ranks.together():
        if parts is not None:
            whole = waiting_table([table for part, _ in parts for table in part])
            used = merged(part for _, part in parts)
            facts = {"dataset": name, "start_up_ns": ", ".join(used.values())}
            write_table(whole, out, "waiting", metadata=facts | ({"why": why} if why else {}))


def _own(rows: StepsOfRank, clock: Clock) -> StepsOfRank:
    start, end, number = rows
    return clock.own(start), clock.own(end), number


def sums_of(explained: Explained) -> pa.Table:
    """Return the idle time of an export's devices: the columns `KEYS`, with the reason's number, and wait_ns."""
    devices = np.array(explained.devices, np.int64).reshape(-1, 2)
    whole = [(device, RUN, reason, detail, ns) for (device, reason, detail), ns in explained.totals.whole.items()]
    rows = np.array([*whole, *((*key, ns) for key, ns in explained.totals.steps.items())], np.int64).reshape(-1, 5)
    device, step, reason, detail, ns = rows.T
    texts = pa.array(explained.texts, pa.string()).take(pa.array(detail))
    return pa.table([devices[device, 0], devices[device, 1], step, reason, texts, ns], names=[*KEYS, "wait_ns"])


def waiting_table(sums: Sequence[pa.Table]) -> pa.Table:
    """Return the columns of `waiting`, ordered by rank, device, step (the whole run first), reason and detail.

    Parameters
    ----------
    sums : sequence of Table
        Of all exports, with the columns that `sums_of` gives.
    """
    by_rank: dict[int, list[pa.Table]] = {}
    for table in sums:
        for rank in pc.unique(table.column("rank")).to_pylist():
            by_rank.setdefault(rank, []).append(table.filter(pc.field("rank") == rank))
    rows = [_of_rank(pa.concat_tables(by_rank[rank])) for rank in sorted(by_rank)]
    return pa.concat_tables([SCHEMAS["waiting"].empty_table(), *rows])


def _of_rank(sums: pa.Table) -> pa.Table:
    """Return the rows of `waiting` of one rank: all ranks at once would take four times their memory to be ordered."""
    added = sums.group_by(KEYS).aggregate([("wait_ns", "sum")])
    rows = added.sort_by([(key, "ascending") for key in KEYS])
    names = pa.array([NAMES[number] for number in range(len(NAMES))], pa.string())
    step = rows.column("step")
    columns = {name: rows.column(name) for name in ("rank", "device", "detail")} | {
        "reason": names.take(rows.column("reason").combine_chunks()),
        "step": pc.if_else(pc.equal(step, RUN), None, step),
        "wait_ns": rows.column("wait_ns_sum"),
    }
    return pa.table({name: columns[name] for name in SCHEMAS["waiting"].names}).cast(SCHEMAS["waiting"])
