"""The overview's first screen, then the findings that are first in full."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.finding_kinds import FINDING_KINDS
from causeway.core.queries import in_document
from causeway.core.vocabulary import (
    LEAST_EXPLAINED,
    MEMORY_STALL,
    SUPPORTED,
    target_name,
)
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import joined, tag
from causeway.plotting.drawing.target_labels import MEMORY_STALL_EXPLAINED
from causeway.plotting.overview.variability.causes import verdict_tag

FIRST = 3
"""Findings in sight."""
MOST_FINDINGS = 15
"""Findings of a dataset with all that is known of them; of the others the table has the headline."""
MOST_ROWS = 200
"""Rows of that table."""
EXPLAINED = {target_name(MEMORY_STALL): MEMORY_STALL_EXPLAINED}
"""Terms that are explained above the findings, where one of their headlines has them."""

Place = tuple[int | str, ...]
"""The way to a statement in `findings.json`."""


def _every(findings: Sequence[tuple[int, Mapping]]) -> list[tuple[Place, Mapping]]:
    """Return all statements, those about one kernel in the order: the main one, the others."""
    found: list[tuple[Place, Mapping]] = []
    for number, finding in findings:
        found.append((("findings", number), finding))
        found += [(("findings", number, "also", index), one) for index, one in enumerate(finding["also"])]
    return found


def said(place: Place, finding: Mapping, key: str = "headline") -> Markup:
    """Return a text of a statement with its query."""
    return citations.said(finding[key], in_document("findings.json", *place, key, kind="text"))


def first_screen(lines: Sequence[tuple[int, Mapping]]) -> Markup | None:
    """Return the first screen of a dataset: questions and answers in their order; None without any.

    Parameters
    ----------
    lines : sequence of (int, mapping)
        Lines of `first_screen` of `findings.json` with their places in it.
    """
    rows = []
    before = None
    for place, line in lines:
        words = said(("first_screen", place), line, "answer")
        rows += [tag("dt", line["question"])] if line["question"] != before else []
        rows.append(tag("dd", words))
        before = line["question"]
    return tag("dl", rows, class_="answers", aria_label="first screen") if rows else None


def little_at_stake(findings: Sequence[tuple[int, Mapping]], target: str) -> Markup | None:
    """Return what is said of a whole target that costs too little to be explained; None of every other target."""
    for number, one in findings:
        if (one["target"], one["kind"], one["scope"], one["severity"]) == (target, "variability", "dataset", "none"):
            return said(("findings", number), one, "sentence")
    return None


def findings_list(findings: Sequence[tuple[int, Mapping]]) -> Markup | None:
    """Return the first findings of a dataset, numbered, behind a click the next ones, and the headlines of the rest as
    a table; each with its place in the document.

    What is small is not among the first, and what found nothing does not take its place, nor that of any other.
    """
    if not findings:
        return None
    least = "none" if any(is_small(finding) for _, finding in findings) else ""
    leading = [one for one in findings if not is_small(one[1]) and one[1]["severity"] != least]
    leading = [one for one in leading if not explains_little(one[1])]
    leading = [one for one in leading if one[1]["kind"] != "no_cause"][:FIRST] or leading[:FIRST]
    rest = [one for one in findings if one not in leading]
    nothing = None
    if any(is_small(finding) for _, finding in rest) and not any(
        finding["severity"] in ("high", "medium") for _, finding in leading
    ):
        nothing = tag("p", "Nothing that was found is worth as much as a hundredth of the GPU time.")
    terms = [words for term, words in EXPLAINED.items() if any(term in one["headline"] for _, one in _every(findings))]
    first = [
        nothing,
        [tag("p", words, class_="note") for words in terms],
        tag("ol", [finding_item(place, finding) for place, finding in leading], class_="findings") if leading else None,
    ]
    if not rest:
        return tag("div", first)
    shown = rest[: MOST_FINDINGS - len(leading)]
    items = [finding_item(place, finding) for place, finding in shown]
    listed = tag("ol", items, class_="findings", style=f"counter-reset:f {len(leading)}")
    summary = tag("summary", "All other findings, in their order" if leading else "All findings, in their order")
    return tag("div", first, tag("details", summary, listed, _table(rest[len(shown) :]), class_="rest"))


def _table(rest: Sequence[tuple[int, Mapping]]) -> Markup | None:
    """Return the headlines of findings as a table, None without any."""
    if not rest:
        return None
    rows = [
        tag(
            "tr",
            tag("td", said(("findings", number), finding), class_="said"),
            tag("td", _time(("findings", number), finding), class_="n"),
            tag("td", verdict_tag(finding["verdict"])),
        )
        for number, finding in rest[:MOST_ROWS]
    ]
    head = tag(
        "thead", tag("tr", tag("th", "further findings"), tag("th", "GPU time", class_="n"), tag("th", "verdict"))
    )
    more = tag("p", "The others stand in findings.json.", class_="note") if len(rest) > MOST_ROWS else None
    return tag("div", tag("table", head, tag("tbody", rows)), more, class_="wide")


def is_small(finding: Mapping) -> bool:
    """Return whether a finding is supported and worth too little to act upon first: under a hundredth of the GPU
    time.
    """
    is_low = finding["severity"] == "low" and finding["verdict"] == SUPPORTED
    return is_low and finding["recoverable_share"] is not None and not explains_little(finding)


def explains_little(finding: Mapping) -> bool:
    """Return whether a finding is a cause that explains less than a hundredth of the variance, or may explain none of
    it.
    """
    share = finding.get("explained")
    if finding["kind"] != "cause" or share is None:
        return False
    return share["value"] < LEAST_EXPLAINED or (share["low"] is not None and share["low"] <= 0)


def _time(place: Place, finding: Mapping) -> Markup | str:
    """Return the GPU time that a finding is worth; what a replay gives is cited from the findings themselves."""
    if finding["recoverable_ns"] is None:
        return citations.UNKNOWN
    own = in_document("findings.json", *place, "recoverable_ns", kind="integer")
    return citations.time(finding["recoverable_ns"], finding["recoverable_query"] or own)


def _worth(place: Place, finding: Mapping) -> Markup | None:
    """Return what a finding is worth: the share of the run's time, the GPU time with its interval, and of a loss or a
    late rank all that it is of.
    """
    if finding["recoverable_ns"] is None:
        return None
    if not finding["recoverable_ns"]:
        return tag("span", tag("b", "wins nothing"), class_="saves")
    part = finding["recoverable_share"]
    share = citations.share(part, in_document("findings.json", *place, "recoverable_share")) if part else None
    head = tag("b", share, " of the run") if share is not None else tag("b", _time(place, finding))
    notes: list[Markup | str] = [_time(place, finding), " of GPU time"] if share is not None else []
    if finding.get("worth_low") is not None:
        ends = [
            citations.time(finding[key], in_document("findings.json", *place, key, kind="integer"))
            for key in ("worth_low", "worth_high")
        ]
        notes += [" [", ends[0], ", ", ends[1], "]"]
    elif finding.get("worth_ns") not in (None, finding["recoverable_ns"]):
        whole = citations.time(finding["worth_ns"], in_document("findings.json", *place, "worth_ns", kind="integer"))
        notes += ["; waited: " if finding["kind"] == "straggler" else "; lost: ", whole]
    return tag("span", head, tag("span", notes, class_="note") if notes else None, class_="saves")


def _sizes(place: Place, finding: Mapping) -> list[Markup]:
    """Return the estimates of a cause with their intervals, and how probable it is."""
    names = {"effect": finding["quantity"], "p99": "p99", "spread": "spread"}
    found = []
    for key, words in names.items():
        one = finding[key]
        if finding["kind"] != "cause" or one is None:
            continue
        queries = tuple(in_document("findings.json", *place, key, end) for end in ("value", "low", "high"))
        found.append(
            tag("span", citations.name(words), " ", citations.interval(one["value"], one["low"], one["high"], queries))
        )
    return found


def finding_item(number: int, finding: Mapping) -> Markup:
    """Return one finding: headline, what it is worth, estimates, verdict, links to figure, rows and window; behind a
    click the claim at length and further claims about the same kernel.
    """
    place = ("findings", number)
    kind = FINDING_KINDS[finding["kind"]]
    under = [verdict_tag(finding["verdict"])] if kind.is_inferred or finding["verdict"] != SUPPORTED else []
    under += _sizes(place, finding)
    under += [tag("span", kind.basis)]
    under += [tag("span", "small: under a hundredth of the GPU time")] if is_small(finding) else []
    under += [tag("span", "small: may explain less than a hundredth")] if explains_little(finding) else []
    if finding["n"] is not None:
        query = in_document("findings.json", *place, "n", kind="integer")
        noun = formatting.counted(finding["n"], kind.counts).rpartition(" ")[2]
        under.append(tag("span", citations.count(finding["n"], query), f" {noun}"))
    if finding["based_on"]:
        under.append(tag("span", "based only on ", said(place, finding, "based_on")))
    under += _links(finding)
    tried = (
        tag("div", tag("b", "Try: "), said(place, finding, "suggestion"), class_="try")
        if finding["suggestion"]
        else None
    )
    parts = [tag("div", said(place, finding), class_="said"), tried, tag("div", under, class_="under")]
    return tag("li", tag("div", parts, _at_length(number, finding)), _worth(place, finding))


def _links(finding: Mapping) -> list[Markup]:
    page, _, inside = finding["link"].partition("#")
    own = page == "overview.html" and inside
    words = ["See ", citations.name(inside.rpartition("--")[2])] if own else "See the page"
    found = [tag("a", words, href=f"#{inside}") if own else citations.away(words, finding["link"], page)]
    if finding["explorer"]:
        found.append(citations.away("Timeline", finding["explorer"], finding["explorer"].partition("#")[0]))
    found.append(citations.away("Data", finding["evidence"]["table"], title=finding["evidence"]["query"]))
    return found


def _at_length(number: int, finding: Mapping) -> Markup | None:
    """Return the claim at length and further claims about the same kernel, behind a click; None without either."""
    every = _every([(number, finding)])
    lines = [tag("p", said(place, one, "sentence")) for place, one in every if one["sentence"] != one["headline"]]
    if not lines and not finding["also"]:
        return None
    others = [tag("li", said(place, one), " ", verdict_tag(one["verdict"])) for place, one in every[1:]]
    more = joined([tag("p", _heading_of_others(finding)), tag("ul", others)]) if others else None
    words = formatting.count(len(others)) if others else ""
    summary = tag("summary", "at length", citations.name(f" and {words} more") if others else None)
    rest = tag("div", lines[1:], class_="note") if lines[1:] else None
    return tag("details", summary, lines[:1], more, rest, class_="length")


def _heading_of_others(finding: Mapping) -> str:
    """Return what stands above the further claims of a finding: what they are about."""
    if FINDING_KINDS[finding["kind"]].is_of_time:
        return "The same loss by its reasons:"
    return "Also about all kernels together:" if finding["scope"] == "dataset" else "Also about this kernel:"
