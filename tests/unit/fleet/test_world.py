"""The simulated world is what it says, draws do not depend on how they are divided, and estimates answer a planted
truth; the overhead of recording is modelled, and measured without the packages that the rest needs.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from fleet_samples import small_layout, vectors_of

from causeway.core.errors import CausewayError
from causeway.fleet import NEEDED, overhead
from causeway.fleet.draws import pick, uniforms, words
from causeway.fleet.protection.noise import SeededNoise
from causeway.fleet.release import estimates
from causeway.fleet.release.cell_noise import of_servers
from causeway.fleet.release.release import Release
from causeway.fleet.report_layout import DETAIL
from causeway.fleet.world import sampling
from causeway.fleet.world.applications import make_suite
from causeway.fleet.world.sessions import DAY_S, FleetSettings, popularity, simulate_sessions, users_of
from support import ROOT

BARE = """
import runpy, sys

class Only:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, *rest):
        there = name.partition(".")[0] in {"causeway", "numpy", "pyarrow", "torch", *sys.stdlib_module_names}
        return self.finder.find_spec(name, *rest) if there else None

sys.meta_path[:] = [Only(finder) for finder in sys.meta_path]
sys.argv = ["causeway.fleet", *sys.argv[1:]]
runpy.run_module("causeway.fleet", run_name="__main__")
"""
"""Runs fleet mode's programs as if only NumPy, Arrow and PyTorch were installed."""
TORCH = """
import contextlib
from types import SimpleNamespace

cuda = SimpleNamespace(is_available=lambda: True, synchronize=lambda: None, get_device_name=lambda: "a stand-in")
profiler = SimpleNamespace(
    profile=lambda activities: contextlib.nullcontext(), ProfilerActivity=SimpleNamespace(CUDA="cuda")
)

def rand(count, device):
    return [0.0]

def sin_(values):
    values[0] += 1
"""
SETTINGS = FleetSettings(
    gpus=4000, load=0.1, session_s=3600.0, zipf=1.0, unknown_share=0.05, large_users=(300, 20), seed=9
)


def sessions(first=0, count=None):
    return simulate_sessions(SETTINGS, popularity(10, 2, SETTINGS), first, count)


def test_draws_of_a_client_do_not_depend_on_the_range():
    whole = words(7, "x", 0, 50, 6)
    assert (words(7, "x", 20, 10, 6) == whole[20:30]).all()
    assert len(np.unique(whole)) == whole.size
    assert (words(8, "x", 0, 50, 6) != whole).all()
    assert (words(7, "y", 0, 50, 6) != whole).all()
    drawn = uniforms(7, "u", 0, 20_000, 4)
    assert drawn.min() > 0
    assert drawn.max() < 1
    assert drawn.mean() == pytest.approx(0.5, abs=0.01)


def test_picks_follow_their_weights():
    found = np.bincount(pick(uniforms(1, "p", 0, 40_000, 1)[:, 0], np.array([1.0, 0, 3])), minlength=3)
    assert found[1] == 0
    assert found[2] / found[0] == pytest.approx(3, rel=0.05)


@pytest.mark.parametrize(("session_s", "load"), [(300.0, 0.5), (60.0, 0.9)])
def test_short_sessions_last_the_whole_day(session_s, load):
    """144 and 1,296 a day on average, where 64 were drawn: GPUs then stood still from some hour on."""
    settings = replace(SETTINGS, gpus=400, load=load, session_s=session_s, large_users=())
    found = simulate_sessions(settings, np.array([1.0]), 0, 400)
    for hour in (0, 12, 23):
        begin = hour * 3600
        inside = np.minimum(found.end_s, begin + 3600) - np.maximum(found.start_s, begin)
        busy = np.clip(inside, 0, None).sum() / (400 * 3600)
        assert busy == pytest.approx(load, abs=0.03)
    assert np.bincount(found.gpu).mean() == pytest.approx(DAY_S * load / session_s + load, rel=0.02)


@pytest.mark.parametrize("changes", [{"gpus": 1, "load": 1e-6}, {"gpus": 50, "load": 1e-3, "session_s": 2.0}])
def test_a_fleet_in_which_nobody_reports_is_refused(changes):
    settings = replace(SETTINGS, large_users=(), **changes)
    found = simulate_sessions(settings, np.array([1.0]))
    with pytest.raises(CausewayError, match=rf"none of the day's {len(found.gpu)} sessions lasts a minute"):
        sampling.choose(found, 9)


def test_sessions_too_short_to_report_are_refused():
    settings = replace(SETTINGS, load=0.5, session_s=29.0)
    with pytest.raises(CausewayError, match=r"session_minutes: a GPU would have 1490 sessions a day at .*load 0\.5"):
        simulate_sessions(settings, np.array([1.0]), 0, 1)


