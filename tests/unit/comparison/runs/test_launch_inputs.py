"""What launches were given is known only where all of it was recorded."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causeway.comparison.runs import launch_inputs


@pytest.fixture
def reads(monkeypatch):
    """Read tables as they are, whatever columns they lack."""
    monkeypatch.setattr(launch_inputs, "read_table", lambda path, name, columns: pq.read_table(path, columns=columns))
    monkeypatch.setattr(launch_inputs, "open_table", lambda path, name: pq.ParquetFile(path))


def export(folder, sizes=(), dims=None):
    """Write launches of one kernel, the sizes of collectives, and the input of the operator, if it was recorded."""
    folder.mkdir()
    tables = {
        "launches": {"configuration": [0], "shape": pa.array([None if dims is None else 0], pa.int32())},
        "configurations": {"configuration": [0], "kernel": [0]},
        "kernels": {"kernel": [0], "name": ["gemm"]},
    }
    if sizes:
        times = dict.fromkeys(("rank", "device", "stream"), [0] * len(sizes)) | {"start_ns": list(range(len(sizes)))}
        tables["collectives"] = times | {"bytes": pa.array(sizes, pa.int64())}
    if dims is not None:
        tables["shapes"] = {"shape": [0], "dims": [dims]}
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return folder


def test_messages_count_where_each_is_recorded(reads, tmp_path):
    """Sizes of one kind of collective alone made all others another work."""
    whole = export(tmp_path / "a", [10, 20])
    assert launch_inputs.has_messages([whole])
    assert not launch_inputs.has_messages([whole, export(tmp_path / "b", [10, None])])
    assert not launch_inputs.has_messages([export(tmp_path / "c")])


def test_inputs_count_where_all_exports_have_them(reads, tmp_path):
    whole = export(tmp_path / "a", dims="[[8,8]]")
    assert launch_inputs.inputs_by_kernel([whole]) == {"gemm": {"[[8,8]]"}}
    assert launch_inputs.inputs_by_kernel([whole, export(tmp_path / "b")]) == {}
