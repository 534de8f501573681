"""Interactive pages in a browser: offline, in both themes, and what a reader does with them."""

import base64
import io

import plotting_samples as samples
import pytest
from causal_samples import FEATURES, contribution_rows
from compared_samples import compared
from PIL import Image
from variability_samples import HOSTILE, NAMES, kernels_table, write_rows

from causeway.core.tables import write_table
from causeway.plotting.interactive import plots
from causeway.plotting.interactive.named_figures import Choice
from causeway.plotting.pages import interactive_page
from causeway.plotting.pages.interactive_page import write_index, write_page
from looks import Watched, unreadable

TARGET = "kernel_variability"
PAGE = "dataset-demo.html"
FEATURES = (("<img src=x onerror=alert(1)>", "context", "contention", "bytes"), *FEATURES)
IDS = {"lines": f"{TARGET}-parallel_coordinates"}
PNG = """(id) => Plotly.toImage(document.getElementById(id), {format: 'png', width: 500, height: 400})"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The page of a dataset with hostile names, and the list of pages with a compared pair."""
    root = tmp_path_factory.mktemp("interactive")
    names = (HOSTILE, *NAMES)
    folder = samples.write_dataset(root / "results", "demo", (TARGET,), names=names)
    write_rows(folder / TARGET, kernels_table(names), features=FEATURES)
    rows = contribution_rows(features=FEATURES)[0]
    path = folder / TARGET / "causal" / "dataset" / "contributions.parquet"
    schema = samples.SCHEMAS["contributions"]
    write_table(samples.pa.Table.from_pylist(rows, schema=schema), path, "contributions")
    write_page(folder, [TARGET], Choice(rows=300), root / "pages")
    document, changes = compared((HOSTILE, "a kernel"))
    with pytest.MonkeyPatch.context() as patched:
        drawn = plots.comparison(document, changes)
        patched.setattr(interactive_page, "draw_pair", lambda pair: drawn)
        write_index(["demo"], [root / "before__after"], root / "pages")
    return root / "pages"


def shown(made, watched, name=PAGE, **media):
    watched.page.emulate_media(**media)
    page = watched.show(made / name)
    page.wait_for_selector(".plotly svg.main-svg, .js-plotly-plot svg")
    page.wait_for_timeout(200)
    return page


@pytest.fixture(scope="module")
def opened(made, browser):
    """The page of the dataset, shown once for all tests, each of which leaves what the others look at: to draw it takes
    three seconds.
    """
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    watched = Watched(page)
    shown(made, watched, color_scheme="light")
    yield watched
    page.close()


@pytest.mark.parametrize(
    ("name", "width", "scheme"), [(PAGE, 420, "dark"), ("index.html", 420, "dark"), ("index.html", 1440, "light")]
)
def test_a_page_is_silent_offline_and_no_wider_than_the_window(made, watched, name, width, scheme):
    watched.page.set_viewport_size({"width": width, "height": 900})
    shown(made, watched, name, color_scheme=scheme)
    assert_silent_and_fitting(watched)


def assert_silent_and_fitting(watched):
    page = watched.page
    assert watched.said == []
    assert watched.outside() == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    paper = page.evaluate("getComputedStyle(document.querySelector('.main-svg')).backgroundColor")
    assert paper == page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert page.title() != "owned"


def test_a_change_of_theme_draws_again(made, watched):
    page = shown(made, watched, "index.html", color_scheme="light")
    before = page.evaluate("document.querySelector('.js-plotly-plot')._fullLayout.font.color")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"document.querySelector('.js-plotly-plot')._fullLayout.font.color !== '{before}'")


def test_hover_shows_the_label(opened):
    page = opened.page
    plot = page.locator(f"#{TARGET}-bins")
    plot.scroll_into_view_if_needed()
    box = plot.locator(".nsewdrag").bounding_box()
    for part in range(10, 90, 4):
        page.mouse.move(box["x"] + box["width"] * part / 100, box["y"] + box["height"] * 0.5)
        page.wait_for_timeout(80)
        if plot.locator(".hovertext").count():
            break
    assert "median" in plot.locator(".hovertext").first.text_content()


