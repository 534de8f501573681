"""What the overview claims: the first screen, the first findings in full, the verdict of each compared pair."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.finding_kinds import FINDING_KINDS
from causeway.core.queries import in_document, of_table, value_at, within
from causeway.core.vocabulary import GONE, LEAST_EXPLAINED, NEW, SUPPORTED
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.citations import Sourced, document_parts
from causeway.plotting.drawing.page import rendered
from causeway.plotting.figures.comparison import of_kernels, verdicts_of

FIRST = 3
"""Findings in sight."""
MOST_FINDINGS = 8
"""Findings of a dataset on the page; findings.json has all."""
MOST_ALSO = 3
"""Further claims about the same kernel, or reasons of the same loss."""


def statement(part: str, place: int, statement: Mapping) -> Sourced:
    """Return a statement of `findings.json` with the queries of what it says."""
    return document_parts("findings.json", statement, part, place)


def first_screen(lines: Sequence[tuple[int, Mapping]]) -> Markup | None:
    """Return the first screen of a dataset: questions and answers in their order; None without any.

    Parameters
    ----------
    lines : sequence of (int, mapping)
        Lines of `first_screen` of `findings.json` with their places in it.
    """
    answers = [(line["question"], statement("first_screen", place, line)["answer"]) for place, line in lines]
    return rendered("answers.html", lines=answers) if answers else None


def little_at_stake(findings: Sequence[tuple[int, Mapping]], target: str) -> Markup | str | None:
    """Return what is said of a whole target that costs too little to be explained; None of every other target."""
    for number, finding in findings:
        about = tuple(finding[key] for key in ("target", "kind", "scope", "severity"))
        if about == (target, "variability", "dataset", "none"):
            words = statement("findings", number, finding)["sentence"]
            return citations.said(words.raw, words.query)
    return None


def findings_list(findings: Sequence[tuple[int, Mapping]]) -> Markup | None:
    """Return the first findings of a dataset, numbered, behind a click the next ones, and how many are left to
    `findings.json`; each with its place in the document. None without any.

    What is small, and what found nothing, is not among them where others are.
    """
    if not findings:
        return None
    worth = [pair for pair in findings if not is_small(pair[1]) and not explains_little(pair[1])]
    worth = [pair for pair in worth if pair[1]["kind"] != "no_cause" and pair[1]["severity"] != "none"][:MOST_FINDINGS]
    items = [finding_values(*pair) for pair in worth]
    return rendered("findings.html", leading=items[:FIRST], listed=items[FIRST:], left=len(findings) - len(items))


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


def finding_values(number: int, finding: Mapping) -> dict[str, object]:
    """Return what the page shows of one finding; what a replay gives is cited from the findings themselves."""
    kind = FINDING_KINDS[finding["kind"]]
    parts = statement("findings", number, finding)
    sizes = {"effect": finding["quantity"], "p99": "p99", "spread": "spread"} if finding["kind"] == "cause" else {}
    return {
        "finding": parts,
        "kind": kind,
        "judged": kind.is_inferred or finding["verdict"] != SUPPORTED,
        "sizes": [(words, parts[key]) for key, words in sizes.items() if finding[key] is not None],
        "noun": formatting.counted(finding["n"] or 0, kind.counts).rpartition(" ")[2],
        "won": Sourced(finding["recoverable_ns"], finding.get("recoverable_query") or parts["recoverable_ns"].query),
        "also": [parts["also"][place] for place in range(len(finding["also"][:MOST_ALSO]))],
    }


COMPARED = "compared"
"""The section's place in the page."""
COMPARISON = "comparison"
"""The kind of findings that say what changed."""
OF_KERNELS = "level = 'kernel' AND metric = 'time_per_launch' AND change_percent IS NOT NULL"


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
    candidates = [document["candidate"]["dataset"] for document, _ in comparisons]
    said = [
        [
            statement("first_screen", place, line)
            for place, line in lines
            if (line["question"], line["dataset"]) == ("Compared", name) and candidates.count(name) == 1
        ]
        for name in candidates  # which lines name alone
    ]
    pairs = [
        _pair(document, rows, findings, links) | {"lines": own}
        for (document, rows), own in zip(comparisons, said, strict=True)
    ]
    return rendered("compared.html", id=COMPARED, pairs=pairs)


def _pair(document: Mapping, rows: Sequence[Mapping], findings: Sequence[Mapping], links: Sequence[Mapping]) -> dict:
    """Return what the page shows of a pair; its headlines are those of its findings on the whole run."""
    names = {side: document[side]["dataset"] for side in ("baseline", "candidate")}
    folder = f"compare/{names['baseline']}__{names['candidate']}"
    path = f"{folder}/comparison.json"
    table = f"{folder}/comparison.parquet"
    parts = document_parts(path, document)
    kernels = of_kernels(rows)
    page = f"{folder}/comparison.html"
    headlines = [
        statement("findings", place, finding)["headline"]
        for place, finding in enumerate(findings)
        if finding["kind"] == COMPARISON and finding["scope_name"] is None and finding["link"] == page
    ]
    shown = names | {"headlines": headlines, "why": parts["why"]}
    shown |= {"links": citations.figure_links(links, "pair", folder), "table": table}
    if document["why"] is not None:
        return shown
    verdicts = [
        (Sourced(number, of_table("count(*)", table, f"{OF_KERNELS} AND verdict = '{word}'")), word)
        for word, number in verdicts_of(kernels).items()
    ]
    lengths = " + ".join(value_at(side, "repeats", kind="length") for side in names)
    repeats = sum(len(document[side]["repeats"]) for side in names)
    unread = [repeat["dataset"] for repeat in document["unread_repeats"]]
    return shown | {
        "both": Sourced(len(kernels), of_table("count(*)", table, OF_KERNELS)),
        "verdicts": verdicts,
        "lone": [(parts["matched"][how], how) for how in (NEW, GONE)],
        "repeats": Sourced(repeats, within(path, f"({lengths})::BIGINT")),
        "unread": Sourced(len(unread), in_document(path, "unread_repeats", kind="length")),
        "unread_names": unread,
    }
