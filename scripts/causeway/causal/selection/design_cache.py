"""What a search stands on: the candidates' bases with one weighting of the rows. What two searches share is built once."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from causeway.causal.basis import GroupCentring, build_basis, renewed
from causeway.causal.effective_size import kish_size
from causeway.causal.rows import Candidate, Rows
from causeway.causal.search import Problem

MOST_WEIGHTED = 2
"""So many with rows weighted by their precision are kept for the next search, one for each stage, beside the plain one."""


@dataclass(frozen=True)
class Ground:
    """Candidates of a search with one weighting of the rows.

    Attributes
    ----------
    candidates : list of Candidate
    kernel : ndarray of int, shape (n_rows,)
    centring : GroupCentring
    problem : Problem
    """

    candidates: list[Candidate]
    kernel: np.ndarray
    centring: GroupCentring
    problem: Problem


class Grounds:
    """The grounds of one scope's searches, which differ in few candidates.

    Parameters
    ----------
    rows : Rows
    twice : set of str
        Candidates of which two readings were compared: each counts as two tests.
    """

    def __init__(self, rows: Rows, twice: Collection[str] = ()) -> None:
        self.rows, self.twice = rows, twice
        self._plain: Ground | None = None
        self._weighted: dict[bytes, Ground] = {}

    def plain(self, candidates: list[Candidate]) -> Ground:
        """Return the ground of some candidates for rows weighted as they were sampled."""
        self._plain = self._built(candidates, self._plain, self.rows.weight)
        return self._plain

    def weighted(self, candidates: list[Candidate], precision: np.ndarray) -> Ground:
        """Return the ground for rows weighted by their precision as well, shape (n_rows,), which costs no rows."""
        key = precision.tobytes()
        found = self._built(candidates, self._weighted.pop(key, None), self.rows.weight * precision)
        self._weighted = {**dict(list(self._weighted.items())[1 - MOST_WEIGHTED :]), key: found}
        return found

    def _built(self, candidates: list[Candidate], old: Ground | None, weights: np.ndarray) -> Ground:
        """Return the ground of some candidates; `old` is the last one with these weights."""
        if old is not None and _same(old.candidates, candidates):
            return old
        centring = old.centring if old else GroupCentring(self.rows.configuration, weights)
        place = {id(one): number for number, one in enumerate(old.candidates if old else [])}
        new = [one for one in candidates if id(one) not in place]
        basis = build_basis([one.values for one in new], centring, [one.scores for one in new])
        if old is not None:
            basis = renewed(old.problem.basis, np.asarray([place.get(id(one), -1) for one in candidates]), basis)
        n_tests = len(candidates) + sum(one.name in self.twice for one in candidates)
        problem = Problem.of(basis, len(candidates), independent_rows(self.rows), n_tests)
        return Ground(candidates, self.rows.kernel, centring, problem)


def _same(ones: list[Candidate], others: list[Candidate]) -> bool:
    return len(ones) == len(others) and all(one is other for one, other in zip(ones, others, strict=True))


def independent_rows(rows: Rows) -> float:
    """Return Kish's effective size, less what the configurations' means cost."""
    n_configurations = int(rows.configuration.max()) + 1 if len(rows) else 0
    return kish_size(rows.weight) * max(len(rows) - n_configurations, 0) / max(len(rows), 1)
