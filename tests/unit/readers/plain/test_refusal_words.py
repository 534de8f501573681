"""What is said of files of numbers and times in other notations or units: the cause, and what to do."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading import Read, kernel, write_trace


def test_times_in_nanoseconds_in_a_trace_of_microseconds(tmp_path):
    events = [kernel(1_700_000_000_000_000_000 + 10_000 * at, 5000) for at in range(30)]
    read = Read(write_trace(tmp_path / "ns.json", events), tmp_path / "e")
    assert read.status == "refused"
    assert read.error["found"] == "none of its 30 GPU kernels has times that can be: ts and dur count microseconds"
    assert "nanoseconds" in read.error["advice"]


def test_decimal_commas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y;kernel\n" + "".join(f"{at},5;a\n" for at in range(40)))
    read = Read(path, tmp_path / "e")
    assert read.status == "refused"
    assert read.error["found"] == "column y has no number in 40 rows: 40 cells have a decimal comma"


def test_a_row_that_is_too_long(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,kernel\n1," + "x" * 20_000_000 + "\n" + "1,a\n" * 10)
    read = Read(path, tmp_path / "e")
    assert read.status == "refused"
    assert "a row takes more than 8 MB" in read.error["found"]


def test_a_block_that_is_too_large_for_arrow_is_no_damage(tmp_path, monkeypatch):
    """What Arrow says of the file of the next test, whose texts take two gigabytes."""

    def full(*_, **__):
        raise pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes, have 2148000000")
        yield

    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"y": [1.0, 2.0], "kernel": ["a", "b"]}), path)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", full)
    read = Read(path, tmp_path / "e")
    assert read.status == "refused"
    assert "behind row 0 take more memory than a block of rows may" in read.error["found"]


@pytest.mark.slow
def test_texts_that_together_take_too_much_memory_are_no_damage(tmp_path):
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 2200, pa.int32()), pa.array(["x" * 1_000_000]))
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"y": [1.0] * 2200, "kernel": texts}), path)
    read = Read(path, tmp_path / "e")
    assert read.status == "refused"
    assert "take more memory than a block of rows may" in read.error["found"]


@pytest.mark.parametrize(
    ("sizes", "kept", "counted"),
    [
        ({"grid": [0, 1, 1], "block": [32, 1, 1]}, (0, 32), 1),
        ({"grid": [4, 1, 1], "block": [-5, 1, 1]}, (4, None), 1),
        ({"grid": [2**63 - 1, 1, 1], "block": [32, 1, 1]}, (None, 32), 1),
        ({"grid": [2**31, 1, 1], "block": [1024, 1, 1]}, (2**31, 1024), 0),
    ],
)
def test_sizes_that_cannot_be_are_said(sizes, kept, counted, tmp_path):
    copy = kernel(5, 2, "Memcpy HtoD", bytes=-1) | {"cat": "gpu_memcpy"}
    read = Read(write_trace(tmp_path / "t.json", [kernel(10, 5, **sizes), copy]), tmp_path / "e")
    row = read.configurations.to_pylist()[0]
    assert (row["grid_x"], row["block_x"]) == kept
    assert read.transfers.column("bytes").to_pylist() == [None]
    assert read.count("impossible_sizes") == counted + 1
