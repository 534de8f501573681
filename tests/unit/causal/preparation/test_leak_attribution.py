"""Of columns that the measured time ties together (rate = amount / time), the leak goes and the original stays."""

import numpy as np
import pytest
from causal_tables import rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.preparation.leak_attribution import calculated_from
from causeway.causal.preparation.prepare import prepare
from support import few

pytestmark = pytest.mark.usefixtures("rough_shares")
N = 1200


def searched(columns, y, **facts):
    """Return the members of all arrows, and the reasons of what was dropped."""
    table = [Feature(name, values, **facts.get(name, {})) for name, values in columns.items()]
    outcome, _ = discover(table, rows_of(y), Scope("d", "y", "k"))
    members = {member for arrow in outcome.arrows for member in arrow.node.members}
    return members, {one.feature: one.reason for one in outcome.dropped if "measured value" in one.reason}


def leaks(columns, y, **facts):
    """Return what preparation drops as following from the measured value."""
    table = [Feature(name, values, **facts.get(name, {})) for name, values in columns.items()]
    return {one.feature for one in prepare(table, rows_of(y), "y").dropped if "measured value" in one.reason}


def amount_beside_the_causes(seed, strength=0.6):
    """An amount that causes nothing but goes with the time, for both have a common cause; and the causes, two of
    which are known.
    """
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((N, 3))
    log_amount = strength * (0.5 * z[:, 0] + rng.standard_normal(N))
    y = 1e5 * np.exp(0.06 * z[:, 0] + 0.05 * np.maximum(z[:, 1], 0) + 0.03 * rng.standard_normal(N))
    return rng, log_amount, y, {"abc": np.exp(0.4 * z[:, 0]) * 77.7, "def": z[:, 1], "ghi": z[:, 2]}


@pytest.mark.parametrize("seed", few(range(5), 2))
def test_an_amount_that_goes_with_the_time_by_a_common_cause_is_not_the_leak(seed):
    rng, log_amount, y, causes = amount_beside_the_causes(700 + seed)
    amount = np.exp(log_amount) * 3.1e4
    near = {f"near_{k}": np.exp(log_amount + 0.25 * rng.standard_normal(N)) for k in range(3)}
    found, dropped = searched({"a_longer_name": amount, "xyz": amount / y, **near, **causes}, y)
    assert set(dropped) == {"xyz"}
    assert found == {"abc", "def"}


@pytest.mark.parametrize("seed", few(range(5), 2))
def test_so_it_is_without_any_column_near_it(seed):
    _, log_amount, y, causes = amount_beside_the_causes(710 + seed)
    amount = np.exp(log_amount) * 3.1e4
    found, dropped = searched({"amount": amount, "xyz": amount / y, **causes}, y)
    assert set(dropped) == {"xyz"}
    assert found == {"abc", "def"}


@pytest.mark.parametrize("seed", few(range(5), 2))
def test_so_it_is_for_an_amount_that_is_often_zero_and_has_gaps(seed):
    rng, log_amount, y, causes = amount_beside_the_causes(720 + seed)
    amount = np.where(rng.random(N) < 0.35, 0.0, np.exp(log_amount) * 3.1e4)
    rate = np.where(rng.random(N) < 0.02, np.nan, amount / y)
    found, dropped = searched({"amount": amount, "xyz": rate, **causes}, y)
    assert "xyz" not in found
    assert "amount" not in dropped
    assert {"abc", "def"} <= found


@pytest.mark.parametrize("sign", [1, -1])
def test_a_counted_cause_stays_and_its_rate_goes(sign):
    rng = np.random.default_rng(731)
    count = np.floor(np.exp(0.6 * rng.standard_normal(N)) * 900)
    y = 1e5 * np.exp(sign * 0.06 * np.log(count / 900) + 0.03 * rng.standard_normal(N))
    found, dropped = searched({"count": count, "xyz": count / y, "z": rng.standard_normal(N)}, y)
    assert found == {"count"}
    assert set(dropped) == {"xyz"}


