"""Columns of Parquet that hold one value take no memory for each row, and what is given is what lies there."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from causeway.readers.containers.arrow_export import integer_column
from causeway.readers.containers.arrow_tables import ParquetTable
from causeway.readers.sink.batches import is_repeated

ROWS = 1000
COLUMNS = {
    "one": pa.array([7] * ROWS, pa.int32()),
    "lowest": pa.array([-(1 << 62)] * ROWS, pa.int64()),
    "null": pa.array([None] * ROWS, pa.int64()),
    "one_null": pa.array([5] * (ROWS - 1) + [None], pa.int64()),
    "two_groups": pa.array([1] * (ROWS // 2) + [2] * (ROWS // 2), pa.int64()),
    "unsigned": pa.array([(1 << 64) - 1] * ROWS, pa.uint64()),
    "real": pa.array([1.0] * ROWS),
    "any": pa.array(np.arange(ROWS)),
}


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("names", [list(COLUMNS), ["any", "one"], ["one", "lowest"], ["two_groups", "null"]])
def test_repeated_columns_are_those_that_lie_in_the_file(tmp_path, statistics, names):
    pq.write_table(pa.table(COLUMNS), tmp_path / "t.parquet", row_group_size=ROWS // 4, write_statistics=statistics)
    table = ParquetTable(tmp_path / "t.parquet")
    found: dict[str, list] = {name: [] for name in names}
    for batch in table.batches(names):
        assert batch.schema.names == names
        for name in names:
            found[name].append(integer_column(batch.column(name))[0])
    for name in names:
        expected, _ = integer_column(COLUMNS[name])
        assert np.array_equal(np.concatenate(found[name]), expected)
    of_one_value = {name for name in names if all(map(is_repeated, found[name]))}
    assert {"one", "lowest"} & {*names} <= of_one_value
    assert not of_one_value & {"any", "one_null", "real"}


def test_a_file_without_rows_gives_none(tmp_path):
    pq.write_table(pa.table({"one": pa.array([], pa.int64())}), tmp_path / "t.parquet")
    assert sum(batch.num_rows for batch in ParquetTable(tmp_path / "t.parquet").batches(["one"])) == 0


@pytest.mark.parametrize("values", [[4, 4, 5, None], [4, 4], [None, None], [(1 << 64) - 1] * 3, []])
def test_runs_that_an_export_holds_itself_are_told_apart(values):
    plain = pa.array(values, pa.uint64())
    found, bad = integer_column(pc.run_end_encode(plain))
    expected, wrong = integer_column(plain)
    assert found.tolist() == expected.tolist()
    assert bad == wrong
