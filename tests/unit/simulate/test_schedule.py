import numpy as np
import pytest

from causeway.simulate.scenario import SATURATION, SIGNS, causes_of, trace_scenario
from causeway.simulate.schedule import COMPUTE_STREAM, SYNCHRONIZE, simulate_batches

from .observed import deviations, effective_size, features, joined

TABLES = ("kernels", "copies", "memsets", "calls", "ranges", "samples")


def run(**values):
    """Return the scenario and, per rank, its tables over all batches."""
    scenario = trace_scenario(values)
    batches = list(simulate_batches(scenario))
    return scenario, [
        {table: joined([getattr(b[rank], table) for b in batches]) for table in TABLES}
        for rank in range(scenario.ranks)
    ]


@pytest.fixture(scope="module")
def demo():
    return run()


@pytest.fixture(scope="module")
def observed(demo):
    """Launches of all ranks with features, in order of rank and start."""
    _, ranks = demo
    parts = []
    for number, rank in enumerate(ranks):
        kernels = rank["kernels"]
        parts.append(kernels | features(kernels, rank["copies"]) | {"rank": np.full(len(kernels["start"]), number)})
    return joined(parts)


@pytest.mark.parametrize("batch", [512, 7])
def test_streams_are_serial_and_rows_in_order(batch):
    scenario, ranks = run(iterations=40, ranks=3, nodes=1, iterations_per_batch=batch)
    assert scenario.ranks == len(ranks) == 3
    for rank in ranks:
        lanes = [rank["kernels"], rank["copies"]]
        for events in lanes:
            assert (np.diff(events["start"]) >= 0).all()
            assert (events["end"] > events["start"]).all()
        everything = joined([{k: part[k] for k in ("start", "end", "stream")} for part in [*lanes, rank["memsets"]]])
        for stream in np.unique(everything["stream"]):
            order = np.argsort(everything["start"][everything["stream"] == stream])
            start, end = (everything[k][everything["stream"] == stream][order] for k in ("start", "end"))
            assert (start[1:] >= end[:-1]).all()
        for thread in np.unique(rank["calls"]["thread"]):
            chosen = rank["calls"]["thread"] == thread
            assert (rank["calls"]["start"][chosen][1:] >= rank["calls"]["end"][chosen][:-1]).all()
        assert (rank["ranges"]["start"][1:] > rank["ranges"]["end"][:-1]).all()
        assert (rank["ranges"]["iteration"] == np.arange(40)).all()


@pytest.mark.parametrize("host", [{}, {"host": "ahead", "straggler": "none"}])
def test_every_event_has_a_call_that_ends_before_it_within_its_iteration(host):
    _, ranks = run(iterations=30, ranks=2, **host)
    for rank in ranks:
        calls = rank["calls"]
        assert (np.diff(calls["correlation"]) == 1).all()
        issued = np.concatenate([rank[table]["correlation"] for table in ("kernels", "copies", "memsets")])
        assert len(np.unique(issued)) == len(issued) == len(calls["start"]) - 30  # one synchronisation each iteration
        for table in ("kernels", "copies", "memsets"):
            at = rank[table]["correlation"] - calls["correlation"][0]
            assert (calls["end"][at] <= rank[table]["start"]).all()
            inside = np.searchsorted(rank["ranges"]["start"], calls["start"][at], side="right") - 1
            assert (rank["ranges"]["start"][inside] <= calls["start"][at]).all()
            assert (rank[table]["end"] <= rank["ranges"]["end"][inside]).all()


def test_a_host_that_runs_ahead_moves_calls_alone():
    """One thread issues all of an iteration before it waits, and the device does what it did."""
    _, close = run(iterations=30, ranks=2, straggler="none")
    _, ahead = run(iterations=30, ranks=2, straggler="none", host="ahead")
    for one, other in zip(close, ahead, strict=True):
        for table in ("kernels", "copies", "memsets"):
            for column in ("start", "end", "stream"):
                assert (one[table][column] == other[table][column]).all()
        calls = other["calls"]
        assert set(calls["thread"].tolist()) == {0}
        assert (calls["start"][1:] >= calls["end"][:-1]).all()
        waits = calls["call"] == SYNCHRONIZE
        assert waits.sum() == 30
        begins = np.searchsorted(other["ranges"]["start"], calls["start"], side="right")
        assert (np.flatnonzero(waits) == np.flatnonzero(np.append(np.diff(begins) > 0, True))).all()
        queued = other["kernels"]["start"] - calls["end"][other["kernels"]["correlation"] - calls["correlation"][0]]
        assert np.median(queued) > 500_000  # some hundred calls of 2 us against launches of 20 us and more


def test_same_seed_same_run_and_another_seed_another_run():
    _, first = run(iterations=10, seed=4)
    _, again = run(iterations=10, seed=4)
    _, other = run(iterations=10, seed=5)
    for table in TABLES:
        for column in first[0][table]:
            assert (first[1][table][column] == again[1][table][column]).all()
    assert not np.array_equal(first[0]["kernels"]["end"], other[0]["kernels"]["end"][: len(first[0]["kernels"]["end"])])


