"""Table KERN of rocprof's results.db, read as its CSV files are."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from causeway.core.errors import ExportError
from causeway.readers.common.constants import NULL, SIGNALS, TIMES
from causeway.readers.common.options import Options
from causeway.readers.containers.csv_batches import numbers, without_rounded
from causeway.readers.containers.sqlite_database import SqliteExport
from causeway.readers.containers.table_source import note_state
from causeway.readers.sink.sink import Sink

KERN = "KERN"


class KernBatch:
    """Rows of table KERN, with the methods of a CSV file's batch."""

    def __init__(self, columns: dict, source: "KernSource") -> None:
        self.columns = columns
        self.file = source

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def texts(self, column: str) -> list[str]:
        """Return a text column, without the quotes that rocprof leaves around it."""
        if column not in self.columns:
            return [""] * len(self)
        texts = [
            "" if value is None else value.decode("utf-8", "replace") for value in self.columns[column].to_pylist()
        ]
        return [text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text for text in texts]

    def integers(self, column: str) -> np.ndarray:
        """Return an integer column, `NULL` everywhere if there is none."""
        return self.columns.get(column, np.full(len(self), NULL))

    def nanoseconds(self, column: str) -> np.ndarray:
        """Return a column of times, int64 of shape (n,), ns, which were rounded where they were read."""
        return self.integers(column)

    def times(self, start: str, end: str) -> tuple[np.ndarray, ...]:
        """Return starts and ends, and which were rounded."""
        return without_rounded(self.integers(start), self.integers(end))

    def floats(self, columns: list[str]) -> np.ndarray:
        """Return counters, shape (rows, columns)."""
        cells = [list(row) for row in zip(*[self.texts(name) for name in columns], strict=True)]
        return numbers(cells, len(columns), self.file.issues, self.file.label)


class KernSource:
    """Table KERN of results.db, with the methods of a CSV file."""

    def __init__(self, path: Path, label: str, sink: Sink, options: Options, known: dict[str, str]) -> None:
        self.label = f"{label}, table {KERN}"
        self.issues = sink.issues
        self.rows = 0
        self.failure: ExportError | None = None
        self._export = SqliteExport(path, options.source)
        self._known = known
        self.columns = self._export.tables.get(KERN, [])
        note_state(self._export, sink.issues)

    def __enter__(self) -> "KernSource":
        return self

    def __exit__(self, *_: object) -> None:
        self._export.close()

    def batches(self) -> Iterator[KernBatch]:
        """Give the rows; afterwards, `failure` is the error of a damaged table, or None."""
        text = [name for name in self.columns if self._known.get(name, "name") == "name"]
        try:
            times = [name for name in self.columns if self._known.get(name) in (*TIMES, *SIGNALS)]
            for misfits, batch in self._export.stream(KERN, self.columns, text=text, times=times):
                self.issues.add_all(misfits, self.label)
                rows = KernBatch(batch, self)
                self.rows += len(rows)
                yield rows
        except ExportError as error:
            self.issues.add("truncated", 1, self.label)
            self.failure = error
