"""Clocks and stragglers of simulated runs of eight ranks, whose clocks are off by up to 50 ms and drift, against
what was planted.
"""

import functools

import numpy as np
import pytest
from efficiency_samples import rank_collectives
from scipy.signal import lfilter

from causeway.core.clock import Clock
from causeway.efficiency.ranks import clock_alignment, collectives, stragglers
from causeway.simulate import schedule
from causeway.simulate.scenario import clock_of, delayed_iterations, is_collective, trace_scenario

RANKS = 8
ITERATIONS = 240


class Run:
    """A played run as its ranks' clocks saw it: the collectives of each rank, and what was planted."""

    def __init__(self, **values):
        base = {
            "ranks": RANKS,
            "iterations": ITERATIONS,
            "collective": "wait",
            "clock_error_us": 50_000,
            "clock_drift_ppm": 20,
            "gpu_metrics_us": None,
            "copies": (),
            "seed": 11,
        }
        self.scenario = trace_scenario({**base, **values})
        numbers = [number for number, kernel in enumerate(self.scenario.kernels) if is_collective(kernel)]
        self.rows = {rank: [] for rank in range(RANKS)}
        self.end = 0
        for batches in schedule.simulate_batches(self.scenario):
            for batch in batches:
                chosen = np.isin(batch.kernels["kernel"], numbers)
                times = (self.clock(batch.rank, batch.kernels[name][chosen]).tolist() for name in ("start", "end"))
                self.rows[batch.rank] += [
                    (start, end, "allreduce", "0", None, 1 << 20) for start, end in zip(*times, strict=True)
                ]
                self.end = max(self.end, int(batch.kernels["end"].max()))
        self.planted = np.flatnonzero(delayed_iterations(self.scenario))

    def clock(self, rank, times):
        error, drift = clock_of(self.scenario, rank)
        return times + error + np.rint(times * drift).astype(np.int64)

    def document(self):
        exports = {str(rank): {"shift_ns": 0, "ranks": [rank]} for rank in range(RANKS)}
        return {
            "dataset": "d",
            "method": "session_start",
            "exports": exports,
            "residual_ns": None,
            "reason": "as they say",
        }


@functools.cache
def played(**values):
    run = Run(**values)
    run.groups, run.notes = collectives.match([{rank: rank_collectives(rows)} for rank, rows in run.rows.items()])
    run.clocks = clock_alignment.realigned(run.document(), run.groups)
    run.of_rank = {rank: Clock.of(run.clocks["exports"][str(rank)]) for rank in range(RANKS)}
    run.found = stragglers.analyse(run.groups[0], run.of_rank)
    run.verdict = stragglers.verdict_of(run.found, run.groups[0])
    return run


CASES = {
    "none": {},
    "persistent": {"straggler": "compute", "straggler_rank": 3},
    "transient": {"straggler": "compute", "straggler_rank": 5, "straggler_share": 0.2},
    "host": {"straggler": "host", "straggler_rank": 2},
    "network": {"straggler": "network", "straggler_share": 0.4},
}


@pytest.mark.parametrize("case", CASES)
def test_clocks_are_aligned_to_less_than_five_microseconds(case):
    run = played(**CASES[case])
    assert run.clocks["method"] == "collective_ends"
    assert run.clocks["residual_ns"] < 5_000
    moments = np.linspace(0, run.end, 50).astype(np.int64)
    truth = run.of_rank[0].aligned(run.clock(0, moments))
    for rank in range(RANKS):
        assert np.abs(run.of_rank[rank].aligned(run.clock(rank, moments)) - truth).max() < 5_000
        error, drift = clock_of(run.scenario, rank)
        entry = run.clocks["exports"][str(rank)]
        relative = (1 + clock_of(run.scenario, 0)[1]) / (1 + drift) - 1
        assert entry["drift_ppb"] == pytest.approx(1e9 * relative, abs=1000)
        assert rank == 0 or abs(error) < 50_000_000


