"""Metrics of the analyst's own, summed like the built-in ones: an expression's value for each launch, transfer,
collective or sample.

A row may be joined with the interval of another table that it lies in: a kernel with its collective, a launch with the
range of the host or the MPI call that ran meanwhile. So metrics go across tables: "bytes per ns of communication
kernels in collectives" is the value `inside_bytes / duration_ns` of launches, where `kernel_class == 'communication'`,
inside collectives; "DRAM use of a kernel" is the `value` of samples of that metric, inside its launches. Of launches,
expressions may name the table's columns and what their configuration and operator say of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.clock import Clock
from causeway.core.errors import CausewayError
from causeway.core.tables import LAUNCH_SHAPE, SCHEMAS, read_table
from causeway.events.event_blocks import kernel_columns
from causeway.levels.pyramid.expressions import KERNEL_NAMES, Expression, parse
from causeway.levels.pyramid.ordered_rows import StreamNumbers, chunks, configurations_of
from causeway.levels.pyramid.pyramid import Level, Sums
from causeway.levels.pyramid.side_tables import EnclosingIntervals, LinkFunction
from causeway.levels.pyramid.sketch import Buckets

OF_KERNEL = {"kernel_class": "class", "kernel": "name", "kernel_id": "id", "short_name": "short_name"}
"""Texts of a launch's kernel and the columns of `kernels` that hold them."""


def stored(table: str, names: set[str]) -> list[str]:
    """Return the columns of a table from which columns of expressions are made, in the schema's order."""
    wanted = names | ({"configuration"} if table == "launches" else set())
    return [field.name for field in SCHEMAS[table] if field.name in wanted]


def values(name: str, batch: pa.RecordBatch) -> np.ndarray:
    """Return a column.

    Parameters
    ----------
    name : str
    batch : RecordBatch
        With the column `name`.

    Returns
    -------
    ndarray, shape (n,)
        Numbers, NaN for null, or texts, '' for null.
    """
    column = batch.column(name)
    if pa.types.is_dictionary(column.type) or pa.types.is_string(column.type):
        return _texts(column)
    return column.to_numpy(zero_copy_only=False)


def _texts(column: pa.Array) -> np.ndarray:
    """Return texts, '' for null, as references to one object for each distinct text: a name of 100 kB is held once."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    words = np.array([*("" if word is None else word for word in coded.dictionary.to_pylist()), ""], object)
    return words[coded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)]


class LaunchColumns:
    """Columns of the launches of an export.

    Parameters
    ----------
    folder : Path
        Its tables.
    mean : ndarray of int64, shape (configurations,), ns
        Mean duration of each configuration.
    """

    def __init__(self, folder: Path, mean: np.ndarray) -> None:
        self._mean = mean
        keys = configurations_of(folder)
        self._shape = {
            column: np.array([np.nan if key is None or key[2][index] is None else key[2][index] for key in keys], float)
            for index, column in enumerate(LAUNCH_SHAPE)
        }
        self._text = _of_kernels(folder, len(keys))
        self._operators = _operators(folder / "operators.parquet")

    def of(self, name: str, batch: pa.RecordBatch) -> np.ndarray:
        """Return a column of rows.

        Parameters
        ----------
        name : str
            One of `custom_metrics.COLUMNS["launches"]`.
        batch : RecordBatch
            With the columns that `stored` names for it.

        Returns
        -------
        ndarray, shape (n,)
            Numbers, NaN for null, or texts, '' where they are not known.
        """
        if name == "operator":
            if name not in batch.schema.names:
                return np.full(batch.num_rows, "", object)
            unknown = len(self._operators) - 1
            return self._operators[batch.column(name).fill_null(unknown).to_numpy(zero_copy_only=False)]
        of_configuration = {**self._text, **self._shape, "mean_ns": self._mean, "deviation_ns": self._mean}.get(name)
        if of_configuration is None:
            return values(name, batch)
        column = of_configuration[batch.column("configuration").to_numpy()]
        return batch.column("duration_ns").to_numpy() - column if name == "deviation_ns" else column


def _of_kernels(folder: Path, n_configurations: int) -> dict[str, np.ndarray]:
    """Return the texts of each configuration's kernel by the columns of expressions, '' for numbers not in use."""
    numbers = read_table(folder / "configurations.parquet", "configurations", ["configuration"]).column(0).to_numpy()
    texts = kernel_columns(folder, list(OF_KERNEL.values()))
    columns = {column: np.full(n_configurations, "", object) for column in OF_KERNEL}  # not as wide as the longest
    for column, name in OF_KERNEL.items():
        columns[column][numbers] = texts.column(name).to_pylist()
    return columns


