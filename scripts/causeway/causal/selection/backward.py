"""Backward pruning: every chosen candidate must still add something when the others may act in any smooth way and in pairs.

Forward selection describes each effect by two or three functions. What these miss of a true cause is picked up by its proxies. Here the
others get piecewise straight lines over their ranks and pairwise products as well, so that only a candidate with news of its own stays.
"""

import numpy as np
from scipy.special import ndtr

from causeway.causal.basis import GroupCentring
from causeway.causal.determinism import derived_name
from causeway.causal.rows import Candidate
from causeway.causal.search import EXCHANGE_GAIN, MIN_PARTIAL_R2, MIN_TEST_SIZE, Model, Problem, Test, level, model_of, size_behind

KNOTS = (0.02, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9, 0.98)
"""Quantiles at which the piecewise straight lines may bend."""
ROOM = 6
"""At least so many independent rows per column of the others' model; beyond that, products and then bends are left out."""
RIVALS = 6
RIVAL_CORRELATION = 0.3
RAW_LOSS = 10.0
"""Twice the log-likelihood that a raw counter may lack against a ratio that it replaces."""


def flexible_functions(candidate: Candidate) -> np.ndarray:
    """Return functions of a candidate, shape (n_rows, k): lines with bends at `KNOTS` of the ranks, the values, a convex tail."""
    values = candidate.values.astype(float)
    if values.ndim > 1:
        return values
    if candidate.two_valued:
        return values[:, None]
    ranks = ndtr(candidate.scores)
    bends = [np.maximum(ranks - knot, 0.0) for knot in KNOTS]
    return np.column_stack([*bends, values, np.exp(0.7 * np.clip(candidate.scores, -3, 3))])


def unit_columns(columns: np.ndarray) -> np.ndarray:
    """Return columns of unit length, without those that are zero."""
    lengths = np.sqrt((columns**2).sum(axis=0))
    return columns[:, lengths > 1e-8] / lengths[lengths > 1e-8]


