"""The overview's facts and data quality."""

import datetime
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.queries import in_document, in_documents, of_table
from causeway.core.vocabulary import TARGET_NAMES
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import joined, tag
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


def counted(number: int, query: str, one: str, many: str | None = None) -> Markup:
    """Return a number with its noun, e.g. `4 ranks`."""
    return joined([citations.count(number, query), f" {one if number == 1 else many or one + 's'}"])


def date_of(capabilities: Sequence[Mapping], files: Sequence[str]) -> Markup | str:
    """Return the day on which the first launch of all captures ran, as the exports state it.

    Where the clock of an export begins is not it: PyTorch's begins on a day that is up to some months before.
    """
    edges = ("session_start_ns", "first_ns")
    times = [[(export["time"] or {}).get(edge) for edge in edges] for export in capabilities]
    starts = [sum(time) for time in times if None not in time and sum(time) > EPOCH_2001_NS]
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
    where = [counted(ranks, each, "rank")]
    if devices:
        query = in_documents(f"coalesce(sum({rows['devices']}), 0)::BIGINT", files)
        if gpus:
            devices = gpus
            query = in_document(f"{dataset}/efficiency.json", "device", "n_devices", kind="integer")
        where += [", ", counted(devices, query, "device")]
    time = in_documents(
        "max(json_extract(content, '$.time.last_ns')::BIGINT - json_extract(content, '$.time.first_ns')::BIGINT)", files
    )
    several = "time measured" if elapsed_ns else "longest export"
    label = several if len(spans) > 1 else "span"
    if elapsed_ns and spans:
        spans = [elapsed_ns]
        time = in_document(f"{dataset}/efficiency.json", "elapsed_ns", kind="integer")
    size = sum(export["bytes"] or 0 for export in used)
    bytes_ = in_documents(f"coalesce(sum(json_extract(content, '$.bytes')::BIGINT) FILTER ({USED}), 0)::BIGINT", files)
    read = [citations.count(len(used), in_documents(f"count(*) FILTER ({USED})", files)), " of "]
    read += [counted(len(capabilities), in_documents("count(*)", files), "export"), ", "]
    # counters beside launches are of the same launches
    each_export = f"coalesce(nullif({rows['launches']}, 0), {rows['counters']})"
    launches = in_documents(f"coalesce(sum({each_export}), 0)::BIGINT", files)
    shown = (
        ("ranks, devices", where),
        (
            label,
            citations.time(max(spans), time) if spans else "no times",
        ),
        ("launches", citations.count(launched, launches)),
        ("kernels", citations.count(kernels[0], of_table("count(*)", kernels[1])) if kernels else "none"),
        ("read", [*read, citations.cited(formatting.quantity(size, "bytes"), size, bytes_, "bytes")]),
        ("format", citations.name(", ".join(sorted({export["format"] for export in used})) or "none")),
        ("captured", date_of(used, files)),
    )
    return tag("div", [tag("div", tag("span", label), tag("b", value)) for label, value in shown], class_="facts")


def quality_strip(quality: Mapping, place: str, levels: Mapping | None = None) -> Markup:
    """Return the data quality as a strip of analyses, with every issue and every analysis that is ruled out behind
    it, and what the `levels` note on the analyst's own metrics.
    """
    document = f"{quality['dataset']}/quality.json"
    doubtful = {name for issue in quality["issues"] if issue["severity"] != "info" for name in issue["rules_out"]}
    chips = []
    ruled_out = []
    known = [name for name in ANALYSES if name in quality["analyses"]]
    for name in known + sorted(set(quality["analyses"]) - set(known)):
        words = ANALYSES.get(name, name)
        state = quality["analyses"][name]
        kind = "absent" if not state["possible"] else "caution" if name in doubtful else "ok"
        chips.append((words, kind, state["why"]))
        if not state["possible"]:
            query = in_document(document, "analyses", name, "why", kind="text")
            ruled_out.append((words, citations.said(state["why"], query) if state["why"] else "no reason stated"))

    def order(numbered: tuple[int, Mapping]) -> tuple:
        issue = numbered[1]
        place = SEVERITIES.get(issue["severity"], 3)
        return place, issue["kind"] not in NOT_WHOLE, issue["kind"], issue.get("export") or ""

    issues = sorted(enumerate(quality["issues"]), key=order)
    worst = [one for one in issues if one[1]["severity"] != "info"][:SHOWN_ISSUES]
    said = {number: (issue["severity"], issue_text(issue, document, number)) for number, issue in issues}
    in_sight = [said.pop(number) for number, _ in worst]
    index = f"{quality['dataset']}/levels/index.json"
    for number, note in enumerate(levels["notes"] if levels else []):
        in_sight.append(("caution", citations.said(note, in_document(index, "notes", number, kind="text"))))
    return rendered(
        "quality.html",
        place=place,
        status=quality["status"],
        status_words=STATUS_WORDS.get(quality["status"], quality["status"]),
        chips=chips,
        worst=in_sight,
        ruled_out=ruled_out,
        others=list(said.values()),
        notes=counted(len(quality["issues"]), in_document(document, "issues", kind="length"), "note"),
    )


def issue_text(issue: Mapping, document: str, number: int) -> Markup:
    """Return one issue of the inputs as a sentence: where, what, how often, and what it rules out."""
    where = [citations.name(issue["export"]), ": "] if issue.get("export") else []
    times = issue.get("count") or 0
    often = (
        [" (", citations.count(times, in_document(document, "issues", number, "count", kind="integer")), " ×)"]
        if times > 1
        else []
    )
    said = issue["kind"].replace("_", " ")
    if issue["detail"]:
        said = citations.said(issue["detail"], in_document(document, "issues", number, "detail", kind="text"), 500)
    rules = (
        f". Rules out: {', '.join(ANALYSES.get(name, name) for name in issue['rules_out'])}."
        if issue["rules_out"]
        else ""
    )
    return joined([*where, said, *often, rules])
