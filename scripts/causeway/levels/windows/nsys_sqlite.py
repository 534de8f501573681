"""Write a window as a SQLite database with the tables of an Nsight Systems export (schema 3.16), which many tools read.

Source: the schema of `nsys export --type sqlite` 2024.6; columns that no tool at hand reads are left out. A rank is a
process, numbered from 1.
"""

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from causeway.core.codes import MEMSET_KIND
from causeway.core.files.whole_files import written_whole
from causeway.levels.windows.window import TimeWindow

EVENT = "start! end!"
WORK = f"{EVENT} deviceId! contextId! streamId! correlationId globalPid"
KERNEL = (
    f"{WORK} demangledName! shortName! mangledName gridX gridY gridZ blockX blockY blockZ registersPerThread"
    " staticSharedMemory dynamicSharedMemory localMemoryPerThread"
)
TABLES = {
    "StringIds": "id+ value:!",
    "CUPTI_ACTIVITY_KIND_KERNEL": KERNEL,
    "CUPTI_ACTIVITY_KIND_MEMCPY": f"{WORK} bytes copyKind! srcKind dstKind",
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{WORK} value! bytes memKind",
    "CUPTI_ACTIVITY_KIND_RUNTIME": f"{EVENT} eventClass! globalTid correlationId nameId! returnValue",
    "NVTX_EVENTS": "start! end eventType! text: globalTid textId domainId rangeId",
    "MPI_P2P_EVENTS": f"{EVENT} globalTid textId size remoteRank commHandle",
    "MPI_COLLECTIVES_EVENTS": f"{EVENT} globalTid textId size rootRank commHandle",
    "MPI_RANKS": "globalTid! rank!",
    "GPU_METRICS": "timestamp typeId! metricId! value!",
    "TARGET_INFO_GPU_METRICS": "typeId! sourceId! typeName:! metricId! metricName:!",
    "TARGET_INFO_GPU": "vmId id! name: busLocation: totalMemory memoryBandwidth clockRate smCount chipName:",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId pid",
    "PROCESSES": "globalPid pid name:",
    "META_DATA_EXPORT": "name:! value:",
}
"""Columns of the tables, integers: `:` marks a text, `!` what is never null, `+` the key."""
VERSIONS = {
    "EXPORT_SCHEMA_VERSION": "3.16.1",
    "EXPORT_PRODUCT_VERSION": "0",
    "EXPORT_SCHEMA_VERSION_MAJOR": "3",
    "EXPORT_SCHEMA_VERSION_MINOR": "16",
    "EXPORT_SCHEMA_VERSION_MICRO": "1",
}
PUSH_POP = 59
FIRST_TYPE = 1 << 8
"""Types of sampled metrics: the lowest byte is the GPU."""


def write_nsys(window: TimeWindow, path: Path) -> None:
    """Write `path` (`.sqlite`); times are those of the dataset's time line, moved only if one would be negative."""
    zero = min(window.earliest_ns, 0)
    with written_whole(path) as partial:
        partial.unlink(missing_ok=True)
        with closing(sqlite3.connect(partial)) as base:
            base.execute("PRAGMA journal_mode = OFF")
            for name, columns in TABLES.items():
                base.execute(f"CREATE TABLE {name} ({', '.join(map(_declared, columns.split()))})")
            for name, rows in _rows(window, zero):
                slots = ",".join("?" * len(TABLES[name].split()))
                base.executemany(f"INSERT INTO {name} VALUES ({slots})", rows)  # noqa: S608 - names are ours
            base.commit()


def _declared(column: str) -> str:
    """Return how SQL declares a column of `TABLES`."""
    kind = "TEXT" if ":" in column else "INTEGER"
    more = {"+": " PRIMARY KEY", "!": " NOT NULL"}.get(column[-1], "")
    return f"{column.rstrip(':!+')} {kind}{more}"


