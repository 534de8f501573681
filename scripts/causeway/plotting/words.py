"""What targets are called on axes and in headings, and what tables state about them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

TARGETS = {
    "kernel_variability": ("kernel variability", "|duration − mean of its configuration|, per launch"),
    "memory_stall": ("memory stall", "|kernel − linked transfer| duration, per launch"),
}


def stated(table: "pa.Table", name: str, default: str = "") -> str:
    """Return what a table's own metadata says under `name`, e.g. the unit of the measured value."""
    return (table.schema.metadata or {}).get(f"causeway.{name}".encode(), default.encode()).decode()


def unit_stated(table: "pa.Table") -> str:
    """Return the unit of a target's values, which all tables of a target state: `ns`, another one, or '' if it is not known."""
    return stated(table, "value_unit")


def sentence(text: str) -> str:
    """Return a remark as a sentence: a capital, unless it begins with a feature's name, and a full stop."""
    text = text.strip().removesuffix(".")
    named = "_" in text.partition(" ")[0]
    return f"{text if named else text[:1].upper() + text[1:]}."


def q_text(value: float) -> str:
    """Return a q-value for people: what is below a ten-thousandth is no more than that."""
    return "q < 0.0001" if value < 1e-4 else f"q = {value:.2g}"


def target_name(target: str) -> str:
    """Return a target's name for a heading."""
    return TARGETS[target][0] if target in TARGETS else f"deviation of {target}"


def target_axis(target: str) -> str:
    """Return what one value of the target is, for an axis."""
    return TARGETS[target][1] if target in TARGETS else f"|{target} − mean of its configuration|, per launch"
