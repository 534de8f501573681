"""What shows, without reading it, that an export is another than before: the sizes and times of its files.

Snakemake compares times alone: it sees neither a file that takes the place of a newer one, nor a change of a file in a
folder that is its input.
"""

import hashlib
import json
from pathlib import Path

INDEX_OF_LOG = "-shm"
"""End of the name of the index of a SQLite write-ahead log, which reading makes and removes."""


def files_of(path: Path) -> list[Path]:
    """Return the file that an export is, or those in its folder, ordered; without indexes of write-ahead logs.

    Raises
    ------
    OSError
        If a folder cannot be read.
    """
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return [file for file in files if not file.name.endswith(INDEX_OF_LOG)]


def state_of(path: Path) -> str:
    """Return a digest, 16 hexadecimal digits, of the names, sizes and times of change of an export's files.

    What is not there or cannot be read has a state, too: the reader says what is wrong with it.
    """
    try:
        files = files_of(path)
    except OSError:
        files = [path]
    text = json.dumps([(str(file.relative_to(path)), *_size_and_time(file)) for file in files])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _size_and_time(file: Path) -> tuple[int | None, int | None]:
    try:
        stat = file.stat()
    except OSError:
        return None, None
    return stat.st_size, stat.st_mtime_ns
