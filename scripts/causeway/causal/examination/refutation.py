"""Refutation: attempts to break each arrow, with dowhy's refuters, and how strong a hidden cause would have to be.

Each cause acts on the response of its stage (the deviation, or the root of its size) through the shape in which the
search found it: its best combination of basis functions, fitted on other rows. That index is dowhy's treatment, the
other causes' indexes are its common causes, and the effect is the slope of the response on the index, both in standard
deviations; it is positive if there is one.
"""

import functools
import itertools
import logging
import warnings
from collections.abc import Sequence

import numpy as np

from causeway.causal.data.outcome import CONFIGURATION, Arrow, Refutation
from causeway.causal.effects.evidence import Evidence
from causeway.causal.statistics.sensitivity import e_value
from causeway.core.vocabulary import FRAGILE_BELOW
from causeway.numeric.seeds import derived_seed

MAX_ROWS = 3000
SIMULATIONS = 10
SUBSET = 0.5
"""Share of the rows in a subset."""
PLACEBO_BELOW = 0.2
"""A placebo may keep at most this share of the effect."""
CHANGE_BELOW = 0.2
"""A random common cause, or half of the rows, may change the effect by at most this share."""
E_VALUE_FROM = 1.25
MOST_ARROWS = 15


@functools.cache
def _partial_slope() -> type:
    """Return the estimator that the refuters refit: least squares in NumPy; dowhy's own takes 0.1 s and more per
    fit.
    """
    from dowhy.causal_estimator import CausalEstimate, CausalEstimator

    class PartialSlope(CausalEstimator):
        """Slope of the outcome on the treatment given the adjustment set."""

        def fit(self, data, effect_modifier_names=None, **_):
            self._set_effect_modifiers(data, effect_modifier_names)
            return self

        def estimate_effect(self, data, control_value=0, treatment_value=1, target_units=None, **_):
            self._target_units = target_units
            estimand = self._target_estimand
            treatment = estimand.treatment_variable[0]
            outcome = estimand.outcome_variable[0]
            columns = data[[treatment, *estimand.get_adjustment_set()]].to_numpy()
            slope = float(np.linalg.lstsq(columns, data[outcome].to_numpy(), rcond=1e-8)[0][0])
            return CausalEstimate(
                data=None,
                treatment_name=[treatment],
                outcome_name=[outcome],
                estimate=slope,
                target_estimand=estimand,
                realized_estimand_expr=None,
                control_value=control_value,
                treatment_value=treatment_value,
            )

    return PartialSlope


def indexes(evidence: Evidence, arrows: Sequence[Arrow], stage: str) -> tuple[np.ndarray, np.ndarray, list[Arrow]]:
    """Return a stage's response, the indexes of the causes that vary within configurations, and these causes.

    The shape is fitted on every other block and used on the blocks between, so that what has no effect gets an index
    without one.

    Returns
    -------
    response : ndarray, shape (n_rows,)
        Centred within configurations, weighted, in standard deviations.
    columns : ndarray, shape (n_rows, n_causes)
        Likewise.
    causes : list of Arrow
    """
    stages = evidence.stages
    own = stages.mean if stage == "mean" else stages.scale
    response = own.response
    basis = own.problem.basis
    position = {candidate.name: number for number, candidate in enumerate(evidence.prepared.within)}
    causes = [arrow for arrow in arrows if arrow.stage != CONFIGURATION]
    parts = [basis.of(position[arrow.name]) for arrow in causes]
    columns = basis.columns[:, np.concatenate(parts)].astype(float) if parts else np.zeros((response.size, 0))
    half = stages.blocks % 2 == 0
    bounds = np.cumsum([0, *(part.size for part in parts)])
    found = [np.zeros(response.size) for _ in causes]
    for fit, other in ((half, ~half), (~half, half)):
        slopes = np.linalg.lstsq(columns[fit], response[fit], rcond=1e-8)[0]
        for index, (a, b) in zip(found, itertools.pairwise(bounds), strict=True):
            index[other] = columns[other, a:b] @ slopes[a:b]
    spread = [max(float(np.sqrt(np.mean(one**2))), 1e-12) for one in (response, *found)]
    scaled = [one / s for one, s in zip(found, spread[1:], strict=True)]
    return response / spread[0], np.column_stack(scaled) if scaled else np.zeros((response.size, 0)), causes


