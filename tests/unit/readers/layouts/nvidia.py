"""Made-up exports of NVIDIA's profilers: Nsight Systems, Nsight Compute, nvprof and dumps of CUPTI."""

import json

import pyarrow as pa
import pyarrow.parquet as pq

from layouts.basics import COMMAND, ENVIRONMENT, SECRET, layout, quoted, write_cells, write_sqlite

PID = 5 << 24

# Nsight Systems: the same tables in five containers


def nsys_tables(kernel, rows):
    """Return the tables of an export: name -> list of rows."""
    texts = {1: kernel, 2: "other(float*)", 3: "cudaLaunchKernel_v7000", 4: "step", 8: ENVIRONMENT, 9: COMMAND}
    texts |= {5: f"/home/{SECRET}/program", 6: "0x7f00c0de"}
    shape = {f"{what}{axis}": 4 if what == "grid" else 32 for what in ("grid", "block") for axis in "XYZ"}
    place = {"deviceId": 0, "streamId": 7, "globalPid": PID}
    names = {
        "mangledName": None,
        "graphNodeId": None,
        "registersPerThread": 16,
        "staticSharedMemory": 0,
        "dynamicSharedMemory": 64,
    }
    launches = [
        {
            "start": 1000 * n + 200,
            "end": 1000 * n + 700 + n,
            "demangledName": 1 + n % 2,
            "shortName": 1 + n % 2,
            "correlationId": n,
        }
        | place
        | names
        | shape
        for n in range(rows)
    ]
    copies = [
        {
            "start": 1000 * n + 50,
            "end": 1000 * n + 150,
            **place,
            "correlationId": 10_000 + n,
            "bytes": 4096,
            "copyKind": 1 + n % 2,
            "srcKind": 1,
            "dstKind": 2,
        }
        for n in range(0, rows, 4)
    ]
    calls = [
        {"start": 1000 * n, "end": 1000 * n + 100, "globalTid": PID + 5, "correlationId": n, "nameId": 3}
        for n in range(rows)
    ]
    ranges = [
        {
            "start": 4000 * n,
            "end": 4000 * n + 3900,
            "eventType": 59,
            "globalTid": PID + 5,
            "text": None if n else "first",
            "textId": 4,
        }
        for n in range(rows // 4)
    ]
    capture = [{"name": "COMMAND_LINE", "value": COMMAND}, {"name": "ENVIRONMENT", "value": ENVIRONMENT}]
    return {
        "CUPTI_ACTIVITY_KIND_KERNEL": launches,
        "CUPTI_ACTIVITY_KIND_MEMCPY": copies,
        "CUPTI_ACTIVITY_KIND_MEMSET": [
            {"start": 10, "end": 20, **place, "correlationId": 9999, "bytes": 64, "memKind": 2}
        ],
        "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
        "NVTX_EVENTS": ranges,
        "GPU_METRICS": [{"timestamp": 100 * n, "typeId": 1 << 8, "metricId": 1, "value": n} for n in range(rows)],
        "TARGET_INFO_GPU_METRICS": [{"typeId": 1 << 8, "metricId": 1, "metricName": "SMs Active [Throughput %]"}],
        "COMPOSITE_EVENTS": [{"id": n, "start": 1000 * n + 800, "globalTid": PID + 5} for n in range(rows)],
        "SAMPLING_CALLCHAINS": [{"id": n, "symbol": 6, "module": 5, "stackDepth": 0} for n in range(rows)],
        "PROFILER_OVERHEAD": [{"start": 5, "end": 50}],
        "DIAGNOSTIC_EVENT": [{"text": f"Process was launched, see /tmp/{SECRET}/out", "severity": 1}],
        "StringIds": [{"id": at, "value": text} for at, text in texts.items()],
        "META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION", "value": "3.16.1"}, {"name": "OUT", "value": SECRET}],
        "META_DATA_CAPTURE": capture,
        "TARGET_INFO_SYSTEM_ENV": [{"name": "Hostname", "value": SECRET}],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": 1_700_000_000_000_000_000}],
        "TARGET_INFO_GPU": [
            {"id": 0, "name": "A GPU", "smCount": 132, "totalMemory": 1 << 36, "clockRate": 1_980_000_000}
        ],
        "PROCESSES": [{"globalPid": PID, "pid": 5, "name": COMMAND}],
        "ThreadNames": [{"nameId": 8, "priority": 0, "globalTid": PID + 5}],
    }


