"""Exact sums on every export of a results folder: `python -m tests.bench.idle.every_export RESULTS` reads the tables of
each dataset and counts exports on which the reasons add up to the idle time of the efficiency, paths to the ranks'
spans, and a replay without a change gives the measured time.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
from tests.unit.waiting.graph_samples import path_rows

from causeway.core.clock import Clock
from causeway.core.tables import read_json
from causeway.efficiency.device_time.measure import measure, open_export
from causeway.waiting.graph.link_ranks import linked
from causeway.waiting.graph.linked_graph import read_graph
from causeway.waiting.idle.export_pass import explain_export
from causeway.waiting.path.critical_path import CriticalPaths, measured
from causeway.waiting.replay.replayed import durations_of, replayed


def has_times(folder):
    """Return whether an export has launches or transfers with times."""
    document = read_json(folder / "capabilities.json")
    if document["status"] == "refused" or not (document["time"] or {}).get("has_start"):
        return False
    return any((folder / f"{table}.parquet").is_file() for table in ("launches", "transfers"))


def idle_is_exact(folder):
    """Return whether the reasons of each device add up to its idle time."""
    found = explain_export(folder, {})
    opened = open_export(folder)
    total = measure(opened, [], np.array([0, 1])).total
    sums = Counter()
    for key, ns in found.totals.whole.items():
        sums[found.devices[key[0]]] += ns
    return all(sums[device] == total[row, 0] for row, device in enumerate(opened.devices))


def path_is_exact(folder):
    """Return whether each path is as long as its rank's span, and the replay without a change as the run."""
    graph, explicit = read_graph({folder: Clock()}, [])
    links = linked(graph, explicit)
    paths = CriticalPaths(graph, links)
    before = measured(graph, links)
    sums = Counter()
    for rank, _, _, _, _, ns in path_rows(paths, before, {}):
        sums[rank] += ns
    spans = [paths.span(before, row) for row in paths.ranks()]
    again = replayed(graph, links, durations_of(graph, links))
    same = [paths.span(again, row) for row in paths.ranks()] == spans
    return same and [sums[graph.ranks[row]] for row in paths.ranks()] == [end - begin for begin, end in spans]


def main():
    """Check every export and print the counts."""
    checks = {"reasons": idle_is_exact, "paths and replays": path_is_exact}
    right = Counter()
    used = [
        one.parent for one in sorted(Path(sys.argv[1]).glob("*/tables/*/capabilities.json")) if has_times(one.parent)
    ]
    for folder in used:
        for word, check in checks.items():
            exact = check(folder)
            right[word] += exact
            if not exact:
                print(f"{word} differ: {folder}", flush=True)
    print(", ".join(f"{word} exact on {right[word]} of {len(used)} exports" for word in checks))


if __name__ == "__main__":
    main()
