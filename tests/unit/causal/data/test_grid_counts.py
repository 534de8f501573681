"""What the grids of a dataset count reaches the features: of one tool, or of several that differ."""

import pyarrow as pa
import pytest

from causeway.causal.data.features import exports_of, features_of
from causeway.causal.data.scopes import feature_columns
from causeway.core.tables import SCHEMAS, extended, write_json, write_table
from causeway.core.vocabulary import KERNEL_VARIABILITY
from causeway.variability.bins.kept import trace_fields


@pytest.mark.parametrize(
    ("grids", "counts"),
    [
        ([None], "blocks"),
        (["work-items", "work-items"], "work-items"),
        (["as launched"], "as launched"),
        (["work-items", None], "as launched"),
        ([None, None], "blocks"),
    ],
)
def test_grids_of_exports_that_differ_tell_no_threads(tmp_path, grids, counts):
    clocks = {}
    for rank, grid in enumerate(grids):
        folder = tmp_path / f"e{rank}"
        clocks[folder.name] = {"shift_ns": 0, "ranks": [rank]}
        kernels = SCHEMAS["kernels"].empty_table()
        write_table(kernels, folder / "kernels.parquet", "kernels", metadata={"grid": grid} if grid else {})
        write_json({"status": "read"}, folder / "capabilities.json")
    exports = exports_of([tmp_path / name for name in clocks], {"exports": clocks}, {})
    table, fields = features_of(extended("kept", trace_fields()).empty_table(), {}, exports, KERNEL_VARIABILITY)
    found = {one.name: one.counts for one in feature_columns(table.cast(pa.schema(_with(table, fields))))}
    assert [found[f"grid_{axis}"] for axis in "xyz"] == [counts] * 3
    assert {found[f"block_{axis}"] for axis in "xyz"} == {"blocks"}


def _with(table, fields):
    """Return the fields of a table, those of features as they are written."""
    own = {field.name: field for field in fields}
    return [own.get(field.name, field) for field in table.schema]
