"""Public runs compared: what docs/comparing.md says of them."""

import json
import shutil

import pytest

from causeway.comparison.compare import run
from causeway.comparison.gate import LIMITS, judge, outcome, reasons
from causeway.core.errors import CausewayError
from causeway.core.tables import read_json, read_table, write_table
from causeway.findings.comparison import CHANGES, comparison_findings
from causeway.readers.normalise import normalise
from queried import answers, same
from support import DATA, few

NSYS = DATA / "nsys_sqlite"
STENCIL = DATA / "rocprof_v1" / "seismic-stencils"
SOURCES = {
    "before": NSYS / "nsys-ai" / "mfu_2gpu_before.sqlite",
    "after": NSYS / "nsys-ai" / "mfu_2gpu_after.sqlite",
    "gauss3": NSYS / "rodinia-gaussian" / "report3.sqlite",
    "gauss5": NSYS / "rodinia-gaussian" / "report5.sqlite",
    "h100": NSYS / "fuser" / "report1_h100.sqlite",
    "h100_again": NSYS / "fuser" / "report2_h100.sqlite",
    "h200": NSYS / "fuser" / "report1_h200.sqlite",
    "bert": DATA / "ncu_csv" / "operators-a100" / "bert_torch_nsight.csv",
    "gpt2": DATA / "ncu_csv" / "operators-a100" / "gpt2_torch_nsight.csv",
}
SOURCES |= {f"stencil{path.name[3]}": path / "results.csv" for path in sorted(STENCIL.glob("run*"))}
CHOICES = {
    "resamples": 400,
    "confidence": 0.95,
    "false_discovery_rate": 0.05,
    "same_within_percent": 1,
    "seed": 20261120,
}


@pytest.fixture(scope="module")
def folders(data, tmp_path_factory):
    """Return a function that gives the folder of tables of a source, read once."""
    root = tmp_path_factory.mktemp("real")
    read = {}

    def of(name):
        if name not in read:
            folder = root / name / "tables" / "e0"
            normalise(SOURCES[name], folder, export="e0", source=SOURCES[name].name)
            read[name] = folder
        return read[name]

    return of


@pytest.fixture
def compared(folders, tmp_path):
    """Return a function that compares sources and gives document and rows."""

    def of(baseline, candidate, baseline_repeats=(), candidate_repeats=()):
        names = [[baseline, *baseline_repeats], [candidate, *candidate_repeats]]
        home = tmp_path / "compare" / f"{baseline}__{candidate}"
        outputs = home / "comparison.json", home / "comparison.parquet"
        run(names, {name: [folders(name)] for side in names for name in side}, {}, [{}, {}], {}, CHOICES, *outputs)
        return read_json(outputs[0]), read_table(outputs[1], "comparison").to_pylist()

    return of


def verdicts(rows, level="kernel", metric="time_per_launch"):
    """Return the number of each verdict."""
    found = [row["verdict"] for row in rows if row["level"] == level and row["metric"] == metric]
    return {word: found.count(word) for word in sorted(set(found))}


def whole(rows):
    return next(row for row in rows if row["level"] == "run" and row["metric"] == "time_per_launch")


def test_the_h100_job_has_kernels_as_fast_as_before_but_fewer_launches(compared):
    document, rows = compared("before", "after")
    assert document["matched"] == {"exact": 27, "normalised": 0, "sequence": 0, "new": 0, "gone": 0}
    assert verdicts(rows) == {"inconclusive": 15, "same": 12}
    assert whole(rows)["verdict"] == "inconclusive"
    gone = document["candidate"]["gpu_time_ns"] - document["baseline"]["gpu_time_ns"]
    change = document["change_ns"]
    assert sum(change.values()) == gone
    assert change["launches_ns"] < -50e6 < 0 < change["time_ns"] < 20e6
    assert document["decomposition"][0]["kernel"].startswith("void flash::flash_fwd_kernel")


def test_rodinias_two_runs_differ_but_one_run_each_does_not_show_that_it_is_more_than_noise(compared):
    document, rows = compared("gauss3", "gauss5")
    assert verdicts(rows) == {"inconclusive": 1, "same": 1}
    fan2 = next(
        row
        for row in rows
        if row["level"] == "kernel" and row["candidate"].startswith("Fan2") and row["metric"] == "time_per_launch"
    )
    assert fan2["change_percent"] == pytest.approx(-8.4518, abs=1e-3)
    assert fan2["verdict"] == "inconclusive"
    assert document["noise"] == "halves"
    assert "was not measured" in document["assumption"]


def test_h100_and_h200_run_the_same_kernels_under_other_names_and_two_runs_decide_little(compared):
    document, rows = compared("h100", "h200", ["h100_again"])
    assert document["matched"] == {"exact": 13, "normalised": 1, "sequence": 1, "new": 0, "gone": 0}
    how = {match["how"]: match for match in document["matches"]}
    assert (how["sequence"]["baseline"][:18], how["sequence"]["candidate"][:18]) == (
        "nvjet_hsh_128x256_",
        "nvjet_hsh_256x128_",
    )
    assert "nvfuser" in how["normalised"]["candidate"]
    assert set(verdicts(rows)) <= {"inconclusive", "same"}
    assert document["noise"] == "repeats"


