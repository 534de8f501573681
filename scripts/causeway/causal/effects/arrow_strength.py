"""Cross-check of the contributions with another implementation: dowhy's arrow strengths on the same graph.

dowhy fits y itself with additive noise, models neither the absolute value nor the scale of the noise, and so finds less
than the contributions for causes that act on the scale. What must agree is the order of the strong causes.
"""

import logging
import warnings

import numpy as np

from causeway.core.logs import LOG

MAX_ROWS = 2000
"""Rows that are drawn, by their weights: dowhy takes minutes for more."""
SAMPLES = 500
RUNS = 60
"""Conditional samples of the noise in one run of dowhy's estimate, and most runs; its defaults are 2,000 and 5,000."""
AGREEMENT_FROM = 2
"""Fewer causes have no order to compare."""


def arrow_strengths(causes: list[np.ndarray], y: np.ndarray, weights: np.ndarray, seed: int) -> np.ndarray:
    """Return the strength of each cause's arrow into y, in percent of all arrows and the noise.

    Parameters
    ----------
    causes : list of ndarray of float, shape (n_rows,) or (n_rows, n_levels - 1)
        Numbers, or indicators of a category, which enter as the number of the level.
    y : ndarray of float, shape (n_rows,)
    weights : ndarray of float, shape (n_rows,), positive
    seed : int

    Returns
    -------
    ndarray of float, shape (n_causes,), percent

    References
    ----------
    D. Janzing et al., Quantifying causal influences, Ann. Stat. 41 (2013) 2324; dowhy.gcm.arrow_strength with the
    variance as measure.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's own, about its dependencies
        import networkx as nx
        import pandas as pd
        from dowhy import gcm
        from dowhy.gcm.ml import create_hist_gradient_boost_regressor

        logging.getLogger("dowhy").setLevel(logging.WARNING)
        gcm.util.general.set_random_seed(seed % (1 << 31))
        gcm.config.disable_progress_bars()
        chance = weights / weights.sum()  # dowhy knows no weights, so rows are drawn by them
        rows = np.sort(np.random.default_rng(seed).choice(y.size, size=min(y.size, MAX_ROWS), p=chance))
        names = [f"x{number}" for number in range(len(causes))]
        table = {name: _single(values)[rows] for name, values in zip(names, causes, strict=True)}
        data = pd.DataFrame({**table, "y": y[rows].astype(float)})
        model = gcm.StructuralCausalModel(nx.DiGraph([(name, "y") for name in names]))
        for name in names:
            model.set_causal_mechanism(name, gcm.EmpiricalDistribution())
        model.set_causal_mechanism("y", gcm.AdditiveNoiseModel(create_hist_gradient_boost_regressor()))
        gcm.fit(model, data)
        strengths = gcm.arrow_strength(model, "y", num_samples_conditional=SAMPLES, max_num_runs=RUNS, n_jobs=1)
        noise = float(
            np.var(data["y"] - model.causal_mechanism("y").prediction_model.predict(data[names].to_numpy()).ravel())
        )
    found = np.asarray([max(float(strengths[name, "y"]), 0.0) for name in names])
    return 100.0 * found / (found.sum() + noise) if found.sum() + noise > 0 else found


def _single(values: np.ndarray) -> np.ndarray:
    return values.astype(float) if values.ndim == 1 else (values * np.arange(1, values.shape[1] + 1)).sum(axis=1)


def order_agreement(contributions: np.ndarray, strengths: np.ndarray) -> float | None:
    """Return Spearman's rank correlation of contributions and arrow strengths; None for fewer than two causes.

    Parameters
    ----------
    contributions, strengths : ndarray of float, shape (n_causes,)
    """
    if contributions.size < AGREEMENT_FROM:
        return None
    from scipy.stats import spearmanr

    agreement = float(spearmanr(contributions, strengths).statistic)
    return agreement if np.isfinite(agreement) else None


def crosscheck_reason(
    contributions: np.ndarray, causes: list[np.ndarray], y: np.ndarray, weights: np.ndarray, seed: int
) -> list[str]:
    """Return the sentence that compares the order of the contributions with that of the arrow strengths; none for
    fewer than two causes.

    Parameters
    ----------
    contributions : ndarray of float, shape (n_causes,), percent
    causes : list of ndarray of float, shape (n_rows,) or (n_rows, n_levels - 1)
    y : ndarray of float, shape (n_rows,)
    weights : ndarray of float, shape (n_rows,), positive
    seed : int
    """
    if contributions.size < AGREEMENT_FROM:
        return []
    strengths = arrow_strengths(causes, y, weights, seed)
    LOG.info(
        "contributions %s, arrow strengths %s", np.round(contributions, 1).tolist(), np.round(strengths, 1).tolist()
    )
    agreement = order_agreement(contributions, strengths)
    if agreement is None:
        return []
    return [f"cross-check: dowhy's arrow strengths order the causes with rank correlation {agreement:.2f} to ours"]
