"""The launches of a kernel with some of their columns, out of `features.parquet`, as numbers and codes."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.causal.data.scopes import IDENTITY, feature_columns, in_time_order, observations_of, of_kernel
from causeway.causal.models.scope_model import without_gaps
from causeway.core.files.machine_errors import fail_if_of_the_machine
from causeway.core.logs import LOG
from causeway.core.tables import LAUNCH_SHAPE, open_table, read_table

Result = TypeVar("Result")
RANK = "rank"
MOST_LEVELS = 12
"""Levels of a category that are told apart, the commonest; the others are one."""
MOST_CONFIGURATIONS = 40
"""The same of configurations, which have an effect each and enter no product."""
MOST_CAUSES = 5
"""Causes of a kernel that are looked at, the largest: with what is left six players, 64 sets of them, each replayed."""


@dataclass(frozen=True)
class KernelRows:
    """Launches of a kernel in time order; all arrays have shape (n_rows,).

    Attributes
    ----------
    value : ndarray of float, ns
    mean : ndarray of float, ns
        Of the launch's configuration over all launches.
    weight : ndarray of float, positive
    configuration : ndarray of str
        The configuration in words that two runs have in common.
    causes : mapping of str to ndarray
        Floats without gaps, or objects (text).
    units : mapping of str to str
        Of the causes.
    launches : Table
        Columns rank, launch and start_ns.
    """

    value: np.ndarray
    mean: np.ndarray
    weight: np.ndarray
    configuration: np.ndarray
    causes: Mapping[str, np.ndarray]
    units: Mapping[str, str]
    launches: pa.Table

    def __len__(self) -> int:
        return self.value.size


def guarded(kernel: str, compute: Callable[[], Result]) -> Result | str:
    """Return what is computed of a kernel, or why a library could not; the rest of the run stands.

    Raises
    ------
    ImportError
        If dowhy is not installed.
    MachineError
        If the machine is at fault.
    """
    try:
        return compute()
    except ImportError:
        raise
    except Exception as error:
        fail_if_of_the_machine(error, f"attribution of {kernel}")
        LOG.warning("%s: attribution failed", kernel, exc_info=True)
        return f"could not be computed: {type(error).__name__}"


def read_rows(folder: str | Path, columns: Mapping[str, Collection[str]]) -> dict[str, KernelRows]:
    """Return the rows of some kernels by id; a kernel without rows, or with values that are not positive, is left out.

    Parameters
    ----------
    folder : path
        Of a target, with features.parquet and configurations.parquet.
    columns : mapping of str to collection of str
        By kernel id, the columns that are wanted; those that the run does not have are left out.
    """
    folder = Path(folder)
    words = _configurations(folder / "configurations.parquet")
    wanted = set().union(*columns.values(), (RANK,))
    with open_table(folder / "features.parquet", "features") as file:
        schema = file.schema_arrow
        names = [name for name in schema.names if name in IDENTITY or name in wanted]
        kernels = pa.array(sorted(columns), pa.string())
        parts = [file.read_row_group(group, names) for group in range(file.num_row_groups)]
        parts = [part.filter(pc.is_in(part.column("kernel").cast(pa.string()), kernels)) for part in parts]
        table = pa.concat_tables([pa.schema([schema.field(name) for name in names]).empty_table(), *parts])
    found = {kernel: _rows_of(in_time_order(of_kernel(table, kernel)), columns[kernel], words) for kernel in columns}
    return {kernel: rows for kernel, rows in found.items() if len(rows) and rows.value.min() > 0}


def _configurations(path: Path) -> dict[int, str]:
    """Return the shape of each configuration in words, by its number."""
    rows = read_table(path, "configuration_summary").to_pylist()
    shape = (*LAUNCH_SHAPE, "label")
    return {row["configuration"]: " ".join(str(row[name]) for name in shape if row[name] is not None) for row in rows}


def _rows_of(table: pa.Table, names: Collection[str], words: Mapping[int, str]) -> KernelRows:
    observed = observations_of(table)
    known = np.isfinite(observed.signed) & np.isfinite(observed.mean) & np.isfinite(observed.weight)
    features = {feature.name: feature for feature in feature_columns(table) if feature.name in names}
    causes = {name: _filled(one.values[known], observed.configuration[known]) for name, one in features.items()}
    numbers = table.column("configuration").to_pylist()
    return KernelRows(
        value=(observed.mean + observed.signed)[known],
        mean=observed.mean[known],
        weight=observed.weight[known],
        configuration=np.array([words.get(number, str(number)) for number in numbers], dtype=object)[known],
        causes={name: values for name, values in causes.items() if values is not None},
        units={name: one.unit for name, one in features.items()},
        launches=table.select(["rank", "launch", "start_ns"]).filter(pa.array(known)),
    )


def _filled(values: np.ndarray, configuration: np.ndarray) -> np.ndarray | None:
    """Return a column without gaps: the median of its configuration, else of all, stands in; None if all is missing."""
    if values.dtype == object:
        return np.array(["not known" if text is None else str(text) for text in values], dtype=object)
    known = np.isfinite(values)
    return without_gaps(np.where(known, values, np.nan), configuration) if known.any() else None


def is_category(columns: Sequence[np.ndarray]) -> bool:
    """Tell whether a column is text in one of several tables.

    Parameters
    ----------
    columns : sequence of ndarray, shape (n_rows,)
        The same column of each table.
    """
    return any(column.dtype == object for column in columns)


def as_codes(columns: Sequence[np.ndarray], most: int = MOST_LEVELS) -> list[np.ndarray]:
    """Return the same columns of several tables as numbers: categories as codes that the tables share.

    Parameters
    ----------
    columns : sequence of ndarray, shape (n_rows,)
        One of each table; floats or objects (text).
    most : int
        Levels that are told apart.

    Returns
    -------
    list of ndarray of float, shape (n_rows,)
    """
    if not is_category(columns):
        return [column.astype(float) for column in columns]
    levels, counts = np.unique(np.concatenate(columns).astype(str), return_counts=True)
    kept = levels[np.sort(np.argsort(-counts, kind="stable")[:most])]
    codes = {level: float(code) for code, level in enumerate(kept)}
    return [np.array([codes.get(str(text), float(len(kept))) for text in column]) for column in columns]
