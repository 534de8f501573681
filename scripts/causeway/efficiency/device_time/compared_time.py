"""The time in which ranks are compared: that of the run's GPU work, as far as the recordings of all ranks cover it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from causeway.core.clock import Clock
from causeway.core.event_blocks import SHORT
from causeway.core.formatting import first_of, time_three_digits
from causeway.efficiency.device_time.measure import Opened, Windows

LEAST_COMMON = 0.1
"""Share of the run's GPU time that all recordings must cover together, for ranks to be compared in it."""
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
    """

    window: tuple[int, int] | None = None
    is_cut: bool = False
    note: str | None = None

    def windows(self, one: Opened, clock: Clock) -> Windows:
        """Return the window of each rank of an export in the export's own clock."""
        if self.window is None:
            return one.windows
        begin, stop = clock.own(np.array(self.window)).tolist()
        return dict.fromkeys(one.windows, (begin, stop))

    def regions_within(self, clock: Clock) -> tuple[int, int] | None:
        """Return what regions are cut to, in an export's own clock; None where they are not."""
        return tuple(clock.own(np.array(self.window)).tolist()) if self.is_cut else None


OWN_TIMES = ComparedTime()
"""Each rank from its own first to its own last GPU work."""


def compared_time(
    opened: Sequence[Opened], recorded: Sequence[Windows], clocks: Mapping[str, Clock], *, are_aligned: bool
) -> ComparedTime:
    """Return in which time the ranks of a dataset are compared.

    The run's GPU work lasts from the first to the last GPU event of any rank. A rank's recording covers the time from
    its first to its last event of any kind. Where that is known of all ranks, they are compared in the part of the
    former that all recordings cover, so that waiting for other ranks counts, and time that nobody recorded does not.

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
    for one, covered in zip(opened, recorded, strict=True):
        clock = clocks[one.export]
        for rank, window in one.windows.items():
            gpu[rank] = clock.aligned(np.array(window)).tolist()
            if rank in covered:
                ends = clock.aligned(np.array(covered[rank])).tolist()
                whole[rank] = min(ends[0], gpu[rank][0]), max(ends[1], gpu[rank][1])
    if len(gpu) < 2:
        return OWN_TIMES
    if not are_aligned:
        return ComparedTime(note=OWN.format(why=NOT_ALIGNED))
    if unknown := sorted(set(gpu) - set(whole)):
        return ComparedTime(note=OWN.format(why=NOT_RECORDED.format(ranks=_named(unknown))))
    first = min(begin for begin, _ in gpu.values())
    last = max(stop for _, stop in gpu.values())
    begin = max(first, *(one for one, _ in whole.values()))
    stop = min(last, *(one for _, one in whole.values()))
    common = max(stop - begin, 0)
    lengths = {"common": common, "outside": last - first - common, "whole": last - first}
    lengths = {name: time_three_digits(ns) for name, ns in lengths.items()}
    if stop <= begin or stop - begin < LEAST_COMMON * (last - first):
        return ComparedTime(note=APART.format(**lengths) if last > first else None)
    lacks = {rank: max(low - first, 0) + max(last - high, 0) for rank, (low, high) in whole.items()}
    short = sorted(rank for rank, lacked in lacks.items() if lacked)
    noticed = [rank for rank in short if lacks[rank] > SHORT * (last - first)] or short
    is_noticed = last - first - common > SHORT * (last - first)
    note = CUT.format(ranks=_named(noticed), **lengths) if is_noticed else None
    return ComparedTime((begin, stop), is_cut=bool(short), note=note)


def _named(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {first_of(ranks)}"
