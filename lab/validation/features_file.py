"""A drawn table as the features of a dataset's launches: what the causal analysis reads."""

import numpy as np
import pyarrow as pa

from causeway.core.feature_registry import record_of
from causeway.core.tables import SCHEMAS
from lab.validation.generator import KnownTable


def features_table(table: KnownTable, inclusion: np.ndarray | None = None, rows_per_bin: int = 32) -> pa.Table:
    """Return the rows of `features.parquet` of a drawn table.

    Parameters
    ----------
    table : KnownTable
    inclusion : ndarray of float, shape (n_rows,), or None
        Probability with which each row was kept, 0 for those left out; None keeps all.
    rows_per_bin : int

    Returns
    -------
    pyarrow.Table
        With the columns of `features.parquet`: those that identify and weigh a row, then one per column of the drawn
        table. Means and standard deviations per kernel are of all rows, also of those left out.
    """
    rows = table.y.size
    counts = np.bincount(table.kernel)
    mean = (np.bincount(table.kernel, table.y) / counts)[table.kernel]
    std = np.sqrt(np.bincount(table.kernel, (table.y - mean) ** 2) / np.maximum(counts - 1, 1))[table.kernel]
    inclusion = np.ones(rows) if inclusion is None else inclusion
    values = {
        "rank": np.zeros(rows, np.uint32),
        "bin": np.arange(rows) // rows_per_bin,
        "launch": np.arange(rows),
        "start_ns": pa.nulls(rows, pa.int64()),
        "kernel": [f"kernel-{number:02d}" for number in table.kernel],
        "configuration": table.kernel.astype(np.uint32),
        "target": np.abs(table.y - mean),
        "signed_deviation": table.y - mean,
        "configuration_mean": mean,
        "configuration_std": std,
        "kept": inclusion == 1,
        "inclusion_probability": inclusion,
    }
    arrays = [
        values[field.name] if isinstance(values[field.name], pa.Array) else pa.array(values[field.name], field.type)
        for field in SCHEMAS["kept"]
    ]
    fields = list(SCHEMAS["kept"])
    for name, column in table.columns.items():
        record = record_of(name)
        facts = {"tier": record.tier, "group": record.group}
        kind = pa.string() if column.dtype == object else pa.float64()
        arrays.append(pa.array(column, kind, from_pandas=kind == pa.float64()))
        fields.append(pa.field(name, kind, metadata=facts))
    features = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    return features.filter(pa.array(inclusion > 0))


def plain_columns(table: KnownTable) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return what a method without preparation of its own is given.

    Returns
    -------
    names : list of str
        Numeric columns and text columns but leaked features, constants, empty columns and identifiers.
    columns : ndarray, shape (n_rows, p)
        Centred within kernels; text as numbers of its levels, gaps filled with the column's mean.
    target : ndarray, shape (n_rows,)
        Absolute deviation from the kernel's mean, in standard deviations of the kernel.
    """
    counts = np.bincount(table.kernel)

    def centred(values: np.ndarray) -> np.ndarray:
        return values - (np.bincount(table.kernel, values) / counts)[table.kernel]

    names = []
    kept = []
    for name, column in table.columns.items():
        if column.dtype == object:
            levels, codes = np.unique(column.astype(str), return_inverse=True)
            values = codes.astype(float) if 1 < levels.size <= 50 else None
        else:
            finite = np.isfinite(column)
            values = (
                np.where(finite, column, column[finite].mean()) if finite.any() and np.ptp(column[finite]) > 0 else None
            )
        if name not in table.leaked and values is not None:
            names.append(name)
            kept.append(centred(values))
    size = np.abs(centred(table.y))
    spread = np.sqrt(np.bincount(table.kernel, size**2) / counts)[table.kernel]
    return names, np.column_stack(kept) if kept else np.zeros((table.y.size, 0)), size / spread
