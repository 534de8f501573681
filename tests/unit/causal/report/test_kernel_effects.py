"""The random-effects summary of what causes do in single kernels, against their definition and by hand."""

from dataclasses import replace

import numpy as np
import pytest
from causal_documents import arrow, estimate, outcome
from scipy.optimize import brentq
from scipy.stats import t

from causeway.causal.data.outcome import TimeEffect
from causeway.causal.report.kernel_effects import effects_over_kernels, random_effects
from causeway.core.formatting import percent
from causeway.core.vocabulary import INCONCLUSIVE


def in_time(value, half, cost=None):
    change = estimate(value, value - half, value + half)
    cost = None if cost is None else estimate(cost, cost - 3e5, cost + 4e5)
    return TimeEffect(mean=change, p50=change, p99=change, spread=change, cost=cost, launches=100, monotone=True)


def kernel(scope, *causes, p_value=1e-6):
    """Return a searched kernel with causes (name, change, half width, cost)."""
    arrows = [replace(arrow(name), in_time=in_time(*numbers)) for name, *numbers in causes]
    return outcome(scope, p_value, arrows)


@pytest.mark.parametrize("seed", range(7))
def test_the_mean_over_kernels_is_that_of_paule_and_mandel(seed):
    """Their variance between kernels makes the weighted sum of squares what it should be, one less than the kernels."""
    random = np.random.default_rng(seed)
    errors = random.uniform(0.2, 2.0, 6)
    effects = 3.0 + random.normal(0, 2.5, 6) + errors * random.normal(0, 1, 6)
    mean, between, i_squared = random_effects(effects, errors)

    def squares(variance):
        weights = 1 / (errors**2 + variance)
        return weights @ (effects - np.average(effects, weights=weights)) ** 2

    assert between**2 == pytest.approx(brentq(lambda variance: squares(variance) - 5, 0, 100), rel=1e-3)
    weights = 1 / (errors**2 + between**2)
    assert mean.value == pytest.approx(np.average(effects, weights=weights))
    assert i_squared == pytest.approx(100 * (1 - 5 / squares(0.0)))
    factor = max(1.0, weights @ (effects - mean.value) ** 2 / 5)  # Knapp and Hartung; the interval is not narrowed
    half = t.ppf(0.95, 5) * np.sqrt(factor / weights.sum())
    assert (mean.low, mean.high) == pytest.approx((mean.value - half, mean.value + half))


def test_equal_effects_do_not_differ_between_kernels():
    assert random_effects(np.array([3.0, 3.0, 3.0]), np.array([1.0, 2.0, 1.0]))[1:] == (0.0, 0.0)


def test_effects_that_differ_less_than_their_errors_are_weighted_by_these_alone():
    errors = np.array([1.0, 2.0, 1.0])
    mean, between, i_squared = random_effects(np.array([3.0, 3.5, 3.2]), errors)
    weights = 1 / errors**2
    assert mean.value == pytest.approx(weights @ [3.0, 3.5, 3.2] / weights.sum())
    assert mean.high - mean.value == pytest.approx(t.ppf(0.95, 2) / np.sqrt(weights.sum()))
    assert (between, i_squared) == (0.0, 0.0)


def test_a_cause_of_two_of_three_kernels_is_summed_up_over_these():
    rows = effects_over_kernels(
        [
            kernel("a", ("dram_bytes", 4.0, 1.0, 2e6)),
            kernel("b", ("dram_bytes", 6.0, 1.0, 1e6), ("rank", 1.0, 0.5, 1e5)),
            kernel("c"),
            outcome("refused", None),
        ],
        {"a": 0.5, "b": 0.25, "c": 0.25},
    )
    first, second = rows
    assert (first["feature"], first["kernels"], first["searched"]) == ("dram_bytes", ["a", "b"], 3)
    assert first["mean_change_percent"] == pytest.approx(5.0)
    assert (first["smallest_percent"], first["largest_percent"]) == (4.0, 6.0)
    assert first["cost_ns"] == 3e6
    assert first["cost_low"] == pytest.approx(3e6 - np.hypot(3e5, 3e5), rel=1e-5)
    assert first["cost_high"] == pytest.approx(3e6 + np.hypot(4e5, 4e5), rel=1e-5)
    share = arrow("dram_bytes").variance.value
    assert first["variance_percent"] == pytest.approx(0.75 * share)
    assert first["sentence"].startswith(
        f"dram_bytes: a cause in 2 of 3 kernels, explains {percent(0.75 * share)} of the dataset's variance there;"
    )
    assert (second["kernels"], second["mean_change_percent"], second["i_squared"]) == (["b"], 1.0, None)
    assert second["searched"] == 3


def test_what_is_not_supported_does_not_count_as_acting():
    doubtful = replace(arrow("x"), in_time=in_time(4.0, 1.0, 1e6), verdict=INCONCLUSIVE)
    assert effects_over_kernels([outcome("a", 1e-6, [doubtful]), kernel("b")], {}) == []


def test_a_cause_whose_effect_in_time_is_not_known_is_counted_only():
    (row,) = effects_over_kernels([outcome("a", 1e-6, [arrow("x")]), kernel("b")], {})
    assert row["sentence"] == "x: a cause in 1 of 2 kernels."
    assert {row[name] for name in ("mean_change_percent", "smallest_percent", "cost_ns", "between_std")} == {None}


def test_one_kernel_needs_no_summary():
    assert effects_over_kernels([kernel("a", ("x", 4.0, 1.0, 1e6))], {}) == []


def test_what_collectives_cost_is_not_counted():
    """The time of a collective includes waiting for the last rank, whose own kernels are counted."""
    late = kernel("gemm", ("rank", 8.0, 0.5, 9e6))
    waits = kernel("all_reduce", ("rank", -43.0, 1.0, 29e6))
    waits = replace(waits, scope=replace(waits.scope, is_collective=True))
    (row,) = effects_over_kernels([late, waits], {})
    assert (row["kernels"], row["cost_ns"]) == (["gemm", "all_reduce"], 9e6)
    (row,) = effects_over_kernels([kernel("c"), waits], {})
    assert row["cost_ns"] is None


@pytest.mark.parametrize(("number", "has_interval"), [(1, True), (2, False), (3, True)])
def test_the_mean_over_two_kernels_has_no_interval(number, has_interval):
    """A late rank makes its own kernel slower and the collective shorter: +7.8 % and -43 %, [-179, 143] of their mean;
    Student's t of one degree of freedom is 6.3 at 95 %.
    """
    assert t.ppf(0.95, 1) > 6.3
    changes = (7.8, -43.0, 1.0)[:number]
    found = [kernel(f"k{at}", ("rank", change, 1.0, 1e6)) for at, change in enumerate(changes)]
    (row,) = effects_over_kernels([*found, kernel("without")], {})
    assert ("[" in row["sentence"]) == has_interval
    assert [row[f"mean_change_{end}"] is not None for end in ("percent", "low", "high")] == [
        True,
        has_interval,
        has_interval,
    ]
