"""What a reader of tables asks of their container, be it a database, a folder of Parquet files or a file of Arrow streams."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from causeway.readers.issues import Issues


def note_state(export: "TableSource", issues: Issues) -> None:
    """Say what is known of an export's container: whether its newest rows may be missing."""
    issues.add("wal_ignored", int(export.wal_ignored))
    issues.add("still_open", int(export.still_open and not export.wal_ignored))


class TableSource(Protocol):
    """An export as named tables with columns: `sqlite.SqliteExport` and `arrow_tables.ArrowExport`.

    `tables` maps each readable table to its columns, `broken` the others to what is wrong with them, and `wal_ignored` says whether a
    database's newest rows could not be seen, `still_open` whether a journal beside it tells of a writer that has not finished.
    """

    tables: Mapping[str, list[str]]
    broken: Mapping[str, str]
    wal_ignored: bool
    still_open: bool

    def estimated_rows(self, table: str) -> int:
        """Return about how many rows a table has, at once."""

    def pairs(self, table: str, key: str, value: str) -> list[tuple]:
        """Return two columns of a small table, text as str; [] if it is absent or cannot be read."""

    def rows(self, table: str, columns: list[str], limit: int = 100_000) -> list[tuple]:
        """Return columns of a small table, absent columns as None, text as str; [] if it cannot be read."""

    def texts(self, table: str, key: str, value: str, wanted: Iterable[int]) -> dict[int, bytes]:
        """Return the texts of the wanted ids only."""

    def stream(self, table: str, columns: list[str], text: Iterable[str] = ()) -> Iterator[tuple[int, dict]]:
        """Give a table's columns batch by batch: the values that were no integers, and the columns by name."""

    def close(self) -> None:
        """Let go of the export."""
