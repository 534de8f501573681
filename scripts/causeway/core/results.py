"""Results found by their stable paths, `results/{dataset}/{target}/...`, and read for those who sum them up."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.tables import read_json, read_table

if TYPE_CHECKING:
    import pyarrow as pa

EXAMINED = ("refutations", "whatif", "heterogeneity", "baselines")
"""Tables of a search beside its contributions."""
Place = tuple[str, str]
"""Dataset and target."""


@dataclass(frozen=True)
class Search:
    """One causal search: graph, contributions, their table's path relative to the results folder, and the rows of further tables."""

    graph: Mapping
    contributions: list[dict]
    table: str
    tables: Mapping[str, list[dict]] = field(default_factory=dict)


def place_of(path: str | Path) -> Place:
    """Return dataset and target of a file directly under `{dataset}/{target}/`."""
    return Path(path).parts[-3], Path(path).parts[-2]


def dataset_of(path: str | Path) -> str:
    """Return the dataset of a file directly under `{dataset}/`."""
    return Path(path).parts[-2]


def relative(path: str | Path, levels: int) -> str:
    """Return the last `levels` parts of a path: what it is relative to the results folder."""
    return "/".join(Path(path).parts[-levels:])


def read_search(folder: str | Path) -> Search:
    """Read the search in a folder `{dataset}/{target}/causal/{scope}`, with its what-ifs."""
    table = Path(folder) / "contributions.parquet"
    tables = {"whatif": read_table(Path(folder) / "whatif.parquet", "whatif").to_pylist()}
    return Search(read_json(Path(folder) / "graph.json"), read_table(table, "contributions").to_pylist(), relative(table, 5), tables)


def scope_folders(scopes: str | Path) -> list[Path]:
    """Return the folders of all searches of a dataset and target from its `causal/scopes.json`: the dataset's own, then the kernels'."""
    folder = Path(scopes).parent
    return [folder / name for name in ("dataset", *read_json(scopes)["scopes"])]


def read_graphs(scopes: str | Path) -> list[dict]:
    """Read the graphs of one dataset and target: the dataset's own first, then the kernels' by their share of the target."""
    return [read_json(folder / "graph.json") for folder in scope_folders(scopes)]


def read_examined(scopes: str | Path) -> list[Search]:
    """Read the searches of one dataset and target with all their tables: the dataset's own first, then the kernels' by their share."""
    found = []
    for folder in scope_folders(scopes):
        tables = {name: read_table(folder / f"{name}.parquet", name).to_pylist() for name in EXAMINED}
        found.append(replace(read_search(folder), tables=tables))
    return found


def read_searches(scopes: Iterable[str | Path]) -> dict[Place, list[Search]]:
    """Read the searches of every dataset and target.

    Parameters
    ----------
    scopes : iterable of paths
        `{dataset}/{target}/causal/scopes.json`.

    Returns
    -------
    dict
        By dataset and target: the dataset's own search first, then the kernels' by name.
    """
    found = {}
    for path in map(Path, scopes):
        whole, *kernels = scope_folders(path)
        found[path.parts[-4], path.parts[-3]] = [read_search(folder) for folder in (whole, *sorted(kernels))]
    return found


def by_place(paths: Iterable[str | Path], name: str) -> dict[Place, "pa.Table"]:
    """Read one table of each dataset and target."""
    return {place_of(path): read_table(path, name) for path in paths}


def read_capabilities(folders: Iterable[str | Path]) -> dict[str, list[dict]]:
    """Read the capabilities of every export, by dataset, from the folders `{dataset}/tables/{export}`."""
    found: dict[str, list[dict]] = {}
    for folder in map(Path, folders):
        found.setdefault(folder.parts[-3], []).append(read_json(folder / "capabilities.json"))
    return found


def read_comparisons(documents: Iterable[str | Path]) -> list[tuple[dict, list[dict]]]:
    """Read each `comparison.json` with the rows of the table beside it, in the order given."""
    return [(read_json(path), read_table(Path(path).with_suffix(".parquet"), "comparison").to_pylist()) for path in documents]
