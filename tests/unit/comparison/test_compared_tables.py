"""Two plain tables that are compared by their settings. Changes are planted."""

import json

import numpy as np
import pyarrow as pa
import pytest

from causeway.comparison.compare import run
from causeway.comparison.runs.launches import Launches
from causeway.comparison.runs.settings import common_causes, common_settings, common_time
from causeway.core.errors import NotComparableError
from causeway.core.tables import SCHEMAS, read_json, read_table, write_table
from comparison_runs import CHOICES
from variability_tables import write_export

SIZES = {64: 30.0, 4096: 200.0}


def write_table_of(folder, seed, share, factors=None, unit="us", n=1200, rank=0, **columns):
    """Write a table of one kernel, of which `share` of the rows are large; times in µs, by size times its factor."""
    rng = np.random.default_rng(seed)
    rows = np.where(rng.random(n) < share, 4096, 64)
    times = [SIZES[size] * (factors or {}).get(size, 1.0) * rng.normal(1, 0.01) for size in rows.tolist()]
    names = {"rows": rows.astype(float), "duration_us": times, **columns}
    raw = {name: {"raw": name} | ({"unit": unit} if name == "duration_us" else {}) for name in names}
    kinds = {name: pa.string() if isinstance(values[0], str) else pa.float64() for name, values in names.items()}
    write_export(
        folder / "e0",
        counters={"launch": range(n), "configuration": [0] * n, "rank": [rank] * n, **names},
        configurations=[("norm", {})],
        extra=[pa.field(name, kinds[name], metadata=raw[name]) for name in names],
        ranks=[rank],
    )
    path = folder / "e0" / "capabilities.json"
    path.write_text(json.dumps(read_json(path) | {"kind": "table"}), encoding="utf-8")
    return folder / "e0"


def compared(tmp_path, before, after):
    """Return document and rows of two folders of tables."""
    outputs = tmp_path / "comparison.json", tmp_path / "comparison.parquet"
    run([["a"], ["b"]], {"a": [before], "b": [after]}, {}, [{}, {}], {}, CHOICES, *outputs)
    return read_json(outputs[0]), read_table(outputs[1], "comparison").to_pylist()


def test_a_mean_that_rises_with_the_mix_is_no_slowdown(tmp_path):
    """Simpson's paradox: each size is 6 % faster, and the mean doubles."""
    faster = dict.fromkeys(SIZES, 0.94)
    tables = write_table_of(tmp_path / "a", 1, 0.2), write_table_of(tmp_path / "b", 2, 0.6, faster)
    document, rows = compared(tmp_path, *tables)
    (kernel,) = (row for row in rows if row["level"] == "kernel" and row["metric"] == "time_per_launch")
    assert kernel["candidate_value"] > 1.8 * kernel["baseline_value"]
    assert kernel["verdict"] == "faster"
    assert kernel["change_percent"] == pytest.approx(-6, abs=0.3)
    assert document["settings"]["columns"] == ["rows"]
    counts = {row["value"]: (row["baseline"], row["candidate"]) for row in document["settings"]["values"]}
    sides = [read_table(table / "counters.parquet", "counters").column("rows").to_pylist() for table in tables]
    assert counts == {str(size): tuple(side.count(size) for side in sides) for size in SIZES}


def test_the_value_of_a_setting_that_changed_is_known_with_its_interval(tmp_path):
    tables = write_table_of(tmp_path / "a", 1, 0.5), write_table_of(tmp_path / "b", 2, 0.5, {4096: 1.25})
    effects = {row["value"]: row for row in compared(tmp_path, *tables)[0]["effects"]}
    assert effects["4096"]["low_percent"] < 25 < effects["4096"]["high_percent"]
    assert effects["64"]["low_percent"] < 0 < effects["64"]["high_percent"]


def test_a_setting_that_changed_is_known_where_the_runs_share_no_rank(tmp_path):
    tables = write_table_of(tmp_path / "a", 1, 0.5), write_table_of(tmp_path / "b", 2, 0.5, {4096: 1.25}, rank=1)
    changes = {row["value"]: row["change_percent"] for row in compared(tmp_path, *tables)[0]["effects"]}
    assert changes == {"64": pytest.approx(0, abs=0.5), "4096": pytest.approx(25, abs=0.5)}


