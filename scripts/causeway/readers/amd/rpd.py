"""rocm_profile_data (.rpd): operations of the GPU with the calls that made them, counters, markers, and the clock
monitor as samples.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from causeway.core.codes import MEMSET_KIND
from causeway.core.errors import ExportError
from causeway.core.tables import LAUNCH_SHAPE
from causeway.readers.amd.counter_passes import ANY_KERNEL
from causeway.readers.amd.rocpd_tables import real
from causeway.readers.amd.trace_events import AmdReader
from causeway.readers.common.constants import NULL, TIMES, UNNAMED_METRIC
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.options import Options
from causeway.readers.containers.sqlite_database import SqliteExport, quoted
from causeway.readers.containers.sqlite_names import is_database, sqlite_tables
from causeway.readers.containers.table_source import Batch, note_state
from causeway.readers.sink.sink import Sink

OPERATIONS = "rocpd_op"
CALLS = "rocpd_api"
LINKS = "rocpd_api_ops"
COUNTERS = "rocpd_counter"
MONITOR = "rocpd_monitor"
CORRELATION = "correlation_id"
"""Column of operations and calls in the files of rocm-trace-lite, which have no table of links."""
STRINGS = "rocpd_string"
ARGUMENTS = "rocpd_ustring"
_DETAILS = (
    ("rocpd_kernelapi", "rocpd_kernelapi", "k"),
    ("rocpd_kernelapi", "rocpd_kernelop", "k"),
    ("rocpd_copyapi", "rocpd_copyapi", "c"),
    ("rocpd_copyapi", "rocpd_copyop", "c"),
)
"""Tables of details of operations: their entry in the map, their name, and its alias in SQL; of an alias, the first
table that is there.
"""

ADVICE = "Trace again with `runTracer.sh`, or export the .rpd file again."


def probe(path: Path) -> bool:
    """Return whether a file is a database with tables of operations and calls."""
    return is_database(path) and bool({OPERATIONS, CALLS} & set(sqlite_tables(path)))


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one database.

    Raises
    ------
    ExportError
        If there is no kernel in it, or it is damaged; what could be read is kept.
    """
    export = SqliteExport(path, options.source)
    sink.at_close.callback(export.close)
    reader = RpdReader(export, sink, options)
    reader.read()
    reader.finish()


