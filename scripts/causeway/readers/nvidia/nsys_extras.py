"""Further events of a Nsight Systems export: graphs traced as a whole, sampled metrics, MPI calls, and the profiler's
own overhead and messages.

A CUDA graph traced as a whole (`--cuda-graph-trace=graph`, the default of nsys) has one row for its execution and none
for the kernels inside. Such an execution is not a launch of a kernel, so it does not count as one: it becomes a range
of kind `cuda_graph` without a thread and a row of `graphs`, and an issue names the time spent in graphs.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from causeway.core.formatting import elided
from causeway.readers.common.constants import NULL, UNNAMED_CALL, UNNAMED_OVERHEAD
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.numbers import integer
from causeway.readers.nvidia.nsys_tables import NsysTables
from causeway.readers.sink.distinct import distinct_rows

METRICS = "GPU_METRICS"
WAITS = "MPI_START_WAIT_EVENTS"
GENERIC_ROWS = 1 << 10
"""Generic events that are taken apart at once."""
LEAST_HZ = 100_000
"""A clock above this cannot be in MHz: nsys labels clocks "[MHz]" and writes Hz (seen in every export that has
them).
"""

_UNITS = (  # the unit in brackets at the end of a metric's name: suffix of our name, factor
    (re.compile(r"(?:throughput )?%$", re.IGNORECASE), "ratio", 0.01),
    (re.compile(r"mhz$", re.IGNORECASE), "hz", 1e6),
    (re.compile(r"(?:avg )?warps per cycle$", re.IGNORECASE), "warps_per_cycle", 1.0),
    (re.compile(r"requests$", re.IGNORECASE), "requests", 1.0),
    (re.compile(r"avg$", re.IGNORECASE), "avg", 1.0),
)


OVERHEAD_OF_CUDA = (2, 6, 7, 8)
"""Compilation, loading of modules and functions, and a full command buffer, of ENUM_CUPTI_OVERHEAD_TYPE: the table of
names says "(CUDA)" behind these and "(Profiler)" behind others. A run without a profiler has them, too.
"""

SWITCHES = {0: "SOF", 7: "SAVE_END", 10: "INVALID_TIMESTAMP", 11: "ENGINE_RESET"}
"""Events of ENUM_GPU_CTX_SWITCH that are not of a context that has the GPU; the table may be absent, so they are built
in.
"""
LEAVES = ("SAVE_END", "ENGINE_RESET")
"""After these no context has the GPU: it is saved, or the engine starts anew. All other events are of the context that
has it: RESTORE_START and CONTEXT_START of one that comes, a request or an acknowledgement of one that is to leave
(nvgpu, `fecs_trace`).
"""
NO_SWITCH = ("SOF", "INVALID_TIMESTAMP", "UnknownGpuCtxswTag")

_LOST = re.compile(
    r"not all (?:cuda|gpu|cupti)\b.*\bmight have been collected|\bevents?\b.*\bmight be missing"
    r"|\b(?:events?|records?|buffers?)\b.*\b(?:dropped|lost)\b",
    re.IGNORECASE,
)
"""The profiler's messages of lost events."""
_OLD_PROFILER = re.compile(
    r"driver version \((\d+\.\d+)\) is not supported.*?driver version (\d+\.\d+)", re.IGNORECASE | re.DOTALL
)
_OF_TRACING = re.compile(r"\b(?:cuda|cupti|gpu|driver)\b", re.IGNORECASE)
_FAULT = re.compile(
    r"\b(?:not|no|cannot|unable|fail\w*|errors?|might|missing|dropped|lost|incompatible|insufficient|disabled)\b",
    re.IGNORECASE,
)
_PRIVATE = re.compile(r"launch|command|environment|argument", re.IGNORECASE)
_PATH_OR_OPTION = re.compile(r"\S*[/\\=@]\S*|(?<!\S)-\S+")
ERROR = 3
"""Of ENUM_DIAGNOSTIC_SEVERITY_LEVEL."""
MOST_MESSAGES = 3
LONGEST_MESSAGE = 200
"""Messages of a refusal, and characters of one: the longest known one has 150."""
LONGEST_SEARCHED = 400
"""Bytes of a message that are looked at."""


