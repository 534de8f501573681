"""The time in which ranks are compared: that of the run's GPU work, as far as the recordings of all ranks cover it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from causeway.core.clock import Clock
from causeway.core.formatting import ranks_named, time_three_digits
from causeway.efficiency.device_time import event_streams
from causeway.efficiency.device_time.measure import Opened, Windows
from causeway.efficiency.device_time.states import COMMUNICATION
from causeway.events.event_blocks import SHORT

LEAST_COMMON = 0.1
"""Share of the run's GPU time that all recordings must cover together, for ranks to be compared in it ..."""
MOST_WORK = 0.5
"""... or of the launches of each rank: where recordings begin apart, most of the run's time may be one collective that
waits for the last of them, beside most of the work.
"""
NOT_ALIGNED = "clocks of ranks are not aligned"
NOT_RECORDED = "no host calls are recorded of {ranks}"
OWN = (
    "{why}: each rank counts from its own first to its own last GPU work, and what it waits before and after it is not"
    " known"
)
APART = (
    "the recordings of the ranks have {common} of {whole} in common: each rank counts from its own first to its own"
    " last GPU work, and time that was not recorded counts as idle"
)
CUT = (
    "ranks are compared in the time that all recordings cover: {outside} of the {whole} of GPU work lie outside, where"
    " nothing is recorded of {ranks}; if not their recordings but their processes are shorter, what their GPUs are idle"
    " there is in no loss"
)
HELD = "; it begins when the collectives have ended that began before all ranks were recorded"


@dataclass(frozen=True)
class ComparedTime:
    """In which time ranks are compared; ns on the dataset's time line.

    Attributes
    ----------
    window : (int, int) or None
        The same for all ranks; None: each from its own first to its own last GPU work.
    is_cut : bool
        Whether a part of the GPU work lies outside.
    note : str or None
        What to keep in mind; nothing of less than `SHORT` of the run's GPU time that lies outside.
    recordings : dict or None
        How the recordings lie to each other, as `efficiency.json` has it; None where that is not known.
    """

    window: tuple[int, int] | None = None
    is_cut: bool = False
    note: str | None = None
    recordings: dict | None = None

    def windows(self, opened: Opened, clock: Clock) -> Windows:
        """Return the window of each rank of an export in the export's own clock."""
        if self.window is None:
            return opened.windows
        begin, stop = clock.own(np.array(self.window)).tolist()
        return dict.fromkeys(opened.windows, (begin, stop))

    def regions_within(self, clock: Clock) -> tuple[int, int] | None:
        """Return what regions are cut to, in an export's own clock; None where they are not."""
        return tuple(clock.own(np.array(self.window)).tolist()) if self.is_cut else None


OWN_TIMES = ComparedTime()
"""Each rank from its own first to its own last GPU work."""


@dataclass(frozen=True)
class CommonTime:
    """The part of the run's GPU work that all recordings cover; ns on the dataset's time line.

    Attributes
    ----------
    first, last : int
        The first start and last end of any rank's GPU event.
    begin, stop : int
        What all recordings cover of that; nothing where `stop` is not later.
    recorded : dict of int to (int, int)
        Begin and end of each rank's recording.
    """

    first: int
    last: int
    begin: int
    stop: int
    recorded: Mapping[int, tuple[int, int]]

    @property
    def is_long(self) -> bool:
        """Whether it is enough of the run's GPU time for ranks to be compared in it."""
        return self.begin < self.stop and self.stop - self.begin >= LEAST_COMMON * (self.last - self.first)


@dataclass
class RankInCommon:
    """What a rank does in the common time; ns on the dataset's time line.

    Attributes
    ----------
    launches, inside : int
        How many it has, and how many of them begin in the common time.
    held : list of (int, int)
        Begin and end of communication kernels that began before the common time and end in it.
    """

    launches: int = 0
    inside: int = 0
    held: list[tuple[int, int]] = field(default_factory=list)


def common_time(
    opened: Sequence[Opened], recorded: Sequence[Windows], clocks: Mapping[str, Clock], *, are_aligned: bool
) -> CommonTime | str | None:
    """Return the part of the run's GPU work that the recordings of all ranks cover: a note where that is not known,
    None of a single rank.

    The run's GPU work lasts from the first to the last GPU event of any rank. A rank's recording covers the time from
    its first to its last event of any kind.

    Parameters
    ----------
    opened : sequence of Opened
    recorded : sequence of dict of int to (int, int)
        What `recorded_spans` returns of each export.
    clocks : mapping of str to Clock
    are_aligned : bool
        Whether times of different exports can be compared.
    """
    gpu = {}
    whole = {}
    for export, covered in zip(opened, recorded, strict=True):
        clock = clocks[export.export]
        for rank, window in export.windows.items():
            gpu[rank] = clock.aligned(np.array(window)).tolist()
            if rank in covered:
                ends = clock.aligned(np.array(covered[rank])).tolist()
                whole[rank] = min(ends[0], gpu[rank][0]), max(ends[1], gpu[rank][1])
    if len(gpu) < 2:
        return None
    if not are_aligned:
        return OWN.format(why=NOT_ALIGNED)
    if unknown := sorted(set(gpu) - set(whole)):
        return OWN.format(why=NOT_RECORDED.format(ranks=ranks_named(unknown)))
    first = min(begin for begin, _ in gpu.values())
    last = max(stop for _, stop in gpu.values())
    begin = max(first, *(start for start, _ in whole.values()))
    stop = min(last, *(end for _, end in whole.values()))
    return CommonTime(first, last, begin, stop, whole)


