"""rocpd databases of rocprofv3: launches, copies, calls, markers, counters and samples; one file or a folder, of one
process or many.

A set of tables is one process's; sets of several files are merged by their guid. Numbers of nodes, processes and
threads are row ids.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from causeway.core.errors import ExportError
from causeway.core.files.yaml_files import column_map
from causeway.core.schemas import GRID
from causeway.core.tables import LAUNCH_SHAPE
from causeway.readers.amd.counter_passes import ANY_KERNEL, CounterStore
from causeway.readers.amd.rocpd_tables import (
    COPIES,
    COUNTERS,
    DISPATCHES,
    REGIONS,
    ProcessTables,
    message,
    open_database,
    real,
    suffixes,
)
from causeway.readers.amd.trace_events import RocmEvents, allocated_lds
from causeway.readers.common.constants import NULL, UNNAMED_METRIC
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.numbers import Misfits, integers
from causeway.readers.common.options import Options
from causeway.readers.containers.sqlite_names import is_database, sqlite_tables
from causeway.readers.containers.table_source import note_state
from causeway.readers.sink.batches import repeated
from causeway.readers.sink.distinct import mapped
from causeway.readers.sink.sink import Sink

ADVICE = "Profile again with `rocprofv3 --kernel-trace --output-format rocpd`."


def probe(path: Path) -> bool:
    """Return whether a file, or a database of a folder, has rocpd tables."""
    return bool(_files(path))


def _files(path: Path) -> list[Path]:
    files = sorted(file for file in path.rglob("*.db") if file.is_file()) if path.is_dir() else [path]
    return [file for file in files if is_database(file) and (not path.is_dir() or suffixes(sqlite_tables(file)))]


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one database, or all of a folder.

    Raises
    ------
    ExportError
        If there is neither a launch nor a counter, or a database is damaged; what could be read is kept.
    """
    reader = RocpdReader(sink, options)
    try:
        for file in _files(path):
            reader.read(file, "" if path.is_file() else f"{file.relative_to(path)}: ")
        reader.store.hand_over(only_linked=True)
    except BaseException:
        reader.store.close()
        raise
    reader.finish()


