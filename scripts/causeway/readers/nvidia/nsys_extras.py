"""Further events of a Nsight Systems export: graphs traced as a whole, sampled metrics, sampled host code, MPI calls,
and the profiler's own overhead and messages.

A CUDA graph traced as a whole (`--cuda-graph-trace=graph`, the default of nsys) has one row for its execution and none
for the kernels inside. Such an execution is not a launch of a kernel, so it does not count as one: it becomes a range
of kind `cuda_graph` without a thread and a row of `graphs`, and an issue names the time spent in graphs.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from causeway.core.codes import GRAPH_RANGE
from causeway.core.formatting import elided
from causeway.readers.common.constants import NULL
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.numbers import integer
from causeway.readers.containers.table_source import Batch
from causeway.readers.nvidia.nsys_tables import NsysTables
from causeway.readers.sink.batches import EventBatch
from causeway.readers.sink.distinct import distinct_keys, distinct_rows, mapped
from causeway.readers.sink.external_sort import ExternalSort

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
    diagnostics = Diagnostics()
    for _, batch in tables.tables_giving("diagnostics"):
        for text, level in zip(batch["text"].to_pylist(), batch["kind"].tolist(), strict=True):
            if text is not None:
                diagnostics.take(text[:LONGEST_SEARCHED].decode("utf-8", "replace"), level == ERROR)
    return diagnostics


MOST_FRAMES = 1 << 16
"""Different frames whose codes are kept: beyond, their texts are looked up anew. Frames without a symbol have an
address each.
"""
SAMPLES_AT_ONCE = 1 << 16
"""Samples from which the usual distance is taken, and that are worked on at once."""
PERIODS = 2
"""A sample stands for its thread's time up to the next one, at most for so many usual distances: distances of regular
samples differ by less, and a thread that is not sampled for longer does not run.
"""
_SYSTEM = re.compile(
    r"\[.*|ld(?:-[\w.-]*)?\.so[\d.]*"
    r"|lib(?:c|m|dl|rt|pthread|stdc\+\+|gcc_s|cuda|cudart|cupti|nvidia|ToolsInjection\w*)(?:-[\w.-]*)?\.so[\d.]*"
)
"""Modules that run on behalf of what called them: the kernel and what Nsight Systems writes in brackets for none, the
loader, the libraries of C and C++, CUDA's driver, runtime and profiling interface, and Nsight Systems itself.
"""
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_FRAME = 0
_EVENT = _FRAME - 1
"""What orders the rows of a sample: itself comes first, then its frames by their depth, of system modules `_OUTSIDE`
more.
"""
_OUTSIDE = 1 << 32


def read_cpu_samples(tables: NsysTables) -> None:
    """Take the host code that samples saw: of each stack the innermost frame outside of system modules, else the
    innermost, by its symbol, or its module's base name where it has none.
    """
    by_sample = tables.sink.sorted_rows("cpu_samples.by_sample")
    by_time = tables.sink.sorted_rows("cpu_samples.by_time")
    _gather_samples(tables, by_sample)
    for rows in _with_frames(by_sample.blocks()):
        by_time.add(rows)
    by_sample.close()
    _give_samples(tables, by_time.blocks())
    by_time.close()


def _gather_samples(tables: NsysTables, rows: ExternalSort) -> None:
    """Add the samples and the best frame of each in a batch, in place of a time their number: start_ns is the sample,
    `order` as in `_FRAME`, `first` and `second` a sample's time and thread, or a frame's symbol and module.
    """

    def module_kind(text: str | bytes | None) -> int:
        return int(_SYSTEM.fullmatch(_base_name(text)) is not None)

    frames = 0
    for _, batch in tables.tables_giving("cpu_frames"):
        if not {"sample", "name", "depth"} <= batch.keys():
            return
        outside = tables.text_codes(batch["module"], module_kind)
        order = np.clip(batch["depth"], _FRAME, _OUTSIDE - 1) + _OUTSIDE * outside
        best = np.lexsort((order, batch["sample"]))
        sample = batch["sample"][best]
        best = best[np.append(True, sample[1:] != sample[:-1])]
        name = np.where(batch["unresolved"] == 1, NULL, batch["name"])
        columns = {"start_ns": batch["sample"], "order": order, "first": name, "second": batch["module"]}
        rows.add(EventBatch({key: values[best] for key, values in columns.items()}))
        frames += len(best)
    for _, batch in tables.tables_giving("cpu_samples") if frames else ():
        if not {"sample", "start_ns", "global_thread"} <= batch.keys():
            return
        order = np.full(batch.rows, _EVENT)
        columns = {"start_ns": batch["sample"], "order": order}
        rows.add(EventBatch(columns | {"first": batch["start_ns"], "second": batch["global_thread"]}))


def _with_frames(blocks: Iterator[EventBatch]) -> Iterator[EventBatch]:
    """Give samples with their frame: start_ns, thread (packed), symbol and module; int64."""
    held: EventBatch | None = None
    for block in chain(blocks, [None]):
        rows = block if held is None else held if block is None else EventBatch.concatenated([held, block])
        if rows is None:
            return
        # what has the last number may go on in the next block
        cut = len(rows) if block is None else int(np.searchsorted(rows["start_ns"], rows["start_ns"][-1]))
        held = rows[cut:]
        rows = rows[:cut]
        rows = rows[np.lexsort((rows["order"], rows["start_ns"]))]
        events = np.flatnonzero((rows["order"][:-1] == _EVENT) & (rows["start_ns"][1:] == rows["start_ns"][:-1]))
        events = events[rows["order"][events + 1] >= _FRAME]
        if events.size:
            frame = rows[events + 1]
            columns = {"start_ns": rows["first"][events], "thread": rows["second"][events]}
            yield EventBatch(columns | {"symbol": frame["first"], "module": frame["second"]})


def _give_samples(tables: NsysTables, blocks: Iterator[EventBatch]) -> None:
    """Give the sink samples in the order of time, each up to the next one of its thread."""
    codes: dict[tuple[int, ...], int] = {}
    last: dict[int, tuple[int, int]] = {}  # time and code of the latest sample of each thread
    most = 0
    for rows in _in_batches(blocks):
        pairs, inverse = distinct_keys([rows["symbol"], rows["module"]])
        code = np.array(_frame_codes(tables, pairs, codes))[inverse]
        order = np.argsort(rows["thread"], kind="stable")
        thread = rows["thread"][order]
        start = rows["start_ns"][order]
        code = code[order]
        same = thread[1:] == thread[:-1]
        if not most:
            usual = np.sort((start[1:] - start[:-1])[same])
            most = PERIODS * int(usual[(usual.size - 1) // 2]) if usual.size else 0
        begins = np.flatnonzero(np.append(True, ~same))
        ends = np.append(begins[1:], len(order)) - 1
        carried = [
            (key, *last[key], begin) for key, begin in zip(thread[begins].tolist(), begins, strict=True) if key in last
        ]
        _give(tables, start[:-1][same], start[1:][same], thread[:-1][same], code[:-1][same], most)
        if carried:
            own, before, of, begin = (np.array(column, np.int64) for column in zip(*carried, strict=True))
            _give(tables, before, start[begin], own, of, most)
        for key, time, of in zip(*(column[ends].tolist() for column in (thread, start, code)), strict=True):
            last[key] = (time, of)
    if last:
        start, code = (np.array(column, np.int64) for column in zip(*last.values(), strict=True))
        _give(tables, start, start + most, np.array(list(last), np.int64), code, most)


def _in_batches(blocks: Iterator[EventBatch]) -> Iterator[EventBatch]:
    """Give rows in batches of `SAMPLES_AT_ONCE`, whatever the container gave at once."""
    held: list[EventBatch] = []
    for block in blocks:
        held.append(block)
        while sum(map(len, held)) >= SAMPLES_AT_ONCE:
            rows = EventBatch.concatenated(held)
            yield rows[:SAMPLES_AT_ONCE]
            held = [rows[SAMPLES_AT_ONCE:]]
    if sum(map(len, held)):
        yield EventBatch.concatenated(held)


def _give(tables: NsysTables, start, end, thread, code, most: int) -> None:
    named = code >= 0
    if named.any():
        start, end, thread, code = (column[named] for column in (start, end, thread, code))
        packed = Batch(thread=thread)
        process = tables.process(packed, "thread")
        thread = tables.threads(packed, "thread")
        tables.sink.take("cpu_samples", start, np.minimum(end, start + most), process, thread=thread, name=code)


def _frame_codes(tables: NsysTables, pairs: list[tuple[int, ...]], codes: dict[tuple[int, ...], int]) -> list[int]:
    """Return the code of each frame (ids of its symbol and its module), -1 where it has no name."""
    if len(codes) > MOST_FRAMES:
        codes.clear()
    fresh = [pair for pair in pairs if pair not in codes]
    texts = tables.texts({key for pair in fresh for key in pair} - {NULL}) if fresh else {}
    for symbol, module in fresh:
        name = clean_text(texts.get(symbol, b""))
        if not name or _ADDRESS.fullmatch(name):
            name = _base_name(texts.get(module))
        is_none = not name or (name.startswith("[") and name not in ("[vdso]", "[kernel.kallsyms]"))
        codes[symbol, module] = -1 if is_none else tables.sink.sampled_names.code(name)
    return [codes[pair] for pair in pairs]


def _base_name(module: str | bytes | None) -> str:
    """Return a module's name without the folder that it lies in, which may say whose program it is."""
    return re.split(r"[\\/]", clean_text(module or b""))[-1]


