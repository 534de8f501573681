"""Files of the results are as they were written: by the record of checksums, else by the checksums of their pages."""

from collections.abc import Iterable
from pathlib import Path

from causeway.core.errors import TableError
from causeway.core.files.checked_parquet import ADVICE, CheckedParquet
from causeway.core.files.checksums import RECORD, checksum
from causeway.core.tables import read_json


def check_files(root: Path, files: Iterable[Path]) -> None:
    """Refuse files whose content is damaged; each is read whole, block by block.

    A file that was written after the record, by a run that goes on or by a later command, has its pages checked if it
    is a table.

    Parameters
    ----------
    root : Path
        The results folder.
    files : iterable of Path
        In it.

    Raises
    ------
    TableError
        If a file is not as it was recorded, or a page of a table does not have its checksum.
    """
    record_path = root / RECORD
    record = read_json(record_path)["files"] if record_path.is_file() else {}
    for path in files:
        known = record.get(path.resolve().relative_to(root.resolve()).as_posix())
        if known is not None and known == checksum(path):
            continue
        if known is not None and path.stat().st_mtime_ns <= record_path.stat().st_mtime_ns:
            raise TableError(f"{path}: is not as it was when its run ended (SHA-256 in {RECORD}); {ADVICE}")
        if path.suffix == ".parquet":
            check_pages(path)


def check_pages(path: Path) -> None:
    """Read all pages of a table, to check them.

    Raises
    ------
    TableError
        If one is damaged.
    """
    with CheckedParquet(path) as file:
        for _ in file.iter_batches():
            pass
