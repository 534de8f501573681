"""What the recordings of a dataset cover of the run, and which of them are short."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from causeway.core.formatting import first_of, time_three_digits
from causeway.events.event_blocks import GPU_TABLES, SHORT, recorded_spans, spans, widened


@dataclass(frozen=True)
class RecordedTime:
    """What was recorded of a rank; (first start, last end), ns.

    Attributes
    ----------
    gpu : (int, int)
        Its GPU work.
    whole : (int, int) or None
        Events of any kind; None where the host was not recorded, so that only GPU work is known.
    """

    gpu: tuple[int, int]
    whole: tuple[int, int] | None


def recordings_of(folder: Path) -> dict[int, RecordedTime]:
    """Return the recordings of the ranks of an export that have GPU work, in its own clock."""
    host = recorded_spans(folder)
    gpu = spans(folder, GPU_TABLES)
    whole = widened(gpu, host)
    return {rank: RecordedTime(span, whole[rank] if rank in host else None) for rank, span in gpu.items()}


def on_one_line(exports: Sequence[tuple[Mapping[int, RecordedTime], int]]) -> dict[int, RecordedTime]:
    """Return the recordings of all ranks on one time line.

    Parameters
    ----------
    exports : sequence of (mapping of int to RecordedTime, int)
        Those of each export by rank, and when its session started, ns.
    """
    return {
        rank: RecordedTime(_moved(recording.gpu, start), recording.whole and _moved(recording.whole, start))
        for recordings, start in exports
        for rank, recording in recordings.items()
    }


def _moved(span: tuple[int, int], by: int) -> tuple[int, int]:
    return span[0] + by, span[1] + by


def short_recordings(recordings: Mapping[int, RecordedTime]) -> tuple[list[int], str]:
    """Return the ranks whose recordings lack a part of the time from the first to the last GPU event of any rank, and
    in words what the shortest of them lacks; none where the recording of a rank is not known.

    Parameters
    ----------
    recordings : mapping of int to RecordedTime
        By rank, on one time line.
    """
    whole = {rank: recording.whole for rank, recording in recordings.items() if recording.whole is not None}
    if len(recordings) < 2 or len(whole) < len(recordings):
        return [], ""
    first = min(recording.gpu[0] for recording in recordings.values())
    last = max(recording.gpu[1] for recording in recordings.values())
    lacks = {rank: (max(0, begin - first), max(0, last - end)) for rank, (begin, end) in whole.items()}
    short = sorted(rank for rank, parts in lacks.items() if sum(parts) > SHORT * (last - first))
    if not short:
        return [], ""
    worst = max(short, key=lambda rank: (sum(lacks[rank]), -rank))
    parts = zip(("first", "last"), lacks[worst], strict=True)
    words = " and the ".join(f"{edge} {time_three_digits(time)}" for edge, time in parts if time)
    several = f"ranks {first_of(short)}; " if len(short) > 1 else ""
    return short, f"{several}rank {worst} lacks the {words} of {time_three_digits(last - first)} of GPU work"
