"""The launches of a kernel as its model sees them, and their times with causes set to other values.

Beside the model stand the launches themselves, those whose cause has about the value that is set.
The model keeps each launch's own residual, in standard deviations, when a cause is set. Where an effect saturates, or a
cause makes a slow mode likelier, the quantiles that it predicts are those of no launch. Nearby launches need no form of
the effect, but take a third of the values for one and do not hold the other causes. Intervals of p50, p99 and spread
hold both answers.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from causeway.causal.data.observations import FEWEST_ROWS
from causeway.causal.data.scopes import Totals
from causeway.causal.effects.evidence import Evidence
from causeway.causal.effects.time_model import DRAWS, TimeModel
from causeway.causal.preparation.numeric_columns import CLIP_SD
from causeway.causal.statistics.basis import average_ranks, two_valued

NEAR = 1 / 3
"""Share of a configuration's launches, by rank of the cause, that stand for a value."""


def near_level(values: np.ndarray, configuration: np.ndarray, donors: np.ndarray | None) -> np.ndarray:
    """Return which rows have about the value of a cause that they are to take.

    Parameters
    ----------
    values : ndarray, shape (n_rows,), or (n_rows, n_levels - 1) of a category
    configuration : ndarray of int, shape (n_rows,)
    donors : ndarray of int, shape (n_rows,), or None
        The row of its configuration whose value each row takes; None: each keeps its own.

    Returns
    -------
    ndarray of bool, shape (n_rows,)
        Of a category, or of two values, the rows that have one of the values that rows of their configuration take;
        else those of a third of their configuration by rank, which ends where the ranks end.
    """
    if donors is None:
        return np.ones(len(values), bool)
    if values.ndim > 1 or two_valued(values):
        codes = values @ np.arange(1.0, values.shape[1] + 1.0) if values.ndim > 1 else values
        numbers = np.unique(codes, return_inverse=True)[1] + configuration.astype(np.int64) * len(values)
        return np.isin(numbers, numbers[donors])
    ranks = np.empty(values.size)
    for code in np.unique(configuration):
        own = configuration == code
        ranks[own] = (average_ranks(values[own]) - 0.5) / own.sum()
    middle = np.clip(ranks[donors], NEAR / 2, 1 - NEAR / 2)
    return (values == values[donors]) | (np.abs(ranks - middle) <= NEAR / 2)


def column_quantiles(values: np.ndarray, weights: np.ndarray, shares: Sequence[float]) -> list[np.ndarray]:
    """Return the smallest values at which shares of the weight are reached, by column.

    Parameters
    ----------
    values : ndarray of float, shape (n_rows, n_columns) or, where all columns are the same, (n_rows, 1)
    weights : ndarray of float, shape (n_rows, n_columns)
    shares : sequence of float, 0 to 1

    Returns
    -------
    list of ndarray of float, shape (n_columns,)
    """
    quantiles = [np.empty(weights.shape[1]) for _ in shares]
    columns = np.ascontiguousarray(values.T)
    orders = np.argsort(columns, axis=1)
    for column, weight in enumerate(weights.T):
        index = min(column, values.shape[1] - 1)
        own = columns[index]
        order = orders[index]
        reached = np.cumsum(weight[order])
        for number, share in enumerate(shares):
            row = min(int(np.searchsorted(reached, share * reached[-1] * (1 - 1e-12))), order.size - 1)
            quantiles[number][column] = own[order[row]]
    return quantiles


OF_SHAPE = slice(1, 4)
"""p50, p99 and spread among the statistics: what rests on the form of the distribution, not on its mean alone."""
TAKEN_OUT_MULTIPLIED = np.concatenate([[0.5], (np.arange(DRAWS) + 0.5) / DRAWS])
"""How much of what a target's definition explains a cause multiplies too, by model and draw: nothing says whether a
cause adds to it or multiplies it, so that all shares from 0 to 1 count alike.
"""
RowDonors = Mapping[str, np.ndarray]
"""By cause: for each used row the used row of its configuration whose value it takes; positions, shape (n_used,)."""


@dataclass
class PickedSums:
    """Sums over pairs of launches, of the target and of the value, in the model and in each draw.

    Attributes
    ----------
    squares : ndarray of float, shape (2, n_causes + 1, 1 + DRAWS)
        Of the changes by each cause, and last by the residual.
    cross : ndarray of float, shape (2, n_causes, 1 + DRAWS)
        Changes times how far the pair lies apart in the cause.
    steps : ndarray of float, shape (n_causes, 1 + DRAWS)
        The squares of these distances.
    """

    squares: np.ndarray
    cross: np.ndarray
    steps: np.ndarray

    @classmethod
    def empty(cls, n_causes: int, n_draws: int) -> "PickedSums":
        """Return sums of nothing."""
        return cls(
            *(np.zeros(shape) for shape in ((2, n_causes + 1, n_draws), (2, n_causes, n_draws), (n_causes, n_draws)))
        )

    def add(self, cause: int, target: np.ndarray, value: np.ndarray, weights: np.ndarray, step: np.ndarray) -> None:
        """Add pairs of one cause, by its position, or of the residual, whose position is last.

        Parameters
        ----------
        cause : int
        target, value : ndarray of float, shape (n_rows, 1 + DRAWS)
            Changes of both.
        weights : ndarray of float, shape (n_rows, 1 + DRAWS)
        step : ndarray of float, shape (n_rows,)
            How far each pair lies apart in the cause.
        """
        for row, change in enumerate((target, value)):
            self.squares[row, cause] += (weights * change**2).sum(axis=0)
            if cause < len(self.steps):
                self.cross[row, cause] += step @ (weights * change)
        if cause < len(self.steps):
            self.steps[cause] += step**2 @ weights

    def add_all(self, other: "PickedSums", factor: float) -> None:
        """Add the sums of another kernel, each pair of which stands for `factor`."""
        self.squares += factor * other.squares
        self.cross += factor * other.cross
        self.steps += factor * other.steps