@layout("nsys.sqlite", "nsys")
def nsys_sqlite(folder, kernel, rows):
    return write_sqlite(folder / "report.sqlite", nsys_tables(kernel, rows))


@layout("nsys parquetdir", "nsys")
def nsys_parquetdir(folder, kernel, rows):
    (folder / "report").mkdir()
    for name, table in nsys_tables(kernel, rows).items():
        pq.write_table(pa.Table.from_pylist(table), folder / "report" / f"{name}.parquet", row_group_size=8)
    return folder / "report"


@layout("nsys arrowdir", "nsys")
def nsys_arrowdir(folder, kernel, rows):
    (folder / "report").mkdir()
    for name, table in nsys_tables(kernel, rows).items():
        arrow = pa.Table.from_pylist(table)
        with pa.ipc.new_stream(str(folder / "report" / f"{name}.arrow"), arrow.schema) as writer:
            writer.write_table(arrow, max_chunksize=8)
    return folder / "report"


@layout("nsys.arrow", "nsys")
def nsys_arrow(folder, kernel, rows):
    with pa.OSFile(str(folder / "report.arrow"), "wb") as file:
        for name, table in nsys_tables(kernel, rows).items():
            arrow = pa.Table.from_pylist(table)
            arrow = arrow.replace_schema_metadata({"table_name": name})
            with pa.ipc.new_stream(file, arrow.schema) as writer:
                writer.write_table(arrow)
    return folder / "report.arrow"


@layout("nsys.jsonl", "nsys", lines=True)
def nsys_jsonl(folder, kernel, rows):
    tables = nsys_tables(kernel, rows)
    at = {1: 0, 2: 1, 3: 2, 4: 3}
    lines = [
        {"data": [kernel, "other(float*)", "cudaLaunchKernel_v7000", "step", ENVIRONMENT, COMMAND], "files": [SECRET]}
    ]
    for row in tables["CUPTI_ACTIVITY_KIND_KERNEL"]:
        inner = {name: str(at[row[name]]) for name in ("demangledName", "shortName")} | {
            "gridX": row["gridX"],
            "blockX": 32,
        }
        outer = {
            "startNs": str(row["start"]),
            "endNs": str(row["end"]),
            "deviceId": 0,
            "streamId": "7",
            "globalPid": str(PID),
        }
        lines.append(
            {"Type": 79, "CudaEvent": outer | {"correlationId": row["correlationId"], "eventClass": 3, "kernel": inner}}
        )
    for row in tables["CUPTI_ACTIVITY_KIND_MEMCPY"]:
        outer = {
            "startNs": str(row["start"]),
            "endNs": str(row["end"]),
            "deviceId": 0,
            "streamId": "7",
            "globalPid": str(PID),
        }
        lines.append(
            {"Type": 79, "CudaEvent": outer | {"eventClass": 1, "memcpy": {"sizebytes": "4096", "copyKind": 1}}}
        )
    for row in tables["CUPTI_ACTIVITY_KIND_RUNTIME"]:
        times = {"startNs": str(row["start"]), "endNs": str(row["end"]), "globalTid": str(PID + 5)}
        call = times | {"correlationId": row["correlationId"], "eventClass": 0, "name": "2"}
        lines.append({"Type": 48, "TraceProcessEvent": call})
    lines.append({"Type": 27, "CommEvent": {"Args": [COMMAND], "Command": SECRET}})
    lines.append({"Type": 49, "DiagnosticEvent": {"Text": f"see /tmp/{SECRET}"}})
    lines.append(
        {
            "Type": 59,
            "NvtxEvent": {
                "Type": 59,
                "Timestamp": "10",
                "EndTimestamp": "900",
                "Text": "range",
                "GlobalTid": str(PID + 5),
            },
        }
    )
    lines.append({"data": [{"nameIdx": 4, "priority": 0, "globalTid": str(PID + 5)}]})
    path = folder / "report.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n", encoding="utf-8")
    return path


