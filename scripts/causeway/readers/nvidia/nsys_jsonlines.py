"""Nsight Systems exports as JSON lines (`--type json`, later `jsonlines`): one object per event, strings by number,
64-bit numbers as text.

The lines are sorted into the tables that the other forms have, in files beside the output, and read from there, so that
the meaning of the columns stands in one place (`nsys`). Strings stand in one line, first or last, or one by one
(`--separate-strings`); only where each begins is remembered, since they hold the environments of every process. Lines
of other kinds (processes, environments, call stacks) are not parsed.
"""

import codecs
import json
import mmap
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.errors import ExportError
from causeway.core.files.yaml_files import column_map
from causeway.core.logs import Progress
from causeway.readers.common.constants import NULL
from causeway.readers.common.files import head_of
from causeway.readers.common.numbers import Misfits, integers
from causeway.readers.common.options import Options
from causeway.readers.containers.arrow_export import ArrowExport
from causeway.readers.containers.arrow_tables import whole_file
from causeway.readers.nvidia import nsys
from causeway.readers.nvidia.activity_tables import TIME
from causeway.readers.sink.sink import Sink

LINE_BYTES = 16 << 20
"""Longest line of an event that is read; a longer one is counted as unreadable."""

SPOOL_ROWS = 1 << 15
MOST_UNKNOWN = 100
"""Kinds of events that are not known and told apart."""
SCAN_BYTES = 8 << 20
ADVICE = "Export the report again with `nsys export --type sqlite`, or copy the file again."

_STRINGS_LINE = re.compile(rb'\{\s*"data"\s*:\s*\[\s*(?=["\]])')
_EVENT = re.compile(rb'\{\s*(?:"Type"\s*:\s*"?\d+"?\s*,\s*)?"(\w+)"\s*:')
_LIKE_EVENTS = re.compile(rb"(?:cuda|nvtx|cupti|kernel|runtime|memcpy|memset|traceprocess)\w*event", re.IGNORECASE)
_ONE_STRING = re.compile(rb'\{\s*"type"\s*:\s*"String"\s*,\s*"id"\s*:\s*"?(\d+)')
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_COMMA = re.compile(rb"\s*,\s*")


def probe(path: Path) -> bool:
    """Return whether the file begins like JSON lines of Nsight Systems."""
    head = head_of(path, 4096).removeprefix(codecs.BOM_UTF8).lstrip()
    event = _EVENT.match(head)
    return bool(_STRINGS_LINE.match(head) or _ONE_STRING.match(head) or (event and event[1].endswith(b"Event")))


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one export; see `nsys.read`.

    Raises
    ------
    ExportError
        If it holds no event that can be used, or is cut; what stands before the cut is kept.
    """
    rules = column_map("nsys_jsonlines")
    spool = Spool(sink.folder, rules["events"], rules["not_read"])
    try:
        strings = StringIndex(path)
        cut = _sort_lines(path, strings, spool, sink, options)
        export = spool.export(options.source, strings)
        sink.format_version = "JSON lines"
        try:
            nsys.read_tables(export, sink, options)
        except ExportError as error:
            if cut and not sink.n_launches:
                raise ExportError(error.source, f"{error.found} ({cut.found})", error.expected, ADVICE) from None
            raise
        if cut:
            raise cut
    finally:
        spool.remove()


def _sort_lines(path: Path, strings: "StringIndex", spool: "Spool", sink: Sink, options: Options) -> ExportError | None:
    """Put each event's fields into its table; return the error of a cut file."""
    bad = 0
    first_bad = ""
    cut = "the line of strings has no end" if strings.cut else None
    progress = Progress(f"{options.source}: lines", options.size or None)
    for number, line, complete, ended in _lines(path, strings, progress):
        match = _EVENT.match(line.removeprefix(codecs.BOM_UTF8) if number == 1 else line)
        if match and match[1] in spool.kinds:
            event = _parse(line) if complete else None
            if isinstance(event, dict) and spool.take(match[1], event):
                sink.issues.add("unfinished_line", int(not ended), f"line {number}")
                continue
            is_cut = event is None and not ended
            is_bad = event is None
        else:
            if match and _LIKE_EVENTS.search(match[1]):
                spool.note_unknown(match[1].decode("ascii", "replace"))
            is_cut = not ended and bool(line.strip()) and _parse(line) is None
            is_bad = not match and bool(line.strip()) and not line.lstrip().startswith(b"{")
        if is_cut:
            cut = f"the file ends in the middle of line {number}"
        elif is_bad:
            bad += 1
            first_bad = first_bad or f"line {number}"
    sink.issues.add("unreadable_rows", bad, first_bad)
    sink.issues.add("truncated", int(cut is not None), cut or "")
    return ExportError(options.source, cut, "complete lines", ADVICE) if cut else None


