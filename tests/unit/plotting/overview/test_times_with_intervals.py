"""GPU time that a cause costs, or a what-if saves, stands with its interval, each number with its query."""

import html
import re

import pytest

from causeway.plotting.drawing.citations import UNKNOWN, time_interval
from causeway.plotting.overview.what_if import help_row


def words(markup):
    return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", " ", str(markup))))


def test_a_time_with_its_interval_has_a_query_for_each_number():
    made = time_interval(2e6, 1e6, 3e6, ("middle", "low", "high"))
    assert words(made).split() == "2 ms [ 1 ms , 3 ms ]".split()
    assert re.findall(r'data-query="([^"]*)"', str(made)) == ["middle", "low", "high"]
    assert words(time_interval(2e6, None, None, ("middle", "low", "high"))) == " 2 ms "
    assert time_interval(None, None, None, ("middle", "low", "high")) == UNKNOWN


@pytest.mark.parametrize("low", [20e6, None])
def test_what_ifs_have_theirs(low):
    estimate = {"mean_change_percent": -5.0, "p99_change_percent": None, "saved_ns": 30e6, "saved_low": low}
    row = {"feature": "x", "from": "1", "to": "0", "saved_high": 40e6} | estimate
    said = words(help_row("kernel_variability", row, ("whatif.parquet", 0), None))
    assert ("30 ms [ 20 ms , 40 ms ]" in said) == (low is not None)
    assert "30 ms" in said
