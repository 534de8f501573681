"""Verdicts: what a search and an arrow are worth, by stated thresholds, after looking in many places. "Inconclusive"
and "no cause found" are results.

Where no single column tells the target at its own launch, pairs of columns are looked at, and columns one launch
earlier. Nothing is named a cause by this; the sentence of a search without a cause says what goes with the target
instead, so that "would have been seen" is said of what was searched.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import chndtrinc, fdtrc, fdtri

from causeway.causal.data.observations import Candidate, Observations
from causeway.causal.data.outcome import Association, Verdict
from causeway.causal.selection.forward import ALPHA, MIN_TEST_SIZE
from causeway.causal.selection.linear_model import linear_model_of
from causeway.causal.selection.stages import Stage, Stages
from causeway.causal.statistics.basis import GroupCentring
from causeway.causal.statistics.multiple_testing import simes
from causeway.core.names.prior_knowledge import CLOCK, LAG
from causeway.core.vocabulary import INCONCLUSIVE, SUPPORTED
from causeway.numeric.effective_size import REFUSED_BELOW, autocorrelations, bartlett_factor

MOST_COLUMNS = 30
"""Columns whose pairs are scanned: those that tell most by themselves; 435 pairs."""
LEAST_SHARE = 0.05
"""Share of the variance that is worth a sentence where no column alone tells anything."""
STRONG = 50.0
"""Percent of the variance of the measured value: a cause that surely explains as much (the lower end of the interval)
needs `MIN_TEST_SIZE` effective rows. Chosen on 600 simulated tables with slow columns, in which all of 37 such causes
with fewer than 100 rows were true; judged on 400 of another generator: 93 of 93
(`tests/bench/causes/slow_columns.py`).
"""
PASSING = frozenset({CLOCK, LAG})
"""Roles of what stands for anything that changes with time: no strength makes up for few rows."""


def association_beyond(
    stages: Stages, candidates: Sequence[Candidate], rows: Observations, controls: Sequence[int] = ()
) -> Association | None:
    """Return what goes most closely with the deviation among products of two columns and columns one launch earlier;
    None if nothing does at `ALPHA` over all that are scanned, or with more than `LEAST_SHARE` of its variance.

    Parameters
    ----------
    stages : Stages
    candidates : sequence of Candidate
        In the order of the search.
    rows : Observations
        In time order.
    controls : sequence of int
        Candidates that are never named.
    """
    stage = stages.mean
    model = linear_model_of(stage.problem, stage.response, list(stage.pruner.given))
    explained, df = model.scan()
    numbers = [
        index
        for index in np.argsort(-explained, kind="stable").tolist()
        if df[index] and not candidates[index].levels and index not in controls
    ]
    firsts = [candidates[index].first for index in numbers]
    best = numbers[:MOST_COLUMNS]
    pairs = [(i, j) for i in range(len(best)) for j in range(i)]
    products = [firsts[i] * firsts[j] for i, j in pairs]
    if not firsts:
        return None
    before = _launch_before(rows)
    earlier = [column[before] for column in firsts]
    columns = np.column_stack([*products, *earlier])
    squares, sizes = _partial_squares(columns, stage.centring, model.residual, stage.problem.n_lags)
    left = np.maximum(stage.problem.n_independent / sizes - model.q.shape[1] - 2, 1.0)
    p_values = fdtrc(1, left, squares / np.maximum(1 - squares, 1e-12) * left)
    at = int(np.lexsort((-squares, p_values))[0])
    if p_values[at] * p_values.size > ALPHA or squares[at] < LEAST_SHARE:
        return None
    is_pair = at < len(pairs)
    names = [candidates[numbers[i]].name for i in (pairs[at] if is_pair else (at - len(pairs),))]
    return Association(features=tuple(sorted(names)), is_earlier=not is_pair, share=float(squares[at]))


def _launch_before(rows: Observations) -> np.ndarray:
    """Return the row of the launch of the kernel before each, on the same rank where ranks are known; of the first its
    own, int, shape (n_rows,).
    """
    rank = np.zeros(len(rows), int) if rows.launch is None else rows.launch["rank"]
    own = pd.Series(np.arange(len(rows)))
    return own.groupby([rows.kernel, rank]).shift().fillna(own).to_numpy(int)


def _partial_squares(
    columns: np.ndarray, centring: GroupCentring, residual: np.ndarray, n_lags: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the squared correlation of each column with the residual, and what autocorrelation divides the rows by,
    shape (n_columns,) each.
    """
    weighted = centring.weighted(columns)
    lengths = np.sqrt((weighted**2).sum(axis=0))
    weighted /= np.where(lengths > 0, lengths, 1.0)
    total = float(residual @ residual)
    squares = (residual @ weighted) ** 2 / (total if total > 0 else 1.0)
    of_residual = autocorrelations(residual[:, None], n_lags)[0]
    return np.clip(squares, 0.0, 1.0), bartlett_factor(autocorrelations(weighted, n_lags), of_residual)


