"""Kernels that are slow with one of their grids, and copies that are faster than can be."""

import first_screen_samples as made
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from first_screen_samples import MS, tables

from causeway.findings.first_screen.facts import DatasetFacts
from causeway.findings.first_screen.plan import plan
from causeway.findings.first_screen.slow_grids import slow_grid_facts
from causeway.findings.first_screen.words import work_words


def launched(folder, name, of_a_block, threads=None):
    """Write ten launches of a kernel with each grid, which take so many us for each block, of so many threads."""
    grids = list(of_a_block)
    written = {
        "kernels": {"kernel": [0], "short_name": [name], "class": ["compute"]},
        "configurations": {"configuration": list(range(len(grids))), "kernel": [0] * len(grids), "grid_x": grids},
        "launches": {
            "configuration": list(range(len(grids))) * 10,
            "duration_ns": [us * grid * 1000 for grid, us in of_a_block.items()] * 10,
        },
    }
    others = ("grid_y", "grid_z", "block_x", "block_y", "block_z")
    written["configurations"] |= dict.fromkeys(others, pa.nulls(len(grids), pa.uint32()))
    if threads:
        written["configurations"] |= {"block_x": threads} | dict.fromkeys(("block_y", "block_z"), [1] * len(grids))
    for table, columns in written.items():
        pq.write_table(pa.table(columns), folder / f"{table}.parquet")
    return slow_grid_facts(tables(folders=[folder]))


def test_a_grid_that_is_slow_for_its_size_is_said(tmp_path):
    """One grid of a stencil took twice as long for its size as all others: launches of one grid did not vary."""
    (fact,) = launched(tmp_path, "stencil", {64: 10, 128: 10, 256: 20, 512: 10})
    assert (fact.grid, fact.launches, fact.cost_ns) == ((256, 1, 1), 10, 25_600_000)
    assert work_words.of_slow_grid(fact) == (
        "stencil: with the grid 256 x 1 x 1 it takes 2 times as long, for its size, as with its 3 other grids: 25.6 ms"
        " more in 10 launches."
    )


@pytest.mark.parametrize(
    ("name", "of_a_block"),
    [
        ("stencil", {64: 20, 128: 10, 256: 10, 512: 10}),  # few blocks do not fill a device
        ("stencil", {64: 10, 128: 13, 256: 20, 512: 10}),  # the others differ, too
        ("stencil", {64: 10, 128: 10, 256: 20}),
        ("gemm_kernel", {64: 10, 128: 10, 256: 20, 512: 10}),  # a product's depth is not in its grid
    ],
)
def test_what_a_grid_s_size_does_not_tell_is_not_said(name, of_a_block, tmp_path):
    assert launched(tmp_path, name, of_a_block) == []


def test_blocks_of_more_threads_are_more_work(tmp_path):
    assert launched(tmp_path, "stencil", {64: 10, 128: 10, 256: 20, 512: 10}, [128, 128, 256, 128]) == []
    assert len(launched(tmp_path, "stencil", {64: 10, 128: 10, 256: 20, 512: 10}, [128] * 4)) == 1


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
