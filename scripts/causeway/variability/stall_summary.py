"""What the warps of each kernel wait for: the mean of each counter of warp stalls over the kernel's launches."""

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from causeway.core.codes import GPU_TIME, WARP_STALLS
from causeway.core.tables import SCHEMAS, open_table, read_table, unit_of, write_table

BATCH_ROWS = 1 << 16
STEPS = 1 << 20
"""Counters are summed in whole steps of 1/STEPS cycles, so that sums do not depend on the order of launches."""
LARGEST = 1 << 22
"""Cycles per issued instruction above which a value is no measurement: a launch of seconds has no more."""
LONGEST_NS = 1 << 40
"""GPU time of a launch above which a value is no measurement: 18 minutes."""
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
    kernels: dict[str, _Kernel] = {}
    for folder in folders:
        if (folder / "counters.parquet").is_file():
            _add(folder, kernels)
    rows = [row for kernel in sorted(kernels.values(), key=_Kernel.order) for row in kernel.rows()]
    table = pa.Table.from_pylist(rows, SCHEMAS["stall_reasons"])
    write_table(table, path, "stall_reasons", metadata={"dataset": dataset})


class _Kernel:
    """The sums of one kernel."""

    def __init__(self, facts: dict) -> None:
        self.facts = facts
        self.launches = 0
        self.gpu_ns: int | None = None
        self.sums: dict[str, list[int]] = {}

    def order(self) -> tuple:
        """Return what kernels are ordered by."""
        return -(self.gpu_ns or 0), -self.launches, self.facts["name"]

    def rows(self) -> list[dict]:
        """Return the rows of the kernel, in the order of `WARP_STALLS`."""
        means = {reason: total / (count * STEPS) for reason, (count, total) in self.sums.items() if count}
        whole = math.fsum(means[reason] for reason in WARP_STALLS if reason in means)
        return [
            self.facts
            | {"launches": self.launches, "gpu_ns": self.gpu_ns, "reason": reason, "measured": self.sums[reason][0]}
            | {"cycles": means[reason], "share": means[reason] / whole if whole else 0.0}
            for reason in WARP_STALLS
            if reason in means
        ]


def _add(folder: Path, kernels: dict[str, _Kernel]) -> None:
    """Add the launches of an export."""
    with open_table(folder / "counters.parquet", "counters") as file:
        schema = file.schema_arrow
        reasons = _reasons(schema)
        if not reasons:
            return
        scale = NANOSECONDS.get(unit_of(schema.field(GPU_TIME))) if GPU_TIME in schema.names else None
        facts = {
            row["kernel"]: {"kernel": row["id"], "name": row["name"], "short_name": row["short_name"]}
            for row in read_table(folder / "kernels.parquet", "kernels").to_pylist()
        }
        configurations = read_table(folder / "configurations.parquet", "configurations", ["configuration", "kernel"])
        number, kernel = (configurations.column(at).to_numpy().astype(np.int64) for at in range(2))
        of = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
        of[number] = kernel
        for own, values, gpu_time in _batches(file, of, reasons, scale):
            _add_batch(own, values, gpu_time, facts, kernels)


def _reasons(schema: pa.Schema) -> dict[str, list[str]]:
    """Return the columns of each reason, in the order of `WARP_STALLS`; a reason that is not listed is one of `OTHER`.

    Parameters
    ----------
    schema : Schema
        Of the counters of an export.
    """
    found = {reason: [reason] for reason in WARP_STALLS if reason in schema.names}
    seen = {SELECTED} | {_nsight_name(schema.field(reason)) for reason in found}
    for field in schema:
        name = _nsight_name(field)
        if name and name not in seen and field.name not in found and pa.types.is_floating(field.type):
            seen.add(name)
            found.setdefault(OTHER, []).append(field.name)
    return found


def _nsight_name(field: pa.Field) -> str | None:
    """Return Nsight Compute's word for the reason of a column, None for another counter."""
    match = _REASON.search((field.metadata or {}).get(b"raw", b"").decode())
    return match and (match[1] or match[2])


def _batches(
    file: pq.ParquetFile, of: np.ndarray, reasons: dict[str, list[str]], scale: float | None
) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray], np.ndarray | None]]:
    """Yield of some rows each the kernel, the counters by reason, NaN where not measured, and the GPU time in ns."""
    counters = [name for names in reasons.values() for name in names]
    columns = ["configuration", *counters, *([] if scale is None else [GPU_TIME])]
    for batch in file.iter_batches(BATCH_ROWS, columns=columns, use_threads=False):
        values = {name: batch.column(name).to_numpy(zero_copy_only=False).astype(float) for name in columns[1:]}
        gpu_time = None if scale is None else values.pop(GPU_TIME) * scale
        together = {reason: _together([values[name] for name in names]) for reason, names in reasons.items()}
        yield of[batch.column("configuration").to_numpy()], together, gpu_time


def _together(values: Sequence[np.ndarray]) -> np.ndarray:
    """Return the sum of what is measured of several counters, shape (launches,); NaN where none is."""
    if len(values) == 1:
        return values[0]
    table = np.stack(values)
    measured = np.abs(table) <= LARGEST
    return np.where(measured.any(axis=0), np.where(measured, table, 0).sum(axis=0), np.nan)


def _add_batch(
    own: np.ndarray,
    values: dict[str, np.ndarray],
    gpu_time: np.ndarray | None,
    facts: dict[int, dict],
    kernels: dict[str, _Kernel],
) -> None:
    present, index, launches = np.unique(own, return_inverse=True, return_counts=True)
    found = [kernels.setdefault(facts[one]["kernel"], _Kernel(facts[one])) for one in present.tolist()]
    for kernel, count in zip(found, launches.tolist(), strict=True):
        kernel.launches += count
    for reason, value in values.items():
        counts, totals = _sums(value * STEPS, index, present.size, LARGEST * STEPS)
        for kernel, count, total in zip(found, counts, totals, strict=True):
            held = kernel.sums.setdefault(reason, [0, 0])
            held[0] += count
            held[1] += total
    if gpu_time is not None:
        counts, totals = _sums(gpu_time, index, present.size, LONGEST_NS)
        for kernel, count, total in zip(found, counts, totals, strict=True):
            if count:
                kernel.gpu_ns = (kernel.gpu_ns or 0) + total


def _sums(value: np.ndarray, index: np.ndarray, size: int, largest: float) -> tuple[list[int], list[int]]:
    """Return how many values of each kernel are measured, and the exact sums of their nearest whole numbers."""
    known = np.flatnonzero(np.abs(value) <= largest)
    counts = np.bincount(index[known], minlength=size)
    totals = np.zeros(size, np.int64)
    np.add.at(totals, index[known], np.rint(value[known]).astype(np.int64))
    return counts.tolist(), totals.tolist()
