"""Why the devices of one export were idle: one pass over its device events and its host threads.

Sums of idle pieces by device, reason and detail: of the whole run, and of each step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

import numpy as np

from causeway.core.codes import MIGRATED_BY_HOST, MIGRATIONS, NO_CALLS
from causeway.events.device_events import UNKNOWN
from causeway.events.event_blocks import CHUNK_ROWS, GPU_TABLES, Block
from causeway.events.few_values import RowNumbers, few_distinct
from causeway.numeric.intervals import meetings
from causeway.waiting.dependencies import UNRECORDED
from causeway.waiting.idle import gaps, reason_words
from causeway.waiting.idle.activities import Activities
from causeway.waiting.idle.event_waits import NONE, EventWaits
from causeway.waiting.idle.gaps import PIECE, STATE, add_pieces
from causeway.waiting.idle.host_timeline import CALL_SLOTS, HostTimeline
from causeway.waiting.idle.named_events import FIRST_COPY, NamedEvents
from causeway.waiting.idle.reason_words import NAMES
from causeway.waiting.idle.stack_sweep import USER
from causeway.waiting.idle.taken_time import ProfilerTime, TakenTime
from causeway.waiting.steps_by_rank import Steps
from causeway.waiting.taken_gpus import TakenGpus


class IdleSums:
    """Exact sums of pieces.

    Attributes
    ----------
    steps : dict of (int, int, int, int) to int
        By device's row, step, reason and detail's code: ns.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._whole = np.zeros((0, len(NAMES), 0), np.int64)
        self.steps: dict[tuple[int, ...], int] = {}

    def take(
        self,
        pieces: np.ndarray,
        detail: np.ndarray,
        codes: int,
        rank_of: list[int],
    ) -> None:
        """Take pieces.

        Parameters
        ----------
        pieces : ndarray of int64, shape (n, 7)
            `gaps.PIECE`.
        detail : ndarray of int64, shape (n,)
            Code of each piece's detail.
        codes : int
            How many codes there are so far: all are below.
        rank_of : list of int
            Rank of each device's row.
        """
        self._make_room(len(rank_of), codes)
        add_pieces(pieces, detail, self._whole)
        if not self._steps:
            return
        device, reason, begin, end = (
            np.ascontiguousarray(pieces[:, PIECE.index(name)]) for name in ("device", "reason", "begin", "end")
        )
        ranks = np.array(rank_of, np.int64)[device]
        for rank in np.unique(ranks).tolist():
            if rank in self._steps:
                of_rank = ranks == rank
                self._split([column[of_rank] for column in (device, reason, detail, begin, end)], *self._steps[rank])

    def _make_room(self, devices: int, codes: int) -> None:
        """Make the sums large enough for so many devices and codes: `add_pieces` does not look where it writes."""
        held = self._whole
        if devices > held.shape[0] or codes > held.shape[2]:
            # codes come one by one: twice the room, so that the sums are seldom copied
            size = held.shape[2] if codes <= held.shape[2] else 2 * codes
            self._whole = np.zeros((max(devices, held.shape[0]), len(NAMES), size), np.int64)
            self._whole[: held.shape[0], :, : held.shape[2]] = held

    @property
    def whole(self) -> dict[tuple[int, int, int], int]:
        """Ns by device's row, reason and detail's code."""
        return {
            (row, why, code): int(self._whole[row, why, code]) for row, why, code in np.argwhere(self._whole).tolist()
        }

    def _split(self, pieces: list[np.ndarray], low: np.ndarray, high: np.ndarray, number: np.ndarray) -> None:
        """Count the parts of pieces that lie in steps."""
        device, reason, detail, begin, end = pieces
        piece, step = meetings(begin, end, (low, high))
        length = np.minimum(end[piece], high[step]) - np.maximum(begin[piece], low[step])
        _add(self.steps, [device[piece], number[step], reason[piece], detail[piece]], length)


