"""Numbers in exports that are written as no profiler writes them: they are nothing, or what they say, and stop no
reader.
"""

import pytest

from causeway.readers.containers.csv_batches import _time
from causeway.readers.pytorch.event_fields import nanoseconds


@pytest.mark.parametrize(
    "text", ["1e999999", "-1e999999", "1e999999999999999999", "nan", "inf", "sNaN", "1e19", "", "-", "1_0e"]
)
def test_microseconds_beyond_all_bounds_are_no_time(text):
    assert nanoseconds(text) is None


@pytest.mark.parametrize(
    ("text", "value", "rounded"),
    [
        ("0x1E5", 0x1E5, False),
        ("1.5E3", 1500, True),
        ("1e999999", None, False),
        ("sNaNe", None, False),
        ("15E-1", None, False),
    ],
)
def test_times_in_other_notations(text, value, rounded):
    assert _time(text) == (value, rounded)
