"""Synthetic traces of any size: 28 kernels of 6 launch configurations, 1,352 launches per 10 ms, a transfer per 4
launches.
"""

from pathlib import Path

import numpy as np

from causeway.core.tables import ROW_GROUP_ROWS, TableWriter
from variability_tables import table_of, write_clocks, write_export

KERNELS = 28
SHAPES = 6
GAP_NS = 10_000_000 // 1352
TRANSFER_EVERY = 4


def write_trace(folder: Path, rows: int, rank: int = 0, seed: int = 0) -> Path:
    """Write the tables of one export with `rows` launches; memory does not grow with `rows`. Return its folder."""
    rng = np.random.default_rng([seed, rank])
    shapes = [
        (
            f"kernel_{k:02d}(float *, int)",
            {
                "grid_x": 64 * (s + 1),
                "grid_y": 1,
                "grid_z": 1,
                "block_x": 128,
                "block_y": 1,
                "block_z": 1,
                "registers_per_thread": 32 + k,
                "static_shared_bytes": 0,
                "dynamic_shared_bytes": 1024 * s,
            },
        )
        for k in range(KERNELS)
        for s in range(SHAPES)
    ]
    write_export(folder, configurations=shapes, ranks=[rank])
    scale = rng.lognormal(8.0, 1.0, KERNELS * SHAPES)
    start = last = 0
    with (
        TableWriter(folder / "launches.parquet", "launches") as launches,
        TableWriter(folder / "transfers.parquet", "transfers") as copies,
    ):
        for begin in range(0, rows, ROW_GROUP_ROWS):
            n = min(ROW_GROUP_ROWS, rows - begin)
            starts = start + np.cumsum(rng.integers(1, 2 * GAP_NS, n))
            start = int(starts[-1])
            configuration = rng.integers(0, scale.size, n)
            facts = {
                "start_ns": starts,
                "duration_ns": (scale[configuration] * rng.lognormal(0.0, 0.2, n)).astype(np.int64) + 1,
                "configuration": configuration,
                "rank": np.full(n, rank),
                "stream": rng.integers(7, 11, n),
                "queue_ns": rng.integers(500, 50_000, n),
                "correlation": np.arange(begin, begin + n),
            }
            launches.write(table_of("launches", facts))
            copied = starts[::TRANSFER_EVERY] - rng.integers(0, GAP_NS, starts[::TRANSFER_EVERY].size)
            m = copied.size
            size = rng.integers(1, 1 << 16, m)
            order = np.argsort(copied, kind="stable")
            facts = {"start_ns": copied[order], "duration_ns": (size // 8 + 500)[order], "bytes": size[order]}
            facts |= {"copy_kind": rng.choice([1, 2, 8], m), "rank": np.full(m, rank), "stream": rng.integers(7, 11, m)}
            # a piece may begin before the end of the one above: the few transfers that do are moved up to it
            facts["start_ns"] = np.maximum(facts["start_ns"], last)
            last = int(facts["start_ns"][-1])
            copies.write(table_of("transfers", facts))
    return folder


def write_dataset(folder: Path, rows: int, exports: int = 1) -> Path:
    """Write a dataset of some exports, `rows` launches each; reuse it if it is there."""
    done = folder / "clocks.json"
    if not done.exists():
        for rank in range(exports):
            write_trace(folder / "tables" / str(rank), rows, rank)
        write_clocks(done, {str(rank): 0 for rank in range(exports)})
    return folder
