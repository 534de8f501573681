"""The launches of a dataset with their kernels, configurations, ranks and regions numbered over all its exports,
streamed. A graph that was recorded as a whole is a kernel, and its execution a launch.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.comparison.runs.launch_inputs import UNKNOWN, by_key, messages_of, sizes_of
from causeway.comparison.runs.recordings import Recording, device_names, recording_of
from causeway.comparison.runs.settings import any_unit, time_columns, value_words
from causeway.core.codes import GPU_TIME, GRAPH_RANGE
from causeway.core.errors import NotComparableError
from causeway.core.formatting import NANOSECONDS, elided
from causeway.core.names.build_numbers import names_of_one_kernel
from causeway.core.reduced import rules_out_time_line
from causeway.core.schemas import GRID_AND_BLOCK
from causeway.core.schemas.launch_threads import grid_counts, thread_sizes
from causeway.core.tables import LAUNCH_SHAPE, open_table, read_json, read_table, unit_of
from causeway.events.event_blocks import GPU_TABLES, chunks, spans, widened
from causeway.events.few_values import Numbers, few_rows

BATCH_ROWS = 1 << 18
GRAPHS = "ranges"
"""Table with the executions of whole graphs and their names."""
WHOLE = (None,) * (len(LAUNCH_SHAPE) + 1)
"""Shape of a graph that was recorded as a whole."""
UNITS = {**NANOSECONDS, "": 1.0, "µs": 1e3}
"""Units of a counter of GPU time, ns each."""
NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class LaunchBatch:
    """Launches in the order of their start.

    Attributes
    ----------
    start : ndarray of int64, shape (n,), ns, or None
        None where the export has no times, or not those of the program.
    duration : ndarray of int64, shape (n,), ns
    configuration, rank : ndarray of int64, shape (n,)
        Numbers of the dataset.
    region : ndarray of int64, shape (n,)
        -1 outside any.
    stream : ndarray of int64, shape (n,)
        Numbers rank, device and stream together.
    """

    start: np.ndarray | None
    duration: np.ndarray
    configuration: np.ndarray
    rank: np.ndarray
    region: np.ndarray
    stream: np.ndarray


COLUMNS = [column.name for column in fields(LaunchBatch)]


@dataclass(kw_only=True)
class RunFacts:
    """What is known of a run beside its launches, or calls of operators.

    Attributes
    ----------
    dataset : str
    ranks : list of int
        All ranks, in order.
    names : list of str
        Full names of kernels, or names of operators, by number.
    configurations : list of (int, tuple)
        Kernel and shape (then label), or operator and input, by number.
    regions : list of str
        Names of regions, a star for each number in them, by number.
    recordings : list of Recording
        Of the exports whose launches these are, as far as they are known.
    devices : dict of (int, int) to (str or None)
        Names of the devices by rank and number.
    incomplete : list of (str, bool)
        Exports that were not read whole, each with whether it was refused.
    thread_columns : int
        Leading values of a shape whose product is the threads of a launch; 0: not known.
    graphs : frozenset of int
        Kernels that are graphs recorded as a whole, without their kernels.
    span_ns : int or None
        From the first start to the last end of a rank's work, also of copies, the longest; None without a time line.
    """

    dataset: str
    ranks: list[int]
    names: list[str]
    configurations: list[tuple]
    regions: list[str] = field(default_factory=list)
    recordings: list[Recording] = field(default_factory=list)
    devices: dict[tuple[int, int], str | None] = field(default_factory=dict)
    incomplete: list[tuple[str, bool]] = field(default_factory=list)
    thread_columns: int = 0
    graphs: frozenset[int] = frozenset()
    span_ns: int | None = None


class Launches:
    """The launches of one dataset.

    Parameters
    ----------
    dataset : str
    folders : sequence of Path
        Its folders of tables, in the sheet's order.
    settings : sequence of str, optional
        Columns of plain tables that are part of a row's configuration.
    by_message : bool
        Whether the size of a collective's message is part of its configuration.
    time : str, optional
        The column of plain tables to take (`common_time`); of each its first one without.

    Attributes
    ----------
    facts : RunFacts

    Raises
    ------
    NotComparableError
        If no export of the dataset has launches or GPU times.
    """

    def __init__(
        self,
        dataset: str,
        folders: Sequence[str | Path],
        settings: Sequence[str] = (),
        by_message: bool = False,
        time: str | None = None,
    ) -> None:
        self._settings = list(settings)
        self._by_message = by_message
        self._kernels = Numbers[str]()
        self._configurations = Numbers[tuple]()
        self._regions = Numbers[str]()
        self._thread_columns = 0
        self._whole_graphs: set[int] = set()
        self._exports = []
        ranks: set[int] = set()
        self._one_kernel = names_of_one_kernel(
            [_shapes_by_name(folder) for folder in map(Path, folders) if _source(folder, time)]
        )
        for folder in map(Path, folders):
            sources = [source for source in (_source(folder, time), _graphs(folder)) if source is not None]
            if sources:
                document = read_json(folder / "capabilities.json")
                own = (self._regions_of(folder), not rules_out_time_line(document))
                self._exports += [(folder, *source, self._numbers_of(source[0], folder), *own) for source in sources]
                ranks |= set(document["ranks"])
        if any(
            name != "counters" for _, name, *_ in self._exports
        ):  # counters beside a trace repeat its kernels one by one: not the run
            self._exports = [export for export in self._exports if export[1] != "counters"]
        if not self._exports:
            raise NotComparableError(
                f"dataset {dataset} cannot be compared: none of its exports holds kernel launches or the counter"
                f" {GPU_TIME}{_why_not(folders)}"
            )
        self._ranks = sorted(ranks)
        if self._settings or by_message:
            for _ in self.batches():  # meets all configurations
                pass
        timed = {folder: has_times for folder, *_, has_times in self._exports}
        recordings = [recording_of(folder) for folder in timed]
        self.facts = RunFacts(
            dataset=dataset,
            ranks=self._ranks,
            names=self._kernels.rows,
            configurations=self._configurations.rows,
            regions=self._regions.rows,
            recordings=[recording for recording in recordings if recording is not None],
            devices={key: name for folder, *_ in self._exports for key, name in device_names(folder).items()},
            incomplete=_not_read_whole(folders),
            thread_columns=self._thread_columns,
            graphs=frozenset(self._whole_graphs),
            span_ns=_span_ns([folder for folder, has_times in timed.items() if has_times]),
        )

    def _keys(self, folder: Path) -> dict[int, tuple[int, tuple]]:
        """Return kernel and shape of each configuration of an export, before the settings of a table."""
        names = by_key(folder, "kernels", "kernel", "name")
        keys = {}
        table = read_table(folder / "configurations.parquet", "configurations")
        self._thread_columns = len(thread_sizes(grid_counts(table)) or ())
        for row in table.to_pylist():
            name = names[row["kernel"]]
            shape = (*(row[column] for column in LAUNCH_SHAPE), row["label"])
            keys[row["configuration"]] = self._kernels.number(self._one_kernel.get(name, name)), shape
        return keys

    def _numbers_of(self, table: str, folder: Path) -> Callable[[pa.RecordBatch], np.ndarray]:
        """Return what gives the dataset's number of the configuration of each row of a table of an export."""
        if table == GRAPHS:
            return partial(_numbers_of_names, self._of_graphs(folder))
        keys = self._keys(folder)
        if self._settings and table == "counters":
            return partial(self._with_settings, keys)
        if self._by_message and table == "launches":
            return partial(self._with_messages, keys, messages_of(folder))
        numbers = np.zeros(max(keys, default=-1) + 1, np.int64)
        for configuration, key in keys.items():
            numbers[configuration] = self._configurations.number(key)
        return lambda batch: numbers[_whole(batch, "configuration")]

    def _of_graphs(self, folder: Path) -> dict[str, int]:
        """Return the number of the configuration of each whole graph of an export by its name in `ranges`.

        Ids change from build to build: graphs are called by the order of their first executions, and by how many there
        are, so that those of runs with other numbers of graphs are not taken for each other.
        """
        rows = read_table(folder / f"{GRAPHS}.parquet", GRAPHS, ["name", "kind", "start_ns"])
        names = _executed(rows).sort_by("start_ns")["name"].unique().to_pylist()
        kernels = [self._kernels.number(f"CUDA graph {index} of {len(names)}") for index in range(1, len(names) + 1)]
        self._whole_graphs.update(kernels)
        return {name: self._configurations.number((kernel, WHOLE)) for name, kernel in zip(names, kernels, strict=True)}

    def _with_settings(self, keys: Mapping[int, tuple[int, tuple]], batch: pa.RecordBatch) -> np.ndarray:
        """Return the number of the configuration of each row of a table: the values of its settings stand before its
        label, and in it.
        """
        coded = [batch[name].dictionary_encode("encode") for name in self._settings]
        texts = [[value_words(value) for value in column.dictionary.to_pylist()] for column in coded]

        def shaped(shape: tuple, *values: int) -> tuple:
            settings = [text[value] for text, value in zip(texts, values, strict=True)]
            words = [f"{name}={value}" for name, value in zip(self._settings, settings, strict=True)]
            return *shape[:-1], *settings, ", ".join([*filter(None, shape[-1:]), *words])

        return self._shaped(keys, batch, [column.indices.to_numpy() for column in coded], shaped)

    def _with_messages(
        self, keys: Mapping[int, tuple[int, tuple]], messages: Sequence[np.ndarray], batch: pa.RecordBatch
    ) -> np.ndarray:
        """Return the number of the configuration of each launch: a collective's message is its label."""

        def shaped(shape: tuple, size: int) -> tuple:
            return shape if size == UNKNOWN else (*shape[:-1], f"message of {size:,} bytes")

        return self._shaped(keys, batch, [sizes_of(batch, messages)], shaped)

    def _shaped(
        self,
        keys: Mapping[int, tuple[int, tuple]],
        batch: pa.RecordBatch,
        columns: Sequence[np.ndarray],
        shaped: Callable[..., tuple],
    ) -> np.ndarray:
        """Return the number of the configuration of each row, whose shape further columns change."""
        rows, codes = few_rows(_whole(batch, "configuration"), *columns)
        own = [(*keys[configuration], values) for configuration, *values in rows]
        numbers = [self._configurations.number((kernel, shaped(shape, *values))) for kernel, shape, values in own]
        return np.array(numbers, np.int64)[codes]

    def _regions_of(self, folder: Path) -> np.ndarray:
        """Return the dataset's number of each range of an export; -1 where it has none."""
        numbers = np.full(1, -1, np.int64)
        for batch in chunks(folder, "ranges", ["range", "name"]):
            ids = _whole(batch, "range")
            numbers = np.concatenate([numbers, np.full(max(0, int(ids.max()) + 1 - numbers.size), -1, np.int64)])
            coded = batch["name"].dictionary_encode()
            codes = [self._regions.number(NUMBER.sub("*", name)) for name in coded.dictionary.to_pylist()]
            numbers[ids] = np.array(codes, np.int64)[coded.indices.to_numpy()]
        return numbers

    def batches(self) -> Iterator[LaunchBatch]:
        """Yield all launches, export after export; executions of whole graphs and the launches beside them by start."""
        by_folder: dict[Path, list[tuple]] = {}
        for folder, *source in self._exports:
            by_folder.setdefault(folder, []).append(tuple(source))
        for folder, sources in by_folder.items():
            read = [self._read(folder, *source) for source in sources]
            yield from _by_start(read) if len(read) > 1 else read[0]

    def _read(
        self,
        folder: Path,
        table: str,
        columns: Sequence[str],
        numbers: Callable[[pa.RecordBatch], np.ndarray],
        regions: np.ndarray,
        has_times: bool,
    ) -> Iterator[LaunchBatch]:
        """Yield the launches of a table of an export."""
        ranks = np.array(self._ranks, np.int64)
        settings = self._settings if table == "counters" else []
        with open_table(folder / f"{table}.parquet", table) as file:
            scale = UNITS[unit_of(file.schema_arrow.field(columns[-1]))] if table == "counters" else 1.0
            for batch in file.iter_batches(BATCH_ROWS, columns=[*settings, *columns]):
                if table == GRAPHS:
                    batch = _executed(batch)
                launches = _batch(batch, columns, scale, numbers, regions, ranks)
                yield launches if has_times else replace(launches, start=None)


