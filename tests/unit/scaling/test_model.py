"""Efficiency, serial fraction, fit and projection, on times whose answer is known."""

import math

import pytest

from lab.scaling import model, plan
from lab.scaling.study import PUBLISHED, study, write_study
from lab.scaling.timed_runs import REST, phases, runs_here, work

SETTINGS = {"launches": 4_000_000, "exports": 4, "ranks": [4, 1, 2], "repetitions": 2}


def made_runs(times, noise=(0.99, 1.01)):
    """Return runs whose phases take what `times` says of (launches, ranks)."""
    runs = {}
    for launches, ranks in plan.runs(SETTINGS):
        for repetition, factor in enumerate(noise):
            spent = {name: factor * seconds(launches, ranks) for name, seconds in times.items()}
            run = {
                "launches": launches,
                "ranks": ranks,
                "repetition": repetition,
                "wall_s": sum(spent.values()),
                "phases": spent,
            }
            more = {"cpu_s": None, "peak_rss_mb": 300.0, "work": {name: 0.9 * value for name, value in spent.items()}}
            runs.setdefault((launches, ranks), []).append(run | more)
    return runs


PLANTED = {
    "means": lambda launches, ranks: 2e-6 * launches / ranks,
    "start": lambda launches, ranks: 0.5 + 0.1 * math.log2(ranks) + 1e-8 * launches,
}


def test_the_plan_holds_each_run_once_and_both_scalings_end_at_the_whole_dataset():
    assert plan.sizes(SETTINGS) == {
        "strong": {1: 4_000_000, 2: 4_000_000, 4: 4_000_000},
        "weak": {1: 1_000_000, 2: 2_000_000, 4: 4_000_000},
    }
    shared = [(4_000_000, 1), (4_000_000, 2), (4_000_000, 4), (2_000_000, 2), (1_000_000, 1)]
    assert plan.runs(SETTINGS) == [*shared, (100_000, 1), (100_000, 2), (100_000, 4)]
    assert plan.datasets(SETTINGS) == [4_000_000, 2_000_000, 1_000_000, 100_000]
    assert plan.runs(SETTINGS | {"launches": 100_000, "ranks": [1]}) == [(100_000, 1)]
    assert plan.tasks(SETTINGS) == 4
    assert plan.tasks(SETTINGS | {"ranks": [1]}) == 2


def test_serial_fractions_by_hand():
    # the published curve: 240 s on 128 ranks, 80 s on 1,024; speedup 3 on 8 times the ranks: (1/3 - 1/8) / (7/8)
    assert model.karp_flatt(3, 8) == pytest.approx(5 / 21)
    assert model.karp_flatt(1, 1) is None
    assert model.amdahl([(1, 1.0)]) is None
    assert model.amdahl([(p, 0.2 + 0.8 / p) for p in (1, 2, 4, 8)]) == pytest.approx(0.2)
    assert model.amdahl([(1, 1.0), (2, 1.7)]) == 1.0
    gains = model.scaled({1: 8.0, 2: 5.0, 4: 4.0}, "strong")
    assert [gains[ranks]["efficiency"] for ranks in (1, 2, 4)] == [1.0, 0.8, 0.5]
    assert gains[4]["serial_fraction"] == pytest.approx((1 / 2 - 1 / 4) / (3 / 4))
    assert model.scaled({1: 8.0, 2: 10.0}, "weak")[2] == {"speedup": None, "efficiency": 0.8, "serial_fraction": None}


def test_the_fit_finds_the_planted_coefficients_of_each_phase():
    runs = made_runs(PLANTED)
    assert model.identified_terms(runs) == model.TERMS
    found = model.fit(runs, model.TERMS)
    assert found["means"] == pytest.approx(dict(zip(model.TERMS, (0, 0, 2e-6, 0), strict=True)), abs=1e-9)
    assert found["start"] == pytest.approx(
        dict(zip(model.TERMS, (0.5, 1e-8, 0, 0.1), strict=True)), rel=1e-6, abs=1e-12
    )
    truth = 2e-6 * 1e10 / 1024 + 0.5 + 0.1 * 10 + 100
    [far] = model.projected(runs, model.TERMS, [(10_000_000_000, 1024)], seed=1)
    [exact] = model.projected(made_runs(PLANTED, (1, 1)), model.TERMS, [(10_000_000_000, 1024)], seed=1)
    assert [exact["wall_s"], exact["low"], exact["high"]] == pytest.approx([truth] * 3)
    assert far["wall_s"] == pytest.approx(truth)
    assert far["low"] < truth < far["high"]  # 1 % from run to run is much so far out


def test_two_numbers_of_ranks_tell_what_grows_with_launches_from_what_grows_with_ranks():
    runs = {key: found for key, found in made_runs(PLANTED).items() if key[1] <= 2}
    assert model.identified_terms(runs) == model.TERMS
    found = model.fit(runs, model.TERMS)
    assert found["start"] == pytest.approx(
        dict(zip(model.TERMS, (0.5, 1e-8, 0, 0.1), strict=True)), rel=1e-6, abs=1e-12
    )
    few = {key: found for key, found in runs.items() if key not in ((100_000, 2), (2_000_000, 2))}
    assert model.identified_terms(few) == model.TERMS[:3]


