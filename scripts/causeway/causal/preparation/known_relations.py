"""What is known of features before any data: which of them say the same thing of a launch less precisely, and which can
act on a launch's time only through another one that was measured.

A search among all of them splits one cause over several names, or gives it the opposite sign: beside the number of
copies in flight, the bytes in one direction tell how much less these copies act than others, and would be said to make
launches quicker. Of both, those are candidates that say more: the number where copies act alike in each direction.
Likewise the number of launches in flight and which kernel is, the size of all inputs of an operator and that of each;
and the layout of inputs, which follows from their sizes where they are parts of larger tensors.
Measured on launches on GPUs whose causes were drawn at random (docs/validation.md).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from causeway.causal.data.feature_roles import (
    INPUT_ELEMENTS,
    KERNEL_IN_FLIGHT,
    LAYOUT,
    TOTAL_ELEMENTS,
    TOTAL_SIZES,
)
from causeway.causal.data.observations import Feature, Observations
from causeway.causal.data.outcome import Outcome
from causeway.causal.preparation.categorical import MAX_LEVELS, category_candidates
from causeway.causal.statistics.basis import GroupCentring
from causeway.core.codes import GPU_TIME, WARP_STALLS
from causeway.core.feature_registry import FEATURE_BY_NAME
from causeway.core.vocabulary import KERNEL_VARIABILITY
from causeway.events.distinct_texts import distinct_texts

COPIES = "transfers_in_flight"
"""How many copies are in flight, in whichever direction."""
DIRECTIONS = tuple(name for name, one in FEATURE_BY_NAME.items() if one.copy_kinds)
"""The bytes in flight in each direction."""
IN_FLIGHT = "launches_in_flight"
MATRICES = ("matmul_m", "matmul_n", "matmul_k")
"""What the sizes of the inputs of a matrix product follow from."""
CLOCKS = ("sm_clock_hz", "graphics_clock_hz")
"""The clock that a kernel's instructions run at, under the names that tools give it."""
BEHIND_CLOCK = ("power_w", "temperature_celsius", "utilisation_ratio")
"""Ends of the names of readings that act on a launch through the clock alone, or are its effect."""
IDLE = "idle_before_ns"
WAIT = "queue_ns"
STRONG = 6.0
"""Difference of the Bayesian information criterion that is "strong" evidence (R. E. Kass, A. E. Raftery, Bayes factors,
J. Am. Stat. Assoc. 90 (1995) 773): with less, features say nothing.
"""
ALL_TOLD = 1e-6
"""Share of the variance that is left where all is told: which of two tells more of it is rounding."""

Says = Callable[..., float]
"""What features of given names, together, say of the response: by how much the Bayesian information criterion falls."""


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
    varying = {name: one for name, one in by_name.items() if centring.varies(_numbers(one))}

    def told(features: Sequence[Feature]) -> float:
        return _information(features, centring, response, n_independent)

    def says(*names: str) -> float:
        return told([by_name[name] for name in names])

    reasons = _copies(by_name, varying, says) | _input_sizes(varying, says) | _layout(varying, told)
    reasons |= _launches(varying, says, several=bool(np.ptp(rows.kernel)))
    if WAIT in by_name and IN_FLIGHT in by_name:
        reasons[WAIT] = "it is over when the launch begins; what is in flight then, and what ran before, was measured"
    clock = next((name for name in CLOCKS if name in varying), None)
    if clock is not None:
        behind = [name for name in by_name if name.endswith(BEHIND_CLOCK)]
        reasons |= dict.fromkeys(behind, f"can act on a launch's time through {clock} alone, which was measured")
    return reasons


def _recorded(columns: Sequence[Feature]) -> dict[str, Feature]:
    """Return by name what says in which state a launch was made: a user's table may have columns of the same names,
    which mean what the user means. Numbers, and the categories that are compared with them.
    """
    own = (one for one in columns if one.tier == "context")
    return {one.name: one for one in own if (one.values.dtype == object) == (one.name in (KERNEL_IN_FLIGHT, LAYOUT))}


def _numbers(feature: Feature) -> np.ndarray:
    """Return the values of a feature, the numbers of its levels where it has such."""
    if feature.values.dtype != object:
        return feature.values
    return distinct_texts(feature.values.tolist())[1]


def _copies(by_name: dict[str, Feature], varying: dict[str, Feature], says: Says) -> dict[str, str]:
    """Rule out the number of copies in flight, or their bytes in each direction."""
    parts = [name for name in DIRECTIONS if name in varying]
    if COPIES not in by_name or not parts or not _is_total(by_name[COPIES], [by_name[name] for name in parts]):
        return {}
    more = says(*parts)
    together = says(COPIES)
    if len(parts) == 1 or more > max(together, STRONG):
        return {COPIES: "the bytes in flight in each direction say more"}
    if together > STRONG:
        return dict.fromkeys(parts, f"{COPIES} says as much: copies act alike in each direction")
    return {}


def _is_total(total: Feature, parts: Sequence[Feature]) -> bool:
    """Tell whether every copy that was in flight has a direction."""
    return bool(np.all((total.values > 0) <= (np.nansum([one.values for one in parts], axis=0) > 0)))


