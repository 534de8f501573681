"""Events as a reader hands them over, before they have final numbers; codes for rows of integers, grids in one unit,
and ids that fit their columns.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from causeway.core.schemas import LAUNCH_FACTS, LAUNCH_SHAPE
from causeway.readers.common.constants import NULL
from causeway.readers.common.issues import Issues
from causeway.readers.sink.batches import EventBatch, is_repeated, looked_up, repeated
from causeway.readers.sink.distinct import distinct_keys

_NARROW = {
    **dict.fromkeys(("process", "configuration", "name", "kind", "inputs", "metric"), "<i4"),
    **dict.fromkeys(("copy_kind", "src_kind", "dst_kind", "migration_cause", "flags"), "u1"),
    "stream": "<u4",
    "device": "<u2",
    "value": "<f8",
}
"""Types of columns that are narrower than 64 bits, or no integers."""
_SPAN = ("start_ns", "duration_ns", "process")
_ON_THREAD = (*_SPAN, "thread", "name")


def _record(*names: str, **wide: str) -> np.dtype:
    return np.dtype([(name, wide.get(name, _NARROW.get(name, "<i8"))) for name in names])


RECORDS = {
    "launches": _record(*_SPAN, *LAUNCH_FACTS.names, "correlation", "configuration", "stream", "device"),
    "transfers": _record(
        *_SPAN, "bytes", "correlation", "stream", "device", "copy_kind", "src_kind", "dst_kind", "migration_cause"
    ),
    "calls": _record(*_ON_THREAD, "correlation"),
    "ranges": _record(*_ON_THREAD, "kind"),
    "operators": _record(*_ON_THREAD, "flags", "inputs"),
    "collectives": _record(
        *_SPAN, "sequence", "group_size", "bytes", "correlation", "stream", "device", "name", "communicator"
    ),
    "system_calls": _record(*_ON_THREAD),
    "cpu_samples": _record(*_ON_THREAD),
    "python_functions": _record(*_ON_THREAD),
    # a stream may be absent, or none
    "dependencies": _record(*_SPAN, "kind", "stream", "source_stream", "event", "correlation", stream="<i8"),
    "graphs": _record(*_SPAN, "correlation", "stream", "device"),
    "samples": _record("start_ns", "value", "process", "metric", "device"),
    "mpi": _record(*_ON_THREAD, "bytes", "peer", "communicator"),
}
"""Columns of fixed width, so that a run that is too large for memory spills to a flat file. `process`, `name` and
the like are codes.
"""


DENSE_FROM = {"device": (60_000, 1 << 16), "stream": (4_000_000_000, 1 << 32), "thread": (4_000_000_000, 1 << 32)}
"""Ids that do not fit their column (handles, pointers) are numbered from the first value; those from the second on
do not fit. The last number before it is shared by all for which there is no other.
"""


MOST_STREAMS = 1 << 16
"""Streams that are distinguished where their launches' order is looked at; beyond them, ids are damage or handles that
are never used twice.
"""

_FIRST = len(("kernel", "label"))
_GRID = [_FIRST + LAUNCH_SHAPE.index(f"grid_{axis}") for axis in "xyz"]
_BLOCK = [_FIRST + LAUNCH_SHAPE.index(f"block_{axis}") for axis in "xyz"]
"""Places in a row of a configuration."""


@dataclass(kw_only=True)
class CounterRows:
    """A batch of n rows of the counters table.

    Parameters
    ----------
    kernel : ndarray of int, shape (n,)
        Codes of `Sink.kernel`.
    process : ndarray of int, shape (n,), or int
        Codes of `Processes.code`.
    values : mapping of str to ndarray of float64, or Arrow array of text, shape (n,)
        One array for each metric; NaN or null where absent.
    start_ns, device, label : ndarray of int64, shape (n,), or None
        `NULL` where absent; labels are codes of `Sink.labels`.
    shape : mapping of str to ndarray of int64, shape (n,)
        Columns of `LAUNCH_SHAPE`, `NULL` where absent.
    launch : ndarray of int64, shape (n,), or None
        Rows of the launches table, or numbers beyond them; None: the row's own number.
    """

    kernel: np.ndarray
    process: np.ndarray | int
    values: Mapping[str, np.ndarray | pa.Array] = field(default_factory=dict)
    start_ns: np.ndarray | None = None
    device: np.ndarray | None = None
    shape: Mapping[str, np.ndarray] = field(default_factory=dict)
    label: np.ndarray | None = None
    launch: np.ndarray | None = None

    def where(self, mask: np.ndarray | slice) -> "CounterRows":
        """Return the rows of a slice, or those for which `mask`, ndarray of bool and shape (n,), is true."""

        def part(column: np.ndarray | pa.Array) -> np.ndarray | pa.Array:
            return column.filter(pa.array(mask)) if isinstance(column, pa.Array | pa.ChunkedArray) else column[mask]

        columns = {name: getattr(self, name) for name in ("start_ns", "device", "label", "launch")}
        return CounterRows(
            kernel=self.kernel[mask],
            process=self.process if isinstance(self.process, int) else self.process[mask],
            values={name: part(column) for name, column in self.values.items()},
            shape={name: column[mask] for name, column in self.shape.items()},
            **{name: None if column is None else column[mask] for name, column in columns.items()},
        )


def event_batch(kind: str, length: int, columns: Mapping[str, object]) -> EventBatch:
    """Return `length` events of a kind, a key of `RECORDS`, from columns of that length or one value for all."""
    return EventBatch.from_columns(RECORDS[kind], length, columns)


class FittingIds:
    """Ids of devices, streams and threads as numbers that fit their columns.

    Attributes
    ----------
    merged : int
        How often an id had to share the last number with others.
    """

    def __init__(self) -> None:
        self.merged = 0
        self._numbers: dict[str, dict[int, int]] = {}

    def of(self, what: str, values: np.ndarray) -> np.ndarray:
        """Return ids that fit; absent ones are 0 (of threads: stay absent), those too large are numbered in order of
        first use.

        Parameters
        ----------
        what : str
            A key of `DENSE_FROM`.
        values : ndarray of int64, shape (n,)
            `NULL` where absent.

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        if is_repeated(values) and values.size > 1:
            return repeated(self.of(what, values[:1])[0], values.size)
        first, limit = DENSE_FROM[what]
        if what == "thread":
            unfit = (values != NULL) & ((values < 0) | (values >= limit))
        else:
            values = np.where(values == NULL, 0, values)
            unfit = (values < 0) | (values >= limit)
        if unfit.any():
            numbers = self._numbers.setdefault(what, {})
            values = values.copy()
            values[unfit] = [self._number(numbers, value, first, limit - 1) for value in values[unfit].tolist()]
        return values

    def _number(self, numbers: dict[int, int], value: int, first: int, last: int) -> int:
        """Return the number of an id that does not fit, `last` where there are too many."""
        if value not in numbers and first + len(numbers) >= last:
            self.merged += 1
            return last
        return numbers.setdefault(value, first + len(numbers))


