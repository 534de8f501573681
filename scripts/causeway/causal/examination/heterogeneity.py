"""Heterogeneity: whether a cause acts alike in every kernel, and on every rank."""

import numpy as np
from scipy.special import gammaincc

from causeway.causal.basis import GroupCentring
from causeway.causal.discovery import Arrow, Evidence
from causeway.causal.effective_size import autocorrelations, bartlett_factor, kish_size, lag_count
from causeway.causal.rows import Rows
from causeway.causal.signs import TARGET, VALUE

MIN_ROWS = 50
MOST_GROUPS = 200
LABELS = ((75.0, "high"), (50.0, "moderate"), (25.0, "low"))
"""I² from which heterogeneity is called so: J. Higgins et al., BMJ 327 (2003) 557; below, the groups agree."""
SIGNIFICANT = 0.05
ABOUT = (TARGET, VALUE)


def cochran(slopes: np.ndarray, errors: np.ndarray) -> tuple[float, float, float, float, float]:
    """Return the pooled slope, its standard error, Cochran's Q, I² in percent, and the p-value of Q.

    References
    ----------
    W. Cochran, The combination of estimates from different experiments, Biometrics 10 (1954) 101; J. Higgins, S. Thompson, Quantifying
    heterogeneity in a meta-analysis, Stat. Med. 21 (2002) 1539: `I^2 = max(0, (Q - df) / Q)`.
    """
    weights = 1.0 / errors**2
    pooled = float(weights @ slopes / weights.sum())
    q = float(weights @ (slopes - pooled) ** 2)
    df = slopes.size - 1
    share = 100.0 * max(0.0, (q - df) / q) if q > 0 else 0.0
    return pooled, float(weights.sum() ** -0.5), q, share, float(gammaincc(df / 2, q / 2)) if df else 1.0


def label_of(share: float, p_value: float, slopes: np.ndarray, errors: np.ndarray) -> str:
    """Return heterogeneity in words: `alike`, `low`, `moderate`, `high`, or `opposite` if groups contradict each other significantly.

    Opposite: both a positive and a negative slope differ from zero at 5 % after Bonferroni over the groups.
    """
    from scipy.special import ndtri

    limit = -float(ndtri(SIGNIFICANT / (2 * slopes.size)))
    ratio = slopes / errors
    if ratio.max() > limit and ratio.min() < -limit:
        return "opposite"
    return next((word for least, word in LABELS if share >= least and p_value <= SIGNIFICANT), "alike")


def grouped_by(evidence: Evidence) -> dict[str, np.ndarray]:
    """Return the name of each row's group: kernel and rank, where there are several."""
    found = {}
    if np.unique(evidence.rows.kernel).size > 1:
        ids = evidence.rows.kernels or tuple(str(code) for code in range(int(evidence.rows.kernel.max()) + 1))
        found["kernel"] = np.asarray(ids, dtype=object)[evidence.rows.kernel]
    rank = next((column for column in evidence.columns if column.name == "rank" and column.values.dtype == object), None)
    if rank is not None:
        found["rank"] = rank.values
    return found


def heterogeneity(evidence: Evidence, arrows: list[Arrow]) -> list[dict]:
    """Return the slopes of the target on each cause in each group, and what tells the groups apart.

    Parameters
    ----------
    evidence : Evidence
    arrows : list of Arrow
        Those that vary within configurations are compared.

    Returns
    -------
    list of dict
        Rows of `heterogeneity.parquet`: by arrow, then by kernel and rank; first all groups together (`group` null), then each.

    Notes
    -----
    In each group the target (the deviation's size, in standard deviations; the deviation itself where the target is measured) is regressed
    on all causes, with the means of configurations taken out and the rows' weights; the errors count what the rows are worth. Where a
    cause's sign is about the measured value, its slopes are those of the signed deviation, which moves as the value does, unless the
    slopes of the target are opposite: that is why they gave no sign.
    """
    within = [arrow for arrow in arrows if arrow.stage != "configuration"]
    rows = []
    for by, groups in grouped_by(evidence).items():
        levels, codes = np.unique(groups, return_inverse=True)
        if not within or levels.size > MOST_GROUPS:
            continue
        found = {int(code): part for code in range(levels.size) if (part := _slopes(evidence, within, codes == code)) is not None}
        for place, arrow in enumerate(within):
            own = {code: (n, slopes[:, place], errors[:, place]) for code, (n, slopes, errors) in found.items() if errors[0, place] > 0}
            if len(own) < 2:
                continue
            words = {code: str(levels[code]) for code in own}
            of_target, of_value = (_rows(arrow.candidate.name, by, own, words, about) for about in (TARGET, VALUE))
            rows += of_value if arrow.sign_of == VALUE and of_target[0]["label"] != "opposite" else of_target
    order = {arrow.candidate.name: place for place, arrow in enumerate(within)}
    return sorted(rows, key=lambda row: order[row["feature"]])


