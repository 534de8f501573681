"""Every kind of static figure in a browser, with hundreds of items and with few: no text over another, none cut off,
none too faint.
"""

import pytest
from causal_samples import graph_of
from compared_samples import compared
from test_efficiency_figure import bins, judged, numbered, runs_of
from test_figure import drawn
from test_fleet_page import COVERAGE, EVALUATION
from test_model import PLANTED
from variability_samples import bins_table, kernels_table, ranking_table

from causeway.core.results import Search
from causeway.plotting.drawing.labels import short_names
from causeway.plotting.drawing.page import write
from causeway.plotting.figures import device_time, efficiency, kernels, stragglers
from causeway.plotting.figures.bins import draw_bins
from causeway.plotting.figures.causal_graph import draw_causal_graph, draw_context_graph
from causeway.plotting.figures.comparison import draw_changes, draw_ratios, draw_totals
from causeway.plotting.figures.kernel_agreement import HEAD, draw_kernel_agreement
from causeway.plotting.pages.fleet_page import draw_coverage, draw_errors
from looks import cut, faint, overlapping, show_drawing, unreadable
from support import few

SIZES = few([200, 1, 5, 60], 1)
"""Hundreds of items in every run; one, a few, and some dozens among the slow tests."""
LONG = (
    "void at::native::vectorized_elementwise_kernel<{0}, at::native::BUnaryFunctor<float, bool,"
    " at::native::MulFunctor<{0}>>>(int)"
)


def names(count):
    """Return kernel names that differ only deep inside."""
    return [LONG.format(number) for number in range(count)]


def of_kernels(count, path):
    write(kernels.draw_kernels(kernels_table(names(count)), dataset="demo", target="kernel_variability"), path)


def of_ranks(count, path):
    table = bins_table(ranks=count, bins=40)
    write(
        draw_bins(table, ranking_table(table), {"method": "zero"}, dataset="demo", target="kernel_variability"),
        path,
    )


def of_bins(count, path):
    table = bins_table(ranks=2, bins=20 * count)
    write(
        draw_bins(table, ranking_table(table), {"method": "zero"}, dataset="demo", target="kernel_variability"),
        path,
    )


def of_causes(count, path):
    write(draw_causal_graph(graph_of(name=LONG, causes=count), "whole dataset"), path)


def of_agreement(count, path):
    listed = names(count)
    short = short_names(listed, HEAD)
    searches = [
        Search(
            {"scope": scope},
            [
                {
                    "feature": f"a_counter_with_a_long_name_{cause}",
                    "sign": "+" if scope == "dataset" else "-+?"[cause % 3],
                    "sign_of": "value",
                    "level": None,
                    "variance_percent": 100.0 / (cause + 1),
                    "verdict": "inconclusive" if scope == "dataset" else "supported",
                }
                for cause in range(min(count, 40))
            ],
            "",
        )
        for scope in ("dataset", *map(str, range(count)))
    ]
    write(
        draw_kernel_agreement(
            searches,
            {str(n): short[name] for n, name in enumerate(listed)},
            "Causes of kernel variability",
            "kernel_variability",
        ),
        path,
    )


def of_trees(count, path):
    write(efficiency.draw_efficiency_trees(numbered(count), "demo"), path)


def of_rank_map(count, path):
    write(device_time.draw_rank_map(bins(range(count)), "demo", "clocks by session starts"), path)


def of_series(count, path):
    write(efficiency.draw_series(runs_of(min(count, 20))), path)


def of_stragglers(count, path):
    document = judged()
    group = document["groups"][0]
    others, late = group["ranks"]
    ranks = [others | {"rank": rank} for rank in range(count)] + [late | {"rank": count}]
    waits = [[9 * (i < count and j == count) for j in range(count + 1)] for i in range(count + 1)]
    document["groups"] = [group | {"ranks": ranks, "n_ranks": count + 1, "matrix_ns": waits}]
    write(stragglers.draw_stragglers(document, "demo"), path)


