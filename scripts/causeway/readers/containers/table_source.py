"""The interface of exports that are named tables: a database, a folder of Parquet files, a file of Arrow streams."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np

from causeway.readers.common.constants import NULL
from causeway.readers.common.issues import Issues
from causeway.readers.common.numbers import Misfits
from causeway.readers.sink.batches import repeated


def note_state(export: "TableSource", issues: Issues) -> None:
    """Count as issues what an export's container shows: that its newest rows may be missing."""
    issues.add("wal_ignored", int(export.wal_ignored))
    issues.add("still_open", int(export.still_open and not export.wal_ignored))


class Batch(dict[str, Any]):
    """Columns of some rows of a table, by name; a column that it has not is `NULL` in every row."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.values())))

    def __missing__(self, name: str) -> np.ndarray:
        return repeated(NULL, self.rows)


class TableSource(Protocol):
    """An export as named tables with columns: `sqlite_database.SqliteExport` and `arrow_export.ArrowExport`.

    Attributes
    ----------
    tables : dict of str to list of str
        The columns of each readable table.
    broken : dict of str to str
        The other tables, and what is wrong with them.
    wal_ignored : bool
        Whether a database has a write-ahead log, with its newest rows, that could not be read.
    still_open : bool
        Whether a journal lies beside a database: its writer has not finished.
    unknown : tuple of str
        Kinds of events that the container holds beside its tables, and that are not known.
    """

    tables: dict[str, list[str]]
    broken: dict[str, str]
    wal_ignored: bool
    still_open: bool
    unknown: tuple[str, ...]

    def estimated_rows(self, table: str) -> int:
        """Return about how many rows a table has, at once."""

    def rows(self, table: str, columns: list[str], limit: int = 100_000) -> list[tuple]:
        """Return columns of a small table, absent columns as None, text as str; [] if it cannot be read."""

    def texts(self, table: str, key: str, value: str, wanted: Iterable[int]) -> dict[int, bytes]:
        """Return the texts of the wanted ids only."""

    def stream(
        self, table: str, columns: list[str], text: Iterable[str] = (), times: Iterable[str] = ()
    ) -> Iterator[tuple[Misfits, dict]]:
        """Give a table's columns batch by batch: how many values were no integers, and the columns by name, int64 of
        shape (n,) with `NULL`, those in `times` rounded, or binary Arrow arrays for those in `text`.
        """

    def close(self) -> None:
        """Close the export."""
