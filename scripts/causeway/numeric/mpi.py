"""MPI ranks: the check of size, exact reductions, and how all ranks end when one fails. The only module that imports
mpi4py.

Results must not depend on the number of ranks. So reductions here take integers, minima and maxima only: floating-point
sums depend on the order of their terms, exact integers do not. Without a launcher there is one rank, and nothing needs
MPI to be installed.
"""

import contextlib
import heapq
import importlib
import logging
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np

from causeway.core.errors import CausewayError
from causeway.core.files.machine_errors import in_words
from causeway.core.installation import keep_pandas_out
from causeway.core.logs import LOG, log_to

T = TypeVar("T")
Key = TypeVar("Key")
FORWARDED_S = 0.5
"""So long a rank that ends all waits first: what the launcher has not yet forwarded of its words by then is lost."""
LONGEST_NAP_S = 2e-3


class _AgreedError(CausewayError):
    """An error that every rank has been told of."""


class Ranks:
    """The processes that share one analysis.

    Attributes
    ----------
    rank, size : int
        This process's number, 0 to size - 1, and the number of processes. Rank 0 alone writes results.
    """

    def __init__(self, comm: Any = None) -> None:
        self._comm = comm
        self.rank: int = 0 if comm is None else comm.Get_rank()
        self.size: int = 1 if comm is None else comm.Get_size()

    @property
    def first(self) -> bool:
        """Whether this is rank 0, the one that writes."""
        return self.rank == 0

    def share_of(self, costs: Sequence[float]) -> list[int]:
        """Return the pieces that this rank works on, ascending, where whole pieces (exports, say) are dealt to ranks:
        the largest first, each to the rank that has the least so far (R. L. Graham, SIAM J. Appl. Math. 17 (1969)
        416: the busiest rank has at most 4/3 of the best possible).

        Every rank computes the same from the same costs; nothing is exchanged.

        Parameters
        ----------
        costs : sequence of float, shape (pieces,)
            Proportional to the expected times.
        """
        loads: list[tuple[float, int]] = [(0, rank) for rank in range(self.size)]
        pieces = []
        for piece in sorted(range(len(costs)), key=lambda piece: (-costs[piece], piece)):
            load, rank = heapq.heappop(loads)
            heapq.heappush(loads, (load + costs[piece], rank))
            if rank == self.rank:
                pieces.append(piece)
        return sorted(pieces)

    def total(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of each element over ranks.

        Parameters
        ----------
        values : ndarray of int64, shape (...), the same on every rank

        Returns
        -------
        ndarray of int64, shape (...), on every rank

        Raises
        ------
        TypeError
            For any other type: sums of floats depend on the order of their terms.
        """
        if values.dtype != np.int64:
            raise TypeError(f"sums over ranks are exact, so of int64, not {values.dtype}")
        return self._reduce(values, "SUM")

    def lowest(self, values: np.ndarray) -> np.ndarray:
        """Return the smallest of each element over ranks.

        Parameters
        ----------
        values : ndarray of numbers, shape (...), the same on every rank

        Returns
        -------
        ndarray of that type, shape (...), on every rank
        """
        return self._reduce(values, "MIN")

    def highest(self, values: np.ndarray) -> np.ndarray:
        """Return the largest of each element over ranks.

        Parameters
        ----------
        values : ndarray of numbers, shape (...), the same on every rank

        Returns
        -------
        ndarray of that type, shape (...), on every rank
        """
        return self._reduce(values, "MAX")

    def collect(self, value: T) -> list[T] | None:
        """Bring every rank's value to rank 0, in rank order; None elsewhere."""
        self._meet()
        return [value] if self._comm is None else self._comm.gather(value, root=0)

    def stack(self, values: np.ndarray) -> np.ndarray | None:
        """Bring arrays to rank 0, one behind the other in rank order; None elsewhere.

        They are received into the whole array: `collect` would hold everything three times.

        Parameters
        ----------
        values : ndarray, shape (n_rows, ...)
            Alike on every rank but for the number of rows.

        Returns
        -------
        ndarray, shape (n_rows of all ranks, ...), or None
        """
        lengths = self.collect(len(values))
        if self._comm is None:
            return values
        if lengths is None:
            self._comm.Send(np.ascontiguousarray(values), dest=0)
            return None
        whole = np.empty((sum(lengths), *values.shape[1:]), values.dtype)
        whole[: lengths[0]] = values
        for rank, end in enumerate(np.cumsum(lengths).tolist()):
            if rank:
                self._comm.Recv(whole[end - lengths[rank] : end], source=rank)
        return whole

    def exchange(self, value: T) -> list[T]:
        """Give every rank's value to every rank, in rank order."""
        self._meet()
        return [value] if self._comm is None else self._comm.allgather(value)

    def share(self, value: T) -> T:
        """Give rank 0's value to every rank."""
        self._meet()
        return value if self._comm is None else self._comm.bcast(value, root=0)

    def of_first(self, find: Callable[[], T]) -> T:
        """Return on every rank what a function returns on rank 0, where alone it is called.

        Raises
        ------
        CausewayError
            On every rank, if the function raised anything.
        """
        results: list[T] = []
        with self.together():
            if self.first:
                results.append(find())
        return self.share(results)[0]

    def load(self, *modules: str) -> None:
        """Import modules on one rank of each node, and then on the others: functions are compiled when their modules
        are imported, unless another process left them in the cache. Arrow does without pandas from then on.
        """
        if self._comm is None:
            _import(modules)
            return
        from mpi4py import MPI

        node = self._comm.Split_type(MPI.COMM_TYPE_SHARED)
        try:
            if node.Get_rank() == 0:
                _import(modules)
        finally:
            self._meet(node)
        if node.Get_rank() > 0:
            _import(modules)
        node.Free()

    def _meet(self, comm: Any = None) -> None:
        """Wait asleep until every rank has come here: in MPI's own calls ranks wait at full speed, at the cost of
        those that work.
        """
        if self._comm is None:
            return
        request = (comm or self._comm).Ibarrier()
        nap = 1e-5
        while not request.Test():
            time.sleep(nap)
            nap = min(2 * nap, LONGEST_NAP_S)

    def _reduce(self, values: np.ndarray, operation: str) -> np.ndarray:
        if self._comm is None:
            return values.copy()
        from mpi4py import MPI

        self._meet()
        result = np.empty_like(values)
        self._comm.Allreduce(np.ascontiguousarray(values), result, op=getattr(MPI, operation))
        return result

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Run a block in which ranks work alone; if it fails on any, it fails on all, with the error of the lowest such
        rank.

        No other method may be called inside the block: a rank that failed would not answer.

        Raises
        ------
        CausewayError
            On every rank, if the block raised anything on one of them.
        """
        failure: tuple[str, str | None] | None = None
        try:
            yield
        except CausewayError as error:
            failure = (str(error), None)
        except Exception as error:
            failure = (in_words(error), traceback.format_exc())
        failures = [(rank, *reported) for rank, reported in enumerate(self.exchange(failure)) if reported]
        if failures:
            rank, sentence, trace = failures[0]
            if trace and self.first:
                LOG.error("rank %d of %d: %s", rank, self.size, trace)
            raise _AgreedError(sentence)


def start(requested: int) -> Ranks:
    """Return the ranks of this program, after checking that as many were started as were asked for.

    Parameters
    ----------
    requested : int
        The number of ranks that the launcher was told to start.

    Raises
    ------
    CausewayError
        If the number differs: a launcher of another MPI library starts N programs of one rank each, and each would do
        the whole work.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        if requested == 1:
            return Ranks()
        raise CausewayError(
            f"{requested} ranks were asked for, but MPI cannot be loaded ({error}); install mpi4py and mpich from the"
            " lock"
        ) from None
    ranks = Ranks(MPI.COMM_WORLD)
    if ranks.size != requested:
        raise CausewayError(
            f"{requested} ranks were asked for, but this program was started as one of {ranks.size}: the launcher does"
            " not belong to the"
            " MPI library of this Python. Set the resource `mpi` of the rule to the one that does: locally the"
            " `mpiexec` beside this Python"
            f' ({sys.prefix}/bin/mpiexec), on Slurm "srun --mpi=pmi2", as in'
            f' --set-resources "bin_launches:mpi=srun --mpi=pmi2"; or start {ranks.size} with tasks={ranks.size}'
        )
    return ranks


@contextlib.contextmanager
def ending_together(requested: int, log: str | None) -> Iterator[Ranks]:
    """Run a whole MPI program: rank 0 alone writes the log and says what failed, and every rank ends with the same exit
    status.

    An error that ranks have agreed on (`Ranks.together`) ends each of them with status 1; any other, which the others
    cannot know of, aborts them.
    """
    ranks: Ranks | None = None
    try:
        ranks = start(requested)
        _log(ranks, log)
        yield ranks
    except CausewayError as error:
        if ranks is None:  # the check of size: every process comes here
            ranks = Ranks(_world())
            _log(ranks, log)
            _end(ranks, str(error), agreed=True)
        _end(ranks, str(error), agreed=isinstance(error, _AgreedError))
    except Exception as error:
        LOG.error("%s", traceback.format_exc())
        _end(ranks or Ranks(_world()), in_words(error), agreed=False)


def merged(parts: Iterable[Mapping[Key, T]]) -> dict[Key, T]:
    """Return one mapping of those of several ranks, which have no key in common, in the order of the keys."""
    return dict(sorted((pair for part in parts for pair in part.items()), key=itemgetter(0)))


def _import(modules: Sequence[str]) -> None:
    for name in modules:
        importlib.import_module(name)
    keep_pandas_out()


def _log(ranks: Ranks, log: str | None) -> None:
    if ranks.first:
        log_to(log)
    else:
        logging.basicConfig(level=logging.ERROR, handlers=[logging.StreamHandler(sys.stderr)], force=True)


def _world() -> Any:
    mpi = sys.modules.get("mpi4py.MPI")
    return None if mpi is None else mpi.COMM_WORLD


def _end(ranks: Ranks, sentence: str, agreed: bool) -> None:
    if ranks.first or not agreed:
        LOG.error("%s", sentence)
        sys.stderr.write(f"error: {sentence}\n")
        sys.stderr.flush()
    if ranks.size > 1 and not agreed:
        time.sleep(FORWARDED_S)
        ranks._comm.Abort(1)
    if ranks.size > 1 or "mpi4py.run" in sys.modules:
        # with MPI already closed, `python -m mpi4py` does not take the exit status for a crash and comment on it
        mpi = sys.modules.get("mpi4py.MPI")
        if mpi is not None:
            mpi.Finalize()
    raise SystemExit(1)
