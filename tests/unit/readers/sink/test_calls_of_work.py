"""The call that made each launch, copy and graph of real exports, beside a join of pandas by rank and correlation."""

import pandas as pd
import pyarrow.parquet as pq
import pytest
from reading import Read

COLUMNS = ["call", "call_start_ns", "call_end_ns", "thread"]
EXPORTS = (
    "nsys_sqlite/nsys-ai/mfu_2gpu_after.sqlite",  # two ranks with the same numbers of calls
    "nsys_sqlite/rodinia-gaussian/report3.sqlite",
    "kineto/hta/triton_example.json.gz",
    "rocprofv3/llama-rdna35",
)


def expected(work, calls):
    """Return the columns of work by the rule: of the calls with its rank and correlation the one that returns last."""
    calls = calls.assign(call_start_ns=calls["start_ns"], call_end_ns=calls["start_ns"] + calls["duration_ns"])
    calls = calls.dropna(subset="correlation").sort_values(["call_end_ns", "call"], kind="stable")
    last = calls.drop_duplicates(["rank", "correlation"], keep="last")
    return work[["rank", "correlation"]].merge(
        last[["rank", "correlation", *COLUMNS]], on=["rank", "correlation"], how="left"
    )[COLUMNS]


def frame(read, table):
    return pq.read_table(read.folder / f"{table}.parquet").to_pandas(types_mapper=pd.ArrowDtype)


@pytest.mark.parametrize("name", EXPORTS)
def test_the_call_of_each_row_is_that_of_a_join(name, data, tmp_path):
    read = Read(data / name, tmp_path / "tables")
    calls = frame(read, "calls")
    assert calls["call"].tolist() == list(range(len(calls)))
    joined = 0
    for table in {"launches", "transfers", "graphs"} & read.names:
        work = frame(read, table)
        wanted = expected(work, calls)
        for column in COLUMNS:
            found, told = (rows[column].astype("Int64").fillna(-1).tolist() for rows in (work, wanted))
            assert found == told, (table, column)
        joined += int(work["call"].notna().sum())
    assert joined > 0
