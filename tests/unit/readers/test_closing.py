"""What a reader spilled is dropped once it is read, not only when all tables are written."""

from contextlib import closing
from pathlib import Path

import pytest
from layouts import LAYOUTS

from causeway.readers.common.options import Options
from causeway.readers.nvidia import nsys, nsys_jsonlines
from causeway.readers.pytorch import kineto
from causeway.readers.sink.external_sort import ExternalSort
from causeway.readers.sink.sink import Sink

SPILLED = {
    "nsys.sqlite": (nsys, {"mpi_ranges", "cpu_samples.by_sample", "cpu_samples.by_time"}),
    "kineto.json": (
        kineto,
        {f"{kind}_{rows}" for kind in ("launches", "transfers") for rows in ("by_call", "waiting", "found")},
    ),
}


@pytest.mark.parametrize("layout", SPILLED)
def test_rows_that_were_read_are_dropped(tmp_path, monkeypatch, layout):
    reader, names = SPILLED[layout]
    closed = set()
    close = ExternalSort.close

    def noted(rows):
        closed.add(rows.spill.name)
        close(rows)

    monkeypatch.setattr(ExternalSort, "close", noted)
    path = LAYOUTS[layout](tmp_path, "k", 24)
    with closing(Sink(tmp_path, {"source": "x"}, None, 0)) as sink:
        reader.read(path, sink, Options("x"))
        assert closed == {f".{name}.rows" for name in names}


def test_tables_of_lines_are_not_mapped_any_more(tmp_path):
    path = LAYOUTS["nsys.jsonl"](tmp_path, "k", 24)
    with closing(Sink(tmp_path, {"source": "x"}, None, 0)) as sink:
        nsys_jsonlines.read(path, sink, Options("x"))
        assert ".spool" not in Path("/proc/self/maps").read_text()