class KernelTimes:
    """The launches of one model: of a kernel, or of several with few launches.

    Parameters
    ----------
    evidence : Evidence
    rows : ndarray of int, shape (n_rows,)
        Rows of the evidence, ascending.
    values : mapping of str to ndarray, shape (n_all,)
        The values of each cause in all rows of the evidence.
    position : ndarray of int, shape (n_all,)
        Of each row of the evidence: its position among the used ones, -1 for none.
    totals : Totals or None
    rng : Generator
    ends : mapping of str to ndarray of bool, shape (n_used,)
        Of causes that act at one end alone the rows there.

    Attributes
    ----------
    where : ndarray of int
        Positions of the launches among the used rows.
    stands_for : float
        Weight of all rows of the kernels over that of the used ones.
    time, spent_time : float
        Sum of the times of all launches of the kernels; of those that are no collectives.
    """

    def __init__(
        self,
        evidence: Evidence,
        rows: np.ndarray,
        values: Mapping[str, np.ndarray],
        position: np.ndarray,
        totals: Totals | None,
        rng: np.random.Generator,
        ends: Mapping[str, np.ndarray],
    ) -> None:
        observations = evidence.rows
        self.where = position[rows]
        self.values = {name: column[rows] for name, column in values.items()}
        self.ends = {name: end[position[rows]] for name, end in ends.items()}
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
        recorded = totals if totals and ids and all(totals.time.get(kernel, 0.0) > 0 for kernel in ids) else None
        # the search may count kernels alike; what is said counts launches
        counted = np.bincount(self.kernel, self.weights)
        observed = np.bincount(self.kernel, self.weights * self.observed)
        times = np.asarray([recorded.time[kernel] for kernel in ids]) if recorded else observed
        spent = np.asarray(
            [totals is None or kernel not in totals.collectives for kernel in ids] or [True] * times.size
        )
        everywhere = observations.weight[np.isin(observations.kernel, observations.kernel[rows])]
        self.stands_for = float(everywhere.sum() / self.weights.sum())
        self.is_spent = spent[self.kernel][:, None]
        self.time = math.fsum(times)
        self.spent_time = math.fsum(times[spent])
        launches = np.asarray([recorded.launches[kernel] for kernel in ids]) if recorded else counted
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
        return lowest[self.configuration][:, None], highest[self.configuration][:, None]

    def model(self, names: Sequence[str]) -> TimeModel:
        """Return the fitted model of some causes; made once."""
        key = tuple(names)
        if key not in self._models:
            causes = [self.values[name] for name in names]
            rng = np.random.default_rng(self.seed)
            ends = [self.ends.get(name) for name in names]
            self._models[key] = TimeModel(causes, self.response, self.weights, self.blocks, self.kernel, rng, ends)
        return self._models[key]

    def times_with(self, model: TimeModel, names: Sequence[str], donors: RowDonors) -> np.ndarray:
        """Return the times with causes set, by the model and by each draw, shape (n_rows, 1 + DRAWS)."""
        own = {names.index(name): self.local[rows[self.where]] for name, rows in donors.items()}
        moved = self._within_reach(model, own) - self.response[:, None]
        size = np.maximum(self.modelled[:, None] + self.taken[:, None] * TAKEN_OUT_MULTIPLIED, 0.0)
        return self.observed[:, None] + (size * np.expm1(moved) if self.logarithmic else moved)

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

    def picked(
        self, names: Sequence[str], scale: np.ndarray, spread: np.ndarray, directions: Sequence[np.ndarray], picks: int
    ) -> "PickedSums":
        """Return sums over pairs of launches of a configuration, one of which takes one cause's value of the other and
        keeps all else, or keeps all and takes its residual.

        Parameters
        ----------
        names : sequence of str
            The causes in the model.
        scale, spread : ndarray of float, shape (n_used,)
            What launch parameters multiply each deviation by; what a deviation is divided by.
        directions : sequence of ndarray of float, shape (n_used,)
            By cause: the number along which slopes are taken.
        picks : int
            Pairs of each launch.
        """
        model = self.model(names)
        rng = np.random.default_rng(self.seed + 1)
        unit = (scale / spread)[self.where][:, None]
        deviation = (self.modelled - self.mean)[:, None] * unit
        limit = CLIP_SD * np.sqrt(float(self.weights @ deviation[:, 0] ** 2 / self.weights.sum()))
        deviation = np.clip(deviation, -limit, limit)
        size = (self.modelled if self.logarithmic else np.ones(self.modelled.size))[:, None]
        fold = np.abs if self.absolute else np.positive
        sums = PickedSums.empty(len(names), 1 + DRAWS)
        for _ in range(picks):
            donors = self._another(rng)
            for cause, direction in enumerate([*directions, None]):
                if direction is None:
                    moved = model.with_residual_of(donors) - self.response[:, None]
                else:
                    moved = model.response_with({cause: donors}) - self.response[:, None]
                other = np.clip(
                    deviation + unit * size * (np.expm1(moved) if self.logarithmic else moved), -limit, limit
                )
                step = (
                    np.zeros(self.where.size)
                    if direction is None
                    else direction[self.where][donors] - direction[self.where]
                )
                sums.add(cause, fold(other) - fold(deviation), other - deviation, model.weights, step)
        model.release()
        return sums

    def _another(self, rng: np.random.Generator) -> np.ndarray:
        """Return for each launch one of its configuration, drawn as often as the weights say, shape (n_rows,)."""
        ends = np.cumsum(self.weights[self.order])
        lasts = np.append(self.firsts[1:], self.order.size) - 1
        low, high = (reached[self.configuration] for reached in (np.append(0.0, ends)[self.firsts], ends[lasts]))
        places = np.searchsorted(ends, low + rng.random(low.size) * (high - low), side="right")
        return self.order[np.clip(places, self.firsts[self.configuration], lasts[self.configuration])]

    def percent(
        self, names: Sequence[str], after: RowDonors, before: RowDonors | None, among: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the changes of the statistics in percent, and those with which nothing would be left.

        Parameters
        ----------
        names : sequence of str
            The causes in the model.
        after, before : mapping of str to ndarray of int, shape (n_used,)
        among : ndarray of bool, shape (n_used,), or None

        Returns
        -------
        ndarray of float, shape (2, n_statistics, 1 + DRAWS)
        """
        model = self.model(names)
        weights = model.weights * self.per_launch
        now = self._observed_statistics(tuple(names), weights)
        if among is not None and before and among[self.where].any():
            weights = weights * among[self.where][:, None]
        first = now if not before else self._statistics(self.times_with(model, names, before), weights)
        last = self._statistics(self.times_with(model, names, after), weights)
        now = np.where(now != 0, now, 1.0)
        changes = model.widened(100.0 * (last - first) / now, [names.index(name) for name in {*after, *(before or ())}])
        nearby = self._nearby_difference(weights[:, 2::2], after, before)
        if nearby is not None:  # every second draw is of the launches themselves, so that the interval holds both
            changes[OF_SHAPE, 2::2] = (100.0 * nearby / now[:, 2::2])[OF_SHAPE]
        model.release()
        return np.stack([changes, -100.0 * (first / now)])

    def _nearby_difference(self, weights: np.ndarray, after: RowDonors, before: RowDonors | None) -> np.ndarray | None:
        """Return how far statistics of the launches near both settings of one cause differ; None with fewer than
        `FEWEST_ROWS` at either, or where several causes are set.
        """
        if len(after) != 1 or (before and before.keys() != after.keys()):
            return None
        (name,) = after
        donors = [self.local[setting[name][self.where]] if setting else None for setting in (before, after)]
        values = self.ends[name].astype(float) if name in self.ends else self.values[name]
        sides = [near_level(values, self.configuration, rows) for rows in donors]
        if min(np.count_nonzero(side & (weights[:, 0] > 0)) for side in sides) < FEWEST_ROWS:
            return None
        observed = self.observed[:, None]
        return np.subtract(*(self._statistics(observed, weights * side[:, None]) for side in reversed(sides)))

    def mean_percents(self, names: Sequence[str], settings: Sequence[RowDonors], of_spent: bool = False) -> np.ndarray:
        """Return the changes of the mean from each setting to the next, %, and those with which nothing would be left;
        on request of the kernels alone whose time is spent.

        Returns
        -------
        ndarray of float, shape (2, n_settings - 1, 1 + DRAWS)
        """
        model = self.model(names)
        weights = model.weights * self.per_launch * (self.is_spent if of_spent else 1.0)
        now = self._mean(self.observed[:, None], weights)
        means = [
            self._mean(self.times_with(model, names, setting), weights) if setting else now for setting in settings
        ]
        now = np.where(now != 0, now, 1.0)
        changes = 100.0 * np.diff(means, axis=0) / now
        changes = model.widened(changes, [names.index(name) for name in set().union(*settings)])
        model.release()
        return np.stack([changes, -100.0 * (np.stack(means[:-1]) / now)])

    @staticmethod
    def _mean(times: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the means of times, shape (1 + DRAWS,)."""
        return (weights * times).sum(axis=0) / weights.sum(axis=0)

    def _observed_statistics(self, key: tuple[str, ...], weights: np.ndarray) -> np.ndarray:
        if key not in self._now:
            self._now[key] = self._statistics(self.observed[:, None], weights)
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
