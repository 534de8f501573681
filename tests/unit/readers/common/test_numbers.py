"""Numbers and units as profilers print them."""

import pytest

from causeway.readers.common.constants import NULL
from causeway.readers.common.numbers import base_unit, notation, number, scaled, size_columns, with_null
from causeway.readers.sink.counter_table import plain_name


@pytest.mark.parametrize(
    ("unit", "base", "factor"),
    [
        ("nsecond", "ns", 1),
        ("ns", "ns", 1),
        ("usecond", "ns", 1e3),
        ("us", "ns", 1e3),
        ("µs", "ns", 1e3),
        ("\u03bcs", "ns", 1e3),
        ("msecond", "ns", 1e6),
        ("second", "ns", 1e9),
        ("byte", "bytes", 1),
        ("Kbyte", "bytes", 1e3),
        ("Gbyte/second", "bytes/s", 1e9),
        ("byte/s", "bytes/s", 1),
        ("Kbyte/block", "bytes", 1e3),
        ("%", "ratio", 0.01),
        ("hz", "Hz", 1),
        ("Ghz", "Hz", 1e9),
        ("cycle/second", "Hz", 1),
        ("cycle/nsecond", "Hz", 1e9),
        ("cycle", "cycles", 1),
        ("inst/cycle", "instructions/cycle", 1),
        ("register/thread", "registers/thread", 1),
        ("cluster", "clusters", 1),
        ("pass", "passes", 1),
        ("branches", "branches", 1),
        ("MiB", "bytes", 1024**2),
        ("", "", 1),
    ],
)
def test_units_have_one_base(unit, base, factor):
    assert base_unit(unit) == (base, factor, True)


def test_unknown_units_are_kept():
    assert base_unit("furlong") == ("furlong", 1.0, False)


def test_per_cent_is_divided_not_multiplied():
    assert scaled(3.98, 0.01) == 0.0398
    assert scaled(7.0, 1e3) == 7000.0


@pytest.mark.parametrize(
    ("text", "which", "usual", "european"),
    [
        ("4,194,688", "usual", 4194688.0, None),
        ("4,963,609,951.19", "usual", 4963609951.19, None),
        ("27.595.520", "european", None, 27595520.0),
        ("1.234,5", "european", 1.2345, 1234.5),
        ("12,5", "european", 125.0, 12.5),
        ("3.98", "usual", 3.98, 398.0),
        ("1,234", None, 1234.0, 1.234),
        ("1.234", None, 1.234, 1234.0),
        ("1234.567", "usual", 1234.567, 1234567.0),
        ("42", None, 42.0, 42.0),
        ("1\u202f234,56", "european", 123456.0, 1234.56),  # French
        ("1\xa0234\xa0567,8", "european", 12345678.0, 1234567.8),
        ("1 234,567", "european", 1234567.0, 1234.567),
        ("-1'234.56", "usual", -1234.56, -123456.0),  # Swiss, of two C libraries
        ("1\u2019234.56", "usual", 1234.56, 123456.0),
        ("1 234", None, 1234.0, 1234.0),
        ("4 8 16", None, None, None),  # a list
        ("12 34", None, None, None),
    ],
)
def test_two_notations(text, which, usual, european):
    assert notation(text) == which
    assert number(text) == usual
    assert number(text, european=True) == european


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "abc", "", "1_000", "CachePreferNone"])
def test_what_is_no_finite_number_is_none(text):
    assert number(text) is None


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ("sm__cycles_elapsed.avg.per_second", "sm__cycles_elapsed_avg_per_second"),
        ("TCC_EA_WRREQ[0]", "TCC_EA_WRREQ_0"),
        ("L1/TEX Hit Rate", "L1_TEX_Hit_Rate"),
        ("# SMs", "SMs"),
        ("2d", "_2d"),
        ("%", "unnamed"),
    ],
)
def test_counters_keep_their_names_as_far_as_columns_can(raw, plain):
    assert plain_name(raw) == plain


def test_sizes_of_launches_in_any_spelling():
    columns = size_columns("grid", ["(64, 1, 1)", "64x2", "[7]", "", f"{10**30} 5"])
    assert list(columns) == ["grid_x", "grid_y", "grid_z"]
    assert columns["grid_x"].tolist() == [64, 64, 7, NULL, NULL]
    assert columns["grid_y"].tolist() == [1, 2, NULL, NULL, 5]
    assert columns["grid_z"].tolist() == [1, NULL, NULL, NULL, NULL]


def test_absent_integers_become_null():
    assert with_null([1, None, -5]).tolist() == [1, NULL, -5]
    assert with_null([]).dtype == "int64"
