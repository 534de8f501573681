"""How probable it is that a cause is one: learnt from statements on simulated tables whose truth is known.

A logistic model of few facts, not fitted to any user's data: `tests/bench/probabilities.py` learns the coefficients on
the generators that choices were made on, and checks them on one that nothing was chosen on (docs/validation.md).
"""

import math
from dataclasses import dataclass

COEFFICIENTS: dict[str, float] = {
    "intercept": 0.0,
    "evidence": 0.0,
    "stability": 0.0,
    "robustness": 0.0,
    "rows": 0.0,
}
"""Log-odds per unit of each fact, as `tests/bench/probabilities.py` prints them."""
LEAST_Q = 1e-12
"""Smaller q-values count as this one: beyond it they differ by the model's tails and not by evidence."""
LEAST = 0.01
MOST = 0.99
"""No probability beyond these is said: the few hundred statements it was learnt on cannot tell more."""
USUAL_STABILITY = 1.0
"""Stability that a cause counts with where it was not measured: that of most causes in the tables it was learnt on."""


@dataclass(frozen=True, kw_only=True)
class StatementFacts:
    """What a probability follows from.

    Attributes
    ----------
    q_value : float, 0 to 1
    stability : float or None, 0 to 1
    robustness : float, 0 to 1
    n_effective : float, positive
    role : str
        Of the cause; told apart by nothing yet, since all roles were as often true.
    determines_time : bool
    """

    q_value: float
    stability: float | None
    robustness: float
    n_effective: float
    role: str = "mediator"
    determines_time: bool = False


def facts_vector(facts: StatementFacts) -> dict[str, float]:
    """Return the facts as the model takes them, each 0 to about 1; rows are the tens of the effective number."""
    return {
        "evidence": -math.log10(max(facts.q_value, LEAST_Q)) / 12.0,
        "stability": USUAL_STABILITY if facts.stability is None else facts.stability,
        "robustness": facts.robustness,
        "rows": math.log10(max(facts.n_effective, 1.0)) / 4.0,
    }


def probability_of(facts: StatementFacts) -> float | None:
    """Return the probability, 0 to 1, that a cause is a cause or cannot be told from one; None where nothing that was
    learnt applies: the cause determines the time, and only its definition can tell whether it was computed from it.
    """
    if facts.determines_time:
        return None
    log_odds = COEFFICIENTS["intercept"] + sum(
        COEFFICIENTS[name] * value for name, value in facts_vector(facts).items()
    )
    probability = 1.0 / (1.0 + math.exp(-log_odds))
    return min(max(probability, LEAST), MOST)
