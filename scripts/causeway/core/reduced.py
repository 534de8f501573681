"""What a filter rules out: analyses of a reduced dataset that would take dropped events for events that never were."""

from collections.abc import Iterable
from pathlib import Path

from causeway.core.tables import read_json

CONTEXT_FEATURES = "context_features"
EFFICIENCY = "efficiency"
STRAGGLERS = "stragglers"
FILTERED = (CONTEXT_FEATURES, EFFICIENCY, STRAGGLERS)
"""Analyses that `capabilities.json` names for exports of reduced datasets alone: every other export allows them as far
as its tables do.
"""


def why_not(folders: Iterable[str | Path], analysis: str) -> str | None:
    """Return the sentence that says why a dataset's filter rules an analysis out; None where it does not.

    Parameters
    ----------
    folders : iterable of path
        The folders of tables of the dataset's exports; each holds a `capabilities.json`.
    analysis : str
        Of `FILTERED`, or `memory_stall`.

    Raises
    ------
    TableError
        If a document cannot be read.
    """
    for folder in folders:
        state = read_json(Path(folder) / "capabilities.json").get("analyses", {}).get(analysis)
        if state and not state["possible"]:
            return state["why"]
    return None
