"""Numbers to six significant digits, so that the last bits of another linear algebra library change no document."""

import math
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

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
    if isinstance(record, float):
        return six_digits(record)
    if isinstance(record, tuple):
        return tuple(to_six_digits(one) for one in record)
    if is_dataclass(record):
        return replace(record, **{one.name: to_six_digits(getattr(record, one.name)) for one in fields(record)})
    return record
