"""The context of launches at their start, from the tables of one export."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from causeway.causal.in_flight import InFlight, LastEnded, LastValue, idle_before, whole_instants
from causeway.tables import open_table

BYTES_BY_KIND = {
    "h2d_bytes_in_flight": (1, 3, 11),
    "d2h_bytes_in_flight": (2, 4, 12),
    "d2d_bytes_in_flight": (5, 6, 7, 8, 13),
    "p2p_bytes_in_flight": (10,),
}
"""CUPTI's copy kinds by direction; copies to and from arrays count like those to and from memory."""
LAST_INPUT = "last_h2d_bytes"
"""How much came from the host last: the size of the input, where kernels are launched alike for inputs of any size."""


@dataclass
class Queries:
    """Chosen launches of one rank, in order of their row in the export's table of launches.

    Attributes
    ----------
    rank : int
    launch : ndarray of int64, shape (n,), ascending
        Rows in the export's `launches` table.
    features : dict of str to ndarray, shape (n,)
        Filled by the functions below; -1 and NaN stand for unknown.
    start, device : ndarray of int64, shape (n,)
        Filled by `from_launches`: start on the export's own clock.
    """

    rank: int
    launch: np.ndarray
    features: dict[str, np.ndarray] = field(default_factory=dict)
    start: np.ndarray = field(init=False)
    device: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.start = np.zeros(self.launch.size, dtype=np.int64)
        self.device = np.full(self.launch.size, -1, dtype=np.int64)


def _row_groups(path: Path, name: str, columns: list[str]) -> Iterator[dict[str, np.ndarray]]:
    """Yield the columns of one row group after the other; nulls of integers become 0."""
    with open_table(path, name) as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=columns)
            yield {column: table.column(column).fill_null(0).to_numpy(zero_copy_only=False) for column in columns}


def from_launches(path: Path, queries: Queries, means: np.ndarray | None, kernel_of: np.ndarray) -> None:
    """Add launches_in_flight, idle_before_ns and previous_deviation.

    Parameters
    ----------
    path : Path
        The export's `launches.parquet`.
    queries : Queries
    means : ndarray of float or None
        Exact mean duration of each of the export's configurations; without it there is no previous_deviation.
    kernel_of : ndarray of int
        Kernel of each of the export's configurations.

    Notes
    -----
    Others are counted on the same device of the same rank. The previous deviation is that of the launch of the same kernel on the same
    device which began before (ties: earlier row).
    """
    n = queries.launch.size
    in_flight, idle, previous = np.zeros(n, np.int64), np.full(n, -1, np.int64), np.full(n, np.nan)
    states: dict[int, InFlight] = {}
    last: dict[tuple[int, int], float] = {}
    columns = ["start_ns", "duration_ns", "configuration", "rank", "device"]
    for chunk, _ in whole_instants(_numbered(_row_groups(path, "launches", columns), queries.rank)):
        low, high = np.searchsorted(queries.launch, [chunk["row"][0], chunk["row"][-1] + 1])
        wanted = np.arange(low, high)
        place = np.searchsorted(chunk["row"], queries.launch[wanted])
        queries.start[wanted], queries.device[wanted] = chunk["start"][place], chunk["device"][place]
        ends = chunk["start"] + chunk["duration"]
        for device in np.unique(chunk["device"]):
            rows = np.flatnonzero(chunk["device"] == device)
            mine = wanted[queries.device[wanted] == device]
            here = np.searchsorted(rows, np.searchsorted(chunk["row"], queries.launch[mine]))
            state = states.setdefault(int(device), InFlight(1))
            starts, stops = chunk["start"][rows], ends[rows]
            idle[mine] = idle_before(starts, stops, state.latest_end, here)
            found = state.advance(starts, stops, np.ones((rows.size, 1), np.int64), starts[here])[:, 0]
            in_flight[mine] = found - (stops[here] > starts[here])  # without itself
        if means is not None:
            deviation = chunk["duration"] - means[chunk["configuration"]]
            previous[wanted] = _previous(kernel_of[chunk["configuration"]], chunk["device"], deviation, last)[place]
    queries.features["launches_in_flight"], queries.features["idle_before_ns"] = in_flight, idle
    if means is not None:
        queries.features["previous_deviation"] = previous


def _numbered(chunks: Iterator[dict[str, np.ndarray]], rank: int) -> Iterator[dict[str, np.ndarray]]:
    """Number rows over all chunks and keep those of one rank."""
    first = 0
    for chunk in chunks:
        mine = np.flatnonzero(chunk["rank"] == rank)
        names = {"start": "start_ns", "duration": "duration_ns", "configuration": "configuration", "device": "device"}
        yield {"row": first + mine, **{name: chunk[column][mine].astype(np.int64) for name, column in names.items()}}
        first += chunk["rank"].size


def _previous(kernels: np.ndarray, devices: np.ndarray, deviation: np.ndarray, last: dict[tuple[int, int], float]) -> np.ndarray:
    """Return each row's predecessor's deviation within its (kernel, device); update `last`, which spans chunks."""
    found = np.full(deviation.size, np.nan)
    key = kernels * (1 << 17) + devices
    order = np.argsort(key, kind="stable")
    bounds = np.flatnonzero(np.diff(key[order])) + 1
    for rows in np.split(order, bounds):
        if rows.size:
            group = (int(kernels[rows[0]]), int(devices[rows[0]]))
            found[rows[0]] = last.get(group, np.nan)
            found[rows[1:]] = deviation[rows[:-1]]
            last[group] = float(deviation[rows[-1]])
    return found


