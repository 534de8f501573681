"""All findings of an analysis, read from the files of its results."""

import importlib
import math
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from causeway import findings
from causeway.core.files.source_names import shown_sources
from causeway.core.results import (
    dataset_and_target,
    dataset_of,
    read_comparisons,
    read_rows_of_run,
    read_searches,
    relative,
    rows_by_rank,
)
from causeway.core.tables import read_json, read_table, table_metadata
from causeway.core.vocabulary import MEMORY_STALL
from causeway.findings.causes import cause_findings
from causeway.findings.comparison import comparison_findings
from causeway.findings.device_time.efficiency import gpu_time_ns, little_memory_stall
from causeway.findings.device_time.missing_launches import without_missing
from causeway.findings.device_time.recordings_apart import not_recorded
from causeway.findings.device_time.replay_savings import with_replays
from causeway.findings.device_time.step_waits import StepWait, idle_ranks, step_waits
from causeway.findings.device_time.steps import step_findings
from causeway.findings.device_time.waiting import waiting_findings, with_waits, without_replays
from causeway.findings.document import DatasetTime, summarise, with_steps
from causeway.findings.first_screen.screen import first_screens
from causeway.findings.quality import quality_findings, recording_findings
from causeway.findings.record import Analysis, Finding, findings_of
from causeway.findings.suggestions import of_graphed

for module in pkgutil.walk_packages(findings.__path__, f"{findings.__name__}."):
    importlib.import_module(module.name)  # what it makes findings from, it registers itself


@dataclass(frozen=True, kw_only=True)
class ResultFiles:
    """Files of an analysis that claims are made from, each kind in the order of the datasets; `steps` and
    `step_causes` belong together.
    """

    tables: Sequence[str | Path]
    quality: Sequence[str | Path]
    kernels: Sequence[str | Path]
    scopes: Sequence[str | Path]
    efficiency: Sequence[str | Path]
    stragglers: Sequence[str | Path]
    steps: Sequence[str | Path]
    step_tables: Sequence[str | Path]
    step_causes: Sequence[str | Path]
    waiting: Sequence[str | Path]
    critical_paths: Sequence[str | Path]
    replays: Sequence[str | Path]
    operators: Sequence[str | Path]
    collectives: Sequence[str | Path]
    comparisons: Sequence[str | Path]


def findings_document(files: ResultFiles, config_hash: str) -> dict:
    """Return the document `findings.json`; `config_hash` is hexadecimal."""
    measured = _analyses(files)
    efficiencies = [read_json(path) for path in files.efficiency]
    qualities = [read_json(path) for path in files.quality]
    steps = [read_json(path) for path in files.steps]
    found = [
        *_of_inputs(qualities, steps),
        *_of_targets(measured, efficiencies),
        *_of_device_time(files, efficiencies, qualities),
        *_of_steps(files, steps),
        *_of_comparisons(files),
    ]
    graphed = _graphed(efficiencies, qualities)
    found = [replace(one, suggestion=of_graphed(one.suggestion)) if one.dataset in graphed else one for one in found]
    return summarise(found, _times(measured, efficiencies, qualities, steps), config_hash, first_screens(files))


def _graphed(efficiencies: list[dict], qualities: list[dict]) -> set[str]:
    """Return the datasets that run in CUDA graphs for the most part: graphs that were traced as a whole have half of
    the busy time or more, or graphs half of the launches.
    """
    found = set()
    for document in efficiencies:
        devices = document["breakdown"].values() if not document["why"] else ()
        in_graphs, busy = (sum(one[key] for one in devices) for key in ("graph_ns", "busy_ns"))
        found |= {document["dataset"]} if in_graphs and 2 * in_graphs >= busy else set()
    for quality in qualities:
        launches = sum(issue["count"] for issue in quality["issues"] if issue["kind"] == "graph_launches")
        read = sum(export["rows"] for export in quality["exports"])
        found |= {quality["dataset"]} if launches and 2 * launches >= read else set()
    return found


def _of_inputs(qualities: list[dict], steps: list[dict]) -> list[Finding]:
    """Return which inputs could not be used, and which recordings have no times of the program."""
    shown = shown_sources(export["source"] for quality in qualities for export in quality["exports"])
    by_calls = {document["dataset"]: document["by_calls"] for document in steps}
    found = []
    for quality in qualities:
        found += quality_findings(quality, shown)
        found += recording_findings(quality, by_calls.get(quality["dataset"], ()))
    return found


def _of_device_time(files: ResultFiles, efficiencies: list[dict], qualities: list[dict]) -> list[Finding]:
    """Return how the recordings of ranks lie to each other, what device time is lost to and who is waited for, each
    loss with what a replay without it saves.
    """
    lost = _losses(efficiencies, files.waiting)
    lost += [finding for path in files.stragglers for finding in findings_of("stragglers", read_json(path))]
    replays = {dataset_of(path): read_table(path, "replay").to_pylist() for path in files.replays}
    measured = [one for one in efficiencies if not one["why"]]
    devices = {one["dataset"]: one["device"]["n_devices"] for one in measured}
    elapsed = {one["dataset"]: one["elapsed_ns"] for one in measured}
    lost = not_recorded(without_missing(lost, qualities), efficiencies)
    return with_replays(lost, replays, devices, elapsed)