def test_a_drag_zooms_and_a_double_click_goes_back(opened):
    page = opened.page
    plot = page.locator(f"#{TARGET}-bins")
    plot.scroll_into_view_if_needed()
    whole = "(id) => document.getElementById(id).layout.xaxis.range"
    before = page.evaluate(whole, f"{TARGET}-bins")
    box = plot.locator(".nsewdrag").bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.3, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=5)
    page.mouse.up()
    page.wait_for_timeout(300)
    zoomed = page.evaluate(whole, f"{TARGET}-bins")
    assert zoomed[1] - zoomed[0] < 0.5 * (before[1] - before[0])
    page.mouse.dblclick(box["x"] + box["width"] / 2, y)
    page.wait_for_timeout(500)
    assert page.evaluate(whole, f"{TARGET}-bins") == before


def test_a_drag_along_an_axis_keeps_the_lines_that_pass_there(opened):
    page = opened.page
    plot = page.locator(f"#{TARGET}-parallel_coordinates")
    plot.scroll_into_view_if_needed()
    box = plot.locator(".axis-brush .background").nth(2).bounding_box()
    x = box["x"] + box["width"] / 2
    page.mouse.move(x, box["y"] + box["height"] * 0.4)
    page.mouse.down()
    page.mouse.move(x, box["y"] + box["height"] * 0.7, steps=6)
    page.mouse.up()
    page.wait_for_timeout(300)
    kept = page.evaluate("(id) => document.getElementById(id).data[0].dimensions[2].constraintrange", IDS["lines"])
    assert len(kept) == 2
    assert page.evaluate("Array.from(document.querySelectorAll('canvas')).some(function (c) { return c.width > 300; })")


def test_another_cause_is_chosen_from_the_list(opened):
    page = opened.page
    plot = page.locator(f"#{TARGET}-distribution_by_cause")
    plot.scroll_into_view_if_needed()
    visible = f"document.getElementById('{TARGET}-distribution_by_cause').data.map((box) => box.visible)"
    before = page.evaluate(visible)
    plot.locator(".updatemenu-header").click()
    plot.locator(".updatemenu-dropdown-button").nth(1).click()
    page.wait_for_timeout(200)
    assert page.evaluate(visible) != before


@pytest.mark.parametrize("figure", ["bins", "parallel_coordinates", "distribution_by_cause"])
def test_a_figure_becomes_a_png(opened, figure):
    """The picture that the camera of the mode bar saves."""
    page = opened.page
    assert page.locator(f"#{TARGET}-{figure} .modebar-btn[data-title^='Download']").count() == 1
    data = page.evaluate(PNG, f"{TARGET}-{figure}")
    picture = Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2])))
    assert (picture.format, picture.size) == ("PNG", (500, 400))
    assert len(picture.convert("RGB").getcolors(1 << 20)) > 20


def test_the_camera_saves_a_file(opened):
    page = opened.page
    page.locator(f"#{TARGET}-bins").hover()
    with page.expect_download() as waiting:
        page.locator(f"#{TARGET}-bins .modebar-btn[data-title^='Download']").click()
    assert waiting.value.suggested_filename == f"{TARGET}-bins.png"


def test_hostile_names_are_text(made, opened, watched):
    page = opened.page
    ticks = page.locator(f"#{TARGET}-parallel_coordinates text").all_text_contents()
    assert any("</title><scrip" in tick for tick in ticks)
    assert page.locator(".js-plotly-plot img, .js-plotly-plot b, .js-plotly-plot a[href*='e.x']").count() == 0
    assert "<img src=xonerror=alert(1)>" in page.locator(".axis-title").nth(1).text_content(), "two lines"
    assert page.title() == "Interactive figures, demo"
    assert shown(made, watched, "index.html").title() == "Interactive figures"
    assert opened.said == watched.said == []


def test_every_text_can_be_read_and_what_was_not_drawn_is_said(made, watched):
    page = shown(made, watched)
    assert "Not drawn: a roofline needs counters" in page.locator("body").inner_text()
    assert "Not drawn: counters and tables have no steps" in page.locator("body").inner_text()
    assert unreadable(page) == []
    assert_silent_and_fitting(watched)
