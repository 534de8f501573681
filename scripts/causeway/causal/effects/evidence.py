"""What the arrows of a scope were read from, for the steps that examine them further. Kept in the process, never
written.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from causeway.causal.data.observations import Candidate, Feature, Observations
from causeway.causal.data.outcome import NORMAL_QUANTILE
from causeway.causal.preparation.prepared import Prepared
from causeway.causal.selection.backward import Stages


@dataclass(frozen=True, kw_only=True)
class ConfigurationEffect:
    """A launch-level feature that scales the variability.

    Attributes
    ----------
    candidate : Candidate
        `values` per configuration.
    slope : float
        Change of the log mean absolute residual (measured unit) per standard deviation of `position`.
    position : ndarray, shape (n_configurations,)
        Logarithm (if all values are positive) of the feature, standardised over configurations.
    p_value, partial_r2 : float
        The weaker of the two scalings.
    n_configurations : int
    """

    candidate: Candidate
    slope: float
    position: np.ndarray
    p_value: float
    partial_r2: float
    n_configurations: int

    @property
    def error(self) -> float:
        """The standard error of the slope."""
        left = max(1 - self.partial_r2, 0.0) / max(self.partial_r2, 1e-9)
        return abs(self.slope) * float(np.sqrt(left / max(self.n_configurations - 2, 1)))

    @property
    def slopes(self) -> tuple[float, float, float]:
        """The slope, and both ends of its 90 % interval."""
        half = NORMAL_QUANTILE * self.error
        return self.slope, self.slope - half, self.slope + half


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What the arrows of a scope were read from.

    Attributes
    ----------
    columns : list of Feature
        As measured, of the analysed rows.
    rows : Observations
    prepared : Prepared
    stages : Stages
    effects : tuple of ConfigurationEffect
        Of the causes that were found between configurations.
    deviation, spread : ndarray, shape (n_rows,)
        The standardised deviation, and the standard deviation of each row's configuration that it was divided by.
    times : ScopeTimes or None
        The model of the times; None without a cause.
    """

    columns: list[Feature]
    rows: Observations
    prepared: Prepared
    stages: Stages
    effects: tuple[ConfigurationEffect, ...]
    deviation: np.ndarray
    spread: np.ndarray
    times: Any = None

    def candidate_of(self, name: str) -> Candidate:
        """Return the candidate of a cause within configurations."""
        return next(candidate for candidate in self.prepared.within if candidate.name == name)

    def effect_of(self, name: str) -> ConfigurationEffect:
        """Return what was found of a cause between configurations."""
        return next(effect for effect in self.effects if effect.candidate.name == name)
