"""Raw normalised events: the rows that a reader hands over, and how numbers of any origin become them."""

from collections.abc import Iterable, Mapping

import numpy as np

from causeway.readers.distinct import distinct_rows
from causeway.readers.rows import Rows, looked_up

NULL = np.iinfo(np.int64).min
"""The absent value in raw integer columns; becomes null, or a count of what was left out, before anything is written."""

NO_KIND = 255
"""The absent memory kind of a transfer's end, in its unsigned byte."""

EPOCH_2100_NS = 4_102_444_800_000_000_000
LONGEST_NS = 100 * 86_400 * 1_000_000_000
"""Times beyond these are damage or another unit, never a measurement; they would also overflow sums of squares downstream."""

RECORDS = {
    "launches": np.dtype(
        [
            ("start_ns", "<i8"),
            ("duration_ns", "<i8"),
            ("queue_ns", "<i8"),
            ("correlation", "<i8"),
            ("configuration", "<i4"),
            ("process", "<i4"),
            ("stream", "<u4"),
            ("device", "<u2"),
        ]
    ),
    "transfers": np.dtype(
        [
            ("start_ns", "<i8"),
            ("duration_ns", "<i8"),
            ("bytes", "<i8"),
            ("correlation", "<i8"),
            ("process", "<i4"),
            ("stream", "<u4"),
            ("device", "<u2"),
            ("copy_kind", "u1"),
            ("src_kind", "u1"),
            ("dst_kind", "u1"),
        ]
    ),
    "calls": np.dtype(
        [("start_ns", "<i8"), ("duration_ns", "<i8"), ("correlation", "<i8"), ("process", "<i4"), ("thread", "<i8"), ("name", "<i4")]
    ),
    "ranges": np.dtype(
        [("start_ns", "<i8"), ("duration_ns", "<i8"), ("process", "<i4"), ("thread", "<i8"), ("name", "<i4"), ("kind", "<i4")]
    ),
    "collectives": np.dtype(
        [(name, "<i8") for name in ("start_ns", "duration_ns", "sequence", "group_size", "bytes", "correlation", "stream")]
        + [(name, "<i4") for name in ("process", "device", "name", "communicator")]
    ),
    "samples": np.dtype([("start_ns", "<i8"), ("value", "<f8"), ("process", "<i4"), ("metric", "<i4"), ("device", "<u2")]),
    "mpi": np.dtype(
        [
            ("start_ns", "<i8"),
            ("duration_ns", "<i8"),
            ("bytes", "<i8"),
            ("peer", "<i8"),
            ("communicator", "<i8"),
            ("process", "<i4"),
            ("thread", "<i8"),
            ("name", "<i4"),
        ]
    ),
}
"""Columns of fixed width, so that a run that is too large for memory spills to a flat file. `process`, `name` and the like are codes."""


def records(kind: str, length: int, columns: Mapping[str, object]) -> Rows:
    """Return rows of a kind from columns (arrays of `length`, or one value for all rows)."""
    return Rows.made(RECORDS[kind], length, columns)


def integers(values: Iterable) -> tuple[np.ndarray, int]:
    """Return values of any origin as int64, and how many of them are not integers that fit.

    None and '' become `NULL` and are not counted. Integral floats and decimal texts are accepted; anything else becomes `NULL`.

    Parameters
    ----------
    values : ndarray, or iterable of int, float, str, bool or None

    Returns
    -------
    (ndarray of int64, int)
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "iub":
        if values.dtype == np.uint64 and values.size and values.max() > np.iinfo(np.int64).max:
            bad = values > np.iinfo(np.int64).max
            return np.where(bad, 0, values).astype(np.int64) + np.where(bad, NULL, 0), int(bad.sum())
        return values.astype(np.int64, copy=False), 0
    values = list(values)
    try:
        array = np.array(values)
        if array.dtype.kind in "ib":
            return array.astype(np.int64, copy=False), 0
    except (OverflowError, ValueError):
        pass
    result, bad = np.empty(len(values), np.int64), 0
    for at, value in enumerate(values):
        number = integer(value)
        bad += number is None and value is not None and value != ""
        result[at] = NULL if number is None else number
    return result, bad


def integer(value: object) -> int | None:
    """Return one value as an int that fits 64 bits, or None."""
    try:
        if isinstance(value, str):
            number = int(value, 0) if value[:2].lower() == "0x" else int(value)
        elif isinstance(value, float):
            number = int(value) if value.is_integer() else None
        elif isinstance(value, int):
            number = int(value)
        else:
            return None
    except ValueError:
        return None
    return number if number is not None and NULL < number <= np.iinfo(np.int64).max else None


class Coder:
    """Dense codes for rows of integers, e.g. the launch configurations: 0, 1, ... in order of first use."""

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
        """Return the codes of rows given as columns of int64, all of one length."""
        first, inverse = distinct_rows(columns)
        rows = zip(*[column[first].tolist() for column in columns], strict=True)
        return looked_up(np.fromiter(map(self.code_of, rows), np.int32, len(first)), inverse)
