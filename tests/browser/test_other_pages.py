"""Pages beside the default run's, at 1280 and 1920 pixels: comparison, fleet and error rate; silent, no network, every text readable."""

import pytest
from compared_samples import compared
from test_fleet_page import APPLICATIONS, ATTACKS, COVERAGE, EVALUATION

from causeway.plotting import comparison, comparison_page, fleet, fleet_page
from causeway.validation.cases import CASES
from causeway.validation.page import METHODS, as_page
from looks import cut, faint, fitted, overlapping

LONG = "void at::native::vectorized_elementwise_kernel<{0}, at::native::BUnaryFunctor<float, bool, at::native::MulFunctor<{0}>>>(int)"
MARKS = "true false missed leaks signs_given signs_right signs_asked share_error proxies proxies_fragile causes_fragile cpu_s".split()


def write_comparison_page(count, folder):
    document, rows = compared([LONG.format(number) for number in range(count)])
    figures = [folder / f"{name}.svg" for name in ("changes", "totals", "ratios")]
    comparison.plot_changes(document, rows, figures[0])
    comparison.plot_totals(document, figures[1])
    comparison.plot_ratios(document, rows, figures[2])
    comparison_page.write_page(document, rows, figures, folder / "page.html")


def write_fleet_page(count, folder):
    figures = {"Coverage": folder / "coverage.svg", "Error": folder / "errors.svg"}
    fleet.plot_coverage(COVERAGE, figures["Coverage"])
    fleet.plot_errors(EVALUATION, figures["Error"])
    fleet_page.write_page(EVALUATION, ATTACKS, APPLICATIONS * count, figures, folder / "page.html")


def write_validation_page(count, folder):
    tables = [{"methods": {method: dict.fromkeys(MARKS, 3.0) | {"slope_ratio": 1.02, "spurious": 0.1} for method in METHODS}}] * count
    cases = [{"title": case.title, "tables": tables} for case in CASES.values()]
    (folder / "page.html").write_text(as_page(cases, "full", 1), encoding="utf-8")


PAGES = {"comparison": write_comparison_page, "fleet": write_fleet_page, "validation": write_validation_page}


@pytest.mark.parametrize("width", [1280, 1920])
@pytest.mark.parametrize("count", [1, 60])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_silent_fits_and_can_be_read(name, count, width, tmp_path, watched):
    PAGES[name](count, tmp_path)
    watched.page.set_viewport_size({"width": width, "height": 900})
    page = watched.show(tmp_path / "page.html")
    page.wait_for_timeout(100)
    assert watched.said == []
    assert watched.outside() == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    fitted(page)
    assert overlapping(page) == []
    assert cut(page) == []
    assert faint(page) == []
