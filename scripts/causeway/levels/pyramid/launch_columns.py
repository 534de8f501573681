"""Columns of launches that expressions may name: their own, and what their configuration and operator say of them."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.tables import LAUNCH_SHAPE, SCHEMAS, read_table
from causeway.events.event_blocks import kernel_columns
from causeway.levels.pyramid.ordered_rows import configurations_of

OF_KERNEL = {"kernel_class": "class", "kernel": "name", "kernel_id": "id", "short_name": "short_name"}
"""Texts of a launch's kernel and the columns of `kernels` that hold them."""


def stored(table: str, names: set[str]) -> list[str]:
    """Return the columns of a table from which columns of expressions are made, in the schema's order."""
    wanted = names | ({"configuration"} if table == "launches" else set())
    return [field.name for field in SCHEMAS[table] if field.name in wanted]


def values(batch: pa.RecordBatch, name: str) -> np.ndarray:
    """Return a column.

    Parameters
    ----------
    batch : RecordBatch
        With the column `name`.
    name : str

    Returns
    -------
    ndarray, shape (n,)
        Numbers, NaN for null, or texts, '' for null.
    """
    column = batch.column(name)
    if pa.types.is_dictionary(column.type) or pa.types.is_string(column.type):
        return _texts(column)
    return column.to_numpy(zero_copy_only=False)


def _texts(column: pa.Array) -> np.ndarray:
    """Return texts, '' for null, as references to one object for each distinct text: a name of 100 kB is held once."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    words = np.array([*("" if word is None else word for word in coded.dictionary.to_pylist()), ""], object)
    return words[coded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)]


class LaunchColumns:
    """Columns of the launches of an export.

    Parameters
    ----------
    folder : Path
        Its tables.
    mean : ndarray of int64, shape (configurations,), ns
        Mean duration of each configuration.
    """

    def __init__(self, folder: Path, mean: np.ndarray) -> None:
        self._mean = mean
        known = configurations_of(folder)
        self._shape = {
            column: np.array(
                [np.nan if key is None or key[2][index] is None else key[2][index] for key in known], float
            )
            for index, column in enumerate(LAUNCH_SHAPE)
        }
        self._text = _of_kernels(folder, len(known))
        self._operators = _operators(folder / "operators.parquet")

    def of(self, name: str, batch: pa.RecordBatch) -> np.ndarray:
        """Return a column of rows.

        Parameters
        ----------
        name : str
            One of `custom_metrics.COLUMNS["launches"]`.
        batch : RecordBatch
            With the columns that `stored` names for it.

        Returns
        -------
        ndarray, shape (n,)
            Numbers, NaN for null, or texts, '' where they are not known.
        """
        if name == "operator":
            if name not in batch.schema.names:
                return np.full(batch.num_rows, "", object)
            unknown = len(self._operators) - 1
            return self._operators[batch.column(name).fill_null(unknown).to_numpy(zero_copy_only=False)]
        of_configuration = {**self._text, **self._shape, "mean_ns": self._mean, "deviation_ns": self._mean}.get(name)
        if of_configuration is None:
            return values(batch, name)
        found = of_configuration[batch.column("configuration").to_numpy()]
        return batch.column("duration_ns").to_numpy() - found if name == "deviation_ns" else found


def _of_kernels(folder: Path, n_configurations: int) -> dict[str, np.ndarray]:
    """Return the texts of each configuration's kernel by the columns of expressions, '' for numbers not in use."""
    numbers = read_table(folder / "configurations.parquet", "configurations", ["configuration"]).column(0).to_numpy()
    texts = kernel_columns(folder, list(OF_KERNEL.values()))
    found = {column: np.full(n_configurations, "", object) for column in OF_KERNEL}  # not as wide as the longest
    for column, name in OF_KERNEL.items():
        found[column][numbers] = texts.column(name).to_pylist()
    return found


def _operators(path: Path) -> np.ndarray:
    """Return the names of an export's operators by their numbers, and '' behind them."""
    if not path.is_file():
        return np.array([""], object)
    rows = read_table(path, "operators", ["operator", "name"]).to_pylist()
    found = np.full(max((row["operator"] for row in rows), default=-1) + 2, "", object)
    for row in rows:
        found[row["operator"]] = row["name"] or ""
    return found
