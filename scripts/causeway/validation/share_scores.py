"""Scores of the shares of causes: how far they are from the true ones, and how often their 90 % intervals hold them.

Both kinds are scored: contributions, shares of the variance of the absolute deviation, and the shares that sentences
state, of the variance of the run time itself within kernels.
"""

import math
from dataclasses import dataclass

from causeway.core.vocabulary import UNEXPLAINED
from causeway.validation.generator import KnownTable

Interval = tuple[float, float, float]
"""A share with the ends of its interval, percent."""


@dataclass(frozen=True)
class ShareClaim:
    """The shares that are said of one cause, or of the unexplained rest.

    `cause` is the true cause that is named; None if the claim is false.
    """

    cause: str | None
    contribution: Interval
    variance: Interval


def share_scores(claims: list[ShareClaim], table: KnownTable) -> dict[str, float]:
    """Return errors and coverage of the shares of one table, to be summed over tables.

    Parameters
    ----------
    claims : list of ShareClaim
        One per arrow, the first one of a cause counting, and one of `unexplained`.
    table : KnownTable
        Without a definition: shares are of what that leaves of the target, which the truth does not know.

    Returns
    -------
    dict of str to float
        `variance_error`, the total variation of the shares of the run time with the unexplained rest, 0 to 1;
        `variance_given` and `contribution_given`, the shares of true causes and of the rest, and `variance_covered` and
        `contribution_covered`, how many of these have the truth in their interval.
    """
    said: dict[str, ShareClaim] = {}
    false = []
    for claim in claims:
        if claim.cause is None or claim.cause in said:
            false.append(claim)
        else:
            said[claim.cause] = claim
    missed = [share for name, share in table.value_shares.items() if name not in said]
    wrong = [claim.variance[0] for claim in false]
    off = [abs(claim.variance[0] - table.value_shares[name]) for name, claim in said.items()]
    found = {"variance_error": math.fsum([*off, *missed, *wrong]) / 200.0}
    for kind, truth in (("variance", table.value_shares), ("contribution", table.shares)):
        ends = {name: getattr(claim, kind)[1:] for name, claim in said.items()}
        held = [name for name, (low, high) in ends.items() if low <= truth[name] <= high]
        found |= {f"{kind}_given": len(ends), f"{kind}_covered": len(held)}
    return found


def rest_claim(contribution: Interval, variance: Interval) -> ShareClaim:
    """Return what is said of the unexplained rest."""
    return ShareClaim(UNEXPLAINED, contribution, variance)
