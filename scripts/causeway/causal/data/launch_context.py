"""The context of launches at their start, from the tables of one export."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.causal.data.feature_names import KERNEL_IN_FLIGHT, LAUNCHED_AFTER, LAUNCHED_SECOND_AFTER
from causeway.causal.data.in_flight import ALONE, LaunchSweep, TransferSweep
from causeway.core.clock import Clock
from causeway.core.codes import NO_OTHER
from causeway.core.errors import TableError
from causeway.core.feature_registry import FEATURES
from causeway.core.tables import open_table
from causeway.core.vocabulary import STALE

BYTES_BY_KIND = {feature.name: feature.copy_kinds for feature in FEATURES if feature.copy_kinds}
"""CUPTI's copy kinds by direction."""
LAST_INPUT = "last_h2d_bytes"
NONE_BEFORE = -1
"""In the place of a configuration: no launch began before on the stream."""
UNSIZED = -1
"""In the place of a transfer's bytes: its size is not known."""


@dataclass
class ChosenLaunches:
    """Chosen launches of one rank, in order of their row in the export's table of launches.

    Attributes
    ----------
    rank : int
    launch : ndarray of int64, shape (n,), ascending
        Rows in the export's `launches` table.
    ranges : ndarray of int64, shape (n,)
        Number of each launch's range, -1 if none.
    features : dict of str to ndarray, shape (n,)
        Filled by the functions below; NaN stands for unknown.
    start, device : ndarray of int64, shape (n,)
        Filled by `add_launches_in_flight`: start on the export's own clock, ns.
    """

    rank: int
    launch: np.ndarray
    ranges: np.ndarray
    features: dict[str, np.ndarray] = field(default_factory=dict)
    start: np.ndarray = field(init=False)
    device: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.start = np.zeros(self.launch.size, dtype=np.int64)
        self.device = np.full(self.launch.size, -1, dtype=np.int64)


def _row_groups(path: Path, name: str, columns: list[str]) -> Iterator[dict[str, np.ndarray]]:
    """Yield the columns of one row group after the other; nulls of bytes become `UNSIZED`, of other integers 0."""
    with open_table(path, name) as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=columns).combine_chunks()
            yield {column: _without_nulls(table.column(column), column).to_numpy() for column in columns}


