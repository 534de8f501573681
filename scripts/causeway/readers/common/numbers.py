"""Numbers and units as profilers print them: thousands separators in two notations, prefixes, per cent."""

import functools
import math
import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

import numpy as np

from causeway.core.files.yaml_files import column_map
from causeway.readers.common.constants import NULL

_SPELLINGS = column_map("spellings")
_PREFIX = {prefix: 10.0**power for prefix, power in _SPELLINGS["prefixes"].items()}
_BINARY = {prefix: 1024.0**power for prefix, power in _SPELLINGS["binary_prefixes"].items()}
_SECONDS = {unit: 10.0**power for power, units in _SPELLINGS["seconds"].items() for unit in units}
_PLURAL = {short: plural for plural, shorts in _SPELLINGS["counts"].items() for short in shorts}

# unambiguous in one notation only; "1.234" and "1,234" alone could be either and count as the usual one (a comma groups
# thousands)
_EUROPEAN = re.compile(
    r"[+-]?\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|[+-]?\d{1,3}(?:\.\d{3})+,\d+|[+-]?\d+,(?:\d{1,2}|\d{4,})|[+-]?(?:0|\d{4,}),\d+"
)
_USUAL = re.compile(
    r"[+-]?\d{1,3}(?:,\d{3}){2,}(?:\.\d+)?|[+-]?\d{1,3}(?:,\d{3})+\.\d+"
    r"|[+-]?\d+\.(?:\d{1,2}|\d{4,})(?:[eE][+-]?\d+)?|[+-]?(?:0|\d{4,})\.\d+"
)
# groups of three digits in the notations that need neither a comma nor a point for them: 1 234,5 and 1'234.5; the last
# separator stands for a no-break space of a file that is not UTF-8
_SEPARATOR = re.compile(r"[ '\u2019\xa0\u2009\u202f\ufffd]")
_GROUPED = re.compile(rf"([+-]?\d{{1,3}}(?:{_SEPARATOR.pattern}\d{{3}})+)([.,]\d+)?")
_MISSING = re.compile(r"(?:n/a|[+-]?nan(?:\(.*\))?|[+-]?inf(?:inity)?|-|no data)?", re.IGNORECASE)
_ROUNDED = re.compile(r"\s*[+-]?\d+(?:\.(\d*))?[eE]\+?(\d{1,3})\s*")
LONGEST_EXPONENT = 40
"""Power of ten of a printed number beyond which it is not looked at: no number of 64 bits has it."""
_INSTANCES = re.compile(r"(\S+)\s*\((?:.*[;,].*|[^()]*\d[^()]*)\)", re.DOTALL)


def _ungrouped(text: str) -> str:
    """Return a number's text without separators of thousands that are neither comma nor point."""
    match = _GROUPED.fullmatch(text)
    return _SEPARATOR.sub("", match[1]) + (match[2] or "") if match else text


def without_instances(cell: str) -> str:
    """Return a metric's value without the list of its instances, perhaps of one.

    >>> without_instances("12 (1; 2; 9)"), without_instances("34 (34)"), without_instances("34 (sm_7: 34)")
    ('12', '34', '34')
    """
    match = _INSTANCES.fullmatch(cell) if cell.endswith(")") else None
    return match[1] if match else cell


def is_missing(text: str) -> bool:
    """Return whether a printed value says that there is none.

    >>> is_missing("n/a"), is_missing(""), is_missing("0"), is_missing("NVIDIA A100")
    (True, True, False, False)
    """
    return bool(_MISSING.fullmatch(text))


def notation(text: str) -> str | None:
    """Return "european" or "usual" if a number's text can be read in that notation only, else None.

    >>> notation("1\u202f234,56"), notation("1'234.56"), notation("1,234")
    ('european', 'usual', None)
    """
    text = _ungrouped(text)
    if "," not in text and text.count(".") < 2:
        return "usual" if "." in text and _USUAL.fullmatch(text) else None
    if _EUROPEAN.fullmatch(text):
        return "european"
    return "usual" if _USUAL.fullmatch(text) else None


def number(text: str, european: bool = False) -> float | None:
    """Return the value of a number's text, None if it is none or not finite.

    >>> number("4,963,609,951.19"), number("27.595.520", european=True), number("nan")
    (4963609951.19, 27595520.0, None)
    """
    text = _ungrouped(text.strip()).replace("\u202f", "").replace("\xa0", "").replace("'", "")
    text = text.replace(".", "").replace(",", ".") if european else text.replace(",", "")
    if "_" in text:  # Python would take it as a separator
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


