"""Sparse, empty and odd datasets; what the program refuses, and how."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causeway.core.tables import SCHEMAS, read_table, table_metadata
from variability_tables import OUTPUTS, run_here, write_clocks, write_export

NAMES = dict(zip(OUTPUTS, ("bins", "ranking", "kept", "kernel_summary", "configuration_summary"), strict=True))
TARGETS = ("kernel_variability", "memory_stall")


def launches(start, duration, **more):
    n = len(start)
    return {"start_ns": start, "duration_ns": duration, "configuration": [0] * n, "rank": [0] * n, **more}


def dataset(folder, shifts=None, **exports):
    for export, (facts, more) in exports.items():
        write_export(folder / "tables" / export, facts, **more)
    write_clocks(folder / "clocks.json", shifts or dict.fromkeys(exports, 0))
    return folder


def table(folder, target, name):
    return read_table(folder / target / f"{name}.parquet", NAMES[name]).to_pandas()


def test_one_launch(tmp_path):
    dataset(tmp_path, a=(launches([500], [7]), {}))
    out = run_here(tmp_path, TARGETS, ["a"])
    bins = table(out, "kernel_variability", "bins")
    assert bins[["rank", "bin", "start_ns", "count", "min", "max", "mean"]].to_numpy().tolist() == [
        [0, 0, 500, 1, 0, 0, 0]
    ]
    assert bins[["variance", "std"]].isna().all(axis=None)
    assert bins[["q1", "median", "q3"]].to_numpy().tolist() == [[0, 0, 0]]
    ranking = table(out, "kernel_variability", "ranking")
    assert ranking.score.isna().all()
    assert not ranking.kept.any()
    kept = table(out, "kernel_variability", "kept")
    assert (kept.inclusion_probability.tolist(), kept.configuration_std.isna().tolist()) == ([1.0], [True])
    kernels = table(out, "kernel_variability", "kernels")
    assert kernels.target_share.tolist() == [0.0]
    assert kernels.robust_cv.isna().tolist() == [True], "one launch has no spread"
    assert len(table(out, "memory_stall", "bins")) == 0


def test_all_launches_in_one_bin(tmp_path):
    dataset(tmp_path, a=(launches([0, 5, 9, 9], [1, 2, 3, 6]), {"row_group": 1}))
    bins = table(run_here(tmp_path, ["kernel_variability"], ["a"]), "kernel_variability", "bins")
    assert bins[["bin", "count", "min", "max", "mean", "median"]].to_numpy().tolist() == [[0, 4, 0, 3, 1.5, 1.5]]


def test_a_launch_on_an_edge_opens_the_next_bin_and_empty_bins_have_no_row(tmp_path):
    dataset(tmp_path, a=(launches([100, 1099, 1100, 1100, 8100], [1, 2, 3, 4, 5]), {}))
    bins = table(run_here(tmp_path, ["kernel_variability"], ["a"], ["--width-us", "1"]), "kernel_variability", "bins")
    assert bins[["bin", "start_ns", "count"]].to_numpy().tolist() == [[0, 100, 2], [1, 1100, 2], [8, 8100, 1]]


def test_clocks_shift_exports_onto_one_time_line(tmp_path):
    second = launches([0, 1500], [5, 5])
    second["rank"] = [3, 3]
    dataset(tmp_path, {"a": -1000, "b": 250}, a=(launches([1000, 1999, 2000], [5, 5, 5]), {}), b=(second, {}))
    out = run_here(tmp_path, ["kernel_variability"], ["a", "b"], ["--width-us", "1"])
    bins = table(out, "kernel_variability", "bins")
    assert bins[["rank", "bin", "start_ns", "count"]].to_numpy().tolist() == [
        [0, 0, 0, 2],
        [0, 1, 1000, 1],
        [3, 0, 0, 1],
        [3, 1, 1000, 1],
    ]
    kept = table(out, "kernel_variability", "kept")
    assert kept.start_ns.tolist() == [0, 999, 1000, 250, 1750]
    assert kept.launch.tolist() == [0, 1, 2, 0, 1]


def test_configurations_are_numbered_alike_over_exports(tmp_path):
    first = launches([0, 10], [4, 8], configuration=[1, 0])
    second = launches([0, 10], [2, 6], configuration=[0, 1], rank=[1, 1])
    shapes = [("b", {"grid_x": 1}), ("a", {"grid_x": 2})]
    dataset(
        tmp_path,
        a=(first, {"configurations": shapes}),
        b=(second, {"configurations": [("a", {"grid_x": 2}), ("a", {})]}),
    )
    out = run_here(tmp_path, ["kernel_variability"], ["a", "b"])
    found = table(out, "kernel_variability", "configurations")
    assert found.kernel.str[0].tolist() == ["a", "a", "b"]
    assert found[["configuration", "launches", "mean"]].to_numpy().tolist() == [[0, 1, 6], [1, 2, 3], [2, 1, 8]]
    assert np.isnan(found.grid_x[0])
    assert found["rank"].isna().all()
    assert table(out, "kernel_variability", "kept").configuration.tolist() == [1, 2, 1, 0]
    again = run_here(tmp_path, ["kernel_variability"], ["b", "a"])
    assert table(again, "kernel_variability", "configurations").equals(found)


def test_nothing_to_do_gives_tables_without_rows(tmp_path):
    write_export(tmp_path / "tables" / "a", None)
    dataset(tmp_path, b=(launches([], []), {}))
    out = run_here(tmp_path, [*TARGETS, "gpu_time"], ["a", "b"])
    for target in (*TARGETS, "gpu_time"):
        for name, schema in NAMES.items():
            found = read_table(out / target / f"{name}.parquet", schema)
            assert found.num_rows == 0
            assert found.schema.names[: len(SCHEMAS[schema])] == SCHEMAS[schema].names
            assert ("exposed_transfer_ns" in found.column_names) == (name == "kept" and target != "gpu_time")


def test_metadata_says_how_the_tables_were_made(tmp_path):
    dataset(tmp_path, a=(launches([0], [1]), {}))
    out = run_here(tmp_path, ["kernel_variability"], ["a"], ["--seed", "5", "--score", "iqr"])
    facts = table_metadata(out / "kernel_variability" / "bins.parquet")
    assert {
        name: facts[name]
        for name in ("dataset", "target", "value", "value_unit", "score", "seed", "bin_width", "bin_unit")
    } == {
        "dataset": "d",
        "target": "kernel_variability",
        "value": "duration_ns",
        "value_unit": "ns",
        "score": "iqr",
        "seed": "5",
        "bin_width": "10000000",
        "bin_unit": "ns",
    }


def test_a_second_run_writes_the_same_bytes(tmp_path):
    rng = np.random.default_rng(0)
    dataset(tmp_path, a=(launches(np.sort(rng.integers(0, 10**9, 999)), rng.integers(1, 99, 999)), {}))
    out = run_here(tmp_path, TARGETS, ["a"])
    files = {path: path.read_bytes() for path in out.rglob("*.parquet")}
    assert len(files) == 10
    run_here(tmp_path, TARGETS, ["a"])
    assert all(path.read_bytes() == before for path, before in files.items())
    assert sorted(path.name for path in (out / "kernel_variability").iterdir()) == sorted(
        f"{name}.parquet" for name in OUTPUTS
    )


def refused(folder, capsys, *options, targets=("kernel_variability",), exports=("a",)):
    with pytest.raises(SystemExit) as ended:
        run_here(folder, targets, exports, options)
    assert ended.value.code == 1
    return capsys.readouterr().err.splitlines()[-1]


def test_a_negative_duration_is_refused_by_row(tmp_path, capsys):
    dataset(tmp_path, a=(launches([0, 1, 2], [5, -2, 1]), {}))
    assert "launches.parquet: row 1 has duration -2 ns" in refused(tmp_path, capsys)


def test_an_unknown_configuration_is_refused_by_row(tmp_path, capsys):
    dataset(tmp_path, a=(launches([0, 1], [5, 2], configuration=[0, 3]), {"configurations": [("k", {})]}))
    assert "row 1 has configuration 3, which configurations.parquet does not have" in refused(tmp_path, capsys)


def test_a_rank_that_capabilities_do_not_name_is_refused(tmp_path, capsys):
    dataset(tmp_path, a=(launches([0, 1], [5, 2], rank=[0, 4]), {"ranks": [0, 1]}))
    assert "row 1 belongs to rank 4; expected one of [0, 1]" in refused(tmp_path, capsys)


def test_a_rank_in_two_exports_is_refused(tmp_path, capsys):
    dataset(tmp_path, a=(launches([0], [5]), {}), b=(launches([0], [5]), {}))
    assert "exports a and b both hold rank 0" in refused(tmp_path, capsys, exports=("a", "b"))


def test_an_export_without_a_clock_is_refused(tmp_path, capsys):
    dataset(tmp_path, a=(launches([0], [5]), {}))
    (tmp_path / "clocks.json").write_text(json.dumps({"exports": {}}))
    assert "no clock of export a" in refused(tmp_path, capsys)


def test_a_table_of_another_schema_is_refused(tmp_path, capsys):
    dataset(tmp_path, a=(launches([0], [5]), {}))
    pq.write_table(pa.table({"start_ns": [1]}), tmp_path / "tables" / "a" / "launches.parquet")
    assert "expected launches of schema version" in refused(tmp_path, capsys)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--width-us", "0.0005"), "not a whole number of nanoseconds"),
        (("--width-us", "0"), "not a whole number of nanoseconds of at least 1"),
        (("--launches-per-bin", "0"), "--launches-per-bin"),
    ],
)
def test_wrong_options_are_refused(tmp_path, capsys, options, sentence):
    dataset(tmp_path, a=(launches([0], [5]), {}))
    assert sentence in refused(tmp_path, capsys, *options)
