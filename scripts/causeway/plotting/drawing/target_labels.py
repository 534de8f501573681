"""What targets are called on axes, and what tables state about them."""

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


def clocks_by(clocks: "Mapping") -> str:
    """Return how clocks were aligned, unless the reason, which follows, begins with the same words."""
    method = clocks["method"].replace("_", " ")
    return "clocks" if clocks["reason"].startswith(method) else f"clocks aligned by {method}"
