"""The inputs of the benchmark, written once into a folder and used again."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests"), str(ROOT / "tests" / "bench")]

from large_nsys import write_nsys  # noqa: E402 - the path is set above
from synthetic import KERNELS, SHAPES, write_dataset  # noqa: E402

GROUP_ROWS = 1 << 20


def synthetic(folder, millions, exports):
    """Return the folder of a dataset of normalised tables."""
    return write_dataset(folder / f"tables{millions}x{exports}", int(millions * 1e6), exports)


def nsys_file(folder, millions, calls=False):
    """Return an Nsight Systems export in SQLite, by the simulator."""
    folder.mkdir(parents=True, exist_ok=True)
    return write_nsys(folder / f"nsys{millions}{'calls' if calls else ''}.sqlite", int(millions * 1e6), calls)


def nsys_folders(folder, millions, exports):
    """Return folders of Parquet as `nsys export --type=parquetdir` writes them, made of the synthetic tables:
    kernels and copies.
    """
    source = synthetic(folder, millions, exports)
    made = []
    for rank in range(exports):
        made.append(folder / f"parquetdir{millions}" / f"rank{rank}")
        if not (made[-1] / "StringIds.parquet").exists():
            made[-1].mkdir(parents=True, exist_ok=True)
            _write_folder(source / "tables" / str(rank), made[-1], rank)
    return made


def _write_folder(tables, folder, rank):
    shapes = pq.read_table(tables / "configurations.parquet")
    names = pq.read_table(tables / "kernels.parquet").column("name").to_pylist()
    columns = {
        "gridX": "grid_x",
        "gridY": "grid_y",
        "gridZ": "grid_z",
        "blockX": "block_x",
        "blockY": "block_y",
        "blockZ": "block_z",
    }
    columns |= {"registersPerThread": "registers_per_thread"}
    columns |= {"staticSharedMemory": "static_shared_bytes", "dynamicSharedMemory": "dynamic_shared_bytes"}
    known = {raw: shapes.column(ours).fill_null(0).to_numpy() for raw, ours in columns.items()} | {
        "demangledName": shapes.column("kernel").to_numpy()
    }
    assert len(shapes) == KERNELS * SHAPES
    for table, name in (("launches", "CUPTI_ACTIVITY_KIND_KERNEL"), ("transfers", "CUPTI_ACTIVITY_KIND_MEMCPY")):
        writer = None
        for batch in pq.ParquetFile(tables / f"{table}.parquet").iter_batches(GROUP_ROWS):
            start = batch.column("start_ns").to_numpy()
            rows = batch.num_rows
            events = {
                "start": start,
                "end": start + batch.column("duration_ns").to_numpy(),
                "globalPid": np.full(rows, 1 << 48 | rank << 24),
            }
            events |= {
                "deviceId": batch.column("device").cast(pa.int32()),
                "streamId": batch.column("stream").cast(pa.int32()),
            }
            if table == "launches":
                events |= {
                    raw: pa.array(values[batch.column("configuration").to_numpy()], pa.int32())
                    for raw, values in known.items()
                }
                events |= {"correlationId": batch.column("correlation").cast(pa.int32())}
            else:
                events |= {"bytes": batch.column("bytes"), "copyKind": batch.column("copy_kind").cast(pa.int32())}
            made = pa.table(events)
            writer = writer or pq.ParquetWriter(folder / f"{name}.parquet", made.schema, compression="zstd")
            writer.write_table(made)
        writer.close()
    pq.write_table(
        pa.table({"id": pa.array(range(len(names)), pa.int32()), "value": names}), folder / "StringIds.parquet"
    )