def read_diagnostics(tables: NsysTables) -> None:
    """Take the profiler's own work, and count its messages of lost events."""
    for _, batch in tables.tables_giving("overhead"):
        process = tables.process(batch, "global_thread")
        if tables.several and "global_thread" not in batch:
            process = batch["global_thread"]
        name = tables.text_codes(batch["name"], tables.sink.overhead.names.code_of)
        own = ~np.isin(batch["kind"], OVERHEAD_OF_CUDA)
        tables.sink.overhead.take(*(column[own] for column in (batch["start_ns"], batch["end_ns"], process, name)))
    said = diagnostics_of(tables)  # which does not say how many were lost
    tables.sink.issues.add("dropped_events", said.lost, said.first_lost, of_launches=False)


def read_context_switches(tables: NsysTables) -> None:
    """Take the switches of contexts of GPUs that processes of the export use."""
    named = dict(tables.export.rows("ENUM_GPU_CTX_SWITCH", ["id", "name"]))
    names = SWITCHES | {number: name for number, name in named.items() if isinstance(number, int)}
    leaves, passed_over = ([number for number, name in names.items() if name in some] for some in (LEAVES, NO_SWITCH))
    taken = False
    for _, batch in tables.tables_giving("context_switches"):
        kind = batch["kind"]
        used = ~np.isin(kind, passed_over) & (batch["start_ns"] != NULL)
        pid = np.where(batch["process"] == NULL, NULL, batch["process"] >> 24 & 0xFFFFFF)
        gpu = np.where(batch["gpu"] == NULL, 0, batch["gpu"])
        columns = (gpu, batch["start_ns"], batch["sequence"], batch["context"], pid, np.isin(kind, leaves))
        tables.sink.other_contexts.take(*(column[used] for column in columns))
        taken = True
    if taken:
        for code, on, number in tables.gpus_of_users():
            key = tables.sink.processes.keys[code]
            own_pid = key & 0xFFFFFF if tables.several and isinstance(key, int) else None
            tables.sink.other_contexts.uses(code, own_pid, on, number)


