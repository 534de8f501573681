"""The overview's facts and data quality."""

import datetime
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core.queries import in_document, in_documents, of_table
from causeway.core.vocabulary import TARGET_NAMES
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.citations import Sourced, document_parts
from causeway.plotting.drawing.page import rendered

SHOWN_ISSUES = 3
"""Issues above `info` that stand in sight."""
EPOCH_2001_NS = 978_307_200 * 10**9
"""A time that counts from 1970 is later; a clock that counts from a start that is not stated never gets there."""
STATUS_WORDS = {"ok": "inputs complete", "caution": "use with caution", "blocked": "no analysis possible"}
ANALYSES = {
    **TARGET_NAMES,
    "counter_deviation": "counter deviation",
    "causes": "causes",
    "time_line": "time line",
    "queue_delay": "queue delay",
    "ranges": "ranges",
    "overlap": "overlap",
    "device_metrics": "metrics of devices",
    "mpi_calls": "MPI calls",
    "context_features": "context of launches",
    "efficiency": "efficiency",
    "stragglers": "stragglers",
}
SEVERITIES = {"blocked": 0, "caution": 1, "info": 2}
NOT_WHOLE = frozenset({"refused_export", "partial_export"})
"""Issues that come first among those of their severity: what is not there is in no number."""
USED = "WHERE json_extract_string(content, '$.status') <> 'refused'"


def date_of(capabilities: Sequence[Mapping], files: Sequence[str]) -> Markup | str:
    """Return the day on which the first launch of all captures ran, as the exports state it.

    Where the clock of an export begins is not it: PyTorch's begins on a day that is up to some months before.
    """
    edges = ("session_start_ns", "first_ns")
    times = [export["time"] for export in capabilities if export["time"] and None not in map(export["time"].get, edges)]
    starts = [start for start in (sum(map(time.get, edges)) for time in times) if start > EPOCH_2001_NS]
    if not starts:
        return "not stated"
    start = " + ".join(f"json_extract(content, '$.time.{edge}')::BIGINT" for edge in edges)
    query = in_documents(f"min(CASE WHEN {start} > {EPOCH_2001_NS} THEN {start} END)", files)
    day = datetime.datetime.fromtimestamp(min(starts) // 1_000_000_000, datetime.UTC).date().isoformat()
    return citations.cited(day, min(starts), query, "date")


def span_of(export: Mapping) -> int | None:
    """Return the time from an export's first launch to its last end, ns, or None where it has no times."""
    time = export["time"] or {}
    first = time.get("first_ns")
    last = time.get("last_ns")
    return None if first is None or last is None else last - first


def facts(
    dataset: str,
    capabilities: Sequence[Mapping],
    kernels: tuple[int, str] | None,
    elapsed_ns: int | None = None,
    gpus: int | None = None,
) -> Markup:
    """Return what was read: ranks and devices, span, launches, kernels, formats and the date of the inputs.

    Parameters
    ----------
    dataset : str
    capabilities : sequence of mapping
    kernels : (int, str) or None
        Their number and the table that has them.
    elapsed_ns : int, optional
        As `efficiency.json` has it, from the first copy or launch on; without it, exports are as long as their
        capabilities say, from the first launch on, with counters of a later execution, if there are any.
    gpus : int, optional
        As `efficiency.json` counts them, where ranks share some: each once.
    """
    files = [f"{dataset}/tables/{export['export']}/capabilities.json" for export in capabilities]
    used = [export for export in capabilities if export["status"] != "refused"]
    ranks = len({rank for export in used for rank in export["ranks"]})
    spans = [span for span in map(span_of, used) if span is not None]
    devices = sum(export["tables"].get("devices", 0) for export in used)
    launched = sum(export["tables"].get("launches") or export["tables"].get("counters", 0) for export in used)
    rows = {name: f"json_extract(content, '$.tables.{name}')::BIGINT" for name in ("devices", "launches", "counters")}
    each = in_documents("count(DISTINCT rank)", files, "unnest(json_extract(content, '$.ranks')::BIGINT[]) AS rank")
    if gpus:
        gpu = Sourced(gpus, in_document(f"{dataset}/efficiency.json", "device", "n_devices", kind="integer"))
    else:
        gpu = Sourced(devices, in_documents(f"coalesce(sum({rows['devices']}), 0)::BIGINT", files))
    last = "max(json_extract(content, '$.time.last_ns')::BIGINT - json_extract(content, '$.time.first_ns')::BIGINT)"
    span = Sourced(max(spans, default=None), in_documents(last, files))
    if elapsed_ns and spans:
        span = Sourced(elapsed_ns, in_document(f"{dataset}/efficiency.json", "elapsed_ns", kind="integer"))
    size = f"coalesce(sum(json_extract(content, '$.bytes')::BIGINT) FILTER ({USED}), 0)::BIGINT"
    # counters beside launches are of the same launches
    each_export = f"coalesce(nullif({rows['launches']}, 0), {rows['counters']})"
    longest = "time measured" if elapsed_ns else "longest export"
    return rendered(
        "facts.html",
        ranks=Sourced(ranks, each),
        devices=gpu,
        label=longest if len(spans) > 1 else "span",
        span=span,
        launches=Sourced(launched, in_documents(f"coalesce(sum({each_export}), 0)::BIGINT", files)),
        kernels=kernels and Sourced(kernels[0], of_table("count(*)", kernels[1])),
        used=Sourced(len(used), in_documents(f"count(*) FILTER ({USED})", files)),
        exports=Sourced(len(capabilities), in_documents("count(*)", files)),
        size=Sourced(sum(export["bytes"] or 0 for export in used), in_documents(size, files)),
        formats=", ".join(sorted({export["format"] for export in used})) or "none",
        captured=date_of(used, files),
    )


def quality_strip(quality: Mapping, place: str, levels: Mapping | None = None) -> Markup:
    """Return the data quality as a strip of analyses, with every issue and every analysis that is ruled out behind
    it, and what the `levels` note on the analyst's own metrics.
    """
    path = f"{quality['dataset']}/quality.json"
    parts = document_parts(path, quality)
    doubtful = {name for issue in quality["issues"] if issue["severity"] != "info" for name in issue["rules_out"]}
    analyses = parts["analyses"]
    names = [name for name in ANALYSES if name in analyses.raw]

    def order(issue: Sourced) -> tuple:
        raw = issue.raw
        return SEVERITIES.get(raw["severity"], 3), raw["kind"] not in NOT_WHOLE, raw["kind"], raw.get("export") or ""

    issues = sorted(parts["issues"], key=order)
    in_sight = [issue for issue in issues if issue.raw["severity"] != "info"][:SHOWN_ISSUES]
    notes = document_parts(f"{quality['dataset']}/levels/index.json", levels or {"notes": []})["notes"]
    return rendered(
        "quality.html",
        place=place,
        status=quality["status"],
        status_words=STATUS_WORDS.get(quality["status"], quality["status"]),
        analyses=[(name, analyses[name]) for name in names + sorted({*analyses.raw} - {*names})],
        words=ANALYSES,
        doubtful=doubtful,
        ruled_out=any(not state["possible"] for state in analyses.raw.values()),
        worst=in_sight,
        levels=notes,
        others=[issue for issue in issues if issue not in in_sight],
        notes=Sourced(len(quality["issues"]), in_document(path, "issues", kind="length")),
    )