def _without_nulls(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    return column.fill_null(UNSIZED if name == "bytes" else 0) if column.null_count else column


class LaunchesBefore:
    """Which two launches began before each on its stream, of the launches of one rank.

    Parameters
    ----------
    rank : int
    launch : ndarray of int64, shape (n,), ascending
        Rows of the chosen launches, counted over all ranks.

    Attributes
    ----------
    configuration : ndarray of int64, shape (2, n)
        Of the launch before and of the one before that; `NONE_BEFORE` where there is none.
    """

    def __init__(self, rank: int, launch: np.ndarray) -> None:
        self.rank = rank
        self.launch = launch
        self.configuration = np.full((2, launch.size), NONE_BEFORE)
        self._rows = 0
        self._held = np.zeros((2, 0), np.int64)  # stream and configuration of the last two launches of each stream

    def add(self, rank: np.ndarray, device: np.ndarray, stream: np.ndarray, configuration: np.ndarray) -> None:
        """Take the next rows of the table of launches, in order of start.

        Parameters
        ----------
        rank, stream, configuration : ndarray of uint32, shape (n,)
        device : ndarray of uint16, shape (n,)
        """
        places = np.flatnonzero(rank == self.rank)
        new = (device[places].astype(np.int64) << 32) + stream[places], configuration[places]
        streams, launched = rows = np.hstack([self._held, new])
        order = np.argsort(streams, kind="stable")
        before = np.full((2, rank.size), NONE_BEFORE)
        is_held = np.ones(order.size, bool)
        for lag, shifted in enumerate(before, 1):
            same = streams[order[lag:]] == streams[order[:-lag]]
            earlier = np.full(order.size, NONE_BEFORE)
            earlier[order[lag:][same]] = launched[order[:-lag][same]]
            shifted[places] = earlier[self._held.shape[1] :]
        is_held[:-2] = ~same  # the same stream has two later ones
        low, high = np.searchsorted(self.launch, [self._rows, self._rows + rank.size])
        self.configuration[:, low:high] = before[:, self.launch[low:high] - self._rows]
        self._held = rows[:, order[is_held]]
        self._rows += rank.size


def add_launches_in_flight(
    path: Path, chosen: ChosenLaunches, means: np.ndarray | None, kernel_of: np.ndarray, words: Mapping[int, str]
) -> None:
    """Add launches_in_flight (int64), kernel_in_flight (text), idle_before_ns (float, NaN where nothing began before),
    previous_deviation (float, ns, NaN for the first), launched_after and launched_second_after (text, None for the
    first); and fill `start` and `device`.

    Parameters
    ----------
    path : Path
        The export's `launches.parquet`.
    chosen : ChosenLaunches
    means : ndarray of float, shape (n_configurations,), ns, or None
        Exact mean duration of each of the export's configurations; without it there is no previous_deviation.
    kernel_of : ndarray of int, shape (n_configurations,)
        Kernel of each of the export's configurations.
    words : mapping of int to str
        Each of them as `kernels_and_grids` calls it.

    Raises
    ------
    TableError
        For a chosen launch that the table lacks, and for a configuration that the export does not have, where
        previous_deviation needs it.

    Notes
    -----
    Others are counted on the same device of the same rank. The kernel in flight is that one of them which ends last,
    with its grid (ties: earlier row). The previous deviation is that of the launch of the same kernel on the same
    device which began before (likewise). What a launch was launched after is the kernel and the grid of the one that
    began before on its stream (likewise), second after that of the one before it: launches of one stream begin in the
    order in which the program makes them.
    """
    sweep = LaunchSweep(chosen.rank, chosen.launch, kernel_of, means)
    before = LaunchesBefore(chosen.rank, chosen.launch)
    columns = ["start_ns", "duration_ns", "configuration", "rank", "device", "stream"]
    for chunk in _row_groups(path, "launches", columns):
        stream = chunk.pop("stream")
        wrong = sweep.add(*chunk.values())
        if wrong >= 0:
            raise TableError(f"{path}: row {wrong} has a configuration that configurations.parquet does not have")
        before.add(chunk["rank"], chunk["device"], stream, chunk["configuration"])
    sweep.finish()
    if (sweep.device < 0).any():
        raise TableError(f"{path}: has no launch {chosen.launch[sweep.device < 0][0]} of rank {chosen.rank}")
    chosen.start = sweep.start
    chosen.device = sweep.device
    chosen.features["launches_in_flight"] = sweep.in_flight
    chosen.features["idle_before_ns"] = sweep.idle
    chosen.features[KERNEL_IN_FLIGHT] = _in_words(sweep.beside, {**words, ALONE: NO_OTHER})
    for name, configuration in zip((LAUNCHED_AFTER, LAUNCHED_SECOND_AFTER), before.configuration, strict=True):
        chosen.features[name] = _in_words(configuration, {**words, NONE_BEFORE: None})
    if means is not None:
        chosen.features["previous_deviation"] = sweep.previous


def _in_words(configuration: np.ndarray, words: Mapping[int, str | None]) -> np.ndarray:
    numbers, position = np.unique(configuration, return_inverse=True)
    return np.array([words[number] for number in numbers.tolist()], object)[position]


def add_transfers_in_flight(path: Path, chosen: ChosenLaunches) -> None:
    """Add transfers_in_flight (copies and memory sets on the same device, int64), the bytes of those in flight by
    direction (int64, or float with NaN where the size of one of them is not known), and last_h2d_bytes (float, NaN
    before the first such copy, and where its size is not known).

    The last is the size of the copy from the host to the same device that had ended last when the launch began. In a
    direction in which the rank has copies, but none whose size is known, bytes were not measured: they are NaN also
    where no copy is in flight.
    """
    sums = _sweep_transfers(path, chosen, lambda size: np.maximum(size, 0))
    features = dict(zip(["transfers_in_flight", *BYTES_BY_KIND], sums.in_flight, strict=True))
    last = sums.last
    sized, unsized = _kinds_by_size(path, chosen.rank)
    if unsized:
        lacking = _sweep_transfers(path, chosen, lambda size: (size == UNSIZED).astype(np.int64))
        for (name, kinds), count in zip(BYTES_BY_KIND.items(), lacking.in_flight[1:], strict=True):
            if not unsized.isdisjoint(kinds):
                features[name] = np.where((count > 0) | sized.isdisjoint(kinds), np.nan, features[name])
        last = np.where(lacking.last > 0, np.nan, last)
    chosen.features |= features
    chosen.features[LAST_INPUT] = last


def _sweep_transfers(
    path: Path, chosen: ChosenLaunches, weight_of: Callable[[np.ndarray], np.ndarray]
) -> TransferSweep:
    """Return a finished sweep over an export's transfers, each of which weighs what `weight_of` makes of its bytes."""
    sweep = TransferSweep(chosen.rank, chosen.start, chosen.device, list(BYTES_BY_KIND.values()))
    for chunk in _row_groups(path, "transfers", ["start_ns", "duration_ns", "bytes", "copy_kind", "rank", "device"]):
        chunk["bytes"] = weight_of(chunk["bytes"])
        sweep.add(*chunk.values())
    sweep.finish()
    return sweep


def _kinds_by_size(path: Path, rank: int) -> tuple[set[int], set[int]]:
    """Return CUPTI's kinds of a rank's transfers whose size is known, and of those whose size is not."""
    sized: set[int] = set()
    unsized: set[int] = set()
    for chunk in _row_groups(path, "transfers", ["bytes", "copy_kind", "rank"]):
        of_rank = chunk["rank"] == rank
        lacking = chunk["bytes"] == UNSIZED
        sized |= set(np.unique(chunk["copy_kind"][of_rank & ~lacking]).tolist())
        unsized |= set(np.unique(chunk["copy_kind"][of_rank & lacking]).tolist())
    return sized, unsized


def add_iteration_position(path: Path, chosen: ChosenLaunches) -> None:
    """Add iteration_position: ns from the start of the innermost range around the call of the launch to the start of
    the launch, float; NaN outside of ranges. The range is any one, mostly no iteration: `step_position` is that of the
    step.
    """
    since_start = np.full(chosen.launch.size, -1, np.int64)
    ranges = chosen.ranges
    starts: dict[int, int] = {}
    wanted = np.unique(ranges[ranges >= 0])
    for chunk in _row_groups(path, "ranges", ["start_ns", "range", "rank"]):
        rows = np.flatnonzero((chunk["rank"] == chosen.rank) & np.isin(chunk["range"], wanted))
        for row in rows:
            starts.setdefault(int(chunk["range"][row]), int(chunk["start_ns"][row]))
    inside = np.flatnonzero(np.isin(ranges, np.fromiter(starts, np.int64, len(starts))))
    begun = np.asarray([starts[int(number)] for number in ranges[inside]], np.int64)
    since_start[inside] = chosen.start[inside] - begun
    chosen.features["iteration_position"] = np.where(since_start < 0, np.nan, since_start)


def sampled_metrics(path: Path) -> set[str]:
    """Return the names of the metrics that an export's table of samples holds; none if there is no such table."""
    if not path.is_file():
        return set()
    with open_table(path, "samples") as file:
        return {
            name
            for group in range(file.num_row_groups)
            for name in file.read_row_group(group, ["metric"]).column(0).unique().to_pylist()
        }


def _samples_of(path: Path, rank: int) -> Iterator[pa.Table]:
    """Yield a rank's rows of a table of samples, one row group after the other."""
    with open_table(path, "samples") as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            yield table.filter(pc.equal(table.column("rank"), rank))


def _readings(samples: pa.Table, chosen: ChosenLaunches) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield each metric of each device of the chosen launches: its name, the positions of the launches on the device,
    and times and values of the readings.
    """
    metric = samples.column("metric").combine_chunks().dictionary_encode()
    codes = metric.indices.to_numpy()
    device, times, values = (samples.column(name).to_numpy() for name in ("device", "time_ns", "value"))
    for code, name in enumerate(metric.dictionary.to_pylist()):
        for number in np.unique(chosen.device):
            own = (codes == code) & (device == number)
            if own.any():
                yield name, np.flatnonzero(chosen.device == number), times[own], values[own]


def add_sampled_metrics(path: Path, chosen: ChosenLaunches) -> None:
    """Add each sampled device metric: its last value at or before the launch's start, NaN before the first."""
    last: dict[str, np.ndarray] = {}
    for samples in _samples_of(path, chosen.rank):
        for name, launches, times, values in _readings(samples, chosen):
            later = launches[chosen.start[launches] >= times[0]]
            column = last.setdefault(name, np.full(chosen.launch.size, np.nan))
            column[later] = values[np.searchsorted(times, chosen.start[later], side="right") - 1]
    chosen.features |= last


def add_telemetry(path: Path, chosen: ChosenLaunches, clock: Clock) -> None:
    """Add each metric of the site's telemetry that the export does not sample itself: its last value at or before the
    launch's start, NaN where that is more than `STALE` sampling intervals old.

    Parameters
    ----------
    path : Path
        `telemetry.parquet`, on the dataset's time line.
    chosen : ChosenLaunches
    clock : Clock
        The export's.
    """
    parts = [*_samples_of(path, chosen.rank)]
    starts = clock.aligned(chosen.start)
    own = set(chosen.features)
    for name, launches, times, values in (
        _readings(pa.concat_tables(parts).unify_dictionaries(), chosen) if parts else ()
    ):
        if name not in own:
            last = np.searchsorted(times, starts[launches], side="right") - 1
            oldest = STALE * float(np.median(np.diff(times))) if times.size > 1 else 0.0
            fresh = (last >= 0) & (starts[launches] - times[np.maximum(last, 0)] <= oldest)
            column = chosen.features.setdefault(name, np.full(chosen.launch.size, np.nan))
            column[launches[fresh]] = values[last[fresh]]


def without_linked_transfer(context: Mapping[str, np.ndarray], kept: pa.Table) -> dict[str, np.ndarray]:
    """Return the context of launches without their own linked transfers: what is in flight is then that of others.

    The memory stall is |launch - linked transfer|. Where that transfer is in flight, the bytes in flight are mostly its
    own: a part of the definition under another name, of which taking out the bytes of the transfer leaves what its
    model does not fit. So is the size of the last input, which is the linked transfer where that had just ended; it is
    left out.

    Parameters
    ----------
    context : mapping of str to ndarray, shape (n,)
    kept : Table
        `kept` of a trace, n rows; its columns `start_ns` and `transfer_start_ns`, `transfer_duration_ns`,
        `transfer_bytes` and `transfer_copy_kind` are read.

    Returns
    -------
    dict of str to ndarray, shape (n,)
        In the same order, without `last_h2d_bytes`.
    """
    since = pc.subtract(kept.column("start_ns"), kept.column("transfer_start_ns"))
    flying = pc.and_(pc.greater_equal(since, 0), pc.less(since, kept.column("transfer_duration_ns")))
    is_flying = pc.fill_null(flying, False).to_numpy()
    kind, size = (pc.fill_null(kept.column(f"transfer_{name}"), 0).to_numpy() for name in ("copy_kind", "bytes"))
    own = {name: np.where(np.isin(kind, kinds), size, 0) for name, kinds in BYTES_BY_KIND.items()}
    own["transfers_in_flight"] = np.ones(kept.num_rows, np.int64)
    # times of two clocks are brought together to whole nanoseconds, so that a transfer may seem in flight by one
    return {
        name: np.maximum(values - np.where(is_flying, own[name], 0), 0) if name in own else values
        for name, values in context.items()
        if name != LAST_INPUT
    }


COMPUTED_FROM: tuple[tuple[str, Callable[[Path, ChosenLaunches], None]], ...] = (
    ("transfers", add_transfers_in_flight),
    ("ranges", add_iteration_position),
    ("samples", add_sampled_metrics),
)
"""Table of an export, and what is computed from it once `add_launches_in_flight` has filled in start and device;
without the table its features stay unknown.
"""