def _lines(path: Path, strings: "StringIndex", progress: Progress) -> Iterator[tuple[int, bytes, bool, bool]]:
    """Give each line but that of the strings: its number, its first `LINE_BYTES`, whether that is all of it, and
    whether it has an end.
    """
    number = 0
    offset = 0
    with open(path, "rb", buffering=1 << 20) as file:
        while line := file.readline(LINE_BYTES):
            number += 1
            if offset == strings.line_at:
                offset = file.seek(strings.line_end)
                continue
            size = len(line)
            ended = line.endswith(b"\n")
            while not ended and size % LINE_BYTES == 0 and (rest := file.readline(LINE_BYTES)):
                size += len(rest)
                ended = rest.endswith(b"\n")
            offset += size
            if not number & 0xFFF:
                progress.at(offset)
            yield number, line, size == len(line), ended


_scan = json.JSONDecoder().raw_decode


def _parse(line: bytes) -> object:
    """Return a line's object, None if it is none; undecodable text is replaced."""
    text = line.decode("utf-8-sig", "replace")
    try:
        value, end = _scan(text, len(text) - len(text.lstrip()))
    except (ValueError, RecursionError):
        return None
    return value if not text[end:].strip() else None


class StringIndex:
    """The offset of each string of the file; a text is read when a name is looked up, and never all of them.

    Attributes
    ----------
    line_at, line_end : int
        Where the line of all strings begins and ends, in bytes; -1 if they stand one by one.
    cut : bool
        Whether that line has no end.
    """

    def __init__(self, path: Path) -> None:
        self.line_at = -1
        self.line_end = -1
        self.cut = False
        self._ids = array("q")
        self._offsets = array("q")
        self._file: tuple[np.ndarray, np.ndarray] | None = None
        with open(path, "rb") as file:
            if path.stat().st_size:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                self._find()

    def _find(self) -> None:
        """Index the strings: in the first line, else in a later one, else one by one."""
        if match := _STRINGS_LINE.match(self._map, len(codecs.BOM_UTF8) if self._map[:3] == codecs.BOM_UTF8 else 0):
            self._index(match.end(), 0)
            return
        offset = 0
        while (offset := self._map.find(b"\n{", offset)) >= 0:
            offset += 1
            if match := _STRINGS_LINE.match(self._map, offset):
                self._index(match.end(), offset)
                return
            if match := _ONE_STRING.match(self._map, offset):
                self._ids.append(int(match[1]) if len(match[1]) < 19 else -1)
                self._offsets.append(offset)
            self._release_pages(offset)

    def _index(self, offset: int, line_at: int) -> None:
        """Index the strings of the line that begins at `line_at`; its first string stands at `offset`."""
        self.line_at = line_at
        while match := _STRING.match(self._map, offset):
            self._ids.append(len(self._ids))
            self._offsets.append(offset)
            offset = match.end()
            self._release_pages(offset)
            comma = _COMMA.match(self._map, offset)
            if not comma:
                break
            offset = comma.end()
        end = self._map.find(b"\n", offset)
        self.cut = end < 0 and self._map[offset : offset + 1] != b"]"
        self.line_end = len(self._map) if end < 0 else end + 1

    def _release_pages(self, offset: int) -> None:
        """Let the system take back the mapped pages that were read, from time to time."""
        if offset - getattr(self, "_released", 0) > SCAN_BYTES and hasattr(self._map, "madvise"):
            self._map.madvise(mmap.MADV_DONTNEED)
            self._released = offset

    def text(self, number: int) -> bytes | None:
        """Return one string."""
        if self.line_at >= 0:
            match = _STRING.match(self._map, self._offsets[number]) if 0 <= number < len(self._offsets) else None
            value = _parse(match[0]) if match else None
        else:
            if self._file is None:
                order = np.argsort(np.frombuffer(self._ids, np.int64), kind="stable")
                self._file = (np.frombuffer(self._ids, np.int64)[order], np.frombuffer(self._offsets, np.int64)[order])
            ids, offsets = self._file
            position = int(np.searchsorted(ids, number))
            if position == len(ids) or ids[position] != number:
                return None
            begin = int(offsets[position])
            end = self._map.find(b"\n", begin)
            record = _parse(self._map[begin : end if end >= 0 else len(self._map)])
            value = record.get("value") if isinstance(record, dict) else None
        return value.encode("utf-8", "replace") if isinstance(value, str) else None


class EventRule:
    """Which events are rows of a table, and the fields that are its columns.

    Parameters
    ----------
    entry : dict
        `table`, `columns` (field -> column; a field after a dot stands in the event's inner object), and perhaps
        `object`, the inner object that such an event has, and `where`, the values that fields must have.
    """

    def __init__(self, entry: dict) -> None:
        self.table = entry["table"]
        self.object = entry.get("object")
        self.where = entry.get("where", {})
        fields = entry["columns"]
        self._outer = [field for field in fields if not field.startswith(".")]
        self._inner = [field[1:] for field in fields if field.startswith(".")]
        self.columns = [fields[field] for field in self._outer] + [fields[f".{field}"] for field in self._inner]

    def row(self, event: dict) -> list | None:
        """Return the event's cells, None if it is not one of the table's."""
        inner = event if self.object is None else event.get(self.object)
        if not isinstance(inner, dict):
            return None
        for field, values in self.where.items():
            if event.get(field) not in values:
                return None
        return [event.get(field) for field in self._outer] + [inner.get(field) for field in self._inner]


