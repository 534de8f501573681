"""The overview's answer to what changed: the verdict of each compared pair in a sentence, with its number, interval
and page.
"""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.queries import cell, in_document, of_table, value_at, within
from causeway.core.vocabulary import CHANGE_WORDS, GONE, INCONCLUSIVE, NEW, SAME
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import joined, tag
from causeway.plotting.figures.comparison import of_kernels, unit_of

COMPARED = "compared"
"""The section's place in the page."""
COMPARISON = "comparison"
"""The kind of findings that say what changed."""
METRICS = {"efficiency": "parallel efficiency of the devices", "span": "span", "variability": "variability"}
KERNELS = (*CHANGE_WORDS["time_per_launch"], SAME, INCONCLUSIVE)
OF_KERNELS = "level = 'kernel' AND metric = 'time_per_launch'"


def compared_runs(
    comparisons: Sequence[tuple[Mapping, Sequence[Mapping]]],
    findings: Sequence[Mapping],
    links: Sequence[Mapping[str, str]],
) -> Markup | None:
    """Return the section, None where no pair is compared. What is said of a pair are the headlines of its findings.

    Parameters
    ----------
    comparisons : sequence of (mapping, sequence of mapping)
        `comparison.json` and the rows of `comparison.parquet` of each pair, in the configuration's order.
    findings : sequence of mapping
        All findings of `findings.json`.
    links : sequence of mapping
        Figures and pages to link to, see `citations.figure_links`.
    """
    if not comparisons:
        return None
    note = (
        "Positive: the candidate, named first, takes longer or has more; in brackets the interval at the level that the"
        " page states."
    )
    return tag(
        "section",
        tag("h2", "Compared runs"),
        tag("p", note, " ", _history() if len(comparisons) > 1 else None, class_="note"),
        tag("ul", [_pair(document, rows, findings, links) for document, rows in comparisons], class_="pairs"),
        id=COMPARED,
    )


def _history() -> Markup:
    """Return the link to the page of all pairs, run by run."""
    path = "compare/history.html"
    return citations.away("Runs over time", path, path)


def _pair(document: Mapping, rows: Sequence[Mapping], findings: Sequence[Mapping], links: Sequence[Mapping]) -> Markup:
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
    whole = {
        row["metric"]: (place, row)
        for place, row in enumerate(rows)
        if row["level"] == "run" and row["change_percent"] is not None
    }
    under = [
        _noise(document, folder),
        *_unread(document, folder),
        *citations.figure_links(links, "pair", folder),
        citations.away("its table", f"{folder}/comparison.parquet"),
    ]
    said = [
        _claims(findings, folder),
        _time(names, whole.get("time_per_launch"), folder),
        _others(whole, folder),
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
    return tag("b", joined(said, " ")) if said else None


def _time(names: Mapping[str, str], found: tuple[int, Mapping] | None, folder: str) -> Markup:
    """Return the change of the time for the same launches, with its interval."""
    if found is None:
        shown = {side: citations.name(name) for side, name in names.items()}
        return joined(
            [
                shown["baseline"],
                " and ",
                shown["candidate"],
                " have no launches in common that could be compared as a whole.",
            ]
        )
    place, row = found
    verdict = f" ({row['verdict']})."
    return joined(["The time for the same launches changed by ", change(place, row, folder), verdict])


def change(place: int, row: Mapping, folder: str) -> Markup:
    """Return a change with its interval, each number with its query: `+4.0 % [+3.8, +4.2]`; `place` is the row's
    number in the table.
    """
    kind = "number" if row["metric"] == "efficiency" else "percent"
    table = f"{folder}/comparison.parquet"
    columns = (
        ("change_percent", "low_percent", "high_percent") if row["low_percent"] is not None else ("change_percent",)
    )
    words = formatting.signed(*(row[column] for column in columns))
    words[0] += f" {unit_of(row)}"
    said, *ends = [
        citations.cited(text, row[column], cell(column, table, place), kind)
        for text, column in zip(words, columns, strict=True)
    ]
    return joined([said, " [", ends[0], ", ", ends[1], "]"]) if ends else joined([said])


def _others(whole: Mapping[str, tuple[int, Mapping]], folder: str) -> Markup | None:
    """Return the whole run's other metrics, each with its verdict."""
    parts = [
        joined([words, " ", change(*whole[metric], folder), f" ({whole[metric][1]['verdict']})"])
        for metric, words in METRICS.items()
        if metric in whole
    ]
    return joined(["Beside it: ", joined(parts, ", "), "."]) if parts else None


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