def test_the_load_is_as_asked_at_any_time_of_day():
    found = sessions()
    for moment in (60, 20_000, 43_200, 86_000):
        busy = ((found.start_s <= moment) & (found.end_s > moment)).sum()
        assert busy / SETTINGS.gpus == pytest.approx(0.1, abs=0.02)
    long = found.end_s - found.start_s
    assert long[found.end_s < DAY_S].mean() == pytest.approx(3600, rel=0.06)


def test_sessions_of_a_gpu_do_not_overlap_and_do_not_depend_on_the_range():
    found = sessions()
    same = found.gpu[1:] == found.gpu[:-1]
    assert (found.start_s[1:] >= found.end_s[:-1])[same].all()
    part = sessions(1000, 500)
    mine = (found.gpu >= 1000) & (found.gpu < 1500)
    for name in ("gpu", "user", "application", "run", "start_s"):
        assert (getattr(found, name)[mine] == getattr(part, name)).all()


def test_applications_are_as_popular_as_asked():
    shares = popularity(10, 2, SETTINGS)
    assert shares.sum() == pytest.approx(1)
    assert shares[10:].sum() == pytest.approx(0.05)
    assert shares[0] / shares[4] == pytest.approx(5)
    seen = np.bincount(sessions().application, minlength=12) / len(sessions().application)
    assert seen == pytest.approx(shares, abs=0.02)


def test_large_users_own_what_they_own_and_report_once():
    users = users_of(SETTINGS)
    assert np.bincount(users)[:2].tolist() == [300, 20]
    assert (np.bincount(users)[2:] == 1).all()
    reports = sampling.choose(sessions(), 3)
    assert len(np.unique(reports.user)) == len(reports.user)
    assert reports.user[0] == 0
    assert reports.sent_s.max() < DAY_S
    with pytest.raises(CausewayError, match="large_users"):
        users_of(
            FleetSettings(gpus=10, load=0.1, session_s=1.0, zipf=1.0, unknown_share=0.0, large_users=(11,), seed=1)
        )


def test_a_user_reports_their_first_long_session():
    found = sessions()
    reports = sampling.choose(sessions(), 3)
    for row in range(0, len(reports.user), 397):
        mine = (found.user == reports.user[row]) & (found.end_s - found.start_s >= sampling.WINDOW_S)
        first = found.start_s[mine].min()
        assert sampling.WINDOW_S <= reports.sent_s[row] - first <= sampling.WINDOW_S + sampling.JITTER_S


def test_samples_follow_the_application_and_not_the_pieces():
    suite = make_suite(5, 10, 2, 2)
    reports = sampling.choose(sessions(), 3)
    whole = sampling.observe(suite, reports, slice(0, 300), 40, 3)
    part = sampling.observe(suite, reports, slice(100, 150), 40, 3)
    assert (whole.kernel[100:150] == part.kernel).all()
    assert (whole.duration_ns[100:150] == part.duration_ns).all()
    assert whole.duration_ns.min() > 0
    for row in range(20):
        body = suite.applications[reports.application[row]].body
        known = np.isin(whole.kernel[row], np.concatenate([body, suite.variant[body]])).mean()
        assert known > 0.9


def test_the_suite_has_what_it_was_asked_for():
    suite = make_suite(1, 9, 3, 5)
    assert suite.n_known == 9
    assert len(suite.applications) == 14
    families = {entry.family for entry in suite.applications if entry.in_catalogue}
    assert len(families) == 3
    strangers = [entry.family in families for entry in suite.applications if not entry.in_catalogue]
    assert strangers == [True, False, True, False, True]
    assert {len(names) for names in suite.names} == {len(suite.median_ns)}


def test_projection_is_the_nearest_distribution():
    """Against worked cases: inside, outside, all mass on one."""
    rows = np.array([[0.2, 0.3, 0.5], [0.5, 0.7, -0.4], [9.0, 0.0, 0.0]])
    assert estimates.project_to_simplex(rows) == pytest.approx(
        np.array([[0.2, 0.3, 0.5], [0.4, 0.6, 0.0], [1.0, 0.0, 0.0]])
    )


def test_shrinking_helps_where_noise_outweighs_signal_and_leaves_clean_counts_alone():
    families = np.repeat(np.arange(3), 8)
    totals = np.full(24, 400.0)
    errors = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        shapes = rng.dirichlet(np.full(8, 2.0), 3)[families]
        exact = shapes * totals[:, None]
        assert estimates.shrink(exact, totals, families, np.zeros_like(exact)) == pytest.approx(shapes)
        noisy = exact + rng.laplace(0, 30, exact.shape) + rng.laplace(0, 30, exact.shape)
        plain = np.maximum(noisy, 0) / np.maximum(noisy, 0).sum(1, keepdims=True)
        shrunk = estimates.shrink(noisy, totals, families, np.full(exact.shape, 2 * 2 * 30.0**2))
        errors.append([0.5 * np.abs(found - shapes).sum(1).mean() for found in (plain, shrunk)])
    plain, shrunk = np.mean(errors, axis=0)
    assert shrunk < 0.6 * plain


