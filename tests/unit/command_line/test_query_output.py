"""The rows of a query as text, CSV and JSON: complete, valid, and without what a terminal acts on."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causeway.command_line import __main__ as command


def test_a_query_is_printed_without_what_a_terminal_acts_on(tmp_path, capsys):
    table = tmp_path / "results" / "run" / "kernels.parquet"
    table.parent.mkdir(parents=True)
    pq.write_table(pa.table({"name": ["\x1b[31mred"], "launches": [7]}), table)
    (tmp_path / "results" / "findings.json").write_text("{}")
    statement = "SELECT * FROM 'run/kernels.parquet'"
    for form, words in {"text": "'\\x1b[31mred'\t7", "json": '"name": "\\u001b[31mred"'}.items():
        assert command.main(["query", statement, "--results", str(tmp_path), "--format", form]) == 0
        assert words in capsys.readouterr().out


@pytest.fixture
def comparison(tmp_path):
    """Return the folder of an analysis that compared two runs, and made nothing else."""
    pair = tmp_path / "results" / "compare" / "a__b"
    pair.mkdir(parents=True)
    (pair / "comparison.json").write_text("{}")
    pq.write_table(pa.table({"change_percent": [7.5, 8.5]}), pair / "comparison.parquet")
    return tmp_path


def test_a_query_reads_the_folder_of_a_comparison(comparison, capsys):
    statement = "SELECT max(change_percent) AS most FROM 'compare/a__b/comparison.parquet'"
    assert command.main(["query", statement, "--results", str(comparison)]) == 0
    assert capsys.readouterr().out == "most\n8.5\n"


def test_numbers_that_are_none_are_null_in_json(comparison, capsys):
    values = "'nan'::DOUBLE AS a, '-inf'::FLOAT AS b, [1.5, 'inf'::DOUBLE] AS c, {'d': 'nan'::DOUBLE} AS e, 2 AS f"
    assert command.main(["query", f"SELECT {values}", "--results", str(comparison), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(word))
    assert found == [{"a": None, "b": None, "c": [1.5, None], "e": {"d": None}, "f": 2}]


def test_sums_are_numbers_in_json_to_the_last_digit(tmp_path, capsys):
    """DuckDB adds whole numbers up in 128 bits, which Arrow has as decimals."""
    values = [2**62, 2**62 - 1, 2**61 + 3]
    table = tmp_path / "results" / "run" / "launches.parquet"
    table.parent.mkdir(parents=True)
    pq.write_table(pa.table({"duration_ns": values, "rank": [0, 0, 1]}), table)
    (tmp_path / "results" / "findings.json").write_text("{}")
    columns = "sum(duration_ns) AS total, avg(rank) AS mean, 1.25::DECIMAL(10,4) AS part, [sum(rank)] AS listed"
    statement = f"SELECT {columns}, {{'all': sum(rank)}} AS nested FROM 'run/launches.parquet'"
    assert command.main(["query", statement, "--results", str(tmp_path), "--format", "json"]) == 0
    said = capsys.readouterr().out
    found = {"total": sum(values), "mean": 1 / 3, "part": 1.25, "listed": [1], "nested": {"all": 1}}
    assert json.loads(said) == [found]
    assert f'"total": {sum(values)},' in said


def test_columns_of_one_name_stand_side_by_side_and_names_do_nothing_to_a_terminal(comparison, capfdbinary):
    statement = "SELECT 1 AS a, 'x' AS a, 3 AS \"\x1b[31m\t\", NULL AS n"
    assert command.main(["query", statement, "--results", str(comparison)]) == 0
    assert capfdbinary.readouterr().out == b"a\ta\t'\\x1b[31m\\t'\tn\n1\t'x'\t3\tNone\n"
    assert command.main(["query", "SELECT 1 AS a, 2 AS a", "--results", str(comparison), "--format", "csv"]) == 0
    assert capfdbinary.readouterr().out == b'"a","a"\n1,2\n'


@pytest.mark.parametrize(
    ("statement", "form", "words"),
    [
        (
            "SELECT 1 AS a, 2 AS a, 3 AS b",
            "json",
            "several columns 'a', of which JSON would hold one; give each a name",
        ),
        ("SELECT [1, 2] AS a", "csv", "CSV cannot hold a column of this query (Unsupported Type:list"),
        ("SELECT {'b': 1} AS a", "csv", "give it another type with CAST, or use --format json"),
        (os.fsdecode(b"SELECT '\xff'"), "text", "the query is not UTF-8"),
    ],
)
def test_a_query_that_cannot_be_answered_is_one_sentence(statement, form, words, comparison, capsys):
    assert command.main(["query", statement, "--results", str(comparison), "--format", form]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("causeway: ")
    assert words in said.err
    assert said.err.count("\n") == 1
