"""The launches of a scope as the models of the time see them, and how setting causes changes them: mean, median, 99th
percentile, spread, GPU time.

Each kernel with enough rows has a model of its own, the others share one. What is said of several kernels is their
mean, each with the weight of its time.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import stdtrit

from causeway.causal.data.outcome import CONFIGURATION, Estimate
from causeway.causal.data.scopes import Totals
from causeway.causal.effects.evidence import Evidence
from causeway.causal.effects.kernel_times import KernelTimes, PickedSums, RowDonors
from causeway.causal.effects.time_model import DRAWS, rows_of_models
from causeway.core.vocabulary import MEMORY_STALL

CONFIDENCE = 0.9
"""Of all intervals of durations, and of what is saved."""
WIDER = {"mean": 1.25, "p50": 1.3, "p99": 1.0, "spread": 1.6, "target": 1.5, "share": 1.5}
"""Widening of intervals for what no draw shows: causes that were not found, above all. The draws of p99 and spread,
half of them of the launches near a value, spread enough by themselves. Chosen on tables of the validation, judged on
others of the same generators (docs/validation.md).
"""

STATISTICS = ("mean", "p50", "p99", "spread", "target")
"""What is compared between two settings of causes, in the order of `KernelTimes.percent`."""
PICKS = 6
"""Pairs of each launch behind a share; more change none by more than a tenth of a percent."""

NEVER_NEGATIVE = ("spread",)
"""Statistics that are not below zero whatever the values are."""

SHRUNK = ("p99",)
"""Statistics that rest on so few launches that the point is the mean of the draws, shrunk by their spread."""

NOTHING_LEFT = -100.0
"""Percent: no mean, quantile or spread falls by more than itself."""


def shrunk_mean(draws: np.ndarray) -> float:
    """Return the mean m of draws times m² / (m² + e²), where e is their standard deviation times `WIDER["mean"]`.

    The mean of draws varies less than one estimate (Breiman, "Bagging predictors", Machine Learning, 1996), and a
    change that is small beside its error is mostly error (the factor: Thompson, "Some shrinkage techniques for
    estimating the mean", Journal of the American Statistical Association, 1968).

    Parameters
    ----------
    draws : ndarray, shape (n_draws,)
        At least two estimates of the same change.
    """
    mean = float(draws.mean())
    square = mean**2
    error = WIDER["mean"] ** 2 * float(draws.var(ddof=1))
    return mean * square / (square + error) if square > 0 else 0.0


class Cause(Protocol):
    """What is asked of a cause: an arrow, or what is to become one."""

    @property
    def name(self) -> str:
        """The feature's name."""

    @property
    def role(self) -> str:
        """Its role (`prior_knowledge`)."""

    @property
    def stage(self) -> str:
        """`configuration` of a cause between configurations, which has no part in the models."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """How times differ between two settings of causes, in percent of what was observed, with 90 % intervals.

    Attributes
    ----------
    mean, p50, p99, spread : Estimate
    target : Estimate
        Of the mean target: mostly the absolute deviation from the mean of the configuration, which moves as well.
    of_first : tuple of str
        Those that are in percent of the first setting instead: what takes a multiple of the observed time there may
        fall by more than all of that, but not by more than itself.
    """

    mean: Estimate
    p50: Estimate
    p99: Estimate
    spread: Estimate
    target: Estimate
    of_first: tuple[str, ...] = ()


def in_tail(ranks: np.ndarray, tail: float) -> np.ndarray:
    """Return which ranks lie in the highest, or of a negative share in the lowest, part; bool, shape (n_rows,).

    Parameters
    ----------
    ranks : ndarray of float, shape (n_rows,)
        0 to 1.
    tail : float, -1 to 1
    """
    return ranks > 1 - tail if tail > 0 else ranks < -tail


class ScopeTimes:
    """The used rows of a scope, and the models of their times.

    Parameters
    ----------
    evidence : Evidence
    causes : sequence of Cause
        Those between configurations have no part in the models.
    target : str
    totals : Totals or None
        None: the rows stand for as many launches as their weights say.
    seed : int
    tails : mapping of str to float
        By cause: the share of launches at the one end where it acts alone, negative for the lowest values.

    Attributes
    ----------
    used : ndarray of int, shape (n_used,)
        Rows of the evidence, ascending.
    weight, configuration, time : ndarray, shape (n_used,)
        Of each used row; its time is the measured value less what the target's definition explains.
    causes : list of Cause
    candidates : dict of str to Candidate
        By cause.
    compared : dict of str to Compared
        The two settings of each cause that its effect compares, once they were chosen.
    total_time : float
        Sum of the times of all launches of the modelled kernels, ns for times.
    """

    def __init__(
        self,
        evidence: Evidence,
        causes: Sequence[Cause],
        target: str,
        totals: Totals | None,
        seed: int,
        tails: Mapping[str, float] | None = None,
    ) -> None:
        self.evidence = evidence
        self.is_time = target != MEMORY_STALL and (totals is None or totals.is_time)  # a stall may be hidden
        if totals is not None and set(evidence.rows.kernels) <= set(totals.collectives):
            totals = replace(totals, collectives=())  # of collectives alone the times are compared as they are
        self.causes = [cause for cause in causes if cause.stage != CONFIGURATION]
        self.candidates = {cause.name: evidence.candidate_of(cause.name) for cause in self.causes}
        self.values = {name: candidate.values for name, candidate in self.candidates.items()}
        rng = np.random.default_rng(seed)
        rows = evidence.rows
        parts = rows_of_models(rows.kernel, rng)
        self.used = np.sort(np.concatenate(parts))
        self.weight = rows.weight[self.used]
        self.configuration = rows.configuration[self.used]
        self.time = (rows.mean + rows.signed)[self.used]
        position = np.full(len(rows), -1)
        position[self.used] = np.arange(self.used.size)
        self.tails = dict(tails or {})
        ends = {name: in_tail(self.ranks(name), tail) for name, tail in self.tails.items()}
        self._units = [KernelTimes(evidence, np.sort(part), self.values, position, totals, rng, ends) for part in parts]
        self.compared: dict[str, Any] = {}
        self.total_time = math.fsum(unit.time for unit in self._units)

    def known(self, name: str) -> np.ndarray:
        """Return in which used rows a cause was recorded, bool, shape (n_used,)."""
        number = self.evidence.prepared.numbers.get(name)
        return np.ones(self.used.size, bool) if number is None else number.recorded[self.used]

    def ranks(self, name: str) -> np.ndarray:
        """Return which part of its configuration's weight has lower values of a number than each used row, ties in the
        middle, of rows in which it was recorded, 0 .. 1, shape (n_used,).
        """
        values = self.candidates[name].values[self.used]
        weight = self.weight * self.known(name)
        numbers = np.unique(values, return_inverse=True)[1] + self.configuration * values.size
        levels, place = np.unique(numbers, return_inverse=True)
        sums = np.bincount(place, weight)
        owner = levels // values.size
        below = np.cumsum(sums) - sums / 2
        totals = np.bincount(self.configuration, weight)
        before = np.cumsum(totals) - totals
        return ((below - before[owner]) / np.where(totals > 0, totals, 1.0)[owner])[place]

    def mean_time(self, rows: np.ndarray) -> float:
        """Return the mean time of some used rows.

        Parameters
        ----------
        rows : ndarray of bool, shape (n_used,)
            At least one of them.
        """
        return float(np.average(self.time[rows], weights=self.weight[rows]))

    def configuration_name(self, code: int) -> str:
        """Return what a configuration is called, by its position in `Observations.configuration`."""
        rows = self.evidence.rows
        row = int(np.flatnonzero(rows.configuration == code)[0])
        return f"configuration {code if rows.numbers is None else rows.numbers[row]}"

    def adjusted(self, cause: Cause) -> np.ndarray:
        """Return the response less what the other causes do to it, float, shape (n_used,)."""
        names = self._modelled([cause])
        response = np.empty(self.used.size)
        for unit in self._units:
            response[unit.where] = unit.model(names).without_others(names.index(cause.name))
        return response

    def change(
        self,
        causes: Sequence[Cause],
        after: RowDonors,
        before: RowDonors | None = None,
        among: np.ndarray | None = None,
    ) -> Change:
        """Return the change from one setting of causes, or from what was observed, to another.

        Parameters
        ----------
        causes : sequence of Cause
            The causes that are set. If all are levers, exposures or moments, mediators are left out of the model: what
            these do is part of the effect.
        after, before : mapping of str to ndarray of int, shape (n_used,)
        among : ndarray of bool, shape (n_used,), or None
            The rows in which both settings are compared, still in percent of what was observed of all. All if None, or
            if it leaves out all rows of a model.
        """
        names = self._modelled(causes)
        draws, floors = self._of_all([unit.percent(names, after, before, among) for unit in self._units])
        changes = {name: self._estimate(name, *rows) for name, *rows in zip(STATISTICS, draws, floors, strict=True)}
        return Change(
            **{name: estimate for name, (estimate, _) in changes.items()},
            of_first=tuple(name for name, (_, is_of_first) in changes.items() if is_of_first),
        )

    def mean_changes(self, causes: Sequence[Cause], settings: Sequence[RowDonors]) -> list[Estimate]:
        """Return the change of the mean from each setting of causes to the next, as `change` does, in a fraction of
        its time.

        Parameters
        ----------
        causes : sequence of Cause
        settings : sequence of mapping of str to ndarray of int, shape (n_used,)
            An empty one stands for what was observed.
        """
        names = self._modelled(causes)
        draws, floors = self._of_all([unit.mean_percents(names, settings) for unit in self._units])
        return [self._estimate("mean", *rows)[0] for rows in zip(draws, floors, strict=True)]

    def _modelled(self, causes: Sequence[Cause]) -> list[str]:
        """Return the causes in the model of what some of them do."""
        total = any(cause.role != "mediator" for cause in causes)
        names = {cause.name for cause in causes}
        return [cause.name for cause in self.causes if not total or cause.role != "mediator" or cause.name in names]

    def _of_all(self, percents: Sequence[np.ndarray]) -> np.ndarray:
        """Return the means of changes over the models, each with the weight of its time."""
        shares = np.asarray([unit.time for unit in self._units]) / self.total_time
        return np.tensordot(shares, np.stack(percents), axes=1)

    def _estimate(self, name: str, draws: np.ndarray, floors: np.ndarray) -> tuple[Estimate, bool]:
        """Return a change with its interval, and whether it is in percent of the first setting: see `Change`.

        `floors` are by draw the changes with which nothing would be left. Where no value is negative, no end lies below
        them, nor below `NOTHING_LEFT`.
        """
        if name not in NEVER_NEGATIVE and not all(unit.positive for unit in self._units):
            return self._interval(name, draws, -np.inf), False
        estimate = self._interval(name, draws, float(floors.min()))
        if estimate.low >= NOTHING_LEFT:
            return estimate, False
        of_first = NOTHING_LEFT * draws / np.where(floors < 0, floors, NOTHING_LEFT)
        return self._interval(name, of_first, NOTHING_LEFT), True

    def _interval(self, name: str, draws: np.ndarray, floor: float) -> Estimate:
        """Return the first of the draws of a change, or the shrunk mean of the others, with an interval from their
        spread, of Student's t, no end of which lies below `floor`.
        """
        freedom = min(unit.n_blocks for unit in self._units) - 1
        half = stdtrit(max(freedom, 1), 0.5 + CONFIDENCE / 2) * float(draws[1:].std(ddof=1))
        half *= WIDER[name] * np.sqrt((freedom + 1) / max(freedom, 1))
        value = shrunk_mean(draws[1:]) if name in SHRUNK else float(draws[0])
        if not np.isfinite(value + half):
            raise ValueError("the times are too far apart for their changes to be computed")
        return Estimate(value=max(value, floor), low=max(value - half, floor), high=max(value + half, floor))

    def picked(
        self, scale: np.ndarray, spread: np.ndarray, directions: Mapping[str, np.ndarray], cause: Cause | None = None
    ) -> tuple[list[str], PickedSums]:
        """Return the causes in the model, all or those in that of what one of them does, and the sums over pairs of
        launches (`KernelTimes.picked`) of all kernels, each with the weight that its rows have in the search.

        Parameters
        ----------
        scale, spread : ndarray of float, shape (n_used,)
        directions : mapping of str to ndarray of float, shape (n_used,)
        cause : Cause or None
        """
        names = list(self.candidates) if cause is None else self._modelled([cause])
        sums = PickedSums.empty(len(names), 1 + DRAWS)
        along = [directions[name] for name in names]
        for unit in self._units:
            sums.add_all(unit.picked(names, scale, spread, along, PICKS), unit.stands_for)
        return names, sums

    def share(self, draws: np.ndarray) -> Estimate:
        """Return a share of a variance with its interval from the model and its draws, shape (1 + DRAWS,), percent.

        Parameters
        ----------
        draws : ndarray of float, shape (1 + DRAWS,)
        """
        estimate = self._interval("share", draws, 0.0)
        return Estimate(value=min(estimate.value, 100.0), low=min(estimate.low, 100.0), high=min(estimate.high, 100.0))

    def slope(self, draws: np.ndarray) -> Estimate:
        """Return a slope with its interval from the model and its draws.

        Parameters
        ----------
        draws : ndarray of float, shape (1 + DRAWS,)
        """
        return self._interval("mean", draws, -np.inf)

    def launches(self, moved: np.ndarray) -> int:
        """Return for how many launches of the run some rows stand.

        Parameters
        ----------
        moved : ndarray of bool, shape (n_used,)
        """
        total = 0.0
        for unit in self._units:
            own = unit.weights
            total += unit.launches * float(own[moved[unit.where]].sum() / own.sum())
        return round(total)

    def saved(self, causes: Sequence[Cause], after: RowDonors) -> Estimate | None:
        """Return the GPU time that setting causes, as `change` has them, saves against what was observed, ns; None
        where the value is no time that is spent. Collectives beside other kernels do not count: their time includes
        waiting, and none is won by making it shorter.
        """
        units = [unit for unit in self._units if unit.spent_time > 0]
        if not self.is_time or not units:
            return None
        names = self._modelled(causes)
        percents = np.stack([unit.mean_percents(names, [{}, after], of_spent=True)[:, 0] for unit in units])
        parts = np.asarray([unit.spent_time for unit in units])
        mean, _ = self._estimate("mean", *np.tensordot(parts / parts.sum(), percents, axes=1))
        factor = -float(parts.sum()) / 100.0
        return Estimate(value=factor * mean.value, low=factor * mean.high, high=factor * mean.low)
