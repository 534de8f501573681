"""Overhead of an agent on its GPU: a model with explicit assumptions, and a measurement where there is a GPU."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from causeway.core.errors import CausewayError
from causeway.fleet.report_layout import WINDOW_S


@dataclass(frozen=True)
class Assumptions:
    """The assumptions of the model.

    Attributes
    ----------
    per_launch_us : float
        Time that recording one launch adds to it: CUPTI's activity records cost about a microsecond to a few.
    start_stop_ms : float
        Time in which the GPU stands still when recording begins and ends.
    idle_share : float
        Overhead while the agent waits and records nothing, 0 to 1.
    """

    per_launch_us: float = 3.0
    start_stop_ms: float = 50.0
    idle_share: float = 0.0


def model(launches: int, busy_s: float, reports: float = 1.0, assumptions: Assumptions | None = None) -> dict:
    """Return the share of GPU time that a day's reports cost, and the assumptions.

    Parameters
    ----------
    launches : int
        Recorded for one report.
    busy_s : float
        Time that a reporting GPU works in a day, seconds.
    reports : float
        Reports per GPU and day.
    assumptions : Assumptions or None
    """
    given = assumptions or Assumptions()
    lost_s = reports * (launches * given.per_launch_us * 1e-6 + given.start_stop_ms * 1e-3)
    inside = min(lost_s / WINDOW_S, 1.0)
    return {
        "share_of_day": lost_s / busy_s + given.idle_share,
        "share_of_window": inside + given.idle_share,
        "launches": launches,
        "busy_s": busy_s,
        "assumptions": asdict(given),
    }


def paired_overhead(
    plain: Callable[[], None],
    recorded: Callable[[], None],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict:
    """Time the same work with and without recording, in turn; returns the overhead of recording.

    Parameters
    ----------
    plain, recorded : callable
        The work without and with the agent's recording; each waits until the GPU is done.
    repeats : int
        Pairs; which of a pair goes first alternates, so that a drift of clocks or temperature does not favour one.
    clock : callable
        Gives the time in seconds.

    Returns
    -------
    dict
        `overhead` (median of the pairs' ratios, less 1), `low` and `high` (quartiles), `plain_s` (median), `repeats`.
    """
    ratios = []
    plain_s = []
    for pair in range(repeats):
        times = {}
        for name, work in (("plain", plain), ("recorded", recorded))[:: 1 if pair % 2 else -1]:
            begun = clock()
            work()
            times[name] = clock() - begun
        plain_s.append(times["plain"])
        ratios.append(times["recorded"] / times["plain"] - 1)
    low, middle, high = (float(value) for value in np.quantile(ratios, [0.25, 0.5, 0.75]))
    return {"overhead": middle, "low": low, "high": high, "plain_s": float(np.median(plain_s)), "repeats": repeats}


def measure_on_gpu(launches: int, work_launches: int, repeats: int) -> dict:
    """Measure what recording `launches` of `work_launches` launches costs on this GPU, by PyTorch's profiler (CUPTI or
    roctracer).

    Raises
    ------
    CausewayError
        If PyTorch or a GPU is missing.
    """
    try:
        import torch
    except ImportError:
        raise CausewayError(
            "the measurement needs PyTorch, which is not installed; install it beside Causeway"
        ) from None
    if not torch.cuda.is_available():
        raise CausewayError("the measurement needs a GPU that PyTorch can use; there is none here")
    values = torch.rand(1 << 20, device="cuda")

    def launch(count: int) -> None:
        for _ in range(count):
            torch.sin_(values)
        torch.cuda.synchronize()

    def recorded() -> None:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
            launch(launches)
        launch(work_launches - launches)

    launch(work_launches)
    recorded()
    overhead = paired_overhead(lambda: launch(work_launches), recorded, repeats)
    return overhead | {"device": torch.cuda.get_device_name(), "launches": launches, "work_launches": work_launches}