@dataclass
class Diagnostics:
    """What the profiler says of its own tracing.

    Attributes
    ----------
    lost : int
        Messages of lost events.
    first_lost : str
        The first of them, as it may be quoted.
    faults : list of str
        Messages of what failed, each once, as they may be quoted; at most `MOST_MESSAGES`.
    advice : list of str
        What follows from these.
    """

    lost: int = 0
    first_lost: str = ""
    faults: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)

    def take(self, text: str, is_error: bool) -> None:
        """Take one message."""
        is_lost = bool(_LOST.search(text))
        if not is_lost and not is_error and not (_OF_TRACING.search(text) and _FAULT.search(text)):
            return
        quoted = quotable(text)
        if is_lost:
            self.lost += 1
            self.first_lost = self.first_lost or quoted
            self._advise("Let the program end by itself, so that the profiler collects all of its buffers")
        if match := _OLD_PROFILER.search(text):
            driver, libraries = match.groups()
            self._advise(
                f"Update Nsight Systems: the driver is of CUDA {driver}, the profiler's libraries of {libraries}"
            )
        if quoted and quoted not in self.faults and len(self.faults) < MOST_MESSAGES:
            self.faults.append(quoted)

    def _advise(self, words: str) -> None:
        if words not in self.advice and len(self.advice) < MOST_MESSAGES:
            self.advice.append(words)


def quotable(text: str) -> str:
    """Return the first line of a profiler's message in quotation marks: of bounded length, without paths, options and
    assignments; empty for one that speaks of commands or environments, which it may hold.
    """
    line = clean_text(text.strip().split("\n", 1)[0])
    if _PRIVATE.search(line):
        return ""
    return f'"{elided(" ".join(_PATH_OR_OPTION.sub("...", line).split()), LONGEST_MESSAGE)}"'


def diagnostics_of(tables: NsysTables) -> Diagnostics:
    """Return what the profiler says of its own tracing; all of it is the export's word."""
    found = Diagnostics()
    for _, batch in tables.tables_giving("diagnostics"):
        levels = batch.get("kind", np.full(len(batch["text"]), NULL)).tolist()
        for text, level in zip(batch["text"].to_pylist(), levels, strict=True):
            if text is not None:
                found.take(text[:LONGEST_SEARCHED].decode("utf-8", "replace"), level == ERROR)
    return found


def read_diagnostics(tables: NsysTables) -> None:
    """Take the profiler's own work, and count its messages of lost events."""
    names: dict[int, int] = {}

    def overhead_code(_: int, text: bytes | None) -> int:
        return tables.sink.overhead.names.code((clean_text(text) if text else "") or UNNAMED_OVERHEAD)

    for _, batch in tables.tables_giving("overhead"):
        rows = len(batch["start_ns"])
        absent = np.full(rows, NULL)
        process = np.broadcast_to(tables.process(batch, "global_thread", rows), rows)
        if tables.several and "global_thread" not in batch:
            process = absent
        name = tables.text_codes(batch.get("name", absent), names, overhead_code)
        own = ~np.isin(batch.get("kind", absent), OVERHEAD_OF_CUDA)
        tables.sink.overhead.take(*(one[own] for one in (batch["start_ns"], batch["end_ns"], process, name)))
    said = diagnostics_of(tables)  # which does not say how many were lost
    tables.sink.issues.add("dropped_events", said.lost, said.first_lost, of_launches=False)


