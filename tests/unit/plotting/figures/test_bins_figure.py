"""Variability over time: lanes, gaps, merging, lanes apart in time, many ranks, nothing at all."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from plotting_samples import parsed
from variability_samples import MS, bins_table, ranking_table

from causeway.plotting.drawing.page import write
from causeway.plotting.figures.bins import Lanes, draw_bins, notes_of, scale_of
from causeway.plotting.overview.heat_map import heat_map

CLOCKS = {"method": "session_start"}
pytestmark = pytest.mark.filterwarnings("ignore:This figure includes Axes that are not compatible with tight_layout")


def shifted(table, bins):
    """The lanes moved so that each begins `bins` bins after the one before."""
    number = pc.add(table["bin"], pc.multiply(table["rank"].cast("int64"), bins))
    start = pc.multiply(number, 10 * MS)
    return table.set_column(1, table.schema.field(1), number).set_column(2, table.schema.field(2), start)


def test_every_bin_stands_in_its_column_and_holes_stay_holes():
    table = bins_table(ranks=2, bins=30, gap=(10, 13))
    lanes = Lanes(table, ranking_table(table))
    assert lanes.ranks == [0, 1]
    assert lanes.median_high.shape == (2, 30)
    assert np.isnan(lanes.median_high[:, 10:13]).all()
    row = table.filter(pc.and_(pc.equal(table["rank"], 1), pc.equal(table["bin"], 7))).to_pylist()[0]
    assert (lanes.low[1, 7], lanes.median_low[1, 7], lanes.median_high[1, 7], lanes.high[1, 7]) == (
        *(row[name] for name in ("q1", "median", "median", "q3")),
    )
    assert lanes.edges.tolist() == [i * 10 * MS for i in range(31)]
    assert lanes.kept.sum() == sum(ranking_table(table)["kept"].to_pylist())


def test_neighbours_that_share_a_column_span_from_lowest_to_highest():
    table = bins_table(ranks=1, bins=10, gap=(0, 0))
    lanes = Lanes(table, ranking_table(table), columns=5)
    medians = np.array(table["median"]).reshape(5, 2)
    assert lanes.merged == 2
    assert (lanes.median_low[0] == medians.min(axis=1)).all()
    assert (lanes.median_high[0] == medians.max(axis=1)).all()
    assert lanes.edges[-1] == 100 * MS
    assert "each column spans 2 bins" in "; ".join(notes_of(lanes, CLOCKS))


def test_lanes_that_do_not_overlap_in_time_begin_at_their_own_start():
    table = bins_table(ranks=3, bins=20, gap=(0, 0))
    apart = shifted(table, 5000)
    chained = shifted(table, 15)
    lanes = Lanes(apart, ranking_table(apart))
    assert lanes.own_start
    assert lanes.median_high.shape[1] == 20
    assert any("do not overlap in time" in note for note in notes_of(lanes, CLOCKS))
    lanes = Lanes(chained, ranking_table(chained))
    assert not lanes.own_start
    assert lanes.median_high.shape[1] == 50


def test_bins_without_times_say_what_they_are():
    table = bins_table(ranks=1, bins=4, gap=(0, 0), starts=False)
    facts = {**table.schema.metadata, b"causeway.bin_width": b"32", b"causeway.bin_unit": b"launches"}
    lanes = Lanes(table.replace_schema_metadata(facts), ranking_table(table))
    assert lanes.edges.tolist() == [0, 1, 2, 3, 4]
    assert notes_of(lanes, CLOCKS) == ["bins of 32 launches in the order of the export, which has no start times"]


@pytest.mark.parametrize(
    ("values", "log"),
    [([1.0, 29.0], False), ([1.0, 31.0], True), ([0.0, 0.0], False), ([0.0, 5.0], False), ([np.nan, 2.0], False)],
)
def test_an_axis_is_logarithmic_only_for_wide_values(values, log):
    size, name, is_log, least = scale_of(np.array(values), "ns")
    assert is_log is log
    assert (size, name) == (1.0, "ns")
    assert least >= 0


CASES = {
    "lanes": {},
    "one bin": {"ranks": 1, "bins": 1, "gap": (0, 0)},
    "nothing": {"bins": 0},
    "sixteen": {"ranks": 16, "bins": 20},
    "map": {"ranks": 17, "bins": 40},
    "long": {"ranks": 1, "bins": 2500},
    "order": {"ranks": 1, "bins": 9, "starts": False},
}


@pytest.mark.parametrize("case", CASES)
def test_each_case_is_drawn_and_equal_when_drawn_again(case, tmp_path):
    table = bins_table(**CASES[case])
    for name in ("a.svg", "b.svg"):
        write(
            draw_bins(table, ranking_table(table), CLOCKS, dataset="demo", target="kernel_variability"), tmp_path / name
        )
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.svg").stat().st_size < 1_000_000
    words = " ".join(
        element.text or ""
        for element in parsed((tmp_path / "a.svg").read_bytes()).iter("{http://www.w3.org/2000/svg}text")
    )
    assert "Kernel variability over time, demo" in words
    assert ("No launch of this dataset" in words) == (case == "nothing")


def test_zeros_alone_are_drawn(tmp_path):
    table = bins_table(ranks=1, bins=5, gap=(0, 0))
    for place, name in enumerate(table.schema.names):
        if name in ("min", "max", "mean", "variance", "std", "q1", "median", "q3"):
            table = table.set_column(place, table.schema.field(place), pa.array([0.0] * 5))
    write(draw_bins(table, ranking_table(table), CLOCKS, dataset="demo", target="memory_stall"), tmp_path / "zero.svg")
    assert heat_map(table, ranking_table(table), CLOCKS, "memory_stall") is not None


def test_the_heat_map_joins_ranks_and_says_so():
    table = bins_table(ranks=100, bins=30)
    drawn = heat_map(table, ranking_table(table), CLOCKS, "kernel_variability")
    assert "Each row holds 3 ranks" in drawn
    assert "ranks 0–2" in drawn
    assert "ranks 99–99" not in drawn
    assert len(drawn) < 200_000
    assert heat_map(bins_table(bins=0), ranking_table(bins_table(bins=0)), CLOCKS, "kernel_variability") is None
