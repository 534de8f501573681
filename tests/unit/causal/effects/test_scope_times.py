"""What a change of a whole scope counts: launches, and the part of a stall that its definition explains."""

from dataclasses import replace

import numpy as np
import pytest
from causal_tables import rows_of, time_effects

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.data.scopes import Totals
from causeway.causal.discovery.discover import discover
from causeway.causal.effects.interventions import InterventionModel, what_ifs
from causeway.causal.effects.scope_times import ScopeTimes
from causeway.causal.effects.time_model import DRAWS
from causeway.causal.report.sentences import what_if_sentence
from causeway.numeric.process import single_threaded


def effects_of(columns, rows, scope, totals=None):
    outcome, evidence = discover(columns, rows, scope)
    with single_threaded():
        return time_effects(ScopeTimes(evidence, outcome.arrows, scope.target, totals, 7), outcome.arrows)


def at_percentiles(x):
    return (np.full(x.size, np.sort(x)[round(share * x.size) - 1]) for share in (0.1, 0.9))


def test_kernels_count_by_their_launches_not_by_their_rows():
    rng = np.random.default_rng(11)
    n = 250  # rows of each kernel: too few for a model of its own
    kernel = np.repeat([0, 1], n)
    x = rng.standard_normal(2 * n)
    base = np.where(kernel == 0, 1e5, 4e5)

    def play(x):
        return base * np.exp(np.where(kernel == 0, 0.08, 0.0) * x + noise)

    noise = 0.02 * rng.standard_normal(2 * n)
    y = play(x)
    rows = replace(rows_of(y, kernel=kernel, configuration=kernel), kernels=("a", "b"))
    launches = {"a": 90_000, "b": 1_000}
    totals = Totals(time={"a": 90_000 * y[:n].mean(), "b": 1_000 * y[n:].mean()}, launches=launches)
    columns = [Feature("x", x), Feature("idle", rng.standard_normal(2 * n))]
    scope = Scope("d", "kernel_variability", "dataset")
    found = effects_of(columns, rows, scope, totals)["x"]
    ends = [x.copy(), x.copy()]
    for part in (slice(0, n), slice(n, None)):
        for end, share in zip(ends, (0.1, 0.9), strict=True):
            end[part] = np.sort(x[part])[round(share * n) - 1]
    low, high = map(play, ends)
    gained = 90_000 * (high - low)[:n].mean() + 1_000 * (high - low)[n:].mean()
    truth = 100 * gained / sum(totals.time.values())
    by_rows = 100 * (high - low).mean() / y.mean()
    assert found.mean.low <= truth <= found.mean.high
    assert not found.mean.low <= by_rows <= found.mean.high


@pytest.mark.parametrize("n", [250, 400])
def test_a_collective_beside_another_kernel_costs_no_gpu_time(n):
    """Of two kernels one waits, and that far more with the cause; with models of their own (400 rows) and a shared one."""
    rng = np.random.default_rng(13)
    kernel = np.repeat([0, 1], n)
    x = rng.standard_normal(2 * n)
    noise = 0.02 * rng.standard_normal(2 * n)

    def play(x):
        return 1e5 * np.exp(np.where(kernel == 0, 0.08, 0.3) * x + noise)

    y = play(x)
    rows = replace(rows_of(y, kernel=kernel, configuration=kernel), kernels=("gemm", "reduce"))
    columns = [Feature("x", x), Feature("idle", rng.standard_normal(2 * n))]
    totals = Totals(
        time={"gemm": 7 * float(y[:n].sum()), "reduce": 7 * float(y[n:].sum())},
        launches={"gemm": 7 * n, "reduce": 7 * n},
    )
    outcome, evidence = discover(columns, rows, Scope("d", "kernel_variability", "dataset"))
    found = {}
    with single_threaded():
        for waits in ((), ("reduce",), ("gemm", "reduce")):
            times = ScopeTimes(evidence, outcome.arrows, "kernel_variability", replace(totals, collectives=waits), 7)
            found[waits] = time_effects(times, outcome.arrows)["x"]
            (setting,) = what_ifs(InterventionModel(times, outcome.arrows), outcome.arrows)
            assert setting.saved.value == pytest.approx(found[waits].cost.value)
    low = np.concatenate([np.full(n, np.sort(part)[round(0.1 * n) - 1]) for part in (x[:n], x[n:])])
    by_kernel = 7 * (y - play(low)).reshape(2, n).sum(axis=1)
    for waits, truth in (((), by_kernel.sum()), (("reduce",), by_kernel[0]), (("gemm", "reduce"), by_kernel.sum())):
        cost = found[waits].cost
        assert cost.low <= truth <= cost.high
        assert cost.value == pytest.approx(truth, rel=0.15)
    assert found[()].mean == found["reduce",].mean  # what is said of durations is said of all of them


