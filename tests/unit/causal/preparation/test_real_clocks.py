"""What the analysis says about counters of real exports of Nsight Compute, whose rates restate the time."""

import csv

import numpy as np
import pytest
from whole_way import causes_of, documents_of

OPERATORS = "ncu_csv/operators-a100"
CLOCK = "sm__cycles_elapsed.avg.per_second"


def counters_of(path, *names):
    """Return the named counters of each launch of an `ncu` CSV, read as it is."""
    launches = {}
    with path.open(encoding="utf-8") as lines:
        rows = csv.reader(lines)
        head = next(row for row in rows if "Metric Name" in row)
        for row in (dict(zip(head, values, strict=True)) for values in rows if len(values) == len(head)):
            if row["Metric Name"] in names:
                launches.setdefault(row["ID"], {})[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    whole = [launch for launch in launches.values() if launch.keys() >= set(names)]
    return [np.array([launch[name] for launch in whole]) for name in names]


def test_a_measured_clock_is_cycles_over_the_time_and_low_for_short_launches(data):
    (path,) = data.glob(f"{OPERATORS}/adaptive_avg_pool2d_nsight.csv")
    cycles, clock, time = counters_of(path, "sm__cycles_elapsed.avg", CLOCK, "gpu__time_duration.sum")
    assert time.size > 400
    assert np.abs(clock * time / 1e9 / cycles - 1).max() < 2e-4
    assert clock[time < np.quantile(time, 0.1)].mean() < clock[time > np.quantile(time, 0.9)].mean()


@pytest.mark.parametrize("name", ["adaptive_avg_pool2d_nsight", "interplate_nsight"])
def test_a_clock_that_was_divided_by_the_time_is_no_cause_of_it(tmp_path, data, name):
    """No finding says of the mean what it says is not clear."""
    (path,) = data.glob(f"{OPERATORS}/{name}.csv")
    found = documents_of(tmp_path, [path], "gpu_time", whole=True, kernels_share=0.95)
    reason = f"Command line profiler metrics/{CLOCK}, says that it was divided by the measured time"
    for documents in found:
        graph = documents["graph"]
        assert "sm_clock" not in causes_of(graph)
        assert not any("sm_clock" in node.get("members", ()) for node in graph["nodes"])
        assert {one["feature"]: one["reason"] for one in graph["dropped"]}["sm_clock"].endswith(reason)
        for row in documents["contributions"]:
            if row["sentence"] and "without a clear change of the mean" in row["sentence"]:
                assert row["mean_change_low"] <= 0 <= row["mean_change_high"]
                assert "the mean of gpu_time by" not in row["sentence"]
                assert row["cost_ns"] is None or not row["monotone"]