@functools.lru_cache(maxsize=4096)
def base_unit(unit: str) -> tuple[str, float, bool]:
    """Return a unit's base unit, the factor to it, and whether the unit is known.

    Times become ns, byte counts bytes, frequencies Hz, per cent ratios; decimal prefixes are powers of 1000, as Nsight
    Compute prints them.

    >>> base_unit("usecond"), base_unit("Gbyte/second"), base_unit("%"), base_unit("cycle/nsecond")
    (('ns', 1000.0, True), ('bytes/s', 1000000000.0, True), ('ratio', 0.01, True), ('Hz', 1000000000.0, True))
    """
    unit = unit.strip()
    if unit in ("", "1", "ratio"):
        return ("ratio" if unit == "ratio" else "", 1.0, True)
    if unit in ("%", "pct", "percent"):
        return "ratio", 0.01, True
    if unit in _SECONDS:
        return "ns", _tidy(_SECONDS[unit] / 1e-9), True
    if match := re.fullmatch(r"([KkMGT]?)[Hh]z", unit):
        return "Hz", _PREFIX[match[1]], True
    top, slash, bottom = unit.partition("/")
    name, factor, is_known = _quantity(top.strip())
    if not slash:
        return name, factor, is_known
    bottom = bottom.strip()
    if bottom in _SECONDS:
        factor /= _SECONDS[bottom]
        return ("Hz" if name == "cycles" else f"{name}/s"), _tidy(factor), is_known
    below, divisor, also = _quantity(bottom)
    singular = next((short for short, long in _PLURAL.items() if long == below and len(short) > 2), below)
    if name == "bytes" and singular == "block":
        return "bytes", _tidy(factor / divisor), is_known and also
    return f"{name}/{singular}", _tidy(factor / divisor), is_known and also


def scaled(value: float, factor: float) -> float:
    """Return a value in its base unit; divided rather than multiplied by a fraction, so that 3.98 % is 0.0398."""
    return value * factor if factor >= 1 else value / _tidy(1 / factor)


def scaled_integer(value: float, factor: float) -> int | None:
    """Return a value in its base unit as an integer that fits 64 bits, by its decimal digits; None if it is none.

    >>> scaled_integer(8.19, 1000.0), scaled_integer(63.0, 1024.0), scaled_integer(8.1915, 1000.0)
    (8190, 64512, None)
    """
    exact = Decimal(repr(value)) * Decimal(repr(factor))
    return integer(int(exact)) if exact == exact.to_integral_value() else None


def _tidy(factor: float) -> float:
    """Return a power of ten without the rounding of its division."""
    exact = 10.0 ** round(math.log10(factor)) if factor > 0 else factor
    return exact if math.isclose(exact, factor, rel_tol=1e-12) else factor


def _quantity(text: str) -> tuple[str, float, bool]:
    """Return a counted thing in the plural, its prefix's factor, and whether it is known."""
    for prefix, factor in (_BINARY | _PREFIX).items():
        rest = text[len(prefix) :]
        if text.startswith(prefix) and (rest in _PLURAL or rest in _PLURAL.values()):
            return _PLURAL.get(rest, rest), factor, True
    return text, 1.0, False


Misfits = Counter[str]
"""Values that became absent, by the kind of issue that says why: `not_whole`, `out_of_range` or `not_a_number`."""


