"""Which results are those of the present configuration: a dataset that was renamed or removed leaves its folder."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from causeway.core.files.json_documents import read_json

LISTING = "datasets.json"
MARKS = ("quality.json", "tables")
"""What the folder of a dataset holds, either of it."""


@dataclass(frozen=True)
class Listing:
    """What the configuration has.

    Attributes
    ----------
    datasets : tuple of str
        Whole and reduced ones.
    comparisons : tuple of str
        Folders of pairs in `compare`.
    """

    datasets: tuple[str, ...]
    comparisons: tuple[str, ...]

    def left_over(self, names: Iterable[str]) -> dict[str, str]:
        """Return the files that the configuration does not make any more, each with its dataset or comparison.

        Parameters
        ----------
        names : iterable of str
            Paths in the results folder.
        """
        parts = {name: PurePosixPath(name).parts for name in names}
        of_datasets = {path[0] for path in parts.values() if len(path) > 1 and path[1] in MARKS}
        gone = of_datasets - set(self.datasets)
        files = {name: path[0] for name, path in parts.items() if path[0] in gone}
        for name, path in parts.items():
            if len(path) > 2 and path[0] == "compare" and path[1] not in self.comparisons:
                files[name] = f"compare/{path[1]}"
        return files


def read_listing(results: Path) -> Listing | None:
    """Return what the configuration of the last run has; None where no run has listed it.

    Raises
    ------
    TableError
        If the file is damaged.
    """
    path = results / LISTING
    if not path.is_file():
        return None
    document = read_json(path, "listing")
    return Listing((*document["datasets"], *document["reduced"]), tuple(document["comparisons"]))
