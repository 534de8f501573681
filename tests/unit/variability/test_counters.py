"""Counters and tables: no start times, so bins count launches; floating-point values, with nulls."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variability_reference as reference
from variability_tables import run_here, write_clocks, write_export

FIELDS = [
    pa.field("gpu_time", pa.float64(), metadata={"unit": "ns"}),
    pa.field("dram_bytes", pa.float64(), metadata={"unit": "bytes"}),
    pa.field("place", pa.string()),
]


def table(folder, name, target="gpu_time"):
    return pq.read_table(folder / target / f"{name}.parquet").to_pandas()


def counters(rng, n, ranks=(0,), nulls=0.0, start=False):
    values = rng.lognormal(5, 1, n) + rng.integers(0, 3, n) * 0.1
    return {
        "launch": np.arange(n),
        "start_ns": np.sort(rng.integers(0, 10**6, n)) if start else [None] * n,
        "configuration": rng.integers(0, 4, n),
        "rank": rng.choice(ranks, n),
        "device": [None] * n,
        "gpu_time": [None if rng.random() < nulls else float(value) for value in values],
        "dram_bytes": [None if rng.random() < 0.2 else float(value) for value in rng.integers(0, 2**40, n)],
        "place": rng.choice(["near", "far"], n).tolist(),
    }


def write(folder, **exports):
    for export, facts in exports.items():
        configurations = [(f"k{n % 2}", {"grid_x": n}) for n in range(4)]
        write_export(
            folder / "tables" / export, counters=facts, extra=FIELDS, configurations=configurations, row_group=50
        )
    write_clocks(folder / "clocks.json", {})


def plain(facts):
    """Return the rows with a value: position is a launch's number within its rank, also among launches without a
    value.
    """
    rows = pd.DataFrame(
        {name: facts[name] for name in ("launch", "configuration", "rank", "gpu_time", "dram_bytes", "place")}
    )
    rows["position"] = rows.groupby("rank").cumcount()
    rows["key"] = [(f"k{n % 2}", n) for n in rows.configuration]
    return rows.dropna(subset="gpu_time").reset_index(drop=True)


@pytest.mark.parametrize("ranks", [(0,), (0, 1, 5)])
@pytest.mark.parametrize("nulls", [0.0, 0.2])
def test_bins_of_counters_equal_the_plain_answer(tmp_path, ranks, nulls):
    facts = counters(np.random.default_rng(1), 333, ranks, nulls)
    write(tmp_path, a=facts)
    out = run_here(
        tmp_path, ["gpu_time"], ["a"], ["--launches-per-bin", "10", "--features", "dram_bytes", "no_such_counter"]
    )
    rows = reference.with_deviation(plain(facts), "gpu_time")
    found = table(out, "bins")
    reference.assert_same_bins(found, reference.bins(rows, 0, 10, ["dram_bytes"]), ["dram_bytes"])
    assert found.start_ns.isna().all()
    kept = table(out, "kept")
    rows = rows.sort_values(["rank", "launch"]).reset_index(drop=True)
    assert len(kept) == len(rows)
    for name, column in (
        ("launch", "launch"),
        ("target", "target"),
        ("signed_deviation", "signed"),
        ("place", "place"),
    ):
        assert kept[name].tolist() == rows[column].tolist()
    np.testing.assert_array_equal(kept.dram_bytes, rows.dram_bytes)
    assert "gpu_time" not in kept
    assert kept.grid_x.tolist() == rows.configuration.tolist()
    assert kept.start_ns.isna().all()
    kernels = table(out, "kernels").set_index("name")
    for name, own in rows.groupby(rows.key.str[0]):
        assert kernels.launches[name] == len(own)
        np.testing.assert_allclose(
            kernels.loc[name, ["value_q1", "value_median", "value_q3"]].to_numpy(float),
            own.gpu_time.quantile([0.25, 0.5, 0.75]),
            rtol=1e-12,
        )
        assert kernels.target_sum[name] == pytest.approx(own.target.sum(), rel=1e-12)
        assert kernels.histogram[name].sum() == len(own)


def test_one_list_of_features_serves_traces_and_counters(tmp_path, capsys):
    """Each takes the names that it has: a counter beside the launches of a trace stops neither."""
    facts = counters(np.random.default_rng(8), 64)
    write(tmp_path, a=facts)
    own = {"start_ns": range(64), "duration_ns": range(64), "configuration": [0] * 64, "rank": [0] * 64}
    write_export(tmp_path / "tables" / "b", own)
    write_clocks(tmp_path / "clocks.json", {"b": 0})
    names = ["--features", "duration_ns", "dram_bytes", "--launches-per-bin", "32"]
    found = table(run_here(tmp_path, ["kernel_variability"], ["b"], names), "bins", "kernel_variability")
    assert "the launches of traces have no columns dram_bytes: no statistics of them" in capsys.readouterr().err
    assert (found.duration_ns_min.tolist(), found.duration_ns_max.tolist()) == ([0], [63])
    assert not [name for name in found if "dram_bytes" in name]
    found = table(run_here(tmp_path, ["gpu_time"], ["a"], names), "bins")
    assert "the counters have no columns duration_ns: no statistics of them" in capsys.readouterr().err
    largest = [max(value for value in facts["dram_bytes"][at : at + 32] if value is not None) for at in (0, 32)]
    assert found.dram_bytes_max.tolist() == largest
    assert not [name for name in found if "duration_ns" in name]


def test_counters_with_start_times_are_binned_by_time(tmp_path):
    facts = counters(np.random.default_rng(2), 100, start=True)
    write(tmp_path, a=facts)
    write_clocks(tmp_path / "clocks.json", {"a": 40})
    found = table(run_here(tmp_path, ["gpu_time"], ["a"], ["--width-us", "100"]), "bins")
    first = facts["start_ns"][0]
    rows = reference.with_deviation(plain(facts), "gpu_time").assign(position=facts["start_ns"])
    reference.assert_same_bins(found, reference.bins(rows, first, 100_000))
    assert (found.start_ns == first + 40 + found.bin * 100_000).all()


def test_several_exports_share_means_and_columns(tmp_path):
    rng = np.random.default_rng(3)
    first = counters(rng, 80)
    second = counters(rng, 60, ranks=(1,))
    write(tmp_path, a=first, b=second)
    found = table(run_here(tmp_path, ["gpu_time"], ["a", "b"], ["--launches-per-bin", "7"]), "bins")
    rows = pd.concat([plain(first), plain(second)], ignore_index=True)
    reference.assert_same_bins(found, reference.bins(reference.with_deviation(rows, "gpu_time"), 0, 7))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_is_refused_by_row(tmp_path, capsys, bad):
    facts = counters(np.random.default_rng(4), 120)
    facts["gpu_time"][77] = bad
    write(tmp_path, a=facts)
    with pytest.raises(SystemExit):
        run_here(tmp_path, ["gpu_time"], ["a"])
    assert f"gpu_time: row 77 holds {bad}" in capsys.readouterr().err


def test_a_target_of_text_is_refused(tmp_path, capsys):
    write(tmp_path, a=counters(np.random.default_rng(5), 9))
    with pytest.raises(SystemExit):
        run_here(tmp_path, ["place"], ["a"])
    assert "the target place holds string, expected numbers" in capsys.readouterr().err


def test_a_target_without_variation(tmp_path):
    facts = counters(np.random.default_rng(6), 64)
    facts["gpu_time"] = [0.0] * 64
    write(tmp_path, a=facts)
    out = run_here(tmp_path, ["gpu_time"], ["a"])
    assert table(out, "bins").variance.tolist() == [0.0, 0.0]
    assert table(out, "kernels").target_share.tolist() == [0.0, 0.0]


def test_labels_make_configurations(tmp_path):
    facts = {"launch": range(4), "configuration": [0, 1, 0, 1], "rank": [0] * 4, "y": [1.0, 10.0, 3.0, 30.0]}
    field = [pa.field("y", pa.float64())]
    write_export(
        tmp_path / "tables" / "a", counters=facts, extra=field, configurations=[("k", {}, "slow"), ("k", {}, "fast")]
    )
    write_clocks(tmp_path / "clocks.json", {})
    out = run_here(tmp_path, ["y"], ["a"])
    means = table(out, "configurations", "y")
    assert means[["label", "mean"]].to_numpy().tolist() == [["fast", 20.0], ["slow", 2.0]]
    assert table(out, "kept", "y").target.tolist() == [1.0, 10.0, 1.0, 10.0]
