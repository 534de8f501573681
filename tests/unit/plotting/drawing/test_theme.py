"""Numbers, units and colours."""

import itertools
import math

import pytest

from causeway.plotting import theme


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0 ns"), (999, "999 ns"), (1000, "1 µs"), (1_350_000, "1.35 ms"), (61_000_000_000, "61 s"), (123_456_789_000_000, "123,457 s")],
)
def test_times_have_si_units_and_thousands(ns, text):
    assert theme.time(ns) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "ns", "–"),
        (1.5e9, "bytes", "1.5 GB"),
        (512, "bytes", "512 bytes"),
        (1.41e9, "Hz", "1.41 GHz"),
        (12345.6, "", "12,346"),
        (0.00001, "", "1.00e-05"),
        (0.3, "ratio", "0.3"),
        (6_100_000.0, "sectors", "6.1 M sectors"),
        (45_000.0, "sectors", "45,000 sectors"),
    ],
)
def test_quantities(value, unit, text):
    assert theme.quantity(value, unit) == text


def test_percent_as_on_an_arrow():
    assert theme.percent(34.2, 27.4, 40.6) == "34 % [27, 41]"
    assert theme.percent(0.62, 0.06, 1.2) == "0.6 % [0.1, 1]"
    assert theme.percent(0.01, 0.0, 0.04) == "<0.1 % [0, <0.1]", "what is there never rounds to nothing"
    assert theme.percent(None) == "–"
    assert theme.percent(0.0) == "0 %"


def test_ratios_lose_the_leading_zero():
    assert [theme.ratio(v) for v in (0.38, 0.0, 1.0, 1.25, None)] == [".38", ".00", "1.00", "1.25", "–"]


def test_not_a_number_is_never_printed():
    with pytest.raises(ValueError, match="finite"):
        theme.significant(math.nan)


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


@pytest.mark.parametrize("colour", [theme.INK, theme.MUTED, theme.LOWERS, *theme.VERDICTS.values(), *theme.STATUS.values()])
def test_text_colours_have_contrast_on_white(colour):
    assert (1 + 0.05) / (luminance(colour) + 0.05) >= 4.5, "WCAG 2.1, 1.4.3"


def test_raising_and_lowering_differ_in_grey_print_by_more_than_colour():
    assert abs(luminance(theme.RAISES) - luminance(theme.LOWERS)) > 0.05
    assert abs(luminance(theme.LOWERS) - luminance(theme.UNDECIDED)) > 0.05
