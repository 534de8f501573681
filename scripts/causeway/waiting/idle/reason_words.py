"""The reasons for which a device is idle, and the words for what is behind them."""

from causeway.core.codes import HELD_BACK, HOST_ACCESS, HOST_CODE, NO_LAUNCHER
from causeway.core.vocabulary import WAITING_REASONS

NAMES = tuple(WAITING_REASONS)
(
    LAUNCH_STARVED,
    DEPENDENCY_STALLED,
    BLOCKED_HOST,
    START_UP,
    GRAPH_INTERNAL,
    PROFILER,
    UNKNOWN_REASON,
    BEFORE_FIRST,
    AFTER_LAST,
    OTHER_PROCESS,
    SHARED,
) = range(len(NAMES))
"""Numbers of the reasons, in the order of `WAITING_REASONS`."""

NO_CORRELATION = "no call is correlated with the work that ended the gap"
NOT_RECORDED = HOST_CODE
NO_THREAD = NO_LAUNCHER
BETWEEN_NODES = "between nodes of one graph launch"
ON_IDLE_DEVICE = "from the end of the launch call to the start"
BETWEEN_QUEUED = "between queued work"
HELD = HELD_BACK
ACCESS = HOST_ACCESS
BETWEEN_DEVICES = "pages of managed memory moved between devices"
OTHER = "other"
"""Details that are not names of an export."""
