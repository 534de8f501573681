"""Tables are read as they were written, and a wrong table is neither written nor read."""

import errno
import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causeway.core import tables
from causeway.core.errors import TableError
from causeway.core.files import json_documents
from causeway.core.files.machine_errors import MachineError

KERNELS = pa.table(
    {
        "kernel": [0, 1],
        "id": ["a-1", "b-2"],
        "name": ["a()", "b()"],
        "short_name": ["a", "b"],
        "class": ["compute", "memory"],
    }
)


def test_a_table_comes_back_with_types_units_and_provenance(tmp_path):
    path = tmp_path / "kernels.parquet"
    tables.write_table(KERNELS, path, "kernels", metadata={"source": "rank0.sqlite", "source_sha256": "ab"})
    assert tables.read_table(path, "kernels").to_pylist() == KERNELS.to_pylist()
    assert tables.table_metadata(path) == {
        "schema_version": "1",
        "source": "rank0.sqlite",
        "source_sha256": "ab",
        "table": "kernels",
    }
    assert tables.unit_of(tables.SCHEMAS["launches"].field("start_ns")) == "ns"
    assert [p.name for p in tmp_path.iterdir()] == ["kernels.parquet"]


def test_equal_tables_give_equal_bytes(tmp_path):
    for name in ("one", "two"):
        tables.write_table(KERNELS, tmp_path / name, "kernels")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns(["name"]), r"missing columns \['name'\]"),
        (lambda t: t.append_column("surplus", pa.array([1, 2])), r"unknown columns \['surplus'\]"),
        (lambda t: t.set_column(0, "kernel", pa.array([-1, 2])), "kernels"),
        (lambda t: t.set_column(0, "kernel", pa.array([0.5, 2.0])), "kernels"),
        (lambda t: t.set_column(0, "kernel", pa.array([0, 2**40])), "kernels"),
        (lambda t: t.set_column(2, "name", pa.array([None, "b"])), "column name has 1 nulls"),
    ],
)
def test_a_wrong_table_is_refused_and_leaves_nothing_behind(tmp_path, change, message):
    with pytest.raises(TableError, match=message):
        tables.write_table(change(KERNELS), tmp_path / "kernels.parquet", "kernels")
    assert list(tmp_path.iterdir()) == []


def test_only_open_ended_tables_take_more_columns():
    with pytest.raises(TableError, match="fixed schema"):
        tables.extended("launches", [pa.field("x", pa.int64())])
    assert tables.extended("bins", [pa.field("x", pa.int64())]).names[-1] == "x"


def test_reading_checks_the_table_its_version_and_its_columns(tmp_path):
    path = tmp_path / "kernels.parquet"
    tables.write_table(KERNELS, path, "kernels")
    with pytest.raises(TableError, match="holds table kernels, expected launches"):
        tables.read_table(path, "launches")
    pq.write_table(KERNELS.replace_schema_metadata({"causeway.table": "kernels", "causeway.schema_version": "0"}), path)
    with pytest.raises(TableError, match="schema version 1"):
        tables.read_table(path, "kernels")
    path.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(TableError, match="not a readable Parquet file"):
        tables.read_table(path, "kernels")


def test_an_interrupted_writer_leaves_no_table_that_looks_whole(tmp_path):
    def write():
        with tables.TableWriter(tmp_path / "kernels.parquet", "kernels") as writer:
            writer.write(KERNELS)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert list(tmp_path.iterdir()) == []


def test_json_is_sorted_whole_and_validated(tmp_path, monkeypatch):
    monkeypatch.setattr(json_documents, "SCHEMA_FOLDER", tmp_path)
    (tmp_path / "toy.schema.json").write_text(
        json.dumps({"type": "object", "additionalProperties": False, "properties": {"a": {"type": "integer"}}})
    )
    tables.write_json({"a": 1}, tmp_path / "out.json", schema="toy")
    assert tables.read_json(tmp_path / "out.json") == {"a": 1}
    with pytest.raises(TableError, match="does not fit schema toy"):
        tables.write_json({"a": 1, "b": 2}, tmp_path / "other.json", schema="toy")
    assert not (tmp_path / "other.json").exists()
    with pytest.raises(ValueError, match="Out of range"):
        tables.write_json({"a": float("nan")}, tmp_path / "nan.json")