def _rows(window: TimeWindow, zero: int) -> Iterator[tuple[str, Iterable[tuple]]]:
    """Give the rows of each table, to be taken in turn: the texts that they name come behind them."""
    ids: dict[str, int] = {}

    def text(value: str) -> int:
        return ids.setdefault(value, len(ids) + 1)

    def times(row: dict) -> tuple[int, int]:
        return row["start_ns"] - zero, row["start_ns"] - zero + row["duration_ns"]

    def work(row: dict) -> tuple:
        return *times(row), row["device"], 1, row["stream"], row["correlation"], _process(row["rank"])

    shape = "block_x block_y block_z registers_per_thread static_shared_bytes dynamic_shared_bytes local_bytes".split()
    yield (
        "CUPTI_ACTIVITY_KIND_KERNEL",
        (
            (
                *work(row),
                *map(text, (row["name"], row["short_name"], row["name"])),
                *row["blocks"],
                *map(row.get, shape),
            )
            for row in window.launches()
        ),
    )
    yield (
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        (
            (*work(row), row["bytes"], row["copy_kind"], row["src_kind"], row["dst_kind"])
            for row in window.rows("transfers")
            if row["copy_kind"] != MEMSET_KIND
        ),
    )
    yield (
        "CUPTI_ACTIVITY_KIND_MEMSET",
        (
            (*work(row), 0, row["bytes"], row["dst_kind"])
            for row in window.rows("transfers")
            if row["copy_kind"] == MEMSET_KIND
        ),
    )
    yield (
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        ((*times(row), 0, _thread(row), row["correlation"], text(row["name"]), 0) for row in window.rows("calls")),
    )
    yield (
        "NVTX_EVENTS",
        ((*times(row), PUSH_POP, None, _thread(row), text(row["name"]), 0, None) for row in window.rows("ranges")),
    )
    pairs = re.compile(r"MPI_\w*(send|recv)", re.IGNORECASE)
    for table, is_pair in (("MPI_P2P_EVENTS", True), ("MPI_COLLECTIVES_EVENTS", False)):
        yield (
            table,
            (
                (*times(row), _thread(row), text(row["name"]), row["bytes"], row["peer"], row["communicator"])
                for row in window.rows("mpi")
                if bool(pairs.match(row["name"])) is is_pair
            ),
        )
    yield "MPI_RANKS", ((_process(rank), rank) for rank in window.ranks)
    yield "PROCESSES", ((_process(rank), rank + 1, f"rank {rank}") for rank in window.ranks)
    yield from _devices(window, zero)
    yield "StringIds", ((number, value) for value, number in ids.items())
    yield "META_DATA_EXPORT", VERSIONS.items()


def _devices(window: TimeWindow, zero: int) -> Iterator[tuple[str, Iterable[tuple]]]:
    """Give the rows of the GPUs that ranks used, and the samples of their metrics."""
    used = {(row["rank"], row["device"]) for name in ("launches", "transfers", "samples") for row in window.rows(name)}
    gpu = {key: number for number, key in enumerate(sorted(used))}
    row_of = {(row["rank"], row["device"]): row for rows in window.devices.values() for row in rows}
    facts = []
    for key, number in gpu.items():
        row = row_of.get(key, {})
        name, memory, clock, count = map(row.get, ("name", "memory_bytes", "clock_hz", "multiprocessors"))
        facts.append((0, number, name, None, memory, None, clock, count, None))
    yield "TARGET_INFO_GPU", facts
    yield "TARGET_INFO_CUDA_DEVICE", ((number, device, rank + 1) for (rank, device), number in gpu.items())
    metrics = sorted({row["metric"] for row in window.rows("samples")})
    sampled = sorted({gpu[row["rank"], row["device"]] for row in window.rows("samples")})
    yield (
        "TARGET_INFO_GPU_METRICS",
        ((FIRST_TYPE + number, 0, "GPU", k, _label(name)) for number in sampled for k, name in enumerate(metrics)),
    )
    yield (
        "GPU_METRICS",
        (
            (
                row["time_ns"] - zero,
                FIRST_TYPE + gpu[row["rank"], row["device"]],
                metrics.index(row["metric"]),
                _raw(row),
            )
            for row in window.rows("samples")
        ),
    )


def _label(metric: str) -> str:
    """Return a metric's name with its unit, as Nsight Systems writes them."""
    for suffix, unit in (
        ("_ratio", "Throughput %"),
        ("_hz", "MHz"),
        ("_warps_per_cycle", "Warps per cycle"),
        ("_requests", "Requests"),
    ):
        if metric.endswith(suffix):
            return f"{metric.removesuffix(suffix).replace('_', ' ')} [{unit}]"
    return metric


def _raw(row: dict) -> int:
    """Return a sample as Nsight Systems keeps it: whole percent, Hz, or a count."""
    return round(row["value"] * 100 if row["metric"].endswith("_ratio") else row["value"])


def _process(rank: int) -> int:
    """Return the packed process id of a rank; the lowest 24 bits are for the thread."""
    return (rank + 1) << 24


def _thread(row: dict) -> int:
    return _process(row["rank"]) | ((row["thread"] or 0) & 0xFFFFFF)
