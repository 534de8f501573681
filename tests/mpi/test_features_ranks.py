"""Features of kept launches over MPI ranks: the same bytes on any number of ranks."""

import sys

import pyarrow.compute as pc
import pytest

from causeway.causal.data.features import assemble, exports_of
from causeway.core.files.checked_parquet import CheckedParquet
from causeway.core.tables import SCHEMAS, read_table, write_json, write_table
from support import ROOT
from variability import bin_launches
from variability_tables import table_of

sys.path.insert(0, str(ROOT / "tests" / "unit" / "levels"))

from levels_reference import write_run

EXPORTS = 5
GROUP_ROWS = 37
"""Rows per row group of the kept rows: each rank of the dataset has several, and some hold two ranks."""
CASES = {"whole": True, "without_context": False, "empty": True}


def kept_rows(folder):
    """Write the kept rows of a dataset, by the program that makes them, and again without rows."""
    words = ["--ranks", "1", "--dataset", "d", "--tables", folder / "tables", "--clocks", folder / "clocks.json"]
    words += ["--exports", *map(str, range(EXPORTS)), "--targets", "kernel_variability", "--out", folder]
    bin_launches.main([str(word) for word in [*words, "--width-us", "100", "--keep-share", "0.3"]])
    path = folder / "kernel_variability" / "kept.parquet"
    rows = read_table(path, "kept")
    extra = [field for field in rows.schema if field.name not in SCHEMAS["kept"].names]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("causeway.core.tables.ROW_GROUP_ROWS", GROUP_ROWS)
        write_table(rows, path, "kept", extra)
    write_table(rows.slice(0, 0), path.with_name("empty.parquet"), "kept", extra)


@pytest.fixture(scope="module")
def made(tmp_path_factory, on_ranks):
    """Write a dataset and its features on every number of ranks, in one session; return its folder."""
    folder = tmp_path_factory.mktemp("ranks")
    write_run(folder, rows=600, exports=EXPORTS, seed=5)
    for export in ("3", "4"):  # one that is longer than the others, and one without launches
        path = folder / "tables" / export / "launches.parquet"
        rows = read_table(path, "launches")
        write_table(rows.slice(0, 0 if export == "4" else 50), path, "launches")
    ranks_of = {str(export): [10 * export, 10 * export + 1] for export in range(EXPORTS)}
    clocks = {export: {"shift_ns": 700 * ranks[0], "ranks": ranks} for export, ranks in ranks_of.items()}
    write_json({"exports": clocks}, folder / "clocks.json")
    begun = [700 * rank // 10 * 10 for rank in (0, 1, 10)]
    steps = {"rank": [0, 1, 10], "step": [0, 0, 0], "start_ns": begun, "duration_ns": [10**6] * 3}
    write_table(table_of("steps", steps), folder / "steps.parquet", "steps")
    kept = folder / "kernel_variability" / "kept.parquet"
    kept_rows(folder)
    calls = [
        {
            "module": "features_over_ranks",
            "function": "features",
            "arguments": [
                str(folder),
                str(kept.with_name("empty.parquet") if name == "empty" else kept),
                with_context,
                "OUT/features.parquet",
            ],
            "out": str(folder / name),
        }
        for name, with_context in CASES.items()
    ]
    on_ranks(folder, calls)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_the_same_bytes(made, sizes, name):
    first, *others = [(made / name / str(size) / "features.parquet").read_bytes() for size in sizes]
    for size, other in zip(sizes[1:], others, strict=True):
        assert other == first, f"{size} ranks"
    for size in sizes:
        assert [path.name for path in (made / name / str(size)).iterdir()] == ["features.parquet"]


def test_the_features_are_of_all_kept_rows(made, most_ranks):
    """Equal bytes of nothing would prove nothing."""
    most = str(most_ranks)
    kept = read_table(made / "kernel_variability" / "kept.parquet", "kept")
    found = read_table(made / "whole" / most / "features.parquet", "features")
    assert found.select(SCHEMAS["kept"].names).equals(kept.select(SCHEMAS["kept"].names))
    assert set(pc.unique(kept.column("rank")).to_pylist()) == {0, 1, 10, 11, 20, 21, 30, 31}
    for name in ("launches_in_flight", "h2d_bytes_in_flight", "dram_ratio", "since_start_ns", "previous_deviation"):
        assert pc.count(found.column(name)).as_py() > 10, name
        assert len(pc.unique(found.column(name))) > 2, name
    assert CheckedParquet(made / "whole" / most / "features.parquet").metadata.num_row_groups > 8
    assert (
        "launches_in_flight"
        not in read_table(made / "without_context" / most / "features.parquet", "features").schema.names
    )
    empty = read_table(made / "empty" / most / "features.parquet", "features")
    assert empty.num_rows == 0
    assert empty.schema.names == found.schema.names


def test_one_damaged_export_ends_with_its_error(made, tmp_path):
    clocks = {"exports": {"0": {"shift_ns": 0, "ranks": [0, 1]}}}
    broken = tmp_path / "0"
    broken.mkdir()
    for path in (made / "tables" / "0").iterdir():
        (broken / path.name).write_bytes(path.read_bytes())
    (broken / "transfers.parquet").write_bytes(b"PAR1")
    kept = made / "kernel_variability" / "kept.parquet"
    with pytest.raises(Exception, match=r"transfers.parquet"):
        assemble(kept, exports_of([broken], clocks, {}), None, "kernel_variability", tmp_path / "features.parquet")
    assert not list(tmp_path.glob("features*"))
