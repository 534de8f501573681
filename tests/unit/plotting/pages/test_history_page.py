"""Runs over time: the order, what the latest run has worse and since when, and names from outside."""

import re

from compared_samples import compared, row_of
from plotting_samples import as_svg, parsed

from causeway.plotting.figures.comparison import draw_history
from causeway.plotting.pages.comparison_page import draw_history_page

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<img src=x onerror=alert(1)>"


def history(verdicts_by_kernel, baseline="v0"):
    """Return comparisons of v1, v2, ... with a baseline: per kernel its verdict in each run."""
    runs = len(next(iter(verdicts_by_kernel.values())))
    found = []
    for run in range(runs):
        document, _ = compared(("k", "l"))
        sides = {"baseline": baseline, "candidate": f"v{run + 1}"}
        document |= {side: {**document[side], "dataset": name} for side, name in sides.items()}
        rows = [row_of(run, "run", "time_per_launch", "all kernels", "slower" if run % 2 else "same")]
        rows += [
            row_of(3, "kernel", "time_per_launch", kernel, verdicts[run])
            for kernel, verdicts in verdicts_by_kernel.items()
            if verdicts[run]
        ]
        found.append((document, rows))
    return found


def text_of(page):
    return re.sub(r"<(?:style|script|svg)\b.*?</(?:style|script|svg)>", "", str(page), flags=re.S)


def tables_of(page):
    """Return the rows of a page's tables as lists of the cells' texts."""
    bodies = re.findall(r"<tbody>(.*?)</tbody>", text_of(page), flags=re.S)
    return [
        [
            [" ".join(re.sub(r"<[^>]*>", "", cell).split()) for cell in re.findall(r"<td.*?</td>", row, flags=re.S)]
            for row in re.findall(r"<tr>(.*?)</tr>", body, flags=re.S)
        ]
        for body in bodies
    ]


def test_a_kernel_is_worse_since_the_first_run_without_a_gap():
    page = draw_history_page(
        history(
            {
                "always": ["slower", "slower", "slower", "slower"],
                "again": ["slower", "inconclusive", "slower", "slower"],
                "new_in_between": [None, "slower", "slower", "slower"],
                "repaired": ["slower", "slower", "slower", "same"],
                "faster": ["faster"] * 4,
            }
        ),
        "results",
    )
    runs, kernels = tables_of(page)
    assert [row[0] for row in runs] == ["v1", "v2", "v3", "v4"]
    assert [row[1].split()[-1] for row in runs] == ["same", "slower", "same", "slower"]
    assert {row[0]: (row[1], row[2], row[3]) for row in kernels} == {
        "always": ("slower", "v1", "4"),
        "again": ("slower", "v3", "2"),
        "new_in_between": ("slower", "v2", "3"),
    }


def test_what_was_not_compared_is_said():
    page = draw_history_page(history({"k": ["same"]}), "results")
    ((row,),) = tables_of(page)
    assert row[2:] == ["–"] * 7, "operator calls, efficiency, span, step, copies, idle, variability"
    assert "No comparison claims that a kernel is worse in it." in text_of(page)


def test_each_baseline_has_its_own_part_and_links_lead_to_the_comparisons():
    pairs = [*history({"k": ["same"] * 2}, "old"), *history({"k": ["slower"]}, "older")]
    page = str(draw_history_page(pairs, "results"))
    assert re.findall(r"<h2>Against (\w+)</h2>", page) == ["old", "older"]
    links = re.findall(r'href="([^"]+html)"', page)
    assert links == ["old__v1/comparison.html", "old__v2/comparison.html", "older__v1/comparison.html"]
    assert len(re.findall(r'data-archived="../[0-9a-f]{16}/comparison.html"', page)) == 3


def test_the_figure_has_a_row_for_each_run_in_order():
    svg = parsed(as_svg(draw_history(history({"k": ["same"] * 5}))))
    labels = [one.text for one in svg.iter(f"{SVG}text")]
    assert [label for label in labels if re.fullmatch(r"v\d", label or "")] == ["v1", "v2", "v3", "v4", "v5"]
    long = as_svg(draw_history(history({"k": ["same"] * 100})))
    assert "60 of 100 runs, the latest last" in long
    assert ">v100<" in long
    assert ">v40<" not in long


def test_nothing_in_common_is_no_figure():
    pairs = [(document, []) for document, _ in history({"k": ["same"]})]
    assert "No run has launches in common" in as_svg(draw_history(pairs))


def test_names_from_an_export_are_escaped():
    page = str(draw_history_page(history({HOSTILE: ["slower"], "x" * 100_000: ["slower"]}), "results"))
    assert "<img" not in page
    assert "&lt;img" in page
    assert len(page) < 60_000
