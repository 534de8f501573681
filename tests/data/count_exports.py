"""Count what stands in real exports without Causeway: sqlite3, csv, json and pyarrow alone, plain loops, other rules for kernel classes.

    python tests/data/count_exports.py ../shared/data

writes the part `counted` of `expected_exports.json` anew and leaves the part `stated` (format, status, issues: reviewed by hand) as it is.
`tests/unit/readers/test_every_export.py` compares both with what the readers give; its slow test counts again.
"""

import csv
import gzip
import json
import re
import sqlite3
import sys
from contextlib import closing
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

EXPECTED = Path(__file__).with_name("expected_exports.json")
TABLES_ONLY = ("nsys_parquetdir", "nsys_arrowdir")
"""Here a folder is the export, and its files are tables, not exports."""

KINDS = ("launches", "transfers", "calls", "ranges", "samples")
KERNEL, MEMCPY, MEMSET = (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET"))
NSYS_TABLES = (KERNEL, MEMCPY, MEMSET, "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "NVTX_EVENTS", "GPU_METRICS")


def discover(root: Path) -> list[str]:
    """Return every export under a folder: each file and, with a slash at the end, each folder that holds files."""
    files = [path.relative_to(root) for path in root.rglob("*") if path.is_file() and path.name != "README.md"]
    alone = {path.as_posix() for path in files if path.parts[0] not in TABLES_ONLY}
    return sorted(alone | {f"{path.parent.as_posix()}/" for path in files})


class Counted:
    """Events as found: (start, end, device, class) of launches and transfers, and numbers of everything else."""

    def __init__(self) -> None:
        self.launches: list[tuple[int, int, object, str]] = []
        self.transfers: list[tuple[int, int, object]] = []
        self.names: set[str] = set()
        self.rows = dict.fromkeys(("calls", "ranges", "samples", "counters"), 0)
        self.sums: dict[str, float] = {}

    def launch(self, start: int, end: int, device: object, name: str) -> None:
        self.launches.append((start, end, device, class_of(name)))
        self.names.add(re.sub(r"( \[clone \.kd\]| \(\.kd\)|\.kd)$", "", name))

    def result(self) -> dict:
        """Return what the expectation file holds."""
        found = {"launches": len(self.launches), "transfers": len(self.transfers), **self.rows}
        found = {name: rows for name, rows in found.items() if rows}
        if self.names:
            found["kernels"] = len(self.names)
        for kind, events in (("launch", self.launches), ("transfer", self.transfers)):
            if events:
                found[f"{kind}_ns"] = sum(event[1] - event[0] for event in events)
        for kind in ("communication", "memory"):
            if total := sum(end - start for start, end, _, of in self.launches if of == kind):
                found[f"{kind}_ns"] = total
        if self.launches:
            devices = {event[2] for event in self.launches}
            found["busy_ns"] = found["idle_ns"] = found["overlap_ns"] = 0
            for one in devices:
                launches = [event for event in self.launches if event[2] == one]
                work = [event[:2] for event in launches] + [event[:2] for event in self.transfers if event[2] == one]
                busy = length(union(work))
                found["busy_ns"] += busy
                found["idle_ns"] += max(end for _, end in work) - min(start for start, _ in work) - busy
                talking = union([event[:2] for event in launches if event[3] == "communication"])
                computing = union([event[:2] for event in launches if event[3] == "compute"])
                found["overlap_ns"] += length(talking) + length(computing) - length(union(talking + computing))
        return found | {name: round(total, 3) for name, total in sorted(self.sums.items())}


def class_of(name: str) -> str:
    if re.search(r"nccl(Kernel|DevKernel)|^nccl|rccl|nvshmem|cross_device_reduce|mscclpp", name.split("<")[0].split("(")[0]):
        return "communication"
    return "memory" if re.search(r"rocclr_(copy|fill)Buffer|^Mem(cpy|set) ", name) else "compute"


def union(intervals: list) -> list[tuple[int, int]]:
    """Return the same points as disjoint intervals."""
    found: list[list[int]] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        elif end > start:
            found.append([start, end])
    assert all(a[1] < b[0] for a, b in pairwise(found))
    return [tuple(one) for one in found]


def length(intervals: list) -> int:
    return sum(end - start for start, end in intervals)


def database(path: Path):
    """Open a database; closed at the end of its `with`."""
    return closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True))


# Nsight Systems, all containers


