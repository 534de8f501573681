"""Of several kernels a cause has at most the share that the kernels are of all in which it varies."""

from dataclasses import replace

import numpy as np
import pytest
from causal_documents import ARROW
from causal_tables import rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Outcome, Scope
from causeway.causal.data.scopes import variance_shares
from causeway.causal.discovery.discover import discover
from causeway.causal.report.across_kernels import with_kernels_variance
from causeway.causal.report.documents import contribution_rows, graph_document
from causeway.core.tables import write_table
from variability_tables import table_of

KERNELS = 8
ROWS = 400


def test_a_cause_that_varies_in_one_kernel_has_at_most_that_kernels_share():
    """All that kernel 0 varies by: an eighth of all, as each kernel weighs the same."""
    rng = np.random.default_rng(1)
    kernel = np.repeat(np.arange(KERNELS), ROWS)
    x = np.where(kernel == 0, rng.standard_normal(kernel.size), 0.0)
    noise = rng.standard_normal(kernel.size)
    y = 1000 * np.exp(0.05 * np.where(kernel == 0, x + 0.1 * noise, noise))
    columns = [Feature("x", x), Feature("z", rng.standard_normal(y.size))]
    outcome, _ = discover(columns, rows_of(y, kernel=kernel), Scope("d", "kernel_variability", "dataset"))
    (arrow,) = outcome.arrows
    assert (arrow.name, len(arrow.kernels)) == ("x", 1)
    assert arrow.variance.value == pytest.approx(100 / KERNELS, abs=1.5)
    assert outcome.unexplained_variance.value + arrow.variance.value == pytest.approx(100, abs=1e-9)


def test_a_launch_parameter_counts_within_its_kernels():
    """One of eight kernels has six block sizes, with which it varies more; each of the others has another one: what
    differs between kernels is no effect of the block size.
    """
    rng = np.random.default_rng(3)
    kernel = np.repeat(np.arange(KERNELS), 6 * 80)
    configuration = np.repeat(np.arange(KERNELS * 6), 80)
    block = np.where(kernel == 0, 32.0 * 2 ** (configuration % 6), 2.0 ** (4 + kernel))
    scale = np.where(kernel == 0, block / 32, 1.0)
    y = 1000.0 * (1 + kernel) + scale * rng.standard_normal(kernel.size)
    columns = [Feature("block_x", block, "launch", "launch configuration"), Feature("z", rng.standard_normal(y.size))]
    outcome, _ = discover(columns, rows_of(y, kernel=kernel, configuration=configuration), Scope("d", "t", "dataset"))
    (arrow,) = outcome.arrows
    assert (arrow.name, arrow.stage, len(arrow.kernels), outcome.n_kernels) == ("block_x", "configuration", 1, KERNELS)
    assert 0 < arrow.variance.value <= arrow.variance.high <= 100 / KERNELS + 1e-4
    assert outcome.unexplained_variance.value + arrow.variance.value == pytest.approx(100, abs=1e-3)


def test_a_launch_parameter_of_one_kernel_does_not_weigh_the_others():
    """Half of the variance of one of four kernels is an eighth of all, however large that kernel's blocks are."""
    rng = np.random.default_rng(7)
    kernel = np.repeat(np.arange(4), 6 * 100)
    configuration = np.repeat(np.arange(4 * 6), 100)
    block = np.where(kernel == 0, 32.0 * 2 ** (configuration % 6), np.where(kernel == 1, 4096.0, 32.0))
    x = rng.standard_normal(kernel.size)
    noise = rng.standard_normal(kernel.size)
    scale = np.where(kernel == 0, (block / 32) ** 0.7, 1.0)
    y = 1000.0 + scale * np.where(kernel == 1, (x + noise) / np.sqrt(2), noise)
    columns = [Feature("block_x", block, "launch", "launch configuration"), Feature("x", np.where(kernel == 1, x, 0.0))]
    outcome, _ = discover(columns, rows_of(y, kernel=kernel, configuration=configuration), Scope("d", "t", "dataset"))
    shares = {arrow.name: arrow.variance.value for arrow in outcome.arrows}
    assert set(shares) == {"block_x", "x"}
    assert shares["x"] == pytest.approx(100 / 8, abs=2.5)