def _add(sums: dict[tuple[int, ...], int], keys: list[np.ndarray], length: np.ndarray) -> None:
    """Add lengths, int64 of shape (n,), to the sums of their keys."""
    if not length.size:
        return
    order = np.lexsort(keys[::-1])
    rows = np.stack(keys)[:, order]
    first = np.flatnonzero(np.append(True, (rows[:, 1:] != rows[:, :-1]).any(axis=0)))
    for key, value in zip(rows[:, first].T.tolist(), np.add.reduceat(length[order], first).tolist(), strict=True):
        sums[tuple(key)] = sums.get(tuple(key), 0) + value


BOUND_BLOCKS = 4
"""Blocks of events, 65,536 each at most, from which the start-up latency is taken."""
LEAST_LATENCIES = 20
"""Launches on an idle device that are needed for a median."""
DEFAULT_START_UP_NS = 5_000
"""Start-up latency of exports with fewer such launches."""
MOST_START_UP_NS = 50_000
"""The longest that counts as start-up, of work on an idle device, too: beyond, something else holds the work back."""
NO_LIMIT = 1 << 60
FIRST_PIECES = 1 << 18
_FIELD = {name: index for index, name in enumerate(PIECE)}


@dataclass(kw_only=True)
class Explained:
    """Idle time of an export's devices.

    Attributes
    ----------
    devices : list of (int, int)
        Rank and device of each row.
    texts : list of str
        Details by code.
    totals : IdleSums
    start_up_ns : int
        The bound that was used.
    """

    devices: list[tuple[int, int]]
    texts: list[str]
    totals: IdleSums
    start_up_ns: int


def explain_export(folder: Path, steps: Steps, taken: TakenGpus | None = None) -> Explained:
    """Return why each device of an export was idle, within the window of its rank: from the rank's first launch,
    transfer or graph to its last one's end; `taken` is in the clock of the export.

    Raises
    ------
    TableError
        If a table is not ordered by start.
    """
    export = ExportPass(folder, NO_LIMIT, steps, taken=taken)
    blocks = export.events.blocks()
    # each table of a small export is one piece, so that there are as many blocks at most
    first = list(islice(blocks, len(GPU_TABLES) + 1))
    if 0 < len(first) <= len(GPU_TABLES) and sum(block["start"].size for block in first) <= CHUNK_ROWS:
        export.take_whole({name: np.concatenate([block[name] for block in first]) for name in first[0]})
    else:
        export.limit_to(start_up_bound(folder))
        for block in chain(first, blocks):
            export.take(block)
    export.finish()
    return Explained(
        devices=export.devices.rows, texts=export.details.texts, totals=export.totals, start_up_ns=export.bound
    )


def start_up_bound(folder: Path) -> int:
    """Return the start-up latency of an export, ns: the median time from the end of the launch call to the start of
    work on an idle device, over the first `BOUND_BLOCKS` blocks, of work that started after its call had returned.
    """
    latencies: list[np.ndarray] = []
    probe = ExportPass(folder, NO_LIMIT, {}, latencies=latencies)
    for block in islice(probe.events.blocks(), BOUND_BLOCKS):
        probe.take(block)
    return usual_start_up(latencies)


