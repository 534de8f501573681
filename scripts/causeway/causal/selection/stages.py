"""The two stages of a search, and what each found."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from causeway.causal.data.outcome import StageName
from causeway.causal.selection.backward import Pruner
from causeway.causal.selection.linear_model import Test, linear_model_of
from causeway.causal.selection.problem import Problem
from causeway.causal.statistics.basis import GroupCentring
from causeway.numeric.block_resampling import block_numbers


@dataclass
class Stage:
    """One stage of the search and what it found.

    Attributes
    ----------
    name : str
        `mean` or `scale`.
    problem : Problem
    pruner : Pruner
    centring : GroupCentring
    response : ndarray of float, shape (n_rows,)
        Centred within configurations and weighted.
    unit : float
        Of the response, in that of the standardised deviation.
    tests : list of Test
        Of the parents.
    """

    name: StageName
    problem: Problem
    pruner: Pruner
    centring: GroupCentring
    response: np.ndarray
    unit: float
    tests: list[Test]

    @property
    def chosen(self) -> list[int]:
        """The stage's parents, in the order in which they were found."""
        return [test.candidate for test in self.tests]


@dataclass
class Stages:
    """What the two stages found.

    Attributes
    ----------
    mean, scale : Stage
    problem : Problem
        Of the candidates that vary within configurations, rows weighted as they were sampled.
    centring : GroupCentring
        Likewise.
    residual : ndarray of float, shape (n_rows,)
        The standardised deviation less what the parents of its mean explain; neither clipped nor weighted.
    """

    mean: Stage
    scale: Stage
    problem: Problem
    centring: GroupCentring
    residual: np.ndarray

    @property
    def both(self) -> tuple[Stage, Stage]:
        """The stages in order."""
        return self.mean, self.scale

    @cached_property
    def blocks(self) -> np.ndarray:
        """For each row the number of its block, int, shape (n_rows,), by the residual of either response, whichever
        depends longer on its past.

        The responses are clipped, as the search sees them: what a strong cause has beyond the clip is its own doing and
        no dependence, and blocks as long as its episodes would leave every other half-sample without one.
        """
        residuals = [linear_model_of(stage.problem, stage.response, stage.chosen).residual for stage in self.both]
        return min((block_numbers(series, series.size) for series in residuals), key=lambda blocks: int(blocks[-1]))

    def parents(self) -> list[int]:
        """Return the parents of either stage, ascending."""
        return sorted({candidate for stage in self.both for candidate in stage.chosen})