def test_estimates_hold_the_truth_in_their_intervals():
    layout = small_layout()
    vectors = vectors_of(600, layout).astype(np.int64)
    exact = vectors.sum(0)
    noise = sum(SeededNoise(4).draw(list(layout.sections), role) for role in ("leader", "helper"))
    first = layout.by_name["kernels"].first
    traffic = np.zeros((24, 5), np.int64)
    released = np.zeros(24, bool)
    traffic[3] = (exact + noise)[:first]
    released[3] = True
    made = Release(traffic=traffic, released=released, detail=(exact + noise)[first:], epsilon=1.0)
    found = estimates.estimate(made, of_servers(layout), layout, np.arange(3))
    exact_sections = estimates.sections_of(exact[first:], layout)
    inside = [np.abs(found.noisy[name] - exact_sections[name]) <= found.half_width[name] for name in found.noisy]
    assert np.concatenate([flags.ravel() for flags in inside]).mean() > 0.9
    assert np.abs(found.reports[:3] - exact[:3]).max() < 6 * found.reports_sd[0]
    assert np.isnan(found.reports[3:]).all()  # 23 hours were not released, and clusters have no detail
    assert found.detected[:3].all()
    assert sum(section.rows * section.columns for section in layout.sections if section.part == DETAIL) == len(
        made.detail
    )


def test_medians_come_from_bins():
    shares = np.zeros((3, 14))
    shares[0, 3] = 1
    shares[1, [2, 4]] = 0.5
    shares[2] = np.nan
    found, bins = estimates.binned_median(shares)
    assert bins[:2].tolist() == [3, 2]
    assert found[0] == pytest.approx(4000 * 2**0.5)  # the middle of 4 to 8 us, in logarithms
    assert found[1] == pytest.approx(4000)
    assert np.isnan(found[2])


def run_bare(folder, *options):
    """Run a program of fleet mode beside a stand-in for PyTorch, without the extra's packages."""
    (folder / "torch.py").write_text(TORCH, encoding="utf-8")
    paths = os.pathsep.join([str(folder), str(ROOT / "scripts")])
    return subprocess.run(
        [sys.executable, "-c", BARE, *options],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env=os.environ | {"PYTHONPATH": paths},
    )


def test_the_measurement_runs_without_the_packages_of_the_extra(tmp_path):
    ended = run_bare(tmp_path, "overhead", "--launches", "3", "--work-launches", "30", "--repeats", "2")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert (found["device"], found["launches"], found["work_launches"]) == ("a stand-in", 3, 30)
    assert found["repeats"] == 2
    assert found["plain_s"] > 0


@pytest.mark.parametrize("program", ["agent", "server", "tokens", "read"])
def test_the_other_programs_name_the_packages_that_are_missing(tmp_path, program):
    given = ["--public", str(tmp_path), "--ports", "7001", "7002"]
    options = {
        "agent": ["--tables", str(tmp_path), "--pin", "0" * 64, "--token", str(tmp_path / "token.json"), *given],
        "server": ["--role", "leader", "--folder", str(tmp_path), "--anchor", str(tmp_path / "anchor.json"), *given],
        "tokens": ["--issuer", str(tmp_path), "--user", "a", "--epoch", "1", "--out", str(tmp_path / "token.json")],
        "read": ["--own", str(tmp_path), "--out", str(tmp_path / "released"), *given],
    }
    ended = run_bare(tmp_path, program, *options[program])
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("error: fleet mode needs packages that are not installed: " + ", ".join(NEEDED))
    assert "requirements-fleet.lock" in last


def test_the_overhead_model_is_arithmetic_on_stated_assumptions():
    found = overhead.model(256, 8640.0)
    assert found["share_of_day"] == pytest.approx((256 * 3e-6 + 0.05) / 8640)
    assert found["assumptions"]["per_launch_us"] == 3.0


def test_overhead_is_the_median_of_pairs_and_no_order_is_favoured():
    """A clock that runs by itself: each reading of a second costs more, as on a GPU that grows hot."""
    now = [0.0]
    order = []

    def work(seconds, name):
        def run():
            order.append(name)
            now[0] += seconds * (1 + 0.001 * len(order))

        return run

    found = overhead.paired_overhead(work(1.0, "plain"), work(1.02, "recorded"), 40, clock=lambda: now[0])
    assert found["overhead"] == pytest.approx(0.02, abs=0.002)
    assert found["low"] <= found["overhead"] <= found["high"]
    assert order[:4] == ["recorded", "plain", "plain", "recorded"]


def test_without_a_gpu_the_measurement_says_what_is_missing():
    try:
        import torch

        if torch.cuda.is_available():
            pytest.skip("this machine has a GPU")
    except ImportError:
        pass
    with pytest.raises(CausewayError, match="needs"):
        overhead.measure_on_gpu(10, 100, 1)