def test_a_run_of_the_stencil_is_the_same_as_its_repeats_and_another_that_had_other_parameters_is_not(compared):
    repeats = [f"stencil{place}" for place in range(2, 7)]
    _, rows = compared("stencil1", "stencil7", repeats)
    assert verdicts(rows) == {"inconclusive": 3, "same": 10}
    assert whole(rows)["verdict"] == "same"
    assert max(abs(whole(rows)[end]) for end in ("low_percent", "high_percent")) < 0.7
    scattered = next(
        row for row in rows if row["level"] == "kernel" and row["candidate"].startswith("compute_fd_x_kernel")
    )
    assert 8 < scattered["floor_percent"] < 9, (
        "its registers differ from run to run, its grid and block do not: the same launches"
    )
    assert scattered["low_percent"] is not None
    document, rows = compared("stencil0", "stencil7", (), repeats)
    found = verdicts(rows)
    assert whole(rows)["verdict"] == "faster"
    assert -31.4 < whole(rows)["low_percent"] < whole(rows)["high_percent"] < -30.6
    assert found["faster"] >= 8
    assert document["noise"] == "repeats"


def test_any_two_of_the_stencils_repeats_claim_nothing_against_the_others(compared):
    names = [f"stencil{place}" for place in range(1, 8)]
    for candidate in names[::3]:
        others = [name for name in names if name != candidate]
        _, rows = compared(others[0], candidate, others[1:])
        assert set(verdicts(rows)) <= {"same", "inconclusive"}
        assert set(verdicts(rows, "kernel", "variability")) <= {"same", "inconclusive"}


def test_counter_exports_are_compared_by_their_gpu_time_and_the_gap_is_stated(compared):
    document, _ = compared("bert", "gpt2")
    assert document["matched"] == {"exact": 11, "normalised": 0, "sequence": 0, "new": 2, "gone": 1}
    assert document["baseline"]["span_ns"] is None
    assert "has no time line" in document["not_compared"][0]


def test_findings_name_a_query_that_gives_their_number(compared, tmp_path):
    document, rows = compared("stencil0", "stencil7", (), [f"stencil{place}" for place in range(1, 7)])
    found = comparison_findings(document, rows)
    assert len({finding.id for finding in found}) == len(found) > 5
    given = answers([finding.evidence.query for finding in found], tmp_path)
    assert all(same(given[finding.evidence.query], finding.evidence.value) for finding in found)
    assert {finding.kind for finding in found} == {"comparison"}
    json.dumps([finding.as_json() for finding in found], allow_nan=False)


def halves_of(folder, target):
    """Write the first and the second half of an export's launches as two exports."""
    launches = read_table(folder / "launches.parquet", "launches")
    middle = launches.num_rows // 2
    for name, part in (("first", launches[:middle]), ("second", launches[middle:])):
        shutil.copytree(folder, target / name)
        (target / name / "launches.parquet").unlink()
        write_table(part, target / name / "launches.parquet", "launches")
    return target / "first", target / "second"


HALVED = ["before", "gauss3", *(f"stencil{place}" for place in range(8)), "after", "gauss5"]


@pytest.mark.parametrize("name", few(HALVED, 4))
def test_two_halves_of_a_real_run_give_no_finding(folders, tmp_path, name):
    """The stencil's halves hold other kernels but for one; Rodinia works on an ever smaller matrix: no noise, but no
    repeat either.
    """
    first, second = halves_of(folders(name), tmp_path)
    run(
        [["first"], ["second"]],
        {"first": [first], "second": [second]},
        {},
        [{}, {}],
        {},
        CHOICES,
        tmp_path / "c.json",
        tmp_path / "c.parquet",
    )
    rows = read_table(tmp_path / "c.parquet", "comparison").to_pylist()
    assert [
        (row["level"], row["metric"], row["candidate"][:40], row["verdict"])
        for row in rows
        if row["verdict"] in CHANGES
    ] == []


def test_of_runs_without_a_kernel_in_common_only_the_whole_is_compared(compared):
    document, rows = compared("gauss3", "stencil1")
    assert document["why"] is None
    assert document["not_compared"][0].startswith(
        "gauss3 and stencil1 have no kernel in common, by name, by name without"
    )
    changed = {(row["level"], row["metric"]) for row in rows if row["change_percent"] is not None}
    assert ("run", "span") in changed
    assert not [one for one in changed if one[1] in ("time_per_launch", "variability")]


def test_a_dataset_on_both_sides_is_refused(compared):
    with pytest.raises(CausewayError, match="named twice"):
        compared("stencil1", "stencil7", ["stencil7"])


@pytest.mark.parametrize(
    ("baseline", "candidate", "said"),
    [
        ("stencil1", "stencil2", "passes"),  # one kernel with 1.1 % of the time was launched ten times
        ("before", "after", "passes"),  # three kernels with 5.9 % of the time were launched 34 times
        ("h100", "h100_again", "could not tell"),  # no kernel was launched more than three times
    ],
)
def test_a_gate_of_one_run_on_each_side_opens_unless_too_little_was_launched(baseline, candidate, said, compared):
    limits = {
        **dict.fromkeys(LIMITS),
        "max_slowdown_percent": 10,
        "max_kernel_slowdown_percent": 10,
        "min_efficiency": None,
        "min_share": 0.01,
        "forbid_new_kernels": False,
    }
    states = judge(*compared(baseline, candidate), limits)
    assert outcome(states, reasons(states, strict=False)) == said
