"""Fleet mode as a user runs it: `snakemake fleet` on a small fleet, all four modes; a second run does nothing;
nobody is in the outputs.

The checks on a pull request run all of it. In every run of the tests its rules are planned, and what they run is run by
`tests/unit/fleet` and `tests/mpi/test_fleet_ranks.py`.
"""

import json
import re

import numpy as np
import pytest

from causeway.core.tables import read_json, read_table
from causeway.fleet.attribution.catalogue import OTHER
from causeway.fleet.protection import protect_reports
from causeway.fleet.release import release
from causeway.fleet.study import evaluation, steps
from support import digests_under, run_snakemake, write_analysis

SMALL = """
fleet:
  {gpus: 300, load: 0.2, session_minutes: 40, large_users: [30, 5], applications: 6, versions: 2,
   unknown_applications: 4, kernel_cells: 4, clusters: 3, launches: 128, timed_launches: 32,
   modes: [clear, share2, ahe, ldp], release_threshold: 20, shard_reports: 150, training_runs: 3}
"""


def written(folder, settings):
    """Write an analysis of a table with settings of a fleet; return its configuration's path."""
    (folder / "a.csv").write_text("y,size\n1,2\n2,3\n3,4\n")
    return write_analysis(folder, [("x", "", "a.csv", "table")], settings)