def _operators(path: Path) -> np.ndarray:
    """Return the names of an export's operators by their numbers, and '' behind them."""
    if not path.is_file():
        return np.array([""], object)
    rows = read_table(path, "operators", ["operator", "name"]).to_pylist()
    names = np.full(max((row["operator"] for row in rows), default=-1) + 2, "", object)
    for row in rows:
        names[row["operator"]] = row["name"] or ""
    return names


SCALE = 1024
"""Values are summed as whole multiples of 1/1024, as sampled metrics are; one that is null counts nowhere."""
LARGEST = 1 << 52
LAUNCHES = ("duration_ns", "queue_ns", "rank", "device", "stream", "deviation_ns", "mean_ns", *LAUNCH_SHAPE)
TRANSFERS = ("duration_ns", "bytes", "copy_kind", "rank", "device", "stream")
COLLECTIVES = ("duration_ns", "bytes", "group_size", "rank", "device", "stream")
KERNEL_TEXTS = ("kernel_class", "kernel", "kernel_id", "short_name", "operator")
COLUMNS = {
    "launches": dict.fromkeys(LAUNCHES, "number") | dict.fromkeys(KERNEL_TEXTS, "text"),
    "transfers": dict.fromkeys(TRANSFERS, "number"),
    "collectives": dict.fromkeys(COLLECTIVES, "number") | {"name": "text", "communicator": "text"},
    "samples": dict.fromkeys(("value", "rank", "device"), "number") | {"metric": "text"},
}
"""What expressions may name, by table. Of a launch: its own columns, the mean of its configuration and its deviation
from it, its launch shape, its kernel's class, full name, id and short name, and its operator's name. Of a sample: its
value and its metric.
"""
INTERVALS = {
    "launches": COLUMNS["launches"],
    "collectives": COLUMNS["collectives"],
    "transfers": COLUMNS["transfers"],
    "ranges": {"duration_ns": "number", "rank": "number", "name": "text", "kind": "text"},
    "mpi": dict.fromkeys(("duration_ns", "rank", "bytes", "peer"), "number") | {"name": "text"},
}
"""Tables whose intervals a row may lie in, and what their own condition may name."""
HOST = ("ranges", "mpi")
"""Tables whose rows belong to a rank; those of the others belong to a device."""
PREFIX = "inside_"
OVERLAP = "overlap_ns"


@dataclass(frozen=True)
class Metric:
    """A checked metric.

    Attributes
    ----------
    name, table : str
    value : Expression
        May name the columns of the table, and with `inside` those of the interval, prefixed with `inside_`, and
        `overlap_ns`.
    where : Expression or None
        Rows for which it is 0 or null count nowhere.
    inside : str or None
        A key of `INTERVALS`: rows that share no time with an interval of that table count nowhere.
    inside_where : Expression or None
        Only intervals for which it is neither 0 nor null count; over the columns of their table.
    """

    name: str
    table: str
    value: Expression
    where: Expression | None
    inside: str | None
    inside_where: Expression | None

    @property
    def columns(self) -> set[str]:
        """What value and condition need."""
        return set(self.value.columns | (self.where.columns if self.where else frozenset()))


def metric_of(entry: Mapping) -> Metric:
    """Check an entry of `levels.metrics`."""
    key = f"levels: metrics: {entry['name']}"
    inside = entry.get("inside")
    columns = dict(COLUMNS[entry["table"]])
    if inside:
        columns |= {f"{PREFIX}{name}": kind for name, kind in INTERVALS[inside["table"]].items()} | {OVERLAP: "number"}
    if inside and inside["table"] == entry["table"]:
        raise CausewayError(f"{key}: inside: {inside['table']} lie in themselves; expected another table")
    conditions = (
        (entry, columns, key),
        (inside or {}, INTERVALS[inside["table"]] if inside else {}, f"{key}: inside"),
    )
    where, inside_where = (
        parse(part["where"], allowed, f"{label}: where") if part.get("where") else None
        for part, allowed, label in conditions
    )
    return Metric(
        entry["name"],
        entry["table"],
        parse(entry["value"], columns, key),
        where,
        inside and inside["table"],
        inside_where,
    )


def expressions(metrics: Sequence[Mapping]) -> list[Metric]:
    """Return the checked metrics that `levels.metrics` of the configuration has.

    Raises
    ------
    CausewayError
        For an expression that is not allowed, or two metrics of one name.
    """
    checked = [metric_of(entry) for entry in metrics]
    names = [metric.name for metric in checked]
    if len(set(names)) < len(names):
        raise CausewayError(f"levels: metrics: two of them have one name, in {', '.join(names)}")
    return checked


