"""The overview's findings: where, what, why and what to do in a line each, then the first ones in full."""

from collections.abc import Collection, Mapping, Sequence

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.finding_kinds import FINDING_KINDS
from causeway.core.queries import in_document
from causeway.core.vocabulary import (
    INCONCLUSIVE,
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
WHERE = "Where"
QUESTIONS = (
    (WHERE, "no loss of a hundredth of the GPU time or more was found"),
    ("What varies", "nothing varies that was measured"),
    ("Why", "no cause was found"),
)
"""The questions of the first screen, which kinds of statements answer, and the answer where there is none."""
WHICH_RANK = "Which rank"
"""A further question where a rank is waited for, and another statement answers where the time goes."""
RECORDING = "Recording"
"""What is said before all where the recordings themselves decide what can be said."""

EXPLAINED = {target_name(MEMORY_STALL): MEMORY_STALL_EXPLAINED}
"""Terms that are explained above the findings, where one of their headlines has them."""

NO_TIMES = "not measured: no export has a time line"
"""The answer to where of a dataset of counters or tables alone."""
UNDECIDED = "not decided: most launches are missing from the exports, and the time in which they ran counts as idle"
"""The answer to where of a dataset whose losses are undecided."""
NOT_RECORDED = "not decided: what ranks did not record counts as time without work"
"""The same where the recordings of ranks have too little in common."""
NOTHING = "nothing was measured"
"""The answer to all three of a dataset without a launch in its results."""
WAITS_ONLY = "what was found is about collectives, whose time includes waiting for the last rank"
"""The answer to why where causes of collectives alone were found."""
LITTLE = "what was found explains less than a hundredth of the variance, or perhaps nothing"
"""The answer to why where causes of next to nothing alone were found."""
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


def answers(
    findings: Sequence[tuple[int, Mapping]],
    collectives: Collection[str] = (),
    *,
    is_traced: bool = True,
    is_measured: bool = True,
) -> Markup | None:
    """Return where, what, why and what to do, each in the words of the first statement that answers it; None without
    any finding.

    Before them stands what must be known of the recordings, which answers where if nothing else does. What to do is
    what the first of these three advises; if none does, what the first finding does; before all, what a finding on the
    recording does, then a loss that is undecided. A cause of the time of a collective, by the ids of `collectives`, is
    no answer to why: that time includes waiting for the last rank; nor is one that explains next to nothing. Of what
    varies and why the durations are said before the memory stall, wherever their kernel stands, and what changes the
    mean before what has a share of the variance. Where nothing
    `is_traced`, no time can be seen to be lost; where nothing `is_measured`, nothing was looked at.
    """
    if not findings:
        return None
    every = _every(findings)
    supported = [one for one in every if one[1]["verdict"] == SUPPORTED]
    # an input that was not read, or in part, comes first: what is not there is in no answer
    rows = [("What was not read", said(*one, "sentence")) for one in every if one[1]["kind"] == "quality"][:1]
    recording = [one for one in every if one[1]["kind"] == "recording"]
    # without a time line, what is known of the recording is the answer to where
    of_place = recording[:1] if not is_traced else []
    rows += [(RECORDING, said(*one)) for one in recording if one not in of_place][:2]
    given = []
    for question, nothing in QUESTIONS:
        asked = [one for one in supported if FINDING_KINDS[one[1]["kind"]].question == question]
        if question != WHERE:
            asked.sort(key=lambda one: (one[1]["target"] == MEMORY_STALL, _states_a_share(one[1])))
        telling = [one for one in asked if not explains_little(one[1])]
        nothing = LITTLE if asked and not telling else nothing
        asked = telling
        found = next((one for one in asked if one[1]["kind"] != "cause" or one[1]["scope"] not in collectives), None)
        if question == WHERE and found is None and of_place:
            found = of_place[0]
        given += [found] if found else []
        nothing = nothing if is_measured else NOTHING
        if question == WHERE and any((one["kind"], one["verdict"]) == ("efficiency", INCONCLUSIVE) for _, one in every):
            nothing = NOT_RECORDED if recording else UNDECIDED
        without = WAITS_ONLY if asked else NO_TIMES if question == WHERE and is_measured and not is_traced else nothing
        rows.append((question, said(*found) if found else without))
        late = next((one for one in supported if one[1]["kind"] == "straggler"), None)
        if question == WHERE and late not in (None, found):
            rows.append((WHICH_RANK, said(*late)))
    undecided = [one for _, one in every if (one["kind"], one["verdict"]) == ("efficiency", INCONCLUSIVE)]
    advised = [*[one for _, one in recording], *undecided]
    advised += [*[one for _, one in sorted(given, key=_worth_first)], *[one for _, one in every]]
    advice = next((one["suggestion"] for one in advised if one["suggestion"]), "nothing to act upon was found")
    rows.append(("What to do", advice))
    return tag(
        "dl",
        [[tag("dt", question), tag("dd", words)] for question, words in rows],
        class_="answers",
        aria_label="answers",
    )


def little_at_stake(findings: Sequence[tuple[int, Mapping]], target: str) -> Markup | None:
    """Return what is said of a whole target that costs too little to be explained; None of every other target."""
    for number, one in findings:
        if (one["target"], one["kind"], one["scope"], one["severity"]) == (target, "variability", "dataset", "none"):
            return said(("findings", number), one, "sentence")
    return None


def _worth_first(one: tuple[Place, Mapping]) -> float:
    return -(one[1]["recoverable_ns"] or 0)


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
            tag("td", _time(finding), class_="n"),
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


def _states_a_share(finding: Mapping) -> bool:
    """Return whether a finding is a cause of which no change of the mean is known, only its share of the variance."""
    return finding["kind"] == "cause" and finding.get("effect") == finding.get("explained")


def explains_little(finding: Mapping) -> bool:
    """Return whether a finding is a cause that explains less than a hundredth of the variance, or may explain none of
    it.
    """
    share = finding.get("explained")
    if finding["kind"] != "cause" or share is None:
        return False
    return share["value"] < LEAST_EXPLAINED or (share["low"] is not None and share["low"] <= 0)


def _time(finding: Mapping) -> Markup | str:
    """Return the GPU time that a finding is worth."""
    if finding["recoverable_ns"] is None:
        return citations.UNKNOWN
    return citations.time(finding["recoverable_ns"], finding["recoverable_query"])


def _worth(place: Place, finding: Mapping) -> Markup | None:
    """Return the GPU time that a finding is worth, with its interval and its share of all."""
    if finding["recoverable_ns"] is None:
        return None
    part = finding["recoverable_share"]
    of = "GPU time"
    if part:
        of = [citations.share(part, in_document("findings.json", *place, "recoverable_share")), " of the GPU time"]
    between = None
    if finding["worth_low"] is not None:
        ends = [
            citations.time(finding[key], in_document("findings.json", *place, key, kind="integer"))
            for key in ("worth_low", "worth_high")
        ]
        between = tag("span", "[", ends[0], ", ", ends[1], "]", class_="note")
    is_late_rank = finding["kind"] == "straggler" and finding["recoverable_ns"] != finding["worth_ns"]
    if finding["replay"] is not None or is_late_rank:
        whole = citations.time(finding["worth_ns"], in_document("findings.json", *place, "worth_ns", kind="integer"))
        between = tag("span", _beside_saving(finding, whole), class_="note")
    elif finding["kind"] == "efficiency":
        between = tag("span", "all of it: a bound without dependencies", class_="note")
    return tag("span", tag("b", _time(finding)), between, tag("span", of, class_="note"), class_="saves")


def _beside_saving(finding: Mapping, whole: Markup) -> list[Markup | str]:
    """Return what stands beside a saving: the loss (`whole`), which bounds what a replay saves, or the time that others
    wait for a late rank, which does not: without it the run ends earlier on that rank, too.
    """
    if finding["replay"] is None:
        return ["at most, on all ranks; the others wait ", whole]
    if finding["replay"]["change"] == "no_straggler":
        return ["by replay; the ranks wait ", whole]
    if finding["recoverable_ns"] == finding["worth_ns"]:
        return ["all that is lost; a replay saves no less"]
    if finding["recoverable_ns"] > finding["worth_ns"]:
        return ["by replay; lost is ", whole]
    return ["by replay; at most ", whole, " without dependencies"]


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
    if finding["probability"] is not None:
        query = in_document("findings.json", *place, "probability")
        found.append(tag("span", "probability ", citations.ratio(finding["probability"], query)))
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
        under.append(tag("span", citations.count(finding["n"], query), f" {kind.counts}"))
    if finding["based_on"]:
        under.append(tag("span", "based only on ", said(place, finding, "based_on")))
    under += _links(finding)
    tried = tag("div", tag("b", "Try: "), finding["suggestion"], class_="try") if finding["suggestion"] else None
    parts = [tag("div", said(place, finding), class_="said"), tried, tag("div", under, class_="under")]
    return tag("li", tag("div", parts, _at_length(number, finding)), _worth(place, finding))


def _links(finding: Mapping) -> list[Markup]:
    page, _, inside = finding["link"].partition("#")
    own = page == "overview.html" and inside
    found = [
        tag("a", "where this is shown", href=f"#{inside}")
        if own
        else citations.away("where this is shown", finding["link"], page)
    ]
    if finding["explorer"]:
        found.append(citations.away("its window", finding["explorer"], finding["explorer"].partition("#")[0]))
    found.append(citations.away("its table", finding["evidence"]["table"], title=finding["evidence"]["query"]))
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
    if FINDING_KINDS[finding["kind"]].question == WHERE:
        return "The same loss by its reasons:"
    return "Also about all kernels together:" if finding["scope"] == "dataset" else "Also about this kernel:"
