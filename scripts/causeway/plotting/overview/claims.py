"""What the overview claims: the first screen, the first findings in full, the verdict of each compared pair."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.finding_kinds import FINDING_KINDS
from causeway.core.queries import in_document, of_table, value_at, within
from causeway.core.vocabulary import CHANGE_WORDS, GONE, INCONCLUSIVE, LEAST_EXPLAINED, NEW, SAME, SUPPORTED
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import joined, tag
from causeway.plotting.figures.comparison import of_kernels
from causeway.plotting.overview.what_varies import verdict_tag

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


COMPARED = "compared"
"""The section's place in the page."""
COMPARISON = "comparison"
"""The kind of findings that say what changed."""
KERNELS = (*CHANGE_WORDS["time_per_launch"], SAME, INCONCLUSIVE)
OF_KERNELS = "level = 'kernel' AND metric = 'time_per_launch'"


def compared_runs(
    comparisons: Sequence[tuple[Mapping, Sequence[Mapping]]],
    findings: Sequence[Mapping],
    lines: Sequence[tuple[int, Mapping]],
    links: Sequence[Mapping[str, str]],
) -> Markup | None:
    """Return the section, None where no pair is compared: of each what the first screen says, and the headlines of its
    findings.

    Parameters
    ----------
    comparisons : sequence of (mapping, sequence of mapping)
        `comparison.json` and the rows of `comparison.parquet` of each pair, in the configuration's order.
    findings : sequence of mapping
        All findings of `findings.json`.
    lines : sequence of (int, mapping)
        Lines of first screens with their places in the document.
    links : sequence of mapping
        Figures and pages to link to, see `citations.figure_links`.
    """
    if not comparisons:
        return None
    note = "Positive: the candidate takes longer or has more; in brackets the interval."
    candidates = [document["candidate"]["dataset"] for document, _ in comparisons]
    told = {
        name: [one for one in lines if one[1]["question"] == "Compared" and one[1]["dataset"] == name]
        for name in candidates
        if candidates.count(name) == 1  # lines name the candidate alone
    }
    return tag(
        "section",
        tag("h2", "Compared runs"),
        tag("p", note, " ", _history() if len(comparisons) > 1 else None, class_="note"),
        tag(
            "ul",
            [
                _pair(document, rows, findings, told.get(document["candidate"]["dataset"], ()), links)
                for document, rows in comparisons
            ],
            class_="pairs",
        ),
        id=COMPARED,
    )


def _history() -> Markup:
    """Return the link to the page of all pairs, run by run."""
    path = "compare/history.html"
    return citations.away("Runs over time", path, path)


def _pair(
    document: Mapping,
    rows: Sequence[Mapping],
    findings: Sequence[Mapping],
    lines: Sequence[tuple[int, Mapping]],
    links: Sequence[Mapping],
) -> Markup:
    names = {side: document[side]["dataset"] for side in ("baseline", "candidate")}
    folder = f"compare/{names['baseline']}__{names['candidate']}"
    if document["why"] is not None:
        query = in_document(f"{folder}/comparison.json", "why", kind="text")
        said = [_claims(findings, folder), citations.said(document["why"], query)]
        return tag(
            "li",
            tag("div", joined([one for one in said if one is not None], " "), class_="said"),
            tag("div", citations.figure_links(links, "pair", folder), class_="under"),
        )
    under = [
        _noise(document, folder),
        *_unread(document, folder),
        *citations.figure_links(links, "pair", folder),
        citations.away("its table", f"{folder}/comparison.parquet"),
    ]
    said = [
        tag("b", citations.name(f"{names['baseline']} → {names['candidate']}: ")),
        *(
            citations.said(line["answer"], in_document("findings.json", "first_screen", place, "answer", kind="text"))
            for place, line in lines
        ),
        _claims(findings, folder),
        _kernels(document, rows, folder),
    ]
    return tag(
        "li",
        tag("div", joined([one for one in said if one is not None], " "), class_="said"),
        tag("div", under, class_="under"),
    )


def _claims(findings: Sequence[Mapping], folder: str) -> Markup | None:
    """Return the headlines of a pair's findings on the whole run, or that nothing changed; None without findings."""
    said = [
        citations.said(one["headline"], in_document("findings.json", "findings", place, "headline", kind="text"))
        for place, one in enumerate(findings)
        if one["kind"] == COMPARISON and one["scope_name"] is None and one["link"] == f"{folder}/comparison.html"
    ]
    return joined(said, " ") if said else None


def _kernels(document: Mapping, rows: Sequence[Mapping], folder: str) -> Markup:
    """Return how many kernels have which verdict, and how many only one side has."""
    kernels = of_kernels(rows)
    table = f"{folder}/comparison.parquet"
    known = f"{OF_KERNELS} AND change_percent IS NOT NULL"
    parts = []
    for verdict in KERNELS:
        number = sum(row["verdict"] == verdict for row in kernels)
        if number:
            parts.append(
                joined(
                    [
                        citations.count(number, of_table("count(*)", table, f"{known} AND verdict = '{verdict}'")),
                        f" {verdict}",
                    ]
                )
            )
    lone = [
        joined(
            [
                citations.count(
                    document["matched"][how], in_document(f"{folder}/comparison.json", "matched", how, kind="integer")
                ),
                f" {how}",
            ]
        )
        for how in (NEW, GONE)
    ]
    both = [
        citations.count(len(kernels), of_table("count(*)", table, known)),
        f" kernel{'' if len(kernels) == 1 else 's'} on both sides: ",
    ]
    return joined(
        ["Of ", *both, joined(parts, ", "), "; ", joined(lone, ", "), "."]
        if kernels
        else [joined(lone, ", "), " kernels."]
    )


def _noise(document: Mapping, folder: str) -> Markup:
    """Return what the noise was learned from: it decides what can be claimed."""
    repeats = sum(len(document[side]["repeats"]) for side in ("baseline", "candidate"))
    if not repeats:
        return tag("span", "one run on each side: the noise between runs was not measured")
    lengths = [value_at(side, "repeats", kind="length") for side in ("baseline", "candidate")]
    query = within(f"{folder}/comparison.json", f"({' + '.join(lengths)})::BIGINT")
    return tag("span", "noise learned from ", citations.count(repeats, query), f" further run{'s' * (repeats > 1)}")


def _unread(document: Mapping, folder: str) -> list[Markup]:
    """Return which repeats are in no number, as they could not be measured."""
    query = in_document(f"{folder}/comparison.json", "unread_repeats", kind="length")
    names = [one["dataset"] for one in document["unread_repeats"]]
    if not names:
        return []
    number = citations.count(len(names), query)
    named = joined([citations.name(name) for name in names], ", ")
    return [tag("span", number, f" repeat{'s' * (len(names) > 1)} could not be measured: ", named)]
