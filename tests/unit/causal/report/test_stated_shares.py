"""The share that a reader meets is that of the variance of the durations, wherever it is stated."""

import re

import numpy as np
import pytest
from causal_documents import documents_of
from causal_tables import rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.examination.examine import examine
from causeway.numeric.process import single_threaded


@pytest.fixture(scope="module")
def beside_another():
    """A kernel takes 63 us alone and 267 us beside another one, which half of its launches have, drawn at random."""
    rng = np.random.default_rng(8)
    beside = rng.integers(0, 2, 800)
    y = 1e3 * (63.0 + 204.0 * beside + np.where(beside, 12.0, 2.0) * rng.standard_normal(800))
    columns = [Feature("launches_in_flight", beside.astype(float), "context", "contention")]
    columns += [Feature(f"other{number}", rng.standard_normal(800)) for number in range(3)]
    with single_threaded():
        outcome = examine(*discover(columns, rows_of(y), Scope("d", "kernel_variability", "k")))
    means = np.bincount(beside, y) / np.bincount(beside)
    return documents_of(outcome), 100 * means[beside].var() / y.var()


def test_the_share_of_two_levels_is_the_variance_between_them(beside_another):
    documents, by_hand = beside_another
    assert by_hand > 99
    (edge,) = [one for one in documents["graph"]["edges"] if one["source"] == "launches_in_flight"]
    (row,) = [one for one in documents["contributions"] if one["feature"] == "launches_in_flight"]
    for place in (edge, row):
        assert place["variance_percent"] == pytest.approx(by_hand, abs=1)
        assert place["variance_low"] < by_hand < place["variance_high"]
        assert place["contribution_percent"] < 80
    rest = documents["contributions"][-1]
    assert sum(one["variance_percent"] for one in documents["contributions"]) == pytest.approx(100, abs=1e-3)
    assert rest["variance_percent"] < 1 < rest["contribution_percent"]


def test_sentences_state_that_share_and_name_its_variance(beside_another):
    documents, by_hand = beside_another
    (sentence,) = [one["sentence"] for one in documents["contributions"] if one["feature"] == "launches_in_flight"]
    (said,) = re.findall(r"explains (\d+) % \[\d+, \d+\] of the variance of the durations", sentence)
    assert int(said) == pytest.approx(by_hand, abs=1.5)


def test_causes_stand_in_the_order_of_the_shares_that_sentences_state():
    """A neighbour moves half of the launches by 2, so that all are about 1 from the mean, a copy one in twenty by 3: it
    tells most of how far launches are from the mean, and the neighbour most of how long they take.
    """
    rng = np.random.default_rng(9)
    beside = rng.permutation(np.arange(1000) % 2)
    copied = rng.permutation(np.arange(1000) % 20 == 0).astype(float)
    y = 100.0 + 2.0 * beside + 3.0 * copied + 0.1 * rng.standard_normal(1000)
    columns = [
        Feature("launches_in_flight", beside.astype(float), "context", "contention"),
        Feature("transfers_in_flight", copied, "context", "contention"),
    ]
    with single_threaded():
        found, _ = discover(columns, rows_of(y), Scope("d", "kernel_variability", "k"))
    neighbour, copy = found.arrows
    assert (neighbour.name, copy.name) == ("launches_in_flight", "transfers_in_flight")
    assert copy.contribution.value > neighbour.contribution.value
    parts = np.array([4 * beside.var(), 9 * copied.var(), 0.01])
    shares = [neighbour.variance.value, copy.variance.value, found.unexplained_variance.value]
    assert shares == pytest.approx(100 * parts / parts.sum(), abs=2)