def read_context_switches(tables: NsysTables) -> None:
    """Take the switches of contexts of GPUs that processes of the export use."""
    named = dict(tables.export.rows("ENUM_GPU_CTX_SWITCH", ["id", "name"]))
    names = SWITCHES | {number: name for number, name in named.items() if isinstance(number, int)}
    leaves, passed_over = ([number for number, name in names.items() if name in some] for some in (LEAVES, NO_SWITCH))
    taken = False
    for _, batch in tables.tables_giving("context_switches"):
        absent = np.full(len(batch["start_ns"]), NULL)
        kind = batch["kind"]
        used = ~np.isin(kind, passed_over) & (batch["start_ns"] != NULL)
        process = batch.get("process", absent)
        pid = np.where(process == NULL, NULL, process >> 24 & 0xFFFFFF)
        gpu = np.where(batch.get("gpu", absent) == NULL, 0, batch.get("gpu", absent))
        columns = (gpu, batch["start_ns"], batch.get("sequence", absent), batch["context"], pid, np.isin(kind, leaves))
        tables.sink.other_contexts.take(*(column[used] for column in columns))
        taken = True
    if taken:
        for process, device, gpu in tables.gpus_of_users():
            key = tables.sink.processes.keys[process]
            tables.sink.other_contexts.uses(process, key & 0xFFFFFF if tables.several else None, device, gpu)


def read_graphs(tables: NsysTables) -> None:
    """Take the executions of whole graphs, also as ranges named `CUDA graph <id>`, and count their time as an issue."""
    sink = tables.sink
    names = {}
    graphs = total = 0
    for table, batch in tables.tables_giving("graphs"):
        rows = len(batch["start_ns"])
        ids = batch.get("graph", np.full(rows, NULL))
        used, inverse = np.unique(ids, return_inverse=True)
        for key in used.tolist():
            names.setdefault(key, sink.range_names.code("CUDA graph" if key == NULL else f"CUDA graph {key}"))
        process = tables.process(batch, "process", rows)
        tables.note_users(process, batch)
        device = batch.get("device")
        if device is None:  # that on which the process launches
            device = np.array([sink.processes.devices.get(code, 0) for code in process.tolist()], np.int64)
            sink.issues.add("device_assumed", 1, table)
        sink.processes.note(process, np.clip(device, 0, 0xFFFF), launches=False)
        sink.graphs(
            batch["start_ns"],
            batch["end_ns"],
            process,
            device=device,
            stream=batch.get("stream", NULL),
            correlation=batch.get("correlation", NULL),
        )
        sink.ranges(
            batch["start_ns"],
            batch["end_ns"],
            process,
            np.full(rows, NULL),
            np.array([names[key] for key in used.tolist()])[inverse],
            np.full(rows, sink.range_kinds.code("cuda_graph")),
        )
        graphs += rows
        known = (batch["start_ns"] != NULL) & (batch["end_ns"] != NULL)
        total += int(np.maximum(batch["end_ns"] - batch["start_ns"], 0)[known].sum())
    sink.issues.add(
        "graphs_without_launches",
        graphs,
        f"{graphs} executions of {len(names)} graphs, {total} ns in all; see the ranges of kind cuda_graph",
    )


