"""Falsification: what may refute a cause.

Each cause acts on the response of its stage (the deviation, or the root of its size) through the shape in which the
search found it: its best combination of basis functions, fitted on other rows. The effect is the slope of the response
on that index given the other causes' indexes, both in standard deviations; it is positive if there is one.

- *future exposure* (negative-control exposure): what the cause will be at the next launch cannot act on this one. Given
  the cause now and before, its slope must be nil. A sampled metric is not asked: the reading that the next launch meets
  may have been taken while this one ran. Nor is a clock, such as the number of the step, or a size that alternates as
  layers do: its next value is known from this one, so that the two have no slopes of their own. Of what else is in
  flight a slope decides nothing: what the next launch meets may have run beside this one, and when that launch begins
  follows from how long this one took. A column that lasts from launch to launch is not refuted by it: of a cause that
  lasts and is read with noise the next reading tells more, too.
- *robustness value*: how strong an unmeasured common cause would have to be to leave nothing of the effect.

What each says of false and of true arrows, and what else was tried, stands in docs/validation.md.

References
----------
M. Lipsitch, E. Tchetgen Tchetgen, T. Cohen, Negative controls, Epidemiology 21 (2010) 383; C. Cinelli, C. Hazlett,
Making sense of sensitivity, J. R. Stat. Soc. B 82 (2020) 39.
"""

import itertools
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

from causeway.causal.data.feature_names import IN_FLIGHT
from causeway.causal.data.observations import FEWEST_ROWS
from causeway.causal.data.outcome import CONFIGURATION, Arrow, Refutation
from causeway.causal.effects.evidence import Evidence
from causeway.causal.selection.linear_model import ALPHA
from causeway.causal.statistics.basis import NEW_SHARE
from causeway.core.feature_registry import DEVICE_METRICS
from causeway.core.names.prior_knowledge import CLOCK
from causeway.core.vocabulary import FRAGILE_BELOW
from causeway.numeric.effective_size import STANDARD_ERRORS

LEAD_ABOVE = 0.2
"""Share of the effect that the slope on the future must exceed: what is smaller, the shape of the effect may leave."""
MOST_ARROWS = 15
FUTURE = "future_exposure"
NOTE = "slope on the cause at the next launch, given it now and before"
LASTING = "this column follows something that lasts and acts; it may be a reading of it"
BESIDE_BOTH = "undecided, as what the next launch meets may have run beside this one"


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
    fitted = [np.zeros(response.size) for _ in causes]
    for fit, other in ((half, ~half), (~half, half)):
        slopes = np.linalg.lstsq(columns[fit], response[fit], rcond=1e-8)[0]
        for index, (a, b) in zip(fitted, itertools.pairwise(bounds), strict=True):
            index[other] = columns[other, a:b] @ slopes[a:b]
    spread = [max(float(np.sqrt(np.mean(column**2))), 1e-12) for column in (response, *fitted)]
    scaled = [column / s for column, s in zip(fitted, spread[1:], strict=True)]
    return response / spread[0], np.column_stack(scaled) if scaled else np.zeros((response.size, 0)), causes


def falsify(evidence: Evidence, arrows: Sequence[Arrow]) -> list[Refutation]:
    """Return the attempts to refute each arrow within configurations, by arrow.

    Parameters
    ----------
    evidence : Evidence
    arrows : sequence of Arrow
        The first 15 are tried.
    """
    attempts: list[Refutation] = []
    tried = [arrow for arrow in arrows[:MOST_ARROWS] if arrow.stage != CONFIGURATION]
    blocks = evidence.stages.blocks
    for stage in sorted({_stage(arrow) for arrow in tried}):
        response, columns, causes = indexes(evidence, arrows[:MOST_ARROWS], stage)
        effects = block_slopes(response, columns, blocks)[0]
        for index, arrow in enumerate(causes):
            if _stage(arrow) == stage:
                attempts += _of_arrow(arrow, evidence, response, columns, index, float(effects[index]))
    order = {arrow.name: number for number, arrow in enumerate(arrows)}
    return sorted(attempts, key=lambda attempt: order[attempt.feature])


def _stage(arrow: Arrow) -> str:
    return "scale" if arrow.stage == "scale" else "mean"


