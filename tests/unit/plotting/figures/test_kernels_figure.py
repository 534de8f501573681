"""Kernels by their share of the variability: order, shares, shapes, and names from outside."""

import pyarrow as pa
import pytest
from plotting_samples import as_svg, parsed
from variability_samples import HOSTILE, NAMES, kernels_table

from causeway.core.formatting import NOT_MEASURED
from causeway.plotting.drawing import page
from causeway.plotting.drawing.markup import number
from causeway.plotting.drawing.page import write
from causeway.plotting.figures.kernels import MOST_ROWS, draw_kernels, kernels_of

SVG = "{http://www.w3.org/2000/svg}"


def test_order_and_shares():
    table = kernels_table()
    kernels = kernels_of(table.take([3, 1, 5, 0, 2, 4]))
    assert [kernel.share for kernel in kernels] == sorted(table["target_share"].to_pylist(), reverse=True)
    assert sum(kernel.value_share for kernel in kernels) == pytest.approx(1)
    assert [vars(kernel) for kernel in kernels] == [vars(kernel) for kernel in kernels_of(table)]


@pytest.mark.parametrize(
    ("case", "names"),
    [
        ("six", NAMES),
        ("one", NAMES[:1]),
        ("none", ()),
        ("hostile", (HOSTILE, *NAMES)),
        ("seventy", [f"k{i}<{i}>(int)" for i in range(70)]),
    ],
)
def test_each_case_is_drawn_and_equal_when_drawn_again(case, names, tmp_path):
    table = kernels_table(names)
    for name in ("a.svg", "b.svg"):
        write(draw_kernels(table, dataset="demo", target="kernel_variability"), tmp_path / name)
    text = (tmp_path / "a.svg").read_text()
    assert text == (tmp_path / "b.svg").read_text()
    svg = parsed(text)
    words = [element.text or "" for element in svg.iter(f"{SVG}text")]
    assert sum("%" in word for word in words) == 2 * min(len(names), MOST_ROWS) + (case == "seventy")
    assert any("46 more, not drawn" in word for word in words) == (case == "seventy")
    assert any("No launch of this dataset" in word for word in words) == (case == "none")
    assert "<script" not in text
    assert len(text) < 200_000


def test_of_kernels_that_do_not_vary_no_share_is_drawn():
    table = kernels_table(NAMES[:2])
    for column in ("target_share", "target_sum"):
        field = table.schema.get_field_index(column)
        table = table.set_column(field, table.schema.field(column), pa.array([0.0, 0.0]))
    svg = parsed(as_svg(draw_kernels(table, dataset="demo", target="kernel_variability")))
    words = [element.text or "" for element in svg.iter(f"{SVG}text")]
    assert sum("%" in word for word in words) == 2, "shares of the time alone"
    assert NOT_MEASURED in words


def paths(mark):
    return [
        element.get("d")
        for element in parsed(str(mark).replace("<svg", f'<svg xmlns="{SVG[1:-1]}"', 1)).iter(f"{SVG}path")
    ]


def small(name, *given):
    """Return a figure of a table's cell, as its template draws it."""
    return getattr(page._environment().get_template("small_figures.html").module, name)(*given)


def test_a_histogram_keeps_rare_classes_in_sight():
    (path,) = paths(small("histogram", [1_000_000, 0, 1], "#1", "#2"))
    assert path.count("M") == 2
    assert "path" not in small("histogram", [0, 0], "#1", "#2")


def test_a_bar_out_of_nothing_is_empty():
    assert "rect" not in small("bar", 0.0, 0.0, "#000000", number)
    assert 'width="25"' in small("bar", 5.0, 10.0, "#000000", number)
