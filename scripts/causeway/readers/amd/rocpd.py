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
from causeway.core.tables import LAUNCH_SHAPE
from causeway.readers.amd.counter_passes import ANY_KERNEL
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
from causeway.readers.amd.trace_events import AmdReader, allocated_lds
from causeway.readers.common.constants import NULL, UNNAMED_METRIC
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.numbers import integers
from causeway.readers.common.options import Options
from causeway.readers.containers.sqlite_names import is_database, sqlite_tables
from causeway.readers.containers.table_source import Batch, note_state
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
    for file in _files(path):
        reader.read(file, "" if path.is_file() else f"{file.relative_to(path)}: ")
    reader.store.hand_over(only_linked=True)
    reader.finish()


class RocpdReader(AmdReader):
    """The reader of the databases of one export."""

    def __init__(self, sink: Sink, options: Options) -> None:
        super().__init__(sink, options, "rocpd")
        self.markers = self.shared["markers"]
        self.lds_step = self.shared["lds_granularity"]
        self.store.same_run = True  # counters are those of events of the same process
        self.guids: set[str] = set()

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
        problem = "no kernel was launched in it, or launches were not traced"
        nothing = ExportError(self.options.source, problem, f"rows in {DISPATCHES}", ADVICE)
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
            lacking = tables.lacking(table, entry["required"])
            if lacking:
                problem = f"{label}table {table} has no column {', '.join(lacking)}"
                error = ExportError(self.options.source, problem, "the columns that rocprofv3 writes", ADVICE)
                self.fail(error, "unreadable_table", f"{label}{table} lacks {', '.join(lacking)}")
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
            self.fail(error, "truncated", error.found.partition(" (")[0])

    def _table(
        self, tables: ProcessTables, table: str, entry: dict, event: tuple, take: Callable, guid: str, label: str
    ) -> None:
        for misfits, columns in tables.rows(table, entry["columns"], event):
            batch = Batch(columns)
            self.count(label + table, batch.rows, misfits)
            take(tables, batch, self._process(tables, batch, guid))

    def _process(self, tables: ProcessTables, batch: Batch, guid: str) -> np.ndarray:
        """Return process codes: of each row id, the process that it stands for."""

        def code_of(row: int) -> int:
            if row not in self.processes:
                pid = tables.processes.get(row, row if row != NULL else next(iter(tables.processes.values()), 0))
                self.processes[row] = self.sink.processes.code(f"{max(int(pid or 0), 0):020d} {guid}")
            return self.processes[row]

        return mapped(batch["process"], code_of)

    def _launches(self, tables: ProcessTables, batch: Batch, process: np.ndarray) -> None:
        ids = batch["kernel"]
        symbols = tables.kernel_symbols()
        none = (None,) * 5
        columns = {name: batch[name] for name in ("queue_id", *LAUNCH_SHAPE) if name in batch}
        columns |= {"start": batch["start"], "stop": batch["stop"], "process": process}
        columns |= self.events.stream_or_queue(batch["stream"], batch["queue_id"])
        columns["kernel"] = self.events.kernels([symbols.get(key, none)[0] or "" for key in ids.tolist()])
        columns["device"] = self._agents(tables, batch, "agent")
        columns |= {"thread": batch["thread"], "correlation": batch["stack_id"]}
        for index, name in enumerate(("lds_bytes", "arch_vgpr", "accum_vgpr", "sgpr"), 1):
            values = integers([symbols.get(key, none)[index] for key in ids.tolist()])[0]
            if name == "lds_bytes":  # as in the CSV: what is allocated, not what is asked for
                values = allocated_lds(values, columns.get(name, values), self.lds_step)
            if (values != NULL).any():
                columns[name] = values
        if "number" in batch:
            self.events.dispatches(DISPATCHES, process, batch["number"])
        self.events.launches(columns)
        if self.counted and "event" in batch:
            of_events = {"number": batch["event"], "kernel": np.full(batch.rows, ANY_KERNEL)}
            self.store.launches(columns | of_events, columns["kernel"])

    def _agents(self, tables: ProcessTables, batch: Batch, column: str) -> np.ndarray:
        if column not in batch:
            self.sink.issues.add("device_assumed", 1)
            return np.zeros(batch.rows, np.int64)
        return mapped(batch[column], tables.device)

    def _copies(self, tables: ProcessTables, batch: Batch, process: np.ndarray) -> None:
        columns = {"start": batch["start"], "stop": batch["stop"], "process": process}
        columns["stream"] = batch.get("stream", batch.get("queue_id", np.zeros(batch.rows, np.int64)))
        columns |= {"bytes": batch["bytes"], "correlation": batch["stack_id"]}
        ends = [mapped(batch[end], tables.device) for end in ("source", "target")]
        directions = [
            name if self.events.knows(name) else self._direction(tables, batch, row)
            for row, name in enumerate(tables.texts(batch["name"]))
        ]
        self.events.copies(columns, directions, *ends)

    @staticmethod
    def _direction(tables: ProcessTables, batch: Batch, row: int) -> str:
        """Return a copy's direction by the kinds of agents at its ends."""
        kinds = [
            tables.agents.get(int(batch[end][row]), (None,) * 3)[2] if end in batch else None
            for end in ("source", "target")
        ]
        words = ["HOST" if kind == "CPU" else "DEVICE" if kind == "GPU" else "?" for kind in kinds]
        return "_TO_".join(words)

    def _regions(self, tables: ProcessTables, batch: Batch, process: np.ndarray) -> None:
        columns = {"start": batch["start"], "stop": batch["stop"], "process": process}
        columns["thread"] = mapped(batch["thread"], lambda row: tables.threads.get(row, row))
        columns["correlation"] = batch["stack_id"]
        names = tables.texts(batch["name"])
        named = ("rocpd_info_category", "name") if tables.has("rocpd_info_category") else ("rocpd_string", "string")
        categories = tables.texts(batch["category_id"], *named)
        kinds = {category: self._region_kind(category) for category in set(categories)}
        kind = np.array([kinds[category] for category in categories])
        marker = kind == "range"
        facts = batch["extdata"].to_pylist() if "extdata" in batch else [None] * batch.rows
        others = sorted(category for category, what in kinds.items() if what == "other")
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
            self.count(label + COUNTERS, len(batch["event"]), bad)
            for event, counter, value in zip(
                batch["event"].tolist(), batch["counter"].tolist(), batch["value"].to_pylist(), strict=True
            ):
                yield code, event, tables.counters.get(counter, ("", None))[0] or f"counter {counter}", real(value)

    def _samples(self, tables: ProcessTables, guid: str) -> None:
        for bad, columns in tables.sampled():
            batch = Batch(columns)
            self.count("rocpd_sample", batch.rows, bad)
            counters = [tables.counters.get(counter, ("", None)) for counter in batch["counter"].tolist()]
            self.sink.samples(
                batch["time"],
                self._process(tables, batch, guid),
                np.array([tables.device(agent) if isinstance(agent, int) else 0 for _, agent in counters], np.int64),
                np.array([self.sink.metrics.code(name or UNNAMED_METRIC) for name, _ in counters], np.int64),
                np.array([real(value) for value in batch["value"].to_pylist()]),
            )