class CustomSums:
    """The sums of the analyst's metrics for one export; series = stream, of samples device, times metrics plus the
    metric's index.

    Attributes
    ----------
    counts : ndarray of int64, shape (n_metrics,)
        Rows that count, of each metric.
    """

    def __init__(
        self,
        metrics: list[Metric],
        folder: Path,
        clock: Clock,
        mean: np.ndarray,
        sums: tuple[Buckets, int, float, int],
        link: LinkFunction | None,
    ) -> None:
        self.metrics = metrics
        self._sums = [Sums(*sums) for _ in metrics]
        self._launches = LaunchColumns(folder, mean)
        self._intervals = folder, clock, link
        self.counts = np.zeros(len(metrics), np.int64)
        self._inside: list[EnclosingIntervals | None] = []

    def begin(self) -> None:
        """Begin with another table: its rows are in the order of time again."""
        self._inside = [_inside(metric, *self._intervals, self._launches) for metric in self.metrics]

    def add(self, table: str, batch: pa.RecordBatch, number: np.ndarray) -> None:
        """Add the values of rows of a table.

        Parameters
        ----------
        table : str
        batch : RecordBatch
            With the columns that `stored` names.
        number : ndarray of int64, shape (n,)
            Of the stream of each row, or of the device of each sample.

        Raises
        ------
        CausewayError
            For a value that is too large to be summed.
        """
        if table == "samples":
            start = batch.column("time_ns").to_numpy()
            duration = np.ones(start.size, np.int64)  # the nanosecond at which it was taken
        else:
            start, duration = (batch.column(name).to_numpy() for name in ("start_ns", "duration_ns"))
        for index, metric in enumerate(self.metrics):
            if metric.table != table:
                continue
            of = self._launches.of if table == "launches" else values
            columns = {name: of(name, batch) for name in sorted(metric.columns & COLUMNS[table].keys())}
            columns = columns or {"start_ns": start}
            intervals = self._inside[index]
            if metric.inside and intervals:
                enclosing, shared, theirs = intervals.of(start, duration, _key(batch, metric.inside))
                columns |= _of_intervals(metric, INTERVALS[metric.inside], enclosing, shared, theirs)
            value = metric.value.of(columns)
            if metric.inside:
                value = np.where(enclosing >= 0, value, np.nan)
            if metric.where:
                value = np.where(metric.where.holds(columns), value, np.nan)
            if (np.abs(value) > LARGEST / SCALE).any():
                raise CausewayError(
                    f"levels: metrics: {metric.name}: {metric.value.text!r} gives {np.nanmax(np.abs(value)):.3g}, too"
                    " large to be summed"
                )
            counted = np.flatnonzero(~np.isnan(value))
            self.counts[index] += counted.size
            self._sums[index].grow((int(number.max()) + 1) * len(self.metrics), 0)
            series = number[counted] * len(self.metrics) + index
            scaled = np.rint(value[counted] * SCALE).astype(np.int64)
            self._sums[index].gather(start[counted], series, scaled)

    def finish(self) -> list[Level]:
        """Return the finest level of each metric."""
        return [sums.finish() for sums in self._sums]


def _key(batch: pa.RecordBatch, table: str) -> np.ndarray:
    """Return what rows and intervals of a table must have in common, as one number: the rank, and the device where
    both have one.
    """
    rank = batch.column("rank").to_numpy().astype(np.int64)
    return rank if table in HOST else rank << 16 | batch.column("device").to_numpy()


def _named(metric: Metric) -> list[str]:
    """Return the columns of the intervals that a metric names, in order."""
    return sorted(name.removeprefix(PREFIX) for name in metric.columns if name.startswith(PREFIX))


def _inside(
    metric: Metric, folder: Path, clock: Clock, link: LinkFunction | None, launches: LaunchColumns
) -> EnclosingIntervals | None:
    """Return the intervals of a metric, read as they are needed."""
    inside = metric.inside
    if inside is None:
        return None
    if link is None:
        raise CausewayError(f"levels: metrics: {metric.name}: inside: nothing is given that links rows to intervals")
    path = folder / f"{inside}.parquet"
    named = _named(metric)
    conditions = metric.inside_where.columns if metric.inside_where else frozenset()
    keys = {"start_ns", "duration_ns", "rank", *(() if inside in HOST else ("device",))}
    wanted = stored(inside, {*keys, *named, *conditions})
    of = launches.of if inside == "launches" else values

    def rows() -> Iterator[tuple[np.ndarray, ...]]:
        for batch in chunks(path, inside, wanted, clock=clock) if path.is_file() else ():
            start, duration = (batch.column(name).to_numpy() for name in ("start_ns", "duration_ns"))
            columns = (start, _key(batch, inside), *(of(name, batch) for name in named), start + duration)
            if metric.inside_where:
                inputs = {name: of(name, batch) for name in sorted(conditions)} or {"start_ns": start}
                kept = metric.inside_where.holds(inputs)
                columns = tuple(column[kept] for column in columns)
            if columns[0].size:
                yield columns

    kinds = INTERVALS[inside]
    empty = (
        np.empty(0, np.int64),
        np.empty(0, np.int64),
        *(np.empty(0, object if kinds[name] == "text" else float) for name in named),
    )
    return EnclosingIntervals(rows(), (*empty, np.empty(0, np.int64)), link)


