"""What idle time is lost to: ranges around steps say nothing of it, and a replay that keeps MPI says nothing of MPI."""

from dataclasses import replace
from types import SimpleNamespace

import first_screen_samples as made
import pytest
from first_screen_samples import MS, gain, idle, replay, run, tables
from tests.unit.waiting.waiting_samples import write_export

from causeway.findings.first_screen import work
from causeway.findings.first_screen.advice import advice, against_loss
from causeway.findings.first_screen.losses import LossFact, loss_facts
from causeway.findings.first_screen.words import run_words, work_words


def idle_fact(*waits):
    given = tables(waiting=waits, replay=[replay("host_free", 3)])
    return next(fact for fact in loss_facts(given, run()) if fact.part == "orchestration")


@pytest.mark.parametrize("name", ["ProfilerStep#7", "iteration 3", "train_step", "timestep"])
def test_a_range_around_a_step_is_no_reason(name):
    fact = idle_fact(made.wait(300, detail=f"range: {name}"), made.wait(500, detail="range: save_checkpoint"))
    assert fact.reasons == [
        ("launch_starved", "range: save_checkpoint", 500 * MS),
        ("launch_starved", "host code not recorded", 300 * MS),
    ]


@pytest.mark.parametrize(("mpi_ms", "is_known"), [(700, False), (200, True)])
def test_a_replay_that_keeps_mpi_does_not_stand_for_its_removal(mpi_ms, is_known):
    """Two ranks exchange halos for 28 % of the run: that removing it wins less than 1 % was said."""
    fact = idle_fact(made.wait(mpi_ms, "launch_starved", "MPI: MPI_Sendrecv"), made.wait(800 - mpi_ms))
    assert (fact.gain is not None) == is_known
    assert fact.unknown_ns == 0
    said = [one.words for one in advice(run(), [], [fact], [], [])]
    mpi = f"Start MPI earlier, without blocking, and compute meanwhile: MPI_Sendrecv {mpi_ms // 2} ms."
    assert said == [mpi]
    assert mpi not in [one.words for one in against_loss(fact, run(), has_late=True)]


def test_one_launch_of_milliseconds_loads_code_and_no_graph_shortens_it():
    """One hipLaunchKernel of 6.6 ms before a new kernel, in a trace of 9 ms: "launch less often" was said."""
    fact = replace(idle([("launch_starved", "in hipLaunchKernel", 800)], won_ms=390), long_ns=700 * MS)
    (step,) = advice(run(launches=100), [], [fact], [], [])
    assert step.words == (
        "Launch each kernel once before: a call takes that long where it loads code: hipLaunchKernel 400 ms."
    )


def test_a_step_against_many_small_reasons_names_the_largest():
    """Nothing stood behind the colon."""
    fact = idle(
        [("launch_starved", f"range: part {letter}", 80 + at) for at, letter in enumerate("abcdefgh")], won_ms=300
    )
    (step,) = advice(run(launches=100), [], [fact], [], [])
    assert step.words == "Do less of it on the thread that launches: part h 43.5 ms."


@pytest.mark.parametrize(
    ("streams", "said"), [([7, 14], "Start copies earlier: on their own streams"), ([7, 7], "Copy on")]
)
def test_copies_on_streams_of_their_own_are_not_sent_there(streams, said, tmp_path):
    kernels, copies = streams
    row = {"start_ns": 0, "duration_ns": 50 * MS, "rank": 0, "device": 0}
    write_export(tmp_path / "e0", {"launches": [row | {"stream": kernels}], "transfers": [row | {"stream": copies}]})
    direction = {"kind": 1, "copies": 1, "bytes": MS, "duration_ns": 100 * MS, "sized_ns": MS, "limit_gb_per_s": None}
    given = tables(
        efficiency=made.efficiency(copies=[direction]),
        folders=[tmp_path / "e0"],
        replay=[replay("copies_free", 50)],
    )
    fact = next(fact for fact in loss_facts(given, run()) if fact.part == "transfers")
    (step,) = advice(run(), [], [fact], [], [])
    assert step.words.startswith(said)


