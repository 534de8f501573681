"""The whole program, as one rank, against the plain answer: on random datasets and on real exports."""

import math

import numpy as np
import pyarrow.parquet as pq
import pytest

import variability_reference as reference
from causeway.variability.rows import sources
from variability_tables import export_from_nsys, run_here, write_clocks, write_export

TARGETS = ("kernel_variability", "memory_stall")
FEATURES = ("duration_ns", "queue_ns")


def table(folder, target, name):
    return pq.read_table(folder / target / f"{name}.parquet").to_pandas()


def random_export(rng, folder, ranks, launches=400, transfers=120, span=40_000, configurations=7):
    """Write an export with overlaps, ties, gaps, nulls and launches of no length, in small row groups."""
    kernels = [(f"kernel<{n % 3}>", {"grid_x": int(n), "block_x": 32}) for n in rng.permutation(configurations)]
    start = np.sort(rng.integers(0, span, launches) // 5 * 5)
    queue = rng.integers(0, 50, launches).astype(object)
    queue[rng.random(launches) < 0.3] = None
    facts = {
        "start_ns": start,
        "duration_ns": np.where(rng.random(launches) < 0.05, 0, rng.lognormal(4, 1, launches)).astype(int),
        "configuration": rng.integers(0, configurations, launches),
        "rank": rng.choice(ranks, launches),
        "device": rng.integers(0, 2, launches),
        "stream": rng.integers(7, 9, launches),
        "queue_ns": queue.tolist(),
        "range": rng.integers(0, 3, launches),
    }
    copies = {
        "start_ns": np.sort(rng.integers(0, span, transfers)),
        "duration_ns": np.where(rng.random(transfers) < 0.03, 20_000, rng.lognormal(4, 1, transfers)).astype(int),
        "rank": rng.choice(ranks, transfers),
        "device": rng.integers(0, 2, transfers),
        "copy_kind": rng.choice([1, 2, 255], transfers),
        "bytes": rng.integers(1, 9999, transfers),
    }
    write_export(folder, facts, copies, configurations=kernels, ranks=ranks, row_group=37)


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """Two exports, one with two ranks, on clocks of their own."""
    monkeypatch.setattr(sources, "STRETCH_ROWS", 1)
    rng = np.random.default_rng(11)
    random_export(rng, tmp_path / "tables" / "a", [0, 2])
    random_export(rng, tmp_path / "tables" / "b", [1], configurations=5)
    write_clocks(tmp_path / "clocks.json", {"a": -100, "b": 7_321})
    return tmp_path


def expected_rows(folder, exports, target, window_ns=1_000_000, per_rank=False):
    rows = reference.trace_rows(folder, exports)
    first = rows.start_ns.min()
    rows = (
        reference.with_stall(rows, folder, window_ns)
        if target == "memory_stall"
        else reference.with_deviation(rows, "duration_ns", per_rank)
    )
    return rows.assign(position=rows.start_ns), first


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("width_us", ["1", "0.05", "1000"])
def test_bins_of_a_random_dataset_equal_the_plain_answer(dataset, target, width_us):
    out = run_here(
        dataset, [target], ["a", "b"], ["--width-us", width_us, "--link-window-us", "0.2", "--features", *FEATURES]
    )
    rows, first = expected_rows(dataset, ["a", "b"], target, window_ns=200)
    width = round(float(width_us) * 1000)
    found = table(out, target, "bins")
    reference.assert_same_bins(found, reference.bins(rows, first, width, FEATURES), FEATURES)
    assert (found.start_ns == first + found.bin * width).all()


def test_mean_stalls_of_several_workers_are_those_of_all_launches(dataset):
    """Each worker counts the stalls of its own row groups; the means of configurations are of all."""
    options = ["--width-us", "1", "--link-window-us", "0.2", "--workers", "3"]
    out = run_here(dataset, ["memory_stall"], ["a", "b"], options)
    rows, first = expected_rows(dataset, ["a", "b"], "memory_stall", window_ns=200)
    reference.assert_same_bins(table(out, "memory_stall", "bins"), reference.bins(rows, first, 1000))
    found = table(out, "memory_stall", "configurations")
    by_grid = rows.dropna(subset=["target"]).assign(grid_x=lambda one: [key[1] for key in one.key]).groupby("grid_x")
    assert by_grid.target.count().tolist() == found.sort_values("grid_x").launches.tolist()
    np.testing.assert_allclose(found.sort_values("grid_x")["mean"], by_grid.target.mean())


def test_means_per_rank(dataset):
    out = run_here(dataset, ["kernel_variability"], ["a", "b"], ["--width-us", "1", "--mean", "rank"])
    rows, first = expected_rows(dataset, ["a", "b"], "kernel_variability", per_rank=True)
    reference.assert_same_bins(table(out, "kernel_variability", "bins"), reference.bins(rows, first, 1000))
    means = table(out, "kernel_variability", "configurations")
    assert len(means) == rows.groupby(["key", "rank"]).ngroups
    assert sorted(means["rank"].unique()) == [0, 1, 2]


@pytest.mark.parametrize("target", TARGETS)
def test_kept_rows_are_the_launches_of_chosen_bins(dataset, target):
    options = [
        "--width-us",
        "1",
        "--link-window-us",
        "0.2",
        "--keep-count",
        "9",
        "--control-min-rows",
        "0",
        "--control-ratio",
        "2",
    ]
    out = run_here(dataset, [target], ["a", "b"], options)
    rows, first = expected_rows(dataset, ["a", "b"], target, window_ns=200)
    ranking = table(out, target, "ranking")
    assert ranking.kept.sum() == 9
    assert ranking.control.sum() > 0
    assert not (ranking.kept & ranking.control).any()
    chosen = ranking[ranking.kept | ranking.control]
    expected = rows.assign(bin=(rows.start_ns - first) // 1000).merge(
        chosen[["rank", "bin", "kept", "inclusion_probability"]], on=["rank", "bin"]
    )
    expected = expected.sort_values(["rank", "start_ns", "launch"]).reset_index(drop=True)
    found = table(out, target, "kept")
    for name in (
        "rank",
        "bin",
        "launch",
        "start_ns",
        "target",
        "kept",
        "inclusion_probability",
        "duration_ns",
        "device",
        "stream",
        "range",
    ):
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    np.testing.assert_array_equal(found.signed_deviation, expected.signed)
    np.testing.assert_array_equal(found.queue_ns.isna(), expected.queue_ns.isna())
    assert (found.configuration_mean + found.signed_deviation).to_numpy() == pytest.approx(
        expected.value.to_numpy(float), rel=1e-12
    )
    if target == "memory_stall":
        np.testing.assert_array_equal(found.transfer_duration_ns, expected.transfer_duration_ns)
        np.testing.assert_array_equal(found.transfer_bytes, expected.transfer_bytes)
        np.testing.assert_array_equal(found.transfer_copy_kind, expected.transfer_copy_kind)
        shifts = expected.start_ns - expected.raw_ns
        np.testing.assert_array_equal(found.transfer_start_ns, expected.transfer_start_ns + shifts)
        ends = np.minimum(found.start_ns + found.duration_ns, found.transfer_start_ns + found.transfer_duration_ns)
        overlap = np.maximum(ends - np.maximum(found.start_ns, found.transfer_start_ns), 0)
        np.testing.assert_array_equal(found.transfer_overlap_ns, overlap)
        assert (
            (found.exposed_transfer_ns >= 0) & (found.exposed_transfer_ns <= found.transfer_duration_ns - overlap)
        ).all()


@pytest.mark.parametrize("target", TARGETS)
def test_summaries_describe_all_launches(dataset, target):
    out = run_here(dataset, [target], ["a", "b"], ["--link-window-us", "0.2"])
    rows, first = expected_rows(dataset, ["a", "b"], target, window_ns=200)
    every = reference.trace_rows(dataset, ["a", "b"])
    every["name"] = every.key.str[0]
    rows["name"] = rows.key.str[0]
    found = table(out, target, "kernels").set_index("name")
    sums = rows.groupby("name").target.sum()
    assert found.target_sum.is_monotonic_decreasing
    np.testing.assert_allclose(found.target_sum, sums[found.index], rtol=1e-9)
    assert found.target_share.sum() == pytest.approx(1)
    span = every.start_ns.max() - first + 1
    for name, kernel in every.groupby("name"):
        line = found.loc[name]
        values = kernel.duration_ns
        assert (line.launches, line.value_sum, line.value_min, line.value_max) == (
            len(kernel),
            values.sum(),
            values.min(),
            values.max(),
        )
        assert [line.value_q1, line.value_median, line.value_q3] == values.quantile([0.25, 0.5, 0.75]).tolist()
        assert line.configurations == kernel.key.nunique()
        assert line.robust_cv == pytest.approx(0.7413 * (line.value_q3 - line.value_q1) / line.value_median)
        each = kernel.groupby("key").duration_ns.transform("mean")
        between = ((each - values.mean()) ** 2).sum() / ((values - values.mean()) ** 2).sum()
        several = line.configurations > 1
        assert (line.variance_between == pytest.approx(between)) if several else math.isnan(line.variance_between)
        assert line.histogram.sum() == len(kernel)
        own = rows[rows.name == name]
        slices = own.groupby((own.start_ns - first) * 64 // span).target.mean()
        expected = [slices.get(k, math.nan) for k in range(64)]
        np.testing.assert_allclose(np.array(line.timeline, float), expected, rtol=1e-9)
    means = table(out, target, "configurations")
    per_key = rows.groupby("key")["value"]
    assert len(means) == per_key.ngroups
    assert sorted(means.launches) == sorted(per_key.size())
    np.testing.assert_allclose(np.sort(means["mean"]), np.sort(per_key.mean()), rtol=1e-12)
    np.testing.assert_allclose(np.sort(means["std"].dropna()), np.sort(per_key.std().dropna()), rtol=1e-12)


def test_timelines_of_runs_recorded_hours_apart_lie_over_each_other(tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    hours = 3_600_000_000_000
    random_export(rng, tmp_path / "tables" / "a", [0])
    random_export(rng, tmp_path / "tables" / "b", [1], span=20_000)
    write_clocks(tmp_path / "clocks.json", {"a": 100, "b": hours})
    found = table(
        run_here(tmp_path, ["kernel_variability"], ["a", "b"], ["--width-us", "1000000"]),
        "kernel_variability",
        "kernels",
    )
    rows, _ = expected_rows(tmp_path, ["a", "b"], "kernel_variability")
    since = rows.start_ns - rows.groupby("rank").start_ns.transform("min")
    slices = rows.assign(name=rows.key.str[0]).groupby(["name", since * 64 // (since.max() + 1)]).target.mean()
    for name, line in found.set_index("name").timeline.items():
        expected = [slices.get((name, k), math.nan) for k in range(64)]
        np.testing.assert_allclose(np.array(line, float), expected, rtol=1e-9)


def test_histogram_of_a_kernel_has_bins_of_equal_ratio(tmp_path):
    durations = [1, 2, 4, 8, 16, 2**32 - 1, 2**32]
    write_export(
        tmp_path / "tables" / "0",
        {"start_ns": range(7), "duration_ns": durations, "configuration": [0] * 7, "rank": [0] * 7},
    )
    write_clocks(tmp_path / "clocks.json", {"0": 0})
    found = table(run_here(tmp_path, ["kernel_variability"], ["0"]), "kernel_variability", "kernels")
    assert np.flatnonzero(found.histogram[0]).tolist() == [0, 1, 2, 3, 4, 31]
    assert found.histogram[0][31] == 2
    assert found.value_median[0] == 8


REAL = {
    "rodinia": ["nsys_sqlite/rodinia-gaussian/report3.sqlite"],
    "two runs": ["nsys_sqlite/rodinia-gaussian/report3.sqlite", "nsys_sqlite/rodinia-gaussian/report5.sqlite"],
    "two devices": ["nsys_sqlite/nsys-ai/h100_2gpu_1s.sqlite"],
    "cloverleaf": ["nsys_sqlite/pipit/perlmutter-cloverleaf-cuda.sqlite"],
}


@pytest.mark.parametrize("name", REAL)
def test_real_exports_equal_the_plain_answer(data, tmp_path, name):
    exports = [str(place) for place in range(len(REAL[name]))]
    for export, source in zip(exports, REAL[name], strict=True):
        export_from_nsys(data / source, tmp_path / "tables" / export, rank=int(export) if len(exports) > 1 else None)
    write_clocks(tmp_path / "clocks.json", {export: 10 * place for place, export in enumerate(exports)})
    out = run_here(tmp_path, TARGETS, exports, ["--features", "duration_ns"])
    for target in TARGETS:
        rows, first = expected_rows(tmp_path, exports, target)
        if len(rows):  # Rodinia copies long before its first launch: no stall at all
            reference.assert_same_bins(
                table(out, target, "bins"), reference.bins(rows, first, 10_000_000, ["duration_ns"]), ["duration_ns"]
            )
        kept = table(out, target, "kept")
        assert len(kept) == len(rows)  # smaller than the least sample, so kept whole
        assert (kept.inclusion_probability == 1).all()
