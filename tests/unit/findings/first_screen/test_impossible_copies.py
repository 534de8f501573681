"""Copies that are faster than can be, and those that take far longer than is usual."""

import first_screen_samples as made
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from first_screen_samples import MS, tables

from causeway.core.clock import Clock
from causeway.findings.first_screen.facts import DatasetFacts
from causeway.findings.first_screen.outliers import event_facts
from causeway.findings.first_screen.plan import plan


def copied(folder, limit, sizes):
    """Return what is told of copies to the device of 1 ms each, of so many MB."""
    kinds = pa.array([1] * len(sizes), pa.uint8())
    rows = {"copy_kind": kinds, "bytes": [size * 1_000_000 for size in sizes], "duration_ns": [MS] * len(sizes)}
    rows |= {name: [0] * len(sizes) for name in ("rank", "device", "start_ns", "src_kind", "dst_kind")}
    pq.write_table(pa.table(rows), folder / "transfers.parquet")
    row = {"kind": 1, "bytes": sum(rows["bytes"]), "copies": len(sizes), "limit_gb_per_s": limit}
    row |= {"duration_ns": len(sizes) * MS, "sized_ns": len(sizes) * MS}
    parts = {part: 800 * MS * (part in ("useful", "transfers")) for part in made.efficiency()["waterfall_ns"]}
    given = tables(folders=[folder], efficiency=made.efficiency(copies=[row], waterfall_ns=parts))
    lines = [(line.question, line.answer) for line in plan(DatasetFacts(given))]
    return [text for question, text in lines if question == "Recording"], [
        text for question, text in lines if question == "Where"
    ]


def test_copies_that_are_faster_than_can_be_have_no_rate(tmp_path):
    """40 PB/s was told as a fact; ten of sixty copies at 8 TB/s made the others seem faster."""
    recording, (where, *_) = copied(tmp_path, 31.5, [24] * 50 + [8000] * 10)
    assert recording == ["10 of 60 copies are faster than can be: sizes or times are wrong."]
    assert "GB" not in where
    recording, (where, *_) = copied(tmp_path, None, [24] * 50 + [8000] * 10)  # of a device whose bus is not known
    assert recording == []
    assert "GB/s" in where
    assert copied(tmp_path, None, [24] * 50 + [26_000] * 10)[0] != []
    assert copied(tmp_path, 31.5, [8000] * 50 + [70] * 6)[0][0].startswith("56 of 56 copies")
    assert copied(tmp_path, 31.5, [24] * 5000 + [70])[0] == []  # of no weight


def test_a_clock_of_whole_microseconds_makes_no_copy_impossible(tmp_path):
    """64 KiB in a recorded microsecond are 65 GB/s over a bus of 31.5: it may have taken two."""
    rows = {
        "copy_kind": pa.array([1] * 9 + [7], pa.uint8()),
        "bytes": [65_536] * 9 + [4],
        "duration_ns": [1000] * 9 + [0],
    }
    pq.write_table(pa.table(rows), tmp_path / "transfers.parquet")
    row = {"kind": 1, "bytes": 9 * 65_536, "copies": 9, "limit_gb_per_s": 31.5}
    slower = row | {"limit_gb_per_s": 2.0}  # another device of the run: the fastest counts
    assert tables(folders=[tmp_path], efficiency={"copies": [row, slower]}).too_fast[0] == {}
    assert tables(folders=[tmp_path], efficiency={"copies": [slower]}).too_fast[0] == {1: 9}


@pytest.mark.parametrize("turn", [1, -1])
def test_a_usual_copy_is_one_that_was_made(tmp_path, turn):
    """Medians of sizes and of times, taken apart, told 64 MB in 1 ms, which no copy was."""
    copies = [(1, 1), (1, 1), (2, 9), (2, 7), (4, 64), (8, 64), (8, 64), (200, 300)][::turn]  # ms, MB
    rows = [
        {"copy_kind": 1, "rank": 0, "device": 0, "src_kind": 1, "dst_kind": 2, "start_ns": 300 * at * MS}
        | {"duration_ns": ms * MS, "bytes": size * 10**6}
        for at, (ms, size) in enumerate(copies)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "transfers.parquet")
    (fact,) = event_facts(tables(folders=[tmp_path], clocks={tmp_path.name: Clock()}), made.run(elapsed_ns=1000 * MS))
    assert (fact.bytes, fact.usual_ns, fact.usual_bytes) == (300 * 10**6, 2 * MS, 9 * 10**6)
