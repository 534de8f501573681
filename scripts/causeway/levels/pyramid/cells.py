"""Compiled sums over cells of time: what a pyramid of levels is made of.

A *cell* is a slice of time of one width; a *series* is one stream, or device, with one metric. A value belongs to the
cell in which its event begins; busy time belongs to the cells that it covers. Rows come in the order of time, so each
series has one open cell, which is closed into the output when a row of a later cell comes.
"""

import numpy as np

from causeway.levels.pyramid.sketch import bucket_of
from causeway.numeric.compiled import I8, U2, U4, compiled, compiled_borrowing, int64, record, uint16, uint32, void

LIMB = (1 << 32) - 1
CELL, END, COUNT, SUM, SQUARE_0, SQUARE_1, SQUARE_2, LOW, HIGH, TOUCHED = range(10)
"""Columns of an open cell: its number, its end in ns, the statistics, and how many buckets of its sketch are in use."""
STATE = 10
CLOSED = 10
"""Columns of a closed cell: series, cell, count, sum, three limbs of the sum of squares (32 bits but the last),
least, largest, buckets.
"""
EMPTY_LOW = (1 << 63) - 1
# value series of a stream: durations by class of kernel, variability, stall, bytes by direction
VARIABILITY = 3
STALL = 4
BYTES_IN = 5
VALUES = 9
VALUE_NAMES = (
    "compute_duration communication_duration memory_duration variability stall host_to_device_bytes"
    " device_to_host_bytes on_device_bytes memset_bytes"
).split()
LONG_AGO = -(1 << 62)


SERIES_VALUES = record("SERIES_VALUES", time=I8, series=I8, value=I8)
"""Values of series, ascending in time within a series.

Attributes
----------
time, series, value : ndarray of int64, shape (n,)
    Time in ns.
"""


OPEN_CELLS = record(
    "OPEN_CELLS",
    state=int64[:, ::1],
    histogram=uint32[:, ::1],
    touched=uint16[:, ::1],
    closed=int64[:, ::1],
    buckets=uint16[::1],
    counts=uint32[::1],
    filled=int64[::1],
)
"""The open cell of each series, and what is closed, both updated: see `close`.

Attributes
----------
state : ndarray of int64, shape (series, 10)
histogram : ndarray of uint32, shape (series, buckets)
touched : ndarray of uint16, shape (series, buckets)
closed : ndarray of int64, shape (rows, 10)
buckets : ndarray of uint16, shape (entries,)
counts : ndarray of uint32, shape (entries,)
filled : ndarray of int64, shape (3,)
"""


CELL_GRID = record("CELL_GRID", origin=int64, width=int64, upper=I8, first=U2)
"""The cells of time, and the buckets of values: see `sketch.bucket_of`.

Attributes
----------
origin, width : int, ns
upper : ndarray of int64, shape (buckets,)
first : ndarray of uint16, shape (k,)
"""


CHUNK_ROWS = record(
    "CHUNK_ROWS", start=I8, duration=I8, stream=I8, configuration=U4, kind=I8, mean=I8, linked=I8, lasted=I8
)
"""Launches in the order of time, and what is known of their configurations and transfers.

Attributes
----------
start, duration : ndarray of int64, shape (n,), ns
stream : ndarray of int64, shape (n,)
    Number of its stream.
configuration : ndarray of uint32, shape (n,)
kind, mean : ndarray of int64, shape (configurations,)
    Class of each configuration (0 compute, 1 communication, 2 memory), and its mean in whole ns.
linked : ndarray of int64, shape (n,)
    The index of each launch's transfer in `lasted`; -1 without one.
lasted : ndarray of int64, shape (transfers,), ns
"""


