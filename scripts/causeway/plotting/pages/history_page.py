"""Runs over time: all that are compared with one baseline, in the order of the configuration, on one page."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.vocabulary import FOR_THE_WORSE
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.kernel_labels import full_name, short_names
from causeway.plotting.drawing.page import inline, rendered
from causeway.plotting.figures.comparison import LABEL, change_words, draw_history
from causeway.plotting.pages.comparison_page import KINDS, METRICS

MOST_KERNELS = 30
Comparison = tuple[Mapping, Sequence[Mapping]]
"""`comparison.json` and the rows of `comparison.parquet` of a pair."""
RUN_COLUMNS = ("run", *METRICS.values())
KERNEL_COLUMNS = ("kernel", "what", "worse since", "runs", "change in the latest")


def draw_history_page(comparisons: Sequence[Comparison], results: str) -> Markup:
    """Return the page: for each baseline the runs against it, and the kernels that the latest has worse.

    Parameters
    ----------
    comparisons : sequence of (mapping, sequence of mapping)
        Of all pairs, in the configuration's order, which is taken for that of time.
    results : str
        The results folder as the workflow names it.
    """
    groups: dict[str, list[Comparison]] = {}
    for document, rows in comparisons:
        groups.setdefault(document["baseline"]["dataset"], []).append((document, rows))
    page = rendered(
        "history.html",
        title="Causeway: runs over time",
        run_columns=RUN_COLUMNS,
        kernel_columns=KERNEL_COLUMNS,
        groups=[_group(baseline, group) for baseline, group in groups.items()],
    )
    return citations.settled(page, results)[0]


def _group(baseline: str, group: Sequence[Comparison]) -> dict:
    known = [(document, rows) for document, rows in group if document["why"] is None]
    worse = _worse_kernels(known) if known else []
    return {
        "baseline": baseline,
        "figure": inline(draw_history(group)),
        "runs": [_run(document, rows) for document, rows in group],
        "latest": known[-1][0]["candidate"]["dataset"] if known else None,
        "kernels": worse[:MOST_KERNELS],
        "left_out": max(len(worse) - MOST_KERNELS, 0),
        "assumptions": sorted({document["assumption"] for document, _ in known}),
    }


def _run(document: Mapping, rows: Sequence[Mapping]) -> dict:
    """Return a run's changes from the baseline, one for each of `METRICS`; the name leads to the comparison."""
    whole = {row["metric"]: row for row in rows if row["level"] == "run"}
    run = document["candidate"]["dataset"]
    pair = f"{document['baseline']['dataset']}__{run}"
    cells = []
    for metric in METRICS:
        row = whole.get(metric)
        known = row is not None and row["change_percent"] is not None
        cells.append(
            {
                "change": change_words(row) if known else formatting.NOT_MEASURED,
                "verdict": row["verdict"] if known else "",
                "kind": KINDS.get(row["verdict"], "open") if known else "open",
                "reason": row["reason"] if known else document["why"] or "not compared",
            }
        )
    link = _link(run, pair)
    return {"link": link, "cells": cells}


def _link(run: str, pair: str) -> Markup:
    """Return a link from this page, which lies beside the folders of the pairs, to the comparison of a run."""
    return citations.away(run, f"{pair}/comparison.html", f"compare/{pair}/comparison.html")


def _worse_kernels(group: Sequence[Comparison]) -> list[dict]:
    """Return what the latest of runs that were compared claims to be worse, kernel by kernel, and since which run each
    comparison has claimed it without a gap; those that cost the latest run most first.
    """
    claims = [{(row["baseline"], row["metric"]): row for row in rows if row["level"] == "kernel"} for _, rows in group]
    latest = [(key, row) for key, row in claims[-1].items() if row["verdict"] in FOR_THE_WORSE]
    latest.sort(key=lambda one: (-abs((one[1]["candidate_total_ns"] or 0) * one[1]["change_percent"]), one[0]))
    short = short_names([key[0] for key, _ in latest], LABEL)
    found = []
    for key, row in latest:
        first = len(group) - 1
        while first and claims[first - 1].get(key, {}).get("verdict") == row["verdict"]:
            first -= 1
        found.append(
            {
                "full": full_name(key[0]),
                "short": short[key[0]],
                "what": row["verdict"],
                "since": group[first][0]["candidate"]["dataset"],
                "runs": formatting.count(len(group) - first),
                "change": change_words(row),
            }
        )
    return found