def nsys_rows(tables: dict[str, list[dict]], texts) -> Counted:
    found = Counted()
    for row in tables.get(KERNEL, ()):
        found.launch(row["start"], row["end"], row["deviceId"], texts(row["demangledName"]))
    for name in (MEMCPY, MEMSET):
        found.transfers += [(row["start"], row["end"], row["deviceId"]) for row in tables.get(name, ())]
    found.rows["calls"] = len(tables.get("CUPTI_ACTIVITY_KIND_RUNTIME", ()))
    found.rows["ranges"] = len(tables.get("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", ()))
    found.rows["ranges"] += sum(row["eventType"] in (59, 60, 70, 71) and row["end"] is not None for row in tables.get("NVTX_EVENTS", ()))
    found.rows["samples"] = len(tables.get("GPU_METRICS", ()))
    return found


def nsys_sqlite(path: Path) -> Counted:
    with database(path) as connection:
        present = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        strings = dict(connection.execute("SELECT id, value FROM StringIds").fetchall()) if "StringIds" in present else {}
        connection.row_factory = sqlite3.Row
        tables = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in NSYS_TABLES if name in present}
    return nsys_rows(tables, strings.get)


def nsys_folder(path: Path) -> Counted:
    def table(name: str) -> list[dict]:
        if (path / f"{name}.parquet").exists():
            return pq.read_table(path / f"{name}.parquet").to_pylist()
        if (path / f"{name}.arrow").exists():
            return pa.ipc.open_stream(pa.OSFile(str(path / f"{name}.arrow"))).read_all().to_pylist()
        return []

    strings = {row["id"]: row["value"] for row in table("StringIds")}
    return nsys_rows({name: table(name) for name in NSYS_TABLES}, strings.get)


def nsys_arrow(path: Path) -> Counted:
    tables, size = {}, path.stat().st_size
    with pa.memory_map(str(path)) as file:
        while file.tell() < size:
            reader = pa.ipc.open_stream(file)
            tables[reader.schema.metadata[b"table_name"].decode()] = reader.read_all().to_pylist()
    strings = {row["id"]: row["value"] for row in tables["StringIds"]}
    return nsys_rows(tables, strings.get)


def nsys_jsonlines(path: Path) -> Counted:
    found, strings = Counted(), None
    for line in path.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        strings = strings or event.get("data")
        gpu, call, mark = event.get("CudaEvent"), event.get("TraceProcessEvent"), event.get("NvtxEvent")
        if gpu and "kernel" in gpu:
            name = strings[int(gpu["kernel"]["demangledName"])]
            found.launch(int(gpu["startNs"]), int(gpu["endNs"]), gpu["deviceId"], name)
        elif gpu and ("memcpy" in gpu or "memset" in gpu):
            found.transfers.append((int(gpu["startNs"]), int(gpu["endNs"]), gpu["deviceId"]))
        found.rows["calls"] += bool(call) and call.get("eventClass") in (0, 1)
        found.rows["ranges"] += bool(mark) and mark.get("Type") in (59, 60, 70, 71) and mark.get("EndTimestamp") is not None
    return found


def nsys_recipe(path: Path) -> Counted:
    found = Counted()
    found.rows["ranges"] = pq.read_table(path / "trace.parquet" if path.is_dir() else path).num_rows
    return found


# Kineto


def kineto(path: Path) -> Counted:
    found = Counted()
    with gzip.open(path, "rt", encoding="utf-8") as handle:
        events = json.load(handle, parse_float=Decimal, strict=False)["traceEvents"]
    for event in events:
        kind, args = str(event.get("cat", "")).lower(), event.get("args", {})
        if event.get("ph") != "X":
            continue
        if kind == "cuda_profiler_range":
            found.rows["counters"] += 1
            for metric, value in args.items():
                if isinstance(value, (int, float, Decimal)):
                    found.sums[f"sum {metric}"] = found.sums.get(f"sum {metric}", 0.0) + float(value)
        elif kind in ("kernel", "gpu_memcpy", "memcpy", "gpu_memset", "memset"):
            start, end = nanoseconds(event["ts"]), nanoseconds(event["ts"]) + nanoseconds(event["dur"])
            device = (args.get("rank"), args.get("device", event.get("pid")))
            if kind == "kernel":
                found.launch(start, end, device, event["name"])
            else:
                found.transfers.append((start, end, device))
        found.rows["calls"] += kind in ("cuda_runtime", "runtime", "cuda_driver")
        found.rows["ranges"] += kind in ("user_annotation", "gpu_user_annotation")
    return found


def nanoseconds(value) -> int:
    return int((Decimal(value) * 1000).to_integral_value())


# Nsight Compute


