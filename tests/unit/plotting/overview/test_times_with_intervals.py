"""GPU time that a cause costs, or a what-if saves, stands with its interval, each number with its query."""

import html
import re

import pytest

from causeway.core.results import Search
from causeway.plotting.overview.what_if import what_would_help


def words(markup):
    return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", " ", str(markup))))


@pytest.mark.parametrize("low", [20e6, None])
def test_what_ifs_have_theirs_each_number_with_its_query(low):
    estimate = {"mean_change_percent": -5.0, "p99_change_percent": None, "saved_ns": 30e6, "saved_low": low}
    row = {"feature": "x", "from": "1", "to": "0", "saved_high": 40e6, "verdict": "supported"} | estimate
    search = Search({"scope": "dataset"}, [], "contributions.parquet", {"whatif": [row]})
    page = what_would_help("d", [("kernel_variability", [search], [])])
    said = words(page)
    assert ("30 ms [ 20 ms , 40 ms ]" in said) == (low is not None)
    assert "30 ms" in said
    asked = re.findall(r'data-query="SELECT (saved_\w+) ', str(page))
    assert asked == (["saved_ns", "saved_low", "saved_high"] if low else ["saved_ns"])
