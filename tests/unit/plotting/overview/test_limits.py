"""What limits a run: the critical path's kinds, and what each replayed change saves, each number with its query."""

import re

import pyarrow as pa

from causeway.core.tables import SCHEMAS, write_table
from causeway.plotting.drawing.citations import settled
from causeway.plotting.overview.device_tables import what_limits
from cited_page import wrong_numbers

REPLAYS = [
    ("nothing", None, None, 1000, 1000, "host", "cudaMalloc", None, None, None),
    ("copies_free", None, None, 1000, 1000, "host", "cudaMalloc", 100, None, None),
    ("kernel_faster", "gemm", None, 1000, 984, "host", "cudaMalloc", 16, None, None),
]


def table(name, rows):
    schema = SCHEMAS[name]
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)


def test_a_change_that_saves_nothing_is_said_so(tmp_path):
    path = table("critical_path", [(0, None, "host", "cudaMalloc", None, 600), (0, None, "kernel", "gemm", None, 400)])
    replay = table("replay", REPLAYS)
    write_table(path, tmp_path / "demo" / "critical_path.parquet", "critical_path")
    write_table(replay, tmp_path / "demo" / "replay.parquet", "replay")
    page, block = settled(what_limits(path, replay, "demo"), str(tmp_path))
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in page.partition("The run replayed")[2].split("<tr>")]
    saved = [re.sub(r"<[^>]*>", "", row[2]) for row in rows if row]
    assert saved == ["16 ns", "nothing"]
    assert wrong_numbers(f"{page}{block}", tmp_path)[1] == []
