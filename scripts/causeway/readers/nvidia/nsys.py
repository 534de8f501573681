"""Nsight Systems exports: what their tables mean, whatever container they lie in (SQLite here; `nsys_columnar` and
`nsys_jsonlines` open the others, with the same tables).

Every table but the kernels' is optional and so is every column but start and end; versions are recorded, never trusted.
Strings are looked up by the ids that launches, calls and ranges use, since the table of strings also holds the
environments of every process.
"""

import hashlib
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.codes import MEMSET_KIND
from causeway.core.errors import ExportError
from causeway.readers.common.constants import NULL, Column
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.numbers import integer
from causeway.readers.common.options import Options
from causeway.readers.containers.sqlite_database import SqliteExport
from causeway.readers.containers.sqlite_names import is_database
from causeway.readers.containers.table_source import Batch, TableSource, note_state
from causeway.readers.nvidia import nsys_extras, synchronisations
from causeway.readers.nvidia.nsys_tables import KERNELS, NsysTables
from causeway.readers.sink.batches import EventBatch
from causeway.readers.sink.distinct import mapped, mapped_texts
from causeway.readers.sink.sink import Sink

GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
GPUS_UNTIL_2021 = "TARGET_INFO_CUDA_GPU"
RANGE_EVENTS = (59, 60, 70, 71)
"""NvtxPushPopRange, NvtxStartEndRange and their resolved-text forms, of ENUM_NSYS_EVENT_TYPE; the table may be absent,
so they are built in.
"""

OTHER_NVTX_EVENTS = (33, 34, 39, 64, 65, 72, 73, 74, 75, 76, 97, 98, 99, NULL)
"""Categories, marks, names of threads, processes and devices, and domains, of ENUM_NSYS_EVENT_TYPE: none lasts."""

VIDEO = "NVVIDEO_"
"""How the tables of calls of video libraries begin; they also hold marks without a length of when tracing began."""
DOMAIN_EVENT = 75
"""NvtxDomainCreate, of ENUM_NSYS_EVENT_TYPE."""

# CUPTI's names of runtime calls end in the version that introduced them
_API_VERSION = re.compile(r"(?<=[a-z])_v\d{4,5}$")
_LIKE_LAUNCHES = re.compile(r"KERNEL|ACTIVITY|CUDA")
_MPI_CALL = re.compile(r"P?MPI_[A-Z]")
_RANK_NAME = re.compile(r"^MPI[ _]Rank[ :_]*(\d+)$", re.IGNORECASE)


