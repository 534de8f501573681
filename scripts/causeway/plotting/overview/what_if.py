"""The overview's answer to what would help: what-ifs of all kernels, ranked by what they are worth."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from causeway.core.codes import COMMUNICATION_KERNEL
from causeway.core.formatting import elided
from causeway.core.queries import of_table, rows_where
from causeway.core.vocabulary import KERNEL_VARIABILITY, target_name
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.labels import full_name
from causeway.plotting.drawing.markup import tag
from causeway.plotting.drawing.page import page_table
from causeway.plotting.figures.kernels import Kernel

if TYPE_CHECKING:
    import pyarrow as pa


SHOWN = 3
HOST = "host"
"""Kind of the pieces of critical paths that are calls and host code."""
NO_CHANGE = 0.05
"""Percent of the run that a change, or an end of its interval, must reach to be said in numbers."""


def ranked(
    searches: Sequence[object], kernels: Sequence[Kernel]
) -> list[tuple[Mapping, tuple[str, int], Kernel | None]]:
    """Return supported what-ifs that win GPU time, most first; one per kernel and feature, the one that wins most.

    The times do not add up, because causes overlap. The whole dataset's what-ifs stand in where no kernel has any.
    Those of collectives are left out: their time includes waiting for the last rank.
    """
    known = {kernel.id: kernel for kernel in kernels}
    found = []
    for search in searches:
        kernel = known.get(search.graph["scope"])
        if kernel is not None and kernel.kind == COMMUNICATION_KERNEL:
            continue
        best: dict[str, tuple[int, Mapping]] = {}
        for number, row in enumerate(search.tables.get("whatif", [])):
            if row["verdict"] != "supported" or (row.get("saved_ns") or 0) <= 0 or row.get("asked"):
                continue
            current = best.get(row["feature"])
            if current is None or row["saved_ns"] > current[1]["saved_ns"]:
                best[row["feature"]] = number, row
        table = search.table.replace("contributions", "whatif")
        found += [(row, (table, number), kernel) for number, row in best.values()]
    own = [one for one in found if one[2] is not None]
    return sorted(own or found, key=lambda one: (-one[0]["saved_ns"], one[2].id if one[2] else "", one[0]["feature"]))


def help_row(
    target: str, row: Mapping, place: tuple[str, int], kernel: Kernel | None, run: Markup | str | None = None
) -> list[object]:
    """Return one what-if as a row: the changes of the mean and of the 99th percentile, the GPU time won, and where
    what-ifs were replayed the change of the run.
    """
    table, number = place
    where = rows_where({"file_row_number": number})

    def of(what: str) -> str:
        return of_table(what, table, where)

    def change(name: str) -> Markup | str:
        columns = [f"{name}_{end}" for end in ("percent", "low", "high")]
        return citations.interval(*(row.get(column) for column in columns), tuple(map(of, columns)))

    saved = ("saved_ns", "saved_low", "saved_high")
    ends = [citations.said(row[end], of(f'"{end}"'), 60) for end in ("from", "to")]
    setting = [tag("code", elided(row["feature"], 50)), " ", ends[0], " → ", ends[1]]
    name = citations.name(kernel.short if kernel else "Whole dataset")
    return [
        tag("span", name, title=full_name(kernel.name) if kernel else None),
        target_name(target),
        setting,
        change("mean_change"),
        change("p99_change"),
        citations.time_interval(*(row[one] for one in saved), tuple(map(of, saved))),
        *([] if run is None else [run]),
    ]


def changes_of_the_run(dataset: str, replayed: "pa.Table | None") -> dict[tuple[str, int], Markup | str]:
    """Return what replayed what-ifs do to the time of the run, by the kernel's id and the row of its what-ifs.

    Parameters
    ----------
    dataset : str
    replayed : Table or None
        `replayed_what_ifs`.
    """
    table = f"{dataset}/kernel_variability/replayed_what_ifs.parquet"
    columns = ("run_change_percent", "run_change_low", "run_change_high")
    found = {}
    for number, row in enumerate(replayed.to_pylist() if replayed is not None else []):
        where = rows_where({"file_row_number": number})
        queries = tuple(of_table(column, table, where) for column in columns)
        change = citations.interval(*(row[column] for column in columns), queries)
        reached = max(abs(row[column] or 0) for column in columns) >= NO_CHANGE
        limit = citations.said(row["limited_by"] or "", of_table("limited_by", table, where))
        if row["limited_by"] == HOST and abs(row["run_change_percent"]) < NO_CHANGE:
            change = tag("span", "no shorter, the ", limit, " limits it")
        elif row["limited_by"] and not reached:
            change = tag("span", "no shorter; limited by: ", limit)
        found[row["kernel"], row["what_if"]] = change
    return found


def what_would_help(
    dataset: str,
    targets: Sequence[tuple[str, Sequence[object], Sequence[Kernel]]],
    replayed: "pa.Table | None" = None,
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
    body = []
    of_run = changes_of_the_run(dataset, replayed)
    for target, searches, kernels in targets:
        for row, place, kernel in ranked(searches, kernels)[:SHOWN]:
            key = (kernel.id if kernel else "", place[1]) if target == KERNEL_VARIABILITY else ("", -1)
            run = of_run.get(key, citations.name("–")) if of_run else None
            body.append(help_row(target, row, place, kernel, run))
    asked = what_was_asked(targets)
    if not body:
        return tag("div", asked, id=f"{dataset}--help") if asked is not None else None
    heads = [("kernel", "name"), ("target", "nowrap"), ("if one cause had another value", ""), ("mean", "n")]
    heads += [(citations.name("p99"), "n"), ("GPU time won", "n"), *([("run, replayed", "n")] if of_run else [])]
    words = "What the fitted model says of one change, within what was observed; gains of several rows overlap."
    if of_run:
        words += " The last column replays the run with it."
    return tag(
        "div",
        tag("h3", "What would help", id=f"{dataset}--help"),
        tag("p", words, class_="note"),
        page_table(heads, body),
        asked,
    )


def what_was_asked(targets: Sequence[tuple[str, Sequence[object], Sequence[Kernel]]]) -> Markup | None:
    """Return the answers to the configuration's own questions as a table, None where nothing was asked; equal
    refusals stand in one row.
    """
    found: dict[tuple[str, str], list[tuple]] = {}
    for target, searches, kernels in targets:
        known = {kernel.id: kernel for kernel in kernels}
        for search in searches:
            kernel = known.get(search.graph["scope"])
            table = search.table.replace("contributions", "whatif")
            name = citations.name(
                kernel.short if kernel else elided(search.graph.get("scope_name") or "Whole dataset", 60)
            )
            for number, row in enumerate(search.tables.get("whatif", [])):
                if row.get("asked"):
                    query = of_table("coalesce(sentence, reason)", table, rows_where({"file_row_number": number}))
                    answer = citations.said(row["sentence"] or row["reason"], query)
                    alike = f"{search.graph['scope']}: {row['sentence']}" if row["sentence"] else row["reason"]
                    found.setdefault((row["asked"], f"{target} {alike}"), []).append(
                        (name, target_name(target), answer, row["verdict"])
                    )
    if not found:
        return None
    body = []
    for (question, _), rows in sorted(found.items(), key=lambda one: one[0][0]):
        name, target, answer, verdict = rows[0]
        others = citations.name(f" and {len(rows) - 1} more") if len(rows) > 1 else None
        body.append([citations.name(elided(question, 80)), [name, others], target, answer, verdict])
    heads = [("question", "name"), *((words, "") for words in ("kernel", "target", "answer", "verdict"))]
    return tag("div", tag("h3", "What was asked"), page_table(heads, body))