def _by_start(sources: Sequence[Iterator[LaunchBatch]]) -> Iterator[LaunchBatch]:
    """Yield the launches of several sources in the order of their start, those of the earlier source first where equal;
    of each source one batch is held. Sources without times follow each other.
    """
    held: dict[int, LaunchBatch] = {}
    while True:
        for index, source in enumerate(sources):
            if index not in held:
                batch = next((batch for batch in source if batch.duration.size), None)
                if batch is not None:
                    held[index] = batch
        if not held:
            return
        if len(held) == 1 or any(batch.start is None for batch in held.values()):
            yield held.pop(min(held))
            continue
        until = min(batch.start.max() for batch in held.values() if batch.start is not None)
        parts = {index: (batch, batch.start <= until) for index, batch in sorted(held.items())}
        due = [_rows(batch, is_due) for batch, is_due in parts.values()]
        columns = {name: np.concatenate([getattr(batch, name) for batch in due]) for name in COLUMNS}
        yield _rows(LaunchBatch(**columns), np.argsort(columns["start"], kind="stable"))
        held = {index: _rows(batch, ~is_due) for index, (batch, is_due) in parts.items() if not is_due.all()}


def _rows(batch: LaunchBatch, rows: np.ndarray) -> LaunchBatch:
    return LaunchBatch(**{name: getattr(batch, name)[rows] for name in COLUMNS})