def stage_p_values(stage: Stage) -> np.ndarray:
    """Return a p-value for every candidate of one stage, shape (candidates,), given the stage's parents; for the
    parents that of their own test.
    """
    problem = stage.problem
    model = linear_model_of(problem, stage.response, stage.chosen)
    explained, df = model.scan()
    of_residual = autocorrelations(model.residual[:, None], problem.n_lags)[0]
    factors = np.ones(problem.n_candidates)
    np.maximum.at(factors, problem.basis.owner, bartlett_factor(problem.lags, of_residual))
    sizes = problem.n_independent / factors
    p_values, _ = model.tests(explained, df, sizes)
    p_values[sizes < MIN_TEST_SIZE] = 1.0
    for test in stage.tests:
        p_values[test.candidate] = test.p_value
    return p_values


def scope_p_value(stages: Stages, controls: list[int], between: list[float], n_between: int) -> float:
    """Return Simes' p-value of the hypothesis that a scope has no cause, over both stages and the configuration level.

    Parameters
    ----------
    stages : Stages
    controls : list of int
        Candidates that are no causes whatever they explain.
    between : list of float
        p-values of the causes at the configuration level, where `n_between` features were tested.
    """
    found = [np.delete(stage_p_values(stage), controls) for stage in stages.both if stage.problem.basis.owner.size]
    return simes(np.concatenate([*found, between, np.ones(max(n_between - len(between), 0))]))


def arrow_verdict(n_effective: float, share: float, role: str, between: bool = False) -> Verdict:
    """Return the verdict of an arrow that passed search, stability and multiplicity: it also needs 100 effective rows
    behind its own test, or half as many where it surely explains most of the variance and does not stand for time.

    `share` is the lower end of the share of the variance that it explains, percent.

    A cause at the configuration level rests on configurations, and its test already counts them.
    """
    is_strong = share >= STRONG and role not in PASSING
    return SUPPORTED if between or n_effective >= (MIN_TEST_SIZE if is_strong else REFUSED_BELOW) else INCONCLUSIVE


def detectable_share(n_effective: float, n_tests: int, df: int = 3, power: float = 0.8) -> float:
    """Return the smallest share of the variance that the search would have found with the given power.

    Notes
    -----
    With d tests at level `ALPHA / d` a group of `df` columns needs a noncentral chi-squared that exceeds the critical
    value with probability `power`; its noncentrality over (noncentrality + n) is the partial R^2 (J. Cohen, Statistical
    Power Analysis, 1988, ch. 9).
    """
    left = max(n_effective - df - 1, 1.0)
    critical = df * float(fdtri(df, left, 1 - ALPHA / max(n_tests, 1)))
    noncentrality = float(chndtrinc(critical, df, 1 - power))
    return float(np.clip(noncentrality / (noncentrality + n_effective), 0.0, 1.0))
