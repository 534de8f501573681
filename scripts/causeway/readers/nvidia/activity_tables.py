"""Named tables of activity records, whatever their container: batches under our names, and texts by their ids."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from causeway.core.errors import ExportError
from causeway.readers.common.constants import NULL, UNNAMED_RANGE
from causeway.readers.common.kernel_names import clean_text, unnamed
from causeway.readers.common.options import Options
from causeway.readers.containers.table_source import Batch, TableSource
from causeway.readers.sink.batches import looked_up
from causeway.readers.sink.distinct import distinct
from causeway.readers.sink.sink import Sink

TIME = "_ns"
"""How our names of times end, by their unit."""


class ActivityTables:
    """The tables of one export that a column map names.

    Parameters
    ----------
    export : TableSource
    sink : Sink
    options : Options
    tables : dict
        The map's `tables`: for each, what it `gives`, its `columns`, perhaps those `required`.
    strings : tuple of str
        The table of strings, and its columns of ids and texts.
    text_column : str
        Our name of the columns that are text or bytes; the others are integers.

    Attributes
    ----------
    failure : ExportError or None
        The first damage met; what was read before it stays in the sink.
    """

    def __init__(
        self,
        export: TableSource,
        sink: Sink,
        options: Options,
        *,
        tables: dict,
        strings: tuple[str, str, str],
        text_column: str,
    ) -> None:
        self.export = export
        self.sink = sink
        self.options = options
        self.tables = tables
        self.failure: ExportError | None = None
        self._strings = strings
        self._text_column = text_column
        self._progress = options.progress()
        self._total = sum(export.estimated_rows(table) for table in tables if table in export.tables)
        self._done = 0

    def tables_giving(self, gives: str) -> Iterator[tuple[str, Batch]]:
        """Give the batches of all tables that give a kind of event: the table's name, and its columns under our names.

        Columns are int64 arrays with `NULL`, or binary Arrow arrays, all of one length. Damage ends a table and is kept
        in `failure`. A newer form of a table (`form_of` of its entry) comes under the name of the known one.
        """
        for table, entry in self.tables.items():
            present = self.export.tables.get(table)
            if entry["gives"] != gives or present is None:
                continue
            lacking = [name for name in entry.get("required", []) if name not in present]
            if lacking:
                self.sink.issues.add("unreadable_table", 1, f"{table} lacks {', '.join(lacking)}")
                self._note_lacking(table, lacking)
                continue
            columns = {raw: ours for raw, ours in entry["columns"].items() if raw in present}
            text = [raw for raw, ours in columns.items() if ours == self._text_column]
            times = [raw for raw, ours in columns.items() if ours.endswith(TIME)]
            try:
                for misfits, batch in self.export.stream(table, list(columns), text=text, times=times):
                    ours = Batch({columns[raw]: values for raw, values in batch.items()})
                    self.sink.count_in(table, ours.rows)
                    self.sink.issues.add_all(misfits, table)
                    self._done += ours.rows
                    self._progress.at(int(self.options.size * min(1.0, self._done / max(1, self._total))))
                    yield entry.get("form_of", table), ours
            except ExportError as error:
                self.sink.issues.add("truncated", 1, f"table {table}")
                self.failure = self.failure or error

    def _note_lacking(self, table: str, columns: list[str]) -> None:
        """Take note of required columns that a table lacks."""

    def texts(self, ids: Iterable[int]) -> dict[int, bytes]:
        """Return the texts of ids, without those that the export lacks; only the wanted ones are read."""
        return self.export.texts(*self._strings, ids)

    def kernel_code(self, key: int, text: bytes | None) -> int:
        """Return the code of a kernel by the id of its name, and its name if the export has it: launches of different
        kernels whose names are lost to damage stay apart.
        """
        return self.sink.kernel(unnamed(key) if text is None and key != NULL else text)

    def range_code(self, _: int, text: bytes | None) -> int:
        """Return the code of a range's name."""
        return self.sink.range_names.code((clean_text(text) if text else "") or UNNAMED_RANGE)

    def text_codes(
        self, ids: np.ndarray, codes: dict[int, int], code_of: Callable[[int, bytes | None], int]
    ) -> np.ndarray:
        """Return codes of the texts of ids.

        Parameters
        ----------
        ids : ndarray of int64, shape (n,)
            `NULL` where absent.
        codes : dict of int to int
            Codes of ids seen before; new ones are added.
        code_of : callable
            Gives the code of an id and its text, None if it has none.

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        used, _, inverse = distinct(ids)
        fresh = [key for key in used.tolist() if key not in codes]
        texts = self.texts([key for key in fresh if key != NULL]) if fresh else {}
        for key in fresh:
            codes[key] = code_of(key, texts.get(key))
        return looked_up(np.array([codes[key] for key in used.tolist()]), inverse)
