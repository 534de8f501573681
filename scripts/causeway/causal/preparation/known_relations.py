"""What is known of features before any data: which of them say the same thing of a launch less precisely, and which can
act on a launch's time only through another one that was measured.

A search among all of them splits one cause over several names, or gives it the opposite sign: beside the number of
copies in flight, the bytes in one direction tell how much less these copies act than others, and would be said to make
launches quicker. Measured on launches on an H100 whose causes were drawn at random (docs/validation.md).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from causeway.causal.data.observations import Feature
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


def ruled_out(columns: Sequence[Feature], configuration: np.ndarray) -> dict[str, str]:
    """Return the features that are no candidates beside others that were measured, each with the reason.

    Parameters
    ----------
    columns : sequence of Feature
    configuration : ndarray of int, shape (n_rows,)
        From 0; a feature that is constant in each configuration is not counted as measured.
    """
    by_name = {one.name: one for one in columns}
    varying = [name for name in (*DIRECTIONS, *CLOCKS) if name in by_name and _varies(by_name[name], configuration)]
    reasons: dict[str, str] = {}
    parts = [by_name[name].values for name in varying if name in DIRECTIONS]
    if TOTAL in by_name and parts and np.all((by_name[TOTAL].values > 0) <= (np.nansum(parts, axis=0) > 0)):
        reasons[TOTAL] = "the bytes in flight in each direction say more"
    clock = next((name for name in varying if name in CLOCKS), None)
    if clock is not None:
        behind = [name for name in by_name if name.endswith(BEHIND_CLOCK) and by_name[name].tier == "context"]
        reasons |= dict.fromkeys(behind, f"can act on a launch's time through {clock} alone, which was measured")
    return reasons


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


def _varies(feature: Feature, configuration: np.ndarray) -> bool:
    """Tell whether a feature varies within a configuration."""
    known = np.isfinite(feature.values)
    groups = configuration[known]
    if not groups.size:
        return False
    low = np.full(groups.max() + 1, np.inf)
    high = -low
    np.minimum.at(low, groups, feature.values[known])
    np.maximum.at(high, groups, feature.values[known])
    return bool(np.any(low < high))
