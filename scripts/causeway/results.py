"""Results found by their stable paths, `results/{dataset}/{target}/...`, and read for those who sum them up."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.tables import read_json, read_table

if TYPE_CHECKING:
    import pyarrow as pa

Place = tuple[str, str]
"""Dataset and target."""


@dataclass(frozen=True)
class Search:
    """One causal search: its graph, the rows of its contributions, and their table's path relative to the results folder."""

    graph: Mapping
    contributions: list[dict]
    table: str


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
    """Read the search in a folder `{dataset}/{target}/causal/{scope}`."""
    table = Path(folder) / "contributions.parquet"
    return Search(read_json(Path(folder) / "graph.json"), read_table(table, "contributions").to_pylist(), relative(table, 5))


def read_graphs(graph: str | Path, batches: Iterable[str | Path]) -> list[dict]:
    """Read the graphs of one dataset and target: the dataset's own first, then the kernels' in the order of their batches."""
    folders = [Path(batch).parents[1] / scope for batch in batches for scope in read_json(batch)["scopes"]]
    return [read_json(path) for path in (Path(graph), *(folder / "graph.json" for folder in folders))]


def read_searches(graphs: Iterable[str | Path], batches: Iterable[str | Path]) -> dict[Place, list[Search]]:
    """Read the searches of every dataset and target.

    Parameters
    ----------
    graphs : iterable of paths
        `{dataset}/{target}/causal/dataset/graph.json`.
    batches : iterable of paths
        `{dataset}/{target}/causal/batches/{batch}.json`, each naming the scopes that it wrote.

    Returns
    -------
    dict
        By dataset and target: the dataset's own search first, then the kernels' by name.
    """
    found: dict[Place, list[Search]] = {}
    for graph in map(Path, graphs):
        found.setdefault((graph.parts[-5], graph.parts[-4]), []).append(read_search(graph.parent))
    kernels: dict[Place, list[Path]] = {}
    for batch in map(Path, batches):
        folders = kernels.setdefault((batch.parts[-5], batch.parts[-4]), [])
        folders += [batch.parents[1] / scope for scope in read_json(batch)["scopes"]]
    for place, folders in kernels.items():
        found.setdefault(place, []).extend(read_search(folder) for folder in sorted(folders))
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
