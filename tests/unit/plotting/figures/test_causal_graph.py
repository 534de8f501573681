"""Causal graphs: what is drawn, that nothing overlaps, and what is said where there is nothing to draw."""

import itertools
import re

import pytest
from causal_samples import FEATURES, graph_of
from plotting_samples import parsed
from variability_samples import HOSTILE, NAMES

from causeway.plotting.drawing import theme
from causeway.plotting.drawing.page import write
from causeway.plotting.figures.causal_graph import (
    MOST_ARROWS,
    Box,
    Shapes,
    arrow_of,
    arrows_into,
    draw_causal_graph,
    draw_context_graph,
)
from causeway.plotting.pages.causes_page import draw_causal_graphs

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg):
    return [element.text for element in parsed(svg).iter(f"{SVG}text")]


def edge(**changes):
    base = {"source": "f", "target": "t", "kind": "directed", "sign": "+", "effect": 0.3, "q_value": 0.001}
    base |= {
        "contribution_percent": 8.0,
        "contribution_low": 7.0,
        "contribution_high": 9.0,
        "variance_percent": 34.2,
        "variance_low": 27.0,
        "variance_high": 41.0,
        "robustness": 0.38,
        "verdict": "supported",
    }
    return base | changes


def test_signs_kinds_and_robustness_decide_how_an_arrow_looks():
    raises = arrow_of(edge())
    lowers = arrow_of(edge(sign="-"))
    assert (raises.colour, raises.head, raises.dashed, raises.label) == (
        theme.RAISES,
        "normal",
        False,
        "raises the deviation, 34 % [27, 41]",
    )
    assert (lowers.colour, lowers.head, lowers.label) == (theme.LOWERS, "empty", "lowers the deviation, 34 % [27, 41]")
    assert raises.details == ("supported, robust 0.38",)
    assert arrow_of(edge(target="memory_stall")).label == "raises the memory stall, 34 % [27, 41]"
    of_level = arrow_of(edge(sign="-") | {"level": "2", "sign_of": "value"})
    assert of_level.label == "= 2: lowers the value, 34 % [27, 41]", "the number is a level, not an amount"
    assert arrow_of(edge(robustness=0.26)).dashed
    assert not arrow_of(edge(robustness=None)).dashed
    for grey in (
        edge(sign="?"),
        edge(kind="undirected"),
        edge(kind="bidirected"),
        edge(source="unexplained", sign="?"),
    ):
        assert arrow_of(grey).colour == theme.UNDECIDED
    assert arrow_of(edge(kind="undirected")).head == "none"
    assert arrow_of(edge(variance_percent=None)).label == "raises the deviation, share not measured"
    widths = [arrow_of(edge(variance_percent=share)).width for share in (1, 10, 60)]
    assert widths == sorted(widths)
    assert widths[2] > 3 * widths[0]


def test_arrows_stand_in_the_order_of_the_shares_that_they_show():
    shares = {"a": (5.0, 60.0), "b": (50.0, 10.0), "c": (20.0, 30.0)}
    edges = [
        edge(source=name, variance_percent=shown, contribution_percent=other) for name, (shown, other) in shares.items()
    ]
    arrows, rest, omitted = arrows_into({"edges": edges, "target_node": "t"})
    assert [arrow.source for arrow in arrows] == ["b", "c", "a"]
    assert (rest, omitted) == (None, 0)


def test_the_hover_and_the_legend_name_the_variance():
    hover = arrow_of(edge(target="kernel_variability")).hover
    assert "raises the deviation, 34 % [27, 41] of the variance of the durations" in hover
    drawing = "".join(texts(draw_causal_graph(graph_of(causes=2), "whole dataset")))
    assert "width: % of the variance of the durations [interval]" in drawing
    several = "".join(texts(draw_causal_graph(graph_of(causes=2) | {"n_kernels": 8}, "whole dataset")))
    assert "% of the kernels' standardised variance of the durations, each kernel alike [interval]" in several


@pytest.mark.parametrize("causes", [1, 2, 5, 9, 15, 22])
def test_the_largest_arrows_are_drawn_each_with_its_label(causes):
    graph = graph_of(causes=causes)
    svg = draw_causal_graph(graph, "whole dataset")
    drawn = texts(svg)
    percents = sum(
        bool(re.search(r"\d %", text)) and "found in" not in text and not text.startswith("width") for text in drawn
    )
    assert percents == min(causes, MOST_ARROWS) + 1, "the unexplained share has an arrow of its own"
    assert any(text.startswith("unexplained") for text in drawn)
    assert any("weaker arrow" in text for text in drawn) == (causes > MOST_ARROWS)
    assert min(float(element.get("font-size")) for element in parsed(svg).iter(f"{SVG}text")) >= 12, "9 pt"


