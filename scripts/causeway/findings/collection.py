"""All findings of an analysis, read from the files of its results."""

import importlib
import math
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from causeway import findings
from causeway.core.files.source_names import shown_sources
from causeway.core.formatting import name_in_sentence
from causeway.core.queries import in_document
from causeway.core.results import dataset_and_target, read_comparisons, read_searches, relative
from causeway.core.schemas import Row
from causeway.core.tables import read_json, read_table, table_metadata
from causeway.core.vocabulary import MEMORY_STALL, SUPPORTED
from causeway.findings.causes import cause_findings, is_worth_saying
from causeway.findings.comparison import comparison_findings
from causeway.findings.device_time.efficiency import gpu_time_ns, little_memory_stall
from causeway.findings.device_time.facts_said import device_time_findings
from causeway.findings.document import DatasetTime, summarise, with_steps
from causeway.findings.first_screen.facts import DatasetFacts
from causeway.findings.first_screen.plan import plan, plan_of_pair
from causeway.findings.headlines import short
from causeway.findings.kernels import variability_findings
from causeway.findings.read_tables import ResultFiles, run_tables
from causeway.findings.record import Analysis, Evidence, Finding, findings_of, link_to

for module in pkgutil.walk_packages(findings.__path__, f"{findings.__name__}."):
    importlib.import_module(module.name)  # what it makes findings from, it registers itself


def findings_document(files: ResultFiles, config_hash: str) -> dict[str, Any]:
    """Return the document `findings.json`; `config_hash` is hexadecimal."""
    measured = _analyses(files)
    datasets = [DatasetFacts(tables) for tables in run_tables(files)]
    efficiencies = [read_json(path) for path in files.efficiency]
    qualities = [read_json(path) for path in files.quality]
    steps = [read_json(path) for path in files.steps]
    findings = [
        *_of_inputs(qualities),
        *_of_targets(measured, efficiencies),
        *[finding for document in efficiencies for finding in findings_of("efficiency", document)],
        *[finding for facts in datasets for finding in device_time_findings(facts)],
        *_of_comparisons(files),
    ]
    by_name = {facts.tables.dataset: facts for facts in datasets}
    compared = [line for pair in read_comparisons(files.comparisons) for line in plan_of_pair(*pair, by_name)]
    lines = []
    for name, facts in by_name.items():
        lines += [line for line in compared if line["dataset"] == name]
        lines += [line.as_json(name) for line in plan(facts)]
    return summarise(findings, _times(measured, efficiencies, qualities, steps), config_hash, lines)


def quality_findings(quality: Row, shown: Mapping[str, str] | None = None) -> list[Finding]:
    """Return one finding per export of a dataset's `quality.json` that could not be used, in the sheet's order.

    Parameters
    ----------
    quality : mapping
    shown : mapping of str to str or None
        What to call each source, by `shown_sources` over all datasets of the analysis; over this one alone by default.
    """
    dataset = quality["dataset"]
    document = f"{dataset}/quality.json"
    names = shown or shown_sources(export["source"] for export in quality["exports"])
    findings = []
    for index, export in enumerate(quality["exports"]):
        if export["status"] == "read":
            continue
        error = export.get("error") or {}
        name = names[export["source"]]
        source = short(name)
        is_refused = export["status"] == "refused"
        why = f": {error['found']}. {error['advice']}" if error else "."
        degree = "could not be read and is in no result" if is_refused else "was read in part"
        findings.append(
            Finding(
                dataset=dataset,
                kind="quality",
                key=export["export"],
                subject=source,
                quantity="inputs that were read",
                headline=f"{source} {degree if is_refused else 'was read only in part'}.",
                sentence=f"{name_in_sentence(name)} {degree}{why}",
                verdict=SUPPORTED,
                evidence=Evidence(
                    table=document,
                    query=in_document(document, "exports", index, "status", kind="text"),
                    value=export["status"],
                ),
                link=link_to(dataset, "quality"),
                suggestion=error.get("advice") or "See the data quality section for what was left out.",
            )
        )
    return findings


def _of_inputs(qualities: Sequence[Row]) -> list[Finding]:
    """Return which inputs could not be used."""
    shown = shown_sources(export["source"] for quality in qualities for export in quality["exports"])
    return [finding for quality in qualities for finding in quality_findings(quality, shown)]


def _of_comparisons(files: ResultFiles) -> list[Finding]:
    """Return what changed from one run to another."""
    findings = []
    for document, rows in read_comparisons(files.comparisons):
        findings += comparison_findings(document, rows)
    return findings


def _analyses(files: ResultFiles) -> list[Analysis]:
    """Return what is known of every dataset and target in which something was measured."""
    searches = read_searches(files.scopes)
    analyses = []
    for path in files.kernels:
        rows = read_table(path, "kernel_summary").to_pylist()
        unit = table_metadata(path).get("value_unit", "")
        if rows:  # else nothing was measured: a search over no launches claims nothing
            dataset, target = dataset_and_target(path)
            analyses.append(
                Analysis(
                    dataset=dataset,
                    target=target,
                    unit=unit,
                    kernels=rows,
                    kernels_table=relative(path, 3),
                    searches=searches.get((dataset, target), ()),
                )
            )
    return analyses


def _times(
    measured: list[Analysis], efficiencies: Sequence[Row], qualities: Sequence[Row], steps: Sequence[Row]
) -> dict[str, DatasetTime]:
    """Return what the findings of every dataset are measured against: its GPU time, of its devices, which the explorer
    shows, or else of the launches that were measured in ns; the analyses that its inputs rule out, what a filter
    kept of them, and its steps.
    """
    times = {
        analysis.dataset: DatasetTime(gpu_ns=math.fsum(row["value_sum"] for row in analysis.kernels))
        for analysis in measured
        if analysis.unit == "ns"
    }
    for document in efficiencies:
        if gpu_ns := gpu_time_ns(document):
            times[document["dataset"]] = DatasetTime(gpu_ns=gpu_ns, explorer=True)
    for document in steps:
        time = times.get(document["dataset"], DatasetTime())
        times[document["dataset"]] = with_steps(time, document)
    for quality in qualities:
        states = quality["analyses"].items()
        impossible = frozenset(name for name, state in states if not state["possible"])
        time = times.get(quality["dataset"], DatasetTime())
        times[quality["dataset"]] = replace(time, impossible=impossible, based_on=quality["based_on"])
    return times


def _of_targets(measured: list[Analysis], efficiencies: Sequence[Row]) -> list[Finding]:
    """Return why durations, counters or values vary; of a memory stall that costs too little to be explained, that it
    does.

    Where there is a time line, how much a kernel varies is a fact of its device time, and of the causes those are said
    that are supported and worth something in one kernel: not what stands for the size of the work or the place in the
    program, not what is said of all kernels at once, not the memory stall, which is no time that is lost. All stand in
    their tables, and on the page under *Why*.
    """
    little = {document["dataset"]: little_memory_stall(document) for document in efficiencies}
    timed = {document["dataset"] for document in efficiencies if not document["why"]}
    findings: list[Finding] = []
    for analysis in measured:
        causes = [finding for search in analysis.searches for finding in cause_findings(analysis, search)]
        if analysis.target == MEMORY_STALL:
            findings += [said] if (said := little.get(analysis.dataset)) else []
        elif analysis.dataset in timed:
            findings += findings_of("target", analysis)
            findings += [cause for cause in causes if is_worth_saying(cause, len(analysis.kernels))]
        else:
            findings += [*variability_findings(analysis), *findings_of("target", analysis), *causes]
    return findings