@layout("nsys recipe", "nsys")
def nsys_recipe(folder, kernel, rows):
    names = [
        "Name",
        "Projected Start",
        "Projected Duration",
        "Orig Start",
        "NumGPUOps",
        "PID",
        "TID",
        "Rank",
        "RangeStack",
    ]
    table = [dict(zip(names, [kernel, 10 * n, 5, 1.0, 1, 7, 8, 0, f":{n}"], strict=True)) for n in range(rows)]
    (folder / "out").mkdir()
    pq.write_table(pa.Table.from_pylist(table), folder / "out" / "trace.parquet")
    pq.write_table(pa.table({"File": [f"/home/{SECRET}/report.nsys-rep"]}), folder / "out" / "files.parquet")
    device = {
        "('TARGET_INFO_NVTX_CUDA_DEVICE', 'name')": ["Xla:#global=2,process=2#"],
        "('TARGET_INFO_SYSTEM_ENV', 'value')": [SECRET],
    }
    pq.write_table(pa.table(device), folder / "out" / "device-metadata.parquet")
    return folder / "out"


# Nsight Compute

LONG = (
    "ID,Process ID,Process Name,Host Name,Kernel Name,Context,Stream,Block Size,Grid Size,Device,CC,Section Name,Metric"
    " Name,Metric Unit"
)
LONG += ",Metric Value,Rule Name,Rule Type,Rule Description"
PROF = f"==PROF== Connected to process 5 (/home/{SECRET}/python)\nexport TOKEN={SECRET}\n"


@layout("ncu long", "ncu", lines=True)
def ncu_long(folder, kernel, rows):
    lines = [quoted(LONG.split(","))]
    for n in range(rows):
        head = [n, 5, f"/home/{SECRET}/app", f"{SECRET}.cluster", kernel, 1, 7, "(32, 1, 1)", "(4, 1, 1)", 0, "8.0"]
        for metric, unit, value in (
            ("gpu__time_duration.sum", "nsecond", f"{1000 + n:,}"),
            ("dram__bytes.sum", "Kbyte", f"{n}.50"),
        ):
            lines.append(quoted([*head, "Section", metric, unit, value]) + ",")
        lines.append(quoted([*head, "Sections", "", "", "", "Rule", "INF", f"see {SECRET}"]))
    (folder / "capture.csv").write_text(PROF + "\n".join(lines) + "\n", encoding="utf-8")
    return folder / "capture.csv"


@layout("ncu wide", "ncu", lines=True)
def ncu_wide(folder, kernel, rows):
    identity = LONG.split(",")[:11]
    lines = [quoted([*identity, "gpu__time_duration.sum", "dram__bytes.sum"]), quoted([""] * 11 + ["usecond", "Mbyte"])]
    for n in range(rows):
        head = [n, 5, f"/home/{SECRET}/app", f"{SECRET}.cluster", kernel, 1, 7, "(32, 1, 1)", "(4, 1, 1)", 0, "8.0"]
        lines.append(quoted([*head, f"1,{n + 100}.5", f"{n}.25"]))
    (folder / "raw.csv").write_text(PROF + "\n".join(lines) + "\n", encoding="utf-8")
    return folder / "raw.csv"


