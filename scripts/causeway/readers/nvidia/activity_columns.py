"""The columns of CSV files of CUPTI activity: which of them are known, in which units, and the times and sizes in
their rows.
"""

import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import numpy as np

from causeway.core.files.yaml_files import column_map
from causeway.core.tables import LAUNCH_SHAPE
from causeway.readers.common.constants import NULL
from causeway.readers.common.copy_kinds import LONGEST
from causeway.readers.common.numbers import Misfits, integer, integers, is_rounded, size_columns, with_null

TIME_POWERS = {"ns": 0, "nsec": 0, "us": 3, "usec": 3, "µs": 3, "\u03bcs": 3, "ms": 6, "msec": 6, "s": 9, "sec": 9}
"""Power of ten from a unit to nanoseconds; microseconds also with the Greek letter mu."""

SIZE_POWERS = {"b": 0, "byte": 0, "bytes": 0} | {
    f"{prefix}{unit}": power for power, prefix in enumerate("kmgt", 1) for unit in ("b", "ib")
}
"""Power of the KB, 1000 or 1024 bytes, from a unit to bytes."""

TIMES = ("start", "end", "duration", "call_start", "call_duration")
SIZES = ("bytes", "unified_bytes", "static_shared_bytes", "dynamic_shared_bytes", "local_bytes")
"""Columns that are times, and that are sizes, by our names."""

LONGEST_TIME = 40
"""Characters of a time that an issue shows."""

_NUMBER = re.compile(r"\s*([+-]?)(\d+)(?:\.(\d*))?\s*([A-Za-zµ\u03bc]*)\s*")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+\.\d+|\d{1,3}(?:,\d{3}){2,}")
"""A number with commas between thousands: one comma before three digits alone may be a decimal one."""
_CORRELATION = re.compile(r"(.*\S)\s+\[(\d{1,18})\]\s*", re.DOTALL)
_UNIT_IN_NAME = re.compile(r"[A-Z][A-Za-z]{1,8}(?: [A-Z][a-z]{1,8})? ?\((?:[nuµ\u03bcm]?s(?:ec)?|(?:[KMGT]i?)?B|%)\)")
_IN_NAME = re.compile(
    r"(.*?)\s*(?:[(\[]\s*([^)\]]*?)\s*[)\]]|_(ns|us|ms|s|nsec|usec|msec|sec|bytes|kb|mb))?$", re.IGNORECASE | re.DOTALL
)


@dataclass
class Columns:
    """The known columns of a file.

    Parameters
    ----------
    position : dict of str to int
        Index of each column, by our names.
    unit : dict of str to str
        Its unit, in lower case; empty if its name has none.
    report : bool
        Whether it is a report of `nsys stats`.
    binary : bool
        Whether a KB is 1024 bytes: nvprof's rows, in columns of text or below a row of units.
    of_nsys : bool
        Whether it is a table of Nsight Systems' database: names are numbers of its strings, and kinds of memory have
        its numbers, not CUPTI's.
    """

    position: dict[str, int]
    unit: dict[str, str]
    report: bool = False
    binary: bool = False
    of_nsys: bool = False

    @property
    def usable(self) -> bool:
        """Whether rows can be events: times, and something that identifies their kind."""
        has = self.position.keys()
        return (
            "start" in has
            and bool({"end", "duration"} & has)
            and bool({"name", "copy_kind", "grid_x", "grid", "bytes", "call"} & has)
        )


def columns_of(header: list[str]) -> Columns:
    """Return which of a header's columns are known; none of those of a report on other things than CUDA's activity."""
    rules = column_map("cupti_csv")
    ours_of = {name: ours for ours, names in rules["columns"].items() for name in names}
    columns = Columns({}, {}, is_header(header), binary="SSMem*" in header)
    foreign = {*rules["columns_of_ranges"], *(rules["columns_of_other_reports"] if columns.report else ())}
    for index, cell in enumerate(header):
        whole = re.sub(r"[^a-z0-9]", "", cell.lower())
        named, *units = match.groups() if (match := _IN_NAME.fullmatch(cell.strip()[:LONGEST])) else ("",)
        bare = re.sub(r"[^a-z0-9]", "", named.lower())
        if bare in foreign:
            return Columns({}, {}, columns.report)
        columns.of_nsys |= bare in rules["columns_of_nsys"]
        ours = ours_of.get(bare) or ours_of.get(whole)
        if ours and ours not in columns.position:
            columns.position[ours] = index
            columns.unit[ours] = next((unit.lower() for unit in units if unit), "")
    return columns


