"""Places that a launch ran on - ranks, devices, nodes, runs - beside clocks that differ from place to place.

On a slow device all kernels take longer, so that each one begins later in its step. The position in the step then tells
the slow device from the others as well as its name does, with fewer degrees of freedom, and is no cause but an effect.
If it were one, the launches of a single place would follow it, too.
"""

from collections.abc import Sequence

import numpy as np

from causeway.causal.data.observations import Feature, Observations
from causeway.causal.preparation.categorical import PLACEMENT
from causeway.causal.preparation.known_relations import STRONG
from causeway.causal.statistics.basis import GroupCentring
from causeway.core.names.prior_knowledge import CLOCK, EXPOSURE
from causeway.events.distinct_texts import distinct_texts


def clocks_of_places(
    columns: Sequence[Feature], rows: Observations, response: np.ndarray, n_independent: float
) -> dict[str, str]:
    """Return the clocks that say where a launch ran rather than when, each with the reason.

    Parameters
    ----------
    columns : sequence of Feature
    rows : Observations
    response : ndarray of float, shape (n_rows,)
        What the clocks could explain.
    n_independent : float
        The number of independent rows.

    Notes
    -----
    A clock is one if its slope over all launches, set within the places, leaves more of the variance there than no
    slope at all: strong evidence by the likelihood, which has no degree of freedom here.
    """
    context = [one for one in columns if one.tier == "context"]
    clocks = [one for one in context if one.knowledge.role == CLOCK and one.values.dtype != object]
    reasons = {}
    for place in context:
        if place.group != PLACEMENT or place.knowledge.role != EXPOSURE or place.values.dtype != object:
            continue
        for clock in clocks:
            if n_independent * _contradiction(clock.values, place, rows, response) > STRONG:
                reasons[clock.name] = (
                    f"differs with {place.name}, and launches of the same {place.name} do not follow it"
                )
    return reasons


def _contradiction(values: np.ndarray, place: Feature, rows: Observations, response: np.ndarray) -> float:
    """Return by how much the logarithm of the variance within places rises if they have the slope of all launches."""
    known = np.isfinite(values)
    if known.sum() < 2:
        return 0.0
    codes = distinct_texts(place.values[known].tolist())[1]
    configuration = rows.configuration[known].astype(np.int64)
    weight = rows.weight[known]
    overall = GroupCentring(np.unique(configuration, return_inverse=True)[1], weight)
    own = GroupCentring(np.unique(configuration * (codes.max() + 1) + codes, return_inverse=True)[1], weight)
    clock, wanted = (overall.weighted(part) for part in (values[known], response[known]))
    length = float(clock @ clock)
    if length <= 0:
        return 0.0
    slope = float(clock @ wanted) / length
    clock, wanted = (own.weighted(part) for part in (values[known], response[known]))
    without = float(wanted @ wanted)
    left = wanted - slope * clock
    return float(np.log(float(left @ left) / without)) if without > 0 else 0.0
