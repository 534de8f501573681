"""Pages beside the default run's, at 1280 and 1920 pixels: comparison, fleet and error rate; silent, no network,
every text readable.
"""

import pytest
from compared_samples import compared
from test_fleet_page import APPLICATIONS, ATTACKS, COVERAGE, EVALUATION

from causeway.plotting.drawing.page import write
from causeway.plotting.figures import comparison
from causeway.plotting.pages import comparison_page, fleet_page
from lab.validation.cases import CASES
from lab.validation.result_page import METHODS, as_page
from looks import unreadable

LONG = (
    "void at::native::vectorized_elementwise_kernel<{0}, at::native::BUnaryFunctor<float, bool,"
    " at::native::MulFunctor<{0}>>>(int)"
)
MARKS = (
    "true false missed leaks signs_given signs_right signs_asked share_error proxies proxies_fragile causes_fragile"
    " cpu_s".split()
)


def write_comparison_page(count, folder):
    document, rows = compared([LONG.format(number) for number in range(count)])
    drawn = (
        comparison.draw_changes(document, rows),
        comparison.draw_totals(document),
        comparison.draw_ratios(document, rows),
    )
    page = comparison_page.draw_comparison(
        document, rows, ["candidate is slower"], **dict(zip(("changes", "totals", "ratios"), drawn, strict=True))
    )
    write(page, folder / "page.html")


def write_fleet_page(count, folder):
    figures = {"Coverage": folder / "coverage.svg", "Error": folder / "errors.svg"}
    write(fleet_page.draw_coverage(COVERAGE), figures["Coverage"])
    write(fleet_page.draw_errors(EVALUATION), figures["Error"])
    write(fleet_page.draw_fleet(EVALUATION, ATTACKS, APPLICATIONS * count, figures), folder / "page.html")


def write_validation_page(count, folder):
    tables = [
        {"methods": {method: dict.fromkeys(MARKS, 3.0) | {"slope_ratio": 1.02, "spurious": 0.1} for method in METHODS}}
    ] * count
    cases = [{"title": case.title, "tables": tables} for case in CASES.values()]
    (folder / "page.html").write_text(as_page(cases, "full", 1), encoding="utf-8")


PAGES = {"comparison": write_comparison_page, "fleet": write_fleet_page, "validation": write_validation_page}


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1920, "light"), (1440, "dark")])
@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.slow), 60])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_silent_fits_and_can_be_read(name, count, width, scheme, tmp_path, watched):
    PAGES[name](count, tmp_path)
    watched.page.emulate_media(color_scheme=scheme)
    watched.page.set_viewport_size({"width": width, "height": 900})
    page = watched.show(tmp_path / "page.html")
    page.wait_for_timeout(100)
    assert watched.said == []
    assert watched.outside() == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert unreadable(page) == []


def test_the_fleets_applications_fit_with_the_intervals_of_a_whole_day(tmp_path, watched):
    """Their table scrolls where it must, which hides a column that does not fit."""
    wide = {"application": "model08_v1", "reports": 17_078.0, "reports_low": 16_998.0, "reports_high": 17_158.0}
    figures = {"Coverage": tmp_path / "coverage.svg"}
    write(fleet_page.draw_coverage(COVERAGE), figures["Coverage"])
    rows = [row | wide for row in APPLICATIONS]
    write(fleet_page.draw_fleet(EVALUATION, ATTACKS, rows, figures), tmp_path / "page.html")
    watched.page.set_viewport_size({"width": 1280, "height": 900})
    page = watched.show(tmp_path / "page.html")
    fits = "[...document.querySelectorAll('div')].every(one => one.scrollWidth <= one.clientWidth + 1)"
    assert page.evaluate(fits)