def _of_intervals(
    metric: Metric, kinds: Mapping[str, str], index: np.ndarray, shared: np.ndarray, theirs: tuple[np.ndarray, ...]
) -> dict[str, np.ndarray]:
    """Return the columns of each row's interval, null without one."""
    columns = {OVERLAP: np.where(index >= 0, shared, np.nan)}
    for name, column in zip(_named(metric), theirs[2:-1], strict=True):
        nothing = np.array([""], object) if kinds[name] == "text" else np.array([np.nan])
        columns[PREFIX + name] = np.concatenate((column, nothing))[index]  # -1 is the last
    return columns


def measure(
    metrics: list[Metric],
    folder: Path,
    clock: Clock,
    numbers: StreamNumbers,
    mean: np.ndarray,
    sums: tuple[Buckets, int, float, int],
    link: LinkFunction | None,
    samples: Sequence[tuple[Path, Clock]],
) -> tuple[list[Level], np.ndarray]:
    """Return the finest level of each metric of an export, in a pass over its tables of its own, and of each how many
    rows count, int64, shape (n_metrics,); see `Sums` for `sums`. `samples` are the tables of samples, of the export and
    of the whole dataset.
    """
    if not metrics:
        return [], np.zeros(0, np.int64)
    custom = CustomSums(metrics, folder, clock, mean, sums, link)
    for table, path, own_clock in [
        *((table, folder / f"{table}.parquet", clock) for table in COLUMNS if table != "samples"),
        *(("samples", path, own_clock) for path, own_clock in samples),
    ]:
        of_table = [metric for metric in metrics if metric.table == table]
        if of_table and path.is_file():
            _add_table(custom, table, of_table, path, own_clock, numbers, path.parent != folder)
    return custom.finish(), custom.counts


def notes_on_empty(metrics: Sequence[Metric], counts: np.ndarray, sampled: Sequence[str]) -> list[str]:
    """Return a sentence for each metric of which no row of the dataset counts, with what is there instead.

    Parameters
    ----------
    metrics : sequence of Metric
    counts : ndarray of int, shape (n_metrics,)
        Rows that count.
    sampled : sequence of str
        Names of the metrics that samples are of.
    """
    return [
        f"the metric {metric.name} is empty: {_why_empty(metric, sampled)}"
        for metric, count in zip(metrics, counts.tolist(), strict=True)
        if not count
    ]


def _why_empty(metric: Metric, sampled: Sequence[str]) -> str:
    """Return why no row counts, as far as its conditions tell, and what they could name."""
    named = [
        pair for part in (metric.value, metric.where, metric.inside_where) if part for pair in part.equated_texts()
    ]
    unknown = [text for column, text in named if column == "metric" and text not in sampled]
    if metric.table == "samples" and not sampled:
        return "the dataset has no sampled metrics"
    if unknown:
        return f"no sampled metric is called {unknown[0]}; there are {', '.join(sampled)}"
    rows = f"no row of {metric.table} meets its conditions or has its value"
    kernels = [(column, text) for column, text in named if column.removeprefix(PREFIX) == "kernel"]
    if kernels:
        return f"{rows}; {kernels[0][0]} is a kernel's whole name, others match by {KERNEL_NAMES}"
    return rows


def _add_table(
    custom: CustomSums, table: str, metrics: list[Metric], path: Path, clock: Clock, numbers: StreamNumbers, whole: bool
) -> None:
    """Add the rows of a table; of one that is of the `whole` dataset those of the export's ranks."""
    time = "time_ns" if table == "samples" else "start_ns"
    ranks = pa.array(sorted({rank for rank, _ in numbers.devices.rows}), pa.uint32())
    custom.begin()
    keys = {time, "duration_ns", "rank", "device", "stream"}
    for batch in chunks(path, table, stored(table, keys.union(*(metric.columns for metric in metrics))), time, clock):
        if whole:
            batch = batch.filter(pc.is_in(batch.column("rank"), ranks))
        if batch.num_rows:
            custom.add(table, batch, numbers.of_devices(batch) if table == "samples" else numbers.of(batch))