def test_sizes_of_a_small_part_of_the_copies_are_not_told_for_all():
    """The size of a copy of 1.57 s was not recorded: 160 MB in 2 copies at 13.6 GB/s, a copy of 12 ms, was said."""
    direction = {"kind": 1, "copies": 2, "bytes": 160 * MS, "duration_ns": 1577 * MS, "limit_gb_per_s": None}
    given = tables(efficiency=made.efficiency(copies=[direction | {"sized_ns": 12 * MS}]))
    fact = next(fact for fact in loss_facts(given, run()) if fact.part == "transfers")
    assert "788 ms host to device in 1 copy." in run_words.of_loss(fact, run())
    direction = {"kind": 2, "copies": 1, "bytes": 64, "duration_ns": 0, "sized_ns": 0, "limit_gb_per_s": None}
    copies = [direction, {**direction, "kind": 1, "duration_ns": 9 * MS, "sized_ns": 9 * MS}]
    assert loss_facts(tables(efficiency=made.efficiency(copies=copies)), run())  # times of a coarse tick may be 0


def test_ranks_that_wait_for_each_other_are_to_be_balanced():
    """Waits of 69 of 81 ms were to be overlapped with compute."""
    fact = LossFact(part="communication", lost_ns=162 * MS, waited_ns=138 * MS, overlap_ns=81 * MS, gain=gain(12))
    step = "Balance the work of the ranks: they wait 69 ms for each other."
    assert [one.words for one in against_loss(fact, run())] == [step]
    assert against_loss(fact, run(), has_late=True) == []
    # ranks that allocate in turns: each waits for the others' hosts, and a replay says that without collectives nothing
    # is won; where kernels limit the run, one rank has more of them
    assert against_loss(replace(fact, gain=gain(0.1, "host")), run()) == []
    assert [one.words for one in against_loss(replace(fact, gain=gain(0.1)), run())] == [step]
    assert [one.words for one in against_loss(replace(fact, gain=gain(120, "host")), run())] == [step]
    half = replace(fact, waited_ns=80 * MS)
    assert [one.words for one in against_loss(half, run())] == [
        "Overlap collectives with compute: up to 1.2 % of the run."
    ]


def test_sends_of_unknown_size_may_wait_for_their_peers():
    """A pipeline's bubble, recorded without sizes: that overlap wins 4 % was said."""
    size = {"operation": "send_recv", "bytes": None, "matched": False, "bus_gb_per_s": None, "best_bus_gb_per_s": None}
    size |= {"collectives": 240, "median_ns": MS, "total_ns": 300 * MS}
    given = tables(collectives=[size], replay=[replay("collectives_free", 44)])
    fact = next(one for one in loss_facts(given, run()) if one.part == "communication")
    assert "It may be waiting for peers: sizes are not recorded." in run_words.of_loss(fact, run())
    (step,) = against_loss(fact, run())
    assert step.words.startswith("Look at when peers send: balance the stages of a pipeline")


def test_devices_of_several_models_are_not_so_many_of_the_first():
    several = run_words.of_run(run(gpus=("NVIDIA A", "NVIDIA B")))
    assert "2 GPUs (NVIDIA A, NVIDIA B), 2 ranks." in several
    assert "2 x NVIDIA H100, 2 ranks." in run_words.of_run(run())


def test_what_one_collective_takes_beyond_the_usual_is_not_hidden_behind_compute():
    """The first all-reduce took 595 ms; all others together took 16 ms, which were said to be 14 % of the run."""
    (fact,) = (fact for fact in loss_facts(tables(), run(), single_ns=260 * MS) if fact.part == "communication")
    assert fact.lost_ns == 300 * MS
    assert fact.overlap_ns == 20 * MS


def test_graphs_traced_as_a_whole_stand_beside_kernels_of_unknown_work():
    """Graphs with 37 % of the time were left out beside kernels with 21 % each (real: graph benchmark, GB200)."""
    kernels = [work.WorkFact(name=name, total_ns=21 * MS, launches=10) for name in ("a", "b", "c")]
    graphs = work.WorkFact(name=work.WHOLE_GRAPHS, total_ns=37 * MS, launches=0)
    unknown = work.WorkFact(name="other kernels", total_ns=63 * MS, launches=30)
    said = work_words.of_work([unknown, graphs], kernels)
    assert said.startswith("100 ms of kernels: CUDA graphs traced as a whole 37 %, a 21 %, b 21 %, c 21 %.")