def test_the_hash_of_a_folder_depends_on_names_and_contents(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_text("1")
    first = tables.sha256_of(tmp_path / "a")
    (tmp_path / "a" / "x").rename(tmp_path / "a" / "y")
    assert tables.sha256_of(tmp_path / "a") != first
    # SHA-256 of "1", from the standard's test tools
    assert tables.sha256_of(tmp_path / "a" / "y") == "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
    (tmp_path / "b").mkdir()
    hashes = set()
    for content in ("1", "2"):
        (tmp_path / "b" / "x").write_text(content)
        hashes.add(tables.sha256_of(tmp_path / "b"))
    assert len(hashes) == 2


def test_the_hash_of_a_large_file_is_that_of_all_its_content(tmp_path):
    content = np.random.default_rng(1).bytes(5_000_001)
    (tmp_path / "x").write_bytes(content)
    assert tables.sha256_of(tmp_path / "x") == hashlib.sha256(content).hexdigest()


def written(path, columns, rows_of_group=100, **more):
    """Write a table as another program would, with our name and version, and return it."""
    facts = {"causeway.table": "kernels", "causeway.schema_version": tables.SCHEMA_VERSION}
    table = pa.table(columns, **more).replace_schema_metadata(facts)
    pq.write_table(table, path, row_group_size=rows_of_group)
    return table


@pytest.mark.parametrize("wrong", ["name", "kernel"])
def test_a_table_of_the_right_name_with_other_columns_is_refused(tmp_path, wrong):
    schema = tables.SCHEMAS["kernels"]
    columns = KERNELS.cast(schema).to_pydict()
    types = {field.name: field.type for field in schema}
    types["kernel"] = pa.int64() if wrong == "kernel" else types["kernel"]
    if wrong == "name":
        del columns["name"]
    arrays = {name: pa.array(values, types[name]) for name, values in columns.items()}
    written(tmp_path / "kernels.parquet", arrays)
    with pytest.raises(TableError, match=rf"lacks columns \['{wrong}'\] or has them with another type"):
        tables.read_table(tmp_path / "kernels.parquet", "kernels")


def test_row_groups_of_several_files_are_the_bytes_of_one_writer(tmp_path):
    """Two workers wrote row groups in turn, of more columns than the schema has, one of them a dictionary."""
    extra = [pa.field("limit", pa.dictionary(pa.int32(), pa.string())), pa.field("share", pa.float64())]
    schema = tables.extended("kept", extra)
    groups = []
    for seed in range(5):
        random = np.random.default_rng(seed)
        columns = {
            name.name: pa.array(random.integers(0, 9, 50)).cast(name.type) for name in schema if name.name != "limit"
        }
        columns["limit"] = pa.array(random.choice(["a", "b", None], 50)).dictionary_encode()
        groups.append(pa.table(columns).select(schema.names).cast(schema))
    owners = [0, 1, 1, 0, 1]
    paths = [tmp_path / f"{worker}.parquet" for worker in (0, 1)]
    for worker, path in enumerate(paths):
        with tables.TableWriter(path, "kept", extra) as writer:
            for group, owner in zip(groups, owners, strict=True):
                if owner == worker:
                    writer.write(group)
    with tables.TableWriter(tmp_path / "whole", "kept", extra, {"unit": "ns"}) as writer:
        for group in groups:
            writer.write(group)
    pieces = [(paths[0], 0), (paths[1], 0), (paths[1], 1), (paths[0], 1), (paths[1], 2)]
    with tables.TableWriter(tmp_path / "copied", "kept", extra, {"unit": "ns"}) as writer:
        tables.copy_row_groups(pieces, writer)
    assert (tmp_path / "copied").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("rows", [[], [0], [2, 3], [0, 2, 3, 5, 6, 9], [9], [4, 10, 12], list(range(10))])
def test_rows_are_taken_by_their_number_in_the_file(tmp_path, rows):
    schema = tables.SCHEMAS["kernels"]
    columns = {
        field.name: pa.array(range(10) if pa.types.is_integer(field.type) else [f"{field.name} {n}" for n in range(10)])
        for field in schema
    }
    columns = {name: array.cast(schema.field(name).type) for name, array in columns.items()}
    table = written(tmp_path / "kernels.parquet", columns, rows_of_group=3)
    assert pq.read_metadata(tmp_path / "kernels.parquet").num_row_groups == 4
    found = tables.take_rows(tmp_path / "kernels.parquet", "kernels", np.array(rows, np.int64))
    assert found.to_pylist() == [table.slice(row, 1).to_pylist()[0] for row in rows if row < 10]
    assert found.column_names == table.column_names


@pytest.mark.parametrize("statistics", [True, False])
def test_the_ends_of_an_ascending_column_are_found_with_and_without_statistics(tmp_path, statistics):
    table = pa.table({"other": [9, 9, 9, 9], "start_ns": [3, 5, 8, 13]})
    pq.write_table(table, tmp_path / "t", row_group_size=2, write_statistics=statistics)
    with pq.ParquetFile(tmp_path / "t") as file:
        assert [tables.extremes(file, group, "start_ns") for group in (0, 1)] == [(3, 5), (8, 13)]


def test_a_small_table_that_changed_is_read_again(tmp_path):
    path = tmp_path / "kernels.parquet"
    tables.write_table(KERNELS, path, "kernels")
    assert tables.read_table(path, "kernels") is tables.read_table(path, "kernels")
    tables.write_table(KERNELS.slice(1), path, "kernels")
    assert tables.read_table(path, "kernels", ["id"]).to_pydict() == {"id": ["b-2"]}
    path.unlink()
    with pytest.raises(TableError, match=r"kernels\.parquet"):
        tables.read_table(path, "kernels", ["id"])


@pytest.mark.parametrize("tiny", [0, 1])
def test_of_a_small_file_many_rows_are_not_held(tmp_path, monkeypatch, tiny):
    monkeypatch.setattr(tables, "TINY_BYTES", tiny * tables.TINY_BYTES)
    monkeypatch.setattr(tables, "TINY_ROWS", KERNELS.num_rows - 1)
    monkeypatch.setattr(tables, "STRETCH_ROWS", KERNELS.num_rows - 1)
    path = tmp_path / "kernels.parquet"
    tables.write_table(KERNELS, path, "kernels")
    first = tables.read_table(path, "kernels")
    assert tables.read_table(path, "kernels") is not first


@pytest.mark.parametrize("tiny", [0, 1])
@pytest.mark.parametrize("columns", [["short_name", "id"], ["id", "absent"], []])
def test_of_a_small_file_those_columns_are_given_that_are_asked_for(tmp_path, monkeypatch, tiny, columns):
    monkeypatch.setattr(tables, "TINY_BYTES", tiny * tables.TINY_BYTES)
    path = tmp_path / "kernels.parquet"
    tables.write_table(KERNELS, path, "kernels")
    present = [column for column in columns if column in KERNELS.column_names]
    assert tables.read_table(path, "kernels", columns).to_pydict() == KERNELS.select(present).to_pydict()


def test_a_small_table_that_changed_is_opened_again(tmp_path):
    path = tmp_path / "kernels.parquet"
    for rows in (KERNELS.num_rows, 1):
        tables.write_table(KERNELS.slice(0, rows), path, "kernels")
        for _ in range(2):
            with tables.open_table(path, "kernels") as file:
                assert file.read().num_rows == file.metadata.num_rows == rows
    with pytest.raises(tables.TableError, match="holds table kernels"):
        tables.open_table(path, "launches")


def test_small_row_groups_are_read_together(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "STRETCH_ROWS", 3)
    path = tmp_path / "kernels.parquet"
    with tables.TableWriter(path, "kernels") as writer:
        for rows in (1, 2, 2, 0, 2, 1):
            writer.write(KERNELS.slice(0, rows))
    with tables.open_table(path, "kernels") as file:
        assert list(tables.stretches_of(file)) == [[0, 1], [2], [3, 4]]
        together = [file.read_row_groups(groups) for groups in tables.stretches_of(file)]
    assert pa.concat_tables(together).equals(tables.read_table(path, "kernels"))


def test_a_table_gets_the_folders_above_it(tmp_path):
    tables.write_table(KERNELS, tmp_path / "a" / "b" / "kernels.parquet", "kernels")
    assert tables.read_table(tmp_path / "a" / "b" / "kernels.parquet", "kernels").num_rows == 2


def test_a_document_on_a_disk_that_fails_is_no_damaged_document(tmp_path, monkeypatch):
    (tmp_path / "a.json").write_text("{")
    for reading in (tmp_path / "a.json", tmp_path / "b.json"):
        with pytest.raises(TableError, match="not a readable JSON document"):
            tables.read_json(reading)
    failing = OSError(errno.EIO, "Input/output error")
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: (_ for _ in ()).throw(failing))
    with pytest.raises(MachineError, match=r"stopped reading .*a\.json.*EIO"):
        tables.read_json(tmp_path / "a.json")