def test_what_is_calculated_from_a_counted_cause_and_the_time_goes_also_if_it_is_a_product():
    rng = np.random.default_rng(732)
    watts = np.round(200 * np.exp(0.5 * rng.standard_normal(N)), 1)
    y = 1e5 * np.exp(-0.06 * np.log(watts / 200) + 0.03 * rng.standard_normal(N))
    found, dropped = searched({"pow": watts, "product": watts * y, "z": rng.standard_normal(N)}, y)
    assert found == {"pow"}
    assert set(dropped) == {"product"}


def test_if_nothing_tells_no_leak_is_reported():
    rng = np.random.default_rng(734)
    log_amount = 0.7 * rng.standard_normal(N)
    y = 1e5 * np.exp(0.08 * log_amount + 0.03 * rng.standard_normal(N))
    for columns in (
        {"am": np.exp(log_amount), "xyz": np.exp(log_amount) / y},
        {"am": np.exp(log_amount), "xyz": np.exp(log_amount) * y},
    ):
        found, _ = searched({**columns, "z": rng.standard_normal(N)}, y)
        assert "xyz" not in found


@pytest.mark.parametrize("seed", few(range(3), 1))
def test_of_three_columns_that_give_the_time_together_none_is_a_cause(seed):
    """The amount itself is not exported, but its rate and its ratio to another one are."""
    rng, log_amount, y, causes = amount_beside_the_causes(740 + seed)
    amount = np.exp(log_amount) * 3.1e4
    other = np.exp(0.5 * rng.standard_normal(N)) * 1e3
    found, dropped = searched({"xyz": amount / y, "uvw": amount / other, "other": other, **causes}, y)
    assert found == {"abc", "def"}
    assert "other" not in dropped


def test_a_cause_with_nearly_exact_copies_is_no_leak():
    rng = np.random.default_rng(751)
    cause = np.exp(0.8 * rng.standard_normal(N)) * 1e5
    y = 1e5 * np.exp(0.05 * np.log(cause / 1e5) + 0.04 * rng.standard_normal(N))
    copies = {f"copy_{k}": cause + 10.0 ** (k - 3) * rng.random(N) for k in range(5)}
    found, dropped = searched({"cause": cause, **copies}, y)
    assert "cause" in found
    assert not dropped


def test_an_amount_in_bytes_and_its_rate():
    _, log_amount, y, causes = amount_beside_the_causes(752)
    amount = np.floor(np.exp(log_amount) * 2**22)
    columns = {"amount": amount, "xyz": amount / y, **causes}
    assert leaks(columns, y, amount={"unit": "bytes"}) == {"xyz"}
    assert leaks(columns, y, amount={"unit": "bytes"}, xyz={"unit": "bytes"}) == {"xyz"}


def test_the_rate_of_what_is_known_at_the_start_is_a_leak():
    rng = np.random.default_rng(753)
    moved = np.exp(0.6 * rng.standard_normal(N)) * 1e6
    y = 1e5 * np.exp(0.3 * np.log(moved / 1e6) + 0.03 * rng.standard_normal(N))
    found, dropped = searched({"moved": moved, "xyz": moved / y}, y, moved={"tier": "context"})
    assert found == {"moved"}
    assert set(dropped) <= {"xyz"}


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_rounding_comes_last(scale):
    rng = np.random.default_rng(754)
    y = 1e5 * np.exp(0.1 * rng.standard_normal(500))
    count = np.floor(np.exp(rng.standard_normal(500)) * 1e3)
    assert calculated_from(count, scale * count / y, y) == 1
    assert calculated_from(scale * count * y, count, y) == 0
    smooth = scale * np.exp(rng.standard_normal(500))
    assert calculated_from(smooth, smooth / y, y) is None
    assert calculated_from(np.round(1e7 * smooth / scale / y), smooth, y) is None
