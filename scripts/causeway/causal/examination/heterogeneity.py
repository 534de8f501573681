"""Heterogeneity: whether a cause acts alike in every kernel, and on every rank."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.special import gammaincc, ndtri

from causeway.causal.data.observations import FEWEST_ROWS, Observations
from causeway.causal.data.outcome import (
    CONFIGURATION,
    NORMAL_QUANTILE,
    TARGET,
    VALUE,
    Arrow,
    Estimate,
    GroupedBy,
    GroupSlope,
    Label,
    SignOf,
)
from causeway.causal.effects.evidence import Evidence
from causeway.causal.statistics.basis import GroupCentring
from causeway.causal.statistics.multiple_testing import SIGNIFICANT
from causeway.numeric.effective_size import autocorrelations, bartlett_factor, kish_size, lag_count

MOST_GROUPS = 200
LABELS: tuple[tuple[float, Label], ...] = ((75.0, "high"), (50.0, "moderate"), (25.0, "low"))
"""I² from which heterogeneity is called so: J. Higgins et al., BMJ 327 (2003) 557; below, the groups agree."""
SLOPES_OF: tuple[SignOf, SignOf] = (TARGET, VALUE)


def cochran(slopes: np.ndarray, errors: np.ndarray) -> tuple[float, float, float, float, float]:
    """Return the pooled slope, its standard error, Cochran's Q, I² in percent, and the p-value of Q.

    Parameters
    ----------
    slopes, errors : ndarray of float, shape (groups,)
        Slope of each group and its standard error, above 0.

    References
    ----------
    W. Cochran, The combination of estimates from different experiments, Biometrics 10 (1954) 101; J. Higgins, S.
    Thompson, Quantifying heterogeneity in a meta-analysis, Stat. Med. 21 (2002) 1539: `I^2 = max(0, (Q - df) / Q)`.
    """
    weights = 1.0 / errors**2
    pooled = float(weights @ slopes / weights.sum())
    q = float(weights @ (slopes - pooled) ** 2)
    df = slopes.size - 1
    share = 100.0 * max(0.0, (q - df) / q) if q > 0 else 0.0
    return pooled, float(weights.sum() ** -0.5), q, share, float(gammaincc(df / 2, q / 2)) if df else 1.0


def label_of(share: float, p_value: float, slopes: np.ndarray, errors: np.ndarray) -> Label:
    """Return heterogeneity in words: `alike`, `low`, `moderate`, `high`, or `opposite` if groups contradict each other
    significantly.

    Opposite: both a positive and a negative slope differ from zero at 5 % after Bonferroni over the groups.

    Parameters
    ----------
    share : float
        I², percent.
    p_value : float
        Of Cochran's Q.
    slopes, errors : ndarray of float, shape (groups,)
    """
    limit = -float(ndtri(SIGNIFICANT / (2 * slopes.size)))
    ratio = slopes / errors
    if ratio.max() > limit and ratio.min() < -limit:
        return "opposite"
    return next((word for least, word in LABELS if share >= least and p_value <= SIGNIFICANT), "alike")


def grouped_by(evidence: Evidence) -> dict[GroupedBy, np.ndarray]:
    """Return the name of each row's group, text of shape (n,): kernel and rank, where there are several."""
    found: dict[GroupedBy, np.ndarray] = {}
    if np.unique(evidence.rows.kernel).size > 1:
        ids = evidence.rows.kernels or tuple(str(code) for code in range(int(evidence.rows.kernel.max()) + 1))
        found["kernel"] = np.asarray(ids, dtype=object)[evidence.rows.kernel]
    rank = next(
        (column for column in evidence.columns if column.name == "rank" and column.values.dtype == object), None
    )
    if rank is not None:
        found["rank"] = rank.values
    return found


def heterogeneity(evidence: Evidence, arrows: Sequence[Arrow]) -> list[GroupSlope]:
    """Return the slopes of the target on each cause in each group, and what tells the groups apart.

    Parameters
    ----------
    evidence : Evidence
    arrows : sequence of Arrow
        Those that vary within configurations are compared.

    Returns
    -------
    list of GroupSlope
        By arrow, then by kernel and rank; first all groups together, then each.

    Notes
    -----
    In each group the target (the deviation's size, in standard deviations; the deviation itself where the target is
    measured) is regressed on all causes, with the means of configurations taken out and the rows' weights; the errors
    count what the rows are worth. Where a cause's sign is about the measured value, its slopes are those of the signed
    deviation, which moves as the value does, unless the slopes of the target are opposite: that is why they gave no
    sign.
    """
    within = [arrow for arrow in arrows if arrow.stage != CONFIGURATION]
    columns = np.column_stack([_column(arrow, evidence) for arrow in within]) if within else np.zeros((0, 0))
    found = []
    for by, groups in grouped_by(evidence).items():
        levels, codes = np.unique(groups, return_inverse=True)
        if not within or levels.size > MOST_GROUPS:
            continue
        every = ((str(level), _slopes(evidence, columns, codes == code)) for code, level in enumerate(levels))
        parts = {level: part for level, part in every if part is not None}
        for index, arrow in enumerate(within):
            own = {
                level: (n, slopes[:, index], errors[:, index])
                for level, (n, slopes, errors) in parts.items()
                if errors[0, index] > 0
            }
            if len(own) < 2:
                continue
            of_target, of_value = (_compared(arrow.name, by, own, slope_of) for slope_of in SLOPES_OF)
            found += of_value if arrow.sign_of == VALUE and of_target[0].label != "opposite" else of_target
    order = {arrow.name: position for position, arrow in enumerate(within)}
    return sorted(found, key=lambda one: order[one.feature])