def test_values_whose_rows_are_too_few_for_an_interval_are_no_effects(tmp_path):
    """Of four rows each, which scatter by 5 %, chance was told as an effect."""
    rng = np.random.default_rng(3)
    sizes = {"size": [f"s{row % 6}" for row in range(24)]}
    tables = [write_table_of(tmp_path / name, 1, 0.0, n=24, **sizes) for name in "ab"]
    for folder in tables:
        path = folder / "counters.parquet"
        table = read_table(path, "counters")
        index = table.schema.get_field_index("duration_us")
        times = pa.array(30.0 * rng.normal(1, 0.05, 24))
        pa.parquet.write_table(table.set_column(index, table.schema.field(index), times), path)
    document = compared(tmp_path, *tables)[0]
    assert document["settings"]["columns"] == ["size"]
    assert document["effects"] == []


def test_quantiles_are_those_of_the_rows_and_tell_a_tail(tmp_path):
    rng = np.random.default_rng(3)
    tables = [write_table_of(tmp_path / name, 1, 0.0, n=2000) for name in "ab"]
    path = tables[1] / "counters.parquet"
    table = read_table(path, "counters")
    times = table.column("duration_us").to_numpy() * np.where(rng.random(2000) < 0.03, 2.6, 1.0)
    index = table.schema.get_field_index("duration_us")
    changed = table.set_column(index, table.schema.field(index), pa.array(times))
    pa.parquet.write_table(changed, path)
    (kernel,) = compared(tmp_path, *tables)[0]["quantiles"]
    assert (kernel["median_differs"], kernel["p99_differs"]) == (False, True)
    own = np.sort(times) * 1000
    assert kernel["candidate_p99_ns"] == pytest.approx(own[1979], rel=1e-3)
    assert kernel["candidate_median_ns"] == pytest.approx(own[999], rel=1e-3)


