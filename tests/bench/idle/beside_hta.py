"""Our critical paths beside HTA's: `python -m tests.bench.idle.beside_hta HTA.json FOLDER` reads what
`tests/bench/idle/hta_paths.py` wrote and prints percent of the path by class, HTA's and ours, for each trace on which
HTA runs. Ours is the part of the rank's path in the time of HTA's path.
"""

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from tests.unit.waiting.path_pieces import pieces_of

from causeway.core.clock import Clock
from causeway.core.tables import read_table
from causeway.readers.normalise import normalise
from causeway.waiting.graph.link_ranks import linked
from causeway.waiting.graph.linked_graph import read_graph
from causeway.waiting.path import walk
from causeway.waiting.path.critical_path import CriticalPaths, measured

CLASSES = {
    "cpu_bound": (walk.HOST, walk.LAUNCH, walk.BETWEEN_CALLS, walk.FIRST),
    "gpu_compute_bound": (walk.KERNEL, walk.COPY, walk.GRAPH),
    "gpu_communication_bound": (walk.COLLECTIVE, walk.LATE_RANK),
    "gpu_kernel_launch_overhead": (walk.START_UP,),
    "gpu_kernel_kernel_overhead": (walk.SAME_STREAM, walk.OTHER_STREAM, walk.QUEUED),
}
"""HTA's classes, and our pieces."""


def ours(trace, theirs):
    """Return ns of our path by HTA's classes, in the time of HTA's path."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "e0"
        normalise(trace, folder, export="e0", source=trace.name, rank=None, node=None)
        graph, explicit = read_graph({folder: Clock()}, [])
        step = None
        if theirs["step"] is not None:
            ranges = read_table(folder / "ranges.parquet", "ranges", ["start_ns", "name"]).to_pylist()
            step = min(row["start_ns"] for row in ranges if row["name"].startswith("ProfilerStep"))
    paths = CriticalPaths(graph, linked(graph, explicit))
    pieces = pieces_of(paths, measured(graph, paths.links), paths.ranks()[0])
    begin = pieces[0, 0]
    end = pieces[-1, 1]
    if step is not None:
        begin, end = (step + round(1000 * (theirs[key] - theirs["step"])) for key in ("begin", "end"))
    length = np.minimum(pieces[:, 1], end) - np.maximum(pieces[:, 0], begin)
    sums = Counter()
    for word, kinds in CLASSES.items():
        sums[word] = int(length[np.isin(pieces[:, 2], kinds) & (length > 0)].sum())
    return sums


def main():
    """Print one line for each trace."""
    traces = {path.name: path for path in Path(sys.argv[2]).rglob("*.json.gz")}
    for name, theirs in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")).items():
        if "error" in theirs:
            print(f"{name}: HTA ends with {theirs['error']}")
            continue
        found = ours(traces[name], theirs)
        whole = [sum(theirs["classes"].values()) or 1, sum(found.values()) or 1]
        shares = [
            f"{word} {100 * theirs['classes'].get(word, 0) / whole[0]:.1f} {100 * found[word] / whole[1]:.1f}"
            for word in CLASSES
        ]
        print(f"{name}: {whole[0] / 1e3:.2f} ms, ours {whole[1] / 1e6:.2f} ms: {'; '.join(shares)}", flush=True)


if __name__ == "__main__":
    main()