def ncu(path: Path) -> Counted:
    found, launches, seconds = Counted(), {}, {}
    if path.name == "relu_nsight_result_wide.csv":
        rows = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
        found.rows["counters"] = sum(bool(row and row[0]) for row in rows[1:])
        return found
    text = path.read_text(encoding="utf-8-sig")
    header = re.search(r'^"?ID"?,"?Process ID"?,', text, re.MULTILINE)
    for row in csv.DictReader(text[header.start() :].splitlines()) if header else ():
        metric = row["Metric Name"]
        if metric:
            launches[row["ID"]] = row["Kernel Name"]
            if metric in ("gpu__time_duration.sum", "sm__cycles_elapsed.avg", "sm__cycles_elapsed.avg.per_second"):
                factor = {"usecond": 1e3, "us": 1e3, "msecond": 1e6, "cycle/nsecond": 1e9, "cycle/usecond": 1e6}.get(row["Metric Unit"], 1)
                seconds.setdefault(row["ID"], {})[metric] = float(row["Metric Value"].replace(",", "")) * factor
    found.rows["counters"], found.names = len(launches), set(launches.values())
    times = [
        one["gpu__time_duration.sum"]
        if "gpu__time_duration.sum" in one
        else 1e9 * one["sm__cycles_elapsed.avg"] / one["sm__cycles_elapsed.avg.per_second"]
        for one in seconds.values()
    ]
    if times:
        found.sums["sum gpu_time"] = sum(times)
    return found


# AMD


def read_csv(path: Path) -> list[dict]:
    with path.open(encoding="utf-8-sig", newline="") as handle:
        return list(csv.DictReader(handle))


def rocprof_v1(path: Path) -> Counted:
    found = Counted()
    if path.suffix == ".db":
        with database(path) as connection:
            for name, start, end, device in connection.execute("SELECT KernelName, BeginNs, EndNs, [gpu-id] FROM KERN"):
                found.launch(int(start), int(end), device, name.strip('"'))
        return found
    files = [path] if path.is_file() else [path / "results.csv", path / "data_movement.csv"]
    for file in files:
        for row in read_csv(file) if file.exists() and "stats" not in file.name else ():
            if "BeginNs" in row:
                found.launch(int(row["BeginNs"]), int(row["EndNs"]), row["gpu-id"], row["KernelName"])
            else:
                found.rows["counters"] += 1
                found.names.add(re.sub(r"( \[clone \.kd\]|\.kd)$", "", row["KernelName"]))
                for metric in ("FETCH_SIZE", "WRITE_SIZE"):
                    found.sums[f"sum {metric}"] = found.sums.get(f"sum {metric}", 0.0) + float(row[metric])
    return found


def rocprof_compute(path: Path) -> Counted:
    found = Counted()
    file = path / "pmc_perf.csv" if path.is_dir() else path
    for row in read_csv(file) if file.suffix == ".csv" and file.exists() else ():
        if "Start_Timestamp" not in row:
            continue
        start, end = (int(Decimal(row[name])) for name in ("Start_Timestamp", "End_Timestamp"))
        name = row["Kernel_Name"]
        if end > start:  # the others were saved rounded
            found.launch(start, end, row["GPU_ID"], name)
        if file.name != "timestamps.csv":
            found.rows["counters"] += 1
            found.names.add(re.sub(r"( \[clone \.kd\]| \(\.kd\)|\.kd)$", "", name))
            for metric in ("SQ_WAVES", "TCP_PENDING_STALL_CYCLES_sum"):
                if metric in row:
                    found.sums[f"sum {metric}"] = found.sums.get(f"sum {metric}", 0.0) + float(row[metric])
    return found


def rocprofv3(path: Path) -> Counted:
    found = Counted()
    if path.is_dir() and list(path.glob("*.json.gz")):
        path = next(path.glob("*.json.gz"))
    if path.name.endswith(".json.gz"):
        for process in json.loads(gzip.decompress(path.read_bytes()))["rocprofiler-sdk-tool"]:
            names = {one["kernel_id"]: one["formatted_kernel_name"] for one in process["kernel_symbols"]}
            for row in process["buffer_records"]["kernel_dispatch"]:
                info = row["dispatch_info"]
                found.launch(row["start_timestamp"], row["end_timestamp"], info["agent_id"]["handle"], names[info["kernel_id"]])
        return found
    files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
    traced = any("kernel_trace" in file.name for file in files)
    counted: dict[tuple, str] = {}
    for file in files:
        for row in read_csv(file):
            if "Counter_Name" in row:
                counted[row["Dispatch_Id"], row["Kernel_Name"]] = file.name
                if "Start_Timestamp" in row and not traced and (file.name, row["Dispatch_Id"]) not in found.sums:
                    found.sums[file.name, row["Dispatch_Id"]] = 0
                    found.launch(int(row["Start_Timestamp"]), int(row["End_Timestamp"]), row["Agent_Id"], row["Kernel_Name"])
                found.names.add(row["Kernel_Name"])
            elif "Kernel_Name" in row and "Start_Timestamp" in row:
                found.launch(int(row["Start_Timestamp"]), int(row["End_Timestamp"]), row["Agent_Id"], row["Kernel_Name"])
            elif "Direction" in row:
                to_host = "DEVICE_TO_HOST" in row["Direction"]
                device = row["Source_Agent_Id"] if to_host else row["Destination_Agent_Id"]
                found.transfers.append((int(row["Start_Timestamp"]), int(row["End_Timestamp"]), device))
            elif row.get("Domain", "").startswith("MARKER"):
                found.rows["ranges"] += 1
            elif "Function" in row:
                found.rows["calls"] += 1
    found.sums = {}
    found.rows["counters"] = len(counted)
    return found


