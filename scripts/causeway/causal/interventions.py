"""What-if: how much smaller the target would be with one cause set to a value that was observed.

The fitted model `deviation = mu(x) + sigma(x) N` is a structural model: N is read off each launch, one cause is set, and the deviation
computed anew (dowhy.gcm's counterfactuals on that very mechanism). The other causes and N stay as they were, so this is the direct effect.
After an intervention the configuration has a new mean, and launches deviate from that one.
"""

import logging
import warnings
from dataclasses import dataclass

import numpy as np

from causeway.causal.discovery import Arrow, Evidence
from causeway.causal.location_scale import Causes, LocationScale
from causeway.causal.rows import Rows
from causeway.causal.settings import NONE, Setting, Support, number_text, settings_of
from causeway.causal.shares import MAX_ROWS, WINSOR, resampled_rows
from causeway.causal.stability import block_numbers

DRAWS = 40
FOLDS = 3
MAX_OUTSIDE = 0.1
"""Share of the launches that an intervention may bring where none was observed."""


class Mechanisms:
    """The cross-fitted models of the deviation, and what they leave of each row.

    Parameters
    ----------
    values : list of ndarray
        Causes that vary within configurations.
    deviation, weights : ndarray, shape (n_rows,)
    blocks : ndarray of int, shape (n_rows,)
        Folds are made of whole blocks, dealt in turn.
    seed : int
        Of the boosted trees.
    """

    def __init__(self, values: list[np.ndarray], deviation: np.ndarray, weights: np.ndarray, blocks: np.ndarray, seed: int) -> None:
        self.causes, self.deviation = Causes(values, deviation.size), deviation
        folds = blocks % FOLDS
        self.parts = []
        everything = np.arange(deviation.size)
        for fold in np.unique(folds):
            train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            train = train if train.size >= 20 else everything
            self.parts.append((test, LocationScale(self.causes, train, deviation, weights, seed)))
        self.factual = self.predict()

    def predict(self, cause: int | None = None, like: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return mu and sigma of all rows, with one cause as in the rows `like`."""
        mean, sigma = np.empty(self.deviation.size), np.empty(self.deviation.size)
        for rows, model in self.parts:
            mean[rows], sigma[rows] = model.predict(rows) if cause is None else model.predict(rows, cause, like[rows])
        return mean, sigma


@dataclass
class Outlook:
    """What the size of the target is computed from; all arrays have shape (n_rows,).

    Attributes
    ----------
    deviation, spread, target, weight, configuration, gain
        Standardised deviation, its unit, the target, the rows' weights and configurations, and the logarithm of the part of the scale that
        configurations carry.
    folded : bool
    """

    deviation: np.ndarray
    spread: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    configuration: np.ndarray
    folded: bool

    def size(self, deviation: np.ndarray, rows: np.ndarray | None = None, factor: np.ndarray | float = 1.0) -> float:
        """Return the mean size of the target for other deviations, over some rows: from the configurations' new means, or in all."""
        rows = np.arange(self.deviation.size) if rows is None else rows
        weight, value, spread = self.weight[rows], deviation[rows], self.spread[rows]
        factor = factor if np.ndim(factor) == 0 else factor[rows]
        if not self.folded:
            moved = self.target[rows] + spread * (value - self.deviation[rows])
            return float(weight @ np.maximum(moved, min(0.0, float(self.target.min()))) / weight.sum())
        groups = self.configuration[rows]
        sums, totals = np.bincount(groups, weight * value), np.bincount(groups, weight)
        around = value - (sums / np.where(totals > 0, totals, 1.0))[groups]
        return float(weight @ (spread * factor * np.abs(around)) / weight.sum())


def what_ifs(evidence: Evidence, arrows: list[Arrow], seed: int) -> list[dict]:
    """Return for each cause what setting it would change.

    Each cause is set to its best observed typical level (numbers: 10th percentile, median or 90th percentile within the configuration;
    categories: each level; launch parameters: each value with which the kernel was launched), and, where it counts what else is in flight,
    to none.

    Returns
    -------
    list of dict
        Rows of `whatif.parquet`, by arrow. `change_percent` is that of the mean absolute deviation (of the mean, where the target is
        measured and not a deviation); `verdict` is `refused` for a value outside the observed range.

    Notes
    -----
    The interval holds the estimate of the full model and that of its linear part, each with the spread of the linear part under
    resampling of blocks: which of two models one takes matters as much as which rows, above all for the best of several levels.

    References
    ----------
    J. Pearl, Causality, Cambridge 2009, section 7.1.3 (abduction, action, prediction); P. Bloebaum et al., DoWhy-GCM, JMLR 25 (2024) 147.
    """
    within = [arrow for arrow in arrows if arrow.stage != "configuration"]
    rng = np.random.default_rng(seed)
    blocks = block_numbers(evidence.stages.residual, len(evidence.rows))
    pick = np.arange(len(evidence.rows))
    if pick.size > MAX_ROWS:
        pick = np.sort(rng.permutation(pick.size)[:MAX_ROWS])
    deviation = evidence.deviation[pick]
    rows = evidence.rows
    bound = WINSOR * np.sqrt(np.average(deviation**2, weights=rows.weight[pick]))
    deviation = np.clip(deviation, -bound, bound)
    unit = _units(rows)[pick]
    outlook = Outlook(
        deviation, evidence.spread[pick] / unit, rows.target[pick] / unit, rows.weight[pick], rows.configuration[pick], rows.folded
    )
    blocks = np.unique(blocks[pick], return_inverse=True)[1]
    values = [arrow.candidate.values[pick] for arrow in within]
    found: dict[str, list[dict]] = {}
    if within:
        fitted = Mechanisms(values, deviation, outlook.weight, blocks, int(rng.integers(1 << 31)))
        support = Support(values)
        refits = Refits(fitted.causes, outlook, [resampled_rows(blocks, rng) for _ in range(DRAWS)])
        for cause, arrow in enumerate(within):
            settings = _chosen(settings_of(arrow, evidence, pick), cause, fitted, outlook, support)
            found[arrow.candidate.name] = [_what_if(arrow, cause, setting, fitted, refits, outlook, support) for setting in settings]
    for arrow in arrows:
        if arrow.stage == "configuration":
            found[arrow.candidate.name] = _of_configurations(arrow, outlook, pick, rows, blocks, rng)
    return [row for arrow in arrows for row in found[arrow.candidate.name]]


def _units(rows: Rows) -> np.ndarray:
    """Return for each row the mean size of its kernel's target: several kernels count alike, however long they take."""
    sums, totals = np.bincount(rows.kernel, rows.weight * np.abs(rows.target)), np.bincount(rows.kernel, rows.weight)
    means = sums / totals
    return np.where(means > 0, means, 1.0)[rows.kernel]


def _row(arrow: Arrow, before: str, after: str, change=None, low=None, high=None, verdict="refused", reason=None) -> dict:
    values = {"change_percent": change, "change_low": low, "change_high": high}
    return {"feature": arrow.candidate.name, "from": before, "to": after, **values, "verdict": verdict, "reason": reason}


class Refits:
    """The linear model fitted to all rows and to resamples of them, with what it predicts for the rows as they are."""

    def __init__(self, causes: Causes, outlook: Outlook, draws: list[np.ndarray]) -> None:
        self.everything = np.arange(outlook.deviation.size)
        self.draws = [self.everything, *draws]
        self.models = [LocationScale(causes, rows, outlook.deviation, outlook.weight, None) for rows in self.draws]
        self.factual = [model.predict(self.everything) for model in self.models]

    def changes(self, outlook: Outlook, cause: int, like: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the change in percent by the model of all rows, and how far that of each resample among its own rows is from it."""
        found = []
        for rows, model, (mean, sigma) in zip(self.draws, self.models, self.factual, strict=True):
            other_mean, other_sigma = model.predict(self.everything, cause, like)
            after = other_mean + other_sigma * (outlook.deviation - mean) / sigma
            found.append(100 * (outlook.size(after, rows) / max(outlook.size(outlook.deviation, rows), 1e-300) - 1))
        return float(found[0]), np.asarray(found[1:]) - found[0]


def _like(setting: Setting) -> np.ndarray:
    return np.where(setting.like < 0, np.arange(setting.like.size), setting.like)


def _chosen(settings: list[Setting], cause: int, fitted: Mechanisms, outlook: Outlook, support: Support) -> list[Setting]:
    """Return the setting with the smallest target, and what one would ask for by name: none in flight."""
    possible = [setting for setting in settings if support.outside(cause, setting.like, outlook.weight) <= MAX_OUTSIDE]
    best = min(
        possible, key=lambda setting: outlook.size(_direct(fitted, cause, _like(setting))), default=settings[0] if settings else None
    )
    return [setting for setting in settings if setting is best or setting.after == NONE]


def _what_if(arrow: Arrow, cause: int, setting: Setting, fitted: Mechanisms, refits: Refits, outlook: Outlook, support: Support) -> dict:
    """Return the row of one setting."""
    outside, now = support.outside(cause, setting.like, outlook.weight), outlook.size(outlook.deviation)
    if outside > MAX_OUTSIDE:
        reason = f"refused: outside what was observed, alone or together with the other causes, for {100 * outside:.0f} % of the launches"
        return _row(arrow, setting.before, setting.after, reason=reason)
    if now == 0:
        return _row(arrow, setting.before, setting.after, reason="refused: the target is zero as it is")
    like = _like(setting)
    change = 100 * (outlook.size(counterfactual(fitted, cause, like)) / now - 1)
    linear, around = refits.changes(outlook, cause, like)
    low, high = np.quantile(around, [0.025, 0.975])
    low, high = max(float(min(change, linear) + low), -100.0), float(max(change, linear) + high)
    return _row(arrow, setting.before, setting.after, change, low, high, *_verdict(arrow, low, high))


def _direct(models: Mechanisms, cause: int, like: np.ndarray) -> np.ndarray:
    """Return the deviations with one cause as in the rows `like`, N held: what `counterfactual` computes with dowhy."""
    mean, sigma = models.factual
    other_mean, other_sigma = models.predict(cause, like)
    return other_mean + other_sigma * (models.deviation - mean) / sigma


def counterfactual(models: Mechanisms, cause: int, like: np.ndarray) -> np.ndarray:
    """Return the deviations with one cause as in the rows `like`, by dowhy.gcm.

    A cause's node holds the number of the row whose value it has: its own row as observed, another one when it is set.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's own, about its dependencies
        import networkx as nx
        import pandas as pd
        from dowhy import gcm

        logging.getLogger("dowhy").setLevel(logging.WARNING)
        gcm.config.disable_progress_bars()

        class Mechanism(gcm.causal_mechanisms.InvertibleFunctionalCausalModel):
            """The fitted model as dowhy's mechanism of the deviation."""

            def fit(self, X, Y):  # fitted before
                return None

            def clone(self):
                return Mechanism()

            def draw_noise_samples(self, num_samples):
                raise NotImplementedError("noise is read off the rows")

            def estimate_noise(self, target_samples, parent_samples):
                mean, sigma = self._at(parent_samples)
                return ((target_samples.ravel() - mean) / sigma)[:, None]

            def evaluate(self, parent_samples, noise_samples):
                mean, sigma = self._at(parent_samples)
                return (mean + sigma * noise_samples.ravel())[:, None]

            def _at(self, parents):
                return models.predict(cause, parents.ravel().astype(int))

        model = gcm.InvertibleStructuralCausalModel(nx.DiGraph([("cause", "deviation")]))
        model.set_causal_mechanism("cause", gcm.EmpiricalDistribution())
        model.set_causal_mechanism("deviation", Mechanism())
        own = np.arange(models.deviation.size)
        data = pd.DataFrame({"cause": own.astype(float), "deviation": models.deviation})
        gcm.fit(model, data)
        set_to = {"cause": lambda row: float(like[int(row)])}
        return gcm.counterfactual_samples(model, set_to, observed_data=data)["deviation"].to_numpy()


def _verdict(arrow: Arrow, low: float, high: float) -> tuple[str, str | None]:
    if arrow.verdict != "supported":
        return arrow.verdict, "the cause itself is not supported"
    if low <= 0 <= high:
        return "inconclusive", "the interval holds no change"
    return "supported", None


def _of_configurations(arrow: Arrow, outlook: Outlook, pick: np.ndarray, rows, blocks: np.ndarray, rng) -> list[dict]:
    """Return the what-if of a launch parameter: every launch with the value, of those its kernel was launched with, that varies least."""
    effect = arrow.configured
    natural = np.asarray(effect.candidate.values, dtype=float)
    if effect.candidate.unit == "bytes":
        natural = np.expm1(natural)
    kernel_of = np.zeros(natural.size, dtype=int)
    kernel_of[rows.configuration] = rows.kernel
    best = np.zeros(natural.size, dtype=int)
    for kernel in np.unique(kernel_of):
        mine = np.flatnonzero(kernel_of == kernel)
        best[mine] = mine[np.argmin(effect.slope * effect.position[mine])]
    moved = effect.position[best] - effect.position
    n, r2 = effect.n_configurations, arrow.partial_r2
    error = abs(effect.slope) * np.sqrt(max(1 - r2, 0.0) / max(r2, 1e-9) / max(n - 2, 1))
    now = outlook.size(outlook.deviation)
    if now == 0 or not moved.any():
        return [_row(arrow, "as it was", "as it was", reason="every kernel was launched with one value only")]
    ends = [
        100 * (outlook.size(outlook.deviation, None, np.exp(slope * moved)[outlook.configuration]) / now - 1)
        for slope in (effect.slope, effect.slope - 1.96 * error, effect.slope + 1.96 * error)
    ]
    change, low, high = ends[0], min(ends), max(ends)
    unit = effect.candidate.unit
    usual = np.bincount(outlook.configuration, outlook.weight, natural.size)
    before, after = (
        number_text(float(natural[np.argmax(usual)]), unit),
        ", ".join(number_text(v, unit) for v in sorted(set(natural[best].tolist()))[:3]),
    )
    return [_row(arrow, before, after, change, low, high, *_verdict(arrow, low, high))]
