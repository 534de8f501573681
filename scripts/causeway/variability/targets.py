"""What varies: values of launches, their means, and the targets made of them.

A *value* is a launch's duration in ns, or a counter. Kernel variability and a counter's deviation are |value - mean of the configuration|
(arXiv 2510.18300, section 2.2); the memory stall is the difference in duration of a launch and its linked transfer.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from causeway.errors import CausewayError
from causeway.moments import Moments, require_finite
from causeway.variability.configurations import Configurations
from causeway.variability.quantiles import keys_of, values_of
from causeway.variability.sources import Chunk, Source
from causeway.variability.transfers import Linked, TransferWindow, ends

KERNEL_VARIABILITY, MEMORY_STALL = "kernel_variability", "memory_stall"
TRACE_TARGETS = (KERNEL_VARIABILITY, MEMORY_STALL)


class Duration:
    """The value of a trace's launch: its duration in ns, an integer."""

    table, column, unit = "launches", "duration_ns", "ns"

    def moments(self, groups: int) -> Moments:
        """Return empty moments for this value."""
        return Moments(groups)

    def read(self, chunk: Chunk) -> tuple[np.ndarray, None]:
        """Return the values of a chunk (int64), and None: every launch has one."""
        ends(chunk)  # refuses negative durations
        return chunk.integers(self.column), None

    @staticmethod
    def keys(value: np.ndarray) -> np.ndarray:
        """Return int64 keys that order as the values do."""
        return value

    @staticmethod
    def from_keys(keys: np.ndarray) -> np.ndarray:
        """Return the values of keys."""
        return keys


