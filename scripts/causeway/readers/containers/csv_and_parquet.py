"""Plain tables as blocks of columns, numbers as float64 and text as strings: CSV, Parquet and JSON lines behind one
interface.

All give `columns` (the header), `numeric` (the columns that are numbers, known before the first block of `blocks`),
`blocks()` and `bad`, the number of rows that could not be split into the header's columns.
"""

import codecs
import csv
import io
import json
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.json as pajson
import pyarrow.parquet as pq

from causeway.core.errors import ExportError
from causeway.core.files.machine_errors import fail_if_of_the_machine
from causeway.readers.common.constants import MOST_COLUMNS
from causeway.readers.common.files import NO_ROWS, are_json_lines, head_of, json_rows
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.containers.csv_lines import MendedCsv, arrow_batches, has_odd_quotations
from causeway.readers.containers.parquet_sizes import check_sizes

BLOCK_BYTES = 8 << 20
BLOCK_ROWS = 1 << 15
LONGEST_CELL = 1 << 24
MOST_COMMENTS = 100
"""Lines at the begin of a file among which its header is."""
RETRIES = 40
"""Columns that may turn out to be text after the first block before all columns are tried one by one."""

Block = tuple[int, dict[str, pa.Array]]
"""Bytes of the file read so far, and the block's columns."""


class PlainCsv:
    """A CSV file; commas, semicolons or tabs, whichever the header has most of. Lines with # above it are comments.

    Parameters
    ----------
    path : Path
    source : str
        How the sheet names it, for messages.
    missing : collection of str
        Texts that mean "no value" in a column of numbers.
    as_text : collection of str
        Columns to give as text whatever they hold: the target, whose invalid values are to be counted, and names.
    """

    def __init__(self, path: Path, source: str, missing: Collection[str], as_text: Collection[str]) -> None:
        self.path = path
        self.source = source
        self.missing = sorted(missing)
        self.bad = 0
        self.first_bad = ""
        self.size = path.stat().st_size
        self.columns, self.delimiter, self._above = csv_header(path, source)
        _check_width(source, len(self.columns))
        self._is_plain = not has_odd_quotations(path) and is_utf8(path)
        self.failure: ExportError | None = None
        with open(path, "rb") as handle:
            handle.seek(-1, io.SEEK_END)
            self.unfinished = handle.read(1) not in b"\r\n"
        fixed = set(columns_called(self.columns, as_text))
        self._fixed = {index for index, name in enumerate(self.columns) if name in fixed}
        self._numbers: set[int] = set(range(len(self.columns))) - self._fixed
        self._find_numbers()
        self.numeric = {self.columns[index] for index in self._numbers}

    def _find_numbers(self) -> None:
        """Find the columns of numbers: all are parsed as such, a column that fails is text."""
        try:
            first = next(self._read(set()), None)
        except pa.ArrowInvalid as error:
            raise self._unreadable(error) from None
        if first is None:
            return
        self._numbers = {index for index in self._numbers if self._is_numeric(first.column(index))}
        for _ in range(RETRIES):
            try:
                for _ in self._read(self._numbers):
                    pass
                return
            except pa.ArrowInvalid as error:
                match = re.search(r"CSV column #(\d+)", str(error))
                if not match or int(match[1]) not in self._numbers:
                    raise self._unreadable(error) from None
                self._numbers.discard(int(match[1]))
        for block in self._read(set()):
            self._numbers = {index for index in self._numbers if self._is_numeric(block.column(index))}

    def _is_numeric(self, column: pa.Array) -> bool:
        text = stripped(column)
        try:
            pc.if_else(pc.is_in(text, pa.array(self.missing)), pa.scalar(None, pa.string()), text).cast(pa.float64())
        except pa.ArrowInvalid:
            return False
        return True

    def _skip(self, row: pacsv.InvalidRow) -> str:
        self.bad += 1
        self.first_bad = self.first_bad or f"a row has {row.actual_columns} fields, the header {row.expected_columns}"
        return "skip"

    def _read(self, numbers: set[int]) -> Iterator[pa.RecordBatch]:
        names = [str(index) for index in range(len(self.columns))]
        types = {name: pa.float64() if index in numbers else pa.string() for index, name in enumerate(names)}
        self.bad = 0
        mended = None if self._is_plain else MendedCsv(self.path, self.delimiter, len(self.columns))
        try:
            yield from arrow_batches(
                mended or self.path,
                pacsv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES, column_names=names, skip_rows=self._above),
                pacsv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=self._skip),
                pacsv.ConvertOptions(
                    column_types=types,
                    check_utf8=False,
                    strings_can_be_null=False,
                    null_values=self.missing,
                    include_columns=names,
                ),
            )
        except pa.ArrowInvalid as error:
            if "Empty CSV" in str(error) or "Could not skip initial" in str(error):
                return
            raise
        if mended is not None and mended.lines.left_out:
            self.bad += mended.lines.left_out
            self.first_bad = mended.lines.detail()
            self.failure = mended.lines.error(self.source)

    def blocks(self) -> Iterator[Block]:
        """Give the table; empty text is null.

        Raises
        ------
        ExportError
            If the file cannot be split into rows and columns.
        """
        done = 0
        try:
            for batch in self._read(self._numbers):
                columns = {}
                for index, name in enumerate(self.columns):
                    column = batch.column(index)
                    if index not in self._numbers:
                        column = stripped(column)
                        column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
                    columns[name] = column
                done += BLOCK_BYTES
                yield min(done, self.size), columns
        except pa.ArrowInvalid as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: pa.ArrowInvalid) -> ExportError:
        said = clean_text(str(error)).splitlines()[0][:120]
        if "straddl" in said:
            said = f"a row takes more than {BLOCK_BYTES >> 20} MB"
        problem = f"it cannot be read as CSV ({said})"
        return ExportError(self.source, problem, "rows of fields under a header", "Write the table again.")