def test_planted_effects_follow_from_the_state_at_the_start(demo, observed):
    scenario, _ = demo
    expected = np.zeros(len(observed["start"]))
    for number, kernel in enumerate(scenario.kernels):
        own = observed["kernel"] == number
        for cause, strength in kernel.causes.items():
            if cause not in SATURATION:
                continue
            x = observed[cause][own] / SATURATION[cause]
            part = (
                np.maximum(0, 1 - x)
                if SIGNS[cause] == "-"
                else x
                if cause == "launches_in_flight"
                else np.minimum(1, x)
            )
            expected[own] += strength * part
    assert np.allclose(observed["effect"], expected, atol=1e-12)
    for number, kernel in enumerate(scenario.kernels):  # and durations follow from the effects, up to noise of mean 1
        own = (observed["kernel"] == number) & (kernel.rho == 0) & (kernel.spike_share == 0)
        if own.any():
            duration = (observed["end"] - observed["start"])[own]
            predicted = observed["mean_ns"][own] + 1000 * kernel.base_us * observed["effect"][own]
            assert np.mean(duration / predicted) == pytest.approx(1, abs=0.002)


def test_planted_causes_move_the_deviation_and_its_magnitude_alike(demo, observed):
    scenario, _ = demo
    duration = observed["end"] - observed["start"]
    for number, kernel in enumerate(scenario.kernels):
        own = observed["kernel"] == number
        signed = deviations(duration[own], observed["block"][own], observed["grid"][own])
        causes = [cause for cause in kernel.causes if cause in SATURATION]
        if causes:
            x = np.stack(
                [np.minimum(observed[cause][own], SATURATION[cause]).astype(float) for cause in causes], axis=1
            )
            x = (x - x.mean(axis=0)) / x.std(axis=0)
            for y, least in ((signed, 0.3), (np.abs(signed), 0.2)):
                slopes = np.linalg.lstsq(x, (y - y.mean()) / y.std(), rcond=None)[0]
                for cause, slope in zip(causes, slopes, strict=True):
                    assert (slope > least) if SIGNS[cause] == "+" else (slope < -least), (
                        kernel.short_name,
                        cause,
                        slope,
                    )
            affected = observed["effect"][own] > 0
            assert 0.08 < affected.mean() < 0.35
    reduce = next(i for i, kernel in enumerate(scenario.kernels) if kernel.short_name == "reduce_kernel")
    own = observed["kernel"] == reduce
    magnitude = np.abs(deviations(duration[own], observed["block"][own], observed["grid"][own]))
    assert np.corrcoef(magnitude, observed["block"][own])[0, 1] > 0.3
    assert abs(np.corrcoef(magnitude, observed["grid"][own])[0, 1]) < 0.04
    assert len(np.unique(observed["block"][own])) >= 4
    assert len(np.unique(observed["grid"][own])) >= 3


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_else_is_related_to_a_launch(seed):
    scenario, ranks = run(seed=seed)
    parts = [rank["kernels"] | features(rank["kernels"], rank["copies"]) for rank in ranks]
    seen = joined(parts)
    names = (
        "launches_in_flight",
        "transfers_in_flight",
        "h2d_bytes_in_flight",
        "d2h_bytes_in_flight",
        "d2d_bytes_in_flight",
        "last_h2d_bytes",
        "idle_before_ns",
        "grid",
    )
    for number, kernel in enumerate(scenario.kernels):
        if kernel.causes:
            continue
        own = seen["kernel"] == number
        signed = deviations((seen["end"] - seen["start"])[own], seen["block"][own], seen["grid"][own])
        for y in (signed, np.abs(signed)):
            for name in names:
                x = seen[name][own].astype(float)
                if x.std() == 0:
                    continue
                r = np.corrcoef(x, y)[0, 1]
                independent = abs(r) * np.sqrt(len(x)) < 4.2  # else successive launches must explain it
                assert independent or abs(r) * np.sqrt(effective_size(x, y)) < 4.2, (kernel.short_name, name, r)


def test_null_kernels_are_autocorrelated_and_heavy_tailed_as_said(demo, observed):
    scenario, _ = demo
    duration = (observed["end"] - observed["start"]).astype(float)
    for number, kernel in enumerate(scenario.kernels):
        own = (observed["kernel"] == number) & (observed["rank"] == 0)
        if kernel.rho:
            assert not causes_of(kernel)
            series = duration[own] - duration[own].mean()
            assert (series[1:] @ series[:-1]) / (series @ series) == pytest.approx(kernel.rho, abs=0.06)
        if kernel.spike_share:
            assert not causes_of(kernel)
            series = deviations(duration[own], observed["block"][own])
            assert np.mean(series**4) / np.mean(series**2) ** 2 > 6  # 3 for a normal distribution


