"""The pages in a browser: no error, no network, no sideways scroll, and what they promise to do on a click."""

import plotting_samples as samples
import pytest
from causal_samples import graph_of
from variability_samples import HOSTILE, NAMES

from causeway.plotting.drawing import theme
from causeway.plotting.drawing.page import write
from causeway.plotting.pages.causes_page import draw_causal_graphs
from looks import unreadable
from report import write_overview

NAMES = (HOSTILE, *NAMES, *(f"app::stage_{i}<{i}>(float*)" for i in range(20)))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An overview of a usual and an unreadable dataset, a page of graphs."""
    root = tmp_path_factory.mktemp("pages")
    samples.write_dataset(
        root / "results", "demo", ("kernel_variability", "memory_stall"), names=NAMES, scopes=8, causes=14
    )
    samples.write_dataset(root / "results", "broken", ranks=2, refused=(0, 1))
    samples.write_dataset(root / "results", "counters", ("a_counter_with_a_long_name",), ranks=1, starts=False)
    job = samples.job_of(root / "results", root, ("demo", "broken", "counters"))
    write_overview.write_findings(job)
    write_overview.write_page(job)
    graphs = [graph_of()] + [
        graph_of(scope=f"k{i}", name=name, causes=i % 7 + 1, context=8) for i, name in enumerate(NAMES)
    ]
    for name, drawing in draw_causal_graphs(graphs, "Causes").items():
        write(drawing, root / "graphs" / name)
    return root


@pytest.mark.parametrize("name", ["overview.html", "graphs/index.html"])
def test_a_page_is_dark_where_the_reader_asks_for_it_and_printed_light(made, watched, name):
    paper = "getComputedStyle(document.body).getPropertyValue('--paper')"
    watched.page.emulate_media(color_scheme="dark")
    page = watched.show(made / name)
    assert page.evaluate(paper) == theme.DARK[theme.PAPER]
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(paper) == theme.PAPER


def no_sideways_scroll(page):
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize("name", ["overview.html", "graphs/index.html", "graphs/k1.svg"])
def test_a_page_is_silent_needs_no_network_and_fits(made, watched, name):
    page = watched.show(made / name)
    page.wait_for_timeout(300)
    assert watched.said == []
    assert watched.outside() == []
    assert no_sideways_scroll(page)
    assert page.title() != "owned"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1920, "light"), (1440, "dark")])
@pytest.mark.parametrize("name", ["overview.html", "graphs/index.html"])
def test_every_text_of_a_page_can_be_read(made, watched, name, width, scheme):
    """With everything open: no text over another, none cut off, none fainter than AA asks for."""
    watched.page.set_viewport_size({"width": width, "height": 900})
    watched.page.emulate_media(color_scheme=scheme)
    page = watched.show(made / name)
    page.evaluate("document.querySelectorAll('details').forEach(function (one) { one.open = true; })")
    assert unreadable(page) == []


def test_nothing_in_the_overview_is_cut_at_1280_pixels(made, watched):
    page = watched.show(made / "overview.html")
    page.evaluate("document.querySelectorAll('details').forEach(function (one) { one.open = true; })")
    assert no_sideways_scroll(page)
    cut = (
        "Array.from(document.querySelectorAll('.wide')).filter(function (one) { return one.scrollWidth >"
        " one.clientWidth + 1; }).length"
    )
    assert page.evaluate(cut) == 0


def test_small_text_is_nine_points_at_least(made, watched):
    page = watched.show(made / "overview.html")
    sizes = """Array.from(document.querySelectorAll('body *')).filter(function (e) {
      return e.children.length === 0 && e.textContent.trim() && !e.closest('script, style, title') && !e.closest('.beside figure');
    }).map(function (e) {
      var scale = e.getScreenCTM ? e.getScreenCTM().a : 1;  // of a drawing
      return scale * parseFloat(getComputedStyle(e).fontSize);
    })"""
    assert min(page.evaluate(sizes)) >= 11.5


def test_tables_sort_by_their_numbers_and_back(made, watched):
    page = watched.show(made / "overview.html")
    column = """Array.from(document.querySelector('#demo table.kernels').tBodies[0].rows).map(function (row) {
      return Number(row.cells[3].dataset.v);
    })"""
    head = page.locator("#demo table.kernels").first.locator("th").nth(3)
    head.locator("button").click()
    launches = page.evaluate(column)
    assert launches == sorted(launches, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    head.locator("button").click()
    assert page.evaluate(column) == sorted(launches)
    assert head.get_attribute("aria-sort") == "ascending"


def test_the_heat_map_tells_what_a_cell_holds(made, watched):
    page = watched.show(made / "overview.html")
    svg = page.locator("#demo .map svg").first
    svg.scroll_into_view_if_needed()
    box = svg.bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 15)
    assert page.locator("#demo .map output").first.inner_text().startswith("rank 0, ")
    page.mouse.move(box["x"] + 10, box["y"] + box["height"] - 5)
    assert page.locator("#demo .map output").first.inner_text() == ""
