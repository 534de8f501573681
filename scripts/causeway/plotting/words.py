"""What targets, tiers and verdicts are called on axes and in headings."""

TARGETS = {
    "kernel_variability": ("kernel variability", "|duration − mean of its configuration|, per launch"),
    "memory_stall": ("memory stall", "|kernel − linked transfer| duration, per launch"),
}
TIME_TARGETS = frozenset(TARGETS)


def target_name(target: str) -> str:
    """Return a target's name for a heading."""
    return TARGETS[target][0] if target in TARGETS else f"deviation of {target}"


def target_axis(target: str) -> str:
    """Return what one value of the target is, for an axis."""
    return TARGETS[target][1] if target in TARGETS else f"|{target} − mean of its configuration|, per launch"


def target_unit(target: str, stated: str | None = None) -> str:
    """Return the unit of a target's values: nanoseconds for those of traces, else what the table states, else ''."""
    return "ns" if target in TIME_TARGETS else stated or ""