def read_samples(tables: NsysTables) -> None:
    """Take GPU_METRICS as samples; where it is missing, the generic events of the same readings.

    A metric is known by its type and its number within it (numbers start again for each GPU). The type's lowest byte is
    the GPU, as Nsight Systems numbers them; where the export says which process uses it as which CUDA device, that
    device is taken.
    """
    sink = tables.sink
    metrics: dict[tuple[int, int], tuple[str, float]] = {}
    owner: dict[int, tuple[int, int]] = {}
    clocks: dict[tuple[int, int], float] = {}
    unknown = 0
    own = any(tables.export.rows(name, ["typeId"], 1) for name in tables.forms_of(METRICS))
    for time, kinds, numbers, value in (_metric_rows if own else _generic_rows)(tables, metrics):
        pairs, inverse = np.unique(np.stack([kinds, numbers]), axis=1, return_inverse=True)
        inverse = inverse.reshape(-1)
        code = np.empty(pairs.shape[1], np.int64)
        factor = np.empty(pairs.shape[1])
        process = np.empty(pairs.shape[1], np.int64)
        device = np.empty(pairs.shape[1], np.int64)
        for at, key in enumerate(zip(*pairs.tolist(), strict=True)):
            if key not in metrics:
                unknown += 1
                metrics[key] = (f"metric_{key[1]}", 1.0)
            name, factor[at] = metrics[key]
            if name.endswith("_hz"):
                factor[at] = _clock_factor(clocks, key, value[inverse == at])
            code[at] = sink.metrics.code(name)
            gpu = key[0] & 0xFF
            if gpu not in owner:
                owner[gpu] = tables.user_of_gpu(gpu)
            process[at], device[at] = owner[gpu]
        ratios = factor[inverse] == 0.01
        scaled = np.where(ratios, value / 100, value * factor[inverse])
        sink.samples(time, process[inverse], device[inverse], code[inverse], scaled)
    sink.issues.add("unknown_units", unknown, f"{METRICS}: metrics without a name")


def has_metrics(tables: NsysTables) -> bool:
    """Return whether an export has sampled metrics of GPUs."""
    return bool(tables.forms_of(METRICS) or _metric_types(tables))


def _metric_types(tables: NsysTables) -> list[int]:
    """Return the types of generic events that are readings of GPU metrics."""
    export = tables.export
    sources = {
        source
        for source, text in export.rows("GENERIC_EVENT_SOURCES", ["sourceId", "data"])
        if isinstance(found := _object(text), dict) and found.get("Name") == "GpuMetrics"
    }
    rows = export.rows("GENERIC_EVENT_TYPES", ["typeId", "sourceId"])
    return [kind for kind, source in rows if source in sources and isinstance(kind, int)]


def _object(text: object) -> object:
    """Return what a JSON text stands for, None for any other."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def _metric_rows(tables: NsysTables, metrics: dict) -> Iterator[tuple[np.ndarray, ...]]:
    """Give time, type, number of the metric and value of the readings in GPU_METRICS; fill in the metrics' names."""
    for kind, metric, name in tables.export.rows("TARGET_INFO_GPU_METRICS", ["typeId", "metricId", "metricName"]):
        if isinstance(kind, int) and isinstance(metric, int) and name:
            metrics[kind, metric] = metric_name(str(name))
    for _, batch in tables.tables_giving("samples"):
        value = np.where(batch["value"] == NULL, np.nan, batch["value"].astype(np.float64))
        yield batch["start_ns"], batch["kind"], batch["metric"], value


def _generic_rows(tables: NsysTables, metrics: dict) -> Iterator[tuple[np.ndarray, ...]]:
    """Do what `_metric_rows` does for generic events: one row for each time, with the metrics by name."""
    types = _metric_types(tables)
    numbers: dict[tuple[int, str], int] = {}
    for table, batch in tables.tables_giving("generic_samples") if types else ():
        if not {"kind", "text"} <= batch.keys():
            tables.sink.issues.add("unreadable_table", 1, f"{table} has no types or no readings")
            return
        raw = batch.get("raw_ns", np.full(len(batch["kind"]), NULL))
        start = batch.get("start_ns", raw)
        time = np.where(start == NULL, raw, start)
        mine = np.flatnonzero(np.isin(batch["kind"], types))
        for first in range(0, len(mine), GENERIC_ROWS):
            found = []
            for at in mine[first : first + GENERIC_ROWS].tolist():
                readings = _object(batch["text"][at].as_py())
                if not isinstance(readings, dict):
                    tables.sink.issues.add("unreadable_rows", 1, table, of_launches=False)
                    continue
                kind = int(batch["kind"][at])
                for name, text in readings.items():
                    number = numbers.setdefault((kind, name), len(numbers))
                    metrics.setdefault((kind, number), metric_name(name))
                    value = integer(text)
                    found.append((int(time[at]), kind, number, NULL if value is None else value))
            if found:
                *columns, values = np.array(found, np.int64).T
                yield *columns, np.where(values == NULL, np.nan, values.astype(np.float64))


