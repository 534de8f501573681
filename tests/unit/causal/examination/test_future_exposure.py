"""Whether a cause survives its own next value: what it will be cannot act on this launch."""

from dataclasses import replace

import numpy as np
import pytest
from causal_documents import documents_of
from causal_tables import rows_of
from scipy.signal import lfilter

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Refutation, Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.examination.examine import marked
from causeway.causal.examination.falsification import LASTING, falsify, is_lasting, is_refuted, lasts
from support import few

pytestmark = pytest.mark.usefixtures("rough_shares")


def test_the_next_reading_of_a_sampled_metric_is_not_asked():
    rng = np.random.default_rng(78)
    x = rng.standard_normal(3000)
    y = 1000 + 20 * x + 10 * rng.standard_normal(3000)
    scope = Scope("d", "kernel_variability", "k")
    for group, asked in (("device metrics", False), ("contention", True)):
        outcome, evidence = discover([Feature("x", x, "context", group)], rows_of(y), scope)
        rows = falsify(evidence, outcome.arrows)
        assert ("future_exposure" in {row.refuter for row in rows if row.feature == "x"}) == asked


@pytest.mark.parametrize(("seed", "launches", "noise"), [(1015, 2, 0.03), (1039, 4, 0.02)])
def test_a_drift_over_steps_is_not_refuted_by_the_number_of_the_next_step(seed, launches, noise):
    """The number of the next step is that of this one or one more: what it does cannot be told from what this does."""
    rng = np.random.default_rng(seed)
    step = np.arange(400 * launches) // launches
    y = 40_000 * (1 + 0.1 * step / 400) * (1 + noise * rng.standard_normal(step.size))
    columns = [
        Feature("step", step.astype(float), "context"),
        *(Feature(name, rng.standard_normal(step.size)) for name in "abc"),
    ]
    outcome, evidence = discover(columns, rows_of(y), Scope("d", "kernel_variability", "k"))
    rows = tuple(falsify(evidence, outcome.arrows))
    assert "step" in [arrow.name for arrow in outcome.arrows]
    assert not is_refuted(rows, "step")
    assert {row.refuter for row in rows if row.feature == "step"} == {"robustness_value"}


@pytest.mark.parametrize("tables", [3, pytest.param(6, marks=pytest.mark.slow)])
def test_a_column_that_a_slow_hidden_cause_moves_is_doubtful_by_its_future(tables):
    """proxy and time follow a hidden state; the proxy at the next launch tells as much of it as the proxy now. Nothing
    tells it from a noisy reading of a slow cause, so it is not refuted.
    """
    doubted = {"proxy": 0, "x": 0}
    for seed in range(tables):
        rng = np.random.default_rng(600 + seed)
        hidden = lfilter([np.sqrt(1 - 0.97**2)], [1, -0.97], rng.standard_normal(3200))[200:]
        proxy = hidden + 0.7 * rng.standard_normal(3000)
        x = rng.standard_normal(3000)
        y = 1000 + 30 * hidden + 20 * x + 20 * rng.standard_normal(3000)
        scope = Scope("d", "kernel_variability", "k")
        outcome, evidence = discover([Feature("proxy", proxy), Feature("x", x)], rows_of(y), scope)
        rows = tuple(falsify(evidence, outcome.arrows))
        for name in doubted:
            doubted[name] += is_lasting(rows, name)
            assert not is_refuted(rows, name)
        if is_lasting(rows, "proxy"):
            marks = {one.name: one for one in marked(outcome.arrows, rows)}
            assert (marks["proxy"].verdict, marks["proxy"].weakness) == ("inconclusive", LASTING)
            shown = documents_of(replace(outcome, arrows=marked(outcome.arrows, rows)))
            assert any(f"Inconclusive, {LASTING}" in one for one in shown["graph"]["sentences"])
    assert doubted["proxy"] >= 2 / 3 * tables
    assert doubted["x"] == 0


def test_a_column_that_is_made_after_the_launch_is_refuted_by_its_future():
    """Each value tells how long the launch before took: no state lasts, and what comes later cannot have acted."""
    rng = np.random.default_rng(5)
    cause = rng.standard_normal(3000)
    y = 1000 + 30 * cause + 10 * rng.standard_normal(3000)
    after = np.append(0.0, cause[:-1]) + 0.8 * cause + 0.5 * rng.standard_normal(3000)
    outcome, evidence = discover([Feature("after", after)], rows_of(y), Scope("d", "y", "k"))
    rows = tuple(falsify(evidence, outcome.arrows))
    assert lasts(after, np.zeros(3000, int)) == bool(is_lasting(rows, "after"))
    white = rng.standard_normal(3000)
    assert not lasts(white, np.zeros(3000, int))
    assert lasts(np.repeat(white[:1500], 2), np.zeros(3000, int))
    assert not lasts(np.repeat(white[:1500], 2), np.arange(3000) % 2)  # the next launch of the configuration counts
    attempt = Refutation(feature="after", refuter="future_exposure", passed=False)
    (arrow,) = outcome.arrows
    assert marked([replace(arrow, verdict="supported")], [attempt])[0].verdict == "refuted"
    assert marked([replace(arrow, verdict="inconclusive")], [attempt])[0].verdict == "inconclusive"


@pytest.mark.parametrize("seed", few(range(6), 2))
def test_a_size_that_takes_turns_as_layers_do_is_not_asked_what_it_will_be_next(seed):
    """Of three sizes in turn the next follows from this one and the one before; that the time is no line of the size
    must not count as foreknowledge of the next.
    """
    rng = np.random.default_rng(620 + seed)
    layer = np.arange(300) % 3
    size = np.array([512.0, 1536, 2048])[layer]
    y = np.array([800.0, 1530, 1940])[layer] + 8 * rng.standard_normal(layer.size)
    outcome, evidence = discover(
        [Feature("shape_bytes", size, "context", "input")],
        rows_of(y),
        Scope("d", "kernel_variability", "k"),
    )
    (arrow,) = outcome.arrows
    rows = tuple(falsify(evidence, (arrow,)))
    assert "future_exposure" not in {row.refuter for row in rows}
    assert not is_refuted(rows, "shape_bytes")
