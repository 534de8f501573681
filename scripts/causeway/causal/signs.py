"""Signs: does more of a cause raise or lower the target; undecided when resamples disagree."""

from causeway.causal.shares import Slope

AGREEMENT = 0.9


def sign_of(slope: Slope) -> str:
    """Return "+" or "-" if at least 90 % of the resamples agree with the sign of the slope, else "?".

    The target is mostly an absolute deviation. A cause that moves the run time both ways about its mean may change the deviation in no
    single direction; then "?" is the truth and not a want of data.
    """
    if slope.value == 0 or slope.agreement < AGREEMENT:
        return "?"
    return "+" if slope.value > 0 else "-"


def level_of(slope: Slope, levels: tuple[str, ...]) -> str:
    """Return the name of the level that a category's slope is about; empty for numbers."""
    return levels[slope.direction] if levels else ""
