"""Which errors are the machine's, decided by their numbers; each fails a rule with one sentence."""

import errno
import os
import sqlite3
import threading
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from causeway.core.errors import ExportError, TableError
from causeway.core.files import machine_errors
from causeway.core.files.machine_errors import (
    MachineError,
    check_writable,
    fail_if_of_the_machine,
    fault_behind,
    is_of_the_machine,
)
from causeway.core.logs import failing_clearly

OF_THE_MACHINE = [
    *(OSError(number, os.strerror(number)) for number in (
        errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ESTALE, errno.EFBIG, errno.EROFS,
        errno.ENFILE, errno.EAGAIN, errno.ETIMEDOUT,
    )),
    MemoryError(),
    pa.ArrowMemoryError("malloc of size 64 failed"),
    pa.ArrowMemoryError(f"malloc of size {2**34 - 1} failed"),
    OSError("libx.so: failed to map segment from shared object"),
    RuntimeError("can't start new thread"),
    duckdb.OutOfMemoryException("Failed to allocate block of 262144 bytes (bad allocation)\n\nPossible solutions:\n* "),
    duckdb.IOException('IO Error: Could not write file ".tmp/duckdb_temp": No space left on device'),
]  # fmt: skip
OF_THE_EXPORT = [
    OSError("Corrupt Lz4 compressed data."),
    OSError(errno.EINVAL, "Invalid argument"),
    pa.ArrowInvalid("Parquet magic bytes not found"),
    pa.ArrowMemoryError("malloc of size 1099511627776 failed"),
    pa.ArrowMemoryError(f"malloc of size {2**34} failed"),
    OSError(errno.EINVAL, "failed to map segment from shared object"),
    sqlite3.DatabaseError("database disk image is malformed"),
    RuntimeError("generator raised StopIteration"),
    ValueError("not a number"),
    EOFError(),
    duckdb.OutOfMemoryException("could not allocate block of size 256.0 KiB (243.9 MiB/244.1 MiB used)"),
    duckdb.IOException("IO Error: No magic bytes found at end of file 'x.parquet'"),
]


@pytest.mark.parametrize("error", OF_THE_MACHINE, ids=repr)
def test_errors_of_the_machine(error, tmp_path, capsys):
    assert is_of_the_machine(error)
    with pytest.raises(MachineError, match=r"the machine stopped reading x: .* run the same command again"):
        fail_if_of_the_machine(error, "reading x")
    with pytest.raises(SystemExit, match="1"), failing_clearly(tmp_path / "log"):
        raise error
    said = capsys.readouterr().err
    assert said.startswith("error: the machine stopped the job: ")
    assert "internal error" not in said
    assert (tmp_path / "log").read_text().splitlines()[-1].endswith("run the same command again.")


@pytest.mark.parametrize("error", OF_THE_EXPORT, ids=repr)
def test_errors_of_an_export(error):
    assert not is_of_the_machine(error)
    fail_if_of_the_machine(error)


def raised(first, then):
    """Return the exception that comes of raising `then`, without a cause, while `first` is handled."""
    try:
        try:
            raise first
        except type(first):
            raise then from None
    except type(then) as error:
        return error


def test_a_fault_is_found_behind_the_error_that_hides_it():
    full = OSError(errno.ENOSPC, "no space")
    refusal = ExportError("a", "b", "c", "d")
    assert fault_behind(raised(full, refusal)) is full
    assert fault_behind(ExportError("a", "b", "c", "d")) is None
    assert fault_behind(raised(ValueError("x"), TableError("y"))) is None


def test_access_is_the_exports_fault_where_its_own_file_is_meant(tmp_path):
    export = tmp_path / "in"
    for number in (errno.EACCES, errno.ENOENT, errno.EPERM):
        own = OSError(number, os.strerror(number), str(export / "a.csv"))
        ours = OSError(number, os.strerror(number), str(tmp_path / "in2" / "launches.parquet.partial"))
        assert fault_behind(own, export) is None
        assert fault_behind(ours, export) is ours
        assert fault_behind(ours) is None
    assert fault_behind(OSError(errno.EACCES, f"Failed to open local file '{export}'"), export) is None


def test_sqlite_says_which(tmp_path):
    base = sqlite3.connect(tmp_path / "a.sqlite")
    base.execute("CREATE TABLE t (x)")
    base.commit()
    base.execute("PRAGMA max_page_count = 4")
    with pytest.raises(sqlite3.OperationalError, match="full") as found:
        base.execute("INSERT INTO t VALUES (zeroblob(1000000))")
    assert is_of_the_machine(found.value)
    with pytest.raises(sqlite3.OperationalError) as found:
        base.execute("SELECT nothing FROM t")
    assert not is_of_the_machine(found.value)
    base.close()


def test_a_thread_that_cannot_start_is_known_by_pythons_own_words(monkeypatch):
    start = "_start_joinable_thread" if hasattr(threading, "_start_joinable_thread") else "_start_new_thread"  # 3.13
    monkeypatch.setattr(threading, start, lambda *_, **__: (_ for _ in ()).throw(RuntimeError(WORDS)))
    with pytest.raises(RuntimeError, match=WORDS) as found:
        threading.Thread(target=print).start()
    assert is_of_the_machine(found.value)


WORDS = "can't start new thread"


def test_the_numbers_are_the_systems():
    assert {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ESTALE} <= (
        machine_errors.MACHINE_ERRNOS
    )
    assert not machine_errors.MACHINE_ERRNOS & machine_errors.ACCESS_ERRNOS


def test_a_folder_that_may_not_be_written_is_named_before_work_begins(tmp_path, monkeypatch):
    check_writable(tmp_path)
    check_writable(tmp_path / "missing")
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(MachineError, match=f"{tmp_path}: you may not write into this folder; give yourself the right"):
        check_writable(tmp_path)
