"""What the results claim, ranked by what it is worth: `findings.json`."""

from dataclasses import replace
from typing import TYPE_CHECKING

from causeway.core.files.source_names import shown_sources
from causeway.core.logs import LOG, failing_clearly
from causeway.core.results import (
    dataset_and_target,
    dataset_of,
    read_comparisons,
    read_rows_of_run,
    read_searches,
    relative,
    rows_by_rank,
)
from causeway.core.tables import read_json, read_table, table_metadata, write_json
from causeway.core.vocabulary import MEMORY_STALL
from causeway.findings.causes import cause_findings
from causeway.findings.comparison import comparison_findings
from causeway.findings.device_time.efficiency import efficiency_findings, gpu_time_ns, little_memory_stall
from causeway.findings.device_time.missing_launches import undecided
from causeway.findings.device_time.replay_savings import with_replays
from causeway.findings.device_time.step_waits import StepWait, idle_ranks, step_waits
from causeway.findings.device_time.steps import step_findings
from causeway.findings.device_time.stragglers import straggler_findings
from causeway.findings.device_time.waiting import waiting_findings, without_replays
from causeway.findings.document import DatasetTime, summarise, with_steps
from causeway.findings.kernels import configuration_findings, variability_findings
from causeway.findings.quality import quality_findings
from causeway.findings.record import Analysis, Finding

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def analyses(job) -> list[Analysis]:
    """Return what is known of every dataset and target in which something was measured."""
    searches = read_searches(job.input.scopes)
    found = []
    for path in job.input.kernels:
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


def times(
    measured: list[Analysis], efficiencies: list[dict], qualities: list[dict], steps: list[dict]
) -> dict[str, DatasetTime]:
    """Return what the findings of every dataset are measured against: its GPU time, of its devices, which the explorer
    shows, or else of the launches that were measured in ns; the analyses that its inputs rule out, what a filter
    kept of them, and its steps.
    """
    found = {
        one.dataset: DatasetTime(gpu_ns=sum(row["value_sum"] for row in one.kernels))
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


def of_targets(measured: list[Analysis], efficiencies: list[dict]) -> list[Finding]:
    """Return which kernels vary and why; of a memory stall that costs too little to be explained, that it does."""
    little = {document["dataset"]: little_memory_stall(document) for document in efficiencies}
    found = []
    for one in measured:
        if one.target == MEMORY_STALL and little.get(one.dataset):
            found.append(little[one.dataset])
            continue
        found += variability_findings(one)
        found += configuration_findings(one)
        found += [finding for search in one.searches for finding in cause_findings(one, search)]
    return found


def losses(efficiencies: list[dict], waiting: list[str]) -> list[Finding]:
    """Return what device time is lost to, and why devices wait, which replaces the coarser reasons of idle time."""
    lost = {finding.id: finding for document in efficiencies for finding in efficiency_findings(document)}
    of = {document["dataset"]: document for document in efficiencies}
    for path, dataset in zip(waiting, map(dataset_of, waiting), strict=True):
        own = {one.key: one for one in lost.values() if one.dataset == dataset}
        called = (of[dataset].get("launch_path") or {}).get("called")
        facts = dataset, read_rows_of_run(path, "waiting").to_pylist(), gpu_time_ns(of[dataset])
        more = own.get("orchestration"), of[dataset].get("formats", ())
        waits = waiting_findings(*facts, *more, has_calls=bool(called))
        lost |= {one.id: one for one in without_replays([*own.values(), *waits], *facts[1:])}
        if waits and "idle" in own:
            del lost[own["idle"].id]
    return list(lost.values())


def waits_of_steps(path: str | None, document: dict) -> dict[int, list[StepWait]]:
    """Return what is behind the idle time of slow steps, by rank, from a `waiting.parquet`, where there is one."""
    ranks = idle_ranks(document)
    if path is None or not ranks:
        return {}
    return {rank: step_waits(document, rank, rows.to_pylist()) for rank, rows in rows_by_rank(path, "waiting", ranks)}


def main(job) -> None:
    with failing_clearly(job.log[0]):
        measured = analyses(job)
        efficiencies = [read_json(path) for path in job.input.efficiency]
        qualities = [read_json(path) for path in job.input.quality]
        shown = shown_sources(export["source"] for quality in qualities for export in quality["exports"])
        found = [finding for quality in qualities for finding in quality_findings(quality, shown)]
        found += of_targets(measured, efficiencies)
        lost = losses(efficiencies, job.input.waiting)
        lost += [finding for path in job.input.stragglers for finding in straggler_findings(read_json(path))]
        replays = {dataset_of(path): read_table(path, "replay").to_pylist() for path in job.input.replays}
        devices = {one["dataset"]: one["device"]["n_devices"] for one in efficiencies if not one["why"]}
        found += with_replays(undecided(lost, qualities), replays, devices)
        steps = [read_json(path) for path in job.input.steps]
        waits = {dataset_of(path): path for path in job.input.waiting}
        for document, path in zip(steps, job.input.step_causes, strict=True):
            behind = waits_of_steps(waits.get(document["dataset"]), document)
            found += step_findings(document, read_table(path, "step_causes").to_pylist(), behind)
        found += [finding for pair in read_comparisons(job.input.comparisons) for finding in comparison_findings(*pair)]
        document = summarise(found, times(measured, efficiencies, qualities, steps), job.params.config_hash)
        counts = len(document["findings"]), sum(one["count"] for one in document["dropped"])
        LOG.info("%d findings; %d statements left out", *counts)
        write_json(document, job.output.findings, "findings")


if "snakemake" in globals():
    main(snakemake)
