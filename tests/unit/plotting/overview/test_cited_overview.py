"""Every number of the overview is found in a table by its query, and reads like what the query gives."""

import html
import json
import re

import plotting_samples as samples
import pyarrow as pa
import pytest
from variability_samples import HOSTILE, NAMES

from causeway.core.tables import SCHEMAS, read_json, read_table, write_table
from causeway.plotting.drawing import citations
from cited_page import CitedPage, plain_spaces, reads_like, wrong_numbers
from comparison_runs import write_comparison, write_run
from queried import answers, every_statement, wrong_findings
from report import write_overview

RUNS = {
    "demo": None,
    "wide": None,
    "again": None,
    "broken": {"reduce": 3.0, "advance": 2.0},
    "slow": {"reduce": 3.0, "advance": 2.0},
}
"""Runs to compare, with the kernels that are slower in them."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A results folder with the page in it: a usual dataset, an unreadable one, and one of 60 ranks and 220 kernels."""
    results = tmp_path_factory.mktemp("cited") / "results"
    names = (HOSTILE, *NAMES)
    samples.write_dataset(
        results, "demo", ("kernel_variability", "memory_stall"), refused=(3,), names=names, measured=True
    )
    samples.write_dataset(results, "broken", ranks=2, refused=(0, 1))
    samples.write_dataset(
        results, "wide", ranks=60, bins=30, causes=3, names=[f"k{i}" for i in range(220)], measured=True
    )
    runs = {
        name: write_run(results.parent / name, seed, 100, factors=factors)
        for seed, (name, factors) in enumerate(RUNS.items())
    }
    efficiency = {name: results / name / "efficiency.parquet" for name in ("demo", "wide")}
    write_comparison(results, [["demo"], ["wide"]], {name: runs[name] for name in ("demo", "wide")}, efficiency)
    write_comparison(results, [["demo", "again"], ["broken", "slow"]], runs)
    write_comparison(results, [["wide"], ["again"]], {name: runs[name] for name in ("wide", "again")})
    job = samples.job_of(results, results, ("demo", "broken", "wide"))
    write_overview.write_findings(job)
    write_overview.write_page(job)
    return results


@pytest.fixture(scope="module")
def known(made):
    """Return the answers to all queries of the page."""
    return answers(CitedPage((made / "overview.html").read_text()).queries.values(), made)


def test_reasons_of_idle_time_are_those_of_the_table(tmp_path):
    results = tmp_path / "results"
    samples.write_dataset(results, "demo", measured=True)
    pages = []
    for waits in ([], [("start_up", "work was enqueued before", 3_000_000), ("blocked_host", "cudaFree", 1_000_000)]):
        if waits:
            rows = [
                {"rank": 0, "device": 0, "reason": r, "detail": d, "step": None, "wait_ns": ns} for r, d, ns in waits
            ]
            table = pa.Table.from_pylist(rows, schema=SCHEMAS["waiting"])
            write_table(table, results / "demo" / "waiting.parquet", "waiting")
            write_table(SCHEMAS["steps"].empty_table(), results / "demo" / "steps.parquet", "steps")
        job = samples.job_of(results, results)
        write_overview.write_findings(job)
        write_overview.write_page(job)
        pages.append((results / "overview.html").read_text())
    before, after = (plain_spaces(re.sub("<[^>]*>", "", page)) for page in pages)
    assert "Of it: " not in before
    assert "Of it: 75 % start-up latency of queued work; 25 % the host was inside" in after
    assert wrong_numbers(pages[1], results)[1] == []


def test_every_number_of_the_page_is_found_by_its_query_and_reads_like_it(made, known):
    page, wrong = wrong_numbers((made / "overview.html").read_text(), made, known)
    assert wrong == []
    assert len(page.citations) > 600
    assert {kind for _, kind, _, _ in page.citations} == {
        "bytes",
        "count",
        "date",
        "number",
        "percent",
        "ratio",
        "share",
        "text",
        "time",
    }


def test_each_compared_pair_says_the_headlines_of_its_findings_with_its_page(made):
    found = json.loads((made / "findings.json").read_text())["findings"]
    headlines = [one["headline"] for one in found if one["kind"] == "comparison" and one["scope_name"] is None]
    text = (made / "overview.html").read_text()
    section = text[text.index('<section id="compared"') :].partition("</section>")[0]
    said = [" ".join(re.sub("<[^>]*>", "", item).split()) for item in section.split("<li>")[1:]]
    assert len(said) == 3
    slower, whole, halves = said
    assert slower.startswith("demo → broken: ")
    assert "broken is slower per launch than demo: time for the same launches " in slower
    assert re.search(r"The same launches take \+\d+(\.\d+)? % \[\+\d+.*?, \+\d+.*?\].*, beyond noise\.", slower)
    assert headlines
    assert all(any(headline in pair for pair in said) for headline in headlines)
    assert "noise learned from 2 further runs" in slower
    assert "Run " in whole
    assert "the noise between runs was not measured" in halves
    assert "Of 6 kernels on both sides: " in halves
    for pair in ("demo__broken", "demo__wide", "wide__again"):
        assert f'href="compare/{pair}/comparison.html"' in section
    assert section.count("data-query") > 10


