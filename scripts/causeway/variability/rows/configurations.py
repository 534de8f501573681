"""Number the configurations of all exports of a dataset alike.

Each export numbers its own kernels and configurations. A configuration is the same everywhere if the full kernel name
(where exports are of several builds, but for the numbers of the build), the launch shape and the label agree; sorted by
these, configurations get numbers that depend neither on the order of exports nor on the number of ranks. They may be
told apart further: by the operator that made a launch, or by the shapes of its inputs.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.errors import TableError
from causeway.core.names.build_numbers import names_of_one_kernel
from causeway.core.schemas import GRID_AND_BLOCK
from causeway.core.tables import LAUNCH_SHAPE, SCHEMAS, read_table
from causeway.numeric.compiled import I4, U4, compiled, int32, int64
from causeway.variability.rows.sources import Chunk, Source

Key = tuple[str, tuple[int | None, ...], str | None]


class Configurations:
    """The configurations and kernels of a dataset.

    Parameters
    ----------
    folders : dict of str to Path
        The folder of tables of each export.

    Attributes
    ----------
    keys : list of (kernel name, launch shape, label)
        In order of their numbers.
    kernels : list of dict
        name, id, short_name and class of each kernel, in order of names.
    kernel_of : ndarray of int32, shape (configurations,)
        Index in `kernels` of each configuration.
    """

    def __init__(self, folders: dict[str, Path]) -> None:
        self.kernels: list[dict] = []
        self._local: dict[str, dict[int, Key]] = {}
        named: dict[str, dict] = {}
        for export, folder in folders.items():
            kernels = {row["kernel"]: row for row in read_table(folder / "kernels.parquet", "kernels").to_pylist()}
            for row in kernels.values():
                named.setdefault(row["name"], row)
            self._local[export] = self.local(export, folder, kernels)
        self._name_alike()
        self.keys: list[Key] = sorted({key for local in self._local.values() for key in local.values()}, key=_order)
        self.kernels = [named[name] for name in sorted({key[0] for key in self.keys})]
        index_of = {row["name"]: index for index, row in enumerate(self.kernels)}
        self.kernel_of = np.array([index_of[key[0]] for key in self.keys], np.int32)
        self._number = {key: number for number, key in enumerate(self.keys)}

    def __len__(self) -> int:
        return len(self.keys)

    def local(self, export: str, folder: Path, kernels: dict[int, dict]) -> dict[int, Key]:
        """Return the key of each of an export's own numbers.

        Parameters
        ----------
        export : str
        folder : Path
            Of its tables.
        kernels : dict of int to dict
            The rows of its table of kernels, by their numbers.

        Raises
        ------
        TableError
            For a configuration of an unknown kernel.
        """
        keys = {}
        table = read_table(folder / "configurations.parquet", "configurations")
        for row in table.to_pylist():
            if row["kernel"] not in kernels:
                raise TableError(
                    f"{folder}/configurations.parquet: configuration {row['configuration']} names kernel"
                    f" {row['kernel']}, which kernels.parquet does not have"
                )
            shape = tuple(row[name] for name in LAUNCH_SHAPE)
            keys[row["configuration"]] = (kernels[row["kernel"]]["name"], shape, row["label"])
        return keys

    def _name_alike(self) -> None:
        """Give the kernels that several builds of the program name otherwise one name."""
        exports = []
        for local in self._local.values():
            shapes: dict[str, set[tuple[int | None, ...]]] = {}
            for name, shape, _ in local.values():
                shapes.setdefault(name, set()).add(shape[: len(GRID_AND_BLOCK)])
            exports.append(shapes)
        if not (one_kernel := names_of_one_kernel(exports)):
            return

        def renamed(key: Key) -> Key:
            return (one_kernel.get(key[0], key[0]), *key[1:])

        for local in self._local.values():
            local |= {number: renamed(key) for number, key in local.items()}

    def columns(self) -> list[str]:
        """Return the columns of launches that `own` reads."""
        return ["configuration"]

    def own(self, export: str, chunk: Chunk) -> np.ndarray:
        """Return the export's own number of each launch.

        Returns
        -------
        ndarray of uint32, shape (launches,)
        """
        return chunk.column("configuration")

    @property
    def exports(self) -> list[str]:
        """The exports whose configurations these are."""
        return list(self._local)

    def numbers(self, export: str) -> np.ndarray:
        """Return the dataset's number for each of an export's numbers; int32, -1 where the export has no such
        configuration.
        """
        local = self._local[export]
        table = np.full(max(local, default=-1) + 1, -1, np.int32)
        for own, key in local.items():
            table[own] = self._number[key]
        return table

    def renumber(self, numbers: np.ndarray, own: np.ndarray, configuration: np.ndarray, kernel: np.ndarray) -> int:
        """Replace an export's numbers by the dataset's.

        Parameters
        ----------
        numbers : ndarray of int32
            From `numbers(export)`.
        own : ndarray of uint32, shape (n,)
            The export's numbers.
        configuration, kernel : ndarray of int32, shape (n,)
            Get the dataset's numbers, and the index of each one's kernel.

        Returns
        -------
        int
            Index of the first number that the export's configurations do not have; -1 if they have all.
        """
        return _renumber(own, numbers, self.kernel_of, configuration, kernel)

    def shapes(self) -> pa.Table:
        """Return kernel id, launch shape and label by number, typed as in the schema."""
        schema = SCHEMAS["configuration_summary"]
        columns = {"kernel": [self.kernels[kernel]["id"] for kernel in self.kernel_of]}
        columns |= {name: [key[1][index] for key in self.keys] for index, name in enumerate(LAUNCH_SHAPE)}
        columns["label"] = [key[2] for key in self.keys]
        return pa.table({name: pa.array(values, schema.field(name).type) for name, values in columns.items()})


def _order(key: Key) -> tuple:
    """Sort by name, then shape, then label; what is unknown comes first."""
    name, shape, label = key
    return name, tuple((value is not None, value or 0) for value in shape), (label is not None, label or "")


@compiled(int64(U4, I4, I4, int32[::1], int32[::1]))
def _renumber(own, numbers, kernel_of, configuration, kernel):
    for i in range(own.size):
        number = numbers[own[i]] if own[i] < numbers.size else np.int32(-1)
        if number < 0:
            return i
        configuration[i] = number
        kernel[i] = kernel_of[number]
    return -1


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
        plain = super().local(export, folder, kernels)
        labels = {-1: None} | self._labels(folder)
        keys = {}
        for index, pair in enumerate(self._pairs[export].tolist()):
            configuration, part = divmod(pair, PARTS)
            if configuration not in plain or part - 1 not in labels:
                raise TableError(
                    f"{folder}/launches.parquet: a launch has configuration {configuration} and {self._by} {part - 1},"
                    " which the export's tables do not have"
                )
            name, shape, label = plain[configuration]
            words = [text for text in (label, labels[part - 1]) if text]
            keys[index] = (name, shape, "; ".join(words) or None)
        return keys

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
        pairs = np.empty(0, np.int64)
        for chunk in source.rows.chunks(self.columns()):
            pairs = np.union1d(pairs, self._pair(chunk))
        return pairs

    def _labels(self, folder: Path) -> dict[int, str | None]:
        table, columns = TOLD_APART_BY[self._by]
        path = folder / f"{table}.parquet"
        if not path.is_file():
            return {}
        rows = read_table(path, table).to_pylist()
        return {row[self._by]: " ".join(row[name] for name in columns if row[name]) or None for row in rows}