def probe(path: Path) -> bool:
    """Return whether the path is a SQLite file."""
    return is_database(path)


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one SQLite export.

    Raises
    ------
    ExportError
        If it is no such export, holds no kernel launch, or is damaged; what was handed to the sink before stays there.
    """
    read_tables(SqliteExport(path, options.source), sink, options)


def read_tables(export: TableSource, sink: Sink, options: Options) -> None:
    """Read the tables of an export, whatever their container; errors as `read`."""
    sink.at_close.callback(export.close)
    NsysReader(export, sink, options).read()
    export.close()


class NsysReader(NsysTables):
    """One export on its way to the sink: launches, transfers, calls, ranges and devices; the rest by `nsys_extras`.

    Attributes
    ----------
    mpi_domains : set of (int, int)
        Codes of processes and numbers of their NVTX domains named MPI: Nsight Systems until 2022, and wrappers of MPI
        that users make, write its calls as ranges of such a domain.
    has_mpi_tables : bool
        Whether the export has calls of MPI in tables of their own.
    """

    mpi_domains: set[tuple[int, int]]
    has_mpi_tables: bool

    def read(self) -> None:
        """Read everything the map names."""
        sink = self.sink
        export = self.export
        note_state(export, sink.issues)
        self._metadata()
        self.note_broken()
        self.note_layout()
        for table, batch in self.tables_giving("launches"):
            self._launches(table, batch)
        for table, batch in self.tables_giving("transfers"):
            self._transfers(table, batch)
        if not sink.n_launches:
            if self.failure or not (sink.n_transfers or nsys_extras.has_metrics(self) or self._has_rows(GRAPHS)):
                raise self.failure or sink.issues.none_usable(self.options.source) or self._no_launches()
            sink.issues.add("no_launches")
        synchronising = synchronisations.SynchronisingCalls()
        for table, batch in self.tables_giving("calls"):
            if table.startswith(VIDEO):
                is_call = (batch["end_ns"] > batch["start_ns"]) | (batch["end_ns"] == NULL)
                if not is_call.any():
                    continue
                batch = Batch({name: values[is_call] for name, values in batch.items()})
            self._calls(batch, synchronising)
        self.mpi_domains = set()
        self._named_as_calls: list[bool] = []  # by codes of ranges' names
        self.has_mpi_tables = self._has_mpi()
        self._held = sink.sorted_rows("mpi_ranges")
        for _, batch in self.tables_giving("ranges"):
            self._ranges(batch)
        self._settle_held()
        self._held.close()
        nsys_extras.read_graphs(self)
        nsys_extras.read_samples(self)
        nsys_extras.read_mpi(self)
        nsys_extras.read_diagnostics(self)
        nsys_extras.read_context_switches(self)
        synchronisations.read_synchronisations(self, synchronising)
        synchronisations.read_system_calls(self)
        nsys_extras.read_cpu_samples(self)
        self._devices()
        if self.failure:
            raise self.failure

    def _has_mpi(self) -> bool:
        """Return whether tables of MPI calls have rows."""
        of_mpi = [table for table, entry in self.tables.items() if entry["gives"] == "mpi"]
        return any(self.export.rows(table, ["start"], 1) for table in of_mpi if table in self.export.tables)

    def _has_rows(self, name: str) -> bool:
        return any(self.export.rows(table, ["start"], 1) for table in self.forms_of(name))

    def _no_launches(self) -> ExportError:
        source = self.options.source
        tables = self.export.tables
        said = nsys_extras.diagnostics_of(self)
        has_kernels = bool(self.forms_of(KERNELS))
        has_graphs = bool(self.forms_of(GRAPHS))
        advice = "Profile again with `nsys profile --trace cuda,nvtx`, and check that the program ran on a GPU."
        if has_graphs:
            problem = f"CUDA graphs were traced as a whole ({GRAPHS}), without the kernels inside"
            advice = "Profile again with `nsys profile --cuda-graph-trace=node`."
        elif any(_LIKE_LAUNCHES.search(name.upper()) for name in self.unknown):
            problem = f"no table of launches that is known ({self.unknown_in_words()})"
            advice = "Export the report with an older `nsys export`, or ask for this layout to be read."
        elif has_kernels:
            problem = f"table {KERNELS} has no usable row"
        elif any(name.startswith("CUPTI_ACTIVITY_KIND_") for name in tables):
            problem = f"there is no table {KERNELS}"
            problem += "" if said.faults else ": no kernel was launched, or launches were not traced"
        elif not {"StringIds", "META_DATA_EXPORT", "EXPORT_META_DATA", "NVTX_EVENTS"} & tables.keys():
            names = clean_text(", ".join(list(tables)[:5]))[:200] or "(none)"
            problem = f"this database is not a Nsight Systems export: it has tables {names}"
        else:
            problem = "there is no GPU activity in it: no CUPTI_ACTIVITY_* table"
        if said.faults and not has_graphs:  # the reason, where the export states it
            problem += f"; the profiler itself reports {' and '.join(said.faults)}"
            advice = f"{'. '.join(said.advice)}. Then profile again." if said.advice else advice
        elif self._has_mpi() and not (has_graphs or has_kernels or self.unknown):
            problem += "; it holds MPI calls, but analyses are of ranks with GPU work, and its calls count in none"
            advice = "Leave it out if its rank has no GPU work. Else profile with `nsys profile --trace cuda,nvtx,mpi`."
        if self.unknown_in_words() and self.unknown_in_words() not in problem:
            problem += f"; {self.unknown_in_words()}"
        return ExportError(source, problem, f"a table {KERNELS} with at least one launch", advice)

    def _metadata(self) -> None:
        """Take the versions, the session's start and reported ranks, and nothing else: these tables also hold command
        lines and environments.
        """
        self.sink.format_version = " ".join(f"{word} {text}" for word, text in self.versions.items()) or None
        started = self.export.rows("TARGET_INFO_SESSION_START_TIME", ["utcEpochNs"], 1)
        start = integer(started[0][0]) if started else None
        self.sink.session_start_ns = start if start and start > 0 else None
        for thread, rank in self.export.rows("MPI_RANKS", ["globalTid", "rank"]):
            if isinstance(thread, int) and isinstance(rank, int) and 0 <= rank < 1 << 32:
                self.sink.processes.code(self.process_key(thread), rank)

    def _launches(self, table: str, batch: Batch) -> None:
        if "text" in batch:
            kernel = mapped_texts(batch["text"], self.sink.kernel)
        else:
            kernel = self.kernel_codes(np.where(batch["name"] == NULL, batch["short_name"], batch["name"]))
        why = "" if "StringIds" in self.export.tables else ", as table StringIds is missing"
        self.sink.count_unnamed(kernel, table + why)
        self.sink.issues.add("graph_launches", int((batch["graph_node"] != NULL).sum()))
        if "device" not in batch:
            self.sink.issues.add("device_assumed", 1, table)
        process = self.process(batch, "process")
        self.note_users(process, batch)
        self.sink.launches({**batch, "kernel": kernel, "process": process})

    def _transfers(self, table: str, batch: Batch) -> None:
        process = self.process(batch, "process")
        self.note_users(process, batch)
        kind = MEMSET_KIND if table.endswith("MEMSET") else batch.get("copy_kind", 0)
        self.sink.transfers({**batch, "process": process, "copy_kind": kind})

    def _call_code(self, text: str | bytes | None) -> int:
        return self.sink.call_names.code_of(_API_VERSION.sub("", clean_text(text or "")))

    def _calls(self, batch: Batch, synchronising: synchronisations.SynchronisingCalls) -> None:
        process = self.process(batch, "global_thread")
        name = self.text_codes(batch["name"], self._call_code)
        columns = {"thread": self.threads(batch), "name": name, "correlation": batch["correlation"]}
        self.sink.take("calls", batch["start_ns"], self.ends(batch), process, **columns)
        synchronising.take(process, batch["correlation"], name, self.sink.call_names.texts)

    def _ranges(self, batch: Batch) -> None:
        rows = batch.rows
        process = self.process(batch, "global_thread")
        event = batch.get("event", np.full(rows, RANGE_EVENTS[0]))
        ids = batch["name"]
        ranges = np.isin(event, RANGE_EVENTS)
        if "event" not in batch:  # what tells a range that has no end from a mark
            ranges &= batch["end_ns"] != NULL
        unknown = ~ranges & ~np.isin(event, OTHER_NVTX_EVENTS)
        self.sink.issues.add("unknown_data", int(unknown.sum()), "events of NVTX of a type that is not known")
        code = np.full(rows, -1)
        range_code = self.sink.range_names.code_of
        code[ranges & (ids != NULL)] = self.text_codes(ids[ranges & (ids != NULL)], range_code)
        inline = batch.get("text", pa.nulls(rows, pa.binary()))
        length = pc.fill_null(pc.binary_length(inline), -1).to_numpy(zero_copy_only=False)
        # until 2020 no column may be null: the text is empty where the name stands in the table of strings
        has_text = (length > 0) | ((length == 0) & (ids == NULL))
        code[has_text & ranges] = mapped_texts(inline.filter(pa.array(has_text & ranges)), range_code)
        self._note_mpi_domains(event, process, batch, inline)
        for row in np.flatnonzero(has_text & ~ranges):
            if match := _RANK_NAME.match(clean_text(inline[row].as_py())[:40]):  # a thread's name, e.g. "MPI Rank 0"
                self.sink.processes.state_rank(int(process[row]), int(match[1]))
        code[ranges & (code < 0)] = range_code(None)
        ranges &= ~self._hold_back(ranges, code, process, batch)
        kind = self.sink.range_kinds.code("nvtx")
        columns: dict[str, Column] = {"thread": self.threads(batch)[ranges], "name": code[ranges], "kind": kind}
        self.sink.take("ranges", batch["start_ns"][ranges], self.ends(batch)[ranges], process[ranges], **columns)

    def _note_mpi_domains(self, event: np.ndarray, process: np.ndarray, batch: Batch, inline: pa.Array) -> None:
        """Remember the domains, of each process, that are named MPI."""
        if "domain" not in batch:
            return
        ids = batch["name"]
        for row in np.flatnonzero(event == DOMAIN_EVENT).tolist():
            name = inline[row].as_py() or self.texts([] if ids[row] == NULL else [int(ids[row])]).get(int(ids[row]))
            if name == b"MPI":
                self.mpi_domains.add((int(process[row]), int(batch["domain"][row])))

    def _hold_back(self, ranges: np.ndarray, code: np.ndarray, process: np.ndarray, batch: Batch) -> np.ndarray:
        """Hold back the ranges of any domain that are named as calls of MPI, where the export has no table of them: a
        domain's creation may stand behind its ranges. Return which these are, bool of shape (n,).
        """
        if self.has_mpi_tables or "domain" not in batch:
            return np.zeros(len(ranges), bool)
        texts = self.sink.range_names.texts
        self._named_as_calls += [bool(_MPI_CALL.match(text)) for text in texts[len(self._named_as_calls) :]]
        named = ranges & np.array(self._named_as_calls, bool)[code]
        if named.any():
            columns = {
                "start_ns": batch["start_ns"],
                "end_ns": self.ends(batch),
                "process": np.asarray(process, np.int64),
                "thread": self.threads(batch),
                "code": code,
                "domain": batch["domain"],
            }
            self._held.add(EventBatch({name: values[named] for name, values in columns.items()}))
        return named

    def _settle_held(self) -> None:
        """Take what was held back: ranges of domains named MPI as calls of MPI, the others as ranges."""
        kind = self.sink.range_kinds.code("nvtx")
        texts = self.sink.range_names.texts
        for rows in self._held.blocks():
            of_mpi = np.zeros(len(rows), bool)
            for of, domain in self.mpi_domains:
                of_mpi |= (rows["process"] == of) & (rows["domain"] == domain)
            times = ("start_ns", "end_ns", "process")
            calls = rows[of_mpi]
            if len(calls):
                name = mapped(calls["code"], lambda code: self.sink.mpi_names.code(texts[code]))
                self.sink.take("mpi", *(calls[column] for column in times), thread=calls["thread"], name=name)
            others = rows[~of_mpi]
            if len(others):
                columns: dict[str, Column] = {"thread": others["thread"], "name": others["code"], "kind": kind}
                self.sink.take("ranges", *(others[column] for column in times), **columns)

    def _devices(self) -> None:
        """Give the sink the facts of the GPUs. The table lists every GPU of the machine: facts go to a device only
        where the export says which GPU it is. A device with other multiprocessors than its GPU is a part of it (MIG, a
        share of MPS), whose memory is not known.
        """
        rows = self.export.rows
        wanted = ["id", "name", "smCount", "totalMemory", "clockRate"]
        gpus = {gpu: facts for gpu, *facts in rows("TARGET_INFO_GPU", wanted) if isinstance(gpu, int)}
        until_2021 = {
            device: {"name": name, "multiprocessors": integer(multiprocessors)}
            for device, name, multiprocessors in rows(GPUS_UNTIL_2021, ["deviceId", "name", "numMultiprocessors"])
        }
        stated = {
            (pid, device): facts
            for pid, device, *facts in rows(
                "TARGET_INFO_CUDA_DEVICE", ["pid", "cudaId", "gpuId", "numMultiprocessors", "uuid"]
            )
        }
        pids = {code: key & 0xFFFFFF for code, key in enumerate(self.sink.processes.keys) if isinstance(key, int)}
        used = sorted((code, device) for device, codes in self.users.items() for code in codes)
        # a machine of one GPU: what several processes call their device 0 is that one
        is_shared = not stated and len(gpus) == 1 < len(used) and len({device for _, device in used}) == 1
        are_alike = not stated and len({tuple(facts) for facts in gpus.values()}) == 1
        unstated = (next(iter(gpus)) if are_alike else None, None, None)  # if all are alike, whichever it is
        for code, device in used:
            facts: dict[str, object] = {**until_2021.get(device, {})}
            gpu, part, uuid = stated.get((pids.get(code), device), unstated)
            part = integer(part) or None
            if gpu in gpus:
                name, multiprocessors, memory, clock = gpus[gpu]
                is_part = part is not None and part != integer(multiprocessors)
                facts |= {"name": name, "multiprocessors": part if is_part else integer(multiprocessors)}
                facts |= {"memory_bytes": None if is_part else integer(memory), "clock_hz": integer(clock)}
            elif part is not None:
                facts["multiprocessors"] = part
            if isinstance(uuid, str) and uuid:
                facts["gpu"] = f"g{hashlib.sha256(uuid.encode(errors='replace')).hexdigest()[:12]}"
            elif stated and isinstance(gpu, int) and gpu >= 0:
                facts["gpu"] = str(gpu)
            elif is_shared:
                facts["gpu"] = "0"
            self.sink.device(code, device, **facts)
