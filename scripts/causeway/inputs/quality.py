"""What the exports of a dataset allow together: their own issues, and those that show when they are compared."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow.compute as pc

from causeway.core.codes import COMMUNICATION_KERNEL, KERNEL_CLASSES
from causeway.core.files.source_names import shown_sources
from causeway.core.files.yaml_files import column_map
from causeway.core.formatting import first_of
from causeway.core.reduced import FILTERED, based_on, with_time_line
from causeway.core.tables import open_table, read_json, read_table
from causeway.inputs.known_ranks import rank_issues
from causeway.inputs.recorded_time import RecordedTime, on_one_line, recordings_of, short_recordings
from causeway.inputs.session_clocks import with_starts

SEVERITIES = ("info", "caution", "blocked")
FEW = 0.1
"""A rank with less than this share of the median rank's launches is an issue; a choice without a source."""

MEANINGS = {kind: (entry["severity"], entry["meaning"]) for kind, entry in column_map("issues")["of_datasets"].items()}
"""Kinds of issues of a whole dataset: severity and meaning. Those of one export stand in its capabilities."""

Folders = Iterable[Path]
Recordings = Mapping[str, Mapping[int, RecordedTime]]
"""What was recorded, by export and rank, in the clock of the export."""


def issue(kind: str, export: str | None, count: int, example: str, rules_out: Iterable[str] = ()) -> dict:
    """Return one entry of the list of issues.

    Raises
    ------
    KeyError
        If `kind` is none of `MEANINGS`.
    """
    severity, meaning = MEANINGS[kind]
    detail = f"{meaning}: {example}" if example else meaning
    return {
        "kind": kind,
        "severity": severity,
        "count": count,
        "detail": detail,
        "rules_out": sorted(rules_out),
        "export": export,
    }


def check(dataset: str, folders: Folders, telemetry: Mapping | None = None) -> dict:
    """Return the quality of a dataset.

    Parameters
    ----------
    dataset : str
    folders : iterable of Path
        The folders of tables of its exports, in the sheet's order; each holds a `capabilities.json`.
    telemetry : mapping, optional
        `telemetry.json`.

    Returns
    -------
    dict
        As `config/schemas/quality.schema.json` describes it.
    """
    folders = [Path(folder) for folder in folders]
    documents = [read_json(folder / "capabilities.json") for folder in folders]
    usable = [
        (document, folder)
        for document, folder in zip(documents, folders, strict=True)
        if document["status"] != "refused"
    ]
    issues = []
    for document in documents:
        if document["status"] != "read":
            kind = "refused_export" if document["status"] == "refused" else "partial_export"
            issues.append(issue(kind, document["export"], 1, document["error"]["found"]))
        issues += [entry | {"export": document["export"]} for entry in document["issues"]]
    issues += _telemetry(telemetry) if telemetry else []
    filters = [read_json(path) for _, folder in usable if (path := folder / "filter.json").is_file()]
    issues += _compared(usable, list(documents[0]["analyses"]) if documents else [], filters)
    worst = max((SEVERITIES.index(entry["severity"]) for entry in issues), default=0)
    return {
        "dataset": dataset,
        "status": ("ok", "caution", "blocked")[worst],
        "exports": [_export(document) for document in documents],
        "issues": issues,
        "analyses": _analyses(documents, issues) | _of_telemetry(telemetry, issues),
        "based_on": based_on(folders),
    }


def _of_telemetry(document: Mapping | None, issues: list[dict]) -> dict:
    """Return that metrics of devices are there, where the telemetry of the site has some of the dataset's devices."""
    blocked = any(entry["severity"] == "blocked" and DEVICE_METRICS in entry["rules_out"] for entry in issues)
    return {DEVICE_METRICS: {"possible": True, "why": None}} if document and document["rows"] and not blocked else {}


def _export(document: dict) -> dict:
    rows = document["tables"].get("launches", document["tables"].get("counters", 0))
    return {name: document[name] for name in ("export", "source", "status", "kind", "ranks", "error", "sha256")} | {
        "rows": rows
    }


def _compared(usable: list[tuple[dict, Path]], analyses: list[str], filters: list[dict]) -> list[dict]:
    """Return the issues that only show when the exports are compared; of a reduced dataset, with `filter.json` of each
    export in `filters`, without those of streams and times, which its filter may leave out.
    """
    if not usable:
        return [issue("no_export", None, 1, "", analyses)]
    documents = [document for document, _ in usable]
    parts = (_identities(documents, analyses, filters), _launch_counts(usable), _kernels(usable))
    issues = [entry for part in parts for entry in part]
    if filters:
        return issues
    recordings = {document["export"]: recordings_of(folder) for document, folder in usable if _are_several(documents)}
    return [*issues, *_communication(usable), *_streams(documents), *_times(documents, recordings)]


def _are_several(documents: list[dict]) -> bool:
    return sum(len(document["ranks"]) for document in documents) > 1


