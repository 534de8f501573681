"""The overview's answer to what changed: the verdict of each compared pair in a sentence, with its number, interval
and page.
"""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core.queries import in_document, of_table, value_at, within
from causeway.core.vocabulary import CHANGE_WORDS, GONE, INCONCLUSIVE, NEW, SAME
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import joined, tag
from causeway.plotting.figures.comparison import of_kernels

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
