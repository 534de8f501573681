"""Read a window of a dataset at the level that its width asks for."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from causeway.core.tables import open_table, read_json


class Levels:
    """The levels of a dataset.

    Parameters
    ----------
    folder : Path
        `results/{dataset}/levels`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.index = read_json(self.folder / "index.json")
        self.lanes: list[dict] = self.index["lanes"]
        self.widths: list[int] = [level["width_ns"] for level in self.index["levels"]]
        self.metrics: list[str] = [metric["name"] for metric in self.index["metrics"]]

    def rows(self, width_ns: int, name: str, begin_ns: int, end_ns: int) -> dict[str, np.ndarray]:
        """Return the columns, shape (n,) each, of the n rows of a level whose cells begin in a window."""
        level = next(level for level in self.index["levels"] if level["width_ns"] == width_ns)
        with open_table(self.folder / level["folder"] / f"{name}.parquet", f"level_{name}") as file:
            groups = [group for group in range(file.metadata.num_row_groups) if _touches(file, group, begin_ns, end_ns)]
            table = file.read_row_groups(groups, use_threads=False) if groups else file.schema_arrow.empty_table()
        columns = {field: _plain(table.column(field)) for field in table.column_names}
        inside = (columns["start_ns"] >= begin_ns) & (columns["start_ns"] < end_ns)
        return {field: column[inside] for field, column in columns.items()}

    def cells_in_use(self, width_ns: int, name: str, cells: int) -> np.ndarray:
        """Return which stretches of `cells` cells hold rows of a level.

        Returns
        -------
        ndarray of int64, shape (n,), ascending
            Numbers of the stretches, counted from the origin.
        """
        level = next(level for level in self.index["levels"] if level["width_ns"] == width_ns)
        stretches = np.empty(0, np.int64)
        with open_table(self.folder / level["folder"] / f"{name}.parquet", f"level_{name}") as file:
            for group in range(file.metadata.num_row_groups):
                start = _plain(file.read_row_group(group, columns=["start_ns"], use_threads=False).column(0))
                stretches = np.union1d(stretches, (start - self.index["origin_ns"]) // (width_ns * cells))
        return stretches

    def earliest_ns(self) -> int:
        """Return where the first cell of the finest level begins, ns on the dataset's time line; the origin where there
        is no cell. Copies may run before the first launch, which is the origin.
        """
        begins = [self.index["origin_ns"]]
        finest = min(self.index["levels"], key=lambda level: level["width_ns"])
        for name in ("statistics", "busy"):
            with open_table(self.folder / finest["folder"] / f"{name}.parquet", f"level_{name}") as file:
                groups = [file.metadata.row_group(group) for group in range(file.metadata.num_row_groups)]
                begins += [group.column(0).statistics.min for group in groups if group.num_rows]
        return min(begins)


def _touches(file: pq.ParquetFile, group: int, begin_ns: int, end_ns: int) -> bool:
    statistics = file.metadata.row_group(group).column(0).statistics
    return statistics.min < end_ns and statistics.max >= begin_ns


def _plain(column: pa.ChunkedArray) -> np.ndarray:
    return column.to_numpy().astype(np.int64, copy=False)
