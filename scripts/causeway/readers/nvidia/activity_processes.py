"""Whose the rows of CUPTI activity are: which process each file of a folder is, and each report within a text.

`nsys stats` and nvprof name no process in most of their reports. Files of one run share what is left of their names
without the words for reports and records: `run1_cuda_gpu_trace.csv` and `run1_cuda_api_trace.csv`, or `kernel.csv` and
`memcpy.csv`. nvprof names the process above each of its results, `nsys stats` the database above each report.
"""

import io
import re
import zlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causeway.core.files.machine_errors import suppress_unless_of_the_machine
from causeway.readers.common.constants import NULL
from causeway.readers.common.copy_kinds import LONGEST
from causeway.readers.common.files import open_text
from causeway.readers.common.name_ranks import in_order, ranks_in_names
from causeway.readers.containers.csv_lines import CsvLines, PrintedTables
from causeway.readers.detect import is_printed
from causeway.readers.nvidia.activity_columns import Columns, columns_of
from causeway.readers.nvidia.activity_kinds import RowKinds

HEADER_CHARS = 1 << 28
"""Characters in which a header is looked for: a program may print much before nvprof prints its results."""

NOTES = ("Regs: ", "SSMem: ", "DSMem: ", "SrcMemType: ", "DstMemType: ")
"""How nvprof's lines below a table on its columns begin."""
MESSAGES = ("==", "Processing [", "SKIPPED: ", "** ", *NOTES)
"""How lines of nvprof and of `nsys stats` between the rows begin."""

_LOST = re.compile(
    r"^=+.*?\bWarning:\s*(?:(\d{1,18})\s+)?.*?\b(?:invalid timestamps|dropped|lost|insufficient|exceed)", re.IGNORECASE
)
"""nvprof's warnings of records that are not there, some with their number."""
_RESULT = re.compile(r"==(\d{1,18})== Profiling result")
_DATABASE = re.compile(r"Processing \[(.+?)\] with ")
_RECORDS = (
    "cuda gpu api kern kernel kernels exec trace summary sum base mangled concurrent cupti activity kind activities"
    " records events gputrace cudaapitrace apitrace kernexectrace memcpy memcpy2 memcopy memcopies copy copies"
    " transfer transfers memset memsets mem runtime driver call calls launch launches nvtx pushpop ranges"
)
_WORDS = re.compile(rf"(?:{'|'.join(sorted(_RECORDS.split(), key=len, reverse=True))})(\d*)", re.IGNORECASE)
"""What names of files say of reports and kinds of records; a number may follow."""


class Messages:
    """What the lines between the rows of a text say.

    Attributes
    ----------
    source : str
        Whose the rows below are: the latest process or database that was named, "" if none was.
    lost : int
        Records that nvprof's warnings report as missing.
    """

    def __init__(self) -> None:
        self.source = ""
        self.lost = 0

    def take(self, line: str) -> None:
        """Take a line."""
        if match := _LOST.search(line[:LONGEST]):
            self.lost += int(match[1] or 1)
        elif match := _RESULT.match(line) or _DATABASE.match(line):
            self.source = in_order(match[1])


def lines_of(path: Path, text: io.TextIOBase) -> CsvLines:
    """Return the lines of a file: those of reports that `nsys stats` prints in columns or as JSON become CSV.

    Raises
    ------
    OSError
        If the file cannot be opened.
    """
    return CsvLines(PrintedTables(text) if is_printed(path) else text)


def find_header(lines: CsvLines, messages: Messages) -> Columns | None:
    """Return the columns of the first header that is usable, None if there is none; sets the delimiter of `lines`, and
    hands the lines above the header to `messages`.
    """
    seen = 0
    while seen < HEADER_CHARS and (line := lines.next_line()) is not None:
        seen += len(line)
        if line.startswith(MESSAGES):
            messages.take(line)
        elif len(line) <= 1 << 16 and re.search("start|begin", line, re.IGNORECASE):  # as every header has
            for delimiter in ",;\t":
                if delimiter in line:
                    columns = columns_of(lines.cells(line, delimiter))
                    if columns.usable:
                        lines.delimiter = delimiter
                        return columns
    return None