class Counter:
    """The value of a counter export's or table's launch: one of its columns.

    Parameters
    ----------
    name : str
        The column.

    Attributes
    ----------
    unit : str
        Its unit in words, '' if unknown.
    exponents : (int, int)
        Smallest and largest binary exponent of its values on all ranks.
    """

    table = "counters"

    def __init__(self, name: str) -> None:
        self.column, self.unit, self.exponents = name, "", (0, 0)

    def moments(self, groups: int) -> Moments:
        """Return empty moments for this value; `exponents` must have been set from all ranks."""
        return Moments(groups, self.exponents)

    def read(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the values of a chunk (float64) that are not null, and the ascending indices of their rows (None: all rows).

        Raises
        ------
        CausewayError
            For NaN or an infinity, naming the row.
        """
        value, present = chunk.floats(self.column), chunk.present(self.column)
        rows = None if present.all() else np.flatnonzero(present)
        require_finite(np.where(present, value, 0.0), chunk.row, f"{chunk.source.path}: {self.column}")
        return (value if rows is None else value[rows]), rows

    @staticmethod
    def keys(value: np.ndarray) -> np.ndarray:
        """Return int64 keys that order as the values do."""
        return keys_of(value)

    @staticmethod
    def from_keys(keys: np.ndarray) -> np.ndarray:
        """Return the values of keys."""
        return values_of(keys)


@dataclass
class Sample:
    """The rows of a chunk that have a value; arrays of one element per row, int64 but for `value`."""

    chunk: Chunk
    rows: np.ndarray | None
    """Indices in the chunk; None if all rows have a value."""
    position: np.ndarray
    number: np.ndarray
    """Place of the row's rank in the source's ranks."""
    configuration: np.ndarray
    kernel: np.ndarray
    group: np.ndarray
    """Of the mean that the row deviates from."""
    value: np.ndarray
    """int64 for durations, float64 for counters."""

    def column(self, name: str) -> np.ndarray:
        """Return another column as float64, NaN where null.

        Raises
        ------
        CausewayError
            For NaN or an infinity among the values, naming the row.
        """
        column = self.chunk.floats(name)
        if name in self.chunk.table.column_names:
            present = self.chunk.present(name)
            require_finite(np.where(present, column, 0.0), self.chunk.row, f"{self.chunk.source.path}: {name}")
        return column if self.rows is None else column[self.rows]


class Sampler:
    """Turns chunks into samples.

    Parameters
    ----------
    value : Duration or Counter
    configurations : Configurations
    ranks : list of int
        All ranks of the traced program.
    per_rank : bool
        Whether means are taken over each rank alone; a group is then a configuration on a rank.
    """

    def __init__(self, value: Duration | Counter, configurations: Configurations, ranks: list[int], per_rank: bool) -> None:
        self.value, self.configurations, self.ranks, self.per_rank = value, configurations, ranks, per_rank
        self._numbers: dict[str, np.ndarray] = {}
        self._places: dict[str, np.ndarray] = {}

    @property
    def groups(self) -> int:
        """Number of groups that means are taken over."""
        return len(self.configurations) * (len(self.ranks) if self.per_rank else 1)

    def columns(self) -> list[str]:
        """Return the columns that a sample is made of."""
        return ["configuration", "rank", self.value.column]

    def sample(self, source: Source, chunk: Chunk, position: np.ndarray) -> Sample:
        """Return the rows of a chunk of `source` that have a value."""
        export = source.export
        if export not in self._numbers:
            self._numbers[export] = self.configurations.numbers(export)
            self._places[export] = np.array([self.ranks.index(rank) for rank in source.ranks], np.int64)
        value, rows = self.value.read(chunk)
        number = source.rank_numbers(chunk)
        own = chunk.integers("configuration")
        configuration = self.configurations.renumber(self._numbers[export], own, chunk.row, source.rows.path)
        if rows is not None:
            position, number, configuration = position[rows], number[rows], configuration[rows]
        group = configuration * len(self.ranks) + self._places[export][number] if self.per_rank else configuration
        return Sample(chunk, rows, position, number, configuration, self.configurations.kernel_of[configuration], group, value)


class Deviation:
    """Target |value - mean| of a launch's configuration."""

    def __init__(self, name: str, moments: Moments) -> None:
        self.name = name
        self.moments = moments
        self.largest = float(max((moments.high[moments.count > 0] - moments.low[moments.count > 0]).max(initial=0), 0))
        self.finish()

    def finish(self) -> None:
        """Take means and standard deviations from the moments, once they are complete."""
        self.mean, self.std = self.moments.mean(), np.sqrt(self.moments.variance())

    def of(self, sample: Sample, window: TransferWindow | None) -> np.ndarray:
        """Return the target of each row; float64."""
        return np.abs(self.signed(sample, None))

    def signed(self, sample: Sample, linked: Linked | None) -> np.ndarray:
        """Return value - mean of each row; float64."""
        return sample.value - self.mean[sample.group]


class Stall:
    """Target |launch's duration - linked transfer's duration| in ns; NaN for a launch without a transfer.

    Its mean per configuration becomes known only after all rows were seen; only the signed deviation needs it.

    Parameters
    ----------
    groups : int
        Number of groups that means are taken over.
    largest : float
        An upper bound of all stalls.
    """

    name = MEMORY_STALL

    def __init__(self, groups: int, largest: float) -> None:
        self.moments, self.largest = Moments(groups), largest

    def finish(self) -> None:
        """Take means and standard deviations from the moments, once they are complete."""
        self.mean, self.std = self.moments.mean(), np.sqrt(self.moments.variance())

    def of(self, sample: Sample, window: TransferWindow) -> np.ndarray:
        """Return the target of each row, float64, and add it to the moments."""
        linked = window.link(sample.chunk)
        stall, found = self.stall(sample.value, linked), linked.found
        self.moments.add(sample.group[found], stall[found])
        return np.where(found, stall, np.nan)

    @staticmethod
    def stall(duration: np.ndarray, linked: Linked) -> np.ndarray:
        """Return |duration - transfer's duration| in ns; int64, meaningless where there is no transfer."""
        return np.abs(duration - (linked.end - linked.start))

    def signed(self, sample: Sample, linked: Linked) -> np.ndarray:
        """Return stall - mean of each row; float64."""
        return self.stall(sample.value, linked) - self.mean[sample.group]


def counter_field(source: Source, name: str) -> pa.Field | None:
    """Return the field of a counter export's column; None if it has none of that name.

    Raises
    ------
    CausewayError
        If the column holds text: nothing can be averaged.
    """
    schema = source.rows.file.schema_arrow
    if name not in schema.names:
        return None
    field = schema.field(name)
    if not (pa.types.is_floating(field.type) or pa.types.is_integer(field.type)):
        raise CausewayError(
            f"{source.rows.path}: the target {name} holds {field.type}, expected numbers; choose another in the configuration"
        )
    return field
