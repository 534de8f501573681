"""Parallel coordinates: which lines, which axes, on which scale."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from causal_samples import FEATURES, contribution_rows
from variability_samples import HOSTILE, NAMES, field, kernels_table, write_rows

from causeway.core.tables import read_table, write_table
from causeway.numeric.seeds import generator_of_path
from causeway.plotting.figures.coordinates import (
    _categories,
    _numbers,
    choose_rows,
    coordinates_of,
    order_of,
    quantiles,
    wanted_axes,
)
from causeway.plotting.interactive.plots import parallel_coordinates


def chosen(folder, names=NAMES, rows=800, causes=6, most=500, seed=7, wanted=()):
    kernels = kernels_table(names)
    write_rows(folder, kernels, rows)
    known = dict(zip(kernels["kernel"].to_pylist(), kernels["name"].to_pylist(), strict=True))
    return coordinates_of(
        folder / "features.parquet",
        contribution_rows(causes)[0],
        known,
        dataset="demo",
        target="kernel_variability",
        unit="ns",
        most=most,
        seed=seed,
        wanted=wanted,
    )


def test_rows_are_those_of_kept_bins_and_the_number_is_said():
    kept = np.arange(1000) >= 400
    rows, said = choose_rows(kept, 500, generator_of_path(1, "a"))
    assert len(set(rows)) == 500
    assert rows.min() >= 400
    assert said == "500 of 600 launches of the kept bins, drawn at random"
    assert (rows == choose_rows(kept, 500, generator_of_path(1, "a"))[0]).all()
    assert (rows != choose_rows(kept, 500, generator_of_path(2, "a"))[0]).any()
    assert choose_rows(kept, 600, generator_of_path(1, "a"))[1] == "all 600 launches of the kept bins"
    rows, said = choose_rows(np.arange(1000) < 20, 500, generator_of_path(1, "a"))
    assert (len(rows), said) == (300, "300 launches: all 20 of the kept bins and 280 of control bins")
    assert choose_rows(np.array([True]), 500, generator_of_path(1))[1] == "the only launch of the kept bins"
    assert len(choose_rows(np.zeros(0, bool), 500, generator_of_path(1))[0]) == 0


def test_axes_follow_the_contribution_and_the_target_is_last(tmp_path):
    picture = chosen(tmp_path)
    assert [axis.name for axis in picture.axes] == [
        "kernel",
        *(name for name, *_ in FEATURES[:6]),
        "kernel_variability",
    ]
    assert picture.axes[1].note.startswith("raises ")
    assert picture.lines == len(picture.quantile) == len(picture.axes[3].values)
    assert all(((axis.low <= axis.values) & (axis.values <= axis.high)).all() for axis in picture.axes)
    assert all(axis.low <= place <= axis.high for axis in picture.axes for place, _ in axis.ticks)


def test_features_without_a_cause_fill_up_and_say_so():
    rows = [
        {"feature": "b", "sign": "-", "variance_percent": 9.0},
        {"feature": "c=x", "sign": "?", "variance_percent": None},
    ]
    rows.append({"feature": "unexplained", "sign": "?", "variance_percent": 91.0})
    assert order_of(["a", "b", "c"], rows) == [("b", "lowers 9 %"), ("c", "undecided"), ("a", "no cause found")]
    assert order_of(["b"], [rows[0] | {"sign_of": "value"}]) == [
        ("b", "lowers value\n9 %")
    ]  # a line each: axes stand close


def test_numbers_fill_up_before_names(tmp_path):
    picture = chosen(tmp_path, causes=0)
    numbers = ["h2d_bytes_in_flight", "launches_in_flight", "idle_before_ns", "previous_deviation"]
    assert [axis.name for axis in picture.axes[1:-1]] == [*numbers, "device"]


def test_wanted_axes_stand_in_their_own_order_and_a_missing_one_is_said():
    rows = [{"feature": "c=x", "sign": "+", "variance_percent": 9.0}]
    assert wanted_axes(["a", "z", "c"], ["a", "b", "c"], rows) == (
        [("a", "no cause found"), ("c", "raises 9 %")],
        " (no axis for z: absent, or the same in all lines)",
    )
    assert "no axis for p, q and 2 more:" in wanted_axes(list("pqrs"), [], [])[1]
    assert wanted_axes(["b"], ["b"], []) == ([("b", "no cause found")], "")


def test_wanted_columns_replace_the_causes_and_the_same_lines_are_drawn(tmp_path):
    picture = chosen(tmp_path, wanted=["transfer_copy_kind", "grid_none", "device"])
    usual = chosen(tmp_path)
    assert [axis.name for axis in picture.axes] == ["kernel", "transfer_copy_kind", "device", "kernel_variability"]
    assert picture.selection == usual.selection + " (no axis for grid_none: absent, or the same in all lines)"
    assert (picture.axes[-1].values == usual.axes[-1].values).all()


def test_codes_become_names(tmp_path):
    axis = next(axis for axis in chosen(tmp_path).axes if axis.name == "transfer_copy_kind")
    assert [words for _, words in axis.ticks] == ["none", "host to device", "device to host", "device to device"]
    axis = next(axis for axis in chosen(tmp_path).axes if axis.name == "device")
    assert [words for _, words in axis.ticks] == ["0", "1"]


def test_many_levels_are_joined():
    axis = _categories("k", "", [f"level {i % 30:02}" for i in range(100)])
    assert len(axis.ticks) == 13
    assert axis.ticks[0][1] == "18 others"


def test_zero_and_missing_have_places_of_their_own():
    axis = _numbers("bytes", "", np.array([0.0, 1e3, 1e6, np.nan]), "bytes")
    assert [words for _, words in axis.ticks] == ["none", "0", "1 kB", "10 kB", "100 kB", "1 MB"]
    assert np.isfinite(axis.values).all()
    assert (np.argsort(axis.values) == [3, 0, 1, 2]).all()
    flat = _numbers("x", "", np.array([2.0, 2.0]), "")
    assert flat.low < 2 < flat.high
    negative = _numbers("x", "", np.array([-1e6, 1e6]), "")
    assert negative.values.tolist() == [-1e6, 1e6]
    assert _numbers("x", "", np.array([np.nan]), "").ticks[0][1] == "none"


def test_ticks_keep_apart():
    axis = _numbers("grid_z", "", np.array([1.0, 2, 3, 4, 8, 64]), "")
    assert [words for _, words in axis.ticks] == ["1", "4", "8", "64"]


def test_colour_is_the_rank_of_the_target():
    assert quantiles(np.array([5.0, 1.0, 3.0])).tolist() == [1.0, 0.0, 0.5]
    assert quantiles(np.array([2.0, 2.0])).tolist() == [0.5, 0.5]
    assert quantiles(np.array([2.0])).tolist() == [0.5]


CASES = {
    "usual": {},
    "no cause": {"causes": 0},
    "one kernel": {"names": NAMES[:1]},
    "one launch": {"rows": 1, "names": NAMES[:1]},
    "no launch": {"names": ()},
    "hostile": {"names": (HOSTILE, "$\\alpha_", "<a href='javascript:alert(1)'>x</a>")},
}


@pytest.mark.parametrize("case", CASES)
def test_the_figure_is_equal_when_drawn_again(case, tmp_path):
    for folder in ("a", "b"):
        picture = chosen(tmp_path / folder, **CASES[case])
        assert (picture is None) == (case == "no launch")
        if picture is not None:
            (tmp_path / folder / "figure.json").write_text(parallel_coordinates(picture).to_json(engine="json"))
    if case != "no launch":
        text = (tmp_path / "a" / "figure.json").read_text()
        assert text == (tmp_path / "b" / "figure.json").read_text()
        for tag in ("<b onload", "document.title='owned'</script", "<a href='javascript"):
            assert tag not in text


def test_an_axis_of_the_interactive_figure_cannot_hold_a_link(tmp_path):
    """plotly.js drops `<img>` by itself but makes a live link of `<a href>`: only the escape stands against it."""
    picture = chosen(tmp_path)
    link = '<a href="//e.x/">'
    first = replace(picture.axes[0], name=link, note=link)
    picture = replace(picture, axes=[first, *picture.axes[1:]], quartiles=[(0.0, link)])
    figure = parallel_coordinates(picture)
    ticks = figure.layout.coloraxis.colorbar.ticktext
    for text in [figure.data[0].dimensions[0].label.replace("<br>", ""), *ticks]:
        assert "&lt;a" in text
        assert "<" not in text


def test_the_figure_has_the_axes_of_the_selection(tmp_path):
    picture = chosen(tmp_path)
    labels = [axis.label.replace("<br>", " ") for axis in parallel_coordinates(picture).data[0].dimensions]
    assert labels == [f"{axis.words} {axis.note}".strip().replace("\n", " ") for axis in picture.axes]
    assert picture.axes[1].name == "h2d_bytes_in_flight"
    assert picture.axes[1].words == "bytes copied host-to-device"


def test_a_column_of_identity_is_an_axis_only_where_it_is_a_feature(tmp_path):
    picture = chosen(tmp_path, causes=0)
    assert "rank" not in [axis.name for axis in picture.axes]
    features = read_table(tmp_path / "features.parquet", "features")
    rank = features.schema.get_field_index("rank")
    told = features.set_column(
        rank, field("rank", pa.uint32(), tier="context", group="placement", unit=""), features["rank"]
    )
    rows = [{"feature": "rank", "sign": "+", "variance_percent": 12.0}]
    write_table(told, tmp_path / "told.parquet", "features", list(told.schema))
    picture = coordinates_of(
        tmp_path / "told.parquet", rows, {}, dataset="demo", target="kernel_variability", unit="ns", most=100, seed=1
    )
    assert [axis.name for axis in picture.axes][1] == "rank"