def metric_name(raw: str) -> tuple[str, float]:
    """Return our name of a sampled metric and the factor to its unit: ratios for per cent, Hz for MHz.

    >>> metric_name("SMs Active [Throughput %]"), metric_name("PCIe RX Throughput [Throughput %]")
    (('sms_active_ratio', 0.01), ('pcie_rx_throughput_ratio', 0.01))
    """
    match = re.fullmatch(r"(.*?)\s*(?:\[([^\]]*)\])?", clean_text(raw)[:200], re.DOTALL)
    name = match[1]
    unit = (match[2] or "").strip()
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "metric"
    for pattern, suffix, factor in _UNITS:
        if pattern.search(unit):
            return f"{plain}_{suffix}", factor
    suffix = re.sub(r"[^a-z0-9]+", "_", unit.lower()).strip("_")
    return (f"{plain}_{suffix}" if suffix else plain), 1.0


def _clock_factor(known: dict, key: tuple[int, int], values: np.ndarray) -> float:
    """Return 1 if a clock labelled MHz holds Hz, else a million; decided by its first value that is not zero."""
    if key not in known:
        used = values[values > 0]
        if not len(used):
            return 1.0
        known[key] = 1.0 if used[0] >= LEAST_HZ else 1e6
    return known[key]


def read_mpi(tables: NsysTables) -> None:
    """Take MPI calls: point to point, collectives, start and wait, others.

    A call that waits for several requests has one row for each of them, and MPI_Sendrecv one for what it sends and one
    for what it receives: rows with the same thread, times and name are one call, in whatever order they stand. Its size
    is the larger one, as of collectives; peers that differ are none.
    """
    sink = tables.sink
    names = {}
    last = None
    of = ""
    for table, batch in tables.tables_giving("mpi"):
        rows = len(batch["start_ns"])
        if not rows:
            continue
        absent = np.full(rows, NULL)
        thread = batch.get("global_thread", absent)
        ids = batch.get("name", absent)
        same = np.stack([batch["start_ns"], batch["end_ns"], thread, ids])
        alike = (thread != NULL) & (batch["end_ns"] > batch["start_ns"]) | (table == WAITS)
        first, call = distinct_rows([*same, np.where(alike, NULL, np.arange(rows))])
        again = (same[:, first] == last).all(axis=0) & alike[first] if table == of else np.zeros(len(first), bool)
        last = same[:, -1:]
        of = table
        code = tables.text_codes(
            ids, names, lambda _, text: sink.mpi_names.code(clean_text(text) if text else UNNAMED_CALL)
        )
        keep = first[~again]
        sink.mpi(
            batch["start_ns"][keep],
            tables.ends(batch)[keep],
            tables.process(batch, "global_thread", rows)[keep],
            np.where(thread == NULL, NULL, thread & 0xFFFFFF)[keep],
            code[keep],
            size=np.maximum(*(_largest(batch.get(name, absent), call, first) for name in ("bytes", "received")))[
                ~again
            ],
            peer=_common(batch.get("peer", absent), call, first)[~again],
            communicator=_common(batch.get("communicator", absent), call, first)[~again],
        )


def _largest(values: np.ndarray, call: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return the largest value of the rows of each call, int64 of shape (calls,), `NULL` where all are."""
    largest = values[first]
    np.maximum.at(largest, call, values)  # NULL is the least of all numbers
    return largest


def _common(values: np.ndarray, call: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return the value of the rows of each call, int64 of shape (calls,), `NULL` where they differ."""
    least = values[first]
    np.minimum.at(least, call, values)
    return np.where(least == _largest(values, call, first), least, NULL)
