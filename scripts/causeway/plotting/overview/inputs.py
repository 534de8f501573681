"""The overview's facts, data quality and table of kernels."""

import datetime
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.queries import in_document, in_documents, of_table, rows_where
from causeway.core.vocabulary import TARGET_NAMES
from causeway.plotting.drawing import citations, theme
from causeway.plotting.drawing.kernel_labels import full_name
from causeway.plotting.drawing.markup import joined, tag
from causeway.plotting.drawing.svg import bar, histogram, sparkline
from causeway.plotting.figures.kernels import Kernel, columns_of
from causeway.plotting.overview.variability.causes import anchor

SHOWN_ISSUES = 6
"""Issues above `info` that stand in sight."""
EPOCH_2001_NS = 978_307_200 * 10**9
"""A time that counts from 1970 is later; a clock that counts from a start that is not stated never gets there."""
TOP_KERNELS = 15
MOST_KERNELS = 200
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
    status = quality["status"]
    document = f"{quality['dataset']}/quality.json"
    chips = [tag("span", tag("b", STATUS_WORDS.get(status, status)), class_=f"chip {status}")]
    doubtful = {name for issue in quality["issues"] if issue["severity"] != "info" for name in issue["rules_out"]}
    ruled_out = []
    known = [name for name in ANALYSES if name in quality["analyses"]]
    for name in known + sorted(set(quality["analyses"]) - set(known)):
        words = ANALYSES.get(name, name)
        state = quality["analyses"][name]
        kind = "absent" if not state["possible"] else "caution" if name in doubtful else "ok"
        chips.append(tag("span", words, class_=f"chip {kind}", title=state["why"]))
        if not state["possible"]:
            why = (
                citations.said(state["why"], in_document(document, "analyses", name, "why", kind="text"))
                if state["why"]
                else "no reason stated"
            )
            ruled_out.append(tag("li", tag("b", words), " is not possible: ", why))
    order = sorted(
        enumerate(quality["issues"]),
        key=lambda one: (
            SEVERITIES.get(one[1]["severity"], 3),
            one[1]["kind"] not in NOT_WHOLE,
            one[1]["kind"],
            one[1].get("export") or "",
        ),
    )
    parts = [tag("div", chips, class_="strip")]
    worst = [one for one in order if one[1]["severity"] != "info"][:SHOWN_ISSUES]
    parts += [
        tag(
            "p",
            tag("span", issue["severity"], class_=f"chip {issue['severity']}"),
            " ",
            issue_text(issue, document, number),
        )
        for number, issue in worst
    ]
    index = f"{quality['dataset']}/levels/index.json"
    parts += [
        tag(
            "p",
            tag("span", "caution", class_="chip caution"),
            " ",
            citations.said(note, in_document(index, "notes", number, kind="text")),
        )
        for number, note in enumerate(levels["notes"] if levels else [])
    ]
    others = [one for one in order if one not in worst]
    rows = ruled_out + [
        tag("li", tag("b", issue["severity"]), ": ", issue_text(issue, document, number)) for number, issue in others
    ]
    if rows:
        notes = counted(len(quality["issues"]), in_document(document, "issues", kind="length"), "note")
        parts.append(
            tag(
                "details",
                tag("summary", "What is ruled out and why, with ", notes, " on the inputs"),
                tag("ul", rows, class_="limits"),
            )
        )
    return tag("div", tag("h3", "Data quality"), parts, id=place)


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


