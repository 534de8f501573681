"""Count what stands in exports of AMD's profilers."""

import gzip
import json
import re
from decimal import Decimal
from pathlib import Path

from data.counted import Counted, database, read_csv


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
                found.launch(
                    row["start_timestamp"], row["end_timestamp"], info["agent_id"]["handle"], names[info["kernel_id"]]
                )
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
                    found.launch(
                        int(row["Start_Timestamp"]), int(row["End_Timestamp"]), row["Agent_Id"], row["Kernel_Name"]
                    )
                found.names.add(row["Kernel_Name"])
            elif "Kernel_Name" in row and "Start_Timestamp" in row:
                found.launch(
                    int(row["Start_Timestamp"]), int(row["End_Timestamp"]), row["Agent_Id"], row["Kernel_Name"]
                )
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
        for start, end, device, kind, name in connection.execute(
            "SELECT start, end, gpuId, opType_id, description_id FROM rocpd_op"
        ):
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
        for start, end, device, kernel in connection.execute(
            "SELECT start, end, agent_id, kernel_id FROM rocpd_kernel_dispatch"
        ):
            found.launch(start, end, device, names[kernel])
        gpus = {row[0] for row in connection.execute("SELECT id FROM rocpd_info_agent WHERE type = 'GPU'")}
        for start, end, source, target in connection.execute(
            "SELECT start, end, src_agent_id, dst_agent_id FROM rocpd_memory_copy"
        ):
            found.transfers.append((start, end, target if target in gpus else source))
        found.rows["ranges"] = connection.execute("SELECT count(*) FROM rocpd_region").fetchone()[0]
    return found
