"""nvprof's database (`nvprof -o`; .nvvp, .nvprof or .sqlite): CUPTI's activity records, one table per kind.

Sources: the schema as public readers and writers of such files state it (ezyang/nvprof2json, rasolca/profiling_tools),
CUPTI's documentation for the numbers of memory kinds, marker flags and calls. No real file was at hand. Names of
kernels are as the file has them, often mangled.
"""

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from causeway.core.codes import MEMSET_KIND
from causeway.core.errors import ExportError
from causeway.core.files.yaml_files import column_map
from causeway.readers.common.constants import EPOCH_FROM_NS, NEVER, NO_KIND, NULL, Column
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.numbers import integer
from causeway.readers.common.options import Options
from causeway.readers.containers.sqlite_database import SqliteExport
from causeway.readers.containers.sqlite_names import is_database, sqlite_tables
from causeway.readers.containers.table_source import Batch, note_state
from causeway.readers.nvidia.activity_tables import ActivityTables
from causeway.readers.sink.distinct import mapped
from causeway.readers.sink.sink import Sink

PEER_KIND = 10
UNIFIED_TO_HOST = 12
MARKER_START = 2
MARKER_END = 4
"""CUPTI_ACTIVITY_FLAG_MARKER_START and _END."""

PROCESS_OBJECT = 1
THREAD_OBJECT = 2
"""CUpti_ActivityObjectKind."""

_RANK_NAME = re.compile(r"\brank[ :_#-]*(\d{1,9})\b", re.IGNORECASE)
ADVICE = "Profile again with `nvprof -o file.nvvp`, and check that the program ran on a GPU."


