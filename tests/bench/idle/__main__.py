"""How fast the reasons of idle time are found: `python -m tests.bench.idle [MILLIONS]` writes an export of that many
launches with their calls, in which every launch ends a gap, and prints launches per CPU-second and peak memory: of the
reasons, then of the graph of dependencies and its critical path.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.unit.waiting.path_pieces import pieces_of

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

from causeway.core.clock import Clock
from causeway.core.tables import LAUNCH_SHAPE, SCHEMAS, TableWriter, write_table
from causeway.waiting.graph.link_ranks import linked
from causeway.waiting.graph.linked_graph import read_graph
from causeway.waiting.idle.export_pass import explain_export
from causeway.waiting.path.critical_path import CriticalPaths, measured

PIECE = 1 << 19


def write_export(folder, launches):
    """Write launches 10 µs apart, each called before the work before it ends or after, and their calls."""
    nulls = dict.fromkeys(LAUNCH_SHAPE)
    small = {"kernels": {"kernel": 0, "id": "k", "name": "k", "short_name": "k", "class": "compute"}}
    small |= {"configurations": {"configuration": 0, "kernel": 0, "label": None} | nulls}
    for name, row in small.items():
        table = pa.table({f.name: pa.array([row[f.name]], f.type) for f in SCHEMAS[name]}, schema=SCHEMAS[name])
        write_table(table, folder / f"{name}.parquet", name)
    random = np.random.default_rng(1)
    writers = {name: TableWriter(folder / f"{name}.parquet", name) for name in ("launches", "calls")}
    for first in range(0, launches, PIECE):
        n = min(PIECE, launches - first)
        number = np.arange(first, first + n)
        begin = 10_000 * number + random.integers(0, 2_000, n)
        call = begin - random.integers(3_000, 9_000, n)
        shared = {"rank": np.zeros(n, np.uint32), "correlation": number}
        writers["launches"].write(
            pa.table(
                shared
                | {"start_ns": begin, "duration_ns": random.integers(2_000, 7_000, n)}
                | {"configuration": np.zeros(n, np.uint32), "device": np.zeros(n, np.uint16)}
                | {"stream": np.zeros(n, np.uint32), "queue_ns": pa.nulls(n, pa.int64())}
                | {"range": pa.nulls(n, pa.uint32())}
            )
        )
        name = pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), ["cudaLaunchKernel"])
        order = np.argsort(call, kind="stable")
        times = {"start_ns": call[order], "duration_ns": np.full(n, 2_000), "correlation": number[order]}
        writers["calls"].write(pa.table(shared | times | {"thread": np.ones(n, np.uint32), "name": name}))
    for writer in writers.values():
        writer.__exit__(None)


def main():
    """Write the export, explain it, and print what that took."""
    launches = round(1e6 * float(sys.argv[1] if len(sys.argv) > 1 else 4))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_export(folder, launches)
        before = time.process_time()
        found = explain_export(folder, {})
        idle = sum(found.totals.whole.values())
        said(f"{launches:,} launches, {idle:,} ns idle", launches, before)
        before = time.process_time()
        graph, explicit = read_graph({folder: Clock()}, [])
        links = linked(graph, explicit)
        said("graph", launches, before)
        paths = CriticalPaths(graph, links)
        said(f"graph and path of {len(pieces_of(paths, measured(graph, links), 0)):,} pieces", launches, before)


def said(what, launches, before):
    """Print the launches per CPU-second since a moment, and the peak memory so far."""
    spent = time.process_time() - before
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what}: {spent:.2f} CPU-s, {launches / spent / 1e6:.2f} M/s, {memory:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
