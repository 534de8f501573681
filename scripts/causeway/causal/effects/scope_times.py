"""The launches of a scope as the models of the time see them, and how setting causes changes them: mean, median, 99th
percentile, spread, GPU time.

Each kernel with enough rows has a model of its own, the others share one. What is said of several kernels is their
mean, each with the weight of its time.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from causeway.causal.data.outcome import CONFIGURATION, Arrow, Estimate
from causeway.causal.data.scopes import Totals
from causeway.causal.effects.evidence import Evidence
from causeway.causal.effects.tail_check import column_quantiles, near_level, tails_differ
from causeway.causal.effects.time_model import DRAWS, TimeModel, rows_of_models
from causeway.causal.statistics.shrinkage import shrunk_mean
from causeway.core.vocabulary import MEMORY_STALL

CONFIDENCE = 0.9
"""Of all intervals of durations, and of what is saved."""
WIDER = {"mean": 1.25, "p50": 1.3, "p99": 1.9, "spread": 1.9, "target": 1.5}
"""Widening of intervals for what no draw shows: causes that were not found, and the form of the tail. Chosen on tables
of the validation, judged on others of the same generators (docs/validation.md).
"""

OF_SHAPE = slice(1, 4)
"""p50, p99 and spread among the statistics: what rests on the form of the distribution, not on its mean alone."""

NEVER_NEGATIVE = ("spread",)
"""Statistics that are not below zero whatever the values are."""

SHRUNK = ("p99",)
"""Statistics that rest on so few launches that the point is the mean of the draws, shrunk by their spread."""

REACH = 1.5
"""Predicted times lie at most so many times as far from the mean of their configuration as the farthest that was
observed, in logarithms: beyond, a model of products and steps is not to be believed. Chosen: 1 would cut the tail where
few launches have the level that is set.
"""

TAKEN_OUT_MULTIPLIED = np.concatenate([[0.5], (np.arange(DRAWS) + 0.5) / DRAWS])
"""How much of what a target's definition explains a cause multiplies too, by model and draw: nothing says whether a
cause adds to it or multiplies it, so that all shares from 0 to 1 count alike.
"""

NOTHING_LEFT = -100.0
"""Percent: no mean, quantile or spread falls by more than itself."""

RowDonors = Mapping[str, np.ndarray]
"""By cause: for each used row the used row of its configuration whose value it takes; positions, shape (n_used,)."""


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


class ScopeTimes:
    """The used rows of a scope, and the models of their times.

    Parameters
    ----------
    evidence : Evidence
    arrows : sequence of Arrow
        Those between configurations have no part in the models.
    target : str
    totals : Totals or None
        None: the rows stand for as many launches as their weights say.
    seed : int

    Attributes
    ----------
    used : ndarray of int, shape (n_used,)
        Rows of the evidence, ascending.
    weight, configuration : ndarray, shape (n_used,)
    total_time : float
        Sum of the times of all launches of the modelled kernels, ns for times.
    """

    def __init__(
        self, evidence: Evidence, arrows: Sequence[Arrow], target: str, totals: Totals | None, seed: int
    ) -> None:
        self.evidence = evidence
        self.is_time = target != MEMORY_STALL and (totals is None or totals.is_time)  # a stall may be hidden
        if totals is not None and set(evidence.rows.kernels) <= set(totals.collectives):
            totals = replace(totals, collectives=())  # of collectives alone the times are compared as they are
        self.arrows = [arrow for arrow in arrows if arrow.stage != CONFIGURATION]
        self.values = {arrow.name: evidence.candidate_of(arrow).values for arrow in self.arrows}
        rng = np.random.default_rng(seed)
        rows = evidence.rows
        parts = rows_of_models(rows.kernel, rng)
        self.used = np.sort(np.concatenate(parts))
        self.weight = rows.weight[self.used]
        self.configuration = rows.configuration[self.used]
        position = np.full(len(rows), -1)
        position[self.used] = np.arange(self.used.size)
        self._units = [_Unit(evidence, np.sort(part), self.values, position, totals, rng) for part in parts]
        self.total_time = math.fsum(unit.time for unit in self._units)

    def change(
        self,
        arrows: Sequence[Arrow],
        after: RowDonors,
        before: RowDonors | None = None,
        among: np.ndarray | None = None,
    ) -> Change:
        """Return the change from one setting of causes, or from what was observed, to another.

        Parameters
        ----------
        arrows : sequence of Arrow
            The causes that are set. If all are levers, exposures or moments, mediators are left out of the model: what
            these do is part of the effect.
        after, before : mapping of str to ndarray of int, shape (n_used,)
        among : ndarray of bool, shape (n_used,), or None
            The rows in which both settings are compared, still in percent of what was observed of all. All if None, or
            if it leaves out all rows of a model.
        """
        names = self._modelled(arrows)
        draws, floors = self._of_all([unit.percent(names, after, before, among) for unit in self._units])
        changes = {name: self._estimate(name, *rows) for name, *rows in zip(WIDER, draws, floors, strict=True)}
        return Change(
            **{name: estimate for name, (estimate, _) in changes.items()},
            of_first=tuple(name for name, (_, is_of_first) in changes.items() if is_of_first),
        )

    def mean_changes(self, arrows: Sequence[Arrow], settings: Sequence[RowDonors]) -> list[Estimate]:
        """Return the change of the mean from each setting of causes to the next, as `change` does, in a fraction of
        its time.

        Parameters
        ----------
        arrows : sequence of Arrow
        settings : sequence of mapping of str to ndarray of int, shape (n_used,)
            An empty one stands for what was observed.
        """
        names = self._modelled(arrows)
        draws, floors = self._of_all([unit.mean_percents(names, settings) for unit in self._units])
        return [self._estimate("mean", *rows)[0] for rows in zip(draws, floors, strict=True)]

    def _modelled(self, arrows: Sequence[Arrow]) -> list[str]:
        """Return the causes in the model of what some of them do."""
        total = any(arrow.role != "mediator" for arrow in arrows)
        return [arrow.name for arrow in self.arrows if not total or arrow.role != "mediator" or arrow in arrows]

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
        found = self._interval(name, draws, float(floors.min()))
        if found.low >= NOTHING_LEFT:
            return found, False
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

    def saved(self, arrows: Sequence[Arrow], after: RowDonors) -> Estimate | None:
        """Return the GPU time that setting causes, as `change` has them, saves against what was observed, ns; None
        where the value is no time that is spent. Collectives beside other kernels do not count: their time includes
        waiting, and none is won by making it shorter.
        """
        units = [unit for unit in self._units if unit.spent_time > 0]
        if not self.is_time or not units:
            return None
        names = self._modelled(arrows)
        percents = np.stack([unit.mean_percents(names, [{}, after], of_spent=True)[:, 0] for unit in units])
        parts = np.asarray([unit.spent_time for unit in units])
        mean, _ = self._estimate("mean", *np.tensordot(parts / parts.sum(), percents, axes=1))
        factor = -float(parts.sum()) / 100.0
        return Estimate(value=factor * mean.value, low=factor * mean.high, high=factor * mean.low)


class _Unit:
    """The rows of one model: of a kernel, or of several small ones."""

    def __init__(
        self,
        evidence: Evidence,
        rows: np.ndarray,
        values: Mapping[str, np.ndarray],
        position: np.ndarray,
        totals: Totals | None,
        rng: np.random.Generator,
    ) -> None:
        observations = evidence.rows
        self.where = position[rows]
        self.values = {name: one[rows] for name, one in values.items()}
        self.local = np.full(int(position.max()) + 1, -1)
        self.local[self.where] = np.arange(rows.size)
        self.weights = observations.weight[rows]
        self.kernel = np.unique(observations.kernel[rows], return_inverse=True)[1]
        self.configuration = np.unique(observations.configuration[rows], return_inverse=True)[1]
        self.order = np.argsort(self.configuration, kind="stable")
        self.firsts = np.searchsorted(self.configuration[self.order], np.arange(self.configuration.max() + 1))
        self.mean = observations.mean[rows]
        self.modelled = self.mean + observations.signed[rows]
        taken = np.zeros(rows.size) if observations.taken_out is None else observations.taken_out[rows]
        self.observed = self.modelled + taken
        self.positive = bool(np.all(self.observed >= 0))
        self.taken = taken
        self.absolute = observations.absolute
        size = np.bincount(self.kernel, self.weights * np.abs(observations.target[rows]))
        self.unit = np.where(size > 0, size / np.bincount(self.kernel, self.weights), 1.0)[self.kernel]
        self.blocks = np.unique(evidence.stages.blocks[rows], return_inverse=True)[1]
        self.n_blocks = int(self.blocks.max()) + 1
        self.seed = int(rng.integers(1 << 62))
        self.logarithmic = bool(np.all(self.modelled > 0))
        own = np.log(self.modelled) if self.logarithmic else self.modelled
        self.response = own - self._of_configuration(own, self.weights[:, None])[:, 0]
        self.reach = self._reach()
        self._models: dict[tuple[str, ...], TimeModel] = {}
        self._now: dict[tuple[str, ...], np.ndarray] = {}
        ids = (
            [observations.kernels[code] for code in np.unique(observations.kernel[rows])]
            if observations.kernels
            else []
        )
        known = totals is not None and bool(ids) and all(totals.time.get(one, 0.0) > 0 for one in ids)
        # the search may count kernels alike; what is said counts launches
        counted = np.bincount(self.kernel, self.weights)
        observed = np.bincount(self.kernel, self.weights * self.observed)
        times = np.asarray([totals.time[one] for one in ids]) if known else observed
        spent = np.asarray([totals is None or one not in totals.collectives for one in ids] or [True] * times.size)
        self.is_spent = spent[self.kernel][:, None]
        self.time = math.fsum(times)
        self.spent_time = math.fsum(times[spent])
        launches = np.asarray([totals.launches[one] for one in ids]) if known else counted
        self.launches = float(launches.sum())
        self.per_launch = (launches / counted / np.max(launches / counted))[self.kernel][:, None]

    def _of_configuration(self, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return for each row the weighted means of its configuration, shape (n_rows, n_draws)."""
        values = values[:, None] if values.ndim == 1 else values
        sums = np.add.reduceat((weights * values)[self.order], self.firsts)
        counts = np.add.reduceat(weights[self.order], self.firsts)
        return (sums / np.where(counts > 0, counts, 1.0))[self.configuration]

    def _reach(self) -> tuple[np.ndarray, np.ndarray]:
        """Return how low and how high the response of each row may become, shape (n_rows, 1)."""
        ordered = self.response[self.order]
        lowest, highest = (reduce(ordered, self.firsts) for reduce in (np.minimum.reduceat, np.maximum.reduceat))
        return REACH * lowest[self.configuration][:, None], REACH * highest[self.configuration][:, None]

    def _model(self, names: Sequence[str]) -> TimeModel:
        key = tuple(names)
        if key not in self._models:
            causes = [self.values[name] for name in names]
            rng = np.random.default_rng(self.seed)
            self._models[key] = TimeModel(causes, self.response, self.weights, self.blocks, self.kernel, rng)
        return self._models[key]

    def _times(self, model: TimeModel, names: Sequence[str], donors: RowDonors) -> np.ndarray:
        """Return the times with causes set, by the model and by each draw, shape (n_rows, 1 + DRAWS)."""
        own = {names.index(name): self.local[rows[self.where]] for name, rows in donors.items()}
        moved = self._within_reach(model, own) - self.response[:, None]
        size = np.maximum(self.modelled[:, None] + self.taken[:, None] * TAKEN_OUT_MULTIPLIED, 0.0)
        change = size * np.expm1(moved) if self.logarithmic else moved
        return self.observed[:, None] + change

    def _within_reach(self, model: TimeModel, own: Mapping[int, np.ndarray]) -> np.ndarray:
        """Return the response with causes set, within reach, shape (n_rows, 1 + DRAWS).

        What the limits take from the scaled residuals is given back to all rows of the configurations that are set, so
        that their mean stays: where a cause makes a slow mode likelier, the few slow launches of a quiet level are far
        out in its standard deviations, the limits would cut these alone, and the mean would come out too low.
        """
        whole = model.response_with(own)
        inside = np.clip(whole, *self.reach)
        is_cut = inside != whole
        if not is_cut.any():
            return whole
        located = model.located_with(own)
        lost = np.where(is_cut, whole - located - (inside - np.clip(located, *self.reach)), 0.0)
        moves = np.any([rows != np.arange(rows.size) for rows in own.values()], axis=0)
        is_set = np.logical_or.reduceat(moves[self.order], self.firsts)[self.configuration]
        weights = model.weights[is_set]
        inside[is_set] += (weights * lost[is_set]).sum(axis=0) / weights.sum(axis=0)
        return np.clip(inside, *self.reach)

    def percent(
        self, names: Sequence[str], after: RowDonors, before: RowDonors | None, among: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the changes of the statistics in percent, and those with which nothing would be left.

        Returns
        -------
        ndarray of float, shape (2, n_statistics, 1 + DRAWS)
        """
        model = self._model(names)
        weights = model.weights * self.per_launch
        now = self._observed_statistics(tuple(names), weights)
        if among is not None and before and among[self.where].any():
            weights = weights * among[self.where][:, None]
        first = now if not before else self._statistics(self._times(model, names, before), weights)
        last = self._statistics(self._times(model, names, after), weights)
        now = np.where(now != 0, now, 1.0)
        changes = model.widened(100.0 * (last - first) / now, [names.index(one) for one in {*after, *(before or ())}])
        nearby = self._nearby_difference(model, weights, after, before)
        if nearby is not None:  # every second draw is of the launches themselves, so that the interval holds both
            changes[OF_SHAPE, 2::2] = (100.0 * nearby / now)[OF_SHAPE, 2::2]
        return np.stack([changes, -100.0 * (first / now)])

    def _nearby_difference(
        self, model: TimeModel, weights: np.ndarray, after: RowDonors, before: RowDonors | None
    ) -> np.ndarray | None:
        """Return how far statistics of the launches near both settings of one cause differ, all of them standing for
        what was observed; None where the model describes the tails of both, or where several causes are set.
        """
        if len(after) != 1 or (before and before.keys() != after.keys()):
            return None
        (name,) = after
        donors = [self.local[setting[name][self.where]] if setting else None for setting in (before, after)]
        sides = [near_level(self.values[name], self.configuration, rows) for rows in donors]
        residual = model.residual[:, 0] * np.exp(-model.linear[:, 0])
        if not tails_differ(residual, weights, *sides):
            return None
        observed = np.repeat(self.observed[:, None], 1 + DRAWS, axis=1)
        return np.subtract(*(self._statistics(observed, weights * side[:, None]) for side in reversed(sides)))

    def mean_percents(self, names: Sequence[str], settings: Sequence[RowDonors], of_spent: bool = False) -> np.ndarray:
        """Return the changes of the mean from each setting to the next, %, and those with which nothing would be left;
        on request of the kernels alone whose time is spent.

        Returns
        -------
        ndarray of float, shape (2, n_settings - 1, 1 + DRAWS)
        """
        model = self._model(names)
        weights = model.weights * self.per_launch * (self.is_spent if of_spent else 1.0)
        now = self._mean(np.repeat(self.observed[:, None], 1 + DRAWS, axis=1), weights)
        means = [self._mean(self._times(model, names, one), weights) if one else now for one in settings]
        now = np.where(now != 0, now, 1.0)
        changes = 100.0 * np.diff(means, axis=0) / now
        changes = model.widened(changes, [names.index(one) for one in set().union(*settings)])
        return np.stack([changes, -100.0 * (np.stack(means[:-1]) / now)])

    @staticmethod
    def _mean(times: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the means of times, shape (1 + DRAWS,)."""
        return (weights * times).sum(axis=0) / weights.sum(axis=0)

    def _observed_statistics(self, key: tuple[str, ...], weights: np.ndarray) -> np.ndarray:
        if key not in self._now:
            self._now[key] = self._statistics(np.repeat(self.observed[:, None], 1 + DRAWS, axis=1), weights)
        return self._now[key]

    def _statistics(self, times: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return mean, quantiles and spread of times, and the mean of the target, shape (n_statistics, 1 + DRAWS).

        Quantiles and spread are those of the times over the observed mean of the configuration, so that several
        configurations count alike.
        """
        total = weights.sum(axis=0)
        scale = self.mean[:, None] if np.all(self.mean > 0) else np.ones((self.mean.size, 1))
        relative = times / scale
        middle = (weights * relative).sum(axis=0) / total
        spread = np.sqrt((weights * (relative - middle) ** 2).sum(axis=0) / total)
        p50, p99 = column_quantiles(relative, weights, (0.5, 0.99))
        target = times
        if self.absolute:
            target = np.abs(times - self._of_configuration(times, weights))
        return np.stack(
            [
                self._mean(times, weights),
                p50,
                p99,
                spread,
                (weights * target / self.unit[:, None]).sum(axis=0) / total,
            ]
        )
