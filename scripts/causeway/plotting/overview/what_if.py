"""The overview's answer to what would help: what-ifs of all kernels, ranked by what they are worth."""

from collections.abc import Sequence

import pyarrow as pa
from markupsafe import Markup

from causeway.core.codes import COMMUNICATION_KERNEL
from causeway.core.feature_registry import feature_words
from causeway.core.formatting import elided
from causeway.core.queries import of_table, rows_where
from causeway.core.results import Search
from causeway.core.vocabulary import KERNEL_VARIABILITY, target_name
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.citations import Sourced, interval, row_parts
from causeway.plotting.drawing.markup import tag
from causeway.plotting.drawing.page import rendered
from causeway.plotting.figures.kernels import Kernel

SHOWN = 3
HOST = "host"
"""Kind of the pieces of critical paths that are calls and host code."""
NO_CHANGE = 0.05
"""Percent of the run that a change, or an end of its interval, must reach to be said in numbers."""


def what_ifs_of(search: Search) -> list[tuple[int, Sourced]]:
    """Return the what-ifs of a search with their numbers in its table."""
    table = search.table.replace("contributions", "whatif")
    rows = enumerate(search.tables.get("whatif", []))
    return [(number, row_parts(row, table, file_row_number=number)) for number, row in rows]


def ranked(searches: Sequence[Search], kernels: Sequence[Kernel]) -> list[tuple[Sourced, int, Kernel | None]]:
    """Return supported what-ifs that win GPU time, most first, with their numbers; one per kernel and feature, the one
    that wins most.

    The times do not add up, because causes overlap. The whole dataset's what-ifs stand in where no kernel has any.
    Those of collectives are left out: their time includes waiting for the last rank.
    """
    by_id = {kernel.id: kernel for kernel in kernels}
    wins: list[tuple[Sourced, int, Kernel | None]] = []
    for search in searches:
        kernel = by_id.get(search.graph["scope"])
        if kernel is not None and kernel.kind == COMMUNICATION_KERNEL:
            continue
        best: dict[str, tuple[Sourced, int, Kernel | None]] = {}
        for number, row in what_ifs_of(search):
            what_if = row.raw
            if what_if["verdict"] != "supported" or (what_if.get("saved_ns") or 0) <= 0 or what_if.get("asked"):
                continue
            if what_if["feature"] not in best or what_if["saved_ns"] > best[what_if["feature"]][0].raw["saved_ns"]:
                best[what_if["feature"]] = row, number, kernel
        wins += best.values()
    own = [win for win in wins if win[2] is not None]
    return sorted(
        own or wins, key=lambda win: (-win[0].raw["saved_ns"], win[2].id if win[2] else "", win[0].raw["feature"])
    )


def changes_of_the_run(dataset: str, replayed: pa.Table | None) -> dict[tuple[str, int], Markup | str]:
    """Return what replayed what-ifs do to the time of the run, by the kernel's id and the row of its what-ifs.

    Parameters
    ----------
    dataset : str
    replayed : Table or None
        `replayed_what_ifs`.
    """
    table = f"{dataset}/kernel_variability/replayed_what_ifs.parquet"
    changes = {}
    for number, row in enumerate(replayed.to_pylist() if replayed is not None else []):
        parts = row_parts(row, table, file_row_number=number)
        change = interval(parts, "run_change")
        ends = [abs(row[f"run_change_{end}"] or 0) for end in ("percent", "low", "high")]
        limit = citations.said(row["limited_by"] or "", parts["limited_by"].query)
        if row["limited_by"] == HOST and ends[0] < NO_CHANGE:
            change = tag("span", "no shorter, the ", limit, " limits it")
        elif row["limited_by"] and max(ends) < NO_CHANGE:
            change = tag("span", "no shorter; limited by: ", limit)
        changes[row["kernel"], row["what_if"]] = change
    return changes


def what_would_help(
    dataset: str,
    targets: Sequence[tuple[str, Sequence[Search], Sequence[Kernel]]],
    replayed: pa.Table | None = None,
) -> Markup | None:
    """Return the table of a dataset, or None where nothing that was observed would win time.

    Parameters
    ----------
    dataset : str
    targets : sequence of (str, sequence of Search, sequence of Kernel)
        Each target with its searches and kernels.
    replayed : Table or None
        `replayed_what_ifs` of `kernel_variability`: what those do to the run.
    """
    of_run = changes_of_the_run(dataset, replayed)
    groups = {
        row["feature"]: row.get("group") or ""
        for _, searches, _ in targets
        for search in searches
        for row in search.contributions
    }
    rows = [
        {
            "row": row,
            "feature": feature_words(row.raw["feature"], groups.get(row.raw["feature"], "")),
            "kernel": kernel,
            "target": target_name(target),
            "run": of_run.get((kernel.id if kernel else "", number)) if target == KERNEL_VARIABILITY else None,
        }
        for target, searches, kernels in targets
        for row, number, kernel in ranked(searches, kernels)[:SHOWN]
    ]
    asked = what_was_asked(targets)
    if not rows and not asked:
        return None
    return rendered("what_would_help.html", dataset=dataset, rows=rows, replayed=bool(of_run), asked=asked)


def what_was_asked(targets: Sequence[tuple[str, Sequence[Search], Sequence[Kernel]]]) -> list[dict]:
    """Return the answers to the configuration's own questions in the order of these; equal refusals are one."""
    answers: dict[tuple[str, str], dict] = {}
    for target, searches, kernels in targets:
        short = {kernel.id: kernel.short for kernel in kernels}
        for search in searches:
            scope = search.graph["scope"]
            whole = elided(search.graph.get("scope_name") or "Whole dataset", 60)
            for number, parts in what_ifs_of(search):
                row = parts.raw
                if not row.get("asked"):
                    continue
                where = rows_where({"file_row_number": number})
                query = of_table("coalesce(sentence, reason)", search.table.replace("contributions", "whatif"), where)
                alike = f"{target} {scope}: {row['sentence']}" if row["sentence"] else f"{target} {row['reason']}"
                answer = {"question": row["asked"], "kernel": short.get(scope, whole), "target": target_name(target)}
                answer |= {"answer": Sourced(row["sentence"] or row["reason"], query), "verdict": row["verdict"]}
                answers.setdefault((row["asked"], alike), answer | {"more": -1})["more"] += 1
    return sorted(answers.values(), key=lambda answer: answer["question"])