def kernel_table(
    kernels: Sequence[Kernel], dataset: str, target: str, unit: str, operators: Mapping[str, str] = MappingProxyType({})
) -> Markup:
    """Return the kernels as a table that can be sorted, the first fifteen in sight; findings link to its rows.

    Parameters
    ----------
    kernels : sequence of Kernel
    dataset, target : str
    unit : str
        Of the target's values.
    operators : mapping of str to str
        By kernel: the operator that launches most of it.
    """
    share, *names = [heading for heading, _, _ in columns_of(target)]
    heads = [tag("th", "kernel"), tag("th", share, aria_sort="descending")]
    heads += [tag("th", name, class_="n" if place < 4 else None) for place, name in enumerate(names)]
    largest = kernels[0].share
    source = f"{dataset}/{target}/kernels.parquet"

    def table(rows: Sequence[Kernel]) -> Markup:
        body = tag(
            "tbody",
            [
                kernel_row(row, largest, unit, anchor(dataset, target, "kernel", row.id), source, operators.get(row.id))
                for row in rows
            ],
        )
        return tag("div", tag("table", tag("thead", tag("tr", heads)), body, class_="sortable kernels"), class_="wide")

    parts = [table(kernels[:TOP_KERNELS])]
    rest = kernels[TOP_KERNELS:MOST_KERNELS]
    left = len(kernels) - MOST_KERNELS
    if rest:
        held = math.fsum(kernel.share for kernel in kernels[TOP_KERNELS:])
        ids = ", ".join(f"'{kernel.id}'" for kernel in kernels[:TOP_KERNELS])
        others = f"kernel NOT IN ({ids})"
        words = [counted(len(kernels) - TOP_KERNELS, of_table("count(*)", source, others), "more kernel"), " with "]
        words += [citations.share(held, of_table("sum(target_share)", source, others)), " of the variability"]
        words += ["; not all of them stand here, but in kernels.parquet"] if left > 0 else []
        parts.append(tag("details", tag("summary", words), table(rest), class_="rest"))
    return tag("div", parts)


def kernel_row(
    kernel: Kernel, largest: float, unit: str, place: str, source: str, operator: str | None = None
) -> Markup:
    """Return one kernel as a row with the id `place`; `source` is the table that has it, `operator` launches most of
    it.
    """
    where = rows_where({"kernel": kernel.id})

    def of(what: str) -> str:
        return of_table(what, source, where)

    def cell(text: object, value: float | None) -> Markup:
        return tag("td", text, class_="n", data_v="" if value is None else value)

    dot = tag("span", class_="dot", style=f"background:{theme.class_colour(kernel.kind)}", title=kernel.kind)
    shape = (
        f"from {formatting.quantity(kernel.smallest, unit)} to {formatting.quantity(kernel.largest, unit)}, log scale"
    )
    share = [
        bar(kernel.share, largest, theme.SEQUENTIAL[5], width=80),
        " ",
        citations.share(kernel.share if largest > 0 else None, of("target_share")),
    ]
    launched = tag("div", "by ", citations.name(formatting.elided(operator, 40)), class_="note") if operator else None
    parts = [citations.share(kernel.between, of("variance_between")), " of the variance between "]
    parts.append(counted(kernel.configurations, of("configurations"), "configuration"))
    between = tag("div", parts, class_="note") if kernel.between is not None else None
    by_size = None
    if kernel.by_size is not None:
        by_size = tag(
            "div", citations.share(kernel.by_size, of("size_variance")), " of the variance by threads", class_="note"
        )
    part = of(f"value_sum / ({of_table('sum(value_sum)', source)})")
    return tag(
        "tr",
        tag(
            "td",
            dot,
            citations.name(kernel.short, title=full_name(kernel.name)),
            launched,
            between,
            by_size,
            class_="name",
        ),
        tag("td", share, data_v=kernel.share, class_="share"),
        cell(citations.share(kernel.value_share, part), kernel.value_share),
        cell(citations.count(kernel.launches, of("launches")), kernel.launches),
        cell(citations.quantity(kernel.median, unit, of("value_median")), kernel.median),
        cell(citations.spread(kernel.robust_cv, of("robust_cv")), kernel.robust_cv),
        tag("td", histogram(kernel.histogram, 90, 24), title=shape),
        tag("td", sparkline(kernel.timeline, 120, 24)),
        id=place,
    )