@layout("ncu pivot", "ncu", lines=True, secret=False)
def ncu_pivot(folder, kernel, rows):
    lines = ["Metric Name,dram__bytes.sum,gpu__time_duration.sum,sm__throughput.avg.pct_of_peak_sustained_elapsed"]
    lines += [f"{n},{4096 * n}.0,{1000 + n}.0,{n}.5" for n in range(rows)]
    (folder / "pivot.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "pivot.csv"


# CUPTI


@layout("nvprof database", "cupti")
def nvprof(folder, kernel, rows):
    shape = {f"{what}{axis}": 4 for what in ("grid", "block") for axis in "XYZ"} | {"registersPerThread": 32}
    place = {"deviceId": 0, "streamId": 7}
    launches = [
        {
            "_id_": n + 1,
            "start": 10**18 + 1000 * n + 300,
            "end": 10**18 + 1000 * n + 900,
            **place,
            "correlationId": n,
            "name": 1,
            **shape,
        }
        for n in range(rows)
    ]
    calls = [
        {
            "_id_": n + 1,
            "cbid": 211,
            "start": 10**18 + 1000 * n,
            "end": 10**18 + 1000 * n + 100,
            "threadId": 9,
            "correlationId": n,
        }
        for n in range(rows)
    ]
    copy = {
        "copyKind": 1,
        "srcKind": 1,
        "dstKind": 3,
        "bytes": 4096,
        "start": 10**18,
        "end": 10**18 + 90,
        **place,
        "correlationId": 900,
    }
    tables = {
        "StringTable": [
            {"_id_": at, "value": text} for at, text in enumerate([kernel, "A GPU", f"--token={SECRET}"], 1)
        ],
        "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL": launches,
        "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
        "CUPTI_ACTIVITY_KIND_MEMCPY": [{"_id_": 1, **copy}],
        "CUPTI_ACTIVITY_KIND_OVERHEAD": [{"_id_": 1, "start": 10**18, "end": 10**18 + 10}],
        "CUPTI_ACTIVITY_KIND_DEVICE": [
            {"id": 0, "name": 2, "numMultiprocessors": 15, "globalMemorySize": 1 << 34, "coreClockRate": 745_000}
        ],
        "CUPTI_ACTIVITY_KIND_ENVIRONMENT": [{"_id_": 1, "deviceId": 0, "timestamp": 1, "data": SECRET.encode()}],
    }
    return write_sqlite(folder / "run.nvvp", tables)


@layout("nvprof csv", "cupti", lines=True)
def nvprof_csv(folder, kernel, rows):
    header = [
        "Start",
        "Duration",
        "Grid X",
        "Grid Y",
        "Grid Z",
        "Block X",
        "Block Y",
        "Block Z",
        "Registers Per Thread",
        "Static SMem",
        "Size",
    ]
    lines = [
        f"==2119== NVPROF is profiling process 2119, command: {COMMAND}",
        f"==2119== Profiling application: {COMMAND}",
    ]
    lines += [quoted([*header, "Device", "Context", "Stream", "Name", "Correlation_ID"]), "ms,us,,,,,,,,B,KB,,,,,"]
    device = '"GeForce RTX 2080 Ti (0)","1","7"'
    lines += [f"{0.01 * n:.6f},{1 + n}.125000,4,1,1,32,1,1,16,64,,{device},{quoted([kernel, n])}" for n in range(rows)]
    lines.append(f'{0.01 * rows:.6f},3.000000,,,,,,,,,4.000000,{device},"[CUDA memcpy HtoD]",999')
    (folder / "trace.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "trace.csv"


@layout("cupti dump", "cupti", lines=True)
def cupti_dump(folder, kernel, rows):
    table = [[1000 * n, 1000 * n + 400, 0, 7, n, 77, kernel, 4, 1, 1, 32, 1, 1, COMMAND] for n in range(rows)]
    header = (
        "start,end,deviceId,streamId,correlationId,processId,name,gridX,gridY,gridZ,blockX,blockY,blockZ,commandLine"
    )
    return write_cells(folder / "kernels.csv", header, table)
