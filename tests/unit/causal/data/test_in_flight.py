import numpy as np
import pytest

from causeway.causal.data.in_flight import InFlight, LastEnded, LastValue, idle_before, whole_instants


def chunked(columns, sizes):
    first = 0
    for size in sizes:
        yield {name: values[first : first + size] for name, values in columns.items()}
        first += size


@pytest.mark.parametrize("seed", range(8))
def test_sums_in_flight_equal_brute_force_in_any_chunks(seed):
    rng = np.random.default_rng(seed)
    starts = np.sort(rng.integers(0, 120, 200))  # many ties
    ends = starts + rng.integers(0, 25, 200)  # some empty
    weights = np.column_stack([np.ones(200, np.int64), rng.integers(0, 9, 200)])
    instants = np.sort(rng.integers(-3, 160, 90))
    cuts = np.sort(rng.integers(0, 201, 6))
    sizes = np.diff([0, *cuts, 200])
    state = InFlight(2)
    found = []
    begun = 0
    for chunk, boundary in whole_instants(chunked({"start": starts, "end": ends, "row": np.arange(200)}, sizes)):
        until = instants.size if boundary is None else np.searchsorted(instants, boundary)
        found.append(state.advance(chunk["start"], chunk["end"], weights[chunk["row"]], instants[begun:until]))
        begun = until
    expected = [weights[(starts <= t) & (t < ends)].sum(axis=0) for t in instants]
    assert np.array_equal(np.vstack(found), np.array(expected))


@pytest.mark.parametrize("seed", range(8))
def test_what_ended_last_equals_brute_force_in_any_chunks(seed):
    rng = np.random.default_rng(200 + seed)
    starts = np.sort(rng.integers(0, 120, 60))
    ends = starts + rng.integers(0, 40, 60)
    instants = np.sort(rng.integers(-3, 200, 90))
    sizes = np.diff([0, *np.sort(rng.integers(0, 61, 5)), 60])
    state = LastEnded()
    found = []
    begun = 0
    for chunk, boundary in whole_instants(chunked({"start": starts, "end": ends, "row": np.arange(60)}, sizes)):
        until = instants.size if boundary is None else np.searchsorted(instants, boundary)
        found.append(state.advance(chunk["end"], chunk["row"].astype(float), instants[begun:until], boundary))
        begun = until
    ended = [[(ends[i], i) for i in range(60) if ends[i] <= t] for t in instants]
    assert np.array_equal(np.concatenate(found), [max(ones)[1] if ones else np.nan for ones in ended], equal_nan=True)


@pytest.mark.parametrize("seed", range(8))
def test_idle_time_equals_brute_force_in_any_chunks(seed):
    rng = np.random.default_rng(100 + seed)
    starts = np.sort(rng.integers(0, 400, 120))
    ends = starts + rng.integers(0, 6, 120)
    found = []
    latest = None
    for chunk, _ in whole_instants(chunked({"start": starts, "end": ends}, [50, 1, 0, 69])):
        found.append(idle_before(chunk["start"], chunk["end"], latest, np.arange(chunk["start"].size)))
        latest = max(chunk["end"].max(), latest if latest is not None else -1)
    expected = []
    for i in range(120):
        others = [ends[j] for j in range(120) if j != i and starts[j] <= starts[i]]
        expected.append(max(0, starts[i] - max(others)) if others else -1)
    assert np.concatenate(found).tolist() == expected


def test_the_last_value_at_or_before_an_instant():
    state = LastValue(np.array([0, 5, 10, 20, 30]))
    state.advance(np.array([5, 9]), np.array([1.0, 2.0]))
    state.advance(np.array([20, 25]), np.array([3.0, 4.0]))
    assert np.array_equal(state.values, [np.nan, 1.0, 2.0, 3.0, 4.0], equal_nan=True)


def test_equal_starts_stay_together():
    chunks = list(whole_instants(chunked({"start": np.array([1, 2, 2, 2, 3])}, [2, 1, 2])))
    assert [(chunk["start"].tolist(), boundary) for chunk, boundary in chunks] == [
        ([1], 2),
        ([2, 2, 2], 3),
        ([3], None),
    ]
