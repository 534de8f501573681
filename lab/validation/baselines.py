"""The baselines, on the same rows and columns: rank correlation, Lasso, boosted trees.

Rank correlation and trees are given the number of causes, which no analyst knows; Lasso chooses by cross-validation.
"""

import warnings

import numpy as np

from lab.validation.scores import Claim

MAX_LASSO_COLUMNS = 3000
"""Columns that Lasso chooses from, those with the largest rank correlation."""


def baseline_claims(
    names: list[str], columns: np.ndarray, target: np.ndarray, n_causes: int, seed: int
) -> dict[str, tuple[list[Claim], float | None]]:
    """Return what each baseline claims, and its unexplained share in percent if it has one.

    Parameters
    ----------
    names : list of str
    columns : ndarray of float, shape (n_rows, p)
        Prepared columns, centred within kernels: the baselines are spared leaked features, duplicates and deterministic
        columns.
    target : ndarray of float, shape (n_rows,)
        Absolute deviation in standard deviations of the kernel.
    n_causes : int
        How many columns rank correlation and trees name.
    seed : int
    """
    if not names:
        return {name: ([], 100.0) for name in ("spearman", "lasso", "trees")}
    return {
        "spearman": (_spearman(names, columns, target, n_causes), None),
        "lasso": (_lasso(names, columns, target, seed), None),
        "trees": _trees(names, columns, target, n_causes, seed),
    }


def _sign(value: float) -> str:
    return "+" if value > 0 else "-"


def _ranks(values: np.ndarray) -> np.ndarray:
    from scipy.stats import rankdata

    ranks = rankdata(values, axis=0)
    ranks -= ranks.mean(axis=0)
    return ranks / np.maximum(np.sqrt((ranks**2).sum(axis=0)), 1e-12)


def _spearman(names: list[str], columns: np.ndarray, target: np.ndarray, n_causes: int) -> list[Claim]:
    """Return the columns with the largest rank correlation with the target; their squares as shares."""
    rho = _ranks(columns).T @ _ranks(target[:, None])[:, 0]
    best = np.argsort(-np.abs(rho), kind="stable")[:n_causes]
    return [Claim(names[i], (names[i],), _sign(rho[i]), 100 * float(rho[i] ** 2)) for i in best]


def _lasso(names: list[str], columns: np.ndarray, target: np.ndarray, seed: int) -> list[Claim]:
    """Return what Lasso keeps at the penalty with the least cross-validated error."""
    from sklearn.linear_model import LassoCV

    best = np.argsort(-np.abs(_ranks(columns).T @ _ranks(target[:, None])[:, 0]), kind="stable")[:MAX_LASSO_COLUMNS]
    spread = columns[:, best].std(axis=0)
    x = columns[:, best] / np.where(spread > 0, spread, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LassoCV(cv=5, alphas=40, max_iter=2000, random_state=seed).fit(x, target)
    return [
        Claim(names[i], (names[i],), _sign(c), 0.0) for i, c in zip(best, model.coef_, strict=True) if abs(c) > 1e-9
    ]


def _trees(
    names: list[str], columns: np.ndarray, target: np.ndarray, n_causes: int, seed: int
) -> tuple[list[Claim], float]:
    """Return the columns of largest permutation importance in boosted trees; shares by importance, of what they
    explain out of sample.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.inspection import permutation_importance

    rows = np.arange(target.size)
    importance = np.zeros(len(names))
    explained = []
    for fold in range(3):
        train = rows[rows % 3 != fold]
        test = rows[rows % 3 == fold]
        model = HistGradientBoostingRegressor(
            max_iter=150, learning_rate=0.06, max_leaf_nodes=15, random_state=seed
        ).fit(columns[train], target[train])
        explained.append(max(model.score(columns[test], target[test]), 0.0))
        importance += np.maximum(
            permutation_importance(model, columns[test], target[test], n_repeats=3, random_state=seed).importances_mean,
            0.0,
        )
    best = np.argsort(-importance, kind="stable")[:n_causes]
    share = 100 * float(np.mean(explained))
    total = max(float(importance[best].sum()), 1e-12)
    slopes = [float(np.cov(columns[:, i], target)[0, 1]) for i in best]
    return [
        Claim(names[i], (names[i],), _sign(s), share * float(importance[i]) / total)
        for i, s in zip(best, slopes, strict=True)
    ], 100 - share
