"""How probable it is that a cause is one: learnt from statements on simulated tables whose truth is known.

A logistic model, not fitted to any user's data: `tests/bench/probabilities.py` learns the coefficients on the
generators that choices were made on, and checks them on one that nothing was chosen on (docs/validation.md). Of the
facts, only the robustness value told true causes from columns that an unmeasured cause moves or that hold an image of
the time; q-values, stability and the number of rows added nothing to the prediction of statements left out.
"""

import math
from dataclasses import dataclass

INTERCEPT = -2.8
"""Log-odds at robustness 0; learnt."""
PER_ROBUSTNESS = 4.6
"""Log-odds from robustness 0 to `ENOUGH_ROBUSTNESS`; learnt."""
ENOUGH_ROBUSTNESS = 0.35
"""More robustness than this made no statement truer."""


DOUBTFUL_BELOW = 0.5
"""A cause is not called supported if fewer than half of such statements were true."""


@dataclass(frozen=True, kw_only=True)
class StatementFacts:
    """What a probability may follow from; see above which facts it does follow from.

    Attributes
    ----------
    q_value : float, 0 to 1
    robustness : float, 0 to 1
    n_effective : float, positive
    role : str
        `lever`, `exposure`, `mediator`, `clock` or `lag`.
    determines_time : bool
    """

    q_value: float
    robustness: float
    n_effective: float
    role: str = "mediator"
    determines_time: bool = False


def known_part(facts: StatementFacts) -> float:
    """Return the fact that the model takes, 0 to 1: the robustness in what counts as enough of it."""
    return min(facts.robustness / ENOUGH_ROBUSTNESS, 1.0)


def probability_of(facts: StatementFacts) -> float | None:
    """Return the probability, 0 to 1, that a cause is a cause or cannot be told from one; None where nothing that was
    learnt applies: the cause determines the time, and only its definition can tell whether it was computed from it.
    """
    if facts.determines_time or not math.isfinite(facts.robustness):
        return None
    return 1.0 / (1.0 + math.exp(-(INTERCEPT + PER_ROBUSTNESS * known_part(facts))))


def is_doubtful(probability: float | None) -> bool:
    """Tell whether a statement with such a probability is more often false than true."""
    return probability is not None and probability < DOUBTFUL_BELOW
