"""What the facts of a dataset are read from."""

import dataclasses

import pyarrow as pa

from causeway.core.tables import SCHEMAS, write_table
from causeway.findings import read_tables


def test_searches_are_those_of_the_first_target_with_rows(monkeypatch, tmp_path):
    """Causes of a first column without numbers were asked for, while the screen shows the next one."""
    monkeypatch.setattr(read_tables, "read_searches", lambda _: {("d", "a_ms"): ["a"], ("d", "b_ms"): ["b"]})
    schema = SCHEMAS["kernel_summary"]
    row = {
        field.name: pa.array([[]], field.type) if pa.types.is_list(field.type) else pa.array([1]).cast(field.type)
        for field in schema
    }
    kernels = [tmp_path / "d" / target / "kernels.parquet" for target in ("a_ms", "b_ms")]
    for path, rows in zip(kernels, (0, 1), strict=True):
        path.parent.mkdir(parents=True)
        write_table(pa.table(row, schema).slice(0, rows), path, "kernel_summary")
    quality = tmp_path / "d" / "quality.json"
    quality.write_text("{}")
    lists = {field.name: [] for field in dataclasses.fields(read_tables.ResultFiles)}
    (tables,) = read_tables.run_tables(read_tables.ResultFiles(**lists | {"kernels": kernels, "quality": [quality]}))
    assert tables.searches == ["b"]
