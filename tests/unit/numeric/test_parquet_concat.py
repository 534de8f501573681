import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeway.numeric import parquet_concat
from causeway.numeric.parquet_concat import join_row_groups

OPTIONS = [
    {
        "compression": "lz4",
        "use_dictionary": ["name"],
        "column_encoding": {"value": "BYTE_STREAM_SPLIT", "number": "DELTA_BINARY_PACKED"},
    },
    {"compression": "none", "write_statistics": False, "use_dictionary": False},
    {"compression": "zstd", "data_page_size": 100, "store_schema": False, "version": "1.0"},
]


def table(begin, rows):
    numbers = range(begin, begin + rows)
    return pa.table(
        {
            "number": pa.array(numbers, pa.int64()),
            "value": pa.array([None if n % 5 == 0 else n / 7 for n in numbers], pa.float64()),
            "name": [f"kernel {n % 3}" for n in numbers],
            "flag": [n % 2 == 0 for n in numbers],
            "counts": [[n, n + 1] for n in numbers],
        }
    )


SCHEMA = table(0, 1).schema.with_metadata({"made": "here", "empty": ""})


def write(path, pieces, options):
    with pq.ParquetWriter(path, SCHEMA, **options) as writer:
        for piece in pieces:
            writer.write_table(piece.cast(SCHEMA))
    return path


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("groups", [0, 1, 2, 20])
def test_joined_row_groups_are_the_file_that_one_writer_makes(tmp_path, options, groups):
    pieces = [table(40 * n, 40 + n) for n in range(groups)]
    whole = write(tmp_path / "whole", pieces, options)
    parts = [write(tmp_path / f"part{k}", pieces[k::3][::-1], options) for k in range(3)]
    where = {}
    for k, part in enumerate(parts):
        numbers = list(range(groups))[k::3][::-1]
        where |= {number: (part, place) for place, number in enumerate(numbers)}
    joined = write(tmp_path / "joined", [], options)
    join_row_groups(joined, [where[number] for number in range(groups)])
    assert joined.read_bytes() == whole.read_bytes()
    assert not list(tmp_path.glob("*.partial"))


def test_a_row_group_may_be_taken_twice_or_left_out(tmp_path):
    pieces = [table(0, 3), table(10, 4), table(20, 5)]
    part = write(tmp_path / "part", pieces, OPTIONS[0])
    joined = write(tmp_path / "joined", [], OPTIONS[0])
    join_row_groups(joined, [(part, 2), (part, 0), (part, 2)])
    assert pq.read_table(joined).equals(pa.concat_tables([pieces[2], pieces[0], pieces[2]]))
    assert pq.read_metadata(joined).metadata[b"made"] == b"here"


def test_copying_through_memory_gives_the_same(tmp_path, monkeypatch):
    part = write(tmp_path / "part", [table(0, 1000)], OPTIONS[1])
    joined = [write(tmp_path / name, [], OPTIONS[1]) for name in ("a", "b")]
    join_row_groups(joined[0], [(part, 0)])
    monkeypatch.delattr(parquet_concat.os, "copy_file_range")
    join_row_groups(joined[1], [(part, 0)])
    assert joined[0].read_bytes() == joined[1].read_bytes()


def test_what_cannot_be_moved_is_refused(tmp_path):
    joined = write(tmp_path / "joined", [], OPTIONS[0])
    before = joined.read_bytes()
    indexed = write(tmp_path / "indexed", [table(0, 9)], OPTIONS[0] | {"write_page_index": True})
    with pytest.raises(ValueError, match="page indexes"):
        join_row_groups(joined, [(indexed, 0)])
    full = write(tmp_path / "full", [table(0, 9)], OPTIONS[0])
    with pytest.raises(ValueError, match="has rows"):
        join_row_groups(full, [(full, 0)])
    (tmp_path / "text").write_bytes(b"0123456789")
    with pytest.raises(ValueError, match="no Parquet file"):
        join_row_groups(joined, [(tmp_path / "text", 0)])
    assert joined.read_bytes() == before


@given(st.integers(-(2**62), 2**62))
def test_integers_are_written_as_they_are_read(value):
    text = parquet_concat._signed(value)
    assert parquet_concat._items(bytes([1 << 4 | parquet_concat.I64]) + text + b"\0").tolist() == [
        [parquet_concat.I64, 1, 1, 1 + len(text), value],
        [parquet_concat.STRUCT, 0, 0, 2 + len(text), 0],
    ]


def test_a_damaged_footer_is_an_error_or_another_footer(tmp_path):
    """Nothing is read or written beyond it: compiled code looks for that in tests (`tests/conftest.py`)."""
    footer = parquet_concat._footer(write(tmp_path / "whole", [table(0, 5)], OPTIONS[0]))
    for size in range(len(footer)):
        with pytest.raises(ValueError, match="not one struct"):
            parquet_concat._items(footer[:size])
    for at in range(len(footer)):
        for byte in (0x00, 0x19, 0xF9, 0xFF):  # 0x19, 0xF9: lists of lists
            try:
                items = parquet_concat._items(footer[:at] + bytes([byte]) + footer[at + 1 :])
            except ValueError:
                continue
            assert len(items) <= len(footer)
