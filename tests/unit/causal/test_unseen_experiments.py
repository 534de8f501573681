"""Launches on an H200 whose causes were drawn at random, by programs that were written before any rule was changed for
them: what is said judges rules that were made on other recordings (`test_experiments`). Three were then added, where it
was wrong: `kernel_in_flight`, `input_1_elements` and its like, and no wait in the queue beside what is in flight. Those were
judged by six more programs on an H100, for which nothing was changed.
"""

from statistics import fmean

import numpy as np
import pytest
from recorded_experiments import RECORDED, Experiment, close
from whole_way import documents_of

pytestmark = pytest.mark.usefixtures("rough_shares")
H200 = "h200"
H100 = "h100"


def test_a_copy_within_the_device_is_the_cause_and_not_the_wait_for_it(tmp_path):
    """The launch waits for most of the copy, and runs beside its end."""
    found = Experiment(H200, "copies", tmp_path)
    rows = found.supported()
    assert set(rows) == {f"{direction}_bytes_in_flight" for direction in ("h2d", "d2h", "d2d")}
    for direction in ("h2d", "d2h", "d2d"):
        truth = found.change({"copy": "none"}, {"copy": direction})
        assert truth > 1
        assert close(rows[f"{direction}_bytes_in_flight"], truth), direction


def test_a_kernel_that_reads_the_hosts_memory_is_slowed_down_by_copies_on_the_bus_alone(tmp_path):
    found = Experiment(H200, "host_memory", tmp_path)
    rows = found.supported()
    assert set(rows) == {"h2d_bytes_in_flight", "d2h_bytes_in_flight"}
    assert abs(found.change({"copy": "none"}, {"copy": "d2d"})) < 0.5
    for direction in ("h2d", "d2h"):
        truth = found.change({"copy": "none"}, {"copy": direction})
        assert close(rows[f"{direction}_bytes_in_flight"], truth), direction


def test_a_matrix_product_has_two_causes_of_a_few_percent(tmp_path):
    found = Experiment(H200, "product_cache_and_neighbour", tmp_path)
    rows = found.supported()
    assert set(rows) == {"launched_after", "launches_in_flight"}
    for name, arm, other in (("launched_after", "cold", "beside"), ("launches_in_flight", "beside", "cold")):
        differences = [found.change({arm: False, other: held}, {arm: True, other: held}) for held in (False, True)]
        assert close(rows[name], fmean(differences), allowed=0.1), name
    assert rows["launched_after"]["level"].startswith("read-others-")


def test_the_input_that_decides_is_named_and_not_the_largest(tmp_path):
    """The time is a line of the number of indices; the size of the table varies a hundred times as much."""
    found = Experiment(H200, "lookups", tmp_path)
    (row,) = found.supported().values()
    assert row["feature"] == "input_2_elements"
    count = np.array(found.arms["count"])
    low, high = np.quantile(count, [0.1, 0.9])
    slope = np.polyfit(count, found.durations, 1)[0]
    assert close(row, 100 * slope * (high - low) / fmean(found.durations))
    assert abs(found.change({"table_mib": 64}, {"table_mib": 1024})) < 5


@pytest.mark.usefixtures("exact_shares")
def test_of_two_kernels_beside_the_one_that_reads_memory_is_named(tmp_path):
    found = Experiment(H200, "neighbour_kinds", tmp_path, whole=True)
    rows = found.supported()
    assert set(rows) == {"kernel_in_flight"}
    assert rows["kernel_in_flight"]["level"].startswith("read-others-")
    assert close(rows["kernel_in_flight"], found.change({"beside": "none"}, {"beside": "read_others"}))
    assert " compared with starting beside no other kernel: " in found.observed["graph"]["sentences"][0]
    assert rows["kernel_in_flight"]["variance_percent"] == pytest.approx(found.between("beside"), abs=1)
    assert set(found.supported(found.of_dataset)) == {"launches_in_flight"}


def test_of_a_matrix_product_the_sizes_of_the_matrices_are_named(tmp_path):
    found = Experiment(H200, "matrices", tmp_path)
    rows = found.supported()
    assert set(rows) == {"matmul_m", "matmul_k"}
    own = found.observed["graph"]["scope_name"]
    kept = [name == own for name in found.names]
    rows_of, inner, duration = (
        np.array(values)[kept] for values in (found.arms["rows"], found.arms["inner"], found.durations)
    )
    for feature, varied, held in (("matmul_m", rows_of, inner), ("matmul_k", inner, rows_of)):
        low, high = np.quantile(varied, [0.1, 0.9])
        differences = [
            fmean(duration[(varied == high) & (held == one)]) - fmean(duration[(varied == low) & (held == one)])
            for one in held
            if {low, high} <= set(varied[held == one])
        ]
        assert close(rows[feature], 100 * fmean(differences) / fmean(duration), allowed=0.06), feature


