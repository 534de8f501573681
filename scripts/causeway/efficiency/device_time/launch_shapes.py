"""How much of a device the launches of each kernel can fill: their blocks beside its multiprocessors, and the threads
of a block beside a warp.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from causeway.core.schemas.launch_threads import grids_in_blocks
from causeway.core.tables import read_table, rows_if_there
from causeway.efficiency.device_time.event_streams import LaunchSums, class_bits
from causeway.events.event_blocks import kernel_columns

MOST = 10
"""Rows that are written, those with the most time: what has less is no loss of its own."""
WARP = 32
"""Threads that a multiprocessor runs together, where the export does not say it: of NVIDIA's GPUs all, of AMD's the
smaller of two.
"""
FIELDS = ("kernel", "blocks", "threads", "multiprocessors", "wave")
Shape = tuple[str, int | None, int | None, int | None, int]
"""Kernel's short name, blocks of a launch, threads of a block, the device's multiprocessors (None where not known), and
the threads of a warp or wavefront.
"""


def launch_shapes(folder: Path, launches: LaunchSums) -> dict[Shape, np.ndarray]:
    """Return launches and their summed durations, ns, of the computing kernels of an export by what they can fill.

    Parameters
    ----------
    folder : Path
    launches : LaunchSums
        All of its launches.

    Returns
    -------
    dict of tuple to ndarray of int64, shape (2,)
        By kernel, blocks, threads of a block, multiprocessors and threads of a wave.
    """
    totals: dict[Shape, np.ndarray] = {}
    if not launches.ranks:
        return totals
    names = kernel_columns(folder, ["short_name"]).column("short_name").to_pylist()
    table = read_table(folder / "configurations.parquet", "configurations")
    sizes = zip(*(table.column(f"block_{axis}").to_pylist() for axis in "xyz"), strict=True)
    rows = zip(names, grids_in_blocks(table), sizes, table.column("wave_size").to_pylist(), strict=True)
    shapes = [(name, _product(grid), _product(block), wave or WARP) for name, grid, block, wave in rows]
    devices = _multiprocessors(folder)
    computes = class_bits(folder) == 0
    for rank, sums in zip(launches.ranks, launches.sums, strict=True):
        for configuration in np.flatnonzero(computes & (sums[:, 0] > 0)).tolist():
            name, blocks, threads, wave = shapes[configuration]
            shape = name, blocks, threads, devices.get(rank), wave
            totals[shape] = totals.get(shape, 0) + sums[configuration]
    return totals


def _product(sizes: Sequence[int | None]) -> int | None:
    """Return the product of sizes in x, y and z; None where the first is not known."""
    return None if sizes[0] is None else math.prod(1 if size is None else size for size in sizes)


def _multiprocessors(folder: Path) -> dict[int, int]:
    """Return the multiprocessors of each rank's devices, where they are known and alike."""
    of: dict[int, set[int | None]] = {}
    for row in rows_if_there(folder, "devices", ["rank", "multiprocessors"]):
        of.setdefault(row["rank"], set()).add(row["multiprocessors"])
    return {rank: count for rank, counts in of.items() if len(counts) == 1 and (count := next(iter(counts)))}


def rows_of(exports: Sequence[Mapping[Shape, np.ndarray]]) -> list[dict]:
    """Return the rows of `launch_shapes` in `efficiency.json`: those of all exports with the most time.

    Parameters
    ----------
    exports : sequence of dict of tuple to ndarray of int64, shape (2,)
        `launch_shapes` of each.
    """
    sums: dict[Shape, np.ndarray] = {}
    for export in exports:
        for shape, own in export.items():
            sums[shape] = sums.get(shape, 0) + own
    first = sorted(
        sums, key=lambda shape: (-sums[shape][1], shape[0], [-1 if part is None else part for part in shape[1:]])
    )
    return [
        dict(zip((*FIELDS, "launches", "duration_ns"), (*shape, *sums[shape].tolist()), strict=True))
        for shape in first[:MOST]
    ]
