"""A change between two runs is attributed to inputs and to the kernel itself."""

from pathlib import Path

import numpy as np
import pytest
from attribution_samples import drawn, rows_of, write_target

from causeway.causal.models import run_changes as module
from causeway.causal.models.kernel_rows import evenly
from causeway.causal.models.run_changes import MECHANISM, attributed_changes, run_change
from causeway.causal.models.slow_launches import NO_DOWHY
from causeway.core.tables import SCHEMAS, write_table

CAUSES = ["beside", "clock_mhz"]
MEAN = 5e7 / 1800


@pytest.fixture(scope="module", autouse=True)
def _dowhy():
    pytest.importorskip("dowhy")


@pytest.fixture
def few_resamples(monkeypatch):
    """Estimate the standard errors of the parts from a third of the resamples, of which each takes as long as the parts
    themselves: for tests that look at the parts.
    """
    monkeypatch.setattr(module, "RESAMPLES", 10)


def change(first, second, causes=CAUSES):
    return run_change([rows_of(*drawn(1, **first)), rows_of(*drawn(2, **second))], causes, 1, 0.9)


def parts_of(found):
    return {part.feature: part for part in found.parts}


def test_a_neighbour_that_comes_more_often_is_an_input():
    parts = parts_of(change({}, {"share": 0.7}))
    assert parts["beside"].kind == "input"
    assert parts["beside"].mean[1] < 0.4 * 0.4 * MEAN < parts["beside"].mean[2]
    assert (parts["beside"].before, parts["beside"].after) == pytest.approx((0.3, 0.7), abs=0.05)
    assert abs(parts[MECHANISM].mean[0]) < 0.01 * MEAN


@pytest.mark.usefixtures("few_resamples")
def test_a_slower_kernel_is_the_mechanism_and_both_are_told_apart():
    found = change({}, {"slowdown": 1.1, "share": 0.6})
    parts = parts_of(found)
    assert parts[MECHANISM].kind == MECHANISM
    assert parts[MECHANISM].mean[0] == pytest.approx(0.1 * (1 + 0.4 * 0.45) * MEAN, rel=0.05)
    assert parts["beside"].mean[0] == pytest.approx(0.4 * 0.3 * 1.05 * MEAN, rel=0.2)
    assert sum(part.mean[0] for part in found.parts) == pytest.approx(found.mean[0], rel=0.02)
    assert found == change({}, {"slowdown": 1.1, "share": 0.6})


@pytest.mark.usefixtures("few_resamples")
def test_an_input_that_the_first_run_never_had_is_learnt_from_the_second():
    parts = parts_of(change({"share": 0.0}, {"share": 0.5}))
    assert parts["beside"].mean[0] == pytest.approx(0.4 * 0.5 * MEAN, rel=0.1)


@pytest.mark.usefixtures("few_resamples")
def test_clocks_that_no_launch_of_the_other_run_had_are_not_told_from_the_kernel():
    parts = parts_of(change({}, {"clock": 1300.0}))
    assert set(parts) == {"beside", "clock_mhz"}
    assert parts["clock_mhz"].kind == "either"
    assert parts["clock_mhz"].mean[0] > 0.9 * 1.12 * (5e7 / 1300 - MEAN)


def test_nothing_is_said_where_nothing_can_be():
    assert change({}, {}) == "the change is within the noise of the runs"
    assert change({}, {"slowdown": 1.2}, ["beside", "power"]) == "not recorded in both runs: power"
    assert change({}, {"slowdown": 1.2}, []) == "no cause was found in either run"
    assert "fewer than" in change({"rows": 60}, {"slowdown": 1.2})


@pytest.mark.usefixtures("few_resamples")
def test_another_mix_of_configurations_is_an_input():
    pair = []
    for seed, share in ((1, 0.2), (2, 0.6)):
        value, inputs = drawn(seed)
        is_large = np.random.default_rng(seed).random(value.size) < share
        rows = rows_of(np.where(is_large, 2 * value, value), inputs)
        rows.configuration[is_large] = "two"
        pair.append(rows)
    parts = parts_of(run_change(pair, CAUSES, 1, 0.9))
    assert parts["configuration"].mean[0] == pytest.approx(0.4 * 1.12 * MEAN, rel=0.2)
    assert abs(parts[MECHANISM].mean[0]) < 0.02 * MEAN


