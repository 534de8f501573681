"""Nsight Systems exports: what their tables mean, whatever container they lie in (SQLite here; `nsys_folders` and `nsys_jsonlines` open the
others, with the same tables).

Every table but the kernels' is optional and so is every column but start and end; versions are recorded, never trusted. Strings are
looked up by the ids that launches, calls and ranges use, since the table of strings also holds the environments of every process.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.errors import ExportError
from causeway.readers import nsys_beside
from causeway.readers.columns import column_map
from causeway.readers.detect import first_bytes
from causeway.readers.distinct import distinct, distinct_rows
from causeway.readers.events import NO_KIND, NULL, integer
from causeway.readers.names import clean_text
from causeway.readers.options import Options
from causeway.readers.rows import looked_up, repeated
from causeway.readers.sink import Sink
from causeway.readers.sources import TableSource, note_state
from causeway.readers.sqlite import SqliteExport
from causeway.tables import LAUNCH_SHAPE

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMSET_KIND = 255
RANGE_EVENTS = (59, 60, 70, 71)
"""NvtxPushPopRange, NvtxStartEndRange and their resolved-text forms, of ENUM_NSYS_EVENT_TYPE; the table may be absent, so they are built
in.
"""

_API_VERSION = re.compile(r"(?<=[a-z])_v\d{4,5}$")  # CUPTI's names of runtime calls end in the version that introduced them
_RANK_NAME = re.compile(r"^MPI[ _]Rank[ :_]*(\d+)$", re.IGNORECASE)


def probe(path: Path) -> bool:
    """Return whether the path is a SQLite file."""
    try:
        return path.is_file() and first_bytes(path, 16) == b"SQLite format 3\x00"
    except OSError:
        return False


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one SQLite export.

    Raises
    ------
    ExportError
        If it is no such export, holds no kernel launch, or is damaged; what was handed to the sink before stays there.
    """
    read_tables(SqliteExport(path, options.source), sink, options)


def read_tables(export: TableSource, sink: Sink, options: Options) -> None:
    """Read the tables of an export, whatever their container, and close it; errors as `read`."""
    try:
        NsysReader(export, sink, options).read()
    finally:
        export.close()