def is_header(row: list[str]) -> bool:
    """Return whether a row is the header of a report of `nsys stats`: two of its cells name the unit of a time, a size
    or a share.

    >>> is_header(["Start (ns)", "Duration (ns)", "Name"]), is_header(["1", "2", "k (ns)"])
    (True, False)
    """
    if not any(cell.endswith(")") for cell in row[:2]):  # as in nearly every row, which begins with numbers
        return False
    return sum(bool(_UNIT_IN_NAME.fullmatch(cell)) for cell in row[:8]) > 1


def exact_ns(text: str, unit: str) -> int | None:
    """Return a time in whole nanoseconds, exact but for the rounding of what is below one; None if it is no time.

    >>> exact_ns("4643.346000", "us"), exact_ns("1.2850us", "ms"), exact_ns("1e-6", "s"), exact_ns("1,402.25", "us")
    (4643346, 1285, 1000, 1402250)
    """
    text = text.replace(",", "") if _GROUPED.fullmatch(text) else text
    match = _NUMBER.fullmatch(text)
    if match is None:
        return _decimal_ns(text, unit)
    power = TIME_POWERS.get(match[4].lower() or unit)
    if power is None or len(match[2]) > 20:
        return None
    fraction = (match[3] or "")[:20]
    value = int(match[2] + fraction.ljust(power, "0")[:power]) + (fraction[power : power + 1] >= "5")
    return integer(-value if match[1] == "-" else value)


def _decimal_ns(text: str, unit: str) -> int | None:
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        return None
    if unit not in TIME_POWERS or not value.is_finite() or abs(value.adjusted()) > 30:
        return None
    return integer(int((value * 10 ** TIME_POWERS[unit]).to_integral_value()))


def size_in_bytes(text: str, unit: str, binary: bool) -> int | None:
    """Return a size in bytes, rounded to a whole one; None if it is none.

    >>> size_in_bytes("1.003906", "kb", True), size_in_bytes("0.101", "mb", False), size_in_bytes("128", "b", True)
    (1028, 101000, 128)
    """
    match = _NUMBER.fullmatch(text)
    power = SIZE_POWERS.get(match[4].lower() or unit) if match else None
    if match is None or power is None or len(match[2]) > 20:
        return None
    base = 1024 if binary or (match[4] or unit).lower().endswith("ib") else 1000
    exact = Decimal(f"{match[2]}.{(match[3] or '0')[:20]}") * base**power
    return integer(int(exact.to_integral_value()) * (-1 if match[1] == "-" else 1))


def is_rounded_to_zero(text: str, unit: str, binary: bool) -> bool:
    """Return whether a size reads as zero and is printed with so few digits that it may be a byte or more.

    >>> is_rounded_to_zero("0.000", "mb", False), is_rounded_to_zero("0.000000", "kb", True)
    (True, False)
    """
    match = _NUMBER.fullmatch(text)
    power = SIZE_POWERS.get(match[4].lower() or unit, 0) if match else 0
    if match is None or not power or int(match[2] + (match[3] or "")):
        return False
    base = 1024 if binary else 1000
    return base**power >= 2 * 10 ** len(match[3] or "")


def without_correlations(names: list[str]) -> tuple[list[str], np.ndarray]:
    """Return kernel names without the number of the launching call that nvprof's GPU trace writes after them, `add(int)
    [94]`, and these numbers.

    Parameters
    ----------
    names : list of str, n of them

    Returns
    -------
    names : list of str, n of them
    numbers : ndarray of int64, shape (n,)
        `NULL` where there is none.
    """
    matches = [_CORRELATION.fullmatch(name) for name in names]
    plain = [match[1] if match else name for match, name in zip(matches, names, strict=True)]
    return plain, with_null(int(match[2]) if match else None for match in matches)


