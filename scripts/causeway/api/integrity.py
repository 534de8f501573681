"""Files of the results are as they were written: by the record of checksums, else by what tables say of themselves."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq

from causeway.core.errors import TableError
from causeway.core.files.checked_parquet import CheckedParquet
from causeway.core.files.checksums import RECORD, checksum
from causeway.core.files.json_documents import ADVICE
from causeway.core.tables import SCHEMAS, open_table, read_json

_UNCHANGED: set[tuple[object, ...]] = set()
"""Path, inode, size and times of files that were compared with the record by this process."""


def check_files(root: Path, files: Iterable[Path]) -> None:
    """Refuse files whose content is damaged; each is read whole, block by block.

    Parameters
    ----------
    root : Path
        The results folder.
    files : iterable of Path
        In it. A table that is not in the record has its pages checked.

    Raises
    ------
    TableError
        If a file is not as it was recorded, or a page of a table does not have its checksum.
    """
    for path in files:
        if not _is_recorded(root, path) and path.suffix == ".parquet":
            with _open_named(path) as file:
                for _ in file.iter_batches():
                    pass


def open_checked(root: Path, path: Path) -> pq.ParquetFile:
    """Open a table of the results; its pages are checked as they are read. The caller closes it.

    Raises
    ------
    TableError
        If it is missing, damaged, or not as it was recorded.
    """
    _is_recorded(root, path)
    return _open_named(path)


def _open_named(path: Path) -> pq.ParquetFile:
    """Open a table, and compare its columns with those of the table that it says it is."""
    file = CheckedParquet(path)
    name = (file.schema_arrow.metadata or {}).get(b"causeway.table", b"").decode(errors="replace")
    if name not in SCHEMAS:
        return file
    file.close()
    return open_table(path, name)


def _is_recorded(root: Path, path: Path) -> bool:
    """Return whether a file stands in the record of checksums, as it is.

    Raises
    ------
    TableError
        If it is another than recorded.
    """
    record = root / RECORD
    real = path.resolve()
    base = root.resolve()
    if not (record.is_file() and path.is_file() and real.is_relative_to(base)):
        return False
    recorded = read_json(record)["files"].get(real.relative_to(base).as_posix())
    if recorded is None:
        return False
    facts = real.stat()
    state = (real, recorded, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
    if state not in _UNCHANGED and checksum(real) != recorded:
        raise TableError(
            f"{path}: is not as it was when its run ended (SHA-256 in {RECORD}); if a run goes on in this folder, wait"
            f" until it has ended, else {ADVICE}"
        )
    _UNCHANGED.add(state)
    return True
