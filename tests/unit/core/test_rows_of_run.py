"""Tables with rows of the whole run and of each step: the first are read, and those of one step where it is asked."""

import pyarrow as pa
import pytest

from causeway.core.results import read_rows_of_run, rows_of_run, rows_of_step
from causeway.core.tables import SCHEMAS, read_table, write_table

STEPS = [None, 0, 1, 2, None, 1, 1, 7, None]


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Write a `waiting.parquet` of several row groups."""
    monkeypatch.setattr("causeway.core.tables.ROW_GROUP_ROWS", 2)
    fixed = {"rank": 3, "device": 0, "reason": "unknown", "detail": "other"}
    rows = [fixed | {"step": step, "wait_ns": at} for at, step in enumerate(STEPS)]
    write_table(pa.Table.from_pylist(rows, SCHEMAS["waiting"]), tmp_path / "waiting.parquet", "waiting")
    return tmp_path / "waiting.parquet"


@pytest.mark.parametrize("step", [None, 1, 5])
def test_rows_of_the_run_and_of_a_step_are_read(path, step):
    found = read_rows_of_run(path, "waiting", step)
    wanted = [at for at, one in enumerate(STEPS) if one is None or one == step]
    assert found.column("wait_ns").to_pylist() == wanted
    assert found.schema.equals(read_table(path, "waiting").schema)


def test_rows_of_a_table_in_memory(path):
    table = read_table(path, "waiting")
    assert [row["wait_ns"] for row in rows_of_run(table)] == [0, 4, 8]
    assert [row["wait_ns"] for row in rows_of_step(table, 1)] == [2, 5, 6]