def usual_start_up(latencies: Sequence[np.ndarray]) -> int:
    """Return the start-up latency, ns, from those of single pieces of work on an idle device.

    Parameters
    ----------
    latencies : sequence of ndarray of int64, each of shape (n,), ns
    """
    ordered = np.sort(np.concatenate([np.empty(0, np.int64), *latencies]))
    if ordered.size < LEAST_LATENCIES:
        return DEFAULT_START_UP_NS
    return min(int(ordered[(ordered.size - 1) // 2]), MOST_START_UP_NS)


def _latencies(pieces: np.ndarray) -> np.ndarray:
    starts = pieces[pieces[:, _FIELD["meaning"]] == gaps.IDLE_START]
    return starts[:, _FIELD["end"]] - starts[:, _FIELD["begin"]]


@dataclass
class DeviceStates:
    """What is known of the devices and streams so far.

    Attributes
    ----------
    state : ndarray of int64, shape (devices, 5)
        `gaps.STATE`.
    called : ndarray of int64, shape (streams,), ns
        When the call of the latest event of each stream began.
    """

    state: np.ndarray = field(default_factory=lambda: np.zeros((0, len(STATE)), np.int64))
    called: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def grow(self, devices: int, streams: int) -> None:
        """Make room for devices and streams that were not seen before."""
        if devices > len(self.state):
            fresh = np.full((devices - len(self.state), len(STATE)), UNKNOWN)
            fresh[:, STATE.index("name") :] = 0
            self.state = np.concatenate([self.state, fresh])
        if streams > self.called.size:
            self.called = np.append(self.called, np.full(streams - self.called.size, UNKNOWN))


class ExportPass:
    """The pass over one export.

    Parameters
    ----------
    folder : Path
    bound : int
        The usual start-up latency, ns.
    steps : Steps
        On the clock of the export.
    latencies : list of ndarray of int64, each of shape (launches,), ns, or None
        Takes the start-up latencies on idle devices, where they are wanted.
    taken : TakenGpus or None
        When devices were not their ranks' to use; in the clock of the export.
    """

    def __init__(
        self,
        folder: Path,
        bound: int,
        steps: Steps,
        latencies: list[np.ndarray] | None = None,
        taken: TakenGpus | None = None,
    ) -> None:
        self.limit_to(bound)
        self.latencies = latencies
        self.events = NamedEvents(folder)
        self.details = Activities()
        self.host = HostTimeline(folder, self.details)
        self.waits = EventWaits(folder)
        self.profiler = ProfilerTime(folder, self.details)
        self.taken = TakenTime(taken, self.details) if taken else None
        self.devices = RowNumbers()
        self.streams = RowNumbers()
        self.states = DeviceStates()
        self.totals = IdleSums(steps)
        self._no_call = reason_words.NO_CORRELATION if (folder / "calls.parquet").is_file() else NO_CALLS
        self._pieces = np.empty((FIRST_PIECES, len(PIECE)), np.int64)

    def limit_to(self, bound: int) -> None:
        """Take `bound`, ns, for the usual start-up latency from here on."""
        self.bound = bound
        self.longest = max(bound, MOST_START_UP_NS)

    def take_whole(self, block: Block) -> None:
        """Take all events of a small export; they are gone over twice, for their start-up latency first, and what the
        host did is read once.
        """
        device, rows = self._read_up_to(block)
        before = np.empty(rows.size, np.int64)
        states = DeviceStates(self.states.state.copy(), self.states.called.copy())
        latencies = [_latencies(pieces) for pieces in self._pieces_of(block, device, rows, before)]
        self.states = states
        self.host.slots[block["call"] & (CALL_SLOTS - 1), USER] = 0
        self.limit_to(usual_start_up(latencies))
        for pieces in self._pieces_of(block, device, rows, before):
            self._count(pieces, block, before)

    def take(self, block: Block) -> None:
        """Take events ordered by start, after all that were taken before."""
        device, rows = self._read_up_to(block)
        before = np.empty(rows.size, np.int64)
        for pieces in self._pieces_of(block, device, rows, before):
            self._count(pieces, block, before)
        self._forget(int(block["start"][-1]))

    def _read_up_to(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """Read what the host did up to the last of some events; return the rows of their devices and streams."""
        device = self.devices.of(block["rank"], block["device"])
        # when a stream's earlier work was called matters to recorded waits only
        rows = self.streams.of(device, block["stream"]) if self.waits.recorded else device[:0]
        self.states.grow(len(self.devices), len(self.streams))
        latest = int(block["start"][-1])
        called = int(block["called"].max())
        self.host.read_until(latest, called)
        self.waits.read_until(max(latest, called))
        return device, rows

    def _pieces_of(
        self, block: Block, device: np.ndarray, rows: np.ndarray, before: np.ndarray
    ) -> Iterator[np.ndarray]:
        """Give the idle pieces of a block's events, as many at once as there is room for."""
        names = ("stream", "start", "end", "called", "returned", "name", "call")
        columns = (np.ascontiguousarray(block[name]) for name in names)
        fields = ("streams", "starts", "ends", "called_at", "returned", "names", "calls")
        events = gaps.GAP_EVENTS.of(devices=device, stream_rows=rows, **dict(zip(fields, columns, strict=True)))
        host = self.host
        if not len(host.threads):
            host.offsets = np.zeros(2, np.int64)
        segments = gaps.HOST_SEGMENTS.of(
            slots=host.slots, segments=host.segments, offsets=host.offsets, activities=host.activity_table()
        )
        start_up = gaps.START_UPS.of(bound=self.bound, longest=self.longest)
        states = gaps.DEVICE_STATES.of(state=self.states.state, called=self.states.called, before=before)
        written = np.zeros(1, np.int64)
        event = 0
        while event < device.size:
            reached = gaps.take_events(event, events, segments, start_up, states, self._pieces, written)
            if reached == event:
                self._pieces = np.empty((2 * len(self._pieces), len(PIECE)), np.int64)
            yield self._pieces[: written[0]] if reached > event else self._pieces[:0]
            event = reached

    def _count(self, pieces: np.ndarray, block: Block, before: np.ndarray) -> None:
        if self.latencies is not None:
            self.latencies.append(_latencies(pieces))
            return
        detail = self._details(pieces, block, before)
        ranks = [rank for rank, _ in self.devices.rows]
        if self.taken is not None:
            until = block["start"][pieces[:, _FIELD["event"]]]
            pieces, detail = self.taken.divide(pieces, detail, until, self.devices.rows)
        self.totals.take(*self.profiler.divide(pieces, detail, ranks), len(self.details.texts), ranks)

    def _details(self, pieces: np.ndarray, block: Block, before: np.ndarray) -> np.ndarray:
        """Return the code of each piece's detail; int64, shape (pieces,)."""
        counts = np.zeros(len(gaps.MEANINGS), np.int64)
        gaps.count_meanings(pieces, counts)
        plain = {
            gaps.NO_CALL: self._no_call,
            gaps.NO_THREAD: reason_words.NO_THREAD,
            gaps.NODES: reason_words.BETWEEN_NODES,
            gaps.IDLE_START: reason_words.ON_IDLE_DEVICE,
            gaps.QUEUED_START: reason_words.BETWEEN_QUEUED,
            gaps.LATE_START: reason_words.ON_IDLE_DEVICE,
            gaps.HELD: reason_words.HELD,
        }
        code_of = np.zeros(len(gaps.MEANINGS), np.int64)
        for number in np.flatnonzero(counts).tolist():
            if number in plain:
                code_of[number] = self.details.code(plain[number])
        detail = np.empty(len(pieces), np.int64)
        gaps.take_details(pieces, code_of, detail)
        self._name_migrations(pieces, detail, block)
        if counts[gaps.QUEUED]:
            stalled = np.flatnonzero(pieces[:, _FIELD["meaning"]] == gaps.QUEUED)
            detail[stalled] = self._dependencies(pieces[stalled], block, before)
        if self.waits.recorded and (counts[gaps.LATE_START] or counts[gaps.HELD]):
            self._find_waits(pieces, detail, block, before)
        return detail

    def _name_migrations(self, pieces: np.ndarray, detail: np.ndarray, block: Block) -> None:
        """Say of gaps that end with a migration of managed memory what caused it; `detail` is updated."""
        name = block["name"][pieces[:, _FIELD["event"]]] - FIRST_COPY
        for kinds, words in ((MIGRATED_BY_HOST, reason_words.ACCESS), (MIGRATIONS, reason_words.BETWEEN_DEVICES)):
            of_kind = np.isin(name, kinds)
            if of_kind.any():
                detail[of_kind] = self.details.code(words)
                name = np.where(of_kind, -1, name)

    def _find_waits(self, pieces: np.ndarray, detail: np.ndarray, block: Block, before: np.ndarray) -> None:
        """Make the start of work on an idle device, beyond the usual latency, a stall where its stream waited for an
        event; `pieces` and `detail`, int64 of shape (pieces,), are updated.
        """
        late = np.flatnonzero(np.isin(pieces[:, _FIELD["meaning"]], (gaps.LATE_START, gaps.HELD)))
        source = self._sources(pieces[late], block, before)
        late = late[source != NONE]
        pieces[late, _FIELD["reason"]] = reason_words.DEPENDENCY_STALLED
        detail[late] = self._codes_of_waits(-1 - (source[source != NONE] - NONE))

    def _dependencies(self, pieces: np.ndarray, block: Block, before: np.ndarray) -> np.ndarray:
        """Return the code of what each dependency-stalled piece waited for."""
        if not self.waits.recorded:
            return self._codes_of_waits(np.ascontiguousarray(pieces[:, _FIELD["code"]]))
        source = self._sources(pieces, block, before)
        return self._codes_of_waits(np.where(source == NONE, pieces[:, _FIELD["code"]], -1 - (source - NONE)))

    def _sources(self, pieces: np.ndarray, block: Block, before: np.ndarray) -> np.ndarray:
        """Return for whose event the stream of each piece waited; int64, shape (pieces,), as `EventWaits.find`."""
        event = pieces[:, _FIELD["event"]]
        rank, stream = (block[name][event].astype(np.int64) for name in ("rank", "stream"))
        return self.waits.find(rank, stream, before[event], block["called"][event])

    def _codes_of_waits(self, which: np.ndarray) -> np.ndarray:
        """Return the code of each wait as `_waited_for` names it; int64, shape (n,), as `which`."""
        waits, inverse = few_distinct(which)
        return np.array([self.details.code(self._waited_for(wait)) for wait in waits.tolist()], np.int64)[inverse]

    def _waited_for(self, which: int) -> str:
        if which < 0:
            source = NONE - 1 - which
            stream = "a stream that is not recorded" if source == UNRECORDED else f"stream {source}"
            return f"event wait on {stream}"
        if which // 2 - FIRST_COPY in MIGRATIONS:
            return "queued behind migrations of managed memory"
        stream = "its own stream" if which % 2 else "another stream"
        after = f"queued behind {self.events.names[which // 2]} of {stream}"
        return after if self.waits.recorded else f"{after}; events are not recorded"

    def _forget(self, latest: int) -> None:
        """Drop host time that no gap can ask for: a device's next gap begins where its events reach, or later."""
        needed: dict[int, int] = {}
        for (rank, _), end in zip(self.devices.rows, self.states.state[:, STATE.index("reach")].tolist(), strict=True):
            needed[rank] = min(needed.get(rank, latest), end)
        for rank, _ in self.host.threads.rows:
            needed.setdefault(rank, latest)
        self.host.forget(needed)

    def finish(self) -> None:
        """Count the time before the first and after the last work of each device."""
        state = self.states.state
        ranks = [rank for rank, _ in self.devices.rows]
        first = state[:, STATE.index("first")]
        last = state[:, STATE.index("reach")]
        rows = np.arange(len(ranks))
        rank = np.array(ranks, np.int64)
        begin = np.array([first[rank == number].min() for number in ranks], np.int64)
        end = np.array([last[rank == number].max() for number in ranks], np.int64)
        nothing = np.full(len(ranks), self.details.code(""))
        for reason, low, high in ((reason_words.BEFORE_FIRST, begin, first), (reason_words.AFTER_LAST, last, end)):
            pieces = np.zeros((len(ranks), len(PIECE)), np.int64)
            pieces[:, _FIELD["reason"]] = reason
            for name, values in {"device": rows, "begin": low, "end": high}.items():
                pieces[:, _FIELD[name]] = values
            has_time = high > low
            self.totals.take(pieces[has_time], nothing[has_time], len(self.details.texts), ranks)
