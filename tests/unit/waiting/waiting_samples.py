"""Random small exports, many ranks each, and why their devices are idle by the definition, nanosecond by nanosecond."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
from efficiency_samples import with_calls

from causeway.core.tables import LAUNCH_SHAPE, SCHEMAS, write_json, write_table

KERNELS = {"gemm": "compute", "ncclDevKernel_AllReduce": "communication"}
CALLS = (
    "cudaLaunchKernel",
    "cudaStreamSynchronize",
    "cudaMalloc",
    "cudaMemcpy",
    "cudaGraphLaunch",
    "cuLibraryLoadData",
)
RANGES = ("load_batch 3", "step 7", "forward")
OPERATORS = ("aten::mm", "aten::conv2d", "next_batch")
SAMPLED = ("sort()", "load_batch 3")
BLOCKING = {"cudaStreamSynchronize", "cudaMalloc", "cudaMemcpy"}
EVENTS = ("launches", "transfers", "graphs")
TABLES = (*EVENTS, "calls", "ranges", "mpi", "system_calls", "host_operators", "cpu_samples", "dependencies")
TABLES += ("profiler_overhead",)
PROFILER = ("CUPTI Buffer flush", "dlopen(libcupti.so)")


def write(folder, name, rows):
    """Write rows as the table `name`, ordered by start; columns not given are null or 0."""
    schema = SCHEMAS[name]
    absent = {field.name: None if field.nullable else 0 for field in schema}
    rows = [absent | row for row in sorted(rows, key=lambda row: row.get("start_ns", 0))]
    columns = {f.name: pa.array([row[f.name] for row in rows], f.type) for f in schema}
    write_table(pa.table(columns, schema=schema), Path(folder) / f"{name}.parquet", name)


def write_export(folder, tables, export="e0"):
    """Write an export's tables, its dimensions and what `capabilities.json` needs to say."""
    kernels = [
        {"kernel": i, "id": n, "name": n, "short_name": n, "class": kind} for i, (n, kind) in enumerate(KERNELS.items())
    ]
    shapes = [{"configuration": i, "kernel": i} | dict.fromkeys(LAUNCH_SHAPE) for i in range(len(KERNELS))]
    used = sorted({(row["rank"], row.get("device", 0)) for name in EVENTS for row in tables.get(name, [])})
    devices = [{"rank": rank, "device": device} for rank, device in used]
    dimensions = {"kernels": kernels, "configurations": shapes, "devices": devices}
    for name, rows in with_calls(tables | dimensions).items():
        if rows:
            write(folder, name, rows)
    document = {"export": export, "status": "read", "time": {"has_start": True}, "analyses": {}}
    document["ranks"] = sorted({rank for rank, _ in used})
    write_json(document, Path(folder) / "capabilities.json")