def block_slopes(response: np.ndarray, columns: np.ndarray, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return least-squares slopes with standard errors that hold for residuals correlated within blocks.

    Parameters
    ----------
    response : ndarray of float, shape (n_rows,)
        Centred.
    columns : ndarray of float, shape (n_rows, k)
        Centred.
    blocks : ndarray of int, shape (n_rows,)

    Returns
    -------
    slopes, errors : ndarray of float, shape (k,)

    References
    ----------
    K.-Y. Liang, S. Zeger, Longitudinal data analysis using generalized linear models, Biometrika 73 (1986) 13, with the
    factor `B / (B - 1)` for B blocks.
    """
    inverse = np.linalg.pinv(columns.T @ columns, rcond=1e-10, hermitian=True)
    slopes = inverse @ (columns.T @ response)
    scores = columns * (response - columns @ slopes)[:, None]
    numbers = np.unique(blocks, return_inverse=True)[1]
    sums = np.zeros((int(numbers.max()) + 1, columns.shape[1]))
    np.add.at(sums, numbers, scores)
    covariance = inverse @ (sums.T @ sums) @ inverse * len(sums) / max(len(sums) - 1, 1)
    return slopes, np.sqrt(np.maximum(np.diag(covariance), 0.0))


def lasts(column: np.ndarray, configuration: np.ndarray) -> bool:
    """Tell whether a column lasts: whether it correlates with itself at the next launch of the configuration.

    Parameters
    ----------
    column : ndarray of float, shape (n_rows,)
    configuration : ndarray of int, shape (n_rows,)
    """
    now, following = _next(configuration)
    if now.size < FEWEST_ROWS or np.std(column[now]) == 0 or np.std(column[following]) == 0:
        return False
    return float(np.corrcoef(column[now], column[following])[0, 1]) > STANDARD_ERRORS / now.size**0.5


def _next(configuration: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that have a later launch of their configuration, and that launch's row."""
    order = np.argsort(configuration, kind="stable")
    same = configuration[order][:-1] == configuration[order][1:]
    return order[:-1][same], order[1:][same]


def _of_arrow(
    arrow: Arrow, evidence: Evidence, response: np.ndarray, columns: np.ndarray, index: int, effect: float
) -> list[Refutation]:
    """Return the attempts to refute one arrow, whose cause is column `index`."""
    attempts = []
    sampled = any(column.name == arrow.name and column.group == DEVICE_METRICS for column in evidence.columns)
    future = None if sampled or arrow.role == CLOCK else _future(response, columns, index, evidence)
    if future is not None:
        value, p_value = future
        failed = p_value < ALPHA and abs(value) > LEAD_ABOVE * abs(effect)
        why = ""
        if failed and arrow.name in IN_FLIGHT:
            why = BESIDE_BOTH
        elif failed and lasts(columns[:, index], evidence.rows.configuration):
            why = LASTING
        attempts.append(
            Refutation(
                feature=arrow.name,
                refuter=FUTURE,
                effect=effect,
                refuted_effect=value,
                p_value=p_value,
                passed=None if why else not failed,
                note=f"{NOTE}; {why}" if why else NOTE,
            )
        )
    attempts.append(
        Refutation(
            feature=arrow.name,
            refuter="robustness_value",
            effect=effect,
            refuted_effect=arrow.robustness,
            passed=arrow.robustness >= FRAGILE_BELOW,
            note=f"partial R² that an unmeasured common cause would need; fragile below {FRAGILE_BELOW}",
        )
    )
    return attempts


def _future(response: np.ndarray, columns: np.ndarray, index: int, evidence: Evidence) -> tuple[float, float] | None:
    """Return the slope on the cause at the next launch of the configuration, and its p-value; None with too few rows,
    or where the next value follows from this one and the one before.
    """
    order = np.argsort(evidence.rows.configuration, kind="stable")
    same = evidence.rows.configuration[order]
    inner = np.flatnonzero((same[:-2] == same[1:-1]) & (same[1:-1] == same[2:])) + 1
    if inner.size < FEWEST_ROWS:
        return None
    now = order[inner]
    x = columns[:, index]
    lead = x[order[inner + 1]]
    if np.allclose(lead, x[now]):
        return None
    given = np.column_stack([lead, x[order[inner - 1]], columns[now]])
    given = given - given.mean(axis=0)
    own, *others = given.T
    left = own - np.column_stack(others) @ np.linalg.lstsq(np.column_stack(others), own, rcond=None)[0]
    if np.var(left) <= NEW_SHARE * np.var(own):
        return None
    slopes, errors = block_slopes(response[now] - response[now].mean(), given, evidence.stages.blocks[now])
    if errors[0] <= 0:
        return None
    return float(slopes[0]), float(2 * ndtr(-abs(slopes[0] / errors[0])))


def is_refuted(attempts: Sequence[Refutation], name: str) -> bool:
    """Tell whether the cause at the next launch refuted the arrow of a feature."""
    return any(
        attempt.feature == name and attempt.refuter == FUTURE and attempt.passed is False for attempt in attempts
    )


def is_lasting(attempts: Sequence[Refutation], name: str) -> bool:
    """Tell whether the arrow of a feature may be one of something else that lasts and acts."""
    return any(attempt.feature == name and (attempt.note or "").endswith(LASTING) for attempt in attempts)
