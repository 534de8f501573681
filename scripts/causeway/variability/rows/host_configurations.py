"""Configurations that are told apart further: by the operator that made a launch, or by the shapes of its inputs."""

from pathlib import Path

import numpy as np

from causeway.core.errors import TableError
from causeway.core.tables import read_table
from causeway.variability.rows.configurations import Configurations, Key
from causeway.variability.rows.sources import Chunk, Source

TOLD_APART_BY = {"operator": ("operators", ("name",)), "shape": ("shapes", ("dims", "types"))}
"""By what, with the table that describes it and the columns that make its label."""
PARTS = 1 << 32
"""A launch's pair: the number of its configuration times this, plus 1 + the number of its operator or shape (32 bits);
plus 0 where that is not known.
"""


class HostConfigurations(Configurations):
    """The configurations of a dataset, each once for every operator (or shapes of inputs) that launches it.

    Parameters
    ----------
    folders : dict of str to Path
        The folder of tables of each export.
    by : str
        Of `TOLD_APART_BY`.
    sources : list of Source
        Their launches are read once, two columns, to know which pairs there are.

    Raises
    ------
    TableError
        If launches name a configuration, operator or shape that the export's tables do not have.
    """

    def __init__(self, folders: dict[str, Path], by: str, sources: list[Source]) -> None:
        self._by = by
        self._pairs = {source.export: self._pairs_of(source) for source in sources}
        super().__init__(folders)

    def local(self, export: str, folder: Path, kernels: dict[int, dict]) -> dict[int, Key]:
        """Return the key of each pair of the export, by its index in the order of pairs.

        Raises
        ------
        TableError
            If a launch names what the export's tables do not have.
        """
        known = super().local(export, folder, kernels)
        labels = {-1: None} | self._labels(folder)
        found = {}
        for index, pair in enumerate(self._pairs[export].tolist()):
            configuration, part = divmod(pair, PARTS)
            if configuration not in known or part - 1 not in labels:
                raise TableError(
                    f"{folder}/launches.parquet: a launch has configuration {configuration} and {self._by} {part - 1},"
                    " which the export's tables do not have"
                )
            name, shape, label = known[configuration]
            words = [text for text in (label, labels[part - 1]) if text]
            found[index] = (name, shape, "; ".join(words) or None)
            self._note_threads(found[index], self._threads[known[configuration]])
        return found

    def own(self, export: str, chunk: Chunk) -> np.ndarray:
        """Return the index of each launch's pair.

        Returns
        -------
        ndarray of uint32, shape (launches,)
        """
        return np.searchsorted(self._pairs[export], self._pair(chunk)).astype(np.uint32)

    def columns(self) -> list[str]:
        """Return the columns of launches that `own` reads."""
        return [*super().columns(), self._by]

    def _pair(self, chunk: Chunk) -> np.ndarray:
        pair = chunk.column("configuration").astype(np.int64) * PARTS
        if self._by in chunk.source.columns:
            part = chunk.arrow(self._by)
            pair += np.where(chunk.present(self._by), part.fill_null(0).to_numpy().astype(np.int64) + 1, 0)
        return pair

    def _pairs_of(self, source: Source) -> np.ndarray:
        """Return the pairs of an export's launches, ascending; int64."""
        found = np.empty(0, np.int64)
        for chunk in source.rows.chunks(self.columns()):
            found = np.union1d(found, self._pair(chunk))
        return found

    def _labels(self, folder: Path) -> dict[int, str | None]:
        table, columns = TOLD_APART_BY[self._by]
        path = folder / f"{table}.parquet"
        if not path.is_file():
            return {}
        rows = read_table(path, table).to_pylist()
        return {row[self._by]: " ".join(row[name] for name in columns if row[name]) or None for row in rows}
