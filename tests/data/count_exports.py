"""Count what stands in real exports without Causeway: sqlite3, csv, json and pyarrow alone, plain loops, other rules
for kernel classes.

    PYTHONPATH=tests python -m data.count_exports ../shared/data

writes the part `counted` of `expected_exports.json` anew and leaves the part `stated` (format, status, issues: reviewed
by hand) as it is. `tests/unit/readers/test_every_export.py` compares both with what the readers give; its slow test
counts again.
"""

import csv
import gzip
import json
import re
import sqlite3
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from data.count_amd import rocpd, rocprof_compute, rocprof_v1, rocprofv3, rpd
from data.counted import Counted, database

EXPECTED = Path(__file__).with_name("expected_exports.json")
TABLES_ONLY = ("nsys_parquetdir", "nsys_arrowdir")
"""Here a folder is the export, and its files are tables, not exports."""

KINDS = ("launches", "transfers", "calls", "ranges", "samples")
KERNEL, MEMCPY, MEMSET = (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET"))
VIDEO_TABLES = ("NVVIDEO_DECODER_API", "NVVIDEO_ENCODER_API", "NVVIDEO_JPEG_API")
NSYS_TABLES = (
    *VIDEO_TABLES,
    KERNEL,
    MEMCPY,
    MEMSET,
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "NVTX_EVENTS",
    "GPU_METRICS",
)


def discover(root: Path) -> list[str]:
    """Return every export under a folder: each file and, with a slash at the end, each folder that holds files."""
    files = [path.relative_to(root) for path in root.rglob("*") if path.is_file() and path.name != "README.md"]
    alone = {path.as_posix() for path in files if path.parts[0] not in TABLES_ONLY}
    return sorted(alone | {f"{path.parent.as_posix()}/" for path in files})


# Nsight Systems, all containers


def nsys_rows(tables: dict[str, list[dict]], texts) -> Counted:
    found = Counted()
    for row in tables.get(KERNEL, ()):
        found.launch(row["start"], row["end"], row["deviceId"], texts(row["demangledName"]))
    for name in (MEMCPY, MEMSET):
        found.transfers += [(row["start"], row["end"], row["deviceId"]) for row in tables.get(name, ())]
    found.rows["calls"] = len(tables.get("CUPTI_ACTIVITY_KIND_RUNTIME", ()))
    for name in VIDEO_TABLES:  # beside calls they hold marks of tracing, at one moment
        found.rows["calls"] += sum(row["start"] < row["end"] for row in tables.get(name, ()))
    found.rows["ranges"] = len(tables.get("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", ()))
    marks = tables.get("NVTX_EVENTS", ())
    of_mpi = {row["domainId"] for row in marks if row["eventType"] == 75 and row["text"] == "MPI"}
    for row in marks:
        if row["eventType"] in (59, 60, 70, 71) and row["end"] is not None:
            name = row["text"] or texts(row["textId"]) or ""
            found.rows["ranges"] += not (row["domainId"] in of_mpi and name.startswith("MPI_"))
    found.rows["samples"] = len(tables.get("GPU_METRICS", ()))
    return found


def nsys_sqlite(path: Path) -> Counted:
    with database(path) as connection:
        present = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        strings = (
            dict(connection.execute("SELECT id, value FROM StringIds").fetchall()) if "StringIds" in present else {}
        )
        connection.row_factory = sqlite3.Row
        tables = {
            name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in NSYS_TABLES if name in present
        }
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
    tables = {}
    size = path.stat().st_size
    with pa.memory_map(str(path)) as file:
        while file.tell() < size:
            reader = pa.ipc.open_stream(file)
            tables[reader.schema.metadata[b"table_name"].decode()] = reader.read_all().to_pylist()
    strings = {row["id"]: row["value"] for row in tables["StringIds"]}
    return nsys_rows(tables, strings.get)


def nsys_jsonlines(path: Path) -> Counted:
    found = Counted()
    strings = None
    for line in path.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        strings = strings or event.get("data")
        gpu = event.get("CudaEvent")
        call = event.get("TraceProcessEvent")
        mark = event.get("NvtxEvent")
        if gpu and "kernel" in gpu:
            name = strings[int(gpu["kernel"]["demangledName"])]
            found.launch(int(gpu["startNs"]), int(gpu["endNs"]), gpu["deviceId"], name)
        elif gpu and ("memcpy" in gpu or "memset" in gpu):
            found.transfers.append((int(gpu["startNs"]), int(gpu["endNs"]), gpu["deviceId"]))
        found.rows["calls"] += bool(call) and call.get("eventClass") in (0, 1)
        found.rows["ranges"] += (
            bool(mark) and mark.get("Type") in (59, 60, 70, 71) and mark.get("EndTimestamp") is not None
        )
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
        kind = str(event.get("cat", "")).lower()
        args = event.get("args", {})
        if event.get("ph") != "X":
            continue
        if kind == "cuda_profiler_range":
            found.rows["counters"] += 1
            for metric, value in args.items():
                if isinstance(value, (int, float, Decimal)):
                    found.sums[f"sum {metric}"] = found.sums.get(f"sum {metric}", 0.0) + float(value)
        elif kind in ("kernel", "gpu_memcpy", "memcpy", "gpu_memset", "memset"):
            start = nanoseconds(event["ts"])
            end = nanoseconds(event["ts"]) + nanoseconds(event["dur"])
            device = (args.get("rank"), args.get("device", event.get("pid")))
            if kind == "kernel":
                found.launch(start, end, device, event["name"])
            else:
                found.transfers.append((start, end, device))
        found.rows["calls"] += kind in ("cuda_runtime", "runtime", "cuda_driver")
        found.rows["ranges"] += kind in ("user_annotation", "gpu_user_annotation")
        is_range = kind == "operator" and "#" in event["name"]
        found.rows["ranges"] += is_range
        found.rows["host_operators"] += kind in ("cpu_op", "operator") and not is_range
    return found


def nanoseconds(value) -> int:
    return int((Decimal(value) * 1000).to_integral_value())


# Nsight Compute


def ncu(path: Path) -> Counted:
    found = Counted()
    launches = {}
    seconds = {}
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
                factor = {"usecond": 1e3, "us": 1e3, "msecond": 1e6, "cycle/nsecond": 1e9, "cycle/usecond": 1e6}.get(
                    row["Metric Unit"], 1
                )
                seconds.setdefault(row["ID"], {})[metric] = float(row["Metric Value"].replace(",", "")) * factor
    found.rows["counters"] = len(launches)
    found.names = set(launches.values())
    times = [
        (
            one["gpu__time_duration.sum"]
            if "gpu__time_duration.sum" in one
            else 1e9 * one["sm__cycles_elapsed.avg"] / one["sm__cycles_elapsed.avg.per_second"]
        )
        for one in seconds.values()
    ]
    if times:
        found.sums["sum gpu_time"] = sum(times)
    return found


# AMD


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
    lines = [
        f" {json.dumps(export)}: {json.dumps(entry, ensure_ascii=False)}" for export, entry in sorted(expected.items())
    ]
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
