"""What the arrows of a scope were read from, for the steps that examine them further. Kept in the process, never
written.
"""

from dataclasses import dataclass

import numpy as np

from causeway.causal.data.observations import Candidate, Feature, Observations
from causeway.causal.data.outcome import Arrow
from causeway.causal.preparation.prepared import Prepared
from causeway.causal.selection.stages import Stages


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
    stability : float
        Share of leave-one-configuration-out fits in which the test still holds, 0 .. 1.
    n_configurations : int
    """

    candidate: Candidate
    slope: float
    position: np.ndarray
    p_value: float
    partial_r2: float
    stability: float
    n_configurations: int


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
    """

    columns: list[Feature]
    rows: Observations
    prepared: Prepared
    stages: Stages
    effects: tuple[ConfigurationEffect, ...]
    deviation: np.ndarray
    spread: np.ndarray

    def candidate_of(self, arrow: Arrow) -> Candidate:
        """Return the candidate that an arrow within configurations was found for."""
        return next(one for one in self.prepared.within if one.name == arrow.name)

    def effect_of(self, arrow: Arrow) -> ConfigurationEffect:
        """Return what was found for an arrow between configurations."""
        return next(one for one in self.effects if one.candidate.name == arrow.name)