def _of_steps(files: ResultFiles, steps: list[dict]) -> list[Finding]:
    """Return which steps are slow, and why."""
    waits = {dataset_of(path): path for path in files.waiting}
    found = []
    for document, path in zip(steps, files.step_causes, strict=True):
        behind = _waits_of_steps(waits.get(document["dataset"]), document)
        found += step_findings(document, read_table(path, "step_causes").to_pylist(), behind)
    return found


def _of_comparisons(files: ResultFiles) -> list[Finding]:
    """Return what changed from one run to another."""
    found = []
    for document, rows in read_comparisons(files.comparisons):
        found += comparison_findings(document, rows)
    return found


def _analyses(files: ResultFiles) -> list[Analysis]:
    """Return what is known of every dataset and target in which something was measured."""
    searches = read_searches(files.scopes)
    found = []
    for path in files.kernels:
        rows = read_table(path, "kernel_summary").to_pylist()
        unit = table_metadata(path).get("value_unit", "")
        if rows:  # else nothing was measured: a search over no launches claims nothing
            dataset, target = dataset_and_target(path)
            found.append(
                Analysis(
                    dataset=dataset,
                    target=target,
                    unit=unit,
                    kernels=rows,
                    kernels_table=relative(path, 3),
                    searches=searches.get((dataset, target), ()),
                )
            )
    return found


def _times(
    measured: list[Analysis], efficiencies: list[dict], qualities: list[dict], steps: list[dict]
) -> dict[str, DatasetTime]:
    """Return what the findings of every dataset are measured against: its GPU time, of its devices, which the explorer
    shows, or else of the launches that were measured in ns; the analyses that its inputs rule out, what a filter
    kept of them, and its steps.
    """
    found = {
        one.dataset: DatasetTime(gpu_ns=math.fsum(row["value_sum"] for row in one.kernels))
        for one in measured
        if one.unit == "ns"
    }
    for document in efficiencies:
        if gpu_ns := gpu_time_ns(document):
            found[document["dataset"]] = DatasetTime(gpu_ns=gpu_ns, explorer=True)
    for document in steps:
        known = found.get(document["dataset"], DatasetTime())
        found[document["dataset"]] = with_steps(known, document)
    for quality in qualities:
        states = quality["analyses"].items()
        impossible = frozenset(name for name, state in states if not state["possible"])
        known = found.get(quality["dataset"], DatasetTime())
        found[quality["dataset"]] = replace(known, impossible=impossible, based_on=quality["based_on"])
    return found


def _of_targets(measured: list[Analysis], efficiencies: list[dict]) -> list[Finding]:
    """Return which kernels vary and why; of a memory stall that costs too little to be explained, that it does."""
    little = {document["dataset"]: little_memory_stall(document) for document in efficiencies}
    found = []
    for one in measured:
        if one.target == MEMORY_STALL and little.get(one.dataset):
            found.append(little[one.dataset])
            continue
        found += findings_of("target", one)
        found += [finding for search in one.searches for finding in cause_findings(one, search)]
    return found


def _losses(efficiencies: list[dict], waiting: Sequence[str | Path]) -> list[Finding]:
    """Return what device time is lost to, and why the devices of each dataset wait, which replaces the coarser reasons
    of idle time.
    """
    lost = {finding.id: finding for document in efficiencies for finding in findings_of("efficiency", document)}
    of = {document["dataset"]: document for document in efficiencies}
    for path, dataset in zip(waiting, map(dataset_of, waiting), strict=True):
        own = {one.key: one for one in lost.values() if one.dataset == dataset}
        rows = read_rows_of_run(path, "waiting").to_pylist()
        gpu_ns = gpu_time_ns(of[dataset])
        formats = of[dataset].get("formats", ())
        has_calls = bool((of[dataset].get("launch_path") or {}).get("called"))
        waits = waiting_findings(dataset, rows, gpu_ns, own.get("orchestration"), formats, has_calls=has_calls)
        lost |= {one.id: one for one in without_replays([*own.values(), *waits], rows, gpu_ns)}
        lost |= {one.id: one for one in findings_of("waiting", dataset, rows, gpu_ns)}
        if "shared_devices" in own:
            shared = own["shared_devices"]
            lost[shared.id] = with_waits(shared, rows, len(of[dataset]["shared"]))
        if (waits or "shared_devices" in own) and "idle" in own:  # nor is a shared GPU idle while others' work runs
            del lost[own["idle"].id]
    return list(lost.values())


def _waits_of_steps(path: str | Path | None, document: dict) -> dict[int, list[StepWait]]:
    """Return what is behind the idle time of slow steps, by rank, from a `waiting.parquet`, where there is one."""
    ranks = idle_ranks(document)
    if path is None or not ranks:
        return {}
    return {rank: step_waits(document, rank, rows.to_pylist()) for rank, rows in rows_by_rank(path, "waiting", ranks)}
