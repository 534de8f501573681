"""What-if: how much smaller the target would be with one cause set to a value that was observed.

The fitted model `deviation = mu(x) + sigma(x) N` is a structural model: N is read off each launch, one cause is set, and the deviation
computed anew (dowhy.gcm's counterfactuals on that very mechanism). The other causes and N stay as they were, so this is the direct effect.
After an intervention the configuration has a new mean, and launches deviate from that one.
"""

import logging
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from causeway.causal.discovery import Arrow, Evidence
from causeway.causal.location_scale import Causes, LocationScale, cross_fitted
from causeway.causal.rows import Rows
from causeway.causal.settings import NONE, Setting, Support, number_text, settings_of
from causeway.causal.shares import MAX_ROWS, WINSOR, resampled_rows
from causeway.causal.stability import blocks_of

Likes = Mapping[int, np.ndarray]
"""For each cause that is set: the row whose value each row takes."""
DRAWS = 40
FOLDS = 3
MAX_OUTSIDE = 0.1
"""Share of the launches that an intervention may bring where none was observed."""
MOMENTS = frozenset({"since_start_ns", "iteration_position"})
NO_LEVER = "refused: a moment cannot be set; it stands for whatever changes with time"


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
        self.parts = cross_fitted(self.causes, blocks % FOLDS, deviation, weights, seed)
        self.factual = self.predict({})

    def predict(self, likes: Likes) -> tuple[np.ndarray, np.ndarray]:
        """Return mu and sigma of all rows, with each cause of `likes` as in the rows given there."""
        mean, sigma = np.empty(self.deviation.size), np.empty(self.deviation.size)
        for rows, model in self.parts:
            mean[rows], sigma[rows] = model.predict_set(rows, {cause: like[rows] for cause, like in likes.items()})
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


@dataclass
class Model:
    """What the what-ifs of a scope are computed from.

    Attributes
    ----------
    evidence : Evidence
    pick : ndarray of int
        The rows of the evidence that are played.
    within : list of Arrow
        Causes that vary within configurations; `fitted`, `refits` and `support` are of them and None without any.
    configured : list of Arrow
        Causes at the configuration level.
    outlook : Outlook
    """

    evidence: Evidence
    pick: np.ndarray
    within: list[Arrow]
    configured: list[Arrow]
    outlook: Outlook
    fitted: "Mechanisms | None" = None
    refits: "Refits | None" = None
    support: Support | None = None


def model_of(evidence: Evidence, arrows: list[Arrow], seed: int) -> Model:
    """Fit the structural model of a scope to its causes."""
    rng = np.random.default_rng(seed)
    blocks = blocks_of(evidence.stages)
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
    within = [arrow for arrow in arrows if arrow.stage != "configuration"]
    model = Model(evidence, pick, within, [arrow for arrow in arrows if arrow.stage == "configuration"], outlook)
    if within:
        blocks = np.unique(blocks[pick], return_inverse=True)[1]
        values = [arrow.candidate.values[pick] for arrow in within]
        model.fitted = Mechanisms(values, deviation, outlook.weight, blocks, int(rng.integers(1 << 31)))
        model.support = Support(values)
        model.refits = Refits(model.fitted.causes, outlook, [resampled_rows(blocks, rng) for _ in range(DRAWS)])
    return model


def what_ifs(model: Model, arrows: list[Arrow]) -> list[dict]:
    """Return for each cause what setting it would change.

    Each cause is set to its best observed typical level (numbers: 10th percentile, median or 90th percentile within the configuration;
    categories: each level but the one that raises the target; launch parameters: each value with which the kernel was launched), and,
    where it counts what else is in flight, to none. What names a moment (`MOMENTS`) is no lever and is refused.

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
    found: dict[str, list[dict]] = {}
    for cause, arrow in enumerate(model.within):
        if arrow.candidate.name in MOMENTS:
            found[arrow.candidate.name] = [_row(arrow, "as it was", "another time", reason=NO_LEVER)]
            continue
        settings = _chosen(settings_of(arrow, model.evidence, model.pick), cause, model)
        found[arrow.candidate.name] = [_what_if(arrow, cause, setting, model) for setting in settings]
    for arrow in model.configured:
        found[arrow.candidate.name] = _of_configurations(arrow, model.outlook, model.evidence.rows)
    return [row for arrow in arrows for row in found[arrow.candidate.name]]


def _units(rows: Rows) -> np.ndarray:
    """Return for each row the mean size of its kernel's target: several kernels count alike, however long they take."""
    sums, totals = np.bincount(rows.kernel, rows.weight * np.abs(rows.target)), np.bincount(rows.kernel, rows.weight)
    means = sums / totals
    return np.where(means > 0, means, 1.0)[rows.kernel]