class RpdReader(AmdReader):
    """The reader of one database."""

    def __init__(self, export: SqliteExport, sink: Sink, options: Options) -> None:
        super().__init__(sink, options, "rpd")
        self.export = export
        self.counted = export.estimated_rows(COUNTERS) > 0 if COUNTERS in export.tables else False
        self.total = max(1, sum(export.estimated_rows(table) for table in (OPERATIONS, CALLS, MONITOR)))
        self._kinds: dict[int, tuple[str, int]] = {}
        self.others: dict[str, int] = {}
        self.devices: set[int] = set()

    def read(self) -> None:
        """Read everything."""
        export = self.export
        sink = self.sink
        note_state(export, sink.issues)
        metadata = dict(export.rows("rocpd_metadata", ["tag", "value"]))
        version = metadata.get("schema_version", "?")
        sink.format_version = f"rpd schema {clean_text(str(version))[:20]}"
        steps = {OPERATIONS: self._operations, COUNTERS: self._counters, CALLS: self._calls, MONITOR: self._monitor}
        for table, step in steps.items():
            if table not in export.tables:
                continue
            lacking = [name for name in self.rules["tables"][table]["required"] if name not in export.tables[table]]
            if lacking:
                problem = f"table {table} has no column {', '.join(lacking)}"
                error = ExportError(self.options.source, problem, "the columns that rocm_profile_data writes", ADVICE)
                self.fail(error, "unreadable_table", problem)
                continue
            try:
                step()
            except ExportError as error:
                self.fail(error, "truncated", f"table {table}")
        for table, rows in export.repeated.items():
            sink.issues.add("repeated_ids", rows, table)
        self.store.hand_over(only_linked=True)

    def finish(self) -> None:
        """Count what only the whole file shows; raise the first failure."""
        problem = "there is no operation of a GPU in it"
        nothing = ExportError(self.options.source, problem, f"rows in {OPERATIONS}", ADVICE)
        self.events.finish(self.failure, nothing, says_why=False)

    def _names(self, ids: np.ndarray, table: str = STRINGS) -> list[str]:
        """Return the texts of ids, '' where there is none."""
        return self.export.names(ids, table, "string")

    def _chosen(self, table: str, alias: str, columns: dict[str, str]) -> dict[str, str]:
        present = self.export.tables.get(table, [])
        return {ours: f"{alias}.{quoted(raw)}" for raw, ours in columns.items() if raw in present}

    def _operations(self) -> None:
        """Read the operations, each with its call's process, and its size from its call's row or its own."""
        rules = self.rules["tables"]
        tables = self.export.tables
        chosen = self._chosen(OPERATIONS, "o", rules[OPERATIONS]["columns"])
        query = f" FROM {OPERATIONS} o"
        linked = LINKS in tables and {"api_id", "op_id"} <= set(tables[LINKS])
        if linked:
            links = f"SELECT op_id, min(api_id) AS call FROM {LINKS} GROUP BY op_id"  # noqa: S608 - our own name
            query += f" LEFT JOIN ({links}) x ON x.op_id = o.id"
            chosen["call"] = "x.call"
            if "pid" in tables.get(CALLS, []):
                query += f" LEFT JOIN {self.export.once(CALLS, 'id', ['pid'])} a ON a.id = x.call"
                chosen["process"] = "a.pid"
        elif CORRELATION in tables[OPERATIONS] and {CORRELATION, "id", "pid"} <= set(tables.get(CALLS, [])):
            once = (  # where several processes number alike, a call is not known
                f"(SELECT {CORRELATION}, min(id) AS id, min(pid) AS pid FROM {CALLS} GROUP BY {CORRELATION}"  # noqa: S608
                " HAVING count(*) = 1)"
            )
            query += f" LEFT JOIN {once} a ON a.{CORRELATION} = o.{CORRELATION} AND o.{CORRELATION} > 0"
            chosen |= {"call": "a.id", "process": "a.pid"}
        for ours, table, alias in _DETAILS:
            key, of = ("api_ptr_id", "x.call") if table.endswith("api") else ("op_ptr_id", "o.id")
            if (
                table not in tables
                or key not in tables[table]
                or (of == "x.call" and not linked)
                or f" {alias} ON" in query
            ):
                continue
            columns = {raw: name for raw, name in rules[ours]["columns"].items() if raw in tables[table]}
            query += f" LEFT JOIN {self.export.once(table, key, columns)} {alias} ON {alias}.{key} = {of}"
            chosen |= {
                name: column for name, column in self._chosen(table, alias, columns).items() if name not in chosen
            }
        statement = f"SELECT {', '.join(chosen.values())}{query}"
        for misfits, batch in self.export.select(statement, OPERATIONS, list(chosen), times=TIMES):
            self.count(OPERATIONS, len(batch["start"]), misfits)
            self._take(Batch(batch))
        if self.others:
            named = ", ".join(f"{kind or '(unnamed)'}: {count}" for kind, count in sorted(self.others.items()))
            self.sink.issues.add("other_operations", sum(self.others.values()), clean_text(named)[:200])

    def _operation(self, kind: int) -> tuple[str, int]:
        """Return what an operation of a type is (`kernel`, `set`, `copy` or '') and its copy kind."""
        if kind not in self._kinds:
            name = self._names(np.array([kind]))[0]
            what = next(
                (what for what, words in self.rules["operations"].items() if any(word in name for word in words)), ""
            )
            copy_kind = next((number for word, number in self.rules["copy_kinds"].items() if word in name), 0)
            self._kinds[kind] = (what, MEMSET_KIND if what == "set" else copy_kind)
            if not what:
                self.others.setdefault(name, 0)
        return self._kinds[kind]

    def _take(self, batch: Batch) -> None:
        """Divide a batch into launches and transfers."""
        kinds = [self._operation(code) for code in batch["kind"].tolist()]
        process = self._processes(batch["process"])
        self.devices |= set(np.unique(batch.get("device", np.zeros(1, np.int64))).tolist())
        for what in ("kernel", "transfer"):
            rows = np.flatnonzero(
                [kind == "kernel" if what == "kernel" else kind in ("set", "copy") for kind, _ in kinds]
            )
            if not len(rows):
                continue
            whole = dict.fromkeys(("device", "stream"), np.zeros(batch.rows, np.int64)) | batch
            whole |= {"process": process, "correlation": batch["call"]}
            part = Batch({name: column[rows] for name, column in whole.items()})
            if what == "kernel":
                self._launches(part)
            else:
                times = {"start_ns": part["start"], "end_ns": part["stop"]}
                copy_kind = np.array([kinds[row][1] for row in rows.tolist()])
                self.sink.transfers({**part, **times, "copy_kind": copy_kind})
        for name, (what, _) in zip(self._names(batch["kind"]), kinds, strict=True):
            if not what:
                self.others[name] += 1

    def _launches(self, batch: Batch) -> None:
        described = self._names(batch["description"])
        named = self._names(batch["name"])
        columns = {
            name: batch[name]
            for name in (*LAUNCH_SHAPE, "start", "stop", "process", "device", "stream", "correlation")
            if name in batch
        }
        columns["kernel"] = self.events.kernels([name or other for name, other in zip(described, named, strict=True)])
        self.events.launches(columns)
        if self.counted and "id" in batch:
            of_events = {"number": batch["id"], "kernel": np.full(batch.rows, ANY_KERNEL)}
            self.store.launches(columns | of_events, columns["kernel"])

    def _counters(self) -> None:
        self.store.gather(self._counter_rows())

    def _counter_rows(self) -> Iterator[tuple[int, int, str, float]]:
        """Give process, operation, counter and value."""
        process_column = "NULL"
        query = ""
        if LINKS in self.export.tables and "pid" in self.export.tables.get(CALLS, []):
            links = f"SELECT op_id, min(api_id) AS call FROM {LINKS} GROUP BY op_id"  # noqa: S608 - our own name
            process_column = "a.pid"
            query = f" LEFT JOIN ({links}) x ON x.op_id = c.op_id"
            query += f" LEFT JOIN {self.export.once(CALLS, 'id', ['pid'])} a ON a.id = x.call"
        statement = f"SELECT c.op_id, c.name_id, quote(c.value), {process_column} FROM {COUNTERS} c{query}"  # noqa: S608 - ours
        for misfits, batch in self.export.select(
            statement, COUNTERS, ["number", "name", "value", "process"], ["value"]
        ):
            self.count(COUNTERS, len(batch["number"]), misfits)
            process = self._processes(batch["process"]).tolist()
            names = self._names(batch["name"])
            yield from zip(process, batch["number"].tolist(), names, map(real, batch["value"].to_pylist()), strict=True)

    def _processes(self, pids: np.ndarray) -> np.ndarray:
        """Return process codes; operations without a call are the only process's, or one of their own."""
        processes = self.sink.processes
        codes = {}
        for pid in sorted(np.unique(pids).tolist(), reverse=True):  # those without a call last
            if pid == NULL and len(processes.keys) == 1:
                codes[pid] = 0
            else:
                codes[pid] = processes.code(max(pid, -1))
        return np.array([codes[pid] for pid in pids.tolist()], np.int64)

    def _calls(self) -> None:
        markers = set(self.rules["markers"])
        columns = {
            raw: ours
            for raw, ours in self.rules["tables"][CALLS]["columns"].items()
            if raw in self.export.tables[CALLS]
        }
        times = [raw for raw, ours in columns.items() if ours in TIMES]
        for misfits, batch in self.export.stream(CALLS, list(columns), times=times):
            rows = Batch({columns[raw]: values for raw, values in batch.items()})
            self.count(CALLS, rows.rows, misfits)
            names = self._names(rows["name"])
            marker = np.array([name in markers for name in names], bool)
            events = {name: rows[name] for name in ("start", "stop", "thread")}
            events |= {"process": self._processes(rows["process"]), "correlation": rows["id"]}
            arguments = ARGUMENTS if ARGUMENTS in self.export.tables else STRINGS  # of schema 3, of schema 2
            messages = self._names(np.where(marker, rows["text"], NULL), arguments)
            texts = [text if is_marker else name for is_marker, name, text in zip(marker, names, messages, strict=True)]
            self.events.calls_and_ranges(events, texts, ~marker, marker)

    def _monitor(self) -> None:
        """Read the monitor: a value holds from its start to the next one's.

        Its numbers of devices are its own: only where there is one of each is it known which is which.
        """
        monitors = self.rules["monitors"]
        process = self._processes(np.array([NULL]))[0]
        seen: set[int] = set()
        monitored = {row[0] for row in self.export.rows(MONITOR, ["deviceId"])}
        only = next(iter(self.devices)) if len(monitored) == len(self.devices) == 1 else None
        for misfits, batch in self.export.stream(
            MONITOR, ["deviceId", "monitorType", "start", "value"], text=["monitorType", "value"], times=["start"]
        ):
            rows = len(batch["start"])
            self.count(MONITOR, rows, misfits)
            metric = np.empty(rows, np.int64)
            values = np.empty(rows)
            for index, (kind, value) in enumerate(
                zip(batch["monitorType"].to_pylist(), batch["value"].to_pylist(), strict=True)
            ):
                name = clean_text(kind or b"") or UNNAMED_METRIC
                entry = monitors.get(name, {"name": name, "factor": 1})
                metric[index] = self.sink.metrics.code(entry["name"])
                values[index] = real(value) * entry["factor"]
            seen |= set(np.unique(batch["deviceId"]).tolist())
            device = batch["deviceId"] if only is None else np.full(rows, only)
            self.sink.samples(batch["start"], np.full(rows, process), device, metric, values)
        if only is None:
            self.sink.issues.add("metrics_device_assumed", len(seen), MONITOR)
