"""Ticks and colours."""

import html
import io
import itertools
import re

import pytest

from causeway.plotting.drawing import theme


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 17), (0.1, 0.13), (5, 5), (0, 1e12)])
def test_ticks_are_round_and_inside(low, high):
    ticks = theme.nice_ticks(low, high)
    assert 1 <= len(ticks) <= 7
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)
    assert ticks == sorted(ticks)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_the_sequential_scale_darkens_without_a_step_back():
    shades = [luminance(theme.shade(i / 50)) for i in range(51)]
    assert all(a > b for a, b in itertools.pairwise(shades))
    assert theme.shade(-1) == theme.SEQUENTIAL[0]
    assert theme.shade(2) == theme.SEQUENTIAL[-1]


@pytest.mark.parametrize(
    "colour", [theme.INK, theme.MUTED, theme.LOWERS, *theme.VERDICTS.values(), *theme.STATUS.values()]
)
def test_text_colours_have_contrast_on_white(colour):
    assert (1 + 0.05) / (luminance(colour) + 0.05) >= 4.5, "WCAG 2.1, 1.4.3"


def test_raising_and_lowering_differ_in_grey_print_by_more_than_colour():
    assert abs(luminance(theme.RAISES) - luminance(theme.LOWERS)) > 0.05
    assert abs(luminance(theme.LOWERS) - luminance(theme.UNDECIDED)) > 0.05


def test_the_last_digits_of_the_layout_do_not_reach_the_bytes(monkeypatch):
    """Its solver orders its equations by places in memory: the same figure lay some 1e-9 apart in one run of two."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from causeway.plotting.drawing.charts import panels

    execute = ConstrainedLayoutEngine.execute

    def drawn(noise):
        def noisy(engine, figure):
            execute(engine, figure)
            for axis in figure.axes:
                axis.set_position([edge + noise for edge in axis.get_position(original=True).bounds], "original")

        monkeypatch.setattr(ConstrainedLayoutEngine, "execute", noisy)
        with theme.drawing():
            figure, axes = panels("title", "below", width=8, height=3, ncols=3)
            for axis in axes[0]:
                axis.plot([1, 2], [3, 4])
                axis.set_title("a panel")
        return theme.svg_text(figure)

    texts = {drawn(noise) for noise in (0, 1e-9, -1e-9)}
    assert len(texts) == 1
    assert drawn(0.01) not in texts


def test_lines_of_a_figure_have_two_decimals_and_names_all_theirs():
    """Against the same figure as matplotlib writes it; a name may look like a path."""
    import matplotlib.pyplot as plt

    def drawn():
        figure, axes = plt.subplots()
        axes.plot([0.123456, 1.7, 2.9], [3.14159, 1, 2])
        axes.set_title('<path d="M 0.123456 7.654321"')
        return figure

    raw = io.StringIO()
    with theme.drawing():
        drawn().savefig(raw, format="svg", metadata={"Date": None, "Creator": None})
    plt.close("all")
    with theme.drawing():
        figure = drawn()
    text = theme.svg_text(figure)
    assert 'd="M 0.123456 7.654321"' in html.unescape(text)
    paths = [[float(n) for n in re.findall(r"-?\d+\.?\d*", one)] for one in re.findall(r'<path d="([^"]*)"', text)]
    as_written = [
        [float(n) for n in re.findall(r"-?\d+\.?\d*", one)] for one in re.findall(r'<path d="([^"]*)"', raw.getvalue())
    ]
    assert len(paths) == len(as_written) > 4
    for ours, full in zip(paths, as_written, strict=True):
        assert ours == pytest.approx(full, abs=0.00501)
    assert not re.search(r'<path d="[^"]*\.\d{3}', text)