def test_rows_are_taken_as_often_as_they_weigh():
    assert np.bincount(evenly(np.array([1.0, 3.0, 2.0]), 6)).tolist() == [1, 3, 2]
    assert evenly(np.ones(4), 4).tolist() == [0, 1, 2, 3]


@pytest.fixture
def compared(tmp_path):
    """Rows of a comparison, and the causes of both sides."""
    causes = []
    for side, choices in (("before", {}), ("after", {"share": 0.7})):
        folder = tmp_path / side / "kernel_variability"
        write_target(folder, *drawn(1 + len(causes), **choices))
        row = {"feature": "beside", "stage": "mean", "verdict": "supported", "variance_percent": 60.0}
        table = {name: [row.get(name)] for name in SCHEMAS["contributions"].names}
        write_contributions(folder / "causal" / "k-1", table)
        causes.append({"kernel_variability": str(folder / "causal" / "dataset" / "contributions.parquet")})
    row = {"level": "kernel", "metric": "time_per_launch", "match": "exact", "baseline": "k", "candidate": "k"}
    row |= {"baseline_value": 31_000.25, "candidate_value": 35_000.5, "floor_percent": 1.0, "candidate_launches": 600}
    return row, causes


def write_contributions(folder, table):
    import pyarrow as pa

    schema = SCHEMAS["contributions"]
    empty = {pa.string(): "", pa.float64(): 0.0}
    columns = [
        pa.array(
            [[]]
            if pa.types.is_list(field.type)
            else [empty.get(field.type)]
            if values[0] is None and not field.nullable
            else values,
            field.type,
        )
        for field, values in zip(schema, table.values(), strict=True)
    ]
    write_table(pa.Table.from_arrays(columns, schema=schema), folder / "contributions.parquet", "contributions")


@pytest.mark.usefixtures("few_resamples")
def test_the_document_adds_up(compared, tmp_path):
    row, causes = compared
    same = row | {"candidate_value": 31_100.0}  # within the floor
    found = attributed_changes([same, row, row | {"match": "sequence"}], causes, 1, 0.9)
    (kernel,) = found["kernels"]
    assert found["why"] is None
    assert kernel["mean_ns"] == 4000
    assert sum(part["mean_ns"] for part in kernel["parts"]) + kernel["mean_rest_ns"] == 4000
    assert sum(part["p99_ns"] for part in kernel["parts"]) + kernel["p99_rest_ns"] == kernel["p99_ns"]
    clear = [part["feature"] for part in kernel["parts"] if part["is_clear"]]
    assert clear == ["beside"]
    assert attributed_changes([row], [{}, causes[1]], 1, 0.9) is None


@pytest.mark.usefixtures("few_resamples")
def test_times_of_tables_are_attributed_in_their_unit(compared, tmp_path):
    row, causes = compared
    (of_launches,) = attributed_changes([row], causes, 1, 0.9)["kernels"]
    for number, (side, choices) in enumerate(zip(causes, ({}, {"share": 0.7}), strict=True)):
        path = Path(side.pop("kernel_variability"))
        write_target(path.parents[2], *drawn(1 + number, **choices), unit="us")
        side["duration_us"] = str(path)
    (of_tables,) = attributed_changes([row], causes, 1, 0.9)["kernels"]
    assert [part["mean_ns"] for part in of_tables["parts"]] == pytest.approx(
        [1000 * part["mean_ns"] for part in of_launches["parts"]], abs=1000
    )


def test_without_dowhy_the_document_says_so(compared, monkeypatch):
    row, causes = compared
    monkeypatch.setattr(module, "load_gcm", lambda: (_ for _ in ()).throw(ImportError("dowhy")))
    assert attributed_changes([row], causes, 1, 0.9) == {"why": NO_DOWHY, "kernels": [], "silent": []}