@pytest.mark.parametrize("name", [pytest.param("two_programs", marks=pytest.mark.slow), "stalls"])
def test_where_nothing_that_is_recorded_acts_no_cause_is_named(name, tmp_path):
    """Another program that is served in turns, and copies beside a kernel that needs no memory, change its time by less
    than a fifth of a percent.
    """
    found = Experiment(H200, name, tmp_path, whole=True)
    arm = {"two_programs": "busy", "stalls": "copy"}[name]
    means = [found.mean(**{arm: one}) for one in set(found.arms[arm])]
    assert max(means) / min(means) < 1.002
    assert not found.supported()
    assert not found.supported(found.of_dataset)


def test_of_counters_the_amount_of_work_is_named_and_not_what_warps_wait_less_for(tmp_path):
    """Instructions and the stride between the values read were drawn: of `gather` the time rises with both. Per
    instruction its warps wait the less for branches the more instructions there are.
    """
    documents = documents_of(tmp_path, [RECORDED / H200 / "counters.csv.gz"], "gpu_time")
    causes = {
        one["graph"]["scope_name"]: [row for row in one["contributions"] if row["feature"] != "unexplained"]
        for one in documents
    }
    first, second = (set(row["members"]) for row in causes["gather"][:2])
    assert "inst_executed" in first
    assert "stall_global_memory_per_issue" in second
    assert "stall_shared_memory_queue_per_issue" in causes["conflict"][0]["members"]
    assert "stall_global_memory_per_issue" in causes["add_atomically"][0]["members"]
    stalls = [row for rows in causes.values() for row in rows if row["feature"].startswith("stall_")]
    assert min(row["mean_change_high"] for row in stalls) > 0


@pytest.mark.usefixtures("exact_shares")
def test_of_grids_beside_the_largest_is_named(tmp_path):
    """Compared with none."""
    found = Experiment(H100, "grids_beside", tmp_path)
    (row,) = found.supported().values()
    assert (row["feature"], row["level"].split(" (")[1]) == ("kernel_in_flight", "grid 264)")
    assert close(row, found.change({"blocks": 0}, {"blocks": 264}))
    assert " compared with starting beside no other kernel: " in found.observed["graph"]["sentences"][0]
    assert row["variance_percent"] == pytest.approx(found.between("blocks"), abs=1)


def test_of_inputs_that_act_alike_the_size_of_all_is_named(tmp_path):
    found = Experiment(H100, "two_inputs", tmp_path)
    (row,) = found.supported().values()
    assert row["feature"] in ("shape_elements", "shape_bytes")
    both = np.array(found.arms["first"]) + found.arms["second"]
    low, high = np.quantile(both, [0.1, 0.9])
    assert close(row, 100 * np.polyfit(both, found.durations, 1)[0] * (high - low) / fmean(found.durations))


def test_of_inputs_whose_product_decides_both_are_named(tmp_path):
    found = Experiment(H100, "product_of_inputs", tmp_path)
    rows = found.supported()
    assert set(rows) == {"input_1_elements", "input_2_elements"}
    for feature, arm, other in (("input_1_elements", "first", "second"), ("input_2_elements", "second", "first")):
        low, high = np.quantile(found.arms[arm], [0.1, 0.9])
        differences = [found.change({arm: low, other: held}, {arm: high, other: held}) for held in found.arms[other]]
        assert close(rows[feature], fmean(differences)), feature


def test_a_copy_and_a_kernel_beside_have_their_own_effects(tmp_path):
    found = Experiment(H100, "copy_and_neighbour", tmp_path)
    rows = found.supported()
    assert set(rows) == {"h2d_bytes_in_flight", "launches_in_flight"}
    for feature, arm, other in (
        ("h2d_bytes_in_flight", "copied", "kernel"),
        ("launches_in_flight", "kernel", "copied"),
    ):
        differences = [found.change({arm: False, other: held}, {arm: True, other: held}) for held in (False, True)]
        assert close(rows[feature], fmean(differences)), feature


def test_waiting_behind_a_kernel_for_milliseconds_does_nothing(tmp_path):
    found = Experiment(H100, "waits", tmp_path, whole=True)
    assert not found.supported()
    assert not found.supported(found.of_dataset)


def test_the_size_of_a_batch_of_matrix_products_is_that_of_their_inputs(tmp_path):
    found = Experiment(H100, "batches", tmp_path)
    (row,) = found.supported().values()
    assert row["feature"] in ("shape_elements", "shape_bytes")
    low, high = np.quantile(found.arms["batch"], [0.1, 0.9])
    assert close(row, found.change({"batch": low}, {"batch": high}))


def test_counters_of_three_more_kernels_are_what_was_drawn(tmp_path):
    """The numbers of values read, of rounds, and of look-ups with the size of their table were drawn."""
    documents = documents_of(tmp_path, [RECORDED / H100 / "counters_later.csv.gz"], "gpu_time")
    named = {
        one["graph"]["scope_name"]: [set(row["members"]) for row in one["contributions"] if row["members"]][:2]
        for one in documents
    }
    assert "inst_executed" in named["read_values"][0]
    assert "inst_executed" in named["multiply_add"][0]
    assert ("l2_hit_ratio" in named["look_up"][0], "inst_executed" in named["look_up"][1]) == (True, True)
