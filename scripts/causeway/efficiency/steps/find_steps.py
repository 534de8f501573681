"""What `find_steps` does: choose where the steps of a dataset come from, measure them, and say why some are slow; over
MPI ranks, each of which reads some exports.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.clock import Clock, clocks_of
from causeway.core.codes import GRAPH_RANGE
from causeway.core.reduced import EFFICIENCY, has_time_line, why_not
from causeway.core.tables import SCHEMAS, folder_bytes, open_table, read_json, write_json, write_table
from causeway.core.vocabulary import CALLED_SINCE, FEWEST_OF_P99
from causeway.efficiency.device_time import event_streams
from causeway.efficiency.device_time.measure import Opened, open_export
from causeway.efficiency.device_time.regions import MOST_INSTANCES
from causeway.efficiency.steps.annotated import Family, annotated_steps, choose_family, step_ranges
from causeway.efficiency.steps.launch_moments import (
    IN_NO_STEP,
    called_launches,
    called_since,
    ends_of_calls,
    launch_moments,
)
from causeway.efficiency.steps.rank_steps import RankSteps
from causeway.efficiency.steps.repeats import MOST_LAUNCHES, find_repeats, windows_of
from causeway.efficiency.steps.step_causes import causes_of, slow_steps, warm_up
from causeway.efficiency.steps.step_parts import StepParts, measure_parts
from causeway.numeric.mpi import Ranks, merged

ANNOTATIONS = "annotations"
REPEATS = "repeats"
GRAPHS = "graphs"
FEWEST_EXECUTIONS = 3
"""Executions of one graph that count as steps: as many as repeats of launches have to be."""
OF_GRAPHS = "no launches repeat: each execution of the graph with the most time is a step"
"""What is said of a rank whose steps are executions of a graph."""
HELD = {"rank": np.uint32, "kernel": np.int32, "moment": np.int64, "until": np.int64}
"""Columns of the launches that are searched for repeats."""


def find_steps(
    name: str,
    folders: Sequence[str | Path],
    clocks_file: str | Path,
    seed: int,
    out_json: str | Path,
    out_table: str | Path,
    out_causes: str | Path,
    *,
    ranks: Ranks | None = None,
) -> None:
    """Write `steps.json`, `steps.parquet` and `step_causes.parquet` of a dataset; without steps the tables are empty
    and the document says why.

    Every export is read by one rank: the results are the same, to the byte, on any number of ranks.

    Parameters
    ----------
    name : str
    folders : sequence of path
        Folders of tables, in the sheet's order.
    clocks_file : path
    seed : int
        Of the resamples behind the intervals of causes.
    out_json, out_table, out_causes : path
    ranks : Ranks or None
        The processes that share the work; None for this one alone. Rank 0 writes.

    Raises
    ------
    CausewayError
        On all ranks, if anything failed on one.
    """
    ranks = ranks or Ranks()
    filtered = ranks.of_first(lambda: why_not(folders, EFFICIENCY))
    usable = [] if filtered else [Path(folder) for folder in folders]
    with ranks.together():
        indices = ranks.share_of([folder_bytes(folder) for folder in usable])
        here = {index: export for index in indices if (export := _with_launches(usable[index])) is not None}
        candidates = {index: (list(export.windows), step_ranges(export.folder)) for index, export in here.items()}
    everywhere = merged(ranks.exchange(candidates))
    numbers = sorted({rank for windows, _ in everywhere.values() for rank in windows})
    family = choose_family([ranges for _, ranges in everywhere.values()], len(numbers))
    with ranks.together():
        clocks = clocks_of(read_json(clocks_file))
        measured = {index: _measured(export, family, clocks, seed, name) for index, export in here.items()}
        others = [] if filtered is None else [Path(folders[index]) for index in ranks.share_of([1] * len(folders))]
        by_calls = [entry for folder in others if not _has_time_line(folder) for entry in steps_by_calls(folder)]
    collected = ranks.collect((measured, by_calls))
    with ranks.together():
        if collected is not None:
            judged = {rank: RankFound(entry=_entry({"rank": rank}, None)) for rank in numbers}
            for of_export in merged([part for part, _ in collected]).values():
                judged |= of_export
            called = sorted((entry for _, part in collected for entry in part), key=lambda entry: entry["rank"])
            opened = bool(everywhere)
            _write_results(name, family, judged, called, filtered, opened, (out_json, out_table, out_causes))


@dataclass(frozen=True, kw_only=True)
class RankFound:
    """What is said of the steps of a rank.

    Attributes
    ----------
    entry : dict
        For `steps.json`.
    rows : Table or None
        Columns of `steps.parquet`; None without steps.
    slow : list of dict
        `step_causes.slow_steps`.
    called_since : int or None
        Start of its first launch whose call is known, ns on the dataset's time line; None where launches belong to
        steps by their starts.
    """

    entry: dict
    rows: pa.Table | None = None
    slow: list[dict] = field(default_factory=list)
    called_since: int | None = None


def _with_launches(folder: Path) -> Opened | None:
    """Return an export that has launches with times, opened."""
    return open_export(folder) if (folder / "launches.parquet").is_file() else None


def _parts_of(opened: Opened, family: Family | None) -> tuple[dict[int, dict], dict[int, StepParts], Mapping[int, int]]:
    """Return what is known of the steps of each rank of an export, their parts, and since when its launches have
    calls.
    """
    judged: dict[int, dict] = {rank: {"rank": rank} for rank in opened.windows}
    since = called_since(opened.folder, annotated=family is not None)
    steps = _annotated(opened, family, judged) if family else _repeated(opened, judged, since)
    if not family and not steps:
        steps = _executed(opened, judged)
    return judged, measure_parts(opened, steps, since) if steps else {}, since


def steps_after_warm_up(folder: str | Path) -> int:
    """Return how many steps behind the warm-up an export alone has, of the rank with most; 0 where none are seen.

    Parameters
    ----------
    folder : path
        Of its tables.
    """
    opened = None if why_not([folder], EFFICIENCY) else _with_launches(Path(folder))
    if opened is None:
        return 0
    family = choose_family([step_ranges(opened.folder)], len(opened.windows))
    _, parts, _ = _parts_of(opened, family)
    return max((int((~warm_up(own)).sum()) for own in parts.values()), default=0)


def _measured(
    opened: Opened, family: Family | None, clocks: Mapping[str, Clock], seed: int, dataset: str
) -> dict[int, RankFound]:
    """Return what is said of the steps of each rank of an export: little, whatever the number of its launches."""
    judged, parts, since = _parts_of(opened, family)
    clock = clocks[opened.export]
    measured = {}
    for rank, entry in judged.items():
        own = parts.get(rank)
        rows = None if own is None else _rows(own, clock)
        slow = [] if own is None else slow_steps(own, seed, dataset)
        by_calls = rank in since and (own is None or own.windows is not None)
        called = int(clock.aligned(since[rank])) if by_calls else None
        measured[rank] = RankFound(
            entry=_entry(entry, own, opened.windows[rank]), rows=rows, slow=slow, called_since=called
        )
    return measured


def _write_results(
    name: str,
    family: Family | None,
    summaries: Mapping[int, RankFound],
    by_calls: Sequence[dict],
    filtered: str | None,
    opened: bool,
    paths: tuple[str | Path, str | Path, str | Path],
) -> None:
    """Write the document, the steps and their causes."""
    out_json, out_table, out_causes = paths
    tables = [summaries[rank].rows for rank in sorted(summaries) if summaries[rank].rows is not None]
    reason = filtered or ("no export has launches with times" if not opened else None)
    if family and not tables:
        reason = f"no launch lies in the ranges {family.name}"
    if not family and opened and not tables:
        of_ranks = {summary.entry["reason"] for summary in summaries.values()}
        reason = "no range names a step, and no steps are seen in the launches"
        reason += f": {of_ranks.pop()}" if len(of_ranks) == 1 else ""
    is_of_graphs = any(summary.entry["reason"] == OF_GRAPHS for summary in summaries.values())
    causes = causes_of([step for rank in sorted(summaries) for step in summaries[rank].slow])
    document = {
        "dataset": name,
        "source": None if not tables else ANNOTATIONS if family else GRAPHS if is_of_graphs else REPEATS,
        "ranges": family.name if family and tables else None,
        "reason": reason,
        "ranks": [summary.entry for summary in summaries.values()],
        "p99_ns": _p99(tables),
        "by_calls": list(by_calls),
        "slow": causes.slow,
    }
    write_json(document, out_json, schema="steps")
    facts = {"dataset": name}
    called = {
        rank: summary.called_since for rank, summary in sorted(summaries.items()) if summary.called_since is not None
    }
    rows = pa.concat_tables([SCHEMAS["steps"].empty_table(), *tables])
    write_table(rows, out_table, "steps", metadata=facts | {CALLED_SINCE: json.dumps(called)})
    rows = pa.Table.from_pylist(causes.rows, SCHEMAS["step_causes"])
    write_table(rows, out_causes, "step_causes", metadata=facts)


def _p99(tables: Sequence[pa.Table]) -> int | None:
    """Return the 99th percentile of the durations of all ranks' steps, those of the warm-up left out unless all are of
    it; None of few.
    """
    if not tables:
        return None
    rows = pa.concat_tables(tables)
    duration = rows.column("duration_ns").to_numpy()
    first = rows.column("warm_up").to_numpy()
    usual = duration if first.all() else duration[~first]
    return int(np.quantile(usual, 0.99)) if usual.size >= FEWEST_OF_P99 else None


def _has_time_line(folder: Path) -> bool:
    return has_time_line(read_json(folder / "capabilities.json"))


def steps_by_calls(folder: Path) -> list[dict]:
    """Return what belongs to the annotated steps of each rank of an export by the calls that launched it, as `by_calls`
    of the document has it: durations and calls are known where the times of launches are not those of the program.
    """
    ranges = step_ranges(folder)
    ranks = {rank for _, rank, _ in ranges.count}
    family = choose_family([ranges], len(ranks))
    if family is None:
        return []
    steps = annotated_steps(folder, family)
    launches, time = (
        {rank: np.zeros(windows.start.size, np.int64) for rank, windows in steps.items()} for _ in range(2)
    )
    for rank, called, duration in called_launches(folder) if steps else ():
        for owner in steps:
            step = steps[owner].of(called[rank == owner])
            np.add.at(launches[owner], step[step >= 0], 1)
            np.add.at(time[owner], step[step >= 0], duration[rank == owner][step >= 0])
    return [
        {
            "rank": rank,
            "ranges": family.name,
            "steps": int(many.size),
            "empty": int((many == 0).sum()),
            "launches": _ends_and_middle(many),
            "kernel_ns": _ends_and_middle(time[rank]),
        }
        for rank, many in launches.items()
        if many.any()
    ]


def _ends_and_middle(values: np.ndarray) -> list[int]:
    """Return the least, the median (the lower of two) and the most of integers."""
    ordered = np.sort(values)
    return ordered[[0, (values.size - 1) // 2, -1]].tolist()


def _annotated(opened: Opened, family: Family, judged: Mapping[int, dict]) -> dict[int, RankSteps]:
    by_rank = annotated_steps(opened.folder, family)
    for rank in opened.windows:
        judged[rank] |= {"reason": None if rank in by_rank else f"it has no ranges {family.name}"}
    return {rank: steps for rank, steps in by_rank.items() if rank in opened.windows}


def _repeated(opened: Opened, judged: Mapping[int, dict], since: Mapping[int, int]) -> dict[int, RankSteps]:
    """Return the steps that repeats of the launches show, by rank, and note how sure they are."""
    with open_table(opened.folder / "launches.parquet", "launches") as file:
        if file.metadata.num_rows > MOST_LAUNCHES:
            for rank in opened.windows:
                judged[rank] |= {"reason": f"more than {MOST_LAUNCHES:,} launches are not searched; annotate the steps"}
            return {}
        rows = {name: np.empty(file.metadata.num_rows, kind) for name, kind in HELD.items()}
    n = 0
    for block in launch_moments(opened.folder, since):
        for name, values in rows.items():
            values[n : n + block["start"].size] = block[name]
        n += block["start"].size
    rows = {name: values[:n] for name, values in rows.items()}
    steps = {}
    for rank in sorted(opened.windows):
        kernel, moment, until = _in_order(rows, rank)
        gap = moment.copy()
        gap[:1] = 0
        gap[1:] -= np.maximum.accumulate(until)[:-1]
        repeats = find_repeats(kernel, gap)
        judged[rank] |= {
            "period": repeats.period,
            "confidence": repeats.confidence,
            "coverage": repeats.coverage,
            "reason": repeats.reason,
        }
        if repeats.first.size:
            first = moment[repeats.first]
            free = ends_of_calls(opened.folder, rank, first) if rank in since else np.full(first.size, IN_NO_STEP)
            start, end = windows_of(repeats, moment, until, free)
            steps[rank] = RankSteps(rank=rank, number=np.arange(start.size), start=start, end=end)
    return steps


def _executed(opened: Opened, judged: Mapping[int, dict]) -> dict[int, RankSteps]:
    """Return executions of the graph with the most time of each rank as its steps, where the launches show none: a
    program that runs in a graph makes one execution a step. A step lasts until the next one begins.
    """
    if not opened.graphs:
        return {}
    times: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for batch in event_streams.chunks(opened.folder, "ranges", ["start_ns", "duration_ns", "rank", "kind", "name"]):
        kinds = batch.column("kind").to_pylist()
        rows = zip(
            *(batch.column(name).to_pylist() for name in ("rank", "name", "start_ns", "duration_ns")), strict=True
        )
        for kind, (rank, name, start, duration) in zip(kinds, rows, strict=True):
            if kind == GRAPH_RANGE and len(held := times.setdefault((rank, name), [])) < MOST_INSTANCES:
                held.append((start, start + duration))
    steps = {}
    for rank in sorted(opened.windows):
        own = {name: held for (of, name), held in times.items() if of == rank and len(held) >= FEWEST_EXECUTIONS}
        if own:
            name = min(own, key=lambda graph: (-sum(end - start for start, end in own[graph]), graph))
            start, end = (np.array(column, np.int64) for column in zip(*sorted(own[name]), strict=True))
            end[:-1] = start[1:]
            judged[rank]["reason"] = OF_GRAPHS
            steps[rank] = RankSteps(rank=rank, number=np.arange(start.size), start=start, end=end)
    return steps


def _in_order(rows: Mapping[str, np.ndarray], rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return kernel, moment and until of a rank's launches in the order of the moments, which without calls is that of
    the table already; without those that were called before the recording began.
    """
    of_rank = (rows["rank"] == rank) & (rows["moment"] != IN_NO_STEP)
    kernel, moment, until = (
        rows[name] if of_rank.all() else rows[name][of_rank] for name in ("kernel", "moment", "until")
    )
    if (moment[1:] < moment[:-1]).any():
        order = np.argsort(moment, kind="stable")
        return kernel[order], moment[order], until[order]
    return kernel, moment, until


