"""The steps of a dataset, rank by rank."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from causeway.core.tables import read_table

StepsOfRank = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Start, end (ns) and number of a rank's steps, in order and without overlap; int64, shape (steps,) each."""
Steps = Mapping[int, StepsOfRank]
"""Steps of each rank that has any."""


def steps_by_rank(path: str | Path | None) -> Steps:
    """Return the steps of each rank on the dataset's time line; none without a path or where there is no file.

    Raises
    ------
    TableError
        If the table is damaged.
    """
    if path is None or not Path(path).is_file():
        return {}
    table = read_table(path, "steps", ["rank", "step", "start_ns", "duration_ns"])
    rank, number, start, duration = (column.to_numpy() for column in table.columns)
    steps = {}
    for owner in np.unique(rank).tolist():
        rows = np.flatnonzero(rank == owner)
        rows = rows[np.argsort(start[rows], kind="stable")]
        steps[owner] = (start[rows], start[rows] + duration[rows], number[rows])
    return steps
