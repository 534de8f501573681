"""Scores: what was found against what is true."""

import math
from dataclasses import dataclass

from causeway.core.vocabulary import FRAGILE_BELOW, UNEXPLAINED
from lab.validation.generator import KnownTable

MATTERS = 1.0
"""A cause with a smaller share, in percent, is neither missed nor false."""
CLEAR_SLOPE = 0.05
"""A slope that is smaller, in standard deviations, is no direction in which a sign could be right."""


Interval = tuple[float, float, float]
"""A share in percent with the ends of its 90 % interval."""


@dataclass(frozen=True)
class Claim:
    """A reported cause: its column, the columns it stands for, sign ("+", "-" or "?"), share in percent, robustness or
    None.

    `sign_of` is what the sign is about, "target" or "value"; None for a method that looks at the target alone. `shares`
    are the contribution and the share of the variance of the run time with their intervals; None where none is stated.
    """

    name: str
    members: tuple[str, ...]
    sign: str
    percent: float
    robustness: float | None = None
    sign_of: str | None = None
    shares: tuple[Interval, Interval] | None = None


def cause_behind(claim: Claim, table: KnownTable) -> str | None:
    """Return the cause that a claim names, itself, by a copy in other units, or by a member of its cluster; None if
    the claim is false.
    """
    for member in (claim.name, *sorted(claim.members)):
        name = table.stands_for.get(member, member)
        if name in table.causes:
            return name
    return None


def score_claims(claims: list[Claim], unexplained: float | None, table: KnownTable) -> dict[str, float]:
    """Return counts and errors of one table, to be summed over tables.

    Returns
    -------
    dict of str to float
        `true`, `false`, `missed`; `leaks` reported, but those told as one with a cause that determines the time;
        `determining`, such causes found; `definitional`, parts of the target's definition reported as causes;
        `signs_asked`, the found causes that move the target or the value in a clear direction (the target alone, for a
        method that looks at nothing else); `signs_given`, those of them with a sign about what they do move, and
        `signs_right` of these; `share_error`, the total variation of the shares with the unexplained rest, 0 to 1;
        `share_sum`; `proxies`, `proxies_fragile`, `causes_fragile`.
    """
    right_claims: dict[str, Claim] = {}
    false: list[Claim] = []
    for claim in claims:
        cause = cause_behind(claim, table)
        if cause is None and {claim.name, *claim.members} & table.definition:
            continue
        if cause is None or cause in right_claims:
            false.append(claim)
        else:
            right_claims[cause] = claim
    named = [claim for claim in claims if cause_behind(claim, table) in table.determining]
    weighty = {name for name in table.causes if table.shares[name] >= MATTERS}
    asked = [
        name
        for name, claim in right_claims.items()
        if any(abs(slope) >= CLEAR_SLOPE for slope in _slopes(name, claim, table).values())
    ]
    true_slope = {
        name: _slopes(name, right_claims[name], table)[right_claims[name].sign_of or "target"] for name in asked
    }
    given = [name for name in asked if right_claims[name].sign != "?" and abs(true_slope[name]) >= CLEAR_SLOPE]
    right = [name for name in given if (right_claims[name].sign == "+") == (true_slope[name] > 0)]
    distance = math.fsum(
        abs(share - (right_claims[name].percent if name in right_claims else 0.0))
        for name, share in table.shares.items()
        if name != UNEXPLAINED
    )
    distance += math.fsum(claim.percent for claim in false)
    rest = 100.0 if unexplained is None else unexplained
    distance += abs(rest - table.shares.get(UNEXPLAINED, 100.0))
    fragile = [claim for claim in claims if claim.robustness is not None and claim.robustness < FRAGILE_BELOW]
    proxies = [claim for claim in false if {claim.name, *claim.members} & table.proxies]
    return {
        "true": len(weighty & set(right_claims)),
        "false": len(false),
        "missed": len(weighty - set(right_claims)),
        "leaks": sum(bool({claim.name, *claim.members} & table.leaked) for claim in claims if claim not in named),
        "determining": len(table.determining & set(right_claims)),
        "definitional": sum(bool({claim.name, *claim.members} & table.definition) for claim in claims),
        "signs_asked": len(asked),
        "signs_given": len(given),
        "signs_right": len(right),
        "share_error": distance / 200.0,
        "share_sum": math.fsum(claim.percent for claim in claims) + rest,
        "proxies": len(proxies),
        "proxies_fragile": sum(claim in fragile for claim in proxies),
        "causes_fragile": sum(claim in fragile for claim in right_claims.values()),
    }


def share_scores(claims: list[Claim], rest: tuple[Interval, Interval], table: KnownTable) -> dict[str, float]:
    """Return the error of one table's shares of the variance of the run time, and how many intervals hold the truth, to
    be summed over tables.

    Parameters
    ----------
    claims : list of Claim
        Those without `shares` are left out; of two that name the same cause the second is false.
    rest : tuple of Interval
        The unexplained contribution and share.
    table : KnownTable
        Without a definition: shares are of what that leaves of the target, which the truth does not know.

    Returns
    -------
    dict of str to float
        `variance_error`, the total variation of the shares with the unexplained rest, 0 to 1; `variance_given` and
        `contribution_given`, shares and contributions of true causes and of the rest, and `variance_covered` and
        `contribution_covered`, how many of these have the truth in their interval.
    """
    said = {UNEXPLAINED: rest}
    wrong = 0.0
    for claim in claims:
        cause = cause_behind(claim, table)
        if claim.shares is not None and (cause is None or cause in said):
            wrong += claim.shares[1][0]
        elif claim.shares is not None:
            said[cause] = claim.shares
    off = [abs(share - (said[name][1][0] if name in said else 0.0)) for name, share in table.value_shares.items()]
    scores = {"variance_error": math.fsum([*off, wrong]) / 200.0}
    for number, (kind, truth) in enumerate((("contribution", table.shares), ("variance", table.value_shares))):
        held = [name for name, shares in said.items() if shares[number][1] <= truth[name] <= shares[number][2]]
        scores |= {f"{kind}_given": len(said), f"{kind}_covered": len(held)}
    return scores


def _slopes(name: str, claim: Claim, table: KnownTable) -> dict[str, float]:
    """Return the true slopes of what the claim's sign can be about."""
    slopes = {"target": table.slopes.get(name, 0.0)}
    return slopes if claim.sign_of is None else slopes | {"value": table.moves.get(name, 0.0)}


def f1(true: float, false: float, missed: float) -> float | None:
    """Return the harmonic mean of precision and recall; None if there was nothing to find and nothing was reported."""
    total = 2 * true + false + missed
    return 2 * true / total if total else None
