"""How much an agent slows its GPU down: a model with stated assumptions. `docs/fleet.md` says what was measured."""

from dataclasses import asdict, dataclass

from causeway.fleet.sampling import WINDOW_S


@dataclass(frozen=True)
class Assumptions:
    """What the model rests on.

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
    """Return the share of GPU time that a day's reports cost, and what was assumed.

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
