"""The sheet of telemetry: rows by dataset, and errors that name the line and the value."""

import pytest

from causeway.core.errors import CausewayError
from causeway.core.sheet import read_telemetry_sheet

HEADER = "dataset\tnode\tdevice\tsource\tformat\ttime_zone"


def sheet_of(tmp_path, *lines, header=HEADER):
    (tmp_path / "smi.csv").write_text("x")
    path = tmp_path / "telemetry.tsv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def accept(row):
    pass


def test_rows_keep_their_values_and_find_their_files(tmp_path):
    sheet = sheet_of(tmp_path, "x\tn1\t0\tsmi.csv\tnvidia-smi\tEurope/Berlin", "\t\t\tsmi.csv\t\t")
    one, other = read_telemetry_sheet(sheet, accept, ["x"])
    assert (one.dataset, one.node, one.device, one.format, one.time_zone) == (
        "x",
        "n1",
        "0",
        "nvidia-smi",
        "Europe/Berlin",
    )
    assert one.path == tmp_path / "smi.csv"
    assert (other.dataset, other.format, other.path) == ("", "auto", one.path)


def test_only_the_source_must_be_there(tmp_path):
    rows = read_telemetry_sheet(sheet_of(tmp_path, "smi.csv", header="source"), accept, ["x"])
    assert [row.source for row in rows] == ["smi.csv"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("y\t\t\tsmi.csv\t\t", "line 2: there is no dataset y"),
        ("x\t\t\tmissing.csv\t\t", "line 2: source missing.csv does not exist"),
        ("x\t\t\tsmi.csv\t\t\tsurplus", "7 fields, the header has 6"),
    ],
)
def test_errors_name_the_line_and_the_value(tmp_path, line, message):
    with pytest.raises(CausewayError, match=message):
        read_telemetry_sheet(sheet_of(tmp_path, line), accept, ["x"])


def test_an_unknown_column_is_named(tmp_path):
    with pytest.raises(CausewayError, match=r"unknown columns \['sources'\]"):
        read_telemetry_sheet(sheet_of(tmp_path, "smi.csv", header="sources"), accept, ["x"])