@pytest.mark.parametrize("case", ["persistent", "transient", "host"])
def test_the_planted_straggler_is_found(case):
    run = played(**CASES[case])
    rank = run.scenario.straggler_rank
    assert (run.found["straggler"][run.planted] == rank).mean() >= 0.95
    others = np.delete(run.found["straggler"], run.planted)
    assert not (others >= 0).any()
    assert run.verdict["verdict"] == "straggler"
    patterns = {entry["rank"]: entry["pattern"] for entry in run.verdict["ranks"]}
    assert patterns == dict.fromkeys(range(RANKS), "none") | {
        rank: "transient" if case == "transient" else "persistent"
    }


def test_nobody_is_named_where_nothing_was_planted():
    run = played(**CASES["none"])
    assert run.verdict["verdict"] == "inconclusive"
    assert {entry["pattern"] for entry in run.verdict["ranks"]} == {"none"}
    assert not (run.found["straggler"] >= 0).any()


def test_a_slow_network_is_no_straggler():
    run = played(**CASES["network"])
    assert run.verdict["verdict"] == "network"
    assert run.found["slow"][run.planted].mean() >= 0.95
    assert not np.delete(run.found["slow"], run.planted).any()
    assert {entry["pattern"] for entry in run.verdict["ranks"]} == {"none"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(201, 206))
@pytest.mark.parametrize("case", CASES)
def test_other_runs_give_the_same_answers(case, seed):
    values = CASES[case] | (
        {"straggler_rank": (CASES[case]["straggler_rank"] + seed) % RANKS} if "straggler_rank" in CASES[case] else {}
    )
    run = played(**values, seed=seed)
    assert run.clocks["residual_ns"] < 5_000
    assert run.verdict["verdict"] == {"none": "inconclusive", "network": "network"}.get(case, "straggler")
    if "straggler_rank" in values:
        assert (run.found["straggler"][run.planted] == values["straggler_rank"]).mean() >= 0.95
    named = {entry["rank"]: entry["pattern"] for entry in run.verdict["ranks"] if entry["pattern"] != "none"}
    expected = {"persistent": "persistent", "host": "persistent", "transient": "transient"}
    assert named == ({values["straggler_rank"]: expected[case]} if case in expected else {})


NOISE = {
    "normal": lambda random, shape: random.normal(0, 1, shape),
    "one-sided": lambda random, shape: random.exponential(1, shape),
    "heavy tails": lambda random, shape: random.standard_t(2, shape),
    "slow waves": lambda random, shape: lfilter([0.31], [1, -0.95], random.normal(0, 1, shape)),
}
"""How ranks arrive about a common moment by chance, in units of the scatter."""


def arriving(seed, noise, count=30, ranks=RANKS, late=0.0, slow=0.0):
    """Return the verdict on ranks that arrive with a scatter of 20 us, rank 1 now and then 300 us late, transfers
    now and then slow.
    """
    random = np.random.default_rng(seed)
    arrival = 5e6 * np.cumsum(random.uniform(0.9, 1.1, count)) + 20e3 * NOISE[noise](random, (ranks, count))
    arrival[1] += 300e3 * (random.random(count) < late)
    transfer = 100e3 * np.exp(0.05 * random.normal(0, 1, count)) + 500e3 * (random.random(count) < slow)
    end = arrival.max(axis=0) + transfer + random.normal(0, 300, (ranks, count))
    offset = random.uniform(-50e6, 50e6, (ranks, 1))
    drift = random.uniform(-20e-6, 20e-6, (ranks, 1))
    start, end = (np.rint(times * (1 + drift) + offset).astype(np.int64) for times in (arrival, end))
    group = collectives.MatchedCollectives(
        "0", list(range(ranks)), start, end, ["all_reduce"] * count, np.full(count, 1 << 20)
    )
    exports = {str(rank): {"shift_ns": 0, "ranks": [rank]} for rank in range(ranks)}
    document = {
        "dataset": "d",
        "method": "session_start",
        "exports": exports,
        "residual_ns": None,
        "reason": "as they say",
    }
    aligned = clock_alignment.realigned(document, [group])["exports"]
    return stragglers.verdict_of(
        stragglers.analyse(group, {rank: Clock.of(aligned[str(rank)]) for rank in range(ranks)}), group
    )


