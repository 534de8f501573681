"""Numbers and names as people read them."""

import math

import pytest

from causeway.core import formatting


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1000, "1 µs"),
        (1_350_000, "1.35 ms"),
        (61_000_000_000, "61 s"),
        (123_456_789_000_000, "123,457 s"),
    ],
)
def test_times_have_si_units_and_thousands(ns, text):
    assert formatting.time(ns) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0.00 ns"),
        (7, "7.00 ns"),
        (999, "999 ns"),
        (1000, "1.00 µs"),
        (1_350_000, "1.35 ms"),
        (61_500_000_000, "61.5 s"),
        (123_456_789_000_000, "123457 s"),
    ],
)
def test_times_of_findings_have_three_digits_and_thousands_together(ns, text):
    assert formatting.time_three_digits(ns) == text


@pytest.mark.parametrize(
    ("ns", "text", "finding"),
    [
        (999_499, "999 µs", "999 µs"),
        (999_600, "1 ms", "1.00 ms"),
        (-999_960, "-1 ms", "-1.00 ms"),
        (999_999_999, "1 s", "1.00 s"),
        (999, "999 ns", "999 ns"),
    ],
)
def test_no_time_is_a_thousand_of_its_unit(ns, text, finding):
    assert formatting.time(ns) == text
    assert formatting.time_three_digits(ns) == finding


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
    assert formatting.quantity(value, unit) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1_980_000_000.0, "Hz", "1.98 GHz"),
        (3 << 20, "bytes", "3 MiB"),
        (12.0, "bytes", "12 bytes"),
        (4_200.0, "ns", "4.2 µs"),
        (0.283, "ratio", "28.3 %"),
        (71.25, "W", "71.2 W"),
        (1234.0, "", "1,234"),
        (12.345, "", "12.3"),
        (1000.0, "bytes", "1,000 bytes"),
        (1023.0 * 1024, "bytes", "1,023 KiB"),
        (999_700.0, "ns", "1 ms"),
        (999.6e6, "Hz", "1 GHz"),
        (1050.0, "W", "1,050 W"),
        (12.5, "ratio", "1,250 %"),
        (-4_200.0, "ns", "-4.2 µs"),
        (0.0, "bytes", "0 bytes"),
    ],
)
def test_values_of_settings_have_binary_prefixes_and_percent(value, unit, text):
    assert formatting.setting_value(value, unit) == text


def test_percent_as_on_an_arrow():
    assert formatting.percent(34.2, 27.4, 40.6) == "34 % [27, 41]"
    assert formatting.percent(0.62, 0.06, 1.2) == "0.6 % [0.1, 1]"
    assert formatting.percent(0.01, 0.0, 0.04) == "<0.1 % [0, <0.1]", "what is there never rounds to nothing"
    assert formatting.percent(None) == "–"
    assert formatting.percent(0.0) == "0 %"
    assert formatting.percent(-0.01, -0.04, 0.02) == ">-0.1 % [>-0.1, <0.1]", "nor to a zero with a sign"
    assert formatting.percent(-0.96, -1.04, -0.94) == "-1 % [-1, -0.9]", "ends of one interval have the same digits"
    assert formatting.percent(1140.4) == "1,140 %"


def test_whole_percentages_have_a_sign_where_it_says_something():
    assert [formatting.whole_percent(value) for value in (19.6, -0.4, -19.6)] == ["20", "0", "-20"]
    assert [formatting.whole_percent(value, signed=True) for value in (19.6, -0.4, -19.6)] == ["+20", "0", "-20"]


def test_shares_never_round_to_nothing():
    shares = (0.0, 0.0004, 0.001, 0.5, 1.0, None)
    texts = ["0.0 %", "< 0.1 %", "0.1 %", "50.0 %", "100.0 %", "–"]
    assert [formatting.share(value) for value in shares] == texts


def test_ratios_lose_the_leading_zero():
    assert [formatting.ratio(v) for v in (0.38, 0.0, 1.0, 1.25, None)] == ["0.38", "0.00", "1.00", "1.25", "–"]
    assert [formatting.ratio(v, 1) for v in (0.38, 1.25, 1.31)] == ["0.38", "1.2", "1.3"]
    assert [formatting.ratio_three_decimals(v) for v in (0.98765, 0.1, 0.01234)] == ["0.988", "0.100", "0.0123"]


def test_not_a_number_is_never_printed():
    with pytest.raises(ValueError, match="finite"):
        formatting.significant(math.nan)


def test_counts_are_whole():
    assert formatting.count(1_234_567.0) == "1,234,567"
    assert [formatting.count_or_digits(v) for v in (None, 12345.6, 1.5)] == ["–", "12,346", "1.5"]


def test_changes_that_belong_together_have_signs_and_decimals_alike():
    assert formatting.signed(4.04, 3.8, None, -0.001) == ["+4.0", "+3.8", "0.0"]
    assert formatting.signed(-1234.5, 2.0) == ["−1,234", "+2"]
    assert formatting.signed() == []


def test_small_q_values_are_bounds():
    assert [formatting.q_value(v) for v in (0.00001, 0.0123)] == ["q < 0.0001", "q = 0.012"]


def test_neighbouring_integers_are_drawn_together():
    lists = ([0, 1, 2, 7], [], [3], [2, 1])
    assert [formatting.integer_ranges(numbers) for numbers in lists] == ["0–2, 7", "–", "3", "1–2"]


def test_of_many_items_the_first_are_named_and_the_others_counted():
    assert formatting.first_of(range(10)) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"
    assert formatting.first_of(["a", "b"], most=1) == "a and 1 more"
    assert formatting.first_of([]) == ""


def test_names_are_cut_in_their_middle_not_trusted():
    assert formatting.elided("abcdef", 6) == "abcdef"
    assert formatting.elided("abcdefghij", 6) == "abc…ij"
    assert formatting.elided("abcdefghij", 8, tail=2, mark="...") == "abc...ij"
    assert formatting.name_in_sentence("a\n b") == "a b"
    cut = formatting.name_in_sentence("x" * 100_000 + "y" * 20)
    assert cut == "x" * 39 + "…" + "y" * 20


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [
        (0, "launch", "0 launches"),
        (1, "launch", "1 launch"),
        (2, "launch", "2 launches"),
        (1, "kernel", "1 kernel"),
        (1001, "limit", "1,001 limits"),
        ("1", "effective sample", "1 effective sample"),
        ("99", "effective sample", "99 effective samples"),
    ],
)
def test_one_has_no_plural(number, noun, said):
    assert formatting.counted(number, noun) == said
