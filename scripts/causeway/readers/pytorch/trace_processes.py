"""Which process the events of a trace are of: most traces are of one, but people merge those of several ranks into one
file, in which correlations of different processes are the same numbers.

Merging tools either write the rank into the arguments of every event (TraceLens), or a label before the process
(SGLang: "[TP03] 4711") or, as people's scripts do, behind it ("4711 (rank 3)"), or they append the events of one trace
to those of another, with changed numbers or names of processes or without. In the last case the events of a trace stand
together, and begin with operators of the host. Sources:
TraceLens/TraceFusion/trace_fuse.py, sglang/srt/utils/profile_merger.py.
"""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from causeway.readers.containers.chrome_json import Event
from causeway.readers.sink.processes import MOST_RANKS, Processes

MOST_RETURNS = 16
"""Returns to a process that came before, from which on events of several traces are taken as mixed, not as one trace
after the other; a profiler that is started again returns once.
"""

MOST_SEEN = 1 << 12
"""Numbers of processes remembered; so many processes of the host are mixed."""

HOST = ("calls", "operators")
"""What only the host does, by kinds of the column map."""

_LABEL = re.compile(
    r"\s*(\[(?:(?:global |world )?(?:rank|r|[cdemst]p|pp)[ :_-]?\d{1,9}[ ,_-]?){1,8}\]|rank[ :_-]?\d{1,9}(?!\d))",
    re.IGNORECASE,
)
_RANK = re.compile(r"(?<![a-z])(rank[ :_-]?\d{1,9}(?!\d))", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,9}")
LONGEST_PROCESS = 256
"""Characters of a process that are searched for a rank."""


@functools.lru_cache(maxsize=MOST_SEEN)
def label_of(pid: str) -> str | None:
    """Return the label of a rank before a process, or the rank in it, None if there is neither.

    >>> label_of("[TP03-DP01] 4711"), label_of("rank2_4711"), label_of("4711"), label_of("python 4711")
    ('[TP03-DP01]', 'rank2', None, None)
    >>> label_of("4711 (rank 3)"), label_of("0_rank1"), label_of("crank 3")
    ('rank 3', 'rank1', None)
    """
    match = _LABEL.match(pid) or _RANK.search(pid[:LONGEST_PROCESS])
    return match[1] if match else None


def rank_of(label: str) -> int | None:
    """Return the rank that a label says; None if it has several numbers, for several ways of being parallel.

    >>> rank_of("[TP03]"), rank_of("rank2"), rank_of("[TP03-DP01]")
    (3, 2, None)
    """
    numbers = _NUMBER.findall(label)
    return int(numbers[0]) if len(numbers) == 1 else None


class TraceProcesses:
    """The processes of one trace.

    Parameters
    ----------
    processes : Processes
        The sink's.
    kinds : mapping of str to str
        What a category, as it is written, gives; filled while the trace is read.
    """

    def __init__(self, processes: Processes, kinds: Mapping[str | None, str | None]) -> None:
        self._processes = processes
        self._kinds = kinds
        self._order: dict[int | str | None, int] = {}  # processes of the host without a label, as they come
        self._seen: set[tuple[object, str | None]] = set()  # processes, each with categories of its events
        self._current: int | str | None = None
        self._returns = 0
        self._operators = False
        self._told = False  # by labels, or by ranks in the arguments
        self._document: int | None = None  # the process of the document that is read, where its rank tells it

    def only(self) -> int:
        """Return the code of a trace's only process, or of its first."""
        return self._processes.code(("rank", -1))

    def next_document(self, first_rank: int | None, rank: int | None) -> None:
        """Note that a further document begins, and the ranks that the top levels of the first and of this one state:
        with another rank than that of the first it is of another process.
        """
        if first_rank is not None and rank is not None:
            self._document = self._processes.code(("rank", rank), rank) if rank != first_rank else self.only()
            if rank != first_rank:
                self._processes.state_rank(self.only(), first_rank)
                self._told = True

    def take_job(self, rank: int | None, size: int | None) -> None:
        """Note the rank that the top level of the trace states, if it is of one process, and of how many ranks the job
        is.
        """
        if rank is not None and not self.several:
            self._processes.state_rank(self.only(), rank)
        self._processes.world_size = size

    @property
    def several(self) -> bool:
        """Whether the trace is of several processes."""
        return self._told or len(self._order) > 1

    @property
    def mixed(self) -> bool:
        """Whether events of several processes alternate, so that nobody can say whose a device's event is; of traces
        without operators those of the device may stand before the first of the host.
        """
        unclear = self._returns > MOST_RETURNS or len(self._order) == MOST_SEEN
        unclear |= len(self._order) > 1 and not self._operators
        return unclear and not self._told

    def parts(self, events: list[Event]) -> Iterator[tuple[list[Event], bool]]:
        """Give events in pieces, each of one process as far as their order says so, and whether those of another
        process follow; `codes` is of the latest piece.
        """
        try:
            pairs = {(event.pid, event.cat) for event in events}
        except TypeError:  # a list or an object: no process
            pairs = {(event.pid, event.cat) for event in events if isinstance(event.pid, int | str)}
        begin = 0
        if len(self._order) > 1 or not pairs <= self._seen:
            self._seen = pairs if len(self._seen) > MOST_SEEN else self._seen | pairs
            for index, pid in self._changes(events):
                if self._current is not None and not self.mixed:
                    yield events[begin:index], True
                    begin = index
                self._current = pid
        yield events[begin:], False

    def _changes(self, events: list[Event]) -> list[tuple[int, int | str]]:
        """Return where events of another process of the host begin, and which."""
        changes = []
        current = self._current
        for index, event in enumerate(events):
            pid = event.pid
            if pid != current and self._kinds.get(event.cat) in HOST and _is_unlabelled(pid):
                self._returns += pid in self._order
                self._operators |= self._kinds[event.cat] == "operators"
                if len(self._order) < MOST_SEEN:
                    self._order.setdefault(pid, len(self._order))
                current = pid
                changes.append((index, pid))
        return changes

    def codes(self, events: Sequence[Event], ranks: list) -> np.ndarray:
        """Return the code of each event's process: by the rank in its arguments, else by the label of its process; in a
        trace without either, by its position in the file.

        Parameters
        ----------
        events : sequence of Event, n of them
        ranks : list, n values
            The rank in the arguments of each event, None where there is none.

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        in_text = any(type(event.pid) is str for event in events)
        if in_text or ranks.count(None) < len(ranks):
            told = [self._of(event.pid, rank) for event, rank in zip(events, ranks, strict=True)]
            if self._told:
                return np.array([self.only() if code is None else code for code in told])
        if self._document is not None:
            return np.full(len(ranks), self._document)
        number = 0 if self.mixed else self._order.get(self._current, 0)
        return np.full(len(ranks), self._processes.code(("trace", number)) if number else self.only())

    def _of(self, pid: object, rank: object) -> int | None:
        """Return the code that a rank or a label tells, None if neither does."""
        if type(rank) is int and 0 <= rank < MOST_RANKS:
            self._told = True
            return self._processes.code(("rank", rank), rank)
        label = label_of(pid) if type(pid) is str else None
        if label is None:
            return None
        self._told = True
        return self._processes.code(("label", label), rank_of(label))


def _is_unlabelled(pid: object) -> bool:
    """Return whether a process is a number or a text without a label."""
    return type(pid) is int or (type(pid) is str and label_of(pid) is None)
