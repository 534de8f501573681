"""Values that stand for what is absent, and limits beyond which a number is damage."""

import numpy as np

Column = np.ndarray | int
"""A raw column, or one value for all rows."""

NULL = np.iinfo(np.int64).min
"""The absent value in raw integer columns; becomes null, or a count of what was left out, before anything is
written.
"""

NEVER = np.iinfo(np.int64).max
"""The end of an event that had begun and not ended when the recording ended; the sink gives it that time."""

NO_KIND = 255
"""The absent memory kind of a transfer's end, in its unsigned byte."""

NO_STREAM = (1 << 32) - 1
"""Stream of synchronisations that concern no stream (CUPTI_SYNCHRONIZATION_INVALID_VALUE), and of work whose stream is
not recorded.
"""

UNNAMED_CALL = "(unnamed call)"
UNNAMED_RANGE = "(unnamed range)"
UNNAMED_METRIC = "(unnamed metric)"
UNNAMED_OVERHEAD = "work that is not named"
"""What calls, ranges, sampled metrics and a profiler's work without a name are called; of kernels, see
`kernel_names.UNNAMED`.
"""

EPOCH_FROM_NS = 10**18
"""Times beyond this count from 1970 (here: after 2001), as CUPTI's do; smaller ones from the start of the session."""

EPOCH_2100_NS = 4_102_444_800_000_000_000
LONGEST_NS = 100 * 86_400 * 1_000_000_000
"""Times beyond these are damage or another unit, never a measurement; they would also overflow sums of squares
downstream.
"""

MOST_COLUMNS = 20_000
"""Columns of a table, and metrics of an export, which become columns: more than twice those of the widest capture of
counters that we know of (8,006), and each costs memory in every block.
"""

WRAPPED = 1 << 31
"""A correlation that falls by as much has come to the end of its 32 bits and starts again."""
TIMES = ("start", "stop")
"""Names of the times of events in the tables of AMD's tools, in nanoseconds."""
SIGNALS = frozenset({"dispatched", "completed"})
"""Those of the times at which a dispatch's signals were noted."""