def next_report(row: list[str], columns: Columns) -> Columns | None:
    """Return the columns of the further report whose header a row below one of these columns is, None if it is a row of
    this report.

    Rows of every report of `nsys stats` hold a number, headers none; that of a summary may have no unit near its begin.
    """
    position = columns.position.get("start", 0)
    if not row or (row[position] if position < len(row) else row[0])[:1].isdigit():  # as in nearly every row
        return None
    further = columns_of(row)
    if columns.report and not further.usable:
        further.report = further.report or _names_only(row)
    return further if further.report or further.usable else None


def _names_only(row: list[str]) -> bool:
    """Return whether each of several cells holds a text that is no number.

    >>> _names_only(["PID", "Avg (ns)"]), _names_only(["k", "12"]), _names_only(["k", "-1.5", ""]), _names_only(["k"])
    (True, False, False, False)
    """
    cells = [cell.strip().lstrip("+-.") for cell in row]
    return len(cells) > 1 and all(cell and not cell[0].isdigit() for cell in cells)


@dataclass(frozen=True, kw_only=True)
class ActivityFile:
    """A file of activity records.

    Parameters
    ----------
    path : Path
    group : str
        What its name has in common with those of the other files of its run.
    rank : int or None
        The rank that the names of its run state.
    launching : bool
        Whether it is not known to be without launches.
    """

    path: Path
    group: str = ""
    rank: int | None = None
    launching: bool = True


def activity_files(path: Path) -> list[Path]:
    """Return the file, or the files of the folder, that have a usable header; launches with the times of their calls
    come last.
    """
    candidates = sorted(path.glob("*.csv")) + sorted(path.glob("*.csv.gz")) if path.is_dir() else [path]
    files: list[Path] = []
    last: list[Path] = []
    for file in candidates:
        with suppress_unless_of_the_machine(OSError, EOFError, zlib.error):
            raw, text = open_text(file)
            with raw, text:
                columns = find_header(lines_of(file, text), Messages()) if file.is_file() else None
                if columns is not None:
                    (last if "call_start" in columns.position else files).append(file)
    return files + last


def by_run(paths: list[Path]) -> list[ActivityFile]:
    """Return the files of a folder with the runs that they belong to, those with launches first.

    Runs are told apart where several have launches. A file without launches whose name fits none of them belongs to
    the only one, or else stays by itself.
    """
    groups = {path: _group(path) for path in paths}
    launching = {path for path in paths if _has_launch(path)}
    runs = sorted({groups[path] for path in launching})
    if len(runs) == 1:
        groups = dict.fromkeys(paths, runs[0])
    ranks = {group: rank for (_, group), rank in ranks_in_names(("", run) for run in runs).items()}
    files = [
        ActivityFile(path=path, group=in_order(groups[path]), rank=ranks.get(groups[path]), launching=path in launching)
        for path in paths
    ]
    return [file for file in files if file.launching] + [file for file in files if not file.launching]


def _group(path: Path) -> str:
    """Return a file's name without the words for reports and records.

    >>> _group(Path("run1_cuda_gpu_trace.csv")), _group(Path("CUPTI_ACTIVITY_KIND_MEMCPY.csv")), _group(Path("k_2.csv"))
    ('run1', '', 'k_2')
    """
    parts = re.split(r"[-_.: ]+", path.name.lower().removesuffix(".gz").removesuffix(".csv"))
    words = [match[1] if (match := _WORDS.fullmatch(part)) else part for part in parts]
    return "_".join(word for word in words if word)


def _has_launch(path: Path) -> bool:
    """Return whether a file has a row that is a launch."""
    with suppress_unless_of_the_machine(OSError, EOFError, zlib.error):
        raw, text = open_text(path)
        with raw, text:
            lines = lines_of(path, text)
            messages = Messages()
            columns = find_header(lines, messages)
            has = columns.position.keys() if columns else set()
            if columns is None or (columns.report and not {"device", "stream", "grid_x", "grid"} & has):
                return False  # calls, of which there may be many
            kinds = RowKinds(columns.position, path.name, messages.source)
            for row, _ in lines.rows():
                if (further := next_report(row, columns)) is not None:
                    columns = further
                    kinds = RowKinds(columns.position, path.name, messages.source)
                    continue
                position = columns.position["start"] if columns.usable else len(row)
                if position < len(row) and row[position][:1].isdigit() and kinds.of(row) == RowKinds.LAUNCHES:
                    return True
    return False


