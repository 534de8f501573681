"""Operators, input sizes and steps of chosen launches, against a plain loop over the rows of the tables."""

import math
import re

import numpy as np
import pyarrow as pa
import pytest
from planted_steps import SHIFT, STEPS, table

from causeway.causal.data.features import Export, ExportFacts, LaunchContext
from causeway.causal.data.launch_context import ChosenLaunches
from causeway.causal.data.operator_context import (
    StepWindows,
    add_operators,
    add_shapes,
    add_steps,
    input_elements,
    matrix_product,
)
from causeway.core.clock import Clock
from causeway.core.tables import SCHEMAS, write_json, write_table
from causeway.core.vocabulary import CALLED_SINCE

OPERATORS = [
    {"operator": 0, "name": "aten::mm", "outermost": "aten::linear", "module": "net/layer 0", "phase": "forward"},
    {"operator": 1, "name": "aten::add", "outermost": "aten::add", "module": None, "phase": None},
    {"operator": 2, "name": None, "outermost": None, "module": "net/" + "deep/" * 300 + "end", "phase": "backward"},
    {"operator": 3, "name": "aten::addmm", "outermost": "<b>x</b>", "module": None, "phase": "optimizer"},
]
SHAPES = [
    {"shape": 0, "dims": "[8,16] [16,32]", "types": "float float", "elements": 640, "bytes": 2560},
    {"shape": 1, "dims": "[32] [8,16] [16,32] []", "types": "", "elements": 672, "bytes": None},
    {"shape": 2, "dims": "[4096]", "types": "float", "elements": 4096, "bytes": 16384},
]


@pytest.fixture
def export(tmp_path):
    """Write an export of two ranks and its steps; return its folder and the rows of its launches and steps."""
    rng = np.random.default_rng(3)
    launches = []
    for start in np.sort(rng.integers(1000, 9000, 400)).tolist():
        operator, shape = (int(rng.integers(0, most + 1)) for most in (len(OPERATORS), len(SHAPES)))
        launches.append(
            {
                "start_ns": start,
                "duration_ns": 5,
                "configuration": 0,
                "rank": int(rng.integers(0, 2)),
                "device": 0,
                "stream": 7,
                "queue_ns": int(rng.integers(0, 300)) if rng.random() < 0.8 else None,
                "range": None,
                "correlation": None,
                "operator": operator if operator < len(OPERATORS) else None,
                "shape": shape if shape < len(SHAPES) else None,
            }
        )
    folder = tmp_path / "tables" / "e0"
    for name, rows in (("launches", launches), ("operators", OPERATORS), ("shapes", SHAPES)):
        write_table(table(rows, name), folder / f"{name}.parquet", name)
    kernels = [{"kernel": 0, "id": "k", "name": "k", "short_name": "k", "class": "compute"}]
    write_table(table(kernels, "kernels"), folder / "kernels.parquet", "kernels")
    configuration = {field.name: None for field in SCHEMAS["configurations"]} | {"configuration": 0, "kernel": 0}
    write_table(table([configuration], "configurations"), folder / "configurations.parquet", "configurations")
    write_json({"node": None}, folder / "capabilities.json")
    called = {CALLED_SINCE: '{"0": 0, "1": 0}'}
    write_table(table(STEPS, "steps"), tmp_path / "steps.parquet", "steps", metadata=called)
    return folder, launches, STEPS


INPUTS = {0: (128, 512, None, None), 1: (32, 128, 512, None), 2: (4096, None, None, None)}
"""Elements of the first inputs, by shape, worked out by hand."""


