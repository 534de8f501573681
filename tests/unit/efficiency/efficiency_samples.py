"""Small exports made by hand, as tables on disk."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.tables import LAUNCH_SHAPE, SCHEMAS, write_table
from causeway.efficiency.ranks.rank_collectives import UNNUMBERED, RankCollectives

CLASSES = {"gemm": "compute", "ncclDevKernel_AllReduce": "communication", "copyBuffer": "memory", "softmax": "compute"}
CLASSES |= {"ncclDevKernel_SendRecv": "communication"}


def write(folder: Path, name: str, rows: list[dict]) -> None:
    """Write rows as the table `name`, ordered by start where they have one; columns not given are null or 0."""
    schema = SCHEMAS[name]
    rows = sorted(rows, key=lambda row: row.get("start_ns", 0))
    absent = {field.name: None if field.nullable else 0 for field in schema}
    table = pa.table(
        {f.name: pa.array([{**absent, **row}[f.name] for row in rows], f.type) for f in schema}, schema=schema
    )
    write_table(table, folder / f"{name}.parquet", name)


def event(start, end, **more):
    return {"start_ns": start, "duration_ns": end - start, **more}


def export(
    folder: Path, rank=0, kernels=(), copies=(), calls=(), mpi=(), ranges=(), graphs=(), node=None, session=None, **more
) -> Path:
    """Write an export of one rank: events are (start, end, columns), kernels with `kernel`, a key of `CLASSES`, else
    gemm.

    `grids` gives further configurations of gemm, which events name by `grid`.
    """
    folder.mkdir(parents=True)
    names = list(CLASSES)
    grids = list(more.get("grids", ()))

    def configuration(columns):
        name = columns.pop("kernel", "gemm")
        grid = columns.pop("grid", None)
        return {"configuration": names.index(name) if grid is None else len(names) + grids.index(grid)} | columns

    tables = {
        "launches": [event(s, e, rank=rank, **configuration(m)) for s, e, m in spread(kernels)],
        "transfers": [event(s, e, rank=rank, **{"copy_kind": 1, **m}) for s, e, m in spread(copies)],
        "calls": [event(s, e, rank=rank, **{"name": "cudaLaunchKernel", **m}) for s, e, m in spread(calls)],
        "mpi": [event(s, e, rank=rank, **{"name": "MPI_Allreduce", **m}) for s, e, m in spread(mpi)],
        "ranges": [event(s, e, rank=rank, **{"kind": "nvtx", "name": "step", **m}) for s, e, m in spread(ranges)],
        "graphs": [event(s, e, rank=rank, **m) for s, e, m in spread(graphs)],
        "collectives": more.get("collectives", []),
        "samples": more.get("samples", []),
    }
    devices = sorted({row.get("device", 0) for name in ("launches", "transfers", "graphs") for row in tables[name]})
    tables["devices"] = [
        {"rank": rank, "device": device, "name": more.get("gpu"), "gpu": more.get("identity")} for device in devices
    ]
    tables["kernels"] = [
        {"kernel": i, "id": n, "name": n, "short_name": n, "class": CLASSES[n]} for i, n in enumerate(names)
    ]
    tables["configurations"] = [
        {"configuration": i, "kernel": i} | dict.fromkeys(LAUNCH_SHAPE) for i in range(len(names))
    ]
    tables["configurations"] += [
        {"configuration": len(names) + i, "kernel": 0} | dict.fromkeys(LAUNCH_SHAPE) | {"grid_x": x}
        for i, x in enumerate(grids)
    ]
    written = {name: rows for name, rows in with_calls(tables).items() if rows}
    for name, rows in written.items():
        write(folder, name, rows)
    busy = tables["launches"] + tables["transfers"]
    first = min((r["start_ns"] for r in busy), default=None)
    last = max((r["start_ns"] + r["duration_ns"] for r in busy), default=None)
    time = {"has_start": bool(busy), "first_ns": first, "last_ns": last, "session_start_ns": session}
    document = {
        "export": folder.name,
        "status": "read",
        "node": node,
        "time": time,
        "ranks": [rank],
        "issues": more.get("issues", []),
    }
    document["tables"] = {name: len(rows) for name, rows in written.items()}
    (folder / "capabilities.json").write_text(json.dumps(document))
    return folder


def spread(events):
    """Return events as (start, end, columns)."""
    return [(one[0], one[1], dict(one[2]) if len(one) > 2 else {}) for one in events]


def clocks(path: Path, shifts: dict, **more) -> Path:
    """Write `clocks.json`: shift, or (shift, drift in ppb, reference), of each export."""
    entries = {}
    for name, shift in shifts.items():
        shift, drift, reference = shift if isinstance(shift, tuple) else (shift, 0, 0)
        entries[name] = {"shift_ns": shift, "drift_ppb": drift, "reference_ns": reference, "ranks": [int(name)]}
    document = {
        "dataset": "d",
        "method": "one_export",
        "exports": entries,
        "residual_ns": None,
        "reason": "made by hand",
    } | more
    path.write_text(json.dumps(document))
    return path


def rank_collectives(rows: list[tuple], **more) -> RankCollectives:
    """Return collectives of a rank: rows are (start, end, name, communicator, sequence number or None, bytes); further
    columns by name, else one device and stream, and no group size and shape.
    """
    start, end, name, communicator, sequence, size = zip(*rows, strict=True)
    numbers = [UNNUMBERED if one is None else one for one in sequence]
    names = sorted(set(name))
    groups = sorted(set(communicator), key=str)
    codes = [[names.index(one) for one in name], [groups.index(one) for one in communicator]]
    columns = [np.array(one, np.int64) for one in (start, end, size, numbers)]
    columns += [np.array(one, np.int32) for one in codes]
    unknown = np.full(len(start), -1)
    further = {name: np.zeros(len(start), np.int64) for name in ("device", "stream")} | {"shape": unknown} | more
    return RankCollectives(names, groups, *columns, further.pop("group_size", unknown), **further)


def collective_rows(one: RankCollectives) -> list[tuple]:
    """Return what `rank_collectives` takes."""
    words = [one.names[at] for at in one.name], [one.communicators[at] for at in one.communicator]
    numbers = [None if number == UNNUMBERED else number for number in one.sequence.tolist()]
    return list(zip(one.start.tolist(), one.end.tolist(), *words, numbers, one.bytes.tolist(), strict=True))


def with_calls(tables):
    """Return tables, lists of rows by name, in which calls have their numbers and work the call that made it: of those
    of its rank with its correlation number the one that returns last.
    """
    calls = sorted(tables.get("calls", []), key=lambda row: row["start_ns"])
    calls = [row | {"call": number} for number, row in enumerate(calls)]
    made = {}
    for row in calls:
        key = row["rank"], row.get("correlation")
        if key[1] is not None and (key not in made or end_of(row) >= end_of(made[key])):
            made[key] = row
    work = {
        name: [row | call_of(made.get((row["rank"], row.get("correlation")))) for row in tables[name]]
        for name in ("launches", "transfers", "graphs")
        if name in tables
    }
    return dict(tables) | work | ({"calls": calls} if "calls" in tables else {})


def end_of(call):
    return call["start_ns"] + call["duration_ns"]


def call_of(call):
    """Return the columns of work that a call made; none of them without a call."""
    if call is None:
        return {}
    columns = {"call": call["call"], "call_start_ns": call["start_ns"], "call_end_ns": end_of(call)}
    return columns | {"thread": call.get("thread")}
