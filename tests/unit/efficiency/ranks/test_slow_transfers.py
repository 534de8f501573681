"""Slow transfers where message sizes are not known: a program's longer messages are none."""

import numpy as np

from causeway.core.clock import Clock
from causeway.efficiency.ranks import stragglers
from causeway.efficiency.ranks.collectives import MatchedCollectives

US = 1_000
RANKS = 4
STEP = [400, 400, 400, 20, 20]
"""Transfers of a step, in us: three large messages and two small ones, all kernels of one launch shape."""


def judged(transfers, shape=0, size=-1):
    """Return the times and the verdict on collectives that all ranks enter within 2 us, `transfers` in us."""
    random = np.random.default_rng(45)
    count = len(transfers)
    start = np.arange(count) * 2_000 * US + random.integers(0, 2 * US, (RANKS, count))
    last = start.max(axis=0)
    end = np.broadcast_to(last + np.rint(np.array(transfers) * US).astype(np.int64), start.shape)
    shapes = np.broadcast_to(np.asarray(shape), count)
    sizes = np.broadcast_to(np.asarray(size), count)
    group = MatchedCollectives(None, list(range(RANKS)), start, end, ["all_reduce"] * count, sizes, None, shapes)
    found = stragglers.analyse(group, dict.fromkeys(range(RANKS), Clock()))
    return found, stragglers.verdict_of(found, group)


def noisy(transfers):
    random = np.random.default_rng(46)
    return np.array(transfers) * np.exp(0.03 * random.standard_normal(len(transfers)))


def test_a_step_more_at_the_begin_or_in_between_changes_nothing():
    """A sequence that begins anew in between: two collectives of the start, and one of a checkpoint after 30 steps.
    Fewer than 3 % of the 303 transfers have other neighbours then.
    """
    found, verdict = judged(noisy([50, 50, *STEP * 30, 70, *STEP * 30]))
    assert found["slow"].sum() < 0.03 * 303
    assert verdict["verdict"] == "inconclusive"


def at_random(count=200, share=0.3):
    return np.where(np.random.default_rng(47).random(count) < share, 500.0, 100.0)


def test_without_a_sequence_calls_of_one_launch_shape_are_compared():
    """Three in ten of 100 us take 500, at random: slow within one launch shape, not where they are another shape, and
    not told where no shape is known.
    """
    transfers = at_random()
    slow = transfers > 400
    found, verdict = judged(transfers.tolist())
    assert found["slow"].tolist() == slow.tolist()
    assert verdict["excess_transfer_ns"] == slow.sum() * 400 * US * RANKS
    for shape in (slow.astype(int), -1):
        found, verdict = judged(transfers.tolist(), shape)
        assert not found["slow"].any()
        assert verdict["verdict"] == "inconclusive"


def test_of_known_sizes_each_is_compared_with_its_own():
    """Messages of 1 and 4 MiB take 100 and 400 us; a tenth of either takes three times as long."""
    transfers = np.array([100, 400] * 60)
    slow = np.arange(120) % 20 < 2
    found, verdict = judged(np.where(slow, 3 * transfers, transfers).tolist(), -1, transfers * 10_000)
    assert found["slow"].tolist() == slow.tolist()
    assert verdict["excess_transfer_ns"] == 6 * (200 + 800) * US * RANKS
    assert not verdict["reason"].endswith("sizes are not known")
