"""Pages of a mapped Arrow file are released as the reading goes on: a file of any size takes little memory."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from causeway.readers.containers import arrow_tables
from causeway.readers.containers.arrow_tables import MappedFile, StreamTable

ROWS = 1 << 17
BATCHES = 6
BATCH_KB = ROWS * 8 >> 10
# the system reads ahead and may map some pages around a fault
AHEAD_KB = 512


def mapped_kb(path):
    """Return how much of the file stands in this process's memory, as the system counts it."""
    maps = Path("/proc/self/smaps")
    if not maps.exists():
        pytest.skip("the system does not count mapped pages")
    parts = maps.read_text().split(f"{path}\n")[1:]
    return sum(int(re.search(r"^Rss: +(\d+) kB", part, re.MULTILINE)[1]) for part in parts)


@pytest.fixture
def path(tmp_path):
    """Two streams, each of 6 batches of 1 MB."""
    batch = pa.record_batch({"start": np.arange(ROWS)})
    with open(tmp_path / "tables.arrow", "wb") as sink:
        for _ in range(2):
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                for _ in range(BATCHES):
                    writer.write_batch(batch)
    return tmp_path / "tables.arrow"


def read_all(file):
    """Touch every page."""
    return sum(file.map[::4096])


def test_what_is_read_of_a_mapped_file_is_counted(path):
    file = MappedFile(path)
    read_all(file)
    assert mapped_kb(path) >= 2 * BATCHES * BATCH_KB
    file.release_pages()
    assert mapped_kb(path) <= AHEAD_KB


def test_finding_the_streams_of_a_file_keeps_none_of_it(path):
    file = MappedFile(path)
    read_all(file)
    found = file.streams()
    first = next(found)
    second = next(found)
    assert second[0] == first[1]
    assert mapped_kb(path) <= AHEAD_KB
    assert not list(found)
    assert mapped_kb(path) <= AHEAD_KB


def test_reading_a_stream_keeps_as_much_as_may_be_read_before_a_release(path, monkeypatch):
    monkeypatch.setattr(arrow_tables, "RELEASE_BYTES", 2 * BATCH_KB << 10)
    file = MappedFile(path)
    offset, size, schema = next(file.streams())
    kept = []
    rows = 0
    for batch in StreamTable(file, offset, schema, size).batches(["start"]):
        rows += len(batch)
        kept.append(mapped_kb(path))
    assert rows == BATCHES * ROWS
    assert BATCH_KB <= max(kept) <= 3 * BATCH_KB + AHEAD_KB
    assert mapped_kb(path) <= AHEAD_KB