def _numbers(values: tuple, of_times: bool) -> tuple[pa.Array, Misfits]:
    """Return decimal texts or numbers as int64, what is neither as null, and how many those are."""
    try:
        return pa.array(values, pa.string() if isinstance(values[0], str) else pa.int64()).cast(pa.int64()), Counter()
    except (pa.ArrowException, TypeError, OverflowError):
        numbers, misfits = integers(values, of_times)
        return pa.array(numbers, mask=numbers == NULL), misfits


class Spool:
    """The tables of one file, written as Arrow streams beside the output while its lines are read.

    Parameters
    ----------
    folder : Path
    events : dict
        The map: per kind of event, the path of the object that makes it one of a table, the table, and its fields.
    not_read : list of str
        Objects of events, `<kind>.<object>`, that are known not to be wanted.

    Attributes
    ----------
    unknown : dict of str to None
        Kinds of events, and objects inside them, that are not known, in the order of the file.
    """

    def __init__(self, folder: Path, events: dict, not_read: list[str]) -> None:
        self.folder = folder
        self.unknown: dict[str, None] = {}
        self._not_read = frozenset(not_read)
        self.kinds: dict[bytes, list[EventRule]] = {}
        self._columns: dict[str, list[str]] = {}
        self._rows: dict[str, list[list]] = {}
        self._writers: dict[str, pa.RecordBatchStreamWriter] = {}
        self.misfits: dict[str, Misfits] = {}
        for kind, entries in events.items():
            for entry in entries:
                rule = EventRule(entry)
                self.kinds.setdefault(kind.encode(), []).append(rule)
                self._columns[rule.table] = rule.columns
                self._rows[rule.table] = []

    def take(self, kind: bytes, event: dict) -> bool:
        """Append an event to the table it belongs to; return whether it could be read, also if it belongs to none."""
        fields = event.get(kind.decode())
        if not isinstance(fields, dict):
            return False
        for rule in self.kinds[kind]:
            row = rule.row(fields)
            if row is not None:
                rows = self._rows[rule.table]
                rows.append(row)
                if len(rows) >= SPOOL_ROWS:
                    self._flush(rule.table)
                break
        else:
            if all(rule.object for rule in self.kinds[kind]):
                for name, inner in fields.items():
                    if isinstance(inner, dict):
                        self.note_unknown(f"{kind.decode()}.{name}")
        return True

    def note_unknown(self, name: str) -> None:
        """Remember a kind of event, or an object inside one, that is not known."""
        if name not in self._not_read and len(self.unknown) < MOST_UNKNOWN:
            self.unknown[name] = None

    def _flush(self, table: str) -> None:
        arrays = []
        misfits = self.misfits.setdefault(table, Counter())
        ours = column_map("nsys")["tables"][table]["columns"]
        for name, values in zip(self._columns[table], zip(*self._rows[table], strict=True), strict=True):
            if name == "text":
                texts = [value.encode("utf-8", "replace") if isinstance(value, str) else None for value in values]
                arrays.append(pa.array(texts, pa.binary()))
            else:
                array, more = _numbers(values, of_times=ours.get(name, "").endswith(TIME))
                misfits.update(more)
                arrays.append(array)
        batch = pa.RecordBatch.from_arrays(arrays, names=self._columns[table])
        if table not in self._writers:
            self._writers[table] = pa.ipc.new_stream(self._path(table), batch.schema)
        self._writers[table].write_batch(batch)
        self._rows[table].clear()

    def _path(self, table: str) -> Path:
        return self.folder / f".{table}.spool"

    def export(self, source: str, strings: StringIndex) -> "SpooledExport":
        """Return the tables, all rows written."""
        tables = {}
        for table, rows in self._rows.items():
            if rows:
                self._flush(table)
            if table in self._writers:
                self._writers.pop(table).close()
                tables[table] = whole_file(self._path(table))
        return SpooledExport(tables, source, strings, self.misfits, tuple(self.unknown))

    def remove(self) -> None:
        """Remove what was written."""
        for writer in self._writers.values():
            writer.close()
        for path in self.folder.glob(".*.spool"):
            path.unlink()


class SpooledExport(ArrowExport):
    """The spooled tables, with the strings of the file."""

    def __init__(
        self, tables: dict, source: str, strings: StringIndex, misfits: dict[str, Misfits], unknown: tuple[str, ...]
    ) -> None:
        super().__init__(tables, {}, source)
        self.unknown = unknown
        self._strings = strings
        self._misfits = misfits

    def texts(self, table: str, key: str, value: str, wanted: Iterable[int]) -> dict[int, bytes]:
        """Return the texts of the wanted strings."""
        texts = {number: self._strings.text(number) for number in wanted}
        return {number: text for number, text in texts.items() if text is not None}

    def stream(
        self, table: str, columns: list[str], text: Iterable[str] = (), times: Iterable[str] = ()
    ) -> Iterator[tuple[Misfits, dict]]:
        """Give a table's columns; values that were no integers are counted with its first batch."""
        for misfits, batch in super().stream(table, columns, text, times):
            yield misfits + self._misfits.pop(table, Counter()), batch
