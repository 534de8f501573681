"""The overview's table beside the memory stall: the copies linked to launches, and their time that no kernel hid."""

from pathlib import Path

import numpy as np
from markupsafe import Markup

from causeway.core.queries import of_table, rows_where
from causeway.core.tables import open_table
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import tag
from causeway.plotting.figures.kernels import Kernel

MOST_ROWS = 8
"""Kernels shown, those with the largest memory stall; the table has all."""
HEADS = (
    ("kernel", ""),
    ("launches with a copy", "n"),
    ("mean memory stall", "n"),
    ("mean time of the copy", "n"),
    ("of it exposed", "n"),
)
NOTE = (
    "Exposed: the time of the linked copy in which no kernel ran on its device. A large stall with little exposure"
    " costs no time. Launches in the bins kept for the search of causes."
)
LINKED = "transfer_duration_ns IS NOT NULL"
COLUMNS = ("target", "transfer_duration_ns", "exposed_transfer_ns")


def sums_by_kernel(path: str | Path) -> dict[str, np.ndarray]:
    """Return what the linked copies of each kernel amount to, one row group of the table at a time.

    Parameters
    ----------
    path : path
        Of the memory stall's `kept.parquet`.

    Returns
    -------
    dict of str to ndarray of int64, shape (4,)
        By kernel: launches with a linked copy, and the sums of memory stall, of the copies' time and of their exposed
        time, ns.
    """
    found: dict[str, np.ndarray] = {}
    with open_table(path, "kept") as file:
        if not set(COLUMNS) <= set(file.schema_arrow.names):
            return found
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=["kernel", *COLUMNS])
            rows = rows.filter(rows["transfer_duration_ns"].is_valid())
            sums = rows.group_by("kernel").aggregate([("target", "count"), *((name, "sum") for name in COLUMNS)])
            for row in sums.to_pylist():
                amounts = [row["target_count"], *(row[f"{name}_sum"] for name in COLUMNS)]
                found[row["kernel"]] = found.get(row["kernel"], 0) + np.array(amounts, np.int64)
    return found


def linked_copies(dataset: str, target: str, sums: dict[str, np.ndarray], kernels: list[Kernel]) -> Markup | None:
    """Return the copies linked to launches by kernel as a table; None without any.

    Parameters
    ----------
    dataset, target : str
    sums : dict of str to ndarray of int64, shape (4,)
        From `sums_by_kernel`.
    kernels : list of Kernel
        They give the names.
    """
    if not sums:
        return None
    names = {kernel.id: kernel.short for kernel in kernels}
    table = f"{dataset}/{target}/kept.parquet"
    largest = sorted(sums, key=lambda kernel: (-sums[kernel][1], kernel))[:MOST_ROWS]
    body = [_row(kernel, sums[kernel], table, names.get(kernel, kernel)) for kernel in largest]
    head = tag("thead", tag("tr", [tag("th", words, class_=kind or None) for words, kind in HEADS]))
    return tag(
        "div",
        tag("h4", "Copies linked to launches"),
        tag("p", NOTE, class_="note"),
        tag("div", tag("table", head, tag("tbody", body)), class_="wide"),
    )


def _row(kernel: str, sums: np.ndarray, table: str, name: str) -> Markup:
    where = f"{rows_where({'kernel': kernel})} AND {LINKED}"
    launches = int(sums[0])
    means = [
        citations.time(int(amount) / launches, of_table(f"CAST(sum({column}) AS DOUBLE) / count(*)", table, where))
        for column, amount in zip(COLUMNS, sums[1:], strict=True)
    ]
    cells = [tag("td", citations.count(launches, of_table("count(*)", table, where)), class_="n")]
    return tag(
        "tr", tag("td", citations.name(name), class_="name"), cells, [tag("td", mean, class_="n") for mean in means]
    )