def csv_header(path: Path, source: str) -> tuple[list[str], str, int]:
    """Return the columns of a CSV file, what divides them, and the number of lines up to the header.

    Raises
    ------
    ExportError
        If a cell of the header is too long.
    """
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as text:
        head = list(islice(iter(partial(text.readline, LONGEST_CELL), ""), MOST_COMMENTS))
        comments = next((index for index, line in enumerate(head) if line.strip() and not line.startswith("#")), 0)
        delimiter = max(",;\t", key=head[comments].count) if head else ","
        if (
            comments
            and head[comments - 1][:1] == "#"
            and head[comments - 1].count(delimiter) == head[comments].count(delimiter)
        ):
            comments -= 1  # that line is the header
        text.seek(0)
        deque(islice(text, comments), 0)
        csv.field_size_limit(LONGEST_CELL)
        try:
            columns = [clean_text(name) for name in next(csv.reader(text, delimiter=delimiter), [])]
        except csv.Error:
            raise ExportError(
                source, "its first line has a cell of more than 16 MB", "a header", "Name the right file."
            ) from None
    return columns, delimiter, comments + 1


def target_name(name: str) -> str:
    """Return how a setting calls a column: by its name, or with what no name of a target may hold as one sign.

    >>> target_name("gpu_ms"), target_name("Run 1 (ms)"), target_name("time (µs)"), target_name("2D-FFT ms")
    ('gpu_ms', 'Run_1_ms', 'time_us', '_2D_FFT_ms')
    """
    called = re.sub(r"[^A-Za-z0-9_.]+", "_", re.sub("[\u00b5\u03bc]", "u", name)).strip("_")
    return f"_{called}" if called[:1].isdigit() or called[:1] == "." else called


def columns_called(columns: Collection[str], names: Iterable[str]) -> list[str]:
    """Return the columns of these names, each the one of exactly that name, else those that a setting calls so."""
    return [
        column
        for name in names
        for column in ([name] if name in columns else [raw for raw in columns if target_name(raw) == name])
    ]


