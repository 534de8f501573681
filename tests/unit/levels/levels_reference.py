"""Levels by plain loops over rows and over every nanosecond: slow, and not by our arithmetic. And made-up exports to
try them on.
"""

import json
from collections import defaultdict

import numpy as np
import pyarrow as pa

from causeway.core.codes import KERNEL_CLASSES
from causeway.core.tables import read_table, write_table
from variability_tables import table_of, write_export

DIRECTION = {1: "host_to_device", 2: "device_to_host", 8: "on_device", 10: "on_device", 255: "memset"}


def write_run(folder, rows=60, exports=2, seed=0, span=2_000_000, samples=True):
    """Write the tables of a run: kernels of three classes, several streams, ranks and devices, long and empty
    launches; return folders.
    """
    rng = np.random.default_rng(seed)
    folders = {}
    for export in range(exports):
        home = folder / "tables" / str(export)
        start = np.sort(rng.integers(0, span, rows)) + 5_000
        duration = np.where(rng.random(rows) < 0.1, rng.integers(0, span // 3, rows), rng.integers(0, 30_000, rows))
        facts = {"start_ns": start, "duration_ns": duration, "rank": 10 * export + rng.integers(0, 2, rows)}
        facts |= {"device": rng.integers(0, 2, rows), "stream": rng.choice([7, 13, 300], rows)}
        launches = facts | {"configuration": rng.integers(0, 6, rows)}
        order = np.argsort(begun := rng.integers(0, span, rows // 2), kind="stable")
        moved = {
            "start_ns": begun[order],
            "duration_ns": rng.integers(0, 90_000, rows // 2),
            "copy_kind": rng.choice([1, 2, 8, 10, 255], rows // 2),
        }
        moved |= {
            "rank": 10 * export + rng.integers(0, 2, rows // 2),
            "device": rng.integers(0, 2, rows // 2),
            "stream": np.full(rows // 2, 7),
        }
        moved["bytes"] = pa.array(rng.integers(0, 1 << 33, rows // 2), mask=rng.random(rows // 2) < 0.2)
        shapes = [(f"k{k // 2}", {"grid_x": k % 2}) for k in range(6)]
        write_export(home, launches, moved, configurations=shapes, ranks=[10 * export, 10 * export + 1])
        kernels = read_table(home / "kernels.parquet", "kernels").set_column(4, "class", pa.array(KERNEL_CLASSES))
        write_table(kernels, home / "kernels.parquet", "kernels")
        if samples:
            times = np.sort(rng.integers(0, span, rows))
            names = rng.choice(["dram_ratio", "clock_hz"], rows)
            value = np.where(names == "clock_hz", rng.integers(10**9, 2 * 10**9, rows), rng.integers(0, 800, rows) / 8)
            sampled = {"time_ns": times, "rank": np.full(rows, 10 * export), "metric": names.tolist(), "value": value}
            write_table(table_of("samples", sampled), home / "samples.parquet", "samples")
        folders[str(export)] = home
    clocks = {"exports": {str(export): {"shift_ns": 1_000 * export - 500} for export in range(exports)}}
    (folder / "clocks.json").write_text(json.dumps(clocks), encoding="utf-8")
    return folders, clocks


def raw_values(folders, clocks):
    """Return (begin on the time line, rank, device, stream, metric, value) of every value."""
    launches = []
    found = []
    totals = defaultdict(list)
    for export, folder in folders.items():
        shift = clocks["exports"][export]["shift_ns"]
        kernels = {row["kernel"]: row for row in read_table(folder / "kernels.parquet", "kernels").to_pylist()}
        shapes = {
            row["configuration"]: row
            for row in read_table(folder / "configurations.parquet", "configurations").to_pylist()
        }
        for row in read_table(folder / "launches.parquet", "launches").to_pylist():
            kernel = kernels[shapes[row["configuration"]]["kernel"]]
            key = (kernel["name"], shapes[row["configuration"]]["grid_x"])
            totals[key].append(row["duration_ns"])
            launches.append(
                (
                    row["start_ns"] + shift,
                    row["rank"],
                    row["device"],
                    row["stream"],
                    kernel["class"],
                    key,
                    row["duration_ns"],
                )
            )
        for row in read_table(folder / "transfers.parquet", "transfers").to_pylist():
            if row["bytes"] is not None:
                where = (row["start_ns"] + shift, row["rank"], row["device"], row["stream"])
                found.append((*where, f"{DIRECTION[row['copy_kind']]}_bytes", row["bytes"]))
        if (folder / "samples.parquet").is_file():
            for row in read_table(folder / "samples.parquet", "samples").to_pylist():
                found.append((row["time_ns"] + shift, row["rank"], row["device"], None, row["metric"], row["value"]))
    for start, rank, device, stream, kind, key, duration in launches:
        found.append((start, rank, device, stream, f"{kind}_duration", duration))
        n = len(totals[key])
        total = sum(totals[key])
        found.append((start, rank, device, stream, "variability", abs(duration - (2 * total + n) // (2 * n))))
    return found, min(launch[0] for launch in launches)


def raw_busy(folders, clocks, origin, width):
    """Return busy ns by (begin of cell, rank, device) and kind, by painting every 100 ns of a time line; times must
    be multiples of it.
    """
    painted = defaultdict(lambda: defaultdict(set))
    active = defaultdict(int)
    for export, folder in folders.items():
        shift = clocks["exports"][export]["shift_ns"] - origin
        kernels = {row["kernel"]: row["class"] for row in read_table(folder / "kernels.parquet", "kernels").to_pylist()}
        shapes = {
            row["configuration"]: row["kernel"]
            for row in read_table(folder / "configurations.parquet", "configurations").to_pylist()
        }
        for name in ("launches", "transfers"):
            for row in read_table(folder / f"{name}.parquet", name).to_pylist():
                kind = kernels[shapes[row["configuration"]]] if name == "launches" else "copy"
                begin = row["start_ns"] + shift
                end = row["start_ns"] + shift + row["duration_ns"]
                ticks = range(begin // 100, end // 100)
                device = (row["rank"], row["device"])
                painted[device]["copy" if kind == "memory" else kind].update(ticks)
                what = f"active_{kind}" if name == "launches" else DIRECTION[row["copy_kind"]]
                for tick in ticks if kind != "memory" else ():
                    active[tick * 100 // width, *device, what] += 100
    found = dict(active)
    for device, kinds in painted.items():
        compute = kinds["compute"]
        talk = kinds["communication"]
        copy = kinds["copy"]
        for what, ticks in (
            ("compute", compute),
            ("communication", talk),
            ("exposed_communication", talk - compute),
            ("exposed_copy", copy - compute - talk),
        ):
            for tick in ticks:
                key = (tick * 100 // width, *device, what)
                found[key] = found.get(key, 0) + 100
    return found
