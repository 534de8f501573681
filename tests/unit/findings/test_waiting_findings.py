"""Why devices wait, as a finding and in the overview: the numbers are those of the queries, names stay harmless."""

import html
import re

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from causeway.core.tables import SCHEMAS, write_table
from causeway.findings.device_time.waiting import waiting_findings
from causeway.plotting.figures.device_time.waiting import draw_waiting
from causeway.plotting.overview.device_time.idle_reasons import idle_sentence, why_devices_wait

HOSTILE = "range: <script>alert('x')</script>\"; DROP TABLE t"
ROWS = [
    (0, 0, "launch_starved", HOSTILE, None, 600),
    (0, 0, "launch_starved", "in cudaLaunchKernel", None, 100),
    (1, 0, "blocked_host", "cudaFree", None, 300),
    (1, 0, "before_first", "", None, 5_000),
    (1, 0, "blocked_host", "cudaFree", 3, 300),
]
"""The last row is of a step: part of the whole run's, not further time."""


@pytest.fixture
def table(tmp_path, monkeypatch):
    rows = [dict(zip(SCHEMAS["waiting"].names, row, strict=True)) for row in ROWS]
    made = pa.Table.from_pylist(rows, schema=SCHEMAS["waiting"])
    write_table(made, tmp_path / "d" / "waiting.parquet", "waiting")
    monkeypatch.chdir(tmp_path)  # queries run in the results folder
    return made


def test_the_main_reason_with_the_largest_detail(table):
    (finding,) = waiting_findings("d", table.to_pylist(), 10_000)
    assert finding.effect.value == 70
    assert duckdb.connect().sql(finding.evidence.query).fetchall()[0][0] == 70
    assert "host was late" in finding.headline
    assert len(finding.headline.split()) <= 25
    assert "600 ns" in finding.sentence


def test_little_waiting_is_no_finding(table):
    assert waiting_findings("d", table.to_pylist(), 1_000_000) == []
    assert waiting_findings("d", [], 10_000) == []


def test_the_overview_cites_each_number_and_escapes_names(table):
    page = "".join(str(part) for part in why_devices_wait(table, None, "d"))
    assert "<script>alert" not in page
    assert "70 %" in page
    assert "30 %" in page
    queries = re.findall(r'data-query="([^"]*)"', page)
    found = [duckdb.connect().sql(html.unescape(query)).fetchall()[0][0] for query in queries]
    assert found == [1_000, 70, 30, 600, 300, 100]


def test_lost_time_gives_the_largest_of_the_same_reasons(table):
    """700 ns of 1,000 between first and last work; the 5,000 ns before it, and the row of a step, count in neither."""
    said = re.sub("<[^>]*>", "", html.unescape(str(idle_sentence(table, "d"))))
    assert said == (
        "Between first and last work devices are idle for 1 µs; the largest part of it: 70 % nothing was queued: the"
        " host was late."
    )
    assert idle_sentence(table.filter(pc.equal(table["reason"], "before_first")), "d") is None


def test_the_figure_has_a_bar_for_each_reason_of_each_device_or_says_why_not(table):
    drawn = str(draw_waiting(table, dataset="d"))
    assert drawn.count("<title>launch-starved") == 1
    assert drawn.count("<title>before first work") == 1
    assert "rank 1, device 0" in drawn
    assert "a filter" in str(draw_waiting(table.slice(0, 0), dataset="d", why="a filter dropped launches"))
