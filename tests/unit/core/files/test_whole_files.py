"""A file of results is whole or absent, whatever ends its writer; what it holds is on the disk before it has its name."""

import errno
import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causeway.core import tables
from causeway.core.files import whole_files
from causeway.core.files.machine_errors import MachineError, is_of_the_machine
from support import ROOT

NUMBERS = pa.table({"kernel": range(5000), "id": map(str, range(5000)), "name": ["n"] * 5000,
                    "short_name": ["s"] * 5000, "class": ["compute"] * 5000})  # fmt: skip
WRITERS = {
    "table": "tables.write_table(table, out, 'kernels')",
    "json": "tables.write_json(list(range(100_000)), out)",
    "bytes": "whole_files.write_whole(out, b'x' * 1_000_000)",
}
PROGRAM = """
import os, sys, time, pathlib, resource
import pyarrow as pa
from causeway.core import tables
from causeway.core.files import whole_files
out = pathlib.Path(sys.argv[1])
n = 200_000
table = pa.table({"kernel": range(n), "id": map(str, range(n)), "name": map(str, range(n)),
                  "short_name": ["s"] * n, "class": ["compute"] * n})
"""


def run(text, out):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM + text, str(out)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "scripts")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    "kind", ["table", *(pytest.param(kind, marks=pytest.mark.slow) for kind in WRITERS if kind != "table")]
)
def test_a_writer_killed_before_the_end_leaves_what_stood_there(tmp_path, kind):
    """SIGKILL while the content is being made durable: no `finally` runs, so only the temporary name can save this."""
    out = tmp_path / "out"
    out.write_text("old")
    hold = "whole_files.on_disk = lambda path: (print('held', flush=True), time.sleep(60))\n"
    process = run(hold + WRITERS[kind], out)
    assert process.stdout.readline() == "held\n", process.stderr.read()
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    process.stdout.close()
    process.stderr.close()
    assert out.read_text() == "old"


@pytest.mark.parametrize("size", [pytest.param(0, marks=pytest.mark.slow), 60_000])
@pytest.mark.parametrize("kind", WRITERS)
def test_no_space_at_any_size_is_a_fault_of_the_machine_and_leaves_nothing(tmp_path, kind, size):
    text = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))\n"
    text += f"from causeway.core.logs import failing_clearly\nwith failing_clearly(None):\n    {WRITERS[kind]}"
    process = run(text, tmp_path / "out")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said.splitlines()[-1].startswith("error: the machine stopped the job: File too large (EFBIG)"), said
    assert list(tmp_path.iterdir()) == []


def test_the_content_is_on_the_disk_before_the_name(tmp_path, monkeypatch):
    events = []
    sync = os.fsync
    replace = os.replace

    def noted(descriptor):
        events.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "replace", lambda *names: (events.append("renamed"), replace(*names)))
    for write in (
        lambda: whole_files.write_whole(tmp_path / "f", "text"),
        lambda: tables.write_table(NUMBERS, tmp_path / "f", "kernels"),
        lambda: tables.write_json({}, tmp_path / "f"),
    ):
        events.clear()
        write()
        assert events == [str(tmp_path / "f.partial"), "renamed"]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fails_at_the_last_moment_leaves_what_stood_there(tmp_path, monkeypatch, number):
    path = tmp_path / "kernels.parquet"
    tables.write_table(NUMBERS, path, "kernels")
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(number, os.strerror(number))))
    with pytest.raises(OSError, match=os.strerror(number)) as found:
        tables.write_table(NUMBERS.slice(3), path, "kernels")
    assert is_of_the_machine(found.value)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_every_flipped_bit_of_a_table_is_noticed_or_harmless(tmp_path):
    """The checksum covers the pages; what lies between them is names and sizes, of which a change is harmless or seen."""
    path = tmp_path / "kernels.parquet"
    tables.write_table(NUMBERS, path, "kernels")
    content = path.read_bytes()
    end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")  # where the footer begins
    noticed = silent = 0
    began = time.process_time()
    for at in range(4, end, max(1, end // 400)):
        changed = bytearray(content)
        changed[at] ^= 1 << at % 8
        path.write_bytes(changed)
        try:
            found = tables.read_table(path, "kernels")
        except tables.TableError:
            noticed += 1
        else:
            silent += not found.equals(NUMBERS.cast(found.schema))
    assert silent == 0, f"{silent} changed tables were read"
    assert noticed > 300
    assert time.process_time() - began < 20


def test_a_disk_that_fails_while_a_table_is_read_is_no_damaged_table(tmp_path, monkeypatch):
    path = tmp_path / "kernels.parquet"
    tables.write_table(NUMBERS, path, "kernels")
    failing = OSError(errno.EIO, "Input/output error")
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_, **__: (_ for _ in ()).throw(failing))
    with pytest.raises(MachineError, match="EIO"):
        tables.read_table(path, "kernels")


def test_many_results_leave_no_file_open(tmp_path):
    """A system gives a process some thousand open files; a writer that kept one each would end a large run."""
    before = len(os.listdir("/proc/self/fd"))
    for number in range(20):
        whole_files.write_whole(tmp_path / str(number), "text")
    assert len(os.listdir("/proc/self/fd")) == before