class FittingCorrelations:
    """Correlations below 2^40, which join launches with their calls by one number of rank and correlation.

    Correlations below 2^32 stay as they are. Of larger ones, some profilers hold the process in the upper half: it is
    replaced by 1, 2, ... in order of first use.

    Attributes
    ----------
    lost : int
        Correlations with an upper half for which there was no number left; they are absent.
    """

    BITS = 32
    MOST = (1 << 8) - 1
    FITTING_BITS = 40

    def __init__(self) -> None:
        self.lost = 0
        self._halves: dict[int, int] = {}

    def of(self, values: np.ndarray) -> np.ndarray:
        """Return correlations that fit.

        Parameters
        ----------
        values : ndarray of int64, shape (n,)
            `NULL` where absent.

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        large = values >= 1 << self.BITS
        if not large.any():
            return values
        upper, inverse = np.unique(values[large] >> self.BITS, return_inverse=True)
        numbers = []
        for half in upper.tolist():
            if half not in self._halves and len(self._halves) < self.MOST:
                self._halves[half] = len(self._halves) + 1
            numbers.append(self._halves.get(half, NULL))
        number = np.array(numbers)[inverse]
        fitting = number << self.BITS | values[large] & (1 << self.BITS) - 1
        values = values.copy()
        values[large] = np.where(number == NULL, NULL, fitting)
        self.lost += int((number == NULL).sum())
        return values


class RowCodes:
    """Codes 0, 1, ... for rows of integers, e.g. the launch configurations, in order of first use.

    Attributes
    ----------
    rows : list of tuple of int
        The row of each code.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[int, ...]] = []
        self._codes: dict[tuple[int, ...], int] = {}

    def code_of(self, row: tuple[int, ...]) -> int:
        """Return the code of one row."""
        code = self._codes.get(row)
        if code is None:
            code = self._codes[row] = len(self.rows)
            self.rows.append(row)
        return code

    def codes(self, columns: list[np.ndarray]) -> np.ndarray:
        """Return the codes, int32 of shape (n,), of rows given as columns of int64, each of shape (n,)."""
        rows, inverse = distinct_keys(columns)
        return looked_up(np.fromiter(map(self.code_of, rows), np.int32, len(rows)), inverse)


