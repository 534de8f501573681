"""Falsification: predictions that hold for a cause and fail for a column that an unmeasured common cause moves too.

Each cause acts on the response of its stage (the deviation, or the root of its size) through the shape in which the
search found it: its best combination of basis functions, fitted on other rows. The effect is the slope of the response
on that index given the other causes' indexes, both in standard deviations; it is positive if there is one.

- *future exposure* (negative-control exposure): what the cause will be at the next launch cannot act on this one. Given
  the cause now and before, its slope must be nil. A sampled metric is not asked: the reading that the next launch meets
  may have been taken while this one ran. Nor is a clock, such as the number of the step, or a size that alternates as
  layers do: its next value is known from this one, so that the two have no slopes of their own. Of what else is in
  flight a slope decides nothing: what the next launch meets may have run beside this one, and when that launch begins
  follows from how long this one took.
- *thirds*, *ranks*, *nodes*, *runs*: an effect of the cause keeps its sign in each third of the run, on each rank and
  node, and in each repeat of the job; where there is one of them only, that is said.
- *benchmark*: what a hidden cause as strong as the strongest measured one would leave of the effect.

References
----------
M. Lipsitch, E. Tchetgen Tchetgen, T. Cohen, Negative controls, Epidemiology 21 (2010) 383; J. Peters, P. Buehlmann,
N. Meinshausen, Causal inference using invariant prediction, J. R. Stat. Soc. B 78 (2016) 947; C. Cinelli, C. Hazlett,
Making sense of sensitivity, J. R. Stat. Soc. B 82 (2020) 39, section 4.4.
"""

import itertools
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

from causeway.causal.data.feature_roles import IN_FLIGHT
from causeway.causal.data.outcome import CONFIGURATION, Arrow, Refutation
from causeway.causal.effects.evidence import Evidence
from causeway.causal.examination.heterogeneity import cochran, label_of
from causeway.core.feature_registry import DEVICE_METRICS
from causeway.core.prior_knowledge import CLOCK
from causeway.core.vocabulary import FRAGILE_BELOW
from causeway.events.distinct_texts import distinct_texts

LEVEL = 0.01
"""Of each test: an arrow undergoes three to five, so that some three in a hundred true ones fall, and less of few rows.
"""
LEAD_ABOVE = 0.2
"""Share of the effect that the slope on the future must exceed: what is smaller, the shape of the effect may leave."""
MOST_ARROWS = 15
FEWEST_ROWS = 50
"""Rows of a third or a rank that give a slope."""
LEAST_SPREAD = 0.1
"""Standard deviation that a cause must have in a third, rank, node or run, and its next value given this one and the
one before, as a share of that over all rows: where it varies less, its slope is that of jitter. Chosen: a clock that is
capped on one of two ranks has .07 on the other.
"""
NOTES = {
    "future_exposure": "slope on the cause at the next launch, given it now and before",
    "thirds": "largest difference from the slope of all rows, in three thirds of the run",
    "ranks": "largest difference from the slope of all rows, by rank",
    "nodes": "largest difference from the slope of all rows, by node",
    "runs": "largest difference from the slope of all rows, by repeat of the job",
}
"""What the second number of a test is; the tests that may refute."""
BESIDE_BOTH = "undecided, as what the next launch meets may have run beside this one"
PLACES = {"rank": "ranks", "node": "nodes", "run": "runs"}
"""Features that tell where a launch ran, and the test that asks whether an effect is the same everywhere."""


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


def falsify(evidence: Evidence, arrows: Sequence[Arrow]) -> list[Refutation]:
    """Try to refute each arrow.

    Parameters
    ----------
    evidence : Evidence
    arrows : sequence of Arrow
        The first 15 are tried.

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
        found += _of_arrow(arrow, evidence, response, columns, index, [cause.name for cause in causes])
    return found


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


def _of_arrow(
    arrow: Arrow,
    evidence: Evidence,
    response: np.ndarray,
    columns: np.ndarray,
    index: int,
    names: Sequence[str],
) -> list[Refutation]:
    """Return the attempts to refute one arrow, whose cause is column `index`."""
    blocks = evidence.stages.blocks
    effect = float(block_slopes(response, columns, blocks)[0][index])
    sampled = any(one.name == arrow.name and one.group == DEVICE_METRICS for one in evidence.columns)
    asked = not sampled and arrow.role != CLOCK
    tests = {"future_exposure": _future(response, columns, index, evidence) if asked else None}
    thirds = np.arange(response.size) * 3 // response.size
    tests["thirds"] = _invariant(response, columns, index, blocks, thirds)
    places = {one.name: one.values for one in evidence.columns if one.name in PLACES and one.values.dtype == object}
    found = []
    for place, test in PLACES.items():
        if place in places and arrow.name != place:
            numbers = distinct_texts(places[place].tolist())[1]
            tests[test] = _invariant(response, columns, index, blocks, numbers)
        if arrow.name != place and tests.get(test) is None:
            note = f"not known whether it is the same on several {test}: fewer than two have rows in which it varies"
            found.append(Refutation(feature=arrow.name, refuter=test, note=note))
    for name, result in tests.items():
        if result is None:
            continue
        value, p_value, opposite = result
        failed = p_value < LEVEL and (abs(value) > LEAD_ABOVE * abs(effect) if name == "future_exposure" else opposite)
        decides = not failed or name != "future_exposure" or arrow.name not in IN_FLIGHT
        found.append(
            Refutation(
                feature=arrow.name,
                refuter=name,
                effect=effect,
                refuted_effect=value,
                p_value=p_value,
                passed=not failed if decides else None,
                note=NOTES[name] if decides else f"{NOTES[name]}; {BESIDE_BOTH}",
            )
        )
    found.append(
        Refutation(
            feature=arrow.name,
            refuter="robustness_value",
            effect=effect,
            refuted_effect=arrow.robustness,
            passed=arrow.robustness >= FRAGILE_BELOW,
            note=f"partial R²; fragile below {FRAGILE_BELOW}",
        )
    )
    if columns.shape[1] > 1:
        left, name = benchmark(response, columns, index, effect, names)
        found.append(
            Refutation(
                feature=arrow.name,
                refuter="benchmark",
                effect=effect,
                refuted_effect=left,
                passed=left * effect > 0,
                note=f"left by a hidden cause as strong as {name}",
            )
        )
    return found


def _future(
    response: np.ndarray, columns: np.ndarray, index: int, evidence: Evidence
) -> tuple[float, float, bool] | None:
    """Return the slope on the cause at the next launch of the configuration, its p-value, and False; None with too few
    rows, or where the next value follows from this one and the one before.
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
    if np.std(left) <= LEAST_SPREAD * np.std(own):
        return None
    slopes, errors = block_slopes(response[now] - response[now].mean(), given, evidence.stages.blocks[now])
    if errors[0] <= 0:
        return None
    return float(slopes[0]), float(2 * ndtr(-abs(slopes[0] / errors[0]))), False


