"""The waterfall of a step: its parts are the whole step, each bar begins where the one above it ends."""

import itertools

import pyarrow as pa
import pytest
from plotting_samples import as_svg

from causeway.core.schemas import OPTIONAL_COLUMNS, SCHEMAS
from causeway.plotting.figures.device_time import bars_of_step, draw_step_waterfall, parts_of, usual_step

STEPS = [
    (0, 0, 0, 900_000, True, 900_000, 0, 0, 0, 4),
    (0, 1, 900_000, 100_000, False, 70_000, 10_000, 0, 30_000, 4),
    (0, 2, 1_000_000, 120_000, False, 90_000, 20_000, 5_000, 30_000, 4),
    (1, 2, 1_000_000, 110_000, False, 60_000, 20_000, 0, 50_000, 4),
    (0, 3, 1_200_000, 400_000, False, 90_000, 0, 0, 310_000, 4),
]
WAITING = [
    (0, 0, "launch_starved", "x", 2, 20_000),
    (0, 0, "start_up", "x", 2, 10_000),
    (1, 0, "launch_starved", "a", 2, 15_000),
    (1, 0, "launch_starved", "b", 2, 10_000),
    (1, 0, "blocked_host", "b", None, 70_000),
]


def table(name, rows):
    names = [one for one in SCHEMAS[name].names if one not in OPTIONAL_COLUMNS.get(name, ())]
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=SCHEMAS[name])


@pytest.fixture
def tables():
    return table("steps", STEPS), table("waiting", WAITING)


def test_the_step_of_median_length_without_warm_up_is_drawn(tables):
    assert usual_step(tables[0]) == 2
    assert usual_step(tables[0].slice(0, 1)) is None
    assert "No step was found" in as_svg(draw_step_waterfall(tables[0].slice(0, 0), tables[1], dataset="d"))


def test_parts_add_up_to_the_step_and_the_rank_that_loses_most_is_first(tables):
    found = parts_of(*tables, 2)
    assert [one.rank for one in found] == [1, 0]
    assert [sum(ns for _, ns in one.parts) for one in found] == [110_000, 120_000]
    assert found[1].parts == [
        ("compute", 65_000),
        ("communication", 20_000),
        ("copies", 5_000),
        ("launch_starved", 20_000),
        ("start_up", 10_000),
    ]
    # what no reason explains is said to be unknown, not left out
    assert found[0].parts[2:] == [("launch_starved", 25_000), ("unknown", 25_000)]


def test_the_time_of_several_devices_is_not_called_the_step(tables):
    """A step of 100 us on two devices: 150 us of compute, 50 us idle."""
    steps = table("steps", [(0, 1, 0, 100_000, False, 150_000, 0, 0, 50_000, 4)])
    waiting = table("waiting", [(0, 1, "launch_starved", "x", 1, 50_000)])
    drawn = as_svg(draw_step_waterfall(steps, waiting, dataset="d"))
    assert "rank 0: 100 µs; its devices together 200 µs<" in drawn
    assert "rank 1: 110 µs<" in as_svg(draw_step_waterfall(*tables, dataset="d"))


def test_each_bar_begins_where_the_one_above_it_ends(tables):
    drawn = as_svg(draw_step_waterfall(*tables, dataset="<script>"))
    assert "the rank that loses most time first" in drawn
    assert "<script>" not in drawn
    bars = bars_of_step(parts_of(*tables, 2))
    assert len(bars) == 2 + 9  # with the headings of two ranks
    for before, after in itertools.pairwise(bars[1:5].itertuples()):
        assert after.start == before.start + before.length
    assert "idle: launch-starved: 25 µs" in drawn
