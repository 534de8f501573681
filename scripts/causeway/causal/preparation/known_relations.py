"""What is known of features before any data: which of them say the same thing of a launch less precisely, and which can
act on a launch's time only through another one that was measured.

A search among all of them splits one cause over several names, or gives it the opposite sign: beside the number of
copies in flight, the bytes in one direction tell how much less these copies act than others, and would be said to make
launches quicker. Of both, those are candidates that say more: the number where copies act alike in each direction.
Measured on launches on an H100 whose causes were drawn at random (docs/validation.md).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from causeway.causal.data.observations import Feature, Observations
from causeway.causal.statistics.basis import GroupCentring
from causeway.core.feature_registry import FEATURE_BY_NAME

TOTAL = "transfers_in_flight"
"""How many copies are in flight, in whichever direction."""
DIRECTIONS = tuple(name for name, one in FEATURE_BY_NAME.items() if one.copy_kinds)
"""The bytes in flight in each direction."""
CLOCKS = ("sm_clock_hz", "graphics_clock_hz")
"""The clock that a kernel's instructions run at, under the names that tools give it."""
BEHIND_CLOCK = ("power_w", "temperature_celsius", "utilisation_ratio")
"""Ends of the names of readings that act on a launch through the clock alone, or are its effect."""
IDLE = "idle_before_ns"
IN_FLIGHT = "launches_in_flight"
STRONG = 6.0
"""Difference of the Bayesian information criterion that is "strong" evidence (R. E. Kass, A. E. Raftery, Bayes factors,
J. Am. Stat. Assoc. 90 (1995) 773): with less, copies say nothing, and nothing is ruled out.
"""


def ruled_out(
    columns: Sequence[Feature], rows: Observations, response: np.ndarray, n_independent: float
) -> dict[str, str]:
    """Return the features that are no candidates beside others that were measured, each with the reason.

    Parameters
    ----------
    columns : sequence of Feature
    rows : Observations
        A feature that is constant in each of their configurations is not counted as measured.
    response : ndarray of float, shape (n_rows,)
        Whose variance the features are asked for.
    n_independent : float
        The number of independent rows.
    """
    by_name = _recorded(columns)
    centring = GroupCentring(rows.configuration, rows.weight)
    varying = [name for name in (*DIRECTIONS, *CLOCKS) if name in by_name and centring.varies(by_name[name].values)]
    reasons: dict[str, str] = {}
    parts = [name for name in varying if name in DIRECTIONS]
    if TOTAL in by_name and parts and _is_total(by_name[TOTAL], [by_name[name] for name in parts]):
        more = _information([by_name[name] for name in parts], centring, response, n_independent)
        together = _information([by_name[TOTAL]], centring, response, n_independent)
        if len(parts) == 1 or more > max(together, STRONG):
            reasons[TOTAL] = "the bytes in flight in each direction say more"
        elif together > STRONG:
            reasons |= dict.fromkeys(parts, f"{TOTAL} says as much: copies act alike in each direction")
    clock = next((name for name in varying if name in CLOCKS), None)
    if clock is not None:
        behind = [name for name in by_name if name.endswith(BEHIND_CLOCK)]
        reasons |= dict.fromkeys(behind, f"can act on a launch's time through {clock} alone, which was measured")
    return reasons


def _recorded(columns: Sequence[Feature]) -> dict[str, Feature]:
    """Return by name the numbers that say in which state a launch was made: a user's table may have columns of the same
    names, which mean what the user means.
    """
    return {one.name: one for one in columns if one.tier == "context" and one.values.dtype != object}


def _is_total(total: Feature, parts: Sequence[Feature]) -> bool:
    """Tell whether every copy that was in flight has a direction."""
    return bool(np.all((total.values > 0) <= (np.nansum([one.values for one in parts], axis=0) > 0)))


def _information(
    features: Sequence[Feature], centring: GroupCentring, response: np.ndarray, n_independent: float
) -> float:
    """Return by how much the Bayesian information criterion of a linear model falls with some features, each with its
    size and whether it is above zero; below 0 where they say nothing.
    """
    values = [np.nan_to_num(one.values.astype(float)) for one in features]
    both = np.column_stack([column for one in values for column in (one / max(one.max(), 1.0), one > 0)])
    design = centring.weighted(both)
    wanted = centring.weighted(response)
    solution, _, rank, _ = np.linalg.lstsq(design, wanted, rcond=1e-9)
    left = float(np.sum((wanted - design @ solution) ** 2)) / max(float(wanted @ wanted), 1e-300)
    return -n_independent * float(np.log(max(left, 1e-300))) - float(rank * np.log(n_independent))


def idle_where_alone(columns: Sequence[Feature]) -> list[Feature]:
    """Return the features with the idle time before a launch unknown where another launch was in flight: the device was
    not idle then, which `launches_in_flight` says.
    """
    known = _recorded(columns)
    if IN_FLIGHT not in known or IDLE not in known:
        return list(columns)
    alone = replace(known[IDLE], values=np.where(known[IN_FLIGHT].values > 0, np.nan, known[IDLE].values))
    return [alone if one is known[IDLE] else one for one in columns]
