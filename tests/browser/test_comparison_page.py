"""A comparison's page in a browser, with kernel names that attack it: no error, no network, no sideways scroll,
tables that sort.
"""

import pytest

from causeway.core.results import read_comparisons
from causeway.findings.comparison import comparison_findings
from causeway.plotting.drawing.page import inline, write
from causeway.plotting.figures.comparison import draw_changes, draw_ratios, draw_totals
from causeway.plotting.pages.comparison_page import draw_comparison
from comparison_runs import write_comparison, write_run

HOSTILE = "<img src=x onerror=\"document.title='owned'\">::</script>kernel<" + "x" * 3000 + ">(int)"

WIDE = "IMPLICIT_CONVOLVE_SGEMM_OF_WIDE_LETTERS"


@pytest.fixture(scope="module")
def page_of(tmp_path_factory):
    """Return the page of two runs: one kernel slower, one new, one gone, one with a hostile name."""
    root = tmp_path_factory.mktemp("comparison")
    before = write_run(root / "a", 1, 100, names=(HOSTILE, WIDE, "reduce", "old_<1>(int)", "last"))
    after = write_run(
        root / "b", 2, 100, names=(HOSTILE, WIDE, "reduce", "last", "brand", "new"), factors={"reduce": 1.5}
    )
    ((document, rows),) = read_comparisons([write_comparison(root, [["a"], ["b"]], {"a": before, "b": after})])
    drawn = {
        "changes": inline(draw_changes(document, rows)),
        "totals": inline(draw_totals(document)),
        "ratios": inline(draw_ratios(document, rows)),
    }
    write(
        draw_comparison(document, rows, [one.headline for one in comparison_findings(document, rows)], **drawn),
        root / "comparison.html",
    )
    return root / "comparison.html"


@pytest.mark.parametrize("width", [1100, 1280, 1920])
def test_the_page_is_silent_needs_no_network_and_fits(page_of, watched, width):
    page = watched.show(page_of)
    page.set_viewport_size({"width": width, "height": 1080})
    page.wait_for_timeout(200)
    assert watched.said == []
    assert watched.outside() == []
    assert page.title() == "Causeway: a → b"
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    cut = "Array.from(document.querySelectorAll('.wide')).map(box => box.scrollWidth - box.clientWidth)"
    assert max(page.evaluate(cut)) <= 0, "a table that is cut hides its verdicts"


def test_kernels_sort_by_their_change(page_of, watched):
    page = watched.show(page_of)
    page.click("table.sortable th:nth-child(5) button")
    shown = page.eval_on_selector_all(
        "table.sortable tbody td:nth-child(5)", "cells => cells.map(c => c.dataset.v === '' ? -1e9 : +c.dataset.v)"
    )
    assert shown == sorted(shown, reverse=True)
    assert len(shown) > 3


def test_texts_of_the_figures_do_not_overlap(page_of, watched):
    page = watched.show(page_of)
    overlaps = """() => Array.from(document.querySelectorAll('figure svg')).map(function (svg) {
      var boxes = Array.from(svg.querySelectorAll('text')).map(function (t) { return t.getBoundingClientRect(); }), n = 0;
      boxes.forEach(function (a, i) { boxes.slice(i + 1).forEach(function (b) {
        n += a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3; }); });
      return n; })"""
    assert page.evaluate(overlaps) == [0, 0, 0]