class RowValues:
    """The values of some rows of a file, column by column.

    Parameters
    ----------
    columns : Columns
    rows : list of list of str, n of them

    Attributes
    ----------
    misfits : Counter of str
        Numbers, other than times and sizes, that were no whole ones, by the kind of issue.
    """

    def __init__(self, columns: Columns, rows: list[list[str]]) -> None:
        self.columns = columns
        self.rows = rows
        self.misfits: Misfits = Counter()

    def cells(self, ours: str) -> list[str] | None:
        """Return a column's cells, "" where a row is too short; None if there is no such column."""
        position = self.columns.position.get(ours)
        return None if position is None else [row[position] if position < len(row) else "" for row in self.rows]

    def numbers(self, ours: str) -> np.ndarray | None:
        """Return a column as int64, shape (n,), with `NULL`: times in ns, sizes in bytes, other numbers as they are;
        None if there is no such column.
        """
        cells = self.cells(ours)
        if cells is None:
            return None
        unit = self.columns.unit[ours]
        if ours in TIMES:
            values = [exact_ns(cell, unit or "ns") for cell in cells]
        elif ours in SIZES:
            values = [size_in_bytes(cell, unit or "b", self.columns.binary) for cell in cells]
        else:
            numbers, misfits = integers(cells)
            self.misfits.update(misfits)
            return numbers
        return with_null(values)

    def filled(self, ours: str) -> np.ndarray:
        """Return a column as `numbers` does, int64 of shape (n,), `NULL` everywhere if there is none."""
        numbers = self.numbers(ours)
        return np.full(len(self.rows), NULL) if numbers is None else numbers

    def _rounded(self, *names: str) -> np.ndarray:
        """Return where one of some times was saved rounded; bool, shape (n,)."""
        rounded = np.zeros(len(self.rows), bool)
        for ours in names:
            cells = self.cells(ours)
            if cells and "e" in "".join(cells).lower():
                rounded |= np.array([is_rounded(cell) for cell in cells], bool)
        return rounded

    def rounded_time(self, row: int) -> str:
        """Return the first time of a row that was saved rounded, "" if there is none."""
        columns = [cells for ours in TIMES if (cells := self.cells(ours)) is not None]
        return next((cells[row].strip()[:LONGEST_TIME] for cells in columns if is_rounded(cells[row])), "")

    def times(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return when events start and end, whose duration is lost because times were saved rounded, and whose start
        alone is rounded.

        Returns
        -------
        start, end : ndarray of int64, shape (n,), ns
            `NULL` where absent or useless.
        lost, coarse : ndarray of bool, shape (n,)
        """
        start = self.filled("start")
        end = self.filled("end")
        ends_are_worse = "end" not in self.columns.position or self._has_finer_durations()
        rough = self._rounded("start", "end")
        duration = self.numbers("duration") if rough.any() or ends_are_worse else None
        lost = rough
        if duration is not None:
            rounded = self._rounded("duration")
            used = (start != NULL) & (duration != NULL) & ~rounded
            used &= rough | ends_are_worse
            end = np.where(used, start + np.where(used, duration, 0), end)
            lost = (rough | (rounded & (end == NULL))) & ~used
        untimed = lost | ((start == 0) & (end == 0))
        return np.where(untimed, NULL, start), end, lost, self._rounded("start") & ~lost

    def _has_finer_durations(self) -> bool:
        """Return whether durations stand beside the ends in a smaller unit: ends in s are printed to 1 us."""
        units = self.columns.unit
        if "duration" not in units or "end" not in units:
            return False
        powers = [TIME_POWERS.get(units[ours] or "ns", 0) for ours in ("duration", "end")]
        return powers[0] < powers[1]

    def queue(self, start: np.ndarray) -> np.ndarray:
        """Return how long launches wait after their call has returned.

        Parameters
        ----------
        start : ndarray of int64, shape (n,), ns

        Returns
        -------
        ndarray of int64, shape (n,), ns
            `NULL` where they begin before, or it is unknown.
        """
        begin = self.numbers("call_start")
        length = self.numbers("call_duration")
        if begin is None or length is None:
            return np.full(len(self.rows), NULL)
        complete = (begin != NULL) & (length != NULL) & (start != NULL)
        complete &= ~self._rounded("start", "call_start", "call_duration")
        queue = np.where(complete, start - begin - length, -1)
        return np.where(queue < 0, NULL, queue)

    def sizes(self) -> tuple[np.ndarray | int, int]:
        """Return the sizes of transfers, and how many were rounded to zero.

        Returns
        -------
        size : ndarray of int64, shape (n,), bytes; or int
            `NULL` where there is none, or where it was rounded to zero.
        rounded : int
        """
        size = self.numbers("bytes")
        if size is None:
            return NULL, 0
        unified = self.numbers("unified_bytes")
        if unified is not None:
            size = np.where(size == NULL, unified, size)
        unit = self.columns.unit["bytes"]
        zero = np.flatnonzero(size == 0).tolist()
        cells = self.cells("bytes") or []
        rounded = [row for row in zero if is_rounded_to_zero(cells[row], unit, self.columns.binary)]
        size[rounded] = NULL
        return size, len(rounded)

    def shape(self) -> dict[str, np.ndarray]:
        """Return the columns of `LAUNCH_SHAPE` that there are, int64 of shape (n,)."""
        shape = {ours: values for ours in LAUNCH_SHAPE if (values := self.numbers(ours)) is not None}
        for ours in ("grid", "block"):  # three sizes in one cell: "(64 1 1)", "64x1x1", "[64, 1, 1]"
            cells = self.cells(ours)
            if cells is not None and f"{ours}_x" not in shape:
                shape |= size_columns(ours, cells)
        return shape
