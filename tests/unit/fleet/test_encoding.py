"""What an agent saw becomes few counts: exact for a case worked by hand, unbiased, bounded, and nothing that cannot
be.
"""

from dataclasses import replace

import numpy as np
import pytest
from fleet_samples import CLIPS, SHARES, seen_of, small_layout, vectors_of

from causeway.core.errors import CausewayError
from causeway.fleet.attribution.encoding import (
    RANDOM_STARTS,
    WindowMeasurements,
    encode,
    kernel_cells,
    mean_relative_deviation,
    systematic_sample,
)
from causeway.fleet.report_layout import WORD, make_layout


def one(**changes):
    seen = WindowMeasurements(
        row=np.array([1]),
        slot=np.array([[1, 1, 0, -1]]),
        kernel=np.array([[5, 5, 6, 0]]),
        duration_ns=np.array([[1000, 3000, 4000, 0]]),
        occupancy=np.array([[0.1, 0.3, 0.8, np.nan]]),
        busy=np.array([0.6]),
        totals=np.array([[30_000.0, 4e6, 0.0]]),
    )
    return replace(seen, **changes)


def sections(seen, layout, start=0.0):
    vector = encode(seen, layout, np.full((len(seen.row), RANDOM_STARTS), start)).vector(0, layout.cells)
    return {s.name: vector[s.cells].reshape(s.rows, s.columns)[: s.rows] for s in layout.sections}


def test_a_report_worked_by_hand():
    layout = small_layout()
    found = sections(one(), layout, start=0.5)
    assert found["applications"].ravel().tolist() == [0, 1, 0, 0, 0]
    assert found["kernels"][1].tolist() == [8, 8, 0, 0]  # half of the time each, of 16 units
    # 1,000 ns lies in the bin from 1 us, 3,000 ns in that from 2 us, 4,000 ns in that from 4 us: thirds of 16 units
    assert found["durations"][1][:5].tolist() == [0, 5, 6, 5, 0]
    assert found["occupancy"][1].tolist() == [1, 1, 0, 2]  # 1/8, 3/8 and 1/2 of the time, of 4 units
    assert found["variability"][1].tolist() == [0, 0, 0, 0]  # no kernel has three launches
    assert found["efficiency"][1].tolist() == [0, 0, 1, 0]
    assert found["resources"][1].tolist() == [4, 8, 0]  # half and all of the clip, of 8 units
    assert not any(found[name][[0, 2]].any() for name in found if name != "applications")


def test_an_unknown_application_fills_its_cluster_alone():
    found = sections(one(row=np.array([4])), small_layout())
    assert found["applications"].ravel().tolist() == [0, 0, 0, 0, 1]
    assert not any(values.any() for name, values in found.items() if name != "applications")


def test_what_was_not_measured_adds_nothing():
    seen = one(occupancy=np.full((1, 4), np.nan), busy=np.array([np.nan]), totals=np.full((1, 3), np.nan))
    found = sections(seen, small_layout())
    assert not any(found[name].any() for name in ("occupancy", "efficiency", "resources"))
    assert found["kernels"].any()


def test_units_are_shared_out_without_bias():
    weights = np.tile([0.5, 0.3, 0.2, 0.0], (4000, 1))
    shared = systematic_sample(weights, 4, (np.arange(4000) + 0.5) / 4000)
    assert (shared.sum(1) == 4).all()
    assert shared.mean(0).tolist() == pytest.approx([2.0, 1.2, 0.8, 0.0], abs=0.002)
    assert not shared[:, 3].any()
    assert systematic_sample(np.zeros((1, 3)), 4, np.array([0.9])).tolist() == [[0, 0, 0]]


def test_variability_is_the_deviation_from_each_kernels_median():
    kernel = np.array([[1, 1, 1, 2, 2, 3]])
    time = np.array([[10, 20, 60, 5, 500, 7]])
    # kernel 1: median 20, deviations 10 + 0 + 40 of 90; the others have too few launches
    assert mean_relative_deviation(kernel, time, np.ones((1, 6), bool)).tolist() == pytest.approx([50 / 90])
    assert np.isnan(mean_relative_deviation(kernel[:, 3:], time[:, 3:], np.ones((1, 3), bool)))
    assert mean_relative_deviation(kernel, time, np.array([[True] * 3 + [False] * 3])).tolist() == pytest.approx(
        [50 / 90]
    )