def test_a_change_of_input_size_moves_the_mean_and_not_the_deviation(demo, observed):
    scenario, _ = demo
    number = next(i for i, kernel in enumerate(scenario.kernels) if kernel.grids_over_time)
    own = observed["kernel"] == number
    grid = observed["grid"][own]
    duration = (observed["end"] - observed["start"])[own].astype(float)
    means = np.array([duration[grid == g].mean() for g in np.unique(grid)])
    spreads = np.array([duration[grid == g].std() for g in np.unique(grid)])
    assert len(means) == 4
    assert means.max() / means.min() > 1.5
    assert spreads.max() / spreads.min() < 1.1


def test_a_clock_drop_slows_its_kernels_on_its_device_and_shows_in_the_samples():
    scenario, ranks = run(iterations=100, clock_rank=1, causes={"Kernel2": {"gpc_clock_frequency_hz": 1.0}})
    for number, rank in enumerate(ranks):
        kernels = rank["kernels"]
        iteration = np.searchsorted(rank["ranges"]["start"], kernels["start"], side="right") - 1
        dropped = (iteration >= 60) & (iteration < 75)
        duration = kernels["end"] - kernels["start"]
        ratio = {
            i: (
                duration[dropped & (kernels["kernel"] == i)].mean()
                / duration[~dropped & (kernels["kernel"] == i)].mean()
            )
            for i in (0, 1)
        }
        assert ratio[0] == pytest.approx(1 / scenario.clock_factor if number == 1 else 1, rel=0.01)
        assert ratio[1] == pytest.approx(1, rel=0.02)
        clock = rank["samples"]["value"][rank["samples"]["metric"] == 0]
        assert (clock.min() < 1.7e9) == (number == 1)


def test_ranks_end_a_collective_together_where_they_wait():
    scenario, ranks = run(iterations=20, collective="wait")
    number = next(i for i, kernel in enumerate(scenario.kernels) if kernel.short_name.startswith("nccl"))
    ends = np.stack([rank["kernels"]["end"][rank["kernels"]["kernel"] == number] for rank in ranks])
    starts = np.stack([rank["kernels"]["start"][rank["kernels"]["kernel"] == number] for rank in ranks])
    assert np.ptp(ends, axis=0).max() < 500
    assert np.ptp(starts, axis=0).min() > 500


def test_sampled_activity_agrees_with_the_events():
    _, ranks = run(iterations=60, gpu_metrics_us=100.0)
    rank = ranks[0]
    busy = rank["samples"]["value"][rank["samples"]["metric"] == 2]
    compute = rank["kernels"]["stream"] == COMPUTE_STREAM
    share = (rank["kernels"]["end"] - rank["kernels"]["start"])[compute].sum() / rank["ranges"]["end"][-1]
    assert (np.diff(rank["samples"]["time"][rank["samples"]["metric"] == 2]) == 100_000).all()
    assert busy.min() >= 0
    assert busy.max() <= 100
    assert busy.mean() / 100 == pytest.approx(
        share, abs=0.02
    )  # the neighbour stream adds a little where the compute stream pauses


@pytest.mark.parametrize("batch", [512, 7])
def test_an_input_acts_through_the_size_of_the_copy_before_the_launch(batch):
    scenario, ranks = run(
        iterations=60, ranks=2, iterations_per_batch=batch, causes={"Kernel2": {"last_h2d_bytes": 0.5}}
    )
    assert scenario.kernels[0].causes == {"last_h2d_bytes": 0.5}
    for rank in ranks:
        kernels = rank["kernels"]
        own = kernels["kernel"] == 0
        size = features(kernels, rank["copies"])["last_h2d_bytes"][own] / SATURATION["last_h2d_bytes"]
        assert np.allclose(kernels["effect"][own], 0.5 * np.clip(2 * size - 1, 0, 1))
        assert 0.1 < (kernels["effect"][own] > 0).mean() < 0.35


@pytest.mark.parametrize(
    "cause", ["d2h_bytes_in_flight", "d2d_bytes_in_flight", "transfers_in_flight", "last_h2d_bytes", "since_start_ns"]
)
def test_the_other_causes_can_be_planted_too(cause):
    _, ranks = run(causes={"Kernel2": {cause: 0.1}, "softmax_warp_forward": {}})
    seen = joined(
        [
            rank["kernels"] | features(rank["kernels"], rank["copies"]) | {"since_start_ns": rank["kernels"]["start"]}
            for rank in ranks
        ]
    )
    for number, strength in ((0, 0.1), (2, 0.0)):
        own = seen["kernel"] == number
        signed = deviations((seen["end"] - seen["start"])[own], seen["block"][own])
        x = np.minimum(seen[cause][own], SATURATION[cause]).astype(float)
        for y in (signed, np.abs(signed)):
            r = np.corrcoef(x, y)[0, 1]
            assert (
                (np.sign(r) == (1 if SIGNS[cause] == "+" else -1) and abs(r) > 0.1)
                if strength
                else abs(r) < 4.2 / np.sqrt(own.sum())
            )
