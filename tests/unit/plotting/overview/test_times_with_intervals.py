"""GPU time that a cause costs, or a what-if saves, stands with its interval, each number with its query."""

import html
import re
from types import SimpleNamespace

import pytest
from causal_samples import contribution_rows, graph_of
from plotting_samples import across_kernels_rows

from causeway.core.queries import cell
from causeway.plotting.drawing.citations import UNKNOWN, time_interval
from causeway.plotting.overview.variability.causes import cause_table, lead_of
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


def test_a_curve_with_its_best_values_inside_has_no_negative_cost():
    """Both ends take longer than launches as they are: by 3 ms than at the better one."""
    rows, _ = contribution_rows(1)
    below = {"cost_ns": -3e6, "cost_low": -5e6, "cost_high": -1e6}
    rows[0] |= below
    search = SimpleNamespace(graph=graph_of(causes=1), contributions=rows, table="contributions.parquet")
    said = words(cause_table(search))
    (row,) = across_kernels_rows(["k0", "k1"], 1)
    for text in (said, words(effects_in_kernels("demo", "kernel_variability", [row | below], []))):
        assert "none usual values are better than both ends" in text
        assert not re.search(r"-\d+ ms", text)


@pytest.mark.parametrize(
    ("target", "variance"),
    [
        ("kernel_variability", "the variance of the durations"),
        ("memory_stall", "the variance of the memory stall beyond its copy's size and direction"),
        ("dram_bytes", "the variance of dram_bytes"),
    ],
)
def test_the_table_of_causes_has_shares_of_the_variance_that_it_names(target, variance):
    rows, _ = contribution_rows(2)
    shares = {"variance_percent": (11.0, 55.0), "variance_low": (9.0, 52.0), "variance_high": (13.0, 58.0)}
    shares |= {"contribution_percent": (88.0, 7.0), "contribution_low": (87.0, 6.0), "contribution_high": (89.0, 8.0)}
    for place, row in enumerate(rows):
        row |= {column: values[place] for column, values in shares.items()}
    graph = graph_of(causes=2, target=target) | {"sentences": [], "reasons": []}
    rest = {"variance_percent": 34.0, "variance_low": 30.0, "variance_high": 38.0, "contribution_percent": 5.0}
    graph["edges"] = [one | (rest if one["source"] == "unexplained" else {}) for one in graph["edges"]]
    search = SimpleNamespace(graph=graph, contributions=rows, table="causal/dataset/contributions.parquet")
    page = html.unescape(str(cause_table(search)))
    said = words(page)
    assert f"share of {variance}" in said
    assert said.index("55 % [ 52 , 58 ]") < said.index("11 % [ 9 , 13 ]")
    assert f"Unexplained: 34 % [ 30 , 38 ] of {variance}." in said
    assert not re.search(r"\b8[789] %|\b[57] % \[", said)
    assert f'data-query="{cell("variance_percent", search.table, 1)}"' in page
    lead = words(lead_of(search))
    assert lead.index("55 %") < lead.index("11 %")


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