def _row(arrow: Arrow, before: str, after: str, change=None, low=None, high=None, verdict="refused", reason=None) -> dict:
    values = {"change_percent": change, "change_low": low, "change_high": high}
    return {"feature": arrow.candidate.name, "from": before, "to": after, **values, "verdict": verdict, "reason": reason, "asked": None}


class Refits:
    """The linear model fitted to all rows and to resamples of them, with what it predicts for the rows as they are."""

    def __init__(self, causes: Causes, outlook: Outlook, draws: list[np.ndarray]) -> None:
        self.everything = np.arange(outlook.deviation.size)
        self.draws = [self.everything, *draws]
        whole = LocationScale(causes, self.everything, outlook.deviation, outlook.weight)
        self.models = [whole, *(LocationScale(causes, rows, outlook.deviation, outlook.weight, whole) for rows in draws)]
        self.factual = [model.predict(self.everything) for model in self.models]

    def changes(self, outlook: Outlook, likes: Likes, factor: np.ndarray | float = 1.0) -> tuple[float, np.ndarray]:
        """Return the change in percent by the model of all rows, and how far that of each resample among its own rows is from it."""
        found = []
        for rows, model, (mean, sigma) in zip(self.draws, self.models, self.factual, strict=True):
            other_mean, other_sigma = model.predict_set(self.everything, likes)
            after = other_mean + other_sigma * (outlook.deviation - mean) / sigma
            found.append(100 * (outlook.size(after, rows, factor) / max(outlook.size(outlook.deviation, rows), 1e-300) - 1))
        return float(found[0]), np.asarray(found[1:]) - found[0]


def filled(like: np.ndarray) -> np.ndarray:
    """Return the rows to look like, each row its own where none is known."""
    return np.where(like < 0, np.arange(like.size), like)


def _chosen(settings: list[Setting], cause: int, model: Model) -> list[Setting]:
    """Return the setting with the smallest target, and what one would ask for by name: none in flight."""
    outlook = model.outlook
    possible = [setting for setting in settings if model.support.outside({cause: setting.like}, outlook.weight) <= MAX_OUTSIDE]
    best = min(
        possible,
        key=lambda setting: outlook.size(played(model.fitted, {cause: filled(setting.like)})),
        default=settings[0] if settings else None,
    )
    return [setting for setting in settings if setting is best or setting.after == NONE]


def _what_if(arrow: Arrow, cause: int, setting: Setting, model: Model) -> dict:
    """Return the row of one setting."""
    outlook = model.outlook
    outside, now = model.support.outside({cause: setting.like}, outlook.weight), outlook.size(outlook.deviation)
    if outside > MAX_OUTSIDE:
        return _row(arrow, setting.before, setting.after, reason=unobserved(outside))
    if now == 0:
        return _row(arrow, setting.before, setting.after, reason="refused: the target is zero as it is")
    like = filled(setting.like)
    change = 100 * (outlook.size(counterfactual(model.fitted, cause, like)) / now - 1)
    linear, around = model.refits.changes(outlook, {cause: like})
    low, high = np.quantile(around, [0.025, 0.975])
    low, high = max(float(min(change, linear) + low), -100.0), float(max(change, linear) + high)
    return _row(arrow, setting.before, setting.after, change, low, high, *judged([arrow], low, high))


