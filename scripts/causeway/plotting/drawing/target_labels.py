"""What targets are called on axes, and what tables state about them."""

import math
from typing import TYPE_CHECKING

from causeway.core.vocabulary import KERNEL_VARIABILITY, MEMORY_STALL

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

AXES = {
    KERNEL_VARIABILITY: "|duration − mean of its configuration|, per launch",
    MEMORY_STALL: "|launch − copy linked to it| duration, per launch",
}
"""What one value of a trace's target is."""
MEMORY_STALL_EXPLAINED = (
    "Memory stall: the time by which a launch and the copy linked to it differ; not the warp stalls of Nsight Compute."
)
"""What stands where a page first names the memory stall."""
OTHER_TRANSFERS = (
    "Transfers and bytes in flight are those of other transfers: the linked one is part of the definition of the memory"
    " stall."
)
"""What stands where causes of the memory stall are listed (docs/causes.md)."""


def stated(table: "pa.Table", name: str, default: str = "") -> str:
    """Return what the metadata of a table with any columns says under `name`, e.g. the unit of the measured value."""
    return (table.schema.metadata or {}).get(f"causeway.{name}".encode(), default.encode()).decode()


def unit_stated(table: "pa.Table") -> str:
    """Return the unit of a target's values, which every table of a target states whatever its columns: `ns`, another
    one, or '' if it is not known.
    """
    return stated(table, "value_unit")


def sentence(text: str) -> str:
    """Return a remark as a sentence: a capital, unless it begins with a feature's name, and a full stop."""
    text = text.strip().removesuffix(".")
    named = "_" in text.partition(" ")[0]
    return f"{text if named else text[:1].upper() + text[1:]}."


def target_axis(target: str) -> str:
    """Return what one value of the target is, for an axis."""
    return AXES.get(target, f"|{target} − mean of its configuration|, per launch")


PERIODS = (("hour", 1), ("minute", 60), ("second", 3600), ("millisecond", 3_600_000), ("microsecond", 3_600_000_000))
"""Periods of a trend, each with how many of them make an hour."""


def period_of(per_hour: float) -> tuple[str, int]:
    """Return the longest period over which a trend of logarithms per hour is a change that percent can tell (a
    factor of e at most).
    """
    return next((one for one in PERIODS if abs(per_hour) / one[1] <= 1), PERIODS[-1])


def percent_per(per_hour: float, periods: int) -> float:
    """Return the size of a trend of logarithms per hour in percent per period, of which `periods` make an hour."""
    return abs(100 * (math.exp(per_hour / periods) - 1))


def clocks_by(clocks: "Mapping") -> str:
    """Return how clocks were aligned, unless the reason, which follows, begins with the same words."""
    method = clocks["method"].replace("_", " ")
    return "clocks" if clocks["reason"].startswith(method) else f"clocks aligned by {method}"
