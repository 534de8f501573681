"""Nsight Systems exports as folders and files of columns: parquetdir, arrowdir and arrow, which hold the tables of the
SQLite form; and a folder of these tables that were saved as CSV.

HDF5 is refused: there an absent value has become 0, so that an ordinary launch cannot be distinguished from one of
graph node 0.
"""

from pathlib import Path

from causeway.core.errors import ExportError
from causeway.readers.common.files import first_bytes, head_of
from causeway.readers.common.options import Options
from causeway.readers.containers.arrow_export import ArrowExport
from causeway.readers.nvidia import nsys
from causeway.readers.sink.sink import Sink

NEVER_OPENED = frozenset(
    {"META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV", "ANALYSIS_FILE", "PROCESSES", "ProcessStreams"}
)
"""Tables of command lines, environments, outputs and paths: nothing in them is wanted."""

_STREAM = b"\xff\xff\xff\xff"
_HDF = b"\x89HDF\r\n"


def probe(path: Path) -> bool:
    """Return whether the path is a folder with the tables of an export, a file of Arrow streams, or an HDF5 file."""
    if path.is_dir():
        marks = ("CUPTI_ACTIVITY_KIND_*", "StringIds", "META_DATA_EXPORT", "EXPORT_META_DATA")
        patterns = ["StringIds.csv", *(mark + suffix for mark in marks for suffix in (".parquet", ".arrow"))]
        return any(next(path.glob(pattern), None) for pattern in patterns)
    return head_of(path, 8).startswith((_STREAM, _HDF))


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one export; see `nsys.read`.

    Raises
    ------
    ExportError
        If it is HDF5, no such export, holds neither launches nor transfers nor samples, or is damaged.
    """
    if path.is_dir():
        export = ArrowExport.of_folder(path, options.source, NEVER_OPENED)
    elif first_bytes(path, 8).startswith(_HDF):
        raise ExportError(
            options.source,
            "it is an HDF5 export, in which nsys writes 0 for every absent value, so that graph node 0 and none are the"
            " same",
            "a form that keeps absent values",
            "Export the report again with `nsys export --type sqlite` (or parquetdir, arrowdir).",
        )
    else:
        export = ArrowExport.of_file(path, options.source, NEVER_OPENED)
    nsys.read_tables(export, sink, options)
