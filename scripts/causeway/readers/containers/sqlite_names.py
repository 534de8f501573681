"""Whether a file is a SQLite database, whether it is being written, and the names of its tables. Standard library only:
detection runs at workflow start.
"""

import contextlib
import os
import sqlite3
import stat
from pathlib import Path

from causeway.core.files.machine_errors import suppress_unless_of_the_machine

SQLITE = b"SQLite format 3\x00"
"""The first bytes of every SQLite database (sqlite.org/fileformat2.html, section 1.3.1)."""

PLAIN_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
"""Asks for the tables that hold rows: every profiler's data lie in such (checked on each real export)."""


MOST_VALUE_BYTES = 1 << 24
"""Bytes of a value of a database: its column may compute one of any size."""


def is_database(path: Path) -> bool:
    """Return whether a path is a SQLite database; False for what is no file, or cannot be read."""
    with suppress_unless_of_the_machine(OSError, what=f"reading {path}"):
        if stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe waits for its writer
            with open(path, "rb") as handle:
                return handle.read(len(SQLITE)) == SQLITE
    return False


def has_journal(path: Path) -> bool:
    """Return whether a journal or a write-ahead log that is not empty lies beside a database."""
    for end in ("-wal", "-journal"):
        with suppress_unless_of_the_machine(OSError, what=f"reading {path}"):
            if path.with_name(path.name + end).stat().st_size:
                return True
    return False


def sqlite_tables(path: str | Path) -> list[str]:
    """Return the names of a database's tables, sorted, without changing the file; [] if it cannot be read.

    Views and virtual tables are left out: they are programs of the file's author, which may run without end.
    """
    return [name for (name,) in answer_of(path, PLAIN_TABLES)]


def answer_of(path: str | Path, query: str) -> list[tuple]:
    """Return the rows of a query of a database, without changing the file; [] if it cannot be read."""
    # a message may quote undecodable bytes of a damaged schema
    with contextlib.suppress(sqlite3.Error, ValueError, OverflowError):
        uri = f"{Path(path).resolve().as_uri()}?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE_BYTES)
            return connection.execute(query).fetchall()
    return []