def _span_ns(folders: Sequence[Path]) -> int | None:
    """Return how long the devices of the exports of a run work, `RunFacts.span_ns`."""
    ends: dict[int, tuple[int, int]] = {}
    for folder in folders:
        own = spans(folder, GPU_TABLES)
        ends |= own | widened({rank: ends[rank] for rank in own.keys() & ends.keys()}, own)
    return max((last - first for first, last in ends.values()), default=None)


def _shapes_by_name(folder: Path) -> dict[str, set[tuple]]:
    """Return the grids and blocks of an export's kernels by their full names."""
    names = by_key(folder, "kernels", "kernel", "name")
    shapes: dict[str, set[tuple]] = {name: set() for name in names.values()}
    rows = read_table(folder / "configurations.parquet", "configurations", ["kernel", *GRID_AND_BLOCK]).to_pylist()
    for row in rows:
        shapes[names[row["kernel"]]].add(tuple(row[column] for column in GRID_AND_BLOCK))
    return shapes


def _not_read_whole(folders: Sequence[str | Path]) -> list[tuple[str, bool]]:
    """Return the exports of a dataset that were not read whole, each with whether it was refused."""
    states = [(Path(folder).name, read_json(Path(folder) / "capabilities.json").get("status")) for folder in folders]
    return [(export, state == "refused") for export, state in states if state not in (None, "read")]