def integers(values: Iterable, of_times: bool = False) -> tuple[np.ndarray, Misfits]:
    """Return values of any origin as int64, and how many of them are not integers that fit, by the kind of issue.

    None and texts of blanks become `NULL` and are not counted. Integral floats and decimal texts are accepted; anything
    else becomes `NULL`.

    Parameters
    ----------
    values : ndarray, or iterable of int, float, str, bool or None, shape (n,)
    of_times : bool
        Whether they are times: those with a fraction of their unit are rounded to the nearest whole number.

    Returns
    -------
    numbers : ndarray of int64, shape (n,)
    misfits : Counter of str
        How many became `NULL` without being None or blank.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "iub":
        if values.dtype == np.uint64 and values.size and values.max() > np.iinfo(np.int64).max:
            bad = values > np.iinfo(np.int64).max
            numbers = np.where(bad, 0, values).astype(np.int64) + np.where(bad, NULL, 0)
            return numbers, Counter(out_of_range=int(bad.sum()))
        return values.astype(np.int64, copy=False), Counter()
    values = list(values)
    try:
        array = np.array(values)
        if array.dtype.kind in "ib":
            return array.astype(np.int64, copy=False), Counter()
    except (OverflowError, ValueError):
        pass
    result = np.empty(len(values), np.int64)
    misfits: Misfits = Counter()
    number_of = nearest_integer if of_times else integer
    for index, value in enumerate(values):
        number = number_of(value)
        if number is None and value is not None and not (isinstance(value, str) and not value.strip()):
            misfits[_why_absent(value)] += 1
        result[index] = NULL if number is None else number
    return result, misfits


def _why_absent(value: object) -> str:
    """Return the kind of issue of a value that is no integer of 64 bits.

    >>> [_why_absent(value) for value in ("1.5", 2**70, "1e50", "-7e1234567890123", "twelve", float("nan"))]
    ['not_whole', 'out_of_range', 'out_of_range', 'out_of_range', 'not_a_number', 'not_a_number']
    """
    if isinstance(value, int):
        return "out_of_range"
    exact = _decimal(value)
    if exact is None or not exact.is_finite():
        is_hexadecimal = isinstance(value, str) and re.fullmatch(r"\s*0[xX][0-9a-fA-F]+\s*", value)
        return "out_of_range" if is_hexadecimal else "not_a_number"
    return "out_of_range" if exact.copy_abs() > np.iinfo(np.int64).max else "not_whole"


def _decimal(value: object) -> Decimal | None:
    """Return a number or its text exactly, None if it is none."""
    if not isinstance(value, str | int | float | Decimal):
        return None
    try:
        return Decimal(value.strip() if isinstance(value, str) else value)
    except (InvalidOperation, TypeError, ValueError):
        return None


def nearest_integer(value: object) -> int | None:
    """Return a number, or its text, rounded once to the nearest int that fits 64 bits; None for anything else.

    A time that is printed with a fraction of its unit is a time: means of several passes have fractions.

    >>> nearest_integer("41551790005678.37"), nearest_integer(2.5), nearest_integer("x"), nearest_integer(7)
    (41551790005678, 2, None, 7)
    """
    number = integer(value)
    exact = _decimal(value) if number is None and isinstance(value, str | float) else None
    if exact is None or not exact.is_finite() or abs(exact.adjusted()) > LONGEST_EXPONENT:
        return number
    return integer(int(exact.to_integral_value()))


def is_rounded(text: str) -> bool:
    """Return whether a time was saved rounded: with a power of ten, and too few digits for whole units.

    >>> is_rounded("1.49693E+18"), is_rounded("1.4969334275843622e+16"), is_rounded("1.5e-06"), is_rounded("1200.0")
    (True, False, False, False)
    """
    match = _ROUNDED.fullmatch(text)
    return match is not None and int(match[2]) > len(match[1] or "")


def with_null(values: Iterable[int | None]) -> np.ndarray:
    """Return integers as int64, shape (n,), `NULL` where None.

    Raises
    ------
    OverflowError
        If a value does not fit 64 bits.
    """
    return np.array([NULL if value is None else value for value in values], np.int64)


def sizes_of(text: str) -> list[int | None]:
    """Return the sizes along x, y and z in a cell like `(64, 1, 1)`, `64x1x1` or `[64]`; as many as it has.

    >>> sizes_of("(64, 1, 1)"), sizes_of("64x2"), sizes_of("")
    ([64, 1, 1], [64, 2], [])
    """
    return [integer(size) for size in re.findall(r"\d+", text)[:3]]


def size_columns(name: str, cells: Iterable[str]) -> dict[str, np.ndarray]:
    """Return the columns `<name>_x`, `<name>_y` and `<name>_z` of n cells as `sizes_of` reads them; int64, `NULL` where
    there is none.
    """
    sizes = [[*sizes_of(cell), None, None, None] for cell in cells]
    return {f"{name}_{axis}": with_null(size[index] for size in sizes) for index, axis in enumerate("xyz")}


def integer(value: object) -> int | None:
    """Return an int, an integral float or the text of either as an int that fits 64 bits, None for anything else.

    >>> integer("64.0"), integer("0x10"), integer(""), integer("1.5"), integer(2**63)
    (64, 16, None, None, None)
    """
    try:
        if isinstance(value, str):
            number = _integer_of(value.strip())
        elif isinstance(value, float):
            number = int(value) if value.is_integer() else None
        elif isinstance(value, int):
            number = int(value)
        else:
            return None
    except ValueError:
        return None
    return number if number is not None and NULL < number <= np.iinfo(np.int64).max else None


def _integer_of(text: str) -> int | None:
    """Return an integer's text as int, also `64.0`, as data frames print integers with gaps.

    Raises
    ------
    ValueError
        If it is none.
    """
    try:
        return int(text, 0) if text[:2].lower() == "0x" else int(text)
    except ValueError:
        exact = _decimal(text) if text else None
        if exact is None or not exact.is_finite() or abs(exact.adjusted()) > LONGEST_EXPONENT:
            raise
        if exact != exact.to_integral_value():
            raise
        return int(exact)