def from_transfers(path: Path, queries: Queries) -> None:
    """Add transfers_in_flight (copies and memory sets on the same device), the bytes of those in flight by direction, and last_h2d_bytes.

    The last is the size of the copy from the host to the same device that had ended last when the launch began.
    """
    names = ["transfers_in_flight", *BYTES_BY_KIND]
    for name in names:
        queries.features[name] = np.zeros(queries.launch.size, np.int64)
    queries.features[LAST_INPUT] = np.full(queries.launch.size, np.nan)
    order = np.argsort(queries.start, kind="stable")
    states: dict[int, InFlight] = {}
    inputs: dict[int, LastEnded] = {}
    by_device = {int(device): order[queries.device[order] == device] for device in np.unique(queries.device)}
    begun = dict.fromkeys(by_device, 0)
    columns = ["start_ns", "duration_ns", "bytes", "copy_kind", "rank", "device"]

    def of_rank() -> Iterator[dict[str, np.ndarray]]:
        for chunk in _row_groups(path, "transfers", columns):
            mine = chunk["rank"] == queries.rank
            yield {"start": chunk["start_ns"][mine], **{name: chunk[name][mine] for name in columns[1:]}}

    for chunk, boundary in whole_instants(of_rank()):
        weights = np.stack([np.ones(chunk["start"].size, np.int64), *(
            np.where(np.isin(chunk["copy_kind"], kinds), chunk["bytes"], 0).astype(np.int64) for kinds in BYTES_BY_KIND.values()
        )], axis=1)  # fmt: skip
        ends = chunk["start"] + chunk["duration_ns"]
        for device, rows in by_device.items():
            mine = chunk["device"] == device
            until = rows.size if boundary is None else int(np.searchsorted(queries.start[rows], boundary, side="left"))
            part = rows[begun[device] : until]
            state = states.setdefault(device, InFlight(len(names)))
            found = state.advance(chunk["start"][mine], ends[mine], weights[mine], queries.start[part])
            for column, name in enumerate(names):
                queries.features[name][part] = found[:, column]
            copied = mine & np.isin(chunk["copy_kind"], BYTES_BY_KIND["h2d_bytes_in_flight"])
            last = inputs.setdefault(device, LastEnded())
            queries.features[LAST_INPUT][part] = last.advance(ends[copied], chunk["bytes"][copied], queries.start[part], boundary)
            begun[device] = until


def from_ranges(path: Path, queries: Queries, ranges: np.ndarray) -> None:
    """Add iteration_position: ns from the start of the enclosing range to that of the launch; -1 outside of ranges.

    Parameters
    ----------
    ranges : ndarray of int64, shape (n,)
        Number of each chosen launch's range, -1 if none.
    """
    position = np.full(queries.launch.size, -1, np.int64)
    starts: dict[int, int] = {}
    wanted = np.unique(ranges[ranges >= 0])
    for chunk in _row_groups(path, "ranges", ["start_ns", "range", "rank"]):
        mine = np.flatnonzero((chunk["rank"] == queries.rank) & np.isin(chunk["range"], wanted))
        for row in mine:
            starts.setdefault(int(chunk["range"][row]), int(chunk["start_ns"][row]))
    inside = np.flatnonzero(np.isin(ranges, np.fromiter(starts, np.int64, len(starts))))
    position[inside] = queries.start[inside] - np.asarray([starts[int(number)] for number in ranges[inside]], np.int64)
    position[position < 0] = -1
    queries.features["iteration_position"] = position


def sampled_metrics(path: Path) -> set[str]:
    """Return the names of the metrics that an export's table of samples holds; none if there is no such table."""
    if not path.is_file():
        return set()
    with open_table(path, "samples") as file:
        return {
            name for group in range(file.num_row_groups) for name in file.read_row_group(group, ["metric"]).column(0).unique().to_pylist()
        }


def from_samples(path: Path, queries: Queries) -> None:
    """Add each sampled device metric: its last value at or before the launch's start."""
    order = np.argsort(queries.start, kind="stable")
    by_device = {int(device): order[queries.device[order] == device] for device in np.unique(queries.device)}
    series: dict[tuple[int, str], LastValue] = {}
    with open_table(path, "samples") as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            rank, device, times, values = (table.column(name).to_numpy() for name in ("rank", "device", "time_ns", "value"))
            metric = table.column("metric").combine_chunks()
            metric = metric.dictionary_encode() if not hasattr(metric, "indices") else metric
            codes, names = metric.indices.to_numpy(), metric.dictionary.to_pylist()
            for code in np.unique(codes):
                for number, rows in by_device.items():
                    mine = (codes == code) & (rank == queries.rank) & (device == number)
                    if mine.any():
                        state = series.setdefault((number, names[code]), LastValue(queries.start[rows]))
                        state.advance(times[mine], values[mine])
    metrics = sorted({name for _, name in series})
    for name in metrics:
        values = np.full(queries.launch.size, np.nan)
        for (device, metric_name), state in series.items():
            if metric_name == name:
                values[by_device[device]] = state.values
        queries.features[name] = values
