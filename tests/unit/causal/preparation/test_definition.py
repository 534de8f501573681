"""What a target is computed from is no cause of it: |launch - linked transfer| and the transfer's bytes and direction."""

from dataclasses import replace

import numpy as np
import pytest
from causal_tables import rows_of

from causeway.causal.data.observations import Feature, Observations
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.preparation.known_relations import without_definition
from causeway.causal.preparation.prepare import LEAKED
from causeway.core.vocabulary import MEMORY_STALL
from support import few

pytestmark = pytest.mark.usefixtures("rough_shares")
N = 1500
KINDS = np.array(["host to device", "device to device"], dtype=object)


def stalls(seed, contention):
    """Launches of 60 us beside transfers of 5 to 300 us; with another launch in flight they take longer by a share.

    With contention most launches outlast their transfer, without it about half of them do.
    """
    rng = np.random.default_rng(seed)
    size = np.exp(0.9 * rng.standard_normal(N)) * 2e6 if contention == 0 else np.exp(0.6 * rng.standard_normal(N)) * 3e5
    kind = rng.integers(0, 2, N)
    busy = (rng.random(N) < 0.3).astype(float)
    transfer = (5e3 + size / np.array([12.0, 90.0])[kind]) * np.exp(0.02 * rng.standard_normal(N))
    duration = 6e4 * (1 + contention * busy) * np.exp(0.03 * rng.standard_normal(N))
    more = {"idle_before_ns": rng.exponential(1e4, N), "queue_ns": rng.exponential(5e3, N), "launches_in_flight": busy}
    columns = [Feature(name, values, "context", "contention") for name, values in more.items()]
    columns.append(Feature("transfer_bytes", size, "context", "transfer", "bytes"))
    columns.append(Feature("transfer_copy_kind", KINDS[kind], "context", "transfer"))
    return np.abs(duration - transfer), columns


def stall_rows(y):
    rows = rows_of(y)
    return Observations(
        y, rows.signed, rows.mean, rows.std, rows.weight, rows.kernel, rows.configuration, absolute=False
    )


def searched(seed, contention, target=MEMORY_STALL):
    y, columns = stalls(seed, contention)
    return discover(columns, stall_rows(y), Scope("d", target, "k"))[0]


@pytest.mark.parametrize("seed", few(range(6), 2))
def test_where_only_the_definition_matters_no_cause_is_named(seed):
    outcome = searched(8000 + seed, 0.0)
    assert outcome.arrows == ()
    reasons = {one.feature: one.reason for one in outcome.dropped}
    assert reasons.pop("queue_ns").startswith("can act on a launch's time through launches_in_flight alone")
    assert set(reasons) == {"transfer_bytes", "transfer_copy_kind"}
    assert all(reason.startswith("part of the target's definition") for reason in reasons.values())
    assert any("transfer_copy_kind explain " in note for note in outcome.notes)


@pytest.mark.usefixtures("exact_shares")
@pytest.mark.parametrize("seed", few(range(6), 2))
def test_a_cause_beyond_the_definition_is_named_with_its_sign(seed):
    """Most launches outlast their transfer, so a longer launch means a longer stall."""
    (arrow,) = searched(8100 + seed, 0.3).arrows
    assert arrow.name == "launches_in_flight"
    assert (arrow.sign, arrow.sign_of) in (("+", "target"), ("+", "value"))


@pytest.mark.parametrize("seed", few(range(3), 1))
def test_what_was_computed_from_the_target_is_a_leak_though_only_a_part_of_the_target_is_left(seed):
    y, columns = stalls(8400 + seed, 0.3)
    columns.append(Feature("stall_in_us", y / 1000, "counter", "memory"))
    columns.append(Feature("log_of_it", np.log(y), "counter", "memory"))
    outcome = discover(columns, stall_rows(y), Scope("d", MEMORY_STALL, "k"))[0]
    assert [arrow.name for arrow in outcome.arrows] == ["launches_in_flight"]
    reasons = {one.feature: one.reason for one in outcome.dropped}
    assert {name for name, reason in reasons.items() if reason == LEAKED} == {"stall_in_us", "log_of_it"}


@pytest.mark.parametrize("seed", few(range(3), 1))
def test_a_kernel_that_scatters_little_is_freed_beside_one_that_waits(seed):
    """The stall of one kernel is |launch - transfer|; that of the other is hundreds of times as wide, and chance. Of the
    first no more is left than by itself.
    """
    y, columns = stalls(8500 + seed, 0.0)
    kernel = np.random.default_rng(seed).integers(0, 2, N)
    chance = 1e8 * np.exp(np.random.default_rng(seed + 1).standard_normal(N))
    rows = rows_of(np.where(kernel == 0, y, chance), kernel=kernel, configuration=kernel)
    left = without_definition(columns, rows, MEMORY_STALL, 1).rows.signed[kernel == 0]
    own = [replace(one, values=one.values[kernel == 0]) for one in columns]
    alone = without_definition(own, rows_of(y[kernel == 0]), MEMORY_STALL, 1).rows.signed
    assert np.var(left) < 1.5 * np.var(alone) < 0.4 * np.var(y[kernel == 0])


def test_other_targets_are_left_as_they_are():
    y, columns = stalls(8200, 0.3)
    assert without_definition(columns, rows := rows_of(y), "kernel_variability", 1).rows is rows
    assert "transfer_bytes" in {arrow.name for arrow in searched(8200, 0.3, "stall_of_a_table").arrows}


def test_what_is_left_is_what_regression_by_hand_leaves():
    """A straight world: the residual agrees with that of the true definition, and keeps the configurations' means."""
    rng = np.random.default_rng(8300)
    size = rng.uniform(1e6, 4e6, 3000)
    configuration = rng.integers(0, 3, 3000)
    rest = rng.standard_normal(3000) * 1e3
    y = 1e5 * (1 + configuration) + 0.02 * size + rest
    rows = rows_of(y, configuration=configuration, kernel=np.zeros(3000, int))
    freed = without_definition([Feature("transfer_bytes", size, "context")], rows, MEMORY_STALL, 1)
    centred = rest - (np.bincount(configuration, rest) / np.bincount(configuration))[configuration]
    assert np.corrcoef(freed.rows.signed, centred)[0, 1] > 0.9
    assert freed.explained == pytest.approx(1 - rest.var() / (0.02 * size + rest).var(), abs=0.01)
    assert np.bincount(configuration, freed.rows.signed) == pytest.approx(np.zeros(3), abs=1e-3)
    assert freed.rows.std[0] == pytest.approx(freed.rows.signed[configuration == configuration[0]].std(ddof=1))


@pytest.mark.parametrize("known_from", [0, N - 40, N])
def test_sizes_that_are_known_late_or_never_are_no_error(known_from):
    """Some exports write no bytes for copies of one kind; then blocks of time have no value at all."""
    y, columns = stalls(8400, 0.3)
    late = [
        Feature(one.name, np.where(np.arange(N) < known_from, np.nan, one.values), one.tier)
        if one.name == "transfer_bytes"
        else one
        for one in columns
    ]
    freed = without_definition(late, stall_rows(y), MEMORY_STALL, 1)
    assert np.isfinite(freed.rows.signed).all()
    assert freed.dropped == ("transfer_bytes", "transfer_copy_kind")
