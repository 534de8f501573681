"""Finished results, found by their stable paths `results/{dataset}/{target}/...` and read for findings and pages."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.tables import open_table, read_json, read_table

EXAMINED = ("refutations", "whatif", "slow_launches")
"""Tables of a search beside its contributions, each a file of that name."""
DatasetTarget = tuple[str, str]
"""Dataset and target."""


@dataclass(frozen=True)
class Search:
    """One causal search: the results of one dataset, target and scope.

    Attributes
    ----------
    graph : mapping
        The document `graph.json`.
    contributions : list of dict
        Rows of `contributions.parquet`, in its order.
    table : str
        Path of `contributions.parquet` relative to the results folder.
    tables : mapping of str to list of dict
        Rows of further tables by their names.
    """

    graph: Mapping[str, Any]
    contributions: list[dict[str, Any]]
    table: str
    tables: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict[str, Any])


def dataset_and_target(path: str | Path) -> DatasetTarget:
    """Return dataset and target of a file directly under `{dataset}/{target}/`."""
    return Path(path).parts[-3], Path(path).parts[-2]


def dataset_of(path: str | Path) -> str:
    """Return the dataset's name of a file directly under `{dataset}/`."""
    return Path(path).parts[-2]


def relative(path: str | Path, levels: int) -> str:
    """Return the last `levels` parts of a path, joined by `/`: the path relative to the results folder."""
    return "/".join(Path(path).parts[-levels:])


def read_search(folder: str | Path) -> Search:
    """Read the search in a folder `{dataset}/{target}/causal/{scope}`, with its table `whatif`.

    Raises
    ------
    TableError
        If a file of the folder is missing, damaged or of another schema version.
    """
    table = Path(folder) / "contributions.parquet"
    tables = {"whatif": read_table(Path(folder) / "whatif.parquet", "whatif").to_pylist()}
    return Search(
        read_json(Path(folder) / "graph.json"),
        read_table(table, "contributions").to_pylist(),
        relative(table, 5),
        tables,
    )


def scope_folders(scopes: str | Path) -> list[Path]:
    """Return the folders of all searches of a dataset and target.

    Parameters
    ----------
    scopes : path
        `{dataset}/{target}/causal/scopes.json`.

    Returns
    -------
    list of Path
        That of the whole dataset, then those of the kernels, largest share of the target first.

    Raises
    ------
    TableError
        If the document cannot be read.
    """
    folder = Path(scopes).parent
    return [folder / name for name in ("dataset", *read_json(scopes)["scopes"])]


def read_examined(scopes: str | Path) -> list[Search]:
    """Read the searches of one dataset and target with the tables `EXAMINED`, in the order of `scope_folders`.

    Raises
    ------
    TableError
        If a file is missing, damaged or of another schema version.
    """
    searches = []
    for folder in scope_folders(scopes):
        tables = {name: read_table(folder / f"{name}.parquet", name).to_pylist() for name in EXAMINED}
        searches.append(replace(read_search(folder), tables=tables))
    return searches


def read_searches(scopes: Iterable[str | Path]) -> dict[DatasetTarget, list[Search]]:
    """Read the searches of every dataset and target.

    Parameters
    ----------
    scopes : iterable of paths
        `{dataset}/{target}/causal/scopes.json`.

    Returns
    -------
    dict
        By dataset and target: the search of the whole dataset first, then those of the kernels in order of their ids.

    Raises
    ------
    TableError
        If a file is missing, damaged or of another schema version.
    """
    searches = {}
    for path in map(Path, scopes):
        whole, *kernels = scope_folders(path)
        searches[path.parts[-4], path.parts[-3]] = [read_search(folder) for folder in (whole, *sorted(kernels))]
    return searches


def tables_by_target(paths: Iterable[str | Path], name: str) -> dict[DatasetTarget, pa.Table]:
    """Read the table `name`, all columns, of each dataset and target from files directly under `{dataset}/{target}/`.

    Raises
    ------
    TableError
        If a file is not that table in this schema version.
    """
    return {dataset_and_target(path): read_table(path, name) for path in paths}


def read_capabilities(folders: Iterable[str | Path]) -> dict[str, list[dict[str, Any]]]:
    """Read `capabilities.json` of every export from the folders `{dataset}/tables/{export}`.

    Returns
    -------
    dict of str to list of dict
        By dataset, in the order given.

    Raises
    ------
    TableError
        If a document cannot be read.
    """
    documents: dict[str, list[dict[str, Any]]] = {}
    for folder in map(Path, folders):
        documents.setdefault(folder.parts[-3], []).append(read_json(folder / "capabilities.json"))
    return documents


def read_comparisons(documents: Iterable[str | Path]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Read each `comparison.json` with the rows of `comparison.parquet` beside it, in the order given.

    Raises
    ------
    TableError
        If a file is missing, damaged or of another schema version.
    """
    return [
        (read_json(path), read_table(Path(path).with_suffix(".parquet"), "comparison").to_pylist())
        for path in documents
    ]


def rows_of_run(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of the whole run, in order.

    Parameters
    ----------
    table : Table
        With a column `step`, which is null in them.
    """
    return table.filter(pc.is_null(pc.field("step"))).to_pylist()


def rows_of_step(table: pa.Table, step: int) -> list[dict[str, Any]]:
    """Return the rows of a step, in order.

    Parameters
    ----------
    table : Table
        With a column `step`.
    step : int
    """
    return table.filter(pc.field("step") == step).to_pylist()


def read_rows_of_run(path: str | Path, name: str, step: int | None = None) -> pa.Table:
    """Read the rows of the whole run, and those of a step if one is given; one row group beside them is in memory.

    Parameters
    ----------
    path : path
    name : str
        A table with a column `step`, which is null in rows of the whole run.
    step : int or None

    Returns
    -------
    Table
        All columns of the file, rows in its order.

    Raises
    ------
    TableError
        As `open_table`.
    """
    wanted = pc.is_null(pc.field("step")) if step is None else pc.is_null(pc.field("step")) | (pc.field("step") == step)
    with open_table(path, name) as file:
        parts = [file.read_row_group(group).filter(wanted) for group in range(file.num_row_groups)]
        return pa.concat_tables([file.schema_arrow.empty_table(), *parts])