def _communication(usable: list[tuple[dict, Path]]) -> list[dict]:
    """Return that several ranks have launches, but neither kernels nor calls that are known as communication, where no
    export says it of its own job.
    """
    documents = [document for document, _ in usable]
    traced = [(document, folder) for document, folder in usable if {"launches", "kernels"} <= set(document["tables"])]
    said = any(issue["kind"] == "no_communication" for document in documents for issue in document["issues"])
    if said or not _are_several([document for document, _ in traced]):
        return []
    tables = [read_table(folder / "kernels.parquet", "kernels", ["name", "class"]).to_pylist() for _, folder in traced]
    classes = {row["class"] for rows in tables for row in rows}
    has_calls = any({"mpi", "collectives"} & set(document["tables"]) for document in documents)
    if has_calls or not classes <= set(KERNEL_CLASSES) - {COMMUNICATION_KERNEL}:
        return []
    return [issue("no_communication", None, len({row["name"] for rows in tables for row in rows}), "")]


def compared_documents(documents: list[dict], recordings: Recordings) -> list[dict]:
    """Return those issues of exports compared that their capabilities and recordings show; refused exports are left
    out.

    Parameters
    ----------
    documents : list of dict
        The capabilities of the exports of one dataset, at least one.
    recordings : mapping of str to mapping of int to RecordedTime
        By export and rank.
    """
    usable = [document for document in documents if document["status"] != "refused"]
    analyses = list(documents[0]["analyses"])
    return [*_identities(usable, analyses), *_streams(usable), *_times(usable, recordings)]


def _identities(documents: list[dict], analyses: list[str], filters: Sequence[dict] = ()) -> list[dict]:
    """Return issues of who the exports are: their ranks, contents and kinds."""
    issues = [
        issue(kind, None, count, example, analyses if kind == "duplicate_ranks" else ())
        for kind, count, example in rank_issues(documents, filters)
    ]
    same = [[document["export"] for document in group] for group in same_recordings(documents)]
    issues += [issue("same_recording", None, len(names), ", ".join(names), analyses) for names in same]
    others = [names for names in _by(documents, "sha256").values() if len(names) > 1 and names not in same]
    issues += [issue("same_file", None, len(names), ", ".join(names)) for names in others]
    kinds = sorted({document["kind"] for document in documents} - {"none"})
    if len(kinds) > 1:
        issues.append(issue("mixed_kinds", None, len(kinds), ", ".join(kinds)))
    return issues


def _by(documents: list[dict], key: str) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for document in documents:
        groups.setdefault(document[key], []).append(document["export"])
    return groups


def same_recordings(documents: Iterable[dict]) -> list[list[dict]]:
    """Return the exports that hold the same recording, by group: equal launches of the same processes. Those that state
    different ranks are different recordings, however alike.

    Parameters
    ----------
    documents : iterable of dict
        The capabilities of exports, of one dataset or of several.
    """
    groups: dict[tuple, list[dict]] = {}
    for document in documents:
        if document.get("recording"):
            stated = tuple(document["ranks"]) if document["ranks_from"] == "export" else None
            groups.setdefault((document["recording"], stated), []).append(document)
    return [group for group in groups.values() if len(group) > 1]


def launches_by_rank(document: dict, folder: Path) -> Counter:
    """Return the number of launches (or rows of counters) of each rank of an export."""
    table = "launches" if "launches" in document["tables"] else "counters"
    if len(document["ranks"]) == 1:
        return Counter({document["ranks"][0]: document["tables"].get(table, 0)})
    counts: Counter = Counter()
    with open_table(folder / f"{table}.parquet", table) as file:
        for batch in file.iter_batches(columns=["rank"]):
            for entry in pc.value_counts(batch.column(0)).to_pylist():
                counts[entry["values"]] += entry["counts"]
    return counts