def _invariant(
    response: np.ndarray, columns: np.ndarray, index: int, blocks: np.ndarray, groups: np.ndarray
) -> tuple[float, float, bool] | None:
    """Return the largest difference of a group's slope from the pooled one, the p-value of Cochran's Q, and whether
    groups contradict each other; None with fewer than two groups of enough rows in which the cause varies.
    """
    found = []
    for group in np.unique(groups):
        mine = groups == group
        if mine.sum() >= FEWEST_ROWS and np.std(columns[mine, index]) > LEAST_SPREAD * np.std(columns[:, index]):
            own = columns[mine] - columns[mine].mean(axis=0)
            slopes, errors = block_slopes(response[mine] - response[mine].mean(), own, blocks[mine])
            if errors[index] > 0:
                found.append((slopes[index], errors[index]))
    if len(found) < 2:
        return None
    slopes, errors = (np.asarray(part) for part in zip(*found, strict=True))
    pooled, _, _, share, p_value = cochran(slopes, errors)
    farthest = float(slopes[np.argmax(np.abs(slopes - pooled))] - pooled)
    return farthest, p_value, label_of(share, p_value, slopes, errors) == "opposite"


def benchmark(
    response: np.ndarray, columns: np.ndarray, index: int, effect: float, names: Sequence[str]
) -> tuple[float, str]:
    """Return what a hidden cause as strong as the strongest other measured one would leave of the effect, and that
    one's name.

    Parameters
    ----------
    response : ndarray of float, shape (n_rows,)
    columns : ndarray of float, shape (n_rows, n_causes)
        At least two, centred like the response.
    index : int
        The cause.
    effect : float
        Its slope.
    names : sequence of str
        Of the columns.

    Notes
    -----
    With R2 the partial ones of the benchmark with the cause and with the response, the bias is at most `se sqrt(df)
    sqrt(R2_yz R2_dz / (1 - R2_dz))` (Cinelli and Hazlett, equation 8, with the benchmark's own strengths).
    """
    others = [number for number in range(columns.shape[1]) if number != index]
    worst = 0.0
    strongest = names[others[0]]
    for number in others:
        rest = [other for other in others if other != number]
        of_cause = _residual(columns[:, index], columns[:, rest])
        tied = _squared_correlation(_residual(columns[:, number], columns[:, rest]), of_cause)
        alone = _residual(columns[:, number], columns[:, [*rest, index]])
        left = _residual(response, columns[:, [*rest, index]])
        acts = _squared_correlation(alone, left)
        free = _residual(of_cause, columns[:, [number]])
        spread = float(np.sqrt((1 - acts) * (left @ left) / max(float(free @ free), 1e-12)))
        bias = spread * float(np.sqrt(acts * tied / max(1 - tied, 1e-6)))
        if bias >= worst:
            worst = bias
            strongest = names[number]
    return effect - float(np.sign(effect)) * worst, strongest


def _residual(values: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Return what a regression on some columns leaves, shape (n_rows,)."""
    return values - given @ np.linalg.lstsq(given, values, rcond=1e-8)[0] if given.shape[1] else values


def _squared_correlation(one: np.ndarray, other: np.ndarray) -> float:
    product = float(one @ one) * float(other @ other)
    return float(one @ other) ** 2 / product if product > 0 else 0.0


DECIDING = frozenset(NOTES)
"""Attempts that refute an arrow; the others say how fragile it is."""


def refuted_by(attempts: Sequence[Refutation], feature: str) -> list[str]:
    """Return the attempts that refuted a feature's arrow, by name."""
    return [
        one.refuter for one in attempts if one.feature == feature and one.refuter in DECIDING and one.passed is False
    ]
