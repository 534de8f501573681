"""A fault of the machine while an export is normalised fails the rule and leaves nothing; it is never recorded as a
property of the export. The same export is read as before once the fault has passed.
"""

import contextlib
import errno
import itertools
import os
import shutil
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from layouts import LAYOUTS
from reading import Read

from causeway.core.errors import CausewayError
from causeway.core.files.machine_errors import MachineError
from support import ROOT

FAULTS = {
    **{
        name: OSError(getattr(errno, name), os.strerror(getattr(errno, name)))
        for name in ("ENOSPC", "EDQUOT", "EIO", "ENOMEM", "EMFILE", "ESTALE", "EFBIG")
    },
    "EACCES of our own folder": PermissionError(errno.EACCES, "Permission denied", "/results/launches.parquet.partial"),
    "no memory": MemoryError(),
    "no memory in Arrow": pa.ArrowMemoryError("malloc of size 4096 failed"),
    "no thread": RuntimeError("can't start new thread"),
}


def failing(fault):
    def fail(*_, **__):
        raise fault

    return fail


def content_of(folder):
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def fails_and_recovers(path, sound, folder, monkeypatch, fault, where):
    """Assert that a fault at `where` (object, name) fails the reading and leaves nothing but what stood there: what a
    `sound` export of the same content gave.
    """
    shutil.copytree(sound.folder, folder)
    expected = content_of(folder)
    with monkeypatch.context() as patch:
        patch.setattr(*where, failing(fault))
        with pytest.raises((MachineError, MemoryError), match=r"^$|machine stopped|malloc"):
            Read(path, folder)
    assert content_of(folder) == expected
    assert [entry.name for entry in folder.parent.iterdir() if "partial" in entry.name] == []
    Read(path, folder)
    assert content_of(folder) == expected


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_of_writing(tmp_path, monkeypatch, fault, sound):
    (tmp_path / "in").mkdir()
    path = LAYOUTS["nsys.sqlite"](tmp_path / "in", "kernel_of_mine(int)", 24)
    where = (pq.ParquetWriter, "write_table")
    fails_and_recovers(path, sound("nsys.sqlite"), tmp_path / "t", monkeypatch, FAULTS[fault], where)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_full_disk_at_the_end_of_every_layout(tmp_path, monkeypatch, name, sound):
    (tmp_path / "in").mkdir()
    path = LAYOUTS[name](tmp_path / "in", "kernel_of_mine(int)", 24)
    fails_and_recovers(path, sound(name), tmp_path / "t", monkeypatch, FAULTS["ENOSPC"], (os, "fsync"))


@pytest.mark.parametrize(("name", "fault"), list(zip(LAYOUTS, itertools.cycle(("EIO", "ESTALE", "EMFILE")))))
def test_a_file_that_cannot_be_read_for_the_moment(tmp_path, monkeypatch, name, fault, sound):
    """The fourth and every later opening of the export's files fails: past the detection, in the middle of reading."""
    (tmp_path / "in").mkdir()
    path = LAYOUTS[name](tmp_path / "in", "kernel_of_mine(int)", 24)
    shutil.copytree(sound(name).folder, tmp_path / "t")
    expected = content_of(tmp_path / "t")
    plain = open
    opened = []

    def sometimes(file, *args, **options):
        if str(file).startswith(str(path)) and (opened.append(file) or len(opened) > 3):
            raise FAULTS[fault]
        return plain(file, *args, **options)

    monkeypatch.setattr("builtins.open", sometimes)
    with contextlib.suppress(MachineError):
        Read(path, tmp_path / "t")
    monkeypatch.undo()
    assert content_of(tmp_path / "t") == expected


@pytest.mark.parametrize("megabytes", [30, 160])
def test_too_little_memory_is_no_refusal(tmp_path, megabytes):
    """RLIMIT_AS a little above what the imports take: whatever breaks, a sound export is read or the job fails."""
    (tmp_path / "in").mkdir()
    path = LAYOUTS["kineto.json"](tmp_path / "in", "k", 2000)
    program = f"""
import resource, pathlib
from causeway.core.logs import failing_clearly
from causeway.readers.normalise import normalise
import causeway.readers.pytorch.kineto, causeway.readers.sink.star_writer
size = int(open("/proc/self/statm").read().split()[0]) * 4096 + {megabytes} * 1_000_000
with failing_clearly(None):
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    found = normalise(pathlib.Path({str(path)!r}), pathlib.Path({str(tmp_path / "t")!r}), export="e", source="s")
    print(found["status"])
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(ROOT / "scripts"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if run.returncode == 0:
        assert run.stdout == "read\n"
    else:
        assert not (tmp_path / "t").exists()


def test_an_export_that_changes_while_it_is_read_fails_the_rule(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text("kernel,y\n" + "a,1\n" * 1000)
    Read(path, tmp_path / "t")
    expected = content_of(tmp_path / "t")
    facts = path.stat()
    changes = {
        "longer": lambda: path.write_text(path.read_text() + "b,2\n"),
        "same size": lambda: (path.write_text(path.read_text().replace("a,1", "a,2")), os.utime(path)),
        "rewritten in place, its time put back": lambda: (
            path.write_text(path.read_text().replace("a,2", "a,3")),
            os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns)),
        ),
        "another file": lambda: (
            path.with_name("new").write_text("kernel,y\na,1\n"),
            path.with_name("new").rename(path),
        ),
        "gone": path.unlink,
    }
    from causeway.readers.plain import table

    read = table.read
    for change in changes.values():

        def reading(*args, change=change):
            read(*args)
            time.sleep(0.02)
            change()

        with monkeypatch.context() as patch:
            patch.setattr(table, "read", reading)
            with pytest.raises(CausewayError, match=r"it changed while it was read|it is gone"):
                Read(path, tmp_path / "t")
        assert content_of(tmp_path / "t") == expected


def test_an_export_that_is_gone_fails_the_rule(tmp_path):
    with pytest.raises(CausewayError, match="it is gone"):
        Read(tmp_path / "absent", tmp_path / "t")


def test_code_that_cannot_be_compiled_fails_the_rule(tmp_path, monkeypatch):
    """It says nothing of the export: `cannot cache function` is what numba says where no folder can be written."""
    import numba

    from causeway.readers.nvidia import nsys

    (tmp_path / "in").mkdir()
    path = LAYOUTS["nsys.sqlite"](tmp_path / "in", "k", 24)
    monkeypatch.setattr(nsys, "read", lambda *_: numba.njit("int64(int64)")(lambda number: number + "a"))
    with pytest.raises(MachineError, match="the machine stopped reading"):
        Read(path, tmp_path / "tables")
    assert not (tmp_path / "tables").exists()