@pytest.mark.parametrize(
    ("queued", "waits", "said"),
    [
        (
            9.7,
            1600,
            ["Wait less often for the device, so that the host launches ahead: cudaStreamSynchronize 1,600 times"],
        ),
        (9.7, 1599, []),
        (0.2, 1600, ["Capture the launches in a CUDA or HIP graph"]),
        (None, 1600, ["Capture the launches in a CUDA or HIP graph"]),
    ],
)
def test_a_host_that_runs_ahead_between_its_waits_needs_no_graph(queued, waits, said):
    """`.item()` after every fourth kernel: ten launches waited in the queue, and a graph was advised. Waits explain idle
    time of half a millisecond each.
    """
    fact = replace(
        idle([("launch_starved", "operator: aten::add", 800)], won_ms=390), waits=("cudaStreamSynchronize", waits)
    )
    steps = [step.words for step in advice(run(launches=8000, queued=queued), [], [fact], [], [])]
    assert len(steps) == len(said)
    assert all(step.startswith(words_) for step, words_ in zip(steps, said, strict=True))


@pytest.mark.parametrize(
    ("detail", "step"),
    [
        (
            "Python: fit/train.py(52): decode",
            "Do less of it on the thread that launches: fit/train.py(52): decode 300 ms.",
        ),
        (
            "data loader: fit/set.py(4): __getitem__",
            "Load data earlier, with more workers or prefetching: data loader 300 ms.",
        ),
        (
            "garbage collection: collect() in fit/train.py(4): tidy",
            "Collect garbage at set steps on all ranks, or exempt what stays (in Python, gc.freeze):"
            " garbage collection in fit/train.py(4): tidy 300 ms.",
        ),
        (
            "host code not recorded",
            "Record call stacks of native code of the host: host code that is not recorded 300 ms.",
        ),
    ],
)
def test_advice_speaks_of_python_functions_and_asks_for_no_recorded_stacks(detail, step):
    fact = replace(idle([("launch_starved", detail, 600)], won_ms=300), long_ns=600 * MS)
    given = replace(run(launches=100), recorded=("kernels", "Python functions", "ranges"))
    assert [one.words for one in advice(given, [], [fact], [], [])] == [step]


@pytest.mark.parametrize(("recorded", "launches", "steps"), [("kernels", 100, 1), ("calls", 100, 0), ("kernels", 3, 0)])
def test_calls_are_asked_for_where_idle_time_is_not_explained_without_them(recorded, launches, steps):
    """Idle time of 72 % was said not to be explained, and nothing to do about it."""
    fact = idle([], unknown_ms=800)
    held = ("kernels",) if recorded == "kernels" else ("kernels", "runtime calls")
    said = [step.words for step in advice(run(launches=launches, recorded=held), [], [fact], [], [])]
    assert said == ["Record runtime calls: they tell what the devices wait for while they are idle."][:steps]


def test_many_small_python_functions_are_told_together():
    rows = [("launch_starved", f"Python: net.py({line}): f", 20) for line in range(20)]
    fact = idle([*rows, ("launch_starved", "operator: aten::mm", 300)], won_ms=300)
    assert run_words.reasons_in_words(fact, 1) == "many Python functions 400 ms, aten::mm 300 ms"


def test_many_short_parts_of_host_code_are_told_together_and_first_where_they_are_most():
    """The three longest reasons made a third of the idle time, and of the rest nothing was said."""
    rows = [("launch_starved", f"range: part_{number}", 30) for number in range(20)]
    fact = idle([*rows, ("launch_starved", "range: solve", 250), ("blocked_host", "in cudaMalloc", 150)], won_ms=300)
    assert run_words.reasons_in_words(fact, 1) == "host code in many places 600 ms, solve 250 ms, cudaMalloc 150 ms"