@pytest.mark.parametrize("causes", [0, 1, 6])
def test_nothing_is_cut_off(causes):
    svg = parsed(draw_causal_graph(graph_of(causes=causes), "a kernel with a name of forty characters…"))
    width = float(svg.get("width"))
    height = float(svg.get("height"))
    for group in svg.iter(f"{SVG}g"):
        if move := re.match(r"translate\((\S+) (\S+)\)", group.get("transform") or ""):
            for shape in group.iter(f"{SVG}path"):
                places = [
                    tuple(map(float, place.split(","))) for place in re.findall(r"[-\d.]+,[-\d.]+", shape.get("d"))
                ]
                assert all(0 <= x + float(move[1]) <= width for x, _ in places)
                assert all(0 <= y + float(move[2]) <= height for _, y in places)


def test_a_search_without_result_is_a_small_figure_that_says_so():
    svg = draw_causal_graph(graph_of(causes=0), "saxpy")
    said = " ".join(texts(svg))
    assert "No cause found: 412 effective samples; an effect above 8 %" in said
    assert float(parsed(svg).get("height")) < 200
    assert "polygon" not in svg


def test_hostile_names_are_shown_not_run():
    graph = graph_of(causes=2, scope="k", name=HOSTILE)
    graph["nodes"][0]["name"] = graph["edges"][0]["source"] = "<script>alert(1)</script>"
    graph["nodes"][0]["members"] = [f"<b>{i}" for i in range(5000)]
    svg = draw_causal_graph(graph, "<svg onload=x>")
    assert parsed(svg) is not None
    assert "<script" not in svg
    assert "<b" not in svg
    assert len(svg) < 40_000


@pytest.mark.parametrize("count", [5, 20, 60])
def test_boxes_never_overlap(count):
    boxes = {f"n{i}": Box(["w" * (3 + i % 13)], "#ffffff") for i in range(count)}
    boxes["target"] = Box(["target"], "#ffffff", least=(140.0, 60.0))
    edges = {(f"n{i}", "target"): {"minlen": 1 + i % 3} for i in range(min(count, 15))}
    edges |= {(f"n{i}", f"n{i + 1 + i % 4}"): {} for i in range(count - 5)}
    shapes = Shapes(boxes, edges, last="target")
    placed = [(*shapes.centres[name], *box.size) for name, box in boxes.items()]
    for (x, y, width, height), (other_x, other_y, other_width, other_height) in itertools.combinations(placed, 2):
        aside = abs(x - other_x) >= (width + other_width) / 2 - 0.5
        assert aside or abs(y - other_y) >= (height + other_height) / 2 - 0.5
    assert max(x + width / 2 for x, _, width, _ in placed) <= placed[-1][0] + placed[-1][2] / 2 + 0.5
    assert set(shapes.drawn) == {*boxes, *edges}


@pytest.mark.parametrize("causes", [5, 15])
def test_labels_of_arrows_never_overlap(causes):
    svg = draw_causal_graph(graph_of(causes=causes), "whole dataset", alone=False)
    labels = [element for element in parsed(svg).iter(f"{SVG}text") if re.match(r"(raises|lowers|sign)", element.text)]
    places = [(float(label.get("x")), float(label.get("y"))) for label in labels]
    assert len({x for x, _ in places}) == 1, "labels stand in one column"
    heights = sorted(y for _, y in places)
    assert min(b - a for a, b in itertools.pairwise(heights)) >= 30


def test_context_graph_only_where_features_hang_together():
    assert draw_context_graph(graph_of(causes=3), "x") is None
    svg = draw_context_graph(graph_of(causes=15, context=70), "x")
    shown = set(texts(svg))
    assert sum(text.startswith("gpu_counter") for text in shown) == 60 - 15
    assert any("25 with fewer edges not drawn" in text for text in shown)


def test_the_page_holds_every_scope_and_equal_input_gives_equal_bytes(tmp_path):
    graphs = [graph_of(causes=6)] + [
        graph_of(scope=f"k{i}", name=name, causes=i + 1, context=4) for i, name in enumerate((*NAMES, HOSTILE))
    ]
    for folder in ("a", "b"):
        for name, drawing in draw_causal_graphs(graphs, "Causes of x").items():
            write(drawing, tmp_path / folder / name)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == sorted(
        ["index.html", *(f"{g['scope']}.svg" for g in graphs), *(f"k{i}.context.svg" for i in range(7))]
    )
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)
    page = (tmp_path / "a" / "index.html").read_text()
    assert page.count("<figure") == len(graphs)
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    for name in names:
        assert f'href="{name}"' in page or name == "index.html"


def test_features_of_an_unknown_tier_have_a_column_of_their_own():
    graph = graph_of(causes=3, features=(("clock_hz", "device state", "clock", "Hz"), *FEATURES))
    assert "device state" in texts(draw_causal_graph(graph, "x"))
