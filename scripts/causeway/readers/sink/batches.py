"""Events as columns of one length, in which a value that is the same in every row is held once.

Much of an export is repeated in every row: the process, the device, what is absent. Such a column is an array with a
stride of 0, as `numpy.broadcast_to` makes it: it takes no memory and no room in a file, and is checked by one value.
"""

from collections.abc import Mapping
from typing import overload

import numpy as np


def repeated(value: object, rows: int, kind: np.dtype | type = np.int64) -> np.ndarray:
    """Return a column, shape (rows,), that holds one value in every row."""
    return np.broadcast_to(np.asarray(value, kind), (rows,))


def is_repeated(values: np.ndarray) -> bool:
    """Return whether a column was made by `repeated` (or sliced from such a one); False for one without rows."""
    return values.size > 0 and values.strides == (0,)


def is_constant(values: np.ndarray) -> bool:
    """Return whether all values of a column are equal; False for one without rows."""
    return is_repeated(values) or (
        values.size > 0 and bool(values[0] == values[-1]) and bool((values == values[0]).all())
    )


def looked_up(table: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return `table[codes]`, shape (n,), for codes of shape (n,) with n > 0; a repeated code gives a repeated value."""
    return repeated(table[codes[0]], len(codes), table.dtype) if is_repeated(codes) else table[codes]


class EventBatch:
    """Events with named columns: `batch["start_ns"]` is a column; a slice, a mask or an array of indices selects rows.

    Parameters
    ----------
    columns : mapping of str to ndarray
        All of one length, contiguous or repeated; not to be changed any more.
    """

    def __init__(self, columns: Mapping[str, np.ndarray]) -> None:
        self.columns = dict(columns)

    @classmethod
    def from_columns(cls, dtype: np.dtype, length: int, columns: Mapping[str, object]) -> "EventBatch":
        """Return rows with the fields of a record type, copied from arrays of shape (length,) or from one value for all
        rows.
        """
        made = {}
        for name in dtype.names or ():
            values = np.broadcast_to(np.asarray(columns[name]), (length,))
            # of integers alone: 0.0 and -0.0 are equal, and not the same
            same = is_repeated(values) or (values.dtype.kind in "iub" and is_constant(values))
            made[name] = repeated(values[0], length, dtype[name]) if same else np.array(values, dtype[name])
        return cls(made)

    @classmethod
    def concatenated(cls, parts: list["EventBatch"]) -> "EventBatch":
        """Return the rows of batches with the same columns, one batch after the other."""
        if len(parts) == 1:
            return parts[0]
        length = sum(map(len, parts))
        made = {}
        for name in parts[0].columns:
            columns = [part[name] for part in parts if len(part)]
            same = columns and all(is_repeated(column) and column[0] == columns[0][0] for column in columns)
            made[name] = (
                repeated(columns[0][0], length, columns[0].dtype)
                if same
                else np.concatenate(columns or [parts[0][name]])
            )
        return cls(made)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @overload
    def __getitem__(self, key: str) -> np.ndarray: ...

    @overload
    def __getitem__(self, key: slice | np.ndarray) -> "EventBatch": ...

    def __getitem__(self, key: str | slice | np.ndarray) -> "np.ndarray | EventBatch":
        if isinstance(key, str):
            return self.columns[key]
        if isinstance(key, slice):
            return EventBatch({name: column[key] for name, column in self.columns.items()})
        length = int(np.count_nonzero(key)) if key.dtype == bool else len(key)
        selected = {
            name: column[:length] if is_repeated(column) else column[key] for name, column in self.columns.items()
        }
        return EventBatch(selected)

    def copy(self) -> "EventBatch":
        """Return rows that share no memory with these."""
        return EventBatch(
            {name: column if is_repeated(column) else column.copy() for name, column in self.columns.items()}
        )
