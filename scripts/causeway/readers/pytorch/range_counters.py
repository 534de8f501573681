"""CUPTI range counters in a Kineto trace: every argument of an event is one."""

from collections.abc import Sequence

import numpy as np

from causeway.readers.common.constants import NULL
from causeway.readers.common.numbers import number
from causeway.readers.containers.chrome_json import Event
from causeway.readers.pytorch.event_fields import all_arguments, times_ns
from causeway.readers.sink.counter_table import CounterTable
from causeway.readers.sink.records import CounterRows
from causeway.readers.sink.sink import Sink


class RangeCounters:
    """The range counters of a trace. CUPTI gives raw values; only names say which are per cent.

    Parameters
    ----------
    source : str
        The export, for messages.
    """

    def __init__(self, source: str) -> None:
        self._metrics = CounterTable(source)
        self.rows: list[tuple[int, int, int]] = []  # start, kernel and process

    def take(self, events: Sequence[Event], process: np.ndarray, sink: Sink) -> None:
        """Take n events.

        Parameters
        ----------
        events : sequence of Event, n of them
        process : ndarray of int64, shape (n,)
            The codes of their processes.
        sink : Sink
        """
        start, _ = times_ns([event.ts for event in events])
        for event, begin, code in zip(events, start.tolist(), process.tolist(), strict=True):
            launch = len(self.rows)
            self.rows.append((begin, sink.kernel(event.name if isinstance(event.name, str) else None), code))
            for metric, value in all_arguments(event.args).items():
                value = number(value) if isinstance(value, str) else float(value) if type(value) is int else None
                if value is not None:
                    ratio = "pct" in metric
                    self._metrics.add_number(launch, metric, value / 100 if ratio else value, "ratio" if ratio else "")

    def first(self) -> int | None:
        """Return when the first event starts, in ns; None if none says it."""
        return min((start for start, _, _ in self.rows if start != NULL), default=None)

    def hand_over(self, sink: Sink) -> None:
        """Give the counters to the sink."""
        start, kernel, process = np.array(self.rows).T
        sink.processes.note(process, np.zeros(len(start), np.int64), launches=not sink.n_launches)
        self._metrics.hand_over(sink, CounterRows(kernel=kernel, process=process, start_ns=start))
