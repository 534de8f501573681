"""What varies: values of launches, their means, and the targets made of them.

A *value* is a launch's duration in ns, or a counter. Kernel variability and a counter's deviation are |value - mean of
the configuration| (arXiv 2510.18300, section 2.2); the memory stall is the difference in duration of a launch and its
linked transfer.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from causeway.core.errors import CausewayError, TableError
from causeway.core.vocabulary import MEMORY_STALL
from causeway.numeric.compiled import F8, I4, I8, compiled, float64, int32, int64, void
from causeway.numeric.moments import Moments, require_finite
from causeway.variability.rows.configurations import Configurations
from causeway.variability.rows.group_quantiles import keys_of, values_of
from causeway.variability.rows.sources import Chunk, Source
from causeway.variability.rows.transfer_links import NONE
from causeway.variability.rows.transfers import LinkedTransfers, TransferWindow, durations


class Duration:
    """The value of a trace's launch: its duration in ns, an integer."""

    table = "launches"
    column = "duration_ns"
    unit = "ns"
    lowest_key = 0

    def moments(self, groups: int) -> Moments:
        """Return empty moments for this value."""
        return Moments(groups)

    def read(self, chunk: Chunk) -> tuple[np.ndarray, None]:
        """Return the values of a chunk (int64), and None: every launch has one."""
        return durations(chunk), None

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
    lowest_key : int
        No key is smaller.
    """

    table = "counters"

    def __init__(self, name: str) -> None:
        self.column = name
        self.unit = ""
        self.span([])

    def span(self, ranges: list[tuple[int, int] | None]) -> None:
        """Set the exponents from those found by all workers (`exponent_range`)."""
        pairs = [pair for pair in ranges if pair] or [(0, 0)]
        self.exponents = (min(low for low, _ in pairs), max(high for _, high in pairs))
        self.lowest_key = int(keys_of(np.ldexp([-1.0], self.exponents[1]))[0])

    def moments(self, groups: int) -> Moments:
        """Return empty moments for this value; `span` must have been set from all ranks."""
        return Moments(groups, self.exponents)

    def read(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the values of a chunk (float64) that are not null, and the ascending indices of their rows (None: all
        rows).

        Raises
        ------
        CausewayError
            For NaN or an infinity, naming the row.
        """
        value, present = finite(chunk, self.column)
        rows = None if present.all() else np.flatnonzero(present)
        return (value if rows is None else value[rows]), rows

    @staticmethod
    def keys(value: np.ndarray) -> np.ndarray:
        """Return int64 keys that order as the values do."""
        return keys_of(value)

    @staticmethod
    def from_keys(keys: np.ndarray) -> np.ndarray:
        """Return the values of keys."""
        return values_of(keys)


