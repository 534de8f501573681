"""What all searches of a scope share: the candidates' bases, their products and autocorrelations, and what the rows are
worth; and the designs of one scope's searches, which differ in few candidates and in the weights of the rows.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from causeway.causal.data.observations import Candidate, Observations
from causeway.causal.statistics.basis import AT_ONCE, Basis, GroupCentring, build_basis, updated_basis
from causeway.numeric.effective_size import autocorrelations, kish_size, lag_count

MOST_WEIGHTED = 2
"""So many designs with rows weighted by their precision are kept for the next search, one for each stage, beside the
plain one.
"""


class Problem:
    """Candidates, their autocorrelations and what the rows are worth; shared by all searches of a scope.
    Autocorrelations are taken in the order of the basis' rows.

    Parameters
    ----------
    basis : Basis
    n_candidates : int
    n_independent : float
        Effective number of rows for the weights and the fixed effects, before autocorrelation.
    n_tests : int or None
        Number that the level is divided by; None for that of the candidates.

    Attributes
    ----------
    widths : dict of int to (ndarray of int, ndarray of int)
        By number of basis columns: the candidates that have so many, shape (n_members,), and the positions of their
        columns, shape (n_members, width).
    grams : dict of int to ndarray of float
        Likewise the products of each candidate's columns, shape (n_members, width, width).
    """

    def __init__(self, basis: Basis, n_candidates: int, n_independent: float, n_tests: int | None = None) -> None:
        self.basis = basis
        self.n_candidates = n_candidates
        self.n_independent = n_independent
        self.n_tests = n_tests or max(n_candidates, 1)
        self.widths: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.grams: dict[int, np.ndarray] = {}
        self._lags: dict[int, np.ndarray] = {}
        self._products: dict[int, np.ndarray] = {}
        self._with_response: tuple[np.ndarray, np.ndarray] | None = None
        counts = np.bincount(basis.owner, minlength=n_candidates)
        first = np.concatenate(([0], np.cumsum(counts)))
        self._alive = counts > 0
        self._firsts = first[:-1][self._alive]
        step = max(1, AT_ONCE // max(len(basis.columns), 1))
        for width in np.unique(counts[counts > 0]):
            members = np.flatnonzero(counts == width)
            columns = first[members][:, None] + np.arange(width)
            self.widths[int(width)] = (members, columns)
            parts = (basis.columns.T[some].astype(float) for some in np.split(columns, range(step, len(columns), step)))
            self.grams[int(width)] = np.concatenate([part @ part.transpose(0, 2, 1) for part in parts])

    @property
    def n_lags(self) -> int:
        """How many lags of autocorrelations are summed."""
        return lag_count(self.basis.columns.shape[0])

    @cached_property
    def lags(self) -> np.ndarray:
        """Autocorrelations of all basis columns, float32, shape (n_columns, n_lags)."""
        return autocorrelations(self.basis.columns, self.n_lags)

    def lags_of(self, candidate: int) -> np.ndarray:
        """Return the autocorrelations of a candidate's columns, float32, shape (k, n_lags): few of the candidates are
        ever asked for them.
        """
        if candidate not in self._lags:
            self._lags[candidate] = autocorrelations(self.basis.columns[:, self.basis.of(candidate)], self.n_lags)
        return self._lags[candidate]

    def products_with(self, columns: np.ndarray) -> np.ndarray:
        """Return the products of all basis columns with others.

        Parameters
        ----------
        columns : ndarray of float, shape (n_rows,) or (n_rows, k)

        Returns
        -------
        ndarray of float32, shape (n_columns,) or (n_columns, k)
        """
        return self.basis.columns.T @ columns.astype(np.float32)

    def products(self, candidate: int) -> np.ndarray:
        """Return the products of all basis columns with a candidate's, float32, shape (n_columns, k): many models
        hold the same few.
        """
        if candidate not in self._products:
            self._products[candidate] = self.products_with(self.basis.columns[:, self.basis.of(candidate)])
        return self._products[candidate]

    def firsts_like(self, candidate: int) -> np.ndarray:
        """Return the correlations of all candidates' first columns with a candidate's, float32, shape (n_candidates,);
        0 of one without columns.
        """
        correlations = np.zeros(self.n_candidates, np.float32)
        if self._alive[candidate]:
            correlations[self._alive] = self.products(candidate)[self._firsts, 0]
        return correlations

    def products_with_response(self, response: np.ndarray) -> np.ndarray:
        """Return the products of all basis columns with the response of a search, which all its models share.

        Parameters
        ----------
        response : ndarray of float, shape (n_rows,)

        Returns
        -------
        ndarray of float32, shape (n_columns,)
        """
        if self._with_response is None or self._with_response[0] is not response:
            self._with_response = (response, self.products_with(response))
        return self._with_response[1]


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
        design = self._built(candidates, self._weighted.pop(key, None), self.rows.weight * precision)
        self._weighted = {**dict(list(self._weighted.items())[1 - MOST_WEIGHTED :]), key: design}
        return design

    def _built(self, candidates: list[Candidate], old: Design | None, weights: np.ndarray) -> Design:
        """Return the design of some candidates; `old` is the last one with these weights."""
        if old is not None and [*map(id, old.candidates)] == [*map(id, candidates)]:
            return old
        centring = old.centring if old else GroupCentring(self.rows.configuration, weights)
        position = {id(candidate): number for number, candidate in enumerate(old.candidates if old else [])}
        new = [candidate for candidate in candidates if id(candidate) not in position]
        basis = build_basis([candidate.values for candidate in new], centring, [candidate.scores for candidate in new])
        if old is not None:
            basis = updated_basis(
                old.problem.basis, np.asarray([position.get(id(candidate), -1) for candidate in candidates]), basis
            )
        n_tests = len(candidates) + sum(candidate.name in self.tested_twice for candidate in candidates)
        problem = Problem(basis, len(candidates), independent_rows(self.rows), n_tests)
        return Design(candidates, self.rows.kernel, centring, problem)


def independent_rows(rows: Observations) -> float:
    """Return Kish's effective number of rows, less what the configurations' means cost."""
    n_configurations = int(rows.configuration.max()) + 1 if len(rows) else 0
    return kish_size(rows.weight) * max(len(rows) - n_configurations, 0) / max(len(rows), 1)
