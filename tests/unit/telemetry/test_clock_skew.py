"""The skew of a clock: busy time held against brute force; recovered within its interval, refused where it cannot be."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from causeway.core.tables import write_table
from causeway.telemetry.busy_time_cells import busy_times
from causeway.telemetry.clock_skew import MAX_SKEW_S, Load, estimate_skew

SECOND = 1_000_000_000


def launches_of(path, start, duration, rank, device):
    zeros = np.zeros(len(start), np.int64)
    columns = {"start_ns": start, "duration_ns": duration, "rank": rank, "device": device}
    columns |= {"configuration": zeros, "stream": zeros}
    empty = pa.nulls(len(start), pa.int64())
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    for name in ("queue_ns", "range", "correlation"):
        table = table.append_column(name, empty)
    write_table(table, path, "launches")


def test_busy_time_by_brute_force(tmp_path, monkeypatch):
    monkeypatch.setattr("causeway.telemetry.busy_time_cells.CHUNK_ROWS", 37)
    random = np.random.default_rng(3)
    start = np.sort(random.integers(0, 3000, 400))
    duration = random.integers(0, 40, 400)
    rank = random.integers(0, 2, 400)
    device = random.integers(0, 2, 400)
    launches_of(tmp_path / "launches.parquet", start, duration, rank, device)
    keys = [(0, 0), (0, 1), (1, 0), (1, 1), (5, 5)]
    found = busy_times(tmp_path / "launches.parquet", keys, -100, 70, 50)
    for key in keys:
        busy = np.zeros(4000, bool)
        for at in np.flatnonzero((rank == key[0]) & (device == key[1])):
            busy[100 + start[at] : 100 + start[at] + duration[at]] = True
        assert found[key].tolist() == busy[: 50 * 70].reshape(50, 70).sum(axis=1).tolist()


def load_of(random, *, seconds=180, interval=SECOND, skew=0, noise=0.02, pattern="phases", window=None):
    """Return the load of a device and what was read of it: averages over `window`, the sampling interval if None."""
    window = window or interval
    width = interval // 20
    cells = seconds * SECOND // width
    beside = MAX_SKEW_S * SECOND // width
    time = np.arange(-beside, cells + beside) * width / SECOND
    if pattern == "phases":
        edges = np.cumsum(random.uniform(2, 12, 200))
        share = (np.searchsorted(edges, time) % 2).astype(float)
    elif pattern == "periodic":
        share = (time % 10 < 5).astype(float)
    else:
        share = np.full(time.size, 0.9)
    if pattern == "phases":  # nothing runs outside; else it goes on as within
        share[(time < 0) | (time >= seconds)] = 0
    ran = np.concatenate([[0], np.cumsum(np.rint(share * width).astype(np.int64))])
    before = ran[beside : beside + cells + 1] - ran[beside]
    count = (seconds + 2 * MAX_SKEW_S) * SECOND // interval
    own = -MAX_SKEW_S * SECOND + int(random.integers(interval)) + interval * np.arange(count)
    edges = width * np.arange(-beside, cells + beside + 1)
    values = (np.interp(own, edges, ran) - np.interp(own - window, edges, ran)) / window
    values = np.round(values + random.normal(0, noise, count), 2)
    return Load(busy_ns=before, origin_ns=7 * SECOND, width_ns=width, times=own + 7 * SECOND + skew, values=values)


@pytest.mark.parametrize("noise", [pytest.param(0.02, marks=pytest.mark.slow), 0.3])
def test_the_skew_lies_in_its_interval(noise):
    hits = 0
    for seed in range(6):
        random = np.random.default_rng([41, seed])
        skew = int(random.uniform(-100, 100) * SECOND)
        loads = [load_of(random, skew=skew, noise=noise, seconds=120) for _ in range(2)]
        found = estimate_skew(loads, SECOND)
        assert found.skew_ns is not None
        assert found.high_ns - found.low_ns < 6 * SECOND
        hits += found.low_ns <= skew <= found.high_ns
    assert hits >= 5


@pytest.mark.parametrize("window", [3, pytest.param(9, marks=pytest.mark.slow)])
def test_readings_of_a_clock_that_agrees_are_late_by_what_the_tool_averages_over(window):
    """The centre of an average over w is w/2 old, that of the sampling interval, which it is held against, 1/2."""
    tenth = SECOND // 10
    load = load_of(np.random.default_rng([43, 0]), interval=tenth, window=window * tenth, seconds=60)
    found = estimate_skew([load], tenth)
    late = (window - 1) * tenth // 2
    assert abs(found.skew_ns - late) <= tenth // 2
    assert 0 < found.low_ns <= late <= found.high_ns


def test_readings_whose_times_are_cut_to_whole_seconds_are_early():
    """Readings each 1.05 s: what is cut off is anything below a second, half of one on average."""
    found = []
    for seed in range(4):
        load = load_of(np.random.default_rng([44, seed]), interval=1_050_000_000)
        cut = load.times // SECOND * SECOND
        found.append(estimate_skew([dataclasses.replace(load, times=cut)], 1_050_000_000).skew_ns / SECOND)
    assert -0.7 < min(found) <= max(found) < -0.3


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("periodic", "several shifts fit about as well"), ("constant", "vary"), ("unrelated", "significantly")],
)
def test_without_a_clear_maximum_there_is_no_skew(pattern, reason):
    for seed in range(6):
        random = np.random.default_rng([43, seed])
        load = load_of(random, pattern="phases" if pattern == "unrelated" else pattern, noise=0.0)
        if pattern == "unrelated":  # what another job did
            other = load_of(random, noise=0.1)
            load = Load(**vars(load) | {"times": other.times, "values": other.values})
        found = estimate_skew([load], SECOND)
        assert found.skew_ns is None
        assert reason in found.reason


def test_a_skew_of_a_whole_hour_is_no_skew():
    random = np.random.default_rng(47)
    found = estimate_skew([load_of(random, skew=3600 * SECOND)], SECOND)
    assert found.skew_ns is None