def finite(chunk: Chunk, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a column as float64 (NaN where null), and where it is not null.

    Raises
    ------
    CausewayError
        For NaN or an infinity among the values, naming the row.
    """
    column = chunk.floats(name)
    present = chunk.present(name)
    bad = np.flatnonzero(present & ~np.isfinite(column))
    if bad.size:
        require_finite(column[bad], chunk.row(bad[0]), f"{chunk.source.path}: {name}")
    return column, present


@dataclass
class Sample:
    """The rows of a chunk that have a value; arrays of one element per row."""

    chunk: Chunk
    position: np.ndarray
    """int64"""
    rank_index: np.ndarray
    """Index of the row's rank in the source's ranks; int32."""
    configuration: np.ndarray
    """The dataset's number; int32."""
    kernel: np.ndarray
    """Index in the dataset's kernels; int32."""
    group: np.ndarray
    """Of the mean that the row deviates from; int32."""
    value: np.ndarray
    """int64 for durations, float64 for counters."""

    def take(self, indices: np.ndarray) -> "Sample":
        """Return the rows with ascending indices (int64)."""
        arrays = (self.position, self.rank_index, self.configuration, self.kernel, self.group, self.value)
        return Sample(self.chunk.take(indices), *(array[indices] for array in arrays))

    def feature(self, name: str) -> np.ndarray:
        """Return another column as float64, NaN where null or absent from the table.

        Raises
        ------
        CausewayError
            For NaN or an infinity among the values, naming the row.
        """
        floating = name in self.chunk.source.columns and pa.types.is_floating(self.chunk.source.schema.field(name).type)
        return finite(self.chunk, name)[0] if floating else self.chunk.floats(name)


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

    def __init__(
        self, value: Duration | Counter, configurations: Configurations, ranks: list[int], per_rank: bool
    ) -> None:
        self.value = value
        self.configurations = configurations
        self.ranks = ranks
        self.per_rank = per_rank
        self._numbers = {export: configurations.numbers(export) for export in configurations.exports}

    @property
    def groups(self) -> int:
        """Number of groups that means are taken over."""
        return len(self.configurations) * (len(self.ranks) if self.per_rank else 1)

    def columns(self) -> list[str]:
        """Return the columns that a sample is made of."""
        return [*self.configurations.columns(), "rank", self.value.column]

    def sample(self, source: Source, chunk: Chunk, position: np.ndarray) -> Sample:
        """Return the rows of a chunk of `source` that have a value.

        Raises
        ------
        TableError
            For a configuration that the export's table of configurations does not have, or a rank that it does not
            name.
        """
        value, rows = self.value.read(chunk)
        if rows is not None:
            chunk = chunk.take(rows)
            position = position[rows]
        rank_index = source.rank_indices(chunk)
        own = self.configurations.own(source.export, chunk)
        configuration = np.empty(own.size, np.int32)
        kernel = np.empty(own.size, np.int32)
        wrong = self.configurations.renumber(self._numbers[source.export], own, configuration, kernel)
        if wrong >= 0:
            raise TableError(
                f"{source.rows.path}: row {chunk.row(wrong)} has configuration {own[wrong]}, which"
                " configurations.parquet does not have"
            )
        group = configuration
        if self.per_rank:
            indices = np.array([self.ranks.index(rank) for rank in source.ranks], np.int32)
            group = configuration * np.int32(len(self.ranks)) + indices[rank_index]
        return Sample(
            chunk=chunk,
            position=position,
            rank_index=rank_index,
            configuration=configuration,
            kernel=kernel,
            group=group,
            value=value,
        )


class Deviation:
    """Target |value - mean| of a launch's configuration."""

    def __init__(self, name: str, moments: Moments) -> None:
        self.name = name
        self.moments = moments
        self.largest = float(max((moments.high[moments.count > 0] - moments.low[moments.count > 0]).max(initial=0), 0))
        self.finish()

    def finish(self) -> None:
        """Take means and standard deviations from the moments, once they are complete."""
        self.mean = self.moments.mean()
        self.std = np.sqrt(self.moments.variance())

    def of(self, sample: Sample, window: TransferWindow, moments: Moments) -> np.ndarray:
        """Return the target of each row; float64."""
        target = np.empty(sample.value.size)
        _deviate(sample.value, sample.group, self.mean, target)
        return target

    def measured(self, sample: Sample, linked: LinkedTransfers) -> np.ndarray:
        """Return what deviates from the mean: the value of each row."""
        return sample.value

    def finished(self, measured: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return target and signed deviation; float64."""
        signed = measured - self.mean[group]
        return np.abs(signed), signed


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
        self.moments = Moments(groups)
        self.largest = largest

    def finish(self) -> None:
        """Take means and standard deviations from the moments, once they are complete."""
        self.mean = self.moments.mean()
        self.std = np.sqrt(self.moments.variance())

    def of(self, sample: Sample, window: TransferWindow, moments: Moments) -> np.ndarray:
        """Return the target of each row, float64, and add it to `moments`."""
        linked = window.link(sample.chunk)
        stall = np.empty(sample.value.size, np.int64)
        group = np.empty(sample.value.size, np.int32)
        target = np.empty(sample.value.size)
        n = _stall(
            sample.value, sample.group, linked.index, linked.held["start"], linked.held["end"], target, stall, group
        )
        moments.add(group[:n], stall[:n])
        return target

    def measured(self, sample: Sample, linked: LinkedTransfers) -> np.ndarray:
        """Return what deviates from the mean: the stall of each row, which has a transfer; int64."""
        return np.abs(sample.value - (linked.of("end") - linked.of("start")))

    def finished(self, measured: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return target and signed deviation; float64."""
        return measured.astype(float), measured - self.mean[group]


@compiled([void(value, I4, F8, float64[::1]) for value in (I8, F8)])
def _deviate(value, group, mean, target):
    for i in range(value.size):
        target[i] = abs(value[i] - mean[group[i]])


@compiled(int64(I8, I4, I8, I8, I8, float64[::1], int64[::1], int32[::1]))
def _stall(value, group, index, t_start, t_end, target, stall, stalled):
    """Write the target of every row, and the stalls of those that have one behind one another with their groups;
    return how many.
    """
    n = np.int64(0)
    for i in range(value.size):
        if index[i] == NONE:
            target[i] = np.nan
        else:
            stall[n] = abs(value[i] - (t_end[index[i]] - t_start[index[i]]))
            target[i] = stall[n]
            stalled[n] = group[i]
            n += 1
    return n


def counter_field(source: Source, name: str) -> pa.Field | None:
    """Return the field of a counter export's column; None if it has none of that name.

    Raises
    ------
    CausewayError
        If the column holds text: nothing can be averaged.
    """
    if name not in source.rows.columns:
        return None
    field = source.rows.schema.field(name)
    if not (pa.types.is_floating(field.type) or pa.types.is_integer(field.type)):
        raise CausewayError(
            f"{source.rows.path}: the target {name} holds {field.type}, expected numbers; choose another in the"
            " configuration"
        )
    return field