def probe(path: Path) -> bool:
    """Return whether the path is a database with CUPTI's activity tables and nvprof's table of strings."""
    if not is_database(path):
        return False
    names = sqlite_tables(path)
    return not names or "StringTable" in names or "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL" in names


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one database.

    Raises
    ------
    ExportError
        If it holds no kernel launch and no transfer, or is damaged; what was handed to the sink before stays there.
    """
    export = SqliteExport(path, options.source)
    sink.at_close.callback(export.close)
    NvprofReader(export, sink, options).read()


class NvprofReader(ActivityTables):
    """The reader of one database. A file holds one process."""

    def __init__(self, export: SqliteExport, sink: Sink, options: Options) -> None:
        self.map = column_map("nvprof")
        strings = ("StringTable", "_id_", "value")
        super().__init__(export, sink, options, tables=self.map["tables"], strings=strings, text_column="object")
        self.process = sink.processes.code(0, self._rank())

    def read(self) -> None:
        """Read everything the map names."""
        sink = self.sink
        note_state(self.export, sink.issues)
        sink.format_version = "nvprof"
        for table, batch in self.tables_giving("launches"):
            self._launches(table, batch)
        for table, batch in self.tables_giving("transfers"):
            self._transfers(table, batch)
        for _, batch in self.tables_giving("migrations"):
            self._migrations(batch)
        if not sink.n_launches:
            if self.failure or not sink.n_transfers:
                problem = "there is no row in CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL or _KERNEL"
                raise self.failure or ExportError(self.options.source, problem, "at least one kernel launch", ADVICE)
            sink.issues.add("no_launches")
        for table, batch in self.tables_giving("calls"):
            self._calls(table, batch)
        self._markers()
        for _, batch in self.tables_giving("overhead"):
            self._overhead(batch)
        self._devices()
        if self.failure:
            raise self.failure

    def _overhead(self, batch: Batch) -> None:
        documented = self.map["overhead_kinds"]
        name = mapped(batch["kind"], lambda kind: self.sink.overhead.names.code_of(documented.get(kind)))
        own = ~np.isin(batch["kind"], self.map["overhead_of_cuda"])
        columns = batch["start_ns"], batch["end_ns"], np.full(batch.rows, self.process), name
        self.sink.overhead.take(*(column[own] for column in columns))

    def _rank(self) -> int | None:
        """Return the rank in the process's name (`nvprof --process-name "MPI Rank 3"`)."""
        rows = self.export.rows("CUPTI_ACTIVITY_KIND_NAME", ["objectKind", "name"], 1000)
        names = {name for kind, name in rows if kind == PROCESS_OBJECT and isinstance(name, int)}
        texts = self.texts(names)
        ranks = {int(match[1]) for text in texts.values() if (match := _RANK_NAME.search(clean_text(text)[:200]))}
        return ranks.pop() if len(ranks) == 1 else None

    def tables_giving(self, gives: str) -> Iterator[tuple[str, Batch]]:
        """Give batches as `ActivityTables` does, without the starts of records that CUPTI could not time."""
        for table, batch in super().tables_giving(gives):
            if "end_ns" in batch:  # CUPTI writes 0 and 0 where it could not take the times
                untimed = (batch["start_ns"] == 0) & (batch["end_ns"] == 0)
                batch["start_ns"] = np.where(untimed, NULL, batch["start_ns"])
            yield table, batch

    def _launches(self, table: str, batch: Batch) -> None:
        kernel = self.kernel_codes(batch["name"])
        self.sink.count_unnamed(kernel, table)
        if "device" not in batch:
            self.sink.issues.add("device_assumed", 1, table)
        timed = batch["start_ns"] != NULL
        if self.sink.session_start_ns is None and timed.any() and batch["start_ns"][timed][0] > EPOCH_FROM_NS:
            self.sink.session_start_ns = 0
        self.sink.launches({**batch, "kernel": kernel, "process": self.process, "in_queue": "stream" not in batch})

    def _transfers(self, table: str, batch: Batch) -> None:
        kind = batch.get("copy_kind", 0)
        if table.endswith("MEMCPY2"):
            kind = np.where(batch["copy_kind"] <= 0, PEER_KIND, kind)
        kind = MEMSET_KIND if table.endswith("MEMSET") else kind
        ends = {side: memory_kinds(batch.get(side)) for side in ("src_kind", "dst_kind")}
        self.sink.transfers({**batch, **ends, "process": self.process, "copy_kind": kind})

    def _migrations(self, batch: Batch) -> None:
        """Take what unified memory moves between the host and a device as transfers of the device, as nvprof's trace
        has them. CUPTI gives them no stream; counters until CUDA 7 have no times and are passed over.
        """
        if not {"counter", "bytes", "start_ns", "end_ns"} <= batch.keys():
            return
        for counter, kind in self.map["migrations"].items():
            chosen = batch["counter"] == counter
            device = batch["source" if kind == UNIFIED_TO_HOST else "target"]
            moved = {**batch, "device": device, "migration_cause": batch["migration_cause"]}
            columns: dict[str, Column] = {name: values[chosen] for name, values in moved.items()}
            self.sink.transfers(columns | {"process": self.process, "copy_kind": kind})

    def _calls(self, table: str, batch: Batch) -> None:
        api = "driver" if table.endswith("DRIVER") else "runtime"
        documented = self.map[f"{api}_calls"]

        def code_of(call: int) -> int:
            return self.sink.call_names.code(documented.get(call) or f"CUDA {api} call {call if call != NULL else '?'}")

        self.sink.take(
            "calls",
            batch["start_ns"],
            batch["end_ns"],
            self.process,
            thread=np.where(batch["thread"] == NULL, NULL, batch["thread"] & 0xFFFFFFFF),
            name=mapped(batch["call"], code_of),
            correlation=batch["correlation"],
        )

    def _markers(self) -> None:
        """Pair the starts and ends of NVTX ranges by their id; an instant is none, a start without an end is a range
        that still ran when the recording ended.
        """
        opened: dict[int, tuple[int, int, int]] = {}
        kind = self.sink.range_kinds.code("nvtx")
        for _, batch in self.tables_giving("markers"):
            flags = np.where(batch["flags"] == NULL, 0, batch["flags"])
            named = np.where((flags & MARKER_START) > 0, batch["name"], NULL)
            code = self.text_codes(named, self.sink.range_names.code_of)
            threads = self._threads(batch)
            ranges = []
            columns = (flags, batch["marker"], batch["start_ns"], code, threads)
            for flag, marker, time, name, thread in zip(*(column.tolist() for column in columns), strict=True):
                if flag & MARKER_START:
                    opened[marker] = (time, name, thread)
                elif flag & MARKER_END:
                    start, of, by = opened.pop(marker, (NULL, name, thread))  # the start has the name and the thread
                    ranges.append((start, time, of, by))
            if ranges:
                start, end, name, thread = np.array(ranges, np.int64).T
                self.sink.take("ranges", start, end, self.process, thread=thread, name=name, kind=kind)
        if opened:
            start, name, thread = np.array(list(opened.values()), np.int64).T
            end = np.full(start.size, NEVER)
            self.sink.take("ranges", start, end, self.process, thread=thread, name=name, kind=kind)

    @staticmethod
    def _threads(batch: Batch) -> np.ndarray:
        """Return the thread of each marker: the object's id is two 32-bit numbers, process and thread, in a marker
        of a thread.
        """
        if "object" not in batch or "object_kind" not in batch:
            return np.full(batch.rows, NULL)
        blobs = batch["object"].to_pylist()
        threads = [
            struct.unpack_from("<I", blob, 4)[0] if blob is not None and len(blob) >= 8 else NULL for blob in blobs
        ]
        return np.where(batch["object_kind"] == THREAD_OBJECT, np.array(threads, np.int64), NULL)

    def _devices(self) -> None:
        columns = ["id", "name", "numMultiprocessors", "globalMemorySize", "coreClockRate"]
        rows = self.export.rows("CUPTI_ACTIVITY_KIND_DEVICE", columns, 1024)
        texts = self.texts({name for _, name, *_ in rows if isinstance(name, int)})
        for device, name, multiprocessors, memory, clock in rows:
            if isinstance(device, int):
                text = texts.get(name)
                khz = integer(clock)
                self.sink.device(
                    self.process,
                    device,
                    name=text.decode("utf-8", "replace") if text else None,
                    multiprocessors=integer(multiprocessors),
                    memory_bytes=integer(memory),
                    clock_hz=khz * 1000 if khz and khz < 1 << 40 else None,
                )


def memory_kinds(cupti: np.ndarray | None) -> np.ndarray | int:
    """Return memory kinds, keys of `codes.MEMORY_KINDS` or `NO_KIND`, from CUPTI's numbers, shape (n,)."""
    if cupti is None:
        return NO_KIND
    kinds = column_map("nvprof")["memory_kinds"]
    return mapped(cupti, lambda number: kinds.get(number, NO_KIND))