def test_what_is_no_time_costs_no_gpu_time():
    rng = np.random.default_rng(14)
    x = rng.standard_normal(600)
    rows = replace(rows_of(1e7 * np.exp(0.05 * x + 0.02 * rng.standard_normal(600))), kernels=("k",))
    totals = Totals(time={"k": 6e9}, launches={"k": 600}, is_time=False)
    columns = [Feature("x", x), Feature("idle", rng.standard_normal(600))]
    outcome, evidence = discover(columns, rows, Scope("d", "instructions", "k"))
    with single_threaded():
        times = ScopeTimes(evidence, outcome.arrows, "instructions", totals, 7)
        (setting,) = what_ifs(InterventionModel(times, outcome.arrows), outcome.arrows)
        effect = time_effects(times, outcome.arrows)["x"]
    assert effect.mean.low > 0
    assert (effect.cost, setting.saved) == (None, None)
    assert setting.mean_change.high < 0
    assert "GPU time" not in what_if_sentence(setting, "instructions")


def test_the_tail_of_a_stall_is_that_of_the_whole_stall():
    """Bytes make most of the spread; what they explain is taken out of the search, not out of what is said."""
    rng = np.random.default_rng(12)
    n = 3000
    size = np.floor(2**21 * np.exp(0.5 * rng.standard_normal(n)))
    copied = np.where(rng.random(n) < 0.4, rng.gamma(3.0, 1.0, n), 0.0)
    noise = 500.0 * rng.standard_normal(n)

    def play(copied):
        return 2e4 + size / 20.0 + 2_000.0 * copied + noise

    y = play(copied)
    rows = replace(rows_of(y), target=y, absolute=False)
    columns = [Feature("transfer_bytes", size), Feature("h2d_bytes_in_flight", copied, "context", "contention")]
    columns.append(Feature("idle", rng.standard_normal(n)))
    found = effects_of(columns, rows, Scope("d", "memory_stall", "k"))["h2d_bytes_in_flight"]
    low, high = map(play, at_percentiles(copied))
    for name, statistic in (("mean", np.mean), ("p50", np.median), ("p99", lambda t: np.quantile(t, 0.99))):
        truth = 100 * (statistic(high) - statistic(low)) / statistic(y)
        estimate = getattr(found, name)
        assert estimate.low <= truth <= estimate.high, name
    without_bytes = y - size / 20.0 + np.mean(size / 20.0)
    alone = 100 * 2_000.0 * (np.sort(copied)[round(0.9 * n) - 1]) / np.quantile(without_bytes, 0.99)
    assert found.p99.value < 0.8 * alone
    assert found.cost is None
    assert found.mean.value == pytest.approx(100 * (high - low).mean() / y.mean(), rel=0.1)


def test_what_is_kept_of_a_kernel_has_no_number_for_each_row_and_draw():
    rng = np.random.default_rng(12)
    x = rng.standard_normal(400)
    rows = rows_of(1e5 * np.exp(0.05 * x + 0.02 * rng.standard_normal(400)))
    columns = [Feature("x", x), Feature("idle", rng.standard_normal(400))]
    outcome, evidence = discover(columns, rows, Scope("d", "kernel_variability", "dataset"))
    with single_threaded():
        times = ScopeTimes(evidence, outcome.arrows, "kernel_variability", None, 7)
        time_effects(times, outcome.arrows)
    (unit,) = times._units
    assert unit._models
    assert [name for name, value in vars(unit).items() if np.size(value) >= 400 * DRAWS] == []