def unobserved(outside: float) -> str:
    """Return the reason of a refusal: what share of the launches would be unlike any."""
    return f"refused: outside what was observed, alone or together with the other causes, for {100 * outside:.0f} % of the launches"


def played(models: Mechanisms, likes: Likes) -> np.ndarray:
    """Return the deviations with each cause of `likes` as in the rows given there, N held: what `counterfactual` computes with dowhy."""
    mean, sigma = models.factual
    other_mean, other_sigma = models.predict(likes)
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
                return models.predict({cause: parents.ravel().astype(int)})

        model = gcm.InvertibleStructuralCausalModel(nx.DiGraph([("cause", "deviation")]))
        model.set_causal_mechanism("cause", gcm.EmpiricalDistribution())
        model.set_causal_mechanism("deviation", Mechanism())
        own = np.arange(models.deviation.size)
        data = pd.DataFrame({"cause": own.astype(float), "deviation": models.deviation})
        gcm.fit(model, data)
        set_to = {"cause": lambda row: float(like[int(row)])}
        return gcm.counterfactual_samples(model, set_to, observed_data=data)["deviation"].to_numpy()


def judged(arrows: list[Arrow], low: float, high: float) -> tuple[str, str | None]:
    """Return the verdict of a what-if that rests on some causes, and its reason."""
    weak = next((arrow for arrow in arrows if arrow.verdict != "supported"), None)
    if weak is not None:
        return weak.verdict, "the cause itself is not supported"
    if low <= 0 <= high:
        return "inconclusive", "the interval holds no change"
    return "supported", None


def of_configurations(arrow: Arrow, rows: Rows) -> tuple[np.ndarray, np.ndarray, float]:
    """Return a launch parameter's value in each configuration, the kernel of each, and the standard error of the slope."""
    effect = arrow.configured
    natural = np.asarray(effect.candidate.values, dtype=float)
    if effect.candidate.unit == "bytes":
        natural = np.expm1(natural)
    kernel_of = np.zeros(natural.size, dtype=int)
    kernel_of[rows.configuration] = rows.kernel
    n, r2 = effect.n_configurations, arrow.partial_r2
    return natural, kernel_of, abs(effect.slope) * np.sqrt(max(1 - r2, 0.0) / max(r2, 1e-9) / max(n - 2, 1))


def slopes_of(arrow: Arrow, error: float) -> tuple[float, float, float]:
    """Return the slope of a launch parameter, and the ends of its interval."""
    return arrow.configured.slope, arrow.configured.slope - 1.96 * error, arrow.configured.slope + 1.96 * error


def usual_value(natural: np.ndarray, outlook: Outlook) -> float:
    """Return the value of the configuration with most launches."""
    return float(natural[np.argmax(np.bincount(outlook.configuration, outlook.weight, natural.size))])


def _of_configurations(arrow: Arrow, outlook: Outlook, rows: Rows) -> list[dict]:
    """Return the what-if of a launch parameter: every launch with the value, of those its kernel was launched with, that varies least."""
    effect, unit = arrow.configured, arrow.configured.candidate.unit
    natural, kernel_of, error = of_configurations(arrow, rows)
    best = np.zeros(natural.size, dtype=int)
    for kernel in np.unique(kernel_of):
        mine = np.flatnonzero(kernel_of == kernel)
        best[mine] = mine[np.argmin(effect.slope * effect.position[mine])]
    moved = effect.position[best] - effect.position
    now = outlook.size(outlook.deviation)
    if now == 0 or not moved.any():
        return [_row(arrow, "as it was", "as it was", reason="every kernel was launched with one value only")]
    ends = [
        100 * (outlook.size(outlook.deviation, None, np.exp(slope * moved)[outlook.configuration]) / now - 1)
        for slope in slopes_of(arrow, error)
    ]
    change, low, high = ends[0], min(ends), max(ends)
    before = number_text(usual_value(natural, outlook), unit)
    after = ", ".join(number_text(value, unit) for value in sorted(set(natural[best].tolist()))[:3])
    return [_row(arrow, before, after, change, low, high, *judged([arrow], low, high))]
