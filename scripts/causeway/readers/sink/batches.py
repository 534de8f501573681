"""Rows of events as columns of one length, in which a value that repeats all the way is held once.

Much of an export is repeated in every row: the process, the device, what is absent. Such a column is an array whose rows all lie at the
same place (a stride of 0, as `numpy.broadcast_to` makes them): it takes no memory, no room in a file, and one look instead of many.
"""

from collections.abc import Mapping

import numpy as np


def repeated(value: object, rows: int, kind: np.dtype | type = np.int64) -> np.ndarray:
    """Return a column that holds one value in every row."""
    return np.broadcast_to(np.asarray(value, kind), (rows,))


def is_repeated(values: np.ndarray) -> bool:
    """Return whether a column was made by `repeated` (or sliced from such a one); False for one without rows."""
    return values.size > 0 and values.strides == (0,)


def alike(values: np.ndarray) -> bool:
    """Return whether all values of a column are equal; False for one without rows. Most that are not are found so at one look."""
    return is_repeated(values) or (values.size > 0 and bool(values[0] == values[-1]) and bool((values == values[0]).all()))


def looked_up(table: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return `table[codes]`; a repeated code gives a repeated value."""
    return repeated(table[codes[0]], len(codes), table.dtype) if is_repeated(codes) else table[codes]


class Rows:
    """Rows with named columns: `rows["start_ns"]` is a column; a slice, a mask or places give the rows there.

    Parameters
    ----------
    columns : mapping of str to ndarray
        All of one length, contiguous or repeated; not to be changed any more.
    """

    def __init__(self, columns: Mapping[str, np.ndarray]) -> None:
        self.columns = dict(columns)

    @classmethod
    def made(cls, dtype: np.dtype, length: int, columns: Mapping[str, object]) -> "Rows":
        """Return rows with the fields of a record type, copied from arrays of `length` or from one value for all rows."""
        made = {}
        for name in dtype.names:
            values = np.broadcast_to(np.asarray(columns[name]), (length,))
            same = is_repeated(values) or (values.dtype.kind in "iub" and alike(values))  # 0.0 and -0.0 are alike, and not the same
            made[name] = repeated(values[0], length, dtype[name]) if same else np.array(values, dtype[name])
        return cls(made)

    @classmethod
    def joined(cls, parts: list["Rows"]) -> "Rows":
        """Put rows one behind the other."""
        if len(parts) == 1:
            return parts[0]
        length, made = sum(map(len, parts)), {}
        for name in parts[0].columns:
            columns = [part[name] for part in parts if len(part)]
            same = columns and all(is_repeated(column) and column[0] == columns[0][0] for column in columns)
            made[name] = repeated(columns[0][0], length, columns[0].dtype) if same else np.concatenate(columns or [parts[0][name]])
        return cls(made)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, what):
        if isinstance(what, str):
            return self.columns[what]
        if isinstance(what, slice):
            return Rows({name: column[what] for name, column in self.columns.items()})
        length = int(np.count_nonzero(what)) if what.dtype == bool else len(what)
        taken = {name: column[:length] if is_repeated(column) else column[what] for name, column in self.columns.items()}
        return Rows(taken)

    def copy(self) -> "Rows":
        """Return rows that share no memory with these."""
        return Rows({name: column if is_repeated(column) else column.copy() for name, column in self.columns.items()})