class NsysReader:
    """One export on its way to the sink."""

    def __init__(self, export: TableSource, sink: Sink, options: Options) -> None:
        self.export, self.sink, self.options = export, sink, options
        self.tables = column_map("nsys")["tables"]
        self.progress, self.total, self.done = options.progress(), 0, 0
        self.several = "globalPid" in export.tables.get(KERNELS, [])
        self.failure: ExportError | None = None
        self.users: dict[int, list[int]] = {}  # device -> processes seen on it, in order

    def read(self) -> None:
        """Read everything the map names."""
        sink, export = self.sink, self.export
        note_state(export, sink.issues)
        self._metadata()
        self.total = sum(export.estimated_rows(table) for table in self.tables if table in export.tables)
        self._broken()
        names: dict[int, int] = {}
        for table, batch in self.tables_giving("launches"):
            self._launches(table, batch, names)
        for table, batch in self.tables_giving("transfers"):
            self._transfers(table, batch)
        if not sink.n_launches:
            if self.failure or not (sink.n_transfers or nsys_beside.METRICS in export.tables):
                raise self.failure or self._no_launches()
            sink.issues.add("no_launches")
        call_names: dict[int, int] = {}
        for _, batch in self.tables_giving("calls"):
            self._calls(batch, call_names)
        range_names: dict[int, int] = {}
        for _, batch in self.tables_giving("ranges"):
            self._ranges(batch, range_names)
        nsys_beside.read_graphs(self)
        nsys_beside.read_samples(self)
        nsys_beside.read_mpi(self)
        nsys_beside.read_diagnostics(self)
        self._devices()
        if self.failure:
            raise self.failure

    def _broken(self) -> None:
        """Say which of the tables that matter cannot be opened."""
        for table, reason in self.export.broken.items():
            rest = table.startswith("(")  # of a file of several tables
            if table in self.tables or table == "StringIds" or rest:
                self.sink.issues.add("truncated" if rest else "unreadable_table", 1, f"{table}: {reason}")
                found = f"the file is cut or damaged {table[1:-1]}" if rest else f"table {table} cannot be opened ({reason})"
                advice = "Export it again from the report file, or copy it again."
                self.failure = self.failure or ExportError(
                    self.options.source, found, "complete files, as `nsys export` writes them", advice
                )

    def tables_giving(self, gives: str) -> Iterator[tuple[str, dict]]:
        """Give the batches of all tables that give a kind of event, columns under our names; damage ends a table and is kept in
        `failure`.
        """
        for table, entry in self.tables.items():
            present = self.export.tables.get(table)
            if entry["gives"] != gives or present is None:
                continue
            lacking = [name for name in entry.get("required", []) if name not in present]
            if lacking:
                self.sink.issues.add("unreadable_table", 1, f"{table} lacks {', '.join(lacking)}")
                self.failure = self.failure or ExportError(
                    self.options.source, f"table {table} has no column {', '.join(lacking)}", "the columns that Nsight Systems writes",
                    "Export the report again with `nsys export`.",
                )  # fmt: skip
                continue
            columns = {raw: ours for raw, ours in entry["columns"].items() if raw in present}
            try:
                for bad, batch in self.export.stream(table, list(columns), text=[raw for raw in columns if columns[raw] == "text"]):
                    ours = {columns[raw]: values for raw, values in batch.items()}
                    rows = len(next(iter(ours.values())))
                    self.sink.count_in(table, rows)
                    self.sink.issues.add("out_of_range", bad, table)
                    self.done += rows
                    self.progress.at(int(self.options.size * min(1.0, self.done / max(1, self.total))))
                    yield table, ours
            except ExportError as error:
                self.sink.issues.add("truncated", 1, f"table {table}")
                self.failure = self.failure or error

    def _no_launches(self) -> ExportError:
        source, tables = self.options.source, self.export.tables
        advice = "Profile again with `nsys profile --trace cuda,nvtx`, and check that the program ran on a GPU."
        if "CUPTI_ACTIVITY_KIND_GRAPH_TRACE" in tables:
            found = "CUDA graphs were traced as a whole (CUPTI_ACTIVITY_KIND_GRAPH_TRACE), without the kernels inside"
            advice = "Profile again with `nsys profile --cuda-graph-trace=node`."
        elif KERNELS in tables:
            found = f"table {KERNELS} has no usable row"
        elif any(name.startswith("CUPTI_ACTIVITY_KIND_") for name in tables):
            found = f"there is no table {KERNELS}: no kernel was launched, or launches were not traced"
        elif not {"StringIds", "META_DATA_EXPORT", "EXPORT_META_DATA", "NVTX_EVENTS"} & tables.keys():
            found = f"this database is not a Nsight Systems export: it has tables {', '.join(list(tables)[:5]) or '(none)'}"
        else:
            found = "there is no GPU activity in it: no CUPTI_ACTIVITY_* table"
        return ExportError(source, found, f"a table {KERNELS} with at least one launch", advice)

    def _metadata(self) -> None:
        """Take the versions, the session's start and stated ranks, and nothing else: these tables also hold command lines and
        environments.
        """
        facts: dict = {}
        for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
            facts |= {key: value for key, value in self.export.pairs(table, "name", "value") if key in _VERSION_KEYS}
        schema, product = (clean_text(str(facts.get(key) or ""))[:40] for key in _VERSION_KEYS)
        self.sink.format_version = " ".join(filter(None, [schema and f"schema {schema}", product and f"nsys {product}"])) or None
        started = self.export.rows("TARGET_INFO_SESSION_START_TIME", ["utcEpochNs"], 1)
        start = integer(started[0][0]) if started else None
        self.sink.session_start_ns = start if start and start > 0 else None
        for thread, rank in self.export.pairs("MPI_RANKS", "globalTid", "rank"):
            if isinstance(thread, int) and isinstance(rank, int) and 0 <= rank < 1 << 32:
                self.sink.processes.code(self._key(thread), rank)

    def _key(self, packed: int) -> int:
        """Return what tells processes apart in a packed globalPid or globalTid: everything above the 24 bits of the thread id."""
        return packed >> 24 if self.several else 0

    def process(self, batch: dict, column: str, rows: int) -> np.ndarray:
        """Return process codes of a batch."""
        if not self.several or column not in batch:
            return repeated(self.sink.processes.code(0), rows)
        packed, _, inverse = distinct(batch[column])
        return looked_up(np.array([self.sink.processes.code(key if key == NULL else key >> 24) for key in packed.tolist()]), inverse)

    def note_users(self, process: np.ndarray, batch: dict) -> None:
        """Remember which processes use which devices."""
        if "device" in batch:
            first, _ = distinct_rows([batch["device"], process])
            for device, code in sorted(zip(batch["device"][first].tolist(), process[first].tolist(), strict=True)):
                if code not in self.users.setdefault(device, []):
                    self.users[device].append(code)

    def user_of_gpu(self, gpu: int) -> tuple[int, int]:
        """Return the process and CUDA device of a GPU as Nsight Systems numbers them: as the export says, else the same number."""
        pids = {key & 0xFFFFFF: code for code, key in enumerate(self.sink.processes.keys) if isinstance(key, int)}
        stated = self.export.rows("TARGET_INFO_CUDA_DEVICE", ["gpuId", "pid", "cudaId"])
        for known, pid, device in stated:
            if known == gpu and pid in pids and device in self.users:
                return pids[pid], device
        users = self.users.get(gpu) or [code for codes in self.users.values() for code in codes]
        self.sink.issues.add("metrics_device_assumed", 1, f"GPU {gpu} taken as device {gpu}")
        return (users[0] if users else self.sink.processes.code(0)), gpu

    def text_codes(self, ids: np.ndarray, known: dict[int, int], code_of) -> np.ndarray:
        """Return codes of StringIds' ids; `known` keeps those seen before, `code_of(id, text or None)` gives new ones."""
        used, _, inverse = distinct(ids)
        fresh = [key for key in used.tolist() if key not in known]
        texts = self.export.texts("StringIds", "id", "value", [key for key in fresh if key != NULL]) if fresh else {}
        for key in fresh:
            known[key] = code_of(key, texts.get(key))
        return looked_up(np.array([known[key] for key in used.tolist()]), inverse)

    def _kernel_code(self, key: int, text: bytes | None) -> int:
        if text is None and key != NULL:  # a string lost to damage: launches of different kernels stay apart
            return self.sink.kernel(f"(unnamed kernel {key})")
        return self.sink.kernel(text)

    def _launches(self, table: str, batch: dict, names: dict[int, int]) -> None:
        rows = len(batch["start_ns"])
        ids = batch.get("name", batch.get("short_name", repeated(NULL, rows)))
        if "name" in batch and "short_name" in batch:
            ids = np.where(ids == NULL, batch["short_name"], ids)
        kernel = self.text_codes(ids, names, self._kernel_code)
        unnamed = [code for code, text in enumerate(self.sink.kernels.texts) if text.startswith("(unnamed kernel")]
        self.sink.issues.add("missing_name", int(np.isin(kernel, unnamed).sum()) if unnamed else 0, table)
        self.sink.issues.add("graph_launches", int((batch.get("graph_node", ids[:0]) != NULL).sum()))
        if "device" not in batch:
            self.sink.issues.add("device_assumed", 1, table)
        process = self.process(batch, "process", rows)
        self.note_users(process, batch)
        self.sink.launches(
            batch["start_ns"],
            batch["end_ns"],
            kernel,
            process,
            device=batch.get("device", 0),
            stream=batch.get("stream", 0),
            correlation=batch.get("correlation", NULL),
            shape={name: batch[name] for name in LAUNCH_SHAPE if name in batch},
        )

    def _transfers(self, table: str, batch: dict) -> None:
        process = self.process(batch, "process", len(batch["start_ns"]))
        self.note_users(process, batch)
        self.sink.transfers(
            batch["start_ns"],
            batch["end_ns"],
            process,
            MEMSET_KIND if table.endswith("MEMSET") else batch.get("copy_kind", 0),
            size=batch.get("bytes", NULL),
            device=batch.get("device", 0),
            stream=batch.get("stream", 0),
            correlation=batch.get("correlation", NULL),
            src_kind=batch.get("src_kind", NO_KIND),
            dst_kind=batch.get("dst_kind", NO_KIND),
        )

    def _call_code(self, _: int, text: bytes | None) -> int:
        return self.sink.call_names.code(_API_VERSION.sub("", clean_text(text)) if text else "(unnamed call)")

    def _calls(self, batch: dict, names: dict[int, int]) -> None:
        rows = len(batch["start_ns"])
        thread = batch.get("global_thread", np.full(rows, NULL))
        self.sink.calls(
            batch["start_ns"],
            batch["end_ns"],
            self.process(batch, "global_thread", rows),
            np.where(thread == NULL, NULL, thread & 0xFFFFFF),
            self.text_codes(batch.get("name", np.full(rows, NULL)), names, self._call_code),
            batch.get("correlation", NULL),
        )

    def _range_code(self, _: int, text: bytes | None) -> int:
        return self.sink.range_names.code((clean_text(text) if text else "") or "(unnamed range)")

    def _ranges(self, batch: dict, names: dict[int, int]) -> None:
        rows = len(batch["start_ns"])
        thread = batch.get("global_thread", np.full(rows, NULL))
        process = self.process(batch, "global_thread", rows)
        event = batch.get("event", np.full(rows, RANGE_EVENTS[0]))
        ids = batch.get("name", np.full(rows, NULL))
        ranges = np.isin(event, RANGE_EVENTS) & (batch["end_ns"] != NULL)
        code = np.full(rows, -1)
        code[ranges & (ids != NULL)] = self.text_codes(ids[ranges & (ids != NULL)], names, self._range_code)
        inline = batch.get("text", pa.nulls(rows, pa.binary()))
        told = inline.is_valid().to_numpy(zero_copy_only=False)
        texts = inline.filter(pa.array(told & ranges)).dictionary_encode()
        codes = np.array([self._range_code(0, text) for text in texts.dictionary.to_pylist()], np.int64)
        code[told & ranges] = codes[texts.indices.to_numpy()]
        for at in np.flatnonzero(told & ~ranges):
            if match := _RANK_NAME.match(clean_text(inline[at].as_py())[:40]):  # a thread's name, e.g. "MPI Rank 0"
                self.sink.processes.said.setdefault(int(process[at]), int(match[1]))
        code[ranges & (code < 0)] = self._range_code(0, None)
        kind = self.sink.range_kinds.code("nvtx")
        self.sink.ranges(
            batch["start_ns"][ranges],
            batch["end_ns"][ranges],
            process[ranges],
            np.where(thread == NULL, NULL, thread & 0xFFFFFF)[ranges],
            code[ranges],
            np.full(int(ranges.sum()), kind),
        )

    def _identities(self) -> dict[tuple[object, object], str]:
        """Return which GPU the CUDA device of a process is: a digest of its UUID, else its number in this export."""
        found = {}
        for pid, device, gpu, uuid in self.export.rows("TARGET_INFO_CUDA_DEVICE", ["pid", "cudaId", "gpuId", "uuid"]):
            if isinstance(uuid, str) and uuid:
                found[pid, device] = f"g{hashlib.sha256(uuid.encode(errors='replace')).hexdigest()[:12]}"
            elif isinstance(gpu, int) and gpu >= 0:
                found[pid, device] = str(gpu)
        return found

    def _devices(self) -> None:
        """Tell the sink of the GPUs. The table lists every GPU of the machine: facts go to a device only where the export says which GPU
        it is.
        """
        wanted = ["name", "smCount", "totalMemory", "clockRate"]
        gpus = {gpu: facts for gpu, *facts in self.export.rows("TARGET_INFO_GPU", ["id", *wanted]) if isinstance(gpu, int)}
        used = {(code, device) for code in range(len(self.sink.processes.keys)) for device in range(64)}
        stated = self.export.rows("TARGET_INFO_CUDA_DEVICE", ["pid", "cudaId", "gpuId"])
        pids = {code: key & 0xFFFFFF for code, key in enumerate(self.sink.processes.keys) if isinstance(key, int)}
        known = self._identities()
        if stated:
            of = {(pid, device): gpu for pid, device, gpu in stated}
            gpu_of = {(code, device): of.get((pids.get(code), device)) for code, device in used}
        elif len({tuple(facts) for facts in gpus.values()}) == 1:  # all alike: whichever it is
            gpu_of = dict.fromkeys(used, next(iter(gpus)))
        else:
            gpu_of = {}
        for (code, device), gpu in gpu_of.items():
            if gpu in gpus:
                name, multiprocessors, memory, clock = gpus[gpu]
                self.sink.device(
                    code,
                    device,
                    name=name if isinstance(name, str) else None,
                    multiprocessors=integer(multiprocessors),
                    memory_bytes=integer(memory),
                    clock_hz=integer(clock),
                )
        for code, device in used:
            identity = known.get((pids.get(code), device))
            if identity is not None:
                self.sink.device(code, device, gpu=identity)


_VERSION_KEYS = ("EXPORT_SCHEMA_VERSION", "EXPORT_PRODUCT_VERSION")