def test_the_cause_in_a_plain_table_is_told():
    row = {"feature": "batch", "level": None, "group": "counters", "verdict": "supported", "variance_percent": 99.9}
    row |= {"mean_change_percent": 77.9, "determines_time": True}
    row |= {"spread_change_percent": 119.0, "spread_change_low": 116.0}
    rows = [row, row | {"variance_percent": 3, "feature": "run"}]
    searches = [
        SimpleNamespace(graph={"scope": scope, "scope_name": name}, contributions=causes)
        for scope, name, causes in (("dot-1", "dot", rows), ("axpy-1", "axpy", []), ("dataset", None, []))
    ]
    cause = work.cause_of_most(replace(tables(), searches=searches))
    assert work_words.of_cause(cause, "t_ns") == (
        "batch explains 99.9 % of the variance of dot, unless it is computed from t_ns: from low to high values +78 %"
        " of the mean."
    )
    spread = replace(cause, row=row | {"mean_change_percent": 0.7, "determines_time": False}, kernel=None)
    assert work_words.of_cause(spread, "t_ns") == (
        "batch explains 99.9 % of the variance: from low to high values +119 % of the spread; the mean stays."
    )


def test_a_table_without_a_cause_says_so_and_what_correlates():
    graph = {"n_rows": 2600, "beyond": None}
    assert work_words.of_no_cause([graph], None) == "No column is a supported cause, in 2,600 rows."
    earlier = {"n_rows": 2600, "beyond": {"features": ["flush"], "is_earlier": True, "share": 0.89}}
    assert work_words.of_no_cause([graph, earlier], 0.1) == (
        "No column is a supported cause, in 2,600 rows, which deviate from their mean by 10 % on average. But flush one"
        " row earlier correlates with it: 89 % of the variance."
    )
    pair = {"n_rows": 9, "beyond": {"features": ["a", "b"], "is_earlier": False, "share": 0.5}}
    assert work_words.of_no_cause([pair], None).endswith(
        "But a and b together correlate with it: 50 % of the variance."
    )


def test_a_function_with_a_long_path_is_told_by_its_name():
    place = "Python: managers/scheduler_output_processor_mixin.py(191): "
    assert run_words.detail_words("launch_starved", f"{place}process_decode") == "process_decode"
    assert run_words.detail_words("launch_starved", "Python: fit/a.py(3): f") == "fit/a.py(3): f"


def test_ranges_around_each_launch_are_nothing_to_do_earlier():
    """Kokkos has a range around each launch: the two with most idle time, a twentieth each, were told."""
    launching = ("launch_starved", "in hipLaunchKernel", 500)

    def said(*ranges):
        fact = idle([launching, *(("launch_starved", f"range: {name}", ms) for name, ms in ranges)], won_ms=390)
        return [step.words for step in advice(run(), [], [fact], [], []) if step.words.startswith("Do less of it")]

    assert said(*((f"forward {name}", 60) for name in "abcde")) == []
    assert said(("save", 300)) == ["Do less of it on the thread that launches: save 150 ms."]


def test_a_gain_that_is_hardly_more_than_the_loss_makes_nobody_wait():
    """Copies of 16.2 ms of 156 ms won 16.4 ms: "without this and the waits that it causes"."""
    assert run_words.of_gain(gain(109), 100 * MS, 1000 * MS).startswith("Without this the run is 109 ms (11 %) shorter")
    assert run_words.of_gain(gain(110), 100 * MS, 1000 * MS).startswith(
        "Without this and the waits that it causes the run"
    )


@pytest.mark.parametrize(("idle_ms", "won_ms", "told_ms"), [(13, 490, 13), (300, 490, 300), (300, 120, 120)])
def test_a_replay_wins_no_time_in_which_devices_compute(idle_ms, won_ms, told_ms):
    """Two streams in turns, 1.3 % idle: that the run is 49 % shorter without it was said, as a replay overlaps them."""
    given = tables(waiting=[made.wait(2 * idle_ms)], replay=[replay("host_free", won_ms)])
    computing = run(parts={"useful": (1000 - idle_ms) * 2 * MS, "orchestration": idle_ms * 2 * MS})
    fact = next(fact for fact in loss_facts(given, computing) if fact.part == "orchestration")
    assert fact.gain.saved_ns == told_ms * MS
