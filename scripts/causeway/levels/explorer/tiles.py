"""Tiles of the explorer: pieces of levels, and of the launches themselves, as scripts that a page loads beside itself.

A page opened from a file may not fetch others, but it may load scripts. So each tile is one call of a function of the
page, with the numbers as typed arrays, compressed (gzip, which browsers unpack themselves) and in base64. Before, all
first bytes stand together, then all second ones: alike, they compress to half.

No plotting library does this: they draw what is in memory, and a run has more cells than a page may hold. uPlot draws
the swim lanes; plotly would take 5 MB for them and the same program around it.

What all devices do together is a mean over those that are recorded at the time, idle ones too.
"""

import base64
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from causeway.core.clock import Clock, clocks_of
from causeway.core.files.whole_files import write_whole
from causeway.events.event_blocks import GPU_TABLES, recorded_spans, spans, widened
from causeway.levels.explorer.path_time import PATH, PathPieces
from causeway.levels.explorer.query import Levels
from causeway.levels.pyramid import cells
from causeway.levels.pyramid.ordered_rows import chunks
from causeway.numeric.kept_bits import with_bits


class RecordedDevices:
    """Begin and end of the recordings of devices, ns on the dataset's time line.

    Attributes
    ----------
    begins, ends : ndarray of int64, shape (devices,)
        Each ascending, so that they are of the same device only by chance.
    """

    def __init__(self, recordings: Iterable[tuple[int, int]]) -> None:
        pairs = np.array(list(recordings), np.int64).reshape(-1, 2)
        self.begins = np.sort(pairs[:, 0])
        self.ends = np.sort(pairs[:, 1])

    @classmethod
    def of(
        cls, devices: Iterable[Mapping], folders: Mapping[str, Path], clocks: Mapping[str, Clock]
    ) -> "RecordedDevices":
        """Return the recordings of devices, each of which lasts as long as its rank's: from the first to the last event
        of any kind; where the host was not recorded, of the GPU. A device of a rank without GPU work has none.

        Parameters
        ----------
        devices : iterable of mapping
            With export and rank.
        folders : mapping of str to Path
            Folder of tables of each export.
        clocks : mapping of str to Clock
        """
        of_export: dict[str, dict[int, tuple[int, int]]] = {}
        recordings = []
        for device in devices:
            export = device["export"]
            if export not in of_export:
                of_export[export] = widened(spans(folders[export], GPU_TABLES), recorded_spans(folders[export]))
            if device["rank"] in of_export[export]:
                recordings.append(clocks[export].aligned(np.array(of_export[export][device["rank"]])).tolist())
        return cls(recordings)

    def at_once(self, begin: int, width: int, cells: int) -> np.ndarray:
        """Return how many devices are recorded, if only for a part of it, in each of some cells in a row.

        Parameters
        ----------
        begin, width : int, ns
            Of the first cell, and of each.
        cells : int

        Returns
        -------
        ndarray of int64, shape (cells,)
        """
        edges = begin + width * np.arange(cells + 1)
        return np.searchsorted(self.begins, edges[1:], "left") - np.searchsorted(self.ends, edges[:-1], "right")


TILE_CELLS = 512
"""Cells of a tile of `BLOCK_ROWS` devices: half a screen at most."""
BLOCK_ROWS = 32
"""Devices of a tile."""
TILE_LAUNCHES = 1 << 13
KEPT_BITS = 7
"""Bits behind the leading one that a value of a level keeps: 0.4 %, less than a pixel of a swim lane or a shade of a
row. With all 23, tiles are half of a report.
"""
LEVEL = 7
"""Of zlib: at 9, tiles are 9 % smaller and take five times as long."""
GZIP = 16 + zlib.MAX_WBITS
"""What zlib calls a stream with gzip's header and checksum."""

