"""The one way in which a file of results comes into being: under a temporary name, on the disk, then renamed.

A process that is killed, or a disk that is full, leaves the old file or none under the final name, never a part of one.
After a loss of power the name may be the old one, or none: the file is made again. To wait for the names too would take
3 ms a file on a slow disk, and a run of a small trace writes 500.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

SUFFIX = ".partial"


def on_disk(path: str | Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk (fsync(2)).

    Raises
    ------
    OSError
        If it cannot be written there.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def partial_of(path: str | Path) -> Path:
    """Return the temporary name of a file, beside it."""
    path = Path(path)
    return path.with_name(path.name + SUFFIX)


def finish(path: str | Path) -> None:
    """Give a complete temporary file its final name, once it is on the disk.

    Raises
    ------
    OSError
        If it cannot be brought to the disk; nothing stands under the final name then, or what stood there before.
    """
    path = Path(path)
    partial = partial_of(path)
    on_disk(partial)
    os.replace(partial, path)


@contextlib.contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Give the temporary name to write to; the file gets its final name at the end of the block, if nothing failed.

    Raises
    ------
    OSError
        As `finish`. After any error, no temporary file stays.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_of(path)
    try:
        yield partial
        finish(path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file at once, text in UTF-8; errors as of `written_whole`."""
    with written_whole(path) as partial:
        partial.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