def random_rank(random, rank):
    """Return the rows of one rank by table: some dozen events within some hundred ns."""
    tables = {name: [] for name in TABLES}
    moment = int(random.integers(0, 60))
    further = np.random.default_rng([rank, moment])
    sparse = int(random.integers(1, 25))
    for number in range(int(random.integers(2, 9))):
        thread = int(random.integers(1, 3))
        start = moment + int(random.integers(0, sparse))
        duration = int(random.integers(0, 9))
        correlated = number if random.random() < 0.85 else None
        name = CALLS[0] if random.random() < 0.6 else CALLS[int(random.integers(0, len(CALLS)))]
        if random.random() < 0.9:
            call = {"start_ns": start, "duration_ns": duration, "rank": rank, "thread": thread, "name": name}
            tables["calls"].append(call | {"correlation": number})
            if random.random() < 0.2:  # the driver's call inside has the same number
                tables["calls"].append(call | {"duration_ns": duration // 2, "correlation": number})
        begin = max(start, moment) + int(random.integers(0, 2 * sparse))
        for _ in range(1 + (random.random() < 0.3)):  # nodes of a graph, parts of a copy
            event = {"start_ns": begin, "duration_ns": int(random.integers(1, 12)), "rank": rank}
            event |= {"stream": int(random.integers(0, 2)), "correlation": correlated}
            if random.random() < 0.7:
                queue = int(random.integers(0, 9)) if random.random() < 0.2 else None
                configuration = int(random.random() < 0.3)
                tables["launches"].append(event | {"configuration": configuration, "queue_ns": queue})
            else:
                tables["transfers"].append(event | {"copy_kind": int(random.choice([1, 2, 8]))})
            begin += event["duration_ns"] + int(random.integers(0, 6))
        moment = start if random.random() < 0.5 else begin
    for table, names, share in (
        ("ranges", RANGES, 4),
        ("mpi", ("MPI_Wait",), 2),
        ("system_calls", ("sem_wait", "read"), 3),
        ("host_operators", OPERATORS, 6),
    ):
        for _ in range(int(random.integers(0, share))):
            row = {"start_ns": int(random.integers(0, moment + 1)), "duration_ns": int(random.integers(0, 40))}
            row |= {
                "rank": rank,
                "thread": int(random.integers(1, 3)),
                "name": names[int(random.integers(0, len(names)))],
            }
            tables[table].append(row | ({"kind": "nvtx"} if table == "ranges" else {}))
    if random.random() < 0.2:
        start = int(random.integers(0, moment + 1))
        graph = {"start_ns": start, "duration_ns": int(random.integers(1, 30)), "rank": rank}
        stream = int(further.integers(0, 2)) if further.random() < 0.7 else None
        call = int(further.integers(0, 9)) if further.random() < 0.5 else None
        tables["graphs"].append(graph | {"stream": stream, "correlation": call})
    for _ in range(int(random.integers(0, 4))):
        row = {"start_ns": int(random.integers(0, moment + 1)), "rank": rank, "kind": "wait"}
        source = int(random.integers(0, 3)) or None
        tables["dependencies"].append(row | {"stream": int(random.integers(0, 2)), "source_stream": source})
    sampled = np.random.default_rng([rank, moment, 7])
    at = int(sampled.integers(0, 20))
    while at < moment and sampled.random() < 0.8:
        row = {"start_ns": at, "duration_ns": int(sampled.integers(1, 9)), "rank": rank}
        row |= {"thread": int(sampled.integers(1, 3)), "name": SAMPLED[int(sampled.integers(0, 2))]}
        tables["cpu_samples"].append(row)
        at += int(sampled.integers(0, 12))
    at = int(further.integers(0, 40))
    while further.random() < 0.6:  # the profiler's own work: touching rows and rows beyond the events, too
        long = int(further.integers(1, 25))
        name = PROFILER[int(further.integers(0, len(PROFILER)))]
        tables["profiler_overhead"].append({"start_ns": at, "duration_ns": long, "rank": rank, "name": name})
        at += long + int(further.integers(0, 40))
    return tables


def _end(row):
    return row["start_ns"] + row["duration_ns"]


def _described(table, name):
    """Return priority, reason and detail of a host activity: what only says that it is a step counts last, then
    sampled code, then operators.
    """
    if table == "calls":
        if name in BLOCKING:
            return 2, "blocked_host", name
        return 0, "launch_starved", ("module loading: " if "Library" in name else "in ") + name
    if table == "ranges":
        words = re.sub(r"\d+", "*", name)
        priority = {"load_batch 3": 1, "step 7": -3}.get(name, 0)
        return priority, "launch_starved", ("data loader: " if priority == 1 else "range: ") + words
    if table == "cpu_samples":
        return -2, "launch_starved", f"host code in {name}"
    if table == "host_operators":
        return -1, "launch_starved", f"operator: {name}"
    kind = {"mpi": "MPI", "system_calls": "lock" if "sem" in name else "system call"}[table]
    return 0, "launch_starved", f"{kind}: {name}"


def _host_at(tables, thread, moment):
    """Return reason and detail of what a thread did at a moment."""
    found = []
    for table in ("calls", "ranges", "mpi", "system_calls", "host_operators", "cpu_samples"):
        for row in tables[table]:
            if row["thread"] == thread and row["start_ns"] <= moment < _end(row):
                priority, reason, detail = _described(table, row["name"])
                inner = (row["start_ns"], -_end(row))
                rank = tuple(-one for one in inner) if priority == 2 else inner
                found.append(((priority, *rank), reason, detail))
    return max(found, key=lambda item: item[0])[1:] if found else ("launch_starved", "host code not recorded")


def explained(tables, bound, longest, has_calls):
    """Return ns by reason and detail, of one rank with one device, by looking at each nanosecond."""
    works = [(row["start_ns"], at, row) for at, name in enumerate(EVENTS) for row in tables[name]]
    events = sorted(works, key=lambda item: item[:2])
    found = Counter()
    user = {}  # by correlation: whether work of the call was seen
    called = {}
    reach = done = events[0][0]
    last = None
    for start, kind, row in events:
        calls = [
            c for c in tables["calls"] if row["correlation"] is not None and c["correlation"] == row["correlation"]
        ]
        call = max(calls, key=_end) if calls else None
        queue = row.get("queue_ns") if kind == 0 else None
        returned = _end(call) if call else (start - queue if queue is not None else None)
        asked = call["start_ns"] if call else returned
        idle = [t for t in range(done, start) if t >= reach]
        if idle:
            a = idle[0]
            for t in idle:
                inside = call and call["name"] == "cudaGraphLaunch" and row["correlation"] in user
                busy = [one for one in tables["profiler_overhead"] if one["start_ns"] <= t < _end(one)]
                if busy and not inside:
                    found["profiler", busy[0]["name"]] += 1
                elif returned is None:
                    words = "no call is correlated with the work that ended the gap"
                    found["unknown", words if has_calls else "the export has no runtime calls"] += 1
                elif inside:
                    found["graph_internal", "between nodes of one graph launch"] += 1
                elif t < returned:
                    words = _host_at(tables, call["thread"], t) if call else None
                    found[words or ("launch_starved", "the launching thread is not recorded")] += 1
                elif t < max(a, returned) + bound:
                    words = "between queued work" if returned <= a else "from the end of the launch call to the start"
                    found["start_up", words] += 1
                elif returned <= a or _event(tables, row, called, asked):
                    found["dependency_stalled", _waited(tables, row, called, asked, last)] += 1
                elif t < returned + longest:
                    found["start_up", "from the end of the launch call to the start"] += 1
                else:
                    found["unknown", "enqueued on an idle device, held back by what is not recorded"] += 1
        done = max(done, start)
        if call:
            user[row["correlation"]] = True
        if asked is not None:
            called[row.get("stream", 0)] = asked
        if _end(row) > reach:
            last = (kind, row)
        reach = max(reach, _end(row))
    return Counter({key: ns for key, ns in found.items() if ns})


def _event(tables, row, called, asked):
    stream = row.get("stream", 0)
    after = called.get(stream, -1)
    waits = [w for w in tables["dependencies"] if w["stream"] == stream and after <= w["start_ns"] <= asked]
    if not waits:
        return None
    source = max(enumerate(waits), key=lambda item: (item[1]["start_ns"], item[0]))[1]["source_stream"]
    return f"event wait on {'a stream that is not recorded' if source is None else f'stream {source}'}"


def _waited(tables, row, called, asked, last):
    if event := _event(tables, row, called, asked):
        return event
    stream = row.get("stream", 0)
    kind, work = last
    if kind == 2:
        name = "a graph"
    elif kind == 0:
        name = ("a kernel", "collective ncclDevKernel_AllReduce")[work["configuration"]]
    else:
        name = f"a copy ({ {1: 'host to device', 2: 'device to host', 8: 'device to device'}[work['copy_kind']] })"
    own = stream is not None and work["stream"] == stream
    return f"queued behind {name} of {'its own' if own else 'another'} stream"


def random_export(folder, seed, ranks):
    """Write an export of random ranks; return the tables of each."""
    random = np.random.default_rng(seed)
    each = [random_rank(random, rank) for rank in range(ranks)]
    write_export(folder, {name: [row for one in each for row in one[name]] for name in each[0]})
    return each
