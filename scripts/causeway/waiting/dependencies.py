"""Waits that an export records: of calls for streams, and of streams for events of other streams."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from causeway.events.event_blocks import chunks, numbers

WAIT = "wait"
"""Kind of the rows of `dependencies` by which a stream waits for an event."""
UNRECORDED = -1
"""A stream or a correlation that is not recorded."""


def dependencies(folder: Path, *names: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Give the kinds of the rows of `dependencies`, texts of shape (k,), and some of their numbers, int64 of shape
    (names, k), piece by piece.
    """
    for batch in chunks(folder, "dependencies", ["kind", *names]):
        columns = [numbers(batch.column(name).cast("int64"), UNRECORDED) for name in names]
        yield np.array(batch.column("kind").to_pylist(), object), np.stack(columns)
