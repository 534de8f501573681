"""Bars, matrix and page of the examined causes, on rows written by hand."""

import re
from xml.etree import ElementTree

import plotting_samples as samples
import pytest
from causal_samples import contribution_rows
from plotting_samples import as_svg
from variability_samples import kernels_table

from causeway.causal.report.documents import write_rows
from causeway.core.results import Search, read_searches
from causeway.core.tables import SCHEMAS
from causeway.plotting.drawing import theme
from causeway.plotting.figures.kernel_agreement import draw_kernel_agreement
from causeway.plotting.pages.causes_page import (
    MOST_SLOW,
    differing_estimates,
    draw_as_published,
    refutations_of,
    share_bars,
    slow_of,
    what_if_bars,
)
from report import plot_figures

WHAT_IF = {
    "feature": "x",
    "from": "as it was",
    "to": "none",
    "change_percent": -31.0,
    "change_low": -38.0,
    "change_high": -22.0,
}


def words_of(drawing):
    return [element.text for element in ElementTree.fromstring(str(drawing)).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314 - our own


def places_of(table, kind):
    """Return where the bars or intervals of a table begin and end, in percent of its axis."""
    found = re.findall(rf'class="{kind}" style="left:([\d.]+)%;width:([\d.]+)%', str(table))
    return [(float(left), float(left) + float(width)) for left, width in found]


def test_bars_show_the_shares_of_the_variance_that_they_name():
    rows = [
        {"feature": name, "sign": "+", "verdict": "supported", "level": None}
        | {f"contribution_{end}": 88.0 for end in ("percent", "low", "high")}
        | {f"variance_{end}": number for end, number in (("percent", share), ("low", share - 3), ("high", share + 3))}
        for name, share in (("a", 61.0), ("unexplained", 39.0))
    ]
    drawing = str(share_bars(rows, "whole dataset", "kernel_variability"))
    first, second = (end - begin for begin, end in places_of(drawing, "bar"))
    assert first / second == pytest.approx(61 / 39, rel=0.02)
    assert "61 % [58, 64]" in drawing
    assert "39 % [36, 42]" in drawing
    assert "88" not in re.sub("<[^>]*>", "", drawing)
    assert "% of the variance of the durations" in drawing


def test_a_lowering_cause_stands_on_the_left_with_its_interval():
    rows, _ = contribution_rows(3)
    rows[0]["sign"] = "+"
    rows[1]["sign"] = "-"
    drawing = str(share_bars(rows, "whole dataset", "kernel_variability"))
    zero = places_of(drawing, "zero")[0][0]
    bars = places_of(drawing, "bar")
    assert bars[0][0] == pytest.approx(zero, abs=0.02)
    assert bars[1][1] == pytest.approx(zero, abs=0.02)
    for (left, right), (low, high) in zip(bars, places_of(drawing, "interval"), strict=False):
        assert low <= max(right, left + 0.01)
        assert high >= left


def test_a_refused_what_if_stands_with_its_reason():
    refused = dict.fromkeys(("change_percent", "change_low", "change_high")) | {
        "verdict": "refused",
        "reason": "refused: never seen",
    }
    words = str(what_if_bars([WHAT_IF | {"verdict": "supported", "reason": None}, WHAT_IF | refused], "k"))
    assert "-31 % [-38, -22], supported" in words
    assert "refused: never seen" in words


def test_the_matrix_frames_what_is_opposite():
    names = {"k": "one", "l": "two", "m": "three", "n": "four"}
    row = {"feature": "x", "sign_of": "value", "level": None, "verdict": "supported"}
    rows = {
        "dataset": row | {"sign": "+", "variance_percent": 30.0},
        "k": row | {"sign": "-", "variance_percent": 40.0},
        "l": row | {"sign": "+", "variance_percent": 40.0},
        "m": row | {"sign": "-", "variance_percent": 20.0, "sign_of": "target"},
        "n": {"feature": "unexplained", "sign": "?", "variance_percent": 100.0, "verdict": "inconclusive"},
    }

    def drawn(**facts):
        searches = [Search({"scope": scope}, [row | facts], "") for scope, row in rows.items()]
        return as_svg(draw_kernel_agreement(searches, names, "t", "kernel_variability"))

    drawing = drawn()
    assert drawing.count("stroke: #dd7a1f") == 1  # not where the sign is about something else
    assert {"▼ 40", "▲ 40", "▲ 30", "▼ 20", "one", "two", "three", "whole dataset"} <= set(words_of(drawing))
    assert "one, x: supported, opposite to the whole dataset<" in drawing
    assert "four" not in words_of(drawing)
    assert "No cause was found" in as_svg(draw_kernel_agreement([], {"k": "one"}, "t", "kernel_variability"))
    grey = drawn(verdict="inconclusive")
    assert theme.LOWERS_ON_COLOUR in drawing
    assert not [colour for colour in (theme.LOWERS_ON_COLOUR, "#d9dde2", "#fbdcd9") if colour in grey]


def test_the_table_of_refutations():
    base = {"feature": "x", "effect": 0.4, "p_value": None, "note": None}
    rows = [
        base | {"refuter": "future_exposure", "refuted_effect": 0.01, "passed": True},
        base | {"refuter": "robustness_value", "refuted_effect": 0.2, "passed": False},
    ]
    ((feature, attempts),) = refutations_of(rows)
    assert feature == "x"
    assert attempts == ["✓ 0.40 → 0.01", "✗ 0.20"]
    assert refutations_of([]) == []
    ((_, nothing),) = refutations_of([base | {"refuter": "future_exposure", "refuted_effect": -0.001, "passed": True}])
    assert nothing == ["✓ 0.40 → 0.00", "–"]


def test_slow_launches_stand_with_their_parts():
    same = {"kernel": "k", "rank": 2, "launch": 7, "duration_ns": 9000, "deviation_ns": 5000}
    parts = [("clock", "1,300 MHz", 6000), ("unexplained", None, -1000)]
    rows = [
        same | {"position": position, "feature": feature, "value": value, "attributed_ns": part}
        for position in range(1, 8)
        for feature, value, part in parts
    ]
    lines = slow_of(rows, {"k": "kernel"}, {})
    assert len(lines) == MOST_SLOW
    assert lines[0] == {
        "kernel": "kernel",
        "place": "rank 2, launch 7",
        "duration": "9 µs",
        "deviation": "+5 µs",
        "parts": "+6 µs clock = 1,300 MHz; −1 µs unexplained",
    }


def test_the_page_is_whole_and_written_the_same_again(tmp_path):
    root = samples.write_dataset(tmp_path / "results", scopes=2) / "kernel_variability"
    for folder in (path.parent for path in (root / "causal").glob("*/graph.json")):
        for table in ("refutations", "slow_launches"):
            write_rows([], folder / f"{table}.parquet", table, {})
    over = dict.fromkeys(SCHEMAS["across_kernels"].names) | {"feature": "x", "kernels": ["k"], "searched": 2}
    over["sentence"] = "x acts in 1 of 2 kernels."
    write_rows([over], root / "causal" / "across_kernels.parquet", "across_kernels", {})
    pages = []
    names = dict(zip(*(kernels_table()[column].to_pylist() for column in ("kernel", "name")), strict=True))
    for _ in range(2):
        searches = plot_figures.read_examined(root / "causal" / "scopes.json")
        plot_figures.draw_examined(root, searches, names, "demo")
        pages.append((root / "figures" / "examined_causes.html").read_bytes())
    assert pages[0] == pages[1]
    text = pages[0].decode()
    assert text.count("<section") == 3
    assert "http" not in text.replace("http://www.w3.org", "")
    assert text.index("x acts in 1 of 2 kernels.") < text.index("<section")


def test_estimates_that_differ_are_shown_and_others_are_not():
    row = {"feature": "x", "level": None, "estimates_agree": False, "second_change_percent": 2.04}
    row |= {"second_change_low": 1.0, "second_change_high": 3.0}
    row |= {"mean_change_percent": 10.0, "mean_change_low": 9.0, "mean_change_high": 11.0}
    assert differing_estimates([row, row | {"estimates_agree": True}, row | {"estimates_agree": None}, {}]) == [
        "x: dowhy's regression of the launches near both levels gives +2.0 % [+1.0, +3.0], the model of log time +10.0 %"
        " [+9.0, +11.0]"
    ]


def test_graphs_as_published_stand_beside_ours_with_what_ours_says_of_each_column(tmp_path):
    root = samples.write_dataset(tmp_path / "results", scopes=1) / "kernel_variability"
    searches = read_searches([root / "causal" / "scopes.json"]).popitem()[1]
    whole, kernel = (search.graph["scope"] for search in searches)
    named = next(row["feature"] for row in searches[0].contributions if row["verdict"] == "supported")
    same = {"rank": 0, "scope": whole, "launches": 40}
    rows = [
        same | {"feature": named, "slope": -0.6, "contribution_percent": 34.0},
        same | {"feature": "sm_cycles", "slope": 0.5, "contribution_percent": 20.0},
        same | {"rank": 1, "feature": "sm_cycles", "slope": 0.4, "contribution_percent": 12.0},
        same | {"scope": kernel, "feature": None, "slope": None, "contribution_percent": None},
    ]
    searches[0].graph["dropped"].append({"feature": "sm_cycles", "kind": "leaked_by_name", "reason": "cycles"})
    text = draw_as_published(searches, rows, "title")
    lines = [re.findall(r"<td[^>]*>(.*?)</td>", line) for line in re.findall(r"<tr><td.*?</tr>", text)]
    assert [(name.removeprefix("<code>").removesuffix("</code>"), share) for name, share, _ in lines] == [
        (named, "0: −34 %"),
        ("sm_cycles", "0: 20 %; 1: 12 %"),
    ]
    assert "supported" in lines[0][2]
    assert lines[1][2] == "cycles"
    assert all(words in text for words in ("rank 0, 40 launches", "rank 1, 40 launches", "No column has an arrow"))
    drawings = text.split('<section id="')[1].split("<figcaption>")
    assert theme.LOWERS in drawings[0]
    assert theme.LOWERS not in drawings[1]
    assert "supported" not in drawings[0] + drawings[1], "an arrow as published has no verdict"
