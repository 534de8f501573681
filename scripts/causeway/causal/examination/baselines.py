"""What others would name as causes: rank correlation, Lasso, boosted trees with SHAP. For the sceptic, beside ours in
the same output.

They get the same prepared columns, without the leaks and copies that would ruin them, and the same target; they are
told neither of autocorrelation nor of confounding, as they are commonly used.
"""

import warnings
from importlib.util import find_spec

import numpy as np
from scipy.special import stdtr

from causeway.causal.data.outcome import BaselineCause
from causeway.causal.effects.evidence import Evidence
from causeway.causal.preparation.prepare import CONTROL_NAMES

MOST_NAMED = 15
SCREENED = 300
"""So many columns, the most correlated with the target, enter the Lasso and the trees."""
MAX_ROWS = 3000
EXPLAINED_ROWS = 500
"""Rows whose SHAP values are averaged."""
FDR = 0.05
ROUNDS = 50
TREES = {
    "tree_method": "hist",
    "grow_policy": "lossguide",
    "max_leaves": 16,
    "max_depth": 0,
    "min_child_weight": 20,
    "learning_rate": 0.2,
    "nthread": 1,
}


def table_of(evidence: Evidence, rows: np.ndarray) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Return the columns of some rows, the feature of each, and the target.

    Parameters
    ----------
    evidence : Evidence
    rows : ndarray of int, shape (n,)

    Returns
    -------
    columns : ndarray of float, shape (n, p)
        One column per number, and per level of a category.
    features : list of str
    target : ndarray of float, shape (n,)
    """
    columns = []
    owners = []
    for candidate in evidence.prepared.within:
        if candidate.name in CONTROL_NAMES:
            continue
        values = candidate.values[rows]
        columns.append(values[:, None] if values.ndim == 1 else values)
        owners += [candidate.name] * columns[-1].shape[1]
    deviation = evidence.deviation[rows]
    y = np.abs(deviation) if evidence.rows.absolute else deviation
    return np.hstack(columns).astype(np.float32) if columns else np.zeros((rows.size, 0), np.float32), owners, y


def baselines(evidence: Evidence, seed: int) -> list[BaselineCause]:
    """Return the features that each method names, strongest first.

    Returns
    -------
    list of BaselineCause
        At most 15 per method; none of boosted trees where the package xgboost, an extra, is not installed. `score` is
        |Spearman's rho| (named are those that pass Benjamini and Hochberg's procedure at 5 %), the absolute coefficient
        in standard deviations (those that are not zero), the mean absolute SHAP value; `share_percent` that of all
        scores of the method.
    """
    from scipy.stats import false_discovery_control  # a second of CPU time, where it is needed

    rng = np.random.default_rng(seed)
    n = len(evidence.rows)
    chance = evidence.rows.weight / evidence.rows.weight.sum()
    even = np.all(evidence.rows.weight == evidence.rows.weight[0])
    rows = np.sort(rng.choice(n, size=min(n, MAX_ROWS), replace=False, p=None if even else chance))
    x, owners, y = table_of(evidence, rows)
    if x.shape[1] == 0 or np.ptp(y) == 0:
        return []
    keep = np.ptp(x, axis=0) > 0
    x = x[:, keep]
    owners = [owner for owner, one in zip(owners, keep, strict=True) if one]
    rho, p_values = _spearman(x, y)
    screened = np.sort(np.argsort(-np.abs(rho), kind="stable")[:SCREENED])
    names = [owners[column] for column in screened]
    some = x[:, screened].astype(float)
    some = (some - some.mean(axis=0)) / some.std(axis=0)
    spread = (y - y.mean()) / y.std()
    significant = false_discovery_control(p_values) <= FDR
    coefficients = _lasso(some, spread)
    found = [
        *_named("rank_correlation", owners, np.where(significant, rho, 0.0), p_values, np.abs(rho).sum()),
        *_named("lasso", names, coefficients, None, np.abs(coefficients).sum()),
    ]
    if find_spec("xgboost") is None:
        return found
    strength = _tree_shap(some, spread, int(rng.integers(1 << 31)))
    return [*found, *_named("boosted_trees", names, strength, None, np.abs(strength).sum())]


def _spearman(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Spearman's rank correlations of each column with y and their p-values, shape (p,), as if rows were
    independent.
    """
    from scipy.stats import rankdata  # a second of CPU time, where it is needed

    ranks = rankdata(x, axis=0)
    ranks -= ranks.mean(axis=0)
    own = rankdata(y) - (y.size + 1) / 2
    rho = (own @ ranks) / np.sqrt((own @ own) * (ranks**2).sum(axis=0))
    df = max(y.size - 2, 1)
    statistic = np.abs(rho) * np.sqrt(df / np.maximum(1 - rho**2, 1e-12))
    return rho, 2 * stdtr(df, -statistic)


def _lasso(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the coefficients of the Lasso, its penalty chosen by three-fold cross-validation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence at the loose end of the path
        from sklearn.linear_model import LassoCV

        return LassoCV(cv=3, alphas=30, max_iter=2000, tol=1e-3).fit(x, y).coef_


def _tree_shap(x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """Return the mean absolute SHAP value of each column in boosted trees, with the sign of its correlation with the
    column.

    The values are exact (path-dependent TreeSHAP, Lundberg et al. 2020), and the trees' own library gives them.
    """
    import xgboost

    trees = xgboost.train(TREES | {"seed": seed}, xgboost.DMatrix(x, y, nthread=1), ROUNDS)
    part = x[np.sort(np.random.default_rng(seed).permutation(len(x))[:EXPLAINED_ROWS])]
    shares = trees.predict(xgboost.DMatrix(part, nthread=1), pred_contribs=True)
    values = shares[:, :-1].astype(float)  # the last is the mean
    strength = np.abs(values).mean(axis=0)
    together = ((values - values.mean(axis=0)) * (part - part.mean(axis=0))).sum(axis=0)
    return strength * np.where(together < 0, -1.0, 1.0)


def _named(
    method: str, owners: list[str], scores: np.ndarray, p_values: np.ndarray | None, total: float
) -> list[BaselineCause]:
    """Return the features that one method names: per feature its strongest column; `total` is the sum of all absolute
    scores.
    """
    strongest: dict[str, int] = {}
    for column in np.argsort(-np.abs(scores), kind="stable"):
        if scores[column] != 0:
            strongest.setdefault(owners[column], int(column))
    return [
        BaselineCause(
            method=method,
            feature=feature,
            position=position,
            score=float(abs(scores[column])),
            share_percent=100 * float(abs(scores[column])) / float(total),
            p_value=None if p_values is None else float(p_values[column]),
            sign="+" if scores[column] > 0 else "-",
        )
        for position, (feature, column) in enumerate(list(strongest.items())[:MOST_NAMED], start=1)
    ]