def ranks_in_common(opened: Opened, common: CommonTime | str | None, clock: Clock) -> dict[int, RankInCommon]:
    """Return what the ranks of an export do in the common time, as far as that decides how they are compared: nothing
    where it is long enough and begins with the run's GPU work. Launches are read up to its begin where they need not be
    counted.
    """
    by_rank = {rank: RankInCommon() for rank in opened.windows}
    if not isinstance(common, CommonTime) or common.begin >= common.stop:
        return by_rank
    if common.is_long and common.begin == common.first:
        return by_rank
    kinds = event_streams.class_bits(opened.folder)
    communicates = COMMUNICATION.bit_length() - 1
    for batch in event_streams.chunks(opened.folder, "launches", ["start_ns", "duration_ns", "configuration", "rank"]):
        block = event_streams.times(batch)
        start = clock.aligned(block["start"])
        end = clock.aligned(block["end"])
        ranks = batch.column("rank").to_numpy()
        is_inside = (start >= common.begin) & (start < common.stop)
        is_held = (start < common.begin) & (end > common.begin)
        is_held &= kinds.take(batch.column("configuration").to_numpy()) == communicates
        for rank in np.unique(ranks).tolist():
            of_rank = ranks == rank
            by_rank[rank].launches += int(of_rank.sum())
            by_rank[rank].inside += int((is_inside & of_rank).sum())
            rows = np.flatnonzero(is_held & of_rank)
            by_rank[rank].held += zip(start[rows].tolist(), end[rows].tolist(), strict=True)
        if common.is_long and int(start[-1]) >= common.begin:
            break
    return by_rank


def compared_time(common: CommonTime | str | None, ranks: Mapping[int, RankInCommon]) -> ComparedTime:
    """Return in which time the ranks of a dataset are compared.

    Where the recordings of all ranks are known, ranks are compared in the part of the run's GPU work that all of them
    cover, so that waiting for other ranks counts, and time that nobody recorded does not. A collective that began
    before that part may wait for a rank that was not yet recorded: the time begins when such collectives have ended.

    Parameters
    ----------
    common : CommonTime, str or None
        As `common_time` returns it.
    ranks : mapping of int to RankInCommon
        What `ranks_in_common` returns, of all exports.
    """
    if not isinstance(common, CommonTime):
        return ComparedTime(note=common)
    first = common.first
    last = common.last
    stop = common.stop
    whole = last - first
    has_work = all(
        activity.launches and activity.inside >= MOST_WORK * activity.launches for activity in ranks.values()
    )
    is_compared = common.begin < stop and (common.is_long or has_work)
    held = _held(common, ranks) if is_compared else {}
    begin = max([common.begin, *(end for spans in held.values() for _, end in spans)])
    common_ns = max(stop - begin, 0)
    begins = [low for low, _ in common.recorded.values()]
    recordings = {
        "whole_ns": whole,
        "common_ns": common_ns,
        "are_apart": not is_compared and whole > 0,
        "begins_ns": max(begins) - min(begins),
        "held_ns": {str(rank): max(end - start for start, end in spans) for rank, spans in sorted(held.items())},
    }
    lengths_ns = {"common": common_ns, "outside": whole - common_ns, "whole": whole}
    lengths = {name: time_three_digits(ns) for name, ns in lengths_ns.items()}
    if not is_compared:
        return ComparedTime(note=APART.format(**lengths) if whole else None, recordings=recordings)
    lacks = {rank: max(low - first, 0) + max(last - high, 0) for rank, (low, high) in common.recorded.items()}
    short = sorted(rank for rank, lacked in lacks.items() if lacked)
    noticed = [rank for rank in short if lacks[rank] > SHORT * whole] or short
    is_noticed = whole - common_ns > SHORT * whole
    note = CUT.format(ranks=ranks_named(noticed), **lengths) + HELD * bool(held) if is_noticed else None
    return ComparedTime((begin, stop), is_cut=bool(short), note=note, recordings=recordings)


def _held(common: CommonTime, ranks: Mapping[int, RankInCommon]) -> dict[int, list[tuple[int, int]]]:
    """Return begin and end of the collectives of each rank that may wait for a recording to begin: not of kernels that
    run on through most of the common time.
    """
    half = (common.stop - common.begin) // 2
    held = {
        rank: [span for span in in_common.held if span[1] - common.begin <= half] for rank, in_common in ranks.items()
    }
    return {rank: spans for rank, spans in held.items() if spans}