BUSY = (
    ("compute", "compute_ns", "share of time with a compute kernel"),
    ("communication", "communication_ns", "share of time with a communication kernel"),
    ("exposed communication", "exposed_communication_ns", "share of time with communication and no compute kernel"),
    ("exposed copies", "exposed_copy_ns", "share of time with copies and no kernel"),
    ("active compute kernels", "active_compute_ns", "compute kernels running at once, on average"),
    ("host to device", "host_to_device_ns", "copies running at once, on average"),
    ("device to host", "device_to_host_ns", "copies running at once, on average"),
    ("on device", "on_device_ns", "copies on the device or between devices running at once, on average"),
    ("memory sets", "memset_ns", "memory sets running at once, on average"),
)
VALUES = (
    ("variability", "variability", "mean of |duration - mean of the configuration|"),
    ("memory stall", "stall", "mean of |launch - linked transfer|"),
)
BUILT_IN = len(BUSY) + len(VALUES) + 1
"""Metrics of a tile before critical paths, sampled ones and the analyst's own: those and the launches per second."""


def metrics_of(levels: Levels, path: PathPieces | None = None) -> list[dict]:
    """Return the metrics of a tile, in their order: name, unit and meaning; those of critical paths where there are
    any.
    """
    metrics = [
        {"name": name, "unit": "at once" if "at once" in meaning else "share", "meaning": meaning}
        for name, _, meaning in BUSY
    ]
    metrics += [{"name": name, "unit": "ns", "meaning": meaning} for name, _, meaning in VALUES]
    metrics.append({"name": "launches", "unit": "per s", "meaning": "launches that begin, per second"})
    if path:
        metrics += [{"name": name, "unit": "share", "meaning": meaning} for name, meaning in PATH.items()]
    return metrics + [{"name": name, "unit": "", "meaning": "mean"} for name in levels.metrics[cells.VALUES :]]


def devices_of(levels: Levels) -> list[dict]:
    """Return the devices among the levels' `lanes`, in order: the rows of the explorer."""
    return [lane for lane in levels.lanes if lane["stream"] is None]