def expected(row, steps):
    operator = None if row["operator"] is None else OPERATORS[row["operator"]]
    shape = None if row["shape"] is None else SHAPES[row["shape"]]
    product = (None,) * 3
    if operator and shape and (operator["name"], row["shape"]) in (("aten::mm", 0), ("aten::addmm", 1)):
        product = (8, 32, 16)
    moment = row["start_ns"] + SHIFT - (row["queue_ns"] or 0)
    step = next(
        (
            one
            for one in steps
            if one["rank"] == row["rank"] and one["start_ns"] <= moment < one["start_ns"] + one["duration_ns"]
        ),
        None,
    )
    found = {
        "operator": operator and operator["name"],
        "outermost": operator and operator["outermost"],
        "phase": operator and operator["phase"],
        "shape_elements": shape and shape["elements"],
        "shape_bytes": shape and shape["bytes"],
        "step": step and step["step"],
        "step_position": step and moment - step["start_ns"],
    }
    found |= dict(
        zip((f"input_{number}_elements" for number in (1, 2, 3, 4)), INPUTS.get(row["shape"], (None,) * 4), strict=True)
    )
    return found | dict(zip(("matmul_m", "matmul_n", "matmul_k"), product, strict=True))


@pytest.mark.parametrize("rows_per_group", [None, 7])
def test_what_the_host_was_doing_equals_a_plain_loop(export, tmp_path, monkeypatch, rows_per_group):
    folder, launches, steps = export
    if rows_per_group:
        monkeypatch.setattr("causeway.core.tables.ROW_GROUP_ROWS", rows_per_group)
        write_table(table(launches, "launches"), folder / "launches.parquet", "launches")
    one = Export(folder, Clock(shift_ns=SHIFT), (0, 1), None)
    context = LaunchContext([one], [ExportFacts.of(one)], None, steps=tmp_path / "steps.parquet")
    known = 0
    for rank in (0, 1):
        rows = [number for number, row in enumerate(launches) if row["rank"] == rank][::3]
        kept = pa.table(
            {
                "launch": rows,
                "start_ns": [launches[row]["start_ns"] + SHIFT for row in rows],
                "range": pa.nulls(len(rows), pa.uint32()),
                "configuration": pa.nulls(len(rows), pa.uint32()).fill_null(9),
                "queue_ns": pa.array([launches[row]["queue_ns"] for row in rows], pa.int64()),
            }
        )
        context.begun = {folder: 0}
        found = context.of(rank, lambda *columns, kept=kept: iter([kept.select(list(columns))]))
        for at, row in enumerate(rows):
            for name, value in expected(launches[row], steps).items():
                got = found[name][at]
                assert (None if got is None or got != got else got) == value, (name, row)
                known += value is not None
    assert known > 300


def test_a_long_name_keeps_its_beginning_and_its_end(export):
    folder, launches, _ = export
    rank = 0
    rows = np.array([number for number, row in enumerate(launches) if row["rank"] == rank and row["operator"] == 2])
    chosen = ChosenLaunches(rank, rows, np.full(rows.size, -1))
    add_operators(folder / "operators.parquet", chosen)
    (module,) = set(chosen.features["module"])
    assert re.fullmatch(r"net/deep/.*….*deep/end", module)
    assert len(module) == 120


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("ProfilerStep", None),
        ("ProfilerStep/net/layer 3", "net/layer 3"),
        ("step/net", "net"),
        ("iteration", None),
        ("decoder step/net", "decoder step/net"),
        ("net/Step", "net"),
        (None, None),
    ],
)
def test_a_range_around_the_whole_step_is_no_module(export, path, left):
    """The step has features of its own; that a launch lies in one says nothing about the model."""
    folder, launches, _ = export
    operators = [row | {"module": path} for row in OPERATORS]
    write_table(table(operators, "operators"), folder / "operators.parquet", "operators")
    chosen = ChosenLaunches(0, np.arange(len(launches)), np.full(len(launches), -1))
    add_operators(folder / "operators.parquet", chosen)
    assert {row["operator"] for row in launches} == {0, 1, 2, 3, None}
    assert list(chosen.features["module"]) == [None if row["operator"] is None else left for row in launches]


