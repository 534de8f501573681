import numpy as np
import pytest

from causeway.causal.data.in_flight import ALONE, LaunchSweep, TransferSweep

LONGEST = (25, 400)
"""Of few intervals that are in flight at once, and of many."""


def chunks_of(rng, *columns):
    """Cut columns at six random rows, so that equal starts lie in two chunks and some chunks are empty."""
    rows = columns[0].size
    return [[column[low:high] for column in columns] for low, high in zip(*_cuts(rng, rows), strict=True)]


def _cuts(rng, rows):
    cuts = [0, *np.sort(rng.integers(0, rows + 1, 6)).tolist(), rows]
    return cuts[:-1], cuts[1:]


def events(rng, rows, longest):
    """Return start (many ties), duration (some 0), rank and device."""
    start = np.sort(rng.integers(0, 120, rows))
    duration = rng.integers(0, longest, rows)
    return start, duration, rng.integers(0, 2, rows).astype(np.uint32), rng.choice([0, 7], rows).astype(np.uint16)


@pytest.mark.parametrize("longest", LONGEST)
@pytest.mark.parametrize("seed", range(8))
def test_the_sweep_over_launches_equals_brute_force_in_any_chunks(seed, longest):
    rng = np.random.default_rng(seed)
    rows = 400
    start, duration, rank, device = events(rng, rows, longest)
    configuration = rng.integers(0, 5, rows).astype(np.uint32)
    kernel_of = np.array([0, 1, 1, 0, 2])
    means = np.array([3.0, 5.5, 1.25, 8.0, 2.0])
    launch = np.sort(rng.choice(np.flatnonzero(rank == 1), 90, replace=False))
    sweep = LaunchSweep(1, launch, kernel_of, means)
    for chunk in chunks_of(rng, start, duration, configuration, rank, device):
        assert sweep.add(*chunk) == -1
    sweep.finish()
    end = start + duration
    for k, i in enumerate(launch.tolist()):
        others = np.flatnonzero((rank == 1) & (device == device[i]) & (np.arange(rows) != i))
        begun = others[start[others] <= start[i]]
        same = others[(others < i) & (kernel_of[configuration[others]] == kernel_of[configuration[i]])]
        in_flight = int((end[begun] > start[i]).sum())
        flying = begun[end[begun] > start[i]]
        beside = configuration[min(flying, key=lambda row: (-end[row], row))] if flying.size else ALONE
        idle = max(0, start[i] - end[begun].max()) if begun.size else np.nan
        before = duration[same[-1]] - means[configuration[same[-1]]] if same.size else np.nan
        found = (sweep.start[k], sweep.device[k], sweep.in_flight[k], sweep.beside[k], sweep.idle[k], sweep.previous[k])
        assert np.array_equal(found, (start[i], device[i], in_flight, beside, idle, before), equal_nan=True), (k, i)


def test_a_launch_with_an_unknown_configuration_is_named():
    columns = (np.arange(3), np.ones(3, np.int64), np.array([0, 4, 0], np.uint32), np.zeros(3, np.uint32))
    sweep = LaunchSweep(0, np.array([2]), np.array([0]), np.array([1.0]))
    sweep.add(*columns[:2], np.zeros(3, np.uint32), columns[3], np.zeros(3, np.uint16))
    assert sweep.add(*columns, np.zeros(3, np.uint16)) == 4
    without_means = LaunchSweep(0, np.array([2]), np.array([0]), None)
    assert without_means.add(*columns, np.zeros(3, np.uint16)) == -1


@pytest.mark.parametrize("longest", LONGEST)
@pytest.mark.parametrize("seed", range(8))
def test_the_sweep_over_transfers_equals_brute_force_in_any_chunks(seed, longest):
    rng = np.random.default_rng(100 + seed)
    rows = 400
    start, duration, rank, device = events(rng, rows, longest)
    size = rng.integers(0, 9, rows)
    kind = rng.choice([1, 2, 11, 10], rows).astype(np.uint8)
    instants = np.sort(rng.integers(-3, 160, 90))
    of_instant = rng.choice([0, 7, 9], 90)  # of device 9 there are no transfers
    sweep = TransferSweep(1, instants, of_instant, [(1, 11), (2,)])
    for chunk in chunks_of(rng, start, duration, size, kind, rank, device):
        sweep.add(*chunk)
    sweep.finish()
    end = start + duration
    for k, t in enumerate(instants.tolist()):
        mine = (rank == 1) & (device == of_instant[k])
        flying = mine & (start <= t) & (t < end)
        inputs = np.isin(kind, (1, 11))
        sums = [flying.sum(), size[flying & inputs].sum(), size[flying & (kind == 2)].sum()]
        assert sweep.in_flight[:, k].tolist() == sums, (k, t)
        ended = [(end[i], i) for i in np.flatnonzero(mine & inputs & (end <= t))]
        assert np.array_equal(sweep.last[k], size[max(ended)[1]] if ended else np.nan, equal_nan=True), (k, t)
