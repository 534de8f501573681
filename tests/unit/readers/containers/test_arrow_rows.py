"""Rows of Parquet files and Arrow streams as readers get them: all of them, in order, only the wanted columns."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causeway.readers.containers import arrow_tables
from causeway.readers.containers.arrow_tables import MappedFile, ParquetTable, StreamTable, whole_file

TABLE = pa.table({"key": range(100), "name": [f"n{k}" for k in range(100)], "other": [1.5] * 100})


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize(
    ("wanted", "least_read"),
    [
        ([0], range(10)),
        ([9, 10], range(20)),
        ([25, 42], [*range(20, 30), *range(40, 50)]),
        ([99], range(90, 100)),
        ([500], range(0)),
    ],
)
def test_groups_without_a_wanted_key_are_left_out(tmp_path, statistics, wanted, least_read):
    pq.write_table(TABLE, tmp_path / "t", row_group_size=10, write_statistics=statistics)
    table = ParquetTable(tmp_path / "t")
    batches = list(table.batches_with("key", pa.array(wanted), ["name", "key"]))
    assert all(batch.schema.names == ["name", "key"] for batch in batches)
    keys = [key for batch in batches for key in batch.column("key").to_pylist()]
    assert keys == list(least_read)


def test_keys_that_are_written_as_text_or_short_are_compared_as_numbers(tmp_path):
    for kind in (pa.string(), pa.int32(), pa.uint64()):
        pq.write_table(
            pa.table({"key": TABLE["key"].cast(kind), "name": TABLE["name"]}), tmp_path / "t", row_group_size=10
        )
        batches = list(ParquetTable(tmp_path / "t").batches_with("key", pa.array([25]), ["name"]))
        assert [name for batch in batches for name in batch.column("name").to_pylist()] == [
            f"n{k}" for k in range(20, 30)
        ]


def streamed(path, *tables):
    """Write streams one after the other, each of batches of 30 rows."""
    with open(path, "wb") as file:
        for table in tables:
            with pa.ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table, max_chunksize=30)
    return path


@pytest.mark.parametrize("most", [7, 30, 1 << 16])
@pytest.mark.parametrize("released", [0, 1 << 24])
def test_a_stream_gives_its_rows_in_order_in_batches_of_bounded_size(tmp_path, monkeypatch, most, released):
    monkeypatch.setattr(arrow_tables, "BATCH_ROWS", most)
    monkeypatch.setattr(arrow_tables, "RELEASE_BYTES", released)
    table = whole_file(streamed(tmp_path / "t", TABLE))
    assert table.columns == ["key", "name", "other"]
    batches = list(table.batches(["name", "key"]))
    assert max(batch.num_rows for batch in batches) <= most
    found = pa.Table.from_batches(batches)
    assert found.column("key").to_pylist() == list(range(100))
    assert found.column("name").to_pylist() == [f"n{k}".encode() for k in range(100)]


def test_streams_one_after_the_other_are_found_each_with_its_size(tmp_path):
    other = pa.table({"x": [1, 2]})
    path = streamed(tmp_path / "t", TABLE, other, TABLE)
    file = MappedFile(path)
    found = list(file.streams())
    assert [schema.names for _, _, schema in found] == [TABLE.column_names, ["x"], TABLE.column_names]
    assert found[0][0] == 0
    assert [offset for offset, _, _ in found[1:]] == [offset + size for offset, size, _ in found[:-1]]
    assert found[-1][0] + found[-1][1] == path.stat().st_size
    offset, size, schema = found[1]
    assert pa.Table.from_batches(StreamTable(file, offset, schema, size).batches(["x"])).equals(other)


def test_a_stream_that_is_cut_is_given_before_the_error(tmp_path):
    whole = streamed(tmp_path / "t", TABLE)
    first = whole.stat().st_size
    content = streamed(tmp_path / "u", TABLE, TABLE).read_bytes()
    (tmp_path / "v").write_bytes(content[: first + (len(content) - first) // 2])
    offsets = []
    with pytest.raises((pa.ArrowException, OSError)):  # noqa: PT012 - what came before the error counts
        for offset, _, _ in MappedFile(tmp_path / "v").streams():
            offsets.append(offset)
    assert offsets == [0, first]
