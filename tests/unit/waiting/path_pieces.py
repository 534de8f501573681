"""A critical path at once, as tests compare it; a run takes it part by part."""

import numpy as np

from causeway.waiting.path.walk import PIECE


def pieces_of(paths, schedule, rank):
    """Return the pieces of a rank's critical path in the order of time; int64, shape (pieces, 4), `walk.PIECE`."""
    parts = list(paths.chunks(schedule, rank))
    return np.concatenate([np.zeros((0, len(PIECE)), np.int64), *parts[::-1]])
