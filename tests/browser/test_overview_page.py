"""The overview in a browser: readable at two widths, in print and in the report's archive; every item opens."""

import re
import shutil

import plotting_samples as samples
import pyarrow as pa
import pytest
from variability_samples import HOSTILE, NAMES

from causeway.core.tables import SCHEMAS, write_table
from looks import unreadable
from report import write_overview

NAMES = (HOSTILE, *NAMES, *(f"app::stage_{i}<{i}>(float*)" for i in range(200)))
OPEN = "document.querySelectorAll('details').forEach(function (one) { one.open = true; })"

OVERFLOWING = """Array.from(document.querySelectorAll('td, th, p, li, div, a, h1, h2, h3, h4, summary, dd, dt')).filter(function (e) {
  if (e.closest('svg, [hidden]') || !e.getClientRects().length) { return false; }
  var style = getComputedStyle(e), meant = style.overflow === 'hidden' && style.textOverflow === 'ellipsis';
  return style.display !== 'inline' && e.scrollWidth > e.clientWidth + 1 && !meant;
}).map(function (e) { return e.outerHTML.slice(0, 120); })"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Results of three datasets: a usual one with hostile names, an unreadable one, one of 200 ranks and 200
    kernels.
    """
    results = tmp_path_factory.mktemp("overview") / "results"
    targets = ("kernel_variability", "memory_stall")
    samples.write_dataset(results, "demo", targets, names=NAMES[:12], scopes=5, causes=14, refused=(3,), measured=True)
    samples.write_dataset(results, "broken", ranks=2, refused=(0, 1))
    samples.write_dataset(results, "wide", ranks=200, bins=20, names=NAMES, causes=3, measured=True)
    waits = {
        "device": 0,
        "reason": "start_up",
        "detail": "work was enqueued before",
        "step": None,
        "wait_ns": 3_000_000,
    }
    table = pa.Table.from_pylist([waits | {"rank": rank} for rank in range(2)], schema=SCHEMAS["waiting"])
    write_table(table, results / "demo" / "waiting.parquet", "waiting")
    write_table(SCHEMAS["steps"].empty_table(), results / "demo" / "steps.parquet", "steps")
    job = samples.job_of(results, results, ("demo", "broken", "wide"))
    write_overview.write_findings(job)
    write_overview.write_page(job)
    return results


def shown(watched, results, width=1280):
    watched.page.set_viewport_size({"width": width, "height": 900})
    return watched.show(results / "overview.html")


@pytest.mark.parametrize("width", [1280, 1920])
def test_text_is_whole_dark_enough_and_alone_in_its_place(results, watched, width):
    page = shown(watched, results, width)
    page.evaluate(OPEN)
    assert page.evaluate(OVERFLOWING) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.evaluate("document.querySelectorAll('details.rest').forEach(function (one) { one.open = false; })")
    assert unreadable(page) == []
    assert watched.said == []
    assert watched.outside() == []


def test_on_a_narrow_screen_wide_figures_scroll_in_boxes_of_their_own(results, watched):
    page = shown(watched, results, 500)
    assert page.evaluate("document.documentElement.scrollWidth") <= 500
    widths = """Array.from(document.querySelectorAll('figure[data-repeats] svg, .map svg')).filter(function (one) {
      return !one.closest('.beside');
    }).map(function (one) { return one.getBoundingClientRect().width; })"""
    assert min(page.evaluate(widths)) >= 860, "their text can still be read"


def test_text_that_does_not_fit_is_found(results, watched):
    page = shown(watched, results)
    page.add_style_tag(content="td { max-width: 9px; display: block; white-space: nowrap }")
    assert page.evaluate(OVERFLOWING) != []


def test_every_item_opens(results, watched):
    page = shown(watched, results)
    page.evaluate("document.querySelectorAll('details').forEach(function (one) { one.open = false; })")
    opened = page.evaluate("""Array.from(document.querySelectorAll('details')).map(function (one) {
          one.querySelector('summary').click();
          return one.open && (one.closest('details details') || one.lastElementChild.getBoundingClientRect().height > 0);
        })""")
    assert len(opened) > 10
    assert all(opened)
    there = page.evaluate("""Array.from(document.querySelectorAll('a[href^="#"]')).map(function (link) {
          return document.getElementById(decodeURIComponent(link.getAttribute('href').slice(1))) !== null;
        })""")
    assert len(there) > 30
    assert all(there)
    assert watched.said == []