def test_what_is_constant_in_each_kernel_is_not_called_constant():
    rng = np.random.default_rng(4)
    kernel = np.repeat(np.arange(KERNELS), ROWS)
    columns = [
        Feature("registers_per_thread", 24.0 + 10 * kernel, "launch", "launch configuration"),
        Feature("local_bytes", np.zeros(kernel.size), "launch", "launch configuration"),
        Feature("z", rng.standard_normal(kernel.size)),
    ]
    outcome, _ = discover(
        columns, rows_of(rng.standard_normal(kernel.size) + 10, kernel=kernel), Scope("d", "t", "dataset")
    )
    reasons = {one.feature: one.reason for one in outcome.dropped}
    assert reasons["registers_per_thread"] == "constant within each kernel"
    assert reasons["local_bytes"] == "constant"


def test_the_variance_of_kernels_is_that_of_all_their_launches(tmp_path):
    """Sums of squares about the mean of each configuration, from the launches themselves."""
    rng = np.random.default_rng(5)
    launches = {("a", 0): rng.normal(100, 3, 50), ("a", 1): rng.normal(500, 9, 40), ("b", 2): rng.normal(9, 2, 30)}
    launches |= {("b", 3): np.array([7.0])}
    rows = {
        "configuration": [number for _, number in launches],
        "kernel": [kernel for kernel, _ in launches],
        "launches": [values.size for values in launches.values()],
        "mean": [values.mean() for values in launches.values()],
        "std": [values.std(ddof=1) if values.size > 1 else None for values in launches.values()],
    }
    write_table(table_of("configuration_summary", rows), tmp_path / "c.parquet", "configuration_summary")
    squares = dict.fromkeys("ab", 0.0)
    for (kernel, _), values in launches.items():
        squares[kernel] += ((values - values.mean()) ** 2).sum()
    found = variance_shares(tmp_path / "c.parquet")
    assert found == pytest.approx({kernel: one / sum(squares.values()) for kernel, one in squares.items()})


def test_graph_and_table_say_the_same_of_each_cause():
    arrows = (
        replace(ARROW, kernels=("a", "c"), q_value=0.001),
        replace(
            ARROW, node=replace(ARROW.node, name="w"), verdict="inconclusive", kernels=("a", "b", "c"), q_value=0.02
        ),
    )
    whole = Outcome(
        scope=Scope("d", "kernel_variability", "dataset"),
        seed=1,
        n_rows=900,
        n_kernels=3,
        n_effective=500.0,
        arrows=arrows,
        unexplained=replace(ARROW.variance, value=20.0),
        unexplained_variance=replace(ARROW.variance, value=20.0),
        q_value=0.001,
    )
    whole = with_kernels_variance(whole, {"a": 0.5, "b": 0.4, "c": 0.1})
    rows = contribution_rows(whole)
    graph = graph_document(whole)
    assert graph["n_kernels"] == 3
    same = ("verdict", "variance_percent", "variance_low", "kernels_percent", "kernels_variance_percent")
    for row, edge in zip(rows, graph["edges"], strict=True):
        if row["feature"] != "unexplained":
            assert {key: row[key] for key in same} == {key: edge[key] for key in same}
    assert [(row["kernels_percent"], row["kernels_variance_percent"]) for row in rows[:2]] == [
        (pytest.approx(66.6667), pytest.approx(60.0)),
        (100.0, pytest.approx(100.0)),
    ]
    assert "of the kernels' standardised variance of the durations, each kernel alike" in rows[0]["sentence"]
    assert "It varies in 2 of 3 kernels, with 60 % of the variance in ns²." in rows[0]["sentence"]
    assert "it varies in" not in rows[1]["sentence"]
