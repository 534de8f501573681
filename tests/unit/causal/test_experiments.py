"""Launches on an H100 whose causes were drawn at random: the recordings that the rules were made on."""

import math
from statistics import fmean

import pyarrow.parquet as pq
import pytest
from recorded_experiments import RECORDED, Experiment, close
from whole_way import documents_of

pytestmark = pytest.mark.usefixtures("rough_shares")
H100 = "h100"


@pytest.mark.usefixtures("exact_shares")
def test_a_cold_cache_is_the_launch_before(tmp_path):
    found = Experiment(H100, "cache", tmp_path, whole=True)
    rows = found.supported()
    assert set(rows) == {"launched_after"}
    assert rows["launched_after"]["level"].startswith("read-others-")
    assert rows["launched_after"]["variance_percent"] == pytest.approx(found.between("before"), abs=1)
    warm = [found.mean(before=name) for name in ("multiply_add", "neighbour")]
    assert warm[0] == pytest.approx(warm[1], rel=0.01)
    assert close(rows["launched_after"], found.change({"before": "multiply_add"}, {"before": "read_others"}))
    of_all = found.supported(found.of_dataset)
    assert not of_all, "idle times and waits differ after the kernel that acts, and do nothing"


@pytest.mark.usefixtures("exact_shares")
def test_copies_in_each_direction_have_their_own_effects(tmp_path):
    found = Experiment(H100, "copies", tmp_path)
    rows = found.supported()
    assert set(rows) == {f"{direction}_bytes_in_flight" for direction in ("h2d", "d2h", "d2d")}
    explained = sum(row["variance_percent"] for row in rows.values())
    assert explained == pytest.approx(found.between("copy"), abs=2)
    for direction in ("h2d", "d2h", "d2d"):
        truth = found.change({"copy": "none"}, {"copy": direction})
        assert truth > 1
        assert close(rows[f"{direction}_bytes_in_flight"], truth), direction


@pytest.mark.usefixtures("exact_shares")
def test_a_launch_beside_a_longer_kernel_is_explained_by_it_and_not_by_idle_times(tmp_path):
    found = Experiment(H100, "neighbours", tmp_path, whole=True)
    rows = found.supported()
    assert set(rows) == {"launches_in_flight"}
    assert close(rows["launches_in_flight"], found.change({"beside": False}, {"beside": True}))
    assert rows["launches_in_flight"]["variance_percent"] == pytest.approx(found.between("beside"), abs=1)
    assert "idle_before_ns" not in found.supported(found.of_dataset)


@pytest.mark.usefixtures("exact_shares")
def test_the_size_of_an_operators_input_is_the_cause_where_the_grid_is_one(tmp_path):
    found = Experiment(H100, "sizes", tmp_path)
    (row,) = found.supported().values()
    assert row["feature"] in ("shape_bytes", "shape_elements")
    sizes = sorted(set(found.arms["elements"]))
    assert row["variance_percent"] == pytest.approx(found.between("elements"), abs=0.5)
    assert close(row, found.change({"elements": sizes[0]}, {"elements": sizes[-1]}))


def test_sizes_and_copies_that_act_alike_are_told_apart(tmp_path):
    found = Experiment(H100, "sizes_and_copies", tmp_path)
    rows = found.supported()
    size = rows.pop("shape_bytes")
    sizes = sorted(set(found.arms["elements"]))
    assert close(size, found.change({"elements": sizes[0]}, {"elements": sizes[-1]}), allowed=0.06)
    assert set(rows) == {"h2d_bytes_in_flight", "d2h_bytes_in_flight"}
    for direction in ("h2d", "d2h"):
        differences = [
            found.change({"elements": size, "copy": "none"}, {"elements": size, "copy": direction}) for size in sizes
        ]
        assert close(rows[f"{direction}_bytes_in_flight"], fmean(differences), allowed=0.06), direction


def test_a_copy_that_mostly_comes_with_the_cause_is_none(tmp_path):
    found = Experiment(H100, "decoy", tmp_path)
    assert sum(a == b for a, b in zip(found.arms["beside"], found.arms["copied"], strict=True)) > 0.75 * len(
        found.durations
    )
    assert abs(found.change({"beside": False, "copied": False}, {"beside": False, "copied": True})) < 0.1
    rows = found.supported()
    assert set(rows) == {"launches_in_flight"}
    assert close(rows["launches_in_flight"], found.change({"beside": False}, {"beside": True}))


@pytest.mark.parametrize("name", ["hidden", "idle"])
def test_where_nothing_that_is_recorded_acts_no_cause_is_named(name, tmp_path):
    found = Experiment(H100, name, tmp_path, whole=True)
    assert not found.supported()
    assert not found.supported(found.of_dataset)


def test_a_clock_under_a_power_cap_is_the_cause_and_not_power_heat_or_idle_times(tmp_path):
    """A matrix product of random numbers draws more power than one of zeros. The cap lowers the clock, and the product
    takes so many more cycles' time; a kernel that the memory bounds hardly notices."""
    found = Experiment(H100, "power", tmp_path, telemetry=[RECORDED / H100 / "nvidia-smi.csv"])
    assert found.change({"values": "zeros"}, {"values": "random"}) > 15
    rows = found.supported()
    assert set(rows) == {"sm_clock_hz"}
    row = rows["sm_clock_hz"]
    assert row["mean_change_high"] < 0
    features = pq.read_table(tmp_path / "results" / "kernel_variability" / "features.parquet").to_pylist()
    own = sorted(row["sm_clock_hz"] for row in features if "nvjet" in row["kernel"] and row["sm_clock_hz"])
    low = own[len(own) // 10]
    high = own[9 * len(own) // 10]
    inverse = 100 * (1 / high - 1 / low) / fmean(1 / clock for clock in own)
    assert math.isclose(row["mean_change_percent"], inverse, rel_tol=0.25), "the time goes with one over the clock"


@pytest.mark.slow
@pytest.mark.usefixtures("exact_shares")
def test_counters_name_stalls_and_never_a_throughput(tmp_path):
    """Strides of shared memory and distinct addresses of atomics were drawn: the time of one kernel is waiting for
    shared memory, of the other for the memory. Throughputs and instructions per cycle follow from the time."""
    documents = documents_of(tmp_path, [RECORDED / H100 / "counters.csv.gz"], "gpu_time", whole=True)
    named = {
        one["graph"]["scope_name"]: {
            row["feature"]: row["members"] for row in one["contributions"] if row["feature"] != "unexplained"
        }
        for one in documents
    }
    everything = {member for found in named.values() for members in found.values() for member in members}
    rates = ("throughput", "issue_active", "sm_mem", "gpu_dram", "gpu_comp_mem", "average_warp")
    assert not {one for one in everything if any(rate in one for rate in rates)}
    conflict, atomics, gather = (named[name] for name in ("conflict", "add_atomically", "gather"))
    assert next(iter(conflict)) == "stall_shared_memory_per_issue"
    assert {"stall_memory_drain_per_issue", "stall_global_memory_per_issue"} <= set(next(iter(atomics.values())))
    assert {"inst_executed", "stall_global_memory_per_issue"} <= {one for own in gather.values() for one in own}
