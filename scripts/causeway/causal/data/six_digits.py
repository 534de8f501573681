"""Numbers to six significant digits, so that the last bits of another linear algebra library change no document."""

import math
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

Record = TypeVar("Record")


def six_digits(value: float) -> float:
    """Return a number to six significant digits, so that the last bits of another linear algebra library do not change
    a document.

    Raises
    ------
    ValueError
        If the number is not finite: no document can hold it.
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number that a document can hold")
    return float(f"{value:.6g}")


def to_six_digits(record: Record) -> Record:
    """Return a record with all of its numbers, those of the records in it as well, to six significant digits."""
    return _rounded(record)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return six_digits(value)
    if isinstance(value, tuple):
        return tuple(map(_rounded, value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _rounded(getattr(value, one.name)) for one in fields(value)})
    return value
