"""Efficiency trees and bins of four ranks with ten million launches, ten million calls and 2.5 million copies each,
in one pass.
"""

import json
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
from tests.bench.inputs import ROOT, synthetic

MILLIONS = 10
RANKS = 4
MOST_MB = 1024
"""Memory that the pass may take at most, whatever the number of launches."""
MEASURE = """
import json, resource, sys, time
from pathlib import Path
sys.path.insert(0, "scripts")
from causeway.efficiency.measure_efficiency import measure_efficiency
folder = Path(sys.argv[1])
folders = sorted((folder / "tables").iterdir())
choices = {"bins": 240, "regions": 12}
cpu, wall = time.process_time(), time.perf_counter()
measure_efficiency("d", folders, folder / "clocks.json", choices, folder / "efficiency.json", folder / "efficiency.parquet")
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
print(json.dumps({"cpu": cpu, "wall": wall, "rss": int(peak) / 1024}))
"""


def with_calls(folder):
    """Add a table of calls to each export of a dataset: one per launch, which it made."""
    from causeway.core.tables import TableWriter
    from variability_tables import table_of

    for export in sorted((folder / "tables").iterdir()):
        if (export / "calls.parquet").exists():
            continue
        last = 0
        number = 0
        with TableWriter(export / "calls.parquet", "calls") as calls:
            columns = ["start_ns", "queue_ns", "rank", "correlation"]
            for batch in pq.ParquetFile(export / "launches.parquet").iter_batches(1 << 20, columns=columns):
                start, queue, rank, correlation = (batch.column(name).to_numpy() for name in columns)
                begin = np.maximum(np.maximum.accumulate(start - queue - 3_000), last)
                last = int(begin[-1])
                names = np.full(start.size, "cudaLaunchKernel", object)
                facts = {
                    "start_ns": begin,
                    "duration_ns": np.full(start.size, 3_000),
                    "rank": rank,
                    "call": np.arange(number, number + start.size),
                    "correlation": correlation,
                }
                number += start.size
                calls.write(table_of("calls", facts | {"thread": np.ones(start.size, np.int64), "name": names}))
    return folder


def described(folder):
    """Say in each export's capabilities and devices what the pass looks for."""
    from causeway.core.tables import write_table
    from variability_tables import table_of

    exports = {str(rank): {"shift_ns": 0, "ranks": [rank]} for rank in range(RANKS)}
    clocks = {"dataset": "d", "method": "session_start", "exports": exports, "residual_ns": None, "reason": "made so"}
    (folder / "clocks.json").write_text(json.dumps(clocks), encoding="utf-8")
    for export in sorted((folder / "tables").iterdir()):
        path = export / "capabilities.json"
        document = json.loads(path.read_text(encoding="utf-8"))
        starts = pq.read_table(export / "launches.parquet", columns=["start_ns", "duration_ns"])
        start, duration = (column.to_numpy() for column in starts.columns)
        first = min(
            int(start[0]),
            int(pq.ParquetFile(export / "transfers.parquet").read_row_group(0, ["start_ns"]).column(0)[0].as_py()),
        )
        time = {
            "has_start": True,
            "first_ns": first,
            "last_ns": int((start + duration).max()),
            "session_start_ns": None,
        }
        document |= {
            "export": export.name,
            "status": "read",
            "node": None,
            "issues": [],
            "ranks": [int(export.name)],
            "time": time,
        }
        document["tables"] = dict.fromkeys(("launches", "transfers", "calls"), 1)
        path.write_text(json.dumps(document), encoding="utf-8")
        write_table(
            table_of("devices", {"rank": [int(export.name)], "device": [0]}), export / "devices.parquet", "devices"
        )
    return folder


def trees(options):
    """Print CPU-seconds, wall seconds and peak memory, and whether that holds."""
    folder = described(with_calls(synthetic(options.folder, MILLIONS, RANKS)))
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    found = json.loads(done.stdout.splitlines()[-1])
    document = json.loads((folder / "efficiency.json").read_text(encoding="utf-8"))
    assert document["launch_path"]["launches"] == RANKS * MILLIONS * 1_000_000
    verdict = "holds" if found["rss"] <= MOST_MB else "FAILS"
    print(f"{RANKS} x {MILLIONS} M launches: {found['cpu']:.1f} CPU s, {found['wall']:.1f} s, {found['rss']:.0f} MB,"
          f" at most {MOST_MB}: {verdict}")  # fmt: skip