class Pruner:
    """Prunes the choices of a scope's searches.

    Parameters
    ----------
    problem : Problem
    candidates : list of Candidate
    centring : GroupCentring
    kernels : ndarray of int, shape (n_rows,)
        Where several kernels are searched together, the others may act differently in each.
    given : tuple of int
        Candidates that are in every model beside the others.
    """

    def __init__(
        self, problem: Problem, candidates: list[Candidate], centring: GroupCentring, kernels: np.ndarray, given: tuple[int, ...] = ()
    ) -> None:
        self.problem, self.candidates, self.centring, self.kernels, self.given = problem, candidates, centring, kernels, given
        self.n_kernels = int(kernels.max()) + 1 if kernels.size else 0
        self._flexible: dict[int, np.ndarray] = {}
        self._near: dict[int, list[int]] = {}

    def flexible(self, candidate: int) -> np.ndarray:
        """Return a candidate's flexible functions, centred, weighted, of unit length."""
        if candidate not in self._flexible:
            self._flexible[candidate] = unit_columns(self.centring.weighted(flexible_functions(self.candidates[candidate])))
        return self._flexible[candidate]

    def products(self, others: list[int]) -> np.ndarray:
        """Return the pairwise products of the others' first functions, centred, weighted, of unit length."""
        single = [self.candidates[other].first for other in others]
        pairs = [a * b for i, a in enumerate(single) for b in single[i + 1 :]]
        if not pairs:
            return np.zeros((self.problem.basis.columns.shape[0], 0))
        return unit_columns(self.centring.weighted(np.column_stack(pairs)))

    def by_kernel(self, others: list[int]) -> np.ndarray:
        """Return the others' first functions in each kernel alone, centred, weighted, of unit length."""
        parts = [self.candidates[other].first * (self.kernels == k) for other in others for k in range(self.n_kernels)]
        return unit_columns(self.centring.weighted(np.column_stack(parts)))

    def others_model(self, response: np.ndarray, others: list[int], without: tuple[int, ...] = ()) -> Model:
        """Return the model of the others: their bases, and as many of the flexible functions as the rows can carry.

        What is `given` belongs to it but for those that it must be `without`.
        """
        model = model_of(self.problem, response, [*others, *(one for one in self.given if one not in others and one not in without)])
        room = self.problem.n_independent / ROOM - model.frame.shape[1]
        if others and self.n_kernels > 1 and len(others) * (self.n_kernels - 1) < room:
            model.add(self.by_kernel(others))
            room = self.problem.n_independent / ROOM - model.frame.shape[1]
        bends = [self.flexible(other) for other in others]
        if bends and sum(part.shape[1] for part in bends) < room:
            model.add(np.hstack(bends))
            room = self.problem.n_independent / ROOM - model.frame.shape[1]
        if len(others) > 1 and len(others) * (len(others) - 1) / 2 < room:
            model.add(self.products(others))
        return model

    def test(self, response: np.ndarray, candidate: int, others: list[int]) -> Test:
        """Test a candidate given the others; of several kernels it may act differently in each, like the others."""
        model = self.others_model(response, others, (candidate,))
        columns = self.problem.basis.columns[:, self.problem.basis.of(candidate)]
        if self.n_kernels > 1 and self.n_kernels < self.problem.n_independent / ROOM - model.frame.shape[1]:
            columns = np.hstack([columns, self.by_kernel([candidate])])
        residual, df = model.residual_with(columns)
        before = float(model.residual @ model.residual)
        explained = np.asarray([before - float(residual @ residual)])
        size = size_behind(self.problem, candidate, residual)
        p_values, partial = model.tests(explained, np.asarray([df]), np.asarray([size]))
        p_value = float(p_values[0]) if size >= MIN_TEST_SIZE else 1.0
        return Test(candidate, p_value, float(partial[0]), df, size)

    def prefer_raw(self, response: np.ndarray, chosen: list[int]) -> list[int]:
        """Exchange ratios, rates and means for a raw counter that, acting with the other causes, explains as much.

        A ratio of two counters mimics their interaction, which the forward search cannot see; the flexible model can. What is a ratio is
        told by its name; where names do not tell, another counter must fit better, less what the surroundings say.
        """
        chosen, n_rows = list(chosen), self.problem.n_independent
        for place, candidate in enumerate(chosen):
            others = [other for other in chosen if other != candidate]
            named, rivals = derived_name(self.candidates[candidate].name), self._raw_neighbours(candidate, chosen)
            if not named:
                rivals = [rival for rival in rivals if self._is_counter(candidate) and self._is_counter(rival)]
            if not rivals:
                continue
            model = self.others_model(response, others, (candidate, *rivals))
            own = self._left_with(model, candidate, others)
            score = {rival: n_rows * np.log(self._left_with(model, rival, others) / own) for rival in rivals}
            limit = max(RAW_LOSS, 2 * MIN_PARTIAL_R2 * n_rows)
            if not named:
                score = {rival: loss - self.problem.surroundings.preference(rival, candidate) for rival, loss in score.items()}
                limit = -EXCHANGE_GAIN
            best = min(rivals, key=score.__getitem__)
            if score[best] < limit:
                chosen[place] = best
        return chosen

    def _is_counter(self, candidate: int) -> bool:
        """Tell whether a candidate is a number that a profiler counted: only such columns are computed from each other."""
        return self.candidates[candidate].tier == "counter" and self.candidates[candidate].levels == ()

    def _raw_neighbours(self, candidate: int, chosen: list[int]) -> list[int]:
        """Return the raw candidates that are most correlated with a derived one."""
        found = []
        for other in self._neighbours(candidate):
            if len(found) == RIVALS:
                break
            if other not in chosen and self.candidates[other].levels == () and not derived_name(self.candidates[other].name):
                found.append(other)
        return found

    def _neighbours(self, candidate: int) -> list[int]:
        """Return the candidates that are most correlated with one, the nearest first."""
        if candidate not in self._near:
            strength = np.zeros(self.problem.n_candidates)
            np.maximum.at(strength, self.problem.basis.owner, np.abs(self.problem.products(candidate)).max(axis=1))
            nearest = np.argsort(-strength, kind="stable")[: 4 * RIVALS]
            self._near[candidate] = [int(other) for other in nearest if strength[other] >= RIVAL_CORRELATION]
        return self._near[candidate]

    def _left_with(self, model: Model, candidate: int, others: list[int]) -> float:
        """Return what the others' model leaves when the candidate joins it with its flexible functions and products."""
        first = self.candidates[candidate].first
        parts = [self.problem.basis.columns[:, self.problem.basis.of(candidate)].astype(float), self.flexible(candidate)]
        if others:
            products = np.column_stack([first * self.candidates[other].first for other in others])
            parts.append(unit_columns(self.centring.weighted(products)))
        rest, _ = model.residual_with(np.hstack(parts))
        return max(float(rest @ rest), 1e-300)

    def prune(self, response: np.ndarray, chosen: list[int]) -> list[Test]:
        """Remove the weakest candidate until every one's test holds; return the tests of those that stay."""
        first = self.prefer_raw(response, chosen)
        tests = self._prune(response, first)
        kept = [test.candidate for test in tests]
        raw = kept if kept == chosen else self.prefer_raw(response, kept)  # nothing has changed: the answer is the same
        return tests if raw == kept else self._prune(response, raw)

    def _prune(self, response: np.ndarray, chosen: list[int]) -> list[Test]:
        chosen = list(chosen)
        while chosen:
            tests = [self.test(response, candidate, [other for other in chosen if other != candidate]) for candidate in chosen]
            weakest = max(tests, key=lambda test: (test.p_value, -test.partial_r2))
            if weakest.p_value <= level(self.problem, len(chosen)) and weakest.partial_r2 >= MIN_PARTIAL_R2:
                return tests
            chosen.remove(weakest.candidate)
        return []
