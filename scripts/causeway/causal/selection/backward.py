"""Backward pruning: every chosen candidate must still add something when the others may act in any smooth way and in
pairs.

Forward selection describes each effect by two or three functions. What these miss of a true cause is picked up by its
proxies. Here the others get piecewise linear functions of their ranks and pairwise products as well, so that only a
candidate with information of its own stays.

What each of the two stages of a search found is a `Stage`.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from causeway.causal.data.feature_names import derived_name
from causeway.causal.data.observations import FEWEST_ROWS, Candidate
from causeway.causal.data.outcome import StageName
from causeway.causal.selection.linear_model import (
    MIN_PARTIAL_R2,
    UNRELATED,
    VERY_STRONG,
    LinearModel,
    Test,
    effective_test_size,
    linear_model_of,
    significance_level,
)
from causeway.causal.selection.problem import Design, Problem
from causeway.causal.statistics.basis import KNOTS, GroupCentring
from causeway.numeric.block_resampling import block_numbers

ROWS_PER_COLUMN = 6
"""At least so many independent rows per column of the others' model; what would take more is left out, products before
hinges.
"""
MOST_ALTERNATIVES = 6
"""So many raw counters are tried in the place of a derived one, the most correlated first."""
PART_OF_RATIO = 0.1
"""Share of a derived column's variance that a raw one explains at least to be tried in its place, and that two others
and their product leave at most where it may be their ratio: scores of a ratio are no line of theirs. Chosen.
"""
BETTER = 2.0
"""Difference of the Bayesian information criterion from which a candidate gives way to another: "positive" evidence
(R. E. Kass, A. E. Raftery, Bayes factors, J. Am. Stat. Assoc. 90 (1995) 773).
"""
ORIGINAL = 7.0
"""Twice the log-odds that a clear difference names the original: of 123 pairs of a cause and a relative of it (squared
correlation above .5) in 16 simulated tables, 95 named the cause and 2 the relative.
"""
THIRD = 20
"""So many third columns are asked: those most correlated with either."""
MOST_TOLD = 0.5
"""Squared partial correlation of a third column that counts at most."""
CLEAR = 0.3
"""Difference of the sums of squared partial correlations from which one column counts as the original."""
COUNTER = "counter"
MIN_LENGTH = 1e-8
"""A function whose length after centring is at most this is constant."""


def flexible_functions(candidate: Candidate) -> np.ndarray:
    """Return functions of a candidate, float, shape (n_rows, k): hinges at `KNOTS` of the ranks, and the values;
    of a category its indicators.
    """
    values = candidate.values.astype(float)
    if values.ndim > 1:
        return values
    if candidate.two_valued:
        return values[:, None]
    ranks = ndtr(candidate.scores)
    hinges = [np.maximum(ranks - knot, 0.0) for knot in KNOTS]
    return np.column_stack([*hinges, values])


def unit_columns(columns: np.ndarray) -> np.ndarray:
    """Return columns divided by their length, without those that are zero.

    Parameters
    ----------
    columns : ndarray of float, shape (n_rows, m)

    Returns
    -------
    ndarray of float, shape (n_rows, k)
        k at most m.
    """
    lengths = np.sqrt((columns**2).sum(axis=0))
    return columns[:, lengths > MIN_LENGTH] / lengths[lengths > MIN_LENGTH]


class Pruner:
    """Prunes the choices of a scope's searches.

    Parameters
    ----------
    design : Design
        Where several kernels are searched together, the others may act differently in each.
    given : tuple of int
        Candidates that are in every model beside the others.
    """

    def __init__(self, design: Design, given: tuple[int, ...] = ()) -> None:
        self.problem = design.problem
        self.candidates = design.candidates
        self.centring = design.centring
        self.kernels = design.kernel
        self.given = given
        self.n_kernels = int(self.kernels.max()) + 1 if self.kernels.size else 0
        self._flexible: dict[int, np.ndarray] = {}
        self._near: dict[int, list[int]] = {}

    def flexible(self, candidate: int) -> np.ndarray:
        """Return a candidate's flexible functions, float, shape (n_rows, k), centred, weighted, of unit length."""
        if candidate not in self._flexible:
            self._flexible[candidate] = unit_columns(
                self.centring.weighted(flexible_functions(self.candidates[candidate]))
            )
        return self._flexible[candidate]

    def products(self, others: list[int]) -> np.ndarray:
        """Return the pairwise products of the others' first functions, float, shape (n_rows, n_pairs) at most, centred,
        weighted, of unit length.
        """
        single = [self.candidates[other].first for other in others]
        pairs = ([a * b for b in single[i + 1 :]] for i, a in enumerate(single[:-1]))
        return self._units(len(single) * (len(single) - 1) // 2, pairs)

    def by_kernel(self, others: list[int]) -> np.ndarray:
        """Return the others' first functions in each kernel alone, float, shape (n_rows, n_others * n_kernels) at most,
        centred, weighted, of unit length.
        """
        own = ([self.candidates[other].first * (self.kernels == k) for k in range(self.n_kernels)] for other in others)
        return self._units(len(others) * self.n_kernels, own)

    def _units(self, count: int, groups: Iterable[list[np.ndarray]]) -> np.ndarray:
        """Return `count` columns at most, float, centred, weighted, of unit length; one group of them after another:
        what stands between is several times as large as what is found.
        """
        units = np.empty((self.problem.basis.columns.shape[0], count), order="F")
        filled = 0
        for group in groups:
            part = unit_columns(self.centring.weighted(np.column_stack(group)))
            units[:, filled : filled + part.shape[1]] = part
            filled += part.shape[1]
        return units[:, :filled]

    def others_model(self, response: np.ndarray, others: list[int], without: tuple[int, ...] = ()) -> LinearModel:
        """Return the model of the others: their bases, and as many of the flexible functions as the rows can carry.

        What is `given` belongs to it but for those that it must be `without`.

        Parameters
        ----------
        response : ndarray of float, shape (n_rows,)
            Centred and weighted like the basis.
        others : list of int
        without : tuple of int
        """
        held = [*others, *(parent for parent in self.given if parent not in others and parent not in without)]
        hinges = [self.flexible(other) for other in others]
        n_hinges = sum(part.shape[1] for part in hinges)
        n_pairs = len(others) * (len(others) - 1) // 2
        model = linear_model_of(self.problem, response, held, len(others) * self.n_kernels + n_hinges + n_pairs)
        if others and self.n_kernels > 1 and len(others) * (self.n_kernels - 1) < self._room(model):
            model.add(self.by_kernel(others))
        if hinges and n_hinges < self._room(model):
            model.add(np.concatenate(hinges, axis=1))
        if n_pairs and n_pairs < self._room(model):
            model.add(self.products(others))
        return model

    def _room(self, model: LinearModel) -> float:
        """Return how many more columns the rows can carry."""
        return self.problem.n_independent / ROWS_PER_COLUMN - model.q.shape[1]

    def test(self, response: np.ndarray, candidate: int, others: list[int]) -> Test:
        """Test a candidate given the others; of several kernels it may act differently in each, like the others.

        Parameters
        ----------
        response : ndarray of float, shape (n_rows,)
            As in `others_model`.
        candidate : int
        others : list of int
        """
        model = self.others_model(response, others, (candidate,))
        columns = self.problem.basis.columns[:, self.problem.basis.of(candidate)]
        if self.n_kernels > 1 and self.n_kernels < self._room(model):
            columns = np.hstack([columns, self.by_kernel([candidate])])
        residual, df = model.residual_with(columns)
        before = float(model.residual @ model.residual)
        explained = np.asarray([before - float(residual @ residual)])
        size = effective_test_size(self.problem, candidate, residual)
        p_values, partial = model.tests(explained, np.asarray([df]), np.asarray([size]))
        p_value = float(p_values[0]) if size >= FEWEST_ROWS else 1.0
        return Test(candidate, p_value, float(partial[0]), size)

    def prefer_raw(self, response: np.ndarray, chosen: list[int]) -> list[int]:
        """Exchange ratios, rates and means for a raw counter that, acting with the other causes, explains as much.

        A ratio of two counters mimics their interaction, which the forward search cannot see; the flexible model can.
        A ratio is known by its name; where names do not say, another counter must fit better.

        Parameters
        ----------
        response : ndarray of float, shape (n_rows,)
            As in `others_model`.
        chosen : list of int
        """
        chosen = list(chosen)
        n_rows = self.problem.n_independent
        for position, candidate in enumerate(chosen):
            others = [other for other in chosen if other != candidate]
            column = self.candidates[candidate]
            if column.tier != COUNTER or column.levels:
                continue  # only what a profiler counted is computed from other columns
            alternatives = self._raw_neighbours(candidate, chosen)
            if not alternatives:
                continue
            model = self.others_model(response, others, (candidate, *alternatives))
            left = {
                column: self._left_with(model, (column,), others, self.flexible(column))[0]
                for column in (candidate, *alternatives)
            }
            score = {other: n_rows * np.log(left[other] / left[candidate]) for other in alternatives}
            named = derived_name(column.name)
            if not named:
                score = {
                    other: loss - ORIGINAL * _is_original(self.problem, other, candidate)
                    for other, loss in score.items()
                }
            best = min(alternatives, key=score.__getitem__)
            limit = max(VERY_STRONG, 2 * MIN_PARTIAL_R2 * n_rows) if named else -BETTER
            if score[best] < limit:
                chosen[position] = best
            else:
                parts = self._better_parts(model, candidate, alternatives, others)
                chosen[position : position + 1] = parts or [candidate]
        return chosen

    def _better_parts(self, model: LinearModel, candidate: int, raw: list[int], others: list[int]) -> list[int]:
        """Return the two raw counters that a candidate was computed from, as a ratio say, if they tell more together
        than it does: it stood for both. None where no two say so.

        Parameters
        ----------
        model : LinearModel
            Of the others, without the candidate and the raw counters.
        candidate : int
        raw, others : list of int
        """
        n_rows = self.problem.n_independent

        def criterion(members: tuple[int, ...]) -> float:
            left, df = self._left_with(model, members, others)
            return n_rows * float(np.log(left)) + df * float(np.log(n_rows))

        told = {pair: criterion(pair) for pair in itertools.combinations(raw, 2) if self._follows(candidate, pair)}
        best = min(told, key=told.__getitem__, default=())
        return list(best) if best and told[best] < criterion((candidate,)) - BETTER else []

    def _follows(self, candidate: int, parts: tuple[int, int]) -> bool:
        """Tell whether a candidate follows from two others, but for `PART_OF_RATIO` of its variance."""
        first = self.problem.basis.columns[:, self.problem.basis.of(candidate)][:, 0].astype(float)
        model = LinearModel(self.problem, first)
        for part in parts:
            model.add_candidate(part)
        firsts = [self.candidates[part].first for part in parts]
        model.add(unit_columns(self.centring.weighted((firsts[0] * firsts[1])[:, None])))
        return float(model.residual @ model.residual) < PART_OF_RATIO

    def _raw_neighbours(self, candidate: int, chosen: list[int]) -> list[int]:
        """Return the raw candidates that are most correlated with a derived one."""
        neighbours: list[int] = []
        for other in self._neighbours(candidate):
            if len(neighbours) == MOST_ALTERNATIVES:
                break
            if (
                other not in chosen
                and self.candidates[other].levels == ()
                and not derived_name(self.candidates[other].name)
            ):
                neighbours.append(other)
        return neighbours

    def _neighbours(self, candidate: int) -> list[int]:
        """Return the candidates that are most correlated with one, the nearest first."""
        if candidate not in self._near:
            strength = np.zeros(self.problem.n_candidates)
            np.maximum.at(strength, self.problem.basis.owner, np.abs(self.problem.products(candidate)).max(axis=1))
            nearest = np.argsort(-strength, kind="stable")[: 4 * MOST_ALTERNATIVES]
            self._near[candidate] = [int(other) for other in nearest if strength[other] ** 2 >= PART_OF_RATIO]
        return self._near[candidate]

    def _left_with(
        self, model: LinearModel, members: tuple[int, ...], others: list[int], *further: np.ndarray
    ) -> tuple[float, int]:
        """Return the others' residual sum of squares when some candidates join with their products, those with the
        others too, and with further columns; and how many directions they add.
        """
        firsts = [self.candidates[member].first for member in members]
        products = [first * self.candidates[other].first for first in firsts for other in others]
        products += [first * second for first, second in itertools.combinations(firsts, 2)]
        bases = [self.problem.basis.columns[:, self.problem.basis.of(member)].astype(float) for member in members]
        parts = [*bases, *further]
        if products:
            parts.append(unit_columns(self.centring.weighted(np.column_stack(products))))
        rest, df = model.residual_with(np.hstack(parts))
        return max(float(rest @ rest), 1e-300), df

    def prune(self, response: np.ndarray, chosen: list[int]) -> list[Test]:
        """Remove the weakest candidate until every one's test is significant; return the tests of those that stay.

        Parameters
        ----------
        response : ndarray of float, shape (n_rows,)
            As in `others_model`.
        chosen : list of int
        """
        first = self.prefer_raw(response, chosen)
        tests = self._prune(response, first)
        kept = [test.candidate for test in tests]
        raw = kept if kept == chosen else self.prefer_raw(response, kept)  # nothing has changed: the answer is the same
        return tests if raw == kept else self._prune(response, raw)

    def _prune(self, response: np.ndarray, chosen: list[int]) -> list[Test]:
        chosen = list(chosen)
        while chosen:
            tests = [
                self.test(response, candidate, [other for other in chosen if other != candidate])
                for candidate in chosen
            ]
            weakest = max(tests, key=lambda test: (test.p_value, -test.partial_r2))
            if (
                weakest.p_value <= significance_level(self.problem, len(chosen))
                and weakest.partial_r2 >= MIN_PARTIAL_R2
            ):
                return tests
            chosen.remove(weakest.candidate)
        return []


def _is_original(problem: Problem, candidate: int, other: int) -> int:
    """Return 1 if a candidate screens another off from third ones, -1 if that one does, 0 if neither clearly does.

    Of a column and what was computed from it, the column has what third columns tell of both.
    """
    if candidate == other:
        return 0
    first, second = (problem.firsts_like(index).astype(float) for index in (candidate, other))
    between = first[other]
    first[[candidate, other]] = second[[candidate, other]] = 0.0
    strength = np.maximum(np.abs(first), np.abs(second))
    near = np.argsort(-strength, kind="stable")[:THIRD]
    near = near[strength[near] ** 2 * problem.n_independent > UNRELATED]
    left = max(1.0 - between**2, 1e-6)
    told = [
        np.minimum((a - between * b) ** 2 / (left * np.maximum(1.0 - b**2, 1e-6)), MOST_TOLD).sum()
        for a, b in ((first[near], second[near]), (second[near], first[near]))
    ]
    difference = float(told[0] - told[1])
    return int(np.sign(difference)) if abs(difference) > CLEAR else 0


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
