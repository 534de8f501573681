"""A job whose scheduler is known: hosts, streams, events and collectives of several ranks, run item by item.

A program lists what the host of each rank does. `run` plays it and gives what an export of the run would hold; with
other costs the same program runs again: what a change truly saves.
"""

from dataclasses import dataclass, field

import numpy as np

LAUNCH, WAIT, SYNCHRONISE, CODE = range(4)
"""Kinds of items."""
COMPUTE, NETWORK, COPIES = range(3)
"""Streams."""
COLLECTIVE = 5
COPY = 6
"""Codes of names; smaller ones are kernels."""
START_UP = 3_200
BETWEEN = 900
SEEN = 1_200
"""Nanoseconds from a launch call to its work, between works of a stream, and until the host sees an end."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What things cost, as factors of the program's own durations; one kernel has a factor of its own."""

    collective: float = 1.0
    copy: float = 1.0
    launch: float = 1.0
    host: float = 1.0
    slow: float = 1.25
    kernel: int = -1
    kernel_factor: float = 1.0


@dataclass(frozen=True)
class Item:
    """One thing that each host does: its time by rank, and for a launch that of the work by rank."""

    kind: int
    host_ns: np.ndarray
    stream: int = 0
    name: int = 0
    work_ns: np.ndarray | None = None
    source: int = 0


@dataclass(frozen=True)
class Piece:
    """Device work that was asked for."""

    asked: int
    number: int
    name: int
    ns: int
    events: tuple[int, ...]