class GridsInBlocks:
    """Give launches the configuration whose grid counts blocks.

    A grid that is no whole number of blocks has no size in blocks whose product with the block is its threads; a
    launch whose call is not known may have either unit. Both have no grid, and are counted.

    Parameters
    ----------
    configurations : RowCodes
        Kernel, label and `LAUNCH_SHAPE` of each; those in blocks are added.
    issues : Issues
        Counts launches that lose their grid.
    is_mixed : bool
        Whether some calls were given work-items; else grids stay as they are.
    """

    def __init__(self, configurations: RowCodes, issues: Issues, is_mixed: bool) -> None:
        self._configurations = configurations
        self._issues = issues
        self._in_blocks: dict[tuple[int, int], int] = {}
        self._is_mixed = is_mixed

    def of(self, configuration: np.ndarray, work_items: np.ndarray) -> np.ndarray:
        """Return the configurations of launches, with grids in blocks.

        Parameters
        ----------
        configuration : ndarray of int, shape (n,)
            Codes of `configurations`.
        work_items : ndarray of int64, shape (n,)
            1 where the launch's call was given work-items, 0 where not, `NULL` where the call is not known.

        Returns
        -------
        ndarray of int, shape (n,)
        """
        if not self._is_mixed or not work_items.any():
            return configuration
        pairs, inverse, counts = np.unique(
            np.stack([configuration, work_items]), axis=1, return_inverse=True, return_counts=True
        )
        triples = zip(*pairs.tolist(), counts.tolist(), strict=True)
        codes = [self._code(code, items, count) for code, items, count in triples]
        return np.array(codes)[inverse.reshape(-1)]

    def _code(self, code: int, work_items: int, count: int) -> int:
        """Return the code of the configuration in blocks; count the launches that lose their grid."""
        if work_items == 0:
            return code
        row = list(self._configurations.rows[code])
        if (code, work_items) not in self._in_blocks:
            pairs = zip(_GRID, _BLOCK, strict=True) if work_items == 1 else ()
            blocks = [size for grid, block in pairs if (size := _blocks(row[grid], row[block])) is not None]
            made = list(row)
            for index, grid in enumerate(_GRID):
                made[grid] = blocks[index] if len(blocks) == len(_GRID) else NULL
            self._in_blocks[code, work_items] = self._configurations.code_of(tuple(made))
        converted = self._in_blocks[code, work_items]
        lost = self._configurations.rows[converted][_GRID[0]] == NULL != row[_GRID[0]]
        self._issues.add("grids_of_unknown_unit", count if lost else 0)
        return converted


def _blocks(items: int, size: int) -> int | None:
    """Return how many blocks a grid has along one axis, `NULL` where it has no size; None if they are not whole.

    >>> _blocks(1024, 256), _blocks(6, 64)
    (4, None)
    """
    if items == NULL:
        return NULL
    return items // size if size > 0 and items % size == 0 else None
