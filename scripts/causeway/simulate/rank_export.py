"""An export of one rank being written: where the rank runs, its clock, and when the file counts as complete."""

from pathlib import Path

from causeway.core.files.whole_files import partial_of
from causeway.simulate.scenario import HostClock, Scenario, clock_of

FIRST_EVENT_NS = 1_200_000_000
"""Time from the first session's start to the run's zero: loading, allocation."""


class RankExport:
    """An export being written, as a context manager; the file appears under its name when complete.

    Parameters
    ----------
    path : str or Path
    scenario : Scenario
    rank : int
    later_ns : int
        How much later than the first rank's the clock begins.
    """

    def __init__(self, path: str | Path, scenario: Scenario, rank: int, later_ns: int = 0) -> None:
        self.path = Path(path)
        self.scenario = scenario
        self.rank = rank
        self.devices = -(-scenario.ranks // scenario.nodes)
        self.node, self.device = divmod(rank, self.devices)
        error_ns, drift = clock_of(scenario, rank)
        self.clock = HostClock(shift_ns=FIRST_EVENT_NS - later_ns + error_ns, drift=drift)
        self.rows: dict[str, int] = {}
        self.partial = partial_of(self.path)
        self.partial.unlink(missing_ok=True)
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def __exit__(self, failure: object, *_: object) -> None:
        self.close(is_complete=failure is None)
        if failure is None:
            self.partial.replace(self.path)
        else:
            self.partial.unlink(missing_ok=True)

    def close(self, *, is_complete: bool) -> None:
        """Write what stands at the end, of an export that is complete, and close the file."""
        raise NotImplementedError
