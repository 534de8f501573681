"""The overview's facts, data quality, top findings and table of kernels."""

import datetime
from collections.abc import Mapping, Sequence

from causeway.plotting import theme
from causeway.plotting.kernels import Kernel, columns_of, share_text
from causeway.plotting.marks import bar, histogram, sparkline
from causeway.plotting.markup import Markup, tag
from causeway.plotting.names import elided, full_name
from causeway.plotting.overview_why import anchor, verdict_tag

SHOWN_ISSUES = 6
"""Issues above `info` that stand in sight."""
TOP_KERNELS = 15
MOST_KERNELS = 200
STATUS_WORDS = {"ok": "inputs complete", "caution": "use with caution", "blocked": "no analysis possible"}
ANALYSES = {
    "kernel_variability": "kernel variability",
    "memory_stall": "memory stall",
    "counter_deviation": "counter deviation",
    "causes": "causes",
    "time_line": "time line",
    "queue_delay": "queue delay",
    "ranges": "ranges",
    "overlap": "overlap",
    "device_metrics": "metrics of devices",
    "mpi_calls": "MPI calls",
}
SEVERITIES = {"blocked": 0, "caution": 1, "info": 2}


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun, e.g. `4 ranks`."""
    return f"{theme.count(number)} {one if number == 1 else many or one + 's'}"


def date_of(capabilities: Sequence[Mapping]) -> str:
    """Return the day on which the earliest capture began, as the exports state it."""
    starts = [export["time"]["session_start_ns"] for export in capabilities if (export["time"] or {}).get("session_start_ns")]
    if not starts:
        return "not stated"
    return datetime.datetime.fromtimestamp(min(starts) // 1_000_000_000, datetime.UTC).date().isoformat()


def span_of(export: Mapping) -> int | None:
    """Return the time from an export's first launch to its last end, ns, or None where it has no times."""
    time = export["time"] or {}
    first, last = time.get("first_ns"), time.get("last_ns")
    return None if first is None or last is None else last - first


def facts(capabilities: Sequence[Mapping], kernels: int) -> Markup:
    """Return what was read: ranks and devices, span, launches, kernels, formats and the date of the inputs."""
    used = [export for export in capabilities if export["status"] != "refused"]
    ranks = len({rank for export in used for rank in export["ranks"]})
    devices = sum(export["tables"].get("devices", 0) for export in used)
    spans = [span for span in map(span_of, used) if span is not None]
    launches = sum(export["tables"].get("launches", 0) + export["tables"].get("counters", 0) for export in used)
    size = theme.quantity(sum(export["bytes"] or 0 for export in used), "bytes")
    where = counted(ranks, "rank")
    if devices:
        each, odd = divmod(devices, max(ranks, 1))
        where += f", {counted(devices, 'device')}" if odd else f" × {counted(each, 'device')}"
    shown = (
        ("ranks × devices", where),
        ("longest export" if len(spans) > 1 else "span", theme.time(max(spans)) if spans else "no times"),
        ("launches", theme.count(launches)),
        ("kernels", theme.count(kernels)),
        ("read", f"{len(used)} of {counted(len(capabilities), 'export')}, {size}"),
        ("format", ", ".join(sorted({export["format"] for export in used})) or "none"),
        ("captured", date_of(used)),
    )
    return tag("div", [tag("div", tag("span", name), tag("b", value)) for name, value in shown], class_="facts")


def quality_strip(quality: Mapping, place: str) -> Markup:
    """Return the data quality as a strip of analyses, with every issue and every analysis that is ruled out behind it."""
    status = quality["status"]
    chips = [tag("span", tag("b", STATUS_WORDS.get(status, status)), class_=f"chip {status}")]
    doubtful = {name for issue in quality["issues"] if issue["severity"] != "info" for name in issue["rules_out"]}
    ruled_out = []
    known = [name for name in ANALYSES if name in quality["analyses"]]
    for name in known + sorted(set(quality["analyses"]) - set(known)):
        words, state = ANALYSES.get(name, name), quality["analyses"][name]
        kind = "absent" if not state["possible"] else "caution" if name in doubtful else "ok"
        chips.append(tag("span", words, class_=f"chip {kind}", title=state["why"]))
        if not state["possible"]:
            ruled_out.append(tag("li", tag("b", words), f" is not possible: {state['why'] or 'no reason stated'}"))
    issues = sorted(quality["issues"], key=lambda issue: (SEVERITIES.get(issue["severity"], 3), issue["kind"], issue.get("export") or ""))
    parts = [tag("div", chips, class_="strip")]
    worst = [issue for issue in issues if issue["severity"] != "info"][:SHOWN_ISSUES]
    parts += [tag("p", tag("span", issue["severity"], class_=f"chip {issue['severity']}"), f" {issue_text(issue)}") for issue in worst]
    rows = ruled_out + [tag("li", tag("b", issue["severity"]), f": {issue_text(issue)}") for issue in issues if issue not in worst]
    if rows:
        words = f"{counted(len(ruled_out), 'analysis', 'analyses')} ruled out, {counted(len(issues), 'note')} on the inputs"
        parts.append(tag("details", tag("summary", words), tag("ul", rows, class_="limits")))
    return tag("div", tag("h3", "Data quality"), parts, id=place)