def _rows(feature: str, by: str, own: dict[int, tuple], words: dict[int, str], about: str) -> list[dict]:
    n, slopes, errors = (np.asarray(one, dtype=float) for one in zip(*own.values(), strict=True))
    slopes, errors = slopes[:, ABOUT.index(about)], errors[:, ABOUT.index(about)]
    pooled, error, q, share, p_value = cochran(slopes, errors)
    base = {"feature": feature, "by": by, "cochran_q": None, "i_squared": None, "p_value": None, "label": None, "slope_of": about}
    rows = [
        base
        | {"group": None, "rows": int(n.sum()), "slope": pooled, "slope_low": pooled - 1.96 * error, "slope_high": pooled + 1.96 * error}
        | {"cochran_q": q, "i_squared": share, "p_value": p_value, "label": label_of(share, p_value, slopes, errors)}
    ]
    for code, count, slope, own_error in zip(own, n, slopes, errors, strict=True):
        ends = {"slope": float(slope), "slope_low": float(slope - 1.96 * own_error), "slope_high": float(slope + 1.96 * own_error)}
        rows.append(base | {"group": words[code], "rows": int(count)} | ends)
    return rows


def _slopes(evidence: Evidence, arrows: list[Arrow], mine: np.ndarray) -> tuple[int, np.ndarray, np.ndarray] | None:
    """Return the number of rows, and slopes and standard errors of all causes, among the rows `mine`; None if they are too few.

    Slopes and errors have shape (2, n_causes), of the target and of the signed deviation; the error of a cause that does not vary is 0.
    """
    if mine.sum() < MIN_ROWS:
        return None
    part: Rows = evidence.rows.take(mine)
    centring = GroupCentring(part.configuration, part.weight)
    deviation = evidence.deviation[mine]
    size = centring.weighted(np.abs(deviation) if part.folded else deviation)
    responses = np.column_stack([size, centring.weighted(deviation)])
    x = centring.weighted(np.column_stack([_one(arrow)[mine] for arrow in arrows]))
    spread = np.sqrt((responses**2).mean(axis=0))
    lengths = (x**2).sum(axis=0)
    alive = np.flatnonzero(lengths > 1e-3 * mine.sum() * 0.01)
    df = kish_size(part.weight) - centring.n_groups - alive.size - 1
    if not spread.all() or alive.size == 0 or df < MIN_ROWS / 2:
        return None
    used = x[:, alive]
    fitted = np.linalg.lstsq(used, responses, rcond=1e-8)[0]
    residual = responses - used @ fitted
    inverse = np.diag(np.linalg.pinv(used.T @ used))
    lags = lag_count(len(part))
    of_used, of_residual = autocorrelations(used, lags), autocorrelations(residual, lags)
    slopes, errors = np.zeros((2, 2, len(arrows)))
    for about, one in enumerate(residual.T):
        variance = float(one @ one) / df * inverse * (len(part) / kish_size(part.weight)) * bartlett_factor(of_used, of_residual[about])
        slopes[about, alive] = fitted[:, about] / spread[about]
        errors[about, alive] = np.sqrt(variance) / spread[about]
    return int(mine.sum()), slopes, errors


def _one(arrow: Arrow) -> np.ndarray:
    """Return the one column of a cause: itself, or the indicator of the level that its sign is about."""
    values = arrow.candidate.values
    if values.ndim == 1:
        return values.astype(float)
    level = arrow.candidate.levels.index(arrow.level) if arrow.level else 1
    return 1.0 - values.sum(axis=1) if level == 0 else values[:, level - 1]