class ReportProcesses:
    """The processes of an export's reports, and which of these say again what another has said.

    A report of `nsys stats` has each launch once. In one text, a further one of the same kind is the same run in
    another form (`cuda_gpu_trace:base`) if it begins with the same event, else another run. Launches of a process are
    taken from one kind of report: `nsys stats` has them in cuda_gpu_trace and in cuda_kern_exec_trace, which has no
    streams.
    """

    def __init__(self) -> None:
        self._firsts: dict[tuple, dict[Hashable, tuple[int, int]]] = {}
        self._runs: dict[tuple[str, str], int] = {}
        self._source: dict[str, str] = {}
        self._with_calls: dict[tuple, bool] = {}
        self.process: tuple = ("", "", 0)
        self.file = ActivityFile(path=Path())

    def begin(self, file: ActivityFile, source: str) -> None:
        """Begin a report of a file, whose rows are of the process or database `source`, if one was named."""
        self.file = file
        source = self._source.setdefault(file.group, source) if not file.launching else source
        self._source.setdefault(file.group, source)
        self.process = (file.group, source, self._runs.get((file.group, source), 0))

    def says_it_again(self, columns: Columns, firsts: Iterable[tuple[int, int, int]]) -> bool:
        """Return whether a report of `nsys stats` repeats another of its process; if it is of another run, go on to
        that run.

        Parameters
        ----------
        columns : Columns
        firsts : iterable of (int, int, int)
            The kind, start and end of the first event of each kind in it.
        """
        own = {self._kind(columns, kind): (start, end) for kind, start, end in firsts}
        said = self._firsts.setdefault(self.process, {})
        if columns.report:
            if any(said.get(kind) == times for kind, times in own.items()):
                return True
            with_calls = own.get((RowKinds.LAUNCHES, True))
            others = [of_process.get((RowKinds.LAUNCHES, False)) for of_process in self._firsts.values()]
            if with_calls and (RowKinds.LAUNCHES, False) not in said and with_calls in others:
                return True
            if own.keys() & said.keys():
                group, source, run = self.process
                self._runs[group, source] = run + 1
                self.process = (group, source, run + 1)
                said = self._firsts.setdefault(self.process, {})
        for kind, times in own.items():
            said.setdefault(kind, times)
        return False

    def also_has(self, columns: Columns, firsts: Iterable[tuple[int, int, int]]) -> None:
        """Take the first events of further kinds of the report, as `says_it_again` has them."""
        for kind, start, end in firsts:
            self._firsts[self.process].setdefault(self._kind(columns, kind), (start, end))

    @staticmethod
    def _kind(columns: Columns, kind: int) -> Hashable:
        """Return what a process has but one report of: launches with or without calls, else events in these columns."""
        if kind == RowKinds.LAUNCHES:
            return kind, "call_start" in columns.position
        return kind, frozenset(columns.position.items())

    def takes_launches(self, columns: Columns) -> bool:
        """Return whether launches of a report are of the kind that came first in the process."""
        with_calls = "call_start" in columns.position
        return self._with_calls.setdefault(self.process, with_calls) == with_calls

    def keys(self, pids: np.ndarray, ranks: np.ndarray) -> tuple[list[tuple[Hashable, int | None]], np.ndarray]:
        """Return the key and the rank of each process of some rows, and which of these a row is of.

        A process is the one that a row names, else the one of its report.

        Parameters
        ----------
        pids, ranks : ndarray of int64, shape (n,)
            `NULL` where a row names none.

        Returns
        -------
        keys : list of (tuple, int or None), m of them
        which : ndarray of int64, shape (n,)
        """
        used, which = np.unique(np.stack([pids, ranks]), axis=1, return_inverse=True)
        stated = self.file.rank
        keys: list[tuple[Hashable, int | None]] = []
        for pid, rank in used.T.tolist():
            number = rank if rank != NULL else stated
            own = self.process if pid == NULL and rank == NULL else ("", "", 0)
            keys.append(((*own, pid, NULL if number is None else number), number))
        return keys, which.reshape(-1)
