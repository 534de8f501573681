"""What of a target varies, in the words of sentences, headlines and figures: the value whose variance causes share."""

from causeway.core.vocabulary import KERNEL_VARIABILITY, MEMORY_STALL

VALUES = {
    KERNEL_VARIABILITY: "the durations",
    # what bytes and direction of the copy explain by definition is taken out before causes are searched
    MEMORY_STALL: "the memory stall beyond its copy's size and direction",
}
"""Measured values of the targets of traces."""


def value_of(target: str) -> str:
    """Return what is measured of a target, in words: the value whose variance causes share.

    >>> value_of("kernel_variability"), value_of("dram_bytes")
    ('the durations', 'dram_bytes')
    """
    return VALUES.get(target, target)


def variance_of(target: str) -> str:
    """Return which variance the shares of a target's causes are of, in words.

    >>> variance_of("kernel_variability")
    'the variance of the durations'
    """
    return f"the variance of {value_of(target)}"