def test_every_step_is_planned_for_every_mode(tmp_path):
    run = run_snakemake(tmp_path, "--dry-run", "fleet", config=written(tmp_path, SMALL))
    assert run.returncode == 0, run.stdout[-4000:]
    jobs = {name: int(number) for name, number in re.findall(r"^(\w+) +(\d+)$", run.stdout, re.MULTILINE)}
    once = ("build_fleet_catalogue", "simulate_fleet_world", "sample_fleet", "attribute_fleet", "encode_reports")
    once += ("evaluate_fleet", "attack_fleet", "plot_fleet", "fleet")
    modes = dict.fromkeys(("protect_reports", "aggregate_reports"), 4)
    assert jobs == dict.fromkeys(once, 1) | modes | {"total": len(once) + 8}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Return the folder of a finished small fleet."""
    folder = tmp_path_factory.mktemp("fleet")
    config = written(folder, SMALL)
    run = run_snakemake(folder, "--cores", "2", "fleet", config=config)
    assert run.returncode == 0, run.stdout[-4000:]
    return folder, config


def outcome(ran, name):
    return read_json(ran[0] / "results" / "fleet" / name)


@pytest.mark.slow
def test_a_second_run_does_nothing(ran):
    before = digests_under(ran[0] / "results")
    run = run_snakemake(ran[0], "--cores", "2", "fleet", config=ran[1], forked=True)
    assert run.returncode == 0
    assert "Nothing to be done" in run.stdout
    assert digests_under(ran[0] / "results") == before


@pytest.mark.slow
def test_the_sums_of_protected_modes_are_the_clear_ones(ran):
    found = outcome(ran, "evaluation.json")
    assert found["sums_equal"] == {"share2": True, "ahe": True}
    folder = ran[0] / "results" / "fleet"
    exact = sum(
        arrays["sums"].astype(np.int64).sum() for arrays, _ in protect_reports.read_shards(folder / "clear" / "shards")
    )
    assert (
        exact == read_table(folder / "world" / "counts.parquet", "fleet_counts").column("value").to_numpy().sum() > 5000
    )


@pytest.mark.slow
def test_share2_and_ahe_release_the_same_and_local_noise_more_of_it(ran):
    """Equal sums and the same test seed: equal releases, though nothing else of the two ways is alike."""
    folder = ran[0] / "results" / "fleet"
    made = {mode: release.decoded((folder / mode / "release.bin").read_bytes()) for mode in ("share2", "ahe", "clear")}
    assert (made["share2"][0].traffic == made["ahe"][0].traffic).all()
    assert (made["share2"][0].detail == made["ahe"][0].detail).all()
    assert (made["share2"][0].detail != made["clear"][0].detail).any()
    assert made["share2"][1]["simulated"] is True
    errors = {
        mode: facts["total_variation"]["durations"]["by_traffic"]
        for mode, facts in outcome(ran, "evaluation.json")["modes"].items()
    }
    assert errors["share2"] < errors["ldp"]


@pytest.mark.slow
def test_what_is_spent_is_the_budget_and_windows_below_the_threshold_stay_closed(ran):
    folder = ran[0] / "results" / "fleet"
    made, facts = release.decoded((folder / "share2" / "release.bin").read_bytes())
    reports = sum(arrays["reports"] for arrays, _ in protect_reports.read_shards(folder / "share2" / "shards"))
    assert ((reports >= 20) == made.released).all()
    assert not made.released.all()
    assert not made.traffic[~made.released].any()
    assert 0.9 < made.epsilon <= 1.0
    assert facts["test_seed"] == 1


@pytest.mark.slow
def test_no_output_of_a_protected_mode_holds_anybody(ran):
    """No kernel name, application or user of a single report in any file or log of a protected mode; releases speak
    of the catalogue.
    """
    folder = ran[0] / "results"
    suite = steps.suite_of({"applications": 6, "versions": 2, "unknown_applications": 4}, 20261120)
    kernels = {name.encode() for names in suite.names for name in names}
    unknown = {entry.name.encode() for entry in suite.applications if not entry.in_catalogue}
    users = re.compile(rb"user\d+")
    looked_at = 0
    for mode in ("share2", "ahe", "ldp"):
        files = [path for path in (folder / "fleet" / mode).rglob("*") if path.is_file()]
        files += [
            path
            for step in ("protect_reports", "aggregate_reports")
            for path in (folder / "logs" / step).glob(f"{mode}*")
        ]
        assert len(files) > 4
        for path in files:
            content = path.read_bytes()
            assert not users.search(content), path
            assert not [name for name in unknown | kernels if name in content], path
            if path.name not in ("estimates.parquet", "applications.parquet"):
                assert not [entry.name for entry in suite.applications if entry.name.encode() in content], path
            looked_at += 1
    assert looked_at > 20


@pytest.mark.slow
def test_goals_and_coverage_say_what_was_counted(ran):
    found = outcome(ran, "evaluation.json")
    folder = ran[0] / "results" / "fleet"
    table = read_table(folder / "world" / "reports.parquet", "fleet_reports")
    assert found["reports"] == table.num_rows == len(set(table.column("user").to_pylist()))
    rows = read_table(folder / "coverage.parquet", "fleet_coverage").to_pylist()
    last = {row["what"]: row for row in rows if row["hour"] == 24 and row["mode"] == "clear"}
    catalogue = steps.read_catalogue(folder / "catalogue")
    suite = steps.suite_of({"applications": 6, "versions": 2, "unknown_applications": 4}, 20261120)
    seen = {suite.applications[number].name for number in table.column("application").to_pylist()}
    known = {entry.name for entry in catalogue.applications}
    assert last["applications"]["sampled"] == 1.0
    assert known <= seen  # all six run on 300 GPUs
    pairs = evaluation.kernel_pairs(suite, catalogue, np.full(len(suite.applications), 1.0))
    assert pairs.weight.sum() == pytest.approx(1)
    assert (pairs.cell % catalogue.slots != OTHER)[pairs.cell >= 0].all()
    assert last["kernels"]["released"] <= last["kernels"]["sampled"] <= 1
    assert all(goal["definition"] for goal in found["goals"])
    assert {goal["goal"] for goal in found["goals"]} >= {
        "attribution: precision",
        "bytes of a report",
        "kernels released in a day",
    }


@pytest.mark.slow
def test_the_page_and_the_attacks_stand(ran):
    page = (ran[0] / "results" / "fleet" / "fleet.html").read_text(encoding="utf-8")
    assert "300" in page
    found = outcome(ran, "attacks.json")
    assert [attack["name"] for attack in found["attacks"] if not attack["held"]] == []
    assert {attack["group"] for attack in found["attacks"]} == {2, 3, 8, 9, 15}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("fleet: {gpuz: 10}\n", "gpuz"),
        ("fleet: {learn_from: [nobody]}\n", "nobody"),
    ],
)
def test_a_wrong_choice_stops_at_start_with_its_name(tmp_path, settings, message):
    run = run_snakemake(tmp_path, "--dry-run", "fleet", config=written(tmp_path, settings))
    assert run.returncode != 0
    assert message in run.stdout


@pytest.mark.slow
def test_the_release_is_json_and_arrays(ran):
    content = (ran[0] / "results" / "fleet" / "share2" / "release.bin").read_bytes()
    assert json.loads(content.split(b"\n", 1)[0])["mode"] == "share2"
