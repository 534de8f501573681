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
    by_name = {one.name: one for one in columns}
    varying = [name for name in (*DIRECTIONS, *CLOCKS) if name in by_name and _varies(by_name[name], rows)]
    reasons: dict[str, str] = {}
    parts = [name for name in varying if name in DIRECTIONS]
    if TOTAL in by_name and parts and _is_total(by_name[TOTAL], [by_name[name] for name in parts]):
        more = _information([by_name[name] for name in parts], rows, response, n_independent)
        together = _information([by_name[TOTAL]], rows, response, n_independent)
        if len(parts) == 1 or more > max(together, STRONG):
            reasons[TOTAL] = "the bytes in flight in each direction say more"
        elif together > STRONG:
            reasons |= dict.fromkeys(parts, f"{TOTAL} says as much: copies act alike in each direction")
    clock = next((name for name in varying if name in CLOCKS), None)
    if clock is not None:
        behind = [name for name in by_name if name.endswith(BEHIND_CLOCK) and by_name[name].tier == "context"]
        reasons |= dict.fromkeys(behind, f"can act on a launch's time through {clock} alone, which was measured")
    return reasons


def _is_total(total: Feature, parts: Sequence[Feature]) -> bool:
    """Tell whether every copy that was in flight has a direction."""
    return bool(np.all((total.values > 0) <= (np.nansum([one.values for one in parts], axis=0) > 0)))


def _information(features: Sequence[Feature], rows: Observations, response: np.ndarray, n_independent: float) -> float:
    """Return by how much the Bayesian information criterion of a linear model falls with some features, each with its
    size and whether it is above zero; below 0 where they say nothing.
    """
    centring = GroupCentring(rows.configuration, rows.weight)
    root = np.sqrt(rows.weight)
    values = [np.nan_to_num(one.values.astype(float)) for one in features]
    both = np.column_stack([column for one in values for column in (one / max(one.max(), 1.0), one > 0)])
    design = root[:, None] * np.column_stack([centring.centred(column) for column in both.T])
    wanted = root * centring.centred(response)
    solution, _, rank, _ = np.linalg.lstsq(design, wanted, rcond=1e-9)
    left = float(np.sum((wanted - design @ solution) ** 2)) / max(float(wanted @ wanted), 1e-300)
    return -n_independent * float(np.log(max(left, 1e-300))) - float(rank * np.log(n_independent))


def idle_where_alone(columns: Sequence[Feature]) -> list[Feature]:
    """Return the features with the idle time before a launch unknown where another launch was in flight: the device was
    not idle then, which `launches_in_flight` says.
    """
    in_flight = next((one.values for one in columns if one.name == IN_FLIGHT), None)
    if in_flight is None:
        return list(columns)
    return [
        replace(one, values=np.where(in_flight > 0, np.nan, one.values)) if one.name == IDLE else one for one in columns
    ]


def _varies(feature: Feature, rows: Observations) -> bool:
    """Tell whether a feature varies within a configuration."""
    known = np.isfinite(feature.values)
    groups = rows.configuration[known]
    if not groups.size:
        return False
    low = np.full(groups.max() + 1, np.inf)
    high = -low
    np.minimum.at(low, groups, feature.values[known])
    np.maximum.at(high, groups, feature.values[known])
    return bool(np.any(low < high))
