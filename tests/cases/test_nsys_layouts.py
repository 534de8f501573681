"""Nsight Systems exports of newer layouts, with ranges that never end, and without kernels for a stated reason."""

import sqlite3

import pyarrow.parquet as pq
import pytest

from conftest import causeway

pytestmark = pytest.mark.slow
SUFFIXED = ("suffixed_tables", "suffixed_nvtx")
REFUSED = "no_kernels_diagnosed"
READ = ("open_ranges", *SUFFIXED)


@pytest.fixture
def runs(analysed):
    return analysed(*(f"nvidia/{name}.sqlite" for name in (*READ, REFUSED)))


def capabilities(runs, name):
    (path,) = (runs.results / name / "tables").glob("*/capabilities.json")
    return path.parent, runs.document(path.relative_to(runs.results))


def issue(document, kind):
    return next((one for one in document["issues"] if one["kind"] == kind), None)


@pytest.mark.parametrize("name", SUFFIXED)
def test_tables_with_suffixes_are_read_and_the_schema_is_said_to_be_newer(name, runs):
    folder, document = capabilities(runs, name)
    assert document["status"] == "read"
    assert (document["tables"]["launches"], document["tables"]["ranges"]) == (200, 20)
    assert pq.read_table(folder / "launches.parquet").num_rows == 200
    version = {"suffixed_tables": "3.27.1", "suffixed_nvtx": "3.26.1"}[name]
    said = issue(document, "newer_schema")["detail"]
    assert f"schema {version}, known up to 3.25" in said
    assert "NVTX_EVENTS_V2 read as NVTX_EVENTS" in said
    assert ("CUPTI_ACTIVITY_KIND_KERNEL_V2" in said) is (name == "suffixed_tables")
    assert issue(document, "unknown_data") is None
    assert f"schema {version}, known up to 3.25" in runs.overview()


def test_what_a_newer_schema_holds_is_no_fact_about_the_program(runs, cases):
    assert "no kernel was launched" not in runs.printed
    printed = causeway("check", *(cases / f"nvidia/{name}.sqlite" for name in SUFFIXED)).stdout
    assert printed.count("200 launches") == 2
    assert printed.count("20 ranges") == 2
    assert printed.count("layout is newer than any that is known") == 2
    assert "no named ranges" not in printed


def test_a_range_that_never_ends_lasts_to_the_end_of_the_recording(runs, cases):
    folder, document = capabilities(runs, "open_ranges")
    with sqlite3.connect(f"file:{cases / 'nvidia/open_ranges.sqlite'}?mode=ro", uri=True) as connection:
        tables = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS")
        last = max(connection.execute(f"SELECT max(end) FROM {table}").fetchone()[0] for table in tables)
        ((start,),) = connection.execute("SELECT start FROM NVTX_EVENTS WHERE text = 'epoch' AND end IS NULL")
    rows = pq.read_table(folder / "ranges.parquet").to_pylist()
    assert [row["name"] for row in rows].count("iteration") == 20
    assert [row["name"] for row in rows].count("async_io") == 1
    (epoch,) = (row for row in rows if row["name"] == "epoch")
    assert (epoch["start_ns"], epoch["start_ns"] + epoch["duration_ns"]) == (start, last)
    assert issue(document, "open_events")["count"] == 1
    assert "1 range without an end" in issue(document, "open_events")["detail"]
    assert "1 range without an end" in runs.overview()


def test_a_refusal_quotes_what_the_profiler_says(runs):
    _, document = capabilities(runs, REFUSED)
    assert document["status"] == "refused"
    found, advice = (document["error"][key] for key in ("found", "advice"))
    assert "Installed CUDA driver version (13.3) is not supported by this build of Nsight Systems" in found
    assert "Some CUPTI events might be missing." in found
    assert "no kernel was launched" not in found
    assert "Update Nsight Systems: the driver is of CUDA 13.3, the profiler's libraries of 12.9" in advice
    assert "Let the program end by itself" in advice
    assert "--trace cuda" not in advice
    assert "driver version (13.3) is not supported" in runs.overview()
