"""Table KERN of rocprof's results.db, read as its CSV files are."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.errors import ExportError
from causeway.readers.common.constants import NULL, SIGNALS, TIMES
from causeway.readers.common.options import Options
from causeway.readers.containers.csv_batches import CsvBatch
from causeway.readers.containers.sqlite_database import SqliteExport
from causeway.readers.containers.table_source import note_state
from causeway.readers.sink.sink import Sink

KERN = "KERN"


class KernSource:
    """Table KERN of results.db, with the attributes and methods of a CSV file that its readers need."""

    def __init__(self, path: Path, label: str, sink: Sink, options: Options, ours_of: dict[str, str]) -> None:
        self.label = f"{label}, table {KERN}"
        self.issues = sink.issues
        self.rows = 0
        self.failure: ExportError | None = None
        self._export = SqliteExport(path, options.source)
        self._ours_of = ours_of
        self.columns = self._export.tables.get(KERN, [])
        self.position = {name: index for index, name in enumerate(self.columns)}
        note_state(self._export, sink.issues)

    def __enter__(self) -> "KernSource":
        return self

    def __exit__(self, *_: object) -> None:
        self._export.close()

    def batches(self) -> Iterator[CsvBatch]:
        """Give the rows; afterwards, `failure` is the error of a damaged table, or None."""
        text = [name for name in self.columns if self._ours_of.get(name, "name") == "name"]
        try:
            times = [name for name in self.columns if self._ours_of.get(name) in (*TIMES, *SIGNALS)]
            for misfits, batch in self._export.stream(KERN, self.columns, text=text, times=times):
                self.issues.add_all(misfits, self.label)
                cells = [_texts(column) if name in text else _digits(column) for name, column in batch.items()]
                rows = [list(row) for row in zip(*cells, strict=True)]
                self.rows += len(rows)
                yield CsvBatch(rows, self)
        except ExportError as error:
            self.issues.add("truncated", 1, self.label)
            self.failure = error


def _texts(column: pa.Array) -> list[str]:
    """Return texts without the quotes that rocprof leaves around them."""
    texts = ["" if value is None else value.decode("utf-8", "replace") for value in column.to_pylist()]
    return [text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text for text in texts]


def _digits(column: np.ndarray) -> list[str]:
    return ["" if number == NULL else str(number) for number in column.tolist()]
