"""The compiled loop of `joins`."""

import numpy as np

from causeway.numeric.compiled import I8, compiled, int64, void


@compiled(void(I8, I8, I8, I8, int64[::1]))
def latest_open(start, end, times, order, latest):
    """Find for each time the latest-started range that holds it.

    Parameters
    ----------
    start, end : ndarray of int64, shape (n_ranges,)
        Ascending start; closed left, open right.
    times, order : ndarray of int64, shape (n,)
        Ascending; the place of each in `latest`.
    latest : ndarray of int64, shape (n,)
        Gets the index of the range, or -1.
    """
    stack = np.empty(start.size, np.int64)
    top = 0
    following = 0
    for i in range(times.size):
        while following < start.size and start[following] <= times[i]:
            while top > 0 and end[stack[top - 1]] <= start[following]:
                top -= 1
            stack[top] = following
            top += 1
            following += 1
        while top > 0 and end[stack[top - 1]] <= times[i]:
            top -= 1
        latest[order[i]] = stack[top - 1] if top > 0 else -1