def test_a_number_shows_its_query_and_a_key_hides_it(results, watched):
    page = shown(watched, results)
    page.locator("table.waterfall data").first.click()
    panel = page.locator("#query")
    assert panel.is_visible()
    assert (
        "SELECT json_extract(content, '$.waterfall_ns.useful')::BIGINT FROM read_text('demo/efficiency.json')"
        in panel.inner_text()
    )
    page.keyboard.press("Escape")
    assert not panel.is_visible()
    page.locator("table.kernels data").first.click()
    page.locator("#query button").click()
    assert not panel.is_visible()


def test_a_cell_of_the_map_opens_its_window(results, watched):
    page = shown(watched, results)
    (results / "demo" / "explorer").mkdir(exist_ok=True)
    (results / "demo" / "explorer" / "index.html").write_text("<!doctype html><title>explorer</title>")
    svg = page.locator("#demo .map svg").first
    svg.scroll_into_view_if_needed()
    box = svg.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 15)
    page.wait_for_url("**/demo/explorer/index.html#at_*")
    begin, end = map(int, re.fullmatch(r".*#at_(\d+)us_(\d+)us", page.url).groups())
    assert 0 < begin < end <= 600_000


def test_links_work_inside_the_reports_archive(results, watched, tmp_path):
    """The archive holds each item under the digest of its path; what it does not hold is named in words."""
    home = tmp_path / "report" / "data" / "raw" / "ce361dc63230ac6f"
    home.mkdir(parents=True)
    shutil.copy(results / "overview.html", home)
    page = watched.show(home / "overview.html")
    links = page.evaluate(
        "Array.from(document.querySelectorAll('a.away')).map(function (a) { return a.getAttribute('href'); })"
    )
    assert links
    assert all(re.fullmatch(r"\.\./[0-9a-f]{16}/[a-z_-]+\.(html|svg)(#\w+)?", link) for link in links), links
    assert any(link.startswith("../3f4fa9bf8264733c/index.html#finding_") for link in links)
    assert "in the results folder)" in page.locator("ol.findings .under").first.inner_text()


def test_in_a_report_of_a_single_file_links_are_words(results, watched):
    watched.page.set_content((results / "overview.html").read_text(encoding="utf-8"))
    assert watched.page.locator("a.away").count() == 0
    assert "in the results folder)" in watched.page.locator("ol.findings .under").first.inner_text()
    assert watched.said == []


def test_it_prints_the_first_screens_alone(results, watched):
    page = shown(watched, results)
    page.emulate_media(media="print")
    seen = "Array.from(document.querySelectorAll('{}')).map(function (e) {{ return !!e.getClientRects().length; }})"
    assert all(page.evaluate(seen.format("dl.answers")))
    assert not any(page.evaluate(seen.format("ol.findings, #methods, .map, details")))
    sheets = re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True))
    assert len(sheets) == page.locator("section.dataset").count()


def test_it_prints_whole(results, watched):
    page = shown(watched, results)
    page.evaluate("location.hash = 'whole'")
    page.emulate_media(media="print")
    page.evaluate(OPEN)
    left_out = "Array.from(document.querySelectorAll('nav.toc, button[data-toggle], #query, .hint'))"
    assert page.evaluate(f"{left_out}.every(function (e) {{ return !e.getClientRects().length; }})")
    apart = """Array.from(document.querySelectorAll('h2, h3, h4')).map(function (heading) {
        var next = heading.nextElementSibling;
        return next && next.matches('div') && heading.matches('h3') ? next.firstElementChild : next;
    }).filter(function (next) { return next && next.matches('p') && getComputedStyle(next).breakAfter !== 'avoid'; })
      .map(function (next) { return next.textContent; })"""
    assert page.evaluate(apart) == [], "a heading and its note stand on the page of what they are about"
    assert page.evaluate("getComputedStyle(document.querySelector('.map')).breakInside") == "avoid"
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
    page.set_viewport_size({"width": 1047, "height": 718})  # A4 across less its margins at 96 pixels an inch
    assert page.evaluate("document.documentElement.scrollWidth") <= 1047
