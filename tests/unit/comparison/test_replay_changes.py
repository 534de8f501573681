"""What replays of two runs save, side by side: the numbers of their tables, and what has one side alone said."""

import pyarrow as pa

from causeway.comparison.compare import compare_replays, read_replays
from causeway.core.results import read_comparisons
from causeway.core.tables import SCHEMAS, write_table
from causeway.plotting.pages.comparison_page import draw_comparison
from comparison_runs import write_comparison, write_run

HOSTILE = "<script>alert(1)</script>"
BEFORE = [
    ("nothing", None, None, 1000, 1000, "kernel", "reduce", None, None, None),
    ("nothing", None, 3, 100, 100, "kernel", "reduce", None, None, None),
    ("collectives_free", None, None, 1000, 700, "host", "host code between calls", 500, None, None),
    ("collectives_free", None, 3, 100, 50, "kernel", "reduce", 60, None, None),
    ("kernel_faster", "reduce", None, 1000, 980, "kernel", "reduce", 20, None, None),
    ("kernel_faster", HOSTILE, None, 1000, 990, "kernel", "reduce", 10, None, None),
]
AFTER = [
    ("nothing", None, None, 800, 800, "host", "cudaMalloc", None, None, None),
    ("collectives_free", None, None, 800, 792, "host", "cudaMalloc", 90, None, None),
    ("kernel_faster", "reduce", None, 800, 784, "host", "cudaMalloc", 16, None, None),
]


def write_replay(path, rows):
    schema = SCHEMAS["replay"]
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
    write_table(table, path, "replay")
    return path


def test_each_change_has_what_it_saves_before_and_after_and_what_limits_next(tmp_path):
    sides = [read_replays(write_replay(tmp_path / f"{n}.parquet", rows)) for n, rows in enumerate((BEFORE, AFTER))]
    rows = compare_replays(sides)
    assert [(row["change"], row["name"]) for row in rows] == [
        ("nothing", None), ("collectives_free", None), ("kernel_faster", "reduce"), ("kernel_faster", HOSTILE),
    ]  # fmt: skip
    free = rows[1]
    assert free["baseline"] == {
        "predicted_ns": 700, "saved_ns": 300, "saved_percent": 30.0, "limited_by": "host",
        "limited_name": "host code between calls",
    }  # fmt: skip
    assert (free["candidate"]["saved_ns"], free["candidate"]["saved_percent"]) == (8, 1.0)
    assert rows[3]["candidate"] is None
    assert compare_replays([sides[0], {}]) is None


def test_a_change_that_saves_nothing_is_said_so(tmp_path):
    folders = {"a": write_run(tmp_path / "a", 1, 60), "b": write_run(tmp_path / "b", 2, 60)}
    rows = [("copies_free", None, None, 1000, 1000, "host", "cudaMalloc", 100, None, None)]
    replays = {
        "a": write_replay(tmp_path / "a" / "replay.parquet", rows),
        "b": write_replay(tmp_path / "b" / "replay.parquet", AFTER),
    }
    ((document, rows),) = read_comparisons([write_comparison(tmp_path, [["a"], ["b"]], folders, None, replays)])
    page = str(draw_comparison(document, rows, [], changes="", totals="", ratios=""))
    assert '<td class="n">nothing</td>' in page
    assert ">0 ns" not in page.partition("What a change would save")[2]


def test_the_document_and_the_page_say_it_or_that_a_side_has_no_replay(tmp_path):
    folders = {"a": write_run(tmp_path / "a", 1, 60), "b": write_run(tmp_path / "b", 2, 60)}
    replays = {
        name: write_replay(tmp_path / name / "replay.parquet", rows) for name, rows in (("a", BEFORE), ("b", AFTER))
    }
    for given in (replays, {"a": replays["a"]}, replays | {"b": write_replay(tmp_path / "none.parquet", [])}):
        ((document, rows),) = read_comparisons([write_comparison(tmp_path, [["a"], ["b"]], folders, None, given)])
        page = str(draw_comparison(document, rows, [], changes="", totals="", ratios=""))
        said = "there is no replay of one side" in " ".join(document["not_compared"])
        assert said == (document["replays"] is None) == (given is not replays)
        assert ("What a change would save" in page) == (given is replays) or said
        assert HOSTILE not in page
        if given is replays:
            assert "collectives take no time once all ranks have arrived" in page
            assert page.count("the host: cudaMalloc") == 3
            assert "not replayed" in page
