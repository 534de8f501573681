"""Causes of both sides: how much they changed, with an interval; one that a side lacks is named, not estimated."""

import numpy as np
import pytest

from causeway.comparison.cause_changes import compare_causes


def cause(percent, half, sign="+", about="target"):
    found = {"variance_percent": percent, "variance_low": percent - half, "variance_high": percent + half}
    return found | {"sign": sign, "sign_of": about}


def test_signs_say_what_they_are_about():
    (row,) = compare_causes(
        [{"t": {"clock": cause(20.0, 8.0, "+")}}, {"t": {"clock": cause(24.0, 8.0, "-", "value")}}], 0.05
    )
    assert (row["signs"], row["sign_of"]) == (["+", "-"], ["target", "value"])
    (gone,) = compare_causes([{"t": {"clock": cause(20.0, 8.0)}}, {"t": {}}], 0.05)
    assert (gone["signs"], gone["sign_of"]) == (["+", None], ["target", None])


def test_a_difference_has_the_interval_of_both_sides_together():
    (row,) = compare_causes([{"t": {"clock": cause(20.0, 3.0)}}, {"t": {"clock": cause(50.0, 4.0)}}], 0.05)
    assert (row["change"], row["low"], row["high"]) == pytest.approx(
        (30.0, 30.0 - np.hypot(3, 4), 30.0 + np.hypot(3, 4))
    )
    assert row["verdict"] == "changed"


def test_a_small_difference_is_not_claimed():
    (row,) = compare_causes([{"t": {"clock": cause(20.0, 8.0)}}, {"t": {"clock": cause(24.0, 8.0)}}], 0.05)
    assert row["verdict"] == "inconclusive"
    assert row["low"] < 0 < row["high"]


def test_a_cause_of_one_side_appeared_or_is_gone_and_targets_of_one_side_are_left_out():
    rows = compare_causes([{"t": {"a": cause(9.0, 1.0)}, "u": {}}, {"t": {"b": cause(5.0, 1.0)}}], 0.05)
    assert [(row["feature"], row["verdict"], row["change"]) for row in rows] == [
        ("a", "gone", None),
        ("b", "appeared", None),
    ]