@compiled(
    void(int64, int64[:, ::1], uint32[:, ::1], uint16[:, ::1], int64[:, ::1], uint16[::1], uint32[::1], int64[::1])
)
def close(series, state, histogram, touched, closed, buckets, counts, filled):
    """Write a series' open cell behind the closed ones, its buckets in ascending order, and empty it. `filled`:
    cells, buckets.
    """
    n = filled[0]
    m = filled[1]
    high_part = state[series, SQUARE_0] >> 32
    middle = state[series, SQUARE_1] + high_part
    closed[n, 0] = series
    closed[n, 1] = state[series, CELL]
    closed[n, 2] = state[series, COUNT]
    closed[n, 3] = state[series, SUM]
    closed[n, 4] = state[series, SQUARE_0] & LIMB
    closed[n, 5] = middle & LIMB
    closed[n, 6] = state[series, SQUARE_2] + (middle >> 32)
    closed[n, 7] = state[series, LOW]
    closed[n, 8] = state[series, HIGH]
    used = state[series, TOUCHED]
    closed[n, 9] = used
    names = touched[series, :used]
    names.sort()
    for k in range(used):
        buckets[m + k] = names[k]
        counts[m + k] = histogram[series, names[k]]
        histogram[series, names[k]] = 0
    filled[0] = n + 1
    filled[1] = m + used
    for column in range(COUNT, STATE):
        state[series, column] = 0
    state[series, LOW] = EMPTY_LOW
    state[series, HIGH] = -EMPTY_LOW


@compiled_borrowing(void(int64, int64, int64[:, ::1]))
def _add_square(value, series, state):
    """Add the square of a value to the limbs of its series' open cell."""
    magnitude = np.uint64(abs(value))
    low = magnitude & np.uint64(LIMB)
    high = magnitude >> np.uint64(32)
    square = low * low
    state[series, SQUARE_0] += np.int64(square & np.uint64(LIMB))
    state[series, SQUARE_1] += np.int64(square >> np.uint64(32))
    if high:  # beyond 4.3 s in nanoseconds: rare
        product = low * high
        state[series, SQUARE_1] += 2 * np.int64(product & np.uint64(LIMB))
        state[series, SQUARE_2] += 2 * np.int64(product >> np.uint64(32)) + np.int64(high * high)


@compiled_borrowing(void(SERIES_VALUES, CELL_GRID, OPEN_CELLS))
def add(values, grid, cells):
    """Add values to their series; times ascend within a series, and are not before its open cell."""
    state = cells.state
    histogram = cells.histogram
    touched = cells.touched
    for i in range(values.time.size):
        moment = values.time[i] - grid.origin
        v = values.value[i]
        k = values.series[i]
        if moment >= state[k, END]:
            if state[k, COUNT]:
                close(k, state, histogram, touched, cells.closed, cells.buckets, cells.counts, cells.filled)
            cell = moment // grid.width
            state[k, CELL] = cell
            state[k, END] = (cell + 1) * grid.width
        state[k, COUNT] += 1
        state[k, SUM] += v
        state[k, LOW] = min(state[k, LOW], v)
        state[k, HIGH] = max(state[k, HIGH], v)
        _add_square(v, k, state)
        bucket = bucket_of(v, grid.upper, grid.first)
        if histogram[k, bucket] == 0:
            touched[k, state[k, TOUCHED]] = bucket
            state[k, TOUCHED] += 1
        histogram[k, bucket] += 1


@compiled_borrowing(int64(CHUNK_ROWS, int64[::1], int64[::1], int64[::1]))
def launch_values(launches, time, series, value):
    """Write what `add` takes of launches: their durations, variability and stalls; return how many values there are."""
    n = np.int64(0)
    for i in range(launches.start.size):
        start = launches.start[i]
        base = launches.stream[i] * VALUES
        v = launches.duration[i]
        c = launches.configuration[i]
        time[n] = start
        series[n] = base + launches.kind[c]
        value[n] = v
        time[n + 1] = start
        series[n + 1] = base + VARIABILITY
        value[n + 1] = abs(v - launches.mean[c])
        n += 2
        linked = launches.linked[i]
        if linked >= 0:
            time[n] = start
            series[n] = base + STALL
            value[n] = abs(v - launches.lasted[linked])
            n += 1
    return n
