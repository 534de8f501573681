"""What the analysis says about real exports, as docs/real-exports.md tells it; the inconclusive answers are pinned
like the others.
"""

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from scipy import stats
from whole_way import causes_of, documents_of

NSYS = "nsys_sqlite/nsys-ai"
RODINIA = ("nsys_sqlite/rodinia-gaussian/report3.sqlite", "nsys_sqlite/rodinia-gaussian/report5.sqlite")


def explained(folder, data, sources, target="kernel_variability", **causes):
    """Return the documents by kernel's name, those of the whole dataset under `dataset`."""
    files = [next(data.glob(source)) for source in sources]
    found = documents_of(folder, files, target, whole=True, **{"resamples": 10, "kernels_share": 0.95} | causes)
    return {documents["graph"]["scope_name"] or "dataset": documents for documents in found}


def share(documents, cause):
    return next(row["contribution_percent"] for row in documents["contributions"] if row["feature"] == cause)


def named(kernels, part):
    return next(documents for name, documents in kernels.items() if part in name)


def test_rodinias_trend_is_a_trend_and_no_lever(tmp_path, data):
    found = explained(tmp_path, data, RODINIA, kernels_share=0.999)
    fan1 = named(found, "Fan1")
    fan2 = named(found, "Fan2")
    whole = found["dataset"]
    assert causes_of(fan2["graph"]) == {"since_start_ns": "-"}
    assert (fan2["graph"]["n_rows"], fan2["graph"]["verdict"]) == (8190, "supported")
    assert 70 < share(fan2, "since_start_ns") < 90
    assert 200 < fan2["graph"]["n_effective"] < 300
    assert [row["reason"] for row in fan2["whatif"]] == [
        "refused: a moment cannot be set; it stands for whatever changes with time"
    ]
    assert (causes_of(fan1["graph"]), fan1["graph"]["verdict"]) == ({}, "inconclusive")
    assert fan1["graph"]["n_effective"] < 100
    assert (causes_of(whole["graph"]), whole["graph"]["verdict"]) == ({"since_start_ns": "-"}, "inconclusive")
    assert "inconclusive, too few effective samples behind it" in whole["graph"]["sentences"][0]


def test_dropouts_deviations_grow_with_the_bytes_it_moves(tmp_path, data):
    found = explained(tmp_path, data, ["ncu_csv/operators-a100/dropout_nsight162.csv"], "gpu_time")
    for documents in found.values():
        graph = documents["graph"]
        ((cause, sign),) = causes_of(graph).items()
        assert sign == "+"
        # multiplications go with bytes in all launches: the data cannot tell which acts
        assert {"l1_bytes", "l2_bytes", "dram_bytes"} < set(
            next(node for node in graph["nodes"] if node["name"] == cause)["members"]
        )
        assert 60 < share(documents, cause) < 95
        assert 100 < graph["n_effective"] < 300
        assert "raise the mean of gpu_time by 191 %" in graph["sentences"][0]


def test_a_second_of_the_h100_job_is_too_short_to_blame_its_copies(tmp_path, data):
    question = {"name": "no concurrent copy", "set": {"h2d_bytes_in_flight": "none"}}
    found = explained(tmp_path, data, [f"{NSYS}/h100_2gpu_1s.sqlite"], what_if=[question])
    whole = found.pop("dataset")
    assert (causes_of(whole["graph"]), whole["graph"]["verdict"]) == ({}, "inconclusive")
    assert whole["graph"]["sentences"][0].endswith("an effect above 1.0 % of the variance would have been seen.")
    assert [row["reason"] for row in whole["whatif"]] == ["refused: no cause was found here that could be set"]
    with_cause = [documents for documents in found.values() if causes_of(documents["graph"])]
    assert len(found) == 10
    assert [causes_of(documents["graph"]) for documents in with_cause] == [{"rank": "-"}, {"rank": "-"}]
    assert with_cause == [named(found, "64x256x8_stage3"), named(found, "reduce_kernel")]
    edges = [documents["graph"]["edges"][0] for documents in with_cause]
    assert [(edge["sign_of"], edge["level"]) for edge in edges] == [("target", "0"), ("value", "0")]
    assert all(edge["value_effect"] < -0.5 for edge in edges)
    refused = [documents for documents in found.values() if documents["graph"]["n_effective"] < 100]
    assert len(refused) == 2
    assert all(documents["graph"]["sentences"][0].startswith("Inconclusive: ") for documents in refused)


def test_the_matrix_product_is_slower_on_one_gpu_of_the_h100_job(data):
    """The rank that the analysis names as a cause, by ranks of the durations alone, grid by grid: the second GPU is
    the slower one.
    """
    (path,) = data.glob(f"{NSYS}/h100_2gpu_1s.sqlite")
    query = """SELECT deviceId, "end" - start, gridY
               FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = demangledName
               WHERE value LIKE '%64x256x8_stage3%' AND gridZ = 2 ORDER BY deviceId"""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as export:
        rows = np.asarray(export.execute(query).fetchall())
    p_values = []
    for grid in (40, 48):
        first, second = (rows[(rows[:, 0] == device) & (rows[:, 2] == grid), 1] for device in (0, 1))
        p_values.append(stats.mannwhitneyu(first, second, alternative="less").pvalue)
    assert stats.combine_pvalues(p_values).pvalue < 1e-5


@pytest.mark.slow
def test_the_stencils_slow_run_is_found_in_each_of_its_kernels(tmp_path, data):
    runs = [f"rocprof_v1/seismic-stencils/run{i}_*/results.csv" for i in range(8)]
    found = explained(tmp_path, data, runs, kernels_share=0.99)
    whole = found.pop("dataset")
    slow = [documents for documents in found.values() if documents["graph"]["n_rows"] == 800]
    assert len(slow) >= 8
    for documents in slow:
        (row,) = [row for row in documents["contributions"] if row["feature"] != "unexplained"]
        assert (row["feature"], row["level"], row["sign"], row["verdict"]) == ("rank", "0", "+", "supported")
        assert row["contribution_low"] > 95
        (setting,) = documents["whatif"]
        assert setting["to"] != "0"
        assert setting["change_high"] < -90
    assert set(causes_of(whole["graph"])) <= {
        "since_start_ns"
    }  # in 40 to 70 % of half-samples, so found or not by the seed
    assert "since the start" in whole["graph"]["sentences"][0] or "fragile" in whole["graph"]["sentences"][0]
    assert any(reason.startswith("successive launches resemble each other") for reason in whole["graph"]["reasons"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "causes", "of_kernels"),
    [
        ("before", {"queue_ns": "-", "rank": "-"}, set()),
        ("after", {"idle_before_ns": "-"}, {"idle_before_ns", "operator"}),
    ],
)
def test_the_training_jobs_copies_are_no_cause_and_what_is_found_is_weak(tmp_path, data, name, causes, of_kernels):
    found = explained(tmp_path, data, [f"{NSYS}/mfu_2gpu_{name}.sqlite"])
    whole = found.pop("dataset")
    graphs = [documents["graph"] for documents in found.values()]
    assert {cause for graph in graphs for cause in causes_of(graph)} == of_kernels
    assert all(graph["n_effective"] < 100 or causes_of(graph) for graph in graphs)
    assert causes_of(whole["graph"]) == causes
    assert all("robustness 0.2" in sentence for sentence in whole["graph"]["sentences"])