def test_columns_of_other_values_or_many_are_no_settings(tmp_path):
    n = 1200
    columns = [
        {"registers": [float(registers)] * n, "order": np.arange(n, dtype=float), "clock": np.linspace(1.1, 1.9, n)}
        for registers in (96, 168)
    ]
    tables = {
        name: [write_table_of(tmp_path / name, seed, 0.5, gpu=["x", "y"] * (n // 2), **columns[seed])]
        for seed, name in enumerate("ab")
    }
    assert common_settings(tables).columns == ["rows", "gpu"]


def test_a_table_without_a_unit_of_time_is_refused_with_what_to_do(tmp_path):
    table = write_table_of(tmp_path / "a", 1, 0.5, unit="")
    with pytest.raises(NotComparableError, match="named with its unit of time, such as duration_us"):
        Launches("a", [table])


def with_times(folder, *names):
    """Write a table with the times `names` in this order, in each twice as many µs as in that before."""
    table = write_table_of(folder, 1, 0.5)
    path = table / "counters.parquet"
    counters = read_table(path, "counters")
    times = counters["duration_us"]
    field = counters.schema.field("duration_us")
    counters = counters.drop_columns(["duration_us"])
    for name in names:
        factor = {"gpu_us": 1.0, "cpu_us": 5.0}[name]
        counters = counters.append_column(field.with_name(name), pa.compute.multiply(times, factor))
    pa.parquet.write_table(counters, path)
    return table


@pytest.mark.parametrize("after", [("cpu_us", "gpu_us"), ("gpu_us",)])
@pytest.mark.parametrize("before", [("gpu_us",), ("gpu_us", "cpu_us")])
def test_tables_are_compared_by_one_column(tmp_path, before, after):
    """Each table's first time was taken: the times of a GPU were compared with those of a CPU."""
    tables = with_times(tmp_path / "a", *before), with_times(tmp_path / "b", *after)
    document, rows = compared(tmp_path, *tables)
    (kernel,) = (row for row in rows if row["level"] == "kernel" and row["metric"] == "time_per_launch")
    assert kernel["candidate_value"] == kernel["baseline_value"] < 1e6
    assert common_time([[tables[0]], [tables[1]]]) == "gpu_us"
    assert document["settings"]["columns"] == ["rows"]


def test_a_time_in_another_unit_is_the_same_column(tmp_path):
    """Tables with `latency_ms` and `latency_us` were not compared."""
    before = write_table_of(tmp_path / "a", 1, 0.5)
    after = write_table_of(tmp_path / "b", 1, 0.5)
    path = after / "counters.parquet"
    counters = read_table(path, "counters")
    field = counters.schema.field("duration_us")
    times = pa.compute.divide(counters["duration_us"], 1000.0)
    field = field.with_name("duration_ms").with_metadata(field.metadata | {b"unit": b"ms"})
    pa.parquet.write_table(counters.drop_columns(["duration_us"]).append_column(field, times), path)
    _, rows = compared(tmp_path, before, after)
    (kernel,) = (row for row in rows if row["level"] == "kernel" and row["metric"] == "time_per_launch")
    assert abs(kernel["change_percent"]) < 0.01
    assert kernel["candidate_value"] == pytest.approx(kernel["baseline_value"], rel=1e-4)


def test_a_name_in_common_goes_before_the_same_column_in_another_unit(tmp_path, monkeypatch):
    """`total_s` of one table was compared with `total_ms` of the other, though both had `total_ms`: -100 %."""
    columns = {tmp_path / "a": ["total_s", "total_ms"], tmp_path / "b": ["total_ms"]}
    monkeypatch.setattr("causeway.comparison.runs.settings.time_columns", columns.get)
    runs = [[folder] for folder in columns]
    assert common_time(runs) == "total_ms"
    columns |= {tmp_path / "b": ["total_us"]}  # which of the two it is, no name tells
    assert common_time(runs) == ""


def test_causes_are_compared_of_what_both_runs_measured(tmp_path):
    """Of `latency_us` and `latency_ms` all causes were told as gone and as appeared, and none of a change's parts."""
    rows_of_a = {"latency_us": 1, "latency_ms": 0, "host_s": 1, "total_s": 1, "total_us": 1, "total_ms": 0}
    rows_of_b = {"latency_us": 0, "latency_ms": 1, "host_s": 0, "total_s": 0, "total_us": 0, "total_ms": 1}
    measured = {"a": rows_of_a, "b": rows_of_b}
    causes = []
    for run_name, rows in measured.items():
        causes.append({})
        for target, n in rows.items():
            folder = tmp_path / run_name / target
            folder.mkdir(parents=True)
            schema = SCHEMAS["kernel_summary"]
            values = {field.name: "x" if field.type == pa.string() else 1 for field in schema}
            row = {field.name: [] if pa.types.is_list(field.type) else values[field.name] for field in schema}
            write_table(pa.Table.from_pylist([row] * n, schema), folder / "kernels.parquet", "kernel_summary")
            causes[-1][target] = str(folder / "causal" / "dataset" / "contributions.parquet")
    before, after = common_causes(causes)
    assert (list(before), list(after)) == (["latency_ms"], ["latency_ms"])
    assert "a/latency_us" in before["latency_ms"].as_posix()
    assert "b/latency_ms" in after["latency_ms"].as_posix()


def test_a_change_is_attributed_in_the_column_that_is_compared(tmp_path, monkeypatch):
    """Of +20 µs of `cpu_us` +13.9 µs were told as the kernel's own, which were those of `gpu_us`, searched first."""
    monkeypatch.setattr("causeway.comparison.compare.read_causes", dict.fromkeys)
    tables = [with_times(tmp_path / name, "cpu_us", "gpu_us") for name in "ab"]
    causes = [{target: f"{name}/{target}" for target in ("gpu_us", "cpu_us")} for name in "ab"]
    monkeypatch.setattr("causeway.comparison.compare.compare_causes", lambda *_: [])
    given = []
    outputs = tmp_path / "comparison.json", tmp_path / "comparison.parquet"
    folders = {name: [table] for name, table in zip("ab", tables, strict=True)}
    run([["a"], ["b"]], folders, {}, causes, {}, CHOICES, *outputs, attribute=lambda _, own: given.extend(own))
    assert given == [{"cpu_us": "a/cpu_us"}, {"cpu_us": "b/cpu_us"}]


def test_tables_without_a_time_in_common_are_not_compared(tmp_path):
    document, rows = compared(tmp_path, with_times(tmp_path / "a", "gpu_us"), with_times(tmp_path / "b", "cpu_us"))
    assert rows == []
    assert "a measured column that all have, named with its unit of time" in str(document)
