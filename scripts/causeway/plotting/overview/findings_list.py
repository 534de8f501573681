"""The overview's first screen, then the findings that are first in full."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.finding_kinds import FINDING_KINDS
from causeway.core.queries import in_document
from causeway.core.vocabulary import LEAST_EXPLAINED, SUPPORTED
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import joined, tag
from causeway.plotting.overview.variability.what_varies import verdict_tag

FIRST = 3
"""Findings in sight."""
MOST_FINDINGS = 8
"""Findings of a dataset on the page; findings.json has all."""
MOST_ALSO = 3
"""Further claims about the same kernel, or reasons of the same loss."""

Place = tuple[int | str, ...]
"""The way to a statement in `findings.json`."""


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
    """Return the first findings of a dataset, numbered, behind a click the next ones, and how many are left to
    `findings.json`; each with its place in the document. None without any.

    What is small, and what found nothing, is not among them where others are.
    """
    if not findings:
        return None
    worth = [one for one in findings if not is_small(one[1]) and not explains_little(one[1])]
    worth = [one for one in worth if one[1]["kind"] != "no_cause" and one[1]["severity"] != "none"]
    leading = worth[:FIRST]
    listed = worth[FIRST:MOST_FINDINGS]
    nothing = "Nothing that was found is worth as much as a hundredth of the GPU time." if not worth else None
    left = len(findings) - len(leading) - len(listed)
    words = None
    if left:
        # the page's own rules say which are left; the document has all
        number = citations.name(formatting.count(left))
        words = tag("p", number, f" further finding{'s' * (left > 1)} in findings.json.", class_="note")
    return tag(
        "div",
        tag("p", nothing) if nothing else None,
        tag("ol", [finding_item(place, finding) for place, finding in leading], class_="findings") if leading else None,
        _folded(listed),
        words,
    )


def _folded(findings: Sequence[tuple[int, Mapping]]) -> Markup | None:
    """Return findings behind a click, numbered on from those in sight; None without any."""
    if not findings:
        return None
    items = [finding_item(place, finding) for place, finding in findings]
    listed = tag("ol", items, class_="findings", style=f"counter-reset:f {FIRST}")
    return tag("details", tag("summary", "All other findings, in their order"), listed, class_="rest")


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
    place = ("findings", number)
    own = tag("p", said(place, finding, "sentence")) if finding["sentence"] != finding["headline"] else None
    also = enumerate(finding["also"][:MOST_ALSO])
    others = [tag("li", said((*place, "also", at), one), " ", verdict_tag(one["verdict"])) for at, one in also]
    if own is None and not others:
        return None
    more = joined([tag("p", _heading_of_others(finding)), tag("ul", others)]) if others else None
    words = citations.name(f" and {formatting.count(len(others))} more") if others else None
    return tag("details", tag("summary", "at length", words), own, more, class_="length")


def _heading_of_others(finding: Mapping) -> str:
    """Return what stands above the further claims of a finding: what they are about."""
    if FINDING_KINDS[finding["kind"]].is_of_time:
        return "The same loss by its reasons:"
    return "Also about all kernels together:" if finding["scope"] == "dataset" else "Also about this kernel:"