def _launch_counts(usable: list[tuple[dict, Path]]) -> list[dict]:
    """Compare the ranks' numbers of launches, traces among traces and counters among counters."""
    issues = []
    for kind in sorted({document["kind"] for document, _ in usable}):
        counts: Counter = Counter()
        for document, folder in usable:
            if document["kind"] == kind and ("launches" in document["tables"] or "counters" in document["tables"]):
                counts += launches_by_rank(document, folder)
        ordered = sorted(counts.values())
        few = sorted(rank for rank, count in counts.items() if count < FEW * ordered[len(ordered) // 2])
        if few:
            example = (
                f"rank {first_of(few)}, at least {counts[few[0]]:,} against a median of {ordered[len(ordered) // 2]:,}"
            )
            issues.append(
                issue("few_launches", None, len(few), example.replace("at least ", "") if len(few) == 1 else example)
            )
    return issues


def _streams(documents: list[dict]) -> list[dict]:
    """Compare the number of streams that the ranks' launches ran on with what most of them have."""
    streams = {int(rank): count for document in documents for rank, count in document["streams"].items()}
    if len(streams) < 3:
        return []
    usual, ranks = Counter(streams.values()).most_common(1)[0]
    fewer = sorted(rank for rank, count in streams.items() if count < usual)
    if not fewer or ranks * 2 <= len(streams):
        return []
    return [
        issue("missing_streams", None, len(fewer), f"rank {first_of(fewer)}, with {streams[fewer[0]]} against {usual}")
    ]


def _kernels(usable: list[tuple[dict, Path]]) -> list[dict]:
    names = {
        document["export"]: set(read_table(folder / "kernels.parquet", "kernels", ["name"]).column("name").to_pylist())
        for document, folder in usable
        if document["kind"] in ("trace", "counters") and "kernels" in document["tables"]
    }
    issues = []
    for export, own in names.items():
        others = set().union(*(theirs for other, theirs in names.items() if other != export))
        if own and others and own.isdisjoint(others):
            issues.append(issue("other_kernels", export, len(own), ""))
    return issues


def _times(documents: list[dict], recordings: Recordings) -> list[dict]:
    """Return issues of when the exports were recorded: not at the same time, or not all of the run."""
    issues = _clocks(documents, recordings)
    starts = {document["export"]: (document["time"] or {}).get("session_start_ns") for document in documents}
    there = [(recordings.get(export, {}), start) for export, start in starts.items() if recordings.get(export)]
    if issues or (len(there) > 1 and any(start is None for _, start in there)):
        return issues
    short, example = short_recordings(on_one_line([(ranks, start or 0) for ranks, start in there]))
    return [issue("short_recordings", None, len(short), example)] if short else []


def _clocks(documents: list[dict], recordings: Recordings) -> list[dict]:
    timed = with_starts(documents)
    if len(timed) < 2:
        return []
    if any(document["time"]["session_start_ns"] is None for document in timed):
        return [issue("clocks_unknown", None, len(timed), "")]
    spans = []
    for document in timed:
        ends = [(document["time"]["first_ns"], document["time"]["last_ns"])]
        ends += [recording.whole for recording in recordings.get(document["export"], {}).values() if recording.whole]
        start = document["time"]["session_start_ns"]
        spans.append((start + min(first for first, _ in ends), start + max(last for _, last in ends)))
    spans.sort()
    end = spans[0][1]
    gaps = []
    for first, last in spans[1:]:
        if first >= end:
            gaps.append(first - end)
        end = max(end, last)
    return [issue("not_concurrent", None, len(gaps), f"gaps of up to {max(gaps) / 1e9:,.1f} s")] if gaps else []


UNMATCHED = {
    "unknown_node": "no export has their node",
    "unknown_device": "no export of their node has such a device",
    "ambiguous_device": "several ranks of their node have a device of that number, and no UUID tells which",
    "bus_address": "their file has bus addresses alone, and not as many as its node has devices in the exports",
    "no_session_start": "no export says when its session started",
}
DEVICE_METRICS = "device_metrics"
SKIPPED = ("same_time",)
"""Kinds of rows of telemetry that are left out without being a defect."""


def _telemetry(document: Mapping) -> list[dict]:
    """Return the issues of a dataset's telemetry."""
    issues = []
    names = shown_sources(entry["source"] for entry in document["sources"])
    for entry in document["sources"]:
        name = names[entry["source"]]
        if entry["error"]:
            issues.append(issue("telemetry_refused", None, 1, f"{name}: {entry['error']['found']}"))
            continue
        bad = [problem for problem in entry["bad"] if problem["kind"] not in SKIPPED]
        if bad:
            example = f"{name}: {bad[0]['kind'].replace('_', ' ')}, first {bad[0]['example']!r}"
            issues.append(issue("telemetry_bad_rows", None, sum(problem["count"] for problem in bad), example))
        reasons = Counter(device["reason"] for device in entry["devices"] if device["reason"])
        for reason, count in sorted(reasons.items()):
            issues.append(issue("telemetry_unmatched", None, count, f"{name}: {UNMATCHED[reason]}"))
        if by_order := sum(device["matched_by"] == "rank_order" for device in entry["devices"]):
            issues.append(issue("telemetry_by_rank_order", None, by_order, name))
        unknown = [clock for clock in entry["clocks"] if clock["skew_ns"] is None]
        if unknown:
            issues.append(issue("telemetry_clock", None, len(unknown), f"{name}: {unknown[0]['reason']}"))
        if entry["time_zone"].endswith("(assumed)"):
            issues.append(issue("telemetry_zone", None, 1, name))
    return issues


def _analyses(documents: list[dict], issues: list[dict]) -> dict:
    """Return for each analysis whether at least one export allows it and nothing rules it out; what compares ranks or
    adds up over them must not lack the events of any.
    """
    blocked = {
        name: entry["detail"] for entry in issues if entry["severity"] == "blocked" for name in entry["rules_out"]
    }
    analyses = {}
    for name in dict.fromkeys(name for document in documents for name in document["analyses"]):
        judged = with_time_line(documents) if name in FILTERED else documents
        entries = [document["analyses"][name] for document in judged if name in document["analyses"]]
        enough = all if name in FILTERED else any
        if not entries:
            continue
        possible = enough(entry["possible"] for entry in entries) and name not in blocked
        reasons = dict.fromkeys(entry["why"] for entry in entries if entry["why"])
        analyses[name] = {"possible": possible, "why": None if possible else blocked.get(name) or "; ".join(reasons)}
    return analyses
