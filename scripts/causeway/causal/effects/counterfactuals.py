"""Counterfactual deviations: what launches would have deviated with a cause at another value.

The fitted model `deviation = mu(x) + sigma(x) N` is a structural model: N is inferred for each launch, one cause is
set, and the deviation computed anew (abduction, action, prediction). The other causes and N stay as they were, so this
is the direct effect.

References
----------
J. Pearl, Causality, Cambridge 2009, section 7.1.3.
"""

import logging
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from causeway.causal.effects.location_scale import Causes, LocationScale, cross_fitted

DonorRows = Mapping[int, np.ndarray]
"""For each cause that is set, by its position: the row whose value each row takes, int, shape (n_rows,)."""
FOLDS = 3


class CrossFittedModels:
    """The cross-fitted models of the deviation, and what they predict for the rows as they are.

    Parameters
    ----------
    values : list of ndarray, shape (n_rows,) or (n_rows, n_levels - 1)
        Causes that vary within configurations.
    deviation : ndarray of float, shape (n_rows,)
        Standardised per configuration.
    weights : ndarray of float, shape (n_rows,), positive
    blocks : ndarray of int, shape (n_rows,)
        Folds are made of whole blocks, dealt in turn.
    seed : int
        Of the boosted trees.

    Attributes
    ----------
    factual : pair of ndarray of float, shape (n_rows,)
        mu and sigma of the rows as they are.
    """

    def __init__(
        self, values: list[np.ndarray], deviation: np.ndarray, weights: np.ndarray, blocks: np.ndarray, seed: int
    ) -> None:
        self.causes = Causes(values, deviation.size)
        self.deviation = deviation
        self.parts = cross_fitted(self.causes, blocks % FOLDS, deviation, weights, seed)
        self.factual = self.predict({})

    def predict(self, donors: DonorRows) -> tuple[np.ndarray, np.ndarray]:
        """Return mu and sigma of all rows, with each cause of `donors` as in the rows given there.

        Returns
        -------
        mean, sigma : ndarray of float, shape (n_rows,)
        """
        mean = np.empty(self.deviation.size)
        sigma = np.empty(self.deviation.size)
        for rows, model in self.parts:
            mean[rows], sigma[rows] = model.predict_with(rows, {cause: donor[rows] for cause, donor in donors.items()})
        return mean, sigma


@dataclass
class TargetSize:
    """What the size of the target is computed from; all arrays have shape (n_rows,).

    Attributes
    ----------
    deviation : ndarray of float
        Standardised per configuration.
    spread, target : ndarray of float
        The deviation's unit, and the target, in the mean size of the kernel's target.
    weight : ndarray of float, positive
    configuration : ndarray of int
    absolute : bool
        The target is the absolute deviation; else it is the measured value itself.
    """

    deviation: np.ndarray
    spread: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    configuration: np.ndarray
    absolute: bool

    def mean(self, deviation: np.ndarray, rows: np.ndarray | None = None, factor: np.ndarray | float = 1.0) -> float:
        """Return the mean size of the target for other deviations: from the configurations' new means, or in all.

        Parameters
        ----------
        deviation : ndarray of float, shape (n_rows,)
        rows : ndarray of int, shape (n_chosen,), or None
            The rows to average over, each as often as it is there; None for all.
        factor : ndarray of float, shape (n_rows,), or float
            What the scale of each row's configuration is multiplied by.
        """
        rows = np.arange(self.deviation.size) if rows is None else rows
        weight = self.weight[rows]
        value = deviation[rows]
        spread = self.spread[rows]
        factor = factor if np.ndim(factor) == 0 else factor[rows]
        if not self.absolute:
            moved = self.target[rows] + spread * (value - self.deviation[rows])
            return float(weight @ np.maximum(moved, min(0.0, float(self.target.min()))) / weight.sum())
        groups = self.configuration[rows]
        sums = np.bincount(groups, weight * value)
        totals = np.bincount(groups, weight)
        around = value - (sums / np.where(totals > 0, totals, 1.0))[groups]
        return float(weight @ (spread * factor * np.abs(around)) / weight.sum())


class ResampledModels:
    """The additive model fitted to all rows and to resamples of them, with what it predicts for the rows as they are.

    Parameters
    ----------
    causes : Causes
    target_size : TargetSize
    draws : list of ndarray of int, shape (n_drawn,)
        The rows of each resample.
    """

    def __init__(self, causes: Causes, target_size: TargetSize, draws: list[np.ndarray]) -> None:
        self.everything = np.arange(target_size.deviation.size)
        self.draws = [self.everything, *draws]
        whole = LocationScale(causes, self.everything, target_size.deviation, target_size.weight)
        self.models = [
            whole,
            *(LocationScale(causes, rows, target_size.deviation, target_size.weight, whole) for rows in draws),
        ]
        self.factual = [model.predict(self.everything) for model in self.models]

    def changes(
        self, target_size: TargetSize, donors: DonorRows, factor: np.ndarray | float = 1.0
    ) -> tuple[float, np.ndarray]:
        """Return the change of the target's mean size.

        Parameters
        ----------
        target_size : TargetSize
        donors : mapping of int to ndarray of int, shape (n_rows,)
        factor : ndarray of float, shape (n_rows,), or float
            As of `TargetSize.mean`.

        Returns
        -------
        change : float
            Percent, by the model of all rows.
        around : ndarray of float, shape (n_draws,)
            How far that of each resample, among its own rows, is from it.
        """
        found = []
        for rows, model, (mean, sigma) in zip(self.draws, self.models, self.factual, strict=True):
            other_mean, other_sigma = model.predict_with(self.everything, donors)
            after = other_mean + other_sigma * (target_size.deviation - mean) / sigma
            before = max(target_size.mean(target_size.deviation, rows), 1e-300)
            found.append(100 * (target_size.mean(after, rows, factor) / before - 1))
        return float(found[0]), np.asarray(found[1:]) - found[0]


def own_where_missing(donor: np.ndarray) -> np.ndarray:
    """Return donor rows with each row its own where it has none.

    Parameters
    ----------
    donor : ndarray of int, shape (n_rows,)
        -1 for none.

    Returns
    -------
    ndarray of int, shape (n_rows,)
    """
    return np.where(donor < 0, np.arange(donor.size), donor)


def counterfactual_deviation(models: CrossFittedModels, donors: DonorRows) -> np.ndarray:
    """Return the deviations, float, shape (n_rows,), with each cause of `donors` as in the rows given there, N held:
    what `dowhy_counterfactual` computes with dowhy.
    """
    mean, sigma = models.factual
    other_mean, other_sigma = models.predict(donors)
    return other_mean + other_sigma * (models.deviation - mean) / sigma


def dowhy_counterfactual(models: CrossFittedModels, cause: int, donor: np.ndarray) -> np.ndarray:
    """Return the deviations with one cause as in other rows, by dowhy.gcm.

    A cause's node holds the number of the row whose value it has: its own row as observed, another one when it is set.

    Parameters
    ----------
    models : CrossFittedModels
    cause : int
    donor : ndarray of int, shape (n_rows,)

    Returns
    -------
    ndarray of float, shape (n_rows,)

    References
    ----------
    P. Bloebaum et al., DoWhy-GCM, JMLR 25 (2024) 147.
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
                raise NotImplementedError("noise is inferred for each row")

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
        set_to = {"cause": lambda row: float(donor[int(row)])}
        return gcm.counterfactual_samples(model, set_to, observed_data=data)["deviation"].to_numpy()