class ProgramOf:
    """The items of a training job, drawn from a seed; some jobs overlap their collectives with compute."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.ranks = int(self.rng.integers(2, 5))
        self.items = []
        layers = int(self.rng.integers(3, 8))
        mean = self.rng.uniform(8_000, 120_000, 4)
        network = self.rng.uniform(20_000, 400_000)
        self.launch = self.rng.uniform(2_000, 9_000)
        self.code = self.rng.uniform(1_000, 30_000)
        copied = self.rng.uniform(20_000, 300_000)
        overlaps = self.rng.random() < 0.6
        for _ in range(6):
            self.items.append(Item(CODE, self.around(self.code * self.rng.uniform(2, 12), 0.3)))
            self.launched(COPIES, COPY, self.around(copied))
            for layer in range(layers):
                after = COPIES if layer == 0 else None
                self.launched(COMPUTE, layer % 4, self.around(mean[layer % 4]), after)
            for layer in range(layers):
                self.launched(COMPUTE, layer % 4, self.around(2 * mean[layer % 4]))
                if layer % 2 == 1 or layer == layers - 1:
                    self.launched(NETWORK, COLLECTIVE, np.full(self.ranks, self.around(network)[0]), COMPUTE)
                    if not overlaps:
                        self.items.append(Item(WAIT, self.around(900), COMPUTE, source=NETWORK))
            self.launched(COMPUTE, 4, self.around(mean[0] / 2), NETWORK)
            self.items.append(Item(SYNCHRONISE, self.around(1_500)))

    def around(self, value, spread=0.1):
        """Return a duration of each rank."""
        return np.maximum(value * self.rng.lognormal(0, spread, self.ranks), 300).astype(np.int64)

    def launched(self, stream, name, ns, after=None):
        """Add host code, a wait of the stream for another one if asked for, and a launch."""
        self.items.append(Item(CODE, self.around(self.code, 0.4)))
        if after is not None:
            self.items.append(Item(WAIT, self.around(900), stream, source=after))
        self.items.append(Item(LAUNCH, self.around(self.launch, 0.2), stream, name, ns))


@dataclass
class Rank:
    """The state of one rank."""

    now: int
    queues: list = field(default_factory=lambda: [[], [], []])
    finished: dict = field(default_factory=dict)
    last: list = field(default_factory=lambda: [None] * 3)
    pending: list = field(default_factory=lambda: [(), (), ()])
    free: list = field(default_factory=lambda: [-BETWEEN] * 3)
    position: int = 0
    number: int = 0
    collective: int = 0


class Run:
    """A program played: `work` (start, end, rank, stream, name, correlation), `calls` (start, end, rank, name,
    correlation) and `waits` (start, rank, stream, source), ordered by start; `marks` (start, end, rank, name), host code
    that has a name.
    """

    def __init__(self, program, costs=None, slow_rank=0):
        self.items = program.items
        self.costs = costs or Costs()
        self.slow_rank = slow_rank
        self.ranks = [Rank(1_000_000 + 700 * number) for number in range(program.ranks)]
        self.joint = {}
        self.work = []
        self.calls = []
        self.waits = []
        self.marks = []
        moved = True
        while moved:
            moved = False
            for number, rank in enumerate(self.ranks):
                moved |= self._host(number, rank)
                for stream in range(3):
                    while self._device(number, rank, stream):
                        moved = True
        self.work = np.array(sorted(self.work))
        self.calls = np.array(sorted(self.calls))
        self.waits = np.array(sorted(self.waits))

    @property
    def span(self):
        """Time from the first work or call to the last end."""
        both = np.concatenate([self.work[:, :2], self.calls[:, :2]])
        return both[:, 1].max() - both[:, 0].min()

    def _host(self, number, rank):
        """Let the host go on until it has to wait; tell whether it did."""
        begun = rank.position
        while rank.position < len(self.items):
            item = self.items[rank.position]
            length = int(item.host_ns[number] * self.costs.host)
            if item.kind == WAIT:
                self.calls.append((rank.now, rank.now + length, number, 2, -1))
                self.waits.append((rank.now, number, item.stream, item.source))
                if rank.last[item.source] is not None:
                    rank.pending[item.stream] += (rank.last[item.source],)
            elif item.kind == LAUNCH:
                length = int(item.host_ns[number] * self.costs.host * self.costs.launch)
                rank.number += 1
                self.calls.append((rank.now, rank.now + length, number, 0, rank.number))
                asked = rank.now + length
                events = rank.pending[item.stream]
                rank.queues[item.stream].append(Piece(asked, rank.number, item.name, int(item.work_ns[number]), events))
                rank.pending[item.stream] = ()
                rank.last[item.stream] = rank.number
            elif item.kind == SYNCHRONISE:
                known = [one for one in rank.last if one]
                if any(rank.queues) or any(one not in rank.finished for one in known):
                    break
                ready = max((rank.finished[one] for one in known), default=0)
                if ready > rank.now:
                    length = max(int(item.host_ns[number]), ready + SEEN - rank.now)
                self.calls.append((rank.now, rank.now + length, number, 1, -1))
            elif item.name:
                self.marks.append((rank.now, rank.now + length, number, item.name))
            rank.now += length
            rank.position += 1
        return rank.position > begun

    def _device(self, number, rank, stream):
        """Start the next work of a stream if all that it waits for has come; tell whether it did."""
        if not rank.queues[stream]:
            return False
        piece = rank.queues[stream][0]
        if any(event not in rank.finished for event in piece.events):
            return False
        ends = [rank.free[stream], *(rank.finished[event] for event in piece.events)]
        start = max(piece.asked + START_UP, max(ends) + BETWEEN)
        if piece.name == COLLECTIVE:
            return self._collective(number, rank, piece, start)
        factor = self.costs.copy if piece.name == COPY else self.costs.slow if number == self.slow_rank else 1.0
        factor *= self.costs.kernel_factor if piece.name == self.costs.kernel else 1.0
        self._finish(number, stream, start, start + int(piece.ns * factor))
        return True

    def _collective(self, number, rank, piece, start):
        """Let a rank come to a collective; it ends on all ranks together, once the last has come."""
        held = self.joint.setdefault(rank.collective, {})
        held[number] = start
        if len(held) < len(self.ranks):
            return False
        end = max(held.values()) + int(piece.ns * self.costs.collective)
        for one, other in enumerate(self.ranks):
            self._finish(one, NETWORK, held[one], end)
            other.collective += 1
        return True

    def _finish(self, number, stream, start, end):
        rank = self.ranks[number]
        piece = rank.queues[stream].pop(0)
        rank.finished[piece.number] = end
        rank.free[stream] = end
        self.work.append((start, end, number, stream, piece.name, piece.number))