@pytest.mark.parametrize("ranks", [2, 3, 8, pytest.param(64, marks=pytest.mark.slow)])
@pytest.mark.parametrize("noise", NOISE)
def test_chance_is_no_straggler_however_it_is_distributed(noise, ranks):
    """Twenty short runs of each kind: one in a hundred may name a rank by chance, and slow waves of few ranks a few
    more.
    """
    named = [arriving(seed, noise, 30, ranks)["verdict"] != "inconclusive" for seed in range(20)]
    assert sum(named) <= 1


@pytest.mark.parametrize("noise", NOISE)
def test_slow_transfers_and_late_ranks_together(noise):
    for seed in range(5):
        assert arriving(seed, noise, 240, late=1.0, slow=0.3)["verdict"] == "mixed"
        assert arriving(seed, noise, 240, slow=0.3)["verdict"] == "network"
        found = arriving(seed, noise, 240, late=0.3)
        assert [entry["pattern"] for entry in found["ranks"]] == ["none", "transient", *["none"] * (RANKS - 2)]


def test_with_clocks_as_they_are_nobody_is_named():
    """One clock 20 ms off would make its rank the straggler of every collective: too uncertain to name anybody."""
    run = played(**CASES["persistent"])
    found = stragglers.analyse(run.groups[0], dict.fromkeys(range(RANKS), Clock()))
    assert (found["straggler"] < 0).all()
    assert stragglers.verdict_of(found, run.groups[0])["verdict"] == "inconclusive"


def test_ends_that_are_no_common_events_are_not_used():
    run = played(collective="noise")
    assert run.clocks["method"] == "session_start"
    assert "no common events" in run.clocks["reason"]


def test_times_of_reasons_are_in_one_unit():
    quiet = np.arange(20) * 10_000_000 + np.zeros((3, 1), np.int64)
    for reason in (judged(quiet)[1]["reason"], played(**CASES["persistent"]).clocks["reason"]):
        assert reason.count(" µs") == 2
        assert " us" not in reason


def test_who_waits_for_whom():
    group = collectives.MatchedCollectives("g", [0, 1], np.array([[0, 100], [40, 100]]), np.array([[60, 120], [60, 120]]), ["all_reduce"] * 2,
                              np.array([80, -1]))  # fmt: skip
    found = stragglers.analyse(group, {0: Clock(), 1: Clock()})
    assert found["skew"].tolist() == [40, 0]
    assert found["transfer"].tolist() == [20, 20]
    assert found["bus_gb_per_s"][0] == 2 * 1 / 2 * 80 / 20
    assert np.isnan(found["bus_gb_per_s"][1])


def judged(start):
    """Return the verdict on ranks with one clock that enter collectives at `start`, ns; shape (ranks, collectives)."""
    end = np.broadcast_to(start.max(axis=0) + 100_000, start.shape)
    ranks, count = start.shape
    sizes = np.full(count, 1 << 20)
    group = collectives.MatchedCollectives("g", list(range(ranks)), start, end, ["all_reduce"] * count, sizes)
    found = stragglers.analyse(group, dict.fromkeys(range(ranks), Clock()))
    return found, stragglers.verdict_of(found, group)