def of_context(count, path):
    write(draw_context_graph(graph_of(causes=min(count, 6), context=count), "whole dataset"), path)


def of_lost_time(count, path):
    """Devices of which one part takes nearly all, another one each time."""
    document = numbered(count)
    parts = document["waterfall_ns"]
    total = document["elapsed_ns"] * document["device"]["n_devices"]
    large = sorted(parts)[count % len(parts)]
    small = dict.fromkeys(parts, total // 1000)
    document["waterfall_ns"] = small | {large: total - sum(value for part, value in small.items() if part != large)}
    write(device_time.draw_lost_time(document, LONG), path)


def of_changes(count, path):
    write(draw_changes(*compared(names(count))), path)


def of_totals(count, path):
    write(draw_totals(compared(names(count))[0]), path)


def of_ratios(count, path):
    write(draw_ratios(*compared(names(3), ranks=count)), path)


FIGURES = {
    "kernels": of_kernels,
    "ranks": of_ranks,
    "bins": of_bins,
    "causes": of_causes,
    "agreement": of_agreement,
    "trees": of_trees,
    "rank_map": of_rank_map,
    "series": of_series,
    "stragglers": of_stragglers,
    "context": of_context,
    "lost_time": of_lost_time,
    "changes": of_changes,
    "totals": of_totals,
    "ratios": of_ratios,
}


def is_readable(watched, path):
    show_drawing(watched.page, path)
    assert watched.page.locator("svg text").count() > 2
    assert unreadable(watched.page) == []


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.filterwarnings("ignore:This figure includes Axes that are not compatible with tight_layout")
def test_every_text_of_a_figure_can_be_read(figure, count, tmp_path, watched):
    FIGURES[figure](count, tmp_path / "figure.svg")
    is_readable(watched, tmp_path / "figure.svg")


def test_every_text_of_the_figures_of_other_targets_can_be_read(tmp_path, watched):
    drawn(tmp_path, PLANTED, "srun", None, 0.0)
    write(draw_coverage(COVERAGE), tmp_path / "coverage.svg")
    write(draw_errors(EVALUATION), tmp_path / "errors.svg")
    for name in ("scaling", "coverage", "errors"):
        is_readable(watched, tmp_path / f"{name}.svg")


def test_what_cannot_be_read_would_be_found(tmp_path, watched):
    words = '<text x="20" y="20" font-size="12">one</text><text x="25" y="22" font-size="12">two</text>'
    more = (
        '<text x="180" y="60" font-size="12">three</text><text x="20" y="90" font-size="12" fill="#999999">four</text>'
    )
    slanted = "".join(
        f'<text x="{20 + 30 * i}" y="160" font-size="12" transform="rotate(-45 {20 + 30 * i} 160)">turned</text>'
        for i in range(4)
    )
    frame = '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="180">'
    (tmp_path / "bad.svg").write_text(f"{frame}{words}{more}{slanted}</svg>")
    show_drawing(watched.page, tmp_path / "bad.svg")
    assert overlapping(watched.page) == ["one | two"]
    assert cut(watched.page) == ["three"]
    assert faint(watched.page) == ["four: 2.85"]
    assert unreadable(watched.page) == ["one | two", "three", "four: 2.85"]


def test_what_is_faint_far_down_a_page_would_be_found_and_the_page_stays_where_it_was(watched):
    page = watched.page
    grey = "".join(
        f"<p style='position:absolute;top:{top}px;background:{ground};color:#999999'>at {top} px</p>"
        for top, ground in ((0, "black"), (880, "white"), (3000, "#222222"), (70_000, "white"))
    )
    page.set_content(f"<body style='background:white'>{grey}<div style='height:90000px'></div></body>")
    page.evaluate("scrollTo(0, 500)")
    assert faint(page) == ["at 880 px: 2.85", "at 70000 px: 2.85"]
    assert page.evaluate("scrollY") == 500