class RocpdReader:
    """The reader of the databases of one export."""

    def __init__(self, sink: Sink, options: Options) -> None:
        self.sink = sink
        self.options = options
        self.rules = column_map("rocpd")
        sink.metadata[GRID] = self.rules["grid"]
        shared = column_map("rocprofv3")
        self.markers = shared["markers"]
        self.lds_step = shared["lds_granularity"]
        self.store = CounterStore(sink, shared["units"], self.rules["duration"])
        self.store.same_run = True  # counters are those of events of the same process
        self.events = RocmEvents(sink)
        self.progress = options.progress()
        self.done = 0
        self.total = 1
        self.before = 0
        self.failure: ExportError | None = None
        self.guids: set[str] = set()
        self.sets = 0

    def read(self, path: Path, label: str) -> None:
        """Read one database; keep in `failure` what is wrong with it."""
        try:
            export = open_database(path, self.options.source)
        except ExportError as error:
            self.failure = self.failure or error
            return
        try:
            note_state(export, self.sink.issues)
            self.done = 0
            self.total = max(1, sum(export.estimated_rows(name) for name in export.tables if name.startswith("rocpd_")))
            for suffix in suffixes(export.tables):
                tables = ProcessTables(export, suffix)
                guid = tables.guid() or f"{label}{suffix}"
                if guid in self.guids:  # a copy of a process that was read already
                    self.sink.issues.add("copied_process", 1, f"{label}guid {guid[:40]}")
                    continue
                self.guids.add(guid)
                self.sink.format_version = (
                    self.sink.format_version or f"rocpd schema {(tables.metadata('schema_version') or '?')[:20]}"
                )
                self._set(tables, guid, label)
            for table, rows in export.repeated.items():
                self.sink.issues.add("repeated_ids", rows, f"{label}{table}"[:200])
        finally:
            export.close()
        self.before += path.stat().st_size

    def finish(self) -> None:
        """Count what only all databases show; raise the first failure."""
        found = "no kernel was launched in it, or launches were not traced"
        nothing = ExportError(self.options.source, found, f"rows in {DISPATCHES}", ADVICE)
        self.events.finish(self.failure, nothing)

    def _set(self, tables: ProcessTables, guid: str, label: str) -> None:
        """Read one process's tables, each as far as it can be read."""
        takes: dict[str, Callable] = {DISPATCHES: self._launches, COPIES: self._copies, REGIONS: self._regions}
        self.counted = tables.has_rows(COUNTERS)
        self.processes: dict[int, int] = {}
        for table, take in takes.items():
            if not tables.has(table):
                continue
            entry = self.rules["tables"][table]
            lacking = [name for name in entry["required"] if name not in tables.columns(table)]
            if lacking:
                self._damage(
                    f"{label}table {table} has no column {', '.join(lacking)}",
                    f"{label}{table} lacks {', '.join(lacking)}",
                )
                continue
            event = ("stack_id", "category_id", "extdata") if table == REGIONS else ("stack_id",)
            self._try(partial(self._table, tables, table, entry, event, take, guid, label))
        if self.counted:
            self._try(lambda: self._counters(tables, label))
            self._try(lambda: self._samples(tables, guid))
        for code in list(self.processes.values())[:1]:
            for device, facts in tables.devices():
                self.sink.device(code, device, **facts)
        self.sink.same_devices(self.processes.values())

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except ExportError as error:
            self.sink.issues.add("truncated", 1, error.found.partition(" (")[0])
            self.failure = self.failure or error

    def _damage(self, found: str, detail: str) -> None:
        self.sink.issues.add("unreadable_table", 1, detail)
        self.failure = self.failure or ExportError(
            self.options.source, found, "the columns that rocprofv3 writes", ADVICE
        )

    def _table(
        self, tables: ProcessTables, table: str, entry: dict, event: tuple, take: Callable, guid: str, label: str
    ) -> None:
        for misfits, batch in tables.rows(table, entry["columns"], event):
            rows = len(batch["start"])
            self._count(label + table, rows, misfits)
            take(tables, batch, rows, self._process(tables, batch, rows, guid))

    def _count(self, table: str, rows: int, misfits: Misfits) -> None:
        self.sink.count_in(table, rows)
        self.sink.issues.add_all(misfits, table)
        self.done += rows
        self.progress.at(self.before + int((self.options.size - self.before) * min(1.0, self.done / self.total)))

    def _process(self, tables: ProcessTables, batch: dict, rows: int, guid: str) -> np.ndarray:
        """Return process codes: of each row id, the process that it stands for."""

        def code_of(row: int) -> int:
            if row not in self.processes:
                pid = tables.processes.get(row, row if row != NULL else next(iter(tables.processes.values()), 0))
                self.processes[row] = self.sink.processes.code(f"{max(int(pid or 0), 0):020d} {guid}")
            return self.processes[row]

        return mapped(batch.get("process", repeated(NULL, rows)), code_of)

    def _launches(self, tables: ProcessTables, batch: dict, rows: int, process: np.ndarray) -> None:
        ids = batch["kernel"]
        symbols = tables.kernel_symbols()
        none = (None,) * 5
        columns = {name: batch[name] for name in ("queue_id", *LAUNCH_SHAPE) if name in batch}
        columns |= {"start": batch["start"], "stop": batch["stop"], "process": process}
        absent = np.full(rows, NULL)
        columns |= self.events.stream_or_queue(batch.get("stream", absent), batch.get("queue_id", absent))
        columns["kernel"] = self.events.kernels([symbols.get(one, none)[0] or "" for one in ids.tolist()])
        columns["device"] = self._agents(tables, batch.get("agent"), rows)
        columns["thread"] = batch.get("thread", np.full(rows, NULL))
        columns["correlation"] = batch.get("stack_id", np.full(rows, NULL))
        for at, name in enumerate(("lds_bytes", "arch_vgpr", "accum_vgpr", "sgpr"), 1):
            values = integers([symbols.get(one, none)[at] for one in ids.tolist()])[0]
            if name == "lds_bytes":  # as in the CSV: what is allocated, not what is asked for
                values = allocated_lds(values, columns.get(name, values), self.lds_step)
            if (values != NULL).any():
                columns[name] = values
        if "number" in batch:
            self.events.dispatches(DISPATCHES, process, batch["number"])
        self.events.launches(columns)
        if self.counted and "event" in batch:
            self.store.launches(
                columns | {"number": batch["event"], "kernel": np.full(rows, ANY_KERNEL)}, columns["kernel"]
            )

    def _agents(self, tables: ProcessTables, agents: np.ndarray | None, rows: int) -> np.ndarray:
        if agents is None:
            self.sink.issues.add("device_assumed", 1)
            return np.zeros(rows, np.int64)
        return mapped(agents, tables.device)

    def _copies(self, tables: ProcessTables, batch: dict, rows: int, process: np.ndarray) -> None:
        columns = {"start": batch["start"], "stop": batch["stop"], "process": process, "stream": _stream(batch, rows)}
        columns |= {"bytes": batch.get("bytes", NULL), "correlation": batch.get("stack_id", np.full(rows, NULL))}
        absent = np.full(rows, NULL)
        ends = [self._agents(tables, batch.get(end, absent), rows) for end in ("source", "target")]
        directions = tables.texts(batch.get("name", absent))
        directions = [
            name if self.events.knows(name) else self._direction(tables, batch, at)
            for at, name in enumerate(directions)
        ]
        self.events.copies(columns, directions, *ends)

    @staticmethod
    def _direction(tables: ProcessTables, batch: dict, at: int) -> str:
        """Return a copy's direction by the kinds of agents at its ends."""
        kinds = [
            tables.agents.get(int(batch[end][at]), (None,) * 3)[2] if end in batch else None
            for end in ("source", "target")
        ]
        words = ["HOST" if kind == "CPU" else "DEVICE" if kind == "GPU" else "?" for kind in kinds]
        return "_TO_".join(words)

    def _regions(self, tables: ProcessTables, batch: dict, rows: int, process: np.ndarray) -> None:
        absent = np.full(rows, NULL)
        columns = {"start": batch["start"], "stop": batch["stop"], "process": process}
        columns["thread"] = mapped(batch.get("thread", absent), lambda row: tables.threads.get(row, row))
        columns["correlation"] = batch.get("stack_id", absent)
        names = tables.texts(batch.get("name", absent))
        named = ("rocpd_info_category", "name") if tables.has("rocpd_info_category") else ("rocpd_string", "string")
        categories = tables.texts(batch.get("category_id", absent), *named)
        kinds = {one: self._region_kind(one) for one in set(categories)}
        kind = np.array([kinds[one] for one in categories])
        marker = kind == "range"
        facts = batch["extdata"].to_pylist() if "extdata" in batch else [None] * rows
        others = sorted(one for one, what in kinds.items() if what == "other")
        self.sink.issues.add("other_regions", int(np.sum(kind == "other")), clean_text(", ".join(others))[:200])
        texts = [
            (of_marker and message(fact)) or name for of_marker, fact, name in zip(marker, facts, names, strict=True)
        ]
        self.events.calls_and_ranges(columns, texts, kind == "call", marker)

    def _region_kind(self, category: str) -> str:
        """Return what regions of a category are: `range`, `call`, or `other`, which is not read."""
        small = category.lower()
        if not small or small.startswith(self.markers.lower()) or small in self.rules["ranges"]:
            return "range"
        return "call" if self.rules["calls"] in small else "other"

    def _counters(self, tables: ProcessTables, label: str) -> None:
        """Take the counters of events; which of them are launches shows when they are joined."""
        code = next(iter(self.processes.values()), None)
        if code is not None:
            self.store.gather(self._counter_rows(tables, code, label))

    def _counter_rows(self, tables: ProcessTables, code: int, label: str) -> Iterator[tuple[int, int, str, float]]:
        for bad, batch in tables.counter_values():
            self._count(label + COUNTERS, len(batch["event"]), bad)
            for event, counter, value in zip(
                batch["event"].tolist(), batch["counter"].tolist(), batch["value"].to_pylist(), strict=True
            ):
                yield code, event, tables.counters.get(counter, ("", None))[0] or f"counter {counter}", real(value)

    def _samples(self, tables: ProcessTables, guid: str) -> None:
        for bad, batch in tables.sampled():
            rows = len(batch["time"])
            self._count("rocpd_sample", rows, bad)
            counters = [tables.counters.get(one, ("", None)) for one in batch["counter"].tolist()]
            self.sink.samples(
                batch["time"],
                self._process(tables, batch, rows, guid),
                np.array([tables.device(agent) if isinstance(agent, int) else 0 for _, agent in counters], np.int64),
                np.array([self.sink.metrics.code(name or UNNAMED_METRIC) for name, _ in counters], np.int64),
                np.array([real(value) for value in batch["value"].to_pylist()]),
            )


def _stream(batch: dict, rows: int) -> np.ndarray:
    return batch.get("stream", batch.get("queue_id", np.zeros(rows, np.int64)))
