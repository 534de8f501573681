"""Write a rank's events as an Nsight Systems SQLite export (schema 3.16.1), batch by batch in bounded memory.

Tables of an Nsight Systems SQLite export: the statements of `assets/nsys_tables.sql`.
"""

import datetime
import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np

from causeway.core.files.yaml_files import read_yaml
from causeway.simulate import schedule
from causeway.simulate.device_metrics import METRICS
from causeway.simulate.rank_export import RankExport
from causeway.simulate.scenario import Scenario
from causeway.simulate.stream_events import RankBatch

BASE_UTC_NS = 1_767_312_000_000_000_000
"""When the first rank's session began: 2026-01-02 00:00:00 UTC."""
HOST_ID = 1 << 48
CALLS = {
    schedule.LAUNCH: ("cudaLaunchKernel_v7000", 0),
    schedule.LAUNCH_DRIVER: ("cuLaunchKernelEx", 1),
    schedule.MEMCPY: ("cudaMemcpyAsync_v3020", 0),
    schedule.MEMSET: ("cudaMemsetAsync_v3020", 0),
    schedule.SYNCHRONIZE: ("cudaDeviceSynchronize_v3020", 0),
}
THREADS = ("python", "pt_side_stream", "pt_copy_h2d", "pt_copy_d2h", "pt_copy_d2d")
MACHINE: dict[str, dict[str, Any]] = read_yaml(Path(__file__).parent / "assets" / "machine.yaml")
"""Facts of the machine, by what the formats call them."""
VALUES_PER_BATCH = 200_000
"""Rows handed to sqlite at once."""


def session_offset_ns(scenario: Scenario, rank: int) -> int:
    """Return how much later than the first one a rank's session began; 0 for rank 0, irregular up to 40 ms for the
    others.
    """
    return 0 if rank == 0 else (rank * 7_368_787 + rank * rank * 912_367) % 40_000_000


