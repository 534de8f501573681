"""Tables of exports made without our readers: from rows in a test, or from an nsys sqlite by plain SQL. And the
program, run over them.
"""

import hashlib
import json
import os
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.tables import LAUNCH_SHAPE, SCHEMAS, write_table
from progress import run_by_progress
from support import ROOT

OUTPUTS = ("bins", "ranking", "kept", "kernels", "configurations")


def table_of(name, columns, extra=()):
    """Return a table of the schema `name`; columns that are not given are null, or 0 where null is not allowed."""
    rows = len(next(iter(columns.values())))
    fields = [*SCHEMAS[name], *extra]
    arrays = {}
    for field in fields:
        if field.name in columns:
            arrays[field.name] = pa.array(columns[field.name], field.type, from_pandas=False)
        else:
            arrays[field.name] = (
                pa.nulls(rows, field.type) if field.nullable else pa.array(np.zeros(rows, int), field.type)
            )
    return pa.table(arrays, schema=pa.schema(fields))


def kernel_id(name):
    return f"{name[:40].lower()}-{hashlib.sha256(name.encode()).hexdigest()[:10]}"


def write_export(
    folder, launches=None, transfers=None, counters=None, configurations=None, extra=(), ranks=None, row_group=None
):
    """Write an export's tables. `configurations` are (kernel name, {shape column: value}[, label]); by default
    kernel `k<n>` for each n.
    """
    facts = launches or counters
    used = sorted(set(np.asarray(facts["configuration"]).tolist())) if facts else []
    configurations = configurations or [(f"k{n}", {"grid_x": n}) for n in range(max(used, default=-1) + 1)]
    names = sorted({name for name, *_ in configurations})
    kernels = {
        "kernel": range(len(names)),
        "id": [kernel_id(name) for name in names],
        "name": names,
        "short_name": names,
    }
    kernels["class"] = ["compute"] * len(names)
    write_table(table_of("kernels", kernels), folder / "kernels.parquet", "kernels")
    columns = {
        "configuration": range(len(configurations)),
        "kernel": [names.index(name) for name, *_ in configurations],
    }
    columns |= {column: [shape.get(column) for _, shape, *_ in configurations] for column in LAUNCH_SHAPE}
    columns["label"] = [label[0] if label else None for _, _, *label in configurations]
    write_table(table_of("configurations", columns), folder / "configurations.parquet", "configurations")
    for name, columns in (("launches", launches), ("transfers", transfers), ("counters", counters)):
        if columns is not None:
            table = table_of(name, columns, extra if name == "counters" else ())
            write_table(table, folder / f"{name}.parquet", name, extra if name == "counters" else ())
            if row_group:
                split_row_groups(folder / f"{name}.parquet", row_group)
    if ranks is None:
        ranks = sorted({int(rank) for rank in (facts or {}).get("rank", [0])})
    (folder / "capabilities.json").write_text(json.dumps({"ranks": ranks, "status": "read"}), encoding="utf-8")


def split_row_groups(path, rows):
    """Write a table again in smaller row groups, as a large export would have many."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    pq.write_table(table, path, row_group_size=rows)


def write_clocks(path, shifts):
    path.write_text(
        json.dumps({"exports": {export: {"shift_ns": shift} for export, shift in shifts.items()}}), encoding="utf-8"
    )


def export_from_nsys(sqlite, folder, rank=None):
    """Write the tables of an nsys sqlite by plain SQL: the way that does not pass through our readers."""
    with closing(sqlite3.connect(f"file:{sqlite}?mode=ro", uri=True)) as base:
        shape = (
            "gridX gridY gridZ blockX blockY blockZ registersPerThread staticSharedMemory dynamicSharedMemory"
            " localMemoryTotal".split()
        )
        lines = base.execute(
            "SELECT k.start, k.end - k.start, k.deviceId, k.streamId, k.globalPid, s.value,"
            f" {', '.join('k.' + c for c in shape)} FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id ="
            " k.demangledName ORDER BY k.start, k.rowid"
        ).fetchall()
        present = {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        copies = []
        for name, kind in (("MEMCPY", "copyKind"), ("MEMSET", "255")):
            if f"CUPTI_ACTIVITY_KIND_{name}" in present:
                columns = f"start, end - start, bytes, {kind}, deviceId, streamId, globalPid"
                copies += base.execute(f"SELECT {columns} FROM CUPTI_ACTIVITY_KIND_{name}").fetchall()
    copies.sort(key=lambda row: row[0])
    processes = list(dict.fromkeys(line[4] for line in lines))
    rank_of = {process: place if rank is None else rank for place, process in enumerate(processes)}
    keys = sorted({(line[5], line[6:]) for line in lines})
    launches = {
        "start_ns": [line[0] for line in lines],
        "duration_ns": [line[1] for line in lines],
        "configuration": [keys.index((line[5], line[6:])) for line in lines],
        "rank": [rank_of[line[4]] for line in lines],
        "device": [line[2] for line in lines],
        "stream": [line[3] for line in lines],
    }
    copies = [row for row in copies if row[6] in rank_of]
    names = "start_ns duration_ns bytes copy_kind device stream".split()
    transfers = {name: [row[place] for row in copies] for place, name in enumerate(names)}
    transfers["rank"] = [rank_of[row[6]] for row in copies]
    configurations = [(name, dict(zip(LAUNCH_SHAPE, shape, strict=False))) for name, shape in keys]
    write_export(folder, launches, transfers if copies else None, configurations=configurations)


def command(folder, targets, exports, options=(), ranks=1):
    """Return the arguments of the program for tables in `folder`/tables, results in `folder`/out<ranks>."""
    return [
        *(
            "--ranks",
            ranks,
            "--dataset",
            "d",
            "--tables",
            folder / "tables",
            "--exports",
            *exports,
            "--clocks",
            folder / "clocks.json",
        ),
        *("--targets", *targets, "--out", folder / f"out{ranks}", *options),
    ]


def run_here(folder, targets, exports, options=()):
    """Run the program in this process, as one rank; return the folder of its results."""
    from variability import bin_launches

    bin_launches.main([str(part) for part in command(folder, targets, exports, options)])
    return folder / "out1"


def launcher():
    """Return the MPI launcher beside this Python, or None."""
    beside = Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def run_ranks(folder, targets, exports, ranks, options=(), asked=None):
    """Run the program under the launcher; return the finished process."""
    program = [sys.executable, "-m", "mpi4py", ROOT / "scripts" / "variability" / "bin_launches.py"]
    arguments = command(folder, targets, exports, options, ranks)
    if asked is not None:
        arguments[1] = asked
    environment = dict(os.environ, OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="1")
    return run_by_progress([launcher(), "-n", ranks, *program, *arguments], [folder], env=environment)


def digests(folder, targets):
    """Return the SHA-256 of every result file."""
    files = {f"{target}/{name}": folder / target / f"{name}.parquet" for target in targets for name in OUTPUTS}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
