"""Copies whose size the profiler does not tell are no copies of 0 bytes; worked by hand."""

import numpy as np
import pyarrow as pa
import pytest

from causeway.causal.data.launch_context import ChosenLaunches, add_transfers_in_flight
from causeway.core.tables import SCHEMAS, write_table

H2D = 1
D2H = 2
INSTANTS = (5, 15, 25, 35, 45)
NOTHING = float("nan")


def features(folder, copies, rank=0):
    """Return what is in flight at `INSTANTS`; copies are (start, duration, bytes, kind, rank)."""
    names = ("start_ns", "duration_ns", "bytes", "copy_kind", "rank")
    rows = [dict.fromkeys(SCHEMAS["transfers"].names) | {"device": 0, "stream": 0} for _ in copies]
    for row, copy in zip(rows, copies, strict=True):
        row |= dict(zip(names, copy, strict=True))
    path = folder / "transfers.parquet"
    write_table(pa.Table.from_pylist(rows, schema=SCHEMAS["transfers"]), path, "transfers")
    chosen = ChosenLaunches(rank, np.arange(len(INSTANTS)), np.full(len(INSTANTS), -1))
    chosen.start = np.array(INSTANTS)
    chosen.device = np.zeros(len(INSTANTS), np.int64)
    add_transfers_in_flight(path, chosen)
    return {name: values.astype(float) for name, values in chosen.features.items()}


CASES = {
    "every size": (
        [(0, 10, 100, H2D, 0), (20, 10, 300, H2D, 0), (40, 9, 70, D2H, 0)],
        {
            "transfers_in_flight": (1, 0, 1, 0, 1),
            "h2d_bytes_in_flight": (100, 0, 300, 0, 0),
            "d2h_bytes_in_flight": (0, 0, 0, 0, 70),
            "last_h2d_bytes": (NOTHING, 100, 100, 300, 300),
        },
    ),
    "no size in one direction": (
        [(0, 10, None, H2D, 0), (20, 10, None, H2D, 0), (40, 9, 70, D2H, 0)],
        {
            "transfers_in_flight": (1, 0, 1, 0, 1),
            "h2d_bytes_in_flight": (NOTHING,) * 5,
            "d2h_bytes_in_flight": (0, 0, 0, 0, 70),
            "d2d_bytes_in_flight": (0, 0, 0, 0, 0),
            "last_h2d_bytes": (NOTHING,) * 5,
        },
    ),
    "some sizes": (
        [(0, 10, None, H2D, 0), (4, 5, 50, H2D, 0), (20, 10, 300, H2D, 0), (24, 30, None, D2H, 0)],
        {
            "transfers_in_flight": (2, 0, 2, 1, 1),
            "h2d_bytes_in_flight": (NOTHING, 0, 300, 0, 0),
            "d2h_bytes_in_flight": (NOTHING,) * 5,
            "last_h2d_bytes": (NOTHING, NOTHING, NOTHING, 300, 300),
        },
    ),
    "a size of 0, and another rank's without one": (
        [(0, 10, 0, H2D, 0), (20, 10, None, H2D, 1)],
        {
            "transfers_in_flight": (1, 0, 0, 0, 0),
            "h2d_bytes_in_flight": (0, 0, 0, 0, 0),
            "last_h2d_bytes": (NOTHING, 0, 0, 0, 0),
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bytes_are_null_where_a_size_is_not_known(case, tmp_path):
    copies, expected = CASES[case]
    found = features(tmp_path, copies)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
