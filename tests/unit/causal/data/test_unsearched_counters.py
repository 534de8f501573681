"""Counters of launches that have times are not searched for causes, and that is said."""

import csv

import numpy as np
import pytest
from whole_way import documents_of

HEAD = (
    "Correlation_Id Dispatch_Id Agent_Id Queue_Id Process_Id Thread_Id Grid_Size Kernel_Id Kernel_Name Workgroup_Size"
    " LDS_Block_Size Scratch_Size VGPR_Count Accum_VGPR_Count SGPR_Count Counter_Name Counter_Value Start_Timestamp"
    " End_Timestamp"
).split()
COUNTERS = {"TCC_MISS_sum": "tcc_miss", "LDSBankConflict": "LDSBankConflict"}
REASON = "counters of launches with times are not searched"


@pytest.fixture
def collection(tmp_path):
    """A file of `rocprofv3 --pmc` of 300 launches, whose misses set their time."""
    rng = np.random.default_rng(8800)
    path = tmp_path / "app_counter_collection.csv"
    start = 1_000_000
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, quoting=csv.QUOTE_ALL)
        table.writerow(HEAD)
        for number in range(1, 301):
            misses = int(4e5 * np.exp(0.3 * rng.standard_normal()))
            end = start + 20_000 + misses // 10
            for name, value in zip(COUNTERS, (misses, rng.random()), strict=True):
                launch = [number, number, "Agent 2", 1, 7, 7, 262144, 1, "k(float*)", 256, 0, 0, 32, 0, 64]
                table.writerow([*launch, name, f"{value:.6f}", start, end])
            start = end + 8_000 + int(rng.integers(4_000))
    return path


def test_they_are_listed_and_a_search_without_a_cause_says_so(tmp_path, collection):
    for documents in documents_of(tmp_path, [collection], "kernel_variability", whole=True):
        graph = documents["graph"]
        assert [one["feature"] for one in graph["dropped"] if one["reason"] == REASON] == sorted(COUNTERS.values())
        assert graph["sentences"][0].endswith("would have been seen; counters were recorded and not searched.")
        assert graph["reasons"][0] == graph["sentences"][0].removesuffix(".")


def test_of_an_export_of_counters_they_are_searched(tmp_path, data):
    (path,) = data.glob("ncu_csv/operators-a100/dropout_nsight162.csv")
    for documents in documents_of(tmp_path, [path], "gpu_time", whole=True):
        assert REASON not in {one["reason"] for one in documents["graph"]["dropped"]}
