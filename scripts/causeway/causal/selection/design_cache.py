"""Design matrices of a search: the candidates' bases with one weighting of the rows, and a cache of them; what two
searches share is built once.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from causeway.causal.data.observations import Candidate, Observations
from causeway.causal.selection.problem import Problem
from causeway.causal.statistics.basis import GroupCentring, build_basis, updated_basis
from causeway.numeric.effective_size import kish_size

MOST_WEIGHTED = 2
"""So many designs with rows weighted by their precision are kept for the next search, one for each stage, beside the
plain one.
"""


@dataclass(frozen=True)
class Design:
    """Candidates of a search with one weighting of the rows.

    Attributes
    ----------
    candidates : list of Candidate
    kernel : ndarray of int, shape (n_rows,)
        The code of each row's kernel.
    centring : GroupCentring
    problem : Problem
    """

    candidates: list[Candidate]
    kernel: np.ndarray
    centring: GroupCentring
    problem: Problem


class DesignCache:
    """The designs of one scope's searches, which differ in few candidates.

    Parameters
    ----------
    rows : Observations
    tested_twice : set of str
        Candidates of which two scales were compared: each counts as two tests.
    """

    def __init__(self, rows: Observations, tested_twice: Collection[str] = ()) -> None:
        self.rows = rows
        self.tested_twice = tested_twice
        self._plain: Design | None = None
        self._weighted: dict[bytes, Design] = {}

    def plain(self, candidates: list[Candidate]) -> Design:
        """Return the design of some candidates for rows weighted as they were sampled."""
        self._plain = self._built(candidates, self._plain, self.rows.weight)
        return self._plain

    def weighted(self, candidates: list[Candidate], precision: np.ndarray) -> Design:
        """Return the design for rows weighted by their precision as well, which costs no effective rows.

        Parameters
        ----------
        candidates : list of Candidate
        precision : ndarray of float, shape (n_rows,), positive
            Inverse variance of each row's residual, in any unit.
        """
        key = precision.tobytes()
        found = self._built(candidates, self._weighted.pop(key, None), self.rows.weight * precision)
        self._weighted = {**dict(list(self._weighted.items())[1 - MOST_WEIGHTED :]), key: found}
        return found

    def _built(self, candidates: list[Candidate], old: Design | None, weights: np.ndarray) -> Design:
        """Return the design of some candidates; `old` is the last one with these weights."""
        if old is not None and _same(old.candidates, candidates):
            return old
        centring = old.centring if old else GroupCentring(self.rows.configuration, weights)
        position = {id(one): number for number, one in enumerate(old.candidates if old else [])}
        new = [one for one in candidates if id(one) not in position]
        basis = build_basis([one.values for one in new], centring, [one.scores for one in new])
        if old is not None:
            basis = updated_basis(
                old.problem.basis, np.asarray([position.get(id(one), -1) for one in candidates]), basis
            )
        n_tests = len(candidates) + sum(one.name in self.tested_twice for one in candidates)
        problem = Problem.of(basis, len(candidates), independent_rows(self.rows), n_tests)
        return Design(candidates, self.rows.kernel, centring, problem)


def _same(ones: list[Candidate], others: list[Candidate]) -> bool:
    return len(ones) == len(others) and all(one is other for one, other in zip(ones, others, strict=True))


def independent_rows(rows: Observations) -> float:
    """Return Kish's effective number of rows, less what the configurations' means cost."""
    n_configurations = int(rows.configuration.max()) + 1 if len(rows) else 0
    return kish_size(rows.weight) * max(len(rows) - n_configurations, 0) / max(len(rows), 1)