def _rows(parts: StepParts, clock: Clock) -> pa.Table:
    """Return the rows of `steps.parquet` of one rank."""
    steps = parts.steps
    called = parts.windows if parts.on_device else None
    nothing = pa.nulls(steps.number.size, pa.int64())
    columns = {
        "rank": np.full(steps.number.size, steps.rank),
        "step": steps.number,
        "start_ns": clock.aligned(steps.start),
        "duration_ns": steps.end - steps.start,
        "warm_up": warm_up(parts),
        "busy_ns": parts.busy,
        "exposed_communication_ns": parts.parts["exposed_communication"],
        "exposed_copies_ns": parts.parts["exposed_copies"],
        "idle_ns": parts.idle,
        "launches": parts.launches,
        "called_ns": nothing if called is None else clock.aligned(called.start),
        "called_duration_ns": nothing if called is None else called.end - called.start,
    }
    schema = SCHEMAS["steps"]
    return pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def _entry(entry: Mapping, parts: StepParts | None, window: tuple[int, int] = (0, 0)) -> dict:
    """Return what the document says of a rank, with the time of its steps in its window, ns, own clock."""
    facts = {"period": None, "confidence": None, "coverage": None, "reason": None} | dict(entry)
    if parts is None:
        return facts | {"steps": 0, "warm_up": 0, "devices": 0, "time_ns": 0, "median_ns": None, "on_device": False}
    begin, last = window
    first = warm_up(parts)
    usual = (parts.steps.end - parts.steps.start)[~first]
    return facts | {
        "steps": int(first.size),
        "warm_up": int(first.sum()),
        "devices": parts.devices,
        "time_ns": int(np.maximum(np.minimum(parts.steps.end, last) - np.maximum(parts.steps.start, begin), 0).sum()),
        "median_ns": int(np.median(usual)) if usual.size else None,
        "on_device": parts.on_device,
    }