def _why_not(folders: Sequence[str | Path]) -> str:
    """Return why exports of a dataset were refused, and what a plain table needs to be compared, in words that follow a
    sentence; empty where neither is the case.
    """
    documents = [(Path(folder).name, read_json(Path(folder) / "capabilities.json")) for folder in folders]
    refused = [(export, document) for export, document in documents if document["status"] == "refused"]
    words = ""
    if refused:
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        reason = " ".join(refused[0][1]["error"]["found"].split())
        words = f"; {refused[0][0]}{more} could not be read: {elided(reason, 200)}"
    if any(document.get("kind") == "table" for _, document in documents):
        words += (
            "; tables are compared by a measured column that all have, named with its unit of time, such as duration_us"
        )
    return words


def _graphs(folder: Path) -> tuple[str, list[str]] | None:
    """Return the table of an export that holds the executions of its whole graphs, and the columns to read; None if it
    has none.
    """
    if not (folder / "graphs.parquet").is_file():
        return None
    return GRAPHS, ["start_ns", "duration_ns", "rank", "name", "kind"]


def _executed(rows):
    """Return the rows of `ranges`, a table or a batch, that are executions of whole graphs."""
    return rows.filter(pc.equal(rows["kind"].cast(pa.string()), GRAPH_RANGE))