def _check_width(source: str, columns: int) -> None:
    if columns > MOST_COLUMNS:
        advice = "Leave out columns that say nothing of the run."
        raise ExportError(source, f"it has {columns:,} columns", f"at most {MOST_COLUMNS:,}", advice)


def stripped(column: pa.Array) -> pa.Array:
    """Return text without spaces at its ends."""
    return pc.utf8_trim_whitespace(column)


def is_utf8(path: Path) -> bool:
    """Return whether a file is UTF-8 throughout."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open(path, "rb") as handle:
        try:
            while block := handle.read(BLOCK_BYTES):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


class PlainParquet:
    """A Parquet file; the arguments are those of `PlainCsv`, of which only the first two matter."""

    bad = 0
    first_bad = ""
    unfinished = False
    failure: ExportError | None = None

    def __init__(self, path: Path, source: str, *_: object) -> None:
        self.source = source
        self.size = path.stat().st_size
        try:
            self._file = pq.ParquetFile(path)
        except (pa.ArrowException, OSError) as error:
            fail_if_of_the_machine(error)
            raise ExportError(
                source, "its footer cannot be read", "a complete Parquet file", "Write or copy the table again."
            ) from None
        _check_width(source, self._file.metadata.num_columns)
        check_sizes(source, self._file.metadata)
        self._name_columns(self._file.schema_arrow)

    def _name_columns(self, schema: pa.Schema) -> None:
        self.columns = [clean_text(name) for name in schema.names]
        self._kinds = [_kind(kind) for kind in schema.types]
        self.numeric = {name for name, kind in zip(self.columns, self._kinds, strict=True) if kind == "number"}
        self.unusable = [name for name, kind in zip(self.columns, self._kinds, strict=True) if kind is None]

    def blocks(self) -> Iterator[Block]:
        """Give the table; columns of types that are neither numbers nor text are null.

        Raises
        ------
        ExportError
            After the last good row, if the rest is damaged.
        """
        done = 0
        total = max(1, self._file.metadata.num_rows)
        rows = max(256, min(BLOCK_ROWS, (1 << 22) // max(1, len(self.columns))))
        try:
            for batch in self._file.iter_batches(rows, use_threads=False):
                done += batch.num_rows
                yield (
                    self.size * done // total,
                    {
                        name: _converted(column, kind)
                        for name, column, kind in zip(self.columns, batch.columns, self._kinds, strict=True)
                    },
                )
        except (pa.ArrowException, OSError) as error:
            fail_if_of_the_machine(error)
            problem = f"it is damaged after row {done:,}"
            if isinstance(error, pa.ArrowCapacityError | pa.ArrowMemoryError) or "capacity" in str(error):
                problem = f"the values of a column behind row {done:,} take more memory than a block of rows may"
            raise ExportError(
                self.source, problem, "a complete Parquet file", "Write or copy the table again."
            ) from None


class PlainJsonLines(PlainParquet):
    """A file of one JSON object a line, of which the first block shows all fields, or a document with rows as of
    `json_rows`; arguments as of `PlainParquet`.

    Raises
    ------
    ExportError
        If its lines are no JSON objects, or the document has several lists of rows.
    """

    def __init__(self, path: Path, source: str, *_: object) -> None:
        self.source = source
        self.path = path
        self.size = path.stat().st_size
        are_lines = are_json_lines(head_of(path))
        lists = {} if are_lines else json_rows(path)
        if not are_lines and not lists:
            raise ExportError(source, f"it is {NO_ROWS}", "one JSON object a line", "Write it as a table (CSV).")
        if len(lists) > 1:
            names = ", ".join(f"{clean_text(name)[:40]} ({len(rows):,} rows)" for name, rows in list(lists.items())[:8])
            advice = "Write the rows of each as a file of its own (JSON or CSV)."
            raise ExportError(source, f"it has several lists of rows: {names}", "one list", advice)
        self._rows = next(map(_of_rows, lists.values()), None)
        self._whole = _bytes_of_whole_lines(path, self.size) if self._rows is None else self.size
        self.unfinished = self._whole < self.size
        if self.unfinished:
            self.failure = ExportError(
                source, "the file ends in the middle of a line", "whole lines", "Write or copy it again."
            )
        self._schema: pa.Schema | None = None
        try:
            with self._opened() as lines:
                _check_width(source, len(lines.schema))
                self._schema = pa.schema([(field.name, _widest(field.type)) for field in lines.schema])
                self._name_columns(self._schema)
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from None

    def blocks(self) -> Iterator[Block]:
        """Give the table, as `PlainParquet.blocks` does.

        Raises
        ------
        ExportError
            After the last good block, if a line is no JSON object, or a field has another type than in the first.
        """
        try:
            with self._opened() as lines:
                for batch in lines:
                    columns = zip(self.columns, batch.columns, self._kinds, strict=True)
                    yield self.size, {name: _converted(column, kind) for name, column, kind in columns}
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from None

    def _opened(self) -> pa.RecordBatchReader:
        fields = pajson.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="infer")
        if self._rows is not None:
            return self._rows.to_reader(BLOCK_ROWS)
        lines = pa.OSFile(str(self.path)).get_stream(0, self._whole)
        return pajson.open_json(lines, pajson.ReadOptions(block_size=BLOCK_BYTES, use_threads=False), fields)

    def _unreadable(self, error: Exception) -> ExportError:
        fail_if_of_the_machine(error)
        problem = f"its lines are no JSON objects of one kind ({clean_text(str(error)).splitlines()[0][:120]})"
        return ExportError(self.source, problem, "one JSON object a line", "Write it as a table (CSV).")


def _of_rows(rows: list[dict[str, Any]]) -> pa.Table:
    """Return objects as a table: numbers as float64, what is not always one as text, lists and objects as null."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: _of_cells([row.get(name) for row in rows]) for name in names})