def waited_for(start, rank):
    """Return in how many collectives a rank is last and how long the others wait then, one by one."""
    late = [row for row in start.T.tolist() if all(row[rank] > other for at, other in enumerate(row) if at != rank)]
    return len(late), sum(row[rank] - other for row in late for other in row)


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_a_named_rank_is_judged_by_all_collectives_in_which_it_is_last(ranks):
    """The last rank is 20 to 40 us late in each of 60 collectives, 300 us in every fifth, which alone are more than
    1 % of the 10 ms between collectives.
    """
    random = np.random.default_rng(31)
    late = np.where(np.arange(60) % 5 == 0, 300_000, random.integers(20_000, 40_000, 60))
    scatter = random.integers(-9_000, 9_000, (ranks, 60))
    start = np.arange(60) * 10_000_000 + scatter
    start[-1] += late
    found, verdict = judged(start)
    last, waited = waited_for(start, ranks - 1)
    entry = verdict["ranks"][-1]
    assert (last, found["late"][-1].sum(), entry["collectives"]) == (60, 12, 12)
    assert (entry["last_collectives"], entry["last_share"], entry["pattern"]) == (60, 1.0, "persistent")
    assert entry["waiting_for_it_ns"] == waited == verdict["waiting_ns"]
    assert [row[-1] for row in verdict["matrix_ns"]] == (start[-1] - start).sum(axis=1).tolist()
    assert verdict["reason"] == (
        f"rank {ranks - 1} is last in 100 % of the collectives, and late beyond the threshold in 20 %"
    )
    if ranks == 2:
        assert found["lateness"].tolist() == found["skew"].tolist() == abs(start[1] - start[0]).tolist()


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_a_rank_that_is_last_by_chance_besides_stays_transient(ranks):
    """Late by 300 us in every fifth collective, one of many else: of two ranks it then is last in 60 %."""
    random = np.random.default_rng(32)
    start = np.arange(200) * 2_000_000 + random.integers(-9_000, 9_000, (ranks, 200))
    start[-1, ::5] += 300_000
    _, verdict = judged(start)
    last, waited = waited_for(start, ranks - 1)
    entry = verdict["ranks"][-1]
    assert (entry["collectives"], entry["last_collectives"], entry["waiting_for_it_ns"]) == (40, last, waited)
    assert last > 100 or ranks > 2
    assert [one["pattern"] for one in verdict["ranks"]] == ["none"] * (ranks - 1) + ["transient"]


def test_a_rank_that_nobody_waits_for_is_no_straggler():
    """Rank 1 is late against rank 0, which does the same work; ranks 2 and 3 do other work and come later still."""
    start = np.arange(40) * 2_000_000 + np.array([[0], [100_000], [500_000], [500_100]])
    start += np.random.default_rng(33).integers(0, 50, start.shape)
    end = np.broadcast_to(start.max(axis=0) + 100_000, start.shape)
    group = collectives.MatchedCollectives("g", [0, 1, 2, 3], start, end, ["all_reduce"] * 40, np.full(40, -1))
    found = stragglers.analyse(group, dict.fromkeys(range(4), Clock()), {0: 0, 1: 0, 2: 1, 3: 1})
    assert found["late"][1].all()
    verdict = stragglers.verdict_of(found, group)
    assert [one["pattern"] for one in verdict["ranks"]] == ["none"] * 4
    assert verdict["ranks"][1]["waiting_for_it_ns"] == 0


def test_collectives_are_matched_by_number_else_by_order_else_not():
    def rows(numbers, name="allreduce", offset=0):
        return rank_collectives(
            [(10 * n + offset, 10 * n + 5 + offset, name, "0", number, 8) for n, number in enumerate(numbers)]
        )

    groups, _ = collectives.match([{0: rows([4, 5, 6])}, {1: rows([5, 6, 7])}])
    assert groups[0].start.tolist() == [[10, 20], [0, 10]]
    groups, _ = collectives.match([{0: rows([None] * 2)}, {1: rows([None] * 2, offset=3)}])
    assert groups[0].start.tolist() == [[0, 10], [3, 13]]
    groups, notes = collectives.match([{0: rows([None] * 2)}, {1: rows([None] * 3)}])
    assert not groups
    assert notes == ["communicator 0: ranks have 2 to 3 collectives, or not the same ones in order, and no numbers"]
    assert collectives.match([{0: rows([1])}])[1] == ["no collective of the GPUs runs on two ranks or more"]


OPERATIONS = {
    "ncclKernel_AllReduce_RING_LL_Sum_float": "all_reduce",
    "allgather_into_tensor": "all_gather",
    "_reduce_scatter_base": "reduce_scatter",
    "ncclDevKernel_SendRecv": "send_recv",
    "broadcast": "broadcast",
    "alltoall_base": "all_to_all",
    "ncclDevKernel_Generic": "other",
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_by_name(name):
    assert collectives.operation(name) == OPERATIONS[name]
