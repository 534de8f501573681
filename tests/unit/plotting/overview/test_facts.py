"""What was read, at the head of a dataset: exports whose counters come from another execution, or stand beside launches."""

import json
import re

import duckdb
import pytest

from causeway.plotting.overview.claims import findings_list
from causeway.plotting.overview.inputs import date_of, facts
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


def test_the_time_of_several_exports_is_that_of_their_efficiency(tmp_path, monkeypatch):
    """The capabilities count from the first launch, 5 of 12 us; with a copy before it the run lasts 9 us."""
    monkeypatch.chdir(tmp_path)
    time = {"first_ns": 7_000, "last_ns": 12_000}
    documents = [
        {"export": f"e{rank}", "status": "read", "ranks": [rank], "tables": {"launches": 3}, "time": time}
        | {"bytes": 5, "format": "nsys", "sha256": "0" * 64}
        for rank in (0, 1)
    ]
    for document in documents:
        folder = tmp_path / "demo" / "tables" / document["export"]
        folder.mkdir(parents=True)
        (folder / "capabilities.json").write_text(json.dumps(document))
    (tmp_path / "demo" / "efficiency.json").write_text(json.dumps({"elapsed_ns": 9_000}))
    for elapsed_ns, label, shown in ((9_000, "time measured", "9 µs"), (None, "longest export", "5 µs")):
        text = str(facts("demo", documents, None, elapsed_ns))
        said = {said: (query, value) for query, _, value, said in CitedPage(text).citations}
        assert label in text
        query, value = said[shown]
        assert duckdb.connect().sql(query).fetchall()[0][0] == float(value)


def test_the_day_is_that_of_the_first_launch_not_of_the_beginning_of_a_clock(tmp_path, monkeypatch):
    """PyTorch's clock began on 1 October 2026 at 12:17; the launches ran on 26 and 27 November."""
    monkeypatch.chdir(tmp_path)
    base = 1_790_857_026_000_000_000
    day = 86_400_000_000_000
    documents = [{"time": {"session_start_ns": base, "first_ns": days * day}} for days in (57, 56)]
    documents += [{"time": {"session_start_ns": 0, "first_ns": base + 60 * day}}]  # a clock that counts from 1970
    documents += [{"time": {"session_start_ns": None, "first_ns": 3}}, {"time": None}]
    documents += [{"time": {"session_start_ns": 0, "first_ns": 3}}]  # one that says nothing of the day
    files = [f"{number}.json" for number in range(len(documents))]
    for path, document in zip(files, documents, strict=True):
        (tmp_path / path).write_text(json.dumps(document))
    ((query, kind, value, text),) = CitedPage(str(date_of(documents, files))).citations
    assert (kind, text) == ("date", "2026-11-26")
    assert duckdb.connect().sql(query).fetchall() == [(int(value),)]
    assert int(value) == base + 56 * day


def test_the_day_of_a_clock_that_counts_from_1970_is_stated(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    day = 20_000 * 86_400_000_000_000  # 4 October 2024
    document = {"time": {"session_start_ns": 0, "first_ns": day + 5}}
    (tmp_path / "0.json").write_text(json.dumps(document))
    ((query, _, value, text),) = CitedPage(str(date_of([document], ["0.json"]))).citations
    assert (text, value) == ("2024-10-04", str(day + 5))
    assert duckdb.connect().sql(query).fetchall() == [(day + 5,)]


def finding(headline, kind, severity):
    found = {"headline": headline, "sentence": headline, "kind": kind, "severity": severity, "verdict": "inconclusive"}
    found |= dict.fromkeys(("recoverable_ns", "recoverable_share", "n", "suggestion", "based_on"))
    found |= dict.fromkeys(("effect", "p99", "spread", "explorer", "replay", "worth_low"))
    evidence = {"table": "a.parquet", "query": "SELECT 1"}
    return found | {"also": [], "link": "overview.html#x", "quantity": "mean time", "evidence": evidence}


def test_a_search_in_vain_is_no_fact_to_know_first_where_anything_else_is_known():
    searches = [(place, finding(f"k{place}: too little.", "no_cause", "none")) for place in (2, 3, 4)]
    known = [(0, finding("a tenth is lost.", "efficiency", "low")), (1, finding("Little.", "variability", "none"))]
    page = str(findings_list([*known, *searches]))
    assert ["too little" in page, "a tenth is lost" in page, "Little." in page] == [False, True, False]
    assert re.search("4</span> further findings in findings.json", page)
    assert "worth as much as a hundredth" in str(findings_list(searches))
