"""rocprofiler-compute (Omniperf) workloads: pmc_perf.csv, its single passes, timestamps.csv, or the workload's
folder.
"""

from pathlib import Path

from causeway.core.errors import ExportError
from causeway.readers.amd.dispatch_tables import PassReader
from causeway.readers.common.options import Options
from causeway.readers.containers.csv_batches import header_of
from causeway.readers.containers.sqlite_names import is_database, sqlite_tables
from causeway.readers.sink.sink import Sink

MARKS = {"Dispatch_ID", "Kernel_Name"}
ANALYSIS = ("compute_kernel", "compute_workload")


def probe(path: Path) -> bool:
    """Return whether a file, or a file of a folder, has the columns of a workload; or is the tool's analysis
    database.
    """
    if path.is_dir():
        return bool(_files(path))
    return bool(set(ANALYSIS) & set(sqlite_tables(path))) if is_database(path) else set(header_of(path)) >= MARKS


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one file, or a workload's folder.

    Raises
    ------
    ExportError
        If nothing was measured, a file is cut (what stands before the cut is kept), or it is an analysis database.
    """
    if path.is_file() and is_database(path):
        raise ExportError(
            options.source,
            "it is an analysis database of rocprofiler-compute (tables compute_*): metrics per kernel, without a row"
            " for each launch",
            "a workload's pmc_perf.csv, or a trace",
            "Name the workload's folder, which holds pmc_perf.csv, or profile with `rocprofv3`.",
        )
    sink.format_version = "rocprofiler-compute"
    PassReader("rocprof_compute", sink, options).read(_files(path) if path.is_dir() else [(path, path.name)])


def _files(folder: Path) -> list[tuple[Path, str]]:
    """Return the folder's tables of launches, pmc_perf.csv first."""
    tables = sorted([*folder.glob("*.csv"), *folder.glob("*.csv.gz")])
    files = [path for path in tables if path.is_file() and set(header_of(path)) >= MARKS]
    files.sort(key=lambda path: not path.name.startswith("pmc_perf.csv"))
    return [(path, path.name) for path in files]
