"""Times and numbers of telemetry, held against the standard library's and against what tools write for none."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from causeway.core.errors import CausewayError
from causeway.telemetry.text_values import UNKNOWN_TIME, flags_of, masks_of, numbers_of, times_of, zone_of

SECOND = 1_000_000_000


def nanoseconds(moment):
    """Return the ns of an aware datetime since 1970."""
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


@pytest.mark.parametrize("name", ["", "Europe/Berlin", "America/New_York", "+05:30", "-0800"])
def test_dates_of_every_tool_are_exact(name):
    offsets = {"+05:30": timezone(timedelta(hours=5, minutes=30)), "-0800": timezone(-timedelta(hours=8)), "": UTC}
    zone = offsets.get(name) or ZoneInfo(name)
    random = np.random.default_rng(5)
    moments = [datetime.fromtimestamp(int(s), zone) for s in random.integers(1.2e9, 1.9e9, 40)]
    moments = [one for one in moments if one.replace(fold=1).utcoffset() == one.replace(fold=0).utcoffset()]
    expected = [nanoseconds(one) + 123_000_000 for one in moments]
    for form in ("%Y/%m/%d %H:%M:%S.123", "%Y%m%d  %H:%M:%S.123", "%Y-%m-%dT%H:%M:%S.123"):
        texts = pd.Series([one.strftime(form) for one in moments])
        assert times_of(texts, zone_of(name)).tolist() == expected
    stated = pd.Series([one.isoformat() for one in moments])
    assert times_of(stated, zone_of("Asia/Tokyo")).tolist() == [one - 123_000_000 for one in expected]


def test_unix_times_keep_their_nanoseconds_in_every_unit():
    texts = ["1714557600.123456789", "1714557600", "1714557600123", "1714557600123456", "1714557600123456789"]
    base = 1714557600 * SECOND
    assert times_of(pd.Series(texts), UTC).tolist() == [
        base + 123456789,
        base,
        base + 123000000,
        base + 123456000,
        base + 123456789,
    ]


@pytest.mark.parametrize(
    "text",
    ["", "x", "20240501", "2024/13/01 00:00:00", "2024-05-01T25:00:00", "9" * 19, "9" * 30, "12:00:00", "nan", "-5"],
)
def test_what_is_no_time_is_unknown(text):
    assert times_of(pd.Series([text]), UTC).tolist() == [UNKNOWN_TIME]


def test_a_local_time_that_occurs_twice_or_never_is_unknown():
    texts = pd.Series(["2024-10-27 02:30:00", "2024-03-31 02:30:00", "2024-03-31 03:30:00"])
    found = times_of(texts, zone_of("Europe/Berlin")).tolist()
    assert found[:2] == [UNKNOWN_TIME, UNKNOWN_TIME]
    assert found[2] == nanoseconds(datetime(2024, 3, 31, 1, 30, tzinfo=UTC))


@pytest.mark.parametrize("name", ["Mars/Olympus", "+25:00", "../../etc/passwd", "x" * 5000])
def test_a_zone_that_is_none_is_named(name):
    with pytest.raises(CausewayError, match="time zone"):
        zone_of(name)


def test_numbers_with_units_and_what_stands_for_none():
    texts = ["62.50 W", "98 %", "1980 MHz", "(500Mhz)", "-3", "1e3", "[N/A]", "[Not Supported]", "-", "", "oops", "inf"]
    values, bad = numbers_of(pd.Series(texts))
    assert values[:6].tolist() == [62.5, 98, 1980, 500, -3, 1000]
    assert np.isnan(values[6:]).all()
    assert bad.tolist() == [False] * 10 + [True] * 2


@pytest.mark.parametrize("blank", ["9223372036854775794", "140737488355328.0", "2147483632", "2147483634"])
def test_blank_values_of_dcgm_are_none(blank):
    values, bad = numbers_of(pd.Series([blank]))
    assert np.isnan(values[0])
    assert not bad[0]


def test_flags_and_masks():
    values, bad = flags_of(pd.Series(["Active", "Not Active", "1", "0", "N/A", "perhaps"]))
    assert values[:4].tolist() == [1, 0, 1, 0]
    assert bad.tolist() == [False] * 5 + [True]
    masks, bad = masks_of(pd.Series(["0x0000000000000044", "4", "[N/A]", "x", "9223372036854775794"]))
    assert masks.tolist() == [0x44, 4, -1, -1, -1]
    assert bad.tolist() == [False, False, False, True, False]
