"""The critical path of each rank over time: what its time had to wait for, as shares of the explorer's cells."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from causeway.core.codes import PATH_KINDS
from causeway.core.tables import SCHEMAS, open_table

PATH = {f"critical path: {kind}": f"share of the critical path: {words}" for kind, words in PATH_KINDS.items()}
"""Metrics of a tile: their names and meanings, in the order of `PATH_KINDS`."""
START = SCHEMAS["path_pieces"].get_field_index("start_ns")
ROWS_HELD = 1 << 21
"""Rows of row groups that are kept once read: tiles of many widths ask for the same ones."""


class PathPieces:
    """The stretches of critical paths of a dataset; false where there are none. The file stays open until `close`.

    Parameters
    ----------
    path : Path or None
        `path_pieces.parquet`: rows of a rank adjoin, and each row group is of one rank. None: there are none.
    """

    def __init__(self, path: Path | None) -> None:
        self._groups: dict[int, list[tuple[int, int]]] = {}
        self._sums: dict[int, np.ndarray] = {}
        self._held: OrderedDict[int, tuple[np.ndarray, np.ndarray]] = OrderedDict()
        self._rows_held = 0
        self._file = open_table(path, "path_pieces") if path else None
        if self._file is not None:
            for group in range(self._file.metadata.num_row_groups):
                rank = self._file.read_row_group(group, columns=["rank"], use_threads=False).column(0)[0].as_py()
                start = self._file.metadata.row_group(group).column(START).statistics.min
                self._groups.setdefault(rank, []).append((start, group))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def __bool__(self) -> bool:
        return bool(self._groups)

    def time(self, ranks: Sequence[int], begin: int, width: int, cells: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ns of cells by kind, and the ns that the path covers, both float64, shape (kinds, ranks, cells).

        Parameters
        ----------
        ranks : sequence of int
            Of the rows; one may come more than once.
        begin, width : int, ns
            Of the first cell, and of each.
        cells : int
        """
        times = np.zeros((len(PATH_KINDS), len(ranks), cells))
        ends = begin + width * np.arange(cells + 1)
        for rank in set(ranks):
            own_time = np.zeros((len(PATH_KINDS), cells))
            for group, start, end in self._meeting(rank, begin, begin + width * cells):
                cell = (start - begin) // width
                if cell >= 0 and end is not None and end <= begin + width * (cell + 1):  # of many rows, but one cell
                    own_time[:, cell] += self._sum(self._file, group)
                else:
                    own_time += _in_cells(*self._read(self._file, group), ends)
            times[:, [row for row, owner in enumerate(ranks) if owner == rank]] = own_time[:, None]
        return times, np.broadcast_to(times.sum(axis=0), times.shape)

    def _meeting(self, rank: int, begin: int, end: int) -> Iterator[tuple[int, int, int | None]]:
        """Give the row groups of a rank that meet a window, with their starts and ends; the last one's end is None."""
        groups = self._groups.get(rank, [])
        starts = [start for start, _ in groups]
        first = max(int(np.searchsorted(starts, begin, "right")) - 1, 0)
        for index in range(first, int(np.searchsorted(starts, end, "left"))):
            yield groups[index][1], starts[index], starts[index + 1] if index + 1 < len(starts) else None

    def _sum(self, file: pq.ParquetFile, group: int) -> np.ndarray:
        """Return the ns of a row group by kind, int64, shape (kinds,)."""
        if group not in self._sums:
            edges, kinds = self._read(file, group)
            self._sums[group] = _in_cells(edges, kinds, edges[[0, -1]])[:, 0]
        return self._sums[group]

    def _read(self, file: pq.ParquetFile, group: int) -> tuple[np.ndarray, np.ndarray]:
        """Return edges and kinds of a row group."""
        if group in self._held:
            self._held.move_to_end(group)
            return self._held[group]
        table = file.read_row_group(group, columns=["start_ns", "duration_ns", "kind"], use_threads=False)
        start = table.column("start_ns").to_numpy()
        kinds = pc.index_in(table.column("kind").combine_chunks(), pa.array(list(PATH_KINDS))).to_numpy()
        self._held[group] = np.append(start, start[-1] + table.column("duration_ns")[-1].as_py()), kinds
        self._rows_held += start.size
        while self._rows_held > ROWS_HELD and len(self._held) > 1:
            _, (_, dropped) = self._held.popitem(last=False)
            self._rows_held -= dropped.size
        return self._held[group]


def _in_cells(edges: np.ndarray, kinds: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the ns of each kind between successive ends of cells, int64, shape (kinds, cells): differences of what
    each kind has until an end.
    """
    inside = np.clip(ends, edges[0], edges[-1])
    piece = np.clip(np.searchsorted(edges, inside, "right") - 1, 0, kinds.size - 1)
    is_kind = kinds == np.arange(len(PATH_KINDS))[:, None]
    before = np.cumsum(is_kind * np.diff(edges), axis=1)[:, piece] - (is_kind * np.diff(edges))[:, piece]
    return np.diff(before + is_kind[:, piece] * (inside - edges[piece]))
