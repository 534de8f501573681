"""Causeway: from GPU profiler exports to the causes of runtime variability.

Three ground floors, `core`, `numeric` and `events`, and a wing for each stage. A wing imports the ground, never another
wing: what one makes and another needs travels as a table on disk. The command line and the Python interface stand above
them.

Imports run from left to right: `command_line` > `api` > `readers`, `inputs`, `variability`, `efficiency`, `waiting`,
`causal`, `levels`, `comparison`, `findings`, `plotting`, `fleet`, `simulate`, `telemetry` > `events` > `numeric` >
`core`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from causeway.api.results_folder import ResultsFolder

GROUND = ("core", "numeric", "events")
"""The ground floors, which every wing may import; the rules and the tests take them from here."""


def open(folder: "str | Path") -> "ResultsFolder":
    """Return the results of a run, to be read: `causeway.open("results").findings`; docs/api.md shows the rest.

    Parameters
    ----------
    folder : str or Path
        The folder `results`, or the one that holds it.

    Raises
    ------
    causeway.core.errors.CausewayError
        If there are no results.
    """
    from causeway.api.results_folder import open_results

    return open_results(folder)