def rpd(path: Path) -> Counted:
    found = Counted()
    with database(path) as connection:
        strings = dict(connection.execute("SELECT id, string FROM rocpd_string"))
        for start, end, device, kind, name in connection.execute("SELECT start, end, gpuId, opType_id, description_id FROM rocpd_op"):
            if strings[kind] == "KernelExecution":
                found.launch(start, end, device, strings[name])
            else:
                found.transfers.append((start, end, device))
        for (name,) in connection.execute("SELECT apiName_id FROM rocpd_api"):
            found.rows["ranges" if strings[name] == "UserMarker" else "calls"] += 1
        found.rows["samples"] = connection.execute("SELECT count(*) FROM rocpd_monitor").fetchone()[0]
    return found


def rocpd(path: Path) -> Counted:
    found = Counted()
    with database(next(path.glob("*.db")) if path.is_dir() else path) as connection:
        names = dict(connection.execute("SELECT id, display_name FROM rocpd_info_kernel_symbol"))
        for start, end, device, kernel in connection.execute("SELECT start, end, agent_id, kernel_id FROM rocpd_kernel_dispatch"):
            found.launch(start, end, device, names[kernel])
        gpus = {row[0] for row in connection.execute("SELECT id FROM rocpd_info_agent WHERE type = 'GPU'")}
        for start, end, source, target in connection.execute("SELECT start, end, src_agent_id, dst_agent_id FROM rocpd_memory_copy"):
            found.transfers.append((start, end, target if target in gpus else source))
        found.rows["ranges"] = connection.execute("SELECT count(*) FROM rocpd_region").fetchone()[0]
    return found


COUNTERS = {
    "nsys_sqlite": (nsys_sqlite, "*.sqlite"),
    "nsys_parquetdir": (nsys_folder, "/"),
    "nsys_arrowdir": (nsys_folder, "/"),
    "nsys_arrow": (nsys_arrow, "*.arrow"),
    "nsys_jsonlines": (nsys_jsonlines, "*.jsonl"),
    "nsys_parquet": (nsys_recipe, "/ trace.parquet"),
    "kineto": (kineto, "*.json.gz"),
    "ncu_csv": (ncu, "*.csv"),
    "rocprof_v1": (rocprof_v1, "/ *.csv *.db"),
    "rocprof_compute": (rocprof_compute, "/ *.csv"),
    "rocprofv3": (rocprofv3, "/ *.csv *.json.gz"),
    "rpd": (rpd, "*.rpd"),
    "rocpd": (rocpd, "/ *.db"),
}
"""By first folder: who counts, and what (`/` are folders)."""


def count(root: Path, export: str) -> dict:
    """Return what stands in an export; {} where nothing of it can be read."""
    counter, patterns = COUNTERS.get(export.split("/")[0], (None, ""))
    kinds = patterns.split()
    if export.endswith("/"):
        return counter(root / export).result() if "/" in kinds else {}
    return counter(root / export).result() if any(Path(export).match(kind) for kind in kinds if kind != "/") else {}


def write(expected: dict) -> None:
    """Write the expectation file, one line per export."""
    lines = [f" {json.dumps(export)}: {json.dumps(entry, ensure_ascii=False)}" for export, entry in sorted(expected.items())]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> None:
    """Count everything anew."""
    root = Path(sys.argv[1])
    expected = json.loads(EXPECTED.read_text(encoding="utf-8")) if EXPECTED.exists() else {}
    for export in discover(root):
        entry = expected.setdefault(export, {})
        entry["counted"] = count(root, export)
        print(export, entry["counted"])
    write({export: expected[export] for export in discover(root)})


if __name__ == "__main__":
    main()
