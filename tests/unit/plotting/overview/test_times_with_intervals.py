"""GPU time that a cause costs, or a what-if saves, stands with its interval, each number with its query."""

import html
import re
from types import SimpleNamespace

import pytest
from causal_samples import contribution_rows, graph_of
from plotting_samples import across_kernels_rows

from causeway.core.queries import cell
from causeway.plotting.drawing.citations import UNKNOWN, time_interval
from causeway.plotting.overview.variability.causes import cause_table
from causeway.plotting.overview.variability.effects_in_kernels import effects_in_kernels
from causeway.plotting.overview.variability.what_if import help_row


def words(markup):
    return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", " ", str(markup))))


def test_a_time_with_its_interval_has_a_query_for_each_number():
    made = time_interval(2e6, 1e6, 3e6, ("middle", "low", "high"))
    assert words(made).split() == "2 ms [ 1 ms , 3 ms ]".split()
    assert re.findall(r'data-query="([^"]*)"', str(made)) == ["middle", "low", "high"]
    assert words(time_interval(2e6, None, None, ("middle", "low", "high"))) == " 2 ms "
    assert time_interval(None, None, None, ("middle", "low", "high")) == UNKNOWN


def test_the_table_of_causes_has_the_interval_of_each_cost():
    rows, _ = contribution_rows(1)
    rows[0] |= {"cost_ns": 48e6, "cost_low": 33e6, "cost_high": 62e6}
    table = "demo/kernel_variability/causal/dataset/contributions.parquet"
    search = SimpleNamespace(
        graph=graph_of(causes=1) | {"sentences": [], "reasons": []}, contributions=rows, table=table
    )
    page = html.unescape(str(cause_table(search)))
    assert "48 ms [ 33 ms , 62 ms ]" in words(page)
    for column in ("cost_ns", "cost_low", "cost_high"):
        assert f'data-query="{cell(column, table, 0)}"' in page
    assert "48 ms" not in words(cause_table(search, is_collective=True))


def test_causes_over_kernels_and_what_ifs_have_theirs():
    (row,) = across_kernels_rows(["k0", "k1"], 1)
    assert "2 ms [ 1 ms , 3 ms ]" in words(effects_in_kernels("demo", "kernel_variability", [row], []))


@pytest.mark.parametrize("low", [20e6, None])
def test_what_ifs_have_theirs(low):
    estimate = {"mean_change_percent": -5.0, "p99_change_percent": None, "saved_ns": 30e6, "saved_low": low}
    row = {"feature": "x", "from": "1", "to": "0", "saved_high": 40e6} | estimate
    said = words(help_row("kernel_variability", row, ("whatif.parquet", 0), None))
    assert ("30 ms [ 20 ms , 40 ms ]" in said) == (low is not None)
    assert "30 ms" in said