def tile_cells(devices: int) -> int:
    """Return how many cells each device has in a tile: the fewer devices, the more, as files cost more than bytes."""
    return TILE_CELLS << max(0, (BLOCK_ROWS // max(devices, 1)).bit_length() - 1)


def tile_call(key: str, arrays: list[np.ndarray]) -> str:
    """Return the call that gives the page a tile: `arrays` of any shape, all of one kind of number, one behind another,
    byte by byte.
    """
    numbers = np.concatenate([np.ravel(array) for array in arrays])
    # not `gzip.compress`: the header that it writes differs between versions of Python
    stream = zlib.compressobj(LEVEL, wbits=GZIP)
    packed = stream.compress(numbers.view(np.uint8).reshape(-1, numbers.itemsize).T.tobytes()) + stream.flush()
    return f'CW.tile("{key}","{base64.b64encode(packed).decode()}")\n'


def write_level_tiles(
    levels: Levels, out: Path, recorded: RecordedDevices, path: PathPieces | None = None
) -> tuple[list[dict], list[bool]]:
    """Write the tiles of all levels; return per level, coarsest first, its width and which tiles there are, and of each
    metric whether it is ever anything but 0.

    A tile `{level}_{block}_{number}` holds float32 of few bits by metric, row and cell, NaN where there is nothing;
    block `a`, in the file of block 0, has one row, all devices together: of `BUSY` the mean over those that are
    recorded then, also if they do nothing.
    """
    rows = {lane["lane"]: row for row, lane in enumerate(devices_of(levels))}
    owner = {(lane["rank"], lane["device"]): rows[lane["lane"]] for lane in devices_of(levels)}
    row_of = np.array([owner[lane["rank"], lane["device"]] for lane in levels.lanes], np.int64)
    ranks = [lane["rank"] for lane in devices_of(levels)]
    size = tile_cells(len(rows))
    entries = []
    is_seen = np.zeros(len(metrics_of(levels, path)), bool)
    for number, width in enumerate(sorted(levels.widths, reverse=True)):
        # a run may be idle, or its exports days apart
        present = np.union1d(*(levels.cells_in_use(width, name, size) for name in ("statistics", "busy"))).tolist()
        for tile in present:
            begin = levels.index["origin_ns"] + tile * size * width
            sums, counts = _sums(levels, width, begin, size, row_of, len(rows))
            if path:
                time, covered = path.time(ranks, begin, width, size)
                sums = np.concatenate([sums[:BUILT_IN], time, sums[BUILT_IN:]])
                counts = np.concatenate([counts[:BUILT_IN], covered, counts[BUILT_IN:]])
            is_seen |= (sums != 0).any(axis=(1, 2))
            whole = counts.sum(axis=1, keepdims=True)
            at_once = recorded.at_once(begin, width, size)
            whole[: len(BUSY)] = np.where(whole[: len(BUSY)] > 0, np.maximum(whole[: len(BUSY)], at_once * width), 0)
            everything = tile_call(f"{number}_a_{tile}", [_mean(sums.sum(axis=1, keepdims=True), whole)])
            for block, first in enumerate(range(0, len(rows), BLOCK_ROWS)):
                part = slice(first, first + BLOCK_ROWS)
                key = f"{number}_{block}_{tile}"
                call = tile_call(key, [_mean(sums[:, part], counts[:, part])])
                write_whole(out / f"{key}.js", call + (everything if block == 0 else ""))
        entries.append({"width": width, "tiles": present})
    return entries, is_seen.tolist()


def _mean(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return with_bits(np.where(counts > 0, sums / counts, np.nan), KEPT_BITS)


def _sums(
    levels: Levels, width: int, begin: int, size: int, row_of: np.ndarray, rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return what is averaged in a tile of `size` cells and over what, both float64 of shape (metrics, rows, cells)."""
    metrics = len(metrics_of(levels))
    sums = np.zeros((metrics, rows, size))
    counts = np.zeros((metrics, rows, size))
    busy = levels.rows(width, "busy", begin, begin + size * width)
    row = row_of[busy["lane"]]
    cell = (busy["start_ns"] - begin) // width
    for metric, (_, name, _) in enumerate(BUSY):
        sums[metric, row, cell] = busy[name]
    held = levels.rows(width, "statistics", begin, begin + size * width)
    row = row_of[held["lane"]]
    cell = (held["start_ns"] - begin) // width
    inside = np.zeros((rows, size), bool)
    inside[row_of[busy["lane"]], (busy["start_ns"] - begin) // width] = True
    inside[row, cell] = True
    counts[: len(BUSY)] = inside * width
    numbers = [levels.metrics.index(name) for _, name, _ in VALUES] + list(range(cells.VALUES, len(levels.metrics)))
    own = [*range(len(BUSY), len(BUSY) + len(VALUES)), *range(len(BUSY) + len(VALUES) + 1, metrics)]
    for metric, number in zip(own, numbers, strict=True):
        of_metric = held["metric"] == number
        scale = levels.index["metrics"][number]["scale"]
        np.add.at(sums[metric], (row[of_metric], cell[of_metric]), held["sum"][of_metric] / scale)
        np.add.at(counts[metric], (row[of_metric], cell[of_metric]), held["count"][of_metric])
    launches = held["metric"] == cells.VARIABILITY
    per_second = len(BUSY) + len(VALUES)
    np.add.at(sums[per_second], (row[launches], cell[launches]), held["count"][launches])
    counts[per_second] = inside * (width / 1e9)
    return sums, counts


def write_launch_tiles(
    levels: Levels,
    folders: Mapping[str, Path],
    clocks: Mapping,
    numbers: Mapping[str, np.ndarray],
    out: Path,
    most: int,
) -> list[list]:
    """Write tiles of the launches themselves, until `most` of them are on the page.

    A tile holds float64: start (since the first launch), duration, configuration (the page's number), `lane`;
    `TILE_LAUNCHES` at most of one export. Where not all fit, those come first whose durations vary most, by their
    coefficient of variation.

    Returns
    -------
    list of [key, first start, latest end, launches], in the order of exports and time
    """
    lane_of = {(lane["export"], lane["rank"], lane["device"], lane["stream"]): lane["lane"] for lane in levels.lanes}
    of_export = clocks_of(clocks)
    pieces = []
    for export, folder in folders.items():
        for number, batch in enumerate(_batches(folder, of_export[export], ["start_ns", "duration_ns"])):
            duration = batch["duration_ns"]
            scatter = float(duration.std() / max(duration.mean(), 1))
            pieces.append((scatter, export, number, int(batch["start_ns"][0]), duration.size))
    chosen = _chosen(pieces, most)
    tiles = []
    origin = levels.index["origin_ns"]
    for index, (export, folder) in enumerate(folders.items()):
        clock = of_export[export].counting_from(origin)
        for number, batch in enumerate(
            _batches(folder, clock, ["start_ns", "duration_ns", "configuration", "rank", "device", "stream"])
        ):
            if (export, number) not in chosen:
                continue
            start = batch["start_ns"]
            keys = zip(*(batch[name].tolist() for name in ("rank", "device", "stream")), strict=True)
            lane = np.array([lane_of[export, *key] for key in keys])
            configuration = numbers[export][batch["configuration"]]
            arrays = [array.astype(np.float64) for array in (start, batch["duration_ns"], configuration, lane)]
            key = f"n{index}_{number}"
            write_whole(out / f"{key}.js", tile_call(key, arrays))
            tiles.append([key, int(start[0]), int((start + batch["duration_ns"]).max()), int(start.size)])
    return tiles


def _batches(folder: Path, clock: Clock, columns: list[str]):
    """Yield columns of `TILE_LAUNCHES` launches each, but the last; starts as a clock aligns them."""
    held: dict[str, list[np.ndarray]] = {name: [] for name in columns}
    size = 0
    for batch in chunks(folder / "launches.parquet", "launches", columns, clock=clock):
        for name in columns:
            held[name].append(batch.column(name).to_numpy().astype(np.int64))
        size += batch.num_rows
        if size >= TILE_LAUNCHES:
            whole = {name: np.concatenate(parts) for name, parts in held.items()}
            full = size // TILE_LAUNCHES * TILE_LAUNCHES
            for begin in range(0, full, TILE_LAUNCHES):
                yield {name: column[begin : begin + TILE_LAUNCHES] for name, column in whole.items()}
            held = {name: [column[full:]] for name, column in whole.items()}
            size -= full
    if size:
        yield {name: np.concatenate(parts) for name, parts in held.items()}


def _chosen(pieces: list[tuple], most: int) -> set[tuple[str, int]]:
    """Return which pieces are on the page, as (export, number), at most `most` launches in all.

    Pieces are taken by their spread, largest first, each with the pieces of other exports that run at its begin, so
    that ranks can be compared; `pieces` has spread, export, number, begin and launches of each.
    """
    by_export: dict[str, list[tuple]] = {}
    for piece in pieces:
        by_export.setdefault(piece[1], []).append(piece)
    begins = {export: np.array([piece[3] for piece in held]) for export, held in by_export.items()}
    chosen: set[tuple[str, int]] = set()
    for _, _, _, begin, _ in sorted(pieces, key=lambda piece: (-piece[0], piece[1], piece[2])):
        group = [
            held[max(0, int(np.searchsorted(begins[export], begin, side="right")) - 1)]
            for export, held in by_export.items()
        ]
        fresh = [piece for piece in group if (piece[1], piece[2]) not in chosen]
        size = sum(piece[4] for piece in fresh)
        if size <= most:
            chosen |= {(piece[1], piece[2]) for piece in fresh}
            most -= size
    return chosen
