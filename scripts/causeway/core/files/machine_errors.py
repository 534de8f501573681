"""Which errors are the machine's, and which an export's content: decided here and nowhere else.

A full disk, a quota, a broken device, a lost file system, too few open files, threads or memory, code that cannot be
compiled or kept, say nothing about what was read. They fail the job, with nothing written, so that Snakemake runs it
again once they have passed. Only what the bytes of an export say may be recorded as its fault.
"""

import contextlib
import errno
import os
import re
import sqlite3
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from causeway.core.errors import CausewayError

MACHINE_NAMES = (
    "EAGAIN EBUSY ECONNRESET EDQUOT EFBIG EINTR EIO EMFILE ENFILE ENODEV ENOLCK"
    " ENOMEM ENOSPC ENOTCONN ENXIO EPIPE EREMOTEIO EROFS ESTALE ETIMEDOUT ETXTBSY"
).split()
MACHINE_ERRNOS = frozenset(getattr(errno, name) for name in MACHINE_NAMES if hasattr(errno, name))
"""Numbers of system errors that no content of a file can cause (errno(3)): space, quota, devices, network file systems,
open files, memory. EINVAL is absent: seeking to a damaged offset gives it.
"""
ACCESS_ERRNOS = frozenset({errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR})
"""Errors of a name or its permissions: an export's own where they name it, the machine's where they name another."""
SQLITE_ERRORS = frozenset({sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOLFS})
"""Primary result codes of SQLite that are not about a database's content (sqlite.org/rescode.html)."""
LARGEST_BLOCK_BYTES = 1 << 34
"""A block of memory larger than this is a length that a damaged or hostile file claims, not one that is needed: text
columns of one Arrow batch end at 2**31 bytes (arrow.apache.org/docs/format/Columnar.html), and this is eight of
them.
"""
_OF_DUCKDB = re.compile(
    r"bad allocation|Cannot allocate memory|No space left on device|Disk quota exceeded|Too many open files"
)
"""What DuckDB, whose errors have no numbers, says of the machine; its own bound of memory is none of it."""
_BLOCK = re.compile(r"(?:malloc|realloc|allocat\w*)\D{0,20}size (\d+)")


class MachineError(CausewayError):
    """A fault of the machine: the job fails, and is worth running again."""


UNMAPPED = "failed to map segment from shared object"
"""What the loader says of a library for which there is no memory; the error has no number."""


def is_of_the_machine(error: BaseException) -> bool:
    """Return whether an error is the machine's, whatever file it met.

    Parameters
    ----------
    error : exception
        One exception alone; see `fault_behind` for those it came from.
    """
    if isinstance(error, MachineError):
        return True
    if isinstance(error, MemoryError):
        asked = _BLOCK.search(str(error))
        return asked is None or int(asked[1]) < LARGEST_BLOCK_BYTES
    if isinstance(error, OSError):
        return error.errno in MACHINE_ERRNOS or (error.errno is None and UNMAPPED in str(error))
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None) or 0
        # a read that ends early is a file that was cut
        return code & 0xFF in SQLITE_ERRORS and code != sqlite3.SQLITE_IOERR_SHORT_READ
    if type(error).__module__.endswith("duckdb"):
        return _OF_DUCKDB.search(str(error)) is not None
    return _is_of_the_compiler(error) or (isinstance(error, RuntimeError) and "start new thread" in str(error))


COMPILERS = ("numba", "llvmlite")
"""They compile our own code and keep it on disk: what they raise is never about an export."""


def _is_of_the_compiler(error: BaseException) -> bool:
    """Return whether an error comes out of a package that compiles code."""
    files = [getattr(sys.modules.get(name), "__file__", None) for name in COMPILERS]
    folders = tuple(f"{Path(file).parent}{os.sep}" for file in files if file)
    frames = traceback.walk_tb(error.__traceback__)
    return bool(folders) and any(frame.f_code.co_filename.startswith(folders) for frame, _ in frames)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__  # also of `raise ... from None`


def fault_behind(error: BaseException, export: str | Path | None = None) -> BaseException | None:
    """Return the machine's fault in an error or in those that it was raised from; None if there is none.

    Parameters
    ----------
    error : exception
    export : path or None
        What was read, if an error of access (`ACCESS_ERRNOS`) that names any other file is the machine's too.
    """
    for link in _chain(error):
        if is_of_the_machine(link):
            return link
        if (
            export is not None
            and isinstance(link, OSError)
            and link.errno in ACCESS_ERRNOS
            and _elsewhere(link, export)
        ):
            return link
    return None


def _elsewhere(error: OSError, export: str | Path) -> bool:
    if error.filename is None:  # Arrow names the file in the message
        return str(export) not in str(error)
    named = os.path.abspath(os.fsdecode(error.filename))
    own = os.path.abspath(export)
    return named != own and not named.startswith(own.rstrip("/") + "/")


def sentence(fault: BaseException, what: str = "the job") -> str:
    """Return one sentence that says what the machine lacks, and that the same command goes on.

    Parameters
    ----------
    fault : exception
        For which `is_of_the_machine` holds, or an error of access.
    what : str
        What it stopped.
    """
    if isinstance(fault, MachineError):
        return str(fault)
    number = getattr(fault, "errno", None)
    if isinstance(fault, OSError) and number:
        reason = f"{os.strerror(number)} ({errno.errorcode.get(number, number)})"
        if fault.filename:
            reason += f": {os.fsdecode(fault.filename)}"
    elif isinstance(fault, MemoryError) or "allocat" in str(fault):
        reason = "too little memory"
    else:
        reason = str(fault).partition("\n")[0] or type(fault).__name__
    return f"the machine stopped {what}: {reason}. Nothing was recorded; mend that and run the same command again."


def fail_if_of_the_machine(error: BaseException, what: str = "the job") -> None:
    """Raise `MachineError` if an error, or one that it came from, is the machine's: to be called wherever an error of
    reading is taken for a property of a file.
    """
    fault = fault_behind(error)
    if fault is not None:
        raise MachineError(sentence(fault, what)) from error


@contextlib.contextmanager
def suppress_unless_of_the_machine(*errors: type[BaseException], what: str = "the job") -> Iterator[None]:
    """Suppress errors of some kinds, as `contextlib.suppress` does, but for those of the machine.

    Raises
    ------
    MachineError
        As `fail_if_of_the_machine` does.
    """
    try:
        yield
    except errors as error:
        fail_if_of_the_machine(error, what)


def check_writable(folder: Path) -> None:
    """Raise `MachineError` if a folder is there and nothing may be written into it."""
    if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
        raise MachineError(
            f"{folder.absolute()}: you may not write into this folder; give yourself the right (chmod u+rwx), or run"
            " in a folder of your own"
        )


def in_words(error: BaseException) -> str:
    """Return one sentence of an error that no code expected: what the machine lacks, else that it is our own."""
    fault = fault_behind(error)
    if fault is not None:
        return sentence(fault)
    return f"internal error: {type(error).__name__}: {error}. Please report it with the log."