def refute(evidence: Evidence, arrows: Sequence[Arrow], seed: int) -> list[Refutation]:
    """Try to refute each arrow.

    Parameters
    ----------
    evidence : Evidence
    arrows : sequence of Arrow
        The first 15 are tried.
    seed : int

    Returns
    -------
    list of Refutation
        By arrow.
    """
    arrows = arrows[:MOST_ARROWS]
    found: list[Refutation] = []
    shapes = {
        stage: indexes(evidence, arrows, stage)
        for stage in sorted({"scale" if arrow.stage == "scale" else "mean" for arrow in arrows})
    }
    for arrow in arrows:
        if arrow.stage == CONFIGURATION:
            note = (
                "rests on configurations, not on rows: its stability is that of leaving out one configuration after the"
                " other"
            )
            found.append(Refutation(feature=arrow.name, refuter="none", note=note))
            continue
        response, columns, causes = shapes["scale" if arrow.stage == "scale" else "mean"]
        index = next(number for number, cause in enumerate(causes) if cause.name == arrow.name)
        found += _of_arrow(arrow, response, columns, index, derived_seed(seed, arrow.name) % (1 << 31))
    return found


def _of_arrow(arrow: Arrow, response: np.ndarray, columns: np.ndarray, index: int, seed: int) -> list[Refutation]:
    """Return the attempts to refute one arrow, whose cause is column `index`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's own, about its dependencies
        import pandas as pd
        from dowhy import CausalModel
        from dowhy.causal_refuters.data_subset_refuter import refute_data_subset
        from dowhy.causal_refuters.placebo_treatment_refuter import PlaceboType, refute_placebo_treatment
        from dowhy.causal_refuters.random_common_cause import refute_random_common_cause

        logging.getLogger("dowhy").setLevel(logging.ERROR)
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.permutation(response.size)[:MAX_ROWS])
        others = [f"w{i}" for i in range(columns.shape[1]) if i != index]
        data = pd.DataFrame(
            columns[chosen], columns=[f"w{i}" if i != index else "cause" for i in range(columns.shape[1])]
        )
        data["target"] = response[chosen]
        model = CausalModel(data, "cause", "target", common_causes=others or None)
        estimand = model.identify_effect(proceed_when_unidentifiable=True)
        estimand.set_identifier_method("backdoor")
        estimate = _partial_slope()(estimand).fit(data).estimate_effect(data)
        estimate.add_estimator(_partial_slope()(estimand).fit(data))
        estimate.estimator._target_units = "ate"
        attempts = {
            "placebo_treatment": lambda: refute_placebo_treatment(
                data, estimand, estimate, ["cause"], SIMULATIONS, PlaceboType.PERMUTE, np.random.RandomState(seed)
            ),
            "random_common_cause": lambda: refute_random_common_cause(
                data, estimand, estimate, SIMULATIONS, np.random.RandomState(seed + 1)
            ),
            "data_subset": lambda: refute_data_subset(
                data, estimand, estimate, SUBSET, SIMULATIONS, np.random.RandomState(seed + 2)
            ),
        }
        effect = float(estimate.value)
        found = []
        for refuter, attempt in attempts.items():
            result = attempt()
            left = float(result.new_effect)
            off = abs(left) if refuter == "placebo_treatment" else abs(left - effect)
            limit = PLACEBO_BELOW if refuter == "placebo_treatment" else CHANGE_BELOW
            p_value = float(np.ravel(result.refutation_result["p_value"])[0])
            found.append(
                Refutation(
                    feature=arrow.name,
                    refuter=refuter,
                    effect=effect,
                    refuted_effect=left,
                    p_value=p_value if np.isfinite(p_value) else None,
                    passed=bool(off <= limit * effect),  # the shape makes the effect positive
                    note=f"{SIMULATIONS} simulations",
                )
            )
    value = e_value(effect, float(np.sqrt(max(1 - effect**2, 0.0) / max(arrow.n_effective - 2, 1.0))))
    return [
        *found,
        Refutation(
            feature=arrow.name,
            refuter="robustness_value",
            effect=effect,
            refuted_effect=arrow.robustness,
            passed=arrow.robustness >= FRAGILE_BELOW,
            note=f"partial R²; fragile below {FRAGILE_BELOW}",
        ),
        Refutation(
            feature=arrow.name,
            refuter="e_value",
            effect=effect,
            refuted_effect=value,
            passed=value >= E_VALUE_FROM,
            note=f"near end of the interval; fragile below {E_VALUE_FROM}",
        ),
    ]


DECIDING = frozenset({"placebo_treatment", "random_common_cause", "data_subset"})
"""Attempts that refute an arrow; the other two say how fragile it is."""


def refuted_by(attempts: Sequence[Refutation], feature: str) -> list[str]:
    """Return the attempts that refuted a feature's arrow, by name."""
    return [
        one.refuter for one in attempts if one.feature == feature and one.refuter in DECIDING and one.passed is False
    ]