def read_graphs(tables: NsysTables) -> None:
    """Take the executions of whole graphs, also as ranges named `CUDA graph <id>`, and count their time as an issue."""
    sink = tables.sink
    names: dict[int, int] = {}

    def code_of(key: int) -> int:
        return names.setdefault(key, sink.range_names.code("CUDA graph" if key == NULL else f"CUDA graph {key}"))

    graphs = total = 0
    for table, batch in tables.tables_giving("graphs"):
        name = mapped(batch["graph"], code_of)
        process = tables.process(batch, "process")
        tables.note_users(process, batch)
        device = batch.get("device")
        if device is None:  # that on which the process launches
            device = np.array([sink.processes.devices.get(code, 0) for code in process.tolist()], np.int64)
            sink.issues.add("device_assumed", 1, table)
        sink.processes.note(process, np.clip(device, 0, 0xFFFF), launches=False)
        times = batch["start_ns"], batch["end_ns"]
        where = {name: batch[name] for name in ("stream", "correlation") if name in batch}
        sink.take("graphs", *times, process, device=device, **where)
        sink.take("ranges", *times, process, name=name, kind=sink.range_kinds.code(GRAPH_RANGE))
        graphs += batch.rows
        timed = (batch["start_ns"] != NULL) & (batch["end_ns"] != NULL)
        total += int(np.maximum(batch["end_ns"] - batch["start_ns"], 0)[timed].sum())
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
        for index, key in enumerate(zip(*pairs.tolist(), strict=True)):
            if key not in metrics:
                unknown += 1
                metrics[key] = (f"metric_{key[1]}", 1.0)
            name, factor[index] = metrics[key]
            if name.endswith("_hz"):
                factor[index] = _clock_factor(clocks, key, value[inverse == index])
            code[index] = sink.metrics.code(name)
            gpu = key[0] & 0xFF
            if gpu not in owner:
                owner[gpu] = tables.user_of_gpu(gpu)
            process[index], device[index] = owner[gpu]
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
        if isinstance(described := _object(text), dict) and described.get("Name") == "GpuMetrics"
    }
    rows = export.rows("GENERIC_EVENT_TYPES", ["typeId", "sourceId"])
    return [kind for kind, source in rows if source in sources and isinstance(kind, int)]


