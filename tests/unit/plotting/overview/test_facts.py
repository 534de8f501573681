"""What was read, at the head of a dataset: exports whose counters come from another execution, or stand beside launches."""

import json

import duckdb
import pytest

from causeway.plotting.overview.inputs import facts
from causeway.readers.normalise import normalise
from cited_page import CitedPage
from support import REAL


@pytest.mark.parametrize(
    ("export", "launches", "elapsed_ns", "span"),
    [
        # 34 dispatches of a later execution, 14 s later, were recorded with counters alone
        ("rocprofv3/llama-rdna35", "144", 180_266_420, "180 ms"),
        # each launch has its counters
        ("rocprof_v1/seismic-stencils/run0_03052024_113034", "1,023", None, "1.88 s"),
        # counters alone
        ("ncu_csv/operators-a100/relu_nsight_result_wide.csv", "4,237", None, "no times"),
    ],
)
def test_a_launch_counts_once_and_a_later_execution_is_no_part_of_the_span(
    export, launches, elapsed_ns, span, tmp_path, monkeypatch
):
    document = normalise(REAL / export, tmp_path / "demo" / "tables" / "e0", export="e0", source="s")
    (tmp_path / "demo" / "efficiency.json").write_text(json.dumps({"elapsed_ns": elapsed_ns}))
    page = CitedPage(str(facts("demo", [document], None, elapsed_ns)))
    monkeypatch.chdir(tmp_path)
    said = {text: (query, value) for query, _, value, text in page.citations}
    assert launches in said
    assert span in said or span == "no times"
    for query, value in said.values():
        found = duckdb.connect().sql(query).fetchall()[0][0]
        assert value is None or float(value) == found or str(found) == value