def test_without_pairs_there_is_no_such_section(tmp_path):
    samples.write_dataset(tmp_path / "results", scopes=0)
    job = samples.job_of(tmp_path / "results", tmp_path / "results")
    write_overview.write_findings(job)
    write_overview.write_page(job)
    assert "Compared runs" not in (tmp_path / "results" / "overview.html").read_text()


def test_every_query_of_the_findings_gives_its_number(made):
    findings = read_json(made / "findings.json")["findings"]
    kinds = {"cause", "efficiency", "quality", "straggler", "variability"}
    assert {one["kind"] for one in every_statement(findings)} >= kinds
    assert wrong_findings(findings, made) == []


@pytest.mark.parametrize(
    ("found", "put"),
    [
        (r">(\d\d\.\d)\u00a0%</data>", r">9\1 %</data>"),  # reads otherwise
        (r'<data value="0\.\d+"', '<data value="0.123456789"'),  # another value
        (r"</footer>", " 17 launches</footer>"),  # without a query
        (r'(data-query="q\d+") data-kind="time"', 'data-query="q0" data-kind="time"'),  # the query of something else
    ],
)
def test_a_number_that_is_wrong_is_found(made, known, found, put):
    text, changed = re.subn(found, put, (made / "overview.html").read_text(), count=1)
    assert changed
    assert len(wrong_numbers(text, made, known)[1]) >= 1


def test_no_query_holds_text_of_an_export(made):
    queries = CitedPage((made / "overview.html").read_text()).queries.values()
    assert len(queries) > 600
    for query in queries:
        assert len(query) < 6000
        for quoted in re.findall(r"'([^']*)'", query):
            assert re.fullmatch(r"[A-Za-z0-9_./+ *$\[\]\"<>-]*", quoted), query
        assert "DROP" not in query


@pytest.mark.parametrize(
    ("words", "kind", "value", "fits"),
    [
        ("1.35 ms", "time", 1_349_000, True),
        ("1.35 ms", "time", 1_360_000, False),
        ("34 %", "percent", 34.4, True),
        ("34 %", "percent", 35, False),
        ("< 0.1 %", "share", 0.0004, True),
        ("<0.1 %", "percent", 3, False),
        (">-0.1 %", "percent", -0.04, True),
        (">-0.1 %", "percent", 0.04, False),
        ("0.38", "ratio", 0.384, True),
        ("0.38", "ratio", 0.39, False),
        ("12,345", "count", 12345, True),
        ("12,345", "count", 12346, False),
        ("4.19 MB", "bytes", 4_190_514, True),
        ("a…c", "text", "abbbc", True),
        ("a…c", "text", "abbbd", False),
        ("2026-01-02", "date", 1_767_312_000_000_000_000, True),
    ],
)
def test_the_reader_of_the_test_reads(words, kind, value, fits):
    assert reads_like(words, kind, value) is fits


def test_links_carry_where_the_report_archive_has_their_file():
    page, queries = citations.settled(
        citations.away("explorer", "demo/explorer/index.html#finding_3", "demo/explorer/index.html"), "results"
    )
    assert 'href="demo/explorer/index.html#finding_3"' in page
    assert 'data-archived="../3f4fa9bf8264733c/index.html"' in page, "sha256 of results/demo/explorer/index.html"
    assert json.loads(re.sub("<[^>]*>", "", queries)) == {}
    assert "data-" not in citations.settled(citations.away("rows", "demo/kernels.parquet"), "results")[0]


def maps_of(results):
    """The facts of the heat maps of the page, in their order: what a cell says on hover."""
    text = (results / "overview.html").read_text()
    return [json.loads(html.unescape(found)) for found in re.findall(r' data-map="([^"]*)"', text)]


def test_cells_of_the_heat_maps_say_what_the_tables_hold(made):
    lost, variability = maps_of(made)[:2]
    medians = {
        (row["rank"], row["bin"]): row
        for row in read_table(made / "demo/kernel_variability/bins.parquet", "bins").to_pylist()
    }
    first = min(number for _, number in medians)
    checked = 0
    for rank, line in enumerate(variability["rows"]):
        for column, words in enumerate(line["cells"]):
            row = medians.get((rank, first + column))
            assert (words == "") == (row is None)
            if row:
                checked += reads_like(words.removeprefix("median ").removesuffix(", kept"), "time", row["median"])
    assert checked == len(medians) > 100
    rows = [
        row
        for row in read_table(made / "demo/efficiency.parquet", "efficiency").to_pylist()
        if row["level"] == "bin" and row["rank"] is not None
    ]
    for row in rows:
        words = lost["rows"][row["rank"]]["cells"][row["bin"]]
        assert reads_like(words.removesuffix(" lost"), "share", 1 - row["kernel_ns"] / row["elapsed_ns"]), (words, row)
