"""What `replay_what_ifs` does: what-ifs of kernels, replayed, so that they say what a run gains, not only a kernel."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.codes import COMMUNICATION_KERNEL
from causeway.core.logs import LOG
from causeway.core.results import scope_folders
from causeway.core.tables import SCHEMAS, read_table, write_table
from causeway.core.vocabulary import SUPPORTED
from causeway.waiting.graph.graph_builder import Matched
from causeway.waiting.graph.linked_graph import linked_graph
from causeway.waiting.graph.nodes import Graph, Links
from causeway.waiting.graph.scratch import Scratch
from causeway.waiting.path.critical_path import CriticalPaths, measured
from causeway.waiting.replay.replay_table import limit_of
from causeway.waiting.replay.replayed import durations_of, replayed
from causeway.waiting.replay.what_if_durations import (
    LAUNCHES_IN_FLIGHT,
    NONE,
    KernelWhatIf,
    durations_under,
    with_moved_contention,
)
from causeway.waiting.taken_gpus import NOT_REPLAYED, taken_gpus

MOST_WHAT_IFS = 8
"""What-ifs of a dataset that are replayed, those that win most GPU time: as many as the overview shows."""
WIDENED = 1.5
"""How much further than the replayed changes the ends of the interval lie from the value."""
MOVED_ERROR = 0.5
"""By how much of itself the effect of contention that moved may be too small."""
Chosen = tuple[str, int, KernelWhatIf]
"""Kernel's id, row of its `whatif.parquet`, what-if."""


def replay_what_ifs(
    name: str,
    folders: Sequence[str | Path],
    clocks_file: str | Path,
    collectives: Sequence[Matched],
    steps_file: str | Path,
    scopes: str | Path,
    kernels_file: str | Path,
    out: str | Path,
) -> None:
    """Write `replayed_what_ifs.parquet`: what each of the best what-ifs of kernels does to the time of the run; without
    rows, the reason in the metadata, where the dataset has no graph.

    Parameters
    ----------
    name : str
    folders : sequence of path
        Folders of tables, in the sheet's order.
    clocks_file : path
    collectives : sequence of Matched
        Their times in the clocks of the exports.
    steps_file, scopes, kernels_file : path
        `steps.parquet`; `causal/scopes.json` and `kernels.parquet` of `kernel_variability`.
    out : path

    Raises
    ------
    OSError
        If the disk of `out` has no room for the graph: some 100 bytes per event, while this runs.
    TableError
        If a table is damaged.
    """
    chosen = what_ifs(scopes, kernels_file)
    facts = {"dataset": name}
    rows = []
    if chosen and taken_gpus(folders, clocks_file).others:
        facts |= {"why": NOT_REPLAYED}
    elif chosen:
        found, why = linked_graph(folders, clocks_file, collectives, full_names=True, scratch=Scratch(Path(out).parent))
        facts |= {"why": why} if why else {}
        steps = np.unique(read_table(steps_file, "steps", ["step"]).column(0).to_numpy()).size
        rows = replayed_rows(*found, chosen, steps) if found else []
        LOG.info("%d of %d what-ifs replayed", len(rows), len(chosen))
    write_table(pa.Table.from_pylist(rows, SCHEMAS["replayed_what_ifs"]), out, "replayed_what_ifs", metadata=facts)


def what_ifs(scopes: str | Path, kernels_file: str | Path) -> list[Chosen]:
    """Return the supported what-ifs of kernels that win GPU time, most first, the best of each kernel and feature; none
    of collectives, whose durations are mostly waiting, which a replay finds anew.
    """
    kernels = read_table(kernels_file, "kernel_summary").to_pylist()
    names = {row["kernel"]: row["name"] for row in kernels if row["class"] != COMMUNICATION_KERNEL}
    best: dict[tuple[str, str], tuple[float, Chosen]] = {}
    for folder in scope_folders(scopes):
        if folder.name not in names:
            continue
        for number, row in enumerate(read_table(folder / "whatif.parquet", "whatif").to_pylist()):
            if row["verdict"] != SUPPORTED or row["asked"] or (row["saved_low"] or 0) <= 0:
                continue
            key = folder.name, row["feature"]
            if key in best and best[key][0] >= row["saved_ns"]:
                continue
            p99 = row["p99_change_percent"]
            one = KernelWhatIf(
                kernel=names[folder.name],
                feature=row["feature"],
                to=row["to"],
                mean=row["mean_change_percent"] / 100,
                low=row["mean_change_low"] / 100,
                high=row["mean_change_high"] / 100,
                p99=None if p99 is None else p99 / 100,
            )
            best[key] = row["saved_ns"], (folder.name, number, one)
    ordered = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))
    return [chosen for _, (_, chosen) in ordered]


def replayed_rows(graph: Graph, links: Links, chosen: Sequence[Chosen], steps: int) -> list[dict]:
    """Return the rows of `replayed_what_ifs`, in the order of the what-ifs.

    The value is that of a replay in which other kernels that are slowed by launches in flight follow the launches that
    moved. The ends are those of the replays without that and with 1.5 times as much of it, times the interval of the
    change over the change, and `WIDENED`.
    """
    before = measured(graph, links)
    paths = CriticalPaths(graph, links)
    plain = durations_of(graph, links)
    runs = paths.runs(before)
    time = paths.run_time(before, runs)
    rows = []
    for kernel, number, one in chosen[:MOST_WHAT_IFS]:
        work = durations_under(graph, before, plain.work, one)
        if work is None:
            continue
        after = replayed(graph, links, replace(plain, work=work))
        alone = paths.run_time(after, runs) - time
        others = [other for _, _, other in chosen if _is_slowed_beside(other) and other.kernel != one.kernel]
        if others:
            work = with_moved_contention(graph, before, after, work, others)
            after = replayed(graph, links, replace(plain, work=work))
        whole = paths.run_time(after, runs) - time
        most = whole + MOVED_ERROR * (whole - alone)
        ends = [change * end / one.mean for change in (alone, whole, most) for end in (one.low, one.high)]
        low, high = (whole + WIDENED * (end - whole) for end in (min(ends), max(ends)))
        rows.append(
            {"kernel": kernel, "what_if": number, "feature": one.feature, "to": one.to, "time_ns": time}
            | {"predicted_ns": time + whole, "run_change_percent": 100 * whole / time}
            | {"run_change_low": 100 * low / time, "run_change_high": 100 * high / time}
            | {"saved_per_step_ns": -whole / steps if steps else None, "limited_by": limit_of(paths, after, runs)[0]}
        )
    return rows


def _is_slowed_beside(change: KernelWhatIf) -> bool:
    return change.feature == LAUNCHES_IN_FLIGHT and change.to == NONE
