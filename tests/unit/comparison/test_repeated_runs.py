"""Runs of one program on a GPU (lab/experiments/repeated_runs.py): what is claimed of two that differ in nothing,
and of two that differ in how much one kernel reads.
"""

from itertools import combinations
from pathlib import Path

import pytest

from causeway.comparison.compare import run
from causeway.core.tables import read_json, read_table
from causeway.findings.comparison import comparison_findings
from causeway.readers.normalise import normalise
from support import few

RECORDED = Path(__file__).parents[2] / "data" / "experiments" / "repeated"
CHOICES = {
    "resamples": 400,
    "confidence": 0.95,
    "false_discovery_rate": 0.05,
    "same_within_percent": 1,
    "seed": 20261126,
}
CLAIMS = ("slower", "faster", "more variable", "steadier")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Return a function that compares runs, each side's first and its repeats, and gives the document and the rows."""
    home = tmp_path_factory.mktemp("repeated")

    def of(gpu, baseline, candidate):
        names = [[f"{gpu}-{name}" for name in side] for side in (baseline, candidate)]
        for name in (name for side in names for name in side):
            if not (home / name).is_dir():
                source = RECORDED / gpu / f"{name.partition('-')[2]}.json.gz"
                normalise(source, home / name / "e0", export="e0", source=source.name, rank=0, form="kineto")
        folders = {name: [home / name / "e0"] for side in names for name in side}
        outputs = home / "comparison.json", home / "comparison.parquet"
        run(names, folders, {}, [{}, {}], {}, CHOICES, *outputs)
        return read_json(outputs[0]), read_table(outputs[1], "comparison").to_pylist()

    return of


def claimed(rows):
    return [
        (row["level"], row["baseline"])
        for row in rows
        if row["level"] in ("run", "kernel") and row["metric"] == "time_per_launch" and row["verdict"] in CLAIMS
    ]


@pytest.mark.parametrize("pair", few([(1, 2), (3, 5), (4, 6), *combinations(range(1, 7), 2)], 3))
def test_of_two_runs_of_one_program_nothing_is_claimed_though_clocks_differed(pair, compared):
    """Kernels of these six processes on one H100 differ by up to 1.9 % in their means, far beyond the noise within."""
    document, rows = compared("h100", *([f"same{number}"] for number in pair))
    assert claimed(rows) == []
    (finding,) = comparison_findings(document, rows)
    assert finding.key.endswith("/none")


def test_without_what_is_unmeasured_changes_of_the_clock_would_be_claimed(compared, monkeypatch):
    monkeypatch.setattr("causeway.comparison.compare.UNMEASURED", 0.0)
    _, rows = compared("h100", ["same3"], ["same5"])
    assert len(claimed(rows)) > 3


def test_of_three_runs_on_each_side_nothing_is_claimed_by_their_own_scatter(compared):
    _, rows = compared("h100", ["same1", "same2", "same3"], ["same4", "same5", "same6"])
    assert claimed(rows) == []


@pytest.mark.parametrize("baseline", few(["same1", "same2", "same3", "same6"], 1))
@pytest.mark.parametrize("candidate", ["bytes1", "bytes2", "bytes3"])
def test_a_kernel_that_reads_3_percent_more_is_slower_and_no_other(baseline, candidate, compared):
    _, rows = compared("h200", [baseline], [candidate])
    (row,) = (
        row
        for row in rows
        if row["level"] == "kernel" and row["metric"] == "time_per_launch" and row["baseline"] == "read_values"
    )
    assert set(claimed(rows)) <= {("kernel", "read_values")}
    assert row["change_percent"] == pytest.approx(3.4, abs=0.5)
    assert row["low_percent"] <= 3.5
    assert row["high_percent"] >= 3.2


def test_most_of_these_are_claimed(compared):
    pairs = [
        ([one], [other]) for one in ("same1", "same2", "same3", "same6") for other in ("bytes1", "bytes2", "bytes3")
    ]
    assert sum(bool(claimed(compared("h200", *pair)[1])) for pair in pairs) >= 11