def _launches(varying: dict[str, Feature], says: Says, several: bool) -> dict[str, str]:
    """Rule out the number of launches in flight, or which kernel is; that always among several kernels, where it tells
    which of them a launch is of: the program runs each beside others.
    """
    if KERNEL_IN_FLIGHT in varying and several:
        return {KERNEL_IN_FLIGHT: "stands for something else in each kernel"}
    if KERNEL_IN_FLIGHT not in varying or IN_FLIGHT not in varying:
        return {}
    if says(KERNEL_IN_FLIGHT) > max(says(IN_FLIGHT), 0) + STRONG:
        return {IN_FLIGHT: f"{KERNEL_IN_FLIGHT} says more: kernels differ in what they do to those beside them"}
    return {KERNEL_IN_FLIGHT: f"{IN_FLIGHT} says as much: kernels do alike to those beside them"}


def _input_sizes(varying: dict[str, Feature], says: Says) -> dict[str, str]:
    """Rule out the size of all inputs, or the size of each and those of a matrix product."""
    totals = [name for name in TOTAL_SIZES if name in varying]
    matrices = [name for name in MATRICES if name in varying]
    parts = [name for name in INPUT_ELEMENTS if name in varying]
    together = max((says(name) for name in totals), default=0.0)
    if matrices and says(*matrices) > max(together, STRONG):
        return dict.fromkeys([*totals, *parts], "follows from the sizes of the matrices")
    if len(parts) > 1 and says(*parts) > max(together, 0.0) + STRONG:
        return dict.fromkeys(totals, "the sizes of the inputs one by one say more")
    if len(parts) == 1 and totals and _mostly_constant(varying, parts[0]):
        return dict.fromkeys(totals, f"changes with {parts[0]} alone, which is less than half of it")
    return dict.fromkeys(parts if totals else (), f"{' and '.join(totals)} say as much")


def _mostly_constant(varying: dict[str, Feature], part: str) -> bool:
    """Tell whether the elements of all inputs are those of one input and a larger number that never changes, such as
    those of a table from which it chooses.
    """
    if TOTAL_ELEMENTS not in varying:
        return False
    rest = varying[TOTAL_ELEMENTS].values - varying[part].values
    return bool(np.ptp(rest) == 0 and rest[0] > np.max(varying[part].values))


def _layout(varying: dict[str, Feature], told: Callable[[Sequence[Feature]], float]) -> dict[str, str]:
    """Rule out the layout of inputs where their sizes tell as much; those as one category where they take few values
    together, so that a time that is no line of them is not told by the layout.
    """
    sizes = [varying[name] for name in (*TOTAL_SIZES, *INPUT_ELEMENTS, *MATRICES) if name in varying]
    if LAYOUT not in varying or not sizes:
        return {}
    together = [" ".join(map(str, row)) for row in zip(*(one.values for one in sizes), strict=True)]
    if len(set(together)) <= MAX_LEVELS:
        sizes = [replace(sizes[0], name="sizes", values=np.array(together, dtype=object))]
    if told([*sizes, varying[LAYOUT]]) > told(sizes) + STRONG:
        return {}
    return {LAYOUT: "the sizes of the inputs say as much"}


def _information(
    features: Sequence[Feature], centring: GroupCentring, response: np.ndarray, n_independent: float
) -> float:
    """Return by how much the Bayesian information criterion of a linear model falls with some features, each number
    with its size and whether it is above zero, each category with its levels; below 0 where they say nothing.
    """
    design = centring.weighted(np.column_stack([_columns(one) for one in features]))
    wanted = centring.weighted(response)
    solution, _, rank, _ = np.linalg.lstsq(design, wanted, rcond=1e-9)
    left = float(np.sum((wanted - design @ solution) ** 2)) / max(float(wanted @ wanted), 1e-300)
    return -n_independent * float(np.log(max(left, ALL_TOLD))) - float(rank * np.log(n_independent))


def _columns(feature: Feature) -> np.ndarray:
    """Return what a linear model is given of a feature, shape (n_rows, n_columns)."""
    if feature.values.dtype == object:
        candidates, _ = category_candidates([(feature.name, feature)])
        return candidates[0].values if candidates else np.zeros((feature.values.size, 1))
    values = np.nan_to_num(feature.values.astype(float))
    return np.column_stack([values / max(values.max(), 1.0), values > 0])


def stalls_that_quicken(outcome: Outcome) -> dict[str, str]:
    """Return the counters of warp stalls that were found to make launches quicker, each with the reason why it is no
    cause; of a target that is no time none.

    A launch that does more takes longer, and its warps wait less for what it does once, per instruction: the counter
    stands for the amount of work, the other way round.
    """
    if outcome.scope.target not in (KERNEL_VARIABILITY, GPU_TIME):
        return {}
    quicker = [member for one in outcome.arrows if one.value_effect.high < 0 for member in one.node.members]
    return {name: "waiting makes no launch quicker" for name in quicker if name in WARP_STALLS}


def idle_where_alone(columns: Sequence[Feature]) -> list[Feature]:
    """Return the features with the idle time before a launch unknown where another launch was in flight: the device was
    not idle then, which `launches_in_flight` says.
    """
    known = _recorded(columns)
    if IN_FLIGHT not in known or IDLE not in known:
        return list(columns)
    alone = replace(known[IDLE], values=np.where(known[IN_FLIGHT].values > 0, np.nan, known[IDLE].values))
    return [alone if one is known[IDLE] else one for one in columns]
