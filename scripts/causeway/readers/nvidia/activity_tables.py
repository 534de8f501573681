"""Named tables of activity records, whatever their container: batches under our names, and texts by their ids."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from causeway.core.errors import ExportError
from causeway.readers.common.constants import NULL
from causeway.readers.common.kernel_names import unnamed
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
        self._codes: dict[Callable, dict[int, int]] = {}

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

    def text_codes(
        self,
        ids: np.ndarray,
        code_of: Callable[[str | bytes | None], int],
        lost: Callable[[int], str | None] = lambda _: None,
    ) -> np.ndarray:
        """Return codes of the texts of ids; each is looked up once for a function.

        Parameters
        ----------
        ids : ndarray of int64, shape (n,)
            `NULL` where absent.
        code_of : callable
            Gives the code of a text, None if there is none.
        lost : callable
            Gives a text for an id whose own the export lacks.

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        codes = self._codes.setdefault(code_of, {})
        used, _, inverse = distinct(ids)
        fresh = [key for key in used.tolist() if key not in codes]
        texts = self.texts([key for key in fresh if key != NULL]) if fresh else {}
        for key in fresh:
            codes[key] = code_of(texts[key] if key in texts else None if key == NULL else lost(key))
        return looked_up(np.array([codes[key] for key in used.tolist()]), inverse)

    def kernel_codes(self, ids: np.ndarray) -> np.ndarray:
        """Return the codes of kernels; launches of different kernels whose names are lost to damage stay apart.

        Parameters
        ----------
        ids : ndarray of int64, shape (n,)
            Of the kernels' names, `NULL` where absent.

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        return self.text_codes(ids, self.sink.kernel, lost=unnamed)