def _object(text: object) -> object:
    """Return what a JSON text stands for, None for any other."""
    try:
        return json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError):
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
        time = np.where(batch["start_ns"] == NULL, batch["raw_ns"], batch["start_ns"])
        chosen = np.flatnonzero(np.isin(batch["kind"], types))
        for first in range(0, len(chosen), GENERIC_ROWS):
            rows = []
            for row in chosen[first : first + GENERIC_ROWS].tolist():
                readings = _object(batch["text"][row].as_py())
                if not isinstance(readings, dict):
                    tables.sink.issues.add("unreadable_rows", 1, table, of_launches=False)
                    continue
                kind = int(batch["kind"][row])
                for name, text in readings.items():
                    number = numbers.setdefault((kind, name), len(numbers))
                    metrics.setdefault((kind, number), metric_name(name))
                    value = integer(text)
                    rows.append((int(time[row]), kind, number, NULL if value is None else value))
            if rows:
                *columns, values = np.array(rows, np.int64).T
                yield *columns, np.where(values == NULL, np.nan, values.astype(np.float64))


def metric_name(raw: str) -> tuple[str, float]:
    """Return our name of a sampled metric and the factor to its unit: ratios for per cent, Hz for MHz.

    >>> metric_name("SMs Active [Throughput %]"), metric_name("PCIe RX Throughput [Throughput %]")
    (('sms_active_ratio', 0.01), ('pcie_rx_throughput_ratio', 0.01))
    """
    match = re.fullmatch(r"(.*?)\s*(?:\[([^\]]*)\])?", clean_text(raw)[:200], re.DOTALL)
    name, unit = ((text or "").strip() for text in match.groups()) if match else (raw, "")
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "metric"
    for pattern, suffix, factor in _UNITS:
        if pattern.search(unit):
            return f"{plain}_{suffix}", factor
    suffix = re.sub(r"[^a-z0-9]+", "_", unit.lower()).strip("_")
    return (f"{plain}_{suffix}" if suffix else plain), 1.0


def _clock_factor(factors: dict, key: tuple[int, int], values: np.ndarray) -> float:
    """Return 1 if a clock labelled MHz holds Hz, else a million; decided by its first value that is not zero."""
    if key not in factors:
        used = values[values > 0]
        if not len(used):
            return 1.0
        factors[key] = 1.0 if used[0] >= LEAST_HZ else 1e6
    return factors[key]


def read_mpi(tables: NsysTables) -> None:
    """Take MPI calls: point to point, collectives, start and wait, others.

    A call that waits for several requests has one row for each of them, and MPI_Sendrecv one for what it sends and one
    for what it receives: rows with the same thread, times and name are one call, in whatever order they stand. Its size
    is the larger one, as of collectives; peers that differ are none.
    """
    sink = tables.sink
    last = None
    of = ""
    for table, batch in tables.tables_giving("mpi"):
        rows = batch.rows
        if not rows:
            continue
        same = np.stack([batch[name] for name in ("start_ns", "end_ns", "global_thread", "name")])
        alike = (batch["global_thread"] != NULL) & (batch["end_ns"] > batch["start_ns"]) | (table == WAITS)
        first, call = distinct_rows([*same, np.where(alike, NULL, np.arange(rows))])
        again = (same[:, first] == last).all(axis=0) & alike[first] if table == of else np.zeros(len(first), bool)
        last = same[:, -1:]
        of = table
        code = tables.text_codes(batch["name"], sink.mpi_names.code_of)
        keep = first[~again]
        sink.take(
            "mpi",
            batch["start_ns"][keep],
            tables.ends(batch)[keep],
            tables.process(batch, "global_thread")[keep],
            thread=tables.threads(batch)[keep],
            name=code[keep],
            bytes=np.maximum(*(_largest(batch[name], call, first) for name in ("bytes", "received")))[~again],
            peer=_common(batch["peer"], call, first)[~again],
            communicator=_common(batch["communicator"], call, first)[~again],
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