def _numbers_of_names(numbers: Mapping[str, int], batch: pa.RecordBatch) -> np.ndarray:
    """Return the number of each row of a batch by its name."""
    coded = batch["name"].cast(pa.string()).dictionary_encode()
    return np.array([numbers[name] for name in coded.dictionary.to_pylist()], np.int64)[coded.indices.to_numpy()]


def _source(folder: Path, time: str | None) -> tuple[str, list[str]] | None:
    """Return the table of an export that holds its launches, and the columns to read, of counters the time last, which
    is `time` of a plain table; None if it has none.
    """
    if (folder / "launches.parquet").is_file():
        return "launches", ["start_ns", "duration_ns", "configuration", "rank", "device", "stream", "range"]
    path = folder / "counters.parquet"
    if not path.is_file():
        return None
    with open_table(path, "counters") as file:
        schema = file.schema_arrow
    measured = next((name for name in time_columns(folder) if time in (None, name, any_unit(name))), None)
    if GPU_TIME in schema.names and unit_of(schema.field(GPU_TIME)) in UNITS:
        measured = GPU_TIME
    return None if measured is None else ("counters", ["configuration", "rank", measured])


def _whole(batch: pa.RecordBatch, name: str) -> np.ndarray:
    return batch.column(name).to_numpy(zero_copy_only=False).astype(np.int64)


def _batch(
    batch: pa.RecordBatch,
    columns: Sequence[str],
    scale: float,
    numbers: Callable[[pa.RecordBatch], np.ndarray],
    regions: np.ndarray,
    ranks: np.ndarray,
) -> LaunchBatch:
    """Return the launches of a batch; `columns` as `_source` gives them."""
    rank = np.searchsorted(ranks, _whole(batch, "rank"))
    configuration = numbers(batch)
    if "start_ns" not in columns:
        value = batch.column(columns[-1]).to_numpy(zero_copy_only=False).astype(float) * scale
        kept = np.isfinite(value)
        duration = np.rint(value[kept]).astype(np.int64)
        outside = np.full(duration.size, -1, np.int64)
        return LaunchBatch(None, duration, configuration[kept], rank[kept], outside, rank[kept])
    start, duration = (_whole(batch, name) for name in ("start_ns", "duration_ns"))
    if "range" not in columns:
        return LaunchBatch(start, duration, configuration, rank, np.full(rank.size, -1, np.int64), rank)
    spans = batch.column("range").fill_null(np.iinfo(np.uint32).max).to_numpy(zero_copy_only=False).astype(np.int64)
    region = np.where(spans < regions.size, regions[np.minimum(spans, regions.size - 1)], -1)
    stream = (rank << 48) | (_whole(batch, "device") << 32) | _whole(batch, "stream")
    return LaunchBatch(start, duration, configuration, rank, region, stream)
