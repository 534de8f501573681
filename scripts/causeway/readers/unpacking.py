"""A compressed export as a plain file beside its tables, for the time of its reading.

Traces that profilers compress with gzip themselves are read as they are. What is not known to every reader is unpacked,
block by block, and no further than a profiler's export could be.
"""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from causeway.core.errors import ExportError
from causeway.readers.common.files import first_bytes
from causeway.readers.common.packed import DamagedError, packing, unpacked
from causeway.readers.containers.perfetto_head import begins_like_perfetto
from causeway.readers.containers.sqlite_names import SQLITE
from causeway.readers.detect import detect

MOST_TIMES = 200
"""How many times its compressed size an export may have: `xz -9` makes traces and databases 5 to 60 times smaller,
repeated bytes over 1000 times.
"""
ALWAYS_BYTES = 1 << 30
"""What may be unpacked whatever the ratio: a short run with one kernel compresses well."""

READ_IN_GZIP = ("kineto", "rocprofv3", "cupti")
"""Formats whose readers take gzip."""

_ENDINGS = {".gz", ".xz", ".bz2", ".zst"}


@contextlib.contextmanager
def plain_file(path: Path, folder: Path, source: str) -> Iterator[tuple[Path, ExportError | None]]:
    """Give a file that the readers can read, and the error of compressed data that end early.

    Parameters
    ----------
    path : Path
        A file or folder.
    folder : Path
        Made for the unpacked file, where it is needed, and removed with it.
    source : str
        How the sheet names the export.

    Yields
    ------
    Path
        `path` itself unless it must be unpacked.
    ExportError or None
        That of damaged data, of which the file holds what comes before.

    Raises
    ------
    ExportError
        If it is larger than an export could be, or nothing can be unpacked.
    """
    word = packing(path) if path.is_file() else None
    if word is None or (word == "gzip" and _is_read_in_gzip(path)):
        yield path, None
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    target = folder / (path.stem if path.suffix.lower() in _ENDINGS else path.name)
    try:
        failure = _unpack(path, word, target, source)
        if not target.stat().st_size:
            problem = f"it is compressed with {word} and holds nothing"
            raise failure or ExportError(source, problem, "an export", "Compress it again.")
        yield target, failure
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_read_in_gzip(path: Path) -> bool:
    head = first_bytes(path)
    return detect(path) in READ_IN_GZIP and not head.startswith(SQLITE) and not begins_like_perfetto(head)


def _unpack(path: Path, word: str, target: Path, source: str) -> ExportError | None:
    most = max(ALWAYS_BYTES, MOST_TIMES * path.stat().st_size)
    size = 0
    with open(path, "rb") as raw, open(target, "wb") as file:
        try:
            for block in unpacked(raw, word):
                size += len(block)
                if size > most:
                    raise ExportError(
                        source,
                        f"it is compressed with {word} and unpacks to more than {most:,} bytes",
                        f"at most {MOST_TIMES} times its size",
                        "If it is an export, unpack it, and name the unpacked file.",
                    )
                file.write(block)
        except DamagedError as error:
            return ExportError(
                source, f"{error}, after {size:,} bytes of {word}", f"a whole {word} file", "Copy or compress it again."
            )
    return None