def issue_text(issue: Mapping) -> str:
    """Return one issue of the inputs as a sentence: where, what, how often, and what it rules out."""
    where = f"{issue['export']}: " if issue.get("export") else ""
    times = f" ({theme.count(issue['count'])} ×)" if (issue.get("count") or 0) > 1 else ""
    said = elided(issue["detail"] or issue["kind"].replace("_", " "), 500).removesuffix(".")
    rules = f" Rules out: {', '.join(ANALYSES.get(name, name) for name in issue['rules_out'])}." if issue["rules_out"] else ""
    return f"{where}{said}{times}.{rules}"


def sentences(findings: Sequence[Mapping], most: int = 3) -> Markup | None:
    """Return the first findings of a dataset as numbered sentences with effect, verdict and link."""
    items = []
    for finding in findings[:most]:
        saves = None
        if finding["recoverable_ns"] is not None:
            bound = tag("b", f"≤ {theme.time(finding['recoverable_ns'])}")
            saves = tag("span", bound, tag("span", "GPU time recoverable", class_="note"), class_="saves")
        inferred = finding["kind"] in ("cause", "no_cause")
        under = [
            verdict_tag(finding["verdict"]) if inferred else tag("span", "counted, not inferred"),
            tag("a", "where this is shown", href=f"#{finding['link'].partition('#')[2]}"),
        ]
        under += [tag("span", f"{theme.count(finding['n'])} launches")] if finding["n"] is not None else []
        words = tag("div", elided(finding["sentence"], 900), class_="said")
        items.append(tag("li", tag("div", words, tag("div", under, class_="under")), saves))
    return tag("ol", items, class_="findings") if items else None


def kernel_table(kernels: Sequence[Kernel], dataset: str, target: str, unit: str) -> Markup:
    """Return the kernels as a table that can be sorted, the first fifteen in sight; findings link to its rows."""
    share, *names = [heading for heading, _, _ in columns_of(target)]
    heads = [tag("th", "kernel"), tag("th", share, aria_sort="descending")]
    heads += [tag("th", name, class_="n" if place < 4 else None) for place, name in enumerate(names)]
    largest = kernels[0].share

    def table(rows: Sequence[Kernel]) -> Markup:
        body = tag("tbody", [kernel_row(row, largest, unit, anchor(dataset, target, "kernel", row.id)) for row in rows])
        return tag("div", tag("table", tag("thead", tag("tr", heads)), body, class_="sortable kernels"), class_="wide")

    parts = [table(kernels[:TOP_KERNELS])]
    rest, left = kernels[TOP_KERNELS:MOST_KERNELS], len(kernels) - MOST_KERNELS
    if rest:
        words = f"{len(rest)} more kernels" + (f" ({theme.count(left)} further ones stand in kernels.parquet)" if left > 0 else "")
        parts.append(tag("details", tag("summary", words), table(rest)))
    return tag("div", parts)


def kernel_row(kernel: Kernel, largest: float, unit: str, place: str) -> Markup:
    """Return one kernel as a row with the id `place`."""

    def cell(text: str, value: float | None) -> Markup:
        return tag("td", text, class_="n", data_v="" if value is None else value)

    dot = tag("span", class_="dot", style=f"background:{theme.class_colour(kernel.kind)}", title=kernel.kind)
    shape = f"from {theme.quantity(kernel.smallest, unit)} to {theme.quantity(kernel.largest, unit)}, log scale"
    share = [bar(kernel.share, largest, theme.SEQUENTIAL[5], width=80), " ", share_text(kernel.share)]
    return tag(
        "tr",
        tag("td", dot, tag("span", kernel.short, title=full_name(kernel.name)), class_="name"),
        tag("td", share, data_v=kernel.share, class_="share"),
        cell(share_text(kernel.value_share), kernel.value_share),
        cell(theme.count(kernel.launches), kernel.launches),
        cell(theme.quantity(kernel.median, unit), kernel.median),
        cell(theme.ratio(kernel.robust_cv), kernel.robust_cv),
        tag("td", histogram(kernel.histogram, 90, 24), title=shape),
        tag("td", sparkline(kernel.timeline, 120, 24)),
        id=place,
    )
