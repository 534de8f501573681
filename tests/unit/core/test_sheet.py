"""The sheet of exports: names, positions and errors that name the line and the value."""

import os

import pytest
import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from causeway.core.errors import CausewayError
from causeway.core.files.yaml_files import read_yaml
from causeway.core.sheet import check_values, find_file, read_sheet, row_violation
from support import ROOT


def sheet_of(tmp_path, *lines, header="dataset\trank\tsource\tformat\tnode"):
    for name in ("a.sqlite", "b.sqlite"):
        (tmp_path / name).write_text("x")
    path = tmp_path / "datasets.tsv"
    path.write_text("\n".join(["# a comment", header, *lines]) + "\n")
    return path


def accept(row):
    pass


def test_exports_are_named_by_rank_or_by_order(tmp_path):
    sheet = sheet_of(tmp_path, "x\t3\ta.sqlite\tnsys\tn1", "y\t\ta.sqlite\t\t", "x\t\tb.sqlite", "y\t\tb.sqlite\t\t")
    exports = read_sheet(sheet, accept)
    assert [(e.dataset, e.export, e.rank, e.position, e.format, e.node) for e in exports] == [
        ("x", "3", 3, 0, "nsys", "n1"),
        ("y", "e0", None, 0, "auto", ""),
        ("x", "e0", None, 1, "auto", ""),
        ("y", "e1", None, 1, "auto", ""),
    ]
    assert exports[0].path == tmp_path / "a.sqlite"


def test_columns_may_be_left_out_and_come_in_any_order(tmp_path):
    exports = read_sheet(sheet_of(tmp_path, "a.sqlite\tx", header="source\tdataset"), accept)
    assert (exports[0].dataset, exports[0].export, exports[0].format) == ("x", "e0", "auto")


def test_a_sheet_may_have_commas(tmp_path):
    sheet = sheet_of(tmp_path, 'x,"a.sqlite"', "y,b.sqlite", header="dataset,source")
    assert [(e.dataset, e.path.name) for e in read_sheet(sheet, accept)] == [("x", "a.sqlite"), ("y", "b.sqlite")]
    with pytest.raises(CausewayError, match="line 3: 3 fields, the header has 2; separate fields by one comma"):
        read_sheet(sheet_of(tmp_path, "x,a.sqlite,nsys", header="dataset,source"), accept)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["x\t0\ta.sqlite\t\t", "x\t0\tb.sqlite\t\t"], "line 4: dataset x already has rank 0 on line 3"),
        (["x\t0\ta.sqlite\t\t", "x\t00\tb.sqlite\t\t"], "already has rank 0"),
        (["x\t0\tmissing.sqlite\t\t"], "line 3: source missing.sqlite does not exist"),
        (["x\t0\tsimulated:demo/rank0.sqlite\tnsys\t"], "simulated run 'demo' is not configured"),
        (["x\t0\ta.sqlite\tnsys\tn1\tsurplus"], "line 3: 6 fields, the header has 5"),
        ([], "no row"),
    ],
)
def test_errors_name_the_line_and_the_value(tmp_path, lines, message):
    with pytest.raises(CausewayError, match=message):
        read_sheet(sheet_of(tmp_path, *lines), accept)


def test_a_dataset_is_part_of_one_series(tmp_path):
    header = "dataset,rank,source,series"
    rows = ["x,0,a.sqlite,strong:mine", "x,1,b.sqlite,", "x,2,b.sqlite,strong:mine", "y,0,a.sqlite,weak:mine"]
    found = read_sheet(sheet_of(tmp_path, *rows, header=header), accept)
    assert [export.series for export in found] == ["strong:mine", "", "strong:mine", "weak:mine"]
    message = (
        "line 5: dataset x is part of series strong:mine on line 3, of strong:other here; a dataset is part of one"
    )
    with pytest.raises(CausewayError, match=message):
        read_sheet(sheet_of(tmp_path, *rows[:2], "x,3,a.sqlite,strong:other", header=header), accept)


@pytest.mark.parametrize("source", ["simulated:demo/../../etc/passwd", "simulated:demo//etc/passwd", "simulated:demo/"])
def test_a_simulated_source_stays_inside_its_run(tmp_path, source):
    with pytest.raises(CausewayError, match="does not name a file inside the run"):
        read_sheet(sheet_of(tmp_path, f"x\t0\t{source}\tnsys\t"), accept, ["demo"])


def test_a_misspelt_column_is_named(tmp_path):
    with pytest.raises(CausewayError, match=r"unknown columns \['ranks'\]"):
        read_sheet(sheet_of(tmp_path, "x\t0\ta.sqlite", header="dataset\tranks\tsource"), accept)


