"""What the warps of each kernel wait for: the mean of each counter of warp stalls over the kernel's launches."""

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.codes import GPU_TIME, WARP_STALLS
from causeway.core.tables import SCHEMAS, open_table, read_table, unit_of, write_table
from causeway.events.event_blocks import kernel_columns

BATCH_ROWS = 1 << 16
STEPS = 1 << 20
"""Counters are summed in whole steps of 1/STEPS cycles, so that sums do not depend on the order of launches."""
LARGEST = 1 << 22
"""Cycles per issued instruction above which a value is no measurement: a launch of seconds has no more."""
LONGEST_NS = 1 << 40
"""GPU time of a launch above which a value is no measurement: 18 minutes."""
KERNEL = ["id", "name", "short_name"]
GPU_NS = "gpu_ns_sum"
OTHER = list(WARP_STALLS)[-1]
"""The reason to which those are added that are not listed: newer devices have more of them."""
SELECTED = "selected"
"""No reason to wait: the warp issues."""
_REASON = re.compile(
    r"smsp__average_(?:warps_issue_stalled_(\w+)_per_issue_active|warp_latency_issue_stalled_(\w+))\.ratio$"
)
NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


def summarise_stalls(dataset: str, folders: Sequence[Path], path: Path) -> None:
    """Write `stall_reasons.parquet`; without counters of warp stalls there is no row.

    Parameters
    ----------
    dataset : str
    folders : sequence of Path
        Folders of tables.
    path : Path
    """
    parts = [part for folder in folders if (folder / "counters.parquet").is_file() for part in _sums(folder)]
    table = pa.Table.from_pylist(_rows(parts) if parts else [], SCHEMAS["stall_reasons"])
    write_table(table, path, "stall_reasons", metadata={"dataset": dataset})


def _rows(parts: Sequence[pa.Table]) -> list[dict]:
    """Return the rows of all kernels, those with the most GPU time first, each in the order of `WARP_STALLS`."""
    together = pa.concat_tables(parts, promote_options="default")
    sums = [name for name in together.column_names if name not in KERNEL]
    kernels = together.group_by(KERNEL, use_threads=False).aggregate([(name, "sum") for name in sums])
    kernels = kernels.rename_columns([name.removesuffix("_sum") for name in kernels.column_names]).to_pylist()
    kernels.sort(key=lambda row: (-(row.get(GPU_NS) or 0), -row["count_all"], row["name"]))
    rows = []
    for row in kernels:
        measured = {reason: row[f"{reason}_count"] for reason in WARP_STALLS if row.get(f"{reason}_count")}
        means = {reason: row[f"{reason}_sum"] / (count * STEPS) for reason, count in measured.items()}
        whole = math.fsum(means.values())
        facts = {"kernel": row["id"], "name": row["name"], "short_name": row["short_name"]}
        facts |= {"launches": row["count_all"], "gpu_ns": row.get(GPU_NS)}
        rows += [
            facts
            | {"reason": reason, "measured": measured[reason], "cycles": mean, "share": mean / whole if whole else 0.0}
            for reason, mean in means.items()
        ]
    return rows


def _sums(folder: Path) -> Iterator[pa.Table]:
    """Yield of some launches of an export each their number, and sum and count of what is measured, by kernel."""
    with open_table(folder / "counters.parquet", "counters") as file:
        schema = file.schema_arrow
        reasons = _reasons(schema)
        if not reasons:
            return
        scale = NANOSECONDS.get(unit_of(schema.field(GPU_TIME))) if GPU_TIME in schema.names else None
        kernels = kernel_columns(folder, KERNEL)
        numbers = read_table(folder / "configurations.parquet", "configurations", ["configuration"]).column(0)
        counters = [name for names in reasons.values() for name in names]
        columns = ["configuration", *counters, *([] if scale is None else [GPU_TIME])]
        for batch in file.iter_batches(BATCH_ROWS, columns=columns, use_threads=False):
            values = {name: batch.column(name).to_numpy(zero_copy_only=False).astype(float) for name in columns[1:]}
            whole = {
                reason: _whole(_together([values[name] for name in names]) * STEPS, LARGEST * STEPS)
                for reason, names in reasons.items()
            }
            if scale is not None:
                whole["gpu_ns"] = _whole(values[GPU_TIME] * scale, LONGEST_NS)
            rows = kernels.take(pc.index_in(batch.column("configuration"), numbers.combine_chunks()))
            for name, column in whole.items():
                rows = rows.append_column(name, column)
            sums = [(name, how) for name in whole for how in ("sum", "count")]
            yield rows.group_by(KERNEL, use_threads=False).aggregate([([], "count_all"), *sums])


def _reasons(schema: pa.Schema) -> dict[str, list[str]]:
    """Return the columns of each reason, in the order of `WARP_STALLS`; a reason that is not listed is one of `OTHER`.

    Parameters
    ----------
    schema : Schema
        Of the counters of an export.
    """
    columns = {reason: [reason] for reason in WARP_STALLS if reason in schema.names}
    seen = {SELECTED} | {_nsight_name(schema.field(reason)) for reason in columns}
    for field in schema:
        name = _nsight_name(field)
        if name and name not in seen and field.name not in columns and pa.types.is_floating(field.type):
            seen.add(name)
            columns.setdefault(OTHER, []).append(field.name)
    return columns


def _nsight_name(field: pa.Field) -> str | None:
    """Return Nsight Compute's word for the reason of a column, None for another counter."""
    match = _REASON.search((field.metadata or {}).get(b"raw", b"").decode())
    return match and (match[1] or match[2])


def _together(values: Sequence[np.ndarray]) -> np.ndarray:
    """Return the sum of what is measured of several counters, shape (launches,); NaN where none is."""
    if len(values) == 1:
        return values[0]
    table = np.stack(values)
    measured = np.abs(table) <= LARGEST
    return np.where(measured.any(axis=0), np.where(measured, table, 0).sum(axis=0), np.nan)


def _whole(value: np.ndarray, largest: float) -> pa.Array:
    """Return the nearest whole numbers, null for what is no measurement; int64, shape (launches,)."""
    is_measured = np.abs(value) <= largest
    return pa.array(np.rint(np.where(is_measured, value, 0)).astype(np.int64), mask=~is_measured)