def _compared(feature: str, by: GroupedBy, groups: dict[str, tuple], slope_of: SignOf) -> list[GroupSlope]:
    """Return the slope of a cause in all groups together, with what tells them apart, and in each.

    Parameters
    ----------
    feature, by : str
    groups : dict of str to (int, ndarray, ndarray)
        By group the number of its rows, and slopes and their standard errors, shape (2,), in the order of `SLOPES_OF`.
    slope_of : str
    """
    n_rows, slopes, errors = (np.asarray(one, dtype=float) for one in zip(*groups.values(), strict=True))
    slopes = slopes[:, SLOPES_OF.index(slope_of)]
    errors = errors[:, SLOPES_OF.index(slope_of)]
    pooled, error, q, share, p_value = cochran(slopes, errors)
    slope_in = partial(GroupSlope, feature=feature, by=by, slope_of=slope_of)
    together = slope_in(
        group=None,
        n_rows=int(n_rows.sum()),
        slope=_estimate(pooled, error),
        cochran_q=q,
        i_squared=share,
        p_value=p_value,
        label=label_of(share, p_value, slopes, errors),
    )
    return [
        together,
        *(
            slope_in(group=group, n_rows=int(n), slope=_estimate(float(slope), float(own)))
            for group, n, slope, own in zip(groups, n_rows, slopes, errors, strict=True)
        ),
    ]


def _estimate(slope: float, error: float) -> Estimate:
    return Estimate(value=slope, low=slope - NORMAL_QUANTILE * error, high=slope + NORMAL_QUANTILE * error)


def _slopes(evidence: Evidence, columns: np.ndarray, mine: np.ndarray) -> tuple[int, np.ndarray, np.ndarray] | None:
    """Return the number of rows, and slopes and standard errors of all causes, in one group; None if its rows are too
    few.

    Parameters
    ----------
    evidence : Evidence
    columns : ndarray of float, shape (n_rows, n_causes)
    mine : ndarray of bool, shape (n_rows,)
        The group's rows.

    Returns
    -------
    n_rows : int
    slopes, errors : ndarray, shape (2, n_causes)
        Of the target and of the signed deviation; the error of a cause that does not vary is 0.
    """
    if mine.sum() < FEWEST_ROWS:
        return None
    part: Observations = evidence.rows.take(mine)
    centring = GroupCentring(part.configuration, part.weight)
    deviation = evidence.deviation[mine]
    size = centring.weighted(np.abs(deviation) if part.absolute else deviation)
    responses = np.column_stack([size, centring.weighted(deviation)])
    x = centring.weighted(columns[mine])
    spread = np.sqrt((responses**2).mean(axis=0))
    lengths = (x**2).sum(axis=0)
    alive = np.flatnonzero(lengths > 1e-3 * mine.sum() * 0.01)
    df = kish_size(part.weight) - centring.n_groups - alive.size - 1
    if not spread.all() or alive.size == 0 or df < FEWEST_ROWS / 2:
        return None
    used = x[:, alive]
    fitted = np.linalg.lstsq(used, responses, rcond=1e-8)[0]
    residual = responses - used @ fitted
    inverse = np.diag(np.linalg.pinv(used.T @ used))
    lags = lag_count(len(part))
    of_used = autocorrelations(used, lags)
    of_residual = autocorrelations(residual, lags)
    slopes, errors = np.zeros((2, 2, columns.shape[1]))
    for row, one in enumerate(residual.T):
        variance = (
            float(one @ one)
            / df
            * inverse
            * (len(part) / kish_size(part.weight))
            * bartlett_factor(of_used, of_residual[row])
        )
        slopes[row, alive] = fitted[:, row] / spread[row]
        errors[row, alive] = np.sqrt(variance) / spread[row]
    return int(mine.sum()), slopes, errors


def _column(arrow: Arrow, evidence: Evidence) -> np.ndarray:
    """Return the one column of a cause, shape (n_rows,): itself, or whether a launch has one of the levels that
    its sign is about.
    """
    candidate = evidence.candidate_of(arrow.name)
    values = candidate.values
    if values.ndim == 1:
        return values.astype(float)
    indicators = np.column_stack([1.0 - values.sum(axis=1), values])
    return indicators[:, [candidate.levels.index(level) for level in arrow.levels or candidate.levels[1:2]]].sum(axis=1)
