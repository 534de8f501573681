"""Levels over MPI ranks: the same bytes on any number of ranks."""

import sys

import pytest

from causeway.core.tables import read_json, read_table, write_table
from support import ROOT

sys.path.insert(0, str(ROOT / "tests" / "unit" / "levels"))

from levels_reference import write_run

EXPORTS = 5
BUDGETS = {"fine": 1 << 24, "coarse": 60_000, "without": 1 << 24}
"""Bytes that a pyramid may take: nearly all; so few that cells are widened; and a dataset without launches."""


@pytest.fixture(scope="module")
def made(tmp_path_factory, on_ranks):
    """Write a dataset and its levels on every number of ranks, in one session; return its folder."""
    folder = tmp_path_factory.mktemp("ranks")
    write_run(folder, rows=600, exports=EXPORTS, seed=5)
    for export in ("3", "4"):  # one that is longer than the others, and one without launches
        path = folder / "tables" / export / "launches.parquet"
        rows = read_table(path, "launches")
        write_table(rows.slice(0, 0 if export == "4" else 50), path, "launches")
    calls = [
        {
            "module": "levels_over_ranks",
            "function": "levels",
            "arguments": [
                str(folder),
                ["4"] if name == "without" else [str(k) for k in range(EXPORTS)],
                budget,
                "OUT/levels",
            ],
            "out": str(folder / name),
        }
        for name, budget in BUDGETS.items()
    ]
    on_ranks(folder, calls)
    return folder


def files(folder):
    """Return the bytes of every file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("name", BUDGETS)
def test_the_same_bytes(made, sizes, name):
    first, *others = [files(made / name / str(size)) for size in sizes]
    for size, other in zip(sizes[1:], others, strict=True):
        assert other == first, f"{size} ranks"


def test_the_levels_are_of_all_exports(made, most_ranks):
    """Equal bytes of nothing would prove nothing."""
    most = str(most_ranks)
    fine, coarse, without = (read_json(made / name / most / "levels" / "index.json") for name in BUDGETS)
    assert {lane["export"] for lane in fine["lanes"]} == {"0", "1", "2", "3"}
    assert fine["levels"][0]["width_ns"] == 10_000 < coarse["levels"][0]["width_ns"]
    assert [metric["name"] for metric in fine["metrics"]][-3:] == ["clock_hz", "dram_ratio", "rate"]
    assert without["lanes"] == without["levels"] == without["metrics"] == []
    for level in fine["levels"]:
        folder = made / "fine" / most / "levels" / level["folder"]
        rows = read_table(folder / "statistics.parquet", "level_statistics").to_pylist()
        # each launch has a duration in one of the three classes of kernels, which are the first metrics
        assert sum(row["count"] for row in rows if row["metric"] < 3) == 3 * 600 + 50
