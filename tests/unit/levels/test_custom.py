"""Metrics of the analyst's own: expressions that are checked, and their sums in every level."""

import numpy as np
import pytest
from levels_reference import write_run

from causeway.errors import CausewayError
from causeway.levels.build import build
from causeway.levels.custom import COLUMNS, expressions
from causeway.levels.expressions import parse
from causeway.levels.read import Levels
from causeway.tables import read_table

ROWS = {"a": np.array([1.0, 2.0, np.nan, 0.0]), "b": np.array([4, 3, 2, 0]), "t": np.array(["x", "y", "x", "z"])}
KINDS = {"a": "number", "b": "number", "t": "text"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a + 2 * b", [9, 8, np.nan, 0]),
        ("b / a", [4, 1.5, np.nan, np.nan]),
        ("-abs(a - b) // 2", [-2, -1, np.nan, 0]),
        ("max(a, min(b, 3))", [3, 3, np.nan, 0]),
        ("1 < b <= 3", [0, 1, 1, 0]),
        ("t == 'x' and not b == 4", [0, 0, 1, 0]),
        ("t != 'x' or b > 3", [1, 1, 0, 1]),
        ("7", [7, 7, 7, 7]),
    ],
)
def test_expressions_are_worked_out_row_by_row(text, wanted):
    np.testing.assert_array_equal(parse(text, KINDS, "m").of(ROWS), np.array(wanted, float))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("__import__('os').system('true')", "is not allowed"),
        ("a.__class__", "is not allowed"),
        ("(lambda: 1)()", "is not allowed"),
        ("[b for b in (1, 2)]", "is not allowed"),
        ("eval('1')", "is not allowed"),
        ("a ** 999999999", "is not allowed"),
        ("a if b else 1", "is not allowed"),
        ("f'{a}'", "is not allowed"),
        ("b[0]", "is not allowed"),
        ("(a := 1)", "is not allowed"),
        ("1j", "is not allowed"),
        ("a < 'x'", "compares a text with a number"),
        ("t < 'x'", "orders texts"),
        ("t + 'x'", "texts can only be compared"),
        ("t", "gives a text"),
        ("nothing + 1", "no column nothing; there are a, b, t"),
        ("a +", "is no expression"),
        ("a; b", "is no expression"),
        ("abs(a, b)", "takes 1 values, not 2"),
        ("-" * 60 + "a", "nested more than"),
        ("a + " * 200 + "a", "characters, more than"),
    ],
)
def test_what_is_not_on_the_list_is_refused_and_never_run(text, reason):
    with pytest.raises(CausewayError, match=reason):
        parse(text, KINDS, "levels: metrics: m")


def test_own_metrics_stand_in_every_level_with_the_statistics_of_their_rows(tmp_path):
    folders, clocks = write_run(tmp_path, 200, 2, 8)
    metrics = [
        {"name": "talk", "table": "launches", "value": "kernel_class == 'communication' and duration_ns > 1000"},
        {"name": "rate", "table": "transfers", "value": "bytes / duration_ns"},
    ]
    build(folders, clocks, tmp_path / "levels", nodes={}, error=0.05, share=0.05, link_window_ns=1, metrics=metrics)
    levels = Levels(tmp_path / "levels")
    rates, talks = [], []
    for folder in folders.values():
        rows = read_table(folder / "transfers.parquet", "transfers").to_pylist()
        rates += [round(row["bytes"] / row["duration_ns"] * 1024) for row in rows if row["bytes"] is not None and row["duration_ns"]]
        kernels = read_table(folder / "kernels.parquet", "kernels")["class"].to_pylist()
        shapes = read_table(folder / "configurations.parquet", "configurations")["kernel"].to_pylist()
        rows = read_table(folder / "launches.parquet", "launches").to_pylist()
        talks += [kernels[shapes[row["configuration"]]] == "communication" and row["duration_ns"] > 1000 for row in rows]
    for width in levels.widths:
        found = levels.statistics(width, -(1 << 62), 1 << 62, "rate")
        assert sum(one.count for one in found.values()) == len(rates)
        assert sum(one.total for one in found.values()) == sum(rates)
        assert sum(one.squares for one in found.values()) == sum(rate * rate for rate in rates)
        found = levels.statistics(width, -(1 << 62), 1 << 62, "talk")
        assert sum(one.count for one in found.values()) == len(talks)
        assert sum(one.total for one in found.values()) == 1024 * sum(talks)


def test_two_metrics_of_one_name_are_refused(tmp_path):
    one = {"name": "m", "table": "launches", "value": "duration_ns"}
    with pytest.raises(CausewayError, match="two of them have one name"):
        expressions([one, one])
    folders, clocks = write_run(tmp_path, 5, 1, 1)
    with pytest.raises(CausewayError, match="variability: there is a metric of that name"):
        build(folders, clocks, tmp_path / "x", nodes={}, error=0.05, share=0.05, link_window_ns=1, metrics=[one | {"name": "variability"}])
    assert set(COLUMNS) == {"launches", "transfers"}