class NsysSqlite(RankExport):
    """A database of events."""

    def __init__(self, path: str | Path, scenario: Scenario, rank: int) -> None:
        super().__init__(path, scenario, rank, session_offset_ns(scenario, rank))
        self.pid = 227_916 + 11 * rank
        self.global_pid = HOST_ID | self.pid << 24
        self.grids = 0
        self.last_ns = 0
        self.created: set[str] = set()
        self.statements = statements()
        self.strings: dict[str, int] = {}
        self.connection = sqlite3.connect(self.partial, isolation_level=None)
        for pragma in (
            "page_size = 4096",
            "encoding = 'UTF-8'",
            "journal_mode = OFF",
            "synchronous = OFF",
            "locking_mode = EXCLUSIVE",
        ):
            self.connection.execute(f"PRAGMA {pragma}").fetchall()
        self.connection.execute("PRAGMA cache_size = -16384")
        self.connection.execute("BEGIN")

    def __enter__(self) -> "NsysSqlite":
        self._opening()
        return self

    def close(self, *, is_complete: bool) -> None:
        """Commit what was written, and close the database."""
        if is_complete:
            self._closing()
            self.connection.execute("COMMIT")
        self.connection.close()

    def insert(self, table: str, **values: np.ndarray | list | str | float | None) -> None:
        """Append rows to a table, which is created first if need be.

        Parameters
        ----------
        table : str
        **values : ndarray, list or a single number or text
            Columns: arrays give one row per element, single values stand in every row; columns not named are null.
        """
        if table not in self.created:
            self.connection.execute(self.statements[table][0])
            self.created.add(table)
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray | list)}
        terms = ["?" if isinstance(value, np.ndarray | list) else _literal(value) for value in values.values()]
        statement = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(terms)})"  # noqa: S608  names and literals are this module's own
        bound = list(arrays.values())
        if not bound:
            self.connection.execute(statement)
            self.rows[table] = self.rows.get(table, 0) + 1
            return
        count = len(bound[0])
        for first in range(0, count, VALUES_PER_BATCH):
            part = [column[first : first + VALUES_PER_BATCH] for column in bound]
            rows = zip(*(column.tolist() if isinstance(column, np.ndarray) else column for column in part), strict=True)
            self.connection.executemany(statement, rows)
        self.rows[table] = self.rows.get(table, 0) + count

    def string(self, value: str) -> int:
        """Return the number of a string in StringIds, where it is entered on first use."""
        if value not in self.strings:
            self.strings[value] = len(self.strings)
            self.insert("StringIds", id=self.strings[value], value=value)
        return self.strings[value]

    def write(self, batch: RankBatch) -> None:
        """Append a batch of events."""
        self._write_kernels(batch)
        context = {"deviceId": self.device, "contextId": 1, "globalPid": self.global_pid}
        if batch.copies:
            events = self._times(batch.copies)
            self.insert(
                "CUPTI_ACTIVITY_KIND_MEMCPY",
                **context,
                **events,
                bytes=batch.copies["bytes"],
                copyKind=batch.copies["kind"],
                srcKind=batch.copies["source_kind"],
                dstKind=batch.copies["target_kind"],
            )
        self.insert(
            "CUPTI_ACTIVITY_KIND_MEMSET",
            **context,
            **self._times(batch.memsets),
            bytes=batch.memsets["bytes"],
            value=0,
            memKind=2,
        )
        calls = batch.calls
        names = np.array([self.string(CALLS[i][0]) for i in range(len(CALLS))])
        classes = np.array([CALLS[i][1] for i in range(len(CALLS))])
        self.insert(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            start=self.clock.readings(calls["start"]),
            end=self.clock.readings(calls["end"]),
            eventClass=classes[calls["call"]],
            globalTid=self.global_pid + self.pid + calls["thread"],
            correlationId=calls["correlation"],
            nameId=names[calls["call"]],
            returnValue=0,
        )
        ranges = {name: self.clock.readings(values) for name, values in batch.ranges.items() if name != "iteration"}
        self.insert(
            "NVTX_EVENTS",
            **ranges,
            eventType=59,
            text="iteration",
            globalTid=self.global_pid + self.pid,
            domainId=0,
            int64Value=batch.ranges["iteration"],
        )
        self.last_ns = int(ranges["end"][-1])
        if batch.samples:
            samples = batch.samples
            source = HOST_ID + (1 << 32) + (1 << 16)
            self.insert(
                "GPU_METRICS",
                timestamp=self.clock.readings(samples["time"]),
                typeId=source + self.device,
                metricId=samples["metric"],
                value=samples["value"],
            )

    def _times(self, events: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {
            "start": self.clock.readings(events["start"]),
            "end": self.clock.readings(events["end"]),
            "streamId": events["stream"],
            "correlationId": events["correlation"],
        }

    def _write_kernels(self, batch: RankBatch) -> None:
        kernels = batch.kernels
        facts = self.scenario.kernels
        which = kernels["kernel"]

        def fact(values: list[int]) -> np.ndarray:
            return np.array(values, dtype=np.int64)[which]

        grid_id = self.grids + 1 + np.arange(len(which))
        self.grids += len(which)
        self.insert(
            "CUPTI_ACTIVITY_KIND_KERNEL",
            **self._times(kernels),
            deviceId=self.device,
            contextId=1,
            globalPid=self.global_pid,
            demangledName=fact([self.string(k.name) for k in facts]),
            shortName=fact([self.string(k.short_name) for k in facts]),
            mangledName=fact([self.string(k.mangled_name) for k in facts]),
            launchType=1,
            cacheConfig=1,
            registersPerThread=fact([k.registers for k in facts]),
            gridX=kernels["grid"],
            gridY=1,
            gridZ=1,
            blockX=kernels["block"],
            blockY=1,
            blockZ=1,
            staticSharedMemory=fact([k.static_shared_bytes for k in facts]),
            dynamicSharedMemory=fact([k.dynamic_shared_bytes for k in facts]),
            localMemoryPerThread=0,
            localMemoryTotal=155_713_536,
            gridId=grid_id,
            sharedMemoryExecuted=fact([32768 if k.dynamic_shared_bytes < 32768 else 102_400 for k in facts]),
            sharedMemoryLimitConfig=fact([int(k.dynamic_shared_bytes > 49152) for k in facts]),
        )

    def _opening(self) -> None:
        """Write the tables that do not depend on events: names, the machine, the session."""
        for value in ("GpuMetrics", "SocMetrics", *(name for name, _ in CALLS.values()), *THREADS):
            self.string(value)
        for kernel in self.scenario.kernels:
            for value in (kernel.mangled_name, kernel.name, kernel.short_name):
                self.string(value)
        start = BASE_UTC_NS + session_offset_ns(self.scenario, self.rank)
        clock = datetime.datetime.fromtimestamp(start // 1_000_000_000, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")
        self.insert("TARGET_INFO_SESSION_START_TIME", utcEpochNs=start, utcTime=clock, localTime=clock)
        for number in range(self.devices):
            uuid = f"{0xA8A99508 + 16 * self.node + number:08x}-235c-1ac9-454c-6a98d38f97d4"
            identity: dict[str, int | str] = {
                "id": number,
                "pwGpuId": number,
                "cuDevice": number,
                "busLocation": f"0000:{0x1B + 32 * number:02x}:00.0",
            }
            self.insert("TARGET_INFO_GPU", vmId=HOST_ID, uuid=uuid, **identity, **MACHINE["nsys_gpu"])
        context = {"hwId": 0, "vmId": 1, "processId": self.pid, "contextId": 1}
        self.insert(
            "TARGET_INFO_CUDA_CONTEXT_INFO",
            **context,
            nullStreamId=7,
            deviceId=self.device,
            parentContextId=0,
            isGreenContext=0,
        )
        streams = [schedule.NEIGHBOUR_STREAM] * (self.scenario.neighbour is not None) + [
            copy.stream for copy in self.scenario.copies
        ]
        for stream in sorted(streams):
            self.insert("TARGET_INFO_CUDA_STREAM", **context, streamId=stream, priority=0, flag=2)
        self.insert("PROCESSES", globalPid=self.global_pid, pid=self.pid, name="python")
        for number, name in enumerate(THREADS):
            self.insert(
                "ThreadNames", nameId=self.string(name), priority=20, globalTid=self.global_pid + self.pid + number
            )
        if self.scenario.gpu_metrics_us:
            source = HOST_ID + (1 << 32) + (1 << 16)
            for number, name in enumerate(METRICS):
                kind: dict[str, int | str] = {
                    "typeId": source + self.device,
                    "sourceId": source,
                    "typeName": f"GPU Metrics [{MACHINE['nsys_gpu']['name']}]",
                }
                self.insert("TARGET_INFO_GPU_METRICS", **kind, metricId=number, metricName=name)

    def _closing(self) -> None:
        """Write the capture's length, the enumerations and the version."""
        end = self.last_ns + 50_000_000
        self.insert("ANALYSIS_DETAILS", globalVid=HOST_ID, duration=end, startTime=0, stopTime=end)
        for table, (create, *fill) in self.statements.items():
            for statement in fill:
                self.connection.execute(create)
                self.rows[table] = self.connection.execute(statement).rowcount
        for name, value in (
            ("DEVICE_ID", "Local (CLI)"),
            ("CAPTURE_EVENT_TYPE", "NvtxEvents"),
            ("CAPTURE_EVENT_TYPE", "Cuda"),
        ):
            self.insert("META_DATA_CAPTURE", name=name, value=value)
        for name, value in MACHINE["nsys_export"].items():
            text = value.format(node=self.node, stem=self.path.stem)
            self.insert("META_DATA_EXPORT", name=name, value=text)


def _literal(value: str | float | None) -> str:
    """Return a value as SQL text."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(int(value))


SCRIPT = Path(__file__).parent / "assets" / "nsys_tables.sql"
TABLE = re.compile(r"(?:CREATE TABLE|INSERT INTO) (\w+)")


def statements() -> dict[str, list[str]]:
    """Return for each table, in the script's order, the statement that makes it and, of an enumeration, the one that
    fills it.
    """
    by_table: dict[str, list[str]] = {}
    for part in SCRIPT.read_text(encoding="utf-8").split(";\n"):
        if begun := TABLE.search(part):
            by_table.setdefault(begun[1], []).append(part[begun.start() :])
    return by_table