def test_the_projection_grows_less_certain_where_the_model_misses_what_was_measured():
    def bent(launches, ranks):
        return 2e-6 * launches / ranks * (1.1 if (launches, ranks) == (2_000_000, 2) else 1)

    runs = made_runs(PLANTED | {"means": bent}, (1, 1))  # repetitions do not scatter at all
    [far] = model.projected(runs, model.TERMS, [(10_000_000_000, 1024)], seed=1)
    assert far["low"] < far["wall_s"] < far["high"]
    assert far["high"] / far["low"] > 1.02


def test_no_part_is_below_zero_where_times_fall_faster_than_they_can():
    found = model.fit(made_runs({"odd": lambda launches, ranks: (launches / ranks) ** 1.5 * 1e-9}), model.TERMS)
    assert min(found["odd"].values()) >= 0


def test_one_number_of_ranks_gives_no_model():
    assert model.identified_terms({key: runs for key, runs in made_runs(PLANTED).items() if key[1] == 1}) is None


def test_the_study_fits_its_schema_and_models_work_where_ranks_share_cores(tmp_path):
    runs = [run for found in made_runs(PLANTED).values() for run in found]
    whole = study(SETTINGS, 1, runs, launcher="srun", cores=None, load=0.0)
    here = study(SETTINGS, 1, runs, launcher="mpiexec", cores=2, load=3.0)
    for place, document in (("whole", whole), ("here", here)):
        write_study(document, tmp_path / f"{place}.json")
    assert [point["shares_cores"] for point in here["strong"]] == [False, False, True]
    assert [4_000_000, 4] in whole["model"]["runs"]
    assert (whole["basis"], here["basis"]) == ("wall time", "CPU time of the busiest rank")
    assert here["model"]["runs"] == whole["model"]["runs"]
    assert here["serial_fraction"] == pytest.approx(whole["serial_fraction"])
    assert "left out" in here["projection"]["assumption"]
    far, far_here = (document["projection"]["points"][-1]["wall_s"] for document in (whole, here))
    assert far_here == pytest.approx(0.9 * far)
    assert [point["work_s"] for point in here["strong"]] == pytest.approx(
        [0.9 * point["wall_s"] for point in here["strong"]]
    )
    assert {point["launches"] for point in whole["projection"]["points"]} == {PUBLISHED["launches"], 10_000_000_000}
    assert "projection, not a measurement" in whole["projection"]["assumption"]


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        ({"start": lambda launches, ranks: 2.0 + 1e-9 * launches}, "measure more launches"),
        ({"odd": lambda launches, ranks: 1e-6 * launches * (1 + 3 * (ranks == 2))}, "misses a measured time"),
    ],
)
def test_a_projection_that_would_mislead_is_not_made_and_says_why(times, reason):
    runs = [run for found in made_runs(times).values() for run in found]
    document = study(SETTINGS, 1, runs, launcher="mpiexec", cores=2, load=0.0)
    assert document["projection"] is None
    assert reason in document["no_projection"]


def test_the_published_curve_stands_as_printed():
    published = study(
        SETTINGS,
        1,
        [run for found in made_runs(PLANTED).values() for run in found],
        launcher="mpiexec",
        cores=2,
        load=0.0,
    )["published"]
    assert [(point["ranks"], point["wall_s"]) for point in published["points"]] == [
        (128, 240.0),
        (256, 180.0),
        (512, 120.0),
        (1024, 80.0),
    ]
    assert published["points"][-1]["efficiency"] == 0.375


def test_phases_and_work_are_what_the_log_says_and_the_rest():
    log = (
        "10:00:00 INFO duration_ns: 5 launches in 1 exports; 2 rank(s)\n"
        "10:00:01 INFO means: 5 rows in 0.40 CPU-s (0.50 s), 1.0 million rows per CPU-s; the busiest rank 0.45 CPU-s\n"
        "10:00:02 INFO bins: 5 rows in 0.90 CPU-s (1.00 s), 1.0 million rows per CPU-s; the busiest rank 0.90 CPU-s\n"
        "10:00:03 INFO bins: 5 rows in 0.10 CPU-s (0.25 s), 1.0 million rows per CPU-s; the busiest rank 0.30 CPU-s\n"
        "10:00:03 INFO done; largest peak memory of a rank: 300 MB; rank 0: 2.00 CPU-s\n"
    )
    assert phases(log, 3.0) == {"means": 0.5, "bins": 1.25, REST: 1.25}
    assert work(log) == pytest.approx({"means": 0.45, "bins": 1.2, REST: 0.6})


@pytest.mark.parametrize(("launcher", "here"), [(["mpiexec"], True), (["/opt/bin/srun", "--mpi=pmi2"], False)])
def test_ranks_of_a_local_launcher_share_this_machine(launcher, here):
    assert runs_here(launcher) == here