READINGS = {
    "whole": lambda file: file.read(),
    "a group": lambda file: file.read_row_group(1),
    "groups": lambda file: file.read_row_groups([0, 1]),
    "batches": lambda file: list(file.iter_batches(2)),
}


@pytest.mark.parametrize("reading", READINGS)
def test_a_damaged_page_is_named_however_the_table_is_read(tmp_path, monkeypatch, reading):
    monkeypatch.setattr(tables, "ROW_GROUP_ROWS", 1)
    path = tmp_path / "kernels.parquet"
    tables.write_table(KERNELS, path, "kernels")
    with tables.open_table(path, "kernels") as file:
        group = file.metadata.row_group(file.num_row_groups - 1).column(2)
        READINGS[reading](file)
    content = bytearray(path.read_bytes())
    content[group.data_page_offset + group.total_compressed_size - 2] ^= 1
    path.write_bytes(content)
    with tables.open_table(path, "kernels") as file, pytest.raises(TableError, match=r"kernels\.parquet"):
        READINGS[reading](file)


@pytest.mark.parametrize("length", [1, 4096])
def test_what_is_too_large_to_be_held_whole_is_held_by_columns_beside_the_others(tmp_path, monkeypatch, length):
    """Either has too many rows, or too much memory for its few bytes."""
    small = tmp_path / "a" / "kernels.parquet"
    large = tmp_path / "b" / "kernels.parquet"
    tables.write_table(KERNELS, small, "kernels")
    rows = 20 if length > 1 else 1 + tables.TINY_ROWS
    columns = KERNELS.slice(0, 1).to_pylist()[0] | {"name": "x" * length}
    tables.write_table(pa.Table.from_pylist([columns | {"kernel": 0}] * rows), large, "kernels")
    assert large.stat().st_size <= tables.TINY_BYTES
    held = tables.read_table(small, "kernels")
    first = tables.read_table(large, "kernels", ["id"])
    assert (first.num_rows, first.column_names) == (rows, ["id"])
    assert tables.read_table(large, "kernels", ["id"]) is first
    assert tables.read_table(small, "kernels") is held
    assert tables._read_tiny(large, "kernels", tables._state_of_small(large)) is None
