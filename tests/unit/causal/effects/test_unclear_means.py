"""What a what-if says of a mean does not contradict what is said of the cause: by hand, and in a whole examination."""

from dataclasses import replace

import numpy as np
import pytest
from causal_documents import arrow, documents_of, estimate, outcome, what_if
from causal_tables import rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Examination, Scope, TimeEffect
from causeway.causal.discovery import arrows
from causeway.causal.discovery.discover import discover
from causeway.causal.examination.examine import UNCLEAR, examine, without_unclear_costs, without_unclear_means
from causeway.causal.report.documents import table_rows

CLEAR = estimate(262, 60, 464)
NOT_CLEAR = estimate(262, -31, 589)
COST = estimate(4e6, 3e6, 5e6)
SAVED = {"mean_change": estimate(-83, -95, -72), "p99_change": estimate(-95, -100, -86), "saved": COST}


def cause(mean, monotone=True, level=""):
    effect = TimeEffect(mean=mean, p50=mean, p99=mean, spread=mean, cost=COST, launches=9, monotone=monotone)
    return arrow(level=level, in_time=effect)


def to(after, change=(-40, -50, -30), **facts):
    return what_if("x", "as it was", after, change, **SAVED | facts)


@pytest.mark.parametrize(
    ("one", "after", "is_stated"),
    [
        (cause(CLEAR), "7 (10th percentile)", True),
        (cause(NOT_CLEAR), "7 (10th percentile)", False),
        (cause(NOT_CLEAR), "the 90th percentile within each configuration", False),
        (cause(NOT_CLEAR), "none", False),
        (cause(NOT_CLEAR), "7 (median)", False),
        (cause(NOT_CLEAR, monotone=False), "7 (median)", True),
        (cause(NOT_CLEAR, monotone=False), "7 (10th percentile)", False),
        (cause(NOT_CLEAR, level="a"), "b", False),
        (replace(cause(CLEAR), in_time=None), "7 (10th percentile)", True),
    ],
)
def test_what_was_compared_is_stated_where_its_mean_is_clear(one, after, is_stated):
    (row,) = without_unclear_means([to(after)], [one], is_deviation=True)
    values = (row.mean_change, row.p99_change, row.saved)
    assert values == ((SAVED["mean_change"], SAVED["p99_change"], COST) if is_stated else (None, None, None))
    assert row.change == estimate(-40, -50, -30)
    assert row.verdict == "supported"


def test_a_verdict_that_rested_on_the_mean_rests_on_the_deviation():
    rows = [to("1 (median)", change=(-4, -9, 2)), to("asked", user_intervention="q")]
    first, asked = without_unclear_means(rows, [cause(NOT_CLEAR)], is_deviation=True)
    assert (first.verdict, first.reason) == ("inconclusive", "the interval holds no change")
    assert asked == rows[1]
    (refused,) = without_unclear_means(rows[:1], [cause(NOT_CLEAR)], is_deviation=False)
    assert (refused.verdict, refused.reason, refused.change) == ("refused", UNCLEAR, None)


def test_an_unclear_worse_end_costs_nothing_that_is_known():
    kept, none, both = without_unclear_costs([cause(CLEAR), cause(NOT_CLEAR), cause(NOT_CLEAR, monotone=False)])
    assert (kept.in_time.cost, none.in_time.cost, both.in_time.cost) == (COST, None, COST)


def test_one_sentence_says_one_thing_of_the_mean():
    one = cause(NOT_CLEAR)
    for told in (False, True):
        rows = [to("7 (10th percentile)")]
        rows = without_unclear_means(rows, [one], is_deviation=True) if told else rows
        found = outcome("k", 1e-6, [one], examination=Examination(what_ifs=tuple(rows)))
        (row,) = (row for row in documents_of(found)["contributions"] if row["feature"] == "x")
        assert "without a clear change of the mean" in row["sentence"]
        assert ("would cut the mean of y by 83 %" in row["sentence"]) is not told
        assert ("would cut the mean absolute deviation by 40 %" in row["sentence"]) is told


def test_an_examination_states_no_saving_where_the_mean_is_not_clear(monkeypatch):
    """The interval of the change between the ends is made to hold none; everything else is as it is found."""
    rng = np.random.default_rng(8700)
    x, z = rng.standard_normal((2, 800))
    y = 1e5 * np.exp(0.2 * x + 0.05 * rng.standard_normal(800))
    scope = Scope("d", "gpu_time", "k")

    def wide(*given):
        effect = real(*given)
        return replace(effect, mean=replace(effect.mean, low=-1.0))

    real = arrows.time_effect
    columns = [Feature("x", x), Feature("z", z)]
    stated = table_rows(examine(*discover(columns, rows_of(y), scope)))
    monkeypatch.setattr(arrows, "time_effect", wide)
    silent = table_rows(examine(*discover(columns, rows_of(y), scope)))
    for rows, is_stated in ((stated, True), (silent, False)):
        own = next(row for row in rows["contributions"] if row["feature"] == "x")
        assert (own["cost_ns"] is not None) is is_stated
        assert ("of GPU time" in own["sentence"]) is is_stated
        assert [row["saved_ns"] is not None for row in rows["whatif"]] == [is_stated]
        assert [row["mean_change_percent"] is not None for row in rows["whatif"]] == [is_stated]