def test_reports_keep_within_what_a_report_may_add():
    layout = small_layout()
    for vector in vectors_of(200, layout):
        layout.check(vector)


def test_kernels_find_their_cells():
    known = [np.array([30, 10], np.uint64), np.array([], np.uint64)]
    tokens = np.array([[10, 30, 99, 0], [10, 30, 99, 0], [10, 30, 99, 0]], np.uint64)
    found = kernel_cells(tokens, np.array([0, 1, -1]), known)
    assert found.tolist() == [[2, 1, 0, -1], [0, 0, 0, -1], [0, 0, 0, -1]]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"row": np.array([5])}, "row"),
        ({"row": np.array([-1])}, "row"),
        ({"row": np.array([1.0])}, "float64"),
        ({"slot": np.array([[1, 1, 4, -1]])}, "cell"),
        ({"duration_ns": np.array([[1000, 0, 4000, 0]])}, "duration"),
        ({"duration_ns": np.array([[1000, -5, 4000, 0]])}, "duration"),
        ({"duration_ns": np.array([[1000.0, 3.0, np.nan, 0]])}, "float64"),
        ({"occupancy": np.array([[0.1, 1.5, 0.8, 0.0]])}, "occupancy"),
        ({"busy": np.array([-0.1])}, "busy"),
        ({"totals": np.array([[np.inf, 0.0, 0.0]])}, "total"),
        ({"totals": np.array([[-1.0, 0.0, 0.0]])}, "total"),
    ],
)
def test_samples_that_cannot_be_are_refused(changes, word):
    """Group 1, where the agent encodes."""
    with pytest.raises(CausewayError, match=word):
        encode(one(**changes), small_layout(), np.zeros((1, RANDOM_STARTS)))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda v: v.astype(np.float64), "float64"),
        (lambda v: v.astype(np.int64), "int64"),
        (lambda v: v.astype(np.float64) * np.nan, "float64"),
        (lambda v: v[:-1], "shape"),
        (lambda v: np.append(v, WORD(0)), "shape"),
        (lambda v: v + WORD(1), "more than"),
        (lambda v: v - WORD(1), "more than"),  # a negative count wraps to a huge one
        (lambda v: [1, 2, 3], "list"),
    ],
)
def test_vectors_that_no_honest_client_makes_are_refused(change, word):
    """Group 1, where the client protects."""
    layout = small_layout()
    with pytest.raises(CausewayError, match=word):
        layout.check(change(vectors_of(1, layout)[0]))


def test_a_report_may_not_speak_of_two_applications():
    layout = small_layout()
    vector = np.zeros(layout.cells, WORD)
    section = layout.by_name["durations"]
    vector[section.first] = vector[section.first + section.columns] = 1
    with pytest.raises(CausewayError, match="row"):
        layout.check(vector)


def test_a_fleet_that_could_wrap_the_sums_is_refused():
    """Group 14: 2**31 / 24 units of resources are 89 million reports; with 64-bit sums they fit."""
    layout = small_layout()
    layout.check_capacity(80_000_000)
    with pytest.raises(CausewayError, match="beyond"):
        layout.check_capacity(90_000_000)
    layout.check_capacity(90_000_000, bits=64)


def test_sums_below_the_bound_do_not_wrap():
    layout = small_layout()
    limit = (2**31 - int(200 * layout.by_name["resources"].noise_scale)) // 24 - 1
    layout.check_capacity(limit)
    assert limit * 24 < 2**31


def test_layouts_differ_by_digest_and_bad_shares_are_refused():
    assert small_layout().digest == small_layout().digest != small_layout(slots=5).digest
    with pytest.raises(CausewayError, match="sections"):
        make_layout(3, 2, 4, {"applications": 1}, CLIPS)
    with pytest.raises(CausewayError, match="above 0"):
        make_layout(3, 2, 4, SHARES | {"kernels": 0}, CLIPS)


def test_encoding_many_equals_encoding_each():
    layout = small_layout()
    seen = seen_of(20)
    starts = np.random.default_rng(5).random((20, RANDOM_STARTS))
    whole = encode(seen, layout, starts)
    for row in range(20):
        names = WindowMeasurements.__dataclass_fields__
        single = WindowMeasurements(**{name: getattr(seen, name)[row : row + 1] for name in names})
        assert (
            encode(single, layout, starts[row : row + 1]).vector(0, layout.cells) == whole.vector(row, layout.cells)
        ).all()