def test_a_missing_sheet_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(CausewayError, match=r"the sheet none.tsv does not exist; looked for it as .*none.tsv"):
        find_file("none.tsv", [tmp_path], "the sheet")


@pytest.mark.parametrize("name", ["{x}.csv", "<results>.csv", "<abc>.csv", "a{.csv", "a\x0b.csv", "a\u2028.csv"])
def test_names_that_mean_something_else_to_snakemake_are_refused_in_one_sentence(tmp_path, name):
    (tmp_path / name).write_text("x")
    with pytest.raises(CausewayError, match=r"line 3: .*(means something else to Snakemake)"):
        read_sheet(sheet_of(tmp_path, f"x\t\t{name}\t\t"), accept)


def test_a_pipe_is_refused_before_anything_opens_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CausewayError, match="is a pipe or a device"):
        read_sheet(sheet_of(tmp_path, "x\t\tpipe\t\t"), accept)


@pytest.mark.parametrize("line", ['x\t\t"a.sqlite\t\t', "x\t\t" + "a" * 200_000 + "\t\t"])
def test_an_open_quotation_and_an_endless_field_name_their_line(tmp_path, line):
    with pytest.raises(CausewayError, match="line 3: is no row of separated fields"):
        read_sheet(sheet_of(tmp_path, line, 'y\t\tb.sqlite"\t\t'), accept)


@pytest.mark.parametrize("mark", ["\x0b", "\x0c", "\x85", "\u2028"])
def test_a_row_ends_at_its_line_break_alone(tmp_path, mark):
    (export,) = read_sheet(sheet_of(tmp_path, f"x\t\ta.sqlite\t\tn{mark}1"), accept)
    assert export.node == f"n{mark}1"


def test_a_configuration_of_aliases_that_repeat_each_other_is_refused_at_once():
    value = ["x"] * 10
    for _ in range(9):
        value = [value] * 10
    with pytest.raises(CausewayError, match="do its YAML aliases repeat each other"):
        check_values({"filters": value})


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_of_a_configuration_is_finite(number):
    with pytest.raises(CausewayError, match=r"bins: width_us: .* is no finite number"):
        check_values({"seed": 1, "bins": {"width_us": number}})
    check_values({"seed": 1, "bins": {"width_us": 1.5}, "names": ["a", None, True]})


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("rank", "7a", "rank: '7a' cannot stand there; expected: MPI rank of the export, a whole number from 0; empty"),
        (
            "dataset",
            "../x",
            "dataset: '../x' cannot stand there; expected: Name of the dataset, of at most 80 letters, digits, `_`,",
        ),
        ("dataset", "logs", "so that names of other results are taken."),
        ("series", "fast", "expected: Series of runs that the dataset belongs to, `strong:NAME` or `weak:NAME`;"),
        ("format", "nsight", "format: 'nsight' is not one of ['', 'auto', 'nsys', "),
        ("source", "", "source: '' should be non-empty"),
    ],
)
def test_a_value_that_cannot_stand_in_a_column_is_told_with_what_the_column_holds(column, value, said):
    schema = yaml.safe_load((ROOT / "config" / "schemas" / "datasets.schema.yaml").read_text(encoding="utf-8"))
    error = best_match(Draft202012Validator(schema).iter_errors({"dataset": "a", "source": "b"} | {column: value}))
    assert said in row_violation(error)
    assert "^" not in row_violation(error), "nobody should have to read a pattern"


@pytest.mark.parametrize("value", [10**40, -(10**40), 2**53 + 1])
def test_a_whole_number_that_no_float_keeps_is_refused_with_its_place(value):
    check_values({"bins": {"launches": 2**53}})
    with pytest.raises(CausewayError, match=r"^bins: launches: .{1,30} is too large; expected at most 9,007,199,254"):
        check_values({"bins": {"launches": value}})


@pytest.mark.parametrize(("name", "fits"), [("a" * 300, False), ("ab" * 20, False), ("x" + "ab" * 19, True), ("ä" * 19, True), ("kernel_" * 11, True), ("kernel_" * 12, False)])  # fmt: skip
def test_a_name_that_snakemake_or_the_disk_would_not_take_is_told_in_one_line(name, fits):
    schema = read_yaml(ROOT / "config" / "schemas" / "datasets.schema.yaml")
    error = best_match(Draft202012Validator(schema).iter_errors({"dataset": name, "source": "b"}))
    assert (error is None) == fits
    if error:
        said = row_violation(error)
        assert said.startswith(f"dataset: '{name[:40]}")
        assert "at most 80 letters" in said
        assert len(said) < 600
