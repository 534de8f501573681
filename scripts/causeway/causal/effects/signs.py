"""Signs: does more of a cause raise or lower the target, or the measured value; undecided when draws disagree.

The target is mostly an absolute deviation. A cause that moves the value both ways about its mean moves the deviation in
no single direction; then the direction of the value is what there is to say, and the sign says that it is about the
value.
"""

from dataclasses import dataclass

from causeway.causal.data.outcome import TARGET, VALUE
from causeway.causal.effects.contributions import Slope
from causeway.core.vocabulary import TRACE_TARGETS

AGREEMENT = 0.9
"""Share of draws that must agree for a sign to be given."""
VARIABILITY = frozenset(TRACE_TARGETS)
"""Targets whose sign is about the target itself wherever that is decided; of all others the clearer of both is
taken.
"""


@dataclass(frozen=True)
class Sign:
    """A sign, "+", "-" or "?", and what it is about: the target, or the measured value."""

    sign: str
    about: str = TARGET


def sign_of(slope: Slope) -> str:
    """Return "+" or "-" if at least 90 % of the draws agree with the sign of the slope, else "?"."""
    if slope.value == 0 or slope.agreement < AGREEMENT:
        return "?"
    return "+" if slope.value > 0 else "-"


def direction_of(slope: Slope, move: Slope, target: str, absolute: bool) -> Sign:
    """Return the sign of a cause.

    Parameters
    ----------
    slope, move : Slope
        Of the target, and of the measured value.
    target : str
    absolute : bool
        The target is the absolute deviation; else it is the value, and both are one.
    """
    of_target = Sign(sign_of(slope))
    of_value = Sign(sign_of(move), VALUE)
    if not absolute or of_value.sign == "?":
        return of_target
    if of_target.sign == "?":
        return of_value
    return of_target if target in VARIABILITY or _clearness(slope) >= _clearness(move) else of_value


def _clearness(slope: Slope) -> float:
    """Return a slope in half widths of its interval."""
    return abs(slope.value) / max(slope.high - slope.low, 1e-12)


def level_of(slope: Slope, levels: tuple[str, ...]) -> str:
    """Return the name of the level that a category's slope is about; empty for numbers."""
    return levels[slope.direction] if levels else ""