def test_the_layout_of_inputs_is_that_of_the_launchs_shape_and_unknown_without_the_column(export):
    folder, launches, _ = export
    layouts = ["contiguous inputs", None, "input 1 transposed"]
    with_layouts = [row | {"layout": one} for row, one in zip(SHAPES, layouts, strict=True)]
    without = table(SHAPES, "shapes").drop_columns(["layout"])
    for rows, written in ((with_layouts, table(with_layouts, "shapes")), (SHAPES, without)):
        write_table(written, folder / "shapes.parquet", "shapes")
        chosen = ChosenLaunches(0, np.arange(len(launches)), np.full(len(launches), -1))
        add_shapes(folder / "shapes.parquet", chosen)
        expected = [None if row["shape"] is None else rows[row["shape"]].get("layout") for row in launches]
        assert chosen.features["layout"].tolist() == expected


def test_launches_without_the_columns_are_unknown(export, tmp_path):
    folder, launches, _ = export
    old = table(launches, "launches").drop_columns(["operator", "shape"])
    write_table(old, folder / "launches.parquet", "launches")
    chosen = ChosenLaunches(0, np.arange(5), np.full(5, -1))
    chosen.start[:] = 1
    add_operators(folder / "operators.parquet", chosen)
    add_shapes(folder / "shapes.parquet", chosen)
    empty = tmp_path / "none.parquet"
    write_table(table([], "steps"), empty, "steps")
    add_steps(folder, StepWindows.of(empty, 0), chosen, Clock(), np.zeros(5, int))
    assert {value for name in ("operator", "module") for value in chosen.features[name]} == {None}
    names = (
        "shape_elements",
        "shape_bytes",
        "input_1_elements",
        "matmul_m",
        "matmul_n",
        "matmul_k",
        "step",
        "step_position",
    )
    assert all(np.isnan(chosen.features[name]).all() for name in names)


@pytest.mark.parametrize(
    ("operator", "dims", "expected"),
    [
        ("aten::mm", "[3,5] [5,7]", (3, 7, 5)),
        ("aten::_scaled_mm", "[3,5] [5,7] [] []", (3, 7, 5)),
        ("aten::addmm", "[7] [3,5] [5,7] [] []", (3, 7, 5)),
        ("aten::bmm", "[2,3,5] [2,5,7]", (3, 7, 5)),
        ("aten::baddbmm", "[2,3,7] [2,3,5] [2,5,7]", (3, 7, 5)),
        ("aten::linear", "[5] [7,5]", (1, 7, 5)),
        ("aten::linear", "[2,3,5] [7,5] [7]", (6, 7, 5)),
        ("aten::mm", "[3,5] [7,5]", None),
        ("aten::bmm", "[2,3,5] [3,5,7]", None),
        ("aten::mm", "[3,5]", None),
        ("aten::mm", "[[3,5] [5,7]]", None),
        ("aten::mm", "[] []", None),
        ("aten::mul", "[3,5] [5,7]", None),
        ("aten::addmm", "x", None),
    ],
)
def test_the_sizes_of_a_matrix_product(operator, dims, expected):
    assert matrix_product(operator, dims) == expected


@pytest.mark.parametrize(
    ("dims", "elements"),
    [
        ("[2,3] [4]", (6, 4, None, None)),
        ("[] [5]", (None, 5, None, None)),
        ("[[2,3] [4]] [] [7]", (10, None, 7, None)),
        ("[1] [2] [3] [4] [5]", (1, 2, 3, 4)),
        ("[0,9] [[]]", (0, 1, None, None)),
        ("", (None,) * 4),
        ("[2,3] [4", (None,) * 4),
        ("[2,…] [4]", (None,) * 4),
        ("[true] [4]", (None,) * 4),
        ("[[[2]]]", (None,) * 4),
        ("[" * 5000 + "2" + "]" * 5000, (None,) * 4),
    ],
)
def test_the_elements_of_each_input(dims, elements):
    found = input_elements(dims)
    assert [None if math.isnan(one) else one for one in found] == list(elements)
