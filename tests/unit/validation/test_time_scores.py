"""Claims that are right score as right, and each way of being wrong is seen."""

import numpy as np
import pytest

from lab.validation.further_generators.special_cases import WorldSettings, draw_world
from lab.validation.time_scores import TimeClaim, WhatIfClaim, opposite, same_cause, time_scores, what_if_scores
from lab.validation.time_truth import time_truth, what_if_truth

TABLE = draw_world(WorldSettings("correlated"), 5)
CAUSE = TABLE.causes[0]
TRUTH = time_truth(TABLE, CAUSE)


def claim(mean, width, **other):
    return TimeClaim(cause=CAUSE, mean=(mean, mean - width, mean + width), **other)


def test_the_truth_is_covered_with_the_right_sign_and_no_error():
    cost = (0.0, TRUTH.cost_ns - 1, TRUTH.cost_ns + 1)
    found = time_scores([claim(TRUTH.mean, 0.1, p99=(TRUTH.p99,) * 3, cost=cost)], TABLE)
    assert found["mean_given"] == found["mean_covered"] == found["p99_covered"] == found["cost_covered"] == 1
    assert found["time_signs_asked"] == found["time_signs_right"] == 1
    assert found["mean_error"] == pytest.approx(0)
    assert found["p50_given"] == found["spread_given"] == 0


def test_the_wrong_sign_a_narrow_interval_and_silence_are_told_apart():
    wrong = time_scores([claim(-TRUTH.mean, 0.1)], TABLE)
    assert (wrong["mean_covered"], wrong["time_signs_right"]) == (0, 0)
    assert (wrong["time_signs_said_asked"], wrong["time_signs_said_right"]) == (1, 0)
    assert wrong["mean_error"] == pytest.approx(2 * abs(TRUTH.mean))
    narrow = time_scores([claim(1.1 * TRUTH.mean, 0.05 * abs(TRUTH.mean))], TABLE)
    assert (narrow["mean_covered"], narrow["time_signs_right"]) == (0, 1)
    silent = time_scores([TimeClaim(cause=CAUSE)], TABLE)
    assert (silent["time_asked"], silent["time_given"], silent["time_signs_asked"]) == (1, 0, 0)


def test_what_ifs_are_judged_at_the_value_that_they_name():
    values = np.full(TABLE.y.size, np.sort(TABLE.drivers[CAUSE])[int(np.ceil(0.1 * TABLE.y.size)) - 1])
    mean, p99 = what_if_truth(TABLE, CAUSE, values)
    right = WhatIfClaim(cause=CAUSE, words="893 (10th percentile)", mean=(mean,) * 3, p99=(p99,) * 3)
    other = WhatIfClaim(cause=CAUSE, words="the 90th percentile within each configuration", mean=(mean,) * 3)
    unknown = WhatIfClaim(cause=CAUSE, words="another time", mean=(mean,) * 3)
    found = what_if_scores([right, other, unknown], TABLE)
    assert (found["whatif_asked"], found["whatif_mean_given"], found["whatif_mean_covered"]) == (2, 2, 1)
    assert (found["whatif_p99_given"], found["whatif_p99_covered"]) == (1, 1)


def test_a_copy_gives_the_numbers_of_its_cause_an_upturned_one_the_opposite():
    table = draw_world(WorldSettings("correlated"), 5)
    table.columns["twice"] = 2 * table.drivers[CAUSE]
    table.columns["upturned"] = -table.drivers[CAUSE]
    table.columns["loose"] = table.drivers[CAUSE] + 30 * np.random.default_rng(1).standard_normal(table.y.size)
    table.stands_for |= dict.fromkeys(("twice", "upturned", "loose"), CAUSE)
    assert same_cause("twice", (), table) == (CAUSE, False)
    assert same_cause("upturned", ("upturned",), table) == (CAUSE, True)
    assert same_cause("loose", (), table) is None
    assert same_cause("dram__reads_x_3", (), table) is None
    assert opposite((1.0, 0.5, 3.0)) == (-1.0, -3.0, -0.5)