def _of_cells(cells: list[Any]) -> pa.Array:
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {int, float, bool}:  # by text: a whole number may be too large for a float
        return pa.array([None if cell is None else float(f"{+cell}") for cell in cells], pa.float64())
    if kinds <= {list, dict}:
        return pa.nulls(len(cells), pa.list_(pa.null()))
    texts = [cell if cell is None or isinstance(cell, str) else json.dumps(cell) for cell in cells]
    return pa.array([None if text is None else text.encode(errors="replace").decode() for text in texts], pa.string())


def _bytes_of_whole_lines(path: Path, size: int) -> int:
    """Return up to where a file of JSON lines is whole: without its last line where that has no end and is no JSON."""
    with open(path, "rb") as handle:
        handle.seek(max(0, size - BLOCK_BYTES))
        last = handle.read().rpartition(b"\n")[2]
    try:
        json.loads(last or b"0")
    except (ValueError, RecursionError):
        return size - len(last)
    return size


def _widest(kind: pa.DataType) -> pa.DataType:
    """Return the type of a field of JSON that later lines fit, too, where the first have whole numbers or none."""
    if pa.types.is_integer(kind):
        return pa.float64()
    return pa.string() if pa.types.is_null(kind) else kind


def readable(column: pa.Array) -> pa.Array:
    """Return text in which what cannot be decoded is U+FFFD."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        texts = column.view(pa.binary()).to_pylist()
        return pa.array([None if text is None else text.decode("utf-8", "replace") for text in texts], pa.string())
    return column


def _kind(kind: pa.DataType) -> str | None:
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if (
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    ):
        return "number"
    return "text" if types.is_string(kind) or types.is_large_string(kind) or types.is_temporal(kind) else None


def _converted(column: pa.Array, kind: str | None) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kind is None:
        return pa.nulls(len(column), pa.string())
    if kind == "text":
        return readable(column.cast(pa.string()))
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    return column.cast(pa.float64(), safe=False)
